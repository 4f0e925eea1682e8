#include "passes/contract/contract.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <ranges>
#include <utility>

#include "base/id_vector.h"
#include "ir/ops/inference.h"
#include "passes/contract/candidates.h"
#include "passes/contract/probing.h"
#include "passes/contract/simplification.h"
#include "passes/contract/working_sizes.h"

namespace tensorlint::contract {
namespace {

/// Above what tables and masks have, and a multiple of nothing.
constexpr std::int64_t kLargeSize = 100'003;
/// Above every extent that is indexed.
constexpr std::int64_t kLargeElement = std::int64_t{1} << 40;
/// What hides no divisor of another extent.
constexpr std::int64_t kSmallPrime = 7;
/// Equalities that one extent takes part in.
constexpr int kMaxRelations = 4;
/// Single elements outside a range that are tried.
constexpr std::size_t kMaxNumbers = 8;
constexpr ProbeBudget kBudget{.visits = 1U << 19, .probes = 256};

/// Facts have no extents of inputs above kMaxRank.
bool has_untracked_input(const Model& model) {
  return std::ranges::any_of(model.graph(GraphId::kMain).inputs, [&](ValueId input) {
    const TypeDecl* const type = model.value(input).type;
    return type != nullptr && type->ranked && type->dims.size() > ops::kMaxRank;
  });
}

class ContractSearch {
 public:
  ContractSearch(Prober& prober, Sizes working)
      : prober_(prober),
        facts_(prober.analysis().facts()),
        working_(std::move(working)),
        is_determined_(working_.size(), false) {}

  Contract find() {
    for (std::size_t extent = 0; extent < working_.size() && !is_spent_; ++extent)
      if (!is_determined_[extent]) explore(extent);
    if (!is_spent_) explore_jointly();
    for (const ValueId input : prober_.analysis().model().graph(GraphId::kMain).inputs)
      if (!is_spent_ && has_open_integers(input)) explore_elements(input);
    contract_.is_complete = !is_spent_;
    contract_.depends_on_elements = has_shapes_of_elements();
    simplify(facts_.dims(), contract_.requirements);
    return std::move(contract_);
  }

 private:
  // ---- probes

  const Probe* probe(const Sizes& sizes, ElementValue elements = {}) {
    const Probe* found = prober_.probe(sizes, elements);
    is_spent_ = is_spent_ || found == nullptr;
    return found;
  }
  bool runs(const Sizes& sizes, ElementValue elements = {}) {
    const Probe* found = probe(sizes, elements);
    return found != nullptr && found->runs();
  }
  bool runs(std::size_t extent, std::int64_t size) { return runs(with(extent, size)); }
  /// The node that fails first.
  NodeId failing(const Sizes& sizes, ElementValue elements = {}) {
    const Probe* found = probe(sizes, elements);
    return found == nullptr || found->runs() ? NodeId::kNone : found->failures.front().node;
  }

  /// The working sizes with another one, and with what has to be equal to it.
  Sizes with(std::size_t extent, std::int64_t size) const {
    Sizes sizes = working_;
    sizes[extent] = size;
    for (const Comparison& relation : relations_)
      if (auto met = restored(prober_, relation, extent, sizes)) sizes = std::move(met->sizes);
    return sizes;
  }

  // ---- equalities

  /// What the node that fails first compares the extent with, where another extent has to change with it.
  bool find_relation(std::size_t extent, const Sizes& changed) {
    const NodeId node = failing(changed);
    if (node == NodeId::kNone) return false;
    for (const Comparison& comparison : disagreements(prober_, node, working_, changed)) {
      const auto met = restored(prober_, comparison, extent, changed);
      if (!met || std::ranges::find(relations_, comparison) != relations_.end()) continue;
      const Probe* found = probe(met->sizes);
      if (found == nullptr) return false;
      if (std::ranges::find(found->failures, node, &Failure::node) != found->failures.end()) continue;
      add_equality(extent, comparison, node, changed);
      relations_.push_back(comparison);
      if (is_symbol(comparison.left) && is_symbol(comparison.right)) is_determined_[met->extent] = true;
      return true;
    }
    return false;
  }

  /// A formula of the extent and others is a number, whichever of them makes it so.
  bool add_joint_number(std::size_t extent) {
    for (const std::int64_t size : {2 * working_[extent], 64 * working_[extent]}) {
      const Sizes changed = with(extent, size);
      const NodeId node = failing(changed);
      const auto joint = node == NodeId::kNone ? std::nullopt : joint_number(prober_, node, extent, working_);
      if (!joint || std::ranges::find(relations_, *joint) != relations_.end()) continue;
      add_equality(extent, *joint, node, changed);
      relations_.push_back(*joint);
      return true;
    }
    return false;
  }

  bool is_symbol(Dim dim) const { return facts_.dims().is_symbol(dim); }

  void add_equality(std::size_t extent, const Comparison& comparison, NodeId node, const Sizes& changed) {
    Requirement equality{.kind = RequirementKind::kEqual, .node = node};
    const auto is_number = [&](Dim dim) { return extents_of(prober_, dim).empty(); };
    const bool is_left = !is_number(comparison.left) &&
                         (is_symbol(comparison.left) || !is_symbol(comparison.right) || is_number(comparison.right));
    equality.subject = is_left ? comparison.left : comparison.right;
    equality.equals = is_left ? comparison.right : comparison.left;
    Sizes stretched = changed;
    stretched[extent] = 1;
    equality.is_exact = working_[extent] == 1 || !runs(stretched);
    add_inputs(equality, extents_of(prober_, comparison.left));
    add_inputs(equality, extents_of(prober_, comparison.right));
    contract_.requirements.push_back(std::move(equality));
  }

  void add_inputs(Requirement& requirement, const std::vector<std::size_t>& extents) const {
    for (const std::size_t extent : extents) {
      const ValueId input = prober_.extents()[extent].input;
      if (std::ranges::find(requirement.inputs, input) == requirement.inputs.end()) requirement.inputs.push_back(input);
    }
  }

  // ---- extents

  void explore(std::size_t extent) {
    const std::int64_t size = working_[extent];
    for (int round = 0; round < kMaxRelations && !runs(extent, 2 * size); ++round)
      if (is_spent_ || !find_relation(extent, with(extent, 2 * size))) break;
    if (is_factor(extent) || add_joint_number(extent)) return;
    const bool above = runs(extent, size + 1), below = size > 1 && runs(extent, size - 1);
    if (is_spent_) return;
    if (above || below) {
      add_bounds(extent, 1, above, below);
    } else if (const auto divisor = least_divisor(extent, size); divisor && !is_spent_) {
      add_divisor(extent, *divisor);
    } else if (!is_spent_) {
      add_single(extent);
    }
  }

  /// Extents that each may have any size, as long as the others have one that much divides, are given primes together.
  void explore_jointly() {
    constexpr std::array<std::int64_t, 8> kPrimes{67, 71, 73, 79, 83, 89, 97, 101};
    Sizes sizes = working_;
    std::vector<std::size_t> moved;
    for (std::size_t extent = 0; extent < working_.size() && moved.size() < kPrimes.size(); ++extent) {
      const std::int64_t prime = kPrimes[moved.size()];
      if (is_determined_[extent] || working_[extent] == 1 || !runs(extent, prime)) continue;
      sizes[extent] = prime;
      moved.push_back(extent);
    }
    if (is_spent_ || moved.size() < 2) return;
    for (const std::size_t extent : moved)
      for (const Comparison& relation : relations_)
        if (auto met = restored(prober_, relation, extent, sizes)) sizes = std::move(met->sizes);
    if (runs(sizes) || is_spent_) return;
    for (const std::size_t extent : moved)
      if (add_joint_divisor(extent, sizes)) return;
  }

  /// A formula of the extent and another one is a number: one line says so, and which sizes there are for each follows.
  bool is_factor(std::size_t extent) const {
    return std::ranges::any_of(relations_, [&](const Comparison& relation) {
      const std::vector<std::size_t> left = extents_of(prober_, relation.left);
      const std::vector<std::size_t> right = extents_of(prober_, relation.right);
      const std::vector<std::size_t>& formula = left.empty() ? right : left;
      return (left.empty() || right.empty()) && std::ranges::find(formula, extent) != formula.end();
    });
  }

  Requirement about(std::size_t extent, RequirementKind kind, NodeId node) const {
    const OpenExtent& open = prober_.extents()[extent];
    return {.kind = kind, .subject = open.symbol, .inputs = {open.input}, .node = node};
  }

  void add_single(std::size_t extent) {
    const std::int64_t size = working_[extent];
    Requirement single = about(extent, RequirementKind::kEqual, failing(with(extent, size + 1)));
    single.equals = facts_.dims().constant(size);
    // What moves with the sizes that are tried is no number of the model.
    Sizes doubled = working_;
    for (std::int64_t& each : doubled) each *= 2;
    single.is_exact = size == 1 || (!runs(extent, 1) && !runs(doubled));
    if (!is_spent_) contract_.requirements.push_back(std::move(single));
  }

  /// Of a product of extents, where whichever of them makes it a multiple will do.
  bool add_joint_divisor(std::size_t extent) { return add_joint_divisor(extent, with(extent, working_[extent] + 1)); }
  bool add_joint_divisor(std::size_t extent, const Sizes& changed) {
    const NodeId node = failing(changed);
    if (node == NodeId::kNone) return false;
    for (const Division& division : divisions(prober_, node)) {
      const std::vector<std::size_t> extents = extents_of(prober_, division.count);
      Sizes fits = working_;
      for (const std::size_t factor : extents) fits[factor] = factor == extent ? division.divisor : kSmallPrime;
      Sizes breaks = fits;
      ++breaks[extent];
      const auto rest = [&](const Sizes& sizes) {
        const auto count = prober_.evaluate(division.count, sizes);
        return count ? *count % division.divisor : 0;
      };
      if (rest(changed) == 0 || rest(fits) != 0 || rest(breaks) == 0 || !runs(fits) || runs(breaks)) continue;
      Requirement requirement{.kind = RequirementKind::kDivisor, .subject = division.count, .node = node};
      requirement.divisor = division.divisor;
      add_inputs(requirement, extents);
      contract_.requirements.push_back(std::move(requirement));
      return true;
    }
    return false;
  }

  void add_divisor(std::size_t extent, std::int64_t divisor) {
    if (add_joint_divisor(extent) || is_spent_) return;
    const std::int64_t size = working_[extent];
    Requirement requirement = about(extent, RequirementKind::kDivisor, failing(with(extent, size + 1)));
    requirement.divisor = divisor;
    // Where little is left, what follows from the extent may be 1, and broadcasting stretches that.
    requirement.is_exact = !runs(extent, divisor + 1) && !runs(extent, 1);
    contract_.requirements.push_back(std::move(requirement));
    add_bounds(extent, divisor, runs(extent, size + divisor), size > divisor && runs(extent, size - divisor));
  }

  /// The least divisor of the size by which it may grow or, below a bound, shrink; nullopt where there is none.
  std::optional<std::int64_t> least_divisor(std::size_t extent, std::int64_t size) {
    constexpr std::int64_t kMostTried = 1 << 16;
    if (size == 1) return std::nullopt;
    const bool has_bound = !runs(extent, 2 * size);
    const auto works = [&](std::int64_t divisor) {
      return (runs(extent, size + divisor) || (has_bound && size > divisor && runs(extent, size - divisor))) &&
             !is_spent_;
    };
    std::vector<std::int64_t> large;
    for (std::int64_t d = 2; d < kMostTried && d <= size / d && !is_spent_; ++d) {
      if (size % d != 0) continue;
      if (works(d)) return d;
      large.push_back(size / d);
    }
    for (const std::int64_t d : std::views::reverse(large))
      if (!is_spent_ && works(d)) return d;
    return has_bound ? std::nullopt : std::optional(size);
  }

  /// `above`, `below`: runs one step above the working size, one below.
  void add_bounds(std::size_t extent, std::int64_t step, bool above, bool below) {
    const std::int64_t size = working_[extent];
    Requirement bound = about(extent, RequirementKind::kBound, NodeId::kNone);
    const std::int64_t large = kLargeSize / step * step;
    if (!above || !runs(extent, large)) {
      const std::int64_t most = above ? last_running(extent, size, large, step) : size;
      bound.most = facts_.dims().constant(most);
      bound.node = failing(with(extent, most + step));
    }
    if (size > step && (!below || !runs(extent, step))) {
      const std::int64_t least = below ? last_running(extent, size, step, step) : size;
      bound.least = facts_.dims().constant(least);
      if (bound.node == NodeId::kNone) bound.node = failing(with(extent, least - step));
    }
    if (!bound.least && !bound.most) return;
    bound.is_exact = !bound.least || bound.node == NodeId::kNone || !is_stretched_below(extent, bound);
    if (!is_spent_) contract_.requirements.push_back(std::move(bound));
  }

  /// A smaller size runs, since something that follows from it is 1 and broadcasting stretches that.
  bool is_stretched_below(std::size_t extent, const Requirement& bound) {
    const auto least = facts_.dims().as_constant(*bound.least);
    return std::ranges::any_of(extents_read(prober_, bound.node), [&](Dim dim) {
      const auto stretched = fitted(prober_, dim, 1, extent, working_);
      return stretched && least && (*stretched)[extent] < *least && runs(*stretched);
    });
  }

  /// The last multiple of `step` that runs, between `good`, which does, and `bad`, which does not.
  std::int64_t last_running(std::size_t extent, std::int64_t good, std::int64_t bad, std::int64_t step) {
    const Sizes failed = with(extent, bad);
    const std::int64_t direction = bad > good ? step : -step;
    return last_good(good, bad, direction, values_at(failing(failed), failed),
                     [&](std::int64_t size) { return runs(extent, size); });
  }

  /// `values`: that the end may be at, or next to.
  template <typename Runs>
  std::int64_t last_good(std::int64_t good, std::int64_t bad, std::int64_t step, std::vector<std::int64_t> values,
                         const Runs& runs_with) {
    const auto [low, high] = std::minmax(good, bad);
    std::erase_if(values,
                  [&](std::int64_t value) { return value <= low || value >= high || (value - good) % step != 0; });
    for (const std::int64_t value : values) {
      if (is_spent_) return good;
      if (!runs_with(value)) {
        bad = value;
      } else {
        good = value;
        if (!runs_with(value + step)) return good;
      }
    }
    while (std::abs(bad - good) > std::abs(step) && !is_spent_) {
      const std::int64_t steps = (bad - good) / step;
      const std::int64_t middle = good + std::max<std::int64_t>(steps / 2, 1) * step;
      (runs_with(middle) ? good : bad) = middle;
    }
    return good;
  }

  /// What the extents and elements that a node reads are for these sizes, each with its neighbours.
  std::vector<std::int64_t> values_at(NodeId node, const Sizes& sizes) const {
    std::vector<std::int64_t> values;
    if (node == NodeId::kNone) return values;
    for (const Dim dim : extents_read(prober_, node))
      if (const auto value = prober_.evaluate(dim, sizes))
        if (std::ranges::find(values, *value) == values.end()) values.push_back(*value);
    constexpr std::size_t kMaxValues = 6;
    std::ranges::sort(values);
    if (values.size() > kMaxValues) values.erase(values.begin(), values.end() - kMaxValues);
    return values;
  }

  // ---- elements

  /// An extent is what elements of an input say, as in a Reshape: which of them a model runs with is not looked for.
  bool has_shapes_of_elements() const {
    const dataflow::Analysis& analysis = prober_.analysis();
    const Model& model = analysis.model();
    IdVector<ValueId, bool> of_input(model.values.size());
    for (const ValueId input : model.graph(GraphId::kMain).inputs)
      if (has_open_integers(input)) of_input[input] = true;
    // A declaration may give a name to an extent that nothing is known of.
    const auto is_open = [&](Dim dim) {
      return dim.is_unknown() || std::ranges::any_of(facts_.dims().symbols(dim), [&](Dim symbol) {
               return !prober_.extent_of(symbol).has_value();
             });
    };
    const auto is_unnamed = [&](ValueId value) {
      const Fact& fact = analysis.fact(value);
      return value != ValueId::kAbsent && fact.kind == ValueKind::kTensor &&
             (!facts_.is_ranked(fact.shape) || std::ranges::any_of(facts_.dims_of(fact.shape), is_open));
    };
    for (const NodeId id : analysis.model().nodes.ids()) {
      if (!analysis.is_visited(id) || model.node(id).graph != GraphId::kMain) continue;
      const auto operands = model.operands(model.node(id)), results = model.results(model.node(id));
      facts_.meter().charge(1 + operands.size());
      const auto is_of_input = [&](ValueId value) { return value != ValueId::kAbsent && of_input[value]; };
      const ops::OpEntry* entry = analysis.entry(model.node(id));
      if (std::ranges::none_of(operands, is_of_input) || ops::has_trait(entry, ops::OpTrait::kShapeOf)) continue;
      const bool decides = !is_of_input(operands.front()) && !is_unnamed(operands.front());
      // As many elements as before may leave one extent only, which is no choice of the elements.
      if (decides && ops::opcode_of(entry) == ops::Opcode::kReshape) return true;
      for (const ValueId result : results) {
        if (result == ValueId::kAbsent) continue;
        if (decides && is_unnamed(result)) return true;
        of_input[result] = analysis.fact(result).dtypes.proves(DTypeSet::integers());
      }
    }
    return false;
  }

  bool has_open_integers(ValueId input) const {
    if (input == ValueId::kAbsent || prober_.analysis().model().value(input).has_default()) return false;
    const Fact& fact = prober_.analysis().fact(input);
    return fact.kind == ValueKind::kTensor && fact.dtypes.proves(DTypeSet::integers()) &&
           !prober_.has_declared_range(input);
  }

  void explore_elements(ValueId input) {
    const Fact& fact = prober_.analysis().fact(input);
    const auto runs_with = [&](std::int64_t value) { return runs(working_, {input, value}); };
    const Range widest = range_of(fact.dtypes);
    const auto within = [&](std::int64_t value) {
      return static_cast<std::int64_t>(std::clamp(static_cast<double>(value), widest.lo, widest.hi));
    };
    if (!runs_with(0)) return;
    Requirement range{.kind = RequirementKind::kRange, .elements_of = input, .inputs = {input}};
    for (const std::int64_t end : {within(kLargeElement), within(-kLargeElement)}) {
      if (end == 0 || runs_with(end) || is_spent_) continue;
      const NodeId node = failing(working_, {input, end});
      const std::int64_t step = end > 0 ? 1 : -1;
      // An index reaches up to one below the extent, and a negative one down to minus that extent.
      std::vector<std::int64_t> ends;
      for (const std::int64_t value : values_at(node, working_)) ends.push_back(end > 0 ? value - 1 : -value);
      const std::int64_t last = last_good(0, end, step, std::move(ends), runs_with);
      range.node = range.node == NodeId::kNone ? failing(working_, {input, last + step}) : range.node;
      (end > 0 ? range.most : range.least) = end_of(input, node, last, step);
    }
    if ((!range.least && !range.most) || is_spent_) return;
    range.is_exact = !lets_through_others(input, range);
    contract_.requirements.push_back(std::move(range));
  }

  /// An element outside the range runs: an index that a loss ignores, as an attribute or as what targets are compared
  /// with.
  bool lets_through_others(ValueId input, const Requirement& range) {
    return std::ranges::any_of(numbers_outside(range),
                               [&](std::int64_t element) { return runs(working_, {input, element}); });
  }

  /// Single integers that the model holds.
  std::vector<std::int64_t> numbers_outside(const Requirement& range) const {
    const dataflow::Analysis& analysis = prober_.analysis();
    const Model& model = analysis.model();
    std::vector<std::int64_t> numbers;
    const auto add = [&](std::int64_t number) {
      if (is_outside(range, number) && numbers.size() < kMaxNumbers &&
          std::ranges::find(numbers, number) == numbers.end())
        numbers.push_back(number);
    };
    const auto add_attributes = [&](const Node& node) {
      for (const Attribute& attribute : model.attributes(node))
        if (attribute.kind == AttributeKind::kInt) add(attribute.i);
    };
    if (range.node == NodeId::kNone) return numbers;
    const Node& asking = model.node(range.node);
    add_attributes(asking);
    if (model.graph(asking.graph).kind == GraphKind::kFunction) {
      for (const Node& node : model.nodes)
        if (model.op(node).function == asking.graph) add_attributes(node);
    }
    for (const ValueId id : ids_below<ValueId>(model.values.size())) {
      const Content* content = facts_.content(analysis.fact(id).content);
      if (content == nullptr || content->integers.size() != 1) continue;
      if (const auto number = facts_.dims().as_constant(content->integers.front())) add(*number);
    }
    return numbers;
  }

  bool is_outside(const Requirement& range, std::int64_t element) const {
    const DimPool& pool = facts_.dims();
    const auto least = range.least ? pool.as_constant(*range.least) : std::nullopt;
    const auto most = range.most ? pool.as_constant(*range.most) : std::nullopt;
    return (least && element < *least) || (most && element > *most);
  }

  /// The end of a range of elements in terms of an extent that is indexed, or that they are lengths within, where it
  /// moves with that extent.
  Dim end_of(ValueId input, NodeId node, std::int64_t last, std::int64_t step) {
    DimPool& pool = facts_.dims();
    for (const Dim dim : extents_read(prober_, node)) {
      const std::vector<std::size_t> extents = extents_of(prober_, dim);
      const auto now = prober_.evaluate(dim, working_);
      if (extents.empty() || !now) continue;
      const std::int64_t below = step > 0 ? *now - last : 0;  // 1: an index, 0: a length
      if (step > 0 ? below != 0 && below != 1 : *now != -last) continue;
      const Sizes larger = with(extents.front(), 2 * working_[extents.front()]);
      const auto extent = prober_.evaluate(dim, larger);
      const std::int64_t end = !extent ? 0 : step > 0 ? *extent - below : -*extent;
      if (!extent || !runs(larger, {input, end}) || runs(larger, {input, end + step})) continue;
      return step > 0 ? pool.sub(dim, pool.constant(below)) : pool.sub(pool.constant(0), dim);
    }
    return pool.constant(last);
  }

  Prober& prober_;
  FactStore& facts_;
  Sizes working_;
  std::vector<bool> is_determined_;  // by extent: it has to be another one
  std::vector<Comparison> relations_;
  Contract contract_;
  bool is_spent_ = false;
};

}  // namespace

std::string_view to_text(RequirementKind kind) {
  constexpr std::array<std::string_view, 4> kNames{"equal", "bound", "divisor", "range"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<NodeId> certain_failure(const dataflow::Analysis& analysis) {
  for (const dataflow::NodeViolation& violation : analysis.violations())
    if (violation.certainty == ops::Certainty::kMust && !ops::is_about_declared_shape(violation.kind()))
      return violation.node;
  const Model& model = analysis.model();
  const auto is_undefined = [&](ValueId value) {
    return value != ValueId::kAbsent && model.value(value).origin == ValueOrigin::kUndefined;
  };
  for (const NodeId node : analysis.nodes()) {
    const dataflow::Gap gap = analysis.gap(node);
    if (gap == dataflow::Gap::kCycle || gap == dataflow::Gap::kRecursion) return node;
    if (analysis.is_visited(node) && std::ranges::any_of(analysis.operands(node), is_undefined)) return node;
  }
  return std::nullopt;
}

Contract find_contract(const dataflow::Analysis& analysis, const dataflow::AnalysisOptions& options) {
  Contract contract;
  if (analysis.model().graphs.empty()) return contract;
  Prober prober(analysis, options, kBudget);
  if (prober.probes_left() == 0) {
    contract.is_complete = false;
    return contract;
  }
  std::optional<Sizes> working = find_working_sizes(prober);
  if (!working) {
    // Where the input's work is spent, nobody has looked for all of them.
    contract.is_complete = !analysis.meter().is_partial();
    contract.has_sizes = !contract.is_complete;
    return contract;
  }
  contract = ContractSearch(prober, std::move(*working)).find();
  if (analysis.meter().is_partial() || has_untracked_input(analysis.model())) contract.is_complete = false;
  return contract;
}

}  // namespace tensorlint::contract
