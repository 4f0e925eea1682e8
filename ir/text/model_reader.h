#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "ir/graph/model_builder.h"
#include "ir/text/lexer.h"
#include "ir/text/numbers.h"
#include "ir/text/words.h"

namespace tensorlint::text {

inline constexpr unsigned kMaxDepth = 64;      // of graphs
inline constexpr unsigned kMaxTypeDepth = 16;  // of types
/// What a model may take per byte of its text, and beside it, as for binary models: a text of tiny pieces grows most.
inline constexpr std::uint64_t kBudgetPerByte = 36;
inline constexpr std::uint64_t kBudgetBase = std::uint64_t{16} << 20;
// Estimates of what the model's tables take for each piece, spare room of growing vectors included.
inline constexpr std::uint64_t kNodeCost = 3 * sizeof(Node);
inline constexpr std::uint64_t kNameCost = 3 * sizeof(std::string_view) + 32;
inline constexpr std::uint64_t kValueCost = 3 * sizeof(Value) + 3 * sizeof(ValueId) + 64;
inline constexpr std::uint64_t kOperandCost = 3 * (sizeof(ValueId) + sizeof(NameId));
inline constexpr std::uint64_t kAttributeCost = 3 * sizeof(Attribute);
inline constexpr std::uint64_t kGraphCost = 3 * sizeof(Graph) + 128;
inline constexpr std::uint64_t kTensorCost = sizeof(Tensor) + 16;
inline constexpr std::uint64_t kDeclarationCost = 3 * 24;
inline constexpr std::uint64_t kItemCost = 3 * sizeof(MetadataEntry);

/// For messages: a piece of the text, and a token.
std::string shortened(std::string_view text);
std::string found(const Token& token);

/// Reads one model. Private to this folder: users call read_onnx_text.
class Reader {
 public:
  explicit Reader(std::string_view text) : lexer_(text), budget_(kBudgetBase + kBudgetPerByte * text.size()) {}

  bool read(std::string path);
  /// Null where the text asks for too much memory after all: see error(). `beside`: memory that goes with the model.
  std::optional<Model> finish(std::uint64_t beside);
  const Error& error() const { return error_; }

 private:
  /// A graph whose text waits: nodes of one graph have to be added without another's in between.
  struct Waiting {
    GraphId graph;
    Position position;
    unsigned depth;
  };
  struct Scope {
    GraphId graph = GraphId::kMain;
    NodeId node = NodeId::kNone;  ///< that gets the attributes
    unsigned depth = 0;
  };
  struct Type {
    TypeDecl leaf;       ///< dims are in dims_
    bool plain = false;  ///< the leaf is all of it, a tensor or a sparse tensor
  };
  using Kind = StructureFault::Kind;

  bool fail(Position position, std::string_view message) {
    error_ = {fmt::format("{} (line {}, column {})", message, position.line, position.column), position};
    return false;
  }
  /// Accounts for memory; false when the text asks for more than its length allows.
  bool charge(std::uint64_t memory) {
    charged_ += memory;
    return taken() + builder_.memory_made() <= budget_ || fail_budget();
  }
  bool fail_budget() {
    return fail(lexer_.peek().position,
                "so many tiny pieces that the model would take more than 16 MiB + 36 bytes per byte of its text");
  }
  std::uint64_t taken() { return charged_ + kNameCost * builder_.model().names.size(); }
  void fault(StructureFault fault) { builder_.fault(std::move(fault)); }
  void malformed(Kind kind, const Scope& scope, Position position, std::string message) {
    fault(
        {.kind = kind, .graph = scope.graph, .node = scope.node, .message = std::move(message), .position = position});
  }
  bool unexpected(std::string_view wanted) {
    const Token& token = lexer_.peek();
    return fail(token.position, fmt::format("expected {}, found {}", wanted, found(token)));
  }
  bool expect(char c, std::string_view where) {
    return lexer_.accept(c) || unexpected(fmt::format("`{}` {}", c, where));
  }
  bool expect_arrow() {
    if (lexer_.peek().kind != TokenKind::kArrow) return unexpected("`=>` before the outputs");
    lexer_.advance();
    return true;
  }
  bool at_name() const {
    return lexer_.peek().kind == TokenKind::kIdentifier || lexer_.peek().kind == TokenKind::kString;
  }
  bool at_type() const { return lexer_.peek().kind == TokenKind::kIdentifier && is_type_word(lexer_.peek().text); }

  std::string_view string_text(const Token& token) {
    return token.escaped ? builder_.copy(unescaped(token.text)) : token.text;
  }
  bool name(NameId& out, std::string_view wanted) {
    if (!at_name()) return unexpected(wanted);
    out = builder_.name(string_text(lexer_.take()));
    return true;
  }
  bool string(std::string_view& out, std::string_view wanted) {
    if (lexer_.peek().kind != TokenKind::kString) return unexpected(wanted);
    out = string_text(lexer_.take());
    return true;
  }
  template <typename Integer>
  bool integer(Integer& out, std::string_view wanted);
  template <typename Float>
  bool floating(Float& out);

  // ---- model, graphs, functions, nodes: model_reader.cc

  bool header();
  bool opsets(std::vector<OpsetImport>& imports, GraphId graph);
  bool metadata(std::vector<MetadataEntry>& entries);
  bool function();
  bool whole_graph(const Scope& scope);
  bool graph(const Scope& scope);
  bool inputs(const Scope& scope);
  bool outputs(const Scope& scope);
  bool declarations(const Scope& scope);
  bool initializer(const Type& type, const TypeDecl& declared, NameId value, Position position, const Scope& scope);
  bool nodes(const Scope& scope);
  bool node(const Scope& scope);
  bool operator_name(NameId& domain, NameId& op, NameId& overload);
  bool name_list(std::vector<NameId>& names, char close);

  // ---- attributes.cc

  bool attributes(std::vector<Attribute>& list, const Scope& scope);
  bool attribute_name(Attribute& attribute, const Scope& scope);
  bool attribute(Attribute& attribute, const Scope& scope);
  bool attribute_list(Attribute& attribute, const Scope& scope);
  bool attribute_value(Attribute& attribute, AttributeKind wanted, const Scope& scope);
  bool subgraph(Attribute& attribute, const Token& name_token, const Scope& scope);

  // ---- types.cc

  bool type(Type& out, const TypeDecl** declared, const Scope& scope);
  bool dtype(std::int32_t& code, std::string_view wanted);
  bool shape(bool& ranked);

  // ---- constants.cc

  bool constant(const Type& type, NameId name, Position position, const Scope& scope, const Tensor*& out);
  bool sparse_constant(const Type& type, Position position, const Scope& scope, const SparseTensor*& out);
  bool numeric_dims(const Type& type, Position position, std::span<const std::int64_t>& out);
  bool external(Tensor& tensor);
  bool elements(Tensor& tensor, const Scope& scope);
  bool element(DType dtype, std::string& raw);
  bool small_element(DType dtype, std::uint64_t& bits);

  Lexer lexer_;
  ModelBuilder builder_;
  std::uint64_t budget_, charged_ = 0;
  Error error_;
  std::vector<Waiting> waiting_;
  bool unclosed_ = false;  // the last of waiting_ has no end: reading it finds out why
  std::vector<DimDecl> dims_;
  std::vector<NameId> operands_, results_;
  std::vector<Attribute> attributes_;
};

template <typename Integer>
bool Reader::integer(Integer& out, std::string_view wanted) {
  const Token& token = lexer_.peek();
  if (token.kind != TokenKind::kInteger) return unexpected(wanted);
  const auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), out);
  if (error != std::errc() || end != token.text.data() + token.text.size())
    return fail(token.position, fmt::format("`{}` does not fit {}int{}", shortened(token.text),
                                            std::is_signed_v<Integer> ? "" : "u", sizeof(Integer) * 8));
  lexer_.advance();
  return true;
}

template <typename Float>
bool Reader::floating(Float& out) {
  const Token& token = lexer_.peek();
  const bool word = token.kind == TokenKind::kIdentifier && is_float_word(token.text);
  if (!word && token.kind != TokenKind::kInteger && token.kind != TokenKind::kFloat) return unexpected("a number");
  const auto value = decimal<Float>(token.text);
  if (!value)
    return fail(token.position, fmt::format("`{}` does not fit float{}", shortened(token.text), sizeof(Float) * 8));
  out = *value;
  lexer_.advance();
  return true;
}

}  // namespace tensorlint::text
