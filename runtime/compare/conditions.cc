#include "runtime/compare/conditions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <set>
#include <vector>

#include "runtime/compare/effect.h"
#include "runtime/compare/floats.h"
#include "runtime/compare/noise.h"
#include "runtime/compare/result_test.h"
#include "runtime/values/codec.h"

namespace tensorlint::compare {

using runtime::HostTensor;
using runtime::HostValue;
using runtime::Rounding;

namespace {

using Change = std::function<double(double)>;

/// Every element of a floating tensor, in float64, after `change`.
HostValue changed(const HostValue& value, const Change& change, runtime::Memory& memory) {
  if (!value.is_tensor() || !runtime::is_float(value.dtype())) return value;
  const HostTensor wide = runtime::to_float64(value.tensor(), memory);
  HostTensor result(DType::kFloat64, wide.extents(), memory);
  std::ranges::transform(wide.as<double>(), result.as_mutable<double>().begin(), change);
  return result;
}

/// Replicas of a value, each element off by its amount to one side or the other.
std::vector<HostValue> replicas_of(const HostTensor& value, const HostTensor& amounts, ValueId id,
                                   runtime::Memory& memory) {
  const HostTensor wide = runtime::to_float64(value, memory);
  std::vector<HostValue> replicas;
  for (std::size_t k = 0; k < static_cast<std::size_t>(kManyReplicas); ++k) {
    HostTensor copy(DType::kFloat64, wide.extents(), memory);
    std::ranges::copy(wide.as<double>(), copy.as_mutable<double>().begin());
    shake(copy, amounts, mixed(static_cast<std::uint64_t>(id), k, 0x77), k);
    replicas.emplace_back(std::move(copy));
  }
  return replicas;
}

double to_dtype(double x, DType dtype) { return runtime::decode(dtype, runtime::encode(dtype, x, false)); }

bool adds_up(const Rounding& rounding) {
  return rounding.kind == Rounding::Kind::kAccumulates || rounding.kind == Rounding::Kind::kComposite;
}

class Search {
 public:
  Search(NodeReference& reference, const Model& model, const Suspect& suspect, runtime::Memory& memory)
      : reference_(reference), model_(model), suspect_(suspect), memory_(memory) {}

  /// What the test says if the node read `inputs` and was computed with `options`.
  std::optional<TensorTest> explains(const NodeReference::Inputs& inputs, const ReferenceOptions& options,
                                     const TestOptions& test = {}) {
    auto result = computed(inputs, options);
    if (!result) return std::nullopt;
    // The ordinary bound, twice 4 sqrt n roundings, has room for the n of every order up to here.
    constexpr double kShort = 64;
    if (options.in_any_order && result->terms <= kShort) return std::nullopt;
    TensorTest found = test_result(reference_, model_, suspect_.node, suspect_.result, inputs, *result, *suspect_.other,
                                   memory_, test);
    if (found.verdict == Verdict::kBug) return std::nullopt;
    // A bound of a tenth of the values explains nothing, unless it is that of what the node may have read.
    const bool is_noise = options.replicas == kManyReplicas;
    if (found.verdict == Verdict::kIllConditioned && !is_noise) return std::nullopt;
    if (found.verdict != Verdict::kIllConditioned) found.verdict = Verdict::kExplainedIf;
    if (suspect_.is_chained) explained_ = *std::move(result);
    return found;
  }
  /// What the last condition that explains the suspect makes one expect; of a chain.
  Expected take_explained() { return std::move(explained_); }

  NodeReference::Inputs with(const Change& change, const std::function<bool(ValueId)>& applies) {
    NodeReference::Inputs inputs = *suspect_.inputs;
    for (auto& [id, estimate] : inputs) {
      if (!applies(id)) continue;
      estimate.value = changed(estimate.value, change, memory_);
      for (HostValue& replica : estimate.replicas) replica = changed(replica, change, memory_);
    }
    return inputs;
  }
  bool is_constant(ValueId id) const { return model_.value(id).has_default(); }
  static bool any(ValueId /*id*/) { return true; }

  std::optional<TensorTest> tf32() {
    if (suspect_.dtype != DType::kFloat32) return std::nullopt;
    const std::span<const ValueId> operands = model_.operands(model_.node(suspect_.node));
    std::size_t tried = 0;
    // Factors come first; what is added to their products is not rounded.
    for (const std::size_t factors : {std::size_t{2}, std::size_t{3}, operands.size()}) {
      if (factors > operands.size() || factors <= tried) continue;
      tried = factors;
      const std::set<ValueId> rounded(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(factors));
      const auto is_factor = [&](ValueId id) { return rounded.contains(id); };
      for (const Tf32 how : {Tf32::kEven, Tf32::kAway, Tf32::kCut})
        if (auto found = explains(with([how](double x) { return to_tf32(x, how); }, is_factor), {})) return found;
    }
    return std::nullopt;
  }

  /// Products of two factors that were rounded to tf32, where the bound of the sums has room for that: from some 1000
  /// terms on. The errors of the elements are those that the roundings of the factors make then, each its own.
  std::optional<TensorTest> tf32_within_bounds(const HostTensor& plain) {
    const std::span<const ValueId> operands = model_.operands(model_.node(suspect_.node));
    const auto is_float = [&](ValueId id) {
      const auto found = suspect_.inputs->find(id);
      return found != suspect_.inputs->end() && runtime::is_float(found->second.value.dtype());
    };
    if (operands.size() < 2 || !std::ranges::all_of(operands.first(2), is_float)) return std::nullopt;
    const auto is_factor = [&](ValueId id) { return std::ranges::count(operands.first(2), id) > 0; };
    // Of half of each rounding cutting off is the opposite (a correlation of -1/2): where nothing is seen of the first
    // way, there is none of the others.
    constexpr double kFaint = 3, kMostOff = 0.25;
    for (const Tf32 how : {Tf32::kEven, Tf32::kAway, Tf32::kCut}) {
      const NodeReference::Inputs inputs = with([how](double x) { return to_tf32(x, how); }, is_factor);
      const auto rounded = computed(inputs, {.only_values = true});
      if (!rounded) return std::nullopt;
      const EffectShare found = share_of(plain, rounded->value.tensor(), *suspect_.other, memory_);
      if (found.deviations > kDeviations && std::fabs(found.share - 1) < kMostOff) return explains(inputs, {});
      if (found.deviations < kFaint) return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<TensorTest> flush_to_zero() {
    const double least = std::ldexp(1.0, float_format(suspect_.dtype).least_exponent);
    return explains(with([least](double x) { return std::fabs(x) < least ? 0 : x; }, any), {}, {.flushes = true});
  }

  std::optional<TensorTest> wide_intermediates(const NodeReference::Inputs& unrounded) {
    NodeReference::Inputs inputs = *suspect_.inputs;
    bool differs = false;
    for (auto& [id, estimate] : inputs)
      if (const auto found = unrounded.find(id); found != unrounded.end()) estimate = found->second, differs = true;
    const int replicas = suspect_.is_chained ? kManyReplicas : kReplicas;
    return differs ? explains(inputs, {.replicas = replicas, .reads_unrounded = true}) : std::nullopt;
  }

  /// Which values stay unrounded is the engine's choice: of a value that was stored in half precision, the next node
  /// may have read any number that rounds to it.
  std::optional<TensorTest> within_roundings(const IdVector<ValueId, DType>& dtypes) {
    const auto inputs = loosened_inputs(dtypes);
    return inputs ? explains(*inputs, {.replicas = kManyReplicas, .reads_unrounded = true}) : std::nullopt;
  }

  /// Whether the result, in half precision, is the same whatever the node read that rounds to its operands: where
  /// elements are moved or selected, rounding before and after that is the same.
  bool rounds_like_operands(const IdVector<ValueId, DType>& dtypes) {
    const bool is_half = suspect_.dtype == DType::kFloat16 || suspect_.dtype == DType::kBFloat16;
    if (!is_half || reference_.rounding_of(suspect_.node).kind != Rounding::Kind::kExact) return false;
    const auto inputs = loosened_inputs(dtypes);
    if (!inputs) return false;
    const auto result = computed(*inputs, {.replicas = kManyReplicas, .keeps_replicas = true, .reads_unrounded = true});
    if (!result) return false;
    const auto numbers = [&](const HostValue& value) {
      return runtime::to_float64(as_declared(value, suspect_.dtype, memory_).tensor(), memory_);
    };
    const HostTensor value = numbers(result->value);
    return std::ranges::all_of(result->replicas, [&](const HostValue& replica) {
      if (!replica.is_tensor() || replica.tensor().extents() != value.extents()) return false;
      const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
      return std::ranges::equal(numbers(replica).as<double>(), value.as<double>(), same);
    });
  }

  /// An engine may have computed a constant that the exporter folded.
  std::optional<TensorTest> own_constants() {
    NodeReference::Inputs inputs = *suspect_.inputs;
    bool differs = false;
    for (auto& [id, estimate] : inputs) {
      if (!is_constant(id) || !estimate.value.is_tensor() || !runtime::is_float(estimate.value.dtype())) continue;
      const HostTensor& constant = estimate.value.tensor();
      estimate.replicas = replicas_of(constant, constant_noise(constant, memory_), id, memory_);
      differs = true;
    }
    return differs ? explains(inputs, {.replicas = kManyReplicas}) : std::nullopt;
  }

  std::optional<TensorTest> weights_in(DType dtype) {
    if (suspect_.dtype == dtype) return std::nullopt;
    return explains(with([dtype](double x) { return to_dtype(x, dtype); }, [&](ValueId id) { return is_constant(id); }),
                    {});
  }

  std::optional<TensorTest> accumulates_in(DType dtype) {
    const HostTensor wide = runtime::to_float64(*suspect_.other, memory_);
    const auto holds = [dtype](double x) { return !std::isfinite(x) || to_dtype(x, dtype) == x; };
    if (suspect_.dtype != DType::kFloat16 && suspect_.dtype != DType::kBFloat16 &&
        !std::ranges::all_of(wide.as<double>(), holds))
      return std::nullopt;
    auto found = explains(*suspect_.inputs, {.accumulates_in = dtype});
    if (!found) return found;
    // Such sums err by about a standard deviation, a quarter of the bound, in both directions, not with the value, and
    // in most elements: one that differs among many that do not is another fault.
    constexpr double kFarBelow = 1.0 / 64, kFew = 16;
    constexpr std::size_t kFewDiffer = 16;  // of the elements that are not 0
    const auto numbers =
        static_cast<std::size_t>(std::ranges::count_if(wide.as<double>(), [](double x) { return x != 0; }));
    if (found->count >= static_cast<std::size_t>(kFew) && found->differing * kFewDiffer < numbers) return std::nullopt;
    const bool is_biased = found->offset_z > kDeviations;
    const bool is_beyond = static_cast<double>(found->count) < kFew && found->ratio > 0.25;
    return found->rms_ratio < kFarBelow || is_biased || is_beyond ? std::nullopt : found;
  }

 private:
  /// The inputs as they may have been before those that nodes give in half precision were rounded; nothing where there
  /// are none.
  std::optional<NodeReference::Inputs> loosened_inputs(const IdVector<ValueId, DType>& dtypes) {
    NodeReference::Inputs inputs = *suspect_.inputs;
    bool differs = false;
    for (auto& [id, estimate] : inputs) {
      const bool is_half = dtypes[id] == DType::kFloat16 || dtypes[id] == DType::kBFloat16;
      if (!is_half || model_.value(id).origin != ValueOrigin::kNode || !estimate.value.is_tensor()) continue;
      estimate = loosened(estimate.value.tensor(), dtypes[id], id, memory_);
      differs = true;
    }
    return differs ? std::optional(std::move(inputs)) : std::nullopt;
  }

  /// What the node gives for `inputs`; nothing where that is no tensor like the recorded one.
  std::optional<Expected> computed(const NodeReference::Inputs& inputs, ReferenceOptions options = {}) {
    if (suspect_.is_chained) options.replicas = kManyReplicas, options.keeps_replicas = true;
    auto expected = reference_.expect(suspect_.node, inputs, options);
    if (!expected || suspect_.result >= expected->size()) return std::nullopt;
    Expected& result = (*expected)[suspect_.result];
    if (!is_comparable(result.value, *suspect_.other)) return std::nullopt;
    return std::move(result);
  }

  NodeReference& reference_;
  const Model& model_;
  const Suspect& suspect_;
  runtime::Memory& memory_;
  Expected explained_;
};

}  // namespace

Estimate loosened(const HostTensor& tensor, DType dtype, ValueId value, runtime::Memory& memory) {
  const HostTensor wide = runtime::to_float64(tensor, memory);
  HostTensor amounts(DType::kFloat64, wide.extents(), memory);
  // The standard deviation of a number that lies evenly within half an ulp, which below a power of two is half as
  // large.
  std::ranges::transform(wide.as<double>(), amounts.as_mutable<double>().begin(), [&](double x) {
    int exponent = 0;
    const bool is_power = std::fabs(std::frexp(x, &exponent)) == 0.5;
    return ulp_of(float_format(dtype), x) / (is_power ? 4 : 2) / std::numbers::sqrt3;
  });
  Estimate estimate{HostValue(tensor), replicas_of(tensor, amounts, value, memory)};
  // What was stored as infinite was any number beyond the largest.
  for (std::size_t k = 0; k < estimate.replicas.size(); ++k) {
    HostTensor copy = runtime::to_float64(estimate.replicas[k].tensor(), memory);
    for (double& x : copy.as_mutable<double>())
      if (std::isinf(x)) x = std::copysign(float_format(dtype).largest * static_cast<double>(2 + k), x);
    estimate.replicas[k] = HostValue(std::move(copy));
  }
  return estimate;
}

Estimate in_tf32(const Estimate& factor, Tf32 how, runtime::Memory& memory) {
  const Change rounds = [how](double x) { return to_tf32(x, how); };
  Estimate result{changed(factor.value, rounds, memory), {}};
  for (const HostValue& replica : factor.replicas) result.replicas.push_back(changed(replica, rounds, memory));
  return result;
}

HostTensor constant_noise(const HostTensor& constant, runtime::Memory& memory) {
  const HostTensor wide = runtime::to_float64(constant, memory);
  HostTensor noise(DType::kFloat64, wide.extents(), memory);
  if (!runtime::is_float(constant.dtype())) return std::ranges::fill(noise.as_mutable<double>(), 0.0), noise;
  const FloatFormat format = float_format(constant.dtype());
  double most = 0;
  for (const double x : wide.as<double>()) most = std::max(most, std::isfinite(x) ? std::fabs(x) : 0);
  std::ranges::transform(wide.as<double>(), noise.as_mutable<double>().begin(),
                         [&](double x) { return ulp_of(format, x) + roundoff_of(format) * most; });
  return noise;
}

bool constants_explain(NodeReference& reference, const Contract& contract, const Model& model, const Suspect& suspect,
                       runtime::Memory& memory) {
  if (!contract.computes_constants || !runtime::is_float(suspect.dtype)) return false;
  return adds_up(reference.rounding_of(suspect.node)) &&
         Search(reference, model, suspect, memory).own_constants().has_value();
}

std::optional<TensorTest> test_with_many_replicas(NodeReference& reference, const Model& model, const Suspect& suspect,
                                                  runtime::Memory& memory) {
  Search search(reference, model, suspect, memory);
  return search.explains(*suspect.inputs, {.replicas = kManyReplicas, .reads_unrounded = true, .uses_grants = true});
}

std::optional<Condition> find_tf32_within_bounds(NodeReference& reference, const Contract& contract, const Model& model,
                                                 const Suspect& suspect, const HostTensor& plain,
                                                 runtime::Memory& memory) {
  const bool is_sum = reference.rounding_of(suspect.node).kind == Rounding::Kind::kAccumulates;
  if (suspect.dtype != DType::kFloat32 || !is_sum || plain.dtype() != DType::kFloat64) return std::nullopt;
  if (contract.allows_tf32_in(model.text(model.op(model.node(suspect.node)).name))) return std::nullopt;
  const auto test = Search(reference, model, suspect, memory).tf32_within_bounds(plain);
  return test ? std::optional(Condition{.name = "tf32", .test = *test}) : std::nullopt;
}

std::optional<Condition> find_condition(NodeReference& reference, const Contract& contract, const Model& model,
                                        const Suspect& suspect, const Unrounded& unrounded, runtime::Memory& memory) {
  Search search(reference, model, suspect, memory);
  const bool is_float = runtime::is_float(suspect.dtype);
  const bool is_sum = is_float && adds_up(reference.rounding_of(suspect.node));
  const std::string_view op = model.text(model.op(model.node(suspect.node)).name);
  std::optional<Condition> found;
  const auto take = [&](std::string_view name, std::optional<TensorTest> test) {
    if (test) found = Condition{name, *test, search.take_explained()};
    return found.has_value();
  };
  // What the contract allows needs no condition.
  const auto allowed = [&](bool is_allowed) {
    if (is_allowed) found->name = {}, found->test.verdict = Verdict::kExplained;
    return found;
  };
  if (is_sum && take("tf32", search.tf32())) return allowed(contract.allows_tf32_in(op));
  if (is_float && take("flush-to-zero", search.flush_to_zero())) return allowed(contract.flushes_to_zero);
  if (suspect.is_chained || !search.rounds_like_operands(unrounded.dtypes)) {
    if (take("wide-intermediates", search.wide_intermediates(unrounded.of_node))) return found;
    if (take("wide-intermediates", search.wide_intermediates(unrounded.along))) return found;
    if (!suspect.is_chained && take("wide-intermediates", search.within_roundings(unrounded.dtypes))) return found;
  }
  if (contract.computes_constants && is_float && !is_sum && take("own-constants", search.own_constants())) return found;
  if (is_sum && take("bf16-weights", search.weights_in(DType::kBFloat16))) return found;
  if (is_sum && take("other-order", search.explains(*suspect.inputs, {.in_any_order = true}))) return found;
  // bfloat16 numbers of usual size are float16 numbers, too: the narrower one says more.
  const bool is_half = suspect.dtype == DType::kFloat16;
  if (is_sum && !is_half && take("bf16-accumulate", search.accumulates_in(DType::kBFloat16))) return found;
  if (is_sum && take("fp16-accumulate", search.accumulates_in(DType::kFloat16))) return found;
  return std::nullopt;
}

}  // namespace tensorlint::compare
