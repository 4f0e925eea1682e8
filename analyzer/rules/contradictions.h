#pragma once

#include <map>
#include <string>
#include <vector>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// Shapes in value_info that contradict what the nodes compute, as far as one explains another finding: the next such
/// contradiction, or the failure of a node that uses the value.
class Contradictions {
 public:
  explicit Contradictions(const dataflow::Analysis& analysis);

  /// Of a contradiction: a key that it shares with those that follow from it; empty for other failures.
  std::string cause(const dataflow::NodeFailure& failure) const;
  /// Some node's failure tells of the contradiction in its notes.
  bool is_note(const dataflow::NodeFailure& failure) const;
  /// The contradictions about values that led to a failure of another kind.
  std::vector<const dataflow::NodeFailure*> behind(const dataflow::NodeFailure& failure) const;

 private:
  ValueId value_behind(ValueId value) const;

  const dataflow::Analysis& analysis_;
  std::map<ValueId, const dataflow::NodeFailure*> by_value_;
  std::map<const dataflow::NodeFailure*, const dataflow::NodeFailure*>
      first_;  ///< of each contradiction: where it began
  std::map<const dataflow::NodeFailure*, bool> noted_;
};

}  // namespace tensorlint::rules
