#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

/// The number that all elements are.
std::optional<double> one_number(const Expressions& expressions, ValueId value) {
  if (value == ValueId::kAbsent) return std::nullopt;
  if (const auto number = expressions.number(value)) return number;
  if (const auto number = number_of(Operand(expressions.analysis(), value))) return number;
  const auto numbers = constant_numbers(expressions, before_stretch(expressions, value));
  if (!numbers || numbers->empty()) return std::nullopt;
  const bool is_one = std::ranges::all_of(*numbers, [&](double number) { return number == numbers->front(); });
  return is_one ? std::optional(numbers->front()) : std::nullopt;
}

/// A value as a function of the label that it meets: of comparisons with numbers, selections, casts.
class OfLabel {
 public:
  OfLabel(const Expressions& expressions, ValueId label)
      : expressions_(expressions), label_(label), memory_(expressions.analysis().meter()) {}

  /// Where the label is `label`; nullopt where something else has a part in it.
  std::optional<double> at(ValueId value, double label, int depth = 0) {
    constexpr int kMaxDepth = 10;
    if (value == ValueId::kAbsent || depth > kMaxDepth || std::isnan(label) || expressions_.is_spent())
      return std::nullopt;
    const auto [known, is_new] = known_.try_emplace({value, label});
    if (is_new) {
      memory_.add(kBytesOfEntry);
      known->second = computed(value, label, depth);
    }
    return known->second;
  }

  /// The numbers that decide.
  const std::set<double>& numbers() const { return numbers_; }
  NodeId compared() const { return compared_; }

 private:
  static constexpr std::uint64_t kStepsOfEntry = 64, kBytesOfEntry = 96;

  std::optional<double> computed(ValueId value, double label, int depth) {
    constexpr std::size_t kMostOperands = 16;
    expressions_.charge(kStepsOfEntry);
    if (const auto number = one_number(expressions_, value)) {
      if (!std::isnan(*number)) numbers_.insert(*number);
      return number;
    }
    const ValueId before = before_stretch(expressions_, value);
    if (before == label_ || are_computed_alike(expressions_, before, label_)) {
      // To bool and back.
      const bool is_bool = expressions_.analysis().fact(value).dtypes.proves(DTypeSet(DType::kBool));
      return is_bool && before != value ? static_cast<double>(label != 0) : label;
    }
    if (before != value) return at(before, label, depth + 1);
    const NodeId node = expressions_.producer(value);
    const dataflow::Analysis& analysis = expressions_.analysis();
    const ops::ElementValue element = dataflow::element_function(analysis, node);
    if (element == nullptr || !has_trait(expressions_.entry(node), ops::OpTrait::kElementwise) ||
        analysis.operands(node).size() > kMostOperands)
      return std::nullopt;
    std::vector<double> operands;
    for (const ValueId operand : analysis.operands(node)) {
      const auto number = at(operand, label, depth + 1);
      if (!number) return std::nullopt;
      operands.push_back(*number);
    }
    if (operands.size() != analysis.model().node(node).operand_count) return std::nullopt;
    if (expressions_.op(node) == Opcode::kEqual) compared_ = node;
    return element({operands, analysis.attributes(node).read()});
  }

  const Expressions& expressions_;
  ValueId label_;
  std::set<double> numbers_;
  KeptMemory memory_;
  std::map<std::pair<ValueId, double>, std::optional<double>> known_;
  NodeId compared_ = NodeId::kNone;
};

class LossOfOneLabel : public Rule {
 public:
  LossOfOneLabel()
      : Rule({"TL-L360", "loss-of-one-label", "loss", findings::Severity::kWarning,
              "a loss that counts where the label is one number, and nowhere else"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    if (one_float_outputs(analysis).empty()) return;
    Visited<NodeId> seen(analysis.meter());
    for (const losses::LossSite& loss : view.losses())
      if (ops::takes_class_indices(loss.kind) && !analysis.has_failed(loss.anchor) && seen.insert(loss.anchor))
        check(out.shared<losses::LossAxes>().expressions, {loss.anchor, loss.prediction, loss.target}, out);
    // Weights that depend on the label make another formula of it.
    each_node(view, out, {Opcode::kGatherElements}, [&](const Expressions& expressions, const NodeCall& call) {
      const ValueId scores = call.operand(0).value(), labels = call.operand(1).value();
      if (scores == ValueId::kAbsent || labels == ValueId::kAbsent || !seen.insert(call.id())) return;
      const auto softmax = expressions.normalised(before_stretch(expressions, scores));
      if (softmax && softmax->logarithm) check(expressions, {call.id(), scores, labels}, out);
    });
  }

 private:
  struct Picked {
    NodeId anchor;
    ValueId prediction, target;
  };

  static void check(const Expressions& expressions, const Picked& loss, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const ValueId target = loss.target == ValueId::kAbsent ? loss.target : before_stretch(expressions, loss.target);
    const ValueId label = before_choice(expressions, target);
    if (label == ValueId::kAbsent || !analysis.fact(label).dtypes.proves(DTypeSet::integers()) ||
        !is_input(analysis, before_moves(expressions, label)))
      return;
    OfLabel of(expressions, label);
    const std::vector<Weight> weights = weights_after(expressions, loss.anchor, of);
    if (weights.empty() && target == label) return;
    const double ignored = ignored_label(analysis, loss.anchor);
    const auto classes = class_count(expressions, loss);
    std::set<double> counted, left_out;
    // The numbers that decide are known once one label has been looked at.
    const auto look_at = [&](double label_number) {
      const auto seen = target == label ? std::optional(label_number) : of.at(target, label_number);
      if (!seen) return false;
      bool counts = *seen != ignored && *seen >= 0;
      for (const Weight& weight : weights) {
        const auto number = of.at(weight.value, label_number);
        if (!number) return false;
        counts = counts && (*number != 0) == weight.keeps_true;
      }
      (counts ? counted : left_out).insert(label_number);
      return true;
    };
    if (!look_at(0)) return;
    // A mask tells a few labels apart.
    constexpr std::size_t kMostNumbers = 64;
    if (of.numbers().size() > kMostNumbers) return;
    std::set<double> labels{0, 1, 2, 3, 4, 5};
    for (const double number : of.numbers())
      if (std::abs(number) < 1e6) labels.insert({number - 1, number, number + 1});
    std::erase_if(labels, [&](double number) {
      return number < 0 || number != std::floor(number) || (classes && number >= *classes);
    });
    for (const double number : labels)
      if (!look_at(number)) return;
    if (counted.size() > 1 || left_out.size() < 2 || (classes && *classes < 3)) return;
    const NodeId at = of.compared() != NodeId::kNone ? of.compared() : loss.anchor;
    const std::string name = Operand(analysis, label).name();
    out.report(at, counted.empty()
                       ? fmt::format("the loss counts for none of the classes that {} may be", name)
                       : fmt::format("the loss counts where {} is {}, and nowhere else: one class is all that is "
                                     "trained",
                                     name, *counted.begin()))
        .note_at(loss.anchor, "the loss of each label is computed here")
        .cause(name)
        .fix("invert the mask: let the loss count where the label is not padding");
  }

  struct Weight {
    ValueId value;
    bool keeps_true = true;  ///< counts where it is not 0
  };

  /// Labels that are ignored or replaced: the label itself.
  static ValueId before_choice(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      if (expressions.op(node) != Opcode::kWhere) break;
      const ValueId yes = expressions.operand(node, 1), no = expressions.operand(node, 2);
      if (expressions.number(yes).has_value() == expressions.number(no).has_value()) break;
      value = expressions.number(yes) ? no : yes;
      if (value != ValueId::kAbsent) value = before_stretch(expressions, value);
    }
    return value;
  }

  /// What the losses of the labels are multiplied with or chosen by, before they are summed up. Nothing else may read
  /// them: a loss may have a part for each label.
  static std::vector<Weight> weights_after(const Expressions& expressions, NodeId anchor, OfLabel& of) {
    constexpr int kMaxSteps = 10;
    std::vector<Weight> found;
    ValueId value = expressions.result(anchor);
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      NodeId user = NodeId::kNone;
      for (const NodeId each : expressions.users(value)) {
        if (expressions.op(each) == Opcode::kShape) continue;
        if (user != NodeId::kNone) return {};
        user = each;
      }
      const Opcode opcode = expressions.op(user);
      if (opcode == Opcode::kMul) {
        const ValueId weight = expressions.beside(user, value);
        if (!of.at(weight, 0)) return {};
        found.push_back({weight});
      } else if (opcode == Opcode::kWhere) {
        const bool is_yes = expressions.operand(user, 1) == value;
        if (one_number(expressions, expressions.operand(user, is_yes ? 2 : 1)) != 0) return found;
        if (!of.at(expressions.operand(user, 0), 0)) return {};
        found.push_back({expressions.operand(user, 0), is_yes});
      } else if (opcode == Opcode::kGatherND && expressions.operand(user, 0) == value) {
        const ValueId chosen = chosen_by(expressions, expressions.operand(user, 1));
        if (chosen == ValueId::kAbsent || !of.at(chosen, 0)) return {};
        found.push_back({chosen});
        return found;
      } else if (opcode != Opcode::kNeg && opcode != Opcode::kCast && !ops::keeps_elements(opcode)) {
        return found;
      }
      value = expressions.result(user);
    }
    return found;
  }

  /// The mask whose true elements the places are; kAbsent for other places.
  static ValueId chosen_by(const Expressions& expressions, ValueId places) {
    if (places == ValueId::kAbsent) return places;
    const NodeId node = expressions.producer(before_stretch(expressions, places));
    const ValueId mask = expressions.operand(node, 0);
    if (expressions.op(node) != Opcode::kOther || mask == ValueId::kAbsent ||
        expressions.operand(node, 1) != ValueId::kAbsent ||
        !expressions.analysis().fact(mask).dtypes.proves(DTypeSet(DType::kBool)))
      return ValueId::kAbsent;
    return mask;
  }

  static double ignored_label(const dataflow::Analysis& analysis, NodeId anchor) {
    const Attribute* given = analysis.attribute(anchor, "ignore_index");
    return given == nullptr ? -100 : static_cast<double>(given->i);
  }

  static std::optional<double> class_count(const Expressions& expressions, const Picked& loss) {
    const auto dims = expressions.dims(loss.prediction);
    if (dims.size() < 2) return std::nullopt;
    const auto count = expressions.analysis().facts().dims().as_constant(dims[1]);
    return count ? std::optional(static_cast<double>(*count)) : std::nullopt;
  }
};

const RegisterRule<LossOfOneLabel> kRegisterLossOfOneLabel;

}  // namespace
}  // namespace tensorlint::rules
