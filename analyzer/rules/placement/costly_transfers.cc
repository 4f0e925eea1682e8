#include <fmt/format.h>

#include "analyzer/rules/placement/wording.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

class CostlyTransfers : public Rule {
 public:
  CostlyTransfers()
      : Rule({"TL-P407", "costly-transfers", "placement", findings::Severity::kInfo,
              "a runtime has to copy tensors between devices in every run"},
             {passes::Pass::kRuntimeCost}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!view.copies_at_run_time()) return;
    const placement::RuntimeCost& cost = view.runtime_cost();
    if (cost.cases.empty()) {
      out.report_graph(GraphId::kMain, fmt::format("the copies of a run are not counted: {}", cost.unknown));
      return;
    }
    const placement::CostCase& dearest = cost.dearest(view.analysis().facts());
    for (const auto& [node, copies] : dearest.nodes) {
      if (copies.in_loop > 0) continue;
      const std::string bytes = bytes_text(view.analysis(), copies.bytes);
      out.report(node,
                 fmt::format("{} is copied from {} to {} in every run{}",
                             quoted_for_people(view.model().name_of(copies.value)), cost.device(copies.from),
                             cost.device(copies.to),
                             bytes.empty() ? std::string()
                                           : fmt::format(" ({} bytes{})", bytes,
                                                         copies.copies > 1 ? " with what else the node reads" : "")))
          .value(copies.value)
          .cost({copies.copies, 0, bytes, "0", dearest.named_conditions()});
    }
  }
};

const RegisterRule<CostlyTransfers> kRegisterCostlyTransfers;

}  // namespace
}  // namespace tensorlint::rules
