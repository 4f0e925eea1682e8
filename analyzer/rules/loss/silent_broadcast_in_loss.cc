#include <fmt/format.h>

#include <algorithm>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class SilentBroadcastInLoss : public Rule {
 public:
  SilentBroadcastInLoss()
      : Rule({"TL-L302", "silent-broadcast-in-loss", "loss", findings::Severity::kWarning,
              "a loss that compares every prediction with every target, because [N, 1] meets [N]"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::is_regression(loss.kind) || !is_summed_up(analysis, loss)) return;
    if (check_shapes(analysis, loss, loss.prediction, loss.target, out)) return;
    // torch.broadcast_tensors, which its losses call, stretches both before they meet.
    if (loss.prediction_source != loss.prediction && loss.target_source != loss.target)
      check_shapes(analysis, loss, loss.prediction_source, loss.target_source, out);
  }

 private:
  static bool check_shapes(const dataflow::Analysis& analysis, const losses::LossSite& loss, ValueId predicted,
                           ValueId wanted, Reporter& out) {
    const Operand prediction(analysis, predicted), target(analysis, wanted);
    if (!prediction.present() || !target.present()) return false;
    if (prediction.taint().has(Aspect::kShape) || target.taint().has(Aspect::kShape)) return false;
    const bool column_is_prediction = is_column_of(analysis, predicted, wanted);
    if (!column_is_prediction && !is_column_of(analysis, wanted, predicted)) return false;
    const Operand& column = column_is_prediction ? prediction : target;
    // Whoever adds the axis right before the difference may well want all pairs.
    if (loss.evidence == losses::LossEvidence::kPattern && adds_axis(analysis, column.value())) return false;
    FactStore& facts = analysis.facts();
    out.report(loss.meeting,
               fmt::format("{} compares every element of {} {} with every element of {} {}", ops::to_text(loss.kind),
                           prediction.name(), facts.shape_text(prediction.fact().shape), target.name(),
                           facts.shape_text(target.fact().shape)))
        .origin(prediction, Aspect::kShape)
        .origin(target, Aspect::kShape)
        .fix(fmt::format("remove the last axis of {} (Squeeze), or add one to {} (Unsqueeze)", column.name(),
                         (column_is_prediction ? target : prediction).name()),
             findings::Applicability::kUnsafe,
             predicted == loss.prediction ? insert_squeeze_of_last_axis(analysis.model(), loss.meeting, column.value())
                                          : std::vector<GraphEdit>{});
    return true;
  }

  /// A written-out loss whose elements nobody adds up may be a table of distances.
  static bool is_summed_up(const dataflow::Analysis& analysis, const losses::LossSite& loss) {
    return loss.evidence != losses::LossEvidence::kPattern ||
           std::any_of(loss.nodes.begin(), loss.nodes.end(), [&](NodeId node) {
             const NodeCall call(analysis, node);
             return call.is(ops::Opcode::kReduceMean) || call.is(ops::Opcode::kReduceSum);
           });
  }

  /// `column` has the shape of `row` with an axis of extent 1 behind it, and more than one row: [N, 1] and [N].
  static bool is_column_of(const dataflow::Analysis& analysis, ValueId column, ValueId row) {
    FactStore& facts = analysis.facts();
    const Fact &tall = analysis.fact(column), &flat = analysis.fact(row);
    if (tall.shape == ShapeId::kUnranked || flat.shape == ShapeId::kUnranked) return false;
    const auto a = facts.dims_of(tall.shape), b = facts.dims_of(flat.shape);
    if (b.empty() || a.size() != b.size() + 1 || !facts.dims().is_constant(a.back(), 1)) return false;
    for (std::size_t i = 0; i < b.size(); ++i)
      if (!facts.dims().equal(a[i], b[i])) return false;
    // With one row nothing is stretched.
    return facts.dims().bounds(b.back()).hi > 1;
  }

  static bool adds_axis(const dataflow::Analysis& analysis, ValueId value) {
    const Model& model = analysis.model();
    const NodeId producer = model.value(value).producer;
    return producer != NodeId::kNone && NodeCall(analysis, producer).is(ops::Opcode::kUnsqueeze);
  }
};

const RegisterRule<SilentBroadcastInLoss> kRegister;

}  // namespace
}  // namespace tensorlint::rules
