#include "analyzer/rules/misspelt_operator.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/did_you_mean.h"
#include "ir/schema/contrib_schemas.h"

namespace tensorlint::rules {
namespace {

constexpr std::size_t kShortest = 5, kLong = 10, kLongest = 40;

std::string lower(std::string_view name) {
  std::string text(name);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// Names that differ in digits are versions or widths (MatMulNBits, MatMulBnb4), not slips.
std::string digits(std::string_view name) {
  std::string text;
  std::ranges::copy_if(name, std::back_inserter(text), [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace

std::string_view misspelt_operator(std::string_view domain, std::string_view name) {
  if (name.size() < kShortest || name.size() > kLongest) return {};
  std::string_view best;
  std::size_t nearest = name.size() >= kLong ? 3 : 2;  // none as far as this
  const std::string lowered = lower(name), numbered = digits(name);
  for (const ContribSchema& schema : contrib_schemas()) {
    if (schema.domain != domain) continue;
    if (schema.name == name) return {};
    const std::size_t apart = std::max(schema.name.size(), name.size()) - std::min(schema.name.size(), name.size());
    if (apart >= nearest || digits(schema.name) != numbered) continue;
    const std::size_t far = edit_distance(lower(schema.name), lowered, nearest - 1);
    if (far >= nearest) continue;
    nearest = far;
    best = schema.name;
  }
  return best;
}

}  // namespace tensorlint::rules
