#include "kernels/movement/plan.h"

#include <algorithm>

#include "kernels/common/combine.h"
#include "kernels/common/request.h"

namespace tensorlint::kernels {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 62;
constexpr std::int64_t kMaxIndexBlocks = 512;

bool has_indices(MovementKind kind) { return kind == MovementKind::kGather || kind == MovementKind::kScatter; }

/// A border alone: no element of the source is seen, so its strides mean nothing.
bool is_fill(const Movement& m) {
  if (m.kind != MovementKind::kPad || m.border != Border::kConstant) return false;
  if (m.rank == 0) return m.from.elements == 0;
  return std::any_of(m.inside, m.inside + m.rank, [](std::int64_t inside) { return inside == 0; });
}

/// The offsets that are reached lie in the memory.
class Reach {
 public:
  explicit Reach(std::int64_t offset) : least_(offset), most_(offset) {}
  void add(std::int64_t extent, std::int64_t stride) {
    std::int64_t far = 0;
    if (extent <= 1) return;
    is_wrong_ = is_wrong_ || __builtin_mul_overflow(extent - 1, stride, &far) ||
                __builtin_add_overflow(far < 0 ? least_ : most_, far, far < 0 ? &least_ : &most_);
  }
  bool is_in(std::int64_t elements) const { return !is_wrong_ && least_ >= 0 && most_ < elements; }

 private:
  std::int64_t least_, most_;
  bool is_wrong_ = false;
};

/// No two indices have one element: by size each stride is beyond what all smaller ones reach together.
bool reaches_once(const Movement& m) {
  struct Axis {
    std::int64_t stride, extent;
  };
  Axis axes[kMaxMovementRank];
  int count = 0;
  for (int axis = 0; axis < m.rank; ++axis)
    if (m.extents[axis] > 1)
      axes[count++] = {m.to.strides[axis] < 0 ? -m.to.strides[axis] : m.to.strides[axis], m.extents[axis]};
  std::sort(axes, axes + count, [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  std::int64_t reach = 0;
  for (int i = 0; i < count; ++i) {
    if (axes[i].stride <= reach) return false;
    reach += (axes[i].extent - 1) * axes[i].stride;  // inside the memory
  }
  return true;
}

Status check_border(const Movement& m) {
  for (int axis = 0; axis < m.rank; ++axis) {
    const std::int64_t inside = m.inside[axis], before = m.before[axis];
    if (inside < 0 || inside > kMaxElements || before < -kMaxElements || before > kMaxElements)
      return Status::kBadShape;
    const std::int64_t after = m.extents[axis] - inside - before;
    if (m.border == Border::kConstant || m.extents[axis] == 0) continue;
    if (inside == 0) return Status::kBadParameter;
    const std::int64_t most = m.border == Border::kEdge   ? kMaxElements
                              : m.border == Border::kWrap ? inside
                                                          : inside - 1;
    if (before > most || after > most) return Status::kBadParameter;
  }
  return Status::kOk;
}

Status check(const Movement& m, std::int64_t* elements) {
  if (m.element_bytes != 1 && m.element_bytes != 2 && m.element_bytes != 4 && m.element_bytes != 8)
    return Status::kUnsupportedDtype;
  if (m.rank < 0 || m.rank > kMaxMovementRank) return Status::kBadShape;
  *elements = 1;
  bool is_empty = false;
  for (int axis = 0; axis < m.rank; ++axis) {
    if (m.extents[axis] < 0) return Status::kBadShape;
    is_empty = is_empty || m.extents[axis] == 0;
    if (__builtin_mul_overflow(*elements, std::max<std::int64_t>(m.extents[axis], 1), elements) ||
        *elements > kMaxElements)
      return Status::kBadShape;
  }
  if (has_indices(m.kind)) {
    if (m.parts < 1 || m.parts > kMaxMovementRank || m.tuples < 0 || m.tuples > kMaxElements / m.parts)
      return Status::kBadShape;
    for (int part = 0; part < m.parts; ++part)
      if (m.part_extents[part] < 0) return Status::kBadShape;
  }
  if (is_empty) {
    *elements = 0;
    return Status::kOk;
  }
  if (m.kind == MovementKind::kPad)
    if (const Status status = check_border(m); status != Status::kOk) return status;
  Reach from(m.from.offset), to(m.to.offset), tuples(0);
  bool reads = !is_fill(m);
  for (int axis = 0; axis < m.rank; ++axis) {
    const bool padded = m.kind == MovementKind::kPad;
    from.add(padded ? m.inside[axis] : m.extents[axis], m.from.strides[axis]);
    to.add(m.extents[axis], m.to.strides[axis]);
    tuples.add(m.extents[axis], m.index_strides[axis]);
  }
  if (has_indices(m.kind)) {
    if (!tuples.is_in(m.tuples)) return Status::kBadShape;
    for (int part = 0; part < m.parts; ++part) {
      reads = reads && (m.kind == MovementKind::kScatter || m.part_extents[part] > 0);
      (m.kind == MovementKind::kGather ? from : to).add(m.part_extents[part], m.part_strides[part]);
    }
    if (m.kind == MovementKind::kScatter && (m.tuples > kMaxScatterTuples || *elements % m.tuples != 0))
      return Status::kBadParameter;
  }
  if (reads && !from.is_in(m.from.elements)) return Status::kBadShape;
  if (m.kind != MovementKind::kScatter && !to.is_in(m.to.elements)) return Status::kBadShape;
  if (m.kind == MovementKind::kScatter) {
    const bool has_targets =
        std::all_of(m.part_extents, m.part_extents + m.parts, [](std::int64_t e) { return e > 0; });
    if (has_targets && !to.is_in(m.to.elements)) return Status::kBadShape;
  } else if (!reaches_once(m)) {
    return Status::kBadParameter;
  }
  return Status::kOk;
}

/// Axis `axis` of the request goes on where the last merged one ends: on both sides, and for the indices. A border
/// moves with it where the inner axis has none.
bool goes_on(const Movement& m, const MovementParameters& p, int axis) {
  const int last = p.rank - 1;
  const std::int64_t extent = m.extents[axis];
  if (p.to_strides[last] != m.to.strides[axis] * extent || p.from_strides[last] != m.from.strides[axis] * extent)
    return false;
  if (has_indices(m.kind)) return p.index_strides[last] == m.index_strides[axis] * extent;
  if (m.kind != MovementKind::kPad || is_fill(m)) return true;
  const bool is_inner_whole = m.before[axis] == 0 && m.inside[axis] == extent;
  const bool is_outer_whole = p.before[last] == 0 && p.inside[last] == p.extents[last].value;
  return is_inner_whole && (is_outer_whole || m.border == Border::kConstant);
}

void merge_axes(const Movement& m, MovementParameters* p) {
  p->rank = 0;
  for (int axis = 0; axis < m.rank; ++axis) {
    const std::int64_t extent = m.extents[axis];
    const bool is_padded =
        m.kind == MovementKind::kPad && !is_fill(m) && (m.before[axis] != 0 || m.inside[axis] != extent);
    if (extent == 1 && !is_padded) continue;
    if (p->rank > 0 && goes_on(m, *p, axis)) {
      const int last = p->rank - 1;
      p->extents[last].value *= extent;
      p->inside[last] *= extent;
      p->before[last] *= extent;
    } else {
      p->extents[p->rank].value = extent;
      p->inside[p->rank] = m.inside[axis];
      // Further away there is nothing of the source, either.
      p->before[p->rank] = std::clamp(m.before[axis], -m.inside[axis], extent);
      ++p->rank;
    }
    p->from_strides[p->rank - 1] = m.from.strides[axis];
    p->to_strides[p->rank - 1] = m.to.strides[axis];
    p->index_strides[p->rank - 1] = m.index_strides[axis];
  }
  if (p->rank == 0) p->inside[p->rank++] = is_fill(m) ? 0 : 1;
}

/// Neighbours that move as one: the widest word that all fits. The elements, offsets and strides are then words.
int widen(const Movement& m, MovementParameters* p) {
  const int last = p->rank - 1;
  const bool is_contiguous = p->from_strides[last] == 1 && p->to_strides[last] == 1 && p->extents[last].value > 1 &&
                             (!has_indices(m.kind) || p->index_strides[last] == 0);
  const bool is_whole = m.kind != MovementKind::kPad || m.border == Border::kConstant ||
                        (p->before[last] == 0 && p->inside[last] == p->extents[last].value);
  for (int bytes = 16; bytes > m.element_bytes && is_contiguous && is_whole; bytes /= 2) {
    const std::int64_t count = bytes / m.element_bytes;
    bool fits = p->extents[last].value % count == 0 && p->from_offset % count == 0 && p->to_offset % count == 0 &&
                p->inside[last] % count == 0 && p->before[last] % count == 0 &&
                is_aligned(p->source, static_cast<std::size_t>(bytes)) &&
                is_aligned(p->destination, static_cast<std::size_t>(bytes));
    for (int axis = 0; axis < last; ++axis)
      fits = fits && p->from_strides[axis] % count == 0 && p->to_strides[axis] % count == 0;
    for (int part = 0; part < p->parts && has_indices(m.kind); ++part)
      fits = fits && p->part_strides[part] % count == 0;
    if (!fits) continue;
    p->extents[last].value /= count;
    p->inside[last] /= count;
    p->before[last] /= count;
    p->from_offset /= count;
    p->to_offset /= count;
    for (int axis = 0; axis < last; ++axis) {
      p->from_strides[axis] /= count;
      p->to_strides[axis] /= count;
    }
    for (int part = 0; part < p->parts; ++part) p->part_strides[part] /= count;
    p->elements /= count;
    return bytes;
  }
  return m.element_bytes;
}

}  // namespace

Status plan_movement(const Movement& given, MovementParameters* p, MovementPlan* plan) {
  *p = {};
  *plan = {};
  if (const Status status = check(given, &p->elements); status != Status::kOk) return status;
  if (p->elements == 0) return Status::kOk;
  Movement m = given;
  if (is_fill(m)) {  // as if the source lay as the destination does: axes merge, and words are wide
    m.source = nullptr;
    m.from = m.to;
    m.from.elements = 0;
    std::fill_n(m.inside, kMaxMovementRank, 0);
    std::fill_n(m.before, kMaxMovementRank, 0);
  }
  p->source = static_cast<const unsigned char*>(m.source);
  p->destination = static_cast<unsigned char*>(m.destination);
  p->from_offset = m.from.offset;
  p->to_offset = m.to.offset;
  p->border = m.border;
  p->indices = m.indices;
  p->wide_indices = m.wide_indices;
  p->tuples = m.tuples;
  p->parts = m.parts;
  std::copy(m.part_extents, m.part_extents + kMaxMovementRank, p->part_extents);
  std::copy(m.part_strides, m.part_strides + kMaxMovementRank, p->part_strides);
  unsigned char bits[16];
  for (int i = 0; i < 16; ++i) bits[i] = static_cast<unsigned char>(m.fill >> (8 * (i % m.element_bytes)));
  p->fill = bit_cast<MovementCell>(bits);
  merge_axes(m, p);
  plan->word = widen(m, p);
  for (int axis = 0; axis < p->rank; ++axis) p->extents[axis] = Divisor::of(p->extents[axis].value);
  if (has_indices(m.kind)) p->tuple_elements = p->elements / std::max<std::int64_t>(m.tuples, 1);
  plan->blocks = static_cast<unsigned>(
      std::clamp<std::int64_t>(ceil_div(p->elements, std::int64_t{kThreads} * 4), 1, kMaxMovementBlocks));
  plan->index_blocks = static_cast<unsigned>(
      std::clamp<std::int64_t>(ceil_div(m.tuples * m.parts, std::int64_t{kThreads} * 8), 1, kMaxIndexBlocks));
  return Status::kOk;
}

bool plan_transpose(const MovementParameters& p, int word, TransposeParameters* t) {
  constexpr std::int64_t kFewest = 16;  // a tile of fewer moves less than whole sectors, or has few threads at work
  int row = -1, column = -1;
  for (int axis = 0; axis < p.rank; ++axis) {
    if (p.extents[axis].value < kFewest) continue;
    if (p.to_strides[axis] == 1) row = axis;
    if (p.from_strides[axis] == 1) column = axis;
  }
  if (row < 0 || column < 0 || row == column || word > 8) return false;
  *t = {};
  t->source = p.source;
  t->destination = p.destination;
  t->rows = p.extents[row].value;
  t->columns = p.extents[column].value;
  t->from_stride = p.from_strides[row];
  t->to_stride = p.to_strides[column];
  t->from_offset = p.from_offset;
  t->to_offset = p.to_offset;
  const auto edge = static_cast<std::int64_t>(transpose_edge(static_cast<std::size_t>(word)));
  t->by_rows = Divisor::of(ceil_div(t->rows, edge));
  t->by_columns = Divisor::of(ceil_div(t->columns, edge));
  t->tiles = t->by_rows.value * t->by_columns.value;
  for (int axis = 0; axis < p.rank; ++axis) {
    if (axis == row || axis == column) continue;
    t->extents[t->rank] = p.extents[axis];
    t->from_strides[t->rank] = p.from_strides[axis];
    t->to_strides[t->rank] = p.to_strides[axis];
    t->tiles *= p.extents[axis].value;
    ++t->rank;
  }
  return true;
}

}  // namespace tensorlint::kernels
