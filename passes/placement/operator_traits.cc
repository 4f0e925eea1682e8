#include "passes/placement/operator_traits.h"

namespace tensorlint::placement {
namespace {

const ops::OpEntry* entry_of(const Model& model, const Operator& op) {
  if (op.function != GraphId::kNone) return nullptr;
  const std::string_view domain = model.text(op.domain);
  // A domain that the model forgets to import is meant all the same.
  return ops::find_entry(domain, model.text(op.name), op.opset > 0 ? op.opset : newest_opset(domain));
}

}  // namespace

OperatorTraits traits_of(const Model& model, const Operator& op) {
  const ops::OpEntry* entry = entry_of(model, op);
  return {region_kind(model, op), opcode_of(entry), device_signature(op.schema, entry)};
}

DeviceSignature device_signature(const Model& model, const Operator& op) {
  return device_signature(op.schema, entry_of(model, op));
}

}  // namespace tensorlint::placement
