// Sequences and optionals. Source: ONNX SequenceConstruct, SequenceEmpty, SequenceInsert, SequenceErase, SequenceAt,
// SequenceLength, ConcatFromSequence (opset 11), SplitToSequence (11), Optional, OptionalGetElement,
// OptionalHasElement (15, 18).
#include <memory_resource>

#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"
#include "runtime/values/nesting.h"

namespace tensorlint::runtime {
namespace {

const HostValue& sequence_operand(Evaluation& e) {
  if (!e.has(0)) e.fail("operand 0 is missing");
  if (e.value(0).kind() != ValueKind::kSequence)
    e.fail("operand 0 is a {}, not a sequence", to_text(e.value(0).kind()));
  return e.value(0);
}

/// In [0, length), or one more for an insertion; negative ones count from the back.
std::ptrdiff_t position(Evaluation& e, int operand, std::size_t length, bool insertion) {
  const std::int64_t at = e.integer(operand), n = static_cast<std::int64_t>(length);
  if (at < -n || at > n || (at == n && !insertion)) e.fail("position {} is outside the sequence of {}", at, n);
  return at < 0 ? at + n : at;
}

void sequence_construct(Evaluation& e) {
  std::vector<HostValue> elements;
  for (std::size_t i = 0; i < e.operand_count(); ++i) elements.push_back(e.value(static_cast<int>(i)));
  const DType dtype = elements.empty() ? DType::kUndefined : elements.front().dtype();
  e.set(0, bounded(HostValue::sequence(std::move(elements), dtype, e.memory())));
}

void sequence_empty(Evaluation& e) {
  e.set(0, HostValue::sequence(
               {}, static_cast<DType>(e.in().int_attribute("dtype", static_cast<std::int64_t>(DType::kFloat32))),
               e.memory()));
}

void sequence_insert(Evaluation& e) {
  const HostValue& sequence = sequence_operand(e);
  std::vector<HostValue> elements = sequence.elements();
  const std::ptrdiff_t at =
      e.has(2) ? position(e, 2, elements.size(), true) : static_cast<std::ptrdiff_t>(elements.size());
  elements.insert(elements.begin() + at, e.value(1));
  e.set(0, bounded(HostValue::sequence(std::move(elements), e.value(1).dtype(), e.memory())));
}

void sequence_erase(Evaluation& e) {
  const HostValue& sequence = sequence_operand(e);
  std::vector<HostValue> elements = sequence.elements();
  if (elements.empty()) e.fail("the sequence has no element to erase");
  elements.erase(elements.begin() + (e.has(1) ? position(e, 1, elements.size(), false)
                                              : static_cast<std::ptrdiff_t>(elements.size()) - 1));
  e.set(0, HostValue::sequence(std::move(elements), sequence.dtype(), e.memory()));
}

void sequence_at(Evaluation& e) {
  const std::vector<HostValue>& elements = sequence_operand(e).elements();
  e.set(0, elements[static_cast<std::size_t>(position(e, 1, elements.size(), false))]);
}

void sequence_length(Evaluation& e) {
  const auto length = static_cast<std::int64_t>(sequence_operand(e).elements().size());
  store(e.result(), 0, 1, &length);
}

/// Sizes of the parts: each of one size but the last, as given, or 1.
std::pmr::vector<std::int64_t> part_sizes(Evaluation& e, std::int64_t extent) {
  std::pmr::vector<std::int64_t> sizes(e.memory().resource());
  std::int64_t left = extent;
  if (!e.has(1) || e.operand(1).rank() == 0) {
    const std::int64_t size = e.has(1) ? e.integer(1) : 1;
    if (size < 1) e.fail("the parts have the size {}, it has to be positive", size);
    const std::int64_t count = extent / size + (extent % size == 0 ? 0 : 1);
    // Each part is a tensor, if perhaps one without elements.
    if (static_cast<std::uint64_t>(count) > e.memory().limit() / sizeof(HostValue))
      e.fail("{} elements are too many to become parts", extent);
    sizes.reserve(static_cast<std::size_t>(count));
    for (; left > 0; left -= size) sizes.push_back(std::min(size, left));
    return sizes;
  }
  const std::vector<std::int64_t> given = e.integers(1);
  sizes.assign(given.begin(), given.end());
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > left) e.fail("the sizes of the parts do not sum up to the extent {}", extent);
    left -= size;
  }
  if (left != 0) e.fail("the sizes of the parts do not sum up to the extent {}", extent);
  return sizes;
}

void split_to_sequence(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const std::size_t axis = axis_attribute(e, 0, data.rank());
  const std::vector<std::int64_t> strides = strides_of(data.extents());
  const bool drops = !e.has(1) && e.in().int_attribute("keepdims", 1) == 0;
  std::vector<HostValue> parts;
  std::int64_t first = 0;
  for (const std::int64_t size : part_sizes(e, data.extent(axis))) {
    Extents extents = data.extents();
    extents[axis] = size;
    HostTensor part(data.dtype(), extents, e.memory());
    copy_strided(part, data, first * strides[axis], strides);
    if (drops) extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(axis));
    parts.emplace_back(part.reshaped(std::move(extents)));
    first += size;
  }
  e.set(0, HostValue::sequence(std::move(parts), data.dtype(), e.memory()));
}

/// Extents of tensors joined along an axis, which may be a new one.
Extents joined_extents(Evaluation& e, const std::vector<HostValue>& elements, std::size_t axis, bool stacks) {
  const HostTensor& first = elements.front().tensor();
  Extents extents = first.extents();
  if (!stacks) extents[axis] = 0;
  for (const HostValue& element : elements) {
    const HostTensor& tensor = element.tensor();
    bool fits = tensor.rank() == first.rank() && tensor.dtype() == first.dtype();
    for (std::size_t k = 0; fits && k < first.rank(); ++k)
      fits = (!stacks && k == axis) || tensor.extent(k) == first.extent(k);
    if (!fits)
      e.fail("{} [{}] and {} [{}] cannot be joined", to_text(first.dtype()), fmt::join(first.extents(), ", "),
             to_text(tensor.dtype()), fmt::join(tensor.extents(), ", "));
    if (!stacks && __builtin_add_overflow(extents[axis], tensor.extent(axis), &extents[axis]))
      e.fail("axis {} has more elements in all than int64 holds", axis);
  }
  if (stacks)
    extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<std::int64_t>(elements.size()));
  return extents;
}

/// Inference joins the elements' shapes into one, which leaves extents open that the elements determine.
void concat_from_sequence(Evaluation& e) {
  const std::vector<HostValue>& elements = sequence_operand(e).elements();
  if (elements.empty()) e.fail("the sequence has no elements to concatenate");
  for (const HostValue& element : elements)
    if (!element.is_tensor()) e.fail("the sequence has an element that is a {}", to_text(element.kind()));
  const bool stacks = e.in().int_attribute("new_axis", 0) != 0;
  const std::size_t rank = elements.front().tensor().rank() + (stacks ? 1 : 0);
  const std::size_t axis = axis_attribute(e, 0, rank);
  if (axis >= rank) e.fail("axis {} is outside the elements", e.in().int_attribute("axis", 0));
  HostTensor& result = e.allocate(0, elements.front().dtype(), joined_extents(e, elements, axis, stacks));
  const AxisSplit whole = split_at(result.extents(), axis);
  std::size_t first = 0;
  for (const HostValue& element : elements) {
    if (whole.outer == 0) break;
    const std::size_t run = element.tensor().size() / whole.outer;
    copy_blocks(result, element.tensor(), {run, whole.outer, first, whole.extent * whole.inner, 0, run});
    first += run;
  }
}

/// The dtype of the tensors in what the attribute `type` declares.
DType declared_dtype(const Attribute* attribute) {
  const TypeDecl* type = attribute == nullptr ? nullptr : attribute->type;
  while (type != nullptr && type->element != nullptr) type = type->element;
  return type != nullptr && is_known_dtype(type->element_code) ? static_cast<DType>(type->element_code)
                                                               : DType::kUndefined;
}

void optional(Evaluation& e) {
  e.set(0, e.has(0) ? bounded(HostValue::optional(e.value(0)))
                    : HostValue::empty_optional(declared_dtype(e.in().attribute("type"))));
}

void optional_get_element(Evaluation& e) {
  const HostValue& value = e.value(0);
  if (value.kind() != ValueKind::kOptional) return e.set(0, value);
  if (value.elements().empty()) e.fail("the optional is empty");
  e.set(0, value.elements().front());
}

void optional_has_element(Evaluation& e) {
  const bool empty = !e.has(0) || (e.value(0).kind() == ValueKind::kOptional && e.value(0).elements().empty());
  const std::int64_t has = empty ? 0 : 1;
  store(e.result(), 0, 1, &has);
}

const RegisterEvaluators kSequences{
    Evaluator("SequenceConstruct").evaluate(sequence_construct).error(Rounding::exact()).skips_empty_operands(),
    Evaluator("SequenceEmpty").evaluate(sequence_empty).error(Rounding::exact()),
    Evaluator("SequenceInsert").evaluate(sequence_insert).error(Rounding::exact()).skips_empty_operands(),
    Evaluator("SequenceErase").evaluate(sequence_erase).error(Rounding::exact()).skips_empty_operands(),
    Evaluator("SequenceAt").evaluate(sequence_at).error(Rounding::exact()).skips_empty_operands(),
    Evaluator("SequenceLength").evaluate(sequence_length).error(Rounding::exact()).skips_empty_operands(),
    Evaluator("SplitToSequence").evaluate(split_to_sequence).error(Rounding::exact()).checks_long_lists(),
    Evaluator("ConcatFromSequence").evaluate(concat_from_sequence).error(Rounding::exact()),
    Evaluator("Optional").evaluate(optional).error(Rounding::exact()).skips_empty_operands(),
    Evaluator("OptionalGetElement").evaluate(optional_get_element).error(Rounding::exact()).skips_empty_operands(),
    Evaluator("OptionalHasElement").evaluate(optional_has_element).error(Rounding::exact()).skips_empty_operands(),
};

}  // namespace
}  // namespace tensorlint::runtime
