#pragma once

#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// `value`, if sequences and optionals in it are nested at most 16 deep and have at most 2^20 values in all; else
/// throws RunFault. What reads and frees values calls itself for each level, and a loop could make one a step; what
/// compares and writes them takes each as often as it is there, and some lists that share their elements have any
/// number. ONNX's own types are nested 2 or 3 deep.
HostValue bounded(HostValue value);

}  // namespace tensorlint::runtime
