#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "analyzer/rules/rule.h"
#include "ir/graph/new_nodes.h"

namespace tensorlint::rules {
namespace {

/// Scores [N, T, C] with class indices [N, T]: what layers give, with the classes last, and not where the loss wants
/// them.
class ClassAxisPosition : public Rule {
 public:
  ClassAxisPosition()
      : Rule({"TL-L303", "class-axis-position", "loss", findings::Severity::kError,
              "scores whose classes are along the last axis and not along axis 1"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return has_classes_last(violation) ? Specificity::kMostSpecific : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    const NodeCall call = violation.call();
    const Operand scores = call.operand(0);
    const auto rank = static_cast<std::int64_t>(call.facts().dims_of(scores.fact().shape).size());
    std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
    std::iota(order.begin() + 2, order.end(), 1);
    order[1] = rank - 1;
    const Model& model = violation.model();
    const std::string made = unused_name(model, fmt::format("{}_classes_first_{}", model.name_of(scores.value()),
                                                            static_cast<std::uint32_t>(call.id())));
    report_violation(violation,
                     fmt::format("the classes of {} {} are along the last axis, {} takes them along axis 1",
                                 scores.name(), call.facts().shape_text(scores.fact().shape), call.op_name()),
                     out)
        .fix(fmt::format("transpose {} so that the classes are along axis 1", scores.name()),
             findings::Applicability::kUnsafe,
             {InsertNode{call.id(), new_transpose(made, std::string(model.name_of(scores.value())), made, order)},
              SetOperand{call.id(), 0, made}});
  }

 private:
  static bool has_classes_last(const ViolationCase& violation) {
    if (violation.kind() != ops::ConstraintKind::kRank && violation.kind() != ops::ConstraintKind::kShapes)
      return false;
    if (!violation.has_node()) return false;
    const NodeCall call = violation.call();
    const auto kind = violation.loss_kind();
    if (!kind || !ops::takes_class_indices(*kind) || violation.loss == nullptr ||
        violation.loss->evidence != losses::LossEvidence::kOperator)
      return false;
    const Operand scores = call.operand(0), labels = call.operand(1);
    if (!scores.present() || !labels.present() || scores.fact().shape == ShapeId::kUnranked ||
        labels.fact().shape == ShapeId::kUnranked)
      return false;
    const auto given = call.facts().dims_of(scores.fact().shape), wanted = call.facts().dims_of(labels.fact().shape);
    if (given.size() < 3 || wanted.size() + 1 != given.size()) return false;
    return std::equal(wanted.begin(), wanted.end(), given.begin());
  }
};

const RegisterRule<ClassAxisPosition> kRegister;

}  // namespace
}  // namespace tensorlint::rules
