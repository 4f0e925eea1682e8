#pragma once

#include <vector>

#include "passes/dataflow/analysis.h"

namespace tensorlint::structure {

/// What something uses, and what is left over.
struct Liveness {
  IdVector<ValueId, bool> used;  ///< some node or graph output uses it
  IdVector<NodeId, bool> live;   ///< an output of some graph depends on it
  /// A node lacks an operand, names one that nothing defines, or is on a cycle: who uses what is not known then, and
  /// what seems to be unused may be what is missing there.
  bool has_broken_links = false;

  bool is_used(ValueId value) const { return used[value]; }
  bool is_live(NodeId node) const { return live[node]; }
};

Liveness find_liveness(const dataflow::Analysis& analysis);

}  // namespace tensorlint::structure
