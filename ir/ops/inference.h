#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/call/application.h"
#include "ir/ops/entry.h"
#include "ir/ops/violation.h"

namespace tensorlint::ops {

/// Shapes with more axes are not tracked; numpy's own limit.
inline constexpr std::size_t kMaxRank = 64;

/// Every constraint: those that all operators share and those of the entries.
std::vector<const Constraint*> all_constraints();

struct InferenceResult {
  std::vector<FactId> results;
  std::vector<Taint> taints;
  std::vector<Violation> violations;
  /// Pairs of extents that are equal in every execution that gets past this call.
  std::vector<std::pair<Dim, Dim>> equalities;
  /// False when the outcome depends on more than operator, attributes and operand facts (fresh symbols, tensors).
  bool repeatable = true;
  void clear();
};

/// Infers one application: arity, attributes and types against the schema, then the entry's shapes, contents, ranges.
/// Failures about tainted aspects are dropped. `entry` may be null: then dtypes as far as the schema tells, else top.
void infer(const Application& call, const OpEntry* entry, InferenceResult& out);

/// What an entry's function sees: one application whose arity, attributes and types have been checked.
/// Operands are asked for by their formal names (schema) or by index. Result dtypes are already set from the schema's
/// type variables where these are bound; shapes are unknown, ranges everything, until set.
class Inference {
 public:
  Inference(const Application& call, InferenceResult& out) : call_(call), out_(out) {}

  const Application& call() const { return call_; }
  std::int64_t opset() const { return call_.opset; }
  FactStore& facts() { return *call_.facts; }
  DimPool& dims() { return call_.facts->dims(); }

  // Operands. A name that the schema does not have is a bug of the entry (assert).
  int index_of(std::string_view operand) const;
  std::size_t operand_count() const { return call_.operands.size(); }
  bool has(int operand) const { return operand >= 0 && call_.has_operand(static_cast<std::size_t>(operand)); }
  bool has(std::string_view operand) const { return has(index_of(operand)); }
  const Fact& operand(int operand) const { return call_.operand(static_cast<std::size_t>(operand)); }
  const Fact& operand(std::string_view name) const { return operand(index_of(name)); }
  FactId operand_id(int operand) const {
    return has(operand) ? call_.operands[static_cast<std::size_t>(operand)] : FactId::kTop;
  }
  /// Dims of a ranked tensor operand; nullopt when absent, unranked or no tensor.
  std::optional<std::span<const Dim>> shape(int operand) const;
  std::optional<std::span<const Dim>> shape(std::string_view operand) const { return shape(index_of(operand)); }
  std::optional<int> rank(int operand) const;
  /// Elements of an integer operand, some perhaps unknown; nullopt when its content is not tracked. Row-major.
  std::optional<std::span<const Dim>> elements(int operand) const;
  std::optional<std::span<const Dim>> elements(std::string_view operand) const { return elements(index_of(operand)); }
  /// Elements that are all constants.
  std::optional<std::vector<std::int64_t>> constants(int operand) const;
  std::optional<std::vector<std::int64_t>> constants(std::string_view operand) const {
    return constants(index_of(operand));
  }
  /// The one element of a scalar or one-element integer operand, as a constant.
  std::optional<std::int64_t> constant(std::string_view operand) const;
  std::optional<std::vector<double>> float_constants(std::string_view operand) const;
  /// Number of elements of a 1-d operand, from its shape.
  std::optional<std::int64_t> length(std::string_view operand) const;

  // Attributes. Where the attribute is missing: the fallback, or the schema's default by the callers' knowledge.
  const Attribute* attribute(std::string_view name) const { return call_.attribute(name); }
  std::int64_t int_attribute(std::string_view name, std::int64_t fallback) const;
  std::optional<std::int64_t> int_attribute(std::string_view name) const;
  double float_attribute(std::string_view name, double fallback) const;
  std::string_view string_attribute(std::string_view name, std::string_view fallback) const;
  std::optional<std::span<const std::int64_t>> ints_attribute(std::string_view name) const;

  // Results.
  std::size_t result_count() const { return call_.result_count; }
  Fact& result(int index = 0);  ///< a fact to fill in; results past result_count are dropped
  void set_tensor(int result, DTypeSet dtypes, std::span<const Dim> shape);
  void set_shape(int result, std::span<const Dim> shape);
  void set_dtype(int result, DTypeSet dtypes) { this->result(result).dtypes = dtypes; }
  void set_range(int result, const Range& range) { this->result(result).range = range; }
  /// Integer elements, row-major; ignored beyond kMaxContent. Also narrows the range to the elements' bounds.
  void set_elements(int result, std::vector<Dim> elements);
  void set_floats(int result, std::vector<double> elements);
  /// The whole fact of an operand.
  void set_same(int result, int operand) { this->result(result) = this->operand(operand); }
  void set_fact(int result, FactId fact) { this->result(result) = facts().fact(fact); }
  /// A symbol of this call alone; makes the call not repeatable.
  Dim fresh(int result, int axis, Unknown reason, std::int64_t lo = 0);
  /// Says that the outcome depends on tensors behind attributes: not repeatable.
  void depends_on_tensor() { out_.repeatable = false; }

  /// The call fails wherever the two differ: what comes after may rely on it. Never for operands that broadcast.
  void learn_equal(Dim a, Dim b);

  // Failures. Dropped when an operand named in it is tainted in the constraint's aspect. The results of a failed call
  // are tainted in that aspect; go on with the best guess.
  void fail(const Constraint& constraint, std::vector<int> operands, Message message);
  void may_fail(const Constraint& constraint, std::vector<int> operands, Message message, Message witness);
  /// Fails with some engines, which `witness` names; the results have to cover what the others give.
  void fails_somewhere(const Constraint& constraint, std::vector<int> operands, Message message, Message witness);
  bool failed() const { return failed_; }

 private:
  friend void infer(const Application&, const OpEntry*, InferenceResult&);
  void finish();
  void add_possible(Violation violation);

  const Application& call_;
  InferenceResult& out_;
  std::vector<Fact> results_;
  Taint failed_aspects_;
  bool failed_ = false;
};

}  // namespace tensorlint::ops
