#include "analyzer/rules/value/reached_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/value/masks.h"
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

/// A Where takes something else in place of what becomes of a result, a step or two later.
bool is_replaced_later(const Expressions& expressions, ValueId value) {
  constexpr int kMaxElementwise = 4;
  for (int step = 0; step < kMaxElementwise && value != ValueId::kAbsent; ++step) {
    if (is_kept_finite(expressions, value)) return true;
    const auto users = expressions.users(value);
    if (users.size() != 1 || !has_trait(expressions.entry(users.front()), ops::OpTrait::kElementwise)) return false;
    value = expressions.result(users.front());
  }
  return false;
}

/// Before absolute values, squares, signs and numbers that it is multiplied with.
ValueId before_magnitude(const Expressions& expressions, ValueId value) {
  for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
    value = before_scale(expressions, value);
    const NodeId node = expressions.producer(value);
    const ValueId base = expressions.square_base(value);
    if (base != ValueId::kAbsent)
      value = base;
    else if (expressions.op(node) == Opcode::kAbs || expressions.op(node) == Opcode::kNeg)
      value = expressions.operand(node, 0);
    else
      break;
  }
  return value;
}

/// Floating-point numbers of a layer are in it: what is counted, or picked by class, is no prediction.
bool is_predicted(const Expressions& expressions, ValueId value) {
  const dataflow::Analysis& analysis = expressions.analysis();
  const losses::ScoreValues scores(expressions);
  bool found = false;
  walk_back(expressions, value, [&](ValueId at, NodeId) {
    if (found || !analysis.fact(at).dtypes.proves(DTypeSet::floats())) return false;
    found = scores.layer_of(at) != NodeId::kNone;
    return !found;
  });
  return found;
}

/// An error in shares of a target that counts something: |p - y| / y, 1 - p / y.
bool check_relative_error(const Expressions& expressions, const NodeCall& call, Reporter& out) {
  const dataflow::Analysis& analysis = call.analysis();
  const ValueId count = before_magnitude(expressions, call.operand(1).value());
  if (count == ValueId::kAbsent || !is_input(analysis, count) ||
      !analysis.fact(count).dtypes.proves(DTypeSet::integers()) || analysis.fact(count).range.lo > 0)
    return false;
  const NodeId difference = expressions.producer(before_magnitude(expressions, call.operand(0).value()));
  const auto is_count = [&](ValueId value) {
    return value != ValueId::kAbsent && before_stretch(expressions, value) == count;
  };
  bool is_error = expressions.op(difference) == Opcode::kSub &&
                  is_count(expressions.operand(difference, 0)) != is_count(expressions.operand(difference, 1));
  const auto users = expressions.users(call.result());
  if (!is_error && users.size() == 1 && expressions.complement(expressions.result(users.front())) == call.result())
    is_error = is_predicted(expressions, call.operand(0).value());
  // A sequence that is filled up has at least one step.
  if (!is_error || counts_steps(expressions, count) || is_replaced_later(expressions, call.result())) return false;
  out.report(
         findings::Severity::kWarning, call.id(),
         fmt::format("an error is divided by {}, an integer that nothing keeps off 0", Operand(analysis, count).name()))
      .certainty(ops::Certainty::kMay, fmt::format("{} has 0 among its elements", Operand(analysis, count).name()))
      .fix("keep the divisor at least 1, as with a Clip, or leave the samples without any out");
  return true;
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
  if (check_relative_error(expressions, call, out)) return;
  if (!is_cut_off_at_zero(expressions, divisor.value())) return;
  const ValueId cut = before_stretch(expressions, divisor.value());
  out.report(findings::Severity::kWarning, call.id(),
             fmt::format("{} by {}, which is 0 wherever it was negative before", call.op_name(), divisor.name()))
      .certainty(ops::Certainty::kMay, fmt::format("{} has 0 among its elements", divisor.name()))
      .note_at(expressions.producer(cut), "negative numbers become 0 here")
      .fix("make the lower bound a small positive number, such as 1e-6, or leave those elements out");
}

/// A function with two limits that large arguments round to, before moves and numbers; kNone for anything else.
NodeId squashed_by(const Expressions& expressions, ValueId value) {
  constexpr double kLarge = 40, kLarger = 60;
  for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
    value = before_moves(expressions, value);
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    if (node == NodeId::kNone || opcode == Opcode::kSigmoid) return node;
    if (opcode == Opcode::kConcat) {
      // With the limits themselves around it.
      ValueId squashed = ValueId::kAbsent;
      constexpr std::size_t kMostParts = 4;
      for (std::size_t i = 0; i < kMostParts; ++i) {
        const ValueId part = expressions.operand(node, i);
        if (part == ValueId::kAbsent || number_of(Operand(expressions.analysis(), part))) continue;
        if (squashed != ValueId::kAbsent) return NodeId::kNone;
        squashed = part;
      }
      value = squashed;
      continue;
    }
    if (const auto numbered = with_number(expressions, node);
        numbered && (opcode == Opcode::kAdd || opcode == Opcode::kSub || opcode == Opcode::kMul ||
                     (opcode == Opcode::kDiv && !numbered->is_first))) {
      value = numbered->value;
      continue;
    }
    const ops::ElementValue element = dataflow::element_function(expressions.analysis(), node, 1);
    if (element == nullptr || opcode == Opcode::kSign || opcode == Opcode::kClip) return NodeId::kNone;
    const auto at = [&](double number) { return element({std::array{number}, {}}); };
    const bool has_limits =
        std::isfinite(at(kLarge)) && at(kLarge) == at(kLarger) && at(-kLarge) == at(-kLarger) && at(1) != at(kLarge);
    return has_limits && at(-kLarge) != at(kLarge) ? node : NodeId::kNone;
  }
  return NodeId::kNone;
}

/// A share between two thresholds: both ends round to the same limit where the score is far from them.
bool check_gap(const Expressions& expressions, const NodeCall& call, Reporter& out) {
  constexpr double kSaturates = 40;
  const dataflow::Analysis& analysis = call.analysis();
  const NodeId gap = expressions.producer(before_stretch(expressions, call.operand(0).value()));
  if (expressions.op(gap) != Opcode::kSub || expressions.operand(gap, 0) == expressions.operand(gap, 1)) return false;
  NodeId ends[] = {NodeId::kNone, NodeId::kNone};
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    ends[side] = squashed_by(expressions, expressions.operand(gap, side));
    if (ends[side] == NodeId::kNone) return false;
    const ValueId argument = expressions.operand(ends[side], 0);
    if (argument == ValueId::kAbsent || expressions.number(argument) ||
        analysis.model().value(argument).initializer != nullptr || analysis.fact(argument).range.hi < kSaturates)
      return false;
  }
  if (expressions.op(ends[0]) != expressions.op(ends[1])) return false;
  const std::string_view name = NodeCall(analysis, ends[0]).op_name();
  out.report(findings::Severity::kWarning, call.id(),
             fmt::format("logarithm of a difference of two values of {}, which is 0 where both round to its limit, and "
                         "negative where they are in the other order",
                         name))
      .certainty(ops::Certainty::kMay, fmt::format("a score is so far off that {} rounds to its limit", name))
      .note_at(gap, "subtracted here")
      .fix("keep the difference above 0, as with a Clip at 1e-6, and the thresholds in order");
  return true;
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
    if (check_bytes(expressions, call, out) || check_product(expressions, call, out) ||
        check_gap(expressions, call, out))
      return;
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
