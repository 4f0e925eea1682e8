#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class IntegerTargetInRegressionLoss : public Rule {
 public:
  IntegerTargetInRegressionLoss()
      : Rule({"TL-D101", "integer-target-in-regression-loss", "dtype", findings::Severity::kError,
              "a loss that compares element by element gets integers as its target"},
             {passes::Pass::kLosses}) {}

  Specificity match(const ViolationCase& violation) const override {
    return target_cast(violation) || lone_target(violation) ? Specificity::kMostSpecific : Specificity::kNone;
  }

  /// The program passes an integer target, and the framework has converted it silently.
  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::is_regression(loss.kind)) return;
    const NodeId cast = conversion_of_its_own(analysis, loss, out);
    if (cast == NodeId::kNone) return;
    const Operand target(analysis, loss.target_source), prediction(analysis, loss.prediction);
    out.report(findings::Severity::kInfo, loss.anchor,
               fmt::format("{} compares {} values with the {} target {}: the framework converts it, some versions and "
                           "devices refuse it",
                           ops::to_text(loss.kind), prediction.fact().dtypes.to_text(), target.fact().dtypes.to_text(),
                           target.name()))
        .origin(target, Aspect::kDtype)
        .note_at(cast, "the exporter wrote the conversion here")
        .fix(fmt::format("convert {} to floating point where it is loaded", target.name()));
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    if (const auto target = lone_target(violation)) {
      report_violation(
          violation,
          fmt::format("{} takes floating-point values, its target {} is {}", ops::to_text(*violation.loss_kind()),
                      target->name(), target->fact().dtypes.to_text()),
          out)
          .fix(fmt::format("cast {} to float32", target->name()), findings::Applicability::kUnsafe,
               insert_cast(violation.analysis, violation.at.node, target->value(), DType::kFloat32));
      return;
    }
    const CastFix fix = *target_cast(violation);
    FindingBuilder finding = report_violation(
        violation,
        fmt::format("{} compares {} values with the {} target {}", ops::to_text(*violation.loss_kind()),
                    to_text(fix.to), fix.operand.fact().dtypes.to_text(), fix.operand.name()),
        out);
    propose_cast(finding, violation, fix);
  }

 private:
  /// The Cast of an integer target that PyTorch's type promotion inserts: one exporter says so in the node's
  /// metadata, the other one puts it after the stretching that the loss begins with.
  static NodeId conversion_of_its_own(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) {
    const Model& model = analysis.model();
    ValueId value = loss.target;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent && value != loss.target_source; ++step) {
      const NodeId producer = model.value(value).producer;
      if (producer == NodeId::kNone) return NodeId::kNone;
      const NodeCall call(analysis, producer);
      const Operand before = call.operand(0);
      if (!before.present()) return NodeId::kNone;
      const bool from_integers = call.is(ops::Opcode::kCast) && before.fact().kind == ValueKind::kTensor &&
                                 before.fact().dtypes.proves(DTypeSet::integers()) &&
                                 analysis.fact(value).dtypes.proves(DTypeSet::floats());
      if (from_integers) {
        const NodeId stretch = model.value(before.value()).producer;
        const bool follows_stretch = stretch != NodeId::kNone && NodeCall(analysis, stretch).is(ops::Opcode::kExpand);
        return follows_stretch || is_promotion(out, producer) ? producer : NodeId::kNone;
      }
      value = before.value();
    }
    return NodeId::kNone;
  }

  static bool is_promotion(Reporter& out, NodeId node) {
    constexpr std::string_view kPromotion = "prims.convert_element_type";
    constexpr std::size_t kMaxWritten = 4096;
    const std::string_view written = out.locations().metadata(node, "namespace").substr(0, kMaxWritten);
    return written.find(kPromotion) != std::string_view::npos;
  }

  static constexpr int kMaxSteps = 8;

  /// The integer target of the loss, where the failing node takes nothing else: its logarithm or exponential.
  static std::optional<Operand> lone_target(const ViolationCase& violation) {
    if (violation.kind() != ops::ConstraintKind::kTypeConstraint || violation.loss == nullptr ||
        !ops::is_regression(violation.loss->kind) || violation.call().operand_count() != 1)
      return std::nullopt;
    const Operand operand = violation.call().operand(0);
    const bool is_integer = operand.present() && operand.fact().kind == ValueKind::kTensor &&
                            operand.fact().dtypes.proves(DTypeSet::integers() | DType::kBool);
    if (!is_integer || violation.loss->target_source == ValueId::kAbsent) return std::nullopt;
    const auto source = [&](ValueId value) {
      return dataflow::origin_of(violation.analysis, value, Aspect::kDtype).value;
    };
    return source(operand.value()) == source(violation.loss->target_source) ? std::optional(operand) : std::nullopt;
  }

  /// The integer that meets a float in a regression loss, unless it is known to be the prediction.
  static std::optional<CastFix> target_cast(const ViolationCase& violation) {
    const bool types = violation.kind() == ops::ConstraintKind::kMixedDtypes ||
                       violation.kind() == ops::ConstraintKind::kTypeConstraint;
    const auto loss = types ? violation.loss_kind() : std::nullopt;
    if (!loss || !ops::is_regression(*loss)) return std::nullopt;
    const auto fix = cast_to_float(violation);
    if (!fix || (violation.loss != nullptr && violation.loss->prediction == fix->operand.value())) return std::nullopt;
    return fix;
  }
};

const RegisterRule<IntegerTargetInRegressionLoss> kRegisterIntegerTargetInRegressionLoss;

}  // namespace
}  // namespace tensorlint::rules
