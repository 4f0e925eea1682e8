#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensorlint::runtime {

/// A regular expression in RE2's syntax, but for Unicode classes (\p) and single bytes (\C). Matching follows all
/// alternatives at once: time is at most pattern length times text length, whatever the two are.
class RegularExpression {
 public:
  /// Throws RunFault where the pattern is malformed or too large.
  explicit RegularExpression(std::string_view pattern);

  /// The whole text, which is UTF-8, matches.
  bool matches(std::string_view text, std::pmr::memory_resource* memory) const;

  /// Code points from `first` to `second`.
  using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  enum class Assertion : std::uint8_t { kTextBegin, kTextEnd, kLineBegin, kLineEnd, kWordEdge, kInsideWord };
  struct State {
    enum class Kind : std::uint8_t { kTake, kSplit, kAssert, kAccept };
    Kind kind = Kind::kAccept;
    Assertion assertion = Assertion::kTextBegin;
    std::shared_ptr<const Ranges> ranges{};  ///< kTake: what is taken, one list for all copies of a repeated part
    std::size_t next = 0;                    ///< the state after
    std::size_t other = 0;                   ///< kSplit: the other one
  };

 private:
  std::vector<State> states_;
  std::size_t begin_ = 0;
};

/// Code points of UTF-8; a byte that is not part of a character is U+FFFD.
std::pmr::vector<std::uint32_t> code_points(std::string_view text, std::pmr::memory_resource* memory);
void append_utf8(std::pmr::string& text, std::uint32_t code_point);

}  // namespace tensorlint::runtime
