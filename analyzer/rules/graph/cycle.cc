#include <fmt/format.h>

#include "analyzer/rules/rule.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

constexpr std::size_t kNotedNodes = 16;  // of one cycle

class Cycle : public Rule {
 public:
  Cycle()
      : Rule({"TL-G606", "cycle", "graph", findings::Severity::kError,
              "nodes that need each other's results, functions that call themselves", kFilesOnly},
             {passes::Pass::kCycles}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const Model& model = view.model();
    const structure::Cycles& found = view.cycles();
    for (const structure::Recursion& recursion : found.recursions)
      out.report(recursion.call,
                 fmt::format("the function {} calls itself{}", quoted_for_people(model.graph_path(recursion.function)),
                             recursion.is_direct ? "" : " through the functions that it calls"));
    for (const structure::Cycle& cycle : found.cycles) {
      const std::string value = quoted_for_people(model.name_of(cycle.value));
      FindingBuilder finding =
          out.report(cycle.user, cycle.nodes.size() == 1
                                     ? fmt::format("the node needs its own result {}", value)
                                     : fmt::format("the node needs {}, which is computed from its own result", value));
      std::size_t noted = 0;
      for (const NodeId node : cycle.nodes)
        if (node != cycle.user && noted++ < kNotedNodes) finding.note_at(node, "is on the cycle");
      if (noted > kNotedNodes) finding.note(fmt::format("{} more nodes are on the cycle", noted - kNotedNodes));
    }
  }
};

const RegisterRule<Cycle> kRegisterCycle;

}  // namespace
}  // namespace tensorlint::rules
