#include "passes/losses/loss_sites.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "passes/losses/terms.h"

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

constexpr std::string_view kLossModules = "torch.nn.modules.loss.";
constexpr std::array kModuleLosses{
    NamedLoss{"MSELoss", LossKind::kMse},
    NamedLoss{"L1Loss", LossKind::kL1},
    NamedLoss{"SmoothL1Loss", LossKind::kHuber},
    NamedLoss{"HuberLoss", LossKind::kHuber},
    NamedLoss{"BCELoss", LossKind::kBinaryCrossEntropy},
    NamedLoss{"BCEWithLogitsLoss", LossKind::kBinaryCrossEntropyWithLogits},
    NamedLoss{"KLDivLoss", LossKind::kKlDivergence},
    NamedLoss{"NLLLoss", LossKind::kNegativeLogLikelihood},
    NamedLoss{"CrossEntropyLoss", LossKind::kCrossEntropy},
};

template <std::size_t kSize>
std::optional<LossKind> find_kind(const std::array<NamedLoss, kSize>& losses, std::string_view name) {
  for (const NamedLoss& loss : losses)
    if (loss.name == name) return loss.kind;
  return std::nullopt;
}

/// How far behind a distance its reduction may stand: weights, means over rows, a root, a scale.
constexpr int kMaxTail = 5;

class Finder {
 public:
  explicit Finder(const Analysis& analysis) : analysis_(analysis), model_(analysis.model()), terms_(analysis) {}

  std::vector<LossSite> find() {
    const std::size_t operators = model_.operators.size();
    std::vector<std::optional<LossKind>> by_operator(operators);
    for (std::size_t i = 0; i < operators; ++i) {
      const Operator& op = model_.operators[i];
      const std::string_view domain = model_.text(op.domain), name = model_.text(op.name);
      if (domain.empty()) by_operator[i] = find_kind(kLossOperators, name);
      if (domain == "tensorlint") by_operator[i] = find_kind(kOwnLossOperators, name);
    }
    for (std::size_t n = 0; n < model_.nodes.size(); ++n) {
      const auto id = static_cast<NodeId>(n);
      if (const auto kind = by_operator[static_cast<std::size_t>(model_.nodes[n].op)]) {
        add_operator(id, *kind);
        continue;
      }
      switch (terms_.op(id)) {
        case LossOp::kSub:
          if (!add_cross_entropy_of_two(id) && !add_divergence(id)) add_difference(id);
          break;
        case LossOp::kAdd: add_cross_entropy_of_two(id); break;
        case LossOp::kLog:
        case LossOp::kLogSoftmax: add_cross_entropy(id); break;
        default: break;
      }
    }
    return std::move(sites_);
  }

 private:
  using Nodes = std::vector<NodeId>;

  void add(LossKind kind, LossEvidence evidence, NodeId meeting, ValueId prediction, ValueId target, Nodes nodes) {
    if (meeting == NodeId::kNone || prediction == ValueId::kAbsent || target == ValueId::kAbsent) return;
    nodes.push_back(meeting);
    std::erase(nodes, NodeId::kNone);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    sites_.push_back({.kind = kind,
                      .evidence = evidence,
                      .meeting = meeting,
                      .prediction = prediction,
                      .target = target,
                      .prediction_source = terms_.source(prediction),
                      .target_source = terms_.source(target),
                      .nodes = std::move(nodes)});
  }

  void add_operator(NodeId id, LossKind kind) {
    const auto operands = model_.operands(model_.node(id));
    if (operands.size() >= 2) add(kind, LossEvidence::kOperator, id, operands[0], operands[1], {});
  }

  void append_makers(std::span<const ValueId> values, Nodes& nodes) const {
    for (const ValueId value : values) nodes.push_back(terms_.maker(value));
  }

  static bool contains(std::span<const ValueId> values, ValueId value) {
    return value != ValueId::kAbsent && std::find(values.begin(), values.end(), value) != values.end();
  }

  /// The node of a product that multiplies one of `values` itself; the last multiplication where there is none.
  NodeId product_with(std::span<const ValueId> factors, ValueId a, ValueId b) const {
    NodeId last = NodeId::kNone;
    for (const ValueId factor : factors) {
      const NodeId node = terms_.maker(factor);
      if (terms_.op(node) != LossOp::kMul) continue;
      const ValueId x = terms_.operand(node, 0), y = terms_.operand(node, 1);
      if ((x == a && y == b) || (x == b && y == a)) return node;
      if (last == NodeId::kNone) last = node;
    }
    return last;
  }

  /// Binary cross-entropy: a sum or difference of t * log(p) and (1 - t) * log(1 - p), or of (1 - t) * x and
  /// log(sigmoid(x)). Either is enough to know it by.
  bool add_cross_entropy_of_two(NodeId combination) {
    const ValueId left = terms_.operand(combination, 0), right = terms_.operand(combination, 1);
    if (!is_product(left) && !is_product(right)) return false;
    const std::vector<ValueId> a = terms_.factors(left), b = terms_.factors(right);
    return add_binary(combination, a, b) || add_binary(combination, b, a) || add_with_logits(combination, a, b) || add_with_logits(combination, b, a);
  }

  bool is_product(ValueId value) const {
    const LossOp made_by = terms_.op_of(value);
    return made_by == LossOp::kMul || made_by == LossOp::kNeg;
  }

  bool add_binary(NodeId combination, std::span<const ValueId> positive, std::span<const ValueId> negative) {
    for (const ValueId log_q : negative) {
      const auto q = terms_.log_term(log_q);
      if (!q || !q->complement) continue;
      for (const ValueId log_p : positive) {
        const auto p = terms_.log_term(log_p);
        if (!p || p->complement || p->argument == ValueId::kAbsent || terms_.source(p->argument) != terms_.source(q->argument)) continue;
        for (const ValueId other : negative) {
          const ValueId target = terms_.complement(other);
          if (!contains(positive, target)) continue;
          const NodeId first = product_with(positive, target, log_p), second = product_with(negative, other, log_q);
          // One exporter writes the loss with logits so, with constants of its own shape and the sign right behind.
          const bool exported = terms_.is_constant_of_rank_one(terms_.operand(terms_.maker(other), 0)) && is_negated(combination);
          const bool logits = exported && p->logit != ValueId::kAbsent;
          Nodes nodes{combination, first, second, terms_.maker(other)};
          append_makers(positive, nodes);
          append_makers(negative, nodes);
          drop_maker(p->argument, nodes);
          drop_maker(target, nodes);
          add(logits ? LossKind::kBinaryCrossEntropyWithLogits : LossKind::kBinaryCrossEntropy, LossEvidence::kPattern, std::min(first, second),
              logits ? p->logit : p->argument, target, std::move(nodes));
          return true;
        }
      }
    }
    return false;
  }

  bool is_negated(NodeId node) const {
    const auto users = terms_.users(terms_.result(node));
    return users.size() == 1 && terms_.op(users[0]) == LossOp::kNeg;
  }

  bool add_with_logits(NodeId combination, std::span<const ValueId> linear, std::span<const ValueId> logarithmic) {
    for (const ValueId log : logarithmic) {
      const auto term = terms_.log_term(log);
      if (!term || term->complement || !contains(linear, term->logit)) continue;
      for (const ValueId other : linear) {
        const ValueId target = terms_.complement(other);
        if (target == ValueId::kAbsent || target == term->logit) continue;
        const NodeId meeting = product_with(linear, other, term->logit);
        if (meeting == NodeId::kNone) continue;
        Nodes nodes{combination, terms_.maker(other), terms_.maker(log)};
        append_makers(linear, nodes);
        append_makers(logarithmic, nodes);
        append_class_weights(logarithmic, target, nodes);
        drop_maker(term->logit, nodes);
        drop_maker(target, nodes);
        add(LossKind::kBinaryCrossEntropyWithLogits, LossEvidence::kPattern, meeting, term->logit, target, std::move(nodes));
        return true;
      }
    }
    return false;
  }

  /// (w - 1) * t + 1 among the factors.
  void append_class_weights(std::span<const ValueId> factors, ValueId target, Nodes& nodes) const {
    for (const ValueId factor : factors) {
      if (terms_.op_of(factor) != LossOp::kAdd) continue;
      for (std::size_t i = 0; i < 2; ++i) {
        const NodeId product = terms_.maker(terms_.operand(terms_.maker(factor), i));
        if (terms_.op(product) != LossOp::kMul) continue;
        if (terms_.operand(product, 0) == target || terms_.operand(product, 1) == target) nodes.push_back(product);
      }
    }
  }

  /// What makes an operand of the loss is no part of it.
  void drop_maker(ValueId value, Nodes& nodes) const { std::erase(nodes, terms_.maker(value)); }

  /// KL divergence: t * log(t) - t * q, t * (log(t) - q), exp(t) * (t - q).
  bool add_divergence(NodeId difference) {
    const ValueId left = terms_.operand(difference, 0), right = terms_.operand(difference, 1);
    if (const ValueId target = terms_.times_own_log(left); target != ValueId::kAbsent && terms_.op_of(right) == LossOp::kMul) {
      const NodeId meeting = terms_.maker(right);
      const ValueId a = terms_.operand(meeting, 0), b = terms_.operand(meeting, 1);
      if (a == target || b == target) {
        Nodes nodes{difference, terms_.maker(left)};
        append_selections(left, nodes);
        add(LossKind::kKlDivergence, LossEvidence::kPattern, meeting, a == target ? b : a, target, std::move(nodes));
        return true;
      }
    }
    const bool from_log = terms_.op_of(left) == LossOp::kLog;
    const ValueId argument = from_log ? terms_.operand(terms_.maker(left), 0) : ValueId::kAbsent;
    for (const NodeId user : terms_.users(terms_.result(difference))) {
      if (terms_.op(user) != LossOp::kMul) continue;
      const ValueId a = terms_.operand(user, 0), b = terms_.operand(user, 1);
      const ValueId factor = a == terms_.result(difference) ? b : a;
      const NodeId made_by = terms_.maker(factor);
      if (from_log && factor == argument) {
        Nodes nodes{terms_.maker(left), user};
        // Zero where t is: a selection by t itself.
        for (const NodeId select : terms_.users(terms_.result(user)))
          if (terms_.op(select) == LossOp::kWhere) nodes.insert(nodes.end(), {select, terms_.maker(terms_.operand(select, 0))});
        add(LossKind::kKlDivergence, LossEvidence::kPattern, difference, right, argument, std::move(nodes));
        return true;
      }
      if (terms_.op(made_by) == LossOp::kExp && terms_.operand(made_by, 0) == left) {
        add(LossKind::kKlDivergence, LossEvidence::kPattern, difference, right, left, {made_by, user});
        return true;
      }
    }
    return false;
  }

  /// The nodes between t and a selected t * log(t).
  void append_selections(ValueId value, Nodes& nodes) const {
    while (nodes.size() < 16 && terms_.op_of(value) == LossOp::kWhere) {
      const NodeId node = terms_.maker(value);
      nodes.push_back(node);
      nodes.push_back(terms_.maker(terms_.operand(node, 0)));
      value = terms_.operand(node, 2);
    }
    const NodeId product = terms_.maker(value);
    nodes.push_back(product);
    for (std::size_t i = 0; i < 2; ++i)
      if (const NodeId log = terms_.maker(terms_.operand(product, i)); terms_.op(log) == LossOp::kLog) nodes.push_back(log);
  }

  /// Losses of a - b: squared, absolute, Huber's, log-cosh.
  void add_difference(NodeId difference) {
    const ValueId a = terms_.operand(difference, 0), b = terms_.operand(difference, 1), result = terms_.result(difference);
    if (a == ValueId::kAbsent || b == ValueId::kAbsent || a == b || result == ValueId::kAbsent) return;
    // A value less its own mean: a variance.
    if (is_mean_of(a, b) || is_mean_of(b, a)) return;
    for (const NodeId next : terms_.users(result)) {
      const ValueId distance = terms_.result(next);
      NodeId twin = NodeId::kNone;
      LossKind kind = LossKind::kMse;
      bool certain = false;
      Nodes nodes{next};
      switch (terms_.op(next)) {
        case LossOp::kAbs:
          kind = LossKind::kL1;
          if (append_huber(distance, result, nodes)) {
            kind = LossKind::kHuber;
            certain = true;
          }
          break;
        case LossOp::kPow:
          if (terms_.operand(next, 0) != result || !terms_.is_number(terms_.operand(next, 1), 2)) continue;
          break;
        case LossOp::kMul:
          twin = same_difference(next, difference);
          if (twin == NodeId::kNone || twin < difference) continue;
          nodes.push_back(twin);
          certain = append_broadcast(difference, nodes);
          break;
        case LossOp::kCosh:
          kind = LossKind::kLogCosh;
          if (const auto users = terms_.users(distance); users.size() == 1 && terms_.op(users[0]) == LossOp::kLog) {
            nodes.push_back(users[0]);
            certain = true;
          }
          if (!certain) continue;
          break;
        default: continue;
      }
      LossEvidence evidence = LossEvidence::kPattern;
      if (!certain && !append_reduction(distance, nodes)) {
        if (is_named(difference, kind)) evidence = LossEvidence::kMetadata;
        else if (!is_result_of_model(distance, a, b)) continue;
      }
      const auto [prediction, target] = tell_apart(a, b);
      add(kind, evidence, difference, prediction, target, std::move(nodes));
      return;
    }
  }

  bool is_mean_of(ValueId mean, ValueId value) const {
    return terms_.op_of(mean) == LossOp::kReduceMean && terms_.operand(terms_.maker(mean), 0) == value;
  }

  /// The other difference that a product multiplies `difference` with: itself, or one of the same operands.
  NodeId same_difference(NodeId product, NodeId difference) const {
    const NodeId a = terms_.maker(terms_.operand(product, 0)), b = terms_.maker(terms_.operand(product, 1));
    const NodeId other = a == difference ? b : a;
    if (other == difference) return difference;
    // Each of them may cast for itself.
    const auto same = [&](std::size_t i) { return terms_.source(terms_.operand(other, i)) == terms_.source(terms_.operand(difference, i)); };
    return terms_.op(other) == LossOp::kSub && same(0) && same(1) ? other : NodeId::kNone;
  }

  /// Both operands stretched to the shape of their sum, as one exporter writes mse_loss. The sum is part of it.
  bool append_broadcast(NodeId difference, Nodes& nodes) const {
    NodeId sum = NodeId::kNone;
    Nodes found;
    for (std::size_t i = 0; i < 2; ++i) {
      ValueId operand = terms_.operand(difference, i);
      if (terms_.op_of(operand) == LossOp::kCast) operand = terms_.operand(terms_.maker(operand), 0);
      const NodeId expand = terms_.maker(operand);
      if (terms_.op(expand) != LossOp::kExpand) return false;
      const NodeId shape = terms_.maker(terms_.operand(expand, 1));
      const NodeId shaped = terms_.maker(terms_.operand(shape, 0));
      if (terms_.op(shape) != LossOp::kShape || terms_.op(shaped) != LossOp::kAdd || (i == 1 && shaped != sum)) return false;
      sum = shaped;
      found.insert(found.end(), {expand, shaped});
    }
    nodes.insert(nodes.end(), found.begin(), found.end());
    return true;
  }

  /// Where(|d| < delta, c * d^2, c * (|d| - c)), `size` being |d|.
  bool append_huber(ValueId size, ValueId difference, Nodes& nodes) const {
    for (const NodeId compare : terms_.users(size)) {
      if (terms_.op(compare) != LossOp::kCompare) continue;
      for (const NodeId select : terms_.users(terms_.result(compare))) {
        if (terms_.op(select) != LossOp::kWhere || terms_.operand(select, 0) != terms_.result(compare)) continue;
        const std::vector<ValueId> a = terms_.factors(terms_.operand(select, 1)), b = terms_.factors(terms_.operand(select, 2));
        if (!(is_square(a, size, difference) && is_line(b, size)) && !(is_square(b, size, difference) && is_line(a, size))) continue;
        nodes.insert(nodes.end(), {compare, select});
        append_makers(a, nodes);
        append_makers(b, nodes);
        return true;
      }
    }
    return false;
  }

  bool is_square(std::span<const ValueId> factors, ValueId size, ValueId difference) const {
    int power = 0;
    for (const ValueId factor : factors) {
      const NodeId node = terms_.maker(factor);
      if (factor == size || factor == difference) ++power;
      const ValueId base = terms_.operand(node, 0);
      if (terms_.op(node) == LossOp::kPow && (base == size || base == difference) && terms_.is_number(terms_.operand(node, 1), 2)) power += 2;
    }
    return power == 2;
  }

  bool is_line(std::span<const ValueId> factors, ValueId size) const {
    return std::any_of(factors.begin(), factors.end(), [&](ValueId factor) {
      const NodeId node = terms_.maker(factor);
      return terms_.op(node) == LossOp::kSub && terms_.operand(node, 0) == size && terms_.number(terms_.operand(node, 1));
    });
  }

  /// Every axis is reduced: there are no axes, or they are empty and that means all, or they name each.
  bool reduces_to_scalar(NodeId id) const {
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

  /// Appends what reduces `value` to a scalar, with weights, a sign or a mean over rows on the way.
  bool append_reduction(ValueId value, Nodes& nodes) const {
    std::vector<std::pair<ValueId, int>> pending{{value, 0}};
    for (std::size_t i = 0; i < pending.size() && pending.size() < 64; ++i) {
      const auto [at, depth] = pending[i];
      for (const NodeId user : terms_.users(at)) {
        const LossOp kind = terms_.op(user);
        const bool reduces = kind == LossOp::kReduceMean || kind == LossOp::kReduceSum;
        if (reduces && terms_.operand(user, 0) == at && reduces_to_scalar(user)) {
          nodes.push_back(user);
          return true;
        }
        const bool passes = reduces || kind == LossOp::kMul || kind == LossOp::kNeg || kind == LossOp::kSqueeze || kind == LossOp::kDiv;
        if (passes && depth + 1 < kMaxTail && !keeps_axes(user)) pending.emplace_back(terms_.result(user), depth + 1);
      }
    }
    return false;
  }

  /// A reduction that leaves its axes: a statistic to be broadcast again, not a loss by rows.
  bool keeps_axes(NodeId id) const {
    const LossOp kind = terms_.op(id);
    if (kind != LossOp::kReduceMean && kind != LossOp::kReduceSum) return false;
    const Attribute* keep = model_.attribute(model_.node(id), "keepdims");
    return keep == nullptr || keep->i != 0;
  }

  /// What the exporter wrote about a node says that it is part of such a loss.
  bool is_named(NodeId node, LossKind kind) {
    if (model_.provenance == nullptr) return false;
    constexpr std::string_view kScope = "namespace", kHierarchy = "pkg.torch.onnx.class_hierarchy";
    if (!mentions_losses_) mentions_losses_ = model_.provenance->mentions(kScope) || model_.provenance->mentions(kHierarchy);
    if (!*mentions_losses_) return false;
    for (const MetadataEntry& entry : model_.provenance->node_metadata(model_.node(node)))
      if ((entry.key == kScope || entry.key == kHierarchy) && loss_named(entry.value) == kind) return true;
    return false;
  }

  /// The model hands the distance out, between what its parameters compute and an input: a loss without reduction.
  bool is_result_of_model(ValueId distance, ValueId a, ValueId b) {
    const Value& value = model_.value(distance);
    if (!value.is_output || value.graph != GraphId::kMain) return false;
    const auto [prediction, target] = tell_apart(a, b);
    const Value& compared = model_.value(terms_.source(target));
    return depends_on_parameters(prediction) && compared.origin == ValueOrigin::kInput && compared.graph == GraphId::kMain;
  }

  /// Cross-entropy written out: the logarithm of a softmax, times probabilities or gathered at class indices, summed, negated.
  void add_cross_entropy(NodeId logarithm) {
    ValueId scores = terms_.operand(logarithm, 0);
    Nodes nodes{logarithm};
    if (terms_.op(logarithm) == LossOp::kLog) {
      const NodeId softmax = terms_.maker(scores);
      if (terms_.op(softmax) != LossOp::kSoftmax) return;
      nodes.push_back(softmax);
      scores = terms_.operand(softmax, 0);
    }
    const ValueId result = terms_.result(logarithm);
    for (const NodeId user : terms_.users(result)) {
      const ValueId a = terms_.operand(user, 0), b = terms_.operand(user, 1);
      ValueId target = ValueId::kAbsent;
      if (terms_.op(user) == LossOp::kMul) target = a == result ? b : a;
      if (terms_.op(user) == LossOp::kGatherElements && a == result) target = index_source(b);
      if (target == ValueId::kAbsent || target == result) continue;
      // p * log(p): an entropy.
      const NodeId made_by = terms_.maker(terms_.source(target));
      if ((terms_.op(made_by) == LossOp::kSoftmax && terms_.operand(made_by, 0) == scores) || terms_.op(made_by) == LossOp::kExp) continue;
      Nodes tail = nodes;
      if (!append_negated_reduction(terms_.result(user), tail)) continue;
      add(LossKind::kCrossEntropy, LossEvidence::kPattern, user, scores, target, std::move(tail));
      return;
    }
  }

  /// Class indices without the axis that gathering needs.
  ValueId index_source(ValueId value) const {
    for (int i = 0; i < kMaxTail; ++i) {
      value = terms_.source(value);
      const LossOp made_by = terms_.op_of(value);
      if (made_by != LossOp::kUnsqueeze && made_by != LossOp::kReshape) break;
      value = terms_.operand(terms_.maker(value), 0);
    }
    return value;
  }

  bool append_negated_reduction(ValueId value, Nodes& nodes) const {
    struct Step {
      ValueId value;
      int depth;
      bool negated, reduced;
    };
    std::vector<Step> pending{{value, 0, false, false}};
    for (std::size_t i = 0; i < pending.size() && pending.size() < 64; ++i) {
      const Step step = pending[i];
      if (step.depth == kMaxTail) continue;
      for (const NodeId user : terms_.users(step.value)) {
        Step next{terms_.result(user), step.depth + 1, step.negated, step.reduced};
        switch (terms_.op(user)) {
          case LossOp::kNeg: next.negated = true; break;
          case LossOp::kReduceMean:
          case LossOp::kReduceSum: next.reduced = true; break;
          case LossOp::kSqueeze:
          case LossOp::kDiv: break;
          case LossOp::kMul: {
            const ValueId a = terms_.operand(user, 0), b = terms_.operand(user, 1);
            const auto scale = terms_.number(a == step.value ? b : a);
            if (scale && *scale < 0) next.negated = true;
            break;
          }
          default: continue;
        }
        nodes.push_back(user);
        if (next.negated && next.reduced) return true;
        pending.push_back(next);
      }
    }
    return false;
  }

  /// The prediction is what parameters go into. (a, b) where both or neither do: programs write prediction first.
  std::pair<ValueId, ValueId> tell_apart(ValueId a, ValueId b) {
    return !depends_on_parameters(a) && depends_on_parameters(b) ? std::pair(b, a) : std::pair(a, b);
  }

  /// One walk for all losses. Nodes that come before what they use make it miss something, nothing else.
  bool depends_on_parameters(ValueId value) {
    if (parametric_.empty()) {
      parametric_.resize(model_.values.size());
      for (std::size_t i = 1; i < model_.values.size(); ++i) {
        const Value& known = model_.values[i];
        if (known.origin != ValueOrigin::kInitializer || known.initializer == nullptr) continue;
        const bool floats = analysis_.fact(static_cast<ValueId>(i)).dtypes.proves(DTypeSet::floats());
        parametric_[i] = floats && known.initializer->element_count().value_or(2) > 1;
      }
      for (const Node& node : model_.nodes) {
        const auto operands = model_.operands(node);
        if (std::none_of(operands.begin(), operands.end(), [&](ValueId operand) { return parametric_[static_cast<std::size_t>(operand)]; })) continue;
        for (const ValueId result : model_.results(node)) parametric_[static_cast<std::size_t>(result)] = result != ValueId::kAbsent;
      }
    }
    return parametric_[static_cast<std::size_t>(value)];
  }

  const Analysis& analysis_;
  const Model& model_;
  const Terms terms_;
  std::vector<LossSite> sites_;
  std::vector<bool> parametric_;  // by value: a parameter, or computed from one
  std::optional<bool> mentions_losses_;
};

}  // namespace

std::string_view to_text(LossKind kind) {
  switch (kind) {
    case LossKind::kMse: return "mean squared error";
    case LossKind::kL1: return "L1 loss";
    case LossKind::kHuber: return "Huber loss";
    case LossKind::kLogCosh: return "log-cosh loss";
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
  // Only the innermost operator counts, and the modules that are losses: one around them may be called anything.
  const std::size_t at = metadata.rfind("aten.");
  if (at == std::string_view::npos) return std::nullopt;
  for (const NamedLoss& loss : kAtenLosses)
    if (metadata.substr(at).starts_with(loss.name)) return loss.kind;
  const std::size_t module = metadata.rfind(kLossModules, at);
  if (module == std::string_view::npos) return std::nullopt;
  std::string_view name = metadata.substr(module + kLossModules.size());
  name = name.substr(0, name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"));
  return find_kind(kModuleLosses, name);
}

std::vector<LossSite> find_losses(const Analysis& analysis) { return Finder(analysis).find(); }

}  // namespace tensorlint
