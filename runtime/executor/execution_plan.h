#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph/model.h"
#include "runtime/executor/kernel_call.h"
#include "runtime/executor/schedule.h"
#include "runtime/executor/sides.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

struct PlannedCopy {
  ValueId value = ValueId::kAbsent;  ///< kAbsent: a number of a kernel's own, its report of labels, or its gradient
  bool to_device = false;
  std::size_t device = 0;
  std::uint64_t bytes = 0;
};

/// A node in the interpreter, or a kernel.
struct PlanStep {
  NodeId node = NodeId::kNone;
  const KernelCall* call = nullptr;         ///< of the plan; null: the interpreter
  std::vector<PlannedCopy> copies;          ///< of values, before it
  std::vector<PlannedCopy> call_copies;     ///< what the host prepares for the kernel, and what the kernel reports
  std::vector<std::uint64_t> result_bytes;  ///< of the kernel, by result
  std::uint64_t gradient_bytes = 0;
  std::vector<ValueId> host_drops;  ///< not needed there after it
};

/// Where a node runs.
struct NodePlace {
  enum class Kind : std::uint8_t { kInterpreter, kKernel, kUnused };
  NodeId node = NodeId::kNone;
  Kind kind = Kind::kInterpreter;
  std::size_t device = 0;  ///< kKernel
  std::string reason;      ///< kInterpreter: why; kKernel: which; kUnused: what for
};

/// One run of a graph: what of it runs where, and what is copied.
struct GraphExecution {
  GraphId graph = GraphId::kMain;
  std::vector<PlanStep> steps;
  std::vector<PlannedCopy> last_copies;  ///< of outputs, after all steps
  std::vector<NodePlace> places;         ///< of its nodes, in the order in which they would run
  Schedule schedule;                     ///< all of it as calls
  // Those of all graphs differ, since one runs within another.
  std::uint64_t first_command = 0;
  Command::Event first_event = 0;

  bool has_kernels() const { return !schedule.lifetimes.empty(); }
  NodeId peak_node(std::size_t device) const;  ///< when most of the device's memory is in use; kNone: it is never

  struct Copies {
    std::uint64_t in = 0, bytes_in = 0, out = 0, bytes_out = 0;
    Copies& operator+=(const Copies& other) {
      in += other.in;
      bytes_in += other.bytes_in;
      out += other.out;
      bytes_out += other.bytes_out;
      return *this;
    }
    friend bool operator==(const Copies&, const Copies&) = default;
  };
  Copies copies() const;  ///< all of them, those that kernels' own operands take too
};

/// What runs where, and what is copied, decided before a run. For inputs of one kind: their dtypes and extents. Bodies
/// and functions are planned once for all of their runs, each of which begins and ends with its values on the host.
struct ExecutionPlan : GraphExecution {
  ExecutionPlan() = default;
  // Steps point to the calls.
  ExecutionPlan(const ExecutionPlan&) = delete;
  ExecutionPlan& operator=(const ExecutionPlan&) = delete;
  ExecutionPlan(ExecutionPlan&&) = default;
  ExecutionPlan& operator=(ExecutionPlan&&) = default;

  std::map<NodeId, KernelCall> calls;        ///< of all graphs
  std::map<GraphId, GraphExecution> bodies;  ///< bodies and functions that may run
  Command::Event events = 0;
  std::vector<std::uint64_t> device_bytes;  ///< by device: at one time, those of graphs within each other together

  /// What `first_command` of its graph and its position number; null: nothing does.
  const GraphExecution* graph_of(std::uint64_t command) const;
};

/// Bytes in which a kernel reports labels outside of its classes, or indices outside of their axes; 0 where it has
/// none.
std::uint64_t report_bytes(const KernelCall& call);

/// Whether cublasLt computes products: by request, and whether that has an addend, empty, or why it does not.
using CublasLtChoice = std::function<std::string(const kernels::MatrixProduct& request, bool has_addend)>;

struct PlanOptions {
  Sides sides = Sides::kKernels;            ///< of a single device
  bool with_gradients = false;              ///< every loss is a call that computes its gradient by its prediction, too
  CublasLtChoice cublaslt = nullptr;        ///< null: our kernels compute all products
  std::uint64_t shared_bytes = UINT64_MAX;  ///< of a block, on each of the devices; kernels that take more are not used
  std::shared_ptr<Meter> meter = nullptr;   ///< of the analysis; null: one of its own
};

/// `devices`: names. With more than one of them every call runs where the model places it, and the first one takes what
/// nothing places. `inputs`: by input of the main graph, absent where the model has a default. Errors: the graph cannot
/// run in any order; a loss whose gradient no kernel computes, or no loss at all, with `with_gradients`.
Result<ExecutionPlan> plan_execution(const Model& model, std::span<const HostValue> inputs,
                                     std::span<const std::string> devices, const PlanOptions& options);

}  // namespace tensorlint::runtime
