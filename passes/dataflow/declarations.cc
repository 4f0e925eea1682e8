#include "base/hash.h"
#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

const ops::Constraint kDeclared{"declared_type", ops::ConstraintKind::kDeclaredType,
                                "the declared type agrees with the inferred one"};
const ops::Constraint kDeclaredShape{"declared_shape", ops::ConstraintKind::kDeclaredShape,
                                     "the declared shape agrees with the inferred one"};
const ops::Constraint kNotedShape{"noted_shape", ops::ConstraintKind::kNotedShape,
                                  "the shape in value_info agrees with the inferred one"};

}  // namespace

void Solver::check_declarations(NodeId id) {
  const std::span<const ValueId> results = model_.results(model_.node(id));
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (results[r] == ValueId::kAbsent) continue;
    const Value& value = model_.value(results[r]);
    if (value.type == nullptr || value.type->kind == TypeKind::kNone) continue;
    check_declaration(id, results[r], static_cast<int>(r), *value.type);
  }
}

/// Compares a declaration with what was inferred, and takes from it what is not known better.
void Solver::check_declaration(NodeId id, ValueId value, int result, const TypeDecl& type) {
  AbstractValue& current = current_[value];
  const FactId declared_id = initial_facts_.declared(type, mix(0x0dec, static_cast<std::uint64_t>(value)) | 1);
  const Fact declared = facts_.fact(declared_id);
  Fact fact = facts_.fact(current.fact);
  if (declared.kind == ValueKind::kUnknown) return;
  if (fact.kind == ValueKind::kUnknown) {
    fact = declared;
    fact.shape = ShapeId::kUnranked;  // taken below
  }
  const auto contradiction = [&](ops::Message message, const ops::Constraint& constraint = kDeclared) {
    if (current.taint == Taint()) record(id, constraint, {}, std::move(message));
  };
  const auto other_shape = [&] {
    contradiction({"{} is declared with shape {} but has shape {}", ops::ResultRef(result), declared.shape, fact.shape},
                  model_.value(value).is_output ? kDeclaredShape : kNotedShape);
  };
  if (fact.kind != declared.kind) {
    contradiction({"{} is declared as {} but is a {}", ops::ResultRef(result), declared_id, to_text(fact.kind)});
    return;
  }
  if (fact.kind != ValueKind::kTensor && fact.kind != ValueKind::kSparseTensor) return;
  if (!fact.dtypes.intersects(declared.dtypes)) {
    contradiction({"{} is declared as {} but is {}", ops::ResultRef(result), declared.dtypes, fact.dtypes});
    return;
  }
  fact.dtypes = fact.dtypes & declared.dtypes;
  if (declared.shape != ShapeId::kUnranked) {
    const auto wanted = facts_.dims_of(declared.shape);
    // A name in a body or function means another extent in each visit: there only numbers are taken.
    const bool main = model_.value(value).graph == GraphId::kMain;
    if (fact.shape == ShapeId::kUnranked) {
      ops::Dims dims = ops::copy_dims(wanted);
      for (Dim& dim : dims)
        if (!options_.believes_shapes || (!main && !facts_.dims().as_constant(dim))) dim = Dim();
      fact.shape = facts_.intern_shape(dims);
    } else {
      const auto have = facts_.dims_of(fact.shape);
      if (have.size() != wanted.size()) {
        other_shape();
        return;
      }
      ops::Dims merged = ops::copy_dims(have);
      for (std::size_t axis = 0; axis < merged.size(); ++axis) {
        const auto x = facts_.dims().as_constant(have[axis]), y = facts_.dims().as_constant(wanted[axis]);
        if (x && y && *x != *y) {
          other_shape();
          return;
        }
        if (options_.believes_shapes && have[axis].is_unknown() && (main || y)) merged[axis] = wanted[axis];
      }
      fact.shape = facts_.intern_shape(merged);
    }
  }
  current.fact = facts_.intern(fact);
}

}  // namespace tensorlint::dataflow
