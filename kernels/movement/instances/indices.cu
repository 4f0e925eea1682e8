#include "kernels/movement/dispatch.h"
#include "kernels/movement/index_kernels.h"

namespace tensorlint::kernels {

Status launch_index_scan(const IndexParameters& parameters, Stream stream) {
  return launch(&scan_indices, {parameters.blocks, kThreads, 1, 0}, stream, parameters);
}

Status launch_last_updates(const LastUpdateParameters& parameters, Stream stream) {
  const auto blocks = static_cast<unsigned>((parameters.movement.tuples + kThreads - 1) / kThreads);
  return launch(&find_last_updates, {blocks, kThreads, 1, 0}, stream, parameters);
}

}  // namespace tensorlint::kernels
