#include "ir/text/model_reader.h"

#include <algorithm>
#include <memory>

namespace tensorlint::text {
namespace {

constexpr std::size_t kMaxOpsetImports = 1024;  // every operator looks through them; real models have a handful

class NoMetadata : public Provenance {
 public:
  std::vector<MetadataEntry> node_metadata(const Node&) const override { return {}; }
  std::vector<MetadataEntry> value_metadata(ValueId) const override { return {}; }
};

}  // namespace

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
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kString:
      return fmt::format("the string \"{}\"", shortened(token.text));
    case TokenKind::kBad:
      return std::string(token.text);
    default:
      return fmt::format("`{}`", shortened(token.text));
  }
}

std::optional<Model> Reader::finish(std::uint64_t beside) {
  if (!charge(beside)) return std::nullopt;
  std::optional<Model> model = builder_.finish(budget_ - std::min(budget_, taken()));
  if (!model) fail_budget();
  return model;
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
      if (!expect(':', "after the field's name")) return false;
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
        return fail(key.position,
                    fmt::format("expected ir_version, opset_import, producer_name, producer_version, domain, "
                                "model_version, doc_string or metadata_props, found {}",
                                found(key)));
      if (!fine) return false;
    } while (lexer_.accept(','));
    if (!expect('>', "or `,` after a field of the model")) return false;
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
    if (imports.size() == kMaxOpsetImports)
      return fail(domain.position, fmt::format("more than {} opset imports", kMaxOpsetImports));
    std::string_view text;
    if (!charge(kItemCost) || !string(text, "a domain in quotes") || !expect(':', "after the domain") ||
        !integer(import.version, "the version of the opset"))
      return false;
    import.domain = builder_.name(normalised_domain(text));
    // Runtimes take the same one twice.
    if (std::ranges::any_of(imports, [&](const OpsetImport& known) {
          return known.domain == import.domain && known.version != import.version;
        }))
      fault({.kind = Kind::kDuplicateOpsetImport,
             .graph = graph,
             .message = fmt::format("domain `{}` is imported twice", text),
             .position = domain.position});
    imports.push_back(import);
  } while (lexer_.accept(','));
  return expect(']', "or `,` after an opset import");
}

bool Reader::metadata(std::vector<MetadataEntry>& entries) {
  if (!expect('[', "before the metadata")) return false;
  if (lexer_.accept(']')) return true;
  do {
    MetadataEntry entry;
    if (!charge(kItemCost) || !string(entry.key, "a key in quotes") || !expect(':', "after the key") ||
        !string(entry.value, "a value in quotes"))
      return false;
    entries.push_back(entry);
  } while (lexer_.accept(','));
  return expect(']', "or `,` after an entry");
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
      if (!expect(':', "after the field's name")) return false;
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
        return fail(key.position,
                    fmt::format("expected domain, overload, opset_import or doc_string, found {}", found(key)));
      }
    } while (lexer_.accept(','));
    if (!expect('>', "or `,` after a field of the function")) return false;
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
      Graph& graph = builder_.model().graphs[id];
      if (has_default)
        graph.attribute_defaults.push_back(attribute);
      else
        graph.attribute_names.push_back(attribute.name);
    } while (lexer_.accept(','));
    if (!expect('>', "or `,` after a parameter")) return false;
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
  if (lexer_.peek().kind == TokenKind::kArrow && builder_.model().graph(scope.graph).kind != GraphKind::kFunction)
    return true;
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
    if (!initializer(type, *declared, input, position, scope)) return false;
  } while (lexer_.accept(','));
  return expect(')', "or `,` after an input");
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
  return expect(')', "or `,` after an output");
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
    if (!initializer(type, *declared, value, position, scope)) return false;
  } while (lexer_.accept(','));
  return expect('>', "or `,` after a declaration");
}

bool Reader::initializer(const Type& type, const TypeDecl& declared, NameId value, Position position,
                         const Scope& scope) {
  const Tensor* tensor = nullptr;
  const SparseTensor* sparse = nullptr;
  if (declared.kind == TypeKind::kTensor ? !constant(type, value, position, scope, tensor)
                                         : !sparse_constant(type, position, scope, sparse))
    return false;
  builder_.add_initializer(scope.graph, value, tensor, sparse);
  return true;
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
    if (!expect(']', "after the node's name")) return false;
  } else if (!at_name() && !lexer_.peek().is('=') && !lexer_.peek().is(',')) {
    return unexpected("a node or `}`");
  }
  results_.clear();
  operands_.clear();
  attributes_.clear();
  const Scope inside{
      .graph = scope.graph, .node = static_cast<NodeId>(builder_.model().nodes.size()), .depth = scope.depth};
  if (!name_list(results_, '=') || !expect('=', "or `,` after a result") || !operator_name(domain, op, overload) ||
      !attributes(attributes_, inside) || !expect('(', "before the operands") || !name_list(operands_, ')') ||
      !expect(')', "or `,` after an operand"))
    return false;
  if (attributes_.empty() && !attributes(attributes_, inside)) return false;
  if (!charge(kNodeCost + (kOperandCost + kValueCost) * results_.size())) return false;
  builder_.add_node(scope.graph, domain, op, overload, label, operands_, results_, attributes_, position, 0);
  return true;
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

}  // namespace tensorlint::text
