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
#include "passes/dataflow/analysis.h"
#include "runtime/device/device.h"
#include "runtime/executor/execution_plan.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// Runs a model with the kernels of a device, or of several: what they compute runs there, all else in the interpreter,
/// and values are copied as planned before the run. The host goes on while the device works, and waits where it reads
/// what the device makes. Not thread-safe; all that it is given outlives it.
class Executor {
 public:
  Executor(const Model& model, Memory& memory, Device& device, std::uint64_t seed = 0, Sides sides = Sides::kKernels);
  /// Each call on the device on which the model places it.
  Executor(const Model& model, Memory& memory, std::vector<Device*> devices, std::uint64_t seed = 0,
           Sides sides = Sides::kKernels);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// As Interpreter::run. Errors of the device name the node or the output, too. Memory of the device is kept for the
  /// next run, but for one that failed.
  Result<std::vector<HostValue>> run(std::vector<HostValue> inputs);
  /// Gives back what is kept on the devices.
  void release_memory();

  /// The host waits after each step, so that `seconds` are those of its work. Otherwise they are those of its calls.
  void set_timed(bool is_timed) { is_timed_ = is_timed; }
  /// Before the first run: each loss gives its gradient by its prediction, too. A run fails where no kernel computes
  /// that of one of the model's losses, or where it has none.
  void set_with_gradients(bool with_gradients) { with_gradients_ = with_gradients; }

  /// Before the first run: cublasLt, which all devices have loaded, computes the products that it takes.
  void set_with_cublaslt(bool with_cublaslt) { with_cublaslt_ = with_cublaslt; }

  /// Before the first run: of the analyses that plans are made of; without it each has a meter of its own.
  void set_allowances(dataflow::Allowances& allowances) {
    allowances_ = &allowances;
    interpreter_.set_allowances(allowances);
  }

  std::span<Device* const> devices() const { return devices_; }
  /// Of the last run.
  const ExecutionPlan& plan() const { return *plan_; }
  /// What the device counted in it. Copies other than those planned for each graph that ran are an error of ours, and
  /// end the run.
  GraphExecution::Copies copies() const { return copies_; }
  /// Seconds that each step of the main graph took, with its copies.
  std::span<const double> seconds() const { return seconds_; }

  /// Of the sum of a loss, by the value that is its prediction.
  struct Gradient {
    NodeId loss = NodeId::kNone;    ///< makes the result of the call
    ValueId of = ValueId::kAbsent;  ///< that result
    ValueId by = ValueId::kAbsent;  ///< in the graph of the loss
    HostTensor tensor;              ///< dtype and extents of `by`
  };
  /// Of the last run, in the order in which the losses ran; those of a body each time that it did, until there are
  /// kMostGradients.
  std::span<const Gradient> gradients() const { return gradients_; }
  static constexpr std::size_t kMostGradients = 1000;
  std::size_t gradients_left_out() const { return gradients_left_out_; }

 private:
  using Kinds = std::vector<std::pair<DType, Extents>>;
  /// What a kernel reports of labels outside of its classes: how many, and the first.
  using IndexReport = std::array<std::int64_t, 2>;
  /// The memory of a device for a graph and those that run within it, which follow it there.
  struct Arena {
    DeviceBlock block{};
    bool is_held = false;
    std::uint64_t bytes = 0, used = 0;
  };
  /// One run of a graph, while it is there.
  struct Frame {
    const GraphExecution& plan;
    /// By device: where its memory begins in the arena; kOwnBlock: in `blocks`.
    std::vector<std::uint64_t> bases{};
    std::vector<std::uint64_t> used_before{};
    std::vector<DeviceBlock> blocks{};
    std::vector<DeviceValue> values{};  ///< by slot of the plan
    std::map<Command::Slot, IndexReport> reports{};
    std::vector<Gradient> gradients{};
  };

  std::optional<Error> choose_plan(std::span<const HostValue> inputs);
  void refuse_too_large() const;
  /// The first `most` outputs.
  std::vector<HostValue> run_graph(const GraphExecution& plan, std::span<const HostValue> inputs, std::size_t most);
  void take_memory(Frame& frame);
  void run_commands(Frame& frame);
  void run_command(Frame& frame, std::size_t at);
  void release(Frame& frame);
  /// After a fault of the host: labels outside of classes explain more.
  void check_indices_so_far(Frame& frame);
  void check_indices(const Frame& frame);
  void synchronize();
  /// Of all devices, since they were opened.
  GraphExecution::Copies counted() const;
  void check_copies(const GraphExecution::Copies& before);

  void run_node(const PlanStep& step);
  void launch(const Frame& frame, const PlanStep& step, const Command& command);
  void copy_out(const Frame& frame, const Command& command);
  HostTensor prepare(const CallOperand& operand, DType dtype);
  HostTensor host_tensor(ValueId value);
  /// "node `x` (Op): ", with the copy where the command is one.
  std::string described(const GraphExecution& plan, const Command& command) const;
  /// `moment`: of the call that failed. `is_exact`: no other node's work can be what failed.
  RunFault explained(const DeviceFault& fault, std::string_view moment, bool is_exact = false) const;

  const Model& model_;
  Memory& memory_;
  const std::vector<Device*> devices_;
  const Sides sides_;
  Interpreter interpreter_;
  std::vector<Arena> arenas_;                         ///< by device
  std::list<std::pair<Kinds, ExecutionPlan>> plans_;  ///< the latest first
  const ExecutionPlan* plan_ = nullptr;
  std::map<ValueId, std::pair<DType, Extents>> kinds_;  ///< of results of kernels
  GraphExecution::Copies copies_, planned_;             ///< of the run
  IdVector<GraphId, std::vector<ValueId>> values_of_;
  std::vector<double> seconds_;
  std::vector<Gradient> gradients_;
  std::size_t gradients_left_out_ = 0;
  dataflow::Allowances* allowances_ = nullptr;
  bool is_timed_ = false, with_gradients_ = false, with_cublaslt_ = false;
};

}  // namespace tensorlint::runtime
