#include <fmt/format.h>

#include "analyzer/rules/placement/wording.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

class TransferInLoop : public Rule {
 public:
  TransferInLoop()
      : Rule({"TL-P406", "transfer-in-loop", "placement", findings::Severity::kWarning,
              "a runtime has to copy a tensor between devices in each iteration"},
             {passes::Pass::kRuntimeCost}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!view.copies_at_run_time()) return;
    const placement::RuntimeCost& cost = view.runtime_cost();
    if (cost.cases.empty()) return;
    const placement::CostCase& dearest = cost.dearest(view.analysis().facts());
    for (const auto& [node, copies] : dearest.nodes) {
      if (copies.in_loop == 0) continue;
      const std::string bytes = bytes_text(view.analysis(), copies.bytes);
      out.report(node, fmt::format("{} is copied from {} to {} in a loop, {} times in one run{}",
                                   quoted_for_people(view.model().name_of(copies.value)), cost.device(copies.from),
                                   cost.device(copies.to), copies.copies,
                                   bytes.empty() ? std::string() : fmt::format(" ({} bytes)", bytes)))
          .value(copies.value)
          .cost({copies.copies, 0, bytes, "0", dearest.named_conditions()});
    }
  }
};

const RegisterRule<TransferInLoop> kRegisterTransferInLoop;

}  // namespace
}  // namespace tensorlint::rules
