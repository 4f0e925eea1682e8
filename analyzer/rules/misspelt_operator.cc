#include "analyzer/rules/misspelt_operator.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/did_you_mean.h"
#include "base/letters.h"
#include "ir/schema/contrib_schemas.h"

namespace tensorlint::rules {
namespace {

constexpr std::size_t kShortest = 5, kLong = 10, kLongest = 40;

/// Names that differ in digits are versions or widths (MatMulNBits, MatMulBnb4), not slips.
std::string digits(std::string_view name) {
  std::string text;
  std::ranges::copy_if(name, std::back_inserter(text), [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

/// Which letters a name in lower case has, one bit each.
std::uint32_t letters(std::string_view lowered) {
  std::uint32_t found = 0;
  for (const char c : lowered)
    if (c >= 'a' && c <= 'z') found |= std::uint32_t{1} << (c - 'a');
  return found;
}

struct KnownName {
  const ContribSchema* schema;
  std::string lowered, numbered;
  std::uint32_t letters;
};

/// Asked for each operator that nobody knows.
const std::vector<KnownName>& known_names() {
  static const std::vector<KnownName> names = [] {
    std::vector<KnownName> all;
    for (const ContribSchema& schema : contrib_schemas())
      all.push_back({&schema, lower_case(schema.name), digits(schema.name), letters(lower_case(schema.name))});
    return all;
  }();
  return names;
}

}  // namespace

std::string_view misspelt_operator(std::string_view domain, std::string_view name) {
  if (name.size() < kShortest || name.size() > kLongest) return {};
  std::string_view best;
  std::size_t nearest = name.size() >= kLong ? 3 : 2;  // none as far as this
  const std::string lowered = lower_case(name), numbered = digits(name);
  const std::uint32_t own_letters = letters(lowered);
  for (const KnownName& known : known_names()) {
    const ContribSchema& schema = *known.schema;
    if (schema.domain != domain) continue;
    if (schema.name == name) return {};
    const std::size_t apart = std::max(schema.name.size(), name.size()) - std::min(schema.name.size(), name.size());
    if (apart >= nearest || known.numbered != numbered) continue;
    // A slip takes one letter away and brings another at most.
    if (static_cast<std::size_t>(std::popcount(known.letters ^ own_letters)) > 2 * (nearest - 1)) continue;
    const std::size_t far = edit_distance(known.lowered, lowered, nearest - 1);
    if (far >= nearest) continue;
    nearest = far;
    best = schema.name;
  }
  return best;
}

}  // namespace tensorlint::rules
