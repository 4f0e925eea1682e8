#pragma once

#if defined(TL_MOVEMENT_INSTANCES)
#include "kernels/movement/kernel.h"
#include "kernels/movement/transpose_kernel.h"
#endif
#include "kernels/movement/plan.h"

namespace tensorlint::kernels {

// One instance file for each word defines this.
template <typename Word>
Status launch_movement(MovementKind kind, const MovementParameters& parameters, unsigned blocks, Stream stream);

template <typename Word>
Status launch_transpose(const TransposeParameters& parameters, unsigned blocks, Stream stream);

Status launch_index_scan(const IndexParameters& parameters, Stream stream);
Status launch_last_updates(const LastUpdateParameters& parameters, Stream stream);

#if defined(TL_MOVEMENT_INSTANCES)
template <typename Word>
Status launch_movement(MovementKind kind, const MovementParameters& p, unsigned blocks, Stream stream) {
  const Geometry geometry = {blocks, kThreads, 1, 0};
  switch (kind) {
    case MovementKind::kCopy:
      return launch(&move_words<Word, MovementKind::kCopy>, geometry, stream, p);
    case MovementKind::kPad:
      return launch(&move_words<Word, MovementKind::kPad>, geometry, stream, p);
    case MovementKind::kGather:
      return launch(&move_words<Word, MovementKind::kGather>, geometry, stream, p);
    case MovementKind::kScatter:
      return launch(&move_words<Word, MovementKind::kScatter>, geometry, stream, p);
  }
  return Status::kBadParameter;
}

template <typename Word>
Status launch_transpose(const TransposeParameters& p, unsigned blocks, Stream stream) {
  return launch(&transpose_tiles<Word>, {blocks, kThreads, 1, 0}, stream, p);
}

#define TL_TRANSPOSE_INSTANCE(Word) \
  template Status launch_transpose<Word>(const TransposeParameters&, unsigned, Stream);
#define TL_MOVEMENT_INSTANCE(Word) \
  template Status launch_movement<Word>(MovementKind, const MovementParameters&, unsigned, Stream);
#endif

}  // namespace tensorlint::kernels
