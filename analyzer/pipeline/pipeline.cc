#include "analyzer/pipeline/pipeline.h"

#include <utility>

namespace tensorlint::pipeline {

using passes::Pass;

Pipeline::Pipeline(Model model, Options options)
    : selection_(std::move(options.selection)),
      filter_(std::move(options.filter)),
      results_(
          std::make_unique<passes::PassResults>(std::make_unique<const Model>(std::move(model)), std::move(options))) {}

Pipeline::Pipeline(const dataflow::Analysis& analysis, Options options)
    : selection_(std::move(options.selection)),
      filter_(std::move(options.filter)),
      results_(std::make_unique<passes::PassResults>(analysis, std::move(options))) {}

const passes::PassResults& Pipeline::run(passes::PassSet passes) {
  results_->run(passes);
  return *results_;
}

CheckResults Pipeline::check(bool copies_at_run_time) {
  const dataflow::Analysis& analysis = run({Pass::kAnalysis}).analysis();
  const passes::PassResults& known = run(rules::passes_needed(analysis, selection_, copies_at_run_time));
  CheckResults results =
      filter(model(), rules::run_rules(known, selection_, copies_at_run_time), selection_, filter_, known.meter());
  results.is_partial = known.is_partial();
  return results;
}

}  // namespace tensorlint::pipeline
