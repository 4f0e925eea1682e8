#include "passes/results/pass_results.h"

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <utility>

namespace tensorlint::passes {
namespace {

constexpr std::size_t kPassCount = static_cast<std::size_t>(Pass::kExternalData) + 1;

}  // namespace

const PassResults::Runner& PassResults::runner(Pass pass) {
  constexpr bool kIsSearch = true;
  static const Runner kRunners[kPassCount] = {
      {"analysis",
       {},
       [](PassResults& of) {
         of.analysis_ = &of.own_analysis_.emplace(dataflow::analyse(of.model(), of.options_.analysis));
       }},
      {"losses",
       {Pass::kAnalysis},
       [](PassResults& of) { of.losses_.emplace(losses::find_losses(of.analysis())); },
       kIsSearch},
      {"placement",
       {Pass::kAnalysis},
       [](PassResults& of) { of.placement_.emplace(placement::place(of.analysis(), of.options_.placement)); },
       kIsSearch},
      {"runtime cost",
       {Pass::kAnalysis},
       [](PassResults& of) { of.runtime_cost_.emplace(placement::runtime_cost(of.analysis(), of.options_.placement)); },
       kIsSearch},
      {"gradient reach",
       {Pass::kAnalysis},
       [](PassResults& of) { of.gradient_reach_.emplace(losses::find_gradient_reach(of.analysis())); },
       kIsSearch},
      {"liveness",
       {Pass::kAnalysis},
       [](PassResults& of) { of.liveness_.emplace(structure::find_liveness(of.analysis())); }},
      {"cycles", {Pass::kAnalysis}, [](PassResults& of) { of.cycles_.emplace(structure::find_cycles(of.analysis())); }},
      {"opset needs", {Pass::kAnalysis}, [](PassResults& of) { of.opset_needs_.emplace(of.analysis()); }},
      {"single sizes",
       {Pass::kAnalysis},
       [](PassResults& of) {
         of.single_sizes_.emplace(contract::find_single_sizes(of.analysis(), of.options_.analysis));
       },
       kIsSearch},
      {"external data",
       {},
       [](PassResults& of) {
         of.external_data_.emplace(check_external_data(of.model(), *of.options_.external_folder));
       }},
  };
  return kRunners[static_cast<std::size_t>(pass)];
}

PassSet PassResults::searches() {
  PassSet found;
  for (std::size_t i = 0; i < kPassCount; ++i)
    if (const auto pass = static_cast<Pass>(i); runner(pass).is_search) found |= PassSet{pass};
  return found;
}

std::string_view to_text(Pass pass) { return PassResults::runner(pass).name; }

PassResults::PassResults(std::unique_ptr<const Model> model, PassOptions options)
    : own_model_(std::move(model)), model_(own_model_.get()), options_(std::move(options)) {
  // One for all that is done with the model: passes that solve again get it with the options.
  if (options_.analysis.meter == nullptr) options_.analysis.meter = dataflow::meter_of(*model_);
  if (options_.external_folder == nullptr) options_.external_folder = std::make_shared<ExternalFolder>(model_->path);
}

PassResults::PassResults(const dataflow::Analysis& analysis, PassOptions options)
    : model_(&analysis.model()), analysis_(&analysis), options_(std::move(options)), done_{Pass::kAnalysis} {
  options_.analysis.meter = analysis.facts().shared_meter();
  if (options_.external_folder == nullptr) options_.external_folder = std::make_shared<ExternalFolder>(model_->path);
}

void PassResults::run(PassSet passes) {
  for (std::size_t i = 0; i < kPassCount; ++i) {
    const auto pass = static_cast<Pass>(i);
    if (!passes.has(pass) || has(pass)) continue;
    run(runner(pass).needs);
    runner(pass).run(*this);
    done_ |= PassSet{pass};
  }
}

void PassResults::missing(Pass pass) {
  throw std::logic_error(fmt::format("the result of the pass `{}` is read before the pass has run", to_text(pass)));
}

}  // namespace tensorlint::passes
