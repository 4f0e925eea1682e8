#include "ir/writers/text/places.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace tensorlint::text {
namespace {

bool is_name(const Token& token) { return token.kind == TokenKind::kIdentifier || token.kind == TokenKind::kString; }

std::string name_of(const Token& token) { return token.escaped ? unescaped(token.text) : std::string(token.text); }

}  // namespace

std::size_t TextPlaces::end_of(const Token& token) const {
  return static_cast<std::size_t>(token.text.data() - file_.data()) + token.text.size() +
         (token.kind == TokenKind::kString ? 1 : 0);
}

Lexer TextPlaces::at(const Position& position) const { return Lexer(file_, position); }

std::optional<std::size_t> TextPlaces::skip(Lexer& lexer) const {
  int depth = 0;
  while (true) {
    const Token token = lexer.take();
    if (token.kind == TokenKind::kEnd || token.kind == TokenKind::kBad) return std::nullopt;
    if (token.is('(') || token.is('[') || token.is('{') || token.is('<')) ++depth;
    if (token.is(')') || token.is(']') || token.is('}') || token.is('>')) --depth;
    if (depth <= 0) return end_of(token);
  }
}

std::optional<NodeText> TextPlaces::find(NodeId id) const {
  const Node& node = model_.node(id);
  if (node.position.offset >= file_.size()) return std::nullopt;
  Lexer lexer = at(node.position);
  NodeText found;
  found.span.begin = node.position.offset;
  if (lexer.peek().is('[') && !skip(lexer)) return std::nullopt;
  for (bool named = false, more = true; more;) {
    const Token token = lexer.take();
    if (token.kind == TokenKind::kEnd) return std::nullopt;
    more = !token.is('=');
    if (is_name(token))
      found.results.push_back({token.position.offset, end_of(token)});
    else if (!named)
      found.results.push_back({token.position.offset, token.position.offset});
    named = is_name(token);
  }
  for (bool more = true; more;) {
    const Token name = lexer.take();
    if (!is_name(name)) return std::nullopt;
    found.behind_operator = end_of(name);
    more = lexer.accept('.') || lexer.accept(':');
  }
  if (!find_attributes(lexer, found) || !lexer.accept('(')) return std::nullopt;
  bool open = true;  // a place for an operand, not filled yet
  while (true) {
    const Token token = lexer.take();
    if (token.kind == TokenKind::kEnd) return std::nullopt;
    const bool last = token.is(')');
    if (is_name(token)) {
      found.operands.push_back({token.position.offset, end_of(token)});
      open = false;
    } else if (token.is(',') || (last && open && found.operands.size() < node.operand_count)) {
      if (open) found.operands.push_back({token.position.offset, token.position.offset});
      open = true;
    }
    if (last) {
      found.operands_end = token.position.offset;
      found.span.end = end_of(token);
      break;
    }
  }
  if (found.operands.size() < node.operand_count) return std::nullopt;
  if (found.attributes.empty() && lexer.peek().is('<') && !find_attributes(lexer, found)) return std::nullopt;
  if (found.attributes_end) found.span.end = std::max(found.span.end, *found.attributes_end + 1);
  found.begins_line = begins_line(found.span.begin);
  found.ends_line = ends_line(found.span.end);
  return found;
}

/// Steps over one entry of a list in angle brackets, and the comma behind it; `visit` sees its tokens, of a bracket the
/// opening one.
template <typename Visit>
std::optional<Span> TextPlaces::entry(Lexer& lexer, const Visit& visit) const {
  Span span{lexer.peek().position.offset, 0};
  while (!lexer.peek().is(',') && !lexer.peek().is('>')) {
    visit(lexer.peek());
    const auto end = skip(lexer);
    if (!end) return std::nullopt;
    span.end = *end;
  }
  lexer.accept(',');
  return span;
}

bool TextPlaces::find_attributes(Lexer& lexer, NodeText& found) const {
  const std::size_t begin = found.operands_end == 0 ? found.behind_operator : found.operands_end + 1;
  if (!lexer.accept('<')) return true;
  found.attributes_begin = begin;
  while (!lexer.peek().is('>')) {
    const Token name = lexer.peek();
    if (!is_name(name)) return false;
    const auto span = entry(lexer, [](const Token&) {});
    if (!span) return false;
    found.attributes.push_back({.name = name_of(name), .span = *span});
  }
  found.attributes_end = lexer.take().position.offset;
  return true;
}

std::optional<GraphText> TextPlaces::find(GraphId id) const {
  const Graph& graph = model_.graph(id);
  if (graph.position.offset >= file_.size()) return std::nullopt;
  Lexer lexer = at(graph.position);
  GraphText found;
  if (lexer.peek().is('<') && !skip(lexer)) return std::nullopt;  // a function's domain and imports
  lexer.advance();                                                // the name
  if (lexer.peek().is('<') && !skip(lexer)) return std::nullopt;  // a function's attributes
  if (lexer.peek().is('(') && !skip(lexer)) return std::nullopt;
  if (lexer.take().kind != TokenKind::kArrow) return std::nullopt;
  if (lexer.peek().is('(') && !skip(lexer)) return std::nullopt;
  if (lexer.accept('<')) {
    while (!lexer.peek().is('>')) {
      DeclarationText declaration;
      const auto span = entry(lexer, [&](const Token& token) {
        declaration.has_value = declaration.has_value || token.is('=');
        if (is_name(token) && !declaration.has_value) declaration.name = name_of(token);
      });
      if (!span) return std::nullopt;
      declaration.span = *span;
      found.declarations.push_back(std::move(declaration));
    }
    found.declarations_end = lexer.take().position.offset;
  }
  if (!lexer.peek().is('{')) return std::nullopt;
  found.nodes_begin = lexer.peek().position.offset;
  return found;
}

std::optional<std::size_t> TextPlaces::mark_of(const Comment& comment) const {
  const std::vector<std::size_t>& begins = line_begins();
  if (comment.line == 0 || comment.line > begins.size()) return std::nullopt;
  const std::size_t begin = begins[comment.line - 1];
  std::size_t end = line_end(begin);
  const auto is_blank = [&](std::size_t at) { return kBlanks.find(file_[at]) != std::string_view::npos; };
  while (end > begin && is_blank(end - 1)) --end;
  if (end < begin + comment.text.size() || file_.substr(end - comment.text.size(), comment.text.size()) != comment.text)
    return std::nullopt;
  std::size_t mark = end - comment.text.size();
  while (mark > begin && is_blank(mark - 1)) --mark;
  if (mark == begin || file_[mark - 1] != '#') return std::nullopt;
  return mark - 1;
}

std::size_t TextPlaces::line_begin(std::size_t at) const {
  if (at == 0 || file_[at - 1] == '\n') return at;
  return *std::prev(std::ranges::upper_bound(line_begins(), at));
}

const std::vector<std::size_t>& TextPlaces::line_begins() const {
  if (line_begins_.empty())
    for (std::size_t begin = 0; begin < file_.size(); begin = std::min(file_.find('\n', begin), file_.size() - 1) + 1)
      line_begins_.push_back(begin);
  return line_begins_;
}

std::uint32_t TextPlaces::line_number(std::size_t at) const {
  const std::vector<std::size_t>& begins = line_begins();
  return static_cast<std::uint32_t>(std::ranges::upper_bound(begins, at) - begins.begin());
}

std::string_view TextPlaces::indentation(std::size_t at) const {
  constexpr std::size_t kMostBlanks = 64;
  const std::size_t begin = line_begin(at);
  return file_.substr(begin, std::min(at - begin, kMostBlanks));
}

std::size_t TextPlaces::line_end(std::size_t at) const {
  const auto next = std::ranges::upper_bound(line_begins(), at);
  return next == line_begins().end() ? file_.size() : *next;
}

bool TextPlaces::begins_line(std::size_t at) const {
  while (at > 0 && (file_[at - 1] == ' ' || file_[at - 1] == '\t')) --at;
  return at == 0 || file_[at - 1] == '\n';
}

bool TextPlaces::ends_line(std::size_t at) const {
  const std::size_t next = file_.find_first_not_of(" \t\r", at);
  return next == std::string_view::npos || file_[next] == '\n' || file_[next] == '#';
}

std::string_view TextPlaces::line_break() const {
  const std::size_t newline = file_.find('\n');
  return newline != std::string_view::npos && newline > 0 && file_[newline - 1] == '\r' ? "\r\n" : "\n";
}

}  // namespace tensorlint::text
