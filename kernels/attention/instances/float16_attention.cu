#define TL_ATTENTION_INSTANCES
#include "kernels/attention/dispatch.h"

namespace tensorlint::kernels {

template Status launch_attention<Half>(const AttentionParameters<Half>&, unsigned, Stream);

}  // namespace tensorlint::kernels
