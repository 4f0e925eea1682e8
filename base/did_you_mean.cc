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
  most = std::min(most, std::max(a.size(), b.size()));
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    // What is further from the diagonal is further apart than `most`.
    const std::size_t first = i > most ? i - most : 1, last = std::min(b.size(), i + most);
    std::size_t diagonal = std::exchange(row[first - 1], first == 1 ? i : most + 1), least = row[first - 1];
    for (std::size_t j = first; j <= last; ++j) {
      diagonal =
          std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)}));
      least = std::min(least, row[j]);
    }
    // No later row has less.
    if (least > most) return least;
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
