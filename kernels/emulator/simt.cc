#include "kernels/emulator/simt.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace tensorlint::kernels::emulator {
namespace {

// 48 KiB: the deepest kernel here uses under 8 KiB at -O0; a canary at the low end is checked when a thread ends.
constexpr std::size_t kStackBytes = 48 * 1024;
constexpr std::uint64_t kCanary = 0x5ca1ab1e0ddba11;
constexpr unsigned kLanes = 32;
constexpr std::size_t kPayloadBytes = 32;

using LaneClock = std::array<std::uint32_t, kLanes>;

// Who touched a cell, and at which point of the orders that barriers and rendezvous make.
struct Stamp {
  std::uint32_t launch = 0;  // 0: never
  std::uint32_t block = 0;
  std::uint32_t cluster_epoch = 0;
  std::uint32_t epoch = 0;
  std::uint32_t thread = 0;
  std::uint32_t clock = 0;
};

struct Cell {
  Stamp write;
  Stamp read;
  Stamp other_read;  // the last by another thread than that of `read` and not ordered before it
  bool initialized = false;
  bool many_readers = false;  // by more than one warp or block since the last write
};

// What one thread of a block vouches for: all of its block before `epoch`, and its warp up to `clock`.
struct Publication {
  std::uint32_t epoch = 0;
  std::uint32_t warp = 0;
  LaneClock clock{};
};
using Knowledge = std::map<std::uint32_t, std::vector<Publication>>;  // by block

void add_knowledge(Knowledge& into, const Knowledge& from) {
  for (const auto& [block, publications] : from) {
    std::vector<Publication>& known = into[block];
    for (const Publication& publication : publications) {
      const bool there = std::any_of(known.begin(), known.end(), [&](const Publication& other) {
        return other.epoch == publication.epoch && other.warp == publication.warp && other.clock == publication.clock;
      });
      if (!there) known.push_back(publication);
    }
  }
}

// One load, store or atomic instruction of one warp.
struct Request {
  std::uint32_t meeting = 0;  // how often the lanes had met before it
  std::uint32_t nth = 0;      // executions of its site since then
  std::uint32_t site = 0;     // in the order in which the launch reached them
  std::uint32_t warp = 0;
  bool operator==(const Request&) const = default;
  auto operator<=>(const Request&) const = default;
};
enum class RequestKind : unsigned char { kLoad, kLoadPastL1, kStore, kAtomic };
struct RequestSectors {
  RequestKind kind = RequestKind::kLoad;
  std::vector<std::uintptr_t> sectors;  // ascending
};

// Last in, first to stay: the sectors of a block's loads.
class SectorCache {
 public:
  // True where it was there; it is the youngest from now on.
  bool touch(std::uintptr_t sector) {
    const auto found = place_.find(sector);
    const bool hit = found != place_.end();
    if (hit) order_.erase(found->second);
    order_.push_back(sector);
    place_[sector] = std::prev(order_.end());
    if (order_.size() > kSectorsInL1) drop(order_.front());
    return hit;
  }
  void drop(std::uintptr_t sector) {
    const auto found = place_.find(sector);
    if (found == place_.end()) return;
    order_.erase(found->second);
    place_.erase(found);
  }

 private:
  std::list<std::uintptr_t> order_;
  std::unordered_map<std::uintptr_t, std::list<std::uintptr_t>::iterator> place_;
};

struct Block;

struct Warp {
  std::array<LaneClock, kLanes> clocks{};
  std::array<std::array<unsigned char, kPayloadBytes>, kLanes> in{};
  std::array<std::array<unsigned char, kPayloadBytes>, kLanes> out{};
  std::array<std::uint32_t, kLanes> masks{};
  std::array<std::uint32_t, kLanes> lines{};
  std::uint32_t arrived = 0;
  std::uint32_t priority = 0;
};

struct Fiber {
#if defined(__x86_64__)
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
  unsigned char* stack = nullptr;
  Block* block = nullptr;
  Warp* warp = nullptr;
  std::uint32_t thread = 0;
  std::uint32_t lane = 0;
  bool at_barrier = false;
  bool at_cluster_barrier = false;
  bool done = false;
  std::unique_ptr<Knowledge> known;   // beyond what the block knows
  std::unique_ptr<Knowledge> seen;    // read by an atomic, not yet fenced
  std::unique_ptr<Knowledge> fenced;  // what an atomic publishes
  // Of Options::sectors: meetings with other lanes so far, and executions of each site since the last.
  std::uint32_t meetings = 0;
  std::vector<std::uint32_t> executions;
};

struct Cluster;

}  // namespace

struct SharedStorage {
  std::unique_ptr<unsigned char[]> bytes;
  std::vector<Cell> cells;
  std::size_t element_bytes = 0;
  const void* site = nullptr;
  const char* name = "";
  Block* owner = nullptr;
};

namespace {

struct Block {
  std::uint32_t id = 0;
  std::uint32_t rank = 0;
  Cluster* cluster = nullptr;
  std::uint32_t live = 0;
  std::uint32_t waiting = 0;
  std::uint32_t epoch = 0;
  std::uint32_t barrier_line = 0;
  std::vector<Warp> warps;
  std::vector<Fiber*> fibers;
  std::unordered_map<const void*, std::unique_ptr<SharedStorage>> shared;
  std::unique_ptr<SharedStorage> dynamic;
  std::size_t static_bytes = 0;
  Knowledge known;
  std::vector<Fiber*> with_own_knowledge;
  std::map<Request, RequestSectors> requests;  // since the last block barrier
  SectorCache l1;
};

struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  std::uint32_t live = 0;
  std::uint32_t waiting = 0;
  std::uint32_t epoch = 0;
  std::uint32_t barrier_line = 0;
};

// Made where they are met: many launches write a small part each of one large buffer.
class GlobalCells {
 public:
  GlobalCells() = default;
  GlobalCells(std::size_t count, bool are_initialized)
      : parts_((count + kInPart - 1) / kInPart), are_initialized_(are_initialized) {}
  bool empty() const { return parts_.empty(); }
  Cell& operator[](std::size_t at) {
    std::unique_ptr<Cell[]>& part = parts_[at / kInPart];
    if (part == nullptr) {
      part = std::make_unique<Cell[]>(kInPart);
      for (Cell& cell : std::span(part.get(), kInPart)) cell.initialized = are_initialized_;
    }
    return part[at % kInPart];
  }

 private:
  static constexpr std::size_t kInPart = 64;
  std::vector<std::unique_ptr<Cell[]>> parts_;
  bool are_initialized_ = false;
};

struct Buffer {
  unsigned char* data = nullptr;
  std::size_t bytes = 0;
  std::size_t granule = 1;
  Access access = Access::kReadOnly;
  std::string name;
  GlobalCells cells;
};

struct Ready {
  std::uint32_t priority;
  std::uint64_t sequence;
  Fiber* fiber;
  bool operator<(const Ready& other) const {
    return priority != other.priority ? priority < other.priority : sequence > other.sequence;
  }
};

struct Machine {
  Options options;
  Device device;
  std::set<const void*> allowed;  // kernels that may use device.shared_bytes_most
  std::size_t shared_limit = 0;   // of the launch under way
  bool over_limit = false;
  Report report;
  std::vector<std::unique_ptr<Buffer>> buffers;
  Buffer* last_buffer = nullptr;
  std::map<const unsigned*, Knowledge> published;  // by counter, for the launch under way
  std::map<std::tuple<std::string_view, std::uint32_t, std::uint32_t>, std::uint32_t> sites;  // of accesses

  std::uint32_t launch_id = 0;
  std::uint32_t blocks = 0;
  std::uint32_t threads = 0;
  std::uint32_t cluster_size = 1;
  std::size_t dynamic_bytes = 0;
  const std::function<void()>* body = nullptr;
  std::mt19937_64 random;
  Fiber* self = nullptr;
  std::deque<Fiber*> queue;
  std::vector<Fiber*> bag;
  std::priority_queue<Ready> heap;
  std::uint64_t sequence = 0;
  std::vector<std::unique_ptr<unsigned char[]>> stacks;
  std::exception_ptr failure;  // of a thread: there was no memory for it
#if defined(__x86_64__)
  void* scheduler = nullptr;
#else
  ucontext_t scheduler;
#endif
};

Machine machine;

void complain(std::int64_t& counter, const std::string& message) {
  ++counter;
  if (machine.report.first.empty()) machine.report.first = message;
}

std::string who(std::uint32_t block, std::uint32_t thread) {
  return "block " + std::to_string(block) + " thread " + std::to_string(thread);
}

}  // namespace
}  // namespace tensorlint::kernels::emulator

#if defined(__x86_64__)
// Saves the callee-saved registers of the System V ABI, swaps stacks, restores. Floating-point control words are never
// changed.
extern "C" void tensorlint_emulator_switch(void** save, void* load);
asm(R"(
.text
.globl tensorlint_emulator_switch
.type tensorlint_emulator_switch, @function
tensorlint_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tensorlint_emulator_switch, .-tensorlint_emulator_switch
)");
#endif

namespace tensorlint::kernels::emulator {
namespace {

void leave() {
  Fiber* fiber = machine.self;
#if defined(__x86_64__)
  tensorlint_emulator_switch(&fiber->stack_pointer, machine.scheduler);
#else
  swapcontext(&fiber->context, &machine.scheduler);
#endif
}

void enter(Fiber* fiber) {
  machine.self = fiber;
  ++machine.report.switches;
#if defined(__x86_64__)
  tensorlint_emulator_switch(&machine.scheduler, fiber->stack_pointer);
#else
  swapcontext(&machine.scheduler, &fiber->context);
#endif
  machine.self = nullptr;
}

void make_ready(Fiber* fiber) {
  switch (machine.options.order) {
    case Order::kInOrder:
      machine.queue.push_back(fiber);
      break;
    case Order::kRandom:
      machine.bag.push_back(fiber);
      break;
    case Order::kPriority:
      // One redraw in 48 pushes keeps long stretches of one order and still changes it several times a block.
      if (machine.random() % 48 == 0) fiber->warp->priority = static_cast<std::uint32_t>(machine.random());
      machine.heap.push({fiber->warp->priority, machine.sequence++, fiber});
      break;
  }
}

Fiber* take_ready() {
  switch (machine.options.order) {
    case Order::kInOrder: {
      if (machine.queue.empty()) return nullptr;
      Fiber* fiber = machine.queue.front();
      machine.queue.pop_front();
      return fiber;
    }
    case Order::kRandom: {
      if (machine.bag.empty()) return nullptr;
      const std::size_t pick = machine.random() % machine.bag.size();
      std::swap(machine.bag[pick], machine.bag.back());
      Fiber* fiber = machine.bag.back();
      machine.bag.pop_back();
      return fiber;
    }
    case Order::kPriority: {
      if (machine.heap.empty()) return nullptr;
      Fiber* fiber = machine.heap.top().fiber;
      machine.heap.pop();
      return fiber;
    }
  }
  return nullptr;
}

void preempt() {
  if (machine.options.order == Order::kInOrder) return;
  make_ready(machine.self);
  leave();
}

// One tracked access in 32 gives way: often enough that unsynchronised readers meet unfinished writers.
void preempt_sometimes() {
  if (machine.options.order == Order::kRandom && machine.random() % 32 == 0) preempt();
}

// Counts what the block has asked for since the last call.
void count_requests(Block* block) {
  if (block->requests.empty()) return;
  Sectors& total = machine.report.traffic.back().sectors;
  for (const auto& [request, touched] : block->requests) {
    const auto count = static_cast<std::int64_t>(touched.sectors.size());
    switch (touched.kind) {
      case RequestKind::kLoad:
      case RequestKind::kLoadPastL1:
        ++total.load_requests;
        total.load_sectors += count;
        for (const std::uintptr_t sector : touched.sectors) {
          const bool hit = touched.kind == RequestKind::kLoad && block->l1.touch(sector);
          total.l2_load_sectors += hit ? 0 : 1;
        }
        break;
      case RequestKind::kStore:
        ++total.store_requests;
        total.store_sectors += count;
        for (const std::uintptr_t sector : touched.sectors) block->l1.drop(sector);
        break;
      case RequestKind::kAtomic:
        ++total.atomic_requests;
        total.atomic_sectors += count;
        break;
    }
  }
  block->requests.clear();
}

// The running thread's access becomes part of its warp's request.
void add_to_request(std::uintptr_t address, std::size_t bytes, RequestKind kind, const std::source_location& where) {
  Fiber* fiber = machine.self;
  const auto [site, fresh] = machine.sites.try_emplace({where.file_name(), where.line(), where.column()},
                                                       static_cast<std::uint32_t>(machine.sites.size()));
  (void)fresh;
  if (fiber->executions.size() <= site->second) fiber->executions.resize(site->second + 1);
  const Request request = {fiber->meetings, fiber->executions[site->second]++, site->second, fiber->thread / kLanes};
  RequestSectors& touched = fiber->block->requests[request];
  touched.kind = kind;
  for (std::uintptr_t sector = address / kSectorBytes; sector <= (address + bytes - 1) / kSectorBytes; ++sector) {
    const auto at = std::lower_bound(touched.sectors.begin(), touched.sectors.end(), sector);
    if (at == touched.sectors.end() || *at != sector) touched.sectors.insert(at, sector);
  }
}

// The lanes of a warp go in step again from here on.
void count_meeting(Fiber* fiber) {
  ++fiber->meetings;
  fiber->executions.clear();
}

void release_block(Block* block) {
  if (block->waiting == 0 || block->waiting != block->live) return;
  block->waiting = 0;
  ++block->epoch;
  block->barrier_line = 0;
  if (machine.options.sectors) count_requests(block);
  for (Fiber* fiber : block->with_own_knowledge) {
    if (fiber->known) add_knowledge(block->known, *fiber->known);
    fiber->known.reset();
  }
  block->with_own_knowledge.clear();
  for (Fiber* fiber : block->fibers) {
    if (!fiber->at_barrier) continue;
    fiber->at_barrier = false;
    make_ready(fiber);
  }
}

void release_cluster(Cluster* cluster) {
  if (cluster->waiting == 0 || cluster->waiting != cluster->live) return;
  cluster->waiting = 0;
  ++cluster->epoch;
  cluster->barrier_line = 0;
  for (const auto& block : cluster->blocks) {
    ++block->epoch;  // a cluster barrier is a block barrier too
    for (Fiber* fiber : block->fibers) {
      if (!fiber->at_cluster_barrier) continue;
      fiber->at_cluster_barrier = false;
      make_ready(fiber);
    }
  }
}

void thread_main() {
  try {
    (*machine.body)();
  } catch (...) {
    machine.failure = std::current_exception();
  }
  if (machine.failure) leave();  // for good: the launch ends
  Fiber* fiber = machine.self;
  std::uint64_t canary = 0;
  std::memcpy(&canary, fiber->stack, sizeof canary);
  if (canary != kCanary) {
    std::fprintf(stderr, "emulator: a kernel needs more than %zu bytes of stack\n", kStackBytes);
    std::abort();
  }
  fiber->done = true;
  --fiber->block->live;
  --fiber->block->cluster->live;
  if (fiber->block->live == 0) count_requests(fiber->block);
  release_block(fiber->block);
  release_cluster(fiber->block->cluster);
  leave();
}

void prepare(Fiber* fiber) {
  std::memcpy(fiber->stack, &kCanary, sizeof kCanary);
#if defined(__x86_64__)
  // Entered by `ret`, so that rsp is 16n + 8 at the first instruction, as after a call.
  void** top =
      reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(fiber->stack + kStackBytes) & ~std::uintptr_t{15});
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&thread_main);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fiber->stack_pointer = top;
#else
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = kStackBytes;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, &thread_main, 0);
#endif
}

Stamp stamp_now() {
  const Fiber* fiber = machine.self;
  return {machine.launch_id,   fiber->block->id, fiber->block->cluster->epoch,
          fiber->block->epoch, fiber->thread,    fiber->warp->clocks[fiber->lane][fiber->lane]};
}

bool covers(const Knowledge& known, const Stamp& stamp) {
  const auto found = known.find(stamp.block);
  if (found == known.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const Publication& publication) {
    if (stamp.epoch < publication.epoch) return true;
    return publication.warp == stamp.thread / kLanes && publication.clock[stamp.thread % kLanes] >= stamp.clock;
  });
}

// Does everything up to `stamp` happen before what the running thread does now?
bool ordered(const Stamp& stamp) {
  if (stamp.launch != machine.launch_id) return true;
  const Fiber* fiber = machine.self;
  const Block* block = fiber->block;
  if (stamp.block == block->id) {
    if (stamp.thread == fiber->thread || stamp.epoch < block->epoch) return true;
    return stamp.thread / kLanes == fiber->thread / kLanes &&
           fiber->warp->clocks[fiber->lane][stamp.thread % kLanes] >= stamp.clock;
  }
  if (stamp.block / machine.cluster_size == block->id / machine.cluster_size &&
      stamp.cluster_epoch < block->cluster->epoch) {
    return true;
  }
  return covers(block->known, stamp) || (fiber->known && covers(*fiber->known, stamp));
}

bool same_warp(const Stamp& stamp) {
  return stamp.block == machine.self->block->id && stamp.thread / kLanes == machine.self->thread / kLanes;
}

void track(Cell& cell, bool write, bool needs_initialized, const char* space, const std::string& name,
           std::size_t index) {
  const auto describe = [&](const Stamp& other, const char* what) {
    return std::string("race on ") + space + " " + name + "[" + std::to_string(index) +
           "]: " + (write ? "write" : "read") + " by " + who(machine.self->block->id, machine.self->thread) +
           " not ordered after the " + what + " by " + who(other.block, other.thread);
  };
  if (!ordered(cell.write)) {
    complain(machine.report.races, describe(cell.write, "write"));
  } else if (write && cell.read.launch != 0 && !ordered(cell.read)) {
    complain(machine.report.races, describe(cell.read, "read"));
  } else if (write && cell.other_read.launch != 0 && !ordered(cell.other_read)) {
    complain(machine.report.races, describe(cell.other_read, "read"));
  } else if (write && cell.many_readers && cell.read.launch == machine.launch_id &&
             cell.read.block == machine.self->block->id && cell.read.epoch == machine.self->block->epoch) {
    complain(machine.report.races, describe(cell.read, "read (one of several)"));
  }
  if (write) {
    cell.write = stamp_now();
    cell.read = Stamp{};
    cell.other_read = Stamp{};
    cell.many_readers = false;
    cell.initialized = true;
    return;
  }
  if (needs_initialized && !cell.initialized) {
    complain(machine.report.uninitialized, std::string("read of ") + space + " " + name + "[" + std::to_string(index) +
                                               "] by " + who(machine.self->block->id, machine.self->thread) +
                                               " before any write");
  }
  const bool fresh = cell.read.launch != machine.launch_id || ordered(cell.read);
  cell.many_readers = fresh ? false : cell.many_readers || !same_warp(cell.read);
  const bool own = cell.read.thread == machine.self->thread && cell.read.block == machine.self->block->id;
  if (!fresh && !own) cell.other_read = cell.read;
  cell.read = stamp_now();
}

Buffer* find_buffer(const unsigned char* address) {
  const auto holds = [&](const Buffer* buffer) {
    return address >= buffer->data && address < buffer->data + buffer->bytes;
  };
  if (machine.last_buffer != nullptr && holds(machine.last_buffer)) return machine.last_buffer;
  for (const auto& buffer : machine.buffers) {
    if (holds(buffer.get())) return machine.last_buffer = buffer.get();
  }
  return nullptr;
}

}  // namespace

Options& options() { return machine.options; }
const Device& device() { return machine.device; }
void use_device(const Device& device) {
  machine.device = device;
  machine.allowed.clear();
}
Report& report() { return machine.report; }
void allow_dynamic_shared_memory(const void* kernel) { machine.allowed.insert(kernel); }
void clear_report() { machine.report = Report{}; }

void register_buffer(void* data, std::size_t bytes, std::size_t granule, Access access, const char* name) {
  auto buffer = std::make_unique<Buffer>();
  buffer->data = static_cast<unsigned char*>(data);
  buffer->bytes = bytes;
  buffer->granule = granule;
  buffer->access = access;
  buffer->name = name;
  if (access != Access::kReadOnly && access != Access::kUntracked)
    buffer->cells = GlobalCells((bytes + granule - 1) / granule, access == Access::kReadWrite);
  machine.buffers.push_back(std::move(buffer));
}

void unregister_buffer(void* data) {
  machine.last_buffer = nullptr;
  std::erase_if(machine.buffers, [&](const auto& buffer) { return buffer->data == data; });
}

void mark_written(void* data, std::size_t bytes) {
  for (std::size_t offset = 0; offset < bytes;) {
    unsigned char* address = static_cast<unsigned char*>(data) + offset;
    Buffer* buffer = find_buffer(address);
    if (buffer == nullptr || buffer->access == Access::kReadOnly) {
      complain(machine.report.bounds, "a memset leaves the registered buffers");
      return;
    }
    if (buffer->access == Access::kUntracked) return;
    const std::size_t inside = static_cast<std::size_t>(address - buffer->data);
    Cell& cell = buffer->cells[inside / buffer->granule];
    cell = Cell{};
    cell.initialized = true;
    offset += buffer->granule - inside % buffer->granule;
  }
}

namespace {

// 0, or the cudaError_t of a launch that the device refuses.
int check_launch(unsigned blocks, unsigned threads, unsigned cluster, std::size_t dynamic_shared_bytes) {
  const auto refuse = [](int error, const std::string& what) {
    complain(machine.report.limits, what);
    return error;
  };
  if (blocks == 0 || threads == 0 || cluster == 0 || threads > machine.device.threads ||
      blocks > machine.device.blocks || blocks % cluster != 0) {
    return refuse(kInvalidConfiguration, "a launch of " + std::to_string(blocks) + " blocks of " +
                                             std::to_string(threads) + " threads in clusters of " +
                                             std::to_string(cluster));
  }
  if (cluster > machine.device.cluster) {
    return refuse(kInvalidClusterSize, "a cluster of " + std::to_string(cluster) +
                                           " blocks on a device of capability " +
                                           std::to_string(machine.device.capability));
  }
  if (dynamic_shared_bytes > machine.shared_limit) {
    return refuse(kInvalidValue, std::to_string(dynamic_shared_bytes) + " bytes of dynamic shared memory of " +
                                     std::to_string(machine.shared_limit));
  }
  return 0;
}

// Of the block that runs: `bytes` more of static shared memory.
void count_static(Block* block, std::size_t bytes) {
  block->static_bytes += (bytes + 15) / 16 * 16;
  if (block->static_bytes + machine.dynamic_bytes <= machine.shared_limit || machine.over_limit) return;
  machine.over_limit = true;
  complain(machine.report.limits, std::to_string(block->static_bytes) + " bytes of static and " +
                                      std::to_string(machine.dynamic_bytes) + " of dynamic shared memory: more than " +
                                      std::to_string(machine.shared_limit));
}

}  // namespace

int launch(const void* kernel, unsigned blocks, unsigned threads, unsigned cluster, std::size_t dynamic_shared_bytes,
           const std::function<void()>& body) {
  ++machine.report.launches;
  ++machine.launch_id;
  machine.blocks = blocks;
  machine.threads = threads;
  machine.cluster_size = cluster;
  machine.dynamic_bytes = dynamic_shared_bytes;
  machine.body = &body;
  machine.random.seed(machine.options.seed +
                      machine.launch_id * 0x9e3779b97f4a7c15ULL * (machine.options.order != Order::kInOrder));
  machine.published.clear();
  machine.sites.clear();
  machine.queue.clear();
  machine.bag.clear();
  machine.heap = {};
  machine.over_limit = false;
  machine.shared_limit =
      machine.allowed.count(kernel) != 0 ? machine.device.shared_bytes_most : machine.device.shared_bytes;
  if (const int error = check_launch(blocks, threads, cluster, dynamic_shared_bytes); error != 0) return error;

  unsigned clusters = blocks / cluster;
  std::vector<unsigned> order(clusters);
  for (unsigned i = 0; i < clusters; ++i) order[i] = i;
  if (machine.options.order != Order::kInOrder) std::shuffle(order.begin(), order.end(), machine.random);
  if (const unsigned wanted = (machine.options.sampled_blocks + cluster - 1) / cluster; wanted != 0) {
    const unsigned all = clusters;
    clusters = std::min(wanted, all);
    for (unsigned i = 0; i < clusters; ++i) order[i] = order[std::uint64_t{i} * all / clusters];
  }
  if (machine.options.sectors)
    machine.report.traffic.push_back({blocks, threads, cluster, dynamic_shared_bytes, clusters * cluster, {}});

  const unsigned slots = std::min(clusters, std::max(1U, machine.options.resident_blocks / cluster));
  const std::size_t per_slot = std::size_t{threads} * cluster;
  while (machine.stacks.size() < slots * per_slot) {
    machine.stacks.push_back(std::unique_ptr<unsigned char[]>(new unsigned char[kStackBytes]));
  }
  std::vector<std::vector<Fiber>> fibers(slots);
  std::vector<std::unique_ptr<Cluster>> resident(slots);
  unsigned next = 0;

  const auto start = [&](unsigned slot) {
    const unsigned id = order[next++];
    auto group = std::make_unique<Cluster>();
    group->live = threads * cluster;
    fibers[slot] = std::vector<Fiber>(per_slot);
    for (unsigned rank = 0; rank < cluster; ++rank) {
      auto block = std::make_unique<Block>();
      block->id = id * cluster + rank;
      block->rank = rank;
      block->cluster = group.get();
      block->live = threads;
      block->warps.resize((threads + kLanes - 1) / kLanes);
      for (Warp& warp : block->warps) warp.priority = static_cast<std::uint32_t>(machine.random());
      for (unsigned thread = 0; thread < threads; ++thread) {
        const std::size_t at = std::size_t{rank} * threads + thread;
        Fiber& fiber = fibers[slot][at];
        fiber.stack = machine.stacks[slot * per_slot + at].get();
        fiber.block = block.get();
        fiber.thread = thread;
        fiber.lane = thread % kLanes;
        fiber.warp = &block->warps[thread / kLanes];
        fiber.warp->clocks[fiber.lane][fiber.lane] = 1;
        block->fibers.push_back(&fiber);
        prepare(&fiber);
        make_ready(&fiber);
      }
      group->blocks.push_back(std::move(block));
    }
    resident[slot] = std::move(group);
  };

  for (unsigned slot = 0; slot < slots; ++slot) start(slot);
  while (Fiber* fiber = take_ready()) {
    Cluster* group = fiber->block->cluster;
    enter(fiber);
    if (machine.failure) break;
    if (group->live != 0) continue;
    for (unsigned slot = 0; slot < slots; ++slot) {
      if (resident[slot].get() != group) continue;
      resident[slot].reset();
      if (next < clusters) start(slot);
      break;
    }
  }
  machine.body = nullptr;
  if (machine.failure) std::rethrow_exception(std::exchange(machine.failure, nullptr));
  for (const auto& group : resident) {
    if (!group) continue;
    for (const auto& block : group->blocks) {
      if (block->live == 0) continue;
      complain(machine.report.deadlocks, std::to_string(block->live) + " threads of block " +
                                             std::to_string(block->id) +
                                             " wait at a barrier or shuffle that others never reach");
    }
  }
  return machine.over_limit ? kInvalidValue : 0;
}

unsigned thread_in_block() { return machine.self->thread; }
unsigned threads_per_block() { return machine.threads; }
unsigned block_in_grid() { return machine.self->block->id; }
unsigned blocks_in_grid() { return machine.blocks; }
unsigned block_in_cluster() { return machine.self->block->rank; }
unsigned blocks_per_cluster() { return machine.cluster_size; }

void block_barrier(const std::source_location& where) {
  Fiber* fiber = machine.self;
  Block* block = fiber->block;
  if (block->waiting != 0 && block->barrier_line != where.line()) {
    complain(machine.report.divergences, "threads of block " + std::to_string(block->id) +
                                             " are at different barriers, lines " +
                                             std::to_string(block->barrier_line) + " and " +
                                             std::to_string(where.line()) + " of " + where.file_name());
  }
  block->barrier_line = where.line();
  ++block->waiting;
  fiber->at_barrier = true;
  count_meeting(fiber);
  release_block(block);
  leave();
}

void cluster_barrier(const std::source_location& where) {
  Fiber* fiber = machine.self;
  Cluster* cluster = fiber->block->cluster;
  if (cluster->waiting != 0 && cluster->barrier_line != where.line()) {
    complain(machine.report.divergences, "threads of one cluster are at different barriers, lines " +
                                             std::to_string(cluster->barrier_line) + " and " +
                                             std::to_string(where.line()));
  }
  cluster->barrier_line = where.line();
  ++cluster->waiting;
  fiber->at_cluster_barrier = true;
  count_meeting(fiber);
  release_cluster(cluster);
  leave();
}

void fence() {
  preempt();
  Fiber* fiber = machine.self;
  if (fiber->seen) {
    if (!fiber->known) {
      fiber->known = std::make_unique<Knowledge>();
      fiber->block->with_own_knowledge.push_back(fiber);
    }
    add_knowledge(*fiber->known, *fiber->seen);
    fiber->seen.reset();
  }
  auto fenced = std::make_unique<Knowledge>(fiber->block->known);
  if (fiber->known) add_knowledge(*fenced, *fiber->known);
  (*fenced)[fiber->block->id].push_back(
      {fiber->block->epoch, fiber->thread / kLanes, fiber->warp->clocks[fiber->lane]});
  fiber->fenced = std::move(fenced);
  // What follows in this thread is not covered by the fence.
  ++fiber->warp->clocks[fiber->lane][fiber->lane];
}

unsigned atomic_increment(unsigned* counter, const std::source_location& where) {
  preempt();
  Fiber* fiber = machine.self;
  Buffer* buffer = find_buffer(reinterpret_cast<unsigned char*>(counter));
  if (buffer == nullptr || buffer->access == Access::kReadOnly) {
    complain(machine.report.bounds, "an atomic outside the registered buffers");
    return 0;
  }
  if (machine.options.sectors)
    add_to_request(reinterpret_cast<std::uintptr_t>(counter), sizeof *counter, RequestKind::kAtomic, where);
  if (buffer->access == Access::kUntracked) return (*counter)++;
  // Atomics do not race with each other; with plain accesses they do.
  Cell& cell =
      buffer
          ->cells[static_cast<std::size_t>(reinterpret_cast<unsigned char*>(counter) - buffer->data) / buffer->granule];
  if (!cell.initialized) complain(machine.report.uninitialized, "an atomic on " + buffer->name + " before any write");
  if (!ordered(cell.write))
    complain(machine.report.races, "an atomic on " + buffer->name + " not ordered after a plain write");
  Knowledge& published = machine.published[counter];
  if (!fiber->seen) fiber->seen = std::make_unique<Knowledge>();
  add_knowledge(*fiber->seen, published);
  if (fiber->fenced) add_knowledge(published, *fiber->fenced);
  // A later plain write (the reset) must be ordered after the latest atomic; the earlier ones precede it by coherence.
  cell.read = stamp_now();
  return (*counter)++;
}

void warp_exchange(unsigned mask, void* value, std::size_t bytes, unsigned source, bool orders_memory,
                   const std::source_location& where) {
  Fiber* fiber = machine.self;
  Warp& warp = *fiber->warp;
  if (bytes > kPayloadBytes) std::abort();
  count_meeting(fiber);
  std::memcpy(warp.in[fiber->lane].data(), value, bytes);
  warp.masks[fiber->lane] = mask;
  warp.lines[fiber->lane] = where.line();
  warp.arrived |= 1U << fiber->lane;
  if ((mask >> fiber->lane & 1U) == 0 || (mask >> (source % kLanes) & 1U) == 0) {
    complain(machine.report.divergences, "a shuffle names a lane outside its mask, line " +
                                             std::to_string(where.line()) + " of " + where.file_name());
  }
  if ((warp.arrived & mask) != mask) {
    leave();
  } else {
    LaneClock joined{};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1U) == 0) continue;
      if (warp.masks[lane] != mask || warp.lines[lane] != where.line()) {
        complain(machine.report.divergences, "lanes of one warp meet at different shuffles or masks, lines " +
                                                 std::to_string(warp.lines[lane]) + " and " +
                                                 std::to_string(where.line()) + " of " + where.file_name());
      }
      warp.out[lane] = warp.in[lane];
      for (unsigned other = 0; other < kLanes; ++other)
        joined[other] = std::max(joined[other], warp.clocks[lane][other]);
    }
    warp.arrived &= ~mask;
    Fiber* const first = fiber - fiber->lane;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1U) == 0) continue;
      if (orders_memory) {
        warp.clocks[lane] = joined;
        ++warp.clocks[lane][lane];
      }
      if (lane != fiber->lane) make_ready(first + lane);
    }
    // Knowledge of other blocks travels with a barrier too.
    for (unsigned lane = 0; lane < kLanes && orders_memory; ++lane) {
      if ((mask >> lane & 1U) == 0 || !first[lane].known) continue;
      for (unsigned other = 0; other < kLanes; ++other) {
        if ((mask >> other & 1U) == 0 || other == lane) continue;
        if (!first[other].known) {
          first[other].known = std::make_unique<Knowledge>();
          fiber->block->with_own_knowledge.push_back(first + other);
        }
        add_knowledge(*first[other].known, *first[lane].known);
      }
      break;
    }
  }
  std::memcpy(value, warp.out[source % kLanes].data(), bytes);
}

bool global_access(const void* pointer, std::size_t bytes, std::size_t alignment, Traffic traffic,
                   const std::source_location& where) {
  const bool write = traffic == Traffic::kStore;
  const auto* address = static_cast<const unsigned char*>(pointer);
  Buffer* buffer = find_buffer(address);
  if (buffer == nullptr || address + bytes > buffer->data + buffer->bytes ||
      (write && buffer->access == Access::kReadOnly)) {
    std::string message = std::string(write ? "write" : "read") + " of " + std::to_string(bytes) + " bytes by " +
                          who(machine.self->block->id, machine.self->thread);
    message += buffer == nullptr ? " outside every buffer"
                                 : " at byte " + std::to_string(address - buffer->data) + " of " + buffer->name +
                                       " with " + std::to_string(buffer->bytes);
    complain(machine.report.bounds, message);
    return false;
  }
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
    complain(machine.report.bounds, "misaligned access of " + std::to_string(alignment) + " bytes in " + buffer->name);
    return false;
  }
  if (machine.options.sectors) {
    add_to_request(reinterpret_cast<std::uintptr_t>(address), bytes,
                   write                             ? RequestKind::kStore
                   : traffic == Traffic::kLoadPastL1 ? RequestKind::kLoadPastL1
                                                     : RequestKind::kLoad,
                   where);
  }
  if (buffer->cells.empty()) return true;
  preempt_sometimes();
  const std::size_t offset = static_cast<std::size_t>(address - buffer->data);
  for (std::size_t at = offset / buffer->granule; at * buffer->granule < offset + bytes; ++at) {
    track(buffer->cells[at], write, true, "global", buffer->name, at);
  }
  return true;
}

SharedStorage* shared_storage(const void* site, std::size_t count, std::size_t element_bytes, const char* name) {
  std::unique_ptr<SharedStorage>& storage = machine.self->block->shared[site];
  if (!storage) {
    count_static(machine.self->block, count * element_bytes);
    storage = std::make_unique<SharedStorage>();
    storage->bytes.reset(new unsigned char[count * element_bytes]);
    std::memset(storage->bytes.get(), 0xa5, count * element_bytes);
    storage->cells.resize(count);
    storage->element_bytes = element_bytes;
    storage->site = site;
    storage->name = name;
    storage->owner = machine.self->block;
  }
  return storage.get();
}

SharedStorage* dynamic_shared_storage(std::size_t element_bytes) {
  std::unique_ptr<SharedStorage>& storage = machine.self->block->dynamic;
  if (!storage) {
    storage = std::make_unique<SharedStorage>();
    storage->bytes.reset(new unsigned char[machine.dynamic_bytes + 1]);
    std::memset(storage->bytes.get(), 0xa5, machine.dynamic_bytes);
    storage->cells.resize(machine.dynamic_bytes / element_bytes);
    storage->element_bytes = element_bytes;
    storage->name = "dynamic";
    storage->owner = machine.self->block;
  }
  return storage.get();
}

SharedStorage* remote_storage(SharedStorage* local, unsigned rank) {
  Cluster* cluster = machine.self->block->cluster;
  if (rank >= cluster->blocks.size()) {
    complain(machine.report.bounds,
             "block " + std::to_string(rank) + " of a cluster of " + std::to_string(cluster->blocks.size()));
    return local;
  }
  Block* block = cluster->blocks[rank].get();
  if (block->live == 0) complain(machine.report.bounds, "shared memory of a block that has ended");
  if (local->site == nullptr) return block->dynamic ? block->dynamic.get() : local;
  std::unique_ptr<SharedStorage>& storage = block->shared[local->site];
  if (!storage) {
    storage = std::make_unique<SharedStorage>();
    const std::size_t count = local->cells.size();
    count_static(block, count * local->element_bytes);
    storage->bytes.reset(new unsigned char[count * local->element_bytes]);
    std::memset(storage->bytes.get(), 0xa5, count * local->element_bytes);
    storage->cells.resize(count);
    storage->element_bytes = local->element_bytes;
    storage->site = local->site;
    storage->name = local->name;
    storage->owner = block;
  }
  return storage.get();
}

void* shared_access(SharedStorage* storage, std::size_t index, bool write) {
  return shared_vector_access(storage, index, 1, write);
}

void* shared_vector_access(SharedStorage* storage, std::size_t index, std::size_t count, bool write) {
  if (index + count > storage->cells.size()) {
    complain(machine.report.bounds, std::string("shared ") + storage->name + "[" + std::to_string(index + count - 1) +
                                        "] of " + std::to_string(storage->cells.size()) + " by " +
                                        who(machine.self->block->id, machine.self->thread));
    return nullptr;
  }
  if (index % count != 0) {
    complain(machine.report.bounds, std::string("misaligned vector of ") + std::to_string(count) +
                                        " elements at shared " + storage->name + "[" + std::to_string(index) + "]");
    return nullptr;
  }
  preempt_sometimes();
  if (storage->owner->live == 0) complain(machine.report.bounds, "shared memory of a block that has ended");
  for (std::size_t i = index; i < index + count; ++i) track(storage->cells[i], write, true, "shared", storage->name, i);
  return storage->bytes.get() + index * storage->element_bytes;
}

}  // namespace tensorlint::kernels::emulator
