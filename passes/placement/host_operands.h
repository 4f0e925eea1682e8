#pragma once

#include <cstdint>
#include <string_view>

#include "ir/graph/model.h"
#include "ir/ops/inference.h"

namespace tensorlint::placement {

/// What of an operator decides where its operands may be (rule 3 and 4 of the placement contract).
struct OperandPlacement {
  std::uint64_t host = 0;        ///< bit i: operand i is read by the host; formal operands past 63 are data
  bool results_on_host = false;  ///< Shape, Size: only the operand's shape matters
  bool is_opaque = false;        ///< nothing is known of the operator: its operands are not compared
  bool is_index = false;         ///< operand 1 indexes operand 0
  bool is_host(std::size_t operand) const { return operand < 64 && ((host >> operand) & 1U) != 0; }
};

OperandPlacement operand_placement(const Model& model, const Operator& op);

}  // namespace tensorlint::placement
