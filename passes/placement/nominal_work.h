#pragma once

#include <vector>

#include "ir/ops/opcode.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::placement {

/// What tensors and nodes weigh, an extent that is not known counting as kNominalExtent.
class NominalWork {
 public:
  explicit NominalWork(const dataflow::Analysis& analysis) : analysis_(analysis) {}

  double bytes_of(ValueId value) const;
  /// Multiplications of a MatMul, Gemm or Conv: the result's elements, each a sum over what is contracted. 0 for
  /// others.
  double products_of(const Node& node, ops::Opcode opcode) const;

 private:
  double extent_of(Dim extent) const;
  /// Of an operand or result; empty where its rank is not known.
  std::vector<double> extents_of(ValueId value) const;

  const dataflow::Analysis& analysis_;
};

}  // namespace tensorlint::placement
