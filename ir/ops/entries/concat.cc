// Joining and splitting along an axis. Source: ONNX Concat (opsets 1, 4, 11, 13), Split (1, 2, 11, 13 with sizes as an
// operand, 18 with num_outputs). Until opset 17 equal parts have to be equal; from 18 on the last one may be smaller.
#include <algorithm>
#include <cstdint>

#include "base/checked.h"
#include "ir/ops/contents.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kConcatAxis{"concat_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kConcatRanks{"concat_ranks", ConstraintKind::kConcatRanks, "all operands have the same rank", true};
const Constraint kConcatExtents{"concat_extents", ConstraintKind::kConcatShapes,
                                "all extents but the joined one are the same", true};
const Constraint kSplitAxis{"split_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kSplitCount{"split_count", ConstraintKind::kAttribute, "as many sizes as results, given once"};
const Constraint kSplitSizes{"split_sizes", ConstraintKind::kShapes,
                             "the sizes are not negative and sum up to the extent", true};
const Constraint kSplitEven{"split_even", ConstraintKind::kShapes, "the results divide the extent, until opset 17"};

/// Elements of the result where every operand is small and at least one is followed.
void concat_elements(Inference& in, std::size_t axis) {
  DimPool& pool = in.dims();
  const auto target = in.result().shape == ShapeId::kUnranked
                          ? std::nullopt
                          : followed_extents(pool, in.facts().dims_of(in.result().shape));
  if (!target || in.failed()) return;
  std::vector<std::vector<std::int64_t>> extents;
  std::vector<const Content*> contents;
  bool floats = false, followed = false;
  for (int i = 0; i < static_cast<int>(in.operand_count()); ++i) {
    const auto shape = in.shape(i);
    auto operand = shape ? followed_extents(pool, *shape) : std::nullopt;
    if (!operand) return;
    const Content* content = content_of(in, i);
    followed = followed || content != nullptr;
    floats = floats || (content != nullptr && !content->floats.empty());
    if (element_total(*operand) == 0) continue;  // of thousands of these nothing is taken, in no block
    contents.push_back(content);
    extents.push_back(std::move(*operand));
  }
  if (!followed) return;
  Dims integers;
  std::vector<double> numbers;
  std::size_t outer = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>((*target)[i]);
  if (element_total(*target) == 0) outer = 0;
  for (std::size_t block = 0; block < outer; ++block) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const std::size_t run = element_total(extents[i]) / outer;
      for (std::size_t k = block * run; k < (block + 1) * run; ++k) {
        if (!floats) {
          integers.push_back(contents[i] == nullptr ? Dim(Unknown::kDataDependent) : contents[i]->integers[k]);
        } else if (contents[i] == nullptr || contents[i]->floats.empty()) {
          return;
        } else {
          numbers.push_back(contents[i]->floats[k]);
        }
      }
    }
  }
  if (floats) {
    in.set_floats(0, std::move(numbers));
  } else {
    in.set_elements(0, std::move(integers));
  }
}

void concat(Inference& in) {
  const int count = static_cast<int>(in.operand_count());
  Range hull = in.operand(0).range;
  for (int i = 1; i < count; ++i) hull = join(hull, in.operand(i).range);
  in.set_range(0, hull);

  // The rank comes from the first ranked operand, which may be any of them.
  int first = 0;
  while (first < count && !in.shape(first)) ++first;
  if (first == count) return;
  DimPool& pool = in.dims();
  const auto shape = *in.shape(first);
  const auto axis = normalise_axis(in, in.int_attribute("axis", 1), static_cast<int>(shape.size()), first, kConcatAxis);
  if (!axis) return;
  const auto joined = static_cast<std::size_t>(*axis);
  Dims result = copy_dims(shape);
  bool all_ranked = first == 0;
  for (int i = first + 1; i < count; ++i) {
    const auto other = in.shape(i);
    if (!other) {
      all_ranked = false;
      continue;
    }
    if (other->size() != result.size()) {
      // Old exporters start a list with an empty 1-d tensor, which runtimes skip.
      const auto placeholder = [&](std::span<const Dim> dims) {
        return dims.size() == 1 &&
               (pool.is_constant(dims[0], 0) || (!pool.is_named(dims[0]) && pool.bounds(dims[0]).lo <= 0));
      };
      if (placeholder(shape) || placeholder(*other)) return;
      in.fail(
          kConcatRanks, {i, first},
          {"{} of shape {} and {} of shape {} have different ranks", OperandRef(first), shape, OperandRef(i), *other});
      all_ranked = false;
      break;
    }
    for (std::size_t k = 0; k < result.size(); ++k) {
      if (k == joined) {
        result[k] = pool.add(result[k], (*other)[k]);
      } else if (in.failed() || (result[k] == (*other)[k] && !result[k].is_unknown())) {
        continue;
      } else {
        result[k] = same_extent(in, result[k], (*other)[k], first, i, kConcatExtents,
                                {"operands joined along axis {} differ at axis {}", Axis(*axis), Axis(k)});
      }
    }
  }
  if (!all_ranked) result[joined] = Dim(in.failed() ? Unknown::kTainted : Unknown::kNotTracked);
  in.set_shape(0, result);
  concat_elements(in, joined);
}

/// Content of the part [begin, begin + extent) of the operand along the axis.
void split_elements(Inference& in, int result, std::size_t axis, std::int64_t begin, std::int64_t extent) {
  const Content* content = content_of(in, 0);
  if (content == nullptr) return;
  std::vector<std::int64_t> part = *constant_extents(in.dims(), *in.shape(0));
  const std::vector<std::size_t> strides = strides_of(part);
  part[axis] = extent;
  std::vector<std::size_t> indices;
  for_each_index(part, [&](std::span<const std::int64_t> index) {
    std::size_t at = static_cast<std::size_t>(begin) * strides[axis];
    for (std::size_t i = 0; i < index.size(); ++i) at += static_cast<std::size_t>(index[i]) * strides[i];
    indices.push_back(at);
  });
  select_elements(in, result, 0, indices);
}

/// Sizes of `count` parts as equal as the version wants them.
Dims equal_parts(Inference& in, Dim extent, std::int64_t count) {
  DimPool& pool = in.dims();
  const Dim parts = pool.constant(count);
  if (in.opset() < 18) {
    if (pool.never_equal(pool.mul(parts, pool.fresh(in.call().site, 0xffff'ffffU, Unknown::kNotTracked)), extent))
      in.fail(kSplitEven, {0}, {"extent {} of {} does not divide into {} equal parts", extent, OperandRef(0), count});
    return Dims(static_cast<std::size_t>(count), pool.floor_div(extent, parts));
  }
  const Dim chunk = pool.ceil_div(extent, parts);
  Dims sizes(static_cast<std::size_t>(count), chunk);
  const Dim last = pool.sub(extent, pool.mul(chunk, pool.constant(count - 1)));
  if (pool.bounds(last).lo > 0 || count == 2) {
    sizes.back() = last;
  } else if (pool.as_constant(extent)) {
    // Few elements in many parts: nothing is left for the last one, and onnxruntime 1.31 refuses it.
    if (!in.failed())
      in.fail(kSplitCount, {0},
              {"extent {} of {} does not divide into {} parts of {}: nothing is left for the last one", extent,
               OperandRef(0), count, chunk});
    sizes.assign(sizes.size(), Dim(Unknown::kNotTracked));
  } else if (!pool.equal(pool.mul(chunk, parts), extent)) {
    // The same where the extent is an expression that may be that small: only the first part is certain.
    for (std::int64_t i = 1; i < count; ++i) {
      const Dim left = pool.sub(extent, pool.mul(chunk, pool.constant(i + 1)));
      if (left.is_unknown() || pool.bounds(left).lo < 0) sizes[static_cast<std::size_t>(i)] = Dim(Unknown::kNotTracked);
    }
  }
  return sizes;
}

void split(Inference& in) {
  const auto count = static_cast<std::int64_t>(in.result_count());
  for (int r = 0; r < count; ++r) in.set_range(r, in.operand(0).range);
  const auto data = in.shape(0);
  if (!data) return;
  const auto axis = normalise_axis(in, in.int_attribute("axis", 0), static_cast<int>(data->size()), 0, kSplitAxis);
  if (!axis) {
    for (int r = 0; r < count; ++r) in.set_shape(r, unknown_dims(data->size(), Unknown::kTainted));
    return;
  }
  DimPool& pool = in.dims();
  const auto at = static_cast<std::size_t>(*axis);
  const Dim extent = (*data)[at];
  bool given = false;
  auto sizes = integer_list(in, "split", given);
  const auto wanted = in.int_attribute("num_outputs");
  if (in.opset() >= 18 && given == wanted.has_value())
    in.fail(kSplitCount, {},
            {"Split takes either sizes or {}, {} given", AttributeName("num_outputs"), given ? "both are" : "none is"});
  // onnxruntime counts in 32 bits.
  if (wanted && (*wanted < count || *wanted > INT32_MAX))
    in.fail(kSplitCount, {}, {"{} is {}, the node has {} results", AttributeName("num_outputs"), *wanted, count});
  if (wanted && pool.bounds(extent).hi < *wanted)
    in.fail(kSplitCount, {0},
            {"{} is {}, axis {} of {} has extent {}", AttributeName("num_outputs"), *wanted, Axis(*axis), OperandRef(0),
             extent});
  const std::int64_t parts = std::max(wanted.value_or(count), count);  // the last results may be left out
  if (wanted && parts > static_cast<std::int64_t>(kMaxContent)) {
    sizes = Dims(static_cast<std::size_t>(count), Dim(Unknown::kNotTracked));
  } else if (!given) {
    sizes = equal_parts(in, extent, parts);
  } else if (sizes) {
    if (static_cast<std::int64_t>(sizes->size()) != count) {
      in.fail(kSplitCount, {}, {"Split has {} sizes and {} results", sizes->size(), count});
      sizes.reset();
    } else {
      Dim sum = pool.constant(0), total = sum;
      for (Dim& size : *sizes) {
        sum = pool.add(sum, size);
        // More than int64 holds is more than any extent.
        const auto whole = pool.as_constant(total), part = pool.as_constant(size);
        if (whole && part && *whole >= 0 && *part >= 0) {
          const auto next = checked::add(*whole, *part);
          if (!next && !in.failed())
            in.fail(kSplitSizes, {0},
                    {"the sizes sum up to more than 2^63, axis {} of {} has extent {}", Axis(*axis), OperandRef(0),
                     extent});
          total = next ? pool.constant(*next) : Dim(Unknown::kTainted);
        }
        if (pool.bounds(size).hi >= 0) continue;
        in.fail(kSplitSizes, {0}, {"a part of {} has the size {}", OperandRef(0), size});
        size = Dim(Unknown::kTainted);
      }
      if (!in.failed() && pool.differ(sum, extent))
        fail_unequal(in, kSplitSizes, {0},
                     {"the sizes sum up to {}, axis {} of {} has extent {}", sum, Axis(*axis), OperandRef(0), extent},
                     sum, extent);
      // A single unknown size is what the others leave.
      if (!in.failed() && sum.is_unknown() &&
          std::count_if(sizes->begin(), sizes->end(), [](Dim size) { return size.is_unknown(); }) == 1) {
        Dim rest = extent;
        for (const Dim size : *sizes)
          if (!size.is_unknown()) rest = pool.sub(rest, size);
        std::replace_if(sizes->begin(), sizes->end(), [](Dim size) { return size.is_unknown(); }, rest);
      }
    }
  }
  std::optional<std::int64_t> begin = 0;
  for (int r = 0; r < count; ++r) {
    Dims part = copy_dims(*data);
    part[at] = sizes ? (*sizes)[static_cast<std::size_t>(r)] : Dim(Unknown::kDataDependent);
    in.set_shape(r, part);
    const auto size = pool.as_constant(part[at]);
    const auto end = begin && size && *size >= 0 ? checked::add(*begin, *size) : std::nullopt;
    if (end && !in.failed() && pool.bounds(extent).lo >= *end) split_elements(in, r, at, *begin, *size);
    begin = end;
  }
}

const RegisterOps kRegisterConcat{
    OpEntry("Concat")
        .computes(Opcode::kConcat)
        .infer(concat)
        .constraint(kConcatAxis)
        .constraint(kConcatRanks)
        .constraint(kConcatExtents),
    OpEntry("Split")
        .computes(Opcode::kSplit)
        .infer(split)
        .host("split")
        .constraint(kSplitAxis)
        .constraint(kSplitCount)
        .constraint(kSplitSizes)
        .constraint(kSplitEven),
};

}  // namespace
}  // namespace tensorlint::ops
