#include "base/glob.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tensorlint {
namespace {

/// What a position of the glob stands for.
struct Piece {
  enum class Kind { kByte, kOne, kMany } kind;
  char byte = 0;
  bool crosses = false;  ///< also takes `/`
  std::size_t next = 0;
};

/// `*` stops at `/`, `**/` also stands for nothing.
Piece piece_at(std::string_view glob, std::size_t at) {
  if (glob[at] == '?') return {.kind = Piece::Kind::kOne, .next = at + 1};
  if (glob[at] != '*') return {.kind = Piece::Kind::kByte, .byte = glob[at], .next = at + 1};
  std::size_t next = at + 1;
  while (next < glob.size() && glob[next] == '*') ++next;
  return {.kind = Piece::Kind::kMany, .crosses = next > at + 1, .next = next};
}

/// Time: the square of the text's length, whatever the pattern.
bool matches_whole_path(std::string_view glob, std::string_view text) {
  std::vector<char> reached(text.size() + 1, 0),
      after;  // by position: the glob up to here matches the text up to there
  reached[0] = 1;
  for (std::size_t g = 0; g < glob.size();) {
    const Piece piece = piece_at(glob, g);
    after.assign(text.size() + 1, 0);
    const auto takes = [&](char c) {
      return piece.kind == Piece::Kind::kByte ? c == piece.byte : piece.crosses || c != '/';
    };
    if (piece.kind == Piece::Kind::kMany) {
      const bool whole_folders =
          piece.crosses && piece.next < glob.size() && glob[piece.next] == '/' && (g == 0 || glob[g - 1] == '/');
      bool any = false;  // some earlier position was reached and everything since can be taken
      for (std::size_t t = 0; t <= text.size(); ++t) {
        any = (any && (t == 0 || takes(text[t - 1]))) || reached[t] != 0;
        // `**/` takes folders: nothing, or text up to and with a `/`.
        after[t] = whole_folders ? static_cast<char>(reached[t] != 0 || (any && t > 0 && text[t - 1] == '/'))
                                 : static_cast<char>(any);
      }
      g = whole_folders ? piece.next + 1 : piece.next;
      while (whole_folders && glob.substr(g).starts_with("**/")) g += 3;  // says nothing more
    } else {
      for (std::size_t t = 0; t < text.size(); ++t) after[t + 1] = static_cast<char>(reached[t] != 0 && takes(text[t]));
      g = piece.next;
    }
    reached.swap(after);
    if (std::ranges::find(reached, 1) == reached.end()) return false;
  }
  return reached[text.size()] != 0;
}

/// A part of a glob without stars, at the beginning of `text`.
bool matches_there(std::string_view part, std::string_view text) {
  return part.size() <= text.size() && std::equal(part.begin(), part.end(), text.begin(),
                                                  [](char wanted, char c) { return wanted == '?' || wanted == c; });
}

/// Where a part of a glob without stars is first in `text`; npos: nowhere. All places where it may have begun are
/// followed at the same time, a bit for each (Baeza-Yates and Gonnet's shift-and): a 64th of the product of both
/// lengths.
std::size_t find_long_with_wildcards(std::string_view part, std::string_view text) {
  constexpr std::size_t kBits = 64;
  const std::size_t words = (part.size() + kBits - 1) / kBits;
  std::vector<std::uint64_t> takes(256 * words);  // by byte: the positions of the part that ask for it
  std::vector<std::uint64_t> takes_any(words);
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << (i % kBits);
    (part[i] == '?' ? takes_any[i / kBits] : takes[static_cast<unsigned char>(part[i]) * words + i / kBits]) |= bit;
  }
  std::vector<std::uint64_t> reached(words);
  const std::uint64_t done = std::uint64_t{1} << ((part.size() - 1) % kBits);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::uint64_t* const byte = &takes[static_cast<unsigned char>(text[at]) * words];
    std::uint64_t carry = 1;
    for (std::size_t word = 0; word < words; ++word) {
      const std::uint64_t high = reached[word] >> (kBits - 1);
      reached[word] = (reached[word] << 1 | carry) & (byte[word] | takes_any[word]);
      carry = high;
    }
    if ((reached.back() & done) != 0) return at + 1 - part.size();
  }
  return std::string_view::npos;
}

std::size_t find_with_wildcards(std::string_view part, std::string_view text) {
  // Names are short, and the table of bytes is not.
  constexpr std::size_t kShort = 512;
  if (part.size() * text.size() > kShort) return find_long_with_wildcards(part, text);
  for (std::size_t at = 0; at + part.size() <= text.size(); ++at)
    if (matches_there(part, text.substr(at))) return at;
  return std::string_view::npos;
}

std::size_t find_part(std::string_view part, std::string_view text) {
  if (part.size() > text.size()) return std::string_view::npos;
  if (part.find_first_not_of('?') == std::string_view::npos) return 0;
  if (part.find('?') != std::string_view::npos) return find_with_wildcards(part, text);
  // Linear whatever the texts, which string_view's own find is not.
  const void* const found = ::memmem(text.data(), text.size(), part.data(), part.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace

bool matches_name(std::string_view glob, std::string_view name) {
  if (glob.empty()) return true;
  const std::size_t first = glob.find('*');
  if (first == std::string_view::npos) return glob.size() == name.size() && matches_there(glob, name);
  const std::size_t last = glob.rfind('*');
  const std::string_view begin = glob.substr(0, first), end = glob.substr(last + 1);
  if (name.size() < begin.size() + end.size() || !matches_there(begin, name) ||
      !matches_there(end, name.substr(name.size() - end.size())))
    return false;
  name = name.substr(begin.size(), name.size() - begin.size() - end.size());
  // Between two stars the first match leaves most to the parts that follow.
  for (std::size_t at = first; at < last;) {
    const std::size_t next = glob.find('*', at + 1);
    const std::string_view part = glob.substr(at + 1, next - at - 1);
    const std::size_t found = find_part(part, name);
    if (found == std::string_view::npos) return false;
    name.remove_prefix(found + part.size());
    at = next;
  }
  return true;
}

bool matches_path(std::string_view glob, std::string_view path) {
  if (glob.empty()) return true;
  if (glob.find('/') == std::string_view::npos) path = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return matches_whole_path(glob, path);
}

}  // namespace tensorlint
