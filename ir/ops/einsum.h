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

/// By axis of a tensor of that rank, at least the term's letters: the letter's code, or, of those that the ellipsis
/// covers, a number below 0 that is the same in all terms. Those count from the last one, which is -1.
std::vector<int> einsum_labels(const EinsumTerm& term, std::size_t rank);

}  // namespace tensorlint::ops
