#include "runtime/files/drawn_inputs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/escape.h"
#include "runtime/files/agreement.h"
#include "runtime/values/codec.h"

namespace tensorlint::runtime {
namespace {

std::string name_of(const Model& model, ValueId id) { return quoted_for_people(model.name_of(id)); }

/// A negative extent says nothing: exporters write -1 for an axis of any length.
bool is_fixed(const DimDecl& dim) { return dim.has_extent && dim.extent >= 0; }

bool fits(const TypeDecl& type, const HostTensor& tensor) {
  if (is_known_dtype(type.element_code) && static_cast<DType>(type.element_code) != tensor.dtype()) return false;
  if (!type.ranked) return true;
  if (type.dims.size() != tensor.rank()) return false;
  for (std::size_t axis = 0; axis < type.dims.size(); ++axis)
    if (is_fixed(type.dims[axis]) && type.dims[axis].extent != tensor.extent(axis)) return false;
  return true;
}

/// An optional may be given as what it holds.
bool fits(const TypeDecl& type, const HostValue& value) {
  const auto element_fits = [&](const HostValue& element) {
    return type.element == nullptr || fits(*type.element, element);
  };
  switch (type.kind) {
    case TypeKind::kTensor:
      return value.is_tensor() && fits(type, value.tensor());
    case TypeKind::kSequence:
      return value.kind() == ValueKind::kSequence && std::ranges::all_of(value.elements(), element_fits);
    case TypeKind::kOptional:
      return value.kind() == ValueKind::kOptional ? std::ranges::all_of(value.elements(), element_fits)
                                                  : element_fits(value);
    default:
      return true;
  }
}

/// "float32[N, 3]", "sequence of int64[...]"
std::string type_text(const Model& model, const TypeDecl& type) {
  const auto of_element = [&](std::string_view what) {
    return type.element == nullptr ? std::string(what) : fmt::format("{} of {}", what, type_text(model, *type.element));
  };
  if (type.kind == TypeKind::kSequence) return of_element("sequence");
  if (type.kind == TypeKind::kOptional) return of_element("optional");
  if (type.kind != TypeKind::kTensor) return "another kind of value";
  std::vector<std::string> dims;
  for (const DimDecl& dim : type.dims)
    dims.push_back(is_fixed(dim)                ? fmt::format("{}", dim.extent)
                   : dim.name == NameId::kEmpty ? "?"
                                                : escape_for_display(model.text(dim.name), 60));
  const std::string_view dtype =
      is_known_dtype(type.element_code) ? to_text(static_cast<DType>(type.element_code)) : "an unknown dtype";
  return fmt::format("{}[{}]", dtype, type.ranked ? fmt::format("{}", fmt::join(dims, ", ")) : "...");
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

double Random::uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }

double Random::normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }

std::int64_t drawn_extent(Random& random) { return static_cast<std::int64_t>(1 + random.next() % 4); }

std::optional<Error> draw_inputs(const Model& model, std::uint64_t seed, Memory& memory, std::vector<HostValue>& inputs,
                                 const InputPlan& plan) {
  const Graph& main = model.graph(GraphId::kMain);
  Random random(seed);
  std::map<NameId, std::int64_t> extents_by_name;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = model.value(main.inputs[i]);
    if (!inputs[i].is_absent() || value.has_default()) continue;
    const TypeDecl* const type = value.type;
    if (type == nullptr || type->kind != TypeKind::kTensor || !is_known_dtype(type->element_code) || !type->ranked)
      return Error{fmt::format("the input {} is not declared as a tensor with a shape: give it with --inputs",
                               name_of(model, main.inputs[i])),
                   {}};
    const auto dtype = static_cast<DType>(type->element_code);
    if (!is_float(dtype) && !is_integer_or_bool(dtype))
      return Error{fmt::format("the input {} is {}, which --seed does not draw: give it with --inputs",
                               name_of(model, main.inputs[i]), to_text(dtype)),
                   {}};
    const auto planned = plan.extents.find(main.inputs[i]);
    Extents extents = planned == plan.extents.end() ? Extents() : planned->second;
    for (const DimDecl& dim : planned == plan.extents.end() ? type->dims : std::span<const DimDecl>()) {
      if (is_fixed(dim)) {
        extents.push_back(dim.extent);
      } else if (dim.name == NameId::kEmpty) {
        extents.push_back(drawn_extent(random));
      } else {
        extents.push_back(extents_by_name.try_emplace(dim.name, drawn_extent(random)).first->second);
      }
    }
    try {
      HostTensor tensor(dtype, std::move(extents), memory);
      const auto bounds = plan.elements.find(main.inputs[i]);
      const auto [least, most] = bounds == plan.elements.end() ? kUsualElements : bounds->second;
      const std::uint64_t count = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least) + 1;
      for (std::size_t e = 0; e < tensor.size(); ++e) {
        if (is_float(dtype)) {
          const double number = random.normal();
          store(tensor, e, 1, &number);
        } else {
          const std::uint64_t drawn = count == 0 ? random.next() : random.next() % (dtype == DType::kBool ? 2 : count);
          const auto number = static_cast<std::int64_t>(static_cast<std::uint64_t>(least) + drawn);
          store(tensor, e, 1, &number);
        }
      }
      inputs[i] = std::move(tensor);
    } catch (const RunFault& fault) {
      return Error{fmt::format("the input {}: {}", name_of(model, main.inputs[i]), fault.message), {}};
    }
  }
  return std::nullopt;
}

std::optional<Error> check_input(const Model& model, ValueId input, const HostValue& value) {
  const TypeDecl* const type = model.value(input).type;
  if (value.is_absent() || type == nullptr || fits(*type, value)) return std::nullopt;
  return Error{fmt::format("the input {} is {}, the model declares {}", name_of(model, input), type_text(value),
                           type_text(model, *type)),
               {}};
}

}  // namespace tensorlint::runtime
