#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/rules/rule.h"
#include "ir/ops/opcode.h"

namespace tensorlint::rules {
namespace {

using ops::Opcode;

class InterpolatedClasses : public Rule {
 public:
  InterpolatedClasses()
      : Rule({"TL-V540", "interpolated-classes", "value", findings::Severity::kWarning,
              "a map of class numbers that is resized by interpolation"}) {}

  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry*) const override {
    const OpSchema* schema = find_any_version(domain, name);
    return schema != nullptr && schema->attribute("mode") != nullptr && schema->input_index("scales") > 0;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const Attribute* mode = call.attribute("mode");
    if (mode == nullptr || (mode->s != "linear" && mode->s != "cubic") || call.result() == ValueId::kAbsent) return;
    const NodeId classes = classes_before(call);
    if (classes == NodeId::kNone) return;
    const NodeId taken = taken_for_classes(call);
    if (taken == NodeId::kNone) return;
    out.report(call.id(),
               fmt::format("{} takes {} for quantities and mixes numbers of classes: between 2 and 8 it makes 5",
                           call.op_name(), call.operand(0).name()))
        .note_at(classes, "the classes are chosen here")
        .note_at(taken, "taken for classes again here")
        .fix("use the mode nearest, or resize the scores before the classes are chosen");
  }

 private:
  static constexpr int kMaxSteps = 8;

  /// Where the classes are chosen, before casts and views.
  static NodeId classes_before(const NodeCall& call) {
    Operand at = call.operand(0);
    for (int step = 0; step < kMaxSteps && at.present(); ++step) {
      const NodeId node = call.model().value(at.value()).producer;
      if (node == NodeId::kNone) break;
      const NodeCall before(call.analysis(), node);
      if (before.is(Opcode::kArgExtreme)) return node;
      if (!before.is(Opcode::kCast) && !ops::moves_elements(opcode_of(before.entry()))) break;
      at = before.operand(0);
    }
    return NodeId::kNone;
  }

  /// Made integers of, compared for equality, looked up: places and disparities, which may lie between two, are not.
  static NodeId taken_for_classes(const NodeCall& call) {
    std::vector<ValueId> pending{call.result()};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxSteps; ++i)
      for (const NodeId user : call.analysis().users(pending[i])) {
        const NodeCall use(call.analysis(), user);
        if (use.result() == ValueId::kAbsent) continue;
        if (use.is(Opcode::kEqual) || use.is(Opcode::kOneHot)) return user;
        if (use.is(Opcode::kCast) && call.analysis().fact(use.result()).dtypes.proves(DTypeSet::integers()))
          return user;
        if (use.is(Opcode::kRound) || use.is(Opcode::kCast) || ops::moves_elements(opcode_of(use.entry())))
          pending.push_back(use.result());
      }
    return NodeId::kNone;
  }
};

const RegisterRule<InterpolatedClasses> kRegister;

}  // namespace
}  // namespace tensorlint::rules
