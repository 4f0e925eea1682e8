#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/edit.h"

namespace tensorlint::placement {

/// `Transfer` of the domain `tensorlint`, which moves a tensor to the device that its attribute names.
bool is_transfer(const Model& model, const Operator& op);

/// A Transfer of `from` to `device` with result `made`: before a node, or after all nodes of `graph`. The domain is
/// imported.
std::vector<GraphEdit> insert_transfer(std::string name, std::string from, std::string made, std::string device,
                                       NodeId before, GraphId graph);

/// "x" and "cuda:0" give "x_on_cuda_0" with "on" as `word`.
std::string name_with_device(std::string_view name, std::string_view word, std::string_view device);

/// The outermost Loop or Scan around `node` that does not change `value`, else the node: a copy before it serves every
/// iteration.
NodeId outermost_loop(const Model& model, NodeId node, ValueId value);

/// The node before which one copy of `value` serves all `readers`: out of all loops, as far into branches as can be;
/// in the value's own graph where that yields the copy.
NodeId transfer_before(const Model& model, ValueId value, std::span<const NodeId> readers, bool is_yielded);

}  // namespace tensorlint::placement
