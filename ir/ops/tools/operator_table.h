#pragma once

#include <string>

namespace tensorlint::ops {

/// What each ONNX operator has and lacks here, as text; with `lacking` only rows that lack inference for some version,
/// and the operators of onnxruntime's own domains that do.
std::string operator_table(bool lacking);

/// The same as the page docs/operators.md.
std::string operator_page();

}  // namespace tensorlint::ops
