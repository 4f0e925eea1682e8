#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "base/letters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class CentreAdded : public Rule {
 public:
  CentreAdded()
      : Rule({"TL-V580", "centre-added", "value", findings::Severity::kWarning,
              "a softmax of scores to which their own mean over the samples is added"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    // The scores of a teacher: attention adds masks, and is not trained on its own.
    if (has_no_loss_output(view.analysis())) return;
    each_node(view, out, {Opcode::kSoftmax, Opcode::kLogSoftmax},
              [&](const Expressions& expressions, const NodeCall& call) { check_softmax(expressions, call, out); });
  }

 private:
  static void check_softmax(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const ValueId scores = call.operand(0).value();
    const auto axes = expressions.axes_of(call.id());
    const std::size_t rank = expressions.dims(call.result()).size();
    if (scores == ValueId::kAbsent || !axes || axes->size() != 1 || rank < 2 || axes->front() == 0) return;
    const ValueId sum_of = before_scale(expressions, scores);
    if (sum_of == ValueId::kAbsent) return;
    const NodeId sum = expressions.producer(sum_of);
    if (expressions.op(sum) != Opcode::kAdd) return;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId of = expressions.operand(sum, side), centre = expressions.operand(sum, 1 - side);
      if (of == ValueId::kAbsent || centre == ValueId::kAbsent) continue;
      for (const ValueId part : added_parts(expressions, centre))
        if (check_part(expressions, call, {sum, of, part, sum_of != scores}, out)) return;
    }
  }

  struct Shifted {
    NodeId sum = NodeId::kNone;
    ValueId scores = ValueId::kAbsent, centre = ValueId::kAbsent;
    bool has_temperature = false;
  };

  static bool check_part(const Expressions& expressions, const NodeCall& call, const Shifted& shifted, Reporter& out) {
    const NodeId made = own_mean(expressions, shifted.centre, shifted.scores);
    const bool is_kept = made == NodeId::kNone && shifted.has_temperature &&
                         is_known_as_centre(expressions, shifted.centre) &&
                         is_weight_of_logarithms(expressions, call.result());
    if (made == NodeId::kNone && !is_kept) return false;
    const Operand named(call.analysis(), is_kept ? shifted.centre : expressions.result(made));
    auto finding =
        out.report(shifted.sum, fmt::format("the centre {} is added to the scores {}: what they have in common counts "
                                            "twice",
                                            named.name(), Operand(call.analysis(), shifted.scores).name()));
    if (!is_kept) finding.note_at(made, "it is their mean over the samples");
    finding.note_at(call.id(), "their softmax is taken here").fix("subtract it: scores - centre").cause(named.name());
    return true;
  }

  /// What a value is, or is a sum of, each times a number above 0.
  static std::vector<ValueId> added_parts(const Expressions& expressions, ValueId value) {
    std::vector<Summand> parts = summands(expressions, value, Numbers::kApart);
    if (parts.empty()) parts.push_back({value, 1});
    std::vector<ValueId> found;
    for (Summand& part : parts) {
      constexpr int kMaxSteps = 6;
      for (int step = 0; step < kMaxSteps && part.value != ValueId::kAbsent; ++step) {
        part.value = before_stretch(expressions, part.value);
        const NodeId node = expressions.producer(part.value);
        const Opcode opcode = expressions.op(node);
        const auto scaled = with_number(expressions, node);
        if (opcode == Opcode::kNeg) {
          part.factor = -part.factor;
          part.value = expressions.operand(node, 0);
        } else if (scaled && (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !scaled->is_first))) {
          part.factor *= scaled->number;
          part.value = scaled->value;
        } else {
          break;
        }
      }
      if (part.factor > 0 && part.value != ValueId::kAbsent) found.push_back(part.value);
    }
    return found;
  }

  /// Over the samples, of the scores or of a batch that they are a part of.
  static NodeId own_mean(const Expressions& expressions, ValueId centre, ValueId scores) {
    const NodeId mean = expressions.producer(centre);
    const auto axes = expressions.axes_of(mean);
    const ValueId batch = expressions.operand(mean, 0);
    const std::size_t rank = expressions.dims(batch).size();
    if (expressions.op(mean) != Opcode::kReduceMean || !axes || axes->empty() || axes->front() != 0 ||
        axes->back() + 1 >= rank)
      return NodeId::kNone;
    return is_part_of(expressions, scores, batch) ? mean : NodeId::kNone;
  }

  static bool is_part_of(const Expressions& expressions, ValueId scores, ValueId batch) {
    constexpr std::size_t kMaxParts = 16;
    const ValueId part = before_moves(expressions, scores), whole = before_moves(expressions, batch);
    if (part == whole) return true;
    const NodeId joined = expressions.producer(whole);
    if (expressions.op(joined) != Opcode::kConcat) return false;
    const Attribute* axis = expressions.analysis().attribute(joined, "axis");
    const auto parts = expressions.analysis().operands(joined);
    if (axis == nullptr || axis->i != 0 || parts.size() > kMaxParts) return false;
    for (const ValueId operand : parts)
      if (operand != ValueId::kAbsent && before_moves(expressions, operand) == part) return true;
    return false;
  }

  /// An input or a buffer of that name: "teacher.center", "centre".
  static bool is_known_as_centre(const Expressions& expressions, ValueId value) {
    const Model& model = expressions.analysis().model();
    if (!is_input(expressions.analysis(), value) && model.value(value).initializer == nullptr) return false;
    std::string_view written = telling_name(expressions.analysis(), value);
    if (const std::size_t dot = written.find_last_of("./"); dot != std::string_view::npos)
      written = written.substr(dot + 1);
    const std::string name = lower_case(written);
    return name == "center" || name == "centre" || name.ends_with("_center") || name.ends_with("_centre");
  }

  /// As probabilities that are to be met by others.
  static bool is_weight_of_logarithms(const Expressions& expressions, ValueId probabilities) {
    constexpr std::size_t kMaxValues = 8;
    std::array<ValueId, kMaxValues> same{probabilities};
    std::size_t count = 1;
    for (std::size_t i = 0; i < count; ++i)
      for (const NodeId user : expressions.users(same[i])) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (opcode == Opcode::kMul) {
          const ValueId other = before_scale(expressions, expressions.beside(user, same[i]));
          ValueId plain = other;
          if (expressions.op_of(other) == Opcode::kNeg) plain = expressions.operand(expressions.producer(other), 0);
          if (plain == ValueId::kAbsent) continue;
          plain = before_moves(expressions, plain);
          if (expressions.op_of(plain) == Opcode::kLog) return true;
          const auto softmax = expressions.normalised(plain);
          if (softmax && softmax->logarithm) return true;
        }
        if (result != ValueId::kAbsent && count < kMaxValues &&
            (opcode == Opcode::kNeg || ops::moves_elements(opcode) || opcode == Opcode::kCast))
          same[count++] = result;
      }
    return false;
  }
};

const RegisterRule<CentreAdded> kRegisterCentreAdded;

}  // namespace
}  // namespace tensorlint::rules
