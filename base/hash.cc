#include "base/hash.h"

#include <sys/auxv.h>

namespace tensorlint {

// The kernel gives each process 16 random bytes (getauxval(3), AT_RANDOM). The C library draws its own secrets from
// them, so they are mixed before use.
HashSeed make_hash_seed() {
  const auto* const random = reinterpret_cast<const char*>(getauxval(AT_RANDOM));
  const std::uint64_t low = random == nullptr ? 0x8f1bbcdcbfa53e0bULL : detail::load_word<std::uint64_t>(random);
  const std::uint64_t high = random == nullptr ? 0x5be0cd19137e2179ULL : detail::load_word<std::uint64_t>(random + 8);
  return {mix(mix(low, high), 1), mix(mix(high, low), 2) | 1};
}

}  // namespace tensorlint
