#pragma once

/// Before a loop: its iterations do not depend on each other, also where what it reads is what it writes, as it is for
/// results in the memory of operands. Compilers look for that themselves, but then take equal addresses to overlap.
#if defined(__clang__)
#define TENSORLINT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TENSORLINT_INDEPENDENT _Pragma("GCC ivdep")
#else
#define TENSORLINT_INDEPENDENT
#endif

/// The target of functions that use vectors of 512 bits. GCC takes vectors of 256 bits unless it is told to take wider
/// ones; clang has no such word.
#if defined(__clang__)
#define TENSORLINT_AVX512_TARGET(features) gnu::target(features)
#else
#define TENSORLINT_AVX512_TARGET(features) gnu::target(features ",prefer-vector-width=512")
#endif
