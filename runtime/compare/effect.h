#pragma once

#include "runtime/values/host_tensor.h"
#include "runtime/values/memory.h"

namespace tensorlint::compare {

/// How much of an effect errors show: 1 all of it, 0 none.
struct EffectShare {
  double share = 0;
  double deviations = 0;  ///< of the share from 0, in standard errors; 0 where there are too few elements
};

/// The least squares of `other` - `reference` = share (`affected` - `reference`) + slope `reference`, over elements
/// that differ. Errors that have nothing to do with an effect share nothing of it, however large they are, and an
/// effect is seen far below the bound of a single element. The slope takes what several causes have in common: cutting
/// terms off makes all elements smaller. Standard error from the residual of each element (White, 1980): sizes may
/// differ.
EffectShare share_of(const runtime::HostTensor& reference, const runtime::HostTensor& affected,
                     const runtime::HostTensor& other, runtime::Memory& memory);

}  // namespace tensorlint::compare
