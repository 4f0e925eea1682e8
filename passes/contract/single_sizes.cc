#include "passes/contract/single_sizes.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <utility>

#include "passes/contract/candidates.h"
#include "passes/contract/demanding_calls.h"
#include "passes/contract/probing.h"
#include "passes/contract/working_sizes.h"

namespace tensorlint::contract {
namespace {

/// Sizes that a division rounds to the same are one: at most half of the size, as where 8 to 15 rows are pooled to one.
/// A wider interval is a bound.
constexpr std::int64_t kWidth = 2;

/// Solving so many nodes twice more takes less time than starting the program.
constexpr std::size_t kSmallModel = 512;

/// Where a call is known to ask for a size.
constexpr ProbeBudget kSizeBudget{.visits = 1U << 19, .probes = 96};

class SingleSizeSearch {
 public:
  SingleSizeSearch(Prober& prober, Sizes working)
      : prober_(prober), working_(std::move(working)), is_free_(working_.size(), false) {}

  std::vector<SingleSize> find() {
    for (const std::int64_t size : kUsualSizes) runs(all_of_size(prober_, size));
    for (const bool doubled : {true, false}) {
      Sizes sizes = working_;
      for (std::int64_t& size : sizes) size = doubled ? 2 * size : std::max<std::int64_t>(size / 2, 1);
      runs(sizes);
    }
    std::vector<SingleSize> found;
    for (std::size_t extent = 0; extent < working_.size() && !is_spent_; ++extent)
      if (auto single = single_at(extent)) found.push_back(std::move(*single));
    return found;
  }

 private:
  /// False where it fails, and where the budget is spent.
  bool runs(const Sizes& sizes) {
    const Probe* probe = prober_.probe(sizes);
    is_spent_ = is_spent_ || probe == nullptr;
    if (probe == nullptr || !probe->runs()) return false;
    for (std::size_t i = 0; i < sizes.size(); ++i) is_free_[i] = is_free_[i] || is_far(i, sizes[i]);
    return true;
  }

  /// Broadcasting stretches 1 to any size: that it runs says nothing of others.
  bool is_far(std::size_t extent, std::int64_t size) const {
    return size >= 2 * working_[extent] || (size > 1 && size <= working_[extent] / 2);
  }

  Sizes with(std::size_t extent, std::int64_t size) const {
    Sizes sizes = working_;
    sizes[extent] = size;
    return sizes;
  }

  std::optional<SingleSize> single_at(std::size_t extent) {
    const std::int64_t size = working_[extent];
    for (const std::int64_t other : {2 * size, size / 2}) {
      if (is_free_[extent] || is_spent_) return std::nullopt;
      if (other <= 1) continue;
      runs(with(extent, other));
      // What has to be equal changes together.
      Sizes together = working_;
      std::ranges::replace(together, size, other);
      runs(together);
      try_relations(extent, other);
    }
    if (is_free_[extent] || is_spent_) return std::nullopt;
    const std::int64_t least = last_running(extent, -1), most = last_running(extent, 1);
    if (is_spent_) return std::nullopt;
    std::optional<SingleSize> single = described(extent, least, most);
    const bool is_narrow = (most - least) * kWidth <= most && (most > 1 || least == most);
    if (!single || (!single->formula && !is_narrow)) return std::nullopt;
    return single;
  }

  /// What the node that fails compares the extent with may be another open extent, or a formula of some.
  void try_relations(std::size_t extent, std::int64_t size) {
    const Sizes changed = with(extent, size);
    const Probe* probe = prober_.probe(changed);
    if (probe == nullptr || probe->runs() || is_free_[extent]) return;
    for (const Comparison& comparison : disagreements(prober_, probe->failures.front().node, working_, changed)) {
      if (extents_of(prober_, comparison.left).empty() || extents_of(prober_, comparison.right).empty()) continue;
      const auto met = restored(prober_, comparison, extent, changed);
      if (met && (runs(met->sizes) || is_spent_)) return;
    }
  }

  /// The end of the sizes around the working one that run, downwards or upwards.
  std::int64_t last_running(std::size_t extent, std::int64_t direction) {
    const std::int64_t size = working_[extent];
    if (size + direction <= 1 || !runs(with(extent, size + direction))) return size;
    std::int64_t good = size + direction, bad = direction > 0 ? 2 * size : size / 2;
    while (std::abs(bad - good) > 1 && !is_spent_) {
      const std::int64_t middle = good + (bad - good) / 2;
      (runs(with(extent, middle)) ? good : bad) = middle;
    }
    return good;
  }

  std::optional<SingleSize> described(std::size_t extent, std::int64_t least, std::int64_t most) {
    const std::int64_t tried = 2 * working_[extent];
    const Sizes sizes = with(extent, tried);
    const Probe* probe = prober_.probe(sizes);
    if (probe == nullptr || probe->runs()) return std::nullopt;
    // What reads the extent says more than what follows from it.
    const auto reads_it = [&](const Failure& failure) {
      const std::vector<std::size_t> extents = extents_at(prober_, failure.node);
      return std::ranges::find(extents, extent) != extents.end();
    };
    const auto reader = std::ranges::find_if(probe->failures, reads_it);
    const Failure& failure = reader == probe->failures.end() ? probe->failures.front() : *reader;
    auto solved = std::make_shared<const dataflow::Analysis>(prober_.solve(sizes));
    if (solved->ran_out()) return std::nullopt;  // this time the work that is left does not reach
    SingleSize single{.extent = prober_.extents()[extent],
                      .least = least,
                      .most = most,
                      .tried = tried,
                      .solved = std::move(solved),
                      .violation = failure.violation};
    if (const auto joint = joint_number(prober_, failure.node, extent, working_)) {
      single.formula = joint->left;
      single.value = prober_.evaluate(joint->left, working_).value_or(0);
    }
    return single;
  }

  Prober& prober_;
  Sizes working_;
  std::vector<bool> is_free_;  // by extent: runs at another size, too
  bool is_spent_ = false;
};

/// False where no call asks for a size. In a model that is small enough whole probes tell: they see more.
bool may_ask(const Prober& prober) {
  const dataflow::Analysis& analysis = prober.analysis();
  const std::vector<NodeId> calls = find_demanding_calls(analysis);
  if (calls.empty() || analysis.model().nodes.size() <= kSmallModel) return !calls.empty();
  const Model& model = analysis.model();
  return std::ranges::any_of(calls, [&](NodeId id) {
    // What a function asks for its calls show, and of its values only what holds in all calls is known.
    const Node& node = model.node(id);
    if (model.graph(node.graph).kind == GraphKind::kFunction || model.op(node).function != GraphId::kNone) return true;
    return std::ranges::any_of(kUsualSizes,
                               [&](std::int64_t size) { return fails_alone(prober, id, all_of_size(prober, size)); });
  });
}

}  // namespace

SingleSizes find_single_sizes(const dataflow::Analysis& analysis, const dataflow::AnalysisOptions& options) {
  SingleSizes result;
  Prober prober(analysis, options, kSizeBudget);
  if (prober.extents().empty() || !may_ask(prober)) return result;
  if (prober.probes_left() < kUsualSizes.size()) {
    result.left_out = true;
    return result;
  }
  // Two sizes of each extent with which the model runs: none is alone.
  const auto runs = [&](std::int64_t size) {
    const Probe* probe = prober.probe(all_of_size(prober, size));
    return probe == nullptr || probe->runs();
  };
  if (std::ranges::all_of(kUsualSizes, runs)) return result;
  if (std::optional<Sizes> working = find_working_sizes(prober))
    result.found = SingleSizeSearch(prober, std::move(*working)).find();
  return result;
}

}  // namespace tensorlint::contract
