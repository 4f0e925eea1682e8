#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/violation.h"

namespace tensorlint::ops {

/// One side of an equation of Einsum: a letter an axis, and an ellipsis for the axes without one.
struct EinsumTerm {
  std::string letters;       ///< without the ellipsis
  std::size_t ellipsis = 0;  ///< letters before it
  bool has_ellipsis = false;
};

struct EinsumEquation {
  std::vector<EinsumTerm> terms;
  std::optional<EinsumTerm> result;
};

/// The equation; nullopt where it is malformed, with the reason in `error`. Source: ONNX Einsum, opset 12.
std::optional<EinsumEquation> parse_einsum(std::string_view text, Message& error);

/// The letters of a result that the equation leaves out: those that occur once, in order.
EinsumTerm implied_result(const std::vector<EinsumTerm>& terms);

}  // namespace tensorlint::ops
