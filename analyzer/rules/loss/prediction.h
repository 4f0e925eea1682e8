#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/rules/rule.h"
#include "passes/losses/axis_mistakes.h"
#include "passes/losses/expressions.h"

namespace tensorlint::rules {

/// The node that computed a value before Identity, Dropout and Cast between floating dtypes; kNone where there is
/// none.
NodeId producer_behind_identities(const dataflow::Analysis& analysis, ValueId value);

/// A Clip, Min or Max takes the value: what goes on is bounded, whatever the value is. Costs a walk over the nodes.
bool is_clamped(const dataflow::Analysis& analysis, ValueId value);

/// Goes back from a value and calls `visit` with each value that a node computes, and that node; goes on to its
/// operands where that is true. Each value once, and at most 400; false where there are more, or the meter was spent.
bool walk_back(const losses::Expressions& expressions, ValueId from,
               const std::function<bool(ValueId value, NodeId node)>& visit);

/// A layer that has weights, a product or a convolution, is on the way back from the value.
bool comes_from_layer(const losses::Expressions& expressions, ValueId value);

/// Each element of the results is computed from elements of the operands: moved, cast, picked, reduced or combined.
bool is_reduction_or_elementwise(const losses::Expressions& expressions, NodeId node);

/// The logarithms that a loss sums up: back from it over reductions and elementwise operators, to the first on each
/// way.
std::vector<NodeId> summed_logarithms(const losses::Expressions& expressions, ValueId loss);

/// Defined between -1 and 1 alone, as an arc cosine is.
bool is_of_unit_interval(const losses::Expressions& expressions, NodeId node);

/// The outputs of the main graph that may be a loss: is_one_float.
std::vector<ValueId> one_float_outputs(const dataflow::Analysis& analysis);
/// None of them may be a loss: nobody trains here. False where the analysis ended early and an output may be anything.
bool has_no_loss_output(const dataflow::Analysis& analysis);

struct AddedReduction {
  NodeId node;    ///< ReduceMean or ReduceSum
  double factor;  ///< of its result in the loss
};
/// The outermost means and sums that are added up to a loss.
std::vector<AddedReduction> added_reductions(const losses::Expressions& expressions, ValueId loss);

/// What is added up to a loss, through sums, means and products with numbers, from the loss on: a sum comes before what
/// it is the sum of.
struct LossTerm {
  ValueId value;
  double factor;             ///< of it in the loss, but for how many a mean is taken of
  std::size_t from;          ///< the term that it is a part of
  bool is_followed = false;  ///< its parts are terms, too
};
struct LossTerms {
  std::vector<LossTerm> terms;
  bool is_complete = true;  ///< else the loss has more of them
};
LossTerms loss_terms(const losses::Expressions& expressions, ValueId loss);

/// One side of a difference before a number is added to it; kAbsent for kAbsent.
ValueId before_margin(const losses::Expressions& expressions, ValueId value);

enum class LossWay : std::uint8_t { kUnknown, kRises, kFalls };
/// Whether the loss rises or falls with the value; unknown where that is used twice or in a way that is not followed.
LossWay loss_way(const losses::Expressions& expressions, ValueId value, ValueId loss);

/// Certainly a float tensor of one element, as a loss is.
bool is_one_float(const dataflow::Analysis& analysis, ValueId value);

/// Mistakes about axes in what goes into numbers of the model; found once for all rules.
const std::vector<losses::AxisMistake>& axis_mistakes(Reporter& out);

/// ", axis 1 of `x`" of an axis that has moved since the node of the mistake; empty where it has not.
std::string axis_before_moves(const dataflow::Analysis& analysis, const losses::AxisMistake& mistake);

/// What the node of a mistake works on: its name and its shape.
std::string described(const dataflow::Analysis& analysis, ValueId value);

/// The loss takes class indices, and its target has a floating-point number for each score: class probabilities, as
/// PyTorch's cross-entropy takes them.
bool has_class_probabilities(const ViolationCase& violation);

}  // namespace tensorlint::rules
