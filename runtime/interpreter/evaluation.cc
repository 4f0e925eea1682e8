#include "runtime/interpreter/evaluation.h"

#include <numeric>

#include "ir/ops/shape_functions.h"
#include "runtime/values/codec.h"

namespace tensorlint::runtime {
namespace {

constexpr std::uint64_t kBesideElements = 1024;  // of a tensor, at most

}  // namespace

const ResultType& InferredCall::type(const FactStore& facts, std::size_t index) {
  if (types_.empty()) types_.resize(result.results.size());
  std::optional<ResultType>& type = types_[index];
  if (type) return *type;
  const Fact& fact = facts.fact(result.results[index]);
  auto extents =
      facts.is_ranked(fact.shape) ? ops::constant_extents(facts.dims(), facts.dims_of(fact.shape)) : std::nullopt;
  const bool is_known = extents.has_value();
  Shape shape = is_known ? Shape(*std::move(extents)) : Shape();
  type.emplace();
  type->is_tensor = fact.kind == ValueKind::kTensor;
  if (is_known) type->shape.emplace(std::move(shape));
  type->dtype = fact.dtypes.single();
  return *type;
}

void InferredCall::clear() {
  result.clear();
  types_.clear();
}

const HostTensor& Evaluation::operand(int index) const {
  if (!has(index)) fail("operand {} is missing", index);
  const HostValue& value = operands_[static_cast<std::size_t>(index)];
  if (!value.is_tensor()) fail("operand {} is a {} instead of a tensor", index, to_text(value.kind()));
  return value.tensor();
}

ConstantCache::Weights Evaluation::kept_packed(int index, std::int64_t part) const {
  return is_fixed(index) ? constants_->weights({node_, index, part}) : nullptr;
}

ConstantCache::Weights Evaluation::keep_packed(int index, std::int64_t part, const Factor& b, std::int64_t k,
                                               std::int64_t n) {
  if (auto kept = kept_packed(index, part)) return kept;
  if (!is_fixed(index) || !constants_->has_room(PackedFactor::bytes(k, n))) return nullptr;
  auto packed = std::make_shared<const PackedFactor>(b, k, n, memory_);
  constants_->keep({node_, index, part}, packed);
  return packed;
}

HostTensor Evaluation::widened(int index) {
  const HostTensor& tensor = operand(index);
  if (is_wide(tensor.dtype())) return tensor;
  if (is_fixed(index))
    if (HostTensor kept = constants_->widened({node_, index, 0}); !kept.is_absent()) return kept;
  return runtime::widened(tensor, memory_);
}

void Evaluation::keep_widened(int index, const HostTensor& widened) {
  if (is_fixed(index) && !is_wide(operand(index).dtype())) constants_->keep({node_, index, 0}, widened);
}

void Evaluation::take_numbers(std::size_t count) const {
  const std::uint64_t bytes = count * sizeof(double);
  memory_.take(bytes);
  numbers_ += bytes;
}

std::vector<std::int64_t> Evaluation::integers(int index) const {
  const HostTensor& tensor = operand(index);
  take_numbers(tensor.size());
  std::vector<std::int64_t> elements(tensor.size());
  load(tensor, 0, elements.size(), elements.data());
  return elements;
}

std::vector<double> Evaluation::numbers(int index) const {
  const HostTensor& tensor = operand(index);
  take_numbers(tensor.size());
  std::vector<double> elements(tensor.size());
  load(tensor, 0, elements.size(), elements.data());
  return elements;
}

std::int64_t Evaluation::integer(int index) const {
  const HostTensor& tensor = operand(index);
  if (tensor.size() != 1) fail("operand {} has {} elements instead of one", index, tensor.size());
  return integer_at(tensor, 0);
}

double Evaluation::number(int index) const {
  const HostTensor& tensor = operand(index);
  if (tensor.size() != 1) fail("operand {} has {} elements instead of one", index, tensor.size());
  return number_at(tensor, 0);
}

bool Evaluation::wants(int index) const { return index >= 0 && static_cast<std::size_t>(index) < results_.size(); }

HostTensor& Evaluation::result(int index) {
  HostValue& slot = results_[static_cast<std::size_t>(index)];
  if (!slot.is_absent()) return slot.tensor();
  const ResultType& type = type_of_result(index);
  if (!type.shape) fail("the extents of result {} do not follow from the operands", index);
  if (!type.dtype) fail("the dtype of result {} does not follow from the operands", index);
  slot = HostTensor(*type.shape, *type.dtype, memory_);
  return slot.tensor();
}

HostTensor& Evaluation::result_over(std::initializer_list<int> operands, int index) {
  HostValue& slot = results_[static_cast<std::size_t>(index)];
  if (!slot.is_absent()) return slot.tensor();
  const ResultType& type = type_of_result(index);
  if (!type.shape || !type.dtype) return result(index);
  const auto takes_over = [&] {
    for (const int operand : operands) {
      if (!has(operand) || !value(operand).is_tensor()) continue;
      const HostTensor& tensor = value(operand).tensor();
      if (!tensor.is_sole_owner() || tensor.dtype() != *type.dtype || tensor.shape() != *type.shape) continue;
      slot = tensor;
      return true;
    }
    return false;
  };
  if (takes_over()) return slot.tensor();
  // An operand that is only kept for later runs goes where there is no memory for another tensor.
  if (!memory_.has_room(type.shape->size() * element_bytes(*type.dtype) + kBesideElements)) {
    memory_.release_reserve();
    if (takes_over()) return slot.tensor();
  }
  return result(index);
}

HostTensor& Evaluation::allocate(int index, DType dtype, Extents extents) {
  const Fact& fact = call().facts->fact(inferred_.result.results[static_cast<std::size_t>(index)]);
  const FactStore& facts = *call().facts;
  bool fits = fact.dtypes.contains(dtype);
  if (facts.is_ranked(fact.shape)) {
    const std::span<const Dim> dims = facts.dims_of(fact.shape);
    fits = fits && dims.size() == extents.size();
    for (std::size_t axis = 0; fits && axis < dims.size(); ++axis)
      fits = facts.dims().bounds(dims[axis]).contains(extents[axis]);
  }
  if (!fits)
    fail("result {} is {}[{}], which its fact {} excludes: a bug of tensorlint", index, to_text(dtype),
         fmt::join(extents, ", "), facts.to_text(inferred_.result.results[static_cast<std::size_t>(index)]));
  HostValue& slot = results_[static_cast<std::size_t>(index)];
  slot = HostTensor(dtype, std::move(extents), memory_);
  return slot.tensor();
}

void Evaluation::set(int index, HostValue value) {
  if (wants(index)) results_[static_cast<std::size_t>(index)] = std::move(value);
}

void Evaluation::set_reshaped(int index, const HostTensor& tensor) {
  const std::optional<Shape>& shape = type_of_result(index).shape;
  if (!shape) fail("the extents of result {} do not follow from the operands", index);
  if (shape->size() != tensor.size())
    fail("{} elements do not fit [{}]", tensor.size(), fmt::join(shape->extents(), ", "));
  set(index, tensor.reshaped_to(*shape));
}

}  // namespace tensorlint::runtime
