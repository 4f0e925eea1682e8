#define TL_REDUCTION_INSTANCES
#include "kernels/reduction/dispatch.h"

namespace tensorlint::kernels {

template Status launch_kind<std::uint8_t>(AccumulatorKind, const ReductionParameters&, Stream);
template Status launch_kind<std::uint16_t>(AccumulatorKind, const ReductionParameters&, Stream);
template Status launch_kind<std::uint32_t>(AccumulatorKind, const ReductionParameters&, Stream);
template Status launch_kind<std::uint64_t>(AccumulatorKind, const ReductionParameters&, Stream);

}  // namespace tensorlint::kernels
