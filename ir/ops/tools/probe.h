#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/ops/inference.h"

namespace tensorlint::ops {

/// What calls of one version of an operator, made up from its schema alone, were inferred to be.
struct Probe {
  int calls = 0;          ///< with operands of several dtypes and shapes, known and unknown contents
  int accepted = 0;       ///< of these, without a violation and with a dtype for every result
  bool contents = false;  ///< some result's elements were known
  bool range =
      false;  ///< some result's bounds were narrower than its dtype's, by themselves or by its operands' bounds
  std::string clearest;  ///< the accepted call whose results have the fewest unknown extents: "(operands) -> results"
  bool shaped = false;   ///< in that call each result has a rank and known extents
  std::string fault;     ///< a result outside what the schema allows; empty: none
};

/// Operators with subgraphs are not for this: these belong to the solver. Tries every `stride`-th of 500 calls.
Probe probe(const OpSchema& schema, std::size_t stride = 1);

}  // namespace tensorlint::ops
