#include "passes/losses/loss_sites.h"

#include <algorithm>
#include <array>
#include <set>

namespace tensorlint {
namespace {

struct NamedLoss {
  std::string_view name;
  LossKind kind;
};

/// Operators whose one node is a whole loss: ONNX, the builder's domain, and the exporter's function library.
constexpr std::array kLossOperators{
    NamedLoss{"SoftmaxCrossEntropyLoss", LossKind::kCrossEntropy},
    NamedLoss{"NegativeLogLikelihoodLoss", LossKind::kNegativeLogLikelihood},
};
constexpr std::array kOwnLossOperators{
    NamedLoss{"MseLoss", LossKind::kMse},
    NamedLoss{"L1Loss", LossKind::kL1},
    NamedLoss{"SmoothL1Loss", LossKind::kHuber},
    NamedLoss{"HuberLoss", LossKind::kHuber},
    NamedLoss{"BceLoss", LossKind::kBinaryCrossEntropy},
    NamedLoss{"BceWithLogitsLoss", LossKind::kBinaryCrossEntropyWithLogits},
    NamedLoss{"KlDivLoss", LossKind::kKlDivergence},
    NamedLoss{"CrossEntropyLoss", LossKind::kCrossEntropy},
    NamedLoss{"NllLoss", LossKind::kNegativeLogLikelihood},
};
/// PyTorch's operators, as exporters name them in metadata. Longer names first: one may begin another.
constexpr std::array kAtenLosses{
    NamedLoss{"aten.mse_loss", LossKind::kMse},
    NamedLoss{"aten.l1_loss", LossKind::kL1},
    NamedLoss{"aten.smooth_l1_loss", LossKind::kHuber},
    NamedLoss{"aten.huber_loss", LossKind::kHuber},
    NamedLoss{"aten.binary_cross_entropy_with_logits", LossKind::kBinaryCrossEntropyWithLogits},
    NamedLoss{"aten.binary_cross_entropy", LossKind::kBinaryCrossEntropy},
    NamedLoss{"aten.kl_div", LossKind::kKlDivergence},
    NamedLoss{"aten.nll_loss", LossKind::kNegativeLogLikelihood},
    NamedLoss{"aten.cross_entropy_loss", LossKind::kCrossEntropy},
};

template <std::size_t kSize>
std::optional<LossKind> find_kind(const std::array<NamedLoss, kSize>& losses, std::string_view name) {
  for (const NamedLoss& loss : losses)
    if (loss.name == name) return loss.kind;
  return std::nullopt;
}

/// Values that the walk for parameters behind an operand looks at.
constexpr std::size_t kMaxWalk = 4096;

class Finder {
 public:
  explicit Finder(const Analysis& analysis) : analysis_(analysis), model_(analysis.model()) {}

  std::vector<LossSite> find() {
    const std::size_t operators = model_.operators.size();
    std::vector<std::optional<LossKind>> by_operator(operators);
    std::vector<bool> is_difference(operators);
    bool any = false;
    for (std::size_t i = 0; i < operators; ++i) {
      const Operator& op = model_.operators[i];
      const std::string_view domain = model_.text(op.domain), name = model_.text(op.name);
      if (domain.empty()) by_operator[i] = find_kind(kLossOperators, name);
      if (domain == "tensorlint") by_operator[i] = find_kind(kOwnLossOperators, name);
      is_difference[i] = domain.empty() && name == "Sub";
      any = any || by_operator[i] || is_difference[i];
    }
    if (!any) return {};
    for (std::size_t n = 0; n < model_.nodes.size(); ++n) {
      const auto op = static_cast<std::size_t>(model_.nodes[n].op);
      const auto id = static_cast<NodeId>(n);
      if (by_operator[op]) add_operator(id, *by_operator[op]);
      if (is_difference[op]) add_difference(id);
    }
    return std::move(sites_);
  }

 private:
  bool is(NodeId node, std::string_view name) const {
    const Operator& op = model_.op(model_.node(node));
    return op.domain == NameId::kEmpty && model_.text(op.name) == name;
  }

  void add_operator(NodeId id, LossKind kind) {
    const auto operands = model_.operands(model_.node(id));
    if (operands.size() < 2) return;
    sites_.push_back({kind, LossEvidence::kOperator, id, operands[0], operands[1], {id}});
  }

  ValueId only_result(NodeId id) const {
    const auto results = model_.results(model_.node(id));
    return results.size() == 1 ? results[0] : ValueId::kAbsent;
  }

  bool is_number(ValueId value, double number) const {
    const Content* content = analysis_.facts().content(analysis_.fact(value).content);
    if (content == nullptr || content->size() != 1) return false;
    if (!content->floats.empty()) return content->floats[0] == number;
    const auto constant = analysis_.facts().dims().as_constant(content->integers[0]);
    return constant && static_cast<double>(*constant) == number;
  }

  /// Every axis is reduced: there are no axes, or they are empty and that means all.
  bool reduces_to_scalar(NodeId id) const {
    if (!is(id, "ReduceMean") && !is(id, "ReduceSum")) return false;
    const Node& node = model_.node(id);
    if (model_.attribute(node, "axes") != nullptr) return false;
    const Attribute* noop = model_.attribute(node, "noop_with_empty_axes");
    if (noop != nullptr && noop->i != 0) return false;
    const auto operands = model_.operands(node);
    if (operands.size() < 2 || operands[1] == ValueId::kAbsent) return true;
    const Fact& axes = analysis_.fact(operands[1]);
    const Content* content = analysis_.facts().content(axes.content);
    const Fact& data = analysis_.fact(operands[0]);
    const bool ranked = data.shape != ShapeId::kUnranked;
    return content != nullptr && ranked && content->size() == analysis_.facts().dims_of(data.shape).size();
  }

  /// `a - b`, squared or made absolute, then summed or averaged over everything.
  void add_difference(NodeId difference) {
    const auto operands = model_.operands(model_.node(difference));
    const ValueId result = only_result(difference);
    if (operands.size() != 2 || result == ValueId::kAbsent || operands[0] == operands[1]) return;
    for (const NodeId next : analysis_.users(result)) {
      LossKind kind = LossKind::kMse;
      const auto inputs = model_.operands(model_.node(next));
      if (is(next, "Abs")) {
        kind = LossKind::kL1;
      } else if (!(is(next, "Mul") && inputs.size() == 2 && inputs[0] == inputs[1]) &&
                 !(is(next, "Pow") && inputs.size() == 2 && inputs[0] == result && is_number(inputs[1], 2))) {
        continue;
      }
      const ValueId distance = only_result(next);
      if (distance == ValueId::kAbsent) continue;
      for (const NodeId last : analysis_.users(distance)) {
        if (!reduces_to_scalar(last)) continue;
        const auto [prediction, target] = tell_apart(operands[0], operands[1]);
        std::vector<NodeId> nodes{difference, next, last};
        std::sort(nodes.begin(), nodes.end());
        sites_.push_back({kind, LossEvidence::kPattern, difference, prediction, target, std::move(nodes)});
        return;
      }
    }
  }

  /// The prediction is what parameters go into. (a, b) where both or neither do: programs write prediction first.
  std::pair<ValueId, ValueId> tell_apart(ValueId a, ValueId b) const {
    return !depends_on_parameters(a) && depends_on_parameters(b) ? std::pair(b, a) : std::pair(a, b);
  }

  bool depends_on_parameters(ValueId value) const {
    std::vector<ValueId> pending{value};
    std::set<ValueId> seen;
    while (!pending.empty() && seen.size() < kMaxWalk) {
      const ValueId at = pending.back();
      pending.pop_back();
      if (at == ValueId::kAbsent || !seen.insert(at).second) continue;
      const Value& known = model_.value(at);
      if (known.origin == ValueOrigin::kInitializer && known.initializer != nullptr) {
        const Fact& fact = analysis_.fact(at);
        if (fact.dtypes.proves(DTypeSet::floats()) && known.initializer->element_count().value_or(2) > 1) return true;
      }
      if (known.producer != NodeId::kNone)
        for (const ValueId operand : model_.operands(model_.node(known.producer))) pending.push_back(operand);
    }
    return false;
  }

  const Analysis& analysis_;
  const Model& model_;
  std::vector<LossSite> sites_;
};

}  // namespace

std::string_view to_text(LossKind kind) {
  switch (kind) {
    case LossKind::kMse: return "mean squared error";
    case LossKind::kL1: return "L1 loss";
    case LossKind::kHuber: return "Huber loss";
    case LossKind::kBinaryCrossEntropy: return "binary cross-entropy";
    case LossKind::kBinaryCrossEntropyWithLogits: return "binary cross-entropy with logits";
    case LossKind::kKlDivergence: return "KL divergence";
    case LossKind::kNegativeLogLikelihood: return "negative log-likelihood";
    case LossKind::kCrossEntropy: return "cross-entropy";
  }
  return {};
}

bool is_regression(LossKind kind) { return !takes_class_indices(kind); }

bool takes_class_indices(LossKind kind) { return kind == LossKind::kNegativeLogLikelihood || kind == LossKind::kCrossEntropy; }

std::optional<LossKind> loss_named(std::string_view metadata) {
  // Only the innermost operator counts: a module around it may be called anything.
  const std::size_t at = metadata.rfind("aten.");
  if (at == std::string_view::npos) return std::nullopt;
  for (const NamedLoss& loss : kAtenLosses)
    if (metadata.substr(at).starts_with(loss.name)) return loss.kind;
  return std::nullopt;
}

std::vector<LossSite> find_losses(const Analysis& analysis) { return Finder(analysis).find(); }

}  // namespace tensorlint
