#include "ir/ops/violation.h"

#include <fmt/format.h>

#include "ir/ops/shape_functions.h"
#include "ir/ops/value_types.h"

namespace tensorlint::ops {
namespace {

template <typename... Functions>
struct Overloads : Functions... {
  using Functions::operator()...;
};

std::string allowed_text(const TypeSet& types) {
  std::string text;
  const auto add = [&](std::string part) { text += (text.empty() ? "" : ", ") + std::move(part); };
  if (!types.tensor.empty()) add(types.tensor.to_text());
  if (!types.sparse_tensor.empty()) add("sparse " + types.sparse_tensor.to_text());
  if (!types.sequence.empty()) add("a sequence of " + types.sequence.to_text());
  if (!types.optional_tensor.empty()) add("an optional " + types.optional_tensor.to_text());
  if (!types.optional_sequence.empty()) add("an optional sequence of " + types.optional_sequence.to_text());
  if (types.map) add("a map");
  if (types.sequence_map) add("a sequence of maps");
  return text;
}

std::string type_text(const FactStore& facts, const Fact& fact) {
  if (fact.kind == ValueKind::kTensor) return fact.dtypes.to_text();
  if (fact.kind == ValueKind::kSparseTensor) return "sparse " + fact.dtypes.to_text();
  if (fact.kind == ValueKind::kMap || holds_map(facts, fact)) return std::string(to_text(fact.kind));
  return fmt::format("{} {} of {}", fact.kind == ValueKind::kOptional ? "an" : "a", to_text(fact.kind),
                     innermost_dtypes(facts, fact).to_text());
}

/// Writes messages with their arguments.
class Writer {
 public:
  Writer(const FactStore& facts, const ValueNames& names, std::string& out) : facts_(facts), names_(names), out_(out) {}

  void write(const Message& message) {
    std::string_view rest = message.wording;
    for (const Argument& argument : message.arguments) {
      const std::size_t hole = rest.find("{}");
      out_ += rest.substr(0, hole);
      rest.remove_prefix(hole + 2);
      write(argument);
    }
    out_ += rest;
  }

 private:
  void write(const Argument& argument) {
    const auto one = Overloads{
        [&](std::int64_t number) { out_ += fmt::format("{}", number); },
        [&](double number) { out_ += fmt::format("{}", number); },
        [&](std::string_view text) { out_ += text; },
        [&](const std::string& text) { out_ += text; },
        [&](OperandRef operand) { out_ += names_.operand(operand.index); },
        [&](ResultRef result) { out_ += names_.result(result.index); },
        [&](AttributeName attribute) { out_ += fmt::format("`{}`", attribute.name); },
        [&](Axis axis) { out_ += fmt::format("{}", axis.value); },
        [&](Index index) { out_ += facts_.dims().to_text(index.value); },
        [&](Dim dim) { out_ += facts_.dims().to_text(dim); },
        [&](const std::vector<Dim>& shape) { out_ += shape_text(facts_.dims(), shape); },
        [&](ShapeId shape) { out_ += facts_.shape_text(shape); },
        [&](DTypeSet dtypes) { out_ += dtypes.to_text(); },
        [&](const TypeSet* types) { out_ += allowed_text(*types); },
        [&](DTypeOf value) { out_ += type_text(facts_, facts_.fact(value.fact)); },
        [&](FactId fact) { out_ += facts_.to_text(fact); },
        [&](const Range& range) { out_ += range.to_text(); },
        [&](const ArgumentList& list) { write(list); },
        [&](const Message& message) { write(message); },
    };
    std::visit(one, argument.value());
  }

  void write(const ArgumentList& list) {
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const bool last = i + 1 == list.items.size() && !list.last_separator.empty();
      if (i > 0) out_ += last ? list.last_separator : list.separator;
      write(list.items[i]);
    }
  }

  const FactStore& facts_;
  const ValueNames& names_;
  std::string& out_;
};

/// The first argument of that type, also in messages within messages.
template <typename T>
const T* first(const Message& message) {
  for (const Argument& argument : message.arguments) {
    if (const auto* found = std::get_if<T>(&argument.value())) return found;
    if (const auto* inner = std::get_if<Message>(&argument.value()))
      if (const T* found = first<T>(*inner)) return found;
  }
  return nullptr;
}

}  // namespace

Aspect aspect_of(ConstraintKind kind) {
  switch (kind) {
    case ConstraintKind::kTypeConstraint:
    case ConstraintKind::kMixedDtypes:
    case ConstraintKind::kBranchTypes:
    case ConstraintKind::kLoopCarriedType:
      return Aspect::kDtype;
    case ConstraintKind::kIndexRange:
    case ConstraintKind::kClassRange:
    case ConstraintKind::kDomain:
      return Aspect::kValue;
    default:
      return Aspect::kShape;
  }
}

ArgumentList operands_list(std::span<const int> operands) {
  ArgumentList list{{}, ", ", " and "};
  for (const int operand : operands) list.items.emplace_back(OperandRef(operand));
  return list;
}

std::optional<std::string_view> Violation::attribute() const {
  const auto* found = first<AttributeName>(message);
  return found != nullptr ? std::optional(found->name) : std::nullopt;
}

std::optional<std::int64_t> Violation::axis() const {
  const auto* found = first<Axis>(message);
  return found != nullptr ? std::optional(found->value) : std::nullopt;
}

std::optional<Dim> Violation::index() const {
  const auto* found = first<Index>(message);
  return found != nullptr ? std::optional(found->value) : std::nullopt;
}

std::string ValueNames::operand(int index) const { return fmt::format("{{{}}}", index); }
std::string ValueNames::result(int index) const { return fmt::format("{{r{}}}", index); }

std::string to_text(const Message& message, const FactStore& facts, const ValueNames& names) {
  std::string text;
  Writer(facts, names, text).write(message);
  return text;
}

}  // namespace tensorlint::ops
