#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ir/recording/recording.h"
#include "passes/dataflow/abstract_value.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::dataflow {

class Solver;

/// The Analysis of a Recording, growing with it: each call is inferred when it is added, by what the solver iterates.
/// It is told of everything that is recorded, in that order.
///
/// A body is passed over once while it is open, with what its inputs are said to be; the call that runs it visits it as
/// the solver does, and then the facts of its values are those of all its iterations. Functions are visited when they
/// are called.
class GrowingAnalysis {
 public:
  /// `recording` outlives this.
  GrowingAnalysis(const Recording& recording, AnalysisOptions options);
  ~GrowingAnalysis();
  GrowingAnalysis(const GrowingAnalysis&) = delete;
  GrowingAnalysis& operator=(const GrowingAnalysis&) = delete;

  /// Its address stays the same.
  const Analysis& analysis() const { return *analysis_; }

  void add_input(ValueId input);
  /// For the first pass over an open body.
  void add_body_input(ValueId input, const AbstractValue& given);
  void add_constant(ValueId constant);
  /// Also of calls in functions, which are inferred when the function is called. What fails in the call, in the bodies
  /// that it runs and, for the first time, in functions that it calls. Valid until the next call.
  std::span<const NodeViolation> add_call(NodeId node);

  void open_body();
  void close_body();
  /// After Recording::abandon_body.
  void abandon_body(GraphId body);

  /// What only later calls tell of earlier ones becomes known too: from here on the analysis is that of the whole
  /// model, as `analyse` makes it. No body is open. Costs nothing where no later call tells anything.
  void finish();

 private:
  const Recording& recording_;
  const AnalysisOptions options_;
  std::unique_ptr<Analysis> analysis_;
  std::unique_ptr<Solver> solver_;
  std::vector<NodeViolation> violations_;  // of the last call
};

}  // namespace tensorlint::dataflow
