#include <fmt/format.h>

#include <algorithm>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class LogitsIntoProbabilityLoss : public Rule {
 public:
  LogitsIntoProbabilityLoss()
      : Rule({"TL-L304", "logits-into-probability-loss", "loss", findings::Severity::kWarning,
              "a loss of probabilities or their logarithms gets the scores of a layer"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    const bool logarithms =
        loss.kind == ops::LossKind::kNegativeLogLikelihood || loss.kind == ops::LossKind::kKlDivergence;
    if (loss.evidence == losses::LossEvidence::kMetadata ||
        (!logarithms && loss.kind != ops::LossKind::kBinaryCrossEntropy))
      return;
    const NodeId maker = producer_behind_identities(analysis, loss.prediction);
    if (maker == NodeId::kNone || !is_layer(analysis, maker) || is_clamped(analysis, loss.prediction)) return;
    const Operand prediction(analysis, loss.prediction);
    const bool indices = loss.kind == ops::LossKind::kNegativeLogLikelihood;
    out.report(loss.meeting, fmt::format("{} takes {}, but {} is the output of {}", ops::to_text(loss.kind),
                                         logarithms ? "logarithms of probabilities" : "probabilities",
                                         prediction.name(), NodeCall(analysis, maker).op_name()))
        .note_at(maker, fmt::format("{} is computed here and may have any value", prediction.name()))
        .fix(indices      ? "put a LogSoftmax over axis 1 in between, or use cross-entropy"
             : logarithms ? "put a LogSoftmax in between"
                          : "put a Sigmoid in between, or use binary cross-entropy with logits");
  }

 private:
  /// Gemm, MatMul or Conv, perhaps with its bias behind it: any real number may come out.
  static bool is_layer(const dataflow::Analysis& analysis, NodeId node) {
    const NodeCall call(analysis, node);
    if (is_product_with_weights(call)) return true;
    if (!call.is(ops::Opcode::kAdd)) return false;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Operand product = call.operand(side), bias = call.operand(1 - side);
      if (!product.present() || !bias.present() || !is_parameter(analysis, bias.value())) continue;
      const NodeId maker = producer_behind_identities(analysis, product.value());
      if (maker != NodeId::kNone && is_product_with_weights(NodeCall(analysis, maker))) return true;
    }
    return false;
  }

  /// A product of two computed tensors, or with weights that are never negative, may well be a mixture of
  /// probabilities.
  static bool is_product_with_weights(const NodeCall& call) {
    if (!call.is(ops::Opcode::kMatMul) && !call.is(ops::Opcode::kConv)) return false;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      if (!call.operand(side).present()) continue;
      ValueId value = call.operand(side).value();
      const NodeId maker = producer_behind_identities(call.analysis(), value);
      if (maker != NodeId::kNone && NodeCall(call.analysis(), maker).is(ops::Opcode::kTranspose))
        value = NodeCall(call.analysis(), maker).operand(0).value();
      if (value != ValueId::kAbsent &&
          (is_parameter(call.analysis(), value) || (side == 1 && is_weight_input(call, value))) &&
          call.analysis().fact(value).range.lo < 0)
        return true;
    }
    return false;
  }

  /// A training step may get its weights as inputs: a matrix of known extents, next to data that are a graph's input
  /// too, or whose number of rows is open.
  static bool is_weight_input(const NodeCall& call, ValueId value) {
    const Value& known = call.model().value(value);
    if (known.origin != ValueOrigin::kInput || known.graph != GraphId::kMain) return false;
    const Fact& fact = call.analysis().fact(value);
    const auto dims = call.facts().dims_of(fact.shape), rows = call.facts().dims_of(call.operand(0).fact().shape);
    const auto is_number = [&](Dim dim) { return call.facts().dims().as_constant(dim).has_value(); };
    return dims.size() >= 2 && std::ranges::all_of(dims, is_number) && !rows.empty() && !is_number(rows.front());
  }

  static bool is_parameter(const dataflow::Analysis& analysis, ValueId value) {
    return analysis.model().value(value).initializer != nullptr;
  }
};

const RegisterRule<LogitsIntoProbabilityLoss> kRegister;

}  // namespace
}  // namespace tensorlint::rules
