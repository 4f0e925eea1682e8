#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "analyzer/rules/rule.h"
#include "passes/losses/expressions.h"

namespace tensorlint::rules {

/// Calls `visit` with each node of one of the opcodes that an execution reaches and that fails in nothing, in file
/// order, until the meter is spent. All rules share one walk over the model.
void each_node(const ModelView& view, Reporter& out, std::initializer_list<ops::Opcode> wanted,
               const std::function<void(const losses::Expressions&, const NodeCall&)>& visit);
/// The same with each softmax or logarithm of one, written out with Exp and a sum, too: with the node that has the
/// probabilities.
void each_softmax(
    const ModelView& view, Reporter& out,
    const std::function<void(const losses::Expressions&, const NodeCall&, const losses::Normalised&)>& visit);
/// The same for all of the main graph, where an output of the model may be a loss; no node otherwise.
void each_node_of_step(const ModelView& view, Reporter& out,
                       const std::function<void(const losses::Expressions&, const NodeCall&)>& visit);

/// Whether there is a node of one of the opcodes: for rules that look at many nodes, and mean few of them.
bool has_node(Reporter& out, std::initializer_list<ops::Opcode> wanted);

/// 1 / x, by what it computes.
bool is_reciprocal(const losses::Expressions& expressions, NodeId node);

/// The value before its elements were moved, looked up or cast.
ValueId before_moves(const losses::Expressions& expressions, ValueId value);
/// The same where every element is still there: transposed, stretched, given another shape, cast.
ValueId before_stretch(const losses::Expressions& expressions, ValueId value);
/// The same where the elements are still in their order: given another shape, cast.
ValueId before_views(const losses::Expressions& expressions, ValueId value);
ValueId before_casts(const losses::Expressions& expressions, ValueId value);

/// An input of the main graph, without a default.
bool is_input(const dataflow::Analysis& analysis, ValueId value);

/// Random numbers.
bool is_drawn(const losses::Expressions& expressions, ValueId value);
/// Random numbers or an input, which may hold such, before they were stretched; false for kAbsent.
bool may_be_noise(const losses::Expressions& expressions, ValueId value);

/// The name of a value as a hint to what it holds: empty where it is longer than names that people give, so that it can
/// be searched whenever it is met.
std::string_view telling_name(const dataflow::Analysis& analysis, ValueId value);

/// The number that all elements of a tensor are, as far as that is proven.
std::optional<double> number_of(const Operand& operand);

/// The same of a table of the program's own as well, whose elements are looked at.
std::optional<double> same_number(const dataflow::Analysis& analysis, ValueId value);

/// The elements of an initializer or of what a Constant holds, row-major; nullopt for more than `most`, and where the
/// meter lets no more tables be read.
std::optional<std::vector<double>> constant_numbers(const dataflow::Analysis& analysis, ValueId value,
                                                    std::size_t most = 4096);
std::optional<std::vector<double>> constant_numbers(const losses::Expressions& expressions, ValueId value);
/// The same from the smallest to the largest; nullopt where one of them is not a number.
std::optional<std::vector<double>> sorted_numbers(const losses::Expressions& expressions, ValueId value,
                                                  std::size_t most = 4096);
/// One number for all channels of a picture, or one for each, before it was stretched; none where there are more
/// than 16.
std::vector<double> channel_numbers(const losses::Expressions& expressions, ValueId value);
/// The least and the largest of them, of tables that would be too large to keep; nullopt of no numbers, too.
std::optional<std::pair<double, double>> constant_bounds(const dataflow::Analysis& analysis, ValueId value,
                                                         std::size_t most);
/// A constant whose bounds constant_bounds does not look for.
bool is_left_unread(const dataflow::Analysis& analysis, ValueId value, std::size_t most);

/// The operand of the node that is not a number, with the number; of commutative nodes either may come first.
struct WithNumber {
  ValueId value = ValueId::kAbsent;
  double number = 0;
  bool is_first = false;  ///< the number is
};
std::optional<WithNumber> with_number(const losses::Expressions& expressions, NodeId node);

/// An initializer, or what a Constant holds.
bool is_constant(const losses::Expressions& expressions, ValueId value);

/// Weights take its features, perhaps after it was moved, scaled, joined, normalised or dropped from.
bool is_read_by_layer(const losses::Expressions& expressions, ValueId value);

/// A value that is added to others, times a number.
struct Summand {
  ValueId value = ValueId::kAbsent;
  double factor = 1;
};
/// What sums, differences and products with numbers are of, before stretching: 2 to 6 summands, or none. Numbers that
/// are added are summands of their own (`kApart`), or x + 1 is one summand (`kWithin`).
enum class Numbers : std::uint8_t { kApart, kWithin };
std::vector<Summand> summands(const losses::Expressions& expressions, ValueId value, Numbers numbers);

/// d for the sum of d * d along axes; kAbsent for anything else.
ValueId summed_squares(const losses::Expressions& expressions, ValueId value);

/// Before what keeps a divisor or a logarithm's argument off 0: a small summand, a bound.
ValueId before_guard(const losses::Expressions& expressions, ValueId value);

/// A sum with decay * old + (1 - decay) * added, as averages are carried from step to step; 0.5 < decay < 1.
struct RunningAverage {
  double decay = 0;
  ValueId old = ValueId::kAbsent, added = ValueId::kAbsent;
};
std::optional<RunningAverage> running_average(const losses::Expressions& expressions, ValueId value);

/// Sums of squares, magnitudes, exponentials and such; NaN may be among them.
bool is_never_negative(const losses::Expressions& expressions, ValueId value);

/// Before products and quotients with numbers.
ValueId before_scale(const losses::Expressions& expressions, ValueId value);
/// Before products with numbers other than 0, and before changes of the sign; `sign` changes with theirs.
ValueId before_signed_scale(const losses::Expressions& expressions, ValueId value, double& sign);

/// The elements of a value from `shift` on along an axis, and then those before it, joined by `node`.
struct Roll {
  NodeId node = NodeId::kNone;
  ValueId from = ValueId::kAbsent;
  std::size_t axis = 0;
  std::int64_t shift = 0, extent = 0;
};
std::optional<Roll> rolled_by(const losses::Expressions& expressions, NodeId node);

/// t for 1 - t, before it was moved as a whole; kAbsent for anything else.
ValueId rest_of(const losses::Expressions& expressions, ValueId value);

/// Divided by its own norm.
bool is_of_unit_length(const losses::Expressions& expressions, ValueId value);

/// Products of vectors that are divided by their lengths, and of what else: an input may have been divided before.
struct Cosine {
  NodeId node = NodeId::kNone;
  bool both_divided = false;
  bool is_of_itself = false;  ///< of every vector with every other, itself included
};
std::optional<Cosine> cosine_of(const losses::Expressions& expressions, ValueId value);

/// Whether the program itself has nothing between `value`, an operand of `user`, and `from`, which it was moved from.
/// PyTorch's exporter drops a summand of 1e-8 or less, which is all that keeps many a root or logarithm off 0; what it
/// writes about a node still names the operand that the node had. Unknown where that was taken out of the file.
enum class AsWritten : std::uint8_t { kYes, kUnknown, kNo };
AsWritten is_operand_as_written(Reporter& out, const losses::Expressions& expressions, NodeId user, ValueId value,
                                ValueId from);

/// Both are computed by equal operators from the same values, so many steps back. Of values that share a producer alone
/// this is sure: tables that hold the same may be weights of two layers.
bool are_computed_alike(const losses::Expressions& expressions, ValueId a, ValueId b, int steps = 4);

/// A reduction that multiplies. No other one lacks an opcode.
bool is_product(const losses::Expressions& expressions, NodeId node);

/// The difference of the smaller one of two ends and the larger one of two starts, before its elements were moved: how
/// far two intervals overlap, less than 0 where they are apart; kNone for anything else.
NodeId overlap_of_intervals(const losses::Expressions& expressions, ValueId value);

/// The Where that uses a value, if any: what it has of the value may not count.
bool is_chosen_from(const losses::Expressions& expressions, ValueId value);

/// What becomes of a result is chosen or bounded: the edge of a domain was thought of.
bool is_kept_finite(const losses::Expressions& expressions, ValueId result);

/// max(x, 0) of its first operand, in whatever way it is written.
bool is_rectifier(const losses::Expressions& expressions, NodeId node);

/// A Where puts -infinity into scores, or a summand has it.
bool has_minus_infinity(const losses::Expressions& expressions, ValueId scores);

}  // namespace tensorlint::rules
