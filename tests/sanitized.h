// What tests leave out under the sanitizers, where all takes 10 to 40 times as long: of many inputs of one kind some
// show what is read out of bounds.
#pragma once

namespace tensorlint {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Under the sanitizers each so manieth of the inputs is tried, else each.
constexpr unsigned stride(unsigned sanitized) { return kSanitized ? sanitized : 1; }

}  // namespace tensorlint
