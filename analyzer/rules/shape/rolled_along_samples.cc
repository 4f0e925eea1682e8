#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class RolledAlongSamples : public Rule {
 public:
  RolledAlongSamples()
      : Rule({"TL-S217", "rolled-along-samples", "shape", findings::Severity::kWarning,
              "earlier steps of a series, some of which are taken from other samples"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kConcat}, [&](const Expressions& expressions, const NodeCall& call) {
      const auto rank = expressions.dims(call.result()).size();
      const Attribute* axis = call.attribute("axis");
      if (rank < 3 || axis == nullptr || (axis->i != -1 && axis->i != static_cast<std::int64_t>(rank) - 1)) return;
      std::optional<Roll> along_batch, along_time;
      for (const ValueId operand : call.operands()) {
        if (operand == ValueId::kAbsent) return;
        const auto roll = rolled_by(expressions, expressions.producer(operand));
        if (roll && roll->axis == 0) along_batch = roll;
        if (roll && roll->axis == 1) along_time = roll;
      }
      if (!along_batch || !along_time || along_batch->from != along_time->from ||
          !is_input(call.analysis(), along_batch->from))
        return;
      out.report(along_batch->node, fmt::format("{} is rolled along the samples here and along its steps beside it: "
                                                "what is joined are steps of this sample and of another one",
                                                Operand(call.analysis(), along_batch->from).name()))
          .note_at(along_time->node, "rolled along the steps here")
          .note_at(call.id(), "joined as features of one step here")
          .fix("roll both along the axis of the steps: dims=1");
    });
  }
};

const RegisterRule<RolledAlongSamples> kRegisterRolledAlongSamples;

}  // namespace
}  // namespace tensorlint::rules
