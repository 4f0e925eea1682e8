#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "passes/dataflow/analysis.h"
#include "passes/losses/expressions.h"
#include "passes/losses/formula.h"
#include "passes/losses/loss_sites.h"
#include "passes/losses/parameters.h"

namespace tensorlint::losses {

/// Whether something calls a graph.
using CalledGraphs = IdVector<GraphId, bool>;

/// Finds the losses of a model. Private to this folder: users call `find_losses`. What each loss is known by stands in
/// a file of its own.
class LossPatternMatcher {
 public:
  explicit LossPatternMatcher(const dataflow::Analysis& analysis)
      : analysis_(analysis), model_(analysis.model()), expressions_(analysis), parameters_(analysis) {}

  std::vector<LossSite> find();
  /// The loss that one call is.
  std::optional<LossSite> find_at(NodeId call);

 private:
  using Nodes = std::vector<NodeId>;

  /// How far behind a distance its reduction may stand: weights, means over rows, a root, a scale.
  static constexpr int kMaxTail = 5;

  void add(LossKind kind, LossEvidence evidence, NodeId anchor, ValueId prediction, ValueId target, Nodes nodes);
  void add_operator(NodeId id, const ops::OpEntry& entry);
  void append_makers(std::span<const ValueId> values, Nodes& nodes) const {
    for (const ValueId value : values) nodes.push_back(expressions_.producer(value));
  }
  /// What makes an operand of the loss is no part of it.
  void drop_producer(ValueId value, Nodes& nodes) const { std::erase(nodes, expressions_.producer(value)); }

  // ---- binary_cross_entropy.cc

  bool add_cross_entropy_of_two(NodeId combination);
  bool is_product(ValueId value) const;
  NodeId product_with(std::span<const ValueId> factors, ValueId a, ValueId b) const;
  bool add_binary(NodeId combination, std::span<const ValueId> positive, std::span<const ValueId> negative);
  bool is_negated(NodeId node) const;
  bool add_with_logits(NodeId combination, std::span<const ValueId> linear, std::span<const ValueId> logarithmic);
  void append_class_weights(std::span<const ValueId> factors, ValueId target, Nodes& nodes) const;

  // ---- divergence.cc

  bool add_divergence(NodeId difference);
  void append_selections(ValueId value, Nodes& nodes) const;

  // ---- differences.cc

  void add_difference(NodeId difference);
  bool is_mean_of(ValueId mean, ValueId value) const;
  NodeId same_difference(NodeId product, NodeId difference) const;
  bool append_broadcast(NodeId difference, Nodes& nodes) const;
  bool append_huber(ValueId size, ValueId difference, Nodes& nodes) const;
  bool is_square(std::span<const ValueId> factors, ValueId size, ValueId difference) const;
  bool is_line(std::span<const ValueId> factors, ValueId size) const;
  bool append_reduction(ValueId value, Nodes& nodes) const;
  bool reduces_to_scalar(NodeId id) const;
  bool keeps_axes(NodeId id) const;
  bool is_named(NodeId node, LossKind kind);
  bool is_result_of_model(ValueId distance, ValueId a, ValueId b);

  // ---- cross_entropy.cc

  void add_cross_entropy(NodeId logarithm);
  ValueId index_source(ValueId value) const;
  bool append_negated_reduction(ValueId value, Nodes& nodes) const;

  // ---- summed.cc

  struct SumWalk;
  /// What a norm makes of each element before it sums them up.
  enum class Outer : std::uint8_t { kNone, kSize, kSquare };

  void add_summed(const CalledGraphs& is_called);
  bool is_scalar(ValueId value) const;
  void go_back(SumWalk& walk, ValueId value, Outer outer, bool reduced);
  void go_back_to_factor(SumWalk& walk, ValueId value, ValueId other, Outer outer, bool reduced);
  bool share_leaves(ValueId a, ValueId b) const;
  void reach_site(const SumWalk& walk, NodeId anchor);
  bool add_term(const SumWalk& walk, ValueId value, Outer outer);
  bool add_pair(const SumWalk& walk, const Formula& formula, Outer outer);
  bool is_exponent(const Formula& formula, std::size_t part) const;
  bool is_statistic_of(ValueId statistic, ValueId value) const;
  bool is_pair(const Formula& formula, std::size_t a, std::size_t b) const;
  void add_evaluated(const SumWalk& walk, const Formula& formula, LossKind kind, std::size_t prediction,
                     std::size_t target);
  bool add_log_probability(const SumWalk& walk, const Formula& formula);
  static bool is_weighed_by(const Formula& formula, std::size_t part, std::size_t weight);
  static double apply(Outer outer, double value);
  /// Prediction and target may be exchanged.
  static bool is_symmetric(LossKind kind);

  const dataflow::Analysis& analysis_;
  const Model& model_;
  const Expressions expressions_;
  Parameters parameters_;
  std::vector<LossSite> sites_;
  std::optional<bool> mentions_losses_;
  /// Over all outputs: nodes that are looked at for what they sum up, and pairs of values that are tried.
  int steps_left_ = 20'000, tries_left_ = 4'000;
  std::set<NodeId> unexplained_;  // nodes of summed terms that are not a known loss
};

}  // namespace tensorlint::losses
