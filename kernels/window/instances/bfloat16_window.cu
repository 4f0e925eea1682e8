#define TL_WINDOW_INSTANCES
#include "kernels/window/dispatch.h"

namespace tensorlint::kernels {

TL_WINDOW_INSTANCE(BFloat16)

}  // namespace tensorlint::kernels
