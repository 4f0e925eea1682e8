#include "passes/placement/operator_traits.h"

#include <string_view>

#include "passes/placement/transfer.h"

namespace tensorlint::placement {

OperatorTraits traits_of(const Model& model, const Operator& op) {
  OperatorTraits traits;
  const std::string_view name = model.text(op.name);
  traits.region = region_kind(model, op);
  if (traits.region == RegionKind::kCall) return traits;
  traits.operands = operand_placement(model, op);
  if (is_transfer(model, op)) {
    traits.is_transfer = true;
    traits.content = ContentRule::kSame;
  }
  if (op.domain != NameId::kEmpty) return traits;
  for (const std::string_view same : {"Identity", "Squeeze", "Unsqueeze", "Reshape"})
    if (name == same) traits.content = ContentRule::kSame;
  if (name == "Not") traits.content = ContentRule::kNot;
  if (name == "And") traits.content = ContentRule::kAnd;
  if (name == "Or") traits.content = ContentRule::kOr;
  if (name == "Xor") traits.content = ContentRule::kXor;
  traits.is_collection = name.starts_with("Sequence") || name.starts_with("Optional") || name == "SplitToSequence" ||
                         name == "ConcatFromSequence";
  return traits;
}

}  // namespace tensorlint::placement
