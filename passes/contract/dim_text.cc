#include "passes/contract/dim_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "base/escape.h"

namespace tensorlint::contract {
namespace {

constexpr std::size_t kMaxLength = 1000;

std::string axis_name(const dataflow::Analysis& analysis, Dim symbol) {
  const Model& model = analysis.model();
  for (const ValueId input : model.graph(GraphId::kMain).inputs) {
    if (input == ValueId::kAbsent || analysis.fact(input).kind != ValueKind::kTensor) continue;
    const std::span<const Dim> dims = analysis.facts().dims_of(analysis.fact(input).shape);
    analysis.meter().charge(1 + dims.size() / 4);
    const auto found = std::ranges::find(dims, symbol);
    if (found != dims.end()) return fmt::format("{}.shape[{}]", model.name_of(input), found - dims.begin());
  }
  return "?";
}

}  // namespace

std::string text_of(const dataflow::Analysis& analysis, Dim dim) {
  DimPool& pool = analysis.facts().dims();
  const Dim named = pool.substitute(dim, [&](Dim symbol) -> std::optional<Dim> {
    if (pool.is_named(symbol)) return std::nullopt;
    return pool.symbol(axis_name(analysis, symbol));
  });
  return escape_for_display(pool.to_text(named), kMaxLength);
}

}  // namespace tensorlint::contract
