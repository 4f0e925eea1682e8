#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class PredictionNeverNegative : public Rule {
 public:
  PredictionNeverNegative()
      : Rule({"TL-L383", "prediction-never-negative", "loss", findings::Severity::kWarning,
              "a target that has been scaled to numbers of both signs, and a prediction between 0 and 1"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!compares_sizes(loss.kind) || analysis.has_failed(loss.anchor) || loss.target == ValueId::kAbsent ||
        loss.prediction == ValueId::kAbsent)
      return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const auto check = [&](ValueId prediction, ValueId target) {
      const ValueId made = before_stretch(expressions, prediction);
      if (analysis.taint(made).has(Aspect::kValue) || !is_squashed(expressions, made)) return false;
      const auto scaled = scaled_from(expressions, target);
      if (!scaled || !(scaled->least < -kClearly) || !(scaled->most > kClearly)) return false;
      out.report(loss.anchor, fmt::format("{} is between 0 and 1, and {} is scaled to [{:.3g}, {:.3g}]: it never comes "
                                          "near what is below 0",
                                          Operand(analysis, made).name(), Operand(analysis, target).name(),
                                          scaled->least, scaled->most))
          .note_at(expressions.producer(made), "squashed here")
          .note_at(scaled->node, "the target is scaled here")
          .fix("let the prediction end in a tanh, or compare with the picture in [0, 1]");
      return true;
    };
    // A difference does not say which of both is the target.
    if (!check(loss.prediction, loss.target)) check(loss.target, loss.prediction);
  }

 private:
  static constexpr double kClearly = 0.4;

  /// Of probabilities and signs other rules say what is wrong.
  static bool compares_sizes(losses::LossKind kind) {
    using Kind = losses::LossKind;
    return kind == Kind::kMse || kind == Kind::kL1 || kind == Kind::kHuber || kind == Kind::kLogCosh ||
           kind == Kind::kQuantile;
  }

  static bool is_squashed(const Expressions& expressions, ValueId value) {
    const Opcode opcode = expressions.op_of(value);
    return opcode == Opcode::kSigmoid || opcode == Opcode::kSoftmax;
  }

  struct Scaled {
    double least, most;
    NodeId node;
  };

  /// Where the ends of an input lie after it has been shifted and scaled by numbers, one for all or one for each
  /// channel: of bytes 0 and 255. Of floats the ends are taken to be 0 and 1 where these come to -1 and 1, or where
  /// each channel is standardised as numbers in [0, 1] are.
  static std::optional<Scaled> scaled_from(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 12;
    const dataflow::Analysis& analysis = expressions.analysis();
    std::vector<double> scales{1}, offsets{0};
    NodeId last = NodeId::kNone;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_stretch(expressions, value);
      if (is_input(analysis, value)) return ends_of(analysis.fact(value).dtypes, scales, offsets, last);
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      bool is_first = false;
      const std::vector<double> numbers = numbers_beside(expressions, node, value, is_first);
      if (numbers.empty() || std::ranges::find(numbers, 0.0) != numbers.end() ||
          (numbers.size() > 1 && scales.size() > 1 && numbers.size() != scales.size()))
        return std::nullopt;
      const std::size_t channels = std::max(numbers.size(), scales.size());
      scales.resize(channels, scales.back());
      offsets.resize(channels, offsets.back());
      for (std::size_t i = 0; i < channels; ++i) {
        const double number = numbers[numbers.size() == 1 ? 0 : i];
        if (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !is_first))
          scales[i] *= opcode == Opcode::kMul ? number : 1 / number;
        else if (opcode == Opcode::kAdd || (opcode == Opcode::kSub && !is_first))
          offsets[i] += scales[i] * (opcode == Opcode::kAdd ? number : -number);
        else
          return std::nullopt;
      }
      if (last == NodeId::kNone) last = node;
    }
    return std::nullopt;
  }

  /// The constant operand of a node, and in `value` the other one.
  static std::vector<double> numbers_beside(const Expressions& expressions, NodeId node, ValueId& value,
                                            bool& is_first) {
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
      const ValueId given = expressions.operand(node, side), other = expressions.operand(node, 1 - side);
      if (given == ValueId::kAbsent || other == ValueId::kAbsent) return {};
      std::vector<double> numbers = channel_numbers(expressions, given);
      if (numbers.empty()) continue;
      is_first = side == 0;
      value = other;
      return numbers;
    }
    return {};
  }

  static std::optional<Scaled> ends_of(DTypeSet dtypes, const std::vector<double>& scales,
                                       const std::vector<double>& offsets, NodeId last) {
    constexpr double kRounding = 1e-4, kBytes = 255, kMost = 20;
    const bool is_bytes = dtypes == DTypeSet(DType::kUint8);
    if (last == NodeId::kNone || (!is_bytes && !dtypes.proves(DTypeSet::floats()))) return std::nullopt;
    Scaled ends{HUGE_VAL, -HUGE_VAL, last};
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const double a = offsets[i], b = scales[i] * (is_bytes ? kBytes : 1) + a;
      const bool is_spread = std::abs(a + 1) < kRounding && std::abs(b - 1) < kRounding;
      // A mean between 0 and 1, and less than half of that for a deviation.
      const bool is_standardised = scales.size() > 1 && scales[i] > 2 && a < 0 && b > 0;
      if (!is_bytes && !is_spread && !is_standardised) return std::nullopt;
      // Bytes that hold 0 and 1 are not divided by as much.
      if (is_bytes && std::abs(b - a) > kMost) return std::nullopt;
      ends.least = std::min({ends.least, a, b});
      ends.most = std::max({ends.most, a, b});
    }
    return ends;
  }
};

const RegisterRule<PredictionNeverNegative> kRegisterPredictionNeverNegative;

}  // namespace
}  // namespace tensorlint::rules
