#include "runtime/interpreter/concrete_facts.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/values/codec.h"

namespace tensorlint::runtime {
namespace {

void set_content(FactStore& facts, const HostTensor& tensor, Fact& fact) {
  Content content;
  if (is_integer_or_bool(tensor.dtype())) {
    std::vector<std::int64_t> elements(tensor.size());
    load(tensor, 0, elements.size(), elements.data());
    if (tensor.dtype() == DType::kUint64 && std::ranges::any_of(elements, [](std::int64_t x) { return x < 0; })) return;
    for (const std::int64_t element : elements) content.integers.push_back(facts.dims().constant(element));
  } else if (is_float(tensor.dtype())) {
    content.floats.resize(tensor.size());
    load(tensor, 0, tensor.size(), content.floats.data());
  } else {
    return;
  }
  fact.content = facts.intern_content(std::move(content));
}

/// Of a sequence or an optional.
FactId list_fact(FactStore& facts, const HostValue& value, KnownLists<FactId>& lists) {
  Fact fact;
  fact.kind = value.kind();
  bool first = true;
  for (const HostValue& element : value.elements()) {
    const FactId id = concrete_fact(facts, element, false, lists);
    fact.element = first ? id : facts.join(fact.element, id);
    first = false;
  }
  if (first) {
    Fact element;
    element.kind = ValueKind::kTensor;
    element.dtypes = value.dtype() == DType::kUndefined ? DTypeSet::all() : DTypeSet(value.dtype());
    element.range = range_of(element.dtypes);
    fact.element = facts.intern(element);
  }
  if (fact.kind == ValueKind::kSequence) {
    const Dim length[] = {facts.dims().constant(static_cast<std::int64_t>(value.elements().size()))};
    fact.shape = facts.intern_shape(length);
  }
  return facts.intern(fact);
}

/// Range and content of a numeric tensor.
bool elements_fit(const FactStore& facts, const Fact& fact, const HostTensor& tensor, std::string& why) {
  const bool is_integer = is_integer_or_bool(tensor.dtype());
  if (!is_integer && !is_float(tensor.dtype())) return true;
  const Content* const content = facts.content(fact.content);
  Range attained{HUGE_VAL, -HUGE_VAL, false};
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const double number = number_at(tensor, i);
    attained = {std::min(attained.lo, number), std::max(attained.hi, number), false};
    if (std::isnan(number) ? !fact.range.nan : number < fact.range.lo || number > fact.range.hi) {
      why = fmt::format("element {} is {}, outside {}", i, number, fact.range.to_text());
      return false;
    }
    if (content == nullptr || tensor.size() != content->size()) continue;
    if (is_integer && !content->integers.empty()) {
      const auto known = facts.dims().as_constant(content->integers[i]);
      if (known && *known != integer_at(tensor, i)) {
        why = fmt::format("element {} is {} instead of {}", i, integer_at(tensor, i), *known);
        return false;
      }
    }
    if (!is_integer && !content->floats.empty() && content->floats[i] != number &&
        !(std::isnan(number) && std::isnan(content->floats[i]))) {
      why = fmt::format("element {} is {} instead of {}", i, number, content->floats[i]);
      return false;
    }
  }
  if (fact.attains && tensor.size() > 0 && (attained.lo != fact.range.lo || attained.hi != fact.range.hi)) {
    why = fmt::format("its elements are in {}, {} was to be attained", attained.to_text(), fact.range.to_text());
    return false;
  }
  return true;
}

/// Lists that have been looked at: elements share them.
using ListsWithin = std::set<std::pair<FactId, const void*>>;

bool contains(const FactStore& facts, FactId id, const HostValue& value, std::string& why, ListsWithin& within) {
  if (id == FactId::kTop || id == FactId::kAbsent || value.is_absent()) return true;
  const Fact& fact = facts.fact(id);
  if (fact.kind != ValueKind::kUnknown && fact.kind != value.kind()) {
    why = fmt::format("it is a {} instead of a {}", to_text(value.kind()), to_text(fact.kind));
    return false;
  }
  if (!value.is_tensor()) {
    if (!within.emplace(id, &value.elements()).second) return true;
    return std::ranges::all_of(value.elements(), [&](const HostValue& element) {
      return contains(facts, fact.element, element, why, within);
    });
  }
  const HostTensor& tensor = value.tensor();
  if (!fact.dtypes.contains(tensor.dtype())) {
    why = fmt::format("its dtype is {} instead of {}", to_text(tensor.dtype()), fact.dtypes.to_text());
    return false;
  }
  if (facts.is_ranked(fact.shape)) {
    const std::span<const Dim> dims = facts.dims_of(fact.shape);
    bool fits = dims.size() == tensor.rank();
    for (std::size_t axis = 0; fits && axis < dims.size(); ++axis)
      fits = facts.dims().bounds(dims[axis]).contains(tensor.extent(axis));
    if (!fits) {
      why = fmt::format("its shape is [{}] instead of {}", fmt::join(tensor.extents(), ", "),
                        facts.shape_text(fact.shape));
      return false;
    }
  }
  return elements_fit(facts, fact, tensor, why);
}

}  // namespace

FactId concrete_fact(FactStore& facts, const HostValue& value, bool with_content, KnownLists<FactId>& lists) {
  if (value.is_absent()) return FactId::kAbsent;
  if (!value.is_tensor()) return lists.of(value, [&] { return list_fact(facts, value, lists); });
  Fact fact;
  fact.kind = value.kind();
  const HostTensor& tensor = value.tensor();
  fact.dtypes = tensor.dtype();
  std::vector<Dim> dims;
  for (const std::int64_t extent : tensor.extents()) dims.push_back(facts.dims().constant(extent));
  fact.shape = facts.intern_shape(dims);
  fact.range = range_of(fact.dtypes);
  if (with_content && tensor.size() <= kMaxContent) set_content(facts, tensor, fact);
  return facts.intern(fact);
}

bool contains(const FactStore& facts, FactId id, const HostValue& value, std::string& why) {
  ListsWithin within;
  return contains(facts, id, value, why, within);
}

}  // namespace tensorlint::runtime
