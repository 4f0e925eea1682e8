#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

constexpr double kRounding = 1e-5;

class FrequenciesAllAlike : public Rule {
 public:
  FrequenciesAllAlike()
      : Rule({"TL-V566", "frequencies-all-alike", "value", findings::Severity::kWarning,
              "sines and cosines of one position that all have the same frequency"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kOther}, [&](const Expressions& expressions, const NodeCall& call) {
      if (is_wave(call)) check_angles(expressions, call, out);
    });
    // Tables are few: who uses them is asked last.
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    for (const GraphId graph : view.model().graphs.ids())
      for (const ValueId table : Walk(std::span(view.model().graph(graph).initializers), view.analysis().meter()))
        check_table(expressions, table, out);
    each_node(view, out, {Opcode::kConstant},
              [&](const Expressions&, const NodeCall& call) { check_table(expressions, call.result(), out); });
  }

 private:
  static constexpr int kMaxSteps = 8;

  /// A sine or a cosine.
  static bool is_wave(const NodeCall& call) {
    const ops::ElementValue element = dataflow::element_function(call.analysis(), call.id(), 1);
    if (element == nullptr) return false;
    const auto at = [&](double number) { return element({std::array{number}, {}}); };
    constexpr double kTurn = 6.283185307179586;
    const auto is_near = [](double a, double b) { return std::abs(a - b) < kRounding; };
    return is_near(at(0.3), at(0.3 + kTurn)) && is_near(at(0.3), -at(0.3 + kTurn / 2)) &&
           is_near(at(0.3), at(0.3 - kTurn));
  }

  /// What a wave is computed of, before numbers and the same angles once more.
  static void check_angles(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    ValueId angles = call.operand(0).value();
    for (int step = 0; step < kMaxSteps && angles != ValueId::kAbsent; ++step) {
      angles = before_stretch(expressions, angles);
      const NodeId node = expressions.producer(angles);
      const Opcode opcode = expressions.op(node);
      if ((opcode == Opcode::kMul || opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) &&
          check_product(expressions, call, node, out))
        return;
      const auto scaled = with_number(expressions, node);
      if (opcode == Opcode::kConcat)
        angles = expressions.operand(node, 0);
      else if (scaled && (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !scaled->is_first)))
        angles = scaled->value;
      else
        return;
    }
  }

  /// Each position times each frequency.
  static bool check_product(const Expressions& expressions, const NodeCall& call, NodeId product, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Operand row(analysis, expressions.operand(product, side)),
          positions(analysis, expressions.operand(product, 1 - side));
      if (!row.present() || !positions.present() || row.taint().has(Aspect::kValue)) continue;
      const auto dims = expressions.dims(row.value()), other = expressions.dims(positions.value());
      const auto count = extents(expressions, row.value());
      if (dims.empty() || !count || *count < 2 || !has_known_numbers(expressions, row.value())) continue;
      // Along one axis, where positions have one number.
      const DimPool& pool = analysis.facts().dims();
      const auto is_one = [&](Dim dim) { return pool.is_constant(dim, 1); };
      bool is_outer = false;
      if (expressions.op(product) == Opcode::kMul)
        is_outer =
            pool.is_constant(dims.back(), static_cast<std::int64_t>(*count)) && (other.empty() || is_one(other.back()));
      else if (expressions.op(product) == Opcode::kMatMul)
        is_outer = dims.size() >= 2 && is_one(dims[dims.size() - 1 - side]);
      else
        is_outer = dims.size() == 1 && expressions.dims(expressions.result(product)).size() == other.size() + 1;
      const auto distinct = is_outer ? distinct_numbers(expressions, row.value()) : std::nullopt;
      // Those that differ are an end of the row.
      if (!distinct || (distinct->all > 1 && distinct->all * 4 > *count) || distinct->turn_only_a_part()) continue;
      const std::string named = row.name();
      out.report(product,
                 distinct->all == 1
                     ? fmt::format("all {} frequencies of {} are {:.4g}: the features of a position are one number",
                                   *count, named, row.fact().range.lo)
                     : fmt::format("the {} frequencies of {} are {} different numbers", *count, named, distinct->all))
          .note_at(call.id(), fmt::format("{} is computed of the angles here", call.op_name()))
          .fix("divide the indices of the frequencies with /: // leaves 0 of each of them");
      return true;
    }
    return false;
  }

  static bool has_known_numbers(const Expressions& expressions, ValueId value) {
    return number_of(Operand(expressions.analysis(), value)) ||
           is_constant(expressions, before_stretch(expressions, value));
  }

  static std::optional<std::size_t> extents(const Expressions& expressions, ValueId value) {
    std::size_t count = 1;
    for (const Dim dim : expressions.dims(value)) {
      const auto extent = expressions.analysis().facts().dims().as_constant(dim);
      if (!extent || *extent < 1 || *extent > 4096) return std::nullopt;
      count *= static_cast<std::size_t>(*extent);
    }
    return count;
  }

  struct Distinct {
    std::size_t all = 0, other_than_zero = 0;  ///< different numbers
    std::size_t nonzero = 0;                   ///< numbers other than 0, equal ones included

    /// A frequency of 0 leaves a feature as it is; the others differ.
    bool turn_only_a_part() const {
      return all > other_than_zero && other_than_zero > 1 && other_than_zero * 4 > nonzero;
    }
  };

  static std::optional<Distinct> distinct_numbers(const Expressions& expressions, ValueId value) {
    if (number_of(Operand(expressions.analysis(), value))) return Distinct{.all = 1};
    auto numbers = sorted_numbers(expressions, before_stretch(expressions, value));
    if (!numbers || numbers->size() < 4) return std::nullopt;
    const auto zeros = static_cast<std::size_t>(std::ranges::count(*numbers, 0.0));
    const std::size_t nonzero = numbers->size() - zeros;
    const auto end = std::ranges::unique(*numbers, [](double a, double b) {
                       return std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b));
                     }).begin();
    const auto all = static_cast<std::size_t>(end - numbers->begin());
    return Distinct{.all = all, .other_than_zero = all - (zeros > 0 ? 1 : 0), .nonzero = nonzero};
  }

  /// A table that has been computed before: the rows are positions, and of the columns there are no more than two.
  static void check_table(const Expressions& expressions, ValueId value, Reporter& out) {
    constexpr std::size_t kMostNumbers = 65'536;
    const dataflow::Analysis& analysis = expressions.analysis();
    const Operand table(analysis, value);
    if (!table.present()) return;
    const Range& range = table.fact().range;
    if (!(range.lo >= -1 - kRounding) || !(range.hi > 0.8) || !(range.hi <= 1 + kRounding) || !(range.lo < -0.2))
      return;
    if (table.fact().kind != ValueKind::kTensor || !table.fact().dtypes.proves(DTypeSet::floats())) return;
    const auto dims = expressions.dims(value);
    const std::int64_t columns = dims.empty() ? 0 : analysis.facts().dims().as_constant(dims.back()).value_or(0);
    const auto count = extents(expressions, value);
    if (columns < 4 || !count || *count > kMostNumbers) return;
    const NodeId user = first_use(expressions, value);
    if (user == NodeId::kNone) return;
    const auto numbers = constant_numbers(analysis, value, kMostNumbers);
    const auto width = static_cast<std::size_t>(columns);
    if (!numbers || numbers->size() / 4 < width || !is_of_one_frequency(expressions, *numbers, width)) return;
    out.report(user, fmt::format("the {} columns of {} are sines and cosines of one frequency: a position is "
                                 "one number",
                                 columns, table.name()))
        .fix("divide the indices of the frequencies with /: // leaves 0 of each of them");
  }

  /// Where rows are picked of a table, or where it is added to others or scales them.
  static NodeId first_use(const Expressions& expressions, ValueId table) {
    const dataflow::Analysis& analysis = expressions.analysis();
    for (const NodeId user : expressions.users(table)) {
      const Opcode opcode = expressions.op(user);
      const bool is_used = opcode == Opcode::kAdd || opcode == Opcode::kMul ||
                           (opcode == Opcode::kGather && expressions.operand(user, 0) == table);
      if (is_used && analysis.is_visited(user) && !analysis.has_failed(user)) return user;
    }
    return NodeId::kNone;
  }

  /// Sines and cosines of the row times one number.
  static bool is_of_one_frequency(const Expressions& expressions, const std::vector<double>& numbers,
                                  std::size_t width) {
    constexpr double kOff = 1e-3;
    expressions.charge(numbers.size());
    const std::size_t rows = std::min<std::size_t>(numbers.size() / width, 16);
    // Row 0 has a sine of 0 or a cosine of 1 in each column.
    std::optional<double> frequency;
    for (std::size_t column = 0; column < width && !frequency; ++column)
      if (std::abs(numbers[column]) < kOff) frequency = std::asin(std::clamp(numbers[width + column], -1.0, 1.0));
    for (std::size_t column = 0; column < width && !frequency; ++column)
      if (std::abs(numbers[column] - 1) < kOff) frequency = std::acos(std::clamp(numbers[width + column], -1.0, 1.0));
    if (!frequency || *frequency < 0.1) return false;
    for (std::size_t column = 0; column < width; ++column) {
      const bool is_sine = std::abs(numbers[column]) < kOff;
      for (std::size_t row = 0; row < rows; ++row) {
        const double angle = static_cast<double>(row) * *frequency;
        if (std::abs(numbers[row * width + column] - (is_sine ? std::sin(angle) : std::cos(angle))) > kOff)
          return false;
      }
    }
    return true;
  }
};

const RegisterRule<FrequenciesAllAlike> kRegisterFrequenciesAllAlike;

}  // namespace
}  // namespace tensorlint::rules
