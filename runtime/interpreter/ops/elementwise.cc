#include "runtime/interpreter/ops/elementwise.h"

#include <algorithm>
#include <type_traits>

#include "runtime/values/movement.h"
#include "runtime/values/parallel.h"

namespace tensorlint::runtime {
namespace {

// Below this many elements a run costs more to find than to compute.
constexpr std::size_t kShortRun = 24;
constexpr std::size_t kFewRuns = 64;                       // less than it costs to broadcast an operand in memory
constexpr std::size_t kThreadPart = std::size_t{1} << 17;  // elements that a thread takes at once

template <typename T>
void load_row(const HostTensor& tensor, std::size_t first, std::size_t count, T* buffer) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>) {
    load(tensor, first, count, buffer);
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    load(tensor, first, count, reinterpret_cast<std::int64_t*>(buffer));  // its bits
  } else {
    throw RunFault{"rows of this type are read in place"};
  }
}

template <typename R>
void store_row(HostTensor& to, std::size_t first, std::size_t count, const R* buffer) {
  if constexpr (std::is_same_v<R, double> || std::is_same_v<R, std::int64_t>) {
    store(to, first, count, buffer);
  } else if constexpr (std::is_same_v<R, std::uint64_t>) {
    store(to, first, count, reinterpret_cast<const std::int64_t*>(buffer));
  } else {
    throw RunFault{"rows of this type are written in place"};
  }
}

template <typename T, typename R>
void run_as(const BroadcastWalk& walk, HostTensor& to, BinaryRow<T, R> row) {
  if (row == nullptr) throw RunFault{fmt::format("{} has no such operation", to_text(walk.operand(0).dtype()))};
  const HostTensor &a = walk.operand(0), &b = walk.operand(1);
  const bool in_place = is_stored_as<R>(to.dtype());
  const bool whole = in_place && is_stored_as<T>(a.dtype()) && is_stored_as<T>(b.dtype());
  alignas(64) T from_a[kRow];
  alignas(64) T from_b[kRow];
  alignas(64) R result[kRow];
  walk.for_each_run([&](std::size_t first, std::size_t run, std::span<const std::size_t> from) {
    if (whole && run >= 2 * kThreadPart) {
      return parallel_ranges(static_cast<std::int64_t>(run), static_cast<std::int64_t>(kThreadPart),
                             [&](std::int64_t begin, std::int64_t end) {
                               const auto done = static_cast<std::size_t>(begin),
                                          count = static_cast<std::size_t>(end - begin);
                               const auto row_at = [&](std::size_t k) {
                                 const std::size_t at = from[k] + (walk.varies(k) ? done : 0);
                                 return Row<T>{walk.operand(k).template as<T>().data() + at, walk.varies(k)};
                               };
                               row(row_at(0), row_at(1), to.as_mutable<R>().data() + first + done, count);
                             });
    }
    const std::size_t step = whole ? run : kRow;
    for (std::size_t done = 0; done < run; done += step) {
      const std::size_t count = std::min(step, run - done);
      const Row<T> x = row_of(a, walk.varies(0), from[0] + (walk.varies(0) ? done : 0), count, from_a);
      const Row<T> y = row_of(b, walk.varies(1), from[1] + (walk.varies(1) ? done : 0), count, from_b);
      R* const out = in_place ? to.as_mutable<R>().data() + first + done : result;
      row(x, y, out, count);
      if (!in_place) store_row(to, first + done, count, result);
    }
  });
}

template <typename Rows>
void run_by_dtype(const BroadcastWalk& walk, HostTensor& to, const Rows& rows) {
  const DType dtype = walk.operand(0).dtype();
  if (dtype == DType::kFloat32 && rows.f32 != nullptr) return run_as(walk, to, rows.f32);
  if (is_float(dtype)) return run_as(walk, to, rows.f64);
  if (dtype == DType::kBool && rows.boolean != nullptr) return run_as(walk, to, rows.boolean);
  if (dtype == DType::kUint64) return run_as(walk, to, rows.u64);
  return run_as(walk, to, rows.i64);
}

/// Until opset 6 operand B begins at `axis` of A: as if axes of extent 1 followed it.
HostTensor aligned(Evaluation& e, const HostTensor& b, std::size_t rank) {
  const auto axis = e.in().int_attribute("axis");
  if (!axis || b.rank() >= rank) return b;
  const auto axes = static_cast<std::int64_t>(rank);
  const std::int64_t first = *axis < 0 ? *axis + axes : *axis;
  const std::int64_t missing = axes - first - static_cast<std::int64_t>(b.rank());
  if (first < 0 || missing < 0)
    e.fail("axis {} for an operand of rank {} beside one of rank {}", *axis, b.rank(), rank);
  Extents extents = b.extents();
  extents.insert(extents.end(), static_cast<std::size_t>(missing), 1);
  return b.reshaped(std::move(extents));
}

}  // namespace

BroadcastWalk::BroadcastWalk(std::span<const std::int64_t> target, std::vector<HostTensor> operands, Memory& memory)
    : operands_(std::move(operands)) {
  collapse(target);
  if (run_ >= kShortRun || runs() <= kFewRuns) return;
  for (HostTensor& operand : operands_) {
    if (std::ranges::equal(operand.extents(), target)) continue;
    HostTensor stretched(operand.dtype(), {target.begin(), target.end()}, memory);
    copy_strided(stretched, operand, 0, broadcast_strides(operand.extents(), target));
    operand = stretched;
  }
  collapse(target);
}

void BroadcastWalk::collapse(std::span<const std::int64_t> target) {
  const std::size_t count = operands_.size();
  outer_.clear();
  strides_.clear();
  varies_.assign(count, 0);
  run_ = 1;
  for (const HostTensor& operand : operands_)
    if (operand.rank() > target.size()) broadcast_strides(operand.extents(), target);  // says what is wrong
  // Of the axis at hand, in elements of each operand; and of the group of axes so far, as those of its innermost one.
  std::pmr::vector<std::int64_t> next(count, 1, &scratch_), group(count, 0, &scratch_), own(count, 0, &scratch_);
  bool has_run = false, is_empty = false;
  std::int64_t extent = 1;
  const auto close = [&] {
    if (!has_run) {
      run_ = static_cast<std::size_t>(extent);
      // Operands are dense: along the last axis of more than one element they go on or stay.
      for (std::size_t k = 0; k < count; ++k) varies_[k] = group[k] != 0;
      has_run = true;
    } else {
      outer_.push_back(extent);
      strides_.insert(strides_.end(), group.begin(), group.end());
    }
  };
  bool is_open = false;
  for (std::size_t axis = target.size(); axis-- > 0;) {
    const std::int64_t size = target[axis];
    is_empty |= size == 0;
    for (std::size_t k = 0; k < count; ++k) {
      const Extents& extents = operands_[k].extents();
      const std::size_t missing = target.size() - extents.size();
      const std::int64_t of_operand = axis < missing ? 1 : extents[axis - missing];
      if (of_operand != size && of_operand != 1) broadcast_strides(extents, target);  // says what is wrong
      own[k] = of_operand == 1 ? 0 : next[k];
      next[k] *= of_operand;
    }
    if (size == 1) continue;
    const auto goes_on = [&] {
      for (std::size_t k = 0; k < count; ++k)
        if (own[k] != group[k] * extent) return false;
      return true;
    };
    if (is_open && goes_on()) {
      extent *= size;
      continue;
    }
    if (is_open) close();
    is_open = true;
    extent = size;
    std::ranges::copy(own, group.begin());
  }
  if (is_open) close();
  if (is_empty) run_ = 0;
}

std::size_t BroadcastWalk::runs() const {
  std::size_t runs = 1;
  for (const std::int64_t extent : outer_) runs *= static_cast<std::size_t>(extent);
  return runs;
}

bool BroadcastWalk::advance(std::span<std::int64_t> index, std::span<std::size_t> from) const {
  for (std::size_t axis = 0; axis < outer_.size(); ++axis) {
    const bool wraps = ++index[axis] == outer_[axis];
    const std::int64_t steps = wraps ? 1 - outer_[axis] : 1;
    for (std::size_t k = 0; k < from.size(); ++k) from[k] += static_cast<std::size_t>(stride(axis, k) * steps);
    if (!wraps) return true;
    index[axis] = 0;
  }
  return false;
}

void run_rows(const BroadcastWalk& walk, HostTensor& to, const ArithmeticRows& rows) { run_by_dtype(walk, to, rows); }
void run_rows(const BroadcastWalk& walk, HostTensor& to, const PredicateRows& rows) { run_by_dtype(walk, to, rows); }

BroadcastWalk binary_operands(Evaluation& e) {
  const Extents& target = e.result_over({0, 1}).extents();
  const HostTensor &a = e.operand(0), &b = e.operand(1);
  std::vector<HostTensor> operands;
  operands.reserve(2);
  operands.push_back(a);
  operands.push_back(e.opset() < 7 ? aligned(e, b, a.rank()) : b);
  return {target, std::move(operands), e.memory()};
}

BroadcastWalk variadic_operands(Evaluation& e) {
  const Extents& target = e.result_over({0, 1, 2}).extents();
  std::vector<HostTensor> operands;
  operands.reserve(e.operand_count());
  for (std::size_t i = 0; i < e.operand_count(); ++i) operands.push_back(e.operand(static_cast<int>(i)));
  return {target, std::move(operands), e.memory()};
}

template <typename T>
bool is_stored_as(DType dtype) {
  if constexpr (std::is_same_v<T, float>) return dtype == DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return dtype == DType::kFloat64;
  if constexpr (std::is_same_v<T, std::int64_t>) return dtype == DType::kInt64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return dtype == DType::kUint64;
  return std::is_same_v<T, std::uint8_t> && dtype == DType::kBool;
}

template <typename T>
Row<T> row_of(const HostTensor& tensor, bool varies, std::size_t first, std::size_t count, T* buffer) {
  if (is_stored_as<T>(tensor.dtype())) return {tensor.as<T>().data() + first, varies};
  load_row(tensor, first, varies ? count : 1, buffer);
  return {buffer, varies};
}

template bool is_stored_as<float>(DType);
template bool is_stored_as<double>(DType);
template bool is_stored_as<std::int64_t>(DType);
template bool is_stored_as<std::uint64_t>(DType);
template bool is_stored_as<std::uint8_t>(DType);
template Row<float> row_of(const HostTensor&, bool, std::size_t, std::size_t, float*);
template Row<double> row_of(const HostTensor&, bool, std::size_t, std::size_t, double*);
template Row<std::int64_t> row_of(const HostTensor&, bool, std::size_t, std::size_t, std::int64_t*);
template Row<std::uint64_t> row_of(const HostTensor&, bool, std::size_t, std::size_t, std::uint64_t*);
template Row<std::uint8_t> row_of(const HostTensor&, bool, std::size_t, std::size_t, std::uint8_t*);

bool has_zero(const HostTensor& tensor) {
  std::int64_t row[kRow];
  for (std::size_t first = 0; first < tensor.size(); first += kRow) {
    const std::size_t count = std::min(kRow, tensor.size() - first);
    load(tensor, first, count, row);
    if (std::find(row, row + count, 0) != row + count) return true;
  }
  return false;
}

}  // namespace tensorlint::runtime
