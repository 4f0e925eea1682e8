#pragma once

#include <span>
#include <string_view>

#include "ir/constants/attribute.h"

namespace tensorlint::ops {

/// One element of an elementwise operator's result, to be computed from those of its operands: in double, bool as 0 and
/// 1, NaN for an operand that is left out.
struct ElementCall {
  std::span<const double> operands;
  std::span<const Attribute> attributes;

  /// A float or integer attribute.
  double attribute(std::string_view name, double fallback) const;
};

/// What an operator makes of the elements of floating operands. Its entry declares it (OpEntry::element), so that
/// whoever evaluates a formula does the operator's own arithmetic.
using ElementValue = double (*)(const ElementCall&);

}  // namespace tensorlint::ops
