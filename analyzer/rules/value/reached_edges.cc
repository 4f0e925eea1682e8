#include "analyzer/rules/value/reached_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

constexpr int kMaxSteps = 12;
/// 1 less this is 1 in float32: half of what it has between 0.5 and 1.
constexpr double kLostBesideOne = 3.0e-8;
constexpr double kRounding = 1e-4;

/// p for the logarithm of 1 - p without anything that keeps it off 0.
ValueId logarithm_of_rest(const Expressions& expressions, NodeId logarithm) {
  const ValueId operand = expressions.operand(logarithm, 0);
  if (expressions.op(logarithm) == Opcode::kLog) {
    const ValueId stretched = before_stretch(expressions, operand);
    return expressions.complement(stretched);
  }
  const NodeId negates = expressions.producer(operand);
  return expressions.op(negates) == Opcode::kNeg ? expressions.operand(negates, 0) : ValueId::kAbsent;
}

/// A Clip to [1e-8, 1 - 1e-8], whose upper bound float32 has as 1.
bool check_lost_bound(const Expressions& expressions, const NodeCall& call, ValueId rest, Reporter& out) {
  const dataflow::Analysis& analysis = call.analysis();
  const ValueId clipped = before_moves(expressions, rest);
  const NodeId clip = expressions.producer(clipped);
  if (expressions.op(clip) != Opcode::kClip || expressions.operand(clip, 0) == ValueId::kAbsent) return false;
  const Range& range = analysis.fact(clipped).range;
  const Range& before = analysis.fact(expressions.operand(clip, 0)).range;
  if (!(range.lo > 0) || range.lo > 2 * kLostBesideOne || range.hi < 1 || range.hi > 1 + kRounding || before.hi < 1)
    return false;
  out.report(findings::Severity::kWarning, call.id(),
             fmt::format("{} of 1 - {}, which is 0 where {} is 1: the Clip keeps it off 0, but not off 1",
                         call.is(Opcode::kDiv) ? "quotient" : "logarithm", Operand(analysis, rest).name(),
                         Operand(analysis, rest).name()))
      .certainty(ops::Certainty::kMay, fmt::format("{} rounds to 1", Operand(analysis, rest).name()))
      .note_at(clip, "the upper bound is 1 here, as 1 - 1e-8 is in float32")
      .fix("use bounds that float32 has, such as 1e-6 and 1 - 1e-6, or a loss that takes scores");
  return true;
}

/// Bytes divided by 255: 0 and 255 are among them.
bool check_bytes(const Expressions& expressions, const NodeCall& call, Reporter& out) {
  const dataflow::Analysis& analysis = call.analysis();
  ValueId value = call.operand(0).value();
  bool rest = false;
  for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    if (const ValueId other = expressions.complement(value); other != ValueId::kAbsent && !rest) {
      rest = true;
      value = other;
      continue;
    }
    const auto scaled = with_number(expressions, node);
    const Opcode opcode = expressions.op(node);
    if (!scaled || scaled->is_first == (opcode == Opcode::kDiv) || (opcode != Opcode::kDiv && opcode != Opcode::kMul) ||
        scaled->number == 0)
      return false;
    const double divisor = opcode == Opcode::kDiv ? scaled->number : 1 / scaled->number;
    constexpr double kByte = 255;
    const bool to_one = std::abs(divisor - kByte) < 1e-3;
    if (!to_one && (rest || std::abs(divisor - kByte) > 1.001)) return false;
    const ValueId bytes = before_moves(expressions, scaled->value);
    if (!is_input(analysis, bytes) || analysis.fact(bytes).dtypes != DTypeSet(DType::kUint8) ||
        analysis.fact(bytes).range.lo > 0 || analysis.fact(bytes).range.hi < kByte)
      return false;
    out.report(findings::Severity::kWarning, call.id(),
               fmt::format("logarithm of {}, which is 0 where a byte of {} is {}: -infinity", call.operand(0).name(),
                           Operand(analysis, bytes).name(), rest ? 255 : 0))
        .certainty(ops::Certainty::kMay,
                   fmt::format("{} has {} among its elements", Operand(analysis, bytes).name(), rest ? 255 : 0))
        .note_at(node, "the bytes are scaled here")
        .fix("move them off the ends first: (bytes + u) / 256 with u between 0 and 1, or 0.05 + 0.9 * x");
    return true;
  }
  return false;
}

/// The product of so many probabilities is 0 in the dtype that it is kept in.
bool check_product(const Expressions& expressions, const NodeCall& call, Reporter& out) {
  const dataflow::Analysis& analysis = call.analysis();
  ValueId value = call.operand(0).value();
  bool half = false;
  for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
    half = half || analysis.fact(value).dtypes == DTypeSet(DType::kFloat16);
    const Opcode opcode = expressions.op_of(value);
    if (opcode != Opcode::kCast && !ops::keeps_elements(opcode)) break;
    value = expressions.operand(expressions.producer(value), 0);
  }
  const NodeId product = expressions.producer(value);
  if (product == NodeId::kNone || !is_product(expressions, product)) return false;
  const auto axes = expressions.axes_of(product);
  const auto dims = expressions.dims(expressions.operand(product, 0));
  if (!axes || axes->empty()) return false;
  double count = 1;
  for (const std::size_t axis : *axes) {
    const auto extent = axis < dims.size() ? analysis.facts().dims().as_constant(dims[axis]) : std::nullopt;
    if (!extent) return false;
    count *= static_cast<double>(*extent);
  }
  const ValueId factor = before_moves(expressions, expressions.operand(product, 0));
  const ValueId rest = expressions.complement(factor);
  const ValueId made = rest == ValueId::kAbsent ? factor : before_moves(expressions, rest);
  const auto softmax = expressions.normalised(made);
  if (expressions.op_of(made) != Opcode::kSigmoid && (!softmax || softmax->logarithm)) return false;
  // As many halves make a number below the smallest of float16, or of float32.
  const double enough = half ? 25 : 150;
  const auto dtype = analysis.fact(value).dtypes.single();
  if (count < enough || (!half && dtype != DType::kFloat32)) return false;
  out.report(findings::Severity::kWarning, call.id(),
             fmt::format("logarithm of a product of {:.0f} probabilities, which {} rounds to 0", count,
                         half ? "float16" : "float32"))
      .certainty(ops::Certainty::kMay, fmt::format("{:.0f} of them are 0.5 or less", enough))
      .note_at(product, "multiplied here")
      .fix("add up the logarithms of the probabilities, as logsigmoid and log_softmax give them");
  return true;
}

/// A value of both signs that the program itself has cut off at 0.
bool is_cut_off_at_zero(const Expressions& expressions, ValueId value) {
  const dataflow::Analysis& analysis = expressions.analysis();
  value = before_stretch(expressions, value);
  const NodeId node = expressions.producer(value);
  if (node == NodeId::kNone || analysis.fact(value).range.lo != 0) return false;
  const Opcode opcode = expressions.op(node);
  ValueId before = expressions.operand(node, 0);
  if (opcode == Opcode::kMax) {
    const auto bounded = with_number(expressions, node);
    if (!bounded || bounded->number != 0) return false;
    before = bounded->value;
  } else if (opcode == Opcode::kOther) {
    const ops::ElementValue element = dataflow::element_function(analysis, node, 1);
    if (element == nullptr || element({std::array{-0.5}, {}}) != 0 || element({std::array{-4.0}, {}}) != 0 ||
        element({std::array{4.0}, {}}) == 0)
      return false;
  } else if (opcode != Opcode::kClip) {
    return false;
  }
  if (before == ValueId::kAbsent || !(analysis.fact(before).range.lo < 0)) return false;
  // What is never negative but for rounding is cut off as well.
  return is_input(analysis, before_moves(expressions, before)) ||
         losses::ScoreValues(expressions).layer_of(before) != NodeId::kNone;
}

void check_divisor(const Expressions& expressions, const NodeCall& call, Reporter& out) {
  const dataflow::Analysis& analysis = call.analysis();
  const Operand divisor = call.operand(1);
  const Fact& result = analysis.fact(call.result());
  if (!divisor.present() || divisor.taint().has(Aspect::kValue) || !result.dtypes.proves(DTypeSet::floats())) return;
  // A Where that takes something else keeps the quotient out of the loss, but not out of its gradients.
  const bool is_zero = expressions.number(divisor.value()) == 0;
  if (!is_zero && (is_kept_finite(expressions, call.result()) ||
                   is_operand_as_written(out, expressions, call.id(), divisor.value(),
                                         before_stretch(expressions, divisor.value())) == AsWritten::kNo))
    return;
  if (const ValueId rest = expressions.complement(before_stretch(expressions, divisor.value()));
      rest != ValueId::kAbsent && check_lost_bound(expressions, call, rest, out))
    return;
  const Range& range = divisor.fact().range;
  if (range.lo == 0 && range.hi == 0 && !range.nan) {
    // The variance of one number is told where its mean is taken, and a batch may have one where a model was traced.
    const NodeId above = expressions.producer(before_stretch(expressions, call.operand(0).value()));
    const auto axes = losses::reduces_axes(expressions.op(above)) ? expressions.axes_of(above) : std::nullopt;
    const auto dims = axes ? expressions.dims(expressions.operand(above, 0)) : std::span<const Dim>();
    const bool of_one = axes && std::ranges::all_of(*axes, [&](std::size_t axis) {
                          return axis < dims.size() && analysis.facts().dims().is_constant(dims[axis], 1);
                        });
    if (of_one) return;
    out.report(findings::Severity::kWarning, call.id(),
               fmt::format("{} by {}, which is always 0", call.op_name(), divisor.name()))
        .origin(divisor, Aspect::kValue)
        .fix("correct the divisor");
    return;
  }
  if (!is_cut_off_at_zero(expressions, divisor.value())) return;
  const ValueId cut = before_stretch(expressions, divisor.value());
  out.report(findings::Severity::kWarning, call.id(),
             fmt::format("{} by {}, which is 0 wherever it was negative before", call.op_name(), divisor.name()))
      .certainty(ops::Certainty::kMay, fmt::format("{} has 0 among its elements", divisor.name()))
      .note_at(expressions.producer(cut), "negative numbers become 0 here")
      .fix("make the lower bound a small positive number, such as 1e-6, or leave those elements out");
}

/// p * log(p) of a softmax with scores of -infinity: 0 times -infinity.
void check_masked_product(const Expressions& expressions, const NodeCall& call, Reporter& out) {
  const dataflow::Analysis& analysis = call.analysis();
  const auto scores_of = [&](ValueId value, bool logarithm) -> ValueId {
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    const ValueId inside = expressions.operand(node, 0);
    const Opcode wrapped = logarithm ? Opcode::kLog : Opcode::kExp;
    bool direct = true;
    ValueId made = value;
    if (expressions.op(node) == wrapped) {
      made = before_stretch(expressions, inside);
      if (is_operand_as_written(out, expressions, node, inside, made) == AsWritten::kNo) return ValueId::kAbsent;
      direct = false;
    }
    const auto softmax = expressions.normalised(made);
    return softmax && softmax->logarithm == (direct == logarithm) ? softmax->scores : ValueId::kAbsent;
  };
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const ValueId share = call.operand(side).value();
    ValueId logarithm = call.operand(1 - side).value();
    if (share == ValueId::kAbsent || logarithm == ValueId::kAbsent) return;
    if (expressions.op_of(logarithm) == Opcode::kNeg)
      logarithm = expressions.operand(expressions.producer(logarithm), 0);
    const ValueId scores = scores_of(share, false);
    if (scores == ValueId::kAbsent || !has_minus_infinity(expressions, scores)) continue;
    bool found = false;
    const NodeId difference = expressions.producer(logarithm);
    if (expressions.op(difference) == Opcode::kSub)
      found = scores_of(expressions.operand(difference, 0), true) == scores ||
              scores_of(expressions.operand(difference, 1), true) == scores;
    found = found || scores_of(logarithm, true) == scores;
    if (!found || is_chosen_from(expressions, call.result())) continue;
    out.report(findings::Severity::kWarning, call.id(),
               fmt::format("0 times -infinity is NaN: {} has the probability 0 where a score is -infinity, and {} the "
                           "logarithm of 0",
                           Operand(analysis, share).name(), Operand(analysis, logarithm).name()))
        .certainty(ops::Certainty::kMay, "a score is masked")
        .note_at(expressions.producer(before_stretch(expressions, share)), "the probabilities are computed here")
        .fix("mask with a large finite number, such as -1e9, or choose 0 for what is masked before the product");
    return;
  }
}

}  // namespace

void check_reached_edges(const ModelView& view, Reporter& out) {
  each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
    const Operand operand = call.operand(0);
    if (!operand.present() || operand.taint().has(Aspect::kValue)) return;
    const Opcode opcode = expressions.op(call.id());
    if (opcode == Opcode::kDiv) check_divisor(expressions, call, out);
    if (opcode == Opcode::kMul) check_masked_product(expressions, call, out);
    if ((opcode != Opcode::kLog && opcode != Opcode::kLog1p) || is_kept_finite(expressions, call.result()) ||
        is_operand_as_written(out, expressions, call.id(), operand.value(),
                              before_stretch(expressions, operand.value())) == AsWritten::kNo)
      return;
    const ValueId rest = logarithm_of_rest(expressions, call.id());
    if (rest != ValueId::kAbsent && check_lost_bound(expressions, call, rest, out)) return;
    if (opcode != Opcode::kLog) return;
    if (check_bytes(expressions, call, out) || check_product(expressions, call, out)) return;
    const ValueId cut = before_stretch(expressions, operand.value());
    if (!is_cut_off_at_zero(expressions, cut)) return;
    const NodeId clip = expressions.producer(cut);
    // Of scores the rule's other half speaks.
    if (losses::ScoreValues(expressions).layer_of(expressions.operand(clip, 0)) != NodeId::kNone) return;
    out.report(findings::Severity::kWarning, call.id(),
               fmt::format("logarithm of {}, which is 0 wherever it was negative before: -infinity", operand.name()))
        .certainty(ops::Certainty::kMay, fmt::format("{} has 0 among its elements", operand.name()))
        .note_at(clip, "negative numbers become 0 here")
        .fix("make the lower bound a small positive number, such as 1e-6, or use log1p");
  });
}

}  // namespace tensorlint::rules
