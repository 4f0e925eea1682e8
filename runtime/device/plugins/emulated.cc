// libtensorlint_emulated.so: the kernels under their emulator, as a device. It is a test of the code that drives
// devices, not a stand-in for one: its memory is the program's own, but nobody can reach that outside of copies and
// launches (PROT_NONE), values lie between red zones and end when the program says so, a value belongs to one device,
// what is read was written before, what the emulator complains about is an error, and every call can be made to fail.
//
// Work is done only when the host waits, and then in an order that is random within what events leave open: where an
// event is missing, some seed shows a read of what was not written yet, or memory used again too early.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/workspace.h"
#include "kernels/emulator/simt.h"
#include "runtime/device/plugins/plugin.h"

namespace tensorlint::plugins {
namespace {

constexpr int kDevices = 2;
/// Drivers take about as much, too, before the host has to wait.
constexpr std::size_t kMostQueued = 1024;
constexpr unsigned char kRed = 0xa7;
constexpr const char* kOutOfMemory = "out of memory";
constexpr std::size_t kAlignment = 16;  // of the widest access of a kernel

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// Pages between two that are never reachable. The data ends at their end, but for its alignment; the rest is red.
struct Pages {
  unsigned char* mapping = nullptr;
  std::size_t mapped = 0;  ///< with the pages around it
  unsigned char* first = nullptr;
  std::size_t pages = 0;  ///< bytes of the pages from `first` on
  unsigned char* data = nullptr;
  std::size_t bytes = 0;

  bool set_accessible(bool on) const { return ::mprotect(first, pages, on ? PROT_READ | PROT_WRITE : PROT_NONE) == 0; }
  /// While it is reachable.
  bool is_intact() const {
    for (const unsigned char* at = first; at < first + pages; ++at) {
      if (at == data) at += bytes;
      if (at < first + pages && *at != kRed) return false;
    }
    return true;
  }
  void unmap() {
    if (mapping != nullptr) ::munmap(mapping, mapped);
    *this = {};
  }
};

/// Bytes that a value or queued work takes beside the account of the host, until it is gone.
class Held {
 public:
  Held(std::uint64_t& all, std::uint64_t bytes) : all_(all), bytes_(bytes) { all_ += bytes_; }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { all_ -= bytes_; }

 private:
  std::uint64_t& all_;
  std::uint64_t bytes_;
};

/// A part of a block for as long as it has a meaning: until it has ended and no work holds it. Its pages are its own,
/// so that none of its neighbours in the block is reached instead, and what follows it there does not find its content.
struct Value {
  Value() = default;
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  ~Value() { pages.unmap(); }

  Pages pages;
  std::unique_ptr<Held> held;
  const void* block = nullptr;
  std::uint64_t first = 0, last = 0;  ///< within the block
  bool is_written = false;
  bool has_work = false;                     ///< some was queued
  std::vector<std::weak_ptr<Value>> former;  ///< whose memory it uses again
};
using ValueReference = std::shared_ptr<Value>;

/// By where they begin, parts of a block that do not overlap, and what each is of. Empty ones are none.
template <typename Of>
class Ranges {
 public:
  /// Calls `visit` for what overlaps a range, until it returns false.
  template <typename Visit>
  void visit(std::uint64_t first, std::uint64_t last, const Visit& visit) {
    if (first >= last) return;
    auto at = parts_.upper_bound(first);
    if (at != parts_.begin() && std::prev(at)->second.last > first) --at;
    while (at != parts_.end() && at->first < last && visit(at->second.of)) ++at;
  }
  /// Takes the range away from all others.
  void put(std::uint64_t first, std::uint64_t last, Of of) {
    if (first >= last) return;
    remove(first, last);
    parts_.emplace(first, Part{last, std::move(of)});
  }
  void remove(std::uint64_t first, std::uint64_t last) {
    if (first >= last) return;
    auto at = parts_.upper_bound(first);
    if (at != parts_.begin() && std::prev(at)->second.last > first) --at;
    while (at != parts_.end() && at->first < last) {
      const std::uint64_t begin = at->first;
      Part part = std::move(at->second);
      at = parts_.erase(at);
      if (begin < first) parts_.emplace(begin, Part{first, part.of});
      if (last < part.last) {
        parts_.emplace(last, std::move(part));
        return;
      }
    }
  }
  void clear() { parts_.clear(); }

 private:
  struct Part {
    std::uint64_t last;
    Of of;
  };
  std::map<std::uint64_t, Part> parts_;
};

/// What is in a stream.
struct Work {
  enum class Kind : std::uint8_t { kRun, kRecord, kWait };
  Kind kind = Kind::kRun;
  std::uint64_t step = kTensorlintNoStep;
  std::vector<ValueReference> values;  ///< that it reads and writes
  std::function<int()> run;
  std::uint64_t recording = 0;  ///< of the event
};

class EmulatedDevice {
 public:
  PluginState state;

  static EmulatedDevice* open(int index, std::uint64_t memory_limit, std::string& error) {
    if (opens_until_failure_ > 0 && --opens_until_failure_ == 0) {
      error = "open: made to fail";
      return nullptr;
    }
    if (index >= kDevices) {
      error = "there are " + std::to_string(kDevices) + " emulated devices";
      return nullptr;
    }
    auto* const device = new EmulatedDevice;
    device->state.memory_limit = memory_limit;
    return device;
  }
  std::uint64_t shared_bytes() const { return kernels::emulator::device().shared_bytes_most; }
  ~EmulatedDevice() {
    for (auto& stream : streams_) stream.clear();
    for (auto& [address, block] : blocks_) ::munmap(const_cast<void*>(address), block.mapped);
    workspace_.unmap();
    library_workspace_.unmap();
  }

  // ---- for tests

  static void fail_open_at(std::uint64_t call) { opens_until_failure_ = call; }
  void fail_at(std::uint64_t call, bool late) {
    failing_ = call == 0 ? 0 : state.counts.calls + call;
    fails_late_ = late;
  }
  void skip_wait(std::uint64_t wait) { skipped_ = wait == 0 ? 0 : state.counts.waits + wait; }
  void hide_steps(bool hidden) { hides_steps_ = hidden; }
  void use_seed(std::uint64_t seed) {
    seed_ = seed;
    random_.seed(seed);
  }

  static bool is_of_earlier_work(int) { return false; }

  // ---- memory

  void* allocate(std::size_t bytes) {
    if (begin("allocate") != 0) return nullptr;
    tensorlint_device_counts& counts = state.counts;
    if (bytes > state.memory_limit || counts.live_bytes > state.memory_limit - bytes) {
      state.fail("a block of " + std::to_string(bytes) + " bytes exceeds the limit of " +
                 std::to_string(state.memory_limit) + " bytes of device memory");
      return nullptr;
    }
    // Addresses alone: values have pages of their own.
    const std::size_t mapped = round_up(bytes == 0 ? 1 : bytes, page_bytes());
    void* const mapping = bytes > SIZE_MAX / 2
                              ? MAP_FAILED
                              : ::mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return state.fail(kOutOfMemory), nullptr;
    blocks_[mapping] = {.bytes = bytes, .mapped = mapped, .live = {}, .ended = {}};
    ++counts.live_blocks;
    counts.live_bytes += bytes;
    counts.peak_bytes = counts.peak_bytes < counts.live_bytes ? counts.live_bytes : counts.peak_bytes;
    return mapping;
  }

  void release(void* address) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    for (const auto& [data, value] : values_)
      if (value->block == address) defect_ = "release: a value of the block has not ended";
    for (const auto& stream : streams_)
      for (const Work& work : stream)
        for (const ValueReference& value : work.values)
          if (value->block == address) defect_ = "release: work on a value of the block is under way";
    --state.counts.live_blocks;
    state.counts.live_bytes -= found->second.bytes;
    ::munmap(address, found->second.mapped);
    blocks_.erase(found);
  }

  void* begin_value(void* block, std::uint64_t offset, std::size_t bytes) {
    if (begin("begin_value") != 0) return nullptr;
    const auto found = blocks_.find(block);
    if (found == blocks_.end()) return state.fail("begin_value: the address is not a block of this device"), nullptr;
    if (bytes > found->second.bytes || offset > found->second.bytes - bytes || offset % kAlignment != 0)
      return state.fail("begin_value: the value lies outside of its block, or is not aligned"), nullptr;
    auto value = std::make_shared<Value>();
    value->block = block;
    value->first = offset;
    value->last = offset + bytes;
    Block& of = found->second;
    bool overlaps = false;
    of.live.visit(value->first, value->last, [&](const Nothing&) { return overlaps = true, false; });
    if (overlaps) return state.fail("begin_value: two values that live at one time overlap"), nullptr;
    of.ended.visit(value->first, value->last, [&](const std::weak_ptr<Value>& ended) {
      if (!ended.expired()) value->former.push_back(ended);
      return true;
    });
    if (drain_for(bytes) != 0 || !map(bytes, value->pages)) return nullptr;
    value->held = std::make_unique<Held>(held_bytes_, value->pages.pages);
    ++state.counts.live_values;
    of.live.put(value->first, value->last, {});
    unsigned char* const data = value->pages.data;
    values_.emplace(data, std::move(value));
    return data;
  }

  void end_value(void* address) {
    const auto found = values_.find(address);
    if (found == values_.end()) return;
    --state.counts.live_values;
    const Value& value = *found->second;
    if (const auto block = blocks_.find(value.block); block != blocks_.end()) {
      Block& of = block->second;
      of.live.remove(value.first, value.last);
      // Its work comes after that on the values before it, or fails: who waits for it waits for them.
      if (value.has_work) of.ended.put(value.first, value.last, found->second);
    }
    values_.erase(found);
  }

  // ---- work

  int copy_in(void* to, const void* from, std::size_t bytes) {
    if (const int failed = begin("copy_in", true); failed != 0) return failed;
    const ValueReference value = find("copy_in", to, bytes);
    if (value == nullptr) return 1;
    if (const int failed = drain_for(bytes); failed != 0) return failed;
    auto held = std::make_shared<Held>(held_bytes_, bytes);
    const auto* const first = static_cast<const unsigned char*>(from);
    return enqueue(kTensorlintCopiesIn, "copy_in", {value},
                   [this, value = value.get(), held = std::move(held),
                    data = std::make_shared<const std::vector<unsigned char>>(first, first + bytes)] {
                     ++state.counts.copies_in;
                     state.counts.bytes_in += data->size();
                     return write("copy_in", *value, [&] {
                       if (!data->empty()) std::memcpy(value->pages.data, data->data(), data->size());
                       return data->size();
                     });
                   });
  }

  int copy_out(void* to, const void* from, std::size_t bytes) {
    if (const int failed = begin("copy_out", true); failed != 0) return failed;
    const ValueReference value = find("copy_out", from, bytes);
    if (value == nullptr) return 1;
    // What a host finds that does not wait.
    if (bytes > 0) std::memset(to, kRed, bytes);
    return enqueue(kTensorlintCopiesOut, "copy_out", {value},
                   [this, value = value.get(), to, bytes, at = state.counts.calls] {
                     if (!value->is_written) return state.fail("copy_out: the value was never written");
                     ++state.counts.copies_out;
                     state.counts.bytes_out += bytes;
                     if (!value->pages.set_accessible(true)) return state.fail(kOutOfMemory);
                     if (bytes > 0 && at > abandoned_before_) std::memcpy(to, value->pages.data, bytes);
                     value->pages.set_accessible(false);
                     return 0;
                   });
  }

  template <typename Launch>
  int launch(const KernelOperands& given, Launch launch) {
    if (const int failed = begin("launch", true); failed != 0) return failed;
    const std::vector<KernelOperand> operands(given.begin(), given.end());
    std::vector<ValueReference> values;
    for (const KernelOperand& operand : operands) {
      values.push_back(find("launch", operand.address, 0));
      if (values.back() == nullptr) return 1;
    }
    std::map<const Value*, std::size_t> given_as;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto [before, is_new] = given_as.emplace(values[i].get(), i);
      if (!is_new && (operands[i].is_output || operands[before->second].is_output))
        return state.fail("launch: an output is an operand, too");
    }
    std::vector<Value*> reached;
    for (const ValueReference& value : values) reached.push_back(value.get());
    return enqueue(kTensorlintKernels, "launch", std::move(values),
                   [this, operands, reached = std::move(reached), launch = std::move(launch)] {
                     return run(operands, reached, launch);
                   });
  }

  std::size_t workspace_bytes() const { return workspace_.bytes; }
  /// Of the launch under way. Kept for the next one; its tickets are zero between launches, and the rest means nothing.
  void* workspace(std::size_t bytes) {
    leave_workspace();
    if (bytes > workspace_.bytes) {
      workspace_.unmap();
      if (!map(bytes, workspace_)) return nullptr;
      if (!workspace_.set_accessible(true)) return state.fail(kOutOfMemory), nullptr;
      std::memset(workspace_.data, 0, ticket_bytes());
    }
    if (!workspace_.set_accessible(true)) return state.fail(kOutOfMemory), nullptr;
    kernels::emulator::register_buffer(workspace_.data, workspace_.bytes, 4, kernels::emulator::Access::kWriteFirst,
                                       "workspace");
    kernels::emulator::mark_written(workspace_.data, ticket_bytes());
    is_workspace_reached_ = true;
    return workspace_.data;
  }

  /// Of the launch under way, and red at its begin.
  void* library_workspace(std::size_t bytes) {
    library_workspace_.unmap();
    if (!map(bytes, library_workspace_)) return nullptr;
    if (!library_workspace_.set_accessible(true)) return state.fail(kOutOfMemory), nullptr;
    return library_workspace_.data;
  }

  /// A library that computes on the host, for tests: the real one would be given memory that no GPU reaches.
  int load_cublaslt(const char* file, bool uses_tf32) {
    if (const int failed = begin("load_cublaslt"); failed != 0) return failed;
    return state.load_cublaslt(file, uses_tf32, "tensorlint_computes_on_the_host");
  }

  // ---- order

  int make_events(std::uint32_t count) {
    if (const int failed = begin("make_events"); failed != 0) return failed;
    if (count > recorded_.size()) recorded_.resize(count);
    return 0;
  }

  int record(tensorlint_stream stream, std::uint32_t event) {
    if (const int failed = begin("record"); failed != 0) return failed;
    if (event >= recorded_.size()) return state.fail("record: there is no such event");
    recorded_[event] = ++recordings_;
    pending_.insert(recordings_);
    streams_[stream].push_back(
        {.kind = Work::Kind::kRecord, .step = state.step, .values = {}, .run = {}, .recording = recordings_});
    return 0;
  }

  int wait(tensorlint_stream stream, std::uint32_t event) {
    if (const int failed = begin("wait"); failed != 0) return failed;
    if (++state.counts.waits == skipped_) return 0;
    if (event >= recorded_.size() || recorded_[event] == 0) return state.fail("wait: the event was never recorded");
    streams_[stream].push_back(
        {.kind = Work::Kind::kWait, .step = state.step, .values = {}, .run = {}, .recording = recorded_[event]});
    return 0;
  }

  int host_wait(std::uint32_t event) {
    if (const int failed = begin("host_wait"); failed != 0) return failed;
    if (++state.counts.waits == skipped_) {
      abandoned_before_ = state.counts.calls;
      return 0;
    }
    if (event >= recorded_.size() || recorded_[event] == 0)
      return state.fail("host_wait: the event was never recorded");
    return work_until([&] { return !pending_.contains(recorded_[event]); });
  }

  int synchronize() {
    if (const int failed = begin("synchronize"); failed != 0) return failed;
    const int failed = work_until([&] {
      return std::all_of(streams_.begin(), streams_.end(), [](const auto& stream) { return stream.empty(); });
    });
    for (auto& [address, block] : blocks_) block.ended.clear();  // no work is left, whatever happened
    return failed;
  }

 private:
  struct Nothing {};
  struct Block {
    std::size_t bytes = 0, mapped = 0;
    Ranges<Nothing> live;
    Ranges<std::weak_ptr<Value>> ended;  ///< work on them may be under way
  };

  static std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

  /// Counts the call; fails where it is to. A call without work has nothing that could fail late.
  int begin(const char* call, bool has_work = false) {
    state.failed_step = kTensorlintNoStep;
    fails_now_ = ++state.counts.calls == failing_;
    if (fails_now_) failing_ = 0;
    if (!defect_.empty()) return state.fail(std::exchange(defect_, {}));
    return fails_now_ && !(fails_late_ && has_work) ? state.fail(std::string(call) + ": made to fail") : 0;
  }

  bool map(std::size_t bytes, Pages& pages) {
    const std::size_t page = page_bytes();
    if (bytes > SIZE_MAX / 2) return state.fail(kOutOfMemory), false;
    pages.pages = round_up(bytes + kAlignment, page);
    pages.mapped = pages.pages + 2 * page;
    void* const mapping = ::mmap(nullptr, pages.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return state.fail(kOutOfMemory), false;
    pages.mapping = static_cast<unsigned char*>(mapping);
    pages.first = pages.mapping + page;
    pages.bytes = bytes;
    pages.data = pages.first + pages.pages - round_up(bytes, kAlignment);
    if (bytes == 0) pages.data -= kAlignment;
    if (!pages.set_accessible(true)) {
      pages.unmap();
      return state.fail(kOutOfMemory), false;
    }
    std::memset(pages.first, kRed, pages.pages);
    pages.set_accessible(false);
    return true;
  }

  /// Null, with an error, where the address does not begin a value of this device that has so many bytes.
  ValueReference find(const char* call, const void* address, std::size_t bytes) {
    const auto found = values_.find(address);
    if (found == values_.end()) {
      state.fail(std::string(call) + ": the address is not a value of this device, or the value has ended");
      return nullptr;
    }
    if (bytes <= found->second->pages.bytes) return found->second;
    state.fail(std::string(call) + ": more bytes than the value has");
    return nullptr;
  }

  int enqueue(tensorlint_stream stream, const char* call, std::vector<ValueReference> values,
              std::function<int()> run) {
    for (const ValueReference& value : values) value->has_work = true;
    if (fails_now_) run = [this, call] { return state.fail(std::string(call) + ": made to fail late"); };
    streams_[stream].push_back({.kind = Work::Kind::kRun,
                                .step = state.step,
                                .values = std::move(values),
                                .run = std::move(run),
                                .recording = 0});
    // Each holds its request, and pages of values that have ended.
    return queued() <= kMostQueued ? 0 : work_until([&] { return queued() <= kMostQueued / 2; });
  }

  /// Values of one place have pages of their own, and those that have ended keep them while work is queued: where all
  /// of it is more than the limit of the device, the work is done first.
  int drain_for(std::size_t bytes) {
    return work_until([&] { return queued() == 0 || held_bytes_ + bytes <= state.memory_limit; });
  }

  std::size_t queued() const {
    std::size_t works = 0;
    for (const std::deque<Work>& stream : streams_) works += stream.size();
    return works;
  }

  bool is_ready(const Work& work) const { return work.kind != Work::Kind::kWait || !pending_.contains(work.recording); }

  /// Does work until `is_done`, and no more. One stream is ahead for a while, then another one: the longer, the more
  /// that ought to wait has not happened.
  template <typename Done>
  int work_until(const Done& is_done) {
    while (!is_done()) {
      if (random_() % 8 == 0) ahead_ = random_() % streams_.size();
      std::size_t chosen = streams_.size();
      for (std::size_t i = 0; i < streams_.size() && chosen == streams_.size(); ++i) {
        const std::size_t stream = (ahead_ + i) % streams_.size();
        if (!streams_[stream].empty() && is_ready(streams_[stream].front())) chosen = stream;
      }
      int failed = 0;
      if (chosen == streams_.size()) {
        failed = state.fail("deadlock: no queued work leads to the awaited event");
      } else {
        const Work work = std::move(streams_[chosen].front());
        streams_[chosen].pop_front();
        if (work.kind == Work::Kind::kRecord) pending_.erase(work.recording);
        if (work.kind == Work::Kind::kRun) failed = run(work);
        if (failed != 0) state.failed_step = hides_steps_ ? kTensorlintUnknownStep : work.step;
      }
      if (failed == 0) continue;
      state.error += " (work in the order of seed " + std::to_string(seed_) + ")";
      for (auto& stream : streams_) stream.clear();
      pending_.clear();
      return failed;
    }
    return 0;
  }

  int run(const Work& work) {
    for (const ValueReference& value : work.values) {
      for (const std::weak_ptr<Value>& former : value->former)
        if (!former.expired())
          return state.fail("memory of a value is used again while work on that is under way: an event is missing");
      value->former.clear();
    }
    return work.run();
  }

  /// `write` gives how many bytes it wrote.
  template <typename Write>
  int write(const char* call, Value& value, const Write& write) {
    if (!value.pages.set_accessible(true)) return state.fail(kOutOfMemory);
    value.is_written |= write() == value.pages.bytes;
    const int failed = value.pages.is_intact() ? 0 : state.fail(std::string(call) + ": the red zone was written");
    value.pages.set_accessible(false);
    return failed;
  }

  /// `values`: of the operands.
  template <typename Launch>
  int run(const std::vector<KernelOperand>& operands, const std::vector<Value*>& values, const Launch& launch) {
    std::set<Value*> reached;
    int failed = 0;
    for (std::size_t i = 0; i < operands.size() && failed == 0; ++i) failed = reach(operands[i], *values[i], reached);
    kernels::emulator::clear_report();
    if (failed == 0) failed = launch(*this, nullptr);
    const kernels::emulator::Report& report = kernels::emulator::report();
    if (failed == 0 && !report.clean()) failed = state.fail("the emulator complains: " + report.first);
    leave_workspace();
    if (library_workspace_.mapping != nullptr) {
      if (failed == 0 && !library_workspace_.is_intact())
        failed = state.fail("a library wrote outside of its workspace");
      library_workspace_.unmap();
    }
    for (Value* const value : reached) {
      if (value->pages.bytes > 0) kernels::emulator::unregister_buffer(value->pages.data);
      if (failed == 0 && !value->pages.is_intact()) failed = state.fail("a kernel wrote outside of its operands");
      value->pages.set_accessible(false);
    }
    for (std::size_t i = 0; i < operands.size() && failed == 0; ++i) values[i]->is_written |= operands[i].is_output;
    return failed;
  }

  void leave_workspace() {
    if (!is_workspace_reached_) return;
    kernels::emulator::unregister_buffer(workspace_.data);
    workspace_.set_accessible(false);
    is_workspace_reached_ = false;
  }

  int reach(const KernelOperand& operand, Value& value, std::set<Value*>& reached) {
    if (!operand.is_output && !value.is_written) return state.fail("launch: an operand was never written");
    if (reached.contains(&value)) return 0;
    if (!value.pages.set_accessible(true)) return state.fail(kOutOfMemory);
    reached.insert(&value);
    if (value.pages.bytes > 0)
      kernels::emulator::register_buffer(
          value.pages.data, value.pages.bytes, operand.element_bytes,
          operand.is_output ? kernels::emulator::Access::kWriteFirst : kernels::emulator::Access::kReadOnly,
          operand.is_output ? "a result" : "an operand");
    return 0;
  }

  std::size_t ticket_bytes() const {
    return workspace_.bytes < kernels::kTicketBytes ? workspace_.bytes : kernels::kTicketBytes;
  }

  inline static std::uint64_t opens_until_failure_ = 0;

  std::uint64_t held_bytes_ = 0;
  std::map<const void*, Block> blocks_;
  std::map<const void*, ValueReference> values_;  ///< that have not ended, by their data
  std::array<std::deque<Work>, 3> streams_;
  std::vector<std::uint64_t> recorded_;  ///< by event: its last recording; 0: none
  std::uint64_t recordings_ = 0;         ///< of all events: each is waited for by itself
  std::set<std::uint64_t> pending_;      ///< recordings that have not occurred
  Pages workspace_, library_workspace_;
  bool is_workspace_reached_ = false;
  std::string defect_;  ///< of a call that cannot fail: the next one does
  std::uint64_t seed_ = 1;
  std::mt19937_64 random_{seed_};
  std::size_t ahead_ = 0;      ///< a stream
  std::uint64_t failing_ = 0;  ///< the number of a call
  bool fails_late_ = false, fails_now_ = false, hides_steps_ = false;
  std::uint64_t skipped_ = 0;  ///< the number of a wait
  std::uint64_t abandoned_before_ =
      0;  ///< the call up to which copies do not reach the host, which has perhaps given up `to`
};

}  // namespace
}  // namespace tensorlint::plugins

extern "C" __attribute__((visibility("default"))) const tensorlint_device_table_v1* tensorlint_device_v1() {
  using tensorlint::plugins::EmulatedDevice;
  using Table = tensorlint::plugins::PluginTable<EmulatedDevice>;
  static const tensorlint_device_table_v1 table = [] {
    tensorlint_device_table_v1 made = Table::table();
    made.fail_at = [](tensorlint_device* device, std::uint64_t call, bool late) {
      device == nullptr ? EmulatedDevice::fail_open_at(call) : Table::self(device)->fail_at(call, late);
    };
    made.skip_wait = [](tensorlint_device* device, std::uint64_t wait) { Table::self(device)->skip_wait(wait); };
    made.hide_steps = [](tensorlint_device* device, bool hidden) { Table::self(device)->hide_steps(hidden); };
    made.use_seed = [](tensorlint_device* device, std::uint64_t seed) { Table::self(device)->use_seed(seed); };
    return made;
  }();
  return &table;
}
