#define TL_LOSS_INSTANCES
#include "kernels/loss/dispatch.h"

namespace tensorlint::kernels {

TL_LOSS_INSTANCE(Half)

}  // namespace tensorlint::kernels
