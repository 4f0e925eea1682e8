#pragma once

#include <string>

#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

struct Tolerance {
  double relative = 1e-3;  ///< the defaults of ONNX's backend tests
  double absolute = 1e-7;
};

/// Whether two values agree: kind, dtype and extents are the same, and for each element |value - expected| <= absolute
/// + relative * |expected|; NaN agrees with NaN alone, an infinity with itself, strings and integers where they are
/// equal within the same bound. Empty where they do, else what differs first and by how much.
std::string disagreement(const HostValue& value, const HostValue& expected, const Tolerance& tolerance);

/// "float32[2, 3]", "sequence of 3".
std::string type_text(const HostValue& value);
/// Elements in the brackets of their shape, at most `limit`; sequences and the tensors in them count as well.
std::string elements_text(const HostValue& value, std::size_t limit);

}  // namespace tensorlint::runtime
