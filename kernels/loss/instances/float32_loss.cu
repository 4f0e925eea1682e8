#define TL_LOSS_INSTANCES
#include "kernels/loss/dispatch.h"

namespace tensorlint::kernels {

TL_LOSS_INSTANCE(float)

}  // namespace tensorlint::kernels
