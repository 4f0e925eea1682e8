#pragma once

#include <cstdint>

#include "ir/graph/region_op.h"
#include "passes/placement/host_operands.h"
#include "passes/placement/symbols.h"

namespace tensorlint::placement {

/// What of an operator the placer asks at each of its nodes.
struct OperatorTraits {
  RegionKind region = RegionKind::kNone;
  bool is_transfer = false;
  ContentRule content = ContentRule::kNone;
  bool is_collection = false;  ///< sequences and optionals: elements may be anywhere
  OperandPlacement operands;
};

OperatorTraits traits_of(const Model& model, const Operator& op);

}  // namespace tensorlint::placement
