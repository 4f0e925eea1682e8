#include "ir/text/model_reader.h"

namespace tensorlint::text {

bool Reader::dtype(std::int32_t& code, std::string_view wanted) {
  const Token& token = lexer_.peek();
  const auto known = token.kind == TokenKind::kIdentifier ? dtype_code_named(token.text) : std::nullopt;
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
  return expect(']', "or `,` after a dim");
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
    if (outers.size() == kMaxTypeDepth)
      return fail(token.position, fmt::format("types nest more than {} deep", kMaxTypeDepth));
    lexer_.advance();
    Outer outer{.kind = sequence ? TypeKind::kSequence : optional ? TypeKind::kOptional : TypeKind::kMap, .key = 0};
    if (!expect('(', "after the kind of a type")) return false;
    if (map && (!dtype(outer.key, "the type of a map's key") || !expect(',', "after the type of a map's key")))
      return false;
    outers.push_back(outer);
  }
  out = {};
  dims_.clear();
  if (!empty) {
    const Token word = lexer_.peek();
    if (word.text == "sparse_tensor") {
      lexer_.advance();
      out.leaf.kind = TypeKind::kSparseTensor;
      if (!expect('(', "after the kind of a type") ||
          !dtype(out.leaf.element_code, "the element type of a sparse tensor") || !shape(out.leaf.ranked) ||
          !expect(')', "after the type of a sparse tensor"))
        return false;
    } else if (word.text == "opaque") {
      lexer_.advance();
      out.leaf.kind = TypeKind::kOpaque;
      if (!expect('(', "after the kind of a type")) return false;
      if (!lexer_.accept(')')) {
        NameId part{};
        do {
          if (!name(part, "the name of an opaque type")) return false;
        } while (lexer_.accept('.') || lexer_.accept(','));
        if (!expect(')', "after the name of an opaque type")) return false;
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
    if (!expect(')', "after the inner type")) return false;
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
    if (at->element == nullptr &&
        (at->kind == TypeKind::kSequence || at->kind == TypeKind::kOptional || at->kind == TypeKind::kMap))
      problem = "a type declares no element type";
    for (const DimDecl& dim : at->dims)
      if (dim.has_extent && dim.extent < -1) problem = fmt::format("a type declares the negative dim {}", dim.extent);
  }
  if (!problem.empty()) malformed(Kind::kMalformedType, scope, start, std::move(problem));
  return true;
}

}  // namespace tensorlint::text
