#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/reached_edges.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/expressions.h"
#include "passes/losses/formula.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {
namespace {

class InvalidDomain : public Rule {
 public:
  InvalidDomain()
      : Rule({"TL-V504", "invalid-domain", "value", findings::Severity::kError,
              "a value for which the operator is not defined"},
             {passes::Pass::kLosses}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kDomain ? Specificity::kGeneric : Specificity::kNone;
  }

  /// The logarithms of a loss of probabilities are probability-out-of-range's.
  void report(const ViolationCase& violation, Reporter& out) const override {
    const bool is_logarithm = violation.has_node() && violation.call().is(ops::Opcode::kLog);
    const bool is_of_loss = violation.loss != nullptr && violation.loss->kind == ops::LossKind::kBinaryCrossEntropy;
    if (!is_logarithm || !is_of_loss) report_violation(violation, out);
  }

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    const ops::Opcode opcode = opcode_of(entry);
    return opcode == ops::Opcode::kLog || opcode == ops::Opcode::kDiv || opcode == ops::Opcode::kMul;
  }

  /// Logarithms of what scores of a layer come to, where that is 0 for some of them.
  void check_model(const ModelView& view, Reporter& out) const override {
    check_reached_edges(view, out);
    const dataflow::Analysis& analysis = view.analysis();
    const std::vector<ValueId> outputs = one_float_outputs(analysis);
    if (outputs.empty()) return;
    each_node_of_step(view, out, [&](const losses::Expressions& expressions, const NodeCall& call) {
      if (call.is(ops::Opcode::kGather) || call.is(ops::Opcode::kGatherND)) check_infinite_row(call, out);
      if (call.is(ops::Opcode::kSqrt)) check_half_root(expressions, call, out);
      if (call.is(ops::Opcode::kSoftmax) || call.is(ops::Opcode::kLogSoftmax)) check_hidden_row(call, out);
    });
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    losses::ScoreValues scores(expressions);
    std::set<NodeId> seen;
    // The rate of a Poisson loss may be 0 as any other number may; losses of probabilities have a rule of their own.
    for (const losses::LossSite& loss : view.losses())
      if (loss.kind != losses::LossKind::kPoisson) seen.insert(loss.nodes.begin(), loss.nodes.end());
    for (const ValueId output : outputs)
      for (const NodeId logarithm : summed_logarithms(expressions, output))
        if (seen.insert(logarithm).second && !check_rest_of_sigmoid(expressions, logarithm, out))
          check_zero(scores, expressions, logarithm, out);
  }

  /// What inference does not find: numbers at the edge of the domain that the program itself makes.
  void check(const NodeCall& call, Reporter& out) const override {
    if (call.is(ops::Opcode::kMul)) {
      check_infinite_constant(call, out);
      return;
    }
    const std::size_t side = call.is(ops::Opcode::kLog) ? 0 : 1;
    const Operand operand = call.operand(side);
    if (!operand.present() || call.result() == ValueId::kAbsent || operand.taint().has(Aspect::kValue) ||
        call.analysis().has_failed(call.id()))
      return;
    if (side == 1) {
      check_zero_constant(call, out);
      check_empty_selection(call, out);
    } else {
      check_half(call, out);
      check_zero_times_logarithm(call, out);
    }
  }

 private:
  static constexpr int kMaxSteps = 12;
  /// Above 0 in float16.
  static constexpr double kSmallest = 5.9e-8;
  /// Of a mask of 256 by 256, or a table of as many rows.
  static constexpr std::size_t kMostNumbers = 65'536;

  static NodeId producer_of(const Operand& operand, const Model& model) {
    return operand.present() ? model.value(operand.value()).producer : NodeId::kNone;
  }

  static bool passes_elements(const NodeCall& call) { return picks_elements(opcode_of(call.entry())); }

  /// A constant of a program of its own, not one that hides scores: floats, of which one is `extreme` and not all are.
  static bool is_constant_with(const Operand& operand, const NodeCall& call, double extreme) {
    if (!operand.present() || operand.taint().has(Aspect::kValue) || operand.fact().kind != ValueKind::kTensor ||
        !operand.fact().dtypes.proves(DTypeSet::floats()))
      return false;
    const Range& range = operand.fact().range;
    const double end = extreme > 0 ? range.hi : range.lo, other = extreme > 0 ? range.lo : range.hi;
    if (range.nan || end != extreme || other == extreme || !std::isfinite(other)) return false;
    const NodeId maker = producer_of(operand, call.model());
    const Value& value = call.model().value(operand.value());
    if (maker == NodeId::kNone ? value.initializer == nullptr
                               : !NodeCall(call.analysis(), maker).is(ops::Opcode::kConstant))
      return false;
    const Content* content = call.analysis().content(operand.value());
    if (content == nullptr || content->floats.empty()) return false;
    bool found = false;
    for (std::size_t i = 0; i < content->floats.size(); ++i) found = found || content->floats[i] == extreme;
    if (!found || one_float_outputs(call.analysis()).empty()) return false;
    for (const NodeId user : call.analysis().users(call.result()))
      if (NodeCall(call.analysis(), user).is(ops::Opcode::kWhere)) return false;
    return true;
  }

  /// A quotient by 0 that an exporter has already computed.
  static void check_infinite_constant(const NodeCall& call, Reporter& out) {
    if (call.result() == ValueId::kAbsent) return;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
      if (is_constant_with(call.operand(side), call, HUGE_VAL)) {
        out.report(findings::Severity::kWarning, call.id(),
                   fmt::format("{} by {}, one of whose numbers is infinity", call.op_name(), call.operand(side).name()))
            .fix(
                "look for a division by 0 among the constants, such as the logarithm of 1 for the first of some ranks");
        return;
      }
  }

  /// A table that has infinity where the program or its exporter computed the logarithm of 0, looked up and added to
  /// the loss.
  static void check_infinite_row(const NodeCall& call, Reporter& out) {
    const Operand table = call.operand(0), index = call.operand(1);
    if (!table.present() || !index.present() || call.result() == ValueId::kAbsent ||
        !table.fact().dtypes.proves(DTypeSet::floats()))
      return;
    const Range& range = table.fact().range;
    if ((std::isfinite(range.lo) && std::isfinite(range.hi)) || one_float_outputs(call.analysis()).empty()) return;
    const auto numbers = constant_numbers(call.analysis(), table.value(), kMostNumbers);
    const auto shape = call.facts().dims_of(table.fact().shape);
    if (!numbers || shape.size() != 1) return;
    const auto is_infinite = [](double number) { return std::isinf(number); };
    const auto at = std::ranges::find_if(*numbers, is_infinite);
    if (at == numbers->end() || std::ranges::all_of(*numbers, is_infinite)) return;
    const auto row = static_cast<double>(at - numbers->begin());
    if (index.fact().range.lo > row || index.fact().range.hi < row || index.fact().range.lo == index.fact().range.hi)
      return;
    const NodeId sum = where_added_up(call);
    if (sum == NodeId::kNone) return;
    out.report(findings::Severity::kWarning, call.id(),
               fmt::format("{} has {} at index {}, and the loss adds it up", table.name(),
                           *at < 0 ? "-infinity" : "infinity", static_cast<std::int64_t>(row)))
        .certainty(ops::Certainty::kMay,
                   fmt::format("{} has {} among its elements", index.name(), static_cast<std::int64_t>(row)))
        .note_at(sum, "added up here")
        .fix("look for the logarithm of 0 or a division by 0 among the constants, and bound what it takes");
  }

  /// Where the elements of a value are summed after steps that keep infinity; kNone where they may have got a meaning,
  /// such as scores that a softmax hides.
  static NodeId where_added_up(const NodeCall& call) {
    constexpr std::size_t kMaxValues = 16;
    std::vector<ValueId> values{call.result()};
    NodeId found = NodeId::kNone;
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : call.analysis().users(values[i])) {
        const NodeCall use(call.analysis(), user);
        call.facts().meter().charge(4);
        if (use.result() == ValueId::kAbsent) continue;
        if (use.is(ops::Opcode::kWhere) || use.is(ops::Opcode::kSoftmax) || use.is(ops::Opcode::kLogSoftmax) ||
            use.is(ops::Opcode::kReduceLogSumExp) || use.is(ops::Opcode::kClip) || use.is(ops::Opcode::kMax) ||
            use.is(ops::Opcode::kMin) || use.is(ops::Opcode::kReduceMax))
          return NodeId::kNone;
        if (use.is(ops::Opcode::kReduceMean) || use.is(ops::Opcode::kReduceSum)) found = user;
        const bool passes = passes_elements(use) || use.is(ops::Opcode::kAdd) || use.is(ops::Opcode::kSub) ||
                            use.is(ops::Opcode::kNeg) || use.is(ops::Opcode::kMul);
        if (passes && values.size() < kMaxValues) values.push_back(use.result());
      }
    return found;
  }

  /// -infinity for a whole row of scores: exponentials that are all 0 add up to 0.
  static void check_hidden_row(const NodeCall& call, Reporter& out) {
    Operand scores = call.operand(0);
    for (int step = 0; step < 4 && scores.present(); ++step) {
      const NodeId maker = producer_of(scores, call.model());
      if (maker == NodeId::kNone) return;
      const NodeCall made(call.analysis(), maker);
      const Attribute* axis = call.attribute("axis");
      const auto rank = static_cast<std::int64_t>(call.facts().dims_of(call.operand(0).fact().shape).size());
      if (rank == 0 || (axis != nullptr && axis->i != -1 && axis->i != rank - 1)) return;
      if (made.is(ops::Opcode::kWhere)) {
        const bool hides_true = number_of(made.operand(1)) == -HUGE_VAL,
                   hides_false = number_of(made.operand(2)) == -HUGE_VAL;
        if (hides_true != hides_false) report_row(call, made.operand(0), hides_true ? 1 : 0, out);
        return;
      }
      if (made.is(ops::Opcode::kAdd)) {
        for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
          if (report_row(call, made.operand(side), -HUGE_VAL, out)) return;
        return;
      }
      if (!made.is(ops::Opcode::kCast) && !made.is(ops::Opcode::kIdentity)) return;
      scores = made.operand(0);
    }
  }

  static bool report_row(const NodeCall& call, const Operand& mask, double hidden, Reporter& out) {
    if (!mask.present() || mask.fact().kind != ValueKind::kTensor || mask.fact().shape == ShapeId::kUnranked)
      return false;
    const auto shape = call.facts().dims_of(mask.fact().shape);
    if (shape.empty() || one_float_outputs(call.analysis()).empty()) return false;
    const auto columns = call.facts().dims().as_constant(shape.back());
    if (!columns || *columns < 2) return false;
    const auto numbers = constant_numbers(call.analysis(), mask.value(), kMostNumbers);
    if (!numbers || numbers->size() % static_cast<std::size_t>(*columns) != 0) return false;
    const auto width = static_cast<std::size_t>(*columns);
    for (std::size_t row = 0; row * width < numbers->size(); ++row) {
      const auto first = numbers->begin() + static_cast<std::ptrdiff_t>(row * width);
      if (!std::all_of(first, first + static_cast<std::ptrdiff_t>(width), [&](double each) { return each == hidden; }))
        continue;
      out.report(findings::Severity::kWarning, call.id(),
                 fmt::format("row {} of {} hides all scores: the softmax of -infinity alone is NaN", row, mask.name()))
          .fix("leave at least one score of each row, such as the diagonal");
      return true;
    }
    return false;
  }

  static void check_zero_constant(const NodeCall& call, Reporter& out) {
    if (!is_constant_with(call.operand(1), call, 0) || !call.operand(1).fact().dtypes.proves(DTypeSet::floats()))
      return;
    out.report(findings::Severity::kWarning, call.id(),
               fmt::format("{} by {}, one of whose numbers is 0", call.op_name(), call.operand(1).name()))
        .fix("count from 1, or add a small number to the divisor");
  }

  static void check_zero(losses::ScoreValues& scores, const losses::Expressions& expressions, NodeId logarithm,
                         Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const Operand operand = NodeCall(analysis, logarithm).operand(0);
    if (!operand.present() || operand.taint().has(Aspect::kValue)) return;
    const ValueId result = expressions.result(logarithm);
    if (result == ValueId::kAbsent || is_clamped(analysis, result) ||
        is_operand_as_written(out, expressions, logarithm, operand.value(), operand.value()) == AsWritten::kNo)
      return;
    const losses::ScoreValues::Reach reach = scores.of(operand.value());
    if (reach.negative || (!reach.comes_to_zero && !reach.saturates_at_zero)) return;
    const NodeId source = reach.layer != NodeId::kNone ? reach.layer : reach.normaliser;
    if (source == NodeId::kNone || is_chosen_by_operand(expressions, logarithm)) return;
    const std::string_view origin = NodeCall(analysis, source).op_name();
    out.report(findings::Severity::kWarning, logarithm,
               fmt::format("logarithm of {}, which is 0 for some scores: -infinity", operand.name()))
        .certainty(ops::Certainty::kMay, reach.comes_to_zero
                                             ? fmt::format("scores for which {} is 0", operand.name())
                                             : fmt::format("a score so large that {} rounds to 0", operand.name()))
        .note_at(source, source == reach.layer ? fmt::format("the output of {} may have any value", origin)
                                               : fmt::format("{} makes probabilities here, up to 1", origin))
        .fix("keep the operand above 0, as with Softplus for Relu, or a Clip or summand of 1e-6");
  }

  /// log(1 - sigmoid(x)): in float32 the sigmoid is 1 from 17 on. What an exporter makes of a loss of scores has a
  /// constant of its own shape, or is one call.
  static bool check_rest_of_sigmoid(const losses::Expressions& expressions, NodeId logarithm, Reporter& out) {
    constexpr double kRoundsToOne = 17;
    const dataflow::Analysis& analysis = expressions.analysis();
    const NodeCall call(analysis, logarithm);
    if (!call.is(ops::Opcode::kLog) || call.result() == ValueId::kAbsent || is_kept_finite(expressions, call.result()))
      return false;
    const ValueId operand = call.operand(0).value();
    if (operand == ValueId::kAbsent || analysis.taint(operand).has(Aspect::kValue)) return false;
    const ValueId rest = before_stretch(expressions, operand), share = expressions.complement(rest);
    if (share == ValueId::kAbsent ||
        is_operand_as_written(out, expressions, logarithm, operand, rest) == AsWritten::kNo)
      return false;
    const NodeId subtracts = expressions.producer(rest),
                 sigmoid = expressions.producer(before_stretch(expressions, share));
    if (expressions.op(sigmoid) != ops::Opcode::kSigmoid ||
        expressions.is_constant_of_rank_one(expressions.operand(subtracts, 0)) ||
        expressions.is_constant_of_rank_one(expressions.operand(subtracts, 1)))
      return false;
    const std::string_view written = out.locations().metadata(logarithm, "pkg.torch.onnx.fx_node");
    if (!written.empty() && written == out.locations().metadata(sigmoid, "pkg.torch.onnx.fx_node")) return false;
    const ValueId score = expressions.operand(sigmoid, 0);
    if (score == ValueId::kAbsent || !(analysis.fact(score).range.hi >= kRoundsToOne)) return false;
    out.report(findings::Severity::kWarning, logarithm,
               fmt::format("logarithm of 1 - {}, which is 0 for large scores: the sigmoid rounds to 1",
                           Operand(analysis, share).name()))
        .certainty(ops::Certainty::kMay, fmt::format("{} has 17 among its elements", Operand(analysis, score).name()))
        .note_at(sigmoid, "the sigmoid is computed here")
        .fix("use the logarithm of the sigmoid of -x, as logsigmoid gives it, or a loss that takes scores");
    return true;
  }

  /// A Where that asks the operand takes something else where it is 0.
  static bool is_chosen_by_operand(const losses::Expressions& expressions, NodeId logarithm) {
    const losses::Formula operand(expressions, expressions.operand(logarithm, 0));
    ValueId value = expressions.result(logarithm);
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const auto users = expressions.users(value);
      if (users.size() != 1) return false;
      const NodeId user = users.front();
      if (expressions.op(user) == ops::Opcode::kWhere) {
        const losses::Formula condition(expressions, expressions.operand(user, 0));
        if (!condition.is_complete()) return true;
        for (const losses::Formula::Part& part : condition.parts())
          for (const losses::Formula::Part& known : operand.parts())
            if (part.kind != losses::Formula::PartKind::kConstant && part.value == known.value) return true;
      }
      value = expressions.result(user);
    }
    return false;
  }

  /// The value before it was moved and cast.
  static Operand source(Operand operand, const NodeCall& call) {
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = producer_of(operand, call.model());
      if (node == NodeId::kNone) break;
      const NodeCall before(call.analysis(), node);
      if ((!passes_elements(before) && !before.is(ops::Opcode::kCast)) || !before.operand(0).present()) break;
      operand = before.operand(0);
    }
    return operand;
  }

  /// Probabilities in float16 are 0 from 6e-8 on, and 1 from 0.9998 on; nothing as small as that keeps them off.
  static void check_half(const NodeCall& call, Reporter& out) {
    if (call.operand(0).fact().dtypes != DTypeSet(DType::kFloat16)) return;
    Operand at = call.operand(0);
    bool complement = false;
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = producer_of(at, call.model());
      if (node == NodeId::kNone) return;
      const NodeCall before(call.analysis(), node);
      const bool squashes = before.is(ops::Opcode::kSoftmax) || before.is(ops::Opcode::kSigmoid);
      // Probabilities of a wider dtype round when they are cast, and what is done to them before may keep them off 0.
      if (at.fact().dtypes != DTypeSet(DType::kFloat16) && !squashes) return;
      const auto adds_nothing = [&](std::size_t side) {
        const auto guard = number_of(before.operand(side));
        return guard && std::abs(*guard) < kSmallest;
      };
      if (squashes) {
        if (is_clamped(call.analysis(), call.result())) return;
        out.report(findings::Severity::kWarning, call.id(),
                   fmt::format("logarithm of probabilities in float16, which {} rounds to {}", before.op_name(),
                               complement ? "1 from 0.9998 on" : "0 from 6e-8 on"))
            .certainty(ops::Certainty::kMay, before.is(ops::Opcode::kSoftmax) ? "the scores of a row are 18 apart"
                                             : complement                     ? "a score is above 9"
                                                                              : "a score is below -18")
            .note_at(node, fmt::format("{} becomes probabilities here", Operand(call.analysis(), at.value()).name()))
            .fix(
                "use LogSoftmax or a loss that takes scores, or compute the probabilities in float32; a guard below "
                "6e-8 is 0 in float16");
        return;
      }
      const bool is_guard =
          before.is(ops::Opcode::kAdd) || (before.is(ops::Opcode::kMax) && !before.operand(2).present());
      if (is_guard && (adds_nothing(0) || adds_nothing(1))) {
        at = before.operand(adds_nothing(0) ? 1 : 0);
      } else if (before.is(ops::Opcode::kClip) && bounds_nothing(before, complement)) {
        at = before.operand(0);
      } else if (before.is(ops::Opcode::kSub) && number_of(before.operand(0)) == 1) {
        complement = !complement;
        at = before.operand(1);
      } else if (passes_elements(before) || before.is(ops::Opcode::kCast)) {
        at = before.operand(0);
      } else {
        return;
      }
    }
  }

  /// Probabilities are let down to 0, or up to 1 where their complement is what may be 0.
  static bool bounds_nothing(const NodeCall& clip, bool complement) {
    const auto least = number_of(clip.operand(1)), most = number_of(clip.operand(2));
    if (complement) return clip.operand(1).present() && (!clip.operand(2).present() || (most && *most >= 1));
    return least && std::abs(*least) < kSmallest;
  }

  /// The root of squares in float16, which are 0 from 1.7e-4 on, divides; nothing as small as 1e-8 keeps it off 0.
  static void check_half_root(const losses::Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    if (call.result() == ValueId::kAbsent || analysis.fact(call.result()).dtypes != DTypeSet(DType::kFloat16) ||
        is_kept_finite(expressions, call.result()))
      return;
    ValueId value = call.operand(0).value();
    NodeId guard = NodeId::kNone;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      if (analysis.fact(value).dtypes != DTypeSet(DType::kFloat16) || analysis.taint(value).has(Aspect::kValue)) return;
      const NodeId node = expressions.producer(value);
      const auto guarded = with_number(expressions, node);
      if (expressions.op(node) == ops::Opcode::kAdd && guarded && std::abs(guarded->number) < kSmallest) {
        guard = node;
        value = guarded->value;
      } else if (keeps_elements(expressions.op(node))) {
        value = expressions.operand(node, 0);
      } else {
        break;
      }
    }
    const NodeId sum = expressions.producer(value);
    const bool is_sum =
        expressions.op(sum) == ops::Opcode::kReduceMean || expressions.op(sum) == ops::Opcode::kReduceSum;
    if (!is_sum || expressions.square_base(expressions.operand(sum, 0)) == ValueId::kAbsent) return;
    const NodeId divides = division_by(expressions, call.result());
    if (divides == NodeId::kNone) return;
    out.report(
           findings::Severity::kWarning, guard != NodeId::kNone ? guard : call.id(),
           fmt::format("the root of {} divides, and nothing keeps it off 0: squares of numbers below 1.7e-4 are 0 in "
                       "float16",
                       Operand(analysis, value).name()))
        .certainty(ops::Certainty::kMay, "all numbers of a row are 0, or close to it")
        .note_at(divides, "divided here")
        .fix("compute the squares in float32, or use a summand that float16 has, such as 1e-5; 1e-8 is 0 in float16");
  }

  /// The node that divides by a value, or inverts it.
  static NodeId division_by(const losses::Expressions& expressions, ValueId value) {
    for (int step = 0; step < 3 && value != ValueId::kAbsent; ++step) {
      ValueId next = ValueId::kAbsent;
      for (const NodeId user : expressions.users(value)) {
        const ops::Opcode opcode = expressions.op(user);
        if (opcode == ops::Opcode::kDiv && expressions.operand(user, 1) == value) return user;
        if (is_reciprocal(expressions, user)) return user;
        if (repeats_elements(opcode)) next = expressions.result(user);
      }
      value = next;
    }
    return NodeId::kNone;
  }

  /// 0 * log(0): one-hot labels and masks times their own logarithm.
  static void check_zero_times_logarithm(const NodeCall& call, Reporter& out) {
    const Operand labels = source(call.operand(0), call);
    const NodeId maker = producer_of(labels, call.model());
    if (maker == NodeId::kNone) return;
    const NodeCall made(call.analysis(), maker);
    const bool truth = labels.fact().dtypes.proves(DTypeSet(DType::kBool));
    if (!made.is(ops::Opcode::kOneHot) && !(truth && made.has(ops::OpTrait::kElementwise))) return;
    ValueId value = call.result();
    constexpr int kMaxUses = 4;
    for (int step = 0; step < kMaxUses && value != ValueId::kAbsent; ++step) {
      const auto users = call.analysis().users(value);
      if (users.size() != 1) return;
      const NodeCall use(call.analysis(), users.front());
      if (use.is(ops::Opcode::kMul)) {
        const Operand other = use.operand(use.operand(0).value() == value ? 1 : 0);
        if (!other.present() || source(other, call).value() != labels.value() || use.result() == ValueId::kAbsent)
          return;
        for (const NodeId next : call.analysis().users(use.result()))
          if (NodeCall(call.analysis(), next).is(ops::Opcode::kWhere)) return;
        out.report(findings::Severity::kWarning, use.id(),
                   fmt::format("0 times the logarithm of 0 is NaN: {} holds zeros and ones", call.operand(0).name()))
            .certainty(ops::Certainty::kMay, fmt::format("{} has 0 among its elements", call.operand(0).name()))
            .note_at(call.id(), "the logarithm is taken here")
            .fix("choose 0 where the label is 0, or leave the term out: it does not depend on the model");
        return;
      }
      if (!use.is(ops::Opcode::kSub) && !use.is(ops::Opcode::kAdd) && !use.is(ops::Opcode::kNeg) &&
          !use.is(ops::Opcode::kCast) && !keeps_elements(opcode_of(use.entry())))
        return;
      value = use.result();
    }
  }

  /// Divided by how many numbers are above a threshold: none may be.
  static void check_empty_selection(const NodeCall& call, Reporter& out) {
    if (!call.operand(1).fact().dtypes.proves(DTypeSet::floats())) return;
    const Operand count = source(call.operand(1), call);
    const NodeId sum = producer_of(count, call.model());
    if (sum == NodeId::kNone) return;
    const NodeCall summed(call.analysis(), sum);
    if (!summed.is(ops::Opcode::kReduceSum) || !summed.operand(0).present()) return;
    const Operand mask = source(summed.operand(0), call);
    const NodeId comparison = producer_of(mask, call.model());
    if (comparison == NodeId::kNone) return;
    const NodeCall compares(call.analysis(), comparison);
    if (!compares.is(ops::Opcode::kCompare)) return;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Operand compared = compares.operand(1 - side);
      const auto threshold = number_of(compares.operand(side));
      if (!threshold || !compared.present() || !compared.fact().dtypes.proves(DTypeSet::floats())) continue;
      const Range& range = compared.fact().range;
      if (!(*threshold > range.lo && *threshold < range.hi)) continue;
      out.report(findings::Severity::kWarning, call.id(),
                 fmt::format("{} divides by the number of elements of {} beyond {}, which may be 0", call.op_name(),
                             compared.name(), fmt::format("{:.4g}", *threshold)))
          .certainty(ops::Certainty::kMay, fmt::format("no element of {} is", compared.name()))
          .note_at(comparison, "compared here")
          .fix("keep the divisor at least 1, as with a Max or Clip");
      return;
    }
  }
};

const RegisterRule<InvalidDomain> kRegisterInvalidDomain;

}  // namespace
}  // namespace tensorlint::rules
