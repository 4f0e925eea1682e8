#include "kernels/elementwise/dispatch.h"
#include "kernels/elementwise/kernel.h"

namespace tensorlint::kernels {

template <>
Status launch_elementwise<float>(const ElementwiseParameters& parameters, const Geometry& geometry, Stream stream) {
  return launch(&elementwise<float>, geometry, stream, parameters);
}

}  // namespace tensorlint::kernels
