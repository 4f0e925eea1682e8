#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/inference.h"
#include "ir/ops/shape_functions.h"
#include "ir/ops/signatures.h"
#include "tests/ops/broken_constraints.h"

namespace tensorlint::ops {

/// What one application was inferred to be, as text: "float32[2, N]"; "label" of a must, "label?" of a may violation.
struct Outcome {
  std::vector<std::string> results;
  std::vector<std::string> failures;
  std::vector<std::string> messages;
  InferenceResult raw;

  std::string result(std::size_t index = 0) const { return index < results.size() ? results[index] : "none"; }
};

/// One call of an operator written by hand:
/// `Op("MatMul", 13).in("float32[2, N]").in("float32[N, 3]").infer().result() == "float32[2, 3]"`.
class Op {
 public:
  Op(std::string_view name, std::int64_t opset, std::string_view domain = "") : store_(std::make_unique<FactStore>()) {
    call_.domain = domain;
    call_.name = name;
    call_.opset = opset;
    call_.schema = find_schema(domain, name, static_cast<int>(opset));
    call_.facts = store_.get();
    call_.result_count = 1;
    call_.site = 1;
  }

  FactStore& facts() { return *store_; }

  /// "float32[2, N]", "int64[]", "float32[2, ?]", "float32[...]", "string[3]"; a name is a symbol.
  Op& in(std::string_view type) { return in(tensor(type)); }
  Op& in(const Fact& fact) { return operands_.push_back(store_->intern(fact)), *this; }
  Op& absent() { return operands_.push_back(FactId::kAbsent), *this; }
  Op& unknown() { return operands_.push_back(FactId::kTop), *this; }
  /// A sequence of tensors, each of that type; its length is a dim as in `in`.
  Op& sequence(std::string_view type, std::string_view length = "?") {
    Fact fact;
    fact.kind = ValueKind::kSequence;
    fact.element = store_->intern(tensor(type));
    fact.shape = store_->intern_shape(std::vector<Dim>{dim(length)});
    return in(fact);
  }
  /// A constant of integers; without a type a 1-d int64 tensor.
  Op& constant(std::vector<std::int64_t> values, std::string_view type = "") {
    Fact fact = tensor(type.empty() ? "int64[" + std::to_string(values.size()) + "]" : std::string(type));
    std::vector<Dim> elements;
    for (const std::int64_t value : values) elements.push_back(store_->dims().constant(value));
    if (!elements.empty()) fact.range = range_of(store_->dims(), elements);
    fact.content = store_->intern_content({elements, {}});
    return in(fact);
  }
  Op& scalar(std::int64_t value) { return constant({value}, "int64[]"); }
  /// Integer elements given as dims: "N", "3", "?".
  Op& elements(std::initializer_list<std::string_view> values, std::string_view type = "") {
    Fact fact = tensor(type.empty() ? "int64[" + std::to_string(values.size()) + "]" : std::string(type));
    std::vector<Dim> dims;
    for (const std::string_view value : values) dims.push_back(dim(value));
    fact.content = store_->intern_content({dims, {}});
    return in(fact);
  }
  Op& floats(std::vector<double> values, std::string_view type = "") {
    Fact fact = tensor(type.empty() ? "float32[" + std::to_string(values.size()) + "]" : std::string(type));
    fact.content = store_->intern_content({{}, std::move(values)});
    return in(fact);
  }
  /// Narrows the range of the last operand.
  Op& range(double lo, double hi, bool nan = false) {
    Fact fact = store_->fact(operands_.back());
    fact.range = {lo, hi, nan};
    operands_.back() = store_->intern(fact);
    return *this;
  }
  /// Taints the last operand.
  Op& taint(Aspect aspect) {
    taints_.resize(operands_.size());
    taints_.back() |= aspect;
    return *this;
  }

  Op& with(std::string_view name, std::int64_t value) {
    Attribute& attribute = add(name, AttributeKind::kInt);
    attribute.i = value;
    return *this;
  }
  Op& with(std::string_view name, int value) { return with(name, std::int64_t{value}); }
  Op& with(std::string_view name, double value) {
    Attribute& attribute = add(name, AttributeKind::kFloat);
    attribute.f = static_cast<float>(value);
    return *this;
  }
  Op& with(std::string_view name, const char* value) {
    Attribute& attribute = add(name, AttributeKind::kString);
    attribute.s = value;
    return *this;
  }
  Op& ints(std::string_view name, std::vector<std::int64_t> values) {
    int_lists_.push_back(std::move(values));
    add(name, AttributeKind::kInts).ints = int_lists_.back();
    return *this;
  }
  Op& float_list(std::string_view name, std::vector<float> values) {
    float_lists_.push_back(std::move(values));
    add(name, AttributeKind::kFloats).floats = float_lists_.back();
    return *this;
  }
  Op& strings(std::string_view name, std::vector<std::string_view> values) {
    string_lists_.push_back(std::move(values));
    add(name, AttributeKind::kStrings).strings = string_lists_.back();
    return *this;
  }
  Op& attribute(const Attribute& attribute) { return attributes_.push_back(attribute), *this; }
  Op& results(std::uint32_t count) { return call_.result_count = count, *this; }

  Outcome infer() {
    const OpEntry* entry = find_entry(call_.domain, call_.name, call_.opset);
    EXPECT_NE(entry, nullptr) << "no entry for " << call_.name;
    EXPECT_NE(call_.schema, nullptr) << "no schema for " << call_.name;
    return outcome_of([&](InferenceResult& result) { tensorlint::ops::infer(call_, entry, result); });
  }
  /// The call as it is so far; a view of this.
  const Application& application() {
    taints_.resize(operands_.size());
    call_.operands = operands_;
    call_.operand_taints = taints_;
    call_.attributes = attributes_;
    return call_;
  }
  /// As a user's signature says, of an operator that has no entry.
  Outcome infer_as(const Signature& signature) {
    return outcome_of([&](InferenceResult& result) { infer_signature(signature, call_, result); });
  }

  /// Facts and contents of a result, for what the text does not show.
  const Fact& fact(const Outcome& outcome, std::size_t result = 0) const {
    return store_->fact(outcome.raw.results[result]);
  }
  /// Integer elements as text: "2 N ?"; floats as numbers; "none" where not tracked.
  std::string content(const Outcome& outcome, std::size_t result = 0) const {
    const Content* content = store_->content(fact(outcome, result).content);
    if (content == nullptr) return "none";
    std::string text;
    for (const Dim element : content->integers) text += (text.empty() ? "" : " ") + store_->dims().to_text(element);
    for (const double value : content->floats) {
      std::ostringstream stream;
      stream << value;
      text += (text.empty() ? "" : " ") + stream.str();
    }
    return text;
  }

  Fact tensor(std::string_view type) {
    Fact fact;
    fact.kind = ValueKind::kTensor;
    const std::size_t open = type.find('[');
    const auto dtype = dtype_named(type.substr(0, open));
    EXPECT_TRUE(dtype.has_value()) << type;
    if (dtype) fact.dtypes = *dtype;
    fact.range = tensorlint::range_of(fact.dtypes);
    const std::string_view inner = type.substr(open + 1, type.size() - open - 2);
    if (inner == "...") return fact;
    std::vector<Dim> dims;
    for (std::size_t at = 0; at < inner.size();) {
      const std::size_t comma = std::min(inner.find(',', at), inner.size());
      dims.push_back(dim(inner.substr(at, comma - at)));
      at = comma + 1;
    }
    fact.shape = store_->intern_shape(dims);
    return fact;
  }

  Dim dim(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (text == "?") return Dim(Unknown::kNotTracked);
    if (const std::size_t plus = text.find('+'); plus != std::string_view::npos)
      return store_->dims().add(dim(text.substr(0, plus)), dim(text.substr(plus + 1)));
    if (text.find_first_not_of("-0123456789") == std::string_view::npos)
      return store_->dims().constant(std::stoll(std::string(text)));
    return store_->dims().symbol(text);
  }

 private:
  template <typename Infer>
  Outcome outcome_of(Infer infer) {
    application();
    Outcome outcome;
    infer(outcome.raw);
    for (const FactId result : outcome.raw.results) outcome.results.push_back(store_->to_text(result));
    for (const Violation& violation : outcome.raw.violations) {
      broken_constraints().emplace(violation.constraint->label);
      outcome.failures.push_back(std::string(violation.constraint->label) +
                                 (violation.certainty == Certainty::kMay ? "?" : ""));
      outcome.messages.push_back(to_text(violation.message, *store_));
    }
    return outcome;
  }

  Attribute& add(std::string_view name, AttributeKind kind) {
    Attribute& attribute = attributes_.emplace_back();
    attribute.name = name;
    attribute.kind = kind;
    return attribute;
  }

  std::unique_ptr<FactStore> store_;
  Application call_;
  std::vector<FactId> operands_;
  std::vector<Taint> taints_;
  std::vector<Attribute> attributes_;
  // Attributes are views of these, so they must not move.
  std::deque<std::vector<std::int64_t>> int_lists_;
  std::deque<std::vector<float>> float_lists_;
  std::deque<std::vector<std::string_view>> string_lists_;
};

}  // namespace tensorlint::ops
