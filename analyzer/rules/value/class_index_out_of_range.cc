#include <fmt/format.h>

#include "analyzer/rules/value/reached_index.h"

namespace tensorlint::rules {
namespace {

class ClassIndexOutOfRange : public Rule {
 public:
  ClassIndexOutOfRange()
      : Rule({"TL-V501", "class-index-out-of-range", "value", findings::Severity::kError,
              "a class index outside the classes of the scores"}) {}

  int claim(const FailureCase& failure) const override {
    if (failure.kind() == ops::ConstraintKind::kClassRange) return kGeneric;
    const bool index = failure.kind() == ops::ConstraintKind::kIndexRange && failure.loss_kind() &&
                       losses::takes_class_indices(*failure.loss_kind());
    return index ? kForLoss : 0;
  }

  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry*) const override {
    return domain.empty() && (name == "SoftmaxCrossEntropyLoss" || name == "NegativeLogLikelihoodLoss");
  }

  /// What inference does not tell: a label that some execution reaches, and elements of long constants.
  void check(const NodeCall& call, Reporter& out) const override {
    const Operand scores = call.operand(0), labels = call.operand(1);
    if (!scores.present() || !labels.present() || scores.taint().has(Aspect::kShape) ||
        labels.taint().has(Aspect::kValue))
      return;
    const Fact& fact = scores.fact();
    if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked || call.analysis().has_failed(call.id()))
      return;
    const auto dims = call.facts().dims_of(fact.shape);
    const auto classes = dims.size() >= 2 ? call.facts().dims().as_constant(dims[1]) : std::nullopt;
    if (!classes) return;
    const Attribute* ignored = call.attribute("ignore_index");
    const auto found = index_outside(call.analysis(), labels.value(), 0, *classes,
                                     ignored != nullptr ? std::optional(ignored->i) : std::nullopt);
    if (!found) return;
    out.report(call.id(), fmt::format("label {} in {} is outside the {} classes of {}", found->index, labels.name(),
                                      *classes, scores.name()))
        .certainty(found->certainty, found->certainty == ops::Certainty::kMay
                                         ? fmt::format("{} has {} among its elements", labels.name(), found->index)
                                         : std::string())
        .origin(labels, Aspect::kValue)
        .origin(scores, Aspect::kShape);
  }
};

const RegisterRule<ClassIndexOutOfRange> kRegister;

}  // namespace
}  // namespace tensorlint::rules
