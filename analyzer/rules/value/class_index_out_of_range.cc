#include <fmt/format.h>

#include <charconv>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/reached_index.h"

namespace tensorlint::rules {
namespace {

class ClassIndexOutOfRange : public Rule {
 public:
  ClassIndexOutOfRange()
      : Rule({"TL-V501", "class-index-out-of-range", "value", findings::Severity::kError,
              "a class index outside the classes of the scores"}) {}

  Specificity match(const ViolationCase& violation) const override {
    if (violation.kind() == ops::ConstraintKind::kClassRange) return Specificity::kGeneric;
    const bool index = violation.kind() == ops::ConstraintKind::kIndexRange && violation.loss_kind() &&
                       ops::takes_class_indices(*violation.loss_kind());
    return index ? Specificity::kForLoss : Specificity::kNone;
  }

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return entry != nullptr && entry->loss() && takes_class_indices(*entry->loss());
  }

  /// What inference does not find: a label that some execution reaches, and elements of long constants.
  void check(const NodeCall& call, Reporter& out) const override {
    const Operand scores = call.operand(0), labels = call.operand(1);
    if (!scores.present() || !labels.present() || scores.taint().has(Aspect::kShape) ||
        labels.taint().has(Aspect::kValue))
      return;
    if (!labels.fact().dtypes.proves(DTypeSet::integers())) return;  // probabilities
    const Fact& fact = scores.fact();
    if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked || call.analysis().has_failed(call.id()))
      return;
    const auto dims = call.facts().dims_of(fact.shape);
    const auto classes = dims.size() >= 2 ? call.facts().dims().as_constant(dims[1]) : std::nullopt;
    if (!classes) return;
    const auto found = dataflow::index_outside(call.analysis(), labels.value(), 0, *classes, ignored_label(call));
    if (!found) return;
    FindingBuilder finding = out.report(call.id(), fmt::format("label {} in {} is outside the {} classes of {}",
                                                               found->index, labels.name(), *classes, scores.name()));
    explain_index(finding, labels, *found);
    finding.origin(scores, Aspect::kShape);
  }

 private:
  /// ONNX's losses ignore a label only on demand, PyTorch's -100 by default.
  static std::optional<std::int64_t> ignored_label(const NodeCall& call) {
    constexpr std::string_view kName = "ignore_index";
    if (const Attribute* given = call.attribute(kName)) return given->i;
    const OpSchema* schema = call.op().schema;
    const FormalAttribute* formal = schema == nullptr ? nullptr : schema->attribute(kName);
    std::int64_t value = 0;
    if (formal == nullptr || !formal->has_default) return std::nullopt;
    std::from_chars(formal->default_value.data(), formal->default_value.data() + formal->default_value.size(), value);
    return value;
  }
};

const RegisterRule<ClassIndexOutOfRange> kRegisterClassIndexOutOfRange;

}  // namespace
}  // namespace tensorlint::rules
