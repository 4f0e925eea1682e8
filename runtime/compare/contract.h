#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/types/dtype.h"

namespace tensorlint::compare {

/// What an engine promises, or is known to do, about rounding: a text file of one statement a line (docs/compare.md).
struct Contract {
  /// Of a function: within this many ulps of the dtype in which it is computed, and roundoffs of that absolutely.
  struct FunctionError {
    double ulps = 0, absolute = 0;
  };

  std::string engine;
  double operation_ulps = 0.5;  ///< + - * / sqrt, in the dtype of the result
  std::map<std::string, FunctionError, std::less<>> functions;
  FunctionError other_function{8, 4};
  std::map<DType, DType> accumulation;  ///< results of which dtype are summed in which other one
  bool allows_tf32 = false, flushes_to_zero = false;
  bool computes_constants = false;  ///< itself, of which the model has those that an exporter computed
  std::set<std::string, std::less<>> tf32_operators;   ///< these alone may round their operands to tf32
  std::set<std::string, std::less<>> quantized_apart;  ///< off by a step where their results are quantized next
  std::set<std::string, std::less<>> nan_losing;       ///< may select another element where one is NaN

  bool allows_tf32_in(std::string_view op) const { return allows_tf32 || tf32_operators.contains(op); }

  /// The dtype in which sums for results of `dtype` run; float32 for narrower ones unless a statement says otherwise.
  DType accumulates_in(DType dtype) const;
  FunctionError function(std::string_view name) const;
};

/// Errors name the line and what is allowed there.
Result<Contract> parse_contract(std::string_view text);

/// The names of the contracts that come with the program.
std::span<const std::string_view> contract_text_names();

/// The text of a contract that comes with the program; empty where there is none of that name.
std::string_view contract_text(std::string_view name);

}  // namespace tensorlint::compare
