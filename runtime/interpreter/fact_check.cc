#include "runtime/interpreter/fact_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/escape.h"
#include "runtime/interpreter/concrete_facts.h"

namespace tensorlint::runtime {
namespace {

bool is_as_declared(const TypeDecl& type, const HostTensor& tensor, DimNames& names) {
  if (is_known_dtype(type.element_code) && static_cast<DType>(type.element_code) != tensor.dtype()) return false;
  if (!type.ranked) return true;
  if (type.dims.size() != tensor.rank()) return false;
  for (std::size_t axis = 0; axis < type.dims.size(); ++axis) {
    const DimDecl& dim = type.dims[axis];
    if (dim.has_extent && dim.extent != tensor.extent(axis)) return false;
    if (!dim.has_extent && dim.name != NameId::kEmpty &&
        names.try_emplace(dim.name, tensor.extent(axis)).first->second != tensor.extent(axis))
      return false;
  }
  return true;
}

}  // namespace

bool is_as_declared(const TypeDecl* type, const HostValue& value, DimNames& names) {
  if (type == nullptr || value.is_absent()) return true;
  switch (type->kind) {
    case TypeKind::kTensor:
      return value.is_tensor() && is_as_declared(*type, value.tensor(), names);
    case TypeKind::kSequence:
    case TypeKind::kOptional:
      if (value.kind() != (type->kind == TypeKind::kSequence ? ValueKind::kSequence : ValueKind::kOptional))
        return false;
      return std::ranges::all_of(
          value.elements(), [&](const HostValue& element) { return is_as_declared(type->element, element, names); });
    default:
      return true;
  }
}

void FactCheck::begin(std::span<const HostValue> inputs) {
  const Model& model = analysis_.model();
  const Graph& main = model.graph(GraphId::kMain);
  names_.clear();
  for (std::size_t i = 0; i < inputs.size() && i < main.inputs.size(); ++i)
    if (contradiction_ == ValueId::kAbsent && !is_as_declared(model.value(main.inputs[i]).type, inputs[i], names_))
      contradiction_ = main.inputs[i];
}

void FactCheck::hold(NodeId node, std::span<const HostValue> results) {
  const Model& model = analysis_.model();
  const std::span<const ValueId> names = model.results(model.node(node));
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (contradiction_ != ValueId::kAbsent) return;
    if (names[r] == ValueId::kAbsent || results[r].is_absent()) continue;
    std::string why;
    if (!is_as_declared(model.value(names[r]).type, results[r], names_)) {
      contradiction_ = names[r];
    } else if (!contains(analysis_.facts(), analysis_.fact_id(names[r]), results[r], why)) {
      outside_.push_back(fmt::format("`{}` of node `{}`: {}", escape_for_display(model.name_of(names[r]), 200),
                                     escape_for_display(model.label(node), 200), why));
    }
  }
}

}  // namespace tensorlint::runtime
