#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "base/allocations.h"
#include "base/file_bytes.h"

namespace tensorlint {

/// The work done for one input, and the memory that is kept for it: counted where they are done and taken, never timed,
/// so that the same input ends at the same point wherever it is checked. Stores of facts charge it, and each step of a
/// Walk (base/walk.h), which rules get instead of a model's lists; who uses them need not. Behind them stands the heap:
/// what no store counted is seen where it is allocated, in the thread that made the meter. Past its allowance facts are
/// unknown (Unknown::kBudget, dataflow::Gap::kBudget), walks end, and reports say that they are partial.
class Meter {
 public:
  /// Steps of some 10 ns. Networks take less than a tenth of them; of 6,800 training steps and single losses, in which
  /// every term is held against known losses, none takes more than a fifth. The rest is for bodies and calls that are
  /// followed many times.
  static constexpr std::uint64_t kStepsAtLeast = std::uint64_t{40} << 20, kStepsPerByte = 256;
  /// Of what SECURITY.md allows, the reader takes most.
  static constexpr std::uint64_t kMemoryAtLeast = std::uint64_t{24} << 20, kMemoryPerByte = 4;
  /// Allocations may take this part of the steps. Ordinary work takes a fifteenth of it: more are loops that charge too
  /// little, whose other work is then as much again.
  static constexpr std::uint64_t kHeapPart = 8;
  /// Of tables among the weights that are read, for their range or by a rule.
  static constexpr std::uint64_t kTablesAtLeast = std::uint64_t{16} << 20, kTablesPerByte = 4;
  /// A link of a page of `d/../` makes thousands of calls of the system, and each goes through all folders of its path:
  /// kBytesOfLookup of it cost about as much as the call itself.
  static constexpr std::uint32_t kMaxLookups = std::uint32_t{1} << 16, kBytesOfLookup = 64;

  /// Counts, and allows everything: of a program of our own user, not of a file.
  Meter() = default;
  /// Of an input of so many bytes that are not weights. `part`: its steps are this part of what the input may take.
  explicit Meter(std::uint64_t input_bytes, std::uint64_t part = 1)
      : steps_allowed_((kStepsAtLeast + kStepsPerByte * input_bytes) / part),
        memory_allowed_(kMemoryAtLeast + kMemoryPerByte * input_bytes),
        tables_allowed_(kTablesAtLeast + kTablesPerByte * input_bytes) {
    set_ends();
  }

  void charge(std::uint64_t steps) { steps_ += steps; }
  /// Takes account of memory, until it is released.
  void keep(std::uint64_t bytes) {
    memory_ += bytes;
    if (memory_ > most_memory_) most_memory_ = memory_;
  }
  void release(std::uint64_t bytes) { memory_ -= bytes; }

  /// Whether a table that begins there may be read: as many as there is room for, the first ones, and each time that
  /// one of these is asked for. A refused one is treated like one that is too large to scan.
  bool may_read(const void* table, std::uint64_t bytes) {
    const bool is_in_file = is_of_file(table);
    if (!tables_.contains(table)) {
      if (!(is_in_file ? take_blocks(table, bytes) : take(bytes))) return false;
      tables_.insert(table);
    }
    if (is_in_file) let_go_of_tables(bytes);
    return true;
  }

  /// The mapped file of which tables are pages, which has to outlive the meter; null: they are in memory.
  void read_tables_of(const FileBytes* file) { tables_file_ = file; }

  /// Whether one more component of a path that the input names may be looked up, by a path of so many bytes: so many in
  /// one run of a command, however often it begins anew.
  bool may_look_up(std::size_t path_bytes = 0) {
    const std::size_t lookups = 1 + path_bytes / kBytesOfLookup;
    if (lookups > kMaxLookups - lookups_) return false;
    lookups_ += static_cast<std::uint32_t>(lookups);
    return true;
  }

  /// No more is to be done: what is not proven by now stays unknown. Once true it stays so, until reports begin.
  bool is_spent() const {
    return steps_ >= steps_end_ || heap_steps() >= heap_steps_end_ || most_memory_ >= memory_end_ ||
           most_heap() >= memory_end_;
  }
  /// The part of its steps, or of the allocations, that has been taken.
  double share() const {
    const auto part = [](std::uint64_t taken, std::uint64_t allowed) {
      return static_cast<double>(taken) / static_cast<double>(allowed);
    };
    return std::max(part(steps_, steps_allowed_), part(heap_steps(), heap_steps_allowed()));
  }
  /// What was found may be reported although the search has ended: a quarter of the allowance is kept back until then.
  void begin_reports() {
    is_partial_ = is_partial();
    is_reporting_ = true;
    set_ends();
  }
  /// Something was left out.
  bool is_partial() const { return is_partial_ || is_spent(); }

  std::uint64_t steps() const { return steps_; }
  std::uint64_t steps_allowed() const { return steps_allowed_; }
  std::uint64_t most_memory() const { return most_memory_; }
  std::uint64_t memory_allowed() const { return memory_allowed_; }
  /// 0 in programs that do not count allocations.
  std::uint64_t heap_steps() const { return allocations.steps - heap_at_first_.steps; }
  std::uint64_t heap_steps_allowed() const { return steps_allowed_ / kHeapPart; }
  /// The most that was seen whenever somebody asked whether the meter is spent, which never becomes less.
  std::uint64_t most_heap() const {
    const std::int64_t heap = allocations.live - heap_at_first_.live;
    if (heap > most_heap_) most_heap_ = heap;
    return static_cast<std::uint64_t>(most_heap_);
  }

 private:
  bool is_of_file(const void* table) const {
    if (tables_file_ == nullptr) return false;
    const std::string_view bytes = tables_file_->bytes();
    const auto* const place = static_cast<const char*>(table);
    return !std::less<>()(place, bytes.data()) && std::less<>()(place, bytes.data() + bytes.size());
  }

  bool take(std::uint64_t table_bytes) {
    if (table_bytes > tables_allowed_ - table_bytes_) return false;
    table_bytes_ += table_bytes;
    return true;
  }

  /// What systems map of a file around a byte that is read, once for all tables in it: counted from the file's
  /// beginning, since where a file is mapped differs from run to run.
  bool take_blocks(const void* table, std::uint64_t bytes) {
    constexpr std::uint64_t kBlock = std::uint64_t{64} << 10;
    const auto offset = static_cast<std::uint64_t>(static_cast<const char*>(table) - tables_file_->bytes().data());
    const std::uint64_t begin = offset / kBlock, end = (offset + bytes + kBlock - 1) / kBlock;
    const std::uint64_t room = (tables_allowed_ - table_bytes_) / kBlock;
    std::uint64_t blocks = 0;
    for (std::uint64_t block = begin; block < end && blocks <= room; ++block)
      blocks += table_blocks_.contains(block) ? 0 : 1;
    if (blocks > room || !take(blocks * kBlock)) return false;
    for (std::uint64_t block = begin; block < end; ++block) table_blocks_.insert(block);
    return true;
  }

  /// What was read of them before is mapped anew where it is read again.
  void let_go_of_tables(std::uint64_t bytes) {
    constexpr std::uint64_t kKept = std::uint64_t{4} << 20;
    read_since_ += bytes;
    if (read_since_ < kKept) return;
    tables_file_->release(tables_file_->bytes());
    read_since_ = bytes;
  }

  /// Each step of a walk asks whether they are reached.
  void set_ends() {
    const auto end_of = [this](std::uint64_t allowed) { return is_reporting_ ? allowed : allowed - allowed / 4; };
    steps_end_ = end_of(steps_allowed_);
    heap_steps_end_ = end_of(heap_steps_allowed());
    memory_end_ = end_of(memory_allowed_);
  }

  std::uint64_t steps_ = 0, memory_ = 0, most_memory_ = 0;
  std::uint64_t steps_allowed_ = std::numeric_limits<std::uint64_t>::max(),
                memory_allowed_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t steps_end_ = std::numeric_limits<std::uint64_t>::max(),
                heap_steps_end_ = std::numeric_limits<std::uint64_t>::max(),
                memory_end_ = std::numeric_limits<std::uint64_t>::max();
  Allocations heap_at_first_ = allocations;
  mutable std::int64_t most_heap_ = 0;
  std::uint64_t table_bytes_ = 0, tables_allowed_ = std::numeric_limits<std::uint64_t>::max();
  const FileBytes* tables_file_ = nullptr;
  std::uint64_t read_since_ = 0;
  std::unordered_set<const void*> tables_;
  std::unordered_set<std::uint64_t> table_blocks_;
  std::uint32_t lookups_ = 0;
  bool is_reporting_ = false, is_partial_ = false;
};

/// What a store keeps of a meter's memory, as long as it lives.
class KeptMemory {
 public:
  explicit KeptMemory(Meter& meter) : meter_(meter) {}
  ~KeptMemory() { meter_.release(bytes_); }
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;
  void add(std::uint64_t bytes) {
    bytes_ += bytes;
    meter_.keep(bytes);
  }

 private:
  Meter& meter_;
  std::uint64_t bytes_ = 0;
};

}  // namespace tensorlint
