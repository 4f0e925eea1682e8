#include "ir/text/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "ir/text/lexer.h"
#include "ir/text/words.h"

namespace tensorlint {
namespace {

using text::Lexer;
using text::Token;
using text::TokenKind;

constexpr unsigned kMaxDepth = 64;
constexpr std::size_t kMaxOpsetImports = 1000;  // every operator looks through them; real models have a handful
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;
/// What a model may take per byte of its text, and beside it, as for binary models: a text of tiny pieces grows most.
constexpr std::uint64_t kBudgetPerByte = 36;
constexpr std::uint64_t kBudgetBase = std::uint64_t{16} << 20;
// Estimates of what the model's tables take for each piece, spare room of growing vectors included.
constexpr std::uint64_t kNodeCost = 3 * sizeof(Node);
constexpr std::uint64_t kNameCost = 3 * sizeof(std::string_view) + 32;
constexpr std::uint64_t kValueCost = 3 * sizeof(Value) + 3 * sizeof(ValueId) + 64;
constexpr std::uint64_t kOperandCost = 3 * (sizeof(ValueId) + sizeof(NameId));
constexpr std::uint64_t kAttributeCost = 3 * sizeof(Attribute);
constexpr std::uint64_t kGraphCost = 3 * sizeof(Graph) + 128;
constexpr std::uint64_t kTensorCost = sizeof(Tensor) + 16;
constexpr std::uint64_t kDeclarationCost = 3 * 24;
constexpr std::uint64_t kFaultCost = 3 * sizeof(StructureFault) + 160;
constexpr std::uint64_t kItemCost = 3 * sizeof(MetadataEntry);

constexpr std::size_t kSmallBytes = 4096;  // larger constants get memory of their own instead of an arena's

std::string shortened(std::string_view text) {
  constexpr std::size_t kMaxShown = 40;
  std::string shown;
  for (const char c : text.substr(0, kMaxShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += c;
  }
  if (text.size() > kMaxShown) shown += "...";
  return shown;
}

std::string found(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd: return "the end of the text";
    case TokenKind::kString: return fmt::format("the string \"{}\"", shortened(token.text));
    case TokenKind::kBad: return std::string(token.text);
    default: return fmt::format("`{}`", shortened(token.text));
  }
}

/// The nearest of a decimal number, which may be too small for T; nullopt where it is too large.
template <typename T>
std::optional<T> decimal(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  if (error != std::errc::result_out_of_range) return std::nullopt;
  // Out of range means beyond infinity or below the smallest subnormal: the power of ten of the first digit tells which.
  const bool negative = text.front() == '-';
  if (negative) text.remove_prefix(1);
  const std::size_t e = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, e);
  std::int64_t exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view power = text.substr(e + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    if (std::from_chars(power.data(), power.data() + power.size(), exponent).ec == std::errc::result_out_of_range)
      exponent = power.starts_with('-') ? std::numeric_limits<std::int32_t>::min() * std::int64_t{4} : std::int64_t{1} << 40;
  }
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  const auto leading = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(std::min(first, digits.size()));
  if (exponent + leading > 0) return std::nullopt;
  return negative ? -T{0} : T{0};
}

/// `value` rounded to nearest even in a format of 16 bits with that many mantissa bits: 10 for float16, 7 for bfloat16.
/// Nullopt where a finite value rounds to infinity.
std::optional<std::uint16_t> to_sixteen_bits(double value, int mantissa_bits) {
  const int bias = (1 << (14 - mantissa_bits)) - 1;
  const int exponent_bits = 15 - mantissa_bits;
  const auto sign = static_cast<unsigned>(std::signbit(value)) << 15;
  const unsigned infinity = ((1U << exponent_bits) - 1) << mantissa_bits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | 1U << (mantissa_bits - 1));
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  if (value == 0) return static_cast<std::uint16_t>(sign);
  int exponent = 0;
  std::frexp(value, &exponent);                            // |value| in [2^(exponent-1), 2^exponent)
  const int lowest = std::max(exponent - 1, 1 - bias);     // subnormals share the smallest exponent
  const double scaled = std::ldexp(std::fabs(value), mantissa_bits - lowest);
  const double floor = std::floor(scaled);
  auto units = static_cast<unsigned>(floor);
  const double rest = scaled - floor;
  if (rest > 0.5 || (rest == 0.5 && units % 2 == 1)) ++units;
  // A carry out of the mantissa moves into the exponent by itself.
  const unsigned bits = (static_cast<unsigned>(lowest + bias - 1) << mantissa_bits) + units;
  if (bits >= infinity) return std::nullopt;
  return static_cast<std::uint16_t>(sign | bits);
}

class NoMetadata : public Provenance {
 public:
  std::vector<MetadataEntry> node_metadata(const Node&) const override { return {}; }
  std::vector<MetadataEntry> value_metadata(ValueId) const override { return {}; }
};

AttributeKind single_of(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kFloats: return AttributeKind::kFloat;
    case AttributeKind::kInts: return AttributeKind::kInt;
    case AttributeKind::kStrings: return AttributeKind::kString;
    case AttributeKind::kTensors: return AttributeKind::kTensor;
    case AttributeKind::kGraphs: return AttributeKind::kGraph;
    case AttributeKind::kSparseTensors: return AttributeKind::kSparseTensor;
    case AttributeKind::kTypeProtos: return AttributeKind::kTypeProto;
    default: return AttributeKind::kUndefined;
  }
}

AttributeKind list_of(AttributeKind kind) {
  for (int code = 1; code <= 14; ++code)
    if (single_of(static_cast<AttributeKind>(code)) == kind) return static_cast<AttributeKind>(code);
  return AttributeKind::kUndefined;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : lexer_(text), budget_(kBudgetBase + kBudgetPerByte * text.size()) {}

  bool read(std::string path);
  Model finish() { return builder_.finish(); }
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
    TypeDecl leaf;  ///< dims are in dims_
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
    if (charged_ + kNameCost * builder_.model().names.size() <= budget_) return true;
    return fail(lexer_.peek().position, "so many tiny pieces that the model would take more than 16 MiB + 36 bytes per byte of its text");
  }
  void fault(StructureFault fault) {
    charged_ += kFaultCost + fault.message.size();
    builder_.fault(std::move(fault));
  }
  void malformed(Kind kind, const Scope& scope, Position position, std::string message) {
    fault({.kind = kind, .graph = scope.graph, .node = scope.node, .message = std::move(message), .position = position});
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
  bool at_name() const { return lexer_.peek().kind == TokenKind::kIdentifier || lexer_.peek().kind == TokenKind::kString; }
  bool at_type() const { return lexer_.peek().kind == TokenKind::kIdentifier && text::is_type_word(lexer_.peek().text); }

  std::string_view string_text(const Token& token) {
    return token.escaped ? builder_.copy(text::unescaped(token.text)) : token.text;
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

  bool header();
  bool opsets(std::vector<OpsetImport>& imports, GraphId graph);
  bool metadata(std::vector<MetadataEntry>& entries);
  bool function();
  bool whole_graph(const Scope& scope);
  bool graph(const Scope& scope);
  bool inputs(const Scope& scope);
  bool outputs(const Scope& scope);
  bool declarations(const Scope& scope);
  bool nodes(const Scope& scope);
  bool node(const Scope& scope);
  bool operator_name(NameId& domain, NameId& op, NameId& overload);
  bool name_list(std::vector<NameId>& names, char close);
  bool attributes(std::vector<Attribute>& list, const Scope& scope);
  bool attribute_name(Attribute& attribute, const Scope& scope);
  bool attribute(Attribute& attribute, const Scope& scope);
  bool attribute_list(Attribute& attribute, const Scope& scope);
  bool attribute_value(Attribute& attribute, AttributeKind wanted, const Scope& scope);
  bool subgraph(Attribute& attribute, const Token& name_token, const Scope& scope);
  bool type(Type& out, const TypeDecl** declared, const Scope& scope);
  bool dtype(std::int32_t& code, std::string_view wanted);
  bool shape(bool& ranked);
  bool constant(const Type& type, NameId name, Position position, const Scope& scope, const Tensor*& out);
  bool sparse_constant(const Type& type, Position position, const Scope& scope, const SparseTensor*& out);
  bool elements(Tensor& tensor, const Scope& scope);
  bool element(DType dtype, std::string& raw);
  bool small_element(DType dtype, std::uint64_t& bits);
  bool external(Tensor& tensor);
  bool numeric_dims(const Type& type, Position position, std::span<const std::int64_t>& out);

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
    return fail(token.position, fmt::format("`{}` does not fit {}int{}", shortened(token.text), std::is_signed_v<Integer> ? "" : "u",
                                            sizeof(Integer) * 8));
  lexer_.advance();
  return true;
}

template <typename Float>
bool Reader::floating(Float& out) {
  const Token& token = lexer_.peek();
  const bool word = token.kind == TokenKind::kIdentifier && text::is_float_word(token.text);
  if (!word && token.kind != TokenKind::kInteger && token.kind != TokenKind::kFloat) return unexpected("a number");
  const auto value = decimal<Float>(token.text);
  if (!value) return fail(token.position, fmt::format("`{}` does not fit float{}", shortened(token.text), sizeof(Float) * 8));
  out = *value;
  lexer_.advance();
  return true;
}

bool Reader::read(std::string path) {
  builder_.model().path = std::move(path);
  builder_.model().provenance = std::make_unique<NoMetadata>();
  if (!header()) return false;

  Graph main;
  main.position = lexer_.peek().position;
  if (!name(main.name, "the graph's name")) return false;
  const GraphId id = builder_.add_graph(std::move(main));
  if (!whole_graph({.graph = id})) return false;
  while (lexer_.peek().kind != TokenKind::kEnd)
    if (!function()) return false;
  return true;
}

bool Reader::header() {
  std::vector<OpsetImport> imports;
  if (lexer_.accept('<') && !lexer_.accept('>')) {
    do {
      const Token key = lexer_.peek();
      if (key.kind != TokenKind::kIdentifier) return unexpected("a field of the model (ir_version, opset_import, ...)");
      lexer_.advance();
      if (!expect(':', "behind the field's name")) return false;
      Model& model = builder_.model();
      std::string_view unused_text;
      std::int64_t unused_number = 0;
      bool fine = true;
      if (key.text == "ir_version")
        fine = integer(model.ir_version, "an integer");
      else if (key.text == "opset_import")
        fine = opsets(imports, GraphId::kMain);
      else if (key.text == "producer_name")
        fine = string(model.producer_name, "a string");
      else if (key.text == "producer_version")
        fine = string(model.producer_version, "a string");
      else if (key.text == "domain" || key.text == "doc_string")
        fine = string(unused_text, "a string");
      else if (key.text == "model_version")
        fine = integer(unused_number, "an integer");
      else if (key.text == "metadata_props")
        fine = metadata(model.metadata);
      else
        return fail(key.position, fmt::format("expected ir_version, opset_import, producer_name, producer_version, domain, "
                                              "model_version, doc_string or metadata_props, found {}", found(key)));
      if (!fine) return false;
    } while (lexer_.accept(','));
    if (!expect('>', "or `,` behind a field of the model")) return false;
  }
  builder_.add_opset_imports(std::move(imports));
  return true;
}

bool Reader::opsets(std::vector<OpsetImport>& imports, GraphId graph) {
  if (!expect('[', "before the opset imports")) return false;
  if (lexer_.accept(']')) return true;
  do {
    const Token domain = lexer_.peek();
    OpsetImport import;
    if (imports.size() == kMaxOpsetImports) return fail(domain.position, fmt::format("more than {} opset imports", kMaxOpsetImports));
    std::string_view text;
    if (!charge(kItemCost) || !string(text, "a domain in quotes") || !expect(':', "behind the domain") ||
        !integer(import.version, "the version of the opset"))
      return false;
    import.domain = builder_.name(text == "ai.onnx" ? std::string_view() : text);
    for (const OpsetImport& known : imports)
      if (known.domain == import.domain)
        fault({.kind = Kind::kDuplicateOpsetImport, .graph = graph,
                        .message = fmt::format("domain `{}` is imported twice", text), .position = domain.position});
    imports.push_back(import);
  } while (lexer_.accept(','));
  return expect(']', "or `,` behind an opset import");
}

bool Reader::metadata(std::vector<MetadataEntry>& entries) {
  if (!expect('[', "before the metadata")) return false;
  if (lexer_.accept(']')) return true;
  do {
    MetadataEntry entry;
    if (!charge(kItemCost) || !string(entry.key, "a key in quotes") || !expect(':', "behind the key") || !string(entry.value, "a value in quotes"))
      return false;
    entries.push_back(entry);
  } while (lexer_.accept(','));
  return expect(']', "or `,` behind an entry");
}

bool Reader::function() {
  Graph made;
  made.kind = GraphKind::kFunction;
  made.position = lexer_.peek().position;
  const auto id = static_cast<GraphId>(builder_.model().graphs.size());
  if (lexer_.accept('<') && !lexer_.accept('>')) {
    do {
      const Token key = lexer_.peek();
      if (key.kind != TokenKind::kIdentifier) return unexpected("a field of the function (domain, opset_import, ...)");
      lexer_.advance();
      if (!expect(':', "behind the field's name")) return false;
      std::string_view text;
      if (key.text == "opset_import") {
        std::vector<OpsetImport> imports;
        if (!opsets(imports, id)) return false;
        made.opsets = builder_.add_opset_imports(std::move(imports));
      } else if (key.text == "domain" || key.text == "overload" || key.text == "doc_string") {
        if (!string(text, "a string")) return false;
        if (key.text == "domain") made.domain = builder_.name(text);
        if (key.text == "overload") made.overload = builder_.name(text);
      } else {
        return fail(key.position, fmt::format("expected domain, overload, opset_import or doc_string, found {}", found(key)));
      }
    } while (lexer_.accept(','));
    if (!expect('>', "or `,` behind a field of the function")) return false;
  }
  if (!name(made.name, "the function's name")) return false;
  builder_.add_graph(std::move(made));
  if (!charge(kGraphCost)) return false;

  const Scope scope{.graph = id};
  if (lexer_.accept('<') && !lexer_.accept('>')) {
    do {
      Attribute attribute;
      if (!charge(kAttributeCost) || !attribute_name(attribute, scope)) return false;
      const bool has_default = lexer_.peek().is(':') || lexer_.peek().is('=');
      if (has_default && !this->attribute(attribute, scope)) return false;
      Graph& graph = builder_.model().graphs[static_cast<std::size_t>(id)];
      if (has_default)
        graph.attribute_defaults.push_back(attribute);
      else
        graph.attribute_names.push_back(attribute.name);
    } while (lexer_.accept(','));
    if (!expect('>', "or `,` behind a parameter")) return false;
  }
  return whole_graph(scope);
}

/// A graph of the top level from its inputs on, and the graphs inside it.
bool Reader::whole_graph(const Scope& scope) {
  bool fine = graph(scope);
  const Position resume = lexer_.peek().position;
  std::size_t sorted = 0;  // of waiting_: in reverse, the next at the end
  while (fine && !waiting_.empty()) {
    std::reverse(waiting_.begin() + static_cast<std::ptrdiff_t>(sorted), waiting_.end());
    const Waiting next = waiting_.back();
    waiting_.pop_back();
    sorted = waiting_.size();
    lexer_.seek(next.position);
    fine = graph({.graph = next.graph, .depth = next.depth});
  }
  while (!fine && unclosed_) {
    unclosed_ = false;
    const Error fallback = error_;
    const Waiting inner = waiting_.back();
    lexer_.seek(inner.position);
    if (graph({.graph = inner.graph, .depth = inner.depth})) error_ = fallback;
  }
  if (fine) lexer_.seek(resume);
  return fine;
}

bool Reader::graph(const Scope& scope) {
  return inputs(scope) && expect_arrow() && outputs(scope) && declarations(scope) && nodes(scope);
}

bool Reader::inputs(const Scope& scope) {
  // onnx.parser lets a graph without inputs leave the parentheses out.
  if (lexer_.peek().kind == TokenKind::kArrow && builder_.model().graph(scope.graph).kind != GraphKind::kFunction) return true;
  if (!expect('(', "before the inputs")) return false;
  if (lexer_.accept(')')) return true;
  do {
    const Position position = lexer_.peek().position;
    Type type;
    const TypeDecl* declared = nullptr;
    NameId input{};
    if (at_type() && !this->type(type, &declared, scope)) return false;
    if (!name(input, "an input's name") || !charge(kValueCost)) return false;
    builder_.add_input(scope.graph, input, declared, position);
    if (!lexer_.accept('=')) continue;
    if (declared == nullptr) return fail(position, "an input with a default needs a type");
    if (declared->kind == TypeKind::kTensor) {
      const Tensor* tensor = nullptr;
      if (!constant(type, input, position, scope, tensor)) return false;
      builder_.add_initializer(scope.graph, input, tensor, nullptr);
    } else {
      const SparseTensor* sparse = nullptr;
      if (!sparse_constant(type, position, scope, sparse)) return false;
      builder_.add_initializer(scope.graph, input, nullptr, sparse);
    }
  } while (lexer_.accept(','));
  return expect(')', "or `,` behind an input");
}

bool Reader::outputs(const Scope& scope) {
  if (!expect('(', "before the outputs")) return false;
  if (lexer_.accept(')')) return true;
  do {
    Type type;
    const TypeDecl* declared = nullptr;
    NameId output{};
    if (at_type() && !this->type(type, &declared, scope)) return false;
    if (!name(output, "an output's name") || !charge(kValueCost)) return false;
    builder_.add_output(scope.graph, output, declared);
  } while (lexer_.accept(','));
  return expect(')', "or `,` behind an output");
}

/// Initializers and types of values, between angle brackets.
bool Reader::declarations(const Scope& scope) {
  if (!lexer_.accept('<') || lexer_.accept('>')) return true;
  do {
    const Position position = lexer_.peek().position;
    Type type;
    const TypeDecl* declared = nullptr;
    NameId value{};
    if (at_type() && !this->type(type, &declared, scope)) return false;
    if (!name(value, "a value's name") || !charge(kValueCost + kDeclarationCost)) return false;
    if (!lexer_.accept('=')) {
      builder_.add_value_info(scope.graph, value, declared);
      continue;
    }
    if (declared == nullptr) return fail(position, "an initializer needs a type");
    if (builder_.model().graph(scope.graph).kind == GraphKind::kFunction)
      return fail(position, "a function has no initializers");
    if (declared->kind == TypeKind::kTensor) {
      const Tensor* tensor = nullptr;
      if (!constant(type, value, position, scope, tensor)) return false;
      builder_.add_initializer(scope.graph, value, tensor, nullptr);
    } else {
      const SparseTensor* sparse = nullptr;
      if (!sparse_constant(type, position, scope, sparse)) return false;
      builder_.add_initializer(scope.graph, value, nullptr, sparse);
    }
  } while (lexer_.accept(','));
  return expect('>', "or `,` behind a declaration");
}

bool Reader::nodes(const Scope& scope) {
  if (!expect('{', "before the nodes")) return false;
  builder_.begin_nodes(scope.graph);
  while (!lexer_.accept('}'))
    if (!node(scope)) return false;
  return true;
}

bool Reader::node(const Scope& scope) {
  const Position position = lexer_.peek().position;
  NameId label{}, domain{}, op{}, overload{};
  if (lexer_.accept('[')) {
    if (at_name() && !name(label, "a node's name")) return false;
    if (!expect(']', "behind the node's name")) return false;
  } else if (!at_name() && !lexer_.peek().is('=') && !lexer_.peek().is(',')) {
    return unexpected("a node or `}`");
  }
  results_.clear();
  operands_.clear();
  attributes_.clear();
  const Scope inside{.graph = scope.graph, .node = static_cast<NodeId>(builder_.model().nodes.size()), .depth = scope.depth};
  if (!name_list(results_, '=') || !expect('=', "or `,` behind a result") || !operator_name(domain, op, overload) ||
      !attributes(attributes_, inside) || !expect('(', "before the operands") || !name_list(operands_, ')') ||
      !expect(')', "or `,` behind an operand"))
    return false;
  if (attributes_.empty() && !attributes(attributes_, inside)) return false;
  builder_.add_node(scope.graph, domain, op, overload, label, operands_, results_, attributes_, position, 0);
  return charge(kNodeCost + (kOperandCost + kValueCost) * results_.size());
}

bool Reader::operator_name(NameId& domain, NameId& op, NameId& overload) {
  std::string joined;
  std::string_view last;
  bool dotted = false;
  do {
    if (dotted) (joined += joined.empty() ? "" : ".") += last;
    if (!at_name()) return unexpected("an operator");
    last = string_text(lexer_.take());
    if (!dotted) dotted = lexer_.peek().is('.');
  } while (lexer_.accept('.'));
  if (!joined.empty()) {
    const std::uint32_t known = builder_.model().names.find(joined);
    domain = known != 0 ? static_cast<NameId>(known) : builder_.name(builder_.copy(joined));
  }
  op = builder_.name(last);
  return !lexer_.accept(':') || name(overload, "an overload");
}

/// Names of operands or results. A place left empty before a comma is an absent one; a last comma changes nothing.
bool Reader::name_list(std::vector<NameId>& names, char close) {
  while (true) {
    NameId next{};
    if (at_name()) {
      if (!name(next, "a name")) return false;
    } else if (!lexer_.peek().is(',')) {
      return names.empty() || lexer_.peek().is(close) || unexpected("a name");
    }
    names.push_back(next);
    if (!charge(kOperandCost)) return false;
    if (!lexer_.accept(',')) return true;
  }
}

bool Reader::attributes(std::vector<Attribute>& list, const Scope& scope) {
  if (!lexer_.accept('<') || lexer_.accept('>')) return true;
  do {
    Attribute attribute;
    if (!charge(kAttributeCost) || !attribute_name(attribute, scope) || !this->attribute(attribute, scope)) return false;
    list.push_back(attribute);
  } while (lexer_.accept(','));
  return expect('>', "or `,` behind an attribute");
}

bool Reader::attribute_name(Attribute& attribute, const Scope& scope) {
  if (!at_name()) return unexpected("an attribute's name");
  const Token token = lexer_.take();
  attribute.name = string_text(token);
  if (attribute.name.empty()) malformed(Kind::kMalformedAttribute, scope, token.position, "an attribute has no name");
  return true;
}

/// What follows an attribute's name.
bool Reader::attribute(Attribute& attribute, const Scope& scope) {
  const Position position = lexer_.peek().position;
  if (lexer_.accept(':')) {
    const Token& word = lexer_.peek();
    const auto kind = word.kind == TokenKind::kIdentifier ? text::attribute_kind_named(word.text) : std::nullopt;
    if (!kind) return unexpected("the kind of an attribute (int, float, string, tensor, graph, ...)");
    attribute.kind = *kind;
    lexer_.advance();
    if (attribute.kind == AttributeKind::kUndefined) {
      malformed(Kind::kMalformedAttribute, scope, position, fmt::format("attribute `{}` has no kind and no value", attribute.name));
      return true;
    }
  }
  if (!expect('=', "before the attribute's value")) return false;
  if (lexer_.peek().is('[')) return attribute_list(attribute, scope);
  const AttributeKind wanted = attribute.kind;
  if (single_of(wanted) != AttributeKind::kUndefined && !lexer_.peek().is('@'))
    return unexpected(fmt::format("a list of kind {}", to_text(wanted)));
  return attribute_value(attribute, wanted, scope);
}

bool Reader::attribute_list(Attribute& attribute, const Scope& scope) {
  const Token bracket = lexer_.take();
  const AttributeKind wanted = single_of(attribute.kind);
  if (attribute.kind != AttributeKind::kUndefined && wanted == AttributeKind::kUndefined)
    return fail(bracket.position, fmt::format("expected one value of kind {}, found a list", to_text(attribute.kind)));
  if (lexer_.accept(']'))
    return attribute.kind != AttributeKind::kUndefined || fail(bracket.position, "an empty list needs its kind (`: ints` or another)");

  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string_view> strings;
  std::vector<const Tensor*> tensors;
  std::vector<GraphId> graphs;
  std::vector<const TypeDecl*> types;
  AttributeKind kind = wanted;
  do {
    const Position position = lexer_.peek().position;
    if (lexer_.peek().is('@')) return unexpected("a value");
    if (!charge(kItemCost)) return false;
    Attribute item;
    item.name = attribute.name;
    if (!attribute_value(item, kind, scope)) return false;
    switch (item.kind) {
      case AttributeKind::kInt: ints.push_back(item.i); break;
      case AttributeKind::kFloat: floats.push_back(item.f); break;
      case AttributeKind::kString: strings.push_back(item.s); break;
      case AttributeKind::kTensor: tensors.push_back(item.tensor); break;
      case AttributeKind::kGraph: graphs.push_back(item.graph); break;
      case AttributeKind::kTypeProto: types.push_back(item.type); break;
      default: return fail(position, "lists of sparse tensors are not supported");
    }
    kind = item.kind;
  } while (lexer_.accept(','));
  attribute.kind = list_of(kind);
  attribute.ints = builder_.keep_ints(ints);
  attribute.floats = builder_.keep_floats(floats);
  attribute.strings = builder_.keep_strings(strings);
  if (!tensors.empty()) attribute.tensors = builder_.keep(std::move(tensors));
  if (!graphs.empty()) attribute.graphs = builder_.keep(std::move(graphs));
  if (!types.empty()) attribute.types = builder_.keep(std::move(types));
  return expect(']', "or `,` behind an item");
}

/// One value; `wanted` is kUndefined where the value itself tells its kind.
bool Reader::attribute_value(Attribute& attribute, AttributeKind wanted, const Scope& scope) {
  const Token token = lexer_.peek();
  const auto got = [&](AttributeKind kind) {
    attribute.kind = kind;
    return wanted == AttributeKind::kUndefined || wanted == kind ||
           fail(token.position, fmt::format("expected a value of kind {}, found one of kind {}: {}", to_text(wanted),
                                            to_text(kind), found(token)));
  };
  if (lexer_.accept('@')) {
    if (!at_name()) return unexpected("the name of the function's attribute");
    attribute.reference = string_text(lexer_.take());
    return true;
  }
  switch (token.kind) {
    case TokenKind::kInteger:
      if (wanted == AttributeKind::kFloat) break;
      return got(AttributeKind::kInt) && integer(attribute.i, "an integer");
    case TokenKind::kFloat: break;
    case TokenKind::kString:
      lexer_.advance();
      if (lexer_.peek().is('(') || lexer_.peek().kind == TokenKind::kArrow)
        return got(AttributeKind::kGraph) && subgraph(attribute, token, scope);
      attribute.s = string_text(token);
      return got(AttributeKind::kString);
    case TokenKind::kIdentifier: {
      if (at_type()) {
        Type type;
        const TypeDecl* declared = nullptr;
        if (!this->type(type, &declared, scope)) return false;
        if (!lexer_.peek().is('{') && !lexer_.peek().is('=') && !lexer_.peek().is('[') && !at_name()) {
          attribute.type = declared;
          return got(AttributeKind::kTypeProto);
        }
        NameId name{};
        if (at_name() && !this->name(name, "a tensor's name")) return false;
        lexer_.accept('=');
        if (declared->kind == TypeKind::kTensor)
          return got(AttributeKind::kTensor) && constant(type, name, token.position, scope, attribute.tensor);
        return got(AttributeKind::kSparseTensor) && sparse_constant(type, token.position, scope, attribute.sparse);
      }
      if (text::is_float_word(token.text)) {
        Lexer ahead = lexer_;
        ahead.advance();
        if (!ahead.peek().is('(')) break;
      }
      lexer_.advance();
      return got(AttributeKind::kGraph) && subgraph(attribute, token, scope);
    }
    default: return unexpected("an attribute's value");
  }
  return got(AttributeKind::kFloat) && floating(attribute.f);
}

bool Reader::subgraph(Attribute& attribute, const Token& name_token, const Scope& scope) {
  if (!lexer_.peek().is('(') && lexer_.peek().kind != TokenKind::kArrow) return unexpected("`(` before the inputs of a graph");
  if (scope.depth + 1 > kMaxDepth) return fail(name_token.position, fmt::format("graphs nest more than {} deep", kMaxDepth));
  Graph made;
  made.kind = GraphKind::kSubgraph;
  made.name = builder_.name(string_text(name_token));
  made.parent = scope.graph;
  made.owner = scope.node;
  made.attribute = attribute.name;
  made.opsets = builder_.model().graph(scope.graph).opsets;
  made.position = name_token.position;
  attribute.graph = builder_.add_graph(std::move(made));
  if (!charge(kGraphCost)) return false;
  waiting_.push_back({attribute.graph, lexer_.peek().position, scope.depth + 1});
  if (lexer_.skip_graph()) return true;
  unclosed_ = true;
  return fail(name_token.position, fmt::format("graph `{}` is not closed", shortened(name_token.text)));
}

bool Reader::dtype(std::int32_t& code, std::string_view wanted) {
  const Token& token = lexer_.peek();
  const auto known = token.kind == TokenKind::kIdentifier ? text::dtype_code_named(token.text) : std::nullopt;
  if (!known) return unexpected(wanted);
  code = *known;
  lexer_.advance();
  return true;
}

/// Dims in brackets go into dims_; none: a scalar. Empty brackets: any rank.
bool Reader::shape(bool& ranked) {
  dims_.clear();
  ranked = true;
  if (!lexer_.accept('[')) return true;
  if (lexer_.accept(']')) {
    ranked = false;
    return true;
  }
  do {
    DimDecl dim;
    if (at_name()) {
      if (!name(dim.name, "a dim")) return false;
    } else if (!lexer_.accept('?')) {
      if (!integer(dim.extent, "a dim (a number, a name or `?`)")) return false;
      dim.has_extent = true;
    }
    dims_.push_back(dim);
    if (!charge(2 * sizeof(DimDecl))) return false;
  } while (lexer_.accept(','));
  return expect(']', "or `,` behind a dim");
}

bool Reader::type(Type& out, const TypeDecl** declared, const Scope& scope) {
  struct Outer {
    TypeKind kind;
    std::int32_t key;
  };
  const Position start = lexer_.peek().position;
  std::vector<Outer> outers;  // from the outside in
  bool empty = false;         // an element that is left out
  while (true) {
    const Token token = lexer_.peek();
    if (token.kind != TokenKind::kIdentifier) {
      empty = !outers.empty() && token.is(')');
      if (!empty) return unexpected("a type");
      break;
    }
    const bool sequence = token.text == "seq", optional = token.text == "optional", map = token.text == "map";
    if (!sequence && !optional && !map) break;
    if (outers.size() == kMaxDepth) return fail(token.position, fmt::format("types nest more than {} deep", kMaxDepth));
    lexer_.advance();
    Outer outer{.kind = sequence ? TypeKind::kSequence : optional ? TypeKind::kOptional : TypeKind::kMap, .key = 0};
    if (!expect('(', "behind the kind of a type")) return false;
    if (map && (!dtype(outer.key, "the type of a map's key") || !expect(',', "behind the type of a map's key"))) return false;
    outers.push_back(outer);
  }
  out = {};
  dims_.clear();
  if (!empty) {
    const Token word = lexer_.peek();
    if (word.text == "sparse_tensor") {
      lexer_.advance();
      out.leaf.kind = TypeKind::kSparseTensor;
      if (!expect('(', "behind the kind of a type") || !dtype(out.leaf.element_code, "the element type of a sparse tensor") ||
          !shape(out.leaf.ranked) || !expect(')', "behind the type of a sparse tensor"))
        return false;
    } else if (word.text == "opaque") {
      lexer_.advance();
      out.leaf.kind = TypeKind::kOpaque;
      if (!expect('(', "behind the kind of a type")) return false;
      if (!lexer_.accept(')')) {
        NameId part{};
        do {
          if (!name(part, "the name of an opaque type")) return false;
        } while (lexer_.accept('.') || lexer_.accept(','));
        if (!expect(')', "behind the name of an opaque type")) return false;
      }
    } else {
      out.leaf.kind = TypeKind::kTensor;
      if (!dtype(out.leaf.element_code, "a type") || !shape(out.leaf.ranked)) return false;
    }
  }
  out.plain = outers.empty() && (out.leaf.kind == TypeKind::kTensor || out.leaf.kind == TypeKind::kSparseTensor);

  if (!charge(sizeof(TypeDecl) * (outers.size() + 1))) return false;
  const TypeDecl* made = nullptr;
  if (!empty) {
    TypeDecl* leaf = builder_.new_type();
    *leaf = out.leaf;
    leaf->dims = builder_.keep_dims(dims_);
    made = leaf;
  }
  for (auto outer = outers.rbegin(); outer != outers.rend(); ++outer) {
    if (!expect(')', "behind the inner type")) return false;
    TypeDecl* around = builder_.new_type();
    around->kind = outer->kind;
    around->element_code = outer->key;
    around->element = made;
    made = around;
  }
  *declared = made;
  std::string problem;
  for (const TypeDecl* at = made; at != nullptr; at = at->element) {
    const bool is_tensor = at->kind == TypeKind::kTensor || at->kind == TypeKind::kSparseTensor;
    if ((is_tensor && at->element_code != 0 && !is_known_dtype(at->element_code)) ||
        (at->kind == TypeKind::kMap && !is_known_dtype(at->element_code)))
      problem = fmt::format("a type declares the unknown dtype code {}", at->element_code);
    if (at->element == nullptr && (at->kind == TypeKind::kSequence || at->kind == TypeKind::kOptional || at->kind == TypeKind::kMap))
      problem = "a type declares no element type";
    for (const DimDecl& dim : at->dims)
      if (dim.has_extent && dim.extent < -1) problem = fmt::format("a type declares the negative dim {}", dim.extent);
  }
  if (!problem.empty()) malformed(Kind::kMalformedType, scope, start, std::move(problem));
  return true;
}

bool Reader::numeric_dims(const Type& type, Position position, std::span<const std::int64_t>& out) {
  if (!type.plain) return fail(position, "a constant needs a tensor type");
  if (!type.leaf.ranked) return fail(position, "a constant needs its dims, found `[]`");
  std::vector<std::int64_t> dims;
  for (const DimDecl& dim : dims_) {
    if (!dim.has_extent)
      return fail(position, dim.name == NameId::kEmpty
                                ? "a constant needs numbers as dims, found `?`"
                                : fmt::format("a constant needs numbers as dims, found `{}`",
                                              shortened(builder_.model().text(dim.name))));
    dims.push_back(dim.extent);
  }
  out = builder_.keep_ints(dims);
  return true;
}

/// The value of a constant whose type was just read.
bool Reader::constant(const Type& type, NameId name, Position position, const Scope& scope, const Tensor*& out) {
  Tensor& tensor = *builder_.new_tensor();
  if (!charge(kTensorCost + sizeof(std::int64_t) * dims_.size())) return false;
  tensor.name = name;
  tensor.position = position;
  tensor.dtype_code = type.leaf.element_code;
  out = &tensor;
  if (type.leaf.kind != TypeKind::kTensor) return fail(position, "a constant needs a tensor type");
  if (!numeric_dims(type, position, tensor.dims)) return false;
  if (lexer_.peek().is('[')) return external(tensor);
  return elements(tensor, scope);
}

bool Reader::sparse_constant(const Type& type, Position position, const Scope& scope, const SparseTensor*& out) {
  SparseTensor& sparse = *builder_.new_sparse_tensor();
  out = &sparse;
  if (!numeric_dims(type, position, sparse.dims) || !expect('{', "before the values of a sparse tensor")) return false;
  for (const bool first : {true, false}) {
    const Position start = lexer_.peek().position;
    Type part;
    const TypeDecl* declared = nullptr;
    NameId part_name{};
    if (!this->type(part, &declared, scope) || (at_name() && !name(part_name, "a tensor's name"))) return false;
    lexer_.accept('=');
    if (!constant(part, part_name, start, scope, first ? sparse.values : sparse.indices)) return false;
    if (first && !expect(',', "before the indices of a sparse tensor")) return false;
  }
  return expect('}', "behind the indices of a sparse tensor");
}

bool Reader::external(Tensor& tensor) {
  tensor.external = true;
  std::vector<MetadataEntry> entries;
  if (!metadata(entries)) return false;
  for (const MetadataEntry& entry : entries) {
    if (entry.key == "location") tensor.location = entry.value;
    if (entry.key == "offset") tensor.offset_text = entry.value;
    if (entry.key == "length") tensor.length_text = entry.value;
  }
  return true;
}

bool Reader::elements(Tensor& tensor, const Scope& scope) {
  if (!expect('{', "before the elements")) return false;
  const std::string_view tensor_name = builder_.model().text(tensor.name);
  const std::string label = tensor_name.empty() ? "a tensor" : fmt::format("tensor `{}`", tensor_name);
  if (!is_known_dtype(tensor.dtype_code)) {
    if (!lexer_.accept('}')) return unexpected("`}`, as elements of this type have no notation");
    fault({.kind = Kind::kMalformedTensor, .graph = scope.graph, .node = scope.node, .tensor = &tensor,
                    .message = fmt::format("{} has the unknown dtype code {}", label, tensor.dtype_code), .position = tensor.position});
    return true;
  }
  const auto dtype = static_cast<DType>(tensor.dtype_code);
  const auto bits = static_cast<unsigned>(bit_width(dtype));
  std::uint64_t count = 0;
  if (lexer_.accept('}')) {
    tensor.has_raw = dtype != DType::kString;
  } else if (dtype == DType::kString) {
    std::vector<std::string_view> strings;
    do {
      std::string_view text;
      if (!string(text, "a string")) return false;
      strings.push_back(text);
      if (!charge(kItemCost)) return false;
    } while (lexer_.accept(','));
    if (!expect('}', "or `,` behind an element")) return false;
    count = strings.size();
    tensor.strings = builder_.keep_strings(strings);
  } else {
    std::string raw;
    std::uint64_t word = 0;   // of elements narrower than a byte: those that wait for the byte to fill
    unsigned word_bits = 0;
    do {
      ++count;
      if (bits >= 8) {
        if (!element(dtype, raw)) return false;
        continue;
      }
      std::uint64_t pattern = 0;
      if (!small_element(dtype, pattern)) return false;
      word |= pattern << word_bits;
      for (word_bits += bits; word_bits >= 8; word_bits -= 8, word >>= 8) raw += static_cast<char>(word & 0xff);
    } while (lexer_.accept(','));
    if (!expect('}', "or `,` behind an element")) return false;
    if (word_bits != 0) raw += static_cast<char>(word & 0xff);
    if (dtype == DType::kComplex64 || dtype == DType::kComplex128) {
      if (count % 2 != 0) return fail(tensor.position, "a complex element has two numbers: real and imaginary part");
      count /= 2;
    }
    tensor.has_raw = true;
    if (raw.size() <= kSmallBytes) {
      tensor.raw = builder_.copy(raw);
    } else {
      auto kept = std::make_shared<const std::string>(std::move(raw));
      tensor.raw = *kept;
      builder_.model().storage.push_back(std::move(kept));
    }
  }
  const auto claimed = tensor.element_count();
  if (claimed == count) return true;
  fault({.kind = Kind::kMalformedTensor, .graph = scope.graph, .node = scope.node, .tensor = &tensor,
         .message = claimed ? fmt::format("{} of {} [{}] takes {} elements, it has {}", label, to_text(dtype),
                                          fmt::join(tensor.dims, ", "), *claimed, count)
                            : fmt::format("{} has negative or overflowing dims [{}]", label, fmt::join(tensor.dims, ", ")),
         .position = tensor.position});
  return true;
}

/// One element of at least a byte; of a complex type one of its two numbers.
bool Reader::element(DType dtype, std::string& raw) {
  const auto append = [&raw](auto value) {
    static_assert(std::endian::native == std::endian::little, "raw_data is little endian");
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    raw.append(bytes, sizeof value);
    return true;
  };
  const auto whole = [&](auto value) { return integer(value, "an integer") && append(value); };
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64: {
      float value = 0;
      return floating(value) && append(value);
    }
    case DType::kFloat64:
    case DType::kComplex128: {
      double value = 0;
      return floating(value) && append(value);
    }
    case DType::kInt8: return whole(std::int8_t{});
    case DType::kInt16: return whole(std::int16_t{});
    case DType::kInt32: return whole(std::int32_t{});
    case DType::kInt64: return whole(std::int64_t{});
    case DType::kUint8: return whole(std::uint8_t{});
    case DType::kUint16: return whole(std::uint16_t{});
    case DType::kUint32: return whole(std::uint32_t{});
    case DType::kUint64: return whole(std::uint64_t{});
    case DType::kBool: {
      const Token token = lexer_.peek();
      std::uint8_t value = 0;
      if (!integer(value, "0 or 1")) return false;
      return value <= 1 ? append(value) : fail(token.position, fmt::format("expected 0 or 1, found {}", found(token)));
    }
    case DType::kFloat16:
    case DType::kBFloat16: {
      const Token token = lexer_.peek();
      if (token.kind == TokenKind::kInteger) return whole(std::uint16_t{});
      double value = 0;
      if (!floating(value)) return false;
      const auto bits = to_sixteen_bits(value, dtype == DType::kFloat16 ? 10 : 7);
      if (!bits) return fail(token.position, fmt::format("{} does not fit {}", found(token), to_text(dtype)));
      return append(*bits);
    }
    default: return whole(std::uint8_t{});  // floats of 8 bits: their bits
  }
}

/// One element narrower than a byte: an integer, or the bits of a float.
bool Reader::small_element(DType dtype, std::uint64_t& bits) {
  const auto width = static_cast<unsigned>(bit_width(dtype));
  const bool is_signed = DTypeSet::signed_integers().contains(dtype);
  const std::int64_t low = is_signed ? -(std::int64_t{1} << (width - 1)) : 0;
  const std::int64_t high = is_signed ? (std::int64_t{1} << (width - 1)) - 1 : (std::int64_t{1} << width) - 1;
  const Token token = lexer_.peek();
  std::int64_t value = 0;
  if (!integer(value, "an integer")) return false;
  if (value < low || value > high) return fail(token.position, fmt::format("{} does not fit {}", found(token), to_text(dtype)));
  bits = static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << width) - 1);
  return true;
}

}  // namespace

Result<Model> read_onnx_text(std::string_view text, std::string path) {
  if (text.size() > kMaxTextBytes) return Error{fmt::format("a text of {} bytes, more than the limit of 1 GiB", text.size()), {}};
  auto kept = std::make_shared<const std::string>(text);
  Reader reader(*kept);
  if (!reader.read(std::move(path))) return reader.error();
  Model model = reader.finish();
  model.comments = comments_of(*kept);
  model.storage.push_back(std::move(kept));
  return model;
}

Result<Model> read_onnx_text_file(const std::string& path) {
  const auto failed = [](int number) { return Error{fmt::format("cannot be read: {}", std::strerror(number)), {}}; };
  struct Descriptor {
    int number;
    ~Descriptor() {
      if (number >= 0) ::close(number);
    }
  };
  // Without O_NONBLOCK opening a pipe waits for its writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) return failed(errno);
  struct stat status {};
  if (::fstat(file.number, &status) != 0) return failed(errno);
  if (!S_ISREG(status.st_mode)) return Error{"not a regular file", {}};
  if (static_cast<std::uint64_t>(status.st_size) > kMaxTextBytes)
    return Error{fmt::format("a text of {} bytes, more than the limit of 1 GiB", status.st_size), {}};
  std::string text;
  char block[1 << 16];
  while (true) {
    const ssize_t count = ::read(file.number, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(errno);
    if (count == 0) break;
    text.append(block, static_cast<std::size_t>(count));
    if (text.size() > kMaxTextBytes) return Error{"the file grew beyond 1 GiB while it was read", {}};
  }
  return read_onnx_text(text, path);
}

std::vector<Comment> comments_of(std::string_view text) {
  std::vector<Comment> comments;
  std::uint32_t line = 1;
  bool in_string = false, alone = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      alone = true;
      continue;
    }
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string && c == '\\') {
      if (++i < text.size() && text[i] == '\n') ++line;
    } else if (!in_string && c == '#') {
      const std::size_t end = std::min(text.find('\n', i), text.size());
      std::string_view comment = text.substr(i + 1, end - i - 1);
      while (!comment.empty() && (comment.front() == ' ' || comment.front() == '\t')) comment.remove_prefix(1);
      while (!comment.empty() && (comment.back() == ' ' || comment.back() == '\t' || comment.back() == '\r')) comment.remove_suffix(1);
      comments.push_back({line, comment, alone});
      i = end - 1;
    }
    if (c != ' ' && c != '\t') alone = false;
  }
  return comments;
}

}  // namespace tensorlint
