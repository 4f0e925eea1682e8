#define TL_NORMALIZATION_INSTANCES
#include "kernels/normalization/dispatch.h"

namespace tensorlint::kernels {

template Status launch_normalization<BFloat16>(const NormalizationParameters<BFloat16>&, unsigned, Stream);

}  // namespace tensorlint::kernels
