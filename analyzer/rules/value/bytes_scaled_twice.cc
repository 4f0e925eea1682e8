#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <cmath>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class BytesScaledTwice : public Rule {
 public:
  BytesScaledTwice()
      : Rule({"TL-V517", "bytes-scaled-twice", "value", findings::Severity::kWarning,
              "a picture in [0, 1] that is treated as one of bytes once more"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    bool has_bytes = false;
    for (const ValueId input : analysis.inputs(GraphId::kMain))
      has_bytes |= input != ValueId::kAbsent && analysis.fact(input).dtypes == DTypeSet(DType::kUint8);
    if (!has_bytes) return;
    each_node(view, out, {Opcode::kDiv, Opcode::kSub, Opcode::kMul},
              [&](const Expressions& expressions, const NodeCall& call) { check_step(expressions, call, out); });
  }

 private:
  /// Bytes are divided by 255 or 256; means of bytes are far above 1.
  static constexpr double kBytes = 200, kMean = 20;

  static void check_step(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const auto step = call.is(Opcode::kSub) ? less_means(expressions, call) : with_number(expressions, call.id());
    if (!step || step->is_first) return;
    const bool divides = call.is(Opcode::kDiv) && step->number >= kBytes && step->number <= 256,
               scales = call.is(Opcode::kMul) && step->number > 0 && step->number <= 1 / kBytes,
               subtracts = call.is(Opcode::kSub) && step->number >= kMean && step->number <= 255;
    if (!divides && !scales && !subtracts) return;
    const NodeId scaled = scaled_bytes(expressions, step->value);
    if (scaled == NodeId::kNone) return;
    const Operand picture(call.analysis(), step->value);
    out.report(call.id(), subtracts ? fmt::format("{} is in [0, 1], and {:.4g} is subtracted as from bytes",
                                                  picture.name(), step->number)
                                    : fmt::format("{} is in [0, 1], and is divided as bytes are", picture.name()))
        .note_at(scaled, "bytes become numbers in [0, 1] here")
        .fix(subtracts ? "divide the mean and the deviation by 255, too" : "divide once");
  }

  /// A number that is subtracted, or the least of the means of channels.
  static std::optional<WithNumber> less_means(const Expressions& expressions, const NodeCall& call) {
    constexpr std::size_t kMaxChannels = 16;
    const Operand means = call.operand(1);
    if (!means.present() || !call.operand(0).present()) return std::nullopt;
    const Content* content = call.analysis().content(before_stretch(expressions, means.value()));
    if (content == nullptr || content->floats.empty() || content->floats.size() > kMaxChannels) return std::nullopt;
    return WithNumber{call.operand(0).value(), *std::ranges::min_element(content->floats), false};
  }

  /// The division of an input of bytes before the value was moved, cut or cast.
  static NodeId scaled_bytes(const Expressions& expressions, ValueId value) {
    value = before_moves(expressions, value);
    const NodeId node = expressions.producer(value);
    const auto step = with_number(expressions, node);
    const Opcode opcode = expressions.op(node);
    if (!step || step->is_first) return NodeId::kNone;
    const bool divides =
        (opcode == Opcode::kDiv && step->number >= kBytes && step->number <= 256) ||
        (opcode == Opcode::kMul && step->number > 0 && step->number <= 1 / kBytes && step->number >= 1.0 / 257);
    const ValueId bytes = before_moves(expressions, step->value);
    return divides && is_input(expressions.analysis(), bytes) &&
                   expressions.analysis().fact(bytes).dtypes == DTypeSet(DType::kUint8)
               ? node
               : NodeId::kNone;
  }
};

const RegisterRule<BytesScaledTwice> kRegisterBytesScaledTwice;

}  // namespace
}  // namespace tensorlint::rules
