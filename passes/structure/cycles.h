#pragma once

#include <vector>

#include "passes/dataflow/analysis.h"

namespace tensorlint::structure {

/// Nodes that need each other's results.
struct Cycle {
  NodeId user = NodeId::kNone;       ///< uses a value before it is made
  ValueId value = ValueId::kAbsent;  ///< that value
  std::vector<NodeId> nodes;         ///< a shortest way from the value's producer back to the user, along operands
};

/// A call that closes a cycle of calls.
/// Source: onnx.proto, FunctionProto: recursive references are not allowed.
struct Recursion {
  NodeId call = NodeId::kNone;
  GraphId function = GraphId::kNone;  ///< that is called
  bool is_direct = false;             ///< by itself
};

struct Cycles {
  std::vector<Cycle> cycles;          ///< in file order; no node is on two of them
  std::vector<Recursion> recursions;  ///< one for each cycle of calls
};

Cycles find_cycles(const dataflow::Analysis& analysis);

}  // namespace tensorlint::structure
