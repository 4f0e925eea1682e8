#define TL_NORMALIZATION_INSTANCES
#include "kernels/normalization/dispatch.h"

namespace tensorlint::kernels {

template Status launch_normalization<double>(const NormalizationParameters<double>&, unsigned, Stream);

}  // namespace tensorlint::kernels
