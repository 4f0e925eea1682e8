#pragma once

#include <cstdint>

#include "ir/graph/model.h"
#include "passes/placement/host_operands.h"
#include "passes/placement/symbols.h"

namespace tensorlint {

enum class NodeKind : std::uint8_t { kPlain, kTransfer, kCall, kIf, kLoop, kScan, kSequenceMap };

/// What of an operator the placer asks at each of its nodes.
struct OperatorTraits {
  NodeKind kind = NodeKind::kPlain;
  ContentRule content = ContentRule::kNone;
  bool is_collection = false;  ///< sequences and optionals: elements may be anywhere
  OperandPlacement operands;
};

OperatorTraits traits_of(const Model& model, const Operator& op);

}  // namespace tensorlint
