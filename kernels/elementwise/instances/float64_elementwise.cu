#include "kernels/elementwise/dispatch.h"
#include "kernels/elementwise/kernel.h"

namespace tensorlint::kernels {

template <>
Status launch_elementwise<double>(const ElementwiseParameters& parameters, const Geometry& geometry, Stream stream) {
  return launch(&elementwise<double>, geometry, stream, parameters);
}

}  // namespace tensorlint::kernels
