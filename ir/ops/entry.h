#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/ops/element.h"
#include "ir/ops/loss_kind.h"
#include "ir/ops/opcode.h"
#include "ir/schema/schema.h"

namespace tensorlint::ops {

struct Constraint;
class Inference;
using InferFunction = void (*)(Inference&);

/// What several operators have in common, whatever they compute.
enum class OpTrait : std::uint32_t {
  kElementwise = 1U << 0,     ///< numpy broadcasting of all operands to one shape
  kReduction = 1U << 1,       ///< `axes` or `axis` of the data operand are reduced
  kShapeOf = 1U << 2,         ///< only the operand's shape matters
  kControlFlow = 1U << 3,     ///< has subgraphs, solved by the dataflow solver
  kKeepsSign = 1U << 4,       ///< elements are negative where those of operand 0 are
  kUnboundedAbove = 1U << 5,  ///< grows beyond every bound with operand 0
  kCountsElements = 1U << 6,  ///< extents of results are counted in elements, which no inference before a run does
};

/// What an operand is to its operator; data, where the entry says nothing.
enum class OperandRole : std::uint8_t {
  kHost,        ///< says how to compute, not what on: on the cpu or with the data, nowhere else
  kHostList,    ///< the same, and a list even of one number, where others are scalars
  kIndex,       ///< indexes operand 0
  kPrediction,  ///< of a loss
  kTarget,
};

/// Where operands may be, and results are.
enum class DeviceRule : std::uint8_t {
  kTogether,     ///< data operands are on one device, and the results with them
  kHostResults,  ///< results are on the cpu, operands anywhere
  kArgument,     ///< results are on the device that the attribute `device` names, operands anywhere
  kIndependent,  ///< operands are not compared; results are with them where they are together, else anywhere
};

/// What is known of an operator beyond its schema. Entries register themselves; one operator, one entry per range of
/// versions.
class OpEntry {
 public:
  struct Role {
    std::string_view operand;  ///< the formal name; versions of the operator without it are fine
    OperandRole role;
  };

  explicit OpEntry(std::string_view name, std::string_view domain = "") : name_(name), domain_(domain) {}
  OpEntry& since(int version) { return since_ = version, *this; }  ///< first opset it holds for; default 1
  OpEntry& until(int version) { return until_ = version, *this; }  ///< last opset it holds for
  OpEntry& infer(InferFunction function) { return infer_ = function, *this; }
  OpEntry& constraint(const Constraint& constraint) { return constraints_.push_back(&constraint), *this; }
  OpEntry& computes(Opcode opcode) { return opcode_ = opcode, *this; }
  OpEntry& element(ElementValue value) { return element_ = value, *this; }
  OpEntry& trait(OpTrait trait) { return traits_ |= static_cast<std::uint32_t>(trait), *this; }
  OpEntry& device(DeviceRule rule) { return device_ = rule, *this; }
  OpEntry& host(std::string_view operand) { return role(operand, OperandRole::kHost); }
  OpEntry& host_list(std::string_view operand) { return role(operand, OperandRole::kHostList); }
  OpEntry& index(std::string_view operand) { return role(operand, OperandRole::kIndex); }
  OpEntry& loss(LossKind kind, std::string_view prediction, std::string_view target) {
    loss_ = kind;
    return role(prediction, OperandRole::kPrediction).role(target, OperandRole::kTarget);
  }

  std::string_view name() const { return name_; }
  std::string_view domain() const { return domain_; }
  int first_version() const { return since_; }
  int last_version() const { return until_; }
  InferFunction inference() const { return infer_; }
  std::span<const Constraint* const> constraints() const { return constraints_; }
  Opcode opcode() const { return opcode_; }
  /// Null where the operator is not elementwise, or where one element is more than arithmetic.
  ElementValue element() const { return element_; }
  bool has(OpTrait trait) const { return (traits_ & static_cast<std::uint32_t>(trait)) != 0; }
  DeviceRule device_rule() const { return device_; }
  /// The loss that one call of the operator is.
  std::optional<LossKind> loss() const { return loss_; }
  std::span<const Role> roles() const { return roles_; }
  /// The role of an operand by its formal name.
  std::optional<OperandRole> role_of(std::string_view operand) const;

 private:
  OpEntry& role(std::string_view operand, OperandRole role) { return roles_.push_back({operand, role}), *this; }

  std::string_view name_, domain_;
  int since_ = 1, until_ = 1 << 20;
  InferFunction infer_ = nullptr;
  std::uint32_t traits_ = 0;
  Opcode opcode_ = Opcode::kOther;
  ElementValue element_ = nullptr;
  DeviceRule device_ = DeviceRule::kTogether;
  std::optional<LossKind> loss_;
  std::vector<const Constraint*> constraints_;
  std::vector<Role> roles_;
};

/// At namespace scope of an entry's file: `const RegisterOps kSoftmaxes{softmax(), log_softmax()};`
struct RegisterOps {
  RegisterOps(std::initializer_list<OpEntry> entries);
};

std::span<const OpEntry> all_entries();  ///< in no particular order
/// The entry in force; null when the operator has none.
const OpEntry* find_entry(std::string_view domain, std::string_view name, std::int64_t opset);

/// The first operand that has the role; -1 where this version of the operator has none.
int operand_with(const OpSchema& schema, const OpEntry& entry, OperandRole role);

// What several ask of an operator that may have no entry.

inline Opcode opcode_of(const OpEntry* entry) { return entry == nullptr ? Opcode::kOther : entry->opcode(); }
inline bool has_trait(const OpEntry* entry, OpTrait trait) { return entry != nullptr && entry->has(trait); }

}  // namespace tensorlint::ops
