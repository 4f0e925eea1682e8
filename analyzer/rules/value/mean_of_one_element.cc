#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class MeanOfOneElement : public Rule {
 public:
  MeanOfOneElement()
      : Rule({"TL-V512", "mean-of-one-element", "value", findings::Severity::kWarning,
              "numbers less their mean along an axis of extent 1, which is 0"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kSub, Opcode::kNormalize}, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.is(Opcode::kSub)) check_difference(expressions, call, out);
      if (call.is(Opcode::kNormalize)) check_layer(expressions, call, out);
    });
  }

 private:
  static bool is_one(const Expressions& expressions, Dim dim) {
    return expressions.analysis().facts().dims().is_constant(dim, 1);
  }

  static void check_difference(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Operand data = call.operand(0), mean = call.operand(1);
    if (!data.present() || !mean.present() || data.taint().has(Aspect::kShape)) return;
    const NodeId averages = expressions.producer(before_stretch(expressions, mean.value()));
    if (expressions.op(averages) != Opcode::kReduceMean || expressions.operand(averages, 0) != data.value()) return;
    const auto axes = expressions.axes_of(averages);
    const auto dims = expressions.dims(data.value());
    // A batch may have one sample where the model was traced.
    if (!axes || axes->empty() || !std::ranges::all_of(*axes, [&](std::size_t axis) {
          return axis > 0 && axis < dims.size() && is_one(expressions, dims[axis]);
        }))
      return;
    // The same difference once more is where an exporter computes the variance.
    const bool seen = std::ranges::any_of(expressions.users(data.value()), [&](NodeId user) {
      return user < call.id() && expressions.op(user) == Opcode::kSub && expressions.operand(user, 0) == data.value() &&
             is_own_mean(expressions, user);
    });
    if (seen) return;
    out.report(call.id(), fmt::format("{} less its mean is always 0: axis {} has extent 1", data.name(), axes->front()))
        .note_at(averages, "the mean of one number is computed here")
        .origin(data, Aspect::kShape)
        .fix("reduce along the axis that has the numbers, such as axis 0 for samples");
  }

  static bool is_own_mean(const Expressions& expressions, NodeId difference) {
    const NodeId averages = expressions.producer(before_stretch(expressions, expressions.operand(difference, 1)));
    return expressions.op(averages) == Opcode::kReduceMean &&
           expressions.operand(averages, 0) == expressions.operand(difference, 0);
  }

  /// A layer norm of one feature.
  static void check_layer(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const OpSchema* schema = call.op().schema;
    const Operand data = call.operand(0);
    // Other normalisations have no axis, or give no mean, as they subtract none.
    if (schema == nullptr || schema->attribute("axis") == nullptr || schema->max_outputs < 3 || !data.present() ||
        data.taint().has(Aspect::kShape))
      return;
    const auto dims = expressions.dims(data.value());
    const Attribute* given = call.attribute("axis");
    const auto rank = static_cast<std::int64_t>(dims.size());
    std::int64_t axis = given == nullptr ? -1 : given->i;
    if (axis < 0) axis += rank;
    if (axis <= 0 || axis >= rank) return;
    const auto normalised = dims.subspan(static_cast<std::size_t>(axis));
    if (!std::ranges::all_of(normalised, [&](Dim dim) { return is_one(expressions, dim); })) return;
    out.report(call.id(),
               fmt::format("{} of {} is always the bias: axis {} has extent 1, and a number less itself is 0",
                           call.op_name(), data.name(), axis))
        .origin(data, Aspect::kShape)
        .fix("leave the normalisation out, or normalise before the layer that makes one number");
  }
};

const RegisterRule<MeanOfOneElement> kRegisterMeanOfOneElement;

}  // namespace
}  // namespace tensorlint::rules
