#pragma once

#include <map>
#include <optional>
#include <string_view>

#include "runtime/compare/floats.h"
#include "runtime/compare/node_reference.h"
#include "runtime/compare/tensor_test.h"

namespace tensorlint::compare {

/// A recorded result that rounding alone does not explain.
struct Suspect {
  NodeId node = NodeId::kNone;
  std::size_t result = 0;
  const NodeReference::Inputs* inputs = nullptr;
  const runtime::HostTensor* other = nullptr;
  DType dtype = DType::kUndefined;
  bool is_chained = false;  ///< the inputs are what the reference computed, with the noise of a chain
};

/// What values were before float16 and bfloat16 ones were stored: of their node alone, and along all nodes. Of a chain
/// only the latter, with the noise of what an engine may round or not.
struct Unrounded {
  NodeReference::Inputs of_node{}, along{};
  const IdVector<ValueId, DType>& dtypes;  ///< of the values in the model
};

/// A value that an engine recorded in half precision, and may not have rounded before the next node read it: any number
/// that rounds to it.
Estimate loosened(const runtime::HostTensor& tensor, DType dtype, ValueId value, runtime::Memory& memory);

/// A factor of a product as an engine reads it that rounds it to tf32.
Estimate in_tf32(const Estimate& factor, Tf32 how, runtime::Memory& memory);

/// What the test says of the suspect's inputs with many replicas; nothing where they do not explain it.
std::optional<TensorTest> test_with_many_replicas(NodeReference& reference, const Model& model, const Suspect& suspect,
                                                  runtime::Memory& memory);

/// How far an engine that computes a constant by itself may be off what the exporter computed: an ulp, and a roundoff
/// of its largest element, which differences have near 0 (float64).
runtime::HostTensor constant_noise(const runtime::HostTensor& constant, runtime::Memory& memory);

struct Condition {
  std::string_view name;
  TensorTest test{};
  Expected expected{};  ///< of a chain: what later nodes read
};

/// The first condition that explains the result. Each is computed, and the result held against that with the bounds of
/// ordinary rounding, but for sums in half precision, whose order is unknown: these are only considered where every
/// element is a number of that precision, and where their bound is no larger than 64 times the errors.
std::optional<Condition> find_condition(NodeReference& reference, const Contract& contract, const Model& model,
                                        const Suspect& suspect, const Unrounded& unrounded, runtime::Memory& memory);

/// Whether the noise of its constants explains a sum, of an engine whose contract says that it computes constants: a
/// note, since in half precision that is much room.
bool constants_explain(NodeReference& reference, const Contract& contract, const Model& model, const Suspect& suspect,
                       runtime::Memory& memory);

/// tf32 of a result that bounds explain: float32 sums of many products may err more than it does, but not alike.
/// `plain`: the result of the reference.
std::optional<Condition> find_tf32_within_bounds(NodeReference& reference, const Contract& contract, const Model& model,
                                                 const Suspect& suspect, const runtime::HostTensor& plain,
                                                 runtime::Memory& memory);

}  // namespace tensorlint::compare
