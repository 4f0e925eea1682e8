#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class GridInUnitSquare : public Rule {
 public:
  GridInUnitSquare()
      : Rule({"TL-V577", "grid-in-unit-square", "value", findings::Severity::kWarning,
              "places in [0, 1] for an operator that takes them in [-1, 1]"}) {}

  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry* entry) const override {
    if (opcode_of(entry) != Opcode::kOther || has_trait(entry, ops::OpTrait::kElementwise)) return false;
    const OpSchema* schema = find_any_version(domain, name);
    return schema != nullptr && schema->attribute("padding_mode") != nullptr &&
           schema->attribute("align_corners") != nullptr;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const Operand grid = call.operand(1);
    if (!grid.present() || grid.taint().has(Aspect::kValue)) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const Places places = places_of(expressions, grid.value(), 0);
    // As far as the last pixel, or half of one less.
    constexpr double kFirst = 0.1, kLast = 0.75;
    if (places.kind != Kind::kCounted || !(places.lo >= 0 && places.lo < kFirst) ||
        !(places.hi > kLast && places.hi <= 1 + 1e-6))
      return;
    out.report(call.id(),
               fmt::format("{} takes places from -1 to 1, and those of {} go from {:.3g} to {:.3g}: it reads "
                           "the last quarter of the picture alone",
                           call.op_name(), grid.name(), places.lo, places.hi))
        .origin(grid, Aspect::kValue)
        .fix("scale them: 2 * grid - 1");
  }

 private:
  enum class Kind { kData, kCounted, kUnknown };

  /// Places that the program counts, with all that data adds to them left out.
  struct Places {
    Kind kind = Kind::kUnknown;
    double lo = 0, hi = 0;
  };

  static Places places_of(const Expressions& expressions, ValueId value, int depth) {
    constexpr int kMaxDepth = 16;
    if (value == ValueId::kAbsent || depth > kMaxDepth || expressions.is_spent()) return {};
    expressions.charge(8);
    const dataflow::Analysis& analysis = expressions.analysis();
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    if (opcode == Opcode::kRange) {
      const Range& range = analysis.fact(value).range;
      const bool is_known = range.lo <= range.hi && std::isfinite(range.lo) && std::isfinite(range.hi) && !range.nan;
      return is_known ? Places{Kind::kCounted, range.lo, range.hi} : Places{};
    }
    if (is_constant(expressions, value)) return of_table(expressions, value);
    if (node == NodeId::kNone) return {Kind::kData};
    const auto of = [&](std::size_t side) {
      return places_of(expressions, expressions.operand(node, side), depth + 1);
    };
    if (ops::moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kTile) return of(0);
    switch (opcode) {
      case Opcode::kAdd:
      case Opcode::kSub: {
        const Places a = of(0), b = of(1);
        const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
        if (a.kind != b.kind && a.lo != a.hi && !is_field_over(expressions, second, first)) return {};
        if (a.kind != b.kind && b.lo != b.hi && !is_field_over(expressions, first, second)) return {};
        return sum_of(a, b, opcode == Opcode::kSub);
      }
      case Opcode::kMul:
      case Opcode::kDiv:
        return scaled(of(0), of(1), opcode == Opcode::kDiv);
      case Opcode::kConcat:
        return joined(expressions, node, depth);
      case Opcode::kMatMul:
      case Opcode::kConv:
      case Opcode::kSigmoid:
        return {Kind::kData};
      default:
        break;
    }
    // What picks from data, or is computed of it element by element.
    if (ops::picks_elements(opcode) || has_trait(expressions.entry(node), ops::OpTrait::kElementwise))
      return of(0).kind == Kind::kData ? Places{Kind::kData} : Places{};
    return {};
  }

  /// Equal steps, or both ends of them: what else is between 0 and 1 may have been drawn, to be learnt.
  static Places of_table(const Expressions& expressions, ValueId value) {
    constexpr std::size_t kMost = std::size_t{1} << 18;
    constexpr double kRounding = 1e-4;
    const auto numbers = sorted_numbers(expressions, value, kMost);
    if (!numbers || numbers->empty() || std::ranges::any_of(*numbers, [](double x) { return !std::isfinite(x); }))
      return {};
    const double lo = numbers->front(), hi = numbers->back();
    // Width and height.
    if (numbers->size() == 2 && lo > 1) return {Kind::kCounted, lo, hi};
    if (lo == hi || (lo == 0 && hi == 1)) return {Kind::kCounted, lo, hi};
    const double near = kRounding * (hi - lo);
    double width = 0;
    for (std::size_t i = 1; i < numbers->size(); ++i) {
      const double step = (*numbers)[i] - (*numbers)[i - 1];
      if (step <= near) continue;
      if (width != 0 && std::abs(step - width) > 2 * near) return {};
      if (width == 0) width = step;
    }
    return {Kind::kCounted, lo, hi};
  }

  /// Data for each place. One shift for all of them, as of a corner, moves the places anywhere.
  static bool is_field_over(const Expressions& expressions, ValueId data, ValueId places) {
    const auto own = expressions.dims(data), counted = expressions.dims(places);
    const DimPool& pool = expressions.analysis().facts().dims();
    for (std::size_t i = 1; i <= counted.size(); ++i)
      if (!pool.is_constant(counted[counted.size() - i], 1) &&
          (i > own.size() || pool.is_constant(own[own.size() - i], 1)))
        return false;
    return true;
  }

  static Places sum_of(const Places& a, const Places& b, bool subtracts) {
    if (a.kind == Kind::kUnknown || b.kind == Kind::kUnknown) return {};
    if (a.kind == Kind::kData && b.kind == Kind::kData) return {Kind::kData};
    if (b.kind == Kind::kData) return a;
    const double lo = subtracts ? -b.hi : b.lo, hi = subtracts ? -b.lo : b.hi;
    if (a.kind == Kind::kData) return {Kind::kCounted, lo, hi};
    // Of two that both vary the ends may not meet.
    if (a.lo != a.hi && lo != hi) return {};
    return {Kind::kCounted, a.lo + lo, a.hi + hi};
  }

  static Places scaled(const Places& a, const Places& b, bool divides) {
    if (a.kind == Kind::kData && b.kind != Kind::kUnknown) return {Kind::kData};
    if (b.kind == Kind::kData && a.kind == Kind::kCounted && a.lo == a.hi && !divides) return {Kind::kData};
    if (a.kind != Kind::kCounted || b.kind != Kind::kCounted) return {};
    const bool turned = a.lo == a.hi && !divides;
    const Places &of = turned ? b : a, &by = turned ? a : b;
    // By the last of each coordinate, as of width and height in one table.
    if (divides && by.lo != by.hi && by.lo > 0 && of.lo == 0 && (of.hi == by.hi || of.hi + 1 == by.hi))
      return {Kind::kCounted, 0, of.hi / by.hi};
    if (by.lo != by.hi || (divides && by.lo == 0)) return {};
    const double factor = divides ? 1 / by.lo : by.lo;
    return {Kind::kCounted, std::min(of.lo * factor, of.hi * factor), std::max(of.lo * factor, of.hi * factor)};
  }

  /// Both coordinates, each of which has to go from one end to the other.
  static Places joined(const Expressions& expressions, NodeId node, int depth) {
    constexpr std::size_t kMaxParts = 3;
    Places all;
    std::size_t count = 0;
    for (const ValueId operand : expressions.analysis().operands(node)) {
      const Places part = places_of(expressions, operand, depth + 1);
      if (part.kind == Kind::kUnknown || ++count > kMaxParts || (count > 1 && part.kind != all.kind)) return {};
      all = count == 1 ? part : Places{part.kind, std::max(all.lo, part.lo), std::min(all.hi, part.hi)};
    }
    return all;
  }
};

const RegisterRule<GridInUnitSquare> kRegisterGridInUnitSquare;

}  // namespace
}  // namespace tensorlint::rules
