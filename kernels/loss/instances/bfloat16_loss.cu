#define TL_LOSS_INSTANCES
#include "kernels/loss/dispatch.h"

namespace tensorlint::kernels {

TL_LOSS_INSTANCE(BFloat16)

}  // namespace tensorlint::kernels
