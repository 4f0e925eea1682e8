#include "base/glob.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace tensorlint {
namespace {

using Bits = std::vector<std::uint64_t>;
constexpr std::size_t kWordBits = 64;

/// What a path has at its positions, a bit for each, one past its end included.
class PathBits {
 public:
  explicit PathBits(std::string_view path)
      : words_(path.size() / kWordBits + 1), bytes_(256 * words_), inside_(words_) {
    for (std::size_t at = 0; at < path.size(); ++at) {
      const std::uint64_t bit = std::uint64_t{1} << (at % kWordBits);
      bytes_[static_cast<unsigned char>(path[at]) * words_ + at / kWordBits] |= bit;
      if (path[at] != '/') inside_[at / kWordBits] |= bit;
    }
  }
  std::size_t words() const { return words_; }
  /// Where this byte is.
  const std::uint64_t* of(char byte) const { return &bytes_[static_cast<unsigned char>(byte) * words_]; }
  /// Where any other byte than `/` is.
  const std::uint64_t* inside() const { return inside_.data(); }

 private:
  std::size_t words_;
  Bits bytes_, inside_;
};

/// Positions after one of the bytes at `takes`.
void step(Bits& reached, const std::uint64_t* takes) {
  std::uint64_t carry = 0;
  for (std::size_t word = 0; word < reached.size(); ++word) {
    const std::uint64_t taken = reached[word] & takes[word];
    reached[word] = taken << 1 | carry;
    carry = taken >> (kWordBits - 1);
  }
}

/// And positions after any number of the bytes at `takes`: a sum carries from where a run of ones is entered to its end
/// (Parabix's MatchStar).
void step_any(Bits& reached, const std::uint64_t* takes) {
  std::uint64_t carry = 0;
  for (std::size_t word = 0; word < reached.size(); ++word) {
    const std::uint64_t entered = reached[word] & takes[word], sum = entered + takes[word], all = sum + carry;
    carry = static_cast<std::uint64_t>(sum < entered || all < sum);
    reached[word] |= all ^ takes[word];
  }
}

/// And all positions after the first one; with `folders` only those after a `/`.
void step_across(Bits& reached, const std::uint64_t* folders) {
  std::uint64_t beyond = 0, carry = 0;
  for (std::size_t word = 0; word < reached.size(); ++word) {
    const std::uint64_t first = reached[word] & (~reached[word] + 1);
    const std::uint64_t from = beyond != 0 ? beyond : ~first + 1;  // the lowest bit and all above it
    if (first != 0) beyond = ~std::uint64_t{0};
    if (folders == nullptr) {
      reached[word] |= from;
    } else {
      reached[word] |= from & (folders[word] << 1 | carry);
      carry = folders[word] >> (kWordBits - 1);
    }
  }
}

}  // namespace

struct PathMatcher::Whole {
  std::string_view text;
  std::optional<PathBits> bits;
  Bits reached;  // by position: the glob up to here matches the text up to there

  bool matches(std::string_view glob, std::uint64_t& steps);
};

/// Time: the product of both lengths, a 64th of it.
bool PathMatcher::Whole::matches(std::string_view glob, std::uint64_t& steps) {
  // Most patterns begin with a folder that most paths are not in, or end with another name.
  std::size_t at = std::min(glob.find_first_of("*?"), glob.size());
  if (!text.starts_with(glob.substr(0, at))) return false;
  if (at == glob.size()) return at == text.size();
  std::string_view end = glob.substr(glob.find_last_of("*?") + 1);
  if (end.starts_with('/')) end.remove_prefix(1);  // of `**/`, which may stand for nothing
  if (!text.ends_with(end)) return false;
  if (!bits) bits.emplace(text);
  const PathBits& path = *bits;
  reached.assign(path.words(), 0);
  reached[at / kWordBits] = std::uint64_t{1} << (at % kWordBits);
  while (at < glob.size()) {
    steps += path.words();
    if (steps > kMostSteps) return false;
    if (glob[at] != '*') {
      step(reached, glob[at] == '?' ? path.inside() : path.of(glob[at]));
      ++at;
    } else {
      // `*` stops at `/`, `**/` also stands for nothing.
      const bool begins_folder = at == 0 || glob[at - 1] == '/';
      const std::size_t next = std::min(glob.find_first_not_of('*', at), glob.size());
      const bool crosses = next > at + 1;
      at = next;
      if (!crosses) {
        step_any(reached, path.inside());
      } else if (begins_folder && glob.substr(at).starts_with('/')) {
        step_across(reached, path.of('/'));
        ++at;
        while (glob.substr(at).starts_with("**/")) at += 3;  // says nothing more
      } else {
        step_across(reached, nullptr);
      }
    }
    if (std::ranges::all_of(reached, [](std::uint64_t word) { return word == 0; })) return false;
  }
  return (reached[text.size() / kWordBits] >> (text.size() % kWordBits) & 1) != 0;
}

PathMatcher::PathMatcher(std::string_view path)
    : path_(std::make_unique<Whole>(Whole{path, {}, {}})),
      // npos + 1 is 0
      name_(std::make_unique<Whole>(Whole{path.substr(path.rfind('/') + 1), {}, {}})) {}

PathMatcher::~PathMatcher() = default;

bool PathMatcher::matches(std::string_view glob) {
  return glob.empty() || (glob.find('/') == std::string_view::npos ? name_ : path_)->matches(glob, steps_);
}

namespace {

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

std::uint64_t steps_of_match(std::string_view glob, std::string_view name) {
  constexpr std::uint64_t kCall = 2, kTable = 64;  // kTable: of a part, for 64 bytes of it
  if (glob.empty()) return 1;
  const std::size_t first = glob.find('*');
  if (first == std::string_view::npos) return kCall + std::min(glob.size(), name.size()) / 8;
  // A name that all but repeats a part takes some 7 ns for each of its bytes.
  const std::uint64_t linear = kCall + glob.size() / 2 + name.size() * 3 / 4;
  if (glob.find('?', first) == std::string_view::npos) return linear;
  const auto stars = static_cast<std::uint64_t>(std::ranges::count(glob, '*'));
  // A part is looked for once those before it were found, each in bytes of its own.
  const std::uint64_t parts = std::min<std::uint64_t>(stars, name.size() + 1) + glob.size() / 64;
  return linear + kTable * parts + glob.size() / 64 * name.size();
}

}  // namespace tensorlint
