#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/model.h"
#include "passes/dataflow/analysis.h"
#include "runtime/values/host_value.h"
#include "runtime/values/known_lists.h"

namespace tensorlint::runtime {

/// The extents that a run gives to the names of dims; the first value that has one decides.
using DimNames = std::map<NameId, std::int64_t>;

/// The value has the kind, dtype and extents of a declaration; null declares nothing.
bool is_as_declared(const TypeDecl* type, const HostValue& value, DimNames& names);

/// Holds the values of a run against what analysis promises of them. Facts rely on the declarations of values: after a
/// value that is not as declared nothing is held any more.
class FactCheck {
 public:
  explicit FactCheck(const dataflow::Analysis& analysis) : analysis_(analysis) {}

  /// Before the nodes: the inputs of the main graph give names of dims their extents. Absent ones are defaults.
  void begin(std::span<const HostValue> inputs);
  /// After each node, as NodeObserver is called.
  void hold(NodeId node, std::span<const HostValue> results);

  /// A line for each value outside its fact.
  const std::vector<std::string>& outside() const { return outside_; }
  /// The first value that is not as declared; kAbsent: none.
  ValueId contradiction() const { return contradiction_; }

 private:
  /// What of the result is outside; empty where nothing is.
  std::string outside_of(FactId fact, const HostValue& result);

  const dataflow::Analysis& analysis_;
  DimNames names_;
  std::map<FactId, KnownLists<std::string>> known_;
  std::vector<std::string> outside_;
  ValueId contradiction_ = ValueId::kAbsent;
};

}  // namespace tensorlint::runtime
