// What is where: sorting, searching, counting and masks. Source: ONNX TopK (opsets 1, 10, 11), NonZero (9), Unique
// (11), Compress (9), Trilu (14), ReverseSequence (10).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/indices.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// Numbers that are ordered as the elements are: uint64 travels by its bits, whose highest one is flipped for that.
void load_keys(const HostTensor& tensor, std::size_t first, std::size_t count, double* keys) {
  load(tensor, first, count, keys);
}
void load_keys(const HostTensor& tensor, std::size_t first, std::size_t count, std::int64_t* keys) {
  load(tensor, first, count, keys);
  if (tensor.dtype() == DType::kUint64)
    for (std::size_t i = 0; i < count; ++i) keys[i] ^= INT64_MIN;
}

/// NaN comes after all numbers, as numpy sorts it.
bool is_less(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }
bool is_less(std::int64_t a, std::int64_t b) { return a < b; }
bool is_less(std::string_view a, std::string_view b) { return a < b; }

// --- TopK

/// The first `count` of the elements in order; equal ones by their position.
template <typename Key>
void top_of_line(const List<Key>& keys, bool largest, std::size_t count, List<std::int64_t>& order) {
  order.resize(keys.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](std::int64_t a, std::int64_t b) {
    const Key x = keys[static_cast<std::size_t>(a)], y = keys[static_cast<std::size_t>(b)];
    if (largest ? is_less(y, x) : is_less(x, y)) return true;
    if (largest ? is_less(x, y) : is_less(y, x)) return false;
    return a < b;
  };
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  // A heap pays while few are asked for.
  if (count * 16 < keys.size()) {
    std::partial_sort(order.begin(), middle, order.end(), before);
  } else {
    if (count < keys.size()) std::nth_element(order.begin(), middle, order.end(), before);
    std::sort(order.begin(), middle, before);
  }
}

/// Whether sorted or not, the elements come in order: the operator leaves it open where they need not.
template <typename Key>
void top_lines(Evaluation& e, const HostTensor& lines, HostTensor& values, HostTensor& indices) {
  const auto extent = static_cast<std::size_t>(lines.extents().back());
  const auto count = static_cast<std::size_t>(values.extents().back());
  const std::int64_t largest = e.in().int_attribute("largest", 1);
  // The operator says what 0 and 1 mean; engines differ on other numbers.
  if (largest != 0 && largest != 1) e.fail("the attribute largest is {}, not 0 or 1", largest);
  List<Key> keys(extent, e.memory().resource());
  List<std::int64_t> order(e.memory().resource());
  std::int64_t* positions = indices.as_mutable<std::int64_t>().data();
  const std::size_t outer = count == 0 ? 0 : values.size() / count;
  for (std::size_t o = 0; o < outer; ++o) {
    load_keys(lines, o * extent, extent, keys.data());
    top_of_line(keys, largest == 1, count, order);
    std::copy_n(order.begin(), count, positions + o * count);
  }
  move_elements(values, lines, [&](auto* to, const auto* from) {
    for (std::size_t i = 0; i < values.size(); ++i)
      to[i] = from[i / count * extent + static_cast<std::size_t>(positions[i])];
  });
}

void top_k(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const std::size_t axis = axis_attribute(e, -1, data.rank());
  const HostTensor lines = axis_last(data, axis, e.memory());
  HostTensor &values = e.result(0), *const indices = e.wants(1) ? &e.result(1) : nullptr;
  Extents extents = lines.extents();
  extents.back() = values.extent(axis);
  HostTensor top(data.dtype(), extents, e.memory()), positions(DType::kInt64, extents, e.memory());
  if (is_float(data.dtype())) {
    top_lines<double>(e, lines, top, positions);
  } else {
    top_lines<std::int64_t>(e, lines, top, positions);
  }
  copy_axis_back(values, top, axis);
  if (indices != nullptr) copy_axis_back(*indices, positions, axis);
}

// --- NonZero, Compress

bool is_zero(const HostTensor& tensor, std::size_t index) {
  if (tensor.dtype() == DType::kString) return tensor.strings()[index].empty();
  return is_float(tensor.dtype()) ? number_at(tensor, index) == 0 : integer_at(tensor, index) == 0;
}

/// Positions in row-major order of elements that are not 0.
List<std::size_t> non_zeros(const HostTensor& tensor, Memory& memory) {
  List<std::size_t> positions(memory.resource());
  if (!is_float(tensor.dtype())) {
    for (std::size_t i = 0; i < tensor.size(); ++i)
      if (!is_zero(tensor, i)) positions.push_back(i);
    return positions;
  }
  double row[kRow];
  for (std::size_t begin = 0; begin < tensor.size(); begin += kRow) {
    const std::size_t count = std::min(kRow, tensor.size() - begin);
    load(tensor, begin, count, row);
    for (std::size_t i = 0; i < count; ++i)
      if (row[i] != 0) positions.push_back(begin + i);
  }
  return positions;
}

void non_zero(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const List<std::size_t> positions = non_zeros(data, e.memory());
  HostTensor& result = e.allocate(
      0, DType::kInt64, {static_cast<std::int64_t>(data.rank()), static_cast<std::int64_t>(positions.size())});
  const std::vector<std::int64_t> strides = strides_of(data.extents());
  std::int64_t* to = result.as_mutable<std::int64_t>().data();
  for (std::size_t axis = 0; axis < data.rank(); ++axis)
    for (const std::size_t position : positions)
      *to++ = static_cast<std::int64_t>(position) / strides[axis] % data.extent(axis);
}

void compress(Evaluation& e) {
  const bool flat = e.in().attribute("axis") == nullptr;
  const HostTensor& data = e.operand(0);
  const HostTensor seen = flat ? data.reshaped({static_cast<std::int64_t>(data.size())}) : data;
  const std::size_t axis = flat ? 0 : axis_attribute(e, 0, data.rank());
  List<std::int64_t> picks(e.memory().resource());
  for (const std::size_t position : non_zeros(e.operand(1), e.memory())) {
    // A condition may be longer than the axis: only what is true counts.
    picks.push_back(checked_index(e, static_cast<std::int64_t>(position), seen.extent(axis), axis));
  }
  Extents extents = seen.extents();
  extents[axis] = static_cast<std::int64_t>(picks.size());
  pick_slices(e.allocate(0, data.dtype(), std::move(extents)), seen, axis, picks);
}

// --- Unique

/// Which slices are equal: for each slice its group, and for each group its first slice.
struct Groups {
  explicit Groups(Memory& memory) : group_of(memory.resource()), first(memory.resource()), count(memory.resource()) {}
  List<std::int64_t> group_of, first, count;
};

template <typename Keys>
Groups grouped(const Keys& keys, std::size_t slices, bool sorted, Memory& memory) {
  const std::size_t run = slices == 0 ? 0 : keys.size() / slices;
  const auto compare = [&](std::size_t a, std::size_t b) {
    for (std::size_t i = 0; i < run; ++i) {
      if (is_less(keys[a * run + i], keys[b * run + i])) return -1;
      if (is_less(keys[b * run + i], keys[a * run + i])) return 1;
    }
    return 0;
  };
  List<std::size_t> order(slices, memory.resource());
  std::iota(order.begin(), order.end(), 0);
  // The buffer of the sort, at most.
  memory.take(slices * sizeof(std::size_t));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return compare(a, b) < 0; });
  memory.give_back(slices * sizeof(std::size_t));
  Groups groups(memory);
  groups.group_of.resize(slices);
  for (std::size_t i = 0; i < slices; ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      groups.first.push_back(static_cast<std::int64_t>(order[i]));
      groups.count.push_back(0);
    }
    groups.group_of[order[i]] = static_cast<std::int64_t>(groups.first.size()) - 1;
    ++groups.count.back();
  }
  if (sorted) return groups;
  // In the order in which they come.
  List<std::size_t> by_first(groups.first.size(), memory.resource()), rank(groups.first.size(), memory.resource());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::sort(by_first.begin(), by_first.end(),
            [&](std::size_t a, std::size_t b) { return groups.first[a] < groups.first[b]; });
  Groups ordered(memory);
  for (std::size_t i = 0; i < by_first.size(); ++i) {
    rank[by_first[i]] = i;
    ordered.first.push_back(groups.first[by_first[i]]);
    ordered.count.push_back(groups.count[by_first[i]]);
  }
  for (const std::int64_t group : groups.group_of)
    ordered.group_of.push_back(static_cast<std::int64_t>(rank[static_cast<std::size_t>(group)]));
  return ordered;
}

template <typename Key>
Groups grouped_numbers(const HostTensor& tensor, std::size_t slices, bool sorted, Memory& memory) {
  List<Key> keys(tensor.size(), memory.resource());
  load_keys(tensor, 0, keys.size(), keys.data());
  return grouped(keys, slices, sorted, memory);
}

void set_list(Evaluation& e, int index, const List<std::int64_t>& list) {
  if (!e.wants(index)) return;
  HostTensor& result = e.allocate(index, DType::kInt64, {static_cast<std::int64_t>(list.size())});
  std::ranges::copy(list, result.as_mutable<std::int64_t>().begin());
}

void unique(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const bool flat = e.in().attribute("axis") == nullptr, sorted = e.in().int_attribute("sorted", 1) != 0;
  const HostTensor seen = flat ? data.reshaped({static_cast<std::int64_t>(data.size())}) : data;
  const std::size_t axis = flat ? 0 : axis_attribute(e, 0, data.rank());
  // Slices as runs, one after the other.
  Extents extents = seen.extents();
  std::vector<std::int64_t> strides = strides_of(extents);
  for (Extents* const list : {&extents, &strides})
    std::rotate(list->begin(), list->begin() + static_cast<std::ptrdiff_t>(axis),
                list->begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  HostTensor slices(data.dtype(), extents, e.memory());
  copy_strided(slices, seen, 0, strides);
  const auto count = static_cast<std::size_t>(extents[0]);
  const Groups groups = data.dtype() == DType::kString ? grouped(slices.strings(), count, sorted, e.memory())
                        : is_float(data.dtype())       ? grouped_numbers<double>(slices, count, sorted, e.memory())
                                                 : grouped_numbers<std::int64_t>(slices, count, sorted, e.memory());
  Extents kept = seen.extents();
  kept[axis] = static_cast<std::int64_t>(groups.first.size());
  pick_slices(e.allocate(0, data.dtype(), std::move(kept)), seen, axis, groups.first);
  set_list(e, 1, groups.first);
  set_list(e, 2, groups.group_of);
  set_list(e, 3, groups.count);
}

// --- Trilu

void clear(HostTensor& tensor) {
  if (tensor.dtype() != DType::kString) std::fill_n(tensor.mutable_raw(), tensor.bytes(), std::byte{0});
}

/// Element (row, column) stays in the upper triangle where column - row >= k, in the lower one where it is <= k.
void trilu(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  clear(result);
  if (result.size() == 0) return;
  const bool upper = e.in().int_attribute("upper", 1) != 0;
  const std::int64_t rows = data.extent(data.rank() - 2), columns = data.extent(data.rank() - 1);
  const std::int64_t k = std::clamp(e.has(1) ? e.integer(1) : 0, -rows - 1, columns + 1);
  for (std::size_t first = 0; first < data.size(); first += static_cast<std::size_t>(columns)) {
    const std::int64_t row = static_cast<std::int64_t>(first) / columns % rows;
    const std::int64_t begin = upper ? std::clamp<std::int64_t>(row + k, 0, columns) : 0;
    const std::int64_t end = upper ? columns : std::clamp<std::int64_t>(row + k + 1, 0, columns);
    const std::size_t at = first + static_cast<std::size_t>(begin);
    copy_elements(result, at, data, at, static_cast<std::size_t>(end - begin));
  }
}

// --- ReverseSequence

void reverse_sequence(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  const std::vector<std::int64_t> lengths = e.integers(1);
  const auto batch_axis = static_cast<std::size_t>(e.in().int_attribute("batch_axis", 1)), time_axis = 1 - batch_axis;
  const std::vector<std::int64_t> strides = strides_of(data.extents());
  const auto inner = static_cast<std::size_t>(strides[1]);
  const std::int64_t steps = data.extent(time_axis);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] < 0 || lengths[b] > steps)
      e.fail("sequence {} has the length {}, outside [0, {}]", b, lengths[b], steps);
    const auto base = static_cast<std::int64_t>(b) * strides[batch_axis];
    for (std::int64_t t = 0; t < steps; ++t) {
      const std::int64_t source = t < lengths[b] ? lengths[b] - 1 - t : t;
      copy_elements(result, static_cast<std::size_t>(base + t * strides[time_axis]), data,
                    static_cast<std::size_t>(base + source * strides[time_axis]), inner);
    }
  }
}

const RegisterEvaluators kSelections{
    Evaluator("TopK").evaluate(top_k).error(Rounding::selects()),
    Evaluator("NonZero").evaluate(non_zero).error(Rounding::exact()),
    Evaluator("Unique").evaluate(unique).error(Rounding::exact()),
    Evaluator("Compress").evaluate(compress).error(Rounding::exact()),
    Evaluator("Trilu").evaluate(trilu).error(Rounding::exact()),
    Evaluator("ReverseSequence").evaluate(reverse_sequence).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
