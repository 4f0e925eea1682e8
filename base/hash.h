#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensorlint {

/// Mixes a word into a number that names something, such as the call that a symbol comes from: the same in every run.
/// Not for tables: whoever writes a model could choose words that collide.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash ^= word + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 32);
}

/// Two random words, others in each process; the factor is odd, so never 0.
struct HashSeed {
  std::uint64_t state, factor;
};
HashSeed make_hash_seed();
inline const HashSeed kHashSeed = make_hash_seed();

/// Hash of a table's key, word by word, starting from any number. Seeded: without the seed nobody can choose keys that
/// collide. No output may depend on it, so tables are looked things up in and never walked through.
/// A folded product, as in wyhash (github.com/wangyi-fudan/wyhash).
inline std::uint64_t table_hash(std::uint64_t hash, std::uint64_t word) {
  const auto product =
      static_cast<unsigned __int128>(hash ^ kHashSeed.state ^ word) * (kHashSeed.factor ^ (word << 32 | word >> 32));
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

namespace detail {
template <typename Word>
Word load_word(const char* bytes) {
  Word word;
  __builtin_memcpy(&word, bytes, sizeof word);
  return word;
}
}  // namespace detail

/// The same of a text. Words may overlap at the end: no copy of a length known only at run time.
inline std::uint64_t table_hash(std::string_view text) {
  std::uint64_t hash = text.size();
  if (text.size() >= 8) {
    const char* const last = text.data() + text.size() - 8;
    for (const char* at = text.data(); at < last; at += 8)
      hash = table_hash(hash, detail::load_word<std::uint64_t>(at));
    return table_hash(hash, detail::load_word<std::uint64_t>(last));
  }
  if (text.size() >= 4)
    return table_hash(hash, std::uint64_t{detail::load_word<std::uint32_t>(text.data())} << 32 |
                                detail::load_word<std::uint32_t>(text.data() + text.size() - 4));
  if (text.empty()) return hash;
  return table_hash(hash, static_cast<std::uint64_t>(static_cast<std::uint8_t>(text[0])) << 16 |
                              static_cast<std::uint64_t>(static_cast<std::uint8_t>(text[text.size() / 2])) << 8 |
                              static_cast<std::uint8_t>(text.back()));
}

/// For the standard library's tables of texts.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return table_hash(text); }
};

/// The same of words that a file chooses: the standard library takes them for their own hash.
struct WordHash {
  std::size_t operator()(std::uint64_t word) const { return table_hash(0, word); }
};

}  // namespace tensorlint
