#include <optional>

#include "ir/text/model_reader.h"

namespace tensorlint::text {
namespace {

AttributeKind single_of(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kFloats:
      return AttributeKind::kFloat;
    case AttributeKind::kInts:
      return AttributeKind::kInt;
    case AttributeKind::kStrings:
      return AttributeKind::kString;
    case AttributeKind::kTensors:
      return AttributeKind::kTensor;
    case AttributeKind::kGraphs:
      return AttributeKind::kGraph;
    case AttributeKind::kSparseTensors:
      return AttributeKind::kSparseTensor;
    case AttributeKind::kTypeProtos:
      return AttributeKind::kTypeProto;
    default:
      return AttributeKind::kUndefined;
  }
}

AttributeKind list_of(AttributeKind kind) {
  for (int code = 1; code <= 14; ++code)
    if (single_of(static_cast<AttributeKind>(code)) == kind) return static_cast<AttributeKind>(code);
  return AttributeKind::kUndefined;
}

}  // namespace

bool Reader::attributes(std::vector<Attribute>& list, const Scope& scope) {
  if (!lexer_.accept('<') || lexer_.accept('>')) return true;
  do {
    Attribute attribute;
    if (!charge(kAttributeCost) || !attribute_name(attribute, scope) || !this->attribute(attribute, scope))
      return false;
    list.push_back(attribute);
  } while (lexer_.accept(','));
  return expect('>', "or `,` after an attribute");
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
    const auto kind = word.kind == TokenKind::kIdentifier ? attribute_kind_named(word.text) : std::nullopt;
    if (!kind) return unexpected("the kind of an attribute (int, float, string, tensor, graph, ...)");
    attribute.kind = *kind;
    lexer_.advance();
    if (attribute.kind == AttributeKind::kUndefined) {
      malformed(Kind::kMalformedAttribute, scope, position,
                fmt::format("attribute `{}` has no kind and no value", attribute.name));
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
    return attribute.kind != AttributeKind::kUndefined ||
           fail(bracket.position, "an empty list needs its kind (`: ints` or another)");

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
      case AttributeKind::kInt:
        ints.push_back(item.i);
        break;
      case AttributeKind::kFloat:
        floats.push_back(item.f);
        break;
      case AttributeKind::kString:
        strings.push_back(item.s);
        break;
      case AttributeKind::kTensor:
        tensors.push_back(item.tensor);
        break;
      case AttributeKind::kGraph:
        graphs.push_back(item.graph);
        break;
      case AttributeKind::kTypeProto:
        types.push_back(item.type);
        break;
      default:
        return fail(position, "lists of sparse tensors are not supported");
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
  return expect(']', "or `,` after an item");
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
    case TokenKind::kFloat:
      break;
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
      if (is_float_word(token.text)) {
        Lexer ahead = lexer_;
        ahead.advance();
        if (!ahead.peek().is('(')) break;
      }
      lexer_.advance();
      return got(AttributeKind::kGraph) && subgraph(attribute, token, scope);
    }
    default:
      return unexpected("an attribute's value");
  }
  return got(AttributeKind::kFloat) && floating(attribute.f);
}

bool Reader::subgraph(Attribute& attribute, const Token& name_token, const Scope& scope) {
  if (!lexer_.peek().is('(') && lexer_.peek().kind != TokenKind::kArrow)
    return unexpected("`(` before the inputs of a graph");
  if (scope.depth + 1 > kMaxDepth)
    return fail(name_token.position, fmt::format("graphs nest more than {} deep", kMaxDepth));
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

}  // namespace tensorlint::text
