#pragma once

#include <new>
#include <stdexcept>

#include "base/result.h"
#include "runtime/values/memory.h"

namespace tensorlint::runtime {

/// What `compute` gives, or why it ended.
template <typename Compute>
auto guarded(const Compute& compute) -> Result<decltype(compute())> {
  try {
    return compute();
  } catch (const RunFault& fault) {
    return Error{fault.message, {}};
  } catch (const std::bad_alloc&) {
    return Error{"out of memory", {}};
  } catch (const std::length_error&) {
    return Error{"out of memory", {}};
  }
}

}  // namespace tensorlint::runtime
