#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "ir/ops/element.h"
#include "passes/losses/expressions.h"

namespace tensorlint::losses {

/// One element of a value as an expression of elements of other values. Between them lie operators whose entries
/// declare what they make of elements (OpEntry::element), copies, and calls of functions that consist of such; all else
/// is a leaf. Broadcasting is not looked at: an element is compared with whatever element meets it.
class Formula {
 public:
  enum class PartKind : std::uint8_t { kLeaf, kConstant, kSame, kElement };
  struct Part {
    PartKind kind = PartKind::kLeaf;
    ValueId value = ValueId::kAbsent;  ///< kAbsent inside of functions
    NodeId node = NodeId::kNone;
    std::string_view op{};  ///< of a kElement its operator, inside of functions as well
    double constant = 0;
    ops::ElementValue element = nullptr;
    std::span<const Attribute> attributes{};
    std::vector<std::uint32_t> operands{};  ///< indices of parts; kNoPart where left out
  };
  static constexpr std::uint32_t kNoPart = 0xffff'ffffU;

  Formula(const Expressions& expressions, ValueId root);

  /// False for a formula that is too large to be read; it has no parts then.
  bool is_complete() const { return complete_; }
  /// Operands before their users; the last one is the root.
  std::span<const Part> parts() const { return parts_; }
  /// `part` is computed from `from`, or is it.
  bool depends(std::size_t part, std::size_t from) const { return (ancestors_[part] >> from & 1U) != 0; }
  /// The one leaf; nullopt where there are none or several.
  std::optional<std::size_t> only_leaf() const;
  /// The numbers in the formula.
  std::vector<double> constants() const;

  struct Assignment {
    std::size_t part;
    double value;
  };
  /// The root where the assigned parts have these values; leaves that are not assigned have a value of their own, which
  /// `variant` changes. NaN outside of a function's domain.
  double evaluate(std::span<const Assignment> assignments, int variant) const;
  /// Each of the parts, where it was evaluated last.
  std::span<const double> values() const { return values_; }

 private:
  struct Scope;
  std::uint32_t build(ValueId value, const Scope* scope, int depth);
  std::uint32_t build_call(NodeId node, const Scope* scope, int depth);
  bool read_node(NodeId node, const Scope* scope, int depth, Part& part);
  std::uint32_t add(Part part, const Scope* scope);
  static std::uint64_t steps_of(const Part& part);
  double compute(std::size_t index, int variant) const;

  static constexpr std::size_t kMaxParts = 48;  // ancestors_ are bits of one number

  const Expressions& expressions_;
  std::set<const Graph*> opaque_;  // functions that are more than arithmetic
  std::vector<Part> parts_;
  std::vector<std::uint64_t> ancestors_;
  bool complete_ = true;
  mutable std::vector<double> values_, arguments_;  // of one evaluation
  mutable std::vector<double> unassigned_;          // values where nothing is assigned, in variant_
  mutable int variant_ = -1;
};

}  // namespace tensorlint::losses
