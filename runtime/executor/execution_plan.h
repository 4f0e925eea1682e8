#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph/model.h"
#include "runtime/executor/kernel_call.h"
#include "runtime/executor/schedule.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

struct PlannedCopy {
  ValueId value = ValueId::kAbsent;  ///< kAbsent: a number of a kernel's own, or its report of labels
  bool to_device = false;
  std::uint64_t bytes = 0;
};

/// A node in the interpreter, or a kernel.
struct PlanStep {
  NodeId node = NodeId::kNone;
  std::optional<KernelCall> call;        ///< none: the interpreter
  std::vector<PlannedCopy> copies;       ///< of values, before it
  std::vector<PlannedCopy> call_copies;  ///< what the host prepares for the kernel, and what the kernel reports
  std::uint64_t result_bytes = 0;        ///< of the kernel
  std::vector<ValueId> host_drops;       ///< not needed there after it
};

/// Where a node of the main graph runs.
struct NodePlace {
  enum class Kind : std::uint8_t { kInterpreter, kKernel, kUnused };
  NodeId node = NodeId::kNone;
  Kind kind = Kind::kInterpreter;
  std::string reason;  ///< kInterpreter: why; kKernel: which; kUnused: what for
};

/// What runs where, and what is copied, decided before a run. For inputs of one kind: their dtypes and extents.
struct ExecutionPlan {
  std::vector<PlanStep> steps;
  std::vector<PlannedCopy> last_copies;  ///< of outputs, after all steps
  std::vector<NodePlace> places;         ///< of the main graph, in the order in which they would run
  Schedule schedule;                     ///< all of it as calls

  NodeId peak_node() const;  ///< when most of the device's memory is in use

  struct Copies {
    std::uint64_t in = 0, bytes_in = 0, out = 0, bytes_out = 0;
    friend bool operator==(const Copies&, const Copies&) = default;
  };
  Copies copies() const;  ///< all of them, those that kernels' own operands take too
};

/// Bytes in which a kernel reports labels outside of its classes; 0 where it has no labels.
std::uint64_t report_bytes(const KernelCall& call);

/// `inputs`: by input of the main graph, absent where the model has a default. Errors: the graph cannot run in any
/// order.
Result<ExecutionPlan> plan_execution(const Model& model, std::span<const HostValue> inputs);

}  // namespace tensorlint::runtime
