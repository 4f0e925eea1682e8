#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/model.h"
#include "ir/readers/onnx/external_data.h"
#include "passes/contract/single_sizes.h"
#include "passes/dataflow/analysis.h"
#include "passes/losses/gradient_reach.h"
#include "passes/losses/loss_sites.h"
#include "passes/placement/placement.h"
#include "passes/placement/runtime_cost.h"
#include "passes/structure/cycles.h"
#include "passes/structure/liveness.h"
#include "passes/structure/opset_needs.h"

namespace tensorlint::passes {

/// What can be found out about a model, each by one pass. A pass comes after those that it needs.
enum class Pass : std::uint8_t {
  kAnalysis,
  kLosses,
  kPlacement,
  kRuntimeCost,
  kGradientReach,
  kLiveness,
  kCycles,
  kOpsetNeeds,
  kSingleSizes,
  kExternalData,
};

std::string_view to_text(Pass pass);

class PassSet {
 public:
  constexpr PassSet() = default;
  constexpr PassSet(std::initializer_list<Pass> passes) {
    for (const Pass pass : passes) bits_ |= bit(pass);
  }
  constexpr PassSet& operator|=(PassSet other) { return bits_ |= other.bits_, *this; }
  constexpr bool has(Pass pass) const { return (bits_ & bit(pass)) != 0; }
  constexpr bool intersects(PassSet other) const { return (bits_ & other.bits_) != 0; }
  constexpr PassSet without(Pass pass) const {
    PassSet others = *this;
    others.bits_ &= ~bit(pass);
    return others;
  }

 private:
  static constexpr std::uint32_t bit(Pass pass) { return std::uint32_t{1} << static_cast<unsigned>(pass); }
  std::uint32_t bits_ = 0;
};

struct PassOptions {
  dataflow::AnalysisOptions analysis;
  placement::PlacementOptions placement;
  std::shared_ptr<ExternalFolder> external_folder;  ///< of the model; null: its own
};

/// A model and what the passes found out about it. Passes run when they are asked for, each once, after those that they
/// need. To read the result of a pass that has not run is a fault of the program: std::logic_error.
class PassResults {
 public:
  explicit PassResults(std::unique_ptr<const Model> model, PassOptions options = {});
  /// Of a model that is analysed already; the analysis outlives this.
  explicit PassResults(const dataflow::Analysis& analysis, PassOptions options = {});
  PassResults(const PassResults&) = delete;
  PassResults& operator=(const PassResults&) = delete;

  /// Passes that compare extents, or follow runs: what they found in a search that ended early may be wrong.
  static PassSet searches();

  void run(PassSet passes);
  bool has(Pass pass) const { return done_.has(pass); }

  const Model& model() const { return *model_; }
  const PassOptions& options() const { return options_; }
  const dataflow::Analysis& analysis() const {
    if (analysis_ == nullptr) missing(Pass::kAnalysis);
    return *analysis_;
  }
  const std::vector<losses::LossSite>& losses() const { return of(losses_, Pass::kLosses); }
  /// The input needs more work than its size allows: something was left out, and is unknown.
  bool is_partial() const { return meter().is_partial() || (analysis_ != nullptr && analysis_->ran_out()); }
  Meter& meter() const { return *options_.analysis.meter; }
  const std::shared_ptr<Meter>& shared_meter() const { return options_.analysis.meter; }
  const placement::Placement& placement() const { return of(placement_, Pass::kPlacement); }
  /// What copies cost where the runtime makes them.
  const placement::RuntimeCost& runtime_cost() const { return of(runtime_cost_, Pass::kRuntimeCost); }
  const losses::GradientReach& gradient_reach() const { return of(gradient_reach_, Pass::kGradientReach); }
  const structure::Liveness& liveness() const { return of(liveness_, Pass::kLiveness); }
  const structure::Cycles& cycles() const { return of(cycles_, Pass::kCycles); }
  const structure::OpsetNeeds& opset_needs() const { return of(opset_needs_, Pass::kOpsetNeeds); }
  const contract::SingleSizes& single_sizes() const { return of(single_sizes_, Pass::kSingleSizes); }
  /// What is wrong with the files that hold the data of tensors: the one pass that looks at files.
  const std::vector<ExternalFault>& external_data() const { return of(external_data_, Pass::kExternalData); }

 private:
  /// What a pass needs, and what runs it.
  struct Runner {
    std::string_view name;
    PassSet needs;
    void (*run)(PassResults& results);
    bool is_search = false;
  };
  friend std::string_view to_text(Pass pass);
  static const Runner& runner(Pass pass);
  [[noreturn]] static void missing(Pass pass);
  template <typename T>
  static const T& of(const std::optional<T>& result, Pass pass) {
    if (!result) missing(pass);
    return *result;
  }

  std::unique_ptr<const Model> own_model_;
  std::optional<dataflow::Analysis> own_analysis_;
  const Model* model_;
  const dataflow::Analysis* analysis_ = nullptr;
  PassOptions options_;
  PassSet done_;
  std::optional<std::vector<losses::LossSite>> losses_;
  std::optional<placement::Placement> placement_;
  std::optional<placement::RuntimeCost> runtime_cost_;
  std::optional<losses::GradientReach> gradient_reach_;
  std::optional<structure::Liveness> liveness_;
  std::optional<structure::Cycles> cycles_;
  std::optional<structure::OpsetNeeds> opset_needs_;
  std::optional<contract::SingleSizes> single_sizes_;
  std::optional<std::vector<ExternalFault>> external_data_;
};

}  // namespace tensorlint::passes
