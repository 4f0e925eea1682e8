#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/loss/token_shift.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ShiftedTwice : public Rule {
 public:
  ShiftedTwice()
      : Rule({"TL-L392", "shifted-twice", "loss", findings::Severity::kWarning,
              "labels that are shifted against the input of a model, and once more against what it predicts"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    if (!has_node(out, {Opcode::kSlice})) return;
    std::vector<Shifts> found;
    for (const losses::LossSite& loss : view.losses()) {
      if (!ops::takes_class_indices(loss.kind) || loss.anchor == NodeId::kNone || analysis.has_failed(loss.anchor) ||
          loss.target == ValueId::kAbsent || loss.prediction == ValueId::kAbsent)
        continue;
      found.push_back(shifts_of(out.shared<losses::LossAxes>().expressions, loss));
    }
    // Several heads may predict one step ahead, two, and so on.
    if (found.size() != 1 || found[0].labels != 2 || found[0].slices != 2 || found[0].read != 0) return;
    out.report(found[0].anchor, "the labels are shifted twice: each step is to predict the one after the next")
        .note_at(found[0].second, "they are shifted again here")
        .fix("shift once: labels[:, 1:] for what the model gives for labels[:, :-1]");
  }

 private:
  struct Shifts {
    NodeId anchor = NodeId::kNone, second = NodeId::kNone;
    std::int64_t labels = 0, slices = 0;  ///< by how many steps in all, and how often
    std::int64_t read = -1;               ///< the first step that the prediction of the first label has read
  };

  static Shifts shifts_of(const Expressions& expressions, const losses::LossSite& loss) {
    const dataflow::Analysis& analysis = expressions.analysis();
    Shifts found{loss.anchor, NodeId::kNone, 0, 0, -1};
    constexpr int kMaxSlices = 3;
    ValueId labels = before_views(expressions, loss.target);
    for (int step = 0; step < kMaxSlices && labels != ValueId::kAbsent && !is_input(analysis, labels); ++step) {
      const StepsOf part = steps_of(expressions, labels);
      if (part.of == ValueId::kAbsent || part.of == labels) return {};
      if (part.start > 0) {
        if (found.second == NodeId::kNone) found.second = expressions.producer(labels);
        found.labels += part.start;
        ++found.slices;
      }
      labels = before_views(expressions, part.of);
    }
    if (labels == ValueId::kAbsent || !is_input(analysis, labels)) return {};
    const StepsOf scores = steps_of(expressions, before_layout(expressions, loss.prediction));
    if (scores.of == ValueId::kAbsent) return {};
    bool several = false;
    walk_back(expressions, scores.of, [&](ValueId, NodeId node) {
      if (ops::moves_elements(expressions.op(node)) || expressions.op(node) == Opcode::kCast) return true;
      for (const ValueId operand : analysis.operands(node)) {
        if (operand == ValueId::kAbsent) continue;
        const StepsOf part = steps_of(expressions, before_views(expressions, operand));
        if (part.of != labels) continue;
        several = several || (found.read >= 0 && found.read != part.start + scores.start);
        found.read = part.start + scores.start;
      }
      return !several;
    });
    return several ? Shifts{} : found;
  }
};

const RegisterRule<ShiftedTwice> kRegisterShiftedTwice;

}  // namespace
}  // namespace tensorlint::rules
