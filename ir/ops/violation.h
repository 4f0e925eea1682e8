#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ir/call/application.h"
#include "ir/facts/fact.h"
#include "ir/schema/schema.h"

namespace tensorlint::ops {

/// What a constraint is about: rules word kinds, not operators.
enum class ConstraintKind : std::uint8_t {
  kUnknownOperator,
  kNotInOpset,
  kOperandCount,
  kUnknownAttribute,  ///< the schema has no attribute of that name
  kAttribute,         ///< missing, of the wrong kind, or of a value the operator does not allow
  kTypeConstraint,    ///< an operand's type is none of those that the operator allows
  kMixedDtypes,       ///< operands that share a type variable have different dtypes
  kAxisRange,         ///< an axis outside [-rank, rank)
  kDuplicateAxis,
  kRank,          ///< an operand has too few or too many axes, whatever their extents
  kShapes,        ///< operands whose shapes do not fit each other or the operator
  kElementCount,  ///< Reshape
  kConcatRanks,
  kConcatShapes,
  kIndexRange,       ///< an index outside the extent it indexes
  kClassRange,       ///< a class index outside [0, C)
  kDomain,           ///< a value for which the operator is not defined
  kBranchTypes,      ///< If: the branches' results cannot be of one type
  kLoopCarriedType,  ///< Loop, Scan: a carried value changes its type
  kIterationShapes,  ///< Loop, Scan: what iterations give differs in shape
  kDeclaredType,     ///< a declared kind or dtype contradicts what is inferred
  kDeclaredShape,    ///< the declared shape of an output contradicts what is inferred
  kNotedShape,       ///< a shape in value_info contradicts what is inferred
};
inline constexpr ConstraintKind kLastConstraintKind = ConstraintKind::kNotedShape;

/// The aspect that a violation of this kind is about, and taints.
Aspect aspect_of(ConstraintKind kind);

/// Decided by the operator, its attributes and the dtypes of its operands alone.
constexpr bool is_about_signature(ConstraintKind kind) {
  switch (kind) {
    case ConstraintKind::kUnknownOperator:
    case ConstraintKind::kNotInOpset:
    case ConstraintKind::kOperandCount:
    case ConstraintKind::kUnknownAttribute:
    case ConstraintKind::kAttribute:
    case ConstraintKind::kTypeConstraint:
    case ConstraintKind::kMixedDtypes:
      return true;
    default:
      return false;
  }
}

/// Decided by the number of axes alone.
constexpr bool is_about_rank(ConstraintKind kind) {
  return kind == ConstraintKind::kRank || kind == ConstraintKind::kConcatRanks;
}

/// A declared shape, of an output or in value_info: runtimes warn of it, and compute what the nodes say.
constexpr bool is_about_declared_shape(ConstraintKind kind) {
  return kind == ConstraintKind::kDeclaredShape || kind == ConstraintKind::kNotedShape;
}

/// A labelled precondition of an operator. The label ties entry and test together; code asks for the kind.
struct Constraint {
  std::string_view label;  ///< "reduce_axes_in_range": unique
  ConstraintKind kind;
  std::string_view text;  ///< "-rank <= axis < rank"
  /// ONNX's inference refuses what breaks it, and so does onnxruntime when it loads a model, in bodies that never run,
  /// too; where it is about axes and shapes, as far as these are known before a run. Measured with onnxruntime 1.31.
  bool is_inferred = false;
};

enum class Certainty : std::uint8_t { kMust, kMay };

/// The name of an operand of the call, by its index.
struct OperandRef {
  explicit constexpr OperandRef(std::integral auto operand) : index(static_cast<int>(operand)) {}
  int index;
};

/// The name of a result of the call, by its index.
struct ResultRef {
  explicit constexpr ResultRef(std::integral auto result) : index(static_cast<int>(result)) {}
  int index;
};

/// An attribute's name, in backticks. The text belongs to a schema, to the model or to the program.
struct AttributeName {
  explicit constexpr AttributeName(std::string_view text) : name(text) {}
  template <std::same_as<std::string> Text>
  explicit AttributeName(const Text&) = delete;
  std::string_view name;
};

/// An axis as the call gives it: perhaps negative, perhaps out of range.
struct Axis {
  explicit constexpr Axis(std::integral auto axis) : value(static_cast<std::int64_t>(axis)) {}
  std::int64_t value;
};

/// What indexes: an element of an index operand, a class, a position.
struct Index {
  explicit constexpr Index(Dim index) : value(index) {}
  Dim value;
};

/// The dtype of a value, with what holds it: "float32", "a sequence of int64".
struct DTypeOf {
  explicit constexpr DTypeOf(FactId value) : fact(value) {}
  FactId fact;
};

class Argument;

/// Arguments one after the other, with a separator; another one before the last where it is not empty.
struct ArgumentList {
  std::vector<Argument> items;
  std::string_view separator;
  std::string_view last_separator;
};

/// Text with a `{}` for each of `count` arguments, checked by the compiler.
template <std::size_t count>
struct Wording {
  template <std::size_t size>
  consteval Wording(const char (&literal)[size]) : text(literal, size - 1) {  // NOLINT: a literal is one
    std::size_t holes = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '}') throw "a brace is part of {}";
      if (text[i] != '{') continue;
      if (++i == text.size() || text[i] != '}') throw "a brace is part of {}";
      ++holes;
    }
    if (holes != count) throw "one {} for each argument";
  }
  std::string_view text;
};

/// What there is to say, as data: words, and the values that they are about. Text is made of it by to_text alone, once
/// it is shown: of most violations in loops and trials nobody ever reads.
struct Message {
  Message() = default;
  template <typename... Values>
  Message(Wording<sizeof...(Values)> wording, Values&&... values);  // NOLINT: {"words", values} is a message

  bool empty() const { return wording.empty(); }

  std::string_view wording;
  std::vector<Argument> arguments;
};

/// One value in a message. Texts are views of what outlives the analysis (the program, schemas, the model); a
/// std::string is copied.
class Argument {
 public:
  using Value = std::variant<std::int64_t, double, std::string_view, std::string, OperandRef, ResultRef, AttributeName,
                             Axis, Index, Dim, std::vector<Dim>, ShapeId, DTypeSet, const TypeSet*, DTypeOf, FactId,
                             Range, ArgumentList, Message>;

  // NOLINTBEGIN(google-explicit-constructor): whatever a message may hold is an argument
  template <std::integral T>
    requires(!std::same_as<T, char> && !std::same_as<T, bool>)
  Argument(T number) : value_(static_cast<std::int64_t>(number)) {}
  Argument(double number) : value_(number) {}
  Argument(char letter) : value_(std::string(1, letter)) {}
  Argument(const char* text) : value_(std::string_view(text)) {}
  Argument(std::string_view text) : value_(text) {}
  Argument(std::string text) : value_(std::move(text)) {}
  Argument(DType dtype) : value_(DTypeSet(dtype)) {}
  Argument(std::span<const Dim> shape) : value_(std::vector<Dim>(shape.begin(), shape.end())) {}
  Argument(std::vector<Dim> shape) : value_(std::move(shape)) {}
  template <typename T>
    requires(std::same_as<T, OperandRef> || std::same_as<T, ResultRef> || std::same_as<T, AttributeName> ||
             std::same_as<T, Axis> || std::same_as<T, Index> || std::same_as<T, Dim> || std::same_as<T, ShapeId> ||
             std::same_as<T, DTypeSet> || std::same_as<T, const TypeSet*> || std::same_as<T, DTypeOf> ||
             std::same_as<T, FactId> || std::same_as<T, Range> || std::same_as<T, ArgumentList> ||
             std::same_as<T, Message>)
  Argument(T value) : value_(std::move(value)) {}
  // NOLINTEND(google-explicit-constructor)

  const Value& value() const { return value_; }

 private:
  Value value_;
};

template <typename... Values>
Message::Message(Wording<sizeof...(Values)> words, Values&&... values) : wording(words.text) {
  arguments.reserve(sizeof...(Values));
  (arguments.emplace_back(std::forward<Values>(values)), ...);
}

/// "3 or 4": the values of a range.
template <std::ranges::range Values>
ArgumentList joined(const Values& values, std::string_view separator) {
  ArgumentList list{{}, separator, {}};
  for (const auto& value : values) list.items.emplace_back(value);
  return list;
}

/// "{1}, {2} and {3}".
ArgumentList operands_list(std::span<const int> operands);

/// What a violation and its message take. A call that fails is inferred anew at each visit, with as many of them as it
/// has operands.
inline constexpr std::uint64_t kStepsOfViolation = 24;

/// A constraint that does not hold for a call, as data.
struct Violation {
  const Constraint* constraint = nullptr;
  Certainty certainty = Certainty::kMust;
  std::vector<int> operands;  ///< concerned ones, the culprit first
  Message message;
  Message witness;              ///< kMay: a concrete case in which it fails
  bool engines_differ = false;  ///< some run the call in every case; the witness says which do not

  ConstraintKind kind() const { return constraint->kind; }
  Aspect aspect() const { return aspect_of(constraint->kind); }
  /// The attribute that is wrong or missing, the axis, the index: the first that the message names; none where it
  /// names none.
  std::optional<std::string_view> attribute() const;
  std::optional<std::int64_t> axis() const;
  std::optional<Dim> index() const;
};

/// How the operands and results of a call are called in texts: "{0}", "{r0}" unless overridden.
class ValueNames {
 public:
  virtual ~ValueNames() = default;
  virtual std::string operand(int index) const;
  virtual std::string result(int index) const;
};

/// The text of a message: the one place where violations become words.
std::string to_text(const Message& message, const FactStore& facts, const ValueNames& names = {});

}  // namespace tensorlint::ops
