#include "runtime/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/escape.h"
#include "ir/ops/entry.h"
#include "ir/ops/windows.h"
#include "passes/dataflow/analysis.h"
#include "runtime/compare/cause.h"
#include "runtime/compare/conditions.h"
#include "runtime/compare/floats.h"
#include "runtime/compare/noise.h"
#include "runtime/compare/result_test.h"
#include "runtime/interpreter/constants.h"
#include "runtime/interpreter/graph_plan.h"
#include "runtime/values/codec.h"

namespace tensorlint::compare {

using runtime::HostTensor;
using runtime::HostValue;

namespace {

/// The dtype of each value; kUndefined where several are possible.
IdVector<ValueId, DType> dtypes_of(const Model& model, const dataflow::Analysis& analysis) {
  IdVector<ValueId, DType> dtypes(model.values.size(), DType::kUndefined);
  for (const ValueId value : ids_below(model.values.size(), static_cast<ValueId>(1)))
    if (const auto dtype = analysis.fact(value).dtypes.single()) dtypes[value] = *dtype;
  return dtypes;
}

std::vector<std::int64_t> index_of(std::size_t element, std::span<const std::int64_t> extents) {
  std::vector<std::int64_t> index(extents.size());
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    const auto extent = static_cast<std::size_t>(std::max<std::int64_t>(extents[axis], 1));
    index[axis] = static_cast<std::int64_t>(element % extent);
    element /= extent;
  }
  return index;
}

/// Whether the extents that a declaration fixes are these. A negative one fixes nothing.
bool agrees(const runtime::Extents& extents, const TypeDecl* declared) {
  if (declared == nullptr || !declared->ranked) return true;
  return std::ranges::equal(extents, declared->dims, [](std::int64_t extent, const DimDecl& dim) {
    return !dim.has_extent || dim.extent < 0 || dim.extent == extent;
  });
}

/// "8, N, ?"
std::string dims_text(const Model& model, const TypeDecl& type) {
  std::vector<std::string> dims;
  for (const DimDecl& dim : type.dims)
    dims.push_back(dim.has_extent && dim.extent >= 0 ? std::to_string(dim.extent)
                   : dim.name == NameId::kEmpty      ? "?"
                                                     : escape_for_display(model.text(dim.name), 60));
  return fmt::format("{}", fmt::join(dims, ", "));
}

/// Whether a value may have these extents, as far as its fact says.
bool may_have(const dataflow::Analysis& analysis, ValueId value, std::span<const std::int64_t> extents) {
  const Fact& fact = analysis.fact(value);
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked || analysis.taint(value).has(Aspect::kShape))
    return true;
  return std::ranges::equal(extents, analysis.facts().dims_of(fact.shape), [&](std::int64_t extent, Dim dim) {
    return analysis.facts().dims().bounds(dim).contains(extent);
  });
}

/// Walks the nodes, with what is known of the values that later ones read.
class Walk {
 public:
  Walk(const Model& model, const RecordedValues& recorded, const Contract& contract, const CompareOptions& options,
       int replicas, runtime::Memory& memory)
      : replicas_(replicas),
        model_(model),
        recorded_(recorded),
        contract_(contract),
        options_(options),
        memory_(memory),
        analysis_(dataflow::analyse(model, dataflow::options_with(options.allowances))),
        dtypes_(dtypes_of(model, analysis_)),
        reference_(model, memory, contract, dtypes_, options.allowances),
        storage_(std::make_shared<std::vector<std::shared_ptr<const void>>>(model.storage)) {}

  Result<Comparison> run(std::vector<HostValue> inputs) {
    const Graph& main = model_.graph(GraphId::kMain);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!inputs[i].is_absent()) known_[main.inputs[i]] = {inputs[i], {}};
    const runtime::GraphPlan plan(model_);
    const auto& steps = plan.steps(GraphId::kMain);
    if (steps.is_cyclic) return Error{"nodes of the graph depend on each other", {}};
    for (std::size_t at = 0; at < steps.nodes.size(); ++at) {
      positions_[steps.nodes[at]] = at;
      try {
        if (auto error = visit(steps.nodes[at])) return *std::move(error);
      } catch (const runtime::RunFault& fault) {
        return Error{fmt::format("node `{}`: {}", model_.label(steps.nodes[at]), fault.message), {}};
      }
      for (const ValueId value : steps.drops[at]) forget(value);
    }
    comparison_.first = comparison_.results.size();
    for (std::size_t i = comparison_.results.size(); i-- > 0;)
      if (comparison_.results[i].test.verdict == Verdict::kBug) comparison_.first = i;
    return std::move(comparison_);
  }

 private:
  void forget(ValueId value) {
    known_.erase(value);
    unrecorded_.erase(value);
    unrounded_.of_node.erase(value);
    unrounded_.along.erase(value);
  }

  /// What is known of a value before the node that reads it; an error of the files.
  std::optional<Error> know(ValueId value) {
    if (known_.contains(value)) return std::nullopt;
    const Value& declared = model_.value(value);
    if (declared.origin == ValueOrigin::kInput && recorded_.has(value)) {
      Result<HostTensor> tensor = recorded_.read(value, dtypes_[value], memory_);
      if (!tensor) return tensor.error();
      if (!agrees(tensor->extents(), declared.type))
        return Error{fmt::format("the input {} is recorded as [{}], and the model declares [{}]",
                                 quoted_for_people(model_.name_of(value)), fmt::join(tensor->extents(), ", "),
                                 dims_text(model_, *declared.type)),
                     {}};
      known_[value] = {HostValue(*std::move(tensor)), {}};
    } else if (declared.initializer != nullptr) {
      HostTensor constant = load_constant(*declared.initializer, model_.path, storage_, memory_);
      if (recorded_.has(value)) {
        Result<HostTensor> tensor = recorded_.read(value, constant.dtype(), memory_);
        if (!tensor) return tensor.error();
        if (tensor->extents() != constant.extents())
          return Error{fmt::format("the constant {} is recorded as [{}], and is [{}] in the model",
                                   quoted_for_people(model_.name_of(value)), fmt::join(tensor->extents(), ", "),
                                   fmt::join(constant.extents(), ", ")),
                       {}};
        constant = recorded_constant(value, constant, *std::move(tensor));
      }
      known_[value] = {HostValue(std::move(constant)), {}};
    } else if (declared.sparse_initializer != nullptr) {
      known_[value] = {HostValue(load_constant(*declared.sparse_initializer, model_.path, storage_, memory_)), {}};
    }
    return std::nullopt;
  }

  /// What nodes read of a constant that the engine recorded: its own one, where computing it explains the difference
  /// (an exporter may have folded the nodes that compute it), else that of the model.
  HostTensor recorded_constant(ValueId value, HostTensor declared, HostTensor recorded) {
    if (!is_real(declared.dtype())) return declared;
    const HostTensor a = runtime::to_float64(declared, memory_), b = runtime::to_float64(recorded, memory_);
    const std::span<const double> mine = a.as<double>(), theirs = b.as<double>();
    const HostTensor noise = constant_noise(declared, memory_);
    std::size_t differing = 0, beyond = 0;
    double most = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const double error = std::fabs(mine[i] - theirs[i]);
      if (mine[i] == theirs[i] || (std::isnan(mine[i]) && std::isnan(theirs[i]))) continue;
      ++differing;
      beyond += !(error <= kDeviations * noise.as<double>()[i]);
      most = std::max(most, std::isnan(error) ? HUGE_VAL : error);
    }
    if (differing == 0) return declared;
    if (!noted_.insert(value).second) return beyond == 0 ? recorded : declared;
    comparison_.notes.push_back(
        fmt::format("{} of {} elements of the constant {} are recorded with other numbers than the model has, off by "
                    "up to {:.3g}: {}",
                    differing, mine.size(), quoted_for_people(model_.name_of(value)), most,
                    beyond == 0 ? "nodes are given the recorded ones"
                                : "more than computing it explains; nodes are given the model's"));
    return beyond == 0 ? recorded : declared;
  }

  /// Chains of a long model would take the square of its nodes.
  static void join(Unrecorded& into, const Unrecorded& more) {
    std::vector<NodeId> all;
    std::ranges::set_union(into.nearest, more.nearest, std::back_inserter(all));
    into.is_cut = into.is_cut || more.is_cut || all.size() > Unrecorded::kMost;
    if (all.size() > Unrecorded::kMost) all.erase(all.begin(), all.end() - Unrecorded::kMost);
    into.nearest = std::move(all);
  }

  std::optional<Error> visit(NodeId node) {
    NodeReference::Inputs inputs;
    Unrecorded before;
    for (const ValueId value : reference_.reads(node)) {
      if (auto error = know(value)) return error;
      const auto found = known_.find(value);
      if (found == known_.end())
        return give_up(node,
                       fmt::format("nothing is known of its operand {}", quoted_for_people(model_.name_of(value))));
      inputs[value] = found->second;
      if (const auto chain = unrecorded_.find(value); chain != unrecorded_.end()) join(before, chain->second);
    }
    const std::span<const ValueId> names = model_.results(model_.node(node));
    const bool keeps =
        options_.is_chained || std::ranges::any_of(names, [&](ValueId value) { return !recorded_.has(value); });
    Result<std::vector<Expected>> expected = reference_.expect(
        node, inputs, {.replicas = replicas_, .keeps_replicas = keeps, .uses_grants = keeps || !before.empty()});
    if (!expected) return give_up(node, expected.error().message);
    if (has_no_window(node, inputs, *expected))
      return give_up(node, "no window fits into its operand: engines disagree about what it gives then");
    const bool is_random = !expected->empty() && expected->front().is_random, had_bug = has_bug_;
    if (is_random) comparison_.skipped.push_back({node, "it draws random numbers"});
    for (std::size_t r = 0; r < names.size() && r < expected->size(); ++r) {
      if (names[r] == ValueId::kAbsent || (*expected)[r].value.is_absent()) continue;
      if (auto error = take(node, names[r], r, (*expected)[r], inputs, before)) return error;
    }
    if (options_.is_chained && replicas_ == kManyReplicas && !is_random) remember_loosened(node, *expected, inputs);
    if (!options_.is_chained && before.empty() && !is_random) remember_unrounded(node, *expected, inputs);
    return has_bug_ && !had_bug && options_.keeps_reproduction ? reproduce(node, inputs) : std::nullopt;
  }

  /// By the specification a pool over an axis that is shorter than its window gives no elements; onnxruntime, one.
  bool has_no_window(NodeId node, const NodeReference::Inputs& inputs, const std::vector<Expected>& expected) const {
    const ops::OpEntry* const entry = analysis_.entry(model_.node(node));
    if (entry == nullptr || std::ranges::find(entry->constraints(), &ops::kWindowFits) == entry->constraints().end())
      return false;
    const auto data = inputs.find(model_.operands(model_.node(node)).front());
    return data != inputs.end() && data->second.value.is_tensor() && data->second.value.tensor().size() > 0 &&
           expected.front().value.is_tensor() && expected.front().value.tensor().size() == 0;
  }

  /// The node is left out; later ones read what is recorded of it.
  std::optional<Error> give_up(NodeId node, std::string reason) {
    // Each level of calls has added its name, and any number of nodes may give up.
    constexpr std::size_t kMostKept = 2000;
    if (reason.size() > kMostKept) reason = std::string(reason, 0, kMostKept);
    comparison_.skipped.push_back({node, std::move(reason)});
    for (const ValueId value : model_.results(model_.node(node))) {
      if (value == ValueId::kAbsent || !recorded_.has(value)) continue;
      Result<HostTensor> tensor = recorded_.read(value, dtypes_[value], memory_);
      if (!tensor) return tensor.error();
      known_[value] = {HostValue(*std::move(tensor)), {}};
    }
    return std::nullopt;
  }

  std::optional<Error> take(NodeId node, ValueId value, std::size_t r, Expected& expected,
                            const NodeReference::Inputs& inputs, const Unrecorded& before) {
    const bool is_recorded = recorded_.has(value) && expected.value.is_tensor();
    if (is_recorded) {
      Result<HostTensor> other = recorded_.read(value, dtypes_[value], memory_);
      if (!other) return other.error();
      const Extents& extents = expected.value.tensor().extents();
      const bool is_other_choice =
          other->extents() != extents && expected.is_chosen && may_have(analysis_, value, other->extents());
      if (other->extents() != extents && !is_other_choice)
        return Error{fmt::format("{} is recorded as [{}], and its node `{}` gives [{}]: is it of another run, or of "
                                 "another model?",
                                 quoted_for_people(model_.name_of(value)), fmt::join(other->extents(), ", "),
                                 model_.label(node), fmt::join(extents, ", ")),
                     {}};
      if (dtypes_[value] == DType::kUndefined) dtypes_[value] = other->dtype();
      const DType mine = expected.value.dtype();
      if (!is_comparable(mine, other->dtype()))
        return Error{
            fmt::format("{} is recorded as {}, and its node `{}` gives {}", quoted_for_people(model_.name_of(value)),
                        to_text(other->dtype()), model_.label(node), to_text(mine)),
            {}};
      if (!is_real(mine) && mine != DType::kString) {
        comparison_.skipped.push_back({node, "complex numbers are not compared"});
      } else if (is_other_choice && !expected.is_random) {
        comparison_.skipped.push_back({node, "rounding decides how many elements it gives"});
      } else if (!expected.is_random) {
        judge(node, value, r, expected, *other, inputs, before);
      }
      if (!options_.is_chained || expected.is_random) {
        known_[value] = {HostValue(*std::move(other)), {}};
        return std::nullopt;
      }
    } else if (expected.is_random) {
      return std::nullopt;  // what the engine drew is not known
    } else {
      // Of a constant there is nothing to record.
      if (!reference_.reads(node).empty()) {
        Unrecorded& chain = unrecorded_[value];
        chain = before;
        join(chain, {.nearest = {node}});
      }
    }
    known_[value] = estimate_of(value, expected, {.replicas = replicas_});
    return std::nullopt;
  }

  using Extents = runtime::Extents;

  /// Of a chain, `expected` becomes what the condition makes of it that explains the result: later nodes read that.
  void judge(NodeId node, ValueId value, std::size_t r, Expected& expected, const HostTensor& other,
             const NodeReference::Inputs& inputs, const Unrecorded& before) {
    NodeResult result{.node = node, .value = value, .before = before};
    // Alone, a node shows whether that is what happened.
    const TestOptions test{.flushes = contract_.flushes_to_zero && (options_.is_chained || !before.empty())};
    result.test = test_result(reference_, model_, node, r, inputs, expected, other, memory_, test);
    const Expected* judged = &expected;
    Expected again;
    const Suspect suspect{node, r, &inputs, &other, dtypes_[value], options_.is_chained};
    const bool examines = result.test.verdict != Verdict::kIdentical && may_examine(node);
    const auto may_be_explained = [&] { return examines && result.test.verdict == Verdict::kBug; };
    if (may_be_explained() && !expected.spread.is_absent()) {
      // A deviation found too small by chance.
      auto many = reference_.expect(node, inputs,
                                    {.replicas = kManyReplicas, .uses_grants = options_.is_chained || !before.empty()});
      if (many && r < many->size() && is_comparable((*many)[r].value, other)) {
        again = std::move((*many)[r]);
        judged = &again;
        result.test = test_result(reference_, model_, node, r, inputs, again, other, memory_, test);
      }
    }
    // After the first bug of a chain, later values carry it.
    const bool is_last_word = options_.is_chained ? replicas_ == kManyReplicas && !has_bug_ : before.empty();
    if (may_be_explained() && is_last_word) {
      if (auto met = find_condition(reference_, contract_, model_, suspect, unrounded_, memory_)) {
        result.test = met->test;
        result.condition = met->name;
        if (options_.is_chained) expected = std::move(met->expected), judged = &expected;
      }
    }
    const bool is_near =
        examines && (result.test.verdict == Verdict::kExplained || result.test.verdict == Verdict::kIllConditioned);
    if (is_near && before.empty() && !options_.is_chained && expected.value.is_tensor()) {
      if (const auto met =
              find_tf32_within_bounds(reference_, contract_, model_, suspect, expected.value.tensor(), memory_)) {
        result.test = met->test;
        result.condition = met->name;
      }
    }
    if (may_be_explained() && !before.empty() && !options_.is_chained) {
      // Signs of 8 roundings cancel by chance now and then; and values may not have been rounded before they were read.
      if (const auto test = test_again(suspect, before.nearest, {})) {
        result.test = *test;
        if (test->verdict == Verdict::kExplainedIf) result.test.verdict = Verdict::kExplained;
      } else if (const auto unrounded = test_again(suspect, before.nearest, {.loosens = true})) {
        result.test = *unrounded;
        result.condition = "wide-intermediates";
      }
    }
    if (may_be_explained() && !before.empty() && (!options_.is_chained || is_last_word)) {
      if (const auto narrow = test_again(suspect, before.nearest, {.narrows_weights = true})) {
        result.test = *narrow;
        result.condition = "bf16-weights";
      } else if (const auto rounded = test_in_tf32(suspect, before.nearest)) {
        result.test = *rounded;
        result.condition = "tf32";
      }
    }
    if (result.test.verdict == Verdict::kBug && !has_bug_) {
      has_bug_ = true;
      result.sample = sample_of(*judged, other);
    }
    if (result.test.verdict == Verdict::kBug) {
      result.cause = guess_cause(*judged, other, result.test, memory_);
      if (examines && before.empty() && !options_.is_chained &&
          constants_explain(reference_, contract_, model_, suspect, memory_))
        comparison_.notes.push_back(
            fmt::format("roundings of its constants explain {} of node {}: the exporter may have folded another node "
                        "into them",
                        quoted_for_people(model_.name_of(value)), quoted_for_people(model_.label(node))));
    }
    result.worst_index = index_of(result.test.worst, other.extents());
    comparison_.results.push_back(std::move(result));
  }

  /// Whether it is looked for what else explains a result that differs: the node is computed some hundred times for
  /// it, with all of its results. Nodes with more than a few of them share what may be spent on that.
  bool may_examine(NodeId node) {
    constexpr std::size_t kFewResults = 16, kMostOfMany = std::size_t{1} << 14;
    const std::size_t results = model_.results(model_.node(node)).size();
    if (results <= kFewResults) return true;
    if (examined_ + results <= kMostOfMany) {
      examined_ += results;
      return true;
    }
    if (!std::exchange(leaves_unexamined_, true))
      comparison_.notes.push_back(
          fmt::format("from node {} on, conditions were not looked for where one of many results of a node differs",
                      quoted_for_people(model_.label(node))));
    return false;
  }

  static bool is_half_dtype(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }
  bool is_half(ValueId value) const { return is_half_dtype(dtypes_[value]); }

  struct Retry {
    bool loosens = false;          ///< as if the engine had not rounded the values in half precision that it recorded
    bool narrows_weights = false;  ///< as if it had rounded float32 constants of the model to bfloat16
    std::optional<Tf32> tf32{};    ///< as if it had rounded the factors of float32 products to tf32
  };

  /// An engine rounds all factors alike.
  std::optional<TensorTest> test_in_tf32(const Suspect& suspect, const std::vector<NodeId>& nodes) {
    const auto has_factors = [&](NodeId node) { return !reference_.float32_factors(node).empty(); };
    if (!has_factors(suspect.node) && std::ranges::none_of(nodes, has_factors)) return std::nullopt;
    for (const Tf32 how : {Tf32::kEven, Tf32::kAway, Tf32::kCut})
      if (auto found = test_again(suspect, nodes, {.tf32 = how})) return found;
    return std::nullopt;
  }

  /// Computes the nodes before a suspect again, of which nothing is recorded, with many replicas. What takes more than
  /// the window is left open.
  std::optional<TensorTest> test_again(const Suspect& suspect, std::vector<NodeId> nodes, const Retry& retry) {
    if (nodes.size() > kMostRetried || retried_ >= kMostRetriedInAll) return std::nullopt;
    retried_ += nodes.size() + 1;
    for (const NodeId node : nodes)
      if (reference_.work_of(node) > kMostWorkOfSmall && ++retried_of_[node] > kMostRetriedOfLarge) return std::nullopt;
    std::ranges::sort(nodes, {}, [&](NodeId node) { return positions_[node]; });
    NodeReference::Inputs loose;
    const auto inputs_of = [&](NodeId node) -> std::optional<NodeReference::Inputs> {
      NodeReference::Inputs inputs;
      for (const ValueId value : reference_.reads(node)) {
        if (const auto found = loose.find(value); found != loose.end()) {
          inputs[value] = found->second;
        } else if (retry.loosens && recorded_.has(value) && is_half(value) &&
                   model_.value(value).origin == ValueOrigin::kNode) {
          Result<HostTensor> tensor = recorded_.read(value, dtypes_[value], memory_);
          if (!tensor) return std::nullopt;
          inputs[value] = loosened(*tensor, dtypes_[value], value, memory_);
        } else if (recorded_.has(value) && model_.value(value).origin == ValueOrigin::kNode) {
          Result<HostTensor> tensor = recorded_.read(value, dtypes_[value], memory_);
          if (!tensor) return std::nullopt;
          inputs[value] = {HostValue(*std::move(tensor)), {}};
        } else if (!know(value) && known_.contains(value)) {
          inputs[value] = known_[value];
          if (retry.narrows_weights) narrow_weight(value, inputs[value]);
        } else if (auto constant = constant_of(value)) {
          inputs[value] = {*std::move(constant), {}};
        } else {
          return std::nullopt;
        }
      }
      if (retry.tf32)
        for (const ValueId factor : reference_.float32_factors(node))
          if (const auto found = inputs.find(factor); found != inputs.end())
            found->second = in_tf32(found->second, *retry.tf32, memory_);
      return inputs;
    };
    try {
      for (const NodeId node : nodes) {
        const auto inputs = inputs_of(node);
        if (!inputs) return std::nullopt;
        auto given = reference_.expect(
            node, *inputs,
            {.replicas = kManyReplicas, .keeps_replicas = true, .reads_unrounded = true, .uses_grants = true});
        const std::span<const ValueId> names = model_.results(model_.node(node));
        if (!given) return std::nullopt;
        for (std::size_t r = 0; r < names.size() && r < given->size(); ++r)
          if (names[r] != ValueId::kAbsent && !recorded_.has(names[r]))
            loose[names[r]] = estimate_of(names[r], (*given)[r], {.replicas = kManyReplicas, .loosens = retry.loosens});
      }
      const auto inputs = inputs_of(suspect.node);
      if (!inputs) return std::nullopt;
      Suspect again = suspect;
      again.inputs = &*inputs;
      return test_with_many_replicas(reference_, model_, again, memory_);
    } catch (const runtime::RunFault&) {
      return std::nullopt;
    }
  }

  void narrow_weight(ValueId value, Estimate& weight) {
    if (model_.value(value).initializer == nullptr || dtypes_[value] != DType::kFloat32) return;
    weight.value = as_declared(runtime::to_float64(weight.value.tensor(), memory_), DType::kBFloat16, memory_);
  }

  /// What a node without operands gives, after it was dropped.
  std::optional<HostValue> constant_of(ValueId value) {
    const Value& declared = model_.value(value);
    if (declared.producer == NodeId::kNone || !reference_.reads(declared.producer).empty()) return std::nullopt;
    auto given = reference_.expect(declared.producer, {}, {.only_values = true});
    if (!given || declared.result_index >= given->size()) return std::nullopt;
    return std::move((*given)[declared.result_index].value);
  }

  /// Keeps what makes a model of the node alone.
  std::optional<Error> reproduce(NodeId node, const NodeReference::Inputs& inputs) {
    Reproduction& kept = comparison_.reproduction.emplace();
    kept.node = node;
    NodeReference::Inputs stored;
    for (const auto& [id, estimate] : inputs) {
      kept.read[id] = as_declared(estimate.value, dtypes_[id], memory_);
      stored[id] = {kept.read[id], {}};
    }
    // What is computed here of operands is wider than the files that hold them.
    const auto expected = reference_.expect(node, stored, {.only_values = true});
    if (!expected) return expected.error();
    const std::span<const ValueId> names = model_.results(model_.node(node));
    for (std::size_t r = 0; r < names.size() && r < expected->size(); ++r) {
      const HostValue& value = (*expected)[r].value;
      if (names[r] == ValueId::kAbsent || value.is_absent()) continue;
      kept.expected[names[r]] = as_declared(value, dtypes_[names[r]], memory_);
      if (!recorded_.has(names[r])) continue;
      Result<HostTensor> other = recorded_.read(names[r], dtypes_[names[r]], memory_);
      if (!other) return other.error();
      kept.recorded[names[r]] = HostValue(*std::move(other));
    }
    return std::nullopt;
  }

  std::vector<SampledElement> sample_of(const Expected& expected, const HostTensor& other) const {
    std::vector<SampledElement> sample;
    if (other.dtype() == DType::kString) return sample;
    const HostTensor& reference = expected.value.tensor();
    const std::size_t step = other.size() / NodeResult::kSampled + 1;
    for (std::size_t i = 0; i < other.size(); i += step) {
      const double x = runtime::number_at(reference, i);
      sample.push_back({x, runtime::number_at(other, i), bound_of(expected, other.dtype(), x, i)});
    }
    return sample;
  }

  /// For the condition that values stay unrounded between nodes. It begins where one is narrower than sums are.
  void remember_unrounded(NodeId node, const std::vector<Expected>& expected, const NodeReference::Inputs& inputs) {
    NodeReference::Inputs along = inputs;
    bool differs = false;
    for (auto& [id, estimate] : along)
      if (const auto found = unrounded_.along.find(id); found != unrounded_.along.end())
        estimate = found->second, differs = true;
    const std::span<const ValueId> names = model_.results(model_.node(node));
    const bool begins = std::ranges::any_of(names, [&](ValueId value) { return is_half(value); });
    if (!differs && !begins) return;
    auto computed = reference_.expect(node, along, {.keeps_replicas = true, .reads_unrounded = true});
    for (std::size_t r = 0; r < names.size() && r < expected.size(); ++r) {
      if (names[r] == ValueId::kAbsent || !expected[r].value.is_tensor()) continue;
      if (is_half(names[r]) && expected[r].value.dtype() == DType::kFloat64)
        unrounded_.of_node[names[r]] = {expected[r].value, {}};
      if (computed && r < computed->size() && (*computed)[r].value.is_tensor())
        unrounded_.along[names[r]] = estimate_of(names[r], (*computed)[r], {.is_stored = false});
    }
  }

  /// The same of a chain. Storing rounds at random there; what is left are the values that a conversion rounds, which
  /// an engine may leave out.
  void remember_loosened(NodeId node, const std::vector<Expected>& expected, const NodeReference::Inputs& inputs) {
    NodeReference::Inputs along = inputs;
    bool differs = false, converts = false;
    for (auto& [id, estimate] : along) {
      converts |= runtime::is_float(dtypes_[id]) && !is_half(id);
      if (const auto found = unrounded_.along.find(id); found != unrounded_.along.end())
        estimate = found->second, differs = true;
    }
    const std::span<const ValueId> names = model_.results(model_.node(node));
    const auto is_half_tensor = [](const Expected& each) { return is_half_dtype(each.value.dtype()); };
    converts &= std::ranges::any_of(expected, is_half_tensor);  // converted by the node itself
    if (!differs && !converts) return;
    auto computed = reference_.expect(
        node, along, {.replicas = replicas_, .keeps_replicas = true, .reads_unrounded = true, .uses_grants = true});
    for (std::size_t r = 0; computed && r < names.size() && r < computed->size(); ++r)
      if (names[r] != ValueId::kAbsent && r < expected.size() && (*computed)[r].value.is_tensor())
        unrounded_.along[names[r]] =
            estimate_of(names[r], (*computed)[r], {.replicas = replicas_, .loosens = converts});
  }

  struct EstimateOptions {
    bool is_stored = true;  ///< rounded to its dtype, else to that in which engines compute
    int replicas = kReplicas;
    bool loosens = false;  ///< an engine may not have rounded what a node, a Cast, gives in half precision
  };

  /// What later nodes read where the reference has to stand in for a record. Replicas get the noise of the node and of
  /// rounding.
  Estimate estimate_of(ValueId value, Expected& expected, const EstimateOptions& options) {
    Estimate estimate{expected.value, std::move(expected.replicas)};
    if (!expected.value.is_tensor() || !runtime::is_float(expected.value.dtype())) return estimate;
    const HostTensor& tensor = expected.value.tensor();
    const DType declared = dtypes_[value] == DType::kUndefined ? tensor.dtype() : dtypes_[value];
    const DType dtype = options.is_stored ? declared : contract_.accumulates_in(declared);
    const FloatFormat format = float_format(dtype);
    HostTensor amounts(DType::kFloat64, tensor.extents(), memory_);
    const HostTensor wide = runtime::to_float64(tensor, memory_);
    const bool is_unrounded = expected.value.dtype() == DType::kFloat64 && dtype != DType::kFloat64;
    const bool rounds = is_unrounded || (options.loosens && is_half(value));
    double most = 0;
    bool may_overflow = false;
    std::vector<std::size_t> lost;  // NaNs in whose place the engine may have any number
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      const double x = wide.as<double>()[i];
      const double own = expected.own.is_absent() ? 0 : expected.own.as<double>()[i];
      const bool is_flushed = contract_.flushes_to_zero && std::fabs(x) < std::ldexp(1.0, format.least_exponent);
      const double stored = is_flushed ? std::fabs(x) : rounds || own > 0 ? ulp_of(format, x) / 2 : 0;
      const double amount = own / 4 + stored;
      amounts.as_mutable<double>()[i] = std::isfinite(amount) ? amount : 0;
      most = std::max(most, amounts.as<double>()[i]);
      may_overflow |= is_unrounded && std::isfinite(x) && std::fabs(x) > format.largest;
      if (std::isnan(x) && std::isinf(own)) lost.push_back(i);
    }
    if (most == 0 && lost.empty()) return estimate;
    if (estimate.replicas.empty())
      estimate.replicas.assign(static_cast<std::size_t>(options.replicas), HostValue(tensor));
    for (std::size_t k = 0; k < estimate.replicas.size(); ++k) {
      HostValue& replica = estimate.replicas[k];
      if (!replica.is_tensor() || replica.tensor().extents() != tensor.extents()) continue;
      HostTensor copy(DType::kFloat64, tensor.extents(), memory_);
      runtime::load(replica.tensor(), 0, copy.size(), copy.as_mutable<double>().data());
      shake(copy, amounts, mixed(static_cast<std::uint64_t>(value), k, 0), k);
      // Stored, it is infinite; an engine that does not store it goes on with the number.
      if (may_overflow && k % 2 == 0)
        for (double& x : copy.as_mutable<double>())
          if (std::fabs(x) > format.largest) x = std::copysign(HUGE_VAL, x);
      if (k % 2 == 0)
        for (const std::size_t i : lost) copy.as_mutable<double>()[i] = 0;
      replica = HostValue(std::move(copy));
    }
    return estimate;
  }

  int replicas_;
  const Model& model_;
  const RecordedValues& recorded_;
  const Contract& contract_;
  const CompareOptions& options_;
  runtime::Memory& memory_;
  dataflow::Analysis analysis_;
  IdVector<ValueId, DType> dtypes_;
  NodeReference reference_;
  std::shared_ptr<const void> storage_;
  NodeReference::Inputs known_;
  std::map<ValueId, Unrecorded> unrecorded_;  ///< of values computed here: since the last records
  Unrounded unrounded_{.dtypes = dtypes_};
  Comparison comparison_;
  bool has_bug_ = false;
  std::set<ValueId> noted_;                                          ///< constants that are recorded with other numbers
  IdVector<NodeId, std::size_t> positions_{model_.nodes.size(), 0};  ///< of the nodes of the main graph, as they run
  static constexpr std::size_t kMostRetried = 64, kMostRetriedInAll = 4096;  ///< nodes before a bug; of all bugs
  /// Nodes that compute much are computed again for the first bugs alone: each time with many replicas.
  static constexpr std::uint64_t kMostWorkOfSmall = 4 * runtime::InterpreterOptions::kWorkOfNode;
  static constexpr std::size_t kMostRetriedOfLarge = 8;
  std::size_t retried_ = 0;
  std::map<NodeId, std::size_t> retried_of_;
  std::size_t examined_ = 0;  ///< results of nodes with many, whenever one of them was examined
  bool leaves_unexamined_ = false;
};

}  // namespace

Verdict Comparison::verdict() const {
  Verdict worst = Verdict::kIdentical;
  for (const NodeResult& result : results) worst = std::max(worst, result.test.verdict);
  return worst;
}

Result<Comparison> compare(const Model& model, const RecordedValues& recorded, std::vector<HostValue> inputs,
                           const Contract& contract, const CompareOptions& options, runtime::Memory& memory) {
  {
    Result<Comparison> result = Walk(model, recorded, contract, options, kReplicas, memory).run(inputs);
    // Of the noise of a chain, few replicas show too little in some elements. What is to be called a bug has to be one
    // for many; alone, nodes are computed again where they are judged.
    if (!options.is_chained || !result || result->verdict() != Verdict::kBug) return result;
  }
  return Walk(model, recorded, contract, options, kManyReplicas, memory).run(std::move(inputs));
}

}  // namespace tensorlint::compare
