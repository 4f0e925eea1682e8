// Elements read and written at indices that are tensors. Source: ONNX GatherElements (opsets 11, 13), GatherND (11, 12,
// 13), Scatter (9), ScatterElements (11, 13, 16, 18), ScatterND (11, 13, 16, 18), TensorScatter (24).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/indices.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// For each element of indices, row-major, which element of the data it names (GatherElements, ScatterElements).
List<std::int64_t> element_offsets(Evaluation& e, const HostTensor& data, const HostTensor& indices) {
  List<std::int64_t> offsets(indices.size(), e.memory().resource());
  load(indices, 0, offsets.size(), offsets.data());
  if (offsets.empty()) return offsets;
  if (data.rank() == 0 || indices.rank() != data.rank())
    e.fail("indices of rank {} do not fit data of rank {}", indices.rank(), data.rank());
  const std::size_t axis = axis_attribute(e, 0, data.rank()), last = data.rank() - 1;
  const std::vector<std::int64_t> own = strides_of(data.extents());
  std::vector<std::int64_t> strides = own;
  strides[axis] = 0;
  const std::int64_t extent = data.extent(axis), along = own[axis], run = indices.extent(last), step = strides[last];
  for_each_row(indices.extents(), strides, [&](std::size_t row, std::int64_t offset) {
    std::int64_t* const at = offsets.data() + row * static_cast<std::size_t>(run);
    for (std::int64_t i = 0; i < run; ++i) at[i] = offset + i * step + checked_index(e, at[i], extent, axis) * along;
  });
  return offsets;
}

/// For each tuple of indices, where its slice of the data begins, after `batch` axes that both have; and how long it
/// is.
struct Tuples {
  List<std::int64_t> offsets;
  std::size_t run = 1;
};

Tuples tuple_offsets(Evaluation& e, const HostTensor& data, const HostTensor& indices, std::size_t batch) {
  if (indices.rank() <= batch || data.rank() < batch) e.fail("there are no indices after {} axes of a batch", batch);
  const auto parts = static_cast<std::size_t>(indices.extents().back());
  if (parts > data.rank() - batch) e.fail("tuples of {} indices for data of rank {}", parts, data.rank());
  for (std::size_t axis = 0; axis < batch; ++axis)
    if (indices.extent(axis) != data.extent(axis)) e.fail("axis {} of the batch has two extents", axis);
  const std::vector<std::int64_t> strides = strides_of(data.extents()), all = e.integers(1);
  Tuples tuples{List<std::int64_t>(e.memory().resource())};
  std::size_t count = 1, batches = 1, whole = 1;
  for (std::size_t axis = 0; axis + 1 < indices.rank(); ++axis) count *= static_cast<std::size_t>(indices.extent(axis));
  for (std::size_t axis = 0; axis < data.rank(); ++axis) {
    if (axis < batch) batches *= static_cast<std::size_t>(data.extent(axis));
    if (axis >= batch) whole *= static_cast<std::size_t>(data.extent(axis));
    if (axis >= batch + parts) tuples.run *= static_cast<std::size_t>(data.extent(axis));
  }
  tuples.offsets.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto offset = static_cast<std::int64_t>(batches == 0 ? 0 : i / (count / batches) * whole);
    for (std::size_t part = 0; part < parts; ++part)
      offset +=
          checked_index(e, all[i * parts + part], data.extent(batch + part), batch + part) * strides[batch + part];
    tuples.offsets.push_back(offset);
  }
  return tuples;
}

void gather_elements(Evaluation& e) {
  const List<std::int64_t> offsets = element_offsets(e, e.operand(0), e.operand(1));
  move_elements(e.result(), e.operand(0), [&](auto* to, const auto* from) {
    for (const std::int64_t offset : offsets) *to++ = from[offset];
  });
}

void gather_nd(Evaluation& e) {
  const auto batch = static_cast<std::size_t>(e.in().int_attribute("batch_dims", 0));
  const Tuples tuples = tuple_offsets(e, e.operand(0), e.operand(1), batch);
  move_elements(e.result(), e.operand(0), [&](auto* to, const auto* from) {
    for (const std::int64_t offset : tuples.offsets) to = std::copy_n(from + offset, tuples.run, to);
  });
}

enum class Fold { kAdd, kMul, kMax, kMin };

template <typename Number>
Number reduced(Fold reduction, Number old, Number update) {
  if (reduction == Fold::kMax || reduction == Fold::kMin) {
    // NaN wins, as in numpy.
    if (old != old || update != update) return old != old ? old : update;
    return (reduction == Fold::kMax) == (update > old) ? update : old;
  }
  if constexpr (std::is_same_v<Number, std::int64_t>) {
    const auto a = static_cast<std::uint64_t>(old), b = static_cast<std::uint64_t>(update);
    return static_cast<std::int64_t>(reduction == Fold::kAdd ? a + b : a * b);
  } else {
    return reduction == Fold::kAdd ? old + update : old * update;
  }
}

/// In wide numbers, rounded once at the end; whatever was not updated is stored as it was.
template <typename Number>
void scatter_wide(HostTensor& result, const Tuples& targets, const HostTensor& updates, Fold reduction,
                  Memory& memory) {
  // uint64 travels by its bits: with the highest one flipped they compare as numbers do.
  const bool flip = result.dtype() == DType::kUint64 && (reduction == Fold::kMax || reduction == Fold::kMin);
  List<Number> wide(result.size(), memory.resource()), all(updates.size(), memory.resource());
  load(result, 0, wide.size(), wide.data());
  load(updates, 0, all.size(), all.data());
  const auto toggle = [&](List<Number>& numbers) {
    if constexpr (std::is_same_v<Number, std::int64_t>)
      if (flip)
        for (Number& number : numbers) number ^= INT64_MIN;
  };
  toggle(wide);
  toggle(all);
  const Number* update = all.data();
  for (const std::int64_t offset : targets.offsets)
    for (std::size_t i = 0; i < targets.run; ++i) {
      Number& slot = wide[static_cast<std::size_t>(offset) + i];
      slot = reduced(reduction, slot, *update++);
    }
  toggle(wide);
  store(result, 0, wide.size(), wide.data());
}

/// Updates go to their targets in the order of the indices, so that of several for one the last one stays.
void scatter(Evaluation& e, const Tuples& targets) {
  const HostTensor &data = e.operand(0), &updates = e.operand(2);
  HostTensor& result = e.result();
  copy_elements(result, 0, data, 0, data.size());
  const std::string_view reduction = e.in().string_attribute("reduction", "none");
  if (reduction == "none") {
    move_elements(result, updates, [&](auto* to, const auto* from) {
      for (const std::int64_t offset : targets.offsets) {
        std::copy_n(from, targets.run, to + offset);
        from += targets.run;
      }
    });
    return;
  }
  const Fold kind = reduction == "add"   ? Fold::kAdd
                    : reduction == "mul" ? Fold::kMul
                    : reduction == "max" ? Fold::kMax
                                         : Fold::kMin;
  if (is_float(data.dtype())) return scatter_wide<double>(result, targets, updates, kind, e.memory());
  if (is_integer_or_bool(data.dtype())) return scatter_wide<std::int64_t>(result, targets, updates, kind, e.memory());
  e.fail("the reduction {} is not defined for {}", reduction, to_text(data.dtype()));
}

void scatter_elements(Evaluation& e) { scatter(e, {element_offsets(e, e.operand(0), e.operand(1)), 1}); }

void scatter_nd(Evaluation& e) { scatter(e, tuple_offsets(e, e.operand(0), e.operand(1), 0)); }

/// Each sequence of a batch is written into its cache, from an index of its own on.
void tensor_scatter(Evaluation& e) {
  const HostTensor &cache = e.operand(0), &update = e.operand(1);
  HostTensor& result = e.result();
  copy_elements(result, 0, cache, 0, cache.size());
  const std::size_t axis = axis_attribute(e, -2, cache.rank());
  if (axis == 0 || axis >= cache.rank()) e.fail("the axis of a cache is neither the batch's nor outside");
  for (std::size_t i = 0; i < cache.rank(); ++i)
    if (update.rank() != cache.rank() || (i != axis && update.extent(i) != cache.extent(i)))
      e.fail("the update [{}] does not fit the cache [{}]", fmt::join(update.extents(), ", "),
             fmt::join(cache.extents(), ", "));
  const AxisSplit to = split_at(cache.extents(), axis), from = split_at(update.extents(), axis);
  const auto batch = static_cast<std::size_t>(cache.extent(0));
  const std::vector<std::int64_t> begins = e.has(2) ? e.integers(2) : std::vector<std::int64_t>{};  // none: 0
  if (e.has(2) && begins.size() != batch) e.fail("{} write indices for a batch of {}", begins.size(), batch);
  const bool circular = e.in().string_attribute("mode", "linear") == "circular";
  for (std::size_t o = 0; o < from.outer; ++o) {
    const std::int64_t begin = begins.empty() ? 0 : begins[o / (from.outer / batch)];
    if (begin < 0 || begin > cache.extent(axis))
      e.fail("position {} is outside the cache of {}", begin, cache.extent(axis));
    for (std::size_t i = 0; i < from.extent; ++i) {
      std::int64_t at = begin + static_cast<std::int64_t>(i);
      if (circular) at %= cache.extent(axis);
      if (at < 0 || at >= cache.extent(axis)) e.fail("position {} is outside the cache of {}", at, cache.extent(axis));
      copy_elements(result, (o * to.extent + static_cast<std::size_t>(at)) * to.inner, update,
                    (o * from.extent + i) * from.inner, from.inner);
    }
  }
}

const RegisterEvaluators kScatters{
    Evaluator("GatherElements").evaluate(gather_elements).error(Rounding::exact()),
    Evaluator("GatherND").evaluate(gather_nd).error(Rounding::exact()),
    Evaluator("Scatter").evaluate(scatter_elements).error(Rounding::exact()),
    Evaluator("ScatterElements").evaluate(scatter_elements).error(Rounding::accumulates()),
    Evaluator("ScatterND").evaluate(scatter_nd).error(Rounding::accumulates()),
    Evaluator("TensorScatter").evaluate(tensor_scatter).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
