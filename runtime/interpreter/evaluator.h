#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "runtime/interpreter/evaluation.h"

namespace tensorlint::runtime {

using EvaluateFunction = void (*)(Evaluation&);

/// What an operator does to rounding errors: one word, on which comparing runs stands.
struct Rounding {
  enum class Kind : std::uint8_t {
    kExact,        ///< results are elements of operands, or integers
    kRounded,      ///< one correctly rounded operation an element (+ - * / sqrt)
    kFunction,     ///< one call of a function an element, which engines approximate to some ulps
    kAccumulates,  ///< sums of many products or elements, in an order that engines choose
    kComposite,    ///< several steps; the amplitude is the evaluator's own
  };
  Kind kind = Kind::kComposite;
  std::string_view function{};  ///< kFunction: which

  static constexpr Rounding exact() { return {Kind::kExact}; }
  static constexpr Rounding rounded() { return {Kind::kRounded}; }
  static constexpr Rounding of(std::string_view function) { return {Kind::kFunction, function}; }
  static constexpr Rounding accumulates() { return {Kind::kAccumulates}; }
  static constexpr Rounding composite() { return {Kind::kComposite}; }
};

/// How an operator is computed. Evaluators register themselves; one operator, one evaluator a range of versions.
class Evaluator {
 public:
  explicit Evaluator(std::string_view name, std::string_view domain = "") : name_(name), domain_(domain) {}
  Evaluator& since(int version) { return since_ = version, *this; }  ///< first opset it holds for; default 1
  Evaluator& until(int version) { return until_ = version, *this; }  ///< last opset it holds for
  Evaluator& evaluate(EvaluateFunction function) { return evaluate_ = function, *this; }
  Evaluator& error(Rounding rounding) { return rounding_ = rounding, *this; }

  std::string_view name() const { return name_; }
  std::string_view domain() const { return domain_; }
  int first_version() const { return since_; }
  int last_version() const { return until_; }
  EvaluateFunction function() const { return evaluate_; }
  Rounding rounding() const { return rounding_; }

 private:
  std::string_view name_, domain_;
  int since_ = 1, until_ = 1 << 20;
  EvaluateFunction evaluate_ = nullptr;
  Rounding rounding_;
};

/// At namespace scope of a family's file: `const RegisterEvaluators kSoftmaxes{softmax(), log_softmax()};`
struct RegisterEvaluators {
  RegisterEvaluators(std::initializer_list<Evaluator> evaluators);
};

std::span<const Evaluator> all_evaluators();  ///< in no particular order
/// The evaluator in force; null when the operator has none.
const Evaluator* find_evaluator(std::string_view domain, std::string_view name, std::int64_t opset);

}  // namespace tensorlint::runtime
