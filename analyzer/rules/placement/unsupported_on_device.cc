#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "analyzer/rules/placement/wording.h"
#include "base/escape.h"
#include "ir/graph/region_op.h"

namespace tensorlint::rules {
namespace {

class UnsupportedOnDevice : public Rule {
 public:
  UnsupportedOnDevice()
      : Rule({"TL-P408", "unsupported-on-device", "placement", findings::Severity::kWarning,
              "an execution provider has no kernel for a node, which therefore runs on the cpu"},
             {passes::Pass::kPlacement}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!view.copies_at_run_time()) return;
    const Model& model = view.model();
    const placement::DeviceSources& sources = view.placement().sources();
    // What many nodes of an operator lack is said once, at the first of them.
    std::map<Key, std::size_t> counts;
    Meter& meter = view.analysis().meter();
    for (const auto& [node, choice] : sources.provider_choices()) {
      if (!is_missing(sources, node, choice)) continue;
      meter.charge(kStepsOfKey);
      if (meter.is_spent()) return;
      ++counts[key_of(model.op(model.node(node)), choice.missing)];
    }
    NodeId cannot_be_captured = NodeId::kNone;
    std::string why;
    for (const auto& [node, choice] : sources.provider_choices()) {
      if (!is_missing(sources, node, choice)) continue;
      if (cannot_be_captured == NodeId::kNone) {
        cannot_be_captured = node;
        why = "it runs on the cpu";
      }
      const Operator& op = model.op(model.node(node));
      meter.charge(kStepsOfKey);
      const auto known = counts.find(key_of(op, choice.missing));
      if (known == counts.end()) continue;
      const std::string missing = to_text(choice.missing, op, *sources.providers().front());
      FindingBuilder finding = out.report(node, fmt::format("{}: the node runs on the cpu", missing));
      if (known->second > 1)
        finding.note(known->second == 2 ? "so does 1 more node of this operator"
                                        : fmt::format("so do {} more nodes of this operator", known->second - 1));
      counts.erase(known);
    }
    for (const NodeId id : view.analysis().nodes()) {
      if (cannot_be_captured != NodeId::kNone && id > cannot_be_captured) break;
      const RegionKind kind = region_kind(model, model.op(model.node(id)));
      if (kind != RegionKind::kIf && !is_loop(kind)) continue;
      cannot_be_captured = id;
      why = "the host decides what it runs";
      break;
    }
    if (cannot_be_captured != NodeId::kNone && !sources.provider_choices().empty() && uses_cuda(sources))
      out.report(findings::Severity::kInfo, cannot_be_captured,
                 fmt::format("no CUDA graph can be captured of a run, because of this node first: {}", why));
  }

 private:
  static constexpr std::uint64_t kStepsOfKey = 8;
  /// Name of the operator and what is said of it, as numbers.
  using Key = std::tuple<NameId, placement::MissingKernel::Kind, std::uint32_t, int, std::int64_t>;
  static Key key_of(const Operator& op, const placement::MissingKernel& missing) {
    const bool is_version = missing.kind == placement::MissingKernel::Kind::kVersion;
    return {op.name, missing.kind, missing.dtypes.bits(), is_version ? op.schema->since_version : 0,
            is_version ? missing.newest : 0};
  }
  static bool is_missing(const placement::DeviceSources& sources, NodeId node,
                         const placement::ProviderChoice& choice) {
    return choice.missing.any() && !choice.shape_arithmetic &&
           sources.node_source(node) == placement::SourceKind::kProvider && sources.node(node) == 0;
  }
  static bool uses_cuda(const placement::DeviceSources& sources) {
    for (const std::string& name : sources.names())
      if (name.starts_with("cuda:")) return true;
    return false;
  }
};

const RegisterRule<UnsupportedOnDevice> kRegisterUnsupportedOnDevice;

}  // namespace
}  // namespace tensorlint::rules
