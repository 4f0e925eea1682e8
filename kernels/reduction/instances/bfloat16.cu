#define TL_REDUCTION_INSTANCES
#include "kernels/reduction/dispatch.h"

namespace tensorlint::kernels {

template Status launch_kind<BFloat16>(AccumulatorKind, const ReductionParameters&, Stream);

}  // namespace tensorlint::kernels
