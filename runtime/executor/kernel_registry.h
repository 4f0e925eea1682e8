#pragma once

#include <string>

#include "passes/placement/provider.h"

namespace tensorlint::runtime {

/// The operators that kernels compute, by version and dtypes: KernelMatcher asks it first, so nothing else runs on a
/// device. What else a node has to fulfil is a comment of its rows. The form is that of docs/providers.md.
const placement::ProviderTable& kernel_registry();
/// Its text, passes/placement/providers/tensorlint-cuda.txt.
std::string kernel_registry_text();

/// What the interpreter runs, passes/placement/providers/tensorlint-cpu.txt: operators with an evaluator that is linked
/// into this program, with a body by which ONNX defines them, and control flow.
std::string interpreter_provider_text();

}  // namespace tensorlint::runtime
