// Values that come from nowhere or from a shape alone. Source: ONNX Constant (opsets 1-25), ConstantOfShape (9-25),
// Range (11, 27).
#include <algorithm>
#include <cmath>

#include "ir/ops/contents.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kOneValue{"constant_one_value", ConstraintKind::kAttribute,
                           "exactly one of the value attributes is given"};
const Constraint kFillOneElement{"constant_of_shape_one_element", ConstraintKind::kAttribute,
                                 "`value` has one element"};
const Constraint kFillExtents{"constant_of_shape_extents", ConstraintKind::kDomain, "no extent is negative", true};
const Constraint kRangeScalars{"range_scalars", ConstraintKind::kShapes, "start, limit and delta are scalars", true};
const Constraint kRangeStep{"range_step", ConstraintKind::kDomain, "delta is not 0"};

void constant(Inference& in) {
  int given = 0;
  for (const Attribute& attribute : in.call().attributes) given += attribute.name.starts_with("__") ? 0 : 1;
  if (given == 0) {
    in.fail(kOneValue, {}, {"Constant needs a value"});
    return;
  }
  if (given > 1) {
    in.fails_somewhere(kOneValue, {}, {"Constant has {} values, it takes one", given},
                       {"the engine checks the model first, as onnx.checker does (others take one of the values)"});
    return;
  }
  DimPool& pool = in.dims();
  for (const Attribute& attribute : in.call().attributes) {
    if (attribute.name == "value" && attribute.tensor != nullptr) {
      in.result() = fact_of_tensor(in.facts(), *attribute.tensor);
    } else if (attribute.name == "sparse_value" && attribute.sparse != nullptr) {
      // The result is dense: Constant has no sparse result type.
      const Tensor* values = attribute.sparse->values;
      if (values != nullptr && is_known_dtype(values->dtype_code))
        in.set_dtype(0, static_cast<DType>(values->dtype_code));
      Dims shape;
      for (const std::int64_t extent : attribute.sparse->dims)
        shape.push_back(extent < 0 ? Dim() : pool.constant(extent));
      in.set_shape(0, shape);
    } else if (attribute.name == "value_int") {
      in.set_tensor(0, DType::kInt64, {});
      in.set_elements(0, {pool.constant(attribute.i)});
    } else if (attribute.name == "value_ints") {
      const Dim length[] = {pool.constant(static_cast<std::int64_t>(attribute.ints.size()))};
      in.set_tensor(0, DType::kInt64, length);
      Dims elements;
      for (const std::int64_t element : attribute.ints) elements.push_back(pool.constant(element));
      if (!elements.empty()) in.set_range(0, range_of(pool, elements));
      in.set_elements(0, std::move(elements));
    } else if (attribute.name == "value_float") {
      in.set_tensor(0, DType::kFloat32, {});
      in.set_floats(0, {static_cast<double>(attribute.f)});
    } else if (attribute.name == "value_floats") {
      const Dim length[] = {pool.constant(static_cast<std::int64_t>(attribute.floats.size()))};
      in.set_tensor(0, DType::kFloat32, length);
      std::vector<double> elements(attribute.floats.begin(), attribute.floats.end());
      if (!elements.empty()) in.set_range(0, range_of(elements));
      in.set_floats(0, std::move(elements));
    } else if (attribute.name == "value_string") {
      in.set_tensor(0, DType::kString, {});
    } else if (attribute.name == "value_strings") {
      const Dim length[] = {pool.constant(static_cast<std::int64_t>(attribute.strings.size()))};
      in.set_tensor(0, DType::kString, length);
    }
  }
}

void constant_of_shape(Inference& in) {
  DimPool& pool = in.dims();
  Fact fill;
  fill.dtypes = DType::kFloat32;
  fill.range = {0, 0, false};
  Dim integer;
  std::optional<double> number = 0.0;
  if (const Attribute* value = in.attribute("value"); value != nullptr && value->tensor != nullptr) {
    const auto count = value->tensor->element_count();
    if (count && *count != 1)
      in.fail(kFillOneElement, {},
              {"{} of ConstantOfShape has {} elements, it needs one", AttributeName("value"), *count});
    fill = fact_of_tensor(in.facts(), *value->tensor);
    const Content* content = in.facts().content(fill.content);
    number = content != nullptr && content->floats.size() == 1 ? std::optional(content->floats.front()) : std::nullopt;
    if (content != nullptr && content->integers.size() == 1) integer = content->integers.front();
  } else if (value != nullptr) {
    return;
  }
  in.set_dtype(0, fill.dtypes);
  in.set_range(0, fill.range);

  bool given = false;
  auto list = integer_list(in, "input", given);
  if (!list) return;
  for (std::size_t i = 0; i < list->size(); ++i) {
    Dim& extent = (*list)[i];
    if (pool.bounds(extent).hi < 0) {
      in.fail(kFillExtents, {0}, {"{} asks for the extent {} at axis {}", OperandRef(0), extent, Axis(i)});
      extent = Dim(Unknown::kTainted);
    }
  }
  in.set_shape(0, *list);
  const auto extents = followed_extents(pool, *list);
  if (!extents) return;
  const std::size_t total = element_total(*extents);
  if (number) in.set_floats(0, std::vector<double>(total, *number));
  if (!integer.is_unknown()) in.set_elements(0, Dims(total, integer));
}

/// Elements of Range over floats; unknown where rounding decides.
std::optional<std::int64_t> float_count(double start, double limit, double delta) {
  const double span = limit - start, count = span / delta, nearest = std::round(count);
  if (!(std::fabs(count) < 1e15)) return std::nullopt;
  const bool exact = span + start == limit && nearest * delta == span;
  if (!exact && std::fabs(count - nearest) < 1e-4 * std::max(1.0, std::fabs(count))) return std::nullopt;
  return static_cast<std::int64_t>(std::max(exact ? nearest : std::ceil(count), 0.0));
}

/// Elements of Range over integers.
Dim integer_count(DimPool& pool, Dim start, Dim limit, Dim delta) {
  const Bounds step = pool.bounds(delta);
  if (step.lo >= 1) return pool.max(pool.constant(0), pool.ceil_div(pool.sub(limit, start), delta));
  if (step.hi <= -1)
    return pool.max(pool.constant(0), pool.ceil_div(pool.sub(start, limit), pool.sub(pool.constant(0), delta)));
  return Dim(Unknown::kDataDependent);
}

void range(Inference& in) {
  DimPool& pool = in.dims();
  for (int i = 0; i < 3; ++i) {
    const auto shape = in.shape(i);
    if (!shape || shape->empty()) continue;
    const Dim count = element_count(pool, *shape);
    if (pool.never_equal(count, pool.constant(1)))
      in.fail(kRangeScalars, {i}, {"{} of shape {} has to be a scalar", OperandRef(i), *shape});
  }
  const auto scalar = [&](int operand) {
    const auto elements = in.elements(operand);
    return elements && elements->size() == 1 ? elements->front() : Dim(Unknown::kDataDependent);
  };
  Dim count{Unknown::kDataDependent};
  if (in.operand(0).dtypes.proves(DTypeSet::integers())) {
    const Dim start = scalar(0), limit = scalar(1), delta = scalar(2);
    if (pool.is_constant(delta, 0)) in.fail(kRangeStep, {2}, {"the step {} of Range is 0", OperandRef(2)});
    const bool known = !start.is_unknown() && !limit.is_unknown() && !delta.is_unknown();
    if (known) count = integer_count(pool, start, limit, delta);
    const Range &first = in.operand(0).range, &last = in.operand(1).range, &step = in.operand(2).range;
    if (step.lo >= 1) in.set_range(0, {first.lo, std::max(first.lo, last.hi - 1), false});
    if (step.hi <= -1) in.set_range(0, {std::min(first.hi, last.lo + 1), first.hi, false});
    const Dim shape[] = {count};
    in.set_shape(0, shape);
    const auto length = pool.as_constant(count);
    const auto from = pool.as_constant(start), by = pool.as_constant(delta);
    if (length && *length > 0 && from && by) {
      const double end = static_cast<double>(*from) + static_cast<double>(*length - 1) * static_cast<double>(*by);
      const auto begin = static_cast<double>(*from);
      in.set_range(0, {std::min(begin, end), std::max(begin, end), false});
      in.result().attains = true;
    }
    if (!length || *length > static_cast<std::int64_t>(kMaxContent) || delta.is_unknown()) return;
    Dims elements;
    for (std::int64_t i = 0; i < *length; ++i) elements.push_back(pool.add(start, pool.mul(pool.constant(i), delta)));
    in.set_elements(0, std::move(elements));
    return;
  }
  const auto start = in.float_constants("start"), limit = in.float_constants("limit"),
             delta = in.float_constants("delta");
  if (delta && delta->size() == 1 && delta->front() == 0)
    in.fail(kRangeStep, {2}, {"the step {} of Range is 0", OperandRef(2)});
  if (start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1 &&
      delta->front() != 0) {
    if (const auto length = float_count(start->front(), limit->front(), delta->front())) count = pool.constant(*length);
  }
  const Dim shape[] = {count};
  in.set_shape(0, shape);
}

const RegisterOps kRegisterConstant{
    OpEntry("Constant").computes(Opcode::kConstant).infer(constant).constraint(kOneValue),
    OpEntry("ConstantOfShape")
        .computes(Opcode::kFill)
        .infer(constant_of_shape)
        .host("input")
        .constraint(kFillOneElement)
        .constraint(kFillExtents),
    OpEntry("Range")
        .computes(Opcode::kRange)
        .infer(range)
        .host("start")
        .host("limit")
        .host("delta")
        .constraint(kRangeScalars)
        .constraint(kRangeStep),
};

}  // namespace
}  // namespace tensorlint::ops
