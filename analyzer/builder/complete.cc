#include "analyzer/builder/state.h"

namespace tensorlint::builder {
namespace {

constexpr int kMaxTypeDepth = 8;

/// What is known of a value, as far as a declaration can say it; null for nothing.
const TypeDecl* type_of(Recording& recording, const FactStore& facts, FactId id, int depth) {
  const Fact& fact = facts.fact(id);
  if (depth > kMaxTypeDepth) return nullptr;
  if (fact.kind == ValueKind::kSequence || fact.kind == ValueKind::kOptional) {
    const TypeDecl* element = type_of(recording, facts, fact.element, depth + 1);
    if (element == nullptr) return nullptr;
    TypeDecl* const type = recording.memory().new_type();
    type->kind = fact.kind == ValueKind::kSequence ? TypeKind::kSequence : TypeKind::kOptional;
    type->element = element;
    return type;
  }
  const auto dtype = fact.dtypes.single();
  if (fact.kind != ValueKind::kTensor || !dtype) return nullptr;
  TypeDecl* const type = recording.memory().new_type();
  type->kind = TypeKind::kTensor;
  type->element_code = static_cast<std::int32_t>(*dtype);
  type->ranked = facts.is_ranked(fact.shape);
  std::vector<DimDecl> dims;
  for (const Dim dim : facts.dims_of(fact.shape)) {
    DimDecl decl;
    if (const auto extent = facts.dims().as_constant(dim)) {
      decl.extent = *extent;
      decl.has_extent = true;
    } else if (facts.dims().is_symbol(dim) && facts.dims().is_named(dim)) {
      decl.name = recording.intern(facts.dims().to_text(dim));  // a formula would be a name of its own: left open
    }
    dims.push_back(decl);
  }
  type->dims = recording.memory().keep_dims(dims);
  return type;
}

}  // namespace

const Model& State::complete() {
  growing.finish();
  write_losses();
  for (const ValueId id : model().values.ids(kFirstValue)) {
    const tensorlint::Value& value = model().value(id);
    if (model().graph(value.graph).kind == GraphKind::kFunction) continue;
    const bool is_computed = value.origin == ValueOrigin::kNode || value.origin == ValueOrigin::kInput;
    if (!is_computed || value.type != nullptr) continue;
    // What follows from a mistake is no more than a guess.
    if (value.origin == ValueOrigin::kNode && !value.is_output && analysis().taint(id) != Taint()) continue;
    if (const TypeDecl* type = type_of(recording, facts(), analysis().fact_id(id), 0)) recording.declare(id, type);
  }
  return model();
}

}  // namespace tensorlint::builder
