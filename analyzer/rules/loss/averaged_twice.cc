#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class AveragedTwice : public Rule {
 public:
  AveragedTwice()
      : Rule({"TL-L320", "averaged-twice", "loss", findings::Severity::kWarning,
              "a mean over the batch that is divided by the number of samples once more"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      if (!call.is(Opcode::kDiv) || !call.operand(0).present() || !call.operand(1).present()) return;
      const ValueId mean = before_views(expressions, call.operand(0).value());
      const NodeId reduction = expressions.producer(mean);
      const auto samples = averaged_over(expressions, reduction);
      if (!samples || !is_extent(expressions, call.operand(1).value(), *samples)) return;
      out.report(call.id(),
                 fmt::format("{} is a mean over the batch already, and is divided by {}, the number of samples",
                             call.operand(0).name(), call.operand(1).name()))
          .note_at(reduction, "the mean is taken here")
          .fix("leave the division out, or sum in place of the mean (reduction=\"sum\")");
    });
  }

 private:
  /// The extent of the first axis of what the node averages as a whole, where it is not a number; else none.
  static std::optional<Dim> averaged_over(const Expressions& expressions, NodeId node) {
    const dataflow::Analysis& analysis = expressions.analysis();
    bool is_mean = expressions.op(node) == Opcode::kReduceMean;
    if (!is_mean && node != NodeId::kNone && expressions.entry(node) != nullptr && expressions.entry(node)->loss()) {
      const Attribute* reduction = analysis.attribute(node, "reduction");
      is_mean = reduction == nullptr || reduction->s == "mean";
    }
    const auto dims = is_mean ? expressions.dims(expressions.operand(node, 0)) : std::span<const Dim>();
    if (dims.empty() || analysis.facts().dims().as_constant(dims[0])) return std::nullopt;
    if (expressions.op(node) == Opcode::kReduceMean) {
      const auto axes = expressions.axes_of(node);
      if (!axes || std::ranges::find(*axes, std::size_t{0}) == axes->end()) return std::nullopt;
    }
    return dims[0];
  }

  /// A number that is read off a shape, and is the extent.
  static bool is_extent(const Expressions& expressions, ValueId value, Dim extent) {
    const FactStore& facts = expressions.analysis().facts();
    value = before_views(expressions, value);
    const Content* content = value == ValueId::kAbsent ? nullptr : expressions.analysis().content(value);
    return content != nullptr && content->integers.size() == 1 && facts.dims().equal(content->integers[0], extent);
  }
};

const RegisterRule<AveragedTwice> kRegisterAveragedTwice;

}  // namespace
}  // namespace tensorlint::rules
