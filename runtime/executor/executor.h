#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/model.h"
#include "runtime/device/device.h"
#include "runtime/executor/execution_plan.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// Runs a model with the kernels of a device: what they compute runs there, all else in the interpreter, and values are
/// copied as planned before the run. The host goes on while the device works, and waits where it reads what the device
/// makes. Not thread-safe; all that it is given outlives it.
class Executor {
 public:
  Executor(const Model& model, Memory& memory, Device& device, std::uint64_t seed = 0);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// As Interpreter::run. Errors of the device name the node or the output, too. After an error nothing is left on the
  /// device.
  Result<std::vector<HostValue>> run(std::vector<HostValue> inputs);

  /// The host waits after each step, so that `seconds` are those of its work. Otherwise they are those of its calls.
  void set_timed(bool is_timed) { is_timed_ = is_timed; }

  /// Of the last run.
  const ExecutionPlan& plan() const { return *plan_; }
  /// What the device counted in it. Copies other than the plan's are an error of ours, and end the run.
  ExecutionPlan::Copies copies() const { return copies_; }
  /// Seconds that each step took, with the copies before it.
  std::span<const double> seconds() const { return seconds_; }

 private:
  using Kinds = std::vector<std::pair<DType, Extents>>;
  /// What a kernel reports of labels outside of its classes: how many, and the first.
  using LabelReport = std::array<std::int64_t, 2>;

  std::optional<Error> choose_plan(std::span<const HostValue> inputs);
  void refuse_too_large() const;
  void run_planned(std::vector<HostValue> inputs);
  void run_commands();
  void run_command(std::size_t at);
  /// After a fault of the host: labels outside of classes explain more.
  void check_labels_so_far();
  void check_labels();
  void release();
  std::vector<HostValue> take_outputs();
  void check_copies(const tensorlint_device_counts& before);

  void run_node(const PlanStep& step);
  void launch(const PlanStep& step, const Command& command);
  void copy_out(const Command& command);
  HostTensor prepare(const CallOperand& operand, DType dtype);
  HostTensor host_tensor(ValueId value);
  /// "node `x` (Op): ", with the copy where the command is one.
  std::string described(const Command& command) const;

  const Model& model_;
  Memory& memory_;
  Device& device_;
  Interpreter interpreter_;
  std::list<std::pair<Kinds, ExecutionPlan>> plans_;  ///< the latest first
  const ExecutionPlan* plan_ = nullptr;
  DeviceBlock block_;
  std::vector<DeviceValue> values_;                     ///< by slot of the plan
  std::map<ValueId, std::pair<DType, Extents>> kinds_;  ///< of results of kernels
  std::map<Command::Slot, LabelReport> reports_;
  ExecutionPlan::Copies copies_;
  std::vector<double> seconds_;
  bool is_timed_ = false;
};

}  // namespace tensorlint::runtime
