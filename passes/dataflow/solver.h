#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/call/application.h"
#include "ir/facts/fact.h"
#include "ir/graph/model.h"
#include "ir/graph/region_op.h"
#include "ir/ops/inference.h"
#include "ir/ops/signatures.h"
#include "passes/dataflow/abstract_value.h"
#include "passes/dataflow/analysis.h"
#include "passes/dataflow/body_cache.h"
#include "passes/dataflow/budget.h"
#include "passes/dataflow/equality_scope.h"
#include "passes/dataflow/initial_facts.h"
#include "passes/dataflow/node_memo.h"
#include "passes/dataflow/order.h"
#include "passes/dataflow/summaries.h"

namespace tensorlint::dataflow {

/// Iterates the operators' inference over graphs, bodies and functions. One Solver, one analysis. Private to this
/// folder: users call `analyse`.
///
/// current_ holds the facts of the visit under way; a graph that was visited is committed: its facts are joined into
/// the result. What has state of its own is a class of its own (the includes above); the rest comes in this order:
///   solver.cc        graphs: order, visit, commit
///   nodes.cc         a node: operands, memo, inference, what it costs; violations
///   declarations.cc  declared types of results
///   bodies.cc        what If, Loop, Scan and SequenceMap share: one visit of a body, from the cache where it repeats
///   branches.cc      If; branches of different rank
///   loops.cc         Loop; the iterations of Loop and Scan
///   scans.cc         Scan, SequenceMap
///   unrun_bodies.cc  branches that are never taken, loops of no iterations
///   functions.cc     calls
///   growth.cc        a model that grows
class Solver {
 public:
  static Analysis solve(const Model& model, const AnalysisOptions& options);

 private:
  friend class GrowingAnalysis;

  static constexpr int kMaxNesting = 192;  // of bodies and calls: the solver's own recursion

  /// What an If would give if only one of its branches were ever taken, where that is of different shapes.
  struct ShapeClash {
    std::vector<AbstractValue> then_results, else_results;
    bool of_ranks = false;
  };

  /// A Loop or Scan with what enters its first iteration.
  struct Loop {
    RegionOp region;
    std::vector<AbstractValue> carried{};  ///< loop-carried values
    std::vector<AbstractValue> slices{};   ///< of each scanned operand what an iteration gets
    std::optional<std::int64_t> trips{};   ///< exact number of iterations, where it is constant
  };
  struct Iterations;

  struct LoopResults {
    std::vector<AbstractValue> carried;       ///< after the last iteration
    std::vector<AbstractValue> scan_outputs;  ///< of one iteration: joined over all
    std::optional<std::int64_t> trips;        ///< 0: the body was not followed
  };

  /// What a node's visit works with, kept for the next node of this depth.
  struct Frame {
    std::vector<FactId> operands;
    std::vector<Taint> taints;
    ops::InferenceResult result;
  };

  struct GraphState {
    std::optional<NodeOrder> order;  // made on first use
    bool has_initializers = false;   // their facts are in current_
    bool is_active = false;          // being visited now
    bool is_committed = false;
    bool is_forgotten = false;            // not all of its visits were followed: of its values nothing is known
    std::optional<bool> reads_iteration;  // of a Loop's body; known since its first visit
  };

  /// Where a body of a growing model was opened.
  struct OpenBody {
    EqualityScope::Checkpoint equalities;
    Budget budget;
    GraphId graph;
  };

  Solver(const Model& model, const AnalysisOptions& options, Analysis& out);
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  GraphState& state(GraphId graph) { return graphs_[static_cast<std::size_t>(graph)]; }

  AbstractValue read(ValueId value) const {
    if (value == ValueId::kAbsent) return {FactId::kAbsent, {}};
    return current_[value];
  }
  AbstractValue read_operand(ValueId value) const {
    if (value == ValueId::kAbsent) return {FactId::kAbsent, {}};
    if (model_.value(value).origin == ValueOrigin::kUndefined) return {FactId::kTop, everything_tainted()};
    // Which of its definitions is meant cannot be known.
    if (!defined_twice_.empty() && defined_twice_.contains(value)) return {current_[value].fact, everything_tainted()};
    return current_[value];
  }
  /// Results past the values are top.
  void set_results(NodeId id, std::span<const AbstractValue> values);

  // ---- graphs

  static Analysis begin(const Model& model, const AnalysisOptions& options);
  void run();
  void find_entries();
  const NodeOrder& order(GraphId graph);
  /// Infers all nodes of a graph whose inputs are in current_.
  FactId initializer_fact(ValueId initializer);
  void visit_graph(GraphId id);
  /// Moves the facts of the last visit into the result, joined with those of earlier visits.
  void commit(GraphId id);

  // ---- nodes

  void visit_node(NodeId id);
  /// Inference itself; false where something failed. `tainted`: an operand is.
  bool infer_node(NodeId id, const Application& call, bool tainted, ops::InferenceResult& result);
  const ops::Signature* signature_of(const Operator& op) const;
  std::uint64_t weight_of(const Node& node) const;
  FactId without_large_content(FactId id);
  void give_up(NodeId id, Gap gap);
  /// The first one of a node is kept.
  void note_gap(NodeId id, Gap gap) {
    if (!speculative_ && out_.gaps_[id] == Gap::kNone) out_.gaps_[id] = gap;
  }
  /// Some visit of the graph is not followed: what others showed of its values, and of those in its bodies and in the
  /// functions that it calls, need not hold in that one.
  void forget(GraphId graph);
  void forget_graphs(std::span<const Attribute> attributes);
  void record(NodeId id, ops::Violation violation);
  void keep(NodeViolation violation);
  static std::uint64_t memory_of(const ops::Violation& violation);
  /// What no execution gets past.
  void record(NodeId id, const ops::Constraint& constraint, std::vector<int> operands, ops::Message message) {
    facts_.meter().charge(ops::kStepsOfViolation);
    record(id, {&constraint, ops::Certainty::kMust, std::move(operands), std::move(message), {}});
  }
  Frame& frame() {
    while (frames_.size() <= static_cast<std::size_t>(depth_)) frames_.emplace_back();
    return frames_[static_cast<std::size_t>(depth_)];
  }

  // ---- declarations of results

  bool has_declarations(const Node& node) const {
    for (const ValueId result : model_.results(node))
      if (result != ValueId::kAbsent && model_.value(result).type != nullptr) return true;
    return false;
  }
  void check_declarations(NodeId id);
  void check_declaration(NodeId id, ValueId value, int result, const TypeDecl& type);

  // ---- bodies

  void visit_region(NodeId id, const Application& call);
  bool body_fits(NodeId id, const RegionOp& region, std::size_t result_count);
  void check_body_input(NodeId id, GraphId body, std::size_t at, const AbstractValue& given, int operand,
                        bool with_shape);
  AbstractValue as_input(ValueId input, AbstractValue given);
  std::vector<AbstractValue> visit_body(GraphId body, std::span<const AbstractValue> inputs);
  std::vector<AbstractValue> follow_body(GraphId body, std::span<const AbstractValue> inputs);
  void record_arity(NodeId id, ops::Message message);

  // ---- speculation

  /// Of what is left of the budget, for each speculation.
  static constexpr std::uint64_t kShareOfSpeculation = 16;
  /// Visits with nothing recorded and a share of the budget; false where that ended.
  template <typename Visits>
  bool speculate(const Visits& visits) {
    const int conditional = std::exchange(conditional_, 0);
    const std::uint64_t rest = budget_.leave(budget_.visits() / kShareOfSpeculation);
    speculative_ = true;
    visits();
    speculative_ = false;
    const bool is_spent = budget_.is_spent();
    budget_.give_back(rest);
    conditional_ = conditional;
    return !is_spent;
  }

  // ---- branches

  void visit_if(NodeId id, const Application& call, const RegionOp& region, std::span<const AbstractValue> operands);
  void check_branch_arity(NodeId id, GraphId branch, std::string_view name, std::size_t results);
  void merge_branches(NodeId id, std::vector<AbstractValue>& merged, std::span<const AbstractValue> outputs);
  void check_other_branch(NodeId id, GraphId left_out, bool taken_is_then, std::vector<AbstractValue>& taken);
  void refine_branch(const ShapeClash& clash, std::span<const NodeId> nodes);
  struct Speculation {
    std::optional<NodeViolation> failure;
    bool is_infeasible = false;  ///< for ranks
  };
  Speculation follow_branch(std::span<const AbstractValue> results, std::span<const NodeId> nodes);
  bool depends_on_elements(ValueId condition) const;

  // ---- loops

  void visit_loop(NodeId id, const Application& call, const RegionOp& region, std::span<const AbstractValue> operands);
  std::optional<std::int64_t> trip_count(const Application& call, const RegionOp& region) const;
  static std::vector<AbstractValue> carried_operands(const RegionOp& region, std::span<const AbstractValue> operands);
  void check_body_inputs(NodeId id, const Loop& loop, std::span<const AbstractValue> operands);
  /// Follows a loop until it ends, or until nothing new happens in it.
  LoopResults iterate(NodeId id, const Loop& loop);
  bool reads_iteration(GraphId body, ValueId number);
  std::vector<AbstractValue> body_inputs(const Loop& loop, const Iterations& run, std::int64_t k);
  void run_body(NodeId id, const Loop& loop, Iterations& run, std::int64_t k);
  std::optional<std::vector<AbstractValue>> next_iteration(const Loop& loop, Iterations& run, std::int64_t k);
  std::optional<std::vector<AbstractValue>> join_iteration(const Loop& loop, Iterations& run);
  void leave_out_iterations(const Loop& loop);
  void report_carried(NodeId id, const Loop& loop, std::span<AbstractValue> after);
  void check_states(NodeId id, const Loop& loop, std::span<const AbstractValue> after);
  void check_slices(NodeId id, std::size_t result, const AbstractValue& before, const AbstractValue& slice);
  FactId stacked_without_visit(ValueId output);
  void check_condition(NodeId id, const AbstractValue& condition);

  // ---- scans

  void visit_scan(NodeId id, const Application& call, const RegionOp& region, std::span<const AbstractValue> operands);
  Dim take_slices(NodeId id, Loop& loop, const ScanAxes& axes, std::span<const AbstractValue> operands, Dim& batch);
  void check_scan_length(NodeId id, const AbstractValue& operand, int index, int first, Dim length, Dim trips);
  void check_stack_axis(NodeId id, const AbstractValue& element, std::size_t result, std::int64_t axis);
  void visit_sequence_map(NodeId id, const Application& call, const RegionOp& region,
                          std::span<const AbstractValue> operands);

  // ---- bodies that never run

  std::vector<AbstractValue> infer_unrun(NodeId id, GraphId body);
  void keep_unrun(NodeViolation violation);
  void keep_unrun_violations();
  /// Engines that infer all bodies before a run refuse it.
  bool fails_at_load(NodeId id, const ops::Violation& violation) const;
  bool has_shapes_before_run(NodeId id) const;

  // ---- functions

  void call_function(NodeId id, GraphId function, const Application& call);

  // ---- growth

  /// Makes room for what the model has got.
  void grow();
  /// Infers a node of the main graph, or of a body that is open. What fails, in the order of inference.
  std::vector<NodeViolation> append(NodeId id);
  void open_body(GraphId body) { open_bodies_.push_back({equalities_.checkpoint(), budget_, body}); }
  void close_body();
  /// Bodies as if they had never been visited.
  void reset(std::span<const GraphId> bodies);
  /// Forgets a body whose nodes were taken back.
  void abandon_body(GraphId body);
  void set(ValueId value, const AbstractValue& known);
  /// A call is visited with facts of a first pass over a body that is open: of a function it says nothing yet.
  bool is_provisional() const { return !open_bodies_.empty() && !calls_.empty(); }

  const Model& model_;
  const AnalysisOptions& options_;
  Analysis& out_;
  FactStore& facts_;
  InitialFacts initial_facts_;
  IdVector<ValueId, AbstractValue> current_;  // facts of the visit under way
  std::set<ValueId> defined_twice_;
  std::map<ValueId, FactId> speculative_initializers_;      // those that speculative visits have read
  IdVector<OperatorId, const ops::Signature*> signatures_;  // of the user, for operators without a schema
  /// By node and constraint: the operands that violations concerned.
  std::map<std::pair<NodeId, const ops::Constraint*>, std::vector<std::vector<int>>> recorded_;
  Budget budget_;

  BodiesByGraph bodies_;  // by graph
  std::vector<GraphState> graphs_;
  NodeMemo memo_;
  EqualityScope equalities_;
  BodyCache body_cache_;
  Summaries summaries_;

  // Where the visit is.
  int depth_ = 0;
  std::deque<Frame> frames_;  // by depth; addresses do not change
  std::vector<NodeId> calls_;
  std::vector<Attribute> caller_attributes_;
  std::uint64_t visit_serial_ = 0, serials_ = 0;  // distinguishes visits of one body or function
  std::uint64_t call_serial_ = 0;                 // visit_serial_ of the innermost function
  std::int64_t iteration_ = 0;

  // Branches that are followed speculatively.
  std::optional<ShapeClash> shape_clash_;  // of the If visited last
  bool speculative_ = false;               // following one branch on its own: nothing is recorded
  bool infeasible_ = false;                // while speculative: a node failed for its operands' ranks, for certain
  std::optional<NodeViolation> failure_;   // while speculative: the first failure for certain, of any kind
  int conditional_ = 0;                    // bodies around the node that may not run, since the speculation began
  int speculations_ = 0;

  // Bodies that never run.
  bool is_unrun_ = false;       // one is inferred; speculative, too
  bool unrun_ran_out_ = false;  // of some body not all was inferred
  std::set<NodeId> has_unrun_;  // nodes of which such a body was inferred
  std::set<std::pair<NodeId, const ops::Constraint*>> has_unrun_violation_;
  std::vector<NodeViolation> unrun_violations_;

  // Of a growing model.
  std::vector<OpenBody> open_bodies_;  // outermost first
  bool has_shape_clash_ = false;       // an If might be known better by what comes after it
};

}  // namespace tensorlint::dataflow
