#pragma once

#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "passes/losses/axis_factors.h"
#include "passes/losses/axis_mistakes.h"
#include "passes/losses/loss_cone.h"

namespace tensorlint::losses {

/// Of what is compared axis by axis.
inline constexpr std::size_t kMaxRank = 8;

inline bool is_total(Opcode opcode) { return opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum; }

/// What one node does wrong, as far as it is about the samples of a batch that are mixed. Private to this folder.
class BatchMixing {
 public:
  explicit BatchMixing(const LossCone& cone) : cone_(cone), expressions_(cone.expressions()) {}
  std::optional<AxisMistake> at(NodeId node);
  /// What keeps only one sign of the value, less another one or a number.
  NodeId hinge_after(ValueId sum, bool is_compared = false) const;
  /// Large numbers of one sign become one number, those of the other sign stay different.
  bool saturates(NodeId node) const;

 private:
  std::optional<AxisMistake> cumulative(NodeId node);
  std::optional<AxisMistake> extreme_of_all(NodeId node);
  std::optional<AxisMistake> norm_in_divisor(NodeId node);
  std::optional<AxisMistake> norm_of_other_axis(NodeId node) const;
  std::optional<std::size_t> axis_of_norm(NodeId division) const;
  std::optional<AxisMistake> log_sum_exp(NodeId node);
  std::optional<AxisMistake> logarithm_of_mean(NodeId node) const;
  std::optional<AxisMistake> margin_of_sum(NodeId node);
  bool is_in_sequence();
  NodeId meets_samples(NodeId node) const;
  bool is_recurrent(NodeId node) const;
  ValueId reduced_in_whole(NodeId node) const;
  bool is_same_samples(ValueId value, ValueId data) const;
  NodeId joins_samples(ValueId number, ValueId data) const;
  std::pair<AxisFate, NodeId> contraction_after(ValueId value, std::size_t batch) const;
  bool is_score_of_classes(ValueId scores, std::size_t batch) const;
  bool is_summed_up_as_it_is(ValueId value, bool through_bounds) const;
  bool is_distance_or_product(NodeId sum) const;
  bool is_picked_logarithm(ValueId value) const;

  const LossCone& cone_;
  const Expressions& expressions_;
  std::optional<bool> is_in_sequence_;
};

/// Numbers that sum up a whole batch, where a number of each sample is needed, and layers whose steps are the samples.
class BatchTotals {
 public:
  BatchTotals(const LossCone& cone, const BatchMixing& mixing)
      : cone_(cone), expressions_(cone.expressions()), mixing_(mixing) {}
  std::optional<AxisMistake> at(NodeId node);

 private:
  std::optional<AxisMistake> weighed(NodeId node);
  std::optional<AxisMistake> projected(NodeId node);
  std::optional<AxisMistake> projected_on_own_norm(NodeId node, ValueId number, ValueId value);
  std::optional<AxisMistake> focal_of_total(NodeId node) const;
  std::optional<AxisMistake> best_of_totals(NodeId node);
  std::optional<AxisMistake> margin_of_norms(NodeId node);
  std::optional<AxisMistake> compared_norm(NodeId node);
  std::optional<AxisMistake> expectation(NodeId node);
  std::optional<AxisMistake> recurrence(NodeId node);
  NodeId shifted_along_samples(ValueId data) const;
  bool keeps_all_of_axis(ValueId value, std::size_t axis) const;
  NodeId steps_masked_along_other(ValueId data);
  std::optional<double> start_along_steps(NodeId slice) const;
  std::optional<AxisMistake> square_of_mean(NodeId node) const;
  bool is_data(ValueId value) const;
  bool has_long_batch(ValueId value) const;
  NodeId total_of(ValueId value) const;
  bool is_summed_up(ValueId value, bool in_proportion) const;
  bool terms_of(ValueId value, std::vector<std::pair<ValueId, ValueId>>& terms) const;
  ValueId squared(ValueId value) const;
  bool is_same_formula(ValueId a, ValueId b, int depth = 3) const;

  const LossCone& cone_;
  const Expressions& expressions_;
  const BatchMixing& mixing_;
  std::optional<std::vector<NodeId>> compares_;  // the first ones; made on first use
};

/// Formulas whose sums and means are of each sample, or of each feature, taken along the other axis.
class RowTerms {
 public:
  RowTerms(const LossCone& cone, const BatchMixing& mixing)
      : cone_(cone), expressions_(cone.expressions()), mixing_(mixing), factors_(expressions_, cone.origins()) {}
  std::optional<AxisMistake> at(NodeId node);

 private:
  std::optional<AxisMistake> divergence_of_batch(NodeId node) const;
  std::optional<AxisMistake> largest_of_batch(NodeId node) const;
  std::optional<AxisMistake> ratio_of_pixels(NodeId node);
  std::optional<AxisMistake> standardised(NodeId node) const;
  std::optional<AxisMistake> gate_of_batch(NodeId node) const;
  std::optional<AxisMistake> deviation_of_features(NodeId node) const;
  std::optional<AxisMistake> classes_elsewhere(NodeId node) const;
  std::optional<std::size_t> axis_of_one_hot(ValueId value) const;
  std::optional<std::size_t> batch_of(NodeId node) const;
  bool is_number(ValueId value) const;
  ValueId unscaled(ValueId value) const;
  NodeId total_after(ValueId value, Opcode total) const;
  bool is_log_probability(ValueId value, std::size_t batch) const;
  bool is_row_of_logarithms(ValueId value, std::size_t batch) const;
  bool is_divergence_from_normal(ValueId value) const;
  ValueId centred_over_batch(ValueId value, NodeId& mean) const;
  NodeId deviation_in(ValueId value) const;

  const LossCone& cone_;
  const Expressions& expressions_;
  const BatchMixing& mixing_;
  AxisFactors factors_;
};

/// Products that are summed along one of their axes, where their factors have been made for a sum along another one.
class ProductTerms {
 public:
  explicit ProductTerms(const LossCone& cone) : cone_(cone), expressions_(cone.expressions()) {}
  std::optional<AxisMistake> at(NodeId node) const;

 private:
  std::optional<AxisMistake> sum_of_copies(NodeId node) const;
  std::optional<AxisMistake> projection_of_centred(NodeId node) const;
  std::optional<AxisMistake> correlation_of_samples(NodeId node) const;
  std::optional<AxisMistake> correlation_of_layers(NodeId node) const;
  NodeId standardised_in_samples(ValueId value, std::size_t& axis) const;
  bool is_repeated(ValueId value, std::size_t axis, std::size_t rank) const;
  NodeId reads_classes(ValueId value, std::size_t axis) const;
  ValueId centred_over_batch(ValueId value, NodeId& mean) const;
  std::optional<std::size_t> standardised_along(ValueId value) const;
  std::optional<std::size_t> deviation_axis(ValueId value) const;
  ValueId before_turns(ValueId value) const;
  bool treats_diagonal(ValueId value) const;
  bool has_own_diagonal(ValueId value) const;
  bool counts(ValueId value, Dim extent) const;
  bool meets_identity(ValueId value) const;
  bool is_identity(ValueId value) const;

  const LossCone& cone_;
  const Expressions& expressions_;
};

/// How probabilities are read: along the axis along which they add up to 1, or along another one.
class SoftmaxUse {
 public:
  explicit SoftmaxUse(const LossCone& cone) : cone_(cone), expressions_(cone.expressions()) {}
  std::optional<AxisMistake> at(NodeId node);

 private:
  /// A value on the way from the probabilities.
  struct Reading {
    ValueId value;
    std::size_t axis;  ///< along which they add up to 1
    bool logarithm = false;
    bool weighs = false;         ///< multiplied with another value
    bool direct = true;          ///< only copied, scaled and masked
    bool turned = false;         ///< axes have been exchanged
    std::size_t before = 0;      ///< index of the reading that it comes from
    NodeId via = NodeId::kNone;  ///< by this node, of this operand
    std::size_t operand = 0;
  };
  std::optional<AxisMistake> use(const Normalised& softmax, const Reading& reading, NodeId user, std::size_t operand);
  std::optional<AxisMistake> of_flattened(const Normalised& softmax);
  std::optional<AxisMistake> follow(const Normalised& softmax, const Reading& from);
  std::optional<std::size_t> axis_at_first(std::span<const Reading> readings, std::size_t last, std::size_t axis) const;
  std::optional<AxisMistake> selected(const Normalised& softmax, const Reading& reading, NodeId user);
  bool is_averaged_evenly(ValueId value, std::size_t axis) const;
  std::optional<AxisMistake> selected_by_stride(const Normalised& softmax, const Reading& reading, NodeId user) const;
  std::optional<AxisMistake> selected_of_classes_first(const Normalised& softmax, NodeId view) const;
  std::optional<AxisMistake> summed(const Normalised& softmax, const Reading& reading, NodeId user);
  std::optional<AxisMistake> summed_over_more(const Normalised& softmax, const Reading& reading, NodeId user,
                                              std::span<const std::size_t> axes) const;
  bool are_places(const Normalised& softmax, ValueId shares, ValueId features) const;
  std::optional<AxisMistake> contracted(const Normalised& softmax, const Reading& reading, NodeId user,
                                        std::size_t operand);
  std::optional<AxisMistake> single_scores(const Normalised& softmax, const Reading& reading, NodeId user) const;
  AxisMistake mistake(AxisMistake::Kind kind, const Normalised& softmax, NodeId meets, std::size_t other) const;
  bool is_picked_from(NodeId user, std::size_t axis) const;
  bool is_averaged_later(ValueId value, std::size_t axis) const;
  bool is_grid(ValueId value) const;
  bool is_divided_by_own(ValueId sum, const Normalised& softmax) const;
  bool is_summed_over_batch(ValueId value) const;
  bool is_mean_of_masked(NodeId sum, std::size_t axis) const;
  bool is_normalised_again(ValueId value, std::size_t axis) const;
  bool is_product_of_samples(ValueId scores) const;
  bool compares_positions(const Normalised& softmax, std::size_t axis, std::size_t keys) const;
  bool is_normalised_otherwise(const Reading& reading, NodeId user) const;
  std::optional<Reading> next(const Reading& reading, NodeId user, std::size_t operand) const;

  const LossCone& cone_;
  const Expressions& expressions_;
};

/// Views and selections that take elements of one axis for those of another.
class MisreadViews {
 public:
  explicit MisreadViews(const LossCone& cone) : cone_(cone), expressions_(cone.expressions()) {}
  std::optional<AxisMistake> at(NodeId node);

 private:
  std::optional<AxisMistake> turned(NodeId node) const;
  std::optional<AxisMistake> pixels(NodeId node, std::span<const std::size_t> x, std::span<const std::size_t> y) const;
  std::optional<AxisMistake> batch_at_front(NodeId node) const;
  std::optional<AxisMistake> batch_behind(NodeId node) const;
  std::optional<AxisMistake> rotated(NodeId node) const;
  std::optional<AxisMistake> across_samples(NodeId node) const;
  std::optional<AxisMistake> beside_other_head(NodeId node) const;
  bool joins_parts(NodeId view) const;
  bool is_joined(ValueId value, std::size_t axis, Dim outer) const;
  bool may_shift_rows(ValueId value) const;
  bool goes_back(NodeId view) const;
  bool is_attention(NodeId view, std::span<const Dim> before) const;
  std::optional<AxisMistake> parts(NodeId node) const;
  std::optional<AxisMistake> rows_by_class(NodeId node) const;
  std::optional<AxisMistake> rows_of_first_column(NodeId node) const;
  std::optional<AxisMistake> columns_by_class(NodeId node) const;
  bool is_averaged_over_pairs(ValueId value, bool is_logarithm) const;
  bool is_moved_from(ValueId value, std::span<const ValueId> values) const;
  std::optional<AxisMistake> flattened_classes(NodeId node) const;

  const LossCone& cone_;
  const Expressions& expressions_;
};

/// Two values that meet element by element along axes that count different things.
class CrossedAxes {
 public:
  explicit CrossedAxes(const LossCone& cone) : cone_(cone), expressions_(cone.expressions()) {}
  std::optional<AxisMistake> at(NodeId node);

 private:
  std::optional<AxisMistake> crossed(NodeId node, ValueId wide, ValueId narrow);
  bool belongs_elsewhere(ValueId wide, std::size_t meets, std::size_t right, ValueId narrow, std::size_t axis);
  bool is_of_matrix_of_pairs(const AxisOrigins::Sources& sources) const;
  bool have_common(const AxisOrigins::Sources& a, const AxisOrigins::Sources& b) const;
  bool is_input_axis(const AxisSource& source) const;
  bool is_inner_axis_of_input(ValueId value, std::size_t axis);
  bool meet_elsewhere(const AxisOrigins::Sources& own, const AxisOrigins::Sources& samples);
  bool has_samples_elsewhere(ValueId wide, std::size_t meets, std::size_t right, ValueId narrow, std::size_t axis);
  std::optional<AxisMistake> vectors_of_both_sides(NodeId node, ValueId wide, ValueId narrow);
  int order_of(ValueId value, std::size_t first, std::size_t second);
  std::optional<AxisMistake> turned_pictures(NodeId node, ValueId a, ValueId b);
  std::optional<AxisMistake> weights_of_classes(NodeId node, ValueId losses, ValueId weights);
  NodeId reduced_along(ValueId wide, std::size_t meets, ValueId narrow);
  bool is_degree(NodeId node, NodeId reduction, ValueId wide, std::size_t meets, std::size_t right);
  bool is_named_twice(ValueId value);
  bool meets_its_own(ValueId narrow, std::size_t axis, ValueId wide, NodeId node);
  std::optional<AxisMistake> statistic_of_rows(NodeId node);
  bool is_summed_along(ValueId value, std::size_t axis) const;
  bool is_symmetric(ValueId value) const;
  std::optional<AxisMistake> cosine_of_pairs(NodeId node);
  std::optional<AxisMistake> masked_mean(NodeId node, ValueId wide, ValueId narrow);
  std::optional<AxisMistake> gate_of_channels(NodeId node, ValueId wide, ValueId narrow);
  NodeId pooled_from(ValueId wide, ValueId value) const;
  bool is_added_to_picture(NodeId node, std::span<const Dim> shape) const;
  std::optional<AxisMistake> one_for_pair(NodeId node, ValueId pairs, ValueId numbers);
  std::optional<AxisMistake> weighs_features(NodeId node, ValueId parts, ValueId shares);

  const LossCone& cone_;
  const Expressions& expressions_;
};

/// Axes that have been flattened in one order, and meet or are separated in another one.
class FlattenedOrder {
 public:
  explicit FlattenedOrder(const LossCone& cone)
      : cone_(cone), expressions_(cone.expressions()), factors_(cone.expressions(), cone.origins()) {}
  std::optional<AxisMistake> at(NodeId node);

 private:
  std::optional<AxisMistake> met(NodeId node, ValueId a, std::size_t axis_of_a, ValueId b, std::size_t axis_of_b);
  std::optional<AxisMistake> contracted(NodeId node);
  std::optional<AxisMistake> viewed_back(NodeId node);
  NodeId flattened_at(ValueId value, std::size_t axis);

  const LossCone& cone_;
  const Expressions& expressions_;
  AxisFactors factors_;
};

/// Layers that go along the steps of a sequence, where the steps are along another axis.
class SequenceAxes {
 public:
  explicit SequenceAxes(const LossCone& cone) : cone_(cone), expressions_(cone.expressions()) {}
  std::optional<AxisMistake> at(NodeId node);

 private:
  struct Attention {
    NodeId node;
    ValueId scores;
    AxisOrigins::Sources keys;
    AxisOrigins::Sources others;  ///< of the axes before queries and keys
  };
  const std::vector<Attention>& attentions();
  bool is_product_of_data(ValueId scores) const;
  std::optional<AxisMistake> attention_of_batch(NodeId node);
  NodeId removed_along(const Attention& attention, Dim kept, Dim removed) const;
  std::optional<AxisMistake> positions_of_batch(NodeId node);
  bool is_table_of_positions(ValueId value) const;
  std::optional<AxisMistake> steps_as_channels(NodeId node);
  bool has_equal_steps(ValueId value) const;

  const LossCone& cone_;
  const Expressions& expressions_;
  std::optional<std::vector<Attention>> attentions_;
};

}  // namespace tensorlint::losses
