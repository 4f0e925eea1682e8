#pragma once

#include <cstdint>
#include <unordered_map>

#include "passes/dataflow/analysis.h"

namespace tensorlint::dataflow {

/// The operand that the value's producer hands an aspect on from; kAbsent where the aspect begins with the value.
ValueId handed_on_from(const Analysis& analysis, ValueId value, Aspect aspect);

/// origin_of for many values: what lies on one way is walked once.
class Origins {
 public:
  explicit Origins(const Analysis& analysis) : analysis_(analysis) {}
  Origin of(ValueId value, Aspect aspect);

 private:
  const Analysis& analysis_;
  std::unordered_map<std::uint64_t, Origin> known_;  // by value and aspect
};

}  // namespace tensorlint::dataflow
