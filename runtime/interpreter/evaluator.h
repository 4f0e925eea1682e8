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
    kSelects,      ///< positions of elements of operand 0 along `axis`, and these: of equal ones either is right
    kRandom,       ///< drawn: no two engines agree
    kComposite,    ///< several steps; the amplitude is the evaluator's own
  };
  /// How many elements or products an operator sums into one, from its concrete operands.
  using Terms = double (*)(Evaluation&);

  Kind kind = Kind::kComposite;
  std::string_view function{};   ///< kFunction: which
  Terms terms = nullptr;         ///< kAccumulates, kComposite: null: the longest axis of an operand
  bool gives_amplitude = false;  ///< kComposite: the evaluator answers Purpose::kAmplitude
  double scale = 0;              ///< kComposite: its steps compute numbers of this size, however small a result is
  bool jumps = false;            ///< a result in floats jumps where an operand passes a threshold; integers always do

  static constexpr Rounding exact() { return {Kind::kExact}; }
  static constexpr Rounding selects() { return {Kind::kSelects}; }
  static constexpr Rounding random() { return {Kind::kRandom}; }
  static constexpr Rounding rounded() { return {Kind::kRounded}; }
  static constexpr Rounding of(std::string_view function) { return {Kind::kFunction, function}; }
  /// The amplitude is what the evaluator gives for the magnitudes of its operands.
  static constexpr Rounding accumulates(Terms terms = nullptr) { return {Kind::kAccumulates, {}, terms}; }
  static constexpr Rounding composite(Terms terms = nullptr) { return {Kind::kComposite, {}, terms}; }
  constexpr Rounding with_amplitude() const { return {kind, function, terms, true, scale, jumps}; }
  constexpr Rounding of_scale(double size) const { return {kind, function, terms, gives_amplitude, size, jumps}; }
  constexpr Rounding with_jumps() const { return {kind, function, terms, gives_amplitude, scale, true}; }
};

/// How an operator is computed. Evaluators register themselves; one operator, one evaluator a range of versions.
class Evaluator {
 public:
  explicit Evaluator(std::string_view name, std::string_view domain = "") : name_(name), domain_(domain) {}
  Evaluator& since(int version) { return since_ = version, *this; }  ///< first opset it holds for; default 1
  Evaluator& until(int version) { return until_ = version, *this; }  ///< last opset it holds for
  Evaluator& evaluate(EvaluateFunction function) { return evaluate_ = function, *this; }
  Evaluator& error(Rounding rounding) { return rounding_ = rounding, *this; }
  /// Operands that say how to compute may be longer than inference follows: the function checks them itself.
  Evaluator& checks_long_lists() { return checks_long_lists_ = true, *this; }
  /// Operands without elements cost it nothing, however long their axes are; see check_reach.
  Evaluator& skips_empty_operands() { return skips_empty_operands_ = true, *this; }

  std::string_view name() const { return name_; }
  std::string_view domain() const { return domain_; }
  int first_version() const { return since_; }
  int last_version() const { return until_; }
  EvaluateFunction function() const { return evaluate_; }
  Rounding rounding() const { return rounding_; }
  bool has_own_checks() const { return checks_long_lists_; }
  bool walks_empty_operands() const { return !skips_empty_operands_; }

 private:
  std::string_view name_, domain_;
  int since_ = 1, until_ = 1 << 20;
  EvaluateFunction evaluate_ = nullptr;
  Rounding rounding_;
  bool checks_long_lists_ = false, skips_empty_operands_ = false;
};

/// At namespace scope of a family's file: `const RegisterEvaluators kSoftmaxes{softmax(), log_softmax()};`
struct RegisterEvaluators {
  RegisterEvaluators(std::initializer_list<Evaluator> evaluators);
};

std::span<const Evaluator> all_evaluators();  ///< in no particular order
/// The evaluator in force; null when the operator has none.
const Evaluator* find_evaluator(std::string_view domain, std::string_view name, std::int64_t opset);

}  // namespace tensorlint::runtime
