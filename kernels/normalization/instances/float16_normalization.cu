#define TL_NORMALIZATION_INSTANCES
#include "kernels/normalization/dispatch.h"

namespace tensorlint::kernels {

template Status launch_normalization<Half>(const NormalizationParameters<Half>&, unsigned, Stream);

}  // namespace tensorlint::kernels
