#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "ir/graph/model.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::structure {

/// Which opsets a model is written for, where it imports older ones: told by operators that came later, and by operands
/// and attributes that fit a later version of the operator only. One mistake, however many nodes show it.
class OpsetNeeds {
 public:
  explicit OpsetNeeds(const dataflow::Analysis& analysis);

  /// The opset that the failing node's domain needs, when the violation is explained by the import: the node would mean
  /// something else under that opset. 0 otherwise.
  std::int64_t explaining(const dataflow::NodeViolation& violation) const;

  /// Which way the import is wrong for one node.
  enum class Mismatch : std::uint8_t { kNone, kWrittenForNewer, kWrittenForOlder };
  /// Another version of the operator takes the operands and attributes of the failing node.
  static Mismatch mismatch(const Model& model, const dataflow::NodeViolation& violation);
  /// The newer opset that the failing node is written for, by itself; 0 for none.
  static std::int64_t needed_for(const Model& model, const dataflow::NodeViolation& violation);

 private:
  using Import = std::pair<std::uint32_t, NameId>;  // opset imports of the node's graph, domain
  static bool fits_an_older_version(const Model& model, const dataflow::NodeViolation& violation);

  const Model& model_;
  std::map<Import, std::int64_t> needed_;
};

}  // namespace tensorlint::structure
