#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/id_vector.h"
#include "ir/call/application.h"
#include "ir/graph/region_op.h"
#include "ir/ops/entry.h"
#include "ir/ops/inference.h"
#include "passes/dataflow/analysis.h"
#include "passes/dataflow/attributes.h"
#include "runtime/interpreter/constant_cache.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/graph_plan.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/values/known_lists.h"

namespace tensorlint::runtime {

/// One graph, function or expansion inside of another, while it is there. Throws RunFault where they are nested too
/// deep for the stack.
class Nesting {
 public:
  explicit Nesting(int& depth) : depth_(depth) {
    if (depth_ >= kMostNested) throw RunFault{"functions and graphs are nested too deep"};
    ++depth_;
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  static constexpr int kMostNested = 192;
  int& depth_;
};

/// An operand with an axis of extent 0 costs nothing, however long its others are, and evaluators walk those: throws
/// RunFault where they are far longer than what the node holds, as no program makes them.
void check_reach(std::span<const HostValue> operands, std::uint64_t result_elements);

/// The work of a run so far, against the limit that its options set.
class Work {
 public:
  explicit Work(std::uint64_t limit) : limit_(limit) {}
  void begin() { done_ = 0; }
  void set_limit(std::uint64_t limit) { limit_ = limit; }
  /// Throws RunFault where the limit would be passed.
  void take(std::uint64_t work) {
    if (limit_ == 0) return;
    if (limit_ == InterpreterOptions::kAnyWork) work = std::min(work, limit_ - done_);
    if (work > limit_ - done_) throw RunFault{"the run takes more work than its limit allows"};
    done_ += work;
  }
  bool is_counted() const { return limit_ != 0; }
  std::uint64_t done() const { return done_; }

 private:
  std::uint64_t limit_, done_ = 0;
};

/// A function's call, while it is under way.
class Called {
 public:
  Called(std::vector<GraphId>& functions, GraphId function) : functions_(functions) { functions_.push_back(function); }
  Called(const Called&) = delete;
  Called& operator=(const Called&) = delete;
  ~Called() { functions_.pop_back(); }

 private:
  std::vector<GraphId>& functions_;
};

/// The attributes of a function's call, while the function runs.
class CallScope {
 public:
  /// `defaults`: sorted by name; they outlive this.
  CallScope(dataflow::CallerAttributes& current, std::span<const Attribute> given, std::span<const Attribute> defaults)
      : given_(dataflow::with_defaults(given, {})),
        current_(current),
        outer_(std::exchange(current, {given_, defaults})) {}
  ~CallScope() { current_ = outer_; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  const std::vector<Attribute> given_;  // sorted
  dataflow::CallerAttributes& current_;
  const dataflow::CallerAttributes outer_;
};

/// Private to this folder: users see Interpreter.
///   interpreter.cc    graphs, values, constants
///   nodes.cc          a node: its concrete facts, its evaluator, functions
///   control_flow.cc   If, Loop, Scan, SequenceMap
class Interpreter::Impl {
 public:
  /// `work` and `depth`: those of what the model is expanded in.
  Impl(const Model& model, Memory& memory, InterpreterOptions options, std::shared_ptr<Work> work, int depth);

  Result<std::vector<HostValue>> run(std::vector<HostValue> inputs);
  std::map<std::string, Timing> timings() const;
  void hold(ValueId value, HostValue held);
  Result<HostValue> held(ValueId value);
  Result<std::vector<HostValue>> evaluate_alone(NodeId node, Purpose purpose);
  void set_most_work(std::uint64_t most) { work_->set_limit(most); }
  std::uint64_t work() const { return work_->done(); }
  Result<double> terms(NodeId node);
  bool is_random() const { return is_random_; }
  void set_allowances(dataflow::Allowances& allowances) { options_.allowances = &allowances; }

  /// A graph's outputs for its inputs, the first `most` of them. Throws RunFault.
  std::vector<HostValue> run_graph(GraphId graph, std::span<const HostValue> inputs, std::size_t most = kAllOutputs);
  /// A call of a function: run_graph with the attributes that the call gives.
  std::vector<HostValue> call_function(GraphId function, const Application& call, std::span<const HostValue> operands);

 private:
  /// What a fact says of an operand that is a tensor, without the fact. Larger contents have none.
  struct OperandKey {
    static constexpr std::size_t kMostContent = 128;  // bytes
    DType dtype = DType::kUndefined;
    Shape shape;
    std::vector<std::byte> content;  ///< empty: the fact has none
    bool matches(const HostValue& value) const;
    void set(const HostValue& value, bool with_content);
  };
  /// Inference of a node's last call, which holds while the facts of its operands stay the same.
  struct Inferred {
    std::vector<FactId> operands;
    std::vector<OperandKey> keys;  ///< of `operands`
    InferredCall call;
    bool holds = false, has_keys = false;
    std::uint64_t work = 0;  ///< beside kWorkOfNode, where work is limited
  };
  /// What all nodes of an operator share.
  struct Kind {
    const ops::OpEntry* entry = nullptr;
    const Evaluator* evaluator = nullptr;
    RegionKind region = RegionKind::kNone;
  };
  static IdVector<OperatorId, Kind> kinds_of(const Model& model);
  /// An operator that ONNX defines by a function, as a model of its own.
  struct Expansion {
    std::unique_ptr<Model> model;
    std::unique_ptr<Impl> impl;
  };

  HostValue& slot(ValueId value) { return values_[value]; }
  bool overrides_default(std::span<const HostValue> inputs) const;
  /// A constant of the model that is the same in every run.
  bool is_constant(ValueId value) const {
    return plan_.is_fixed(value) && model_.value(value).origin != ValueOrigin::kNode;
  }
  /// The value, loaded where it is a constant that was not asked for before.
  const HostValue& read(ValueId value);

  /// Lists of values are used again for their memory.
  std::vector<HostValue> take_list();
  void give_back(std::vector<HostValue> list);

  /// What nothing reads after a node, as GraphPlan::Steps says it.
  struct LastReads {
    std::span<const ValueId> drops{};
    std::uint64_t leaves = 0;
  };
  void run_node(NodeId id, const LastReads& last);
  /// What the node gave before, where that is kept.
  ConstantCache::Results kept_results(NodeId id);
  std::vector<HostValue> compute_and_keep(NodeId id, const LastReads& last);
  /// The results of a node for the operands that its values hold. Throws RunFault that names the node.
  std::vector<HostValue> compute(NodeId id, const LastReads& last);
  /// Its operands; those that it is the last to read leave their slots, so that results can take their memory.
  std::vector<HostValue> take_operands(NodeId id, const LastReads& last);
  void drop(ValueId value);
  std::vector<HostValue> evaluate(NodeId id, const Application& call, std::span<const HostValue> operands);
  /// The operands have the facts of the last call. `fixed`: a bit for each that has anyway.
  static bool still_holds(const Inferred& last, std::uint64_t fixed, std::span<const HostValue> operands);
  InferredCall& infer(NodeId id, Application& call, std::span<const HostValue> operands);
  std::vector<HostValue> expand(NodeId id, const Application& call, std::span<const HostValue> operands);

  std::vector<HostValue> run_region(const Application& call, const RegionOp& region,
                                    std::span<const HostValue> operands);
  /// What the iterations of a Loop or a Scan hand on and leave behind.
  struct Iterations {
    std::vector<HostValue> carried{};
    std::vector<std::pmr::vector<HostTensor>> collected{};  ///< by scan output
  };
  Iterations iterations_of(const RegionOp& region);
  /// Runs the body once: `inputs` has all that is not carried. Gives the body's outputs, less those that are carried.
  std::vector<HostValue> iterate(const RegionOp& region, std::vector<HostValue> inputs, Iterations& iterations);

  /// The tensors of all iterations along `axis` of the result. Without any iteration its shape is what is known without
  /// running, else what the body declares, with 0 for extents that are not known, as onnxruntime has it.
  HostTensor joined(std::span<const HostTensor> parts, std::int64_t axis, ValueId scan_output);

  std::vector<HostValue> run_loop(const RegionOp& region, std::span<const HostValue> operands);
  std::vector<HostValue> run_scan(const Application& call, const RegionOp& region, std::span<const HostValue> operands);
  std::vector<HostValue> run_batched_scan(const Application& call, const RegionOp& region,
                                          std::span<const HostValue> operands);
  std::vector<HostValue> run_sequence_map(const RegionOp& region, std::span<const HostValue> operands);

  const Model& model_;
  Memory& memory_;
  InterpreterOptions options_;
  std::shared_ptr<Work> work_;
  GraphPlan plan_;
  IdVector<OperatorId, Kind> kinds_;
  std::optional<ConstantCache> constants_;  ///< from run to run, as long as these alone say what constants are
  bool is_held_ = false;                    ///< `hold` was called
  std::shared_ptr<const void> storage_;     ///< of the model's bytes, for constants that are views of them
  IdVector<ValueId, HostValue> values_;
  dataflow::CallerAttributes caller_attributes_;
  std::vector<GraphId> called_;                                  ///< functions, from the outside in
  std::map<GraphId, std::vector<Attribute>> function_defaults_;  ///< sorted by name; of functions that were called
  std::shared_ptr<FactStore> facts_;
  KnownLists<FactId> lists_known_;  ///< in facts_
  IdVector<NodeId, Inferred> inferred_;
  IdVector<NodeId, char> has_run_;  ///< since the interpreter was made
  std::uint64_t runs_ = 0;
  std::uint64_t calls_ = 0;  ///< of evaluators in this run, for seeds
  std::vector<std::vector<HostValue>> lists_;
  std::vector<FactId> operand_facts_;  ///< of the node that is inferred: kept for its memory
  std::uint64_t contents_ = 0;         ///< elements that facts_ holds, about
  std::map<const OpSchema*, Expansion> expansions_;
  IdVector<OperatorId, Timing> timings_;
  std::optional<dataflow::Analysis> analysis_;  ///< of the model as it is, once something asks for it
  double terms_ = 0;
  Purpose purpose_ = Purpose::kValue;  ///< of the next call of an evaluator
  bool is_random_ = false;             ///< numbers were drawn since a node was evaluated alone
  int depth_ = 0;                      ///< of graphs, functions and expansions in each other
};

}  // namespace tensorlint::runtime
