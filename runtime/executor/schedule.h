#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/types/ids.h"
#include "runtime/device/table.h"
#include "runtime/executor/memory_plan.h"

namespace tensorlint::runtime {

struct PlanStep;
struct PlannedCopy;

/// What is called, in this order: by the host or in a stream of the device.
struct Command {
  enum class Kind : std::uint8_t {
    kCopyIn,   ///< of `value`
    kPrepare,  ///< the host prepares `operand` of the step's kernel, and copies it in
    kKernel,
    kCopyOut,   ///< of `value`
    kReport,    ///< of labels, copied out
    kGradient,  ///< of a loss, copied out
    kView,      ///< nothing is called: `value` is what its operand is on the device
    kHost,      ///< the step's node in the interpreter
  };
  /// A place in Schedule::lifetimes and the offsets of its memory.
  using Slot = std::uint32_t;
  static constexpr Slot kNoSlot = UINT32_MAX;
  using Event = std::uint32_t;

  Kind kind = Kind::kHost;
  std::size_t device = 0;
  std::size_t step = 0;  ///< of the plan; of copies of outputs and of reports at the end: the one that made them
  bool is_output = false;
  ValueId value = ValueId::kAbsent;
  std::size_t operand = 0;
  std::vector<Slot> operands;  ///< kKernel: by operand; kNoSlot: not given
  std::vector<Slot> results;   ///< kKernel: by result
  Slot slot = kNoSlot;         ///< what is copied
  Slot report = kNoSlot;       ///< kKernel: of labels
  Slot gradient = kNoSlot;     ///< kKernel: of a loss

  std::vector<Slot> begins, ends;  ///< before the call, and after it
  std::vector<Event> waits;        ///< its stream waits for them before it
  /// The host waits for them, before the call: events of devices.
  std::vector<std::pair<std::size_t, Event>> host_waits;
  std::optional<Event> record;  ///< after it, in its stream
};

std::optional<tensorlint_stream> stream_of(Command::Kind kind);

/// The steps of a plan as calls: which memory they use, and with as few events as order their work.
///
/// An event is recorded only after work that other work waits for, and that waits only where nothing else orders the
/// two: neither its stream, nor what it waits for, nor that the host had waited before the call.
struct Schedule {
  std::vector<Command> commands;
  std::vector<MemoryLifetime> lifetimes;  ///< by slot, in positions of `commands`
  std::vector<std::uint64_t> offsets;     ///< by slot, in the block of its device
  std::vector<MemoryPlan> memory;         ///< by device, without offsets
  std::uint32_t events = 0;               ///< that are in use at one time
};

/// `pairs_left`: see plan_memory.
Schedule make_schedule(std::span<const PlanStep> steps, std::span<const PlannedCopy> last_copies, std::size_t devices,
                       std::size_t& pairs_left);

}  // namespace tensorlint::runtime
