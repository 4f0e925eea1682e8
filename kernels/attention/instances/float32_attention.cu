#define TL_ATTENTION_INSTANCES
#include "kernels/attention/dispatch.h"

namespace tensorlint::kernels {

template Status launch_attention<float>(const AttentionParameters<float>&, unsigned, Stream);

}  // namespace tensorlint::kernels
