#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/model.h"
#include "passes/dataflow/analysis.h"
#include "passes/losses/loss_sites.h"
#include "passes/placement/placement.h"
#include "passes/placement/runtime_cost.h"

namespace tensorlint::passes {

/// What can be found out about a model, each by one pass. A pass comes after those that it needs.
enum class Pass : std::uint8_t { kAnalysis, kLosses, kPlacement, kRuntimeCost };

std::string_view to_text(Pass pass);

class PassSet {
 public:
  constexpr PassSet() = default;
  constexpr PassSet(std::initializer_list<Pass> passes) {
    for (const Pass pass : passes) bits_ |= bit(pass);
  }
  constexpr PassSet& operator|=(PassSet other) { return bits_ |= other.bits_, *this; }
  constexpr bool has(Pass pass) const { return (bits_ & bit(pass)) != 0; }

 private:
  static constexpr std::uint32_t bit(Pass pass) { return std::uint32_t{1} << static_cast<unsigned>(pass); }
  std::uint32_t bits_ = 0;
};

struct PassOptions {
  dataflow::AnalysisOptions analysis;
  placement::PlacementOptions placement;
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

  void run(PassSet passes);
  bool has(Pass pass) const { return done_.has(pass); }

  const Model& model() const { return *model_; }
  const PassOptions& options() const { return options_; }
  const dataflow::Analysis& analysis() const {
    if (analysis_ == nullptr) missing(Pass::kAnalysis);
    return *analysis_;
  }
  const std::vector<losses::LossSite>& losses() const { return of(losses_, Pass::kLosses); }
  const placement::Placement& placement() const { return of(placement_, Pass::kPlacement); }
  /// What copies cost where the runtime makes them.
  const placement::RuntimeCost& runtime_cost() const { return of(runtime_cost_, Pass::kRuntimeCost); }

 private:
  /// What a pass needs, and what runs it.
  struct Runner {
    std::string_view name;
    PassSet needs;
    void (*run)(PassResults& results);
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
};

}  // namespace tensorlint::passes
