// The emulator against small kernels that are wrong on purpose, each in one way.

#include "kernels/emulator/simt.h"

#include "kernels/common/combine.h"
#include "kernels/common/launch.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;

template <typename Body>
emulator::Report run(unsigned blocks, unsigned threads, const Body& body,
                     testing::Schedule schedule = {emulator::Order::kRandom, 5}, unsigned cluster = 1) {
  testing::use(schedule);
  emulator::launch(nullptr, blocks, threads, cluster, 0, body);
  return emulator::report();
}

TEST(Emulator, ShuffleOrdersNoMemory) {
  const auto body = [](bool barrier) {
    return [barrier] {
      TL_SHARED(int, cell, 32);
      cell[thread_in_block()] = 1;
      (void)shuffle_xor(kFullMask, 1, 1);
      if (barrier) warp_barrier(kFullMask);
      const int other = cell[thread_in_block() ^ 1U];
      (void)other;
    };
  };
  EXPECT_TRUE(run(1, 32, body(true)).clean());
  EXPECT_GT(run(1, 32, body(false)).races, 0);
}

TEST(Emulator, SharedVectorsAreOneAccessOfAllTheirElements) {
  // Who writes the elements one by one meets who reads them as a vector.
  const auto body = [](bool barrier, unsigned from) {
    return [barrier, from] {
      TL_SHARED(float, tile, 8);
      if (thread_in_block() < 8) tile[thread_in_block()] = static_cast<float>(thread_in_block());
      if (barrier) block_barrier();
      const auto four = load_shared_vector<Vector<float>>(tile, from);
      if (four.element(3) != static_cast<float>(from + 3)) std::abort();
      block_barrier();
      if (thread_in_block() == 0) store_shared_vector(tile, from, four);
    };
  };
  EXPECT_TRUE(run(1, 64, body(true, 4)).clean());
  const auto unordered = [] {
    TL_SHARED(float, tile, 4);
    if (thread_in_block() == 3) tile[3] = 1.0F;
    if (thread_in_block() == 63) (void)load_shared_vector<Vector<float>>(tile, 0);
  };
  EXPECT_GT(run(1, 64, unordered).races + emulator::report().uninitialized, 0);
  const auto outside = [](unsigned from) {
    return [from] {
      TL_SHARED(float, tile, 6);
      if (thread_in_block() == 0) store_shared_vector(tile, from, Vector<float>{});
    };
  };
  EXPECT_EQ(run(1, 32, outside(0)).bounds, 0);
  EXPECT_EQ(run(1, 32, outside(4)).bounds, 1);  // two elements too many
  EXPECT_EQ(run(1, 32, outside(2)).bounds, 1);  // misaligned
}

TEST(Emulator, LimitsOfTheDevice) {
  static const int kernel = 0;  // any address is a name
  const auto body = [] {
    TL_SHARED(int, cell, 4);
    cell[thread_in_block() % 4] = 1;
    TL_DYNAMIC_SHARED(unsigned, room);
    (void)room;
  };
  const auto attempt = [&](unsigned blocks, unsigned threads, unsigned cluster, std::size_t dynamic) {
    testing::use({});
    return emulator::launch(&kernel, blocks, threads, cluster, dynamic, body);
  };
  emulator::use_device({});
  EXPECT_EQ(attempt(1, 4, 1, 48 * 1024 - 16), 0);
  EXPECT_TRUE(emulator::report().clean()) << emulator::report().first;
  EXPECT_EQ(attempt(1, 4, 1, 48 * 1024 - 15), emulator::kInvalidValue);  // with the static part it is too much
  EXPECT_EQ(emulator::report().limits, 1);
  EXPECT_EQ(attempt(1, 4, 1, 48 * 1024 + 1), emulator::kInvalidValue);
  EXPECT_EQ(attempt(1, 1025, 1, 0), emulator::kInvalidConfiguration);
  EXPECT_EQ(attempt(3, 4, 2, 0), emulator::kInvalidConfiguration);
  EXPECT_EQ(attempt(16, 4, 16, 0), emulator::kInvalidClusterSize);
  emulator::allow_dynamic_shared_memory(&kernel);
  EXPECT_EQ(attempt(1, 4, 1, 227 * 1024 - 16), 0);
  EXPECT_EQ(attempt(1, 4, 1, 227 * 1024), emulator::kInvalidValue);
  emulator::use_device(emulator::device_of_sm_80());  // another device: to be asked again
  EXPECT_EQ(attempt(1, 4, 1, 64 * 1024), emulator::kInvalidValue);
  EXPECT_EQ(attempt(2, 4, 2, 0), emulator::kInvalidClusterSize);
  emulator::use_device({});
}

TEST(Emulator, BarrierOrdersSharedMemory) {
  const auto body = [](bool barrier) {
    return [barrier] {
      TL_SHARED(int, cell, 64);
      cell[thread_in_block()] = 1;
      if (barrier) block_barrier();
      const int other = cell[(thread_in_block() + 33) % 64];
      (void)other;
    };
  };
  EXPECT_TRUE(run(2, 64, body(true)).clean());
  const emulator::Report report = run(2, 64, body(false));
  EXPECT_GT(report.races + report.uninitialized, 0);
}

TEST(Emulator, WarpRendezvousOrdersItsLanesOnly) {
  const auto body = [](unsigned distance) {
    return [distance] {
      TL_SHARED(int, cell, 64);
      cell[thread_in_block()] = 1;
      warp_barrier(kFullMask);
      const int other = cell[(thread_in_block() + distance) % 64];
      (void)other;
    };
  };
  EXPECT_GT(run(1, 64, body(32)).races + run(1, 64, body(32)).uninitialized, 0);
  const auto inside = [] {
    TL_SHARED(int, cell, 64);
    cell[thread_in_block()] = 1;
    warp_barrier(kFullMask);
    const int other = cell[thread_in_block() ^ 5U];
    (void)other;
  };
  EXPECT_TRUE(run(1, 64, inside).clean());
}

TEST(Emulator, HalfMaskDoesNotOrderTheOtherHalf) {
  const auto body = [] {
    TL_SHARED(int, cell, 32);
    cell[thread_in_block()] = 1;
    warp_barrier(thread_in_block() < 16 ? 0xffffU : 0xffff0000U);
    const int other = cell[thread_in_block() ^ 16U];
    (void)other;
  };
  const emulator::Report report = run(1, 32, body);
  EXPECT_GT(report.races + report.uninitialized, 0);
}

TEST(Emulator, LaneOutsideItsMask) {
  const auto body = [] { (void)shuffle_xor(0xffffU, 1, 16); };
  EXPECT_GT(run(1, 32, body).divergences, 0);
}

TEST(Emulator, DivergentBarrierAndMissingThread) {
  const auto divergent = [] {
    if (thread_in_block() < 32) {
      block_barrier();
    } else {
      block_barrier();
    }
  };
  EXPECT_GT(run(1, 64, divergent).divergences, 0);
  const auto lost = [] {
    if (thread_in_block() == 3) return;
    (void)shuffle_xor(kFullMask, 1, 1);
  };
  EXPECT_GT(run(1, 32, lost).deadlocks, 0);
}

TEST(Emulator, BoundsAlignmentAndInputs) {
  Buffer<float> input(8, Access::kReadOnly, "input");
  Buffer<float> output(8, Access::kWriteFirst, "output");
  EXPECT_TRUE(run(1, 8, [&] {
                store_global(output.data() + thread_in_block(), load_global(input.data() + thread_in_block()));
              }).clean());
  EXPECT_GT(run(1, 9, [&] { (void)load_global(input.data() + thread_in_block()); }).bounds, 0);
  EXPECT_GT(run(1, 1, [&] { store_global(input.data(), 1.0F); }).bounds, 0);
  EXPECT_GT(run(1, 1, [&] { (void)load_global(reinterpret_cast<Vector<float>*>(input.data() + 1)); }).bounds, 0);
  Buffer<float> fresh(8, Access::kWriteFirst, "fresh");
  EXPECT_GT(run(1, 1, [&] { (void)load_global(fresh.data()); }).uninitialized, 0);
}

TEST(Emulator, TwoBlocksWriteOneCell) {
  Buffer<float> output(1, Access::kWriteFirst, "output");
  EXPECT_GT(run(2, 1, [&] { store_global(output.data(), 1.0F); }).races, 0);
}

// The last block reads what all wrote; each of the four ingredients can be left out.
void gather(unsigned* ticket, float* partials, float* out, bool first_fence, bool second_fence, bool atomic,
            bool barrier) {
  TL_SHARED(unsigned, last, 1);
  if (thread_in_block() == 32) store_global(partials + block_in_grid(), 1.0F);
  if (barrier) block_barrier();
  if (thread_in_block() == 0) {
    if (first_fence) fence();
    unsigned before = 0;
    if (atomic) {
      before = atomic_increment(ticket);
    } else {
      before = load_global(ticket);
      store_global(ticket, before + 1);
    }
    if (second_fence) fence();
    last[0] = before == blocks_in_grid() - 1 ? 1U : 0U;
  }
  block_barrier();
  if (last[0] == 0U || thread_in_block() != 7) return;
  float sum = 0;
  for (unsigned i = 0; i < blocks_in_grid(); ++i) sum += load_shared_between_blocks(partials + i);
  store_global(out, sum);
}

TEST(Emulator, LastBlockNeedsFencesAtomicAndBarrier) {
  const auto attempt = [](bool first_fence, bool second_fence, bool atomic, bool barrier) {
    int clean = 0;
    for (const testing::Schedule& schedule : testing::schedules(10)) {
      Buffer<unsigned> ticket(1, Access::kReadWrite, "ticket");
      ticket[0] = 0;
      Buffer<float> partials(6, Access::kWriteFirst, "partials");
      Buffer<float> out(1, Access::kWriteFirst, "out");
      const emulator::Report report = run(
          6, 64,
          [&] { gather(ticket.data(), partials.data(), out.data(), first_fence, second_fence, atomic, barrier); },
          schedule);
      clean += report.clean() && out[0] == 6.0F ? 1 : 0;
    }
    return clean;
  };
  EXPECT_EQ(attempt(true, true, true, true), 10);
  EXPECT_EQ(attempt(false, true, true, true), 0);
  EXPECT_EQ(attempt(true, false, true, true), 0);
  EXPECT_EQ(attempt(true, true, false, true), 0);
  EXPECT_EQ(attempt(true, true, true, false), 0);
}

TEST(Emulator, ClusterBarrierOrdersDistributedSharedMemory) {
  const auto body = [](bool before, bool after) {
    return [before, after] {
      TL_SHARED(int, cell, 1);
      if (thread_in_block() == 0) cell[0] = static_cast<int>(block_in_cluster());
      if (before) cluster_barrier();
      const int neighbour = cell.in_block((block_in_cluster() + 1) % 4)[0];
      (void)neighbour;
      if (after) cluster_barrier();
    };
  };
  int clean = 0;
  int caught_before = 0;
  int caught_after = 0;
  for (const testing::Schedule& schedule : testing::schedules(20)) {
    clean += run(8, 32, body(true, true), schedule, 4).clean() ? 1 : 0;
    caught_before += run(8, 32, body(false, true), schedule, 4).clean() ? 0 : 1;
    caught_after += run(8, 32, body(true, false), schedule, 4).clean() ? 0 : 1;
  }
  EXPECT_EQ(clean, 20);
  EXPECT_EQ(caught_before, 20);
  EXPECT_GT(caught_after, 10);  // only a block that is read after its end shows
}

TEST(Emulator, PrioritySchedulesCover) {
  std::vector<unsigned> firsts;
  for (const testing::Schedule& schedule : testing::schedules(20)) {
    unsigned first = 99;
    run(
        4, 64,
        [&] {
          if (first == 99) first = block_in_grid() * 2 + warp_in_block();
        },
        schedule);
    firsts.push_back(first);
  }
  std::sort(firsts.begin(), firsts.end());
  EXPECT_GE(std::unique(firsts.begin(), firsts.end()) - firsts.begin(), 4);
}

}  // namespace
}  // namespace tensorlint::kernels
