#include "base/did_you_mean.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tensorlint {
namespace {

constexpr std::size_t kLongestWord = 64;

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most) {
  const std::size_t apart = std::max(a.size(), b.size()) - std::min(a.size(), b.size());
  if (apart > most) return apart;
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j)
      diagonal =
          std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)}));
    // No later row has less.
    if (const std::size_t least = *std::ranges::min_element(row); least > most) return least;
  }
  return row.back();
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > kLongestWord) return {};
  std::string_view best;
  // A third of the letters wrong is no typing error any more; of two letters any other two are near.
  std::size_t limit = 1 + (word.size() < 3 ? 0 : word.size() < 5 ? 1 : std::max<std::size_t>(2, word.size() / 3));
  for (const std::string_view candidate : candidates) {
    const std::size_t far = edit_distance(word, candidate, limit - 1);
    if (far >= limit) continue;
    limit = far;
    best = candidate;
  }
  return best.empty() ? std::string() : fmt::format("; did you mean `{}`?", best);
}

}  // namespace tensorlint
