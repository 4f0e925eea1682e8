#include "passes/dataflow/abstract_value.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/ops/shape_functions.h"

namespace tensorlint::dataflow {
namespace {

bool is_younger(const FactStore& facts, Dim dim, std::uint32_t checkpoint) {
  if (dim.is_unknown() || facts.dims().as_constant(dim)) return false;
  const std::vector<Dim> symbols = facts.dims().symbols(dim);
  return std::any_of(symbols.begin(), symbols.end(), [&](Dim symbol) { return symbol.id() >= checkpoint; });
}

/// Two tensors, both as they should be.
bool are_tensors(const FactStore& facts, const AbstractValue& a, const AbstractValue& b) {
  return facts.fact(a.fact).kind == ValueKind::kTensor && facts.fact(b.fact).kind == ValueKind::kTensor &&
         a.taint == Taint() && b.taint == Taint();
}

template <typename Differ>
bool ranks_or_extents_clash(const FactStore& facts, const AbstractValue& a, const AbstractValue& b, Differ differ) {
  if (!are_tensors(facts, a, b)) return false;
  if (ranks_clash(facts, a, b)) return true;
  const auto dims = facts.dims_of(facts.fact(a.fact).shape), others = facts.dims_of(facts.fact(b.fact).shape);
  for (std::size_t axis = 0; axis < std::min(dims.size(), others.size()); ++axis)
    if (differ(dims[axis], others[axis])) return true;
  return false;
}

}  // namespace

Taint everything_tainted() {
  Taint taint(Aspect::kDtype);
  taint |= Aspect::kShape;
  taint |= Aspect::kValue;
  return taint;
}

AbstractValue join(FactStore& facts, const AbstractValue& a, const AbstractValue& b) {
  AbstractValue result{facts.join(a.fact, b.fact), a.taint};
  result.taint |= b.taint;
  return result;
}

bool types_clash(const FactStore& facts, FactId a_id, FactId b_id) {
  if (a_id == b_id) return false;
  facts.meter().charge(1);
  const Fact &a = facts.fact(a_id), &b = facts.fact(b_id);
  if (a.kind == ValueKind::kUnknown || b.kind == ValueKind::kUnknown) return false;
  // An optional and what it holds may take turns (backend test loop16_seq_none).
  if (a.kind == ValueKind::kOptional && b.kind != ValueKind::kOptional) return types_clash(facts, a.element, b_id);
  if (b.kind == ValueKind::kOptional && a.kind != ValueKind::kOptional) return types_clash(facts, a_id, b.element);
  if (a.kind != b.kind) return true;
  const bool tensor = a.kind == ValueKind::kTensor || a.kind == ValueKind::kSparseTensor;
  return tensor ? !a.dtypes.intersects(b.dtypes)
                : a.element != FactId::kTop && b.element != FactId::kTop && types_clash(facts, a.element, b.element);
}

bool ranks_clash(const FactStore& facts, const AbstractValue& a, const AbstractValue& b) {
  const ShapeId x = facts.fact(a.fact).shape, y = facts.fact(b.fact).shape;
  return are_tensors(facts, a, b) && facts.is_ranked(x) && facts.is_ranked(y) &&
         facts.dims_of(x).size() != facts.dims_of(y).size();
}

bool shapes_clash(const FactStore& facts, const AbstractValue& a, const AbstractValue& b) {
  return ranks_or_extents_clash(facts, a, b, [&](Dim one, Dim other) {
    const auto extent = facts.dims().as_constant(one), against = facts.dims().as_constant(other);
    return extent && against && *extent != *against;
  });
}

bool shapes_never_equal(FactStore& facts, const AbstractValue& a, const AbstractValue& b) {
  return ranks_or_extents_clash(facts, a, b, [&](Dim one, Dim other) { return facts.dims().never_equal(one, other); });
}

std::optional<std::int64_t> single_constant(const FactStore& facts, FactId id) {
  if (id == FactId::kAbsent) return std::nullopt;
  const Content* content = facts.content(facts.fact(id).content);
  if (content == nullptr || content->integers.size() != 1) return std::nullopt;
  return facts.dims().as_constant(content->integers.front());
}

FactId any_floating_value(FactStore& facts, FactId id) {
  if (id == FactId::kAbsent || id == FactId::kTop) return id;
  Fact fact = facts.fact(id);
  if (fact.kind != ValueKind::kTensor || !fact.dtypes.proves(DTypeSet::floats())) return id;
  fact.range = range_of(fact.dtypes);
  fact.attains = false;
  fact.content = ContentId::kNone;
  return facts.intern(fact);
}

FactId without_symbols_since(FactStore& facts, FactId id, std::uint32_t checkpoint) {
  if (id == FactId::kAbsent || id == FactId::kTop) return id;
  Fact fact = facts.fact(id);
  if (fact.shape != ShapeId::kUnranked) {
    ops::Dims dims = ops::copy_dims(facts.dims_of(fact.shape));
    for (Dim& dim : dims)
      if (is_younger(facts, dim, checkpoint)) dim = Dim(Unknown::kLoopCarried);
    fact.shape = facts.intern_shape(dims);
  }
  if (const Content* content = facts.content(fact.content); content != nullptr && !content->integers.empty()) {
    Content kept = *content;
    for (Dim& dim : kept.integers)
      if (is_younger(facts, dim, checkpoint)) dim = Dim(Unknown::kLoopCarried);
    fact.content = facts.intern_content(std::move(kept));
  }
  if (fact.element != FactId::kTop) fact.element = without_symbols_since(facts, fact.element, checkpoint);
  return facts.intern(fact);
}

bool has_symbols_since(FactStore& facts, std::span<const AbstractValue> values, std::uint32_t checkpoint) {
  return std::any_of(values.begin(), values.end(), [&](const AbstractValue& value) {
    return without_symbols_since(facts, value.fact, checkpoint) != value.fact;
  });
}

}  // namespace tensorlint::dataflow
