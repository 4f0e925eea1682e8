#pragma once

#include <cstdint>
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
/// copied as planned before the run. Not thread-safe; all that it is given outlives it.
class Executor {
 public:
  Executor(const Model& model, Memory& memory, Device& device, std::uint64_t seed = 0);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// As Interpreter::run. Errors of the device name the node, too. After an error nothing is left on the device.
  Result<std::vector<HostValue>> run(std::vector<HostValue> inputs);

  /// Of the last run.
  const ExecutionPlan& plan() const { return *plan_; }
  /// What the device counted in it. Copies other than the plan's are an error of ours, and end the run.
  ExecutionPlan::Copies copies() const { return copies_; }
  /// Seconds that each step took, with the copies before it.
  std::span<const double> seconds() const { return seconds_; }

 private:
  void refuse_too_large() const;
  std::vector<HostValue> run_planned(std::vector<HostValue> inputs);
  void run_step(const PlanStep& step);
  void run_call(const PlanStep& step);
  void copy(const PlannedCopy& planned);
  DeviceBlock prepare(const CallOperand& operand, DType dtype);
  HostTensor host_tensor(ValueId value);

  const Model& model_;
  Memory& memory_;
  Device& device_;
  Interpreter interpreter_;
  std::optional<ExecutionPlan> plan_;
  std::vector<std::pair<DType, Extents>> planned_for_;
  std::map<ValueId, DeviceBlock> blocks_;               ///< what is on the device
  std::map<ValueId, std::pair<DType, Extents>> kinds_;  ///< of results of kernels
  ExecutionPlan::Copies copies_;
  std::vector<double> seconds_;
};

}  // namespace tensorlint::runtime
