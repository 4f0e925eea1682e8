#include <fmt/format.h>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SizesReadAsCorners : public Rule {
 public:
  SizesReadAsCorners()
      : Rule({"TL-V556", "sizes-read-as-corners", "value", findings::Severity::kWarning,
              "centres and sizes of boxes that are read as corners"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kConcat}, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.operand_count() != 2) return;
      const NodeId size = size_of(expressions, call.operand(1).value());
      const auto last = expressions.dims(call.result());
      if (size == NodeId::kNone || last.empty() || !call.facts().dims().is_constant(last.back(), 4) ||
          size_of(expressions, call.operand(0).value()) != NodeId::kNone)
        return;
      for (const NodeId user : expressions.users(call.result())) {
        const NodeCall reader(call.analysis(), user);
        const OpSchema* schema = reader.op().schema;
        if (schema == nullptr || schema->attribute("center_point_box") == nullptr ||
            reader.operand(0).value() != call.result())
          continue;
        const Attribute* given = reader.attribute("center_point_box");
        if (given != nullptr && given->i != 0) continue;
        out.report(user, fmt::format("{} reads {} as corners, and its second half is sizes", reader.op_name(),
                                     Operand(call.analysis(), call.result()).name()))
            .note_at(size, "an exponential, as sizes are computed from scores")
            .note_at(call.id(), "joined with the centres here")
            .fix("set center_point_box to 1, or make corners of the boxes: centre - size / 2 and centre + size / 2");
      }
    });
  }

 private:
  /// exp(scores), perhaps times the size of an anchor.
  static NodeId size_of(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return NodeId::kNone;
    for (const ValueId factor : expressions.factors(before_stretch(expressions, value)))
      if (expressions.op_of(factor) == Opcode::kExp) return expressions.producer(factor);
    return NodeId::kNone;
  }
};

const RegisterRule<SizesReadAsCorners> kRegisterSizesReadAsCorners;

}  // namespace
}  // namespace tensorlint::rules
