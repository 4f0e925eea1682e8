#include "analyzer/findings/kept.h"

#include <algorithm>

namespace tensorlint::findings {

std::string kept(std::string_view text, std::size_t most) {
  std::size_t end = std::min(text.size(), most);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

}  // namespace tensorlint::findings
