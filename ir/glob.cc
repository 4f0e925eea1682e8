#include "ir/glob.h"

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

/// Time: the product of both lengths, whatever the pattern.
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
    } else {
      for (std::size_t t = 0; t < text.size(); ++t) after[t + 1] = static_cast<char>(reached[t] != 0 && takes(text[t]));
      g = piece.next;
    }
    reached.swap(after);
  }
  return reached[text.size()] != 0;
}

}  // namespace

bool matches_name(std::string_view glob, std::string_view name) {
  if (glob.empty()) return true;
  // Linear in the name but for restarts at the last star.
  std::size_t g = 0, n = 0, star = std::string_view::npos, from = 0;
  while (n < name.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      from = n;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == name[n])) {
      ++g;
      ++n;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

bool matches_path(std::string_view glob, std::string_view path) {
  if (glob.empty()) return true;
  if (glob.find('/') == std::string_view::npos) path = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return matches_whole_path(glob, path);
}

}  // namespace tensorlint
