#include "passes/placement/nominal_work.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "passes/placement/explicit_transfers.h"

namespace tensorlint::placement {
namespace {

std::optional<std::int64_t> nominal_symbol(Dim) { return kNominalExtent; }

}  // namespace

std::int64_t cut_weight(double bytes, double times) {
  constexpr double kMaxWeight = 0x1p36;
  return static_cast<std::int64_t>(std::min(bytes * times, kMaxWeight));
}

std::optional<std::int64_t> NominalWork::evaluate(Dim dim) {
  const DimPool& dims = analysis_.facts().dims();
  if (const auto constant = dims.as_constant(dim)) return constant;
  const auto [at, is_new] = known_.try_emplace(dim.id());
  if (is_new) at->second = dims.evaluate(dim, nominal_symbol);
  return at->second;
}

double NominalWork::bytes_of(ValueId value) {
  const auto known = evaluate(bytes_.of(value));
  return known ? static_cast<double>(std::max<std::int64_t>(*known, 0))
               : static_cast<double>(kNominalExtent * kNominalExtent);
}

double NominalWork::products_of(const Node& node, ops::Opcode opcode) {
  const Model& model = analysis_.model();
  const bool is_conv = opcode == ops::Opcode::kConv;
  if (!(is_conv || opcode == ops::Opcode::kMatMul) || node.operand_count < 2 || node.result_count == 0) return 0;
  const std::vector<double> operand = extents_of(model.operands(node)[is_conv ? 1 : 0]),
                            result = extents_of(model.results(node)[0]);
  if (operand.empty()) return 0;
  double products = 1;
  for (const double extent : result) products *= extent;
  if (!is_conv) {
    const Attribute* transposed = model.attribute(node, "transA");
    return products * (transposed != nullptr && transposed->i != 0 ? operand.front() : operand.back());
  }
  for (std::size_t axis = 1; axis < operand.size(); ++axis) products *= operand[axis];  // channels of a group, kernel
  return products;
}

double NominalWork::extent_of(Dim extent) {
  return static_cast<double>(std::max<std::int64_t>(evaluate(extent).value_or(kNominalExtent), 0));
}

std::vector<double> NominalWork::extents_of(ValueId value) {
  std::vector<double> extents;
  if (value == ValueId::kAbsent || analysis_.fact(value).shape == ShapeId::kUnranked) return extents;
  for (const Dim extent : analysis_.facts().dims_of(analysis_.fact(value).shape)) extents.push_back(extent_of(extent));
  return extents;
}

}  // namespace tensorlint::placement
