#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/meter.h"
#include "passes/losses/expressions.h"

namespace tensorlint::rules {

/// Whether a name ends in `ending`, which is in lower case; in whatever case the name is.
bool has_ending(std::string_view name, std::string_view ending);

/// 0, 1, 2, ..., as integers that the program itself makes.
bool are_steps(const losses::Expressions& expressions, ValueId value);

/// Ones on a diagonal and zeros elsewhere, made by the program.
bool is_identity_matrix(const losses::Expressions& expressions, ValueId value);

/// 0 and 1: what has been bool, an identity matrix, an input called a mask, the rest of one, and products of those.
bool is_mask(const losses::Expressions& expressions, ValueId value);

/// 0, 1, 2, ... compared with numbers of steps: true for the steps of a sequence, false for what fills it up.
struct StepMask {
  ValueId lengths = ValueId::kAbsent;  ///< an integer input, as it is
  bool is_strict = false;              ///< the step at the length is not one of them
  ValueId steps = ValueId::kAbsent;    ///< 0, 1, 2, ...
};
std::optional<StepMask> step_mask(const losses::Expressions& expressions, NodeId node);

/// A condition that hides scores where it holds, or where it does not: -1e9 is put in their place or added to them.
struct HiddenScores {
  NodeId node = NodeId::kNone;           ///< puts it there
  ValueId condition = ValueId::kAbsent;  ///< bool, before it was negated and stretched
  bool hides_true = false;
};
std::optional<HiddenScores> hidden_scores(const losses::Expressions& expressions, ValueId scores);

/// Numbers of words that are looked up in a table, and compared with the number of one of them.
struct OneWord {
  ValueId words = ValueId::kAbsent;  ///< an integer input, as it is
  double number = 0;
};
std::optional<OneWord> is_one_word(const losses::Expressions& expressions, ValueId condition);

/// 0, 1, 2, ... are compared with it: those below it are the steps.
bool counts_steps(const losses::Expressions& expressions, ValueId lengths);

/// One element of a matrix that the program itself makes: of constants, of the part above or below a diagonal, of
/// numbers that are counted, and what is computed element by element of those.
class MatrixElements {
 public:
  explicit MatrixElements(const losses::Expressions& expressions)
      : expressions_(expressions), memory_(expressions.analysis().meter()) {}

  /// In the row and column of the last two axes; nullopt where data has a part in it.
  std::optional<double> at(ValueId value, std::int64_t row, std::int64_t column) { return at(value, row, column, 0); }

 private:
  std::optional<double> at(ValueId value, std::int64_t row, std::int64_t column, int depth);
  std::optional<double> of_view(ValueId from, ValueId to, std::int64_t row, std::int64_t column, int depth);
  std::optional<double> of_constant(ValueId value, std::int64_t row, std::int64_t column);
  std::optional<double> of_triangle(NodeId node, std::int64_t row, std::int64_t column, int depth);
  const std::vector<double>* numbers_of(ValueId value);

  const losses::Expressions& expressions_;
  KeptMemory memory_;
  std::map<ValueId, std::optional<std::vector<double>>> constants_;
};

/// A square of numbers that is true on one side of the diagonal and nowhere on the other: true for the side before it;
/// the diagonal may be either. Asked of the first rows and columns.
using IsTrueAt = std::function<std::optional<bool>(std::int64_t row, std::int64_t column)>;
std::optional<bool> side_of_diagonal(const IsTrueAt& is_true, std::int64_t extent);

/// Zeros on one side of the diagonal and ones on the other, as the program itself has them: who sees whom.
bool is_triangle_of_ones(const losses::Expressions& expressions, ValueId mask);

/// A mask of the program's own, of the last two axes of scores, that hides one side of the diagonal.
struct Triangle {
  NodeId node = NodeId::kNone, softmax = NodeId::kNone;
  bool hides_past = false;
  bool hides_row = false;  ///< of the first or last position all
  bool is_infinite = false;
};

class Triangles {
 public:
  explicit Triangles(const losses::Expressions& expressions) : expressions_(expressions) {}
  std::optional<Triangle> before(const losses::Normalised& softmax);

 private:
  const losses::Expressions& expressions_;
  /// Which side a mask hides, by the value and by whether it hides where that holds; layers share one.
  std::map<std::pair<ValueId, bool>, std::optional<bool>> known_;
};

}  // namespace tensorlint::rules
