#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "analyzer/rules/casts.h"
#include "analyzer/rules/loss/positions_of_samples.h"
#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/attention_use.h"
#include "passes/losses/broadcasts.h"

namespace tensorlint::rules {
namespace {

class SilentBroadcastInLoss : public Rule {
 public:
  SilentBroadcastInLoss()
      : Rule({"TL-L302", "silent-broadcast-in-loss", "loss", findings::Severity::kWarning,
              "a loss that compares every prediction with every target, because [N, 1] meets [N]"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    if (const auto found = losses::find_broadcast(expressions, origins, loss))
      report_broadcast(analysis, loss, *found, out);
  }

  /// What a number sums up is looked at even where no known loss is in it: where none of its losses has the mistake.
  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    const std::vector<ValueId> outputs = one_float_outputs(analysis);
    if (outputs.empty()) {
      check_without_loss(view, out);
      return;
    }
    Visited<NodeId> reported(analysis.meter());
    for (const losses::AxisMistake& mistake : axis_mistakes(out)) {
      if (mistake.kind == losses::AxisMistake::Kind::kPositionsOfBatch) reported.insert(mistake.node);
      report_axes(analysis, mistake, out);
    }
    for (const PositionsOfSamples& found : find_positions_of_samples(view, out))
      if (reported.insert(found.node))
        report_positions(found.node, described(analysis, found.table), described(analysis, found.data),
                         "places along axis 1", out)
            .fix(fmt::format("give {} the shape [1, places, width], and count along the places: arange(x.size(1))",
                             Operand(analysis, found.table).name()));
    losses::LossAxes& axes = out.shared<losses::LossAxes>();
    const bool known = std::ranges::any_of(view.losses(), [&](const losses::LossSite& loss) {
      return losses::find_broadcast(axes.expressions, axes.origins, loss).has_value();
    });
    if (known) return;
    for (const ValueId output : number_outputs(analysis)) {
      const auto found = losses::find_broadcast_in_sum(axes.expressions, axes.origins, output);
      if (!found || analysis.has_failed(found->node)) continue;
      report_in_sum(analysis, output, *found, out);
      return;
    }
  }

 private:
  static void check_without_loss(const ModelView& view, Reporter& out) {
    if (!has_no_loss_output(view.analysis()) || view.model().graphs.empty() || !has_node(out, {Opcode::kSoftmax}))
      return;
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    for (const losses::AxisMistake& mistake : losses::find_positions_of_batch(expressions, origins))
      report_axes(view.analysis(), mistake, out);
  }

  /// Those of integers as well: how many predictions are right.
  static std::vector<ValueId> number_outputs(const dataflow::Analysis& analysis) {
    constexpr std::size_t kMaxOutputs = 16;
    std::vector<ValueId> found;
    for (const ValueId output : analysis.outputs(GraphId::kMain).first(kMaxOutputs)) {
      if (output == ValueId::kAbsent) continue;
      const Fact& fact = analysis.fact(output);
      if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) continue;
      const auto dims = analysis.facts().dims_of(fact.shape);
      if (std::ranges::all_of(dims, [&](Dim dim) { return analysis.facts().dims().is_constant(dim, 1); }))
        found.push_back(output);
    }
    return found;
  }

  /// Values that meet along axes which count different things, and are as long by chance.
  static void report_axes(const dataflow::Analysis& analysis, const losses::AxisMistake& mistake, Reporter& out) {
    using Kind = losses::AxisMistake::Kind;
    if (mistake.partner == ValueId::kAbsent) return;
    const std::string value = described(analysis, mistake.value), partner = described(analysis, mistake.partner);
    const std::size_t axis = mistake.axes.front();
    if (mistake.kind == Kind::kCrossedAxes) {
      auto finding = out.report(mistake.node, fmt::format("axis {} of {} meets axis {} of {}, but corresponds to its "
                                                          "axis {}",
                                                          axis, value, mistake.other, partner, mistake.right));
      const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
      if (mistake.meets != mistake.node)
        finding.note_at(mistake.meets, mistake.meets > mistake.node ? "the parts are summed here"
                                       : losses::reduces_axes(expressions.op(mistake.meets))
                                           ? "an axis is reduced here"
                                           : "vectors of both sides are combined element by element here");
      finding.fix(fmt::format("align axis {} of {} with axis {} of {}, such as with keepdim=True or unsqueeze", axis,
                              Operand(analysis, mistake.value).name(), mistake.right,
                              Operand(analysis, mistake.partner).name()));
    } else if (mistake.kind == Kind::kPositionsOfBatch) {
      report_positions(mistake.node, value, partner,
                       fmt::format("steps along axis {}, over which attention goes", mistake.right), out)
          .fix(fmt::format("give {} the shape [1, steps, width], and take as many rows as there are steps",
                           Operand(analysis, mistake.value).name()));
    } else if (mistake.kind == Kind::kWeightsOfClasses) {
      out.report(mistake.node,
                 fmt::format("{} has a number for each class, along axis {} of {}; it meets the losses of samples",
                             value, mistake.right, partner))
          .note_at(mistake.meets, "one loss per sample is computed here")
          .fix("pick the weight of each label, weights[labels], or give the weights to the loss");
    } else if (mistake.kind == Kind::kTurnedPicture) {
      out.report(mistake.node, fmt::format("height and width of {} are exchanged, those of {} are not", value, partner))
          .note_at(mistake.meets, "axes 1 and 3 are exchanged here, and axis 2 stays between them")
          .fix("use permute(0, 3, 1, 2), which keeps the order of height and width");
    } else if (mistake.kind == Kind::kOneForPair) {
      out.report(mistake.node,
                 fmt::format("{} has a number for every pair of samples; {} has one for each sample", value, partner))
          .note_at(mistake.meets, "every sample meets every other one here")
          .fix("multiply element by element and sum over the features: (a * b).sum(1)");
    }
  }

  static FindingBuilder report_positions(NodeId node, const std::string& table, const std::string& data,
                                         std::string_view places, Reporter& out) {
    return out.report(
        node, fmt::format("{} has a row for each sample of {}, and the same one for all {}", table, data, places));
  }

  static void report_in_sum(const dataflow::Analysis& analysis, ValueId output, const losses::LossBroadcast& found,
                            Reporter& out) {
    const Operand first(analysis, found.first), second(analysis, found.second);
    const bool first_is_column = has_last_axis_of_one(analysis, first);
    const Operand &tall = first_is_column ? first : second, &flat = first_is_column ? second : first;
    out.report(found.node, fmt::format("every element of {} meets every element of {}, and {} sums all these pairs up",
                                       described(analysis, first.value()), described(analysis, second.value()),
                                       Operand(analysis, output).name()))
        .origin(first, Aspect::kShape)
        .origin(second, Aspect::kShape)
        .fix(has_last_axis_of_one(analysis, tall)
                 ? fmt::format("remove the last axis of {} (Squeeze), or add one to {} (Unsqueeze)", tall.name(),
                               flat.name())
                 : fmt::format("give {} and {} one shape", first.name(), second.name()));
  }

  static void report_broadcast(const dataflow::Analysis& analysis, const losses::LossSite& loss,
                               const losses::LossBroadcast& found, Reporter& out) {
    const Operand first(analysis, found.first), second(analysis, found.second);
    const std::string a = described(analysis, first.value()), b = described(analysis, second.value());
    if (!found.all_pairs) {
      out.report(found.node, fmt::format("{} compares the {} elements in each row of {} with the one of {}",
                                         ops::to_text(loss.kind), last_extent(analysis, first), a, b))
          .origin(first, Aspect::kShape)
          .origin(second, Aspect::kShape)
          .fix(fmt::format("give {} the shape of {}", second.name(), first.name()));
      return;
    }
    const bool first_is_column = has_last_axis_of_one(analysis, first),
               column = first_is_column || has_last_axis_of_one(analysis, second);
    const Operand &tall = first_is_column ? first : second, &flat = first_is_column ? second : first;
    const bool takes_edit = column && !found.is_weight && found.first == loss.prediction &&
                            found.second == loss.target && rank(analysis, tall) == rank(analysis, flat) + 1 &&
                            reads(analysis, found.node, tall.value()) && reads(analysis, found.node, flat.value());
    out.report(found.node, fmt::format("{} {} every element of {} with every element of {}", ops::to_text(loss.kind),
                                       found.is_weight ? "combines" : "compares", a, b))
        .origin(first, Aspect::kShape)
        .origin(second, Aspect::kShape)
        .fix(column ? fmt::format("remove the last axis of {} (Squeeze), or add one to {} (Unsqueeze)", tall.name(),
                                  flat.name())
                    : fmt::format("give {} and {} one shape", first.name(), second.name()),
             findings::Applicability::kUnsafe,
             takes_edit ? insert_squeeze_of_last_axis(analysis, loss.anchor, tall.value()) : std::vector<GraphEdit>{});
  }

  static bool reads(const dataflow::Analysis& analysis, NodeId node, ValueId value) {
    const auto operands = analysis.operands(node);
    return std::ranges::find(operands, value) != operands.end();
  }

  static std::size_t rank(const dataflow::Analysis& analysis, const Operand& operand) {
    return analysis.facts().dims_of(operand.fact().shape).size();
  }

  static std::string last_extent(const dataflow::Analysis& analysis, const Operand& operand) {
    return analysis.facts().dims().to_text(analysis.facts().dims_of(operand.fact().shape).back());
  }

  static bool has_last_axis_of_one(const dataflow::Analysis& analysis, const Operand& operand) {
    const auto dims = analysis.facts().dims_of(operand.fact().shape);
    return !dims.empty() && analysis.facts().dims().is_constant(dims.back(), 1);
  }
};

const RegisterRule<SilentBroadcastInLoss> kRegisterSilentBroadcastInLoss;

}  // namespace
}  // namespace tensorlint::rules
