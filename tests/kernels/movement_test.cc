// Moved elements against plain loops over indices: every width, strides of all kinds, borders, indices and their
// reports, and whatever was not to be written.

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/common/workspace.h"
#include "kernels/movement/kernel.h"
#include "kernels/movement/movement.h"
#include "kernels/movement/plan.h"
#include "kernels/movement/transpose_kernel.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;
using testing::clean;
using testing::Schedule;
using testing::use;

using Shape = std::vector<std::int64_t>;

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}
Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

/// Elements of any width; element i has bits that tell it from its neighbours.
struct Elements {
  int bytes;
  Buffer<unsigned char> memory;
  Elements(int width, std::int64_t count, Access access, std::size_t shift, std::uint64_t salt)
      : bytes(width),
        memory(static_cast<std::size_t>(count * width), access, "elements", shift * static_cast<std::size_t>(width),
               static_cast<std::size_t>(width)) {
    for (std::int64_t i = 0; i < count; ++i) set(i, (static_cast<std::uint64_t>(i) + salt) * 0x9e3779b97f4a7c15U);
  }
  void set(std::int64_t i, std::uint64_t value) {
    std::memcpy(&memory[static_cast<std::size_t>(i * bytes)], &value, static_cast<std::size_t>(bytes));
  }
  std::uint64_t get(std::int64_t i) {
    std::uint64_t value = 0;
    std::memcpy(&value, &memory[static_cast<std::size_t>(i * bytes)], static_cast<std::size_t>(bytes));
    return value;
  }
};

std::vector<std::uint64_t> contents(Elements& elements, std::int64_t count) {
  std::vector<std::uint64_t> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(elements.get(i));
  return all;
}

std::uint64_t low_bits(std::uint64_t value, int bytes) {
  return bytes == 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

void for_each_index(const Shape& extents, const std::function<void(const Shape&)>& visit) {
  if (count_of(extents) == 0) return;
  Shape index(extents.size(), 0);
  for (;;) {
    visit(index);
    std::size_t axis = extents.size();
    while (axis > 0 && ++index[axis - 1] == extents[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

std::int64_t dot(const Shape& index, const std::int64_t* strides) {
  std::int64_t sum = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis) sum += index[axis] * strides[axis];
  return sum;
}

void set_extents(Movement& m, const Shape& extents) {
  m.rank = static_cast<int>(extents.size());
  std::copy(extents.begin(), extents.end(), m.extents);
}
void set_strides(MovementSide& side, const Shape& strides) { std::copy(strides.begin(), strides.end(), side.strides); }

struct Indices {
  bool wide;
  std::vector<std::int64_t> values;
  Buffer<std::int64_t> wide_memory;
  Buffer<std::int32_t> narrow_memory;
  Indices(bool is_wide, const std::vector<std::int64_t>& given)
      : wide(is_wide),
        values(given),
        wide_memory(is_wide ? given.size() : 1, Access::kReadOnly, "indices"),
        narrow_memory(is_wide ? 1 : given.size(), Access::kReadOnly, "indices") {
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (wide) wide_memory[i] = given[i];
      if (!wide) narrow_memory[i] = static_cast<std::int32_t>(given[i]);
    }
  }
  const void* data() { return wide ? static_cast<const void*>(wide_memory.data()) : narrow_memory.data(); }
};

/// What the request says, by loops: the destination, the count of bad indices and the first of them.
struct Expected {
  std::vector<std::uint64_t> destination;
  std::int64_t bad = 0, first = -1;
};
Expected expected_of(const Movement& m, Elements& source, std::vector<std::uint64_t> destination,
                     const Indices* indices) {
  Expected expected{std::move(destination), 0, -1};
  const Shape extents(m.extents, m.extents + m.rank);
  if (indices != nullptr) {
    for (std::size_t i = 0; i < indices->values.size(); ++i) {
      const std::int64_t extent = m.part_extents[i % static_cast<std::size_t>(m.parts)];
      if (indices->values[i] >= -extent && indices->values[i] < extent) continue;
      if (expected.bad++ == 0) expected.first = static_cast<std::int64_t>(i);
    }
  }
  for_each_index(extents, [&](const Shape& index) {
    std::int64_t from = m.from.offset, to = m.to.offset + dot(index, m.to.strides);
    bool is_there = m.kind != MovementKind::kPad || m.rank > 0 || m.from.elements > 0;
    if (m.kind == MovementKind::kPad) {
      for (std::size_t axis = 0; axis < index.size(); ++axis) {
        std::int64_t c = index[axis] - m.before[axis];
        const std::int64_t n = m.inside[axis];
        if (m.border == Border::kConstant) is_there = is_there && c >= 0 && c < n;
        if (m.border == Border::kEdge) c = std::clamp<std::int64_t>(c, 0, n - 1);
        if (m.border == Border::kWrap) c = (c % n + n) % n;
        if (m.border == Border::kReflect && n > 1) {
          c = (c % (2 * n - 2) + 2 * n - 2) % (2 * n - 2);
          if (c >= n) c = 2 * n - 2 - c;
        }
        from += c * m.from.strides[axis];
      }
    } else {
      from += dot(index, m.from.strides);
    }
    if (indices != nullptr) {
      const std::int64_t tuple = dot(index, m.index_strides);
      for (int part = 0; part < m.parts; ++part) {
        std::int64_t i = indices->values[static_cast<std::size_t>(tuple * m.parts + part)];
        if (i < 0) i += m.part_extents[part];
        is_there = is_there && i >= 0 && i < m.part_extents[part];
        (m.kind == MovementKind::kGather ? from : to) += i * m.part_strides[part];
      }
    }
    if (m.kind == MovementKind::kScatter && !is_there) return;
    const std::uint64_t otherwise = m.kind == MovementKind::kPad ? low_bits(m.fill, m.element_bytes) : 0;
    expected.destination[static_cast<std::size_t>(to)] = is_there ? source.get(from) : otherwise;
  });
  return expected;
}

/// Runs `m` over elements of its own and checks all of the destination, and the report.
void check(Movement m, const std::vector<std::int64_t>* indices = nullptr, std::size_t shift = 0,
           const Schedule& schedule = {}, bool wide = true) {
  Elements source(m.element_bytes, m.from.elements, Access::kReadOnly, shift, 1);
  Elements destination(m.element_bytes, m.to.elements, Access::kReadWrite, shift == 0 ? 0 : shift + 1, 1U << 20);
  std::unique_ptr<Indices> given;
  if (indices != nullptr) given = std::make_unique<Indices>(wide, *indices);
  const Expected expected = expected_of(m, source, contents(destination, m.to.elements), given.get());
  Buffer<std::int64_t> report(2, Access::kWriteFirst, "report");
  m.source = source.memory.data();
  m.destination = destination.memory.data();
  if (given) {
    m.indices = given->data();
    m.wide_indices = wide;
    m.bad_indices = report.data();
  }
  std::size_t bytes = 0;
  ASSERT_EQ(movement_workspace(m, &bytes), Status::kOk);
  Buffer<unsigned> workspace(bytes / sizeof(unsigned) + 1, Access::kWriteFirst, "workspace");
  ASSERT_EQ(zero_tickets(workspace.data(), bytes, nullptr), Status::kOk);
  use(schedule);
  ASSERT_EQ(move(m, workspace.data(), bytes, nullptr), Status::kOk);
  ASSERT_TRUE(clean());
  for (std::int64_t i = 0; i < m.to.elements; ++i)
    ASSERT_EQ(destination.get(i), expected.destination[static_cast<std::size_t>(i)])
        << "element " << i << " of " << m.to.elements << ", kind " << static_cast<int>(m.kind) << ", width "
        << m.element_bytes << ", shift " << shift;
  if (!given) return;
  EXPECT_EQ(report[0], expected.bad);
  EXPECT_EQ(report[1], expected.first);
}

Movement dense_copy(const Shape& extents, const Shape& from_strides, int bytes) {
  Movement m;
  m.element_bytes = bytes;
  set_extents(m, extents);
  set_strides(m.from, from_strides);
  set_strides(m.to, strides_of(extents));
  m.from.elements = m.to.elements = count_of(extents);
  return m;
}

TEST(Movement, ContiguousOfEveryLengthAndWidth) {
  for (const int bytes : {1, 2, 4, 8})
    for (const std::int64_t length : {0, 1, 2, 7, 8, 15, 16, 17, 64, 255, 1023, 1024, 1025, 4096, 4104, 5003})
      for (const std::size_t shift : {0U, 1U, 2U}) check(dense_copy({length}, {1}, bytes), nullptr, shift);
}

TEST(Movement, PermutedAxes) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const auto rank = static_cast<std::size_t>(2 + random() % 6);
    Shape extents;
    for (std::size_t axis = 0; axis < rank; ++axis)
      extents.push_back(static_cast<std::int64_t>(1 + random() % (rank > 4 ? 4 : 16)));
    std::vector<std::size_t> order(rank);
    for (std::size_t axis = 0; axis < rank; ++axis) order[axis] = axis;
    std::shuffle(order.begin(), order.end(), random);
    const Shape own = strides_of(extents);
    Shape turned, strides;
    for (const std::size_t axis : order) {
      turned.push_back(extents[axis]);
      strides.push_back(own[axis]);
    }
    check(dense_copy(turned, strides, 1 << (round % 4)), nullptr, round % 3 == 0 ? 1 : 0,
          {round % 2 == 0 ? testing::Order::kRandom : testing::Order::kInOrder, 5});
  }
  // Large enough for several batches of a thread, with the last axis in place.
  check(dense_copy({3, 50, 5, 32}, {5 * 50 * 32, 32, 50 * 32, 1}, 2));
}

// Edges of tiles, matrices in stacks of several axes, parts of larger tensors.
TEST(Movement, TransposedTiles) {
  const std::int64_t lengths[] = {16, 17, 31, 32, 33, 64, 65, 130};
  int turn = 0;
  for (const std::int64_t rows : lengths)
    for (const std::int64_t columns : lengths) {
      check(dense_copy({columns, rows}, {1, columns}, 1 << (turn % 4)), nullptr, turn % 3 == 0 ? 1 : 0,
            testing::schedules(3)[static_cast<std::size_t>((turn + 1) % 3)]);
      ++turn;
    }
  for (const int bytes : {1, 2, 4, 8}) {
    // [2, 3, 40, 5, 70] with the two long axes in each other's place, and [3, 70, 40] with the stack in between.
    check(dense_copy({2, 5, 3, 70, 40}, {3 * 40 * 350, 70, 40 * 350, 1, 350}, bytes));
    check(dense_copy({70, 3, 40}, {1, 40 * 70, 70}, bytes));
    // Rows of a larger matrix into columns of another one.
    Movement part = dense_copy({66, 35}, {1, 100}, bytes);
    part.from.offset = 13;
    part.from.elements = 100 * 40;
    set_strides(part.to, {50, 1});
    part.to.offset = 7;
    part.to.elements = 50 * 70;
    check(part);
  }
}

TEST(Movement, BlocksTakeTilesInTurn) {
  Elements source(2, 3 * 130 * 70, Access::kReadOnly, 0, 1);
  Movement m = dense_copy({3, 70, 130}, {130 * 70, 1, 70}, 2);
  for (const Schedule& schedule : testing::schedules(12)) {
    Elements destination(2, m.to.elements, Access::kWriteFirst, 0, 2);
    m.source = source.memory.data();
    m.destination = destination.memory.data();
    MovementParameters p;
    MovementPlan plan;
    TransposeParameters t;
    ASSERT_EQ(plan_movement(m, &p, &plan), Status::kOk);
    ASSERT_TRUE(plan_transpose(p, plan.word, &t));
    EXPECT_EQ(t.tiles, 3 * 3 * 2);
    use(schedule);
    ASSERT_EQ(launch(&transpose_tiles<std::uint16_t>, {4, kThreads, 1, 0}, nullptr, t), Status::kOk);
    ASSERT_TRUE(clean());
    const Expected expected =
        expected_of(m, source, std::vector<std::uint64_t>(static_cast<std::size_t>(m.to.elements)), nullptr);
    ASSERT_EQ(contents(destination, m.to.elements), expected.destination);
  }
}

TEST(Movement, CopiesThatGoByTiles) {
  const auto goes_by_tiles = [](const Movement& m, TransposeParameters* t) {
    MovementParameters p;
    MovementPlan plan;
    EXPECT_EQ(plan_movement(m, &p, &plan), Status::kOk);
    return plan_transpose(p, plan.word, t);
  };
  TransposeParameters t;
  ASSERT_TRUE(goes_by_tiles(dense_copy({6, 100, 4096}, {4096 * 100, 1, 100}, 2), &t));
  EXPECT_EQ(t.rows, 4096);
  EXPECT_EQ(t.columns, 100);
  EXPECT_EQ(t.tiles, 6 * 64 * 2);
  EXPECT_EQ(t.rank, 1);
  EXPECT_FALSE(goes_by_tiles(dense_copy({100, 4096}, {4096, 1}, 2), &t)) << "contiguous";
  EXPECT_FALSE(goes_by_tiles(dense_copy({3, 4096}, {1, 3}, 2), &t)) << "three columns";
  EXPECT_FALSE(goes_by_tiles(dense_copy({64, 64, 16}, {16, 1024, 1}, 1), &t)) << "16 bytes stay together";
  Movement second = dense_copy({64, 64}, {2, 128}, 4);
  second.from.elements = 64 * 128;
  EXPECT_FALSE(goes_by_tiles(second, &t)) << "every second element";
}

TEST(Movement, SlicesStretchesAndParts) {
  for (const int bytes : {1, 2, 4, 8}) {
    // Every third backwards, of rows two apart.
    Movement m = dense_copy({4, 5}, {2 * 16, -3}, bytes);
    m.from.offset = 14;
    m.from.elements = 8 * 16;
    check(m);
    // Stretched: along the first, the last and every axis.
    for (const Shape& strides : {Shape{0, 1}, Shape{1, 0}, Shape{0, 0}}) {
      m = dense_copy({9, 32}, strides, bytes);
      m.from.elements = 32;
      check(m);
    }
    // A part of the result, aligned and not.
    for (const std::int64_t first : {0, 3, 16}) {
      m = dense_copy({6, 32}, {32, 1}, bytes);
      set_strides(m.to, {80, 1});
      m.to.offset = first;
      m.to.elements = 6 * 80;
      check(m);
      std::swap(m.from, m.to);
      check(m);
    }
    // Backwards in the destination.
    m = dense_copy({7, 16}, {16, 1}, bytes);
    set_strides(m.to, {-16, 1});
    m.to.offset = 6 * 16;
    check(m);
  }
}

TEST(Movement, Borders) {
  struct Case {
    Shape inside, before, after;
  };
  const Case cases[] = {{{5}, {2}, {3}},
                        {{4, 32}, {1, 0}, {2, 0}},
                        {{4, 32}, {0, 16}, {0, 32}},
                        {{3, 4, 5}, {1, 2, 3}, {2, 3, 4}},
                        {{3, 4, 5}, {-1, 2, 0}, {2, -2, 0}},
                        {{6, 1, 8}, {0, 0, 0}, {0, 0, 0}},
                        {{2, 3}, {0, 0}, {0, 1}},
                        {{1}, {0}, {0}},
                        {{}, {}, {}}};
  for (const Border border : {Border::kConstant, Border::kEdge, Border::kReflect, Border::kWrap}) {
    for (const Case& c : cases) {
      for (const int bytes : {1, 2, 4, 8}) {
        Shape extents;
        bool is_possible = true;
        for (std::size_t axis = 0; axis < c.inside.size(); ++axis) {
          extents.push_back(c.inside[axis] + c.before[axis] + c.after[axis]);
          const std::int64_t most = border == Border::kReflect ? c.inside[axis] - 1 : c.inside[axis];
          if (border == Border::kReflect || border == Border::kWrap)
            is_possible = is_possible && c.before[axis] <= most && c.after[axis] <= most;
        }
        if (!is_possible) continue;
        Movement m = dense_copy(extents, strides_of(c.inside), bytes);
        m.kind = MovementKind::kPad;
        m.border = border;
        m.fill = 0xc1c2c3c4c5c6c7c8U;
        m.from.elements = count_of(c.inside);
        std::copy(c.inside.begin(), c.inside.end(), m.inside);
        std::copy(c.before.begin(), c.before.end(), m.before);
        check(m);
      }
    }
  }
  // Of nothing, and with so much before that nothing is seen.
  for (const std::int64_t before : {3, 20, -20}) {
    Movement m = dense_copy({7}, {1}, 4);
    m.kind = MovementKind::kPad;
    m.from.elements = m.inside[0] = before == 3 ? 0 : 5;
    m.before[0] = before;
    check(m);
  }
}

/// The same element everywhere, of a source without elements.
Movement fill_of(const Shape& extents, int bytes) {
  Movement m = dense_copy(extents, Shape(extents.size(), 0), bytes);
  m.kind = MovementKind::kPad;
  m.fill = 0xc1c2c3c4c5c6c7c8U;
  m.from.elements = 0;
  return m;
}

TEST(Movement, FillsOfAllShapes) {
  for (const Shape& extents : {Shape{}, Shape{1}, Shape{7}, Shape{64}, Shape{1, 1, 1}, Shape{3, 1, 4, 16}, Shape{5, 3}})
    for (const int bytes : {1, 2, 4, 8})
      for (const std::size_t shift : {0, 1}) check(fill_of(extents, bytes), nullptr, shift);
  // A diagonal, and the inner columns of a matrix.
  Movement diagonal = fill_of({6}, 2);
  diagonal.to.elements = 36;
  diagonal.to.strides[0] = 7;
  check(diagonal);
  Movement columns = fill_of({5, 16}, 1);
  columns.to.elements = 5 * 48;
  columns.to.offset = 16;
  columns.to.strides[0] = 48;
  check(columns);
}

TEST(Movement, FillsMoveByWords) {
  MovementParameters p;
  MovementPlan plan;
  for (const int bytes : {1, 2, 4, 8}) {
    Movement m = fill_of({6, 1, 5, 16}, bytes);
    ASSERT_EQ(plan_movement(m, &p, &plan), Status::kOk);
    EXPECT_EQ(plan.word, 16);
    EXPECT_EQ(p.rank, 1);
    EXPECT_EQ(p.elements, 6 * 5 * bytes);
  }
}

/// Gather along `axis` of [outer, extent, inner] data.
Movement gather_of(std::int64_t outer, std::int64_t extent, std::int64_t inner, std::int64_t picks, int bytes) {
  Movement m = dense_copy({outer, picks, inner}, {extent * inner, 0, 1}, bytes);
  m.kind = MovementKind::kGather;
  m.from.elements = outer * extent * inner;
  m.tuples = picks;
  m.index_strides[1] = 1;
  m.part_extents[0] = extent;
  m.part_strides[0] = inner;
  return m;
}

std::vector<std::int64_t> random_indices(std::size_t count, std::int64_t extent, unsigned seed,
                                         std::int64_t beyond = 0) {
  std::mt19937 random(seed);
  std::vector<std::int64_t> indices;
  for (std::size_t i = 0; i < count; ++i)
    indices.push_back(static_cast<std::int64_t>(random() % static_cast<unsigned>(2 * (extent + beyond))) - extent -
                      beyond);
  return indices;
}

TEST(Movement, GatheredSlices) {
  for (const int bytes : {1, 2, 4, 8}) {
    for (const bool wide : {true, false}) {
      for (const std::int64_t inner : {1, 3, 16, 32}) {
        const auto indices = random_indices(11, 9, 5);
        check(gather_of(3, 9, inner, 11, bytes), &indices, inner == 3 ? 1 : 0, {}, wide);
        const auto bad = random_indices(11, 9, 6, 4);
        check(gather_of(3, 9, inner, 11, bytes), &bad, 0, {}, wide);
      }
    }
  }
  // No entries, or no picks.
  const std::vector<std::int64_t> zeros(4, 0);
  check(gather_of(2, 0, 3, 4, 4), &zeros);
  const std::vector<std::int64_t> none;
  Movement m = gather_of(2, 5, 3, 0, 4);
  m.tuples = 0;
  check(m, &none);
}

TEST(Movement, GatheredElementsAndTuples) {
  // GatherElements of [4, 6, 5] along axis 1, indices [3, 7, 5].
  Movement m = dense_copy({3, 7, 5}, {30, 0, 1}, 4);
  m.kind = MovementKind::kGather;
  m.from.elements = 120;
  m.tuples = 105;
  std::copy_n(strides_of({3, 7, 5}).begin(), 3, m.index_strides);
  m.part_extents[0] = 6;
  m.part_strides[0] = 5;
  auto indices = random_indices(105, 6, 7, 1);
  check(m, &indices);
  // GatherND of [2, 4, 6, 16] with one axis of batch and pairs: [2, 9, 2].
  m = dense_copy({2, 9, 16}, {4 * 6 * 16, 0, 1}, 2);
  m.kind = MovementKind::kGather;
  m.from.elements = 2 * 4 * 6 * 16;
  m.tuples = 18;
  m.index_strides[0] = 9;
  m.index_strides[1] = 1;
  m.parts = 2;
  m.part_extents[0] = 4;
  m.part_extents[1] = 6;
  m.part_strides[0] = 6 * 16;
  m.part_strides[1] = 16;
  indices = random_indices(36, 4, 8, 1);
  check(m, &indices);
}

TEST(Movement, ReportsInEverySchedule) {
  // Several blocks look at indices: the first bad one is the first by position.
  for (const Schedule& schedule : testing::schedules(testing::schedule_count(200))) {
    auto indices = random_indices(6000, 50, 9);
    indices[5801] = 50;
    indices[4711] = -51;
    check(gather_of(1, 50, 1, 6000, 4), &indices, 0, schedule);
  }
}

/// ScatterND of `tuples` slices into [extent, inner].
Movement scatter_of(std::int64_t extent, std::int64_t inner, std::int64_t tuples, int bytes) {
  Movement m = dense_copy({tuples, inner}, {inner, 1}, bytes);
  m.kind = MovementKind::kScatter;
  set_strides(m.to, {0, 1});
  m.to.elements = extent * inner;
  m.tuples = tuples;
  m.index_strides[0] = 1;
  m.part_extents[0] = extent;
  m.part_strides[0] = inner;
  return m;
}

TEST(Movement, ScatteredUpdatesOfWhichTheLastStays) {
  for (const int bytes : {1, 2, 4, 8}) {
    for (const std::int64_t inner : {1, 3, 32}) {
      for (const Schedule& schedule : testing::schedules(testing::schedule_count(6))) {
        const auto indices = random_indices(40, 9, 10);  // many times the same
        check(scatter_of(9, inner, 40, bytes), &indices, inner == 3 ? 1 : 0, schedule);
        const auto bad = random_indices(40, 30, 11, 3);
        check(scatter_of(30, inner, 40, bytes), &bad, 0, schedule, false);
      }
    }
  }
  // ScatterElements of [4, 6, 5] along axis 1, updates [3, 7, 5].
  Movement m = dense_copy({3, 7, 5}, {35, 5, 1}, 4);
  m.kind = MovementKind::kScatter;
  set_strides(m.to, {30, 0, 1});
  m.to.elements = 120;
  m.tuples = 105;
  std::copy_n(strides_of({3, 7, 5}).begin(), 3, m.index_strides);
  m.part_extents[0] = 6;
  m.part_strides[0] = 5;
  const auto indices = random_indices(105, 6, 12, 1);
  check(m, &indices);
}

TEST(Movement, IndicesAboveTwoToThe31) {
  const std::int64_t n = std::int64_t{1} << 20;
  std::uint64_t nothing[2] = {};
  Movement m = dense_copy({n, 3, n}, {1, n * n, n}, 2);  // permuted
  m.source = m.destination = nothing;
  MovementParameters p;
  MovementPlan plan;
  ASSERT_EQ(plan_movement(m, &p, &plan), Status::kOk);
  for (const std::int64_t i : {std::int64_t{0}, n, 3 * n * n - 1, (std::int64_t{1} << 33) + 12345}) {
    const Route route = route_of<MovementKind::kCopy>(p, i);
    EXPECT_EQ(route.to, i);
    EXPECT_EQ(route.from, i / (3 * n) + i / n % 3 * n * n + i % n * n);
  }
  m = dense_copy({n, n}, {n, 1}, 1);
  m.source = m.destination = nothing;
  ASSERT_EQ(plan_movement(m, &p, &plan), Status::kOk);
  EXPECT_EQ(plan.word, 16);
  EXPECT_EQ(p.elements, n * n / 16);
  EXPECT_EQ(p.rank, 1);
}

TEST(Movement, RefusesWhatItCannotDo) {
  Elements source(4, 64, Access::kReadOnly, 0, 1), destination(4, 64, Access::kReadWrite, 0, 2);
  Movement good = dense_copy({4, 16}, {16, 1}, 4);
  good.source = source.memory.data();
  good.destination = destination.memory.data();
  const auto with = [&](const std::function<void(Movement&)>& change) {
    Movement m = good;
    change(m);
    use({});
    const Status status = move(m, nullptr, 0, nullptr);
    EXPECT_TRUE(clean());
    return static_cast<Status::Code>(status);
  };
  EXPECT_EQ(with([](Movement&) {}), Status::kOk);
  EXPECT_EQ(with([](Movement& m) { m.element_bytes = 3; }), Status::kUnsupportedDtype);
  EXPECT_EQ(with([](Movement& m) { m.extents[0] = -1; }), Status::kBadShape);
  EXPECT_EQ(with([](Movement& m) { m.rank = 9; }), Status::kBadShape);
  EXPECT_EQ(with([](Movement& m) { m.from.offset = 1; }), Status::kBadShape);
  EXPECT_EQ(with([](Movement& m) { m.from.strides[0] = -16; }), Status::kBadShape);
  EXPECT_EQ(with([](Movement& m) { m.to.strides[0] = 17; }), Status::kBadShape);
  EXPECT_EQ(with([](Movement& m) { m.to.strides[0] = INT64_MAX / 2; }), Status::kBadShape);
  EXPECT_EQ(with([](Movement& m) { m.to.strides[0] = 0; }), Status::kBadParameter);
  EXPECT_EQ(with([](Movement& m) { m.to.strides[0] = 15; }), Status::kBadParameter);
  EXPECT_EQ(with([](Movement& m) { m.source = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(with([](Movement& m) { m.destination = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(with([&](Movement& m) { m.source = &source.memory[2]; }), Status::kMisaligned);
  EXPECT_EQ(with([&](Movement& m) { m.destination = source.memory.data(); }), Status::kOverlap);
  const auto padded = [&](Movement& m) {
    m.kind = MovementKind::kPad;
    m.inside[0] = 2;
    m.inside[1] = 16;
    m.before[0] = 1;
  };
  EXPECT_EQ(with(padded), Status::kOk);
  EXPECT_EQ(with([&](Movement& m) {
              padded(m);
              m.before[0] = 2;
              m.border = Border::kReflect;
            }),
            Status::kBadParameter);
  Buffer<std::int64_t> indices(4, Access::kReadOnly, "indices");
  for (std::size_t i = 0; i < 4; ++i) indices[i] = static_cast<std::int64_t>(3 - i);
  const auto gathered = [&](Movement& m) {
    m.kind = MovementKind::kGather;
    m.from.strides[0] = 0;
    m.indices = indices.data();
    m.tuples = 4;
    m.index_strides[0] = 1;
    m.part_extents[0] = 4;
    m.part_strides[0] = 16;
  };
  EXPECT_EQ(with(gathered), Status::kOk);
  EXPECT_EQ(with([&](Movement& m) { gathered(m), m.tuples = 3; }), Status::kBadShape);
  EXPECT_EQ(with([&](Movement& m) { gathered(m), m.part_extents[0] = 5; }), Status::kBadShape);
  EXPECT_EQ(with([&](Movement& m) { gathered(m), m.parts = 9; }), Status::kBadShape);
  EXPECT_EQ(with([&](Movement& m) { gathered(m), m.indices = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(with([&](Movement& m) {
              gathered(m), m.kind = MovementKind::kScatter, m.to.strides[0] = 0, m.from.strides[0] = 16;
            }),
            Status::kNullPointer)
      << "without a workspace";
  Movement many = scatter_of(4, 1, kMaxScatterTuples + 1, 4);
  std::size_t bytes = 0;
  EXPECT_EQ(movement_workspace(many, &bytes), Status::kBadParameter);
}

}  // namespace
}  // namespace tensorlint::kernels
