#pragma once

#include <set>
#include <string_view>
#include <utility>

#include "passes/dataflow/analysis.h"

namespace tensorlint::rules {

/// Nodes that a rule has reported, for rules whose codes come later and that would say the same of them in other words.
/// A rule that is not selected reports nothing, and the later one does.
class ReportedNodes {
 public:
  explicit ReportedNodes(const dataflow::Analysis& analysis) : meter_(analysis.meter()) {}
  void add(std::string_view code, NodeId node) {
    meter_.charge(8);
    nodes_.emplace(code, node);
  }
  bool has(std::string_view code, NodeId node) const {
    meter_.charge(1);
    return nodes_.contains({code, node});
  }

 private:
  Meter& meter_;
  std::set<std::pair<std::string_view, NodeId>> nodes_;  // codes are literals
};

}  // namespace tensorlint::rules
