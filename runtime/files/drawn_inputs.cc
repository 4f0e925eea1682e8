#include "runtime/files/drawn_inputs.h"

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

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  /// In (0, 1).
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }
  /// N(0, 1), by Box and Muller.
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }

 private:
  std::uint64_t state_;
};

std::string name_of(const Model& model, ValueId id) {
  return fmt::format("`{}`", escape_for_people(model.name_of(id), 200));
}

bool has_default(const Value& value) { return value.initializer != nullptr || value.sparse_initializer != nullptr; }

}  // namespace

std::optional<Error> draw_inputs(const Model& model, std::uint64_t seed, Memory& memory,
                                 std::vector<HostValue>& inputs) {
  const Graph& main = model.graph(GraphId::kMain);
  Random random(seed);
  std::map<NameId, std::int64_t> extents_by_name;
  const auto draw_extent = [&] { return static_cast<std::int64_t>(1 + random.next() % 4); };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = model.value(main.inputs[i]);
    if (!inputs[i].is_absent() || has_default(value)) continue;
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
    Extents extents;
    for (const DimDecl& dim : type->dims) {
      if (dim.has_extent) {
        extents.push_back(dim.extent);
      } else if (dim.name == NameId::kEmpty) {
        extents.push_back(draw_extent());
      } else {
        extents.push_back(extents_by_name.try_emplace(dim.name, draw_extent()).first->second);
      }
    }
    try {
      HostTensor tensor(dtype, std::move(extents), memory);
      for (std::size_t e = 0; e < tensor.size(); ++e) {
        if (is_float(dtype)) {
          const double number = random.normal();
          store(tensor, e, 1, &number);
        } else {
          const auto number = static_cast<std::int64_t>(random.next() % (dtype == DType::kBool ? 2 : 10));
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
  if (value.is_absent() || type == nullptr || type->kind != TypeKind::kTensor) return std::nullopt;
  bool fits = value.is_tensor() &&
              (!is_known_dtype(type->element_code) || static_cast<DType>(type->element_code) == value.tensor().dtype());
  if (fits && type->ranked) {
    fits = type->dims.size() == value.tensor().rank();
    for (std::size_t axis = 0; fits && axis < type->dims.size(); ++axis)
      fits = !type->dims[axis].has_extent || type->dims[axis].extent == value.tensor().extent(axis);
  }
  if (fits) return std::nullopt;
  std::vector<std::string> dims;
  for (const DimDecl& dim : type->dims)
    dims.push_back(dim.has_extent               ? fmt::format("{}", dim.extent)
                   : dim.name == NameId::kEmpty ? "?"
                                                : escape_for_people(model.text(dim.name), 60));
  const std::string_view dtype =
      is_known_dtype(type->element_code) ? to_text(static_cast<DType>(type->element_code)) : "an unknown dtype";
  return Error{fmt::format("the input {} is {}, the model declares {}[{}]", name_of(model, input), type_text(value),
                           dtype, type->ranked ? fmt::format("{}", fmt::join(dims, ", ")) : "..."),
               {}};
}

}  // namespace tensorlint::runtime
