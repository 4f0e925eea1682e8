#include "ir/ops/contents.h"

#include <algorithm>
#include <cmath>

#include "ir/ops/checks.h"
#include "ir/ops/readable_strings.h"

namespace tensorlint::ops {
namespace {

/// Constants of up to this many integers are scanned for their range, so that index tables are checked too.
constexpr std::size_t kMaxRangeScan = 1U << 16;

/// The elements of a tensor of integers. Those that are only scanned are read anew in each visit of a body, some 4 ns
/// each, however few bits they have.
std::optional<std::vector<std::int64_t>> scanned_integers(FactStore& facts, const Tensor& tensor, DTypeSet dtypes) {
  const bool has_integers = dtypes.proves(DTypeSet::integers() | DTypeSet(DType::kBool));
  const std::uint64_t count = tensor.element_count().value_or(kMaxRangeScan + 1);
  facts.meter().charge(tensor.dims.size());  // there may be thousands of 1
  if (!has_integers || tensor.external || count > kMaxRangeScan) return std::nullopt;
  if (count > kMaxContent) {
    if (!facts.meter().may_read(tensor.numbers_begin(), tensor.inline_bytes())) return std::nullopt;
    facts.meter().charge(count / 2);
  }
  return tensor.integers(kMaxRangeScan);
}

}  // namespace

std::optional<std::vector<std::int64_t>> followed_extents(const DimPool& pool, std::span<const Dim> shape) {
  auto extents = constant_extents(pool, shape);
  if (!extents) return std::nullopt;
  std::uint64_t total = 1;
  for (const std::int64_t extent : *extents) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) return extents;
  }
  for (const std::int64_t extent : *extents) {
    if (static_cast<std::uint64_t>(extent) > kMaxContent) return std::nullopt;
    total *= static_cast<std::uint64_t>(extent);
    if (total > kMaxContent) return std::nullopt;
  }
  return extents;
}

std::size_t element_total(std::span<const std::int64_t> extents) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return 0;
  std::size_t total = 1;
  for (const std::int64_t extent : extents) total *= static_cast<std::size_t>(extent);
  return total;
}

std::vector<std::size_t> strides_of(std::span<const std::int64_t> extents) {
  std::vector<std::size_t> strides(extents.size(), 1);
  // Of an empty tensor the extents may be huge; no element is ever addressed by its strides.
  if (element_total(extents) == 0) return strides;
  for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * static_cast<std::size_t>(extents[i]);
  return strides;
}

const Content* content_of(Inference& in, int operand) {
  const auto shape = in.shape(operand);
  if (!shape) return nullptr;
  const Content* content = in.facts().content(in.operand(operand).content);
  if (content == nullptr) return nullptr;
  const auto extents = followed_extents(in.dims(), *shape);
  return extents && element_total(*extents) == content->size() ? content : nullptr;
}

void select_elements(Inference& in, int result, int operand, std::span<const std::size_t> indices) {
  const Content* content = content_of(in, operand);
  if (content == nullptr || indices.size() > kMaxContent) return;
  if (!content->floats.empty()) {
    std::vector<double> floats;
    for (const std::size_t index : indices) floats.push_back(content->floats[index]);
    in.set_floats(result, std::move(floats));
    return;
  }
  std::vector<Dim> integers;
  for (const std::size_t index : indices) integers.push_back(content->integers[index]);
  in.set_elements(result, std::move(integers));
}

void keep_elements(Inference& in, int result, int operand) {
  in.result(result).range = in.operand(operand).range;
  in.result(result).content = in.operand(operand).content;
}

std::optional<std::vector<Dim>> integer_list(Inference& in, std::string_view name, bool& given) {
  std::vector<Dim> list;
  given = true;
  if (const auto attribute = in.ints_attribute(name)) {
    for (const std::int64_t element : *attribute) list.push_back(in.dims().constant(element));
    return list;
  }
  const int operand = in.call().schema->input_index(name);
  given = in.has(operand);
  if (!given) return list;
  // onnxruntime takes a scalar as the one axis of Unsqueeze, everybody as the one extent of Expand.
  const bool takes_scalar = in.call().name == "Unsqueeze" || in.call().name == "Expand";
  if (!(takes_scalar && in.rank(operand) == 0) && !check_list(in, operand)) return std::nullopt;
  if (const auto elements = in.elements(operand)) return std::vector<Dim>(elements->begin(), elements->end());
  const auto shape = in.shape(operand);
  const auto length = shape && shape->size() == 1 ? in.dims().as_constant(shape->front()) : std::nullopt;
  if (!length || *length < 0 || *length > static_cast<std::int64_t>(kMaxContent)) return std::nullopt;
  list.assign(static_cast<std::size_t>(*length), Dim(Unknown::kDataDependent));
  return list;
}

std::optional<std::vector<std::int64_t>> constant_list(Inference& in, std::string_view name, bool& given) {
  const auto list = integer_list(in, name, given);
  return list ? constant_extents(in.dims(), *list) : std::nullopt;
}

Range range_of(std::span<const double> values) {
  Range range{HUGE_VAL, -HUGE_VAL, false};
  for (const double value : values) {
    range.nan = range.nan || std::isnan(value);
    if (std::isnan(value)) continue;
    range.lo = std::min(range.lo, value);
    range.hi = std::max(range.hi, value);
  }
  return range.lo <= range.hi ? range : Range{};
}

Fact fact_of_tensor(FactStore& facts, const Tensor& tensor, std::size_t most_floats) {
  Fact fact;
  fact.kind = ValueKind::kTensor;
  if (is_known_dtype(tensor.dtype_code)) fact.dtypes = static_cast<DType>(tensor.dtype_code);
  if (tensor.dims.size() <= kMaxRank) {
    Dims dims;
    for (const std::int64_t extent : tensor.dims) dims.push_back(extent < 0 ? Dim() : facts.dims().constant(extent));
    fact.shape = facts.intern_shape(dims);
  }
  fact.range = range_of(fact.dtypes);
  if (const auto integers = scanned_integers(facts, tensor, fact.dtypes)) {
    if (integers->size() <= kMaxContent) {
      Content content;
      for (const std::int64_t element : *integers) content.integers.push_back(facts.dims().constant(element));
      if (!content.integers.empty()) fact.range = range_of(facts.dims(), content.integers);
      fact.content = facts.intern_content(std::move(content));
    } else {
      const auto [lo, hi] = std::minmax_element(integers->begin(), integers->end());
      const Dim ends[] = {facts.dims().constant(*lo), facts.dims().constant(*hi)};
      fact.range = range_of(facts.dims(), ends);
    }
  } else if (auto floats = tensor.floats(most_floats); floats && !floats->empty()) {
    fact.range = range_of(std::span<const double>(*floats));
    fact.content = facts.intern_content({{}, std::move(*floats)});
  } else if (fact.dtypes == DTypeSet(DType::kString)) {
    note_readable(facts, tensor, fact);
  }
  return fact;
}

}  // namespace tensorlint::ops
