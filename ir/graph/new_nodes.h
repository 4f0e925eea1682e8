#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/edit.h"
#include "ir/types/dtype.h"

namespace tensorlint {

/// Nodes that edits insert: the one place that knows how ONNX writes them. `name` may be empty.

NewNode new_cast(std::string name, std::string from, std::string result, DType to);
NewNode new_constant(std::string name, std::string result, NewAttribute value);
NewNode new_transpose(std::string name, std::string from, std::string result, std::vector<std::int64_t> order);
/// Until opset 12 of ai.onnx the axes are an attribute, from 13 on an operand.
NewNode new_squeeze(std::string name, std::string from, std::string result, std::vector<std::int64_t> axes);
NewNode new_squeeze(std::string name, std::string from, std::string result, std::string axes);
/// `Transfer` of the domain `tensorlint`, which the graph has to import.
NewNode new_transfer(std::string name, std::string from, std::string result, std::string device);

}  // namespace tensorlint
