#include "base/escape.h"

#include <fmt/format.h>

#include <cstdint>

namespace tensorlint {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  ///< 0: the bytes are no UTF-8
};

CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(text[at]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  std::uint32_t value = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    value = value << 6 | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  return {value, length};
}

/// Characters that change how what stands around them is shown, or that cannot be seen.
bool is_deceptive(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x180e ||
         (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

void add_hexadecimal(std::string& text, std::uint32_t number, std::uint32_t digits) {
  while (digits-- > 0) text += "0123456789abcdef"[number >> 4U * digits & 0xfU];
}

void add_visible(std::string& text, std::uint32_t c) {
  switch (c) {
    case '\n':
      text += "\\n";
      break;
    case '\t':
      text += "\\t";
      break;
    case '\r':
      text += "\\r";
      break;
    default:
      text += c < 0x10000 ? "\\u" : "\\U";
      add_hexadecimal(text, c, c < 0x10000 ? 4 : 8);
  }
}

bool is_plain(std::string_view text) {
  for (const char c : text)
    if (static_cast<std::uint8_t>(c) < 0x20 || static_cast<std::uint8_t>(c) >= 0x7f) return false;
  return true;
}

bool continues(char c) { return (static_cast<std::uint8_t>(c) & 0xc0U) == 0x80U; }

/// Cuts the middle out of an escaped (so valid) text, between characters.
std::string shortened(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  constexpr std::string_view kGap = "…";
  const std::size_t kept = limit > kGap.size() ? limit - kGap.size() : 0;
  std::size_t head = kept - kept / 4, tail = text.size() - kept / 4;
  while (head > 0 && continues(text[head])) --head;
  while (tail < text.size() && continues(text[tail])) ++tail;
  return text.substr(0, head).append(kGap).append(text, tail);
}

}  // namespace

std::string escape_for_display(std::string_view text, std::size_t limit) {
  // What the shortening drops is not escaped: a character becomes no shorter.
  const bool is_long = text.size() > 2 * limit + 16;
  const std::string_view head = is_long ? text.substr(0, limit + 8) : text,
                         tail = is_long ? text.substr(text.size() - limit / 4 - 8) : std::string_view();
  std::string escaped;
  if (is_plain(head) && is_plain(tail)) return shortened(escaped.append(head).append(tail), limit);
  const auto add = [&escaped](std::string_view part, std::size_t most) {
    while (!part.empty() && escaped.size() < most) {
      const CodePoint point = decode(part);
      const std::size_t length = point.length == 0 ? 1 : point.length;
      if (point.length == 0) {
        escaped += "\\x";
        add_hexadecimal(escaped, static_cast<std::uint8_t>(part.front()), 2);
      } else if (is_deceptive(point.value)) {
        add_visible(escaped, point.value);
      } else {
        escaped += part.substr(0, length);
      }
      part.remove_prefix(length);
    }
  };
  add(head, is_long ? limit + 8 : std::string::npos);
  add(tail, std::string::npos);
  return shortened(std::move(escaped), limit);
}

std::string escape_identifier(std::string_view text) { return escape_for_display(text, kIdentifierLength); }

std::string quoted_for_people(std::string_view name) { return fmt::format("`{}`", escape_for_display(name)); }

}  // namespace tensorlint
