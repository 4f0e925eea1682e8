#pragma once

#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// `value`, if sequences and optionals in it are nested at most 16 deep; else throws RunFault. What reads and frees
/// values calls itself for each level, and a loop could make one a step. ONNX's own types have 2 or 3.
HostValue bounded(HostValue value);

}  // namespace tensorlint::runtime
