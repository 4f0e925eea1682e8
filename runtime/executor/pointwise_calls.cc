#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/executor/kernel_matcher.h"
#include "runtime/values/codec.h"

namespace tensorlint::runtime {
namespace {

using kernels::PointwiseKind;

/// Elementwise nodes that are looked at after prediction and target meet.
constexpr std::size_t kMaxElementwise = 64;

/// What the kernels compute of one element (kernels/loss/pointwise_ops.h), in double.
double loss_of(PointwiseKind kind, double x, double t, double delta, double positive) {
  const double size = std::abs(x - t);
  switch (kind) {
    case PointwiseKind::kSquared:
      return size * size;
    case PointwiseKind::kAbsolute:
      return size;
    case PointwiseKind::kHuber:
      return size < delta ? size * size / 2 : delta * (size - delta / 2);
    case PointwiseKind::kSmoothL1:
      return size < delta ? size * size / (2 * delta) : size - delta / 2;
    case PointwiseKind::kBinary:
      return (t - 1) * std::max(std::log1p(-x), -100.0) - t * std::max(std::log(x), -100.0);
    case PointwiseKind::kBinaryLogits: {
      const double tail = std::log1p(std::exp(-std::abs(x)));
      return (1 - t) * (std::max(x, 0.0) + tail) + positive * t * (std::max(-x, 0.0) + tail);
    }
    case PointwiseKind::kKlDivergence:
      return t == 0 ? 0 : t * (std::log(t) - x);
    case PointwiseKind::kKlDivergenceLog:
      return std::exp(t) * (t - x);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

struct Point {
  double x, t;
};

/// Where a kind is compared: off the places at which pieces of others meet, on both sides of those of its own. Far out
/// it shows whether logarithms are held at -100.
std::vector<Point> points_of(PointwiseKind kind, double delta) {
  switch (kind) {
    case PointwiseKind::kBinary:
      return {{0.31, 0.9},  {0.17, 0.45}, {0.63, 0.58}, {0.07, 0.213},
              {0.91, 0.13}, {0.999, 1},   {0.002, 0},   {1e-60, 0.7}};
    case PointwiseKind::kBinaryLogits:
      return {{0.31, 0.9}, {-1.7, 0.45}, {2.63, 0.58}, {0.07, 0.213}, {9.1, 0.13}, {-7.3, 1}, {4.4, 0}, {-150, 0.7}};
    case PointwiseKind::kKlDivergence:
      return {{-0.31, 0.9}, {-1.7, 0.45}, {-2.63, 0.58}, {-0.07, 0.213}, {-9.1, 0.013}, {0.4, 2.7}, {-3.3, 1}};
    case PointwiseKind::kKlDivergenceLog:
      return {{-0.31, -0.9}, {-1.7, -0.45}, {-2.63, -1.58}, {-0.07, -5.2}, {-9.1, -0.013}, {0.4, 0.7}, {-3.3, 0}};
    default:
      break;
  }
  std::vector<Point> points{{0.37, 3.7}, {-1.9, -1.9}, {0, 3e-9}, {0, -3e-9}};
  for (const double size : {0.013, 0.31, 0.97, 1.03, 1.9, 7.1, 53.1, 1013.0})
    for (const double scale : {1.0, delta})
      for (const double x : {0.37, -1.9}) {
        points.push_back({x, x - size * scale});
        points.push_back({x, x + size * scale});
      }
  return points;
}

/// The pieces of a kind meet where one of these is zero.
std::array<double, 2> borders_of(PointwiseKind kind, double x, double t, double delta) {
  switch (kind) {
    case PointwiseKind::kSquared:
    case PointwiseKind::kAbsolute:
      return {x - t, 1};
    case PointwiseKind::kHuber:
    case PointwiseKind::kSmoothL1:
      return {x - t, std::abs(x - t) - delta};
    case PointwiseKind::kBinary:
      return {std::log(x) + 100, std::log1p(-x) + 100};
    case PointwiseKind::kBinaryLogits:
      return {x, 1};
    case PointwiseKind::kKlDivergence:
      return {t, 1};
    case PointwiseKind::kKlDivergenceLog:
      break;
  }
  return {1, 1};
}

int sign(double number) { return number > 0 ? 1 : number < 0 ? -1 : 0; }

/// Whether a formula is in one piece wherever a kind is: no mask, sentinel, clip or threshold lies between the points
/// at which the two are compared.
class Pieces {
 public:
  /// `between`: what is computed between the pair and the elements.
  Pieces(const losses::Formula& formula, std::span<const std::size_t> between, Meter& meter)
      : formula_(formula), meter_(meter) {
    for (const std::size_t at : between) add(formula.parts()[at]);
  }

  /// An operator among them is neither smooth nor known to switch where two operands meet.
  bool is_unknown() const { return is_unknown_; }
  bool may_drop_nan() const { return may_drop_nan_; }

  /// Of `evaluate(x, t, first, second)`, which evaluates the formula.
  template <typename Evaluate>
  bool are_those_of(PointwiseKind kind, double delta, const Evaluate& evaluate) {
    if (switches_.empty()) return true;
    // Off round numbers, which thresholds are.
    constexpr std::array kSizes{1.3e-30, 1.7e-9, 1.9e-4, 0.0437, 0.613, 3.17, 53.1, 1013.0, 1.9e7, 1.3e30};
    constexpr std::array kShares{1e-60, 1.3e-30, 1.7e-9, 1.9e-4, 0.0437, 0.371, 0.613, 0.917, 0.9998, 1 - 1.3e-9};
    std::vector<double> numbers{0}, operands;
    for (const double size : kSizes) numbers.insert(numbers.end(), {size, -size});
    if (kind == PointwiseKind::kBinary)
      operands.assign(kShares.begin(), kShares.end());
    else
      operands = numbers;
    seen_.assign(switches_.size(), {});
    const auto holds = [&](double x, double t, double first, double second) {
      evaluate(x, t, first, second);
      return note(borders_of(kind, x, t, delta));
    };
    for (const double x : operands)
      for (const double t : operands)
        if (meter_.is_spent() || !holds(x, t, 0.37, 1.9)) return false;
    for (const Point& at : points_of(kind, delta))
      for (const double other : numbers)
        if (!holds(at.x, at.t, other, 1.9) || !holds(at.x, at.t, 0.37, other)) return false;
    return true;
  }

 private:
  /// A part that is another function of its operands where they have met.
  struct Switch {
    std::size_t a, b;  ///< parts; kZero
    auto operator<=>(const Switch&) const = default;
  };
  static constexpr std::size_t kZero = static_cast<std::size_t>(-1);

  /// Each once: an operator of many operands has one for each two of them, and all are compared at each point.
  void add(const Switch& one) {
    constexpr std::size_t kMostSwitches = 1024;
    is_unknown_ = is_unknown_ || switches_.size() == kMostSwitches;
    meter_.charge(kStepsOfSwitch);
    if (!is_unknown_ && one.a != one.b && known_.insert(one).second) switches_.push_back(one);
  }

  void add(const losses::Formula::Part& part) {
    if (is_unknown_ || part.kind != losses::Formula::PartKind::kElement) return;
    constexpr std::array<std::string_view, 14> kSmooth{"Add",     "Sub",      "Mul",        "Div",  "Neg",
                                                       "Exp",     "Log",      "Pow",        "Sqrt", "Sum",
                                                       "Sigmoid", "Softplus", "Reciprocal", "Tanh"};
    constexpr std::array<std::string_view, 3> kAtZero{"Abs", "Sign", "Relu"};
    constexpr std::array<std::string_view, 8> kOfTwo{"Max",         "Min",     "Equal",          "Less",
                                                     "LessOrEqual", "Greater", "GreaterOrEqual", "Clip"};
    // They are other functions only where an operand of theirs is.
    constexpr std::array<std::string_view, 6> kOfTruths{"Where", "And", "Or", "Xor", "Not", "IsNaN"};
    const auto is_in = [&](const auto& names) { return std::ranges::find(names, part.op) != names.end(); };
    if (is_in(kSmooth)) return;
    may_drop_nan_ = true;
    if (is_in(kAtZero)) {
      add({part.operands[0], kZero});
    } else if (is_in(kOfTwo) && part.attributes.empty()) {
      const bool is_clip = part.op == "Clip";
      for (std::size_t i = 0; i < (is_clip ? 1 : part.operands.size()); ++i)
        for (std::size_t j = i + 1; j < part.operands.size(); ++j)
          if (part.operands[i] != losses::Formula::kNoPart && part.operands[j] != losses::Formula::kNoPart)
            add({part.operands[i], part.operands[j]});
    } else if (!is_in(kOfTruths)) {
      is_unknown_ = true;
    }
  }

  /// False where a switch stands otherwise than before at a point of the same piece.
  bool note(const std::array<double, 2>& borders) {
    const auto piece = static_cast<std::size_t>(3 * sign(borders[0]) + sign(borders[1]) + 4);
    const auto values = formula_.values();
    meter_.charge(1 + switches_.size() / 2);
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      const double difference = values[switches_[i].a] - (switches_[i].b == kZero ? 0 : values[switches_[i].b]);
      if (std::isnan(difference)) continue;  // outside of what the formula is for
      std::optional<int>& known = seen_[i][piece];
      if (!known) known = sign(difference);
      if (*known != sign(difference)) return false;
    }
    return true;
  }

  static constexpr std::uint64_t kStepsOfSwitch = 8;  ///< an allocation

  const losses::Formula& formula_;
  Meter& meter_;
  std::vector<Switch> switches_;
  std::set<Switch> known_;
  std::vector<std::array<std::optional<int>, 9>> seen_;  ///< by switch and piece
  bool is_unknown_ = false, may_drop_nan_ = false;
};

bool is_close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)) + 1e-13; }

std::string_view to_text(PointwiseKind kind) {
  switch (kind) {
    case PointwiseKind::kSquared:
      return "squared";
    case PointwiseKind::kAbsolute:
      return "absolute";
    case PointwiseKind::kHuber:
      return "huber";
    case PointwiseKind::kSmoothL1:
      return "smooth_l1";
    case PointwiseKind::kBinary:
      return "binary";
    case PointwiseKind::kBinaryLogits:
      return "binary_logits";
    case PointwiseKind::kKlDivergence:
      return "kl_divergence";
    case PointwiseKind::kKlDivergenceLog:
      return "kl_divergence_log";
  }
  return "";
}

}  // namespace

/// A kernel that computes the elements of a formula up to a factor.
struct KernelMatcher::Pair {
  PointwiseKind kind = PointwiseKind::kSquared;
  double delta = 1, scale = 1;
  ValueId input = ValueId::kAbsent, target = ValueId::kAbsent;
  ValueId weight = ValueId::kAbsent, positive = ValueId::kAbsent;
  double positive_offset = 0;
  bool drops_negative = false;  ///< targets that are not above zero are taken as zero
};

/// The elements of the loss are what is computed from both of its operands before something that is no elementwise
/// operator reads it; tried from the last such value on.
void KernelMatcher::add_pointwise(const losses::LossSite& site) {
  Nodes found{site.anchor};
  const auto is_elementwise = [&](NodeId node) {
    const Opcode opcode = expressions_.op(node);
    const ops::OpEntry* const entry = expressions_.entry(node);
    return (entry != nullptr && entry->element() != nullptr) || opcode == Opcode::kCast || opcode == Opcode::kExpand ||
           opcode == Opcode::kIdentity || expressions_.called_function(node) != nullptr;
  };
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const NodeId reader : readers_.of(expressions_.result(found[i]))) {
      if (found.size() == kMaxElementwise || expressions_.is_spent()) break;
      expressions_.charge(8 + found.size());
      if (is_elementwise(reader) && std::ranges::find(found, reader) == found.end()) found.push_back(reader);
    }
  for (auto at = found.rbegin(); at != found.rend(); ++at)
    if (!is_taken(*at) && add_elements(expressions_.result(*at))) return;
  if (!is_taken(site.anchor)) leave(site.anchor, fmt::format("no kernel computes this {}", ops::to_text(site.kind)));
}

bool KernelMatcher::add_elements(ValueId elements) {
  const auto type = dtype(elements);
  const auto shape = extents(elements);
  if (!type || !shape || !float_dtype(*type)) return false;
  const losses::Formula formula(expressions_, elements);
  if (!formula.is_complete()) return false;
  const auto parts = formula.parts();
  // Operands come before what is computed from them: the first pairs leave the least to the interpreter.
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i)
    if (parts[i].value != ValueId::kAbsent && parts[i].kind != losses::Formula::PartKind::kConstant &&
        dtype(parts[i].value) == type && extents(parts[i].value) == shape && formula.depends(parts.size() - 1, i))
      candidates.push_back(i);
  for (const std::size_t a : candidates)
    for (const std::size_t b : candidates)
      if (b < a && !expressions_.is_spent() && tries_left_-- > 0 && !formula.depends(a, b) && !formula.depends(b, a) &&
          (add_pair(formula, elements, b, a) || add_pair(formula, elements, a, b)))
        return true;
  return false;
}

bool KernelMatcher::add_pair(const losses::Formula& formula, ValueId elements, std::size_t prediction,
                             std::size_t target) {
  using PartKind = losses::Formula::PartKind;
  const auto parts = formula.parts();
  const Extents shape = *extents(elements);
  const DType type = *dtype(elements);
  // The nodes between the pair and the elements, and what else they read.
  std::vector<std::size_t> pending{parts.size() - 1}, others, between;
  std::vector<bool> seen(parts.size());
  std::set<NodeId> nodes;
  // The same cast is perhaps written once for each use.
  const auto is_twin = [&](std::size_t part, std::size_t of) {
    const NodeId a = parts[part].node, b = parts[of].node;
    return part == of || (a != NodeId::kNone && b != NodeId::kNone && expressions_.op(a) == Opcode::kCast &&
                          expressions_.op(b) == Opcode::kCast && dtype(parts[part].value) == type &&
                          expressions_.operand(a, 0) == expressions_.operand(b, 0));
  };
  std::vector<std::pair<std::size_t, bool>> twins;  // and whether of the target
  while (!pending.empty()) {
    const std::size_t at = pending.back();
    pending.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    if (is_twin(at, prediction) || is_twin(at, target)) {
      if (at != prediction && at != target) twins.emplace_back(at, is_twin(at, target));
      continue;
    }
    const losses::Formula::Part& part = parts[at];
    if (part.kind == PartKind::kConstant) continue;
    if (part.kind == PartKind::kLeaf) {
      const auto known = extents(part.value);
      if (dtype(part.value) != type || !known || !period(*known, shape)) return false;
      others.push_back(at);
      continue;
    }
    if (part.node != NodeId::kNone) {
      // Rounding to another dtype on the way, and other orders of elements, are not what kernels do.
      const Opcode opcode = expressions_.op(part.node);
      const auto made = dtype(part.value);
      if (!made || (*made != type && *made != DType::kBool) || is_taken(part.node)) return false;
      if (ops::keeps_elements(opcode) && opcode != Opcode::kIdentity) return false;
      nodes.insert(part.node);
    }
    between.push_back(at);
    for (const std::uint32_t operand : part.operands)
      if (operand != losses::Formula::kNoPart) pending.push_back(operand);
  }
  if (others.size() > 2) return false;
  Pieces pieces(formula, between, analysis_.meter());
  if (pieces.is_unknown()) return false;

  constexpr std::array kKinds{PointwiseKind::kSquared,      PointwiseKind::kAbsolute,       PointwiseKind::kSmoothL1,
                              PointwiseKind::kHuber,        PointwiseKind::kBinaryLogits,   PointwiseKind::kBinary,
                              PointwiseKind::kKlDivergence, PointwiseKind::kKlDivergenceLog};
  std::set<double> deltas;
  for (const double constant : formula.constants())
    if (std::isfinite(constant) && constant > 0 && deltas.size() < 6) deltas.insert(constant);
  deltas.insert(1.0);

  /// Which of `others` is a weight of the elements, and which one of the positives: an index, or none.
  struct Roles {
    int weight, positive;
    double offset;
  };
  std::vector<Roles> roles;
  if (others.empty()) roles = {{-1, -1, 0}};
  if (others.size() == 1) roles = {{0, -1, 0}, {-1, 0, 0}, {-1, 0, 1}};
  if (others.size() == 2) roles = {{0, 1, 0}, {1, 0, 0}, {0, 1, 1}, {1, 0, 1}};

  const auto evaluate = [&](double x, double t, double first, double second) {
    std::vector<losses::Formula::Assignment> given{{prediction, x}, {target, t}};
    for (const auto& [part, of_target] : twins) given.push_back({part, of_target ? t : x});
    for (std::size_t i = 0; i < others.size(); ++i) given.push_back({others[i], i == 0 ? first : second});
    return formula.evaluate(given, 0);
  };
  const auto scale_of = [&](PointwiseKind kind, double delta, const Roles& role) -> std::optional<double> {
    std::optional<double> scale;
    constexpr std::array kOthers{std::pair(1.0, 1.0),   std::pair(0.37, 1.9), std::pair(2.2, 0.6),
                                 std::pair(-3.3, -0.7), std::pair(0.0, 53.1), std::pair(1013.0, 0.0)};
    for (const Point& point : points_of(kind, delta)) {
      for (const auto& [first, second] : kOthers) {
        const double values[] = {first, second};
        const double weight = role.weight < 0 ? 1 : values[role.weight];
        const double positive = role.positive < 0 ? 1 : values[role.positive] + role.offset;
        const double computed = evaluate(point.x, point.t, first, second);
        const double expected = weight * loss_of(kind, point.x, point.t, delta, positive);
        if (!scale) {
          if (expected == 0 || !std::isfinite(computed / expected) || computed == 0) return std::nullopt;
          scale = computed / expected;
          // As it was written, for one.
          if (is_close(std::abs(*scale), 1)) scale = std::copysign(1, *scale);
        }
        if (!is_close(computed, *scale * expected)) return std::nullopt;
      }
    }
    return scale;
  };

  // Outside of the probabilities a kernel gives what PyTorch does, and exporters write this and that.
  const auto outside = [&](double x, double t) { return evaluate(x, t, 0.37, 1.9); };
  const Range range = analysis_.fact(parts[prediction].value).range,
              target_range = analysis_.fact(parts[target].value).range;
  bool drops_negative = false;
  const auto agrees_outside = [&](PointwiseKind kind) {
    if (kind == PointwiseKind::kBinary)
      return (range.lo >= 0 && range.hi <= 1) || (std::isnan(outside(-0.3, 0.6)) && std::isnan(outside(1.4, 0.6)));
    if (kind != PointwiseKind::kKlDivergence || target_range.lo > 0) return true;
    if (outside(-0.3, 0) != 0) return false;
    // Selected by t > 0: zero below, and for NaN.
    drops_negative = outside(-0.3, -0.4) == 0 && (target_range.lo < 0 || target_range.nan);
    return drops_negative || target_range.lo >= 0 || std::isnan(outside(-0.3, -0.4));
  };

  // Not a number stays one, but for targets that are dropped.
  const auto keeps_nan = [&](PointwiseKind kind) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const bool drops_target = kind == PointwiseKind::kKlDivergence && drops_negative;
    return !pieces.may_drop_nan() ||
           (std::isnan(outside(kNan, 0.6)) && (drops_target || std::isnan(outside(0.3, kNan))));
  };

  std::optional<Pair> best;
  for (const PointwiseKind kind : kKinds) {
    const bool has_delta = kind == PointwiseKind::kHuber || kind == PointwiseKind::kSmoothL1;
    for (const double delta : has_delta ? deltas : std::set<double>{1.0}) {
      for (const Roles& role : roles) {
        if (role.positive >= 0 && kind != PointwiseKind::kBinaryLogits) continue;
        const auto scale = scale_of(kind, delta, role);
        if (!scale || !agrees_outside(kind) || !keeps_nan(kind) || !pieces.are_those_of(kind, delta, evaluate))
          continue;
        const auto other = [&](int index) {
          return index < 0 ? ValueId::kAbsent : parts[others[static_cast<std::size_t>(index)]].value;
        };
        const Pair pair{.kind = kind,
                        .delta = delta,
                        .scale = *scale,
                        .input = parts[prediction].value,
                        .target = parts[target].value,
                        .weight = other(role.weight),
                        .positive = other(role.positive),
                        .positive_offset = role.offset,
                        .drops_negative = kind == PointwiseKind::kKlDivergence && drops_negative};
        // Huber's loss and the smooth L1 loss are each other's but for a factor.
        if (!best || (std::abs(best->scale) != 1 && std::abs(pair.scale) == 1)) best = pair;
      }
    }
  }
  return best && add_call(elements, *best, nodes);
}

bool KernelMatcher::add_call(ValueId elements, const Pair& pair, const std::set<NodeId>& formula) {
  const Extents shape = *extents(elements);
  const std::int64_t size = count(shape);
  // The longest way to a number whose sign is the kernel's own, else the longest; or the elements themselves.
  std::optional<Tail> chosen;
  std::vector<Tail> ends = tails(elements);
  for (const Tail& tail : ends) {
    const bool sums = tail.is_reduced && count(*extents(tail.result)) == 1;
    if (tail.is_reduced && !sums) continue;
    const bool own = pair.scale * (tail.is_negated ? -1 : 1) == 1;
    const bool chosen_own = chosen && pair.scale * (chosen->is_negated ? -1 : 1) == 1;
    if (!chosen || own || !chosen_own || (sums && !chosen->is_reduced)) chosen = tail;
  }
  kernels::PointwiseLoss request;
  request.kind = pair.kind;
  request.dtype = *float_dtype(*dtype(elements));
  request.elements = size;
  request.delta = pair.delta;
  std::string_view averaging = "none";
  request.averaging = kernels::Averaging::kNone;
  if (chosen->is_reduced && chosen->divisor == size) {
    request.averaging = kernels::Averaging::kMean;
    averaging = "mean";
  } else if (chosen->is_reduced && chosen->divisor == 1) {
    request.averaging = kernels::Averaging::kSum;
    averaging = "sum";
  } else if (chosen->is_reduced) {
    request.averaging = kernels::Averaging::kBatchMean;
    request.batch = chosen->divisor;
    averaging = "batch mean";
    if (request.batch <= 0) return false;
  }
  const double scale = pair.scale * (chosen->is_negated ? -1 : 1);
  // The factor is stored in the weight's dtype: of 16 bits it would lose digits there, or overflow.
  const bool is_narrow = request.dtype == kernels::Dtype::kFloat16 || request.dtype == kernels::Dtype::kBFloat16;
  if (is_narrow && std::abs(scale) != 1 &&
      (pair.weight != ValueId::kAbsent || decode(*dtype(elements), encode(*dtype(elements), scale)) != scale))
    return false;
  CallOperand weight{.value = pair.weight, .is_number = false, .scale = scale};
  if (pair.weight == ValueId::kAbsent && scale != 1) weight = {.is_number = true, .offset = scale};
  if (pair.weight == ValueId::kAbsent && scale == 1) weight = {};
  if (pair.weight != ValueId::kAbsent) request.weight_period = *period(*extents(pair.weight), shape);
  CallOperand positive{.value = pair.positive, .offset = pair.positive_offset};
  if (pair.positive == ValueId::kAbsent)
    positive = {};
  else
    request.positive_period = *period(*extents(pair.positive), shape);
  std::set<NodeId> nodes = formula;
  nodes.insert(chosen->nodes.begin(), chosen->nodes.end());
  KernelCall call{.kernel = fmt::format("pointwise_loss {}, {}", to_text(pair.kind), averaging),
                  .results = {{.value = chosen->result}},
                  .operands = {{.value = pair.input},
                               {.value = pair.target, .drops_negative = pair.drops_negative},
                               weight,
                               positive},
                  .request = request};
  std::vector<ValueId> operands;
  for (const CallOperand& operand : call.operands)
    if (operand.value != ValueId::kAbsent) operands.push_back(operand.value);
  return complete(std::move(call), operands, nodes);
}

}  // namespace tensorlint::runtime
