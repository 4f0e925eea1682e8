#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"
#include "base/escape.h"
#include "passes/dataflow/element_function.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

/// Less than any score: what is added to hide one, or put in its place.
constexpr double kHidden = -1e3;

/// One element of a matrix that the program itself makes: of constants, of the part above or below a diagonal, of
/// numbers that are counted, and what is computed element by element of those.
class MatrixElements {
 public:
  explicit MatrixElements(const Expressions& expressions)
      : expressions_(expressions), memory_(expressions.analysis().meter()) {}

  /// In the row and column of the last two axes; nullopt where data has a part in it.
  std::optional<double> at(ValueId value, std::int64_t row, std::int64_t column, int depth = 0) {
    constexpr int kMaxDepth = 12;
    if (value == ValueId::kAbsent || depth > kMaxDepth || expressions_.is_spent()) return std::nullopt;
    expressions_.charge(8);
    if (const auto number = expressions_.number(value)) return number;
    const dataflow::Analysis& analysis = expressions_.analysis();
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    if (node == NodeId::kNone || opcode == Opcode::kConstant) return of_constant(value, row, column);
    const ValueId data = expressions_.operand(node, 0);
    if (opcode == Opcode::kIdentity || opcode == Opcode::kCast || opcode == Opcode::kExpand)
      return at(data, row, column, depth + 1);
    if (opcode == Opcode::kUnsqueeze || opcode == Opcode::kReshape) {
      // A row becomes a column.
      const auto before = expressions_.dims(data), after = expressions_.dims(value);
      const DimPool& pool = analysis.facts().dims();
      if (before.empty() || after.empty()) return std::nullopt;
      const bool is_turned = pool.is_constant(after.back(), 1) && !pool.is_constant(before.back(), 1);
      return at(data, 0, is_turned ? row : column, depth + 1, is_turned || before.size() < 2, row, column);
    }
    if (opcode == Opcode::kRange) {
      const auto start = expressions_.number(expressions_.operand(node, 0));
      const auto step = expressions_.number(expressions_.operand(node, 2));
      return start && step ? std::optional(*start + *step * static_cast<double>(column)) : std::nullopt;
    }
    if (const auto element = of_triangle(node, row, column, depth)) return element;
    const ops::ElementValue element = dataflow::element_function(analysis, node);
    if (element == nullptr || !has_trait(expressions_.entry(node), ops::OpTrait::kElementwise)) return std::nullopt;
    std::vector<double> operands;
    for (const ValueId operand : analysis.operands(node)) {
      const auto number = at(operand, row, column, depth + 1);
      if (!number) return std::nullopt;
      operands.push_back(*number);
    }
    // A walk that the spent meter ends gives fewer of them.
    if (operands.size() != analysis.model().node(node).operand_count) return std::nullopt;
    return element({operands, analysis.attributes(node).read()});
  }

 private:
  std::optional<double> at(ValueId value, std::int64_t row, std::int64_t column, int depth, bool is_vector,
                           std::int64_t same_row, std::int64_t same_column) {
    return is_vector ? at(value, row, column, depth) : at(value, same_row, same_column, depth);
  }

  std::optional<double> of_constant(ValueId value, std::int64_t row, std::int64_t column) {
    const std::vector<double>* numbers = numbers_of(value);
    const auto dims = expressions_.dims(value);
    if (numbers == nullptr || dims.empty()) return std::nullopt;
    const DimPool& pool = expressions_.analysis().facts().dims();
    const auto extent = [&](std::size_t from_end) {
      return from_end > dims.size() ? std::optional<std::int64_t>(1) : pool.as_constant(dims[dims.size() - from_end]);
    };
    const auto columns = extent(1), rows = extent(2);
    if (!columns || !rows || static_cast<std::int64_t>(numbers->size()) != *columns * *rows) return std::nullopt;
    const std::int64_t at = (*rows == 1 ? 0 : row) * *columns + (*columns == 1 ? 0 : column);
    return at < static_cast<std::int64_t>(numbers->size()) ? std::optional((*numbers)[static_cast<std::size_t>(at)])
                                                           : std::nullopt;
  }

  const std::vector<double>* numbers_of(ValueId value) {
    if (const auto known = constants_.find(value); known != constants_.end())
      return known->second ? &*known->second : nullptr;
    const auto& known = constants_.emplace(value, constant_numbers(expressions_, value)).first->second;
    constexpr std::uint64_t kBytesOfEntry = 96;
    memory_.add(kBytesOfEntry + (known ? known->size() * sizeof known->front() : 0));
    return known ? &*known : nullptr;
  }

  /// The part of a matrix on one side of a diagonal, with zeros elsewhere.
  std::optional<double> of_triangle(NodeId node, std::int64_t row, std::int64_t column, int depth) {
    const Model& model = expressions_.analysis().model();
    const OpSchema* schema = model.op(model.node(node)).schema;
    if (schema == nullptr || schema->attribute("upper") == nullptr || schema->input_index("k") < 0) return std::nullopt;
    const Attribute* upper = expressions_.analysis().attribute(node, "upper");
    const ValueId given = expressions_.operand(node, static_cast<std::size_t>(schema->input_index("k")));
    const auto diagonal = given == ValueId::kAbsent ? std::optional<double>(0) : expressions_.number(given);
    const auto element = at(expressions_.operand(node, 0), row, column, depth + 1);
    if (!diagonal || !element) return std::nullopt;
    const auto off = static_cast<double>(column - row);
    const bool is_upper = upper == nullptr || upper->i != 0;
    return (is_upper ? off >= *diagonal : off <= *diagonal) ? *element : 0;
  }

  const Expressions& expressions_;
  KeptMemory memory_;
  std::map<ValueId, std::optional<std::vector<double>>> constants_;
};

class InvertedMask : public Rule {
 public:
  InvertedMask()
      : Rule({"TL-V529", "inverted-mask", "value", findings::Severity::kWarning,
              "a mask of attention that hides what is to be seen, and lets the rest through"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    std::vector<Triangle> future;
    bool hides_future = false;
    std::vector<Kept> kept;
    SidesHidden known;
    bool looked = false, has_masks = false;
    each_node(view, out, {Opcode::kSoftmax}, [&](const Expressions& expressions, const NodeCall& call) {
      if (!looked) {
        kept = kept_by_means(view, expressions);
        has_masks = !kept.empty() || has_named_mask(view.analysis());
      }
      looked = true;
      const auto triangle = triangle_of(expressions, call, known);
      if (triangle && triangle->hides_row) {
        out.report(triangle->node,
                   "the mask hides each position from itself, and one of them sees nothing: the softmax of its scores "
                   "is NaN")
            .note_at(triangle->softmax, "the scores are normalised here")
            .cause("row")
            .fix("leave the diagonal out of what is hidden: triu(ones, 1), Trilu with k = 1");
        return;
      }
      if (triangle && triangle->hides_past) future.push_back(*triangle);
      hides_future = hides_future || (triangle && !triangle->hides_past);
      if (has_masks) check_key_mask(expressions, call, kept, out);
    });
    check_means(view, out);
    // A model that reads in both directions has one of each.
    if (hides_future) return;
    for (const Triangle& triangle : future)
      out.report(triangle.node, "each position attends to the later ones alone: the mask hides the earlier ones")
          .note_at(triangle.softmax, "the scores are normalised here")
          .cause("future")
          .fix("hide the upper triangle without the diagonal, such as with torch.triu(ones, 1)");
  }

 private:
  struct Triangle {
    NodeId node, softmax;
    bool hides_past;
    bool hides_row = false;  ///< with minus infinity, of the first or last position all
  };

  static constexpr std::int64_t kMostOfRow = 512;

  /// Which side a mask hides, by the value and by whether it hides where that holds; layers share one.
  using SidesHidden = std::map<std::pair<ValueId, bool>, std::optional<bool>>;

  /// A mask of the program's own, of the last two axes of the scores, that hides one side of the diagonal.
  static std::optional<Triangle> triangle_of(const Expressions& expressions, const NodeCall& call, SidesHidden& known) {
    constexpr int kMaxSteps = 8;
    const auto dims = expressions.dims(call.operand(0).value());
    const auto axes = expressions.axes_of(call.id());
    const DimPool& pool = call.facts().dims();
    if (dims.size() < 2 || !axes || axes->size() != 1 || axes->front() + 1 != dims.size() ||
        !pool.equal(dims.back(), dims[dims.size() - 2]))
      return std::nullopt;
    const std::int64_t extent = pool.as_constant(dims.back()).value_or(5);
    if (extent < 3) return std::nullopt;
    MatrixElements elements(expressions);
    ValueId scores = call.operand(0).value();
    for (int step = 0; step < kMaxSteps && scores != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(scores);
      const Opcode opcode = expressions.op(node);
      const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1),
                    third = expressions.operand(node, 2);
      if (opcode == Opcode::kWhere) {
        const bool hides_true = expressions.number(second).value_or(0) <= kHidden,
                   hides_false = expressions.number(third).value_or(0) <= kHidden;
        if (hides_true == hides_false) return std::nullopt;
        const double low = expressions.number(hides_true ? second : third).value_or(0);
        const auto is_hidden = [&](std::int64_t i, std::int64_t k) -> std::optional<bool> {
          const auto chosen = elements.at(first, i, k);
          return chosen ? std::optional((*chosen != 0) == hides_true) : std::nullopt;
        };
        if (std::isinf(low) && is_hidden(0, 0).value_or(false)) {
          // Of a constant the rule about domains says so.
          const bool is_constant = constant_numbers(expressions, before_stretch(expressions, first)).has_value();
          if (!is_constant && hides_whole_row(is_hidden, extent)) return Triangle{node, call.id(), false, true};
          return std::nullopt;
        }
        auto found = known.find({first, hides_true});
        if (found == known.end())
          found = known.emplace(std::pair(first, hides_true), side_hidden(is_hidden, extent)).first;
        if (found->second) return Triangle{node, call.id(), *found->second};
        scores = hides_true ? third : second;
      } else if (opcode == Opcode::kAdd) {
        const auto hidden_by = [&](ValueId mask) {
          if (const auto found = known.find({mask, true}); found != known.end()) return found->second;
          const auto side = side_hidden(
              [&](std::int64_t i, std::int64_t k) -> std::optional<bool> {
                const auto added = elements.at(mask, i, k);
                return added ? std::optional(*added <= kHidden) : std::nullopt;
              },
              extent);
          known.emplace(std::pair(mask, true), side);
          return side;
        };
        for (const ValueId mask : {first, second})
          if (const auto past = hidden_by(mask)) return Triangle{node, call.id(), *past};
        scores = first;
      } else if (opcode == Opcode::kMul || opcode == Opcode::kDiv) {
        const auto scaled = with_number(expressions, node);
        if (!scaled) return std::nullopt;
        scores = scaled->value;
      } else if (opcode == Opcode::kCast || opcode == Opcode::kIdentity) {
        scores = first;
      } else {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  /// One side of the diagonal and the diagonal itself: nothing is left of the row at one end.
  template <typename Hidden>
  static bool hides_whole_row(const Hidden& is_hidden, std::int64_t extent) {
    const auto is_whole = [&](std::int64_t row) {
      for (std::int64_t k = 0; k < extent; ++k)
        if (!is_hidden(row, k).value_or(false)) return false;
      return true;
    };
    return extent <= kMostOfRow && (is_whole(0) || is_whole(extent - 1)) &&
           !is_hidden(1, 0).value_or(true) != !is_hidden(0, 1).value_or(true);
  }

  /// True where all before the diagonal is hidden and nothing after it; false where it is the other way round.
  template <typename Hidden>
  static std::optional<bool> side_hidden(const Hidden& is_hidden, std::int64_t extent) {
    constexpr std::int64_t kMost = 12;
    bool past = true, future = true;
    for (std::int64_t i = 0; i < std::min(extent, kMost); ++i)
      for (std::int64_t k = 0; k < std::min(extent, kMost); ++k) {
        if (i == k) continue;
        const auto hidden = is_hidden(i, k);
        if (!hidden) return std::nullopt;
        past = past && *hidden == (k < i);
        future = future && *hidden == (k > i);
      }
    return past == future ? std::nullopt : std::optional(past);
  }

  /// An input whose elements weigh features in a mean.
  struct Kept {
    ValueId mask;
    bool keeps_ones;
    NodeId node;
  };

  /// sum(features * mask) / sum(mask), or 1 - mask for both.
  static std::vector<Kept> kept_by_means(const ModelView& view, const Expressions& expressions,
                                         std::size_t least_rank = 2) {
    std::vector<Kept> found;
    const dataflow::Analysis& analysis = view.analysis();
    for (const NodeId node : analysis.nodes()) {
      if (expressions.op(node) != Opcode::kDiv) continue;
      ValueId below = before_stretch(expressions, expressions.operand(node, 1));
      NodeId sum = expressions.producer(below);
      if (expressions.op(sum) == Opcode::kClip || expressions.op(sum) == Opcode::kMax ||
          expressions.op(sum) == Opcode::kAdd)
        sum = expressions.producer(before_stretch(expressions, expressions.operand(sum, 0)));
      if (expressions.op(sum) != Opcode::kReduceSum || expressions.dims(expressions.result(node)).size() < least_rank)
        continue;
      const NodeId total = expressions.producer(before_stretch(expressions, expressions.operand(node, 0)));
      if (expressions.op(total) != Opcode::kReduceSum ||
          expressions.op_of(expressions.operand(total, 0)) != Opcode::kMul)
        continue;
      const auto weights = sense_of(expressions, expressions.operand(sum, 0));
      if (weights) found.push_back({weights->mask, weights->at_one > weights->at_zero, node});
    }
    return found;
  }

  /// A mean of those that a mask is to leave out.
  static void check_means(const ModelView& view, Reporter& out) {
    if (!has_named_mask(view.analysis())) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    for (const Kept& mean : kept_by_means(view, expressions, 0)) {
      const auto keeps_ones = keeps_ones_by_name(view.model().name_of(mean.mask));
      if (!keeps_ones || *keeps_ones == mean.keeps_ones) continue;
      out.report(mean.node, fmt::format("the mean takes those where {} is {}, which by that name are to be left out",
                                        Operand(view.analysis(), mean.mask).name(), mean.keeps_ones ? 1 : 0))
          .fix("weigh with the mask as it is, not with what it leaves out");
    }
  }

  struct Sense {
    ValueId mask;
    double at_zero, at_one;
  };

  /// A value as a function of the one input of zeros and ones that it has, where everything else is 0.
  static std::optional<Sense> sense_of(const Expressions& expressions, ValueId value, int depth = 0) {
    constexpr int kMaxDepth = 2;
    const dataflow::Analysis& analysis = expressions.analysis();
    const Formula formula(expressions, value);
    if (!formula.is_complete()) return std::nullopt;
    std::optional<Sense> found;
    std::vector<Formula::Assignment> zero, one;
    const auto parts = formula.parts();
    // Beside a mask of integers or one that is named so, a float input is data.
    const auto is_marked = [&](ValueId source) {
      return keeps_ones_by_name(analysis.model().name_of(source)) ||
             analysis.fact(source).dtypes.proves(DTypeSet::integers());
    };
    const bool has_marked = std::ranges::any_of(parts, [&](const Formula::Part& part) {
      const ValueId source =
          part.kind == Formula::PartKind::kLeaf ? before_stretch(expressions, part.value) : ValueId::kAbsent;
      return source != ValueId::kAbsent && is_input(analysis, source) && is_marked(source);
    });
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf) continue;
      if (parts[i].value == ValueId::kAbsent) return std::nullopt;
      const ValueId source = before_stretch(expressions, parts[i].value);
      std::optional<Sense> own;
      if (is_input(analysis, source) && expressions.dims(source).size() >= 2 && (!has_marked || is_marked(source)))
        own = Sense{source, 0, 1};
      else if (expressions.op_of(parts[i].value) == Opcode::kCast && depth < kMaxDepth)  // to bool
        own = sense_of(expressions, expressions.operand(parts[i].node, 0), depth + 1);
      if (own && found) return std::nullopt;
      zero.push_back({i, own ? own->at_zero : 0});
      one.push_back({i, own ? own->at_one : 0});
      if (own) found = own;
    }
    if (!found) return std::nullopt;
    expressions.charge(4 * parts.size());
    found->at_zero = formula.evaluate(zero, 0);
    found->at_one = formula.evaluate(one, 0);
    if (std::isnan(found->at_zero) || std::isnan(found->at_one)) return std::nullopt;
    return found;
  }

  /// What a mask of that name is 1 for: what attention may see (transformers, BERT), or what it is to ignore (PyTorch).
  static std::optional<bool> keeps_ones_by_name(std::string_view name) {
    if (has_ending(name, "key_padding_mask")) return false;
    if (has_ending(name, "attention_mask") || has_ending(name, "input_mask")) return true;
    return std::nullopt;
  }

  static bool has_named_mask(const dataflow::Analysis& analysis) {
    const Model& model = analysis.model();
    return std::ranges::any_of(analysis.inputs(GraphId::kMain), [&](ValueId input) {
      return input != ValueId::kAbsent && keeps_ones_by_name(model.name_of(input)).has_value();
    });
  }

  static void check_key_mask(const Expressions& expressions, const NodeCall& call, const std::vector<Kept>& kept,
                             Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const auto scores = sense_of(expressions, call.operand(0).value());
    if (!scores || std::abs(scores->at_one - scores->at_zero) < -kHidden) return;
    const bool hides_ones = scores->at_one < scores->at_zero;
    const Operand mask(analysis, scores->mask);
    const std::string hidden = fmt::format("the scores where {} is {}", mask.name(), hides_ones ? 1 : 0);
    for (const Kept& mean : Walk(std::span(kept), analysis.meter()))
      if (mean.mask == scores->mask && mean.keeps_ones == hides_ones) {
        out.report(call.id(), fmt::format("{} hides {}, and a mean takes those alone", call.op_name(), hidden))
            .cause(mask.name())
            .note_at(mean.node, "the mean is computed here")
            .fix("invert the mask in one of the two places");
        return;
      }
    const auto keeps_ones = keeps_ones_by_name(analysis.model().name_of(scores->mask));
    if (!keeps_ones || *keeps_ones != hides_ones) return;
    const std::string shown = escape_for_display(analysis.model().name_of(scores->mask));
    out.report(call.id(), fmt::format("{} hides {}, which by that name are {}", call.op_name(), hidden,
                                      *keeps_ones ? "the ones to see" : "to be seen"))
        .cause(mask.name())
        .fix(*keeps_ones ? fmt::format("hide where it is 0: (1 - {}) * -10000", shown)
                         : fmt::format("hide where it is 1: {} * -10000", shown));
  }
};

const RegisterRule<InvertedMask> kRegisterInvertedMask;

}  // namespace
}  // namespace tensorlint::rules
