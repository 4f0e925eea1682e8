#include "runtime/interpreter/fact_check.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/escape.h"
#include "runtime/interpreter/concrete_facts.h"

namespace tensorlint::runtime {
namespace {

constexpr std::size_t kMostTold = 100;  // values outside their facts: a loop may give any number

bool is_as_declared(const TypeDecl& type, std::int32_t dtype_code, std::span<const std::int64_t> extents,
                    DimNames& names) {
  if (is_known_dtype(type.element_code) && type.element_code != dtype_code) return false;
  if (!type.ranked) return true;
  if (type.dims.size() != extents.size()) return false;
  for (std::size_t axis = 0; axis < type.dims.size(); ++axis) {
    const DimDecl& dim = type.dims[axis];
    if (dim.has_extent && dim.extent != extents[axis]) return false;
    if (!dim.has_extent && dim.name != NameId::kEmpty &&
        names.try_emplace(dim.name, extents[axis]).first->second != extents[axis])
      return false;
  }
  return true;
}

bool is_default_as_declared(const Value& input, DimNames& names) {
  if (input.type == nullptr || input.type->kind != TypeKind::kTensor || input.initializer == nullptr) return true;
  return is_as_declared(*input.type, input.initializer->dtype_code, input.initializer->dims, names);
}

/// `within`: lists that have been looked at; elements share them.
bool is_as_declared(const TypeDecl* type, const HostValue& value, DimNames& names,
                    std::set<std::pair<const TypeDecl*, const void*>>& within) {
  if (type == nullptr || value.is_absent()) return true;
  switch (type->kind) {
    case TypeKind::kTensor:
      return value.is_tensor() &&
             is_as_declared(*type, static_cast<std::int32_t>(value.tensor().dtype()), value.tensor().extents(), names);
    case TypeKind::kSequence:
    case TypeKind::kOptional:
      if (value.kind() != (type->kind == TypeKind::kSequence ? ValueKind::kSequence : ValueKind::kOptional))
        return false;
      if (!within.emplace(type, &value.elements()).second) return true;
      return std::ranges::all_of(value.elements(), [&](const HostValue& element) {
        return is_as_declared(type->element, element, names, within);
      });
    default:
      return true;
  }
}

}  // namespace

bool is_as_declared(const TypeDecl* type, const HostValue& value, DimNames& names) {
  std::set<std::pair<const TypeDecl*, const void*>> within;
  return is_as_declared(type, value, names, within);
}

void FactCheck::begin(std::span<const HostValue> inputs) {
  const Model& model = analysis_.model();
  const Graph& main = model.graph(GraphId::kMain);
  names_.clear();
  for (std::size_t i = 0; i < inputs.size() && i < main.inputs.size(); ++i) {
    if (contradiction_ != ValueId::kAbsent) return;
    const Value& input = model.value(main.inputs[i]);
    const bool agrees =
        inputs[i].is_absent() ? is_default_as_declared(input, names_) : is_as_declared(input.type, inputs[i], names_);
    if (!agrees) contradiction_ = main.inputs[i];
  }
}

void FactCheck::hold(NodeId node, std::span<const HostValue> results) {
  const Model& model = analysis_.model();
  const std::span<const ValueId> names = model.results(model.node(node));
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (contradiction_ != ValueId::kAbsent) return;
    if (names[r] == ValueId::kAbsent || results[r].is_absent()) continue;
    if (!is_as_declared(model.value(names[r]).type, results[r], names_)) {
      contradiction_ = names[r];
    } else if (outside_.size() == kMostTold) {
      return;
    } else if (const std::string why = outside_of(analysis_.fact_id(names[r]), results[r]); !why.empty()) {
      outside_.push_back(fmt::format("`{}` of node `{}`: {}", escape_for_display(model.name_of(names[r]), 200),
                                     escape_for_display(model.label(node), 200), why));
    }
  }
}

/// A sequence that many nodes hand on is looked at once for each fact.
std::string FactCheck::outside_of(FactId fact, const HostValue& result) {
  const auto look = [&] {
    std::string why;
    return contains(analysis_.facts(), fact, result, why) ? std::string() : why;
  };
  return result.is_tensor() ? look() : known_[fact].of(result, look);
}

}  // namespace tensorlint::runtime
