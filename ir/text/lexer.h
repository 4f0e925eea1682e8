#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph/model.h"

namespace tensorlint::text {

enum class TokenKind : std::uint8_t {
  kEnd,
  kIdentifier,  ///< [A-Za-z_][A-Za-z0-9_]*
  kString,      ///< between double quotes; a backslash takes the next byte as it is
  kInteger,     ///< -?[0-9]+
  kFloat,       ///< with a point or an exponent, or -inf, -infinity, -nan in any case
  kArrow,       ///< =>
  kPunctuation,
  kBad,  ///< `text` says what is wrong
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  ///< as written; a string without its quotes
  bool escaped = false;   ///< kString: holds backslashes
  Position position;

  bool is(char c) const { return kind == TokenKind::kPunctuation && text.front() == c; }
};

bool is_identifier(std::string_view text);

/// nan, inf or infinity in any case, without sign.
bool is_float_word(std::string_view text);

/// The string that a kString token means.
std::string unescaped(std::string_view text);

/// `text` in double quotes; backslash and quote escaped, other bytes as they are.
std::string quoted(std::string_view text);

/// Cuts a text into tokens, one ahead. Columns count bytes from 1.
class Lexer {
 public:
  explicit Lexer(std::string_view text);
  /// From a token's beginning: what stands before it is not read.
  Lexer(std::string_view text, const Position& begin) : text_(text) { seek(begin); }

  const Token& peek() const { return token_; }
  Token take() {
    Token taken = token_;
    advance();
    return taken;
  }
  bool accept(char c) {
    if (!token_.is(c)) return false;
    advance();
    return true;
  }
  /// Goes on at a token's beginning.
  void seek(const Position& position);
  /// From inside a graph's text (after its name) to behind the brace that closes its nodes. False, and nowhere
  /// sensible, when there is no such brace.
  bool skip_graph();
  void advance();

 private:
  void skip_blanks();
  void bump_line(std::size_t newline) {
    ++line_;
    line_start_ = newline + 1;
  }
  /// From the opening quote to behind the closing one; false at the end of the text.
  bool skip_string(bool& escaped);
  void lex_number();
  void bad(std::string_view message);

  std::string_view text_;
  std::size_t at_ = 0;  // behind token_
  std::uint32_t line_ = 1;
  std::size_t line_start_ = 0;
  Token token_;
};

}  // namespace tensorlint::text
