#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "ir/graph/region_op.h"
#include "ir/ops/opcode.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using ops::Opcode;

class InterpolatedClasses : public Rule {
 public:
  InterpolatedClasses()
      : Rule({"TL-V540", "interpolated-classes", "value", findings::Severity::kWarning,
              "numbers of classes that are mixed like quantities"},
             {passes::Pass::kLosses}) {}

  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry* entry) const override {
    return opcode_of(entry) == Opcode::kOther && is_resize(find_any_version(domain, name));
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

  /// The class of a mixture of two samples: a share of one number and the rest of the other.
  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::takes_class_indices(loss.kind)) return;
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const NodeId cut = where_cut(expressions, loss.target);
    if (cut == NodeId::kNone || check_resized(expressions, cut, loss, out)) return;
    const ValueId mixed = expressions.operand(cut, 0);
    const losses::Formula formula(expressions, mixed);
    std::vector<std::size_t> labels;
    bool has_share = false;
    for (std::size_t at = 0; at < formula.parts().size(); ++at) {
      const losses::Formula::Part& part = formula.parts()[at];
      if (part.kind != losses::Formula::PartKind::kLeaf) continue;
      if (part.value == ValueId::kAbsent || analysis.taint(part.value).has(Aspect::kValue)) return;
      const DTypeSet dtypes = analysis.fact(part.value).dtypes;
      if (dtypes.proves(DTypeSet::integers()))
        labels.push_back(at);
      else if (!dtypes.proves(DTypeSet::floats()) || !is_share(expressions, part.value))
        return;  // a mask chooses
      else
        has_share = true;
    }
    if (labels.size() != 2 || !has_share) return;
    const auto at = [&](double first, double second, int variant) {
      const losses::Formula::Assignment given[] = {{labels[0], first}, {labels[1], second}};
      return formula.evaluate(given, variant);
    };
    constexpr double kRounding = 1e-6, kFew = 2, kMany = 8;
    for (const int variant : {0, 1}) {
      const double mixture = at(kFew, kMany, variant);
      if (std::abs(at(kFew, kFew, variant) - kFew) > kRounding || !(mixture > kFew && mixture < kMany)) return;
    }
    out.report(cut, fmt::format("{} mixes numbers of classes as if they were quantities: between 2 and 8 it has 5",
                                Operand(analysis, mixed).name()))
        .note_at(loss.anchor, "taken for classes again here")
        .fix("mix the losses: share * loss(scores, first) + (1 - share) * loss(scores, second)");
  }

 private:
  static constexpr int kMaxSteps = 8;

  /// Numbers of classes that are given, resized as a picture is, and cut to integers again.
  static bool check_resized(const losses::Expressions& expressions, NodeId cut, const losses::LossSite& loss,
                            Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    ValueId resized = expressions.operand(cut, 0);
    for (int step = 0; step < kMaxSteps && resized != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(resized);
      if (node == NodeId::kNone) return false;
      const NodeCall call(analysis, node);
      const Attribute* mode = call.attribute("mode");
      if (is_resize(call.op().schema) && mode != nullptr && (mode->s == "linear" || mode->s == "cubic")) {
        const ValueId classes = before_stretch(expressions, call.operand(0).value());
        if (!is_input(analysis, classes) || !analysis.fact(classes).dtypes.proves(DTypeSet::integers())) return false;
        out.report(node, fmt::format("{} takes {} for quantities and mixes numbers of classes: between 2 and 8 it "
                                     "makes 5",
                                     call.op_name(), Operand(analysis, classes).name()))
            .note_at(loss.anchor, "taken for classes again here")
            .fix("use the mode nearest for labels");
        return true;
      }
      if (const ValueId same = of_both_branches(expressions, call); same != ValueId::kAbsent) {
        resized = same;
        continue;
      }
      // To the nearest integer, or down to it.
      const Opcode opcode = expressions.op(node);
      if (opcode != Opcode::kRound && opcode != Opcode::kCast && !ops::moves_elements(opcode)) return false;
      resized = call.operand(0).value();
    }
    return false;
  }

  /// What an If gives whose branches only view one value in two ways, as an exporter writes a squeeze; else kAbsent.
  static ValueId of_both_branches(const losses::Expressions& expressions, const NodeCall& call) {
    const RegionOp region = region_op(call.model(), call.node());
    if (region.kind != RegionKind::kIf || !region.has_graphs()) return ValueId::kAbsent;
    ValueId found = ValueId::kAbsent;
    for (const GraphId branch : region.graphs) {
      const auto outputs = call.analysis().outputs(branch);
      const ValueId given = outputs.empty() ? ValueId::kAbsent : *outputs.begin();
      if (given == ValueId::kAbsent) return given;
      const ValueId viewed = before_stretch(expressions, given);
      if (found != ValueId::kAbsent && found != viewed) return ValueId::kAbsent;
      found = viewed;
    }
    return found;
  }

  static bool is_resize(const OpSchema* schema) {
    return schema != nullptr && schema->attribute("mode") != nullptr && schema->input_index("scales") > 0;
  }

  /// One number for all samples, or one for each that pictures are mixed with, too. Another one may be a mask.
  static bool is_share(const losses::Expressions& expressions, ValueId value) {
    if (is_scalar(expressions, value)) return true;
    constexpr std::size_t kMaxValues = 8, kRankOfFeatures = 2;
    std::vector<ValueId> values{value};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent) continue;
        const ValueId other = expressions.op(user) == Opcode::kMul ? expressions.beside(user, values[i]) : result;
        if (other != result && other != ValueId::kAbsent && expressions.dims(other).size() >= kRankOfFeatures &&
            is_input(expressions.analysis(), before_moves(expressions, other)) &&
            expressions.analysis().fact(other).dtypes.proves(DTypeSet::floats()))
          return true;
        if (ops::moves_elements(expressions.op(user)) && values.size() < kMaxValues) values.push_back(result);
      }
    return false;
  }

  /// One number for all samples.
  static bool is_scalar(const losses::Expressions& expressions, ValueId value) {
    const Fact& fact = expressions.analysis().fact(value);
    return fact.kind == ValueKind::kTensor && fact.shape != ShapeId::kUnranked &&
           std::ranges::all_of(expressions.dims(value),
                               [&](Dim dim) { return expressions.analysis().facts().dims().is_constant(dim, 1); });
  }

  /// The cast to integers that a target went through, with nothing but moves since; kNone without one.
  static NodeId where_cut(const losses::Expressions& expressions, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId before = expressions.operand(node, 0);
      if (before == ValueId::kAbsent || (opcode != Opcode::kCast && !ops::moves_elements(opcode))) return NodeId::kNone;
      if (opcode == Opcode::kCast && analysis.fact(before).dtypes.proves(DTypeSet::floats())) return node;
      value = before;
    }
    return NodeId::kNone;
  }

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

const RegisterRule<InterpolatedClasses> kRegisterInterpolatedClasses;

}  // namespace
}  // namespace tensorlint::rules
