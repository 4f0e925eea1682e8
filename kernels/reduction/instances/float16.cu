#define TL_REDUCTION_INSTANCES
#include "kernels/reduction/dispatch.h"

namespace tensorlint::kernels {

template Status launch_kind<Half>(AccumulatorKind, const ReductionParameters&, Stream);

}  // namespace tensorlint::kernels
