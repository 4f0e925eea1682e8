#include "analyzer/rules/loss/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

struct FoundMistakes {
  explicit FoundMistakes(const dataflow::Analysis&) {}
  std::optional<std::vector<losses::AxisMistake>> found;
};

}  // namespace

const std::vector<losses::AxisMistake>& axis_mistakes(Reporter& out) {
  auto& known = out.shared<FoundMistakes>().found;
  if (known) return *known;
  known.emplace();
  const std::vector<ValueId> outputs = one_float_outputs(out.analysis());
  if (outputs.empty()) return *known;
  auto& [expressions, origins] = out.shared<losses::LossAxes>();
  known = losses::find_axis_mistakes(expressions, origins, outputs);
  return *known;
}

std::string axis_before_moves(const dataflow::Analysis& analysis, const losses::AxisMistake& mistake) {
  return mistake.moved_from
             ? fmt::format(", axis {} of {}", *mistake.moved_from, Operand(analysis, mistake.value).name())
             : std::string();
}

std::string described(const dataflow::Analysis& analysis, ValueId value) {
  return fmt::format("{} {}", Operand(analysis, value).name(), analysis.facts().shape_text(analysis.fact(value).shape));
}

NodeId producer_behind_identities(const dataflow::Analysis& analysis, ValueId value) {
  constexpr int kLongestChain = 64;
  const Model& model = analysis.model();
  for (int step = 0; step < kLongestChain && value != ValueId::kAbsent; ++step) {
    const NodeId producer = model.value(value).producer;
    if (producer == NodeId::kNone) return NodeId::kNone;
    const NodeCall call(analysis, producer);
    const bool floats = call.is(ops::Opcode::kCast) && call.operand(0).present() &&
                        call.operand(0).fact().dtypes.proves(DTypeSet::floats()) &&
                        analysis.fact(call.result()).dtypes.proves(DTypeSet::floats());
    if (!call.is(ops::Opcode::kIdentity) && !call.is(ops::Opcode::kDropout) && !floats) return producer;
    value = call.operand(0).value();
  }
  return NodeId::kNone;
}

bool is_clamped(const dataflow::Analysis& analysis, ValueId value) {
  const Model& model = analysis.model();
  return std::ranges::any_of(analysis.users(value), [&](NodeId user) {
    const ops::Opcode opcode = opcode_of(analysis.entry(model.node(user)));
    return opcode == ops::Opcode::kClip || opcode == ops::Opcode::kMin || opcode == ops::Opcode::kMax;
  });
}

bool walk_back(const losses::Expressions& expressions, ValueId from,
               const std::function<bool(ValueId value, NodeId node)>& visit) {
  constexpr std::size_t kMaxValues = 400;
  std::vector<ValueId> pending{from};
  Visited<ValueId> seen(expressions.analysis().meter());
  while (!pending.empty() && seen.size() < kMaxValues && !expressions.is_spent()) {
    const ValueId value = pending.back();
    pending.pop_back();
    const NodeId node = expressions.producer(value);
    if (node == NodeId::kNone || !seen.insert(value) || !visit(value, node)) continue;
    for (const ValueId operand : expressions.analysis().operands(node))
      if (operand != ValueId::kAbsent) pending.push_back(operand);
  }
  return pending.empty();
}

bool comes_from_layer(const losses::Expressions& expressions, ValueId value) {
  using ops::Opcode;
  bool found = false;
  walk_back(expressions, value, [&](ValueId, NodeId node) {
    const Opcode opcode = expressions.op(node);
    found |= opcode == Opcode::kMatMul || opcode == Opcode::kConv || opcode == Opcode::kRecurrence;
    return !found;
  });
  return found;
}

bool is_reduction_or_elementwise(const losses::Expressions& expressions, NodeId node) {
  const ops::Opcode opcode = expressions.op(node);
  return ops::moves_elements(opcode) || opcode == ops::Opcode::kCast || opcode == ops::Opcode::kGatherElements ||
         has_trait(expressions.entry(node), ops::OpTrait::kReduction) ||
         has_trait(expressions.entry(node), ops::OpTrait::kElementwise);
}

std::vector<NodeId> summed_logarithms(const losses::Expressions& expressions, ValueId loss) {
  std::vector<NodeId> found;
  walk_back(expressions, loss, [&](ValueId, NodeId node) {
    if (expressions.op(node) != ops::Opcode::kLog) return is_reduction_or_elementwise(expressions, node);
    found.push_back(node);
    return false;
  });
  std::ranges::sort(found);
  return found;
}

bool is_of_unit_interval(const losses::Expressions& expressions, NodeId node) {
  const ops::ElementValue element = dataflow::element_function(expressions.analysis(), node, 1);
  if (element == nullptr || expressions.op(node) != ops::Opcode::kOther ||
      !has_trait(expressions.entry(node), ops::OpTrait::kElementwise))
    return false;
  const auto is_defined = [&](double number) { return !std::isnan(element({std::array{number}, {}})); };
  return is_defined(0.5) && is_defined(-0.5) && !is_defined(1.2) && !is_defined(-1.2);
}

bool is_one_float(const dataflow::Analysis& analysis, ValueId value) {
  const Fact& fact = analysis.fact(value);
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked || !fact.dtypes.proves(DTypeSet::floats()))
    return false;
  return std::ranges::all_of(analysis.facts().dims_of(fact.shape),
                             [&](Dim dim) { return analysis.facts().dims().is_constant(dim, 1); });
}

std::vector<ValueId> one_float_outputs(const dataflow::Analysis& analysis) {
  /// A training step gives a loss and some metrics.
  constexpr std::size_t kMaxOutputs = 16;
  const Model& model = analysis.model();
  std::vector<ValueId> found;
  if (model.graphs.empty() || model.graph(GraphId::kMain).outputs.size() > kMaxOutputs) return found;
  for (const ValueId output : analysis.outputs(GraphId::kMain))
    if (output != ValueId::kAbsent && is_one_float(analysis, output)) found.push_back(output);
  return found;
}

bool has_no_loss_output(const dataflow::Analysis& analysis) {
  return one_float_outputs(analysis).empty() && !analysis.ran_out() && !analysis.meter().is_spent();
}

std::vector<AddedReduction> added_reductions(const losses::Expressions& expressions, ValueId loss) {
  using ops::Opcode;
  constexpr std::size_t kMaxValues = 24;
  struct Part {
    ValueId value;
    double factor;
  };
  std::vector<AddedReduction> found;
  std::vector<Part> parts{{loss, 1}};
  for (std::size_t i = 0; i < parts.size() && parts.size() < kMaxValues; ++i) {
    const auto [value, factor] = parts[i];
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
    const auto numbered = with_number(expressions, node);
    if (opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum) {
      found.push_back({node, factor});
    } else if (ops::keeps_elements(opcode) || opcode == Opcode::kCast) {
      parts.push_back({first, factor});
    } else if (opcode == Opcode::kNeg) {
      parts.push_back({first, -factor});
    } else if (opcode == Opcode::kMul && numbered) {
      parts.push_back({numbered->value, factor * numbered->number});
    } else if (opcode == Opcode::kDiv && numbered && !numbered->is_first) {
      parts.push_back({numbered->value, factor / numbered->number});
    } else if (opcode == Opcode::kAdd || opcode == Opcode::kSub) {
      parts.push_back({first, factor});
      parts.push_back({second, opcode == Opcode::kSub ? -factor : factor});
    }
  }
  return found;
}

LossTerms loss_terms(const losses::Expressions& expressions, ValueId loss) {
  using ops::Opcode;
  constexpr std::size_t kMaxTerms = 64;
  LossTerms found{.terms = {{loss, 1, 0}}};
  std::vector<LossTerm>& terms = found.terms;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto [value, factor] = std::pair(terms[i].value, terms[i].factor);
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    const auto numbered = with_number(expressions, node);
    const auto add = [&](ValueId part, double times) {
      terms[i].is_followed = true;
      if (part == ValueId::kAbsent) return;
      if (terms.size() < kMaxTerms)
        terms.push_back({part, times, i});
      else
        found.is_complete = false;
    };
    expressions.charge(4);
    if (opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum || ops::repeats_elements(opcode) ||
        opcode == Opcode::kCast) {
      add(expressions.operand(node, 0), factor);
    } else if (opcode == Opcode::kNeg) {
      add(expressions.operand(node, 0), -factor);
    } else if (opcode == Opcode::kMul && numbered) {
      add(numbered->value, factor * numbered->number);
    } else if (opcode == Opcode::kDiv && numbered && !numbered->is_first) {
      add(numbered->value, factor / numbered->number);
    } else if (opcode == Opcode::kAdd || opcode == Opcode::kSub) {
      add(expressions.operand(node, 0), factor);
      add(expressions.operand(node, 1), opcode == Opcode::kSub ? -factor : factor);
    } else if (opcode == Opcode::kConcat) {
      for (const ValueId part : expressions.analysis().operands(node)) {
        add(part, factor);
        if (!found.is_complete) break;
      }
    }
  }
  return found;
}

ValueId before_margin(const losses::Expressions& expressions, ValueId value) {
  if (value == ValueId::kAbsent) return value;
  value = before_stretch(expressions, value);
  const NodeId node = expressions.producer(value);
  const auto margin = with_number(expressions, node);
  const bool adds = expressions.op(node) == ops::Opcode::kAdd ||
                    (expressions.op(node) == ops::Opcode::kSub && margin && !margin->is_first);
  return margin && adds ? margin->value : value;
}

namespace {

/// The value itself above a threshold, and its softplus below.
NodeId softplus_of(const losses::Expressions& expressions, ValueId value) {
  NodeId softplus = NodeId::kNone, choice = NodeId::kNone;
  for (const NodeId user : expressions.users(value)) {
    if (expressions.op(user) == ops::Opcode::kSoftplus) softplus = user;
    if (expressions.op(user) == ops::Opcode::kWhere && expressions.operand(user, 1) == value) choice = user;
  }
  const ValueId below = expressions.operand(choice, 2);
  return softplus != NodeId::kNone && below != ValueId::kAbsent && expressions.users(value).size() == 3 &&
                 before_scale(expressions, below) == expressions.result(softplus)
             ? choice
             : NodeId::kNone;
}

}  // namespace

LossWay loss_way(const losses::Expressions& expressions, ValueId value, ValueId loss) {
  using ops::Opcode;
  constexpr int kMaxSteps = 20;
  bool rises = true;
  for (int step = 0; step < kMaxSteps; ++step) {
    if (value == loss) return rises ? LossWay::kRises : LossWay::kFalls;
    const auto users = expressions.users(value);
    const NodeId softplus = users.size() == 3 ? softplus_of(expressions, value) : NodeId::kNone;
    if (users.size() != 1 && softplus == NodeId::kNone) return LossWay::kUnknown;
    const NodeId user = softplus != NodeId::kNone ? softplus : users[0];
    const Opcode opcode = expressions.op(user);
    if (softplus != NodeId::kNone) {
      // It rises with the value.
    } else if (opcode == Opcode::kNeg) {
      rises = !rises;
    } else if (opcode == Opcode::kSub) {
      if (expressions.operand(user, 1) == value) rises = !rises;
    } else if (opcode == Opcode::kMul || opcode == Opcode::kDiv) {
      if (opcode == Opcode::kDiv && expressions.operand(user, 1) == value) return LossWay::kUnknown;
      const ValueId factor = expressions.beside(user, value);
      if (factor == ValueId::kAbsent) return LossWay::kUnknown;
      if (const auto number = expressions.number(factor)) {
        if (*number < 0) rises = !rises;
      } else if (!is_never_negative(expressions, factor)) {
        return LossWay::kUnknown;
      }
    } else if (opcode != Opcode::kAdd && opcode != Opcode::kMax && opcode != Opcode::kClip &&
               opcode != Opcode::kSigmoid && opcode != Opcode::kLog && opcode != Opcode::kSoftplus &&
               opcode != Opcode::kLogSigmoid && opcode != Opcode::kExp && opcode != Opcode::kReduceMean &&
               opcode != Opcode::kReduceSum && !ops::repeats_elements(opcode) && opcode != Opcode::kCast &&
               !is_rectifier(expressions, user)) {
      return LossWay::kUnknown;
    }
    value = expressions.result(user);
  }
  return LossWay::kUnknown;
}

bool has_class_probabilities(const ViolationCase& violation) {
  if (violation.loss == nullptr || !ops::takes_class_indices(violation.loss->kind)) return false;
  const FactStore& facts = violation.analysis.facts();
  const Fact &scores = violation.analysis.fact(violation.loss->prediction),
             &target = violation.analysis.fact(violation.loss->target);
  if (scores.shape == ShapeId::kUnranked || target.shape == ShapeId::kUnranked ||
      !target.dtypes.proves(DTypeSet::floats()))
    return false;
  return std::ranges::equal(facts.dims_of(scores.shape), facts.dims_of(target.shape),
                            [&](Dim a, Dim b) { return facts.dims().equal(a, b); });
}

}  // namespace tensorlint::rules
