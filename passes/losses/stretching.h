#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "passes/losses/axis_origins.h"

namespace tensorlint::losses {

/// How two values stretch each other where they meet element by element, and whether a program means it.
class Stretching {
 public:
  Stretching(const Expressions& expressions, AxisOrigins& origins)
      : expressions_(expressions),
        analysis_(expressions.analysis()),
        pool_(analysis_.facts().dims()),
        origins_(origins) {}

  /// Nullopt where it is not known, or only assumed.
  std::optional<std::span<const Dim>> shape(ValueId value) const;
  /// Both are stretched, along axes that are the same, the batch of the one against the batch of the other, and
  /// nothing says that it is meant.
  bool are_all_pairs(ValueId a, ValueId b);
  /// The same where no loss says what the two are: both have the batch, and no axis is added, turned or shared on the
  /// way to them. `is_separable`: products that are summed, which is the product of two sums and never worth a matrix;
  /// there an axis that one of them got is a mistake, too.
  bool are_batches_of_two(ValueId a, ValueId b, bool is_separable);
  /// [N, 1, 1] against [N, C]: an axis more than it needs to meet the row of its own sample.
  bool has_axis_too_many(ValueId a, ValueId b);
  /// [N, 1] against the input [M]: each is the batch of its own input, and the exporter, which saw nothing that makes
  /// the two equal, gave them two names.
  bool are_two_batches(ValueId prediction, ValueId target);
  /// [M, 1] against [M], neither of which got an axis on purpose.
  bool is_column_against_row(ValueId a, ValueId b) const;
  /// [N, 1] against y.squeeze() of [N, 1], whose rank no exporter knows where N is open: [N] but for a single sample.
  bool is_column_against_squeezed(ValueId column, ValueId squeezed);
  /// `narrow` has one element along an axis where `wide` has more.
  bool is_stretched(ValueId narrow, ValueId wide) const;
  /// [..., T, 1] against [..., 1, T].
  bool are_turned(ValueId a, ValueId b) const;

 private:
  struct Moved {
    ValueId from;
    bool gets_axis = false, transposed = false;
  };

  /// False where the meter does not allow to compare so many pairs of axes.
  bool may_compare(std::size_t axes_of_a, std::size_t axes_of_b) const;
  std::vector<std::size_t> batch_axes(ValueId value, std::span<const std::size_t> among);
  std::vector<std::size_t> stretches(std::span<const Dim> a, std::span<const Dim> b) const;
  std::size_t long_axes(std::span<const Dim> dims) const;
  bool is_column_of(std::span<const Dim> column, std::span<const Dim> row) const;
  std::optional<std::size_t> last_long(std::span<const Dim> dims) const;
  Moved moved(ValueId value, bool through_elements) const;

  const Expressions& expressions_;
  const Analysis& analysis_;
  DimPool& pool_;
  AxisOrigins& origins_;
};

}  // namespace tensorlint::losses
