#include "ir/text/lexer.h"

#include <algorithm>

#include "base/letters.h"

namespace tensorlint::text {
namespace {

constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_word(char c) { return is_letter(c) || is_digit(c); }
constexpr std::string_view kPunctuation = "()[]{}<>=,:.?@";

}  // namespace

bool is_identifier(std::string_view text) {
  return !text.empty() && is_letter(text.front()) && std::all_of(text.begin(), text.end(), is_word);
}

bool is_float_word(std::string_view text) {
  if (text.size() != 3 && text.size() != 8) return false;
  const std::string lower = lower_case(text);
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

std::string unescaped(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    result += c;
  }
  result += '"';
  return result;
}

Lexer::Lexer(std::string_view text) : text_(text) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte order mark
  advance();
}

void Lexer::seek(const Position& position) {
  at_ = position.offset;
  line_ = position.line;
  line_start_ = position.offset + 1 - position.column;
  advance();
}

void Lexer::skip_blanks() {
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n') {
      bump_line(at_);
    } else if (c == '#') {
      const std::size_t newline = text_.find('\n', at_);
      at_ = newline == std::string_view::npos ? text_.size() : newline;
      if (at_ == text_.size()) return;
      bump_line(at_);
    } else if (!is_blank(c)) {
      return;
    }
  }
}

void Lexer::bad(std::string_view message) {
  token_.kind = TokenKind::kBad;
  token_.text = message;
}

bool Lexer::skip_string(bool& escaped) {
  for (++at_; at_ < text_.size(); ++at_) {
    switch (text_[at_]) {
      case '"':
        ++at_;
        return true;
      case '\n':
        bump_line(at_);
        break;
      case '\\':
        escaped = true;
        if (++at_ < text_.size() && text_[at_] == '\n') bump_line(at_);
        break;
      default:
        break;
    }
  }
  at_ = text_.size();
  return false;
}

void Lexer::lex_number() {
  const std::size_t start = at_;
  if (text_[at_] == '-') ++at_;
  token_.kind = TokenKind::kInteger;
  const auto digits = [this] {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ != from;
  };
  bool fine = true;
  if (!digits()) {
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    token_.kind = TokenKind::kFloat;
    fine = is_float_word(text_.substr(start + 1, at_ - start - 1));
  } else {
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      token_.kind = TokenKind::kFloat;
      digits();
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      token_.kind = TokenKind::kFloat;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      fine = digits();
    }
    if (at_ < text_.size() && is_word(text_[at_])) fine = false;
  }
  token_.text = text_.substr(start, at_ - start);
  if (!fine) bad("a malformed number");
}

void Lexer::advance() {
  skip_blanks();
  token_ = {};
  token_.position = {.offset = at_, .line = line_, .column = static_cast<std::uint32_t>(at_ - line_start_ + 1)};
  if (at_ >= text_.size()) return;
  const std::size_t start = at_;
  const char c = text_[at_];
  if (is_letter(c)) {
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    token_.kind = TokenKind::kIdentifier;
    token_.text = text_.substr(start, at_ - start);
  } else if (is_digit(c) || c == '-') {
    lex_number();
  } else if (c == '"') {
    token_.kind = TokenKind::kString;
    if (skip_string(token_.escaped))
      token_.text = text_.substr(start + 1, at_ - start - 2);
    else
      bad("a string without its closing quote");
  } else if (text_.substr(at_, 2) == "=>") {
    at_ += 2;
    token_.kind = TokenKind::kArrow;
    token_.text = text_.substr(start, 2);
  } else if (kPunctuation.find(c) != std::string_view::npos) {
    ++at_;
    token_.kind = TokenKind::kPunctuation;
    token_.text = text_.substr(start, 1);
  } else {
    ++at_;
    bad("a character that the syntax does not know");
  }
}

bool Lexer::skip_graph() {
  at_ = token_.position.offset;
  line_ = token_.position.line;
  line_start_ = token_.position.offset + 1 - token_.position.column;
  // The nodes' brace is the first one outside parentheses and angle brackets: constants have theirs inside.
  std::uint64_t braces = 0, parentheses = 0, angles = 0;
  for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
    const char c = text_[at_];
    if (c == '"') {
      bool escaped = false;
      if (!skip_string(escaped)) return false;
      continue;
    }
    ++at_;
    switch (c) {
      case '=':
        if (at_ < text_.size() && text_[at_] == '>') ++at_;
        break;
      case '(':
        ++parentheses;
        break;
      case '<':
        ++angles;
        break;
      case '{':
        ++braces;
        break;
      case ')':
        if (parentheses-- == 0) return false;
        break;
      case '>':
        if (angles-- == 0) return false;
        break;
      case '}':
        if (braces-- == 0) return false;
        if (braces == 0 && parentheses == 0 && angles == 0) {
          advance();
          return true;
        }
        break;
      default:
        break;
    }
  }
  return false;
}

}  // namespace tensorlint::text
