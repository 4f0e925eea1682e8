#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/loss/parameters.h"
#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class LossDetachedFromParameters : public Rule {
 public:
  LossDetachedFromParameters()
      : Rule({"TL-L306", "loss-detached-from-parameters", "loss", findings::Severity::kWarning,
              "a loss that no parameter gets a gradient from"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    const std::vector<ValueId> parameters = trained_parameters(view.model());
    // Losses inside bodies and functions get their operands from somewhere else.
    if (parameters.empty() || view.losses().empty() || view.has_broken_links()) return;
    const std::vector<bool> differentiable = reached_by_gradients(analysis, parameters);
    const auto is_trained = [&](ValueId value) { return differentiable[static_cast<std::size_t>(value)]; };
    for (const losses::LossSite& loss : view.losses()) {
      if (view.model().node(loss.meeting).graph != GraphId::kMain || is_trained(loss.prediction) ||
          is_trained(loss.target))
        continue;
      const Operand prediction(analysis, loss.prediction);
      FindingBuilder finding = out.report(loss.meeting, fmt::format("no gradient of {} reaches a parameter through {}",
                                                                    losses::to_text(loss.kind), prediction.name()));
      if (const NodeId cut = last_cut(analysis, loss.prediction); cut != NodeId::kNone)
        finding.note_at(cut, stop_text(analysis, cut));
    }
  }

 private:
  /// "the gradient stops here: `labels` is int64"
  static std::string stop_text(const dataflow::Analysis& analysis, NodeId cut) {
    for (const ValueId result : analysis.model().results(analysis.model().node(cut)))
      if (result != ValueId::kAbsent)
        return fmt::format("the gradient stops here: {} is {}", Operand(analysis, result).name(),
                           analysis.fact(result).dtypes.to_text());
    return "the gradient stops here";
  }

  static bool carries_gradients(const dataflow::Analysis& analysis, ValueId value) {
    const Fact& fact = analysis.fact(value);
    return fact.kind != ValueKind::kTensor || !fact.dtypes.proves(DTypeSet::integers() | DType::kBool);
  }

  /// By value: what depends on a parameter by way of floating-point values. What happens in a body counts for its node
  /// and for all of its body's inputs, so that too much is reached rather than too little.
  static std::vector<bool> reached_by_gradients(const dataflow::Analysis& analysis,
                                                const std::vector<ValueId>& parameters) {
    const Model& model = analysis.model();
    std::vector<bool> reached(model.values.size());
    std::vector<ValueId> pending;
    const auto reach = [&](ValueId value) {
      if (value == ValueId::kAbsent || reached[static_cast<std::size_t>(value)] || !carries_gradients(analysis, value))
        return;
      reached[static_cast<std::size_t>(value)] = true;
      pending.push_back(value);
    };
    std::vector<std::vector<GraphId>> bodies(model.nodes.size());
    for (std::size_t g = 1; g < model.graphs.size(); ++g)
      if (model.graphs[g].owner != NodeId::kNone)
        bodies[static_cast<std::size_t>(model.graphs[g].owner)].push_back(static_cast<GraphId>(g));
    for (const ValueId parameter : parameters) reach(parameter);
    while (!pending.empty()) {
      const ValueId value = pending.back();
      pending.pop_back();
      for (NodeId user : analysis.users(value)) {
        while (user != NodeId::kNone) {
          for (const ValueId result : model.results(model.node(user))) reach(result);
          for (const GraphId body : bodies[static_cast<std::size_t>(user)])
            for (const ValueId input : model.graph(body).inputs) reach(input);
          user = model.graph(model.node(user).graph).owner;
        }
      }
    }
    return reached;
  }

  /// Going back from a value along first operands, the node that makes a floating-point number of something else.
  static NodeId last_cut(const dataflow::Analysis& analysis, ValueId value) {
    constexpr int kLongestWay = 64;
    const Model& model = analysis.model();
    for (int step = 0; step < kLongestWay && value != ValueId::kAbsent; ++step) {
      const NodeId maker = model.value(value).producer;
      if (maker == NodeId::kNone) return NodeId::kNone;
      if (!carries_gradients(analysis, value)) return maker;
      value = NodeCall(analysis, maker).operand(0).value();
    }
    return NodeId::kNone;
  }
};

const RegisterRule<LossDetachedFromParameters> kRegister;

}  // namespace
}  // namespace tensorlint::rules
