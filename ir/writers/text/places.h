#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/model.h"
#include "ir/text/lexer.h"

namespace tensorlint::text {

/// Bytes [begin, end) of the file.
struct Span {
  std::size_t begin = 0, end = 0;
};

struct AttributeText {
  std::string name;
  Span span;  ///< name, kind and value
};

/// Where the parts of a node stand.
struct NodeText {
  Span span;
  bool begins_line = false;  ///< only blanks before it
  bool ends_line = false;    ///< only blanks behind it, perhaps a comment
  std::size_t behind_operator = 0;
  std::vector<Span> results;     ///< an absent one has no length
  std::vector<Span> operands;    ///< an absent one has no length
  std::size_t operands_end = 0;  ///< the closing bracket
  std::vector<AttributeText> attributes;
  std::size_t attributes_begin = 0;  ///< behind the operator, or behind the operands: what stands before the list
  std::optional<std::size_t> attributes_end;  ///< the closing bracket, where there is an opening one
};

/// One entry between the angle brackets of a graph.
struct DeclarationText {
  std::string name;
  bool has_value = false;
  Span span;
};

/// Where the parts of a graph stand.
struct GraphText {
  std::vector<DeclarationText> declarations;
  std::optional<std::size_t> declarations_end;  ///< the closing bracket, where there is an opening one
  std::size_t nodes_begin = 0;                  ///< the opening brace
};

/// Where things stand in the text that a model was read from. What is not found there gives nullopt.
class TextPlaces {
 public:
  TextPlaces(std::string_view file, const Model& model) : file_(file), model_(model) {}

  std::optional<NodeText> find(NodeId id) const;
  std::optional<GraphText> find(GraphId id) const;
  /// Where the comment's mark stands. Its line may have others, inside strings.
  std::optional<std::size_t> mark_of(const Comment& comment) const;

  /// Steps over one token, or over a bracket with all that it holds; the end of it. nullopt at the end of the text.
  std::optional<std::size_t> skip(Lexer& lexer) const;

  std::size_t line_begin(std::size_t at) const;
  /// Behind the line break, or the end of the text.
  std::size_t line_end(std::size_t at) const;
  /// How the file ends its lines.
  std::string_view line_break() const;
  /// The blanks that a line begins with up to there, no more than people write: any number of lines get them.
  std::string_view indentation(std::size_t at) const;
  /// From 1, of the line that the byte is on.
  std::uint32_t line_number(std::size_t at) const;

 private:
  bool begins_line(std::size_t at) const;
  bool ends_line(std::size_t at) const;
  Lexer at(const Position& position) const;
  std::size_t end_of(const Token& token) const;
  template <typename Visit>
  std::optional<Span> entry(Lexer& lexer, const Visit& visit) const;
  bool find_attributes(Lexer& lexer, NodeText& found) const;

  const std::vector<std::size_t>& line_begins() const;

  std::string_view file_;
  const Model& model_;
  mutable std::vector<std::size_t> line_begins_;  // made when it is asked for
};

}  // namespace tensorlint::text
