// The same elements under another shape. Source: ONNX Reshape (opsets 1, 5, 14 with allowzero, ... 25), Flatten (1-25),
// Squeeze and Unsqueeze (1, 11, 13 with axes as an operand, ... 25).
#include <algorithm>
#include <limits>

#include "ir/ops/contents.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kReshapeCount{"reshape_element_count", ConstraintKind::kElementCount,
                               "the result has as many elements as the data"};
const Constraint kReshapeExtents{"reshape_extents", ConstraintKind::kElementCount,
                                 "no extent is below -1, at most one is -1, and not beside an extent of 0"};
const Constraint kReshapeCopies{"reshape_zero_copies_axis", ConstraintKind::kElementCount,
                                "a 0 in the shape copies an axis that the data has"};
const Constraint kFlattenAxis{"flatten_axis_in_range", ConstraintKind::kAxisRange,
                              "-rank <= axis <= rank; from 0 until opset 10", true};
const Constraint kSqueezeAxes{"squeeze_axes_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kSqueezeOnce{"squeeze_axes_once", ConstraintKind::kDuplicateAxis,
                              "no axis is given twice, from opset 13 on"};
const Constraint kSqueezeOne{"squeeze_extent_one", ConstraintKind::kShapes, "a squeezed axis has extent 1", true};
const Constraint kUnsqueezeAxes{"unsqueeze_axes_in_range", ConstraintKind::kAxisRange,
                                "-rank <= axis < rank, of the result's rank", true};
const Constraint kUnsqueezeOnce{"unsqueeze_axes_once", ConstraintKind::kDuplicateAxis, "no axis is given twice", true};

/// What the shape of a Reshape asks for.
struct Target {
  Dims dims;
  std::optional<std::size_t> inferred;  ///< the axis whose extent follows from the others
  bool asked = false;                   ///< that axis is a -1, not merely unknown
  bool consistent = true;
};

/// Two products without the factors that both have.
void cancel(const DimPool& pool, Dims& a, Dims& b) {
  pool.shared_meter()->charge(a.size() * b.size());  // an attribute may list any number
  for (auto it = a.begin(); it != a.end();) {
    const auto same = std::find_if(b.begin(), b.end(), [&](Dim dim) { return pool.equal(dim, *it); });
    // An extent 0 has to stay: it decides the product.
    if (same == b.end() || pool.is_constant(*it, 0)) {
      ++it;
      continue;
    }
    b.erase(same);
    it = a.erase(it);
  }
}

/// Whether an extent that is an expression may be 0 and then stand for the data's extent at that axis, which is
/// another. Where it divides the number of elements a 0 means that the data is empty, and so is the result.
bool may_copy(DimPool& pool, Dim asked, std::size_t axis, std::optional<std::span<const Dim>> data) {
  if (pool.bounds(asked).lo >= 1) return false;
  if (!data) return true;
  if (axis >= data->size() || pool.equal(asked, (*data)[axis])) return false;
  const Dim total = element_count(pool, *data);
  return total.is_unknown() || !pool.exact_div(total, asked);
}

Target read_target(Inference& in, std::span<const Dim> list, std::optional<std::span<const Dim>> data) {
  DimPool& pool = in.dims();
  const bool zero_is_zero = in.int_attribute("allowzero", 0) == 1;
  Target target;
  bool has_zero = false;
  std::size_t unknown = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Dim asked = list[i];
    const auto value = pool.as_constant(asked);
    Dim dim = asked;
    if (value == -1) {
      if (target.asked) {
        in.fail(kReshapeExtents, {1}, {"the shape {} has more than one -1", OperandRef(1)});
        target.consistent = false;
      }
      target.inferred = i;
      target.asked = true;
      dim = Dim(Unknown::kNotTracked);
    } else if (value && *value < -1) {
      in.fail(kReshapeExtents, {1}, {"the shape {} has the extent {} at axis {}", OperandRef(1), *value, Axis(i)});
      target.consistent = false;
      dim = Dim(Unknown::kTainted);
    } else if (value == 0 && zero_is_zero) {
      has_zero = true;
    } else if (value == 0) {
      if (data && i >= data->size()) {
        in.fail(
            kReshapeCopies, {1, 0},
            {"a 0 in {} copies axis {} of {}, which has rank {}", OperandRef(1), Axis(i), OperandRef(0), data->size()});
        target.consistent = false;
        dim = Dim(Unknown::kTainted);
      } else {
        dim = data ? (*data)[i] : Dim(Unknown::kNotTracked);
        if (dim.is_unknown()) ++unknown;
      }
    } else if (!value && pool.bounds_from_two(asked).lo < 0) {
      // It may be a -1 just as well.
      dim = Dim(Unknown::kDataDependent);
      ++unknown;
    } else if (asked.is_unknown()) {
      ++unknown;
    } else if (!value && !zero_is_zero && may_copy(pool, asked, i, data)) {
      dim = Dim(Unknown::kDataDependent);
      ++unknown;
    }
    target.dims.push_back(dim);
  }
  if (target.asked && has_zero) {
    in.fail(kReshapeExtents, {1}, {"the shape {} has both a 0 and a -1, with allowzero", OperandRef(1)});
    target.consistent = false;
  }
  if (!target.asked && unknown == 1) {
    // Whatever it stands for, the number of elements fixes it.
    for (std::size_t i = 0; i < target.dims.size(); ++i)
      if (target.dims[i].is_unknown()) target.inferred = i;
  }
  return target;
}

Message count_text(std::span<const Dim> data, Dim total) {
  return {"{} of shape {} has {} elements", OperandRef(0), data, total};
}

/// The extent of the inferred axis, or a violation where nothing fits.
Dim infer_extent(Inference& in, std::span<const Dim> data, std::span<const Dim> list, const Target& target) {
  DimPool& pool = in.dims();
  Dims left(data.begin(), data.end()), right;
  for (std::size_t i = 0; i < target.dims.size(); ++i)
    if (i != *target.inferred) right.push_back(target.dims[i]);
  cancel(pool, left, right);
  const Dim total = element_count(pool, left), rest = element_count(pool, right);
  if (total.is_unknown()) return total;
  if (rest.is_unknown()) return rest;
  if (pool.is_constant(rest, 0)) {
    // Any extent fits beside a 0, so that runtimes refuse to choose one; not where an unknown extent was not a -1.
    if (target.asked)
      in.fail(kReshapeExtents, {1, 0},
              {"the shape {} has a -1 beside an extent of 0: {}", OperandRef(1),
               count_text(data, element_count(pool, data))});
    return Dim(target.asked ? Unknown::kTainted : Unknown::kDataDependent);
  }
  if (const auto quotient = pool.exact_div(total, rest)) return *quotient;
  // No multiple of the rest is the total, whatever the inferred extent (a symbol here) is.
  const Dim any = pool.fresh(in.call().site, std::numeric_limits<std::uint32_t>::max(), Unknown::kNotTracked);
  if (pool.never_equal(total, pool.mul(rest, any))) {
    in.fail(kReshapeCount, {0, 1},
            {"{}, which shape {} does not divide", count_text(data, element_count(pool, data)), list});
    return Dim(Unknown::kTainted);
  }
  return pool.bounds(rest).lo >= 1 ? pool.floor_div(total, rest) : Dim(Unknown::kDataDependent);
}

void check_count(Inference& in, std::span<const Dim> data, const Dims& shape, std::span<const Dim> list) {
  DimPool& pool = in.dims();
  Dims left(data.begin(), data.end()), right = shape;
  cancel(pool, left, right);
  const Dim a = element_count(pool, left), b = element_count(pool, right);
  if (!pool.differ(a, b)) return;
  // Extents that both sides share were cancelled: of these one might be 0, and then both are empty.
  const Dim whole_a = element_count(pool, data), whole_b = element_count(pool, shape);
  Message message("{}, shape {} asks for {}", count_text(data, whole_a), list, whole_b);
  if (pool.never_equal(whole_a, whole_b)) {
    in.fail(kReshapeCount, {0, 1}, std::move(message));
  } else {
    fail_unequal(in, kReshapeCount, {0, 1}, std::move(message), whole_a, whole_b);
  }
}

void reshape(Inference& in) {
  keep_elements(in, 0, 0);
  const auto data = in.shape(0);
  bool given = false;
  const auto list = integer_list(in, "shape", given);
  if (!list || !given) return;
  Target target = read_target(in, *list, data);
  if (target.consistent && data) {
    if (target.inferred) {
      const Dim extent = infer_extent(in, *data, *list, target);
      if (target.asked || !extent.is_unknown()) target.dims[*target.inferred] = extent;
    } else {
      check_count(in, *data, target.dims, *list);
    }
  }
  in.set_shape(0, target.dims);
  if (in.failed()) in.result().content = ContentId::kNone;
}

void flatten(Inference& in) {
  keep_elements(in, 0, 0);
  const auto data = in.shape(0);
  if (!data) {
    in.set_shape(0, unknown_dims(2));
    return;
  }
  const auto rank = static_cast<std::int64_t>(data->size());
  const std::int64_t axis = in.int_attribute("axis", 1);
  const std::int64_t lowest = in.opset() < 11 ? 0 : -rank;
  if (axis < lowest || axis > rank) {
    in.fail(kFlattenAxis, {0},
            {"axis {} outside [{}, {}] for {} of rank {}", Axis(axis), lowest, rank, OperandRef(0), rank});
    in.set_shape(0, unknown_dims(2, Unknown::kTainted));
    return;
  }
  const auto split = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  in.set_shape(0, Dims{element_count(in.dims(), data->first(split)), element_count(in.dims(), data->subspan(split))});
}

/// Drops every axis of extent 1; where an extent may be 1, not even the rank is known.
void squeeze_all(Inference& in, std::span<const Dim> data) {
  DimPool& pool = in.dims();
  Dims kept;
  for (const Dim dim : data) {
    if (pool.is_constant(dim, 1)) continue;
    if (!pool.never_equal(dim, pool.constant(1))) return;
    kept.push_back(dim);
  }
  in.set_shape(0, kept);
}

void squeeze(Inference& in) {
  keep_elements(in, 0, 0);
  const auto data = in.shape(0);
  if (!data) return;
  DimPool& pool = in.dims();
  bool given = false;
  const auto list = integer_list(in, "axes", given);
  if (!given) return squeeze_all(in, *data);
  if (!list) return;
  if (list->empty()) {
    // An empty list is as good as none in onnxruntime, and until opset 12 in the reference implementation too; from 13
    // on that one squeezes nothing.
    const bool differs = in.opset() >= 13 && std::any_of(data->begin(), data->end(), [&](Dim dim) {
                           return !pool.never_equal(dim, pool.constant(1));
                         });
    if (!differs) squeeze_all(in, *data);
    return;
  }
  const auto axes = constant_extents(pool, *list);
  if (!axes) {
    // Axes that are not known may name one axis twice.
    if (list->size() == 1 && !data->empty()) in.set_shape(0, unknown_dims(data->size() - 1, Unknown::kDataDependent));
    return;
  }
  // Until opset 12 the reference implementation squeezes one axis after the other: nothing certain follows then.
  const bool in_turn = in.opset() < 13;
  const auto squeezed =
      distinct_axes(in, *axes, static_cast<int>(data->size()), 0, kSqueezeAxes, in_turn ? nullptr : &kSqueezeOnce);
  if (!squeezed) return;
  const bool is_certain = !in_turn || squeezed->size() == axes->size();
  Dims kept;
  for (std::size_t i = 0; i < data->size(); ++i) {
    if (std::find(squeezed->begin(), squeezed->end(), static_cast<int>(i)) == squeezed->end()) {
      kept.push_back((*data)[i]);
    } else if ((is_certain || static_cast<int>(i) == squeezed->front()) && pool.differ((*data)[i], pool.constant(1))) {
      in.fail(kSqueezeOne, {0},
              {"axis {} of {} has extent {}, only extent 1 can be squeezed", Axis(i), OperandRef(0), (*data)[i]});
    }
  }
  if (is_certain) in.set_shape(0, kept);
}

void unsqueeze(Inference& in) {
  keep_elements(in, 0, 0);
  const auto data = in.shape(0);
  bool given = false;
  const auto list = integer_list(in, "axes", given);
  if (!data || !list || data->size() + list->size() > kMaxRank) return;
  const std::size_t rank = data->size() + list->size();
  const auto axes = constant_extents(in.dims(), *list);
  if (!axes) {
    in.set_shape(0, unknown_dims(rank, Unknown::kDataDependent));
    return;
  }
  std::vector<bool> added(rank, false);
  std::vector<std::int64_t> written(rank, 0);
  const auto limit = static_cast<std::int64_t>(rank);
  for (const std::int64_t axis : *axes) {
    if (axis < -limit || axis >= limit) {
      in.fail(kUnsqueezeAxes, {0},
              {"axis {} outside the result's rank {}, which {} of rank {} gets", Axis(axis), rank, OperandRef(0),
               data->size()});
      in.set_shape(0, unknown_dims(rank, Unknown::kTainted));
      return;
    }
    const auto at = static_cast<std::size_t>(axis < 0 ? axis + limit : axis);
    if (added[at]) {
      in.fail(kUnsqueezeOnce, {0},
              axis == written[at] ? Message("axis {} is added to {} twice", Axis(axis), OperandRef(0))
                                  : Message("axis {} added to {} is axis {} again, in the result", Axis(axis),
                                            OperandRef(0), Axis(written[at])));
      in.set_shape(0, unknown_dims(rank, Unknown::kTainted));
      return;
    }
    added[at] = true;
    written[at] = axis;
  }
  Dims result;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) result.push_back(added[i] ? in.dims().constant(1) : (*data)[next++]);
  in.set_shape(0, result);
}

const RegisterOps kRegisterReshape{
    OpEntry("Reshape")
        .computes(Opcode::kReshape)
        .infer(reshape)
        .host("shape")
        .constraint(kReshapeCount)
        .constraint(kReshapeExtents)
        .constraint(kReshapeCopies),
    OpEntry("Flatten").computes(Opcode::kReshape).infer(flatten).constraint(kFlattenAxis),
    OpEntry("Squeeze")
        .computes(Opcode::kSqueeze)
        .infer(squeeze)
        .host("axes")
        .constraint(kSqueezeAxes)
        .constraint(kSqueezeOnce)
        .constraint(kSqueezeOne),
    OpEntry("Unsqueeze")
        .computes(Opcode::kUnsqueeze)
        .infer(unsqueeze)
        .host("axes")
        .constraint(kUnsqueezeAxes)
        .constraint(kUnsqueezeOnce),
};

}  // namespace
}  // namespace tensorlint::ops
