#include "analyzer/config/toml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/small_file.h"

namespace tensorlint::config {
namespace {

/// toml++ recurses once for each part of a key and each value in another one. No file of ours needs more than 3.
constexpr std::size_t kMaxKeyParts = 16, kMaxNestedBrackets = 32;
/// Each part of a key may be a table of some 200 bytes, and each comma parts values of 80: dots, commas, brackets and
/// equals signs outside of texts.
constexpr std::size_t kMaxMarks = std::size_t{1} << 17;

/// Finds what nests too deep for a recursive parser, before there is one. Strings and comments are distinguished from
/// keys as toml++ does it; text that it would refuse may be taken either way.
class NestingScan {
 public:
  explicit NestingScan(std::string_view text) : text_(text) {}

  /// What is wrong at position().
  std::optional<std::string> fault() {
    while (at_ < text_.size()) {
      if (marks_ > kMaxMarks) return fmt::format("more than {} keys, values and brackets", kMaxMarks);
      switch (text_[at_]) {
        case '#':
          at_ = std::min(text_.find_first_of(kLineEnds, at_), text_.size());
          continue;
        case '"':
        case '\'':
          skip_string(text_[at_]);
          continue;
        case '.':
          ++marks_;
          if (++dots_ >= kMaxKeyParts) return fmt::format("a key of more than {} parts", kMaxKeyParts);
          break;
        case '[':
        case '{':
          dots_ = 0;
          ++marks_;
          if (++depth_ > kMaxNestedBrackets)
            return fmt::format("brackets are nested deeper than {}", kMaxNestedBrackets);
          break;
        case ']':
        case '}':
          dots_ = 0;
          if (depth_ > 0) --depth_;
          break;
        case ',':
        case '=':
          ++marks_;
          [[fallthrough]];
        case '\n':
        case '\v':
        case '\f':
        case '\r':
          dots_ = 0;
          break;
        default:
          break;
      }
      ++at_;
    }
    return std::nullopt;
  }

  Position position() const {
    const std::string_view before = text_.substr(0, at_);
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    return {.line = 1 + static_cast<std::uint32_t>(std::ranges::count(before, '\n')),
            .column = static_cast<std::uint32_t>(at_ - line_start + 1)};
  }

 private:
  static constexpr std::string_view kLineEnds = "\n\v\f\r";

  void skip_string(char quote) {
    const std::string triple(3, quote);
    const bool is_long = text_.substr(at_).starts_with(triple);
    at_ += is_long ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      if (quote == '"' && text_[at_] == '\\') {
        ++at_;
      } else if (is_long && text_.substr(at_).starts_with(triple)) {
        at_ += 3;
        for (int i = 0; i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) ++at_;  // the text ends in quotes
        return;
      } else if (!is_long && (text_[at_] == quote || kLineEnds.find(text_[at_]) != std::string_view::npos)) {
        ++at_;
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0, dots_ = 0, depth_ = 0, marks_ = 0;
};

Error error_at(const std::string& path, const Position& position, std::string_view message) {
  return {fmt::format("{}:{}:{}: {}", path, position.line, position.column, message), position};
}

}  // namespace

Error toml_error(const std::string& path, const toml::source_region& source, std::string_view message) {
  return error_at(path, {.line = source.begin.line, .column = static_cast<std::uint32_t>(source.begin.column)},
                  message);
}

Result<toml::table> read_toml_file(const std::string& path, std::size_t most_bytes, bool is_named_by_found) {
  const Result<std::string> text = read_small_file(path, most_bytes);
  if (!text) return Error{fmt::format("{}: {}", path, text.error().message), {}};
  NestingScan nesting(*text);
  if (const auto fault = nesting.fault()) return error_at(path, nesting.position(), *fault);
  try {
    return toml::parse(*text, path);
  } catch (const toml::parse_error& error) {
    return toml_error(path, error.source(), is_named_by_found ? "not TOML" : error.description());
  }
}

}  // namespace tensorlint::config
