#include "analyzer/findings/rule_codes.h"

#include <cassert>
#include <optional>

namespace tensorlint::findings {
namespace {

std::optional<std::size_t> number_of(std::string_view code) {
  constexpr std::size_t kPrefix = 4, kDigits = 3;  // "TL-G"
  if (code.size() != kPrefix + kDigits) return std::nullopt;
  std::size_t number = 0;
  for (const char digit : code.substr(kPrefix)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = 10 * number + static_cast<std::size_t>(digit - '0');
  }
  return number;
}

}  // namespace

void RuleCodes::insert(std::string_view code) {
  const auto number = number_of(code);
  assert(number);
  if (number) bits_.set(*number);
}

bool RuleCodes::contains(std::string_view code) const {
  const auto number = number_of(code);
  return number && bits_.test(*number);
}

}  // namespace tensorlint::findings
