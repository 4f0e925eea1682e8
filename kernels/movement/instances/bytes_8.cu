#define TL_MOVEMENT_INSTANCES
#include "kernels/movement/dispatch.h"

namespace tensorlint::kernels {

TL_MOVEMENT_INSTANCE(std::uint64_t)
TL_TRANSPOSE_INSTANCE(std::uint64_t)

}  // namespace tensorlint::kernels
