// What is where: sorting, searching, counting and masks. Source: ONNX ArgMax, ArgMin (opsets 1-13), TopK (1 with k as
// an attribute, 10, 11, 24), OneHot (9-28), NonZero (9, 13), Unique (11, 28), Compress (9-28), EyeLike (9, 22), Trilu
// (14), CumSum (11, 14), CumProd (26), ReverseSequence (10, 28).
#include <algorithm>
#include <array>
#include <cmath>

#include "ir/ops/attributes.h"
#include "ir/ops/checks.h"
#include "ir/ops/contents.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/indexing.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kArgAxis{"arg_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kArgElements{"arg_elements", ConstraintKind::kDomain, "the reduced axis has elements"};
const Constraint kTopAxis{"top_k_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kTopCount{"top_k_count", ConstraintKind::kDomain, "0 <= k <= extent"};
const Constraint kOneHotAxis{"one_hot_axis_in_range", ConstraintKind::kAxisRange, "-rank - 1 <= axis <= rank", true};
const Constraint kOneHotValues{"one_hot_values", ConstraintKind::kShapes, "values are a pair, depth is one number",
                               true};
const Constraint kOneHotDepth{"one_hot_depth", ConstraintKind::kDomain, "the depth is at least 1"};
const Constraint kOneHotRank{"one_hot_rank", ConstraintKind::kRank, "the indices have at least 1 axis"};
const Constraint kUniqueAxis{"unique_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kCompressAxis{"compress_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kCompressCondition{"compress_condition", ConstraintKind::kShapes, "the condition is a 1-d tensor"};
const Constraint kEyeRank{"eye_like_rank", ConstraintKind::kRank, "the operand is a matrix", true};
const Constraint kEyeDtype{"eye_like_dtype", ConstraintKind::kAttribute, "`dtype` is one that the operator gives",
                           true};
const Constraint kTriluRank{"trilu_rank", ConstraintKind::kRank, "the operand has at least two axes", true};
const Constraint kTriluDiagonal{"trilu_diagonal", ConstraintKind::kShapes, "k is one number"};
const Constraint kCumulativeFlags{"cumulative_flags", ConstraintKind::kAttribute,
                                  "exclusive and reverse are 0 or 1, the axis is one number"};
const Constraint kCumulativeAxis{"cumulative_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank"};
const Constraint kReverseShapes{"reverse_sequence_shapes", ConstraintKind::kShapes,
                                "one length for each element of the batch axis, of at least two axes"};
const Constraint kReverseAxes{"reverse_sequence_axes", ConstraintKind::kAttribute,
                              "time and batch axis are 0 and 1, or 1 and 0", true};
const Constraint kReverseLengths{"reverse_sequence_lengths", ConstraintKind::kDomain, "0 <= length <= steps"};

/// [0, extent - 1], or all non-negative numbers where there is no bound.
Range index_range(const DimPool& pool, Dim extent) {
  const Bounds bounds = pool.bounds(extent);
  return {0,
          bounds.hi > std::int64_t{1} << 53 ? 9223372036854775808.0 : std::max(0.0, static_cast<double>(bounds.hi) - 1),
          false};
}

void arg_extreme(Inference& in) {
  const auto data = in.shape(0);
  in.set_range(0, index_range(in.dims(), Dim()));
  if (!data) return;
  const std::int64_t keeps = in.int_attribute("keepdims", 1);
  const bool keepdims = keeps == 1;
  const auto axis = normalise_axis(in, in.int_attribute("axis", 0), static_cast<int>(data->size()), 0, kArgAxis);
  if (!axis) {
    if (keepdims) in.set_shape(0, unknown_dims(data->size(), Unknown::kTainted));
    return;
  }
  Dims result = copy_dims(*data);
  const Dim extent = result[static_cast<std::size_t>(*axis)];
  const auto is_empty = [&](Dim dim) { return in.dims().bounds(dim).hi <= 0; };
  // Where there is nothing to give, runtimes need no element either.
  if (is_empty(extent) && std::count_if(data->begin(), data->end(), is_empty) == 1) {
    in.fails_somewhere(kArgElements, {0}, {"axis {} of {} has no elements to choose from", Axis(*axis), OperandRef(0)},
                       {"the engine refuses that, as numpy does (onnxruntime gives a tensor without elements)"});
    return;
  }
  if (keeps != 0 && keeps != 1) return;  // onnxruntime removes the axis, the reference implementation keeps it
  in.set_range(0, index_range(in.dims(), extent));
  if (keepdims) {
    result[static_cast<std::size_t>(*axis)] = in.dims().constant(1);
  } else {
    result.erase(result.begin() + *axis);
  }
  in.set_shape(0, result);
}

void top_k(Inference& in) {
  DimPool& pool = in.dims();
  in.set_range(0, in.operand(0).range);
  in.set_range(1, index_range(pool, Dim()));
  const auto data = in.shape(0);
  if (!data) return;
  const auto axis = normalise_axis(in, in.int_attribute("axis", -1), static_cast<int>(data->size()), 0, kTopAxis);
  if (!axis) {
    for (const int r : {0, 1}) in.set_shape(r, unknown_dims(data->size(), Unknown::kTainted));
    return;
  }
  Dim count;
  if (const auto attribute = in.int_attribute("k")) {
    count = pool.constant(*attribute);
  } else if (const int k = in.call().schema->input_index("K"); k >= 0) {
    check_shape(in, k, std::array{pool.constant(1)}, kTopCount, "k");
    const auto elements = in.elements("K");
    if (elements && elements->size() == 1) count = elements->front();
  }
  Dims result = copy_dims(*data);
  Dim& extent = result[static_cast<std::size_t>(*axis)];
  in.set_range(1, index_range(pool, extent));
  const bool too_many = !count.is_unknown() && pool.bounds(pool.sub(count, extent)).lo > 0;
  if (too_many || pool.bounds(count).hi < 0)
    in.fail(kTopCount, {0}, {"k is {}, axis {} of {} has extent {}", count, Axis(*axis), OperandRef(0), extent});
  // The same number of elements in both results, even where it is not known.
  extent = count.is_unknown() || pool.bounds(count).lo < 0 ? in.fresh(0, *axis, Unknown::kDataDependent) : count;
  for (const int r : {0, 1}) in.set_shape(r, result);
}

void one_hot(Inference& in) {
  DimPool& pool = in.dims();
  in.set_range(0, in.operand("values").range);
  const auto values = in.shape("values"), depth_shape = in.shape("depth"), indices = in.shape("indices");
  if (values && (values->size() != 1 || pool.never_equal(values->front(), pool.constant(2))))
    in.fail(kOneHotValues, {2}, {"the values {} of shape {} have to be a pair", OperandRef(2), *values});
  if (depth_shape && pool.never_equal(element_count(pool, *depth_shape), pool.constant(1)))
    in.fail(kOneHotValues, {1}, {"the depth {} of shape {} has to be one number", OperandRef(1), *depth_shape});
  Dim depth(Unknown::kDataDependent);
  if (const auto elements = in.elements("depth"); elements && elements->size() == 1) depth = elements->front();
  if (const auto floats = in.float_constants("depth");
      floats && floats->size() == 1 && std::fabs(floats->front()) < 0x1p53)
    depth = pool.constant(static_cast<std::int64_t>(floats->front()));
  if (!depth.is_unknown() && pool.bounds(depth).hi < 1) {
    in.fail(kOneHotDepth, {1}, {"the depth {} is {}, at least 1 needed", OperandRef(1), depth});
    depth = Dim(Unknown::kTainted);
  }
  if (pool.bounds(depth).lo < 0) depth = Dim(Unknown::kDataDependent);
  if (!indices) return;
  if (indices->empty()) {
    in.fail(kOneHotRank, {0}, {"{} is a scalar, OneHot needs indices of at least 1 axis", OperandRef(0)});
    return in.set_shape(0, Dims{depth});
  }
  const auto rank = static_cast<std::int64_t>(indices->size());
  const std::int64_t axis = in.int_attribute("axis", -1);
  Dims result = copy_dims(*indices);
  if (axis < -rank - 1 || axis > rank) {
    in.fail(kOneHotAxis, {0},
            {"axis {} outside [{}, {}] for {} of rank {}", Axis(axis), -rank - 1, rank, OperandRef(0), rank});
    in.set_shape(0, unknown_dims(indices->size() + 1, Unknown::kTainted));
    return;
  }
  result.insert(result.begin() + (axis < 0 ? axis + rank + 1 : axis), depth);
  in.set_shape(0, result);
}

void non_zero(Inference& in) {
  DimPool& pool = in.dims();
  const auto data = in.shape(0);
  in.set_range(0, index_range(pool, Dim()));
  Dim count;
  if (data) {
    Range range = index_range(pool, pool.constant(0));
    for (const Dim extent : *data) range = join(range, index_range(pool, extent));
    in.set_range(0, range);
    const Range& values = in.operand(0).range;
    // NaN is not 0.
    if (values.lo > 0 || values.hi < 0) count = element_count(pool, *data);
    if (const Content* content = content_of(in, 0)) {
      const auto elements = constant_extents(pool, content->integers);
      const auto is_zero = [](auto value) { return value == 0; };
      const auto zeros =
          content->floats.empty()
              ? (elements ? std::optional(std::count_if(elements->begin(), elements->end(), is_zero)) : std::nullopt)
              : std::optional(std::count_if(content->floats.begin(), content->floats.end(), is_zero));
      if (zeros) count = pool.constant(static_cast<std::int64_t>(content->size()) - *zeros);
    }
  }
  if (count.is_unknown()) count = in.fresh(0, 1, Unknown::kDataDependent);
  in.set_shape(0, Dims{data ? pool.constant(static_cast<std::int64_t>(data->size())) : Dim(), count});
}

/// Number of slices along the axis, or of elements without one, that differ; nullopt where not every element is known.
/// What counts as equal to NaN is not said.
std::optional<std::int64_t> distinct_slices(Inference& in, std::optional<int> axis) {
  const Content* content = content_of(in, 0);
  const auto extents = content != nullptr ? followed_extents(in.dims(), *in.shape(0)) : std::nullopt;
  if (!extents || content->size() == 0) return std::nullopt;
  const auto count = [&](const auto& elements) {
    const auto along = axis ? static_cast<std::size_t>(*axis) : 0;
    const std::size_t slices = axis ? static_cast<std::size_t>((*extents)[along]) : elements.size();
    const std::size_t inner = axis ? strides_of(*extents)[along] : 1;
    std::vector<std::decay_t<decltype(elements)>> parts(slices);
    for (std::size_t i = 0; i < elements.size(); ++i) parts[i / inner % slices].push_back(elements[i]);
    std::sort(parts.begin(), parts.end());
    return std::unique(parts.begin(), parts.end()) - parts.begin();
  };
  if (!content->floats.empty()) {
    if (std::any_of(content->floats.begin(), content->floats.end(), [](double value) { return std::isnan(value); }))
      return std::nullopt;
    return count(content->floats);
  }
  const auto integers = constant_extents(in.dims(), content->integers);
  return integers ? std::optional<std::int64_t>(count(*integers)) : std::nullopt;
}

void unique(Inference& in) {
  DimPool& pool = in.dims();
  const auto data = in.shape(0);
  const auto axis = in.int_attribute("axis");
  in.set_range(0, in.operand(0).range);
  for (const int r : {1, 2, 3})
    if (static_cast<std::size_t>(r) < in.result_count()) in.set_range(r, index_range(pool, Dim()));
  Dim whole, count;
  std::optional<int> along;
  if (axis && data) {
    along = normalise_axis(in, *axis, static_cast<int>(data->size()), 0, kUniqueAxis);
    if (along) whole = (*data)[static_cast<std::size_t>(*along)];
  } else if (data) {
    whole = element_count(pool, *data);
  }
  if (const auto distinct = data && !in.failed() ? distinct_slices(in, along) : std::nullopt)
    count = pool.constant(*distinct);
  // Not more than there are elements; nothing is unique in nothing.
  if (pool.is_constant(whole, 0) || pool.is_constant(whole, 1)) count = whole;
  if (count.is_unknown()) count = in.fresh(0, 0, Unknown::kDataDependent, pool.bounds(whole).lo >= 1 ? 1 : 0);
  if (along) {
    Dims shape = copy_dims(*data);
    shape[static_cast<std::size_t>(*along)] = count;
    in.set_shape(0, shape);
  } else if (!axis) {
    in.set_shape(0, Dims{count});
  } else if (data) {
    in.set_shape(0, unknown_dims(data->size(), in.failed() ? Unknown::kTainted : Unknown::kDataDependent));
  }
  if (in.result_count() > 1) in.set_shape(1, Dims{count});
  if (in.result_count() > 2) in.set_shape(2, Dims{whole});
  if (in.result_count() > 3) in.set_shape(3, Dims{count});
}

void compress(Inference& in) {
  DimPool& pool = in.dims();
  in.set_range(0, in.operand(0).range);
  const auto data = in.shape(0), condition = in.shape(1);
  if (condition && condition->size() != 1)
    in.fails_somewhere(kCompressCondition, {1},
                       {"the condition {} has rank {}, it has to be a list", OperandRef(1), condition->size()},
                       {"the engine refuses that, as numpy does (onnxruntime takes the elements in their order)"});
  const auto axis = in.int_attribute("axis");
  std::optional<int> along;
  if (axis && data) {
    along = normalise_axis(in, *axis, static_cast<int>(data->size()), 0, kCompressAxis);
    if (!along) {
      in.set_shape(0, unknown_dims(data->size(), Unknown::kTainted));
      return;
    }
  }
  Dim count;
  if (data && !in.failed()) {
    const auto picked = in.constants(1);
    const auto whole = pool.as_constant(along ? (*data)[static_cast<std::size_t>(*along)] : element_count(pool, *data));
    // A condition that is longer than the axis is cut off by some runtimes and refused by others.
    if (picked && whole && static_cast<std::int64_t>(picked->size()) <= *whole)
      count =
          pool.constant(std::count_if(picked->begin(), picked->end(), [](std::int64_t value) { return value != 0; }));
  }
  if (count.is_unknown()) count = Dim(Unknown::kDataDependent);
  if (along) {
    Dims shape = copy_dims(*data);
    shape[static_cast<std::size_t>(*along)] = count;
    in.set_shape(0, shape);
  } else if (!axis) {
    in.set_shape(0, Dims{count});
  }
}

void eye_like(Inference& in) {
  unary_shape(in);
  in.set_range(0, {0, 1, false});
  const auto data = in.shape(0);
  if (data && data->size() != 2)
    in.fail(kEyeRank, {0}, {"{} has rank {}, EyeLike needs a matrix", OperandRef(0), data->size()});
  if (const auto dtype = dtype_attribute(in, "dtype", kEyeDtype)) {
    in.set_dtype(0, *dtype);
  } else if (!in.attribute("dtype")) {
    in.set_dtype(
        0, in.operand(0).kind == ValueKind::kTensor ? in.operand(0).dtypes & in.result().dtypes : in.result().dtypes);
  }
}

void trilu(Inference& in) {
  unary_shape(in);
  in.set_range(0, join(in.operand(0).range, {0, 0, false}));
  const auto data = in.shape(0);
  if (data && data->size() < 2)
    in.fail(kTriluRank, {0}, {"{} has rank {}, Trilu needs at least two axes", OperandRef(0), data->size()});
  if (in.operand_count() > 1) check_one_element(in, 1, kTriluDiagonal, "k");
}

void cumulative(Inference& in) {
  unary_shape(in);
  check_one_element(in, in.index_of("axis"), kCumulativeFlags, "axis");
  for (const std::string_view flag : {"exclusive", "reverse"}) {
    const std::int64_t value = in.int_attribute(flag, 0);
    if (value != 0 && value != 1)
      in.fail(kCumulativeFlags, {},
              {"{} of {} is {}, it has to be 0 or 1", AttributeName(flag), in.call().name, value});
  }
  const auto axis = in.constant("axis");
  if (const auto data = in.shape(0); data && axis)
    normalise_axis(in, *axis, static_cast<int>(data->size()), 0, kCumulativeAxis);
}

void reverse_sequence(Inference& in) {
  unary_shape(in);
  in.set_range(0, in.operand(0).range);
  const std::int64_t batch = in.int_attribute("batch_axis", 1), time = in.int_attribute("time_axis", 0);
  if (batch < 0 || batch > 1 || time != 1 - batch) {
    in.fail(kReverseAxes, {},
            {"batch_axis {} and time_axis {} have to be 0 and 1 or 1 and 0", Axis(batch), Axis(time)});
    return;
  }
  const auto data = in.shape(0), lengths = in.shape(1);
  if (data && data->size() < 2) {
    in.fail(kReverseShapes, {0},
            {"{} has rank {}, ReverseSequence needs at least two axes", OperandRef(0), data->size()});
  } else if (lengths && lengths->size() != 1) {
    in.fail(kReverseShapes, {1},
            {"the lengths {} have rank {}, they have to be a list", OperandRef(1), lengths->size()});
  } else if (data && lengths) {
    same_extent(in, (*data)[static_cast<std::size_t>(batch)], lengths->front(), 0, 1, kReverseShapes,
                {"batch axis {} and lengths differ", Axis(batch)});
    if (!in.failed()) check_lengths(in, kReverseLengths, 1, (*data)[static_cast<std::size_t>(time)], 0);
  }
}

OpEntry arg(std::string_view name) {
  return OpEntry(name)
      .computes(Opcode::kArgExtreme)
      .trait(OpTrait::kReduction)
      .infer(arg_extreme)
      .constraint(kArgAxis)
      .constraint(kArgElements);
}

const RegisterOps kRegisterSelection{
    arg("ArgMax"),
    arg("ArgMin"),
    // `K` gives the shape of the results, which is needed on the host; in version 1 it is the attribute `k`.
    OpEntry("TopK").computes(Opcode::kTopK).infer(top_k).host_list("K").constraint(kTopAxis).constraint(kTopCount),
    OpEntry("OneHot")
        .computes(Opcode::kOneHot)
        .infer(one_hot)
        .host("depth")
        .constraint(kOneHotAxis)
        .constraint(kOneHotRank)
        .constraint(kOneHotDepth)
        .constraint(kOneHotValues),
    OpEntry("NonZero").trait(OpTrait::kCountsElements).infer(non_zero),
    OpEntry("Unique").trait(OpTrait::kCountsElements).infer(unique).constraint(kUniqueAxis),
    OpEntry("Compress")
        .trait(OpTrait::kCountsElements)
        .infer(compress)
        .constraint(kCompressAxis)
        .constraint(kCompressCondition),
    OpEntry("EyeLike").infer(eye_like).constraint(kEyeRank).constraint(kEyeDtype),
    OpEntry("Trilu").infer(trilu).host("k").constraint(kTriluRank).constraint(kTriluDiagonal),
    OpEntry("CumSum")
        .computes(Opcode::kCumSum)
        .infer(cumulative)
        .host("axis")
        .constraint(kCumulativeAxis)
        .constraint(kCumulativeFlags),
    OpEntry("CumProd").infer(cumulative).host("axis").constraint(kCumulativeAxis).constraint(kCumulativeFlags),
    OpEntry("ReverseSequence")
        .infer(reverse_sequence)
        .constraint(kReverseShapes)
        .constraint(kReverseAxes)
        .constraint(kReverseLengths),
};

}  // namespace
}  // namespace tensorlint::ops
