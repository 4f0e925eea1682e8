#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/compare/node_reference.h"

namespace tensorlint::compare {

/// How a recorded tensor and the reference agree, from best to worst.
enum class Verdict : std::uint8_t {
  kIdentical,       ///< every element is the reference, rounded to the dtype
  kExplained,       ///< rounding explains all differences
  kExplainedIf,     ///< a condition that nobody declared explains them
  kIllConditioned,  ///< rounding explains them, and would explain an error of a tenth of the values
  kBug,
};

std::string_view to_text(Verdict verdict);

/// The figures behind a verdict. Errors are absolute, in the unit of the elements.
struct TensorTest {
  Verdict verdict = Verdict::kIdentical;
  std::size_t count = 0, beyond = 0, differing = 0;  ///< elements: all, with an error above their bound, not identical
  std::size_t worst = 0;                             ///< the element whose error is largest against its bound
  double worst_error = 0;                            ///< there
  double bound = 0;                                  ///< there
  double ratio = 0;                                  ///< the one over the other
  double reference = 0, other = 0;                   ///< there
  double rms_ratio = 0;           ///< root mean square of the errors over what rounding makes one expect
  double slope = 0, slope_z = 0;  ///< of the errors over the reference; less its allowance, in standard errors
  double offset_z = 0;            ///< mean of the errors, in standard errors
  bool is_other_class = false;    ///< NaN or infinity on one side alone
};

struct TestOptions {
  bool flushes = false;  ///< zero is right where the reference is below the smallest normal number
};

/// Whether elements of the two can be held against each other: both are numbers or truths, or they have one dtype.
bool is_comparable(DType a, DType b);
/// The same of a value and a recorded tensor, whose extents agree as well: a node that is computed again may take
/// another way.
bool is_comparable(const runtime::HostValue& value, const runtime::HostTensor& other);

/// Holds a recorded tensor, in `dtype`, against what its node should have given. Shapes agree. Throws RunFault past the
/// memory limit.
TensorTest test_tensor(const Expected& expected, const runtime::HostTensor& other, runtime::Memory& memory,
                       const TestOptions& options = {});

/// The bound of one element, as the test takes it.
double bound_of(const Expected& expected, DType dtype, double reference, std::size_t element);

}  // namespace tensorlint::compare
