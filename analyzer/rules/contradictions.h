#pragma once

#include <map>
#include <string>
#include <vector>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// Shapes in value_info that contradict what the nodes compute, as far as one explains another finding: the next such
/// contradiction, or the violation of a node that uses the value.
class Contradictions {
 public:
  explicit Contradictions(const dataflow::Analysis& analysis);

  /// Of a contradiction: a key that it shares with those that follow from it; empty for other violations.
  std::string cause(const dataflow::NodeViolation& violation) const;
  /// Some node's violation mentions the contradiction in its notes.
  bool is_note(const dataflow::NodeViolation& violation) const;
  /// The contradictions about values that led to a violation of another kind.
  std::vector<const dataflow::NodeViolation*> behind(const dataflow::NodeViolation& violation) const;

 private:
  ValueId value_behind(ValueId value) const;

  const dataflow::Analysis& analysis_;
  std::map<ValueId, const dataflow::NodeViolation*> by_value_;
  std::map<const dataflow::NodeViolation*, const dataflow::NodeViolation*>
      first_;  ///< of each contradiction: where it began
  std::map<const dataflow::NodeViolation*, bool> noted_;
};

}  // namespace tensorlint::rules
