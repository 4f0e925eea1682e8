#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph/model.h"
#include "passes/dataflow/abstract_value.h"

namespace tensorlint::dataflow {

/// What functions gave for some operands and attributes.
class Summaries {
 public:
  explicit Summaries(const Model& model) : model_(model), known_(model.graphs.size()) {}

  /// The model has got more graphs.
  void grow() { known_.resize(model_.graphs.size()); }

  /// Functions that call each other with ranges which differ a little in each call would be followed 2^n times: calls
  /// after the first few are to take any floating value, so that they repeat.
  bool is_exact(GraphId function) const { return of(function).size() < kExactSummaries; }
  /// The function's outputs; null where no such call is known.
  const std::vector<AbstractValue>* find(GraphId function, std::span<const AbstractValue> operands,
                                         std::span<const Attribute> attributes) const;
  /// Unless there are too many. `call` has the attributes of the call: they are compared with later calls.
  void keep(GraphId function, NodeId call, std::vector<AbstractValue> operands, std::vector<AbstractValue> outputs);

 private:
  static constexpr std::size_t kMaxSummaries = 64;    // of one function
  static constexpr std::size_t kExactSummaries = 32;  // of one function

  struct Summary {
    std::vector<AbstractValue> operands, outputs;
    NodeId call;
    std::uint64_t attributes;  // their hash
  };
  const std::vector<Summary>& of(GraphId function) const { return known_[static_cast<std::size_t>(function)]; }

  const Model& model_;
  std::vector<std::vector<Summary>> known_;  // by function
};

}  // namespace tensorlint::dataflow
