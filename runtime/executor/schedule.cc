#include "runtime/executor/schedule.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "runtime/executor/execution_plan.h"

namespace tensorlint::runtime {
namespace {

using Kind = Command::Kind;
using Slot = Command::Slot;

/// The host, and the streams of the devices.
constexpr std::size_t kHost = 0, kStreams = 3, kNever = static_cast<std::size_t>(-1);
static_assert(kTensorlintCopiesOut < kStreams);

std::size_t agent_of(const Command& command) {
  const auto stream = stream_of(command.kind);
  return stream ? 1 + kStreams * command.device + static_cast<std::size_t>(*stream) : kHost;
}

/// The calls that the steps take, and the values of the device that they use.
class CommandList {
 public:
  explicit CommandList(Schedule& schedule) : schedule_(schedule) {}

  void add(std::span<const PlanStep> steps, std::span<const PlannedCopy> last_copies) {
    std::size_t commands = steps.size() + last_copies.size();
    for (const PlanStep& step : steps) commands += step.copies.size() + step.call_copies.size();
    schedule_.commands.reserve(commands);
    for (std::size_t at = 0; at < steps.size(); ++at) {
      const PlanStep& step = steps[at];
      for (const PlannedCopy& copy : step.copies) add_copy(copy, at);
      if (step.call) {
        add_call(*step.call, step, at);
      } else {
        command(Kind::kHost, at);
      }
    }
    for (const PlannedCopy& copy : last_copies) {
      add_copy(copy, made_by_.at(copy.value));
      schedule_.commands.back().is_output = true;
    }
    // Last, so that no kernel is waited for before the next one is under way.
    for (const Last& last : last_) {
      Command& copy = command(last.kind, last.step);
      copy.slot = last.slot;
      copy.device = steps[last.step].call->device;
      use(last.slot);
    }
  }

 private:
  Command& command(Kind kind, std::size_t step) {
    Command& added = schedule_.commands.emplace_back();
    added.kind = kind;
    added.step = step;
    return added;
  }

  /// That begins with the last command.
  Slot slot(std::uint64_t bytes) {
    const std::size_t now = schedule_.commands.size() - 1;
    schedule_.lifetimes.push_back({bytes, now, now});
    return static_cast<Slot>(schedule_.lifetimes.size() - 1);
  }
  void use(Slot slot) { schedule_.lifetimes[slot].last = schedule_.commands.size() - 1; }

  void add_copy(const PlannedCopy& copy, std::size_t step) {
    Command& added = command(copy.to_device ? Kind::kCopyIn : Kind::kCopyOut, step);
    added.value = copy.value;
    added.device = copy.device;
    const std::pair key(copy.value, copy.device);
    if (copy.to_device) slots_[key] = slot(copy.bytes);
    added.slot = slots_.at(key);
    use(added.slot);
  }

  void add_view(const KernelCall& call, std::size_t at) {
    Command& view = command(Kind::kView, at);
    view.value = call.results[0].value;
    view.device = call.device;
    slots_[{view.value, call.device}] = slots_.at({call.operands[0].value, call.device});
    made_by_[view.value] = at;
  }

  void add_call(const KernelCall& call, const PlanStep& step, std::size_t at) {
    if (std::holds_alternative<ViewCall>(call.request)) return add_view(call, at);
    std::vector<Slot> operands(call.operands.size(), Command::kNoSlot);
    auto own = step.call_copies.begin();
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      if (!call.operands[i].is_given()) continue;
      if (!call.operands[i].is_prepared()) {
        operands[i] = slots_.at({call.operands[i].value, call.device});
        continue;
      }
      Command& prepared = command(Kind::kPrepare, at);
      prepared.value = call.operands[i].value;
      prepared.device = call.device;
      prepared.operand = i;
      prepared.slot = operands[i] = slot(own++->bytes);
    }
    Command& kernel = command(Kind::kKernel, at);
    kernel.device = call.device;
    for (std::size_t r = 0; r < call.results.size(); ++r) {
      kernel.results.push_back(slots_[{call.results[r].value, call.device}] = slot(step.result_bytes[r]));
      made_by_[call.results[r].value] = at;
    }
    if (const std::uint64_t bytes = report_bytes(call); bytes > 0) {
      kernel.report = slot(bytes);
      last_.push_back({Kind::kReport, kernel.report, at});
    }
    if (call.gradient) {
      kernel.gradient = slot(step.gradient_bytes);
      last_.push_back({Kind::kGradient, kernel.gradient, at});
    }
    for (const Slot operand : operands)
      if (operand != Command::kNoSlot) use(operand);
    kernel.operands = std::move(operands);
  }

  Schedule& schedule_;
  std::map<std::pair<ValueId, std::size_t>, Slot> slots_;  ///< by value and device
  std::map<ValueId, std::size_t> made_by_;                 ///< steps
  struct Last {
    Kind kind;
    Slot slot;
    std::size_t step;
  };
  std::vector<Last> last_;  ///< what is copied out after all steps
};

/// Decides on events. Each agent has a clock: up to which command of each other one all is known to be done.
class Ordering {
 public:
  Ordering(Schedule& schedule, std::span<const PlanStep> steps, std::size_t devices)
      : schedule_(schedule),
        steps_(steps),
        agents_(1 + kStreams * devices),
        now_(agents_, Clock(agents_)),
        clocks_(schedule.commands.size()),
        users_(schedule.lifetimes.size(), Clock(agents_)),
        listed_(schedule.lifetimes.size(), kNever),
        owners_(devices) {}

  void run() {
    for (std::size_t at = 0; at < schedule_.commands.size(); ++at) order(at);
    number_events();
  }

 private:
  /// Positions of commands, plus 1; 0: none.
  using Clock = std::vector<std::size_t>;

  static void join(Clock& clock, const Clock& other) {
    for (std::size_t agent = 0; agent < clock.size(); ++agent) clock[agent] = std::max(clock[agent], other[agent]);
  }

  void order(std::size_t at) {
    Command& command = schedule_.commands[at];
    const std::size_t agent = agent_of(command);
    // The host waits for what it reads, before it calls.
    Clock needed(agents_);
    if (command.kind == Kind::kHost) {
      for (const PlannedCopy& copy : steps_[command.step].copies) need_copied_out(copy.value, needed);
    } else if (command.kind == Kind::kPrepare || command.kind == Kind::kCopyIn) {
      need_copied_out(command.value, needed);
    }
    wait(needed, now_[kHost], at, true);
    if (agent != kHost) {
      // Calls come after all that the host has waited for.
      join(now_[agent], now_[kHost]);
      needed.assign(agents_, 0);
      for (const Slot slot : slots_of(command, at)) {
        if (schedule_.lifetimes[slot].first == at) {
          command.begins.push_back(slot);
          need_former_users(slot, command.device, needed);
        } else {
          need(writer(slot), needed);
        }
        if (schedule_.lifetimes[slot].last == at) command.ends.push_back(slot);
        users_[slot][agent] = at + 1;
      }
      wait(needed, now_[agent], at, false);
    }
    now_[agent][agent] = at + 1;
    clocks_[at] = now_[agent];
    if (command.kind == Kind::kCopyOut) copied_out_[command.value] = at;
  }

  /// Each once.
  std::vector<Slot> slots_of(const Command& command, std::size_t at) {
    std::vector<Slot> slots;
    const auto add = [&](Slot slot) {
      if (slot != Command::kNoSlot && std::exchange(listed_[slot], at) != at) slots.push_back(slot);
    };
    std::ranges::for_each(command.operands, add);
    std::ranges::for_each(command.results, add);
    add(command.slot);
    add(command.report);
    add(command.gradient);
    return slots;
  }

  std::size_t writer(Slot slot) const { return schedule_.lifetimes[slot].first; }

  void need(std::size_t at, Clock& needed) const {
    std::size_t& last = needed[agent_of(schedule_.commands[at])];
    last = std::max(last, at + 1);
  }
  void need_copied_out(ValueId value, Clock& needed) const {
    if (const auto found = copied_out_.find(value); found != copied_out_.end()) need(found->second, needed);
  }

  /// All that used the memory which a slot takes over.
  void need_former_users(Slot slot, std::size_t device, Clock& needed) {
    const std::uint64_t first = schedule_.offsets[slot], last = first + schedule_.lifetimes[slot].bytes;
    if (first == last) return;
    std::map<std::uint64_t, Owner>& owners = owners_[device];
    auto next = owners.upper_bound(first);
    if (next != owners.begin() && std::prev(next)->second.last > first) --next;
    while (next != owners.end() && next->first < last) {
      const auto [begin, owner] = *next;
      next = owners.erase(next);
      join(needed, users_[owner.slot]);
      // What it does not take over, somebody else may.
      if (begin < first) owners[begin] = {first, owner.slot};
      if (last < owner.last) owners[last] = owner;
    }
    owners[first] = {last, slot};
  }

  /// Of what is `needed` and not yet known, `clock` waits for what does not follow from the rest of it.
  void wait(Clock needed, Clock& clock, std::size_t at, bool is_host) {
    for (std::size_t agent = 0; agent < agents_; ++agent)
      if (needed[agent] <= clock[agent]) needed[agent] = 0;
    for (std::size_t agent = 0; agent < agents_; ++agent)
      for (std::size_t other = 0; other < agents_; ++other)
        if (other != agent && needed[other] > 0 && needed[agent] > 0 &&
            clocks_[needed[other] - 1][agent] >= needed[agent])
          needed[agent] = 0;
    for (std::size_t agent = 0; agent < agents_; ++agent) {
      if (needed[agent] == 0) continue;
      waits_.push_back({.at = at, .source = needed[agent] - 1, .is_host = is_host});
      join(clock, clocks_[needed[agent] - 1]);
    }
  }

  /// An event is used again when the last wait for it has been called.
  void number_events() {
    std::map<std::size_t, std::size_t> last_waits;  // by source
    for (const Wait& wait : waits_) {
      std::size_t& last = last_waits[wait.source];
      last = std::max(last, wait.at);
    }
    std::vector<Command::Event> free;
    std::map<std::size_t, std::vector<Command::Event>> freed;  // by the command after which they are free
    std::map<std::size_t, Command::Event> numbers;             // by source
    for (const auto& [source, last] : last_waits) {
      while (!freed.empty() && freed.begin()->first <= source) {
        free.insert(free.end(), freed.begin()->second.begin(), freed.begin()->second.end());
        freed.erase(freed.begin());
      }
      if (free.empty()) free.push_back(schedule_.events++);
      numbers[source] = free.back();
      free.pop_back();
      freed[last].push_back(numbers[source]);
      schedule_.commands[source].record = numbers[source];
    }
    for (const Wait& wait : waits_) {
      Command& command = schedule_.commands[wait.at];
      if (wait.is_host) {
        command.host_waits.emplace_back(schedule_.commands[wait.source].device, numbers[wait.source]);
      } else {
        command.waits.push_back(numbers[wait.source]);
      }
    }
  }

  struct Owner {
    std::uint64_t last;
    Slot slot;
  };
  struct Wait {
    std::size_t at, source;
    bool is_host;
  };

  Schedule& schedule_;
  std::span<const PlanStep> steps_;
  const std::size_t agents_;
  std::vector<Clock> now_;           ///< by agent
  std::vector<Clock> clocks_;        ///< by command, when it is done
  std::vector<Clock> users_;         ///< by slot: the last of each agent
  std::vector<std::size_t> listed_;  ///< by slot: the last command that uses it
  std::map<ValueId, std::size_t> copied_out_;
  /// By device: of its block's memory, the last ones, by where their part begins.
  std::vector<std::map<std::uint64_t, Owner>> owners_;
  std::vector<Wait> waits_;
};

}  // namespace

std::optional<tensorlint_stream> stream_of(Command::Kind kind) {
  switch (kind) {
    case Kind::kCopyIn:
    case Kind::kPrepare:
      return kTensorlintCopiesIn;
    case Kind::kKernel:
      return kTensorlintKernels;
    case Kind::kCopyOut:
    case Kind::kReport:
    case Kind::kGradient:
      return kTensorlintCopiesOut;
    case Kind::kView:
    case Kind::kHost:
      break;
  }
  return std::nullopt;
}

Schedule make_schedule(std::span<const PlanStep> steps, std::span<const PlannedCopy> last_copies, std::size_t devices,
                       std::size_t& pairs_left) {
  Schedule schedule;
  CommandList(schedule).add(steps, last_copies);
  schedule.offsets.resize(schedule.lifetimes.size());
  for (std::size_t device = 0; device < devices; ++device) {
    std::vector<Slot> slots;
    std::vector<MemoryLifetime> lifetimes;
    for (Slot slot = 0; slot < schedule.lifetimes.size(); ++slot) {
      if (schedule.commands[schedule.lifetimes[slot].first].device != device) continue;
      slots.push_back(slot);
      lifetimes.push_back(schedule.lifetimes[slot]);
    }
    MemoryPlan memory = plan_memory(lifetimes, pairs_left);
    for (std::size_t i = 0; i < slots.size(); ++i) schedule.offsets[slots[i]] = memory.offsets[i];
    memory.offsets.clear();
    schedule.memory.push_back(std::move(memory));
  }
  Ordering(schedule, steps, devices).run();
  return schedule;
}

}  // namespace tensorlint::runtime
