#define TL_NORMALIZATION_INSTANCES
#include "kernels/normalization/dispatch.h"

namespace tensorlint::kernels {

template Status launch_normalization<float>(const NormalizationParameters<float>&, unsigned, Stream);

}  // namespace tensorlint::kernels
