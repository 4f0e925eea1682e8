#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph/model.h"
#include "passes/dataflow/analysis.h"
#include "runtime/interpreter/purpose.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// Called after each node with what it gave, which it may change before others read it; an absent value where the node
/// leaves a result out. Of a node that is computed by itself, after each in its bodies.
using NodeObserver = std::function<void(NodeId node, std::span<HostValue> results)>;

/// Computes a body or a function in the interpreter's place: its outputs, the first `most` of them, or nothing where
/// the interpreter is to. Within it the interpreter may be asked for single nodes of that graph. Throws RunFault.
using GraphRunner = std::function<std::optional<std::vector<HostValue>>(
    GraphId graph, std::span<const HostValue> inputs, std::size_t most)>;
inline constexpr std::size_t kAllOutputs = static_cast<std::size_t>(-1);

struct InterpreterOptions {
  std::uint64_t seed = 0;  ///< of random operators without a seed of their own
  /// A run ends with an error before it takes more work than that; 0: no limit. A node counts kWorkOfNode and the
  /// elements of its operands times those of its results, which bounds what nearly all operators compute; an iteration
  /// of a loop counts kWorkOfNode. Deterministic, other than a time limit.
  std::uint64_t work_limit = 0;
  static constexpr std::uint64_t kAnyWork = std::numeric_limits<std::uint64_t>::max();  ///< counted without a limit
  static constexpr std::uint64_t kWorkOfNode = 4096;
  bool measures_time = false;  ///< for Interpreter::timings
  NodeObserver observer;
  GraphRunner graph_runner = nullptr;
  dataflow::Allowances* allowances = nullptr;  ///< of an analysis; null: it has a meter of its own
};

/// Computes a model on the host, node by node, one after the other: the reference that other engines are held against.
/// Floating point is computed in float64 and rounded once where a result is stored. The same model and inputs give the
/// same bits in every run on one machine. Memory is given back after a value's last use.
///
/// Not thread-safe; `model` and `memory` outlive the interpreter and what it gives.
class Interpreter {
 public:
  Interpreter(const Model& model, Memory& memory, InterpreterOptions options = {});
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// Runs the main graph. `inputs`: by input of the graph; an absent value takes the default of the model. Gives the
  /// graph's outputs. Errors name the node: an operand that the operator cannot take, an operator without an
  /// evaluator, a limit.
  Result<std::vector<HostValue>> run(std::vector<HostValue> inputs);
  /// Before the first run: InterpreterOptions::allowances.
  void set_allowances(dataflow::Allowances& allowances);

  // One node at a time, of the main graph or of one that the options' runner computes, for those who choose what it
  // reads: comparing runs, running on devices.

  /// What a node that reads `value` gets; absent: nothing, and of a constant again what the model says. Values that
  /// bodies capture are held like operands.
  void hold(ValueId value, HostValue held);
  /// What is held of `value`: what the model says of a constant, else what `hold` was given last. Errors: nothing.
  Result<HostValue> held(ValueId value);
  /// Computes a node from what is held. `purpose`: kAmplitude of a node whose evaluator knows it alone.
  Result<std::vector<HostValue>> evaluate(NodeId node, Purpose purpose = Purpose::kValue);

  /// Work that each of the next calls of `evaluate` may take, as InterpreterOptions::work_limit counts it; an error
  /// beyond it.
  void set_most_work(std::uint64_t most);
  /// How much the last one took, where work is counted.
  std::uint64_t work() const;

  /// The last `evaluate` drew random numbers, in the node or in what it runs: a training Dropout does, one that only
  /// infers does not.
  bool drew_random() const;

  /// How many elements or products a node sums into one, from what is held; 0 where its evaluator does not say.
  Result<double> terms(NodeId node);

  /// How often each operator ran and how long that took in all, in seconds, with InterpreterOptions::measures_time.
  /// Nodes with graphs include these.
  struct Timing {
    std::uint64_t calls = 0;
    double seconds = 0;
  };
  std::map<std::string, Timing> timings() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorlint::runtime
