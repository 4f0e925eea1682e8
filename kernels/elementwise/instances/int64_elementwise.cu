#include "kernels/elementwise/dispatch.h"
#include "kernels/elementwise/kernel.h"

namespace tensorlint::kernels {

template <>
Status launch_elementwise<std::int64_t>(const ElementwiseParameters& parameters, const Geometry& geometry,
                                        Stream stream) {
  return launch(&elementwise<std::int64_t>, geometry, stream, parameters);
}

}  // namespace tensorlint::kernels
