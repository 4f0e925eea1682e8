#include "passes/placement/device_name.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/letters.h"

namespace tensorlint::placement {
namespace {

constexpr std::size_t kLongestName = 32;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name_part(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; }

}  // namespace

std::optional<std::string> canonical_device(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (kind.empty() || kind.size() > kLongestName || !is_letter(kind[0]) ||
      !std::all_of(kind.begin(), kind.end(), is_name_part))
    return std::nullopt;
  const std::string name = lower_case(kind);
  std::uint8_t index = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  }
  // The host is one place; a device without an index is PyTorch's current one, the first unless a program changes it.
  if (name == "cpu" && index == 0) return name;
  return name + ":" + std::to_string(index);
}

}  // namespace tensorlint::placement
