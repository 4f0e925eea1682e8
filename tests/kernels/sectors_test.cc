// The emulator's count of 32-byte sectors, on kernels whose traffic is known by hand, and loads and stores at any
// address: the values, and that they move no sector twice.

#include <numeric>

#include "kernels/common/combine.h"
#include "kernels/common/launch.h"
#include "kernels/common/store_span.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using emulator::kSectorBytes;
using testing::Access;

/// Memory at a sector's boundary, `shift` bytes past it.
class Bytes {
 public:
  explicit Bytes(std::size_t bytes, std::size_t shift = 0) : storage_(bytes + shift + 64) {
    const auto base = reinterpret_cast<std::uintptr_t>(storage_.data());
    data_ = reinterpret_cast<unsigned char*>((base + 31) / 32 * 32 + shift);
    emulator::register_buffer(data_, bytes, 1, Access::kUntracked, "bytes");
  }
  ~Bytes() { emulator::unregister_buffer(data_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::vector<unsigned char> storage_;
  unsigned char* data_;
};

template <typename Body>
emulator::Sectors traffic(unsigned blocks, unsigned threads, const Body& body) {
  testing::use({});
  emulator::options().sectors = true;
  emulator::launch(nullptr, blocks, threads, 1, 0, body);
  emulator::options().sectors = false;
  EXPECT_TRUE(emulator::report().clean()) << emulator::report().first;
  EXPECT_EQ(emulator::report().traffic.size(), 1U);
  return emulator::report().traffic.front().sectors;
}

TEST(Sectors, NothingIsCountedUnlessAskedFor) {
  Bytes memory(128);
  testing::use({});
  emulator::launch(nullptr, 1, 32, 1, 0, [&] { (void)load_global(memory.as<float>() + thread_in_block()); });
  EXPECT_TRUE(emulator::report().traffic.empty());
}

TEST(Sectors, CoalescedStridedAndMisaligned) {
  Bytes memory(32 * 128, 0);
  Bytes shifted(4 * 33, 4);
  const auto load = [](float* from, unsigned stride) {
    return traffic(1, 32, [=] { (void)load_global(from + thread_in_block() * stride); });
  };
  EXPECT_EQ(load(memory.as<float>(), 1).load_requests, 1);
  EXPECT_EQ(load(memory.as<float>(), 1).load_sectors, 4);    // 128 bytes
  EXPECT_EQ(load(memory.as<float>(), 2).load_sectors, 8);    // 256 bytes, half of them wanted
  EXPECT_EQ(load(memory.as<float>(), 8).load_sectors, 32);   // a sector a lane
  EXPECT_EQ(load(memory.as<float>(), 32).load_sectors, 32);  // not more than that
  EXPECT_EQ(load(memory.as<float>(), 0).load_sectors, 1);    // one for all
  EXPECT_EQ(load(shifted.as<float>(), 1).load_sectors, 5);   // 128 bytes from byte 4 on
}

TEST(Sectors, WideAndNarrowLanes) {
  Bytes memory(512);
  const emulator::Sectors wide =
      traffic(1, 32, [&] { store_global(memory.as<Vector<float>>() + thread_in_block(), Vector<float>{}); });
  EXPECT_EQ(wide.store_requests, 1);
  EXPECT_EQ(wide.store_sectors, 16);
  EXPECT_EQ(wide.load_requests + wide.atomic_requests, 0);
  const emulator::Sectors narrow =
      traffic(1, 32, [&] { store_global(memory.as<std::uint16_t>() + thread_in_block(), std::uint16_t{1}); });
  EXPECT_EQ(narrow.store_sectors, 2);
  // A vector by its elements, as loads and stores at odd addresses once were: each instruction touches all 16 sectors.
  const emulator::Sectors pieces = traffic(1, 32, [&] {
    for (unsigned i = 0; i < 8; ++i)
      store_global(memory.as<std::uint16_t>() + thread_in_block() * 8 + i, std::uint16_t{1});
  });
  EXPECT_EQ(pieces.store_requests, 8);
  EXPECT_EQ(pieces.store_sectors, 8 * 16);
  EXPECT_EQ(pieces.moved(), 8 * 16);
}

TEST(Sectors, DivergentLanesAndPartsOfAWarp) {
  Bytes memory(4096);
  const emulator::Sectors halves = traffic(1, 32, [&] {
    const unsigned lane = thread_in_block();
    if (lane < 16) {
      (void)load_global(memory.as<float>() + lane);
    } else {
      (void)load_global(memory.as<float>() + lane);
    }
  });
  EXPECT_EQ(halves.load_requests, 2);
  EXPECT_EQ(halves.load_sectors, 4);
  const emulator::Sectors one = traffic(2, 40, [&] {
    if (thread_in_block() == 39) (void)load_global(memory.as<float>());
  });
  EXPECT_EQ(one.load_requests, 2);  // two blocks
  EXPECT_EQ(one.load_sectors, 2);
  EXPECT_EQ(one.l2_load_sectors, 2);  // each block has a cache of its own
}

TEST(Sectors, AnInstructionOfALoopIsOneRequestARound) {
  Bytes memory(4096);
  // Lanes leave after different rounds; after the shuffle they are in step again, though their counts differ.
  const emulator::Sectors loop = traffic(1, 32, [&] {
    for (unsigned i = 0; i <= thread_in_block() % 2; ++i)
      (void)load_global(memory.as<float>() + i * 32 + thread_in_block());
    (void)shuffle_xor(kFullMask, 1, 1);
    for (unsigned i = 0; i < 2; ++i) (void)load_global(memory.as<float>() + 64 + i * 32 + thread_in_block());
  });
  EXPECT_EQ(loop.load_requests, 4);
  EXPECT_EQ(loop.load_sectors, 16);
}

TEST(Sectors, L1KeepsTheLastSectors) {
  constexpr unsigned kTwice = static_cast<unsigned>(kSectorBytes * emulator::kSectorsInL1 * 2);
  Bytes memory(kTwice);
  const auto twice = [&](std::size_t sectors) {
    return traffic(1, 1, [&, sectors] {
      for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < sectors; ++i) (void)load_global(memory.as<unsigned char>() + i * kSectorBytes);
      }
    });
  };
  EXPECT_EQ(twice(emulator::kSectorsInL1).load_sectors, static_cast<std::int64_t>(2 * emulator::kSectorsInL1));
  EXPECT_EQ(twice(emulator::kSectorsInL1).l2_load_sectors, static_cast<std::int64_t>(emulator::kSectorsInL1));
  EXPECT_EQ(twice(emulator::kSectorsInL1 + 1).l2_load_sectors,
            static_cast<std::int64_t>(2 * emulator::kSectorsInL1 + 2));
  const emulator::Sectors past = traffic(1, 1, [&] {
    for (int i = 0; i < 3; ++i) (void)load_shared_between_blocks(memory.as<unsigned>());
  });
  EXPECT_EQ(past.l2_load_sectors, 3);
  const emulator::Sectors stored = traffic(1, 1, [&] {
    (void)load_global(memory.as<unsigned>());
    store_global(memory.as<unsigned>(), 1U);
    (void)load_global(memory.as<unsigned>());
  });
  EXPECT_EQ(stored.l2_load_sectors, 2);
  EXPECT_EQ(stored.store_sectors, 1);
}

TEST(Sectors, WarpsOfABlockGoInStep) {
  // Each warp reads more than L1 keeps, and its neighbour reads the same: in step they share every sector.
  constexpr unsigned kRounds = 2 * emulator::kSectorsInL1;
  Bytes memory(kRounds * kSectorBytes);
  const emulator::Sectors shared = traffic(1, 64, [&] {
    for (unsigned i = 0; i < kRounds; ++i)
      (void)load_global(memory.as<unsigned char>() + i * kSectorBytes + thread_in_block() % 32);
  });
  EXPECT_EQ(shared.load_sectors, 2 * std::int64_t{kRounds});
  EXPECT_EQ(shared.l2_load_sectors, std::int64_t{kRounds});
}

TEST(Sectors, AtomicsAndSamples) {
  Bytes counters(64);
  testing::use({});
  emulator::options().sectors = true;
  emulator::options().sampled_blocks = 3;
  std::vector<unsigned> ran;
  emulator::launch(nullptr, 12, 2, 2, 0, [&] {
    if (thread_in_block() == 0) ran.push_back(block_in_grid());
    (void)atomic_increment(counters.as<unsigned>() + thread_in_block() * 8);
  });
  emulator::options().sectors = false;
  emulator::options().sampled_blocks = 0;
  ASSERT_EQ(emulator::report().traffic.size(), 1U);
  const emulator::LaunchTraffic& launch = emulator::report().traffic.front();
  EXPECT_EQ(launch.blocks, 12U);
  EXPECT_EQ(launch.cluster, 2U);
  EXPECT_EQ(launch.blocks_run, 4U);  // whole clusters
  EXPECT_EQ(ran, (std::vector<unsigned>{0, 1, 6, 7}));
  EXPECT_EQ(launch.sectors.atomic_requests, 4);
  EXPECT_EQ(launch.sectors.atomic_sectors, 8);
}

template <typename T>
class Unaligned : public ::testing::Test {};
using ElementTypes = ::testing::Types<double, float, BFloat16, Float8E4M3>;
TYPED_TEST_SUITE(Unaligned, ElementTypes);

TYPED_TEST(Unaligned, SpliceTakesSixteenBytesFromAnyElementOn) {
  using T = TypeParam;
  constexpr int kSize = Vector<T>::kSize;
  Vector<T> low, high;
  for (unsigned i = 0; i < 4; ++i) {
    low.words[i] = 0x03020100U + i * 0x04040404U;
    high.words[i] = 0x13121110U + i * 0x04040404U;
  }
  for (int from = 0; from < kSize; ++from) {
    const Vector<T> spliced = splice(low, high, static_cast<unsigned>(from) * static_cast<unsigned>(sizeof(T)));
    for (int i = 0; i < kSize; ++i) {
      const T want = from + i < kSize ? low.element(from + i) : high.element(from + i - kSize);
      EXPECT_EQ(std::memcmp(&want, std::vector<T>{spliced.element(i)}.data(), sizeof(T)), 0) << from << " " << i;
    }
    const T want = low.element(from);
    EXPECT_EQ(std::memcmp(&want, std::vector<T>{element_at(low, from)}.data(), sizeof(T)), 0);
  }
}

// Loads at every alignment, up to both ends of what may be read: the values, nothing outside, and no sector twice.
TYPED_TEST(Unaligned, LoadsReadWholeSectorsAndNothingOutside) {
  using T = TypeParam;
  constexpr int kSize = Vector<T>::kSize;
  constexpr int kVectors = 64;
  for (std::size_t shift = 0; shift < static_cast<std::size_t>(kSize); ++shift) {
    Bytes memory(16 * kVectors, shift * sizeof(T));
    for (int i = 0; i < 16 * kVectors; ++i) memory.as<unsigned char>()[i] = static_cast<unsigned char>(i * 7 % 251);
    const T* const data = memory.as<T>();
    const Readable<T> readable = {data, data + kVectors * kSize};
    std::vector<Vector<T>> seen(kVectors);
    const auto check = [&] {
      EXPECT_EQ(std::memcmp(seen.data(), data, 16 * kVectors), 0) << "shift " << shift;
      seen.assign(kVectors, {});
    };
    const emulator::Sectors single = traffic(
        1, kVectors, [&] { seen[thread_in_block()] = load_anywhere(readable, data + thread_in_block() * kSize); });
    check();
    EXPECT_EQ(single.l2_load_sectors, kVectors / 2 + (shift == 0 ? 0 : 1));
    const emulator::Sectors four = traffic(1, kVectors / 4, [&] {
      const T* const at = data + thread_in_block() * kSize;
      constexpr int kStep = kVectors / 4 * kSize;
      const unsigned past = bytes_past_vector(at);
      Vector<T> batch[4];
      load_four<T>(readable, {at, at + kStep, at + 2 * kStep, at + 3 * kStep}, {past, past, past, past}, batch);
      for (unsigned i = 0; i < 4; ++i) seen[thread_in_block() + i * kVectors / 4] = batch[i];
    });
    check();
    EXPECT_EQ(four.l2_load_sectors, kVectors / 2 + (shift == 0 ? 0 : 1));
    for (int count = 0; count < kSize; ++count) {  // the last elements of a row, with nothing readable after them
      const Readable<T> row = {data, data + kSize + count};
      Vector<T> rest{};
      traffic(1, 1, [&] { rest = load_first(row, data + kSize, count); });
      EXPECT_EQ(std::memcmp(&rest, data + kSize, static_cast<std::size_t>(count) * sizeof(T)), 0);
    }
  }
}

// A span's vectors and edges are each of its elements once, vectors are aligned, and writer() is who writes.
TYPED_TEST(Unaligned, SpansCoverEveryElementOnce) {
  using T = TypeParam;
  constexpr int kSize = Vector<T>::kSize;
  for (std::size_t shift = 0; shift < static_cast<std::size_t>(kSize); ++shift) {
    for (int count = 0; count <= 3 * kSize + 1; ++count) {
      for (const unsigned lanes : {1U, 4U, 256U}) {
        Bytes memory(static_cast<std::size_t>(count + 1) * sizeof(T), shift * sizeof(T));
        const StoreSpan<T> span(memory.as<T>(), count);
        std::vector<int> writers(static_cast<std::size_t>(count), -1);
        const auto write = [&](std::int64_t i, unsigned lane) {
          ASSERT_TRUE(i >= 0 && i < count && writers[static_cast<std::size_t>(i)] == -1);
          writers[static_cast<std::size_t>(i)] = static_cast<int>(lane);
        };
        for (unsigned lane = 0; lane < lanes; ++lane) {
          for (std::int64_t j = lane; j < span.vectors; j += lanes) {
            EXPECT_EQ(bytes_past_vector(span.to + span.first_of(j)), 0U);
            for (int i = 0; i < kSize; ++i) write(span.first_of(j) + i, lane);
          }
          for (int i = static_cast<int>(lane); i < span.head + span.tail; i += static_cast<int>(lanes))
            write(span.edge(i), lane);
        }
        for (int i = 0; i < count; ++i)
          EXPECT_EQ(writers[static_cast<std::size_t>(i)], static_cast<int>(span.writer(i, lanes))) << i;
      }
    }
  }
}

}  // namespace
}  // namespace tensorlint::kernels
