#define TL_ATTENTION_INSTANCES
#include "kernels/attention/dispatch.h"

namespace tensorlint::kernels {

template Status launch_attention<BFloat16>(const AttentionParameters<BFloat16>&, unsigned, Stream);

}  // namespace tensorlint::kernels
