#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "passes/dataflow/analysis.h"
#include "passes/losses/loss_sites.h"
#include "passes/losses/parameters.h"
#include "passes/losses/terms.h"

namespace tensorlint::losses {

/// Finds the losses of a model. Private to this folder: users call `find_losses`. What each loss is known by stands in
/// a file of its own.
class Finder {
 public:
  explicit Finder(const dataflow::Analysis& analysis)
      : analysis_(analysis), model_(analysis.model()), terms_(analysis), parameters_(analysis) {}

  std::vector<LossSite> find();
  /// The loss that one call is.
  std::optional<LossSite> find_at(NodeId call);

 private:
  using Nodes = std::vector<NodeId>;

  /// How far behind a distance its reduction may stand: weights, means over rows, a root, a scale.
  static constexpr int kMaxTail = 5;

  void add(LossKind kind, LossEvidence evidence, NodeId meeting, ValueId prediction, ValueId target, Nodes nodes);
  void add_operator(NodeId id, const ops::OpEntry& entry);
  void append_makers(std::span<const ValueId> values, Nodes& nodes) const {
    for (const ValueId value : values) nodes.push_back(terms_.maker(value));
  }
  /// What makes an operand of the loss is no part of it.
  void drop_maker(ValueId value, Nodes& nodes) const { std::erase(nodes, terms_.maker(value)); }

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

  const dataflow::Analysis& analysis_;
  const Model& model_;
  const Terms terms_;
  Parameters parameters_;
  std::vector<LossSite> sites_;
  std::optional<bool> mentions_losses_;
};

}  // namespace tensorlint::losses
