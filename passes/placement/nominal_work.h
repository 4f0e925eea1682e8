#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/ops/opcode.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/tensor_facts.h"

namespace tensorlint::placement {

/// Multiplications that the cpu makes while it reads a byte: 10^11 a second, 12 GB a second.
inline constexpr double kProductsPerByte = 8;
/// What a minimum cut over such weights may cost, in steps of some 20 ns. Models that people write take 20 an edge,
/// graphs that are made to be hard a few hundred.
inline constexpr std::uint64_t kCutSteps = std::uint64_t{1} << 24, kCutStepsPerEdge = 500;

/// The weight of an edge, held at 2^36, so that no sum of weights comes near MinimumCut::kInfinite.
std::int64_t cut_weight(double bytes, double times);

/// What tensors and nodes weigh, an extent that is not known counting as kNominalExtent.
class NominalWork {
 public:
  explicit NominalWork(const dataflow::Analysis& analysis) : analysis_(analysis), bytes_(analysis) {}

  double bytes_of(ValueId value);
  /// Multiplications of a MatMul, Gemm or Conv: the result's elements, each a sum over what is contracted. 0 for
  /// others.
  double products_of(const Node& node, ops::Opcode opcode);

 private:
  /// Nothing where it overflows, divides by zero or is not known.
  std::optional<std::int64_t> evaluate(Dim dim);
  double extent_of(Dim extent);
  /// Of an operand or result; empty where its rank is not known.
  std::vector<double> extents_of(ValueId value);

  const dataflow::Analysis& analysis_;
  TensorBytes bytes_;
  std::unordered_map<std::uint32_t, std::optional<std::int64_t>> known_;  // by Dim: many tensors have the same extents
};

}  // namespace tensorlint::placement
