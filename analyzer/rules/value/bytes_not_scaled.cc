#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class BytesNotScaled : public Rule {
 public:
  BytesNotScaled()
      : Rule({"TL-V576", "bytes-not-scaled", "value", findings::Severity::kWarning,
              "a picture of bytes that is compared with a prediction in [0, 1], or standardised as if it were in [0, "
              "1]"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::is_regression(loss.kind) || analysis.has_failed(loss.anchor) || loss.target == ValueId::kAbsent ||
        loss.prediction == ValueId::kAbsent)
      return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const ValueId picture = before_moves(expressions, loss.target);
    const ValueId made = before_stretch(expressions, loss.prediction);
    if (!is_input(analysis, picture) || analysis.taint(made).has(Aspect::kValue)) return;
    const Range& range = analysis.fact(made).range;
    // A label of 0 and 1 may be stored in bytes: what is divided elsewhere is a picture.
    if (!(range.lo >= -1) || !(range.hi <= 1) || !(range.lo < range.hi)) return;
    const NodeId scaled = scaled_at(expressions, picture);
    if (scaled == NodeId::kNone) return;
    out.report(loss.anchor, fmt::format("{} is in {}, and {} goes up to 255 here", Operand(analysis, made).name(),
                                        range.to_text(), Operand(analysis, picture).name()))
        .note_at(scaled, "it is divided here, where the model reads it")
        .origin(Operand(analysis, made), Aspect::kValue)
        .fix("compare with the picture that has been divided");
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    const bool has_bytes = std::ranges::any_of(analysis.inputs(GraphId::kMain), [&](ValueId input) {
      return input != ValueId::kAbsent && analysis.fact(input).dtypes == DTypeSet(DType::kUint8);
    });
    if (!has_bytes) return;
    each_node(view, out, {Opcode::kSub},
              [&](const Expressions& expressions, const NodeCall& call) { check_statistics(expressions, call, out); });
  }

 private:
  /// (x - mean) / deviation with a mean between 0 and 1: whole numbers of that mean m have a variance of m * (1 - m) at
  /// least, so that a smaller one is that of numbers that have been divided.
  static void check_statistics(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    constexpr double kLess = 0.95;
    const dataflow::Analysis& analysis = call.analysis();
    if (!call.operand(0).present() || !call.operand(1).present()) return;
    const ValueId picture = before_moves(expressions, call.operand(0).value());
    if (check_twice_less_one(expressions, call, out)) return;
    if (!is_input(analysis, picture) || analysis.fact(picture).dtypes != DTypeSet(DType::kUint8) ||
        expressions.dims(picture).size() < 3)
      return;
    const std::vector<double> means = channel_numbers(expressions, call.operand(1).value());
    if (means.empty()) return;
    for (const NodeId user : expressions.users(call.result())) {
      const Opcode opcode = expressions.op(user);
      if ((opcode != Opcode::kDiv && opcode != Opcode::kMul) || expressions.operand(user, 0) != call.result()) continue;
      std::vector<double> deviations = channel_numbers(expressions, expressions.operand(user, 1));
      if (deviations.size() != means.size()) continue;
      bool are_of_shares = true;
      for (std::size_t i = 0; i < means.size(); ++i) {
        const double deviation = opcode == Opcode::kDiv ? deviations[i] : 1 / deviations[i];
        are_of_shares =
            are_of_shares && means[i] > 0 && means[i] < 1 && deviation > 0 &&
            deviation < (is_in_colour(expressions, picture) ? 1.05 : kLess) * std::sqrt(means[i] * (1 - means[i]));
      }
      if (!are_of_shares) continue;
      const Operand bytes(analysis, picture);
      out.report(call.id(),
                 fmt::format("{} goes up to 255 here, and is standardised with a mean of {:.4g} and a "
                             "deviation of {:.4g}, as numbers in [0, 1] are",
                             bytes.name(), means[0], opcode == Opcode::kDiv ? deviations[0] : 1 / deviations[0]))
          .note_at(user, "divided by the deviation here")
          .origin(bytes, Aspect::kDtype)
          .fix("divide by 255 first: (x / 255 - mean) / deviation");
      return;
    }
  }

  /// [N, H, W, 3] or [N, 3, H, W] by a name of pictures: bytes of 0 and 1 may stand for three classes.
  static bool is_in_colour(const Expressions& expressions, ValueId picture) {
    const auto dims = expressions.dims(picture);
    const DimPool& pool = expressions.analysis().facts().dims();
    if (dims.size() != 4 || (!pool.is_constant(dims[1], 3) && !pool.is_constant(dims[3], 3))) return false;
    const std::string_view name = telling_name(expressions.analysis(), picture);
    constexpr std::array kNames{"image",    "images", "img",    "imgs",   "picture",
                                "pictures", "photo",  "photos", "frames", "pixels"};
    return std::ranges::any_of(kNames, [&](std::string_view known) { return has_ending(name, known); });
  }

  /// 2 * x - 1, which brings [0, 1] to [-1, 1].
  static bool check_twice_less_one(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const auto doubled = with_number(expressions, expressions.producer(call.operand(0).value()));
    if (!doubled || doubled->number != 2 || !expressions.is_number(call.operand(1).value(), 1) ||
        expressions.op_of(call.operand(0).value()) != Opcode::kMul)
      return false;
    const ValueId picture = before_moves(expressions, doubled->value);
    if (!is_input(analysis, picture) || analysis.fact(picture).dtypes != DTypeSet(DType::kUint8) ||
        !is_in_colour(expressions, picture))
      return false;
    const Operand bytes(analysis, picture);
    out.report(call.id(), fmt::format("{} goes up to 255 here: twice that, less 1, is in [-1, 1] for numbers in [0, 1]",
                                      bytes.name()))
        .origin(bytes, Aspect::kDtype)
        .fix("divide by 255 first: x / 255 * 2 - 1");
    return true;
  }

  /// Where bytes are divided by 255 or the like; kNone where they are not.
  static NodeId scaled_at(const Expressions& expressions, ValueId picture) {
    constexpr std::size_t kMaxValues = 12;
    constexpr double kLeast = 200, kMost = 256;
    std::vector<ValueId> values{picture};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const Opcode opcode = expressions.op(user);
        const auto step = with_number(expressions, user);
        if (step && !step->is_first && step->value == values[i] &&
            ((opcode == Opcode::kDiv && step->number >= kLeast && step->number <= kMost) ||
             (opcode == Opcode::kMul && step->number >= 1 / kMost && step->number <= 1 / kLeast)))
          return user;
        const ValueId result = expressions.result(user);
        if ((ops::moves_elements(opcode) || opcode == Opcode::kCast) && expressions.operand(user, 0) == values[i] &&
            result != ValueId::kAbsent && values.size() < kMaxValues)
          values.push_back(result);
      }
    return NodeId::kNone;
  }
};

const RegisterRule<BytesNotScaled> kRegisterBytesNotScaled;

}  // namespace
}  // namespace tensorlint::rules
