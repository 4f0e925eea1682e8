#pragma once

#include <memory>

#include "analyzer/pipeline/filter.h"
#include "analyzer/rules/engine.h"
#include "ir/graph/model.h"
#include "passes/results/pass_results.h"

namespace tensorlint::pipeline {

struct Options : passes::PassOptions {
  rules::RuleSelection selection;
  FilterOptions filter;
};

/// The way of one model to findings: analyse, find losses, place, count what copies cost, run rules, filter. Owns the
/// model and all results. Every command goes this way, as far as it needs to.
class Pipeline {
 public:
  Pipeline(Model model, Options options);
  /// Of a model that is analysed already; the analysis outlives this.
  Pipeline(const dataflow::Analysis& analysis, Options options);

  const Model& model() const { return results_->model(); }
  /// Runs the passes that have not run yet, after those that they need.
  const passes::PassResults& run(passes::PassSet passes);
  const passes::PassResults& results() const { return *results_; }

  /// Runs the selected rules after the passes that they need, and filters what they found.
  /// `copies_at_run_time`: the runtime copies between devices instead of failing; findings say what that costs.
  CheckResults check(bool copies_at_run_time = false);

 private:
  rules::RuleSelection selection_;
  FilterOptions filter_;
  std::unique_ptr<passes::PassResults> results_;  // its parts refer to each other: it keeps its address
};

}  // namespace tensorlint::pipeline
