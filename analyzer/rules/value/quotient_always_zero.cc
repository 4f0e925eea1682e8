#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

class QuotientAlwaysZero : public Rule {
 public:
  QuotientAlwaysZero()
      : Rule({"TL-V507", "quotient-always-zero", "value", findings::Severity::kWarning,
              "an integer quotient that is always 0"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return opcode_of(entry) == ops::Opcode::kDiv;
  }

  /// Index arithmetic of inference models divides in vain where an extent is 1; only what a loss is computed from
  /// has to vary.
  void check(const NodeCall& call, Reporter& out) const override {
    const Operand above = call.operand(0), below = call.operand(1);
    if (!above.present() || !below.present() || call.result() == ValueId::kAbsent ||
        above.taint().has(Aspect::kValue) || below.taint().has(Aspect::kValue))
      return;
    const Operand counted = source(above, call);
    if (!counted.fact().dtypes.proves(DTypeSet::integers()) || !cuts_fraction(call)) return;
    const bool is_number = becomes_float(call);
    if (!is_number && !is_given(call)) return;
    if ((is_number && check_share(call, counted, out)) || check_mean(call, out)) return;
    if (is_number && check_balance(call, counted, out)) return;
    if (!is_number || one_float_outputs(call.analysis()).empty()) return;
    if (const Operand sum = summed(below, call); sum.present() && sum.value() == counted.value()) {
      const std::string name = counted.name();
      out.report(call.id(),
                 fmt::format("integer division of {} by its own sum is 0, unless one element is all of it", name))
          .note_at(call.model().value(source(below, call).value()).producer, "the sum comes from here")
          .fix(fmt::format("cast {} to a floating-point dtype first, and divide with /", name));
      return;
    }
    if (check_ratio(call, counted, out)) return;
    const Range& divisor = below.fact().range;
    if (divisor.lo != divisor.hi || divisor.nan || !(divisor.lo >= 1)) return;
    // A remainder, or another number that the program itself keeps below the divisor.
    const Range& range = counted.fact().range;
    const NodeId maker = call.model().value(counted.value()).producer;
    if (maker != NodeId::kNone && range.lo >= 0 && range.hi >= 1 && range.hi < divisor.lo &&
        NodeCall(call.analysis(), maker).is(ops::Opcode::kMod)) {
      out.report(call.id(), fmt::format("integer division of {} by {} is always 0: {} is at most {}", above.name(),
                                        divisor.lo, counted.name(), range.hi))
          .note_at(maker, "the remainder is taken here")
          .fix("divide floating-point numbers, with /");
      return;
    }
    const auto indexed = smallest_extent(counted, call);
    if (!indexed || static_cast<double>(indexed->extent) > divisor.lo) return;
    out.report(call.id(), fmt::format("integer division of {} by {} is always 0: {} is an index below {}", above.name(),
                                      divisor.lo, counted.name(), indexed->extent))
        .note_at(indexed->node, "used as an index here")
        .fix("divide floating-point numbers, with /");
  }

 private:
  static constexpr int kMaxSteps = 8;

  /// It is also divided as a floating-point number: no mask, but a picture.
  static bool is_picture(const NodeCall& call, const Operand& bytes) {
    for (const NodeId user : call.analysis().users(bytes.value())) {
      const NodeCall cast(call.analysis(), user);
      if (!cast.is(ops::Opcode::kCast) || cast.result() == ValueId::kAbsent ||
          !call.analysis().fact(cast.result()).dtypes.proves(DTypeSet::floats()))
        continue;
      for (const NodeId next : call.analysis().users(cast.result())) {
        const NodeCall division(call.analysis(), next);
        if (division.is(ops::Opcode::kDiv) && division.operand(0).value() == cast.result()) return true;
      }
    }
    return false;
  }

  /// Numbers from 0 to below the divisor. Those up to the divisor may be a mask of 0 and 255, unless they are a
  /// picture.
  static bool check_share(const NodeCall& call, const Operand& counted, Reporter& out) {
    const Operand above = call.operand(0), below = call.operand(1);
    const Range &range = above.fact().range, &divisor = below.fact().range;
    // Shares of an axis: 0, 1, 2, ... by as many as there are.
    const bool is_share = range.lo == 0 && range.hi == divisor.lo - 1 && !one_float_outputs(call.analysis()).empty();
    if ((is_index(call, counted) && !is_share) ||
        !call.analysis().fact(call.result()).dtypes.proves(DTypeSet::integers()))
      return false;
    const std::string name = above.name();
    if (divisor.lo == divisor.hi && divisor.lo >= 2 && range.lo >= 0 && range.lo < range.hi &&
        (range.hi < divisor.lo || (range.hi == divisor.lo && is_picture(call, counted)))) {
      out.report(call.id(), fmt::format("integer division of {}, which is in {}, by {} is {}", name, range.to_text(),
                                        bound_text(divisor.lo),
                                        range.hi < divisor.lo ? std::string("always 0")
                                                              : fmt::format("0 but for {}", bound_text(range.hi))))
          .origin(above, Aspect::kValue)
          .fix(fmt::format("cast {} to a floating-point dtype first", name));
      return true;
    }
    return false;
  }

  /// One count by another, both given for each sample, of which a feature is made. A smoothed one has a number added to
  /// both, the larger one below; a quotient that is rounded up has none below.
  static bool check_ratio(const NodeCall& call, Operand counted, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    Operand total = source(call.operand(1), call);
    const NodeId above = expressions.producer(counted.value()), below = expressions.producer(total.value());
    if (const auto more = with_number(expressions, above), most = with_number(expressions, below);
        more && most && expressions.op(above) == ops::Opcode::kAdd && expressions.op(below) == ops::Opcode::kAdd &&
        more->number > 0 && most->number > more->number)
      counted = source(Operand(analysis, more->value), call);
    // Kept off 0.
    const NodeId guard = expressions.producer(total.value());
    bool may_be_zero = is_clipped(call.operand(1), call);
    if (const auto guarded = with_number(expressions, guard);
        guarded && (expressions.op(guard) == ops::Opcode::kMax || expressions.op(guard) == ops::Opcode::kAdd)) {
      total = source(Operand(analysis, guarded->value), call);
      may_be_zero = true;
    }
    if (!is_input(analysis, counted.value()) || !is_input(analysis, total.value()) ||
        counted.value() == total.value() || !total.fact().dtypes.proves(DTypeSet::integers()) ||
        expressions.dims(counted.value()).empty() || expressions.dims(total.value()).empty())
      return false;
    // What is left over is used as well. Exporters ask only whether there is any.
    for (const NodeId user : analysis.users(call.operand(0).value())) {
      const NodeCall use(analysis, user);
      if (!use.is(ops::Opcode::kMod) || use.operand(1).value() != call.operand(1).value()) continue;
      for (const NodeId next : expressions.users(use.result())) {
        const ops::Opcode opcode = expressions.op(next);
        const bool asks =
            opcode == ops::Opcode::kEqual || opcode == ops::Opcode::kCompare ||
            (opcode == ops::Opcode::kCast && analysis.fact(expressions.result(next)).dtypes == DTypeSet(DType::kBool));
        if (!asks) return false;
      }
    }
    // How often a size fits into an amount, which is given as well: whole packs. A size is never 0.
    if (!may_be_zero && is_used_otherwise(call, counted.value())) return false;
    out.report(call.id(), fmt::format("integer division of {} by {} has no fraction: it is 0 wherever {} is less",
                                      counted.name(), total.name(), counted.name()))
        .certainty(ops::Certainty::kMay,
                   fmt::format("an element of {} is less than the one of {}", counted.name(), total.name()))
        .fix(fmt::format("cast {} to a floating-point dtype first, and divide with /", counted.name()));
    return true;
  }

  /// Besides in the quotient, and in what exporters ask to round it: its sign, and whether there is a remainder.
  static bool is_used_otherwise(const NodeCall& call, ValueId counted) {
    constexpr std::size_t kMaxValues = 16;
    const dataflow::Analysis& analysis = call.analysis();
    std::vector<ValueId> values{counted};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : analysis.users(values[i])) {
        analysis.meter().charge(1);
        const NodeCall use(analysis, user);
        const ops::Opcode opcode = opcode_of(use.entry());
        if (user == call.id() || opcode == ops::Opcode::kMod || opcode == ops::Opcode::kCompare ||
            opcode == ops::Opcode::kEqual || opcode == ops::Opcode::kSign || opcode == ops::Opcode::kShape)
          continue;
        const bool leads_on = moves(use) || opcode == ops::Opcode::kClip ||
                              (opcode == ops::Opcode::kCast && use.result() != ValueId::kAbsent &&
                               analysis.fact(use.result()).dtypes.proves(DTypeSet::integers()));
        if (!leads_on || use.result() == ValueId::kAbsent || values.size() >= kMaxValues) return true;
        values.push_back(use.result());
      }
    return false;
  }

  /// A total by so many times a part of it, as classes are weighed: 0 for each part that is larger than their mean.
  static bool check_balance(const NodeCall& call, const Operand& total, Reporter& out) {
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    ValueId part = call.operand(1).value();
    double times = 1;
    for (int step = 0; step < kMaxSteps && part != ValueId::kAbsent; ++step) {
      part = before_stretch(expressions, part);
      const NodeId node = expressions.producer(part);
      const ops::Opcode opcode = expressions.op(node);
      const auto numbered = with_number(expressions, node);
      if (opcode == ops::Opcode::kClip) {
        part = expressions.operand(node, 0);
      } else if ((opcode == ops::Opcode::kMax || opcode == ops::Opcode::kMul) && numbered) {
        if (opcode == ops::Opcode::kMul) times *= numbered->number;
        part = numbered->value;
      } else {
        break;
      }
    }
    if (times < 2 || part == ValueId::kAbsent) return false;
    const NodeId sum = expressions.producer(total.value());
    const bool is_sum = expressions.op(sum) == ops::Opcode::kReduceSum &&
                        part == before_stretch(expressions, expressions.operand(sum, 0));
    if (!is_sum && !is_number_counted(expressions, call, part)) return false;
    const std::string name = Operand(call.analysis(), part).name();
    const std::string total_text = is_sum ? fmt::format("the sum of {}", name) : std::string("the number of elements");
    out.report(call.id(), fmt::format("integer division of {2} by {1} * {0} is 0 for each of them that is more than "
                                      "1/{1} of it",
                                      name, times, total_text))
        .note_at(is_sum ? sum : expressions.producer(part), is_sum ? "the sum comes from here" : "counted here")
        .fix(fmt::format("cast {} to a floating-point dtype first, and divide with /", name));
    return true;
  }

  /// The operand above is how many elements there are, of which `part` counts some: an extent, or what one is known to
  /// be.
  static bool is_number_counted(const losses::Expressions& expressions, const NodeCall& call, ValueId part) {
    const NodeId counts = expressions.producer(part);
    const ValueId counted = expressions.operand(counts, 0);
    if (expressions.op(counts) != ops::Opcode::kReduceSum || counted == ValueId::kAbsent) return false;
    const Range& range = call.analysis().fact(counted).range;
    if (range.lo != 0 || range.hi != 1) return false;
    if (is_extent(call, call.operand(0))) return true;
    const auto axes = expressions.axes_of(counts);
    const auto dims = expressions.dims(counted);
    if (!axes || axes->size() != 1 || axes->front() >= dims.size()) return false;
    const auto extent = call.facts().dims().as_constant(dims[axes->front()]);
    return extent && expressions.is_number(call.operand(0).value(), static_cast<double>(*extent));
  }

  /// A share that is given as it is counts as a number, too.
  static bool check_mean(const NodeCall& call, Reporter& out) {
    const Operand above = call.operand(0), below = call.operand(1);
    const Operand sum = summed(above, call);
    if (is_index(call, source(above, call)) || !call.analysis().fact(call.result()).dtypes.proves(DTypeSet::integers()))
      return false;
    const std::string name = above.name();
    if (!sum.present() || sum.fact().range.lo < 0 || sum.fact().range.hi > 1 ||
        !(is_extent(call, below) || is_number_of_elements(call, sum, below)))
      return false;
    out.report(call.id(), fmt::format("integer division of {}, a sum of zeros and ones, by how many there are is 0, "
                                      "unless all are 1",
                                      name))
        .note_at(call.model().value(source(above, call).value()).producer, "summed here")
        .fix(fmt::format("cast {} to a floating-point dtype first", name));
    return true;
  }

  /// Places in an axis of extent 1 are divided in vain where models are traced.
  static bool is_index(const NodeCall& call, const Operand& counted) {
    const NodeId node = call.model().value(counted.value()).producer;
    if (node == NodeId::kNone) return false;
    const NodeCall made(call.analysis(), node);
    const ops::Opcode opcode = opcode_of(made.entry());
    return opcode == ops::Opcode::kRange || opcode == ops::Opcode::kTopK || opcode == ops::Opcode::kArgExtreme ||
           opcode == ops::Opcode::kShape || opcode == ops::Opcode::kCumSum || opcode == ops::Opcode::kConstant ||
           call.model().value(counted.value()).initializer != nullptr;
  }

  /// An extent, or the number of elements.
  static bool is_extent(const NodeCall& call, const Operand& value) {
    const NodeId node = call.model().value(source(value, call).value()).producer;
    if (node == NodeId::kNone) return false;
    const NodeCall made(call.analysis(), node);
    const NodeId shape = made.is(ops::Opcode::kGather) && made.operand(0).present()
                             ? call.model().value(made.operand(0).value()).producer
                             : node;
    return shape != NodeId::kNone && NodeCall(call.analysis(), shape).is(ops::Opcode::kShape);
  }

  /// The quotient is an output; where an exporter writes // it goes through a correction for negative numbers.
  static bool is_given(const NodeCall& call) {
    constexpr std::size_t kMaxValues = 4;
    std::vector<ValueId> values{call.result()};
    for (std::size_t i = 0; i < values.size() && i < kMaxValues; ++i) {
      if (call.model().value(values[i]).is_output) return true;
      for (const NodeId user : call.analysis().users(values[i])) {
        const NodeCall next(call.analysis(), user);
        if (next.result() != ValueId::kAbsent && (next.is(ops::Opcode::kCast) || next.is(ops::Opcode::kSub)))
          values.push_back(next.result());
      }
    }
    return false;
  }

  /// As many as the elements that are summed up, written down.
  static bool is_number_of_elements(const NodeCall& call, const Operand& summed, const Operand& below) {
    const Range& divisor = below.fact().range;
    if (summed.fact().kind != ValueKind::kTensor || summed.fact().shape == ShapeId::kUnranked ||
        divisor.lo != divisor.hi || divisor.lo < 2)
      return false;
    double elements = 1;
    for (const Dim dim : call.facts().dims_of(summed.fact().shape)) {
      const auto extent = call.facts().dims().as_constant(dim);
      if (!extent) return false;
      elements *= static_cast<double>(*extent);
    }
    return elements == divisor.lo;
  }

  static bool moves(const NodeCall& call) {
    return picks_elements(opcode_of(call.entry())) && !call.is(ops::Opcode::kGather) &&
           !call.is(ops::Opcode::kGatherElements);
  }

  /// The value before it was moved, cast and kept from 0.
  static Operand source(Operand operand, const NodeCall& call) {
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = call.model().value(operand.value()).producer;
      if (node == NodeId::kNone) break;
      const NodeCall before(call.analysis(), node);
      const bool keeps = moves(before) || before.is(ops::Opcode::kCast) || before.is(ops::Opcode::kClip);
      if (!keeps || !before.operand(0).present()) break;
      operand = before.operand(0);
    }
    return operand;
  }

  /// One of the steps back to the source is a bound.
  static bool is_clipped(Operand operand, const NodeCall& call) {
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = call.model().value(operand.value()).producer;
      if (node == NodeId::kNone) return false;
      const NodeCall before(call.analysis(), node);
      if (before.is(ops::Opcode::kClip)) return true;
      if ((!moves(before) && !before.is(ops::Opcode::kCast)) || !before.operand(0).present()) return false;
      operand = before.operand(0);
    }
    return false;
  }

  /// What the value is the sum of; not present where it is none.
  static Operand summed(const Operand& operand, const NodeCall& call) {
    const Operand sum = source(operand, call);
    const NodeId node = call.model().value(sum.value()).producer;
    if (node == NodeId::kNone) return {call.analysis(), ValueId::kAbsent};
    const NodeCall adds(call.analysis(), node);
    if (!adds.is(ops::Opcode::kReduceSum) || !adds.operand(0).present()) return {call.analysis(), ValueId::kAbsent};
    return source(adds.operand(0), call);
  }

  static bool cuts_fraction(const NodeCall& call) {
    if (call.analysis().fact(call.result()).dtypes.proves(DTypeSet::integers())) return true;
    const auto all = call.analysis().users(call.result());
    return !all.empty() && std::ranges::all_of(all, [&](NodeId user) {
      return NodeCall(call.analysis(), user).is(ops::Opcode::kRound);
    });
  }

  /// A cast after the fraction was cut off makes it a number among others.
  static bool becomes_float(const NodeCall& call) {
    constexpr std::size_t kMaxValues = 24;
    const dataflow::Analysis& analysis = call.analysis();
    std::vector<ValueId> values{call.result()};
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool given_integers = analysis.fact(values[i]).dtypes.proves(DTypeSet::integers());
      for (const NodeId user : analysis.users(values[i])) {
        const NodeCall use(analysis, user);
        if (use.result() == ValueId::kAbsent || std::ranges::find(values, use.result()) != values.end()) continue;
        const bool casts = use.is(ops::Opcode::kCast);
        if (casts && given_integers && analysis.fact(use.result()).dtypes.proves(DTypeSet::floats())) return true;
        if (values.size() < kMaxValues && (casts || moves(use) || use.is(ops::Opcode::kRound) ||
                                           use.is(ops::Opcode::kSub) || use.is(ops::Opcode::kWhere)))
          values.push_back(use.result());
      }
    }
    return false;
  }

  struct Indexed {
    NodeId node;
    std::int64_t extent;
  };

  static bool picks_along_first(const NodeCall& gather) {
    const Operand index = gather.operand(1);
    const Attribute* batch = gather.attribute("batch_dims");
    if (!index.present() || index.fact().kind != ValueKind::kTensor || index.fact().shape == ShapeId::kUnranked ||
        (batch != nullptr && batch->i != 0))
      return false;
    const auto dims = gather.facts().dims_of(index.fact().shape);
    return !dims.empty() && gather.facts().dims().is_constant(dims.back(), 1);
  }

  /// The shortest axis that the value is an index of.
  static std::optional<Indexed> smallest_extent(const Operand& index, const NodeCall& call) {
    const dataflow::Analysis& analysis = call.analysis();
    constexpr std::size_t kMaxValues = 8;
    std::vector<ValueId> values{index.value()};
    std::optional<Indexed> found;
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : analysis.users(values[i])) {
        const NodeCall use(analysis, user);
        if (moves(use) && use.operand(0).value() == values[i] && use.result() != ValueId::kAbsent &&
            values.size() < kMaxValues)
          values.push_back(use.result());
        // Indices of one axis of GatherND, too: rows of one number.
        const bool is_row = use.is(ops::Opcode::kGatherND) && picks_along_first(use);
        if (!is_row && !use.is(ops::Opcode::kGather) && !use.is(ops::Opcode::kGatherElements)) continue;
        const Operand data = use.operand(0);
        if (!data.present() || use.operand(1).value() != values[i] || data.fact().kind != ValueKind::kTensor ||
            data.fact().shape == ShapeId::kUnranked)
          continue;
        const auto dims = analysis.facts().dims_of(data.fact().shape);
        const Attribute* given = use.attribute("axis");
        const auto rank = static_cast<std::int64_t>(dims.size());
        std::int64_t axis = given == nullptr ? 0 : given->i;
        if (axis < -rank || axis >= rank) continue;
        if (axis < 0) axis += rank;
        const auto extent = analysis.facts().dims().as_constant(dims[static_cast<std::size_t>(axis)]);
        if (extent && (!found || *extent < found->extent)) found = Indexed{user, *extent};
      }
    return found;
  }
};

const RegisterRule<QuotientAlwaysZero> kRegisterQuotientAlwaysZero;

}  // namespace
}  // namespace tensorlint::rules
