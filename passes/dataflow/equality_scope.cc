#include "passes/dataflow/equality_scope.h"

#include <algorithm>
#include <span>

#include "ir/ops/shape_functions.h"

namespace tensorlint::dataflow {

FactId EqualityScope::rewritten(FactId id) {
  const Fact& before = facts_.fact(id);
  const bool has_dims = before.shape != ShapeId::kUnranked && !facts_.dims_of(before.shape).empty();
  if (!has_dims && before.content == ContentId::kNone && before.element == FactId::kTop) return id;
  const std::uint64_t key = state_.number << 32 | static_cast<std::uint64_t>(id);
  if (const auto found = canonical_.find(key); found != canonical_.end()) return found->second;
  if (left_ == 0) return id;
  --left_;
  Fact fact = before;
  const auto rewritten = [this](std::span<const Dim> dims) {
    left_ -= std::min<std::uint64_t>(left_, dims.size());
    ops::Dims result = ops::copy_dims(dims);
    for (Dim& dim : result) dim = state_.known.apply(facts_.dims(), dim);
    return result;
  };
  if (fact.shape != ShapeId::kUnranked) fact.shape = facts_.intern_shape(rewritten(facts_.dims_of(fact.shape)));
  if (const Content* content = facts_.content(fact.content); content != nullptr && !content->integers.empty())
    fact.content = facts_.intern_content({rewritten(content->integers), {}});
  if (fact.element != FactId::kTop) fact.element = canonical(fact.element);
  const FactId result = facts_.intern(fact);
  canonical_.emplace(key, result);
  memory_.add(kBytesOfEntry);
  return result;
}

}  // namespace tensorlint::dataflow
