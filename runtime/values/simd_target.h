#pragma once

/// The target of functions that use vectors of 512 bits. GCC takes vectors of 256 bits unless it is told to take wider
/// ones; clang has no such word.
#if defined(__clang__)
#define TENSORLINT_AVX512_TARGET(features) gnu::target(features)
#else
#define TENSORLINT_AVX512_TARGET(features) gnu::target(features ",prefer-vector-width=512")
#endif
