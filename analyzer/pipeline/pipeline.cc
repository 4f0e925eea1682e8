#include "analyzer/pipeline/pipeline.h"

#include <utility>

namespace tensorlint::pipeline {

using passes::Pass;

Pipeline::Pipeline(Model model, Options options)
    : selection_(std::move(options.selection)),
      results_(
          std::make_unique<passes::PassResults>(std::make_unique<const Model>(std::move(model)), std::move(options))) {}

Pipeline::Pipeline(const dataflow::Analysis& analysis, Options options)
    : selection_(std::move(options.selection)),
      results_(std::make_unique<passes::PassResults>(analysis, std::move(options))) {}

const passes::PassResults& Pipeline::run(passes::PassSet passes) {
  results_->run(passes);
  return *results_;
}

rules::RuleResults Pipeline::check(bool with_cost) {
  passes::PassSet needed = rules::passes_needed();
  if (with_cost) needed |= {Pass::kRuntimeCost};
  return rules::run_rules(run(needed), selection_, with_cost);
}

}  // namespace tensorlint::pipeline
