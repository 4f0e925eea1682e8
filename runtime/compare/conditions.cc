#include "runtime/compare/conditions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numbers>

#include "runtime/compare/effect.h"
#include "runtime/compare/floats.h"
#include "runtime/compare/noise.h"
#include "runtime/compare/selection.h"
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

/// float32 numbers with 10 bits after the point, as tensor cores read them: to nearest even, to nearest away from zero
/// (cvt.rna of PTX), or cut off (what is given to them as it is).
enum class Tf32 { kEven, kAway, kCut };
double to_tf32(double x, Tf32 how) {
  if (!std::isfinite(x)) return x;
  auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  if (how == Tf32::kAway) bits += 0x1000U;
  if (how == Tf32::kEven) bits += 0xfffU + ((bits >> 13) & 1U);
  return static_cast<double>(std::bit_cast<float>(bits & ~0x1fffU));
}

double to_dtype(double x, DType dtype) { return runtime::decode(dtype, runtime::encode(dtype, x, false)); }

bool sums(const Rounding& rounding) {
  return rounding.kind == Rounding::Kind::kAccumulates || rounding.kind == Rounding::Kind::kComposite;
}

class Search {
 public:
  Search(NodeReference& reference, const Model& model, const Suspect& suspect, runtime::Memory& memory)
      : reference_(reference), model_(model), suspect_(suspect), memory_(memory) {}

  /// What the test says if the node read `inputs` and was computed with `options`.
  std::optional<TensorTest> explains(const NodeReference::Inputs& inputs, const ReferenceOptions& options,
                                     const TestOptions& test = {}) {
    const auto result = computed(inputs, options);
    if (!result) return std::nullopt;
    TensorTest found = test_result(reference_, model_, suspect_.node, inputs, *result, *suspect_.other, memory_, test);
    if (found.verdict == Verdict::kBug) return std::nullopt;
    // A bound of a tenth of the values explains nothing, unless it is that of what the node may have read.
    const bool is_noise = options.replicas == kManyReplicas;
    if (found.verdict == Verdict::kIllConditioned) return is_noise ? std::optional(found) : std::nullopt;
    found.verdict = Verdict::kExplainedIf;
    return found;
  }

  NodeReference::Inputs with(const Change& change, const std::function<bool(ValueId)>& applies) {
    NodeReference::Inputs inputs = *suspect_.inputs;
    for (auto& [id, estimate] : inputs)
      if (applies(id)) estimate.value = changed(estimate.value, change, memory_);
    return inputs;
  }
  bool is_constant(ValueId id) const {
    return model_.value(id).initializer != nullptr || model_.value(id).sparse_initializer != nullptr;
  }
  static bool any(ValueId /*id*/) { return true; }

  std::optional<TensorTest> tf32() {
    if (suspect_.dtype != DType::kFloat32) return std::nullopt;
    const std::span<const ValueId> operands = model_.operands(model_.node(suspect_.node));
    std::size_t tried = 0;
    // Factors come first; what is added to their products is not rounded.
    for (const std::size_t factors : {std::size_t{2}, std::size_t{3}, operands.size()}) {
      if (factors > operands.size() || factors <= tried) continue;
      tried = factors;
      const auto is_factor = [&](ValueId id) { return std::ranges::count(operands.first(factors), id) > 0; };
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
    return differs ? explains(inputs, {.is_wide = true}) : std::nullopt;
  }

  /// Which values stay unrounded is the engine's choice: of a value that was stored in half precision, the next node
  /// may have read any number that rounds to it.
  std::optional<TensorTest> within_roundings(const IdVector<ValueId, DType>& dtypes) {
    NodeReference::Inputs inputs = *suspect_.inputs;
    bool differs = false;
    for (auto& [id, estimate] : inputs) {
      const bool is_half = dtypes[id] == DType::kFloat16 || dtypes[id] == DType::kBFloat16;
      if (!is_half || model_.value(id).origin != ValueOrigin::kNode || !estimate.value.is_tensor()) continue;
      estimate = loosened(estimate.value.tensor(), dtypes[id], id, memory_);
      differs = true;
    }
    return differs ? explains(inputs, {.replicas = kManyReplicas, .is_wide = true}) : std::nullopt;
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
    // Such sums err by about a standard deviation, a quarter of the bound, in both directions, and not with the value.
    constexpr double kFarBelow = 1.0 / 64, kFew = 16;
    const bool is_biased = found->offset_z > kDeviations;
    const bool is_beyond = static_cast<double>(found->count) < kFew && found->ratio > 0.25;
    return found->rms_ratio < kFarBelow || is_biased || is_beyond ? std::nullopt : found;
  }

 private:
  /// What the node gives for `inputs`; nothing where that is no tensor like the recorded one.
  std::optional<Expected> computed(const NodeReference::Inputs& inputs, const ReferenceOptions& options = {}) {
    auto expected = reference_.expect(suspect_.node, inputs, options);
    if (!expected || suspect_.result >= expected->size()) return std::nullopt;
    Expected& result = (*expected)[suspect_.result];
    if (!result.value.is_tensor() || result.value.tensor().extents() != suspect_.other->extents()) return std::nullopt;
    return std::move(result);
  }

  NodeReference& reference_;
  const Model& model_;
  const Suspect& suspect_;
  runtime::Memory& memory_;
};

}  // namespace

Estimate loosened(const HostTensor& tensor, DType dtype, ValueId value, runtime::Memory& memory) {
  const HostTensor wide = runtime::to_float64(tensor, memory);
  HostTensor amounts(DType::kFloat64, wide.extents(), memory);
  // The standard deviation of a number that lies evenly within half an ulp.
  std::ranges::transform(wide.as<double>(), amounts.as_mutable<double>().begin(),
                         [&](double x) { return ulp_of(float_format(dtype), x) / 2 / std::numbers::sqrt3; });
  Estimate estimate{HostValue(tensor), {}};
  for (int replica = 0; replica < kManyReplicas; ++replica) {
    HostTensor copy(DType::kFloat64, wide.extents(), memory);
    std::ranges::copy(wide.as<double>(), copy.as_mutable<double>().begin());
    const auto k = static_cast<std::size_t>(replica);
    shake(copy, amounts, mixed(static_cast<std::uint64_t>(value), k, 0x77), k);
    // What was stored as infinite was any number beyond the largest.
    for (double& x : copy.as_mutable<double>())
      if (std::isinf(x)) x = std::copysign(float_format(dtype).largest * (2 + replica), x);
    estimate.replicas.emplace_back(std::move(copy));
  }
  return estimate;
}

std::optional<TensorTest> explains(NodeReference& reference, const Model& model, const Suspect& suspect,
                                   runtime::Memory& memory) {
  Search search(reference, model, suspect, memory);
  return search.explains(*suspect.inputs, {.replicas = kManyReplicas, .is_wide = true});
}

std::optional<Condition> find_tf32_within_bounds(NodeReference& reference, const Contract& contract, const Model& model,
                                                 const Suspect& suspect, const HostTensor& plain,
                                                 runtime::Memory& memory) {
  const bool is_sum = reference.rounding_of(suspect.node).kind == Rounding::Kind::kAccumulates;
  if (suspect.dtype != DType::kFloat32 || !is_sum || plain.dtype() != DType::kFloat64) return std::nullopt;
  if (contract.allows_tf32_in(model.text(model.op(model.node(suspect.node)).name))) return std::nullopt;
  const auto test = Search(reference, model, suspect, memory).tf32_within_bounds(plain);
  return test ? std::optional(Condition{"tf32", *test}) : std::nullopt;
}

std::optional<Condition> find_condition(NodeReference& reference, const Contract& contract, const Model& model,
                                        const Suspect& suspect, const Unrounded& unrounded, runtime::Memory& memory) {
  Search search(reference, model, suspect, memory);
  const bool is_float = runtime::is_float(suspect.dtype);
  const bool is_sum = is_float && sums(reference.rounding_of(suspect.node));
  const std::string_view op = model.text(model.op(model.node(suspect.node)).name);
  std::optional<Condition> found;
  const auto take = [&](std::string_view name, std::optional<TensorTest> test) {
    if (test) found = Condition{name, *test};
    return found.has_value();
  };
  // What the contract allows needs no condition.
  const auto allowed = [&](bool is_allowed) {
    if (is_allowed) found->name = {}, found->test.verdict = Verdict::kExplained;
    return found;
  };
  if (is_sum && take("tf32", search.tf32())) return allowed(contract.allows_tf32_in(op));
  if (is_float && take("flush-to-zero", search.flush_to_zero())) return allowed(contract.flushes_to_zero);
  if (take("wide-intermediates", search.wide_intermediates(unrounded.of_node))) return found;
  if (take("wide-intermediates", search.wide_intermediates(unrounded.along))) return found;
  if (take("wide-intermediates", search.within_roundings(unrounded.dtypes))) return found;
  if (is_sum && take("bf16-weights", search.weights_in(DType::kBFloat16))) return found;
  if (is_sum && take("other-order", search.explains(*suspect.inputs, {.in_any_order = true}))) return found;
  // bfloat16 numbers of usual size are float16 numbers, too: the narrower one says more.
  const bool is_half = suspect.dtype == DType::kFloat16;
  if (is_sum && !is_half && take("bf16-accumulate", search.accumulates_in(DType::kBFloat16))) return found;
  if (is_sum && take("fp16-accumulate", search.accumulates_in(DType::kFloat16))) return found;
  return std::nullopt;
}

}  // namespace tensorlint::compare
