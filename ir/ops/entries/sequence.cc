// Sequences and optionals. Source: ONNX SequenceConstruct, SequenceEmpty, SequenceInsert, SequenceErase, SequenceAt,
// SequenceLength, ConcatFromSequence (opset 11), SplitToSequence (11, 24), Optional, OptionalGetElement,
// OptionalHasElement (15, 18, 28). The fact of a sequence covers each of its elements; its length is a 1-d shape.
#include <algorithm>
#include <optional>

#include "ir/ops/attributes.h"
#include "ir/ops/contents.h"
#include "ir/ops/shape_functions.h"
#include "ir/ops/value_types.h"

namespace tensorlint::ops {
namespace {

const Constraint kEmptyDtype{"sequence_empty_dtype", ConstraintKind::kAttribute,
                             "`dtype` is one that the operator gives"};
const Constraint kInsertDtype{"sequence_insert_dtype", ConstraintKind::kMixedDtypes,
                              "the tensor has the dtype of the sequence"};
const Constraint kPosition{"sequence_position", ConstraintKind::kIndexRange,
                           "-n <= position < n; SequenceInsert takes n too"};
const Constraint kPartsAxis{"split_to_sequence_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank"};
const Constraint kPartsSizes{"split_to_sequence_sizes", ConstraintKind::kDomain,
                             "a scalar size is positive; sizes are not negative and sum up to the extent"};
const Constraint kJoinAxis{"concat_from_sequence_axis_in_range", ConstraintKind::kAxisRange,
                           "-rank <= axis < rank; with new_axis up to the rank"};
const Constraint kJoinShapes{"concat_from_sequence_shapes", ConstraintKind::kConcatShapes,
                             "elements have one shape but for the joined axis"};
const Constraint kEmptyOptional{"optional_empty", ConstraintKind::kDomain, "the optional has an element"};
const Constraint kNoElements{"concat_from_sequence_empty", ConstraintKind::kDomain, "the sequence has elements"};

/// Length of a sequence operand.
Dim length_of(Inference& in, int operand) {
  const Fact& fact = in.operand(operand);
  if (fact.kind != ValueKind::kSequence || fact.shape == ShapeId::kUnranked) return Dim(Unknown::kNotTracked);
  const auto dims = in.facts().dims_of(fact.shape);
  return dims.size() == 1 ? dims.front() : Dim(Unknown::kNotTracked);
}

void set_sequence(Inference& in, FactId element, Dim length) {
  Fact& result = in.result();
  result.kind = ValueKind::kSequence;
  result.element = element;
  const Dim dims[] = {length};
  result.shape = in.facts().intern_shape(dims);
}

/// What is known of the difference between the shapes of two tensors: kTop for nothing, a fact of an optional where
/// their ranks differ, else a tensor whose shape has a 1 for each axis along which they differ.
FactId difference_of(FactStore& facts, FactId a_id, FactId b_id) {
  const Fact &a = facts.fact(a_id), &b = facts.fact(b_id);
  const auto has_shape = [&](const Fact& fact) {
    return fact.kind == ValueKind::kTensor && facts.is_ranked(fact.shape) && !fact.dtypes.contains(DType::kString);
  };
  if (!has_shape(a) || !has_shape(b)) return FactId::kTop;
  Fact difference;
  difference.kind = ValueKind::kOptional;
  const auto x = facts.dims_of(a.shape), y = facts.dims_of(b.shape);
  if (x.size() == y.size()) {
    difference.kind = ValueKind::kTensor;
    Dims axes;
    bool any = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool differs = facts.dims().never_equal(x[i], y[i]);
      any = any || differs;
      axes.push_back(facts.dims().constant(differs ? 1 : 0));
    }
    if (!any) return FactId::kTop;
    difference.shape = facts.intern_shape(axes);
  }
  return facts.intern(difference);
}

/// What is known of two such differences together.
FactId both_differences(FactStore& facts, FactId a_id, FactId b_id) {
  if (a_id == FactId::kTop || b_id == FactId::kTop || a_id == b_id) return a_id == FactId::kTop ? b_id : a_id;
  const Fact &a = facts.fact(a_id), &b = facts.fact(b_id);
  if (a.kind == ValueKind::kOptional || b.kind == ValueKind::kOptional)
    return a.kind == ValueKind::kOptional ? a_id : b_id;
  Dims axes = copy_dims(facts.dims_of(a.shape));
  const auto others = facts.dims_of(b.shape);
  for (std::size_t i = 0; i < std::min(axes.size(), others.size()); ++i)
    if (facts.dims().is_constant(others[i], 1)) axes[i] = others[i];
  Fact both = a;
  both.shape = facts.intern_shape(axes);
  return facts.intern(both);
}

/// The elements of a sequence that has some of that difference: it is kept as `element`, which tensors have no use for.
FactId with_difference(FactStore& facts, FactId element, FactId difference) {
  if (difference == FactId::kTop || facts.fact(element).kind != ValueKind::kTensor) return element;
  Fact fact = facts.fact(element);
  fact.element = difference;
  return facts.intern(fact);
}

/// Some elements of the sequence have other ranks.
bool ranks_differ(const FactStore& facts, const Fact& element) {
  return element.element != FactId::kTop && !element.dtypes.contains(DType::kString) &&
         facts.fact(element.element).kind == ValueKind::kOptional;
}

/// Some elements of the sequence differ along an axis other than `joined`; nullopt: they are stacked along a new one.
bool elements_differ(const FactStore& facts, const Fact& element, std::optional<std::size_t> joined) {
  if (element.element == FactId::kTop || element.dtypes.contains(DType::kString)) return false;
  if (ranks_differ(facts, element)) return true;
  const auto axes = facts.dims_of(facts.fact(element.element).shape);
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (i != joined && facts.dims().is_constant(axes[i], 1)) return true;
  return false;
}

void sequence_construct(Inference& in) {
  FactId element = in.operand_id(0), difference = FactId::kTop;
  for (int i = 1; i < static_cast<int>(in.operand_count()); ++i) {
    element = in.facts().join(element, in.operand_id(i));
    difference =
        both_differences(in.facts(), difference, difference_of(in.facts(), in.operand_id(0), in.operand_id(i)));
  }
  element = with_difference(in.facts(), element, difference);
  set_sequence(in, element, in.dims().constant(static_cast<std::int64_t>(in.operand_count())));
}

void sequence_empty(Inference& in) {
  Fact element;
  element.kind = ValueKind::kTensor;
  element.dtypes = in.attribute("dtype") == nullptr ? DTypeSet(DType::kFloat32) : DTypeSet::all();
  if (const auto dtype = dtype_attribute(in, "dtype", kEmptyDtype)) element.dtypes = *dtype;
  element.range = range_of(element.dtypes);
  set_sequence(in, in.facts().intern(element), in.dims().constant(0));
}

/// The position, where it is given and known.
std::optional<std::int64_t> position_of(Inference& in, int operand) {
  const auto values = in.has(operand) ? in.constants(operand) : std::nullopt;
  return values && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
}

/// Fails where the position lies outside of [-n, n), or of [-n, n] for an insertion.
void check_position(Inference& in, int operand, Dim length, bool insertion) {
  DimPool& pool = in.dims();
  const auto position = position_of(in, operand);
  const std::int64_t most = pool.bounds(length).hi;
  if (!position || length.is_unknown()) return;
  if ((*position < 0 ? *position >= -most : *position < most) || (insertion && *position == most)) return;
  in.fail(kPosition, {operand, 0},
          {"position {} is outside {}, which has {} elements", Index(in.dims().constant(*position)), OperandRef(0),
           length});
}

void sequence_insert(Inference& in) {
  const Fact& sequence = in.operand(0);
  if (sequence.kind != ValueKind::kSequence) return;
  const Dim length = length_of(in, 0);
  check_position(in, 2, length, true);
  const Fact &held = in.facts().fact(sequence.element), &tensor = in.operand(1);
  if (held.kind == ValueKind::kTensor && tensor.kind == ValueKind::kTensor && (held.dtypes & tensor.dtypes).empty())
    in.fail(kInsertDtype, {1, 0},
            {"{} is {}, the elements of {} are {}", OperandRef(1), tensor.dtypes, OperandRef(0), held.dtypes});
  FactId element = in.operand_id(1);
  if (!in.dims().is_constant(length, 0)) {
    // What differs from the fact of all elements differs from each, once there is one.
    FactId difference = held.kind == ValueKind::kTensor ? held.element : FactId::kTop;
    if (in.dims().bounds(length).lo >= 1)
      difference =
          both_differences(in.facts(), difference, difference_of(in.facts(), sequence.element, in.operand_id(1)));
    element = with_difference(in.facts(), in.facts().join(sequence.element, in.operand_id(1)), difference);
  }
  set_sequence(in, element, in.dims().add(length, in.dims().constant(1)));
}

void sequence_erase(Inference& in) {
  const Fact& sequence = in.operand(0);
  if (sequence.kind != ValueKind::kSequence) return;
  const Dim length = length_of(in, 0);
  check_position(in, 1, length, false);
  if (in.dims().is_constant(length, 0) && !in.failed())
    in.fail(kPosition, {0}, {"an element of {} is erased, which is empty", OperandRef(0)});
  const Dim left = in.dims().sub(length, in.dims().constant(1));
  Fact element = in.facts().fact(sequence.element);
  // The one that differs may be gone.
  if (element.kind == ValueKind::kTensor) element.element = FactId::kTop;
  set_sequence(in, in.facts().intern(element), in.dims().bounds(left).hi < 0 ? Dim(Unknown::kTainted) : left);
}

void sequence_at(Inference& in) {
  const Fact& sequence = in.operand(0);
  if (sequence.kind != ValueKind::kSequence) return;
  check_position(in, 1, length_of(in, 0), false);
  const DTypeSet dtypes = in.result().dtypes;
  if (sequence.element != FactId::kTop) in.set_fact(0, sequence.element);
  if (in.result().kind == ValueKind::kTensor && in.result().dtypes == DTypeSet::all()) in.set_dtype(0, dtypes);
}

void sequence_length(Inference& in) {
  in.set_shape(0, {});
  in.set_range(0, {0, 9223372036854775808.0, false});
  const Dim length = length_of(in, 0);
  if (!length.is_unknown()) in.set_elements(0, {length});
}

/// Number of parts, and the extent that all of them have along the axis.
struct Parts {
  Dim count, extent;
};

Parts read_parts(Inference& in, Dim whole) {
  DimPool& pool = in.dims();
  if (!in.has(1)) return {whole, pool.constant(1)};
  const auto shape = in.shape(1);
  const auto sizes = in.elements(1);
  if (!shape || shape->size() > 1) return {Dim(Unknown::kDataDependent), Dim(Unknown::kDataDependent)};
  if (shape->empty()) {
    const Dim size = sizes && sizes->size() == 1 ? sizes->front() : Dim(Unknown::kDataDependent);
    if (pool.bounds(size).hi <= 0) {
      in.fail(kPartsSizes, {1}, {"the parts {} have the size {}, it has to be positive", OperandRef(1), size});
      return {Dim(Unknown::kTainted), Dim(Unknown::kTainted)};
    }
    if (size.is_unknown() || pool.bounds(size).lo < 1)
      return {Dim(Unknown::kDataDependent), Dim(Unknown::kDataDependent)};
    const bool even = pool.is_constant(pool.mod(whole, size), 0);
    const bool one = pool.bounds(pool.sub(whole, size)).hi <= 0 && pool.bounds(whole).lo >= 1;
    return {pool.ceil_div(whole, size), even ? size : one ? whole : Dim(Unknown::kDataDependent)};
  }
  Parts parts{shape->front(), Dim(Unknown::kDataDependent)};
  if (!sizes || sizes->empty()) return parts;
  Dim sum = pool.constant(0);
  bool same = true;
  for (const Dim size : *sizes) {
    sum = pool.add(sum, size);
    same = same && pool.equal(size, sizes->front());
    if (pool.bounds(size).hi < 0 && !in.failed())
      in.fail(kPartsSizes, {1, 0}, {"a part of {} has the size {}", OperandRef(0), size});
  }
  if (!in.failed() && pool.never_equal(sum, whole))
    in.fail(kPartsSizes, {1, 0},
            {"the sizes {} sum up to {}, the extent of {} is {}", OperandRef(1), sum, OperandRef(0), whole});
  if (same) parts.extent = sizes->front();
  return parts;
}

void split_to_sequence(Inference& in) {
  Fact element;
  element.kind = ValueKind::kTensor;
  element.dtypes = in.operand(0).kind == ValueKind::kTensor ? in.operand(0).dtypes : DTypeSet::all();
  element.range = in.operand(0).range;
  Dim length;
  if (const auto data = in.shape(0)) {
    const auto axis = normalise_axis(in, in.int_attribute("axis", 0), static_cast<int>(data->size()), 0, kPartsAxis);
    if (axis) {
      Dims shape = copy_dims(*data);
      const Parts parts = read_parts(in, shape[static_cast<std::size_t>(*axis)]);
      length = parts.count;
      // keepdims counts only where every part has one slice.
      if (!in.has(1) && in.int_attribute("keepdims", 1) == 0) {
        shape.erase(shape.begin() + *axis);
      } else {
        shape[static_cast<std::size_t>(*axis)] = parts.extent;
      }
      element.shape = in.facts().intern_shape(shape);
    }
  }
  set_sequence(in, in.facts().intern(element), length);
}

void concat_from_sequence(Inference& in) {
  const Fact& sequence = in.operand(0);
  if (sequence.kind != ValueKind::kSequence) return;
  DimPool& pool = in.dims();
  const Dim length = length_of(in, 0);
  if (pool.is_constant(length, 0)) {
    in.fail(kNoElements, {0}, {"the sequence {} has no elements to concatenate", OperandRef(0)});
    return;
  }
  const Fact& element = in.facts().fact(sequence.element);
  if (element.kind != ValueKind::kTensor) return;
  in.set_dtype(0, element.dtypes == DTypeSet::all() ? in.result().dtypes : element.dtypes);
  in.set_range(0, element.range);
  const bool stacks = in.int_attribute("new_axis", 0) != 0;
  const auto report_difference = [&] {
    in.fail(kJoinShapes, {0},
            {"elements of {} differ in shape beyond the axis along which they are joined", OperandRef(0)});
  };
  if (element.shape == ShapeId::kUnranked) {
    if (ranks_differ(in.facts(), element)) report_difference();
    return;
  }
  Dims shape = copy_dims(in.facts().dims_of(element.shape));
  const auto rank = static_cast<std::int64_t>(shape.size()) + (stacks ? 1 : 0);
  const std::int64_t axis = in.int_attribute("axis", 0);
  if (axis < -rank || axis >= rank) {
    in.fail(kJoinAxis, {0},
            {"axis {} outside the elements of {}, which have rank {}", Axis(axis), OperandRef(0), shape.size()});
    return;
  }
  const auto at = axis < 0 ? axis + rank : axis;
  if (elements_differ(in.facts(), element, stacks ? std::nullopt : std::optional(static_cast<std::size_t>(at))))
    report_difference();
  if (stacks) {
    shape.insert(shape.begin() + at, length);
  } else {
    // A known extent is that of every element.
    Dim& extent = shape[static_cast<std::size_t>(at)];
    extent = pool.mul(extent, length);
  }
  in.set_shape(0, shape);
}

/// What the `type` attribute of Optional declares, without its names.
FactId declared(FactStore& facts, const TypeDecl* type) {
  // Types nest a few levels at most: readers cap it. From the inside out.
  std::vector<const TypeDecl*> levels;
  for (; type != nullptr && levels.size() < 16; type = type->element) levels.push_back(type);
  FactId inner = FactId::kTop;
  for (auto it = levels.rbegin(); it != levels.rend(); ++it) {
    const std::optional<ValueKind> kind = value_kind((*it)->kind);
    if (!kind || *kind == ValueKind::kMap) return FactId::kTop;
    Fact fact;
    fact.kind = *kind;
    if (fact.kind == ValueKind::kTensor || fact.kind == ValueKind::kSparseTensor) {
      if (is_known_dtype((*it)->element_code)) fact.dtypes = static_cast<DType>((*it)->element_code);
      fact.range = range_of(fact.dtypes);
      if ((*it)->ranked && (*it)->dims.size() <= kMaxRank) {
        Dims dims;
        for (const DimDecl& dim : (*it)->dims)
          dims.push_back(dim.has_extent && dim.extent >= 0 ? facts.dims().constant(dim.extent) : Dim());
        fact.shape = facts.intern_shape(dims);
      }
    } else {
      fact.element = inner;
    }
    inner = facts.intern(fact);
  }
  return inner;
}

/// How many elements an optional has, 0 or 1, is kept as a sequence's length is.
void optional(Inference& in) {
  const Dim dims[] = {in.dims().constant(in.has(0) ? 1 : 0)};
  Fact& result = in.result();
  result.kind = ValueKind::kOptional;
  result.element = FactId::kTop;
  result.shape = in.facts().intern_shape(dims);
  if (in.has(0)) {
    result.element = in.operand_id(0);
  } else if (const Attribute* type = in.attribute("type"); type != nullptr) {
    result.element = declared(in.facts(), type->type);
    in.depends_on_tensor();
  }
}

std::optional<std::int64_t> elements_of(Inference& in, const Fact& fact) {
  const auto dims = in.facts().dims_of(fact.shape);
  return dims.size() == 1 ? in.dims().as_constant(dims.front()) : std::nullopt;
}

void optional_get_element(Inference& in) {
  const Fact& operand = in.operand(0);
  // From opset 18 on a tensor or sequence counts as an optional that holds it.
  if (operand.kind == ValueKind::kOptional) {
    if (elements_of(in, operand) == 0) in.fail(kEmptyOptional, {0}, {"{} has no element", OperandRef(0)});
    in.set_fact(0, operand.element);
  } else if (operand.kind != ValueKind::kUnknown) {
    in.set_same(0, 0);
  }
}

void optional_has_element(Inference& in) {
  in.set_shape(0, {});
  if (!in.has(0)) {
    in.set_elements(0, {in.dims().constant(0)});
  } else if (in.operand(0).kind == ValueKind::kTensor || in.operand(0).kind == ValueKind::kSequence) {
    in.set_elements(0, {in.dims().constant(1)});
  } else if (in.operand(0).kind == ValueKind::kOptional) {
    if (const auto count = elements_of(in, in.operand(0))) in.set_elements(0, {in.dims().constant(*count)});
  }
}

/// The elements of a sequence, and what an optional holds, may be anywhere.
OpEntry collection(std::string_view name) { return OpEntry(name).device(DeviceRule::kIndependent); }

const RegisterOps kRegisterSequence{
    collection("SequenceConstruct").infer(sequence_construct),
    collection("SequenceEmpty").infer(sequence_empty).constraint(kEmptyDtype),
    collection("SequenceInsert").infer(sequence_insert).host("position").constraint(kInsertDtype).constraint(kPosition),
    collection("SequenceErase").infer(sequence_erase).host("position").constraint(kPosition),
    collection("SequenceAt").infer(sequence_at).host("position").constraint(kPosition),
    collection("SequenceLength").infer(sequence_length),
    collection("SplitToSequence").infer(split_to_sequence).host("split").constraint(kPartsAxis).constraint(kPartsSizes),
    collection("ConcatFromSequence")
        .infer(concat_from_sequence)
        .constraint(kJoinAxis)
        .constraint(kJoinShapes)
        .constraint(kNoElements),
    collection("Optional").infer(optional),
    collection("OptionalGetElement").infer(optional_get_element).constraint(kEmptyOptional),
    collection("OptionalHasElement").infer(optional_has_element),
};

}  // namespace
}  // namespace tensorlint::ops
