#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

/// A sum in float16, which ends at 65504. Reported where it is known how many elements are summed and how large they
/// are.
class LowPrecisionAccumulation : public Rule {
 public:
  LowPrecisionAccumulation()
      : Rule({"TL-D108", "low-precision-accumulation", "dtype", findings::Severity::kWarning,
              "a sum or a square in float16 that overflows"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    const ops::Opcode opcode = opcode_of(entry);
    return opcode == ops::Opcode::kReduceSum || opcode == ops::Opcode::kReduceSumSquare ||
           opcode == ops::Opcode::kMul || opcode == ops::Opcode::kPow;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    if (call.is(ops::Opcode::kMul) && call.operand(0).value() != call.operand(1).value()) return;
    if (!call.is(ops::Opcode::kReduceSum)) {
      if (check_samples(call, out) || !call.is(ops::Opcode::kReduceSumSquare)) return;
    }
    const Operand data = half_data(call);
    if (!data.present() || data.fact().kind != ValueKind::kTensor || data.fact().dtypes != DTypeSet(DType::kFloat16))
      return;
    if (data.taint().has(Aspect::kValue) || data.taint().has(Aspect::kShape)) return;
    const auto count = summed(call);
    if (check_squares(call, summed_at_least(call), out)) return;
    if (call.is(ops::Opcode::kReduceSumSquare)) return;
    const Range& range = data.fact().range;
    const std::int64_t least = count ? *count : summed_at_least(call);
    if (least == 0 || range.lo > range.hi || !std::isfinite(range.lo) || !std::isfinite(range.hi)) return;
    const auto terms = static_cast<double>(least);
    const bool always = terms * range.lo > kLargest || terms * range.hi < -kLargest;
    if (!always) return;
    out.report(call.id(), fmt::format("the sum of {}{} elements of {} in {} is beyond float16, which ends at 65504",
                                      count ? "" : "at least ", least, data.name(), range.to_text()))
        .origin(data, Aspect::kDtype)
        .fix("sum in float32: cast before the reduction and back after it");
  }

 private:
  /// Samples of 16 bits in float16 as they are: each of them fits, and the square of most does not.
  static bool check_samples(const NodeCall& call, Reporter& out) {
    constexpr double kMost = 256;  // of what the square fits
    const Operand result(call.analysis(), call.result());
    if (!result.present() || result.fact().dtypes != DTypeSet(DType::kFloat16)) return false;
    const std::optional<Operand> base = base_of_square(call);
    if (!base || !base->present() || base->taint().has(Aspect::kValue) ||
        base->fact().dtypes != DTypeSet(DType::kFloat16))
      return false;
    const Range& range = base->fact().range;
    const double most = std::max(-range.lo, range.hi);
    if (!(range.lo < range.hi) || most <= kMost) return false;
    const ValueId samples = samples_before(call.analysis(), base->value());
    if (samples == ValueId::kAbsent) return false;
    out.report(call.id(), fmt::format("the square of {}, of samples in {}, is beyond float16, which ends at 65504",
                                      base->name(), call.analysis().fact(samples).range.to_text()))
        .certainty(ops::Certainty::kMay, fmt::format("an element of {} is {}", base->name(), kMost))
        .origin(Operand(call.analysis(), samples), Aspect::kDtype)
        .fix("scale the samples to [-1, 1] first, or square them in float32");
    return true;
  }

  static std::optional<Operand> base_of_square(const NodeCall& call) {
    if (call.is(ops::Opcode::kReduceSumSquare)) return call.operand(0);
    if (call.is(ops::Opcode::kMul)) return call.operand(0);  // by itself, as check() has seen
    const Operand exponent = call.operand(1);
    return exponent.present() && exponent.fact().range.lo == 2 && exponent.fact().range.hi == 2
               ? std::optional(call.operand(0))
               : std::nullopt;
  }

  /// The input of 16-bit integers that a value is, moved, cast, scaled by a number or less something; kAbsent for
  /// anything else. Wider integers are counts as well, which may be small.
  static ValueId samples_before(const dataflow::Analysis& analysis, ValueId value) {
    constexpr int kMaxSteps = 16;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const Value& known = analysis.model().value(value);
      if (known.origin == ValueOrigin::kInput) {
        const DTypeSet dtypes = analysis.fact(value).dtypes;
        const bool is_sample = dtypes == DTypeSet(DType::kInt16) || dtypes == DTypeSet(DType::kUint16);
        return is_sample && known.is_given() ? value : ValueId::kAbsent;
      }
      if (known.producer == NodeId::kNone) return ValueId::kAbsent;
      const NodeCall call(analysis, known.producer);
      const ops::Opcode opcode = opcode_of(call.entry());
      const Range scale = call.operand(1).present() ? call.operand(1).fact().range : Range{};
      const bool scales = (opcode == ops::Opcode::kMul || opcode == ops::Opcode::kDiv) && scale.lo == scale.hi;
      if (!moves_elements(opcode) && opcode != ops::Opcode::kCast && opcode != ops::Opcode::kSub && !scales)
        return ValueId::kAbsent;
      value = call.operand(0).value();
    }
    return ValueId::kAbsent;
  }

  /// What is summed; an exporter may sum in float32, between two casts: the result is a number of float16 all the same.
  static Operand half_data(const NodeCall& call) {
    const Operand data = call.operand(0);
    if (!data.present() || call.result() == ValueId::kAbsent) return data;
    const NodeId before = call.model().value(data.value()).producer;
    const auto users = call.analysis().users(call.result());
    const auto to_half = [&](NodeId user) {
      const NodeCall cast(call.analysis(), user);
      return cast.is(ops::Opcode::kCast) && cast.result() != ValueId::kAbsent &&
             call.analysis().fact(cast.result()).dtypes == DTypeSet(DType::kFloat16);
    };
    if (before == NodeId::kNone || users.empty() || !std::ranges::all_of(users, to_half)) return data;
    const NodeCall cast(call.analysis(), before);
    return cast.is(ops::Opcode::kCast) && cast.operand(0).present() ? cast.operand(0) : data;
  }

  /// A sum of squares of what may be anything: with enough of them, moderate numbers overflow.
  static bool check_squares(const NodeCall& call, std::int64_t count, Reporter& out) {
    const std::optional<Operand> squared = squared_operand(call);
    if (!squared || count < kManyElements || !is_free(call.analysis(), squared->value())) return false;
    const double each = std::ceil(std::sqrt(kLargest / static_cast<double>(count)));
    out.report(call.id(), fmt::format("the sum of {}{} squares of {} is beyond float16, which ends at 65504, for "
                                      "elements of {}",
                                      summed(call) ? "" : "at least ", count, squared->name(), each))
        .certainty(ops::Certainty::kMay, fmt::format("every element of {} is {}", squared->name(), each))
        .origin(*squared, Aspect::kDtype)
        .fix("square and sum in float32: cast before the square and back after the root");
    return true;
  }

  static std::optional<Operand> squared_operand(const NodeCall& call) {
    if (call.is(ops::Opcode::kReduceSumSquare)) return call.operand(0);
    const NodeId producer = call.model().value(half_data(call).value()).producer;
    if (producer == NodeId::kNone) return std::nullopt;
    const NodeCall square(call.analysis(), producer);
    if (square.is(ops::Opcode::kMul) && square.operand(0).value() == square.operand(1).value())
      return square.operand(0);
    if (!square.is(ops::Opcode::kPow) || !square.operand(1).present()) return std::nullopt;
    const Range& exponent = square.operand(1).fact().range;
    return exponent.lo == 2 && exponent.hi == 2 ? std::optional(square.operand(0)) : std::nullopt;
  }

  /// An input whose elements nobody bounds, or a difference with one; nodes that move or cast them may follow.
  static bool is_free(const dataflow::Analysis& analysis, ValueId value, int depth = 0) {
    constexpr int kLongestChain = 64, kMaxDepth = 3;
    for (int step = 0; step < kLongestChain && value != ValueId::kAbsent; ++step) {
      const Value& known = analysis.model().value(value);
      if (known.origin == ValueOrigin::kInput) return known.is_given() && analysis.fact(value).range.is_everything();
      if (known.producer == NodeId::kNone) return false;
      const NodeCall call(analysis, known.producer);
      const ops::Opcode opcode = opcode_of(call.entry());
      if (opcode == ops::Opcode::kSub && depth < kMaxDepth && call.operand(0).value() != call.operand(1).value())
        return is_free(analysis, call.operand(0).value(), depth + 1) ||
               is_free(analysis, call.operand(1).value(), depth + 1);
      if (!moves_elements(opcode) && opcode != ops::Opcode::kCast) return false;
      value = call.operand(0).value();
    }
    return false;
  }

  /// The same as `summed`, with one element along each axis of an extent that is not a number.
  static std::int64_t summed_at_least(const NodeCall& call) {
    FactStore& facts = call.facts();
    const auto product = [&](ValueId value) {
      std::int64_t elements = 1;
      const Fact& fact = call.analysis().fact(value);
      if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return std::int64_t{0};
      for (const Dim dim : facts.dims_of(fact.shape))
        if (const auto extent = facts.dims().as_constant(dim);
            extent && (*extent <= 0 || __builtin_mul_overflow(elements, *extent, &elements)))
          return std::int64_t{0};
      return elements;
    };
    const std::int64_t before = product(call.operand(0).value()), after = product(call.result());
    return before <= 0 || after <= 0 ? 0 : before / after;
  }

  static constexpr double kLargest = 65504;
  /// From here on elements of 16 are enough, as activations have them.
  static constexpr std::int64_t kManyElements = 256;

  /// Elements that go into one result, where all extents that are reduced are numbers.
  static std::optional<std::int64_t> summed(const NodeCall& call) {
    FactStore& facts = call.facts();
    const Fact &data = call.operand(0).fact(), &result = call.analysis().fact(call.result());
    if (data.shape == ShapeId::kUnranked || result.shape == ShapeId::kUnranked) return std::nullopt;
    const auto product = [&](ShapeId shape) -> std::optional<std::int64_t> {
      std::int64_t elements = 1;
      for (const Dim dim : facts.dims_of(shape)) {
        const auto extent = facts.dims().as_constant(dim);
        if (!extent || *extent <= 0 || __builtin_mul_overflow(elements, *extent, &elements)) return std::nullopt;
      }
      return elements;
    };
    const auto before = product(data.shape), after = product(result.shape);
    if (!before || !after) return std::nullopt;
    return *before / *after;
  }
};

const RegisterRule<LowPrecisionAccumulation> kRegisterLowPrecisionAccumulation;

}  // namespace
}  // namespace tensorlint::rules
