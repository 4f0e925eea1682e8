#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/copy_on_write.h"
#include "base/meter.h"
#include "base/walk.h"
#include "ir/call/application.h"
#include "ir/facts/fact.h"
#include "ir/graph/model.h"
#include "ir/ops/inference.h"
#include "ir/ops/signatures.h"
#include "passes/dataflow/order.h"

namespace tensorlint::dataflow {

/// What the user knows better than the file: `--input`, `--range`, `--device`.
struct InputDeclaration {
  std::optional<DTypeSet> dtypes;
  bool has_shape = false;
  SharedList<std::string> dims;  ///< numbers, names, or "?"
  std::optional<Range> range;
  std::string device;  ///< empty: not declared
};

struct AnalysisOptions {
  SharedMap<std::string, InputDeclaration> values;    ///< by value name, of the main graph
  std::shared_ptr<const ops::Signatures> signatures;  ///< of operators without a schema; null: none
  std::string default_device = "cpu";
  std::uint64_t max_visits = 0;  ///< of the budget; 0: kVisitsPerNode for each node
  bool believes_shapes = true;   ///< that results are declared with; a run, which knows better, does not
  std::shared_ptr<Meter> meter;  ///< of the input; null: one of its own, as meter_of makes it
};

/// What all work on a model is counted with: its allowance follows from the bytes of its file. A program that makes a
/// model of calls is trusted.
std::shared_ptr<Meter> meter_of(const Model& model);

/// The meters of the analyses that a run makes of one model, each with other inputs. They stop adding up once one of
/// them was expensive: the next ones would be as well, and get a small part.
class Allowances {
 public:
  /// `is_expensive`: the check that came first was. The model outlives it.
  explicit Allowances(const Model& model, bool is_expensive = false) : model_(model), is_expensive_(is_expensive) {}
  Allowances(const Allowances&) = delete;
  Allowances& operator=(const Allowances&) = delete;
  std::shared_ptr<Meter> next();
  /// It took a part of the allowance of which five, as many as `compare` may make, are more than one. Ordinary models
  /// take less than a tenth.
  static bool is_expensive(const Meter& meter) { return meter.is_partial() || meter.share() > 0.3; }

 private:
  static constexpr std::uint64_t kPartOnceExpensive = 16;
  const Model& model_;
  bool is_expensive_;
  std::shared_ptr<const Meter> last_;
};

/// Of the model as it is, with the next meter; null: one of its own.
AnalysisOptions options_with(Allowances* allowances);

/// What inferences of a model may cost, in small ones, before the rest becomes unknown: a multiple of its nodes, so
/// that doubling function calls and nested loops end.
inline constexpr std::uint64_t kVisitsPerNode = 64;
inline constexpr std::uint64_t kVisitsAtLeast = 250'000;

/// Why nothing better is known of a node's results than top.
enum class Gap : std::uint8_t {
  kNone,             ///< the operator's own inference decides
  kBudget,           ///< past the work that the input may cost
  kNesting,          ///< bodies and calls are nested too deep
  kRecursion,        ///< the function calls itself
  kCycle,            ///< on a cycle of nodes, or after one
  kUnknownOperator,  ///< no schema
  kNoInference,      ///< no entry
};

std::string_view to_text(Gap gap);

/// A failed precondition at a node. For a node in a function, `calls` are the calling nodes, outermost first.
struct NodeViolation : ops::Violation {
  NodeId node = NodeId::kNone;
  std::vector<NodeId> calls;
  std::int64_t iteration = 0;  ///< in a Loop or Scan body: from which iteration on (1: always); 0 outside
};

/// Facts of every value of a model, and what failed on the way. A value in a body or function has the join over its
/// visits.
class Analysis {
 public:
  const Model& model() const { return *model_; }
  FactStore& facts() const { return *facts_; }

  FactId fact_id(ValueId value) const { return value_facts_[value]; }
  const Fact& fact(ValueId value) const { return facts_->fact(fact_id(value)); }
  Taint taint(ValueId value) const { return taints_[value]; }
  /// In file order.
  const std::vector<NodeViolation>& violations() const { return violations_; }
  /// The first violation that stops an execution, null for none: of a wrong declared shape runtimes only warn, and what
  /// one engine refuses another one runs.
  const NodeViolation* fatal_violation() const;
  bool has_failed(NodeId node) const {
    const auto found = std::lower_bound(violations_.begin(), violations_.end(), node,
                                        [](const NodeViolation& violation, NodeId id) { return violation.node < id; });
    return found != violations_.end() && found->node == node;
  }
  Gap gap(NodeId node) const { return gaps_.contains(node) ? gaps_[node] : Gap::kNone; }
  /// The same in words; empty where the operator's own inference decides.
  std::string_view reason(NodeId node) const { return to_text(gap(node)); }

  /// The node as the call that was inferred (facts joined over all visits).
  class NodeApplication {
   public:
    NodeApplication(const Analysis& analysis, NodeId node);
    NodeApplication(const NodeApplication&) = delete;
    NodeApplication& operator=(const NodeApplication&) = delete;
    const Application& operator*() const { return application_; }
    const Application* operator->() const { return &application_; }

   private:
    std::vector<FactId> operands_, results_;
    std::vector<Taint> taints_;
    Application application_;
  };

  const ops::OpEntry* entry(OperatorId op) const { return entries_[op]; }
  const ops::OpEntry* entry(const Node& node) const { return entry(node.op); }

  /// Operands used before they are defined, in file order.
  const std::vector<EarlyUse>& early_uses() const { return early_uses_; }
  /// Nodes that no execution reaches: in a branch whose condition is constant, or a function that nothing calls.
  bool is_visited(NodeId node) const { return visited_[node]; }

  /// The node's operator is known by a user's signature.
  bool is_declared(NodeId node) const { return declared_.contains(node); }

  /// What the inferences cost, in small ones.
  std::uint64_t visits() const { return visits_; }
  /// The budget was spent before the end, or the input's meter: the rest is unknown.
  bool ran_out() const { return ran_out_; }

  /// Of the input: what passes and rules do with it is counted there.
  Meter& meter() const { return *meter_; }
  /// The elements of a small tensor of constants, null where they are not known. To look at them is charged here.
  const Content* content(ValueId value) const {
    const Content* found = facts_->content(fact(value).content);
    if (found != nullptr) meter_->charge(1 + found->size() / 4);
    return found;
  }
  // How they go through the model: each step is charged, and the walk ends where the meter is spent.
  /// Consumers of a value, in file order.
  SpanWalk<NodeId> users(ValueId value) const;
  SpanWalk<ValueId> operands(NodeId node) const { return {model_->operands(model_->node(node)), *meter_}; }
  SpanWalk<ValueId> results(NodeId node) const { return {model_->results(model_->node(node)), *meter_}; }
  SpanWalk<Attribute> attributes(NodeId node) const { return {model_->attributes(model_->node(node)), *meter_}; }
  /// Null where the node has none of that name.
  const Attribute* attribute(NodeId node, std::string_view name) const {
    meter_->charge(1 + model_->node(node).attribute_count / 2);
    return model_->attribute(model_->node(node), name);
  }
  /// Some attribute is what a call of the node's function gives: `attribute` has its name, and no value.
  bool refers_to_call(NodeId node) const {
    return static_cast<std::size_t>(node) < refers_to_call_.size() && refers_to_call_[node];
  }
  SpanWalk<ValueId> inputs(GraphId graph) const { return {model_->graph(graph).inputs, *meter_}; }
  SpanWalk<ValueId> outputs(GraphId graph) const { return {model_->graph(graph).outputs, *meter_}; }
  auto nodes() const { return Walk(model_->nodes.ids(), *meter_); }
  auto values() const { return Walk(model_->values.ids(kFirstValue), *meter_); }

 private:
  friend class Solver;
  void note_references(NodeId first_node, GraphId first_graph);  ///< of those that are new

  const Model* model_ = nullptr;
  std::unique_ptr<FactStore> facts_;
  Meter* meter_ = nullptr;  // of facts_
  IdVector<ValueId, FactId> value_facts_;
  IdVector<ValueId, Taint> taints_;
  std::vector<NodeViolation> violations_;
  IdVector<OperatorId, const ops::OpEntry*> entries_;
  std::vector<EarlyUse> early_uses_;
  IdVector<NodeId, bool> visited_, refers_to_call_;
  IdVector<NodeId, Gap> gaps_;
  std::set<NodeId> declared_;
  std::uint64_t visits_ = 0;
  bool ran_out_ = false, has_functions_ = false;
  mutable std::vector<std::uint32_t> user_offsets_;  // built on first use
  mutable std::vector<NodeId> user_list_;
};

/// Infers every value. Never fails: what cannot be inferred is top with a reason. `model` must outlive the result.
Analysis analyse(const Model& model, const AnalysisOptions& options);

/// Where an aspect of a value began: the input, initializer or node that made it what it is, walking back over nodes
/// that merely hand it on.
struct Origin {
  ValueId value = ValueId::kAbsent;
  NodeId node = NodeId::kNone;  ///< kNone: an input or initializer
};
Origin origin_of(const Analysis& analysis, ValueId value, Aspect aspect);

}  // namespace tensorlint::dataflow
