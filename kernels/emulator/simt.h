#pragma once

// A CPU emulator for the CUDA subset that `common/device.h` names. Every thread of a block is a fiber; blocks of a
// launch run interleaved, a few resident at a time (whole clusters at once). What it checks, beside the results:
//   - shared memory: races (two accesses, one a write, not ordered), reads of never written cells, bounds;
//   - global memory in registered buffers: the same, across blocks too; writes to inputs; alignment;
//   - barriers: all threads at the same source line, no thread gone; shuffles: lanes inside their mask, one mask, one
//   line;
//   - limits of the device: threads, blocks and clusters of a launch, and shared memory, its static part included;
//   - progress: threads that wait for ever.
// On request (Options::sectors) it counts the 32-byte sectors that the global accesses of each warp instruction touch.
// "Ordered" is happens-before: program order; block and cluster barriers; warp barriers, by a clock per lane (a shuffle
// passes a value on but orders no memory); and
// across blocks only what a thread had fenced before its atomic, seen by a thread that fenced after its own. Exact for
// these primitives, except that of several readers of one cell in one warp and epoch only the last two are remembered.
// Not emulated: weaker hardware orders than that rule, timing, bank conflicts, bits of approximate instructions.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

namespace tensorlint::kernels::emulator {

enum class Order {
  kInOrder,   // lowest block and thread first
  kRandom,    // any ready thread, uniformly; may also preempt at atomics, fences and tracked accesses
  kPriority,  // warps get random priorities that now and then change (probabilistic concurrency testing)
};

struct Options {
  Order order = Order::kInOrder;
  std::uint64_t seed = 1;
  unsigned resident_blocks = 4;  // rounded up to whole clusters
  bool sectors = false;          // fill Report::traffic
  // Not 0: of each launch only about so many blocks run, whole clusters at even distances. Launches whose blocks are
  // alike can be counted so at their full size; what a last block would do is not done.
  unsigned sampled_blocks = 0;
};

/// What a launch must keep to. Source: CUDA C++ programming guide, technical specifications by compute capability.
struct Device {
  int capability = 90;
  std::size_t shared_bytes = 48 * 1024;        // of a block, static and dynamic together
  std::size_t shared_bytes_most = 227 * 1024;  // the same for kernels that were allowed more
  unsigned threads = 1024;                     // of a block
  unsigned blocks = 0x7fffffffU;
  unsigned cluster = 8;  // blocks of a cluster, without asking for more
};
/// An A100: no clusters, 163 KiB.
inline Device device_of_sm_80() { return {80, 48 * 1024, 163 * 1024, 1024, 0x7fffffffU, 1}; }

/// An A10, A40 or RTX 30: 99 KiB, as on sm_89 and sm_120.
inline Device device_of_sm_86() { return {86, 48 * 1024, 99 * 1024, 1024, 0x7fffffffU, 1}; }

/// cudaError_t numbers of refused launches.
constexpr int kInvalidValue = 1;
constexpr int kInvalidConfiguration = 9;
constexpr int kInvalidClusterSize = 912;

/// Global memory traffic, in the unit of the caches and of DRAM.
/// Source: CUDA C++ best practices guide, "Coalesced access to global memory" (32-byte transactions of a warp).
constexpr std::size_t kSectorBytes = 32;

/// Sectors that a block is taken to keep in L1: of 256 KiB in an SM of sm_90, three blocks with 64 KiB of shared memory
/// each leave about 20 KiB a block.
constexpr std::size_t kSectorsInL1 = 512;

/// What the loads and stores of a launch moved. One request is one instruction of one warp: the n-th execution of a
/// call site by the lanes of a warp since they last met (at a shuffle or barrier). Its sectors are the distinct ones
/// that its lanes touch. The warps of a block are taken to go in step: first executions before second ones.
struct Sectors {
  std::int64_t load_requests = 0;
  std::int64_t load_sectors = 0;
  /// Load sectors that L1 does not have, read from L2: all but those among the last kSectorsInL1 distinct sectors that
  /// the block's loads touched. Loads that pass by L1 (between blocks) always count. A block's store drops its sectors.
  std::int64_t l2_load_sectors = 0;
  std::int64_t store_requests = 0;
  std::int64_t store_sectors = 0;  // L1 writes through: each moves to L2
  std::int64_t atomic_requests = 0;
  std::int64_t atomic_sectors = 0;

  /// What a byte floor is compared with.
  std::int64_t moved() const { return l2_load_sectors + store_sectors + atomic_sectors; }
};

/// A launch that Options::sectors saw.
struct LaunchTraffic {
  unsigned blocks = 0;
  unsigned threads = 0;
  unsigned cluster = 1;
  std::size_t dynamic_shared_bytes = 0;
  unsigned blocks_run = 0;  // fewer where blocks are sampled
  Sectors sectors;          // of these
};

struct Report {
  std::int64_t races = 0;
  std::int64_t divergences = 0;
  std::int64_t deadlocks = 0;
  std::int64_t bounds = 0;
  std::int64_t uninitialized = 0;
  std::int64_t limits = 0;  // launches that the device refuses
  std::int64_t switches = 0;
  std::int64_t launches = 0;
  std::vector<LaunchTraffic> traffic;  // where Options::sectors is set
  std::string first;                   // the first complaint in words

  bool clean() const { return races + divergences + deadlocks + bounds + uninitialized + limits == 0; }
};

Options& options();
/// The device in use: an H100 until another is chosen. What kernels were allowed on the last one is forgotten.
const Device& device();
void use_device(const Device& device);
Report& report();
/// Forgets complaints and counts. Registered buffers stay.
void clear_report();

enum class Access {
  kReadOnly,    // an input; a write is a bounds complaint
  kReadWrite,   // initialised memory that kernels may write
  kWriteFirst,  // memory whose content means nothing until a kernel writes it
  kUntracked    // kernels may read and write it; bounds are checked, nothing else: costs no memory of its own
};

/// Makes [data, data + bytes) legal for kernels. `granule`: bytes that one shadow cell covers; accesses are whole
/// cells.
void register_buffer(void* data, std::size_t bytes, std::size_t granule, Access access, const char* name);
void unregister_buffer(void* data);
/// What a host-side memset does to the shadow: `bytes` from `data` count as written before the next launch.
void mark_written(void* data, std::size_t bytes);

/// What cudaFuncSetAttribute does to a kernel on the device in use: shared_bytes_most holds for it from now on.
void allow_dynamic_shared_memory(const void* kernel);

/// Runs `body` once per thread of a grid of `blocks` x `threads`, clusters of `cluster` blocks. `kernel` is its name
/// for allow_dynamic_shared_memory. Returns 0, or the cudaError_t with which the device refuses the launch; how much
/// static shared memory a kernel has shows when it runs.
int launch(const void* kernel, unsigned blocks, unsigned threads, unsigned cluster, std::size_t dynamic_shared_bytes,
           const std::function<void()>& body);

// --- what kernels reach through common/device.h ---

struct SharedStorage;

unsigned thread_in_block();
unsigned threads_per_block();
unsigned block_in_grid();
unsigned blocks_in_grid();
unsigned block_in_cluster();
unsigned blocks_per_cluster();

void block_barrier(const std::source_location& where);
void cluster_barrier(const std::source_location& where);
void fence();
/// Adds 1 and returns the value before; relaxed: orders nothing unless fences surround it.
unsigned atomic_increment(unsigned* counter, const std::source_location& where = std::source_location::current());
/// All lanes of `mask` meet; `value` (<= 32 bytes) of lane `source` is returned in place. `orders_memory`: a barrier,
/// which orders what the lanes did before it; a shuffle does not.
void warp_exchange(unsigned mask, void* value, std::size_t bytes, unsigned source, bool orders_memory,
                   const std::source_location& where);

enum class Traffic { kLoad, kLoadPastL1, kStore };
/// True when the access may go on; false (after a complaint) when it would leave every registered buffer. `where`: the
/// instruction, as far as Sectors goes.
bool global_access(const void* address, std::size_t bytes, std::size_t alignment, Traffic traffic,
                   const std::source_location& where);

SharedStorage* shared_storage(const void* site, std::size_t count, std::size_t element_bytes, const char* name);
SharedStorage* dynamic_shared_storage(std::size_t element_bytes);
/// The same array in block `rank` of the cluster.
SharedStorage* remote_storage(SharedStorage* local, unsigned rank);
/// Address of element `index`, or null after a complaint.
void* shared_access(SharedStorage* storage, std::size_t index, bool write);
/// Of elements [index, index + count) in one access, `index` a multiple of `count`.
void* shared_vector_access(SharedStorage* storage, std::size_t index, std::size_t count, bool write);

template <typename T>
class SharedElement {
 public:
  SharedElement(SharedStorage* storage, std::size_t index) : storage_(storage), index_(index) {}
  SharedElement(const SharedElement&) = default;
  operator T() const {
    T value{};
    if (const void* from = shared_access(storage_, index_, false)) std::memcpy(&value, from, sizeof(T));
    return value;
  }
  SharedElement& operator=(const T& value) {
    if (void* to = shared_access(storage_, index_, true)) std::memcpy(to, &value, sizeof(T));
    return *this;
  }
  SharedElement& operator=(const SharedElement& other) { return *this = static_cast<T>(other); }

 private:
  SharedStorage* storage_;
  std::size_t index_;
};

template <typename T>
class SharedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit SharedArray(SharedStorage* storage) : storage_(storage) {}
  template <typename Index>
  SharedElement<T> operator[](Index index) const {
    return SharedElement<T>(storage_, static_cast<std::size_t>(index));
  }
  template <typename V>
  V load_vector(std::size_t index) const {
    V vector{};
    if (const void* from = shared_vector_access(storage_, index, sizeof(V) / sizeof(T), false))
      std::memcpy(&vector, from, sizeof(V));
    return vector;
  }
  template <typename V>
  void store_vector(std::size_t index, const V& vector) const {
    if (void* to = shared_vector_access(storage_, index, sizeof(V) / sizeof(T), true))
      std::memcpy(to, &vector, sizeof(V));
  }
  SharedArray in_block(unsigned rank) const { return SharedArray(remote_storage(storage_, rank)); }

 private:
  SharedStorage* storage_;
};

}  // namespace tensorlint::kernels::emulator
