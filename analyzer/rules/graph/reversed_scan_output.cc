#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "analyzer/rules/rule.h"
#include "ir/graph/region_op.h"
#include "ir/ops/opcode.h"

namespace tensorlint::rules {
namespace {

class ReversedScanOutput : public Rule {
 public:
  ReversedScanOutput()
      : Rule({"TL-G640", "reversed-scan-output", "graph", findings::Severity::kWarning,
              "a sequence that a Scan reads from one end and writes from the other, combined with what it was read "
              "from"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return has_trait(entry, ops::OpTrait::kControlFlow);
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const RegionOp region = region_op(call.model(), call.node());
    if (region.kind != RegionKind::kScan || !region.has_graphs() || region.scanned == 0) return;
    const ScanAxes axes = axes_of(call);
    const auto backwards = reads_backwards(call, region, axes);
    if (!backwards) return;
    const std::size_t outputs =
        call.node().result_count - std::min<std::size_t>(region.carried, call.node().result_count);
    for (std::size_t k = 0; k < outputs && !call.facts().meter().is_spent(); ++k)
      if (axes.writes_backwards(k) != *backwards) check_output(call, region, axes, k, *backwards, out);
  }

 private:
  static constexpr std::size_t kMaxValues = 8;

  static ScanAxes axes_of(const NodeCall& call) {
    return scan_axes([&](std::string_view name) { return call.attribute(name); });
  }

  /// nullopt where some of the sequences are read from one end and some from the other.
  static std::optional<bool> reads_backwards(const NodeCall& call, const RegionOp& region, const ScanAxes& axes) {
    call.facts().meter().charge(1 + region.scanned);
    for (std::size_t i = 1; i < region.scanned; ++i)
      if (axes.reads_backwards(i) != axes.reads_backwards(0)) return std::nullopt;
    return axes.reads_backwards(0);
  }

  static void check_output(const NodeCall& call, const RegionOp& region, const ScanAxes& axes, std::size_t k,
                           bool backwards, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const ValueId result = call.result(region.carried + k);
    if (result == ValueId::kAbsent) return;
    std::vector<ValueId> pending{result};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : analysis.users(pending[i])) {
        const NodeCall use(analysis, user);
        analysis.facts().meter().charge(1 + use.operand_count());
        const bool combines =
            use.operand_count() >= 2 && (use.has(ops::OpTrait::kElementwise) || joins_features(use, axes.output(k)));
        if (!combines) {
          if (use.operand_count() == 1 && use.has(ops::OpTrait::kElementwise) && use.result() != ValueId::kAbsent)
            pending.push_back(use.result());
          continue;
        }
        for (std::size_t operand = 0; operand < use.operand_count(); ++operand) {
          if (analysis.facts().meter().is_spent()) return;
          const ValueId other = use.operand(operand).value();
          if (other == ValueId::kAbsent || other == pending[i] || !is_in_order(call, region, axes, k, other)) continue;
          out.report(user,
                     fmt::format("{} of {} meets the other end of {}: {} reads it {} and writes {}", use.op_name(),
                                 Operand(analysis, result).name(), Operand(analysis, other).name(), call.op_name(),
                                 backwards ? "backwards" : "forwards", backwards ? "forwards" : "backwards"))
              .note_at(call.id(), "the sequence is turned round here")
              .fix(fmt::format("give scan_output_directions {} for it, as scan_input_directions has",
                               backwards ? 1 : 0));
          return;
        }
      }
  }

  /// A Concat along another axis than that of the sequence.
  static bool joins_features(const NodeCall& use, std::int64_t axis) {
    if (!use.is(ops::Opcode::kConcat)) return false;
    const Attribute* given = use.attribute("axis");
    const Fact& fact = use.facts().fact(use.analysis().fact_id(use.result()));
    if (given == nullptr || fact.shape == ShapeId::kUnranked || use.result() == ValueId::kAbsent) return false;
    const auto rank = static_cast<std::int64_t>(use.facts().dims_of(fact.shape).size());
    const auto from_front = [rank](std::int64_t at) { return at < 0 ? at + rank : at; };
    return from_front(given->i) != from_front(axis);
  }

  /// One of the sequences that are read, or what another Scan makes of it in its order.
  static bool is_in_order(const NodeCall& call, const RegionOp& region, const ScanAxes& axes, std::size_t k,
                          ValueId value) {
    const Model& model = call.model();
    for (std::size_t step = 0; step < kMaxValues && value != ValueId::kAbsent; ++step) {
      constexpr std::uint64_t kStepsOfNode = 16;
      call.facts().meter().charge(kStepsOfNode + region.scanned);
      if (call.facts().meter().is_spent()) return false;
      for (std::size_t i = 0; i < region.scanned; ++i)
        if (call.operand(region.scanned_operand(i)).value() == value) return axes.input(i) == axes.output(k);
      const NodeId node = model.value(value).producer;
      if (node == NodeId::kNone || node == call.id()) return false;
      const NodeCall before(call.analysis(), node);
      const RegionOp other = region_op(model, before.node());
      if (other.kind == RegionKind::kScan && other.has_graphs()) {
        const ScanAxes its = axes_of(before);
        const auto backwards = reads_backwards(before, other, its);
        call.facts().meter().charge(1 + before.node().result_count);
        for (std::size_t output = 0; output + other.carried < before.node().result_count; ++output)
          if (before.result(other.carried + output) == value && backwards &&
              its.writes_backwards(output) == *backwards && its.output(output) == its.input(0)) {
            const ValueId scanned = before.operand(other.scanned_operand(0)).value();
            for (std::size_t i = 0; i < region.scanned; ++i)
              if (call.operand(region.scanned_operand(i)).value() == scanned)
                return axes.input(i) == its.input(0) && axes.output(k) == its.output(output);
          }
        return false;
      }
      if (!before.has(ops::OpTrait::kElementwise) || before.operand_count() != 1) return false;
      value = before.operand(0).value();
    }
    return false;
  }
};

const RegisterRule<ReversedScanOutput> kRegisterReversedScanOutput;

}  // namespace
}  // namespace tensorlint::rules
