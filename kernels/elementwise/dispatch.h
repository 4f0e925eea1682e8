#pragma once

#include "kernels/elementwise/plan.h"

namespace tensorlint::kernels {

// One instance file for each compute type defines these.
template <typename C>
Status launch_elementwise(const ElementwiseParameters& parameters, const Geometry& geometry, Stream stream);

}  // namespace tensorlint::kernels
