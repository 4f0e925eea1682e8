#pragma once

#include <string>

#include "runtime/compare/tensor_test.h"

namespace tensorlint::compare {

/// What the errors of a recorded tensor look like, as a guess of what went wrong: a factor, an offset, elements in
/// another order, elements that were not computed. Empty where they look like nothing in particular.
std::string guess_cause(const Expected& expected, const runtime::HostTensor& other, const TensorTest& test,
                        runtime::Memory& memory);

}  // namespace tensorlint::compare
