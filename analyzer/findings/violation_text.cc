#include "analyzer/findings/violation_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <span>

#include "base/escape.h"

namespace tensorlint::findings {
namespace {

/// Messages are longer than names, and hold some that are shortened already.
constexpr std::size_t kMessageLength = 1000;

/// Names of a node's operands and results in its model.
class NamesOfNode : public ops::ValueNames {
 public:
  NamesOfNode(const Model& model, NodeId node) : model_(model), node_(node) {}

  std::string operand(int index) const override {
    return name("operand", node_ == NodeId::kNone ? std::span<const ValueId>() : model_.operands(model_.node(node_)),
                index);
  }
  std::string result(int index) const override {
    return name("result", node_ == NodeId::kNone ? std::span<const ValueId>() : model_.results(model_.node(node_)),
                index);
  }

 private:
  std::string name(std::string_view role, std::span<const ValueId> values, int index) const {
    const auto at = static_cast<std::size_t>(index);
    const ValueId value = at < values.size() ? values[at] : ValueId::kAbsent;
    return value == ValueId::kAbsent ? fmt::format("{} {}", role, index) : quoted_for_people(model_.name_of(value));
  }

  const Model& model_;
  NodeId node_;
};

}  // namespace

std::string violation_text(const dataflow::Analysis& analysis, const dataflow::NodeViolation& violation) {
  const NamesOfNode names(analysis.model(), violation.node);
  return escape_for_display(to_text(violation.message, analysis.facts(), names), kMessageLength);
}

std::string witness_text(const dataflow::Analysis& analysis, const dataflow::NodeViolation& violation) {
  return to_text(violation.witness, analysis.facts(), NamesOfNode(analysis.model(), violation.node));
}

}  // namespace tensorlint::findings
