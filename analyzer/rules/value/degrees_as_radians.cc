#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class DegreesAsRadians : public Rule {
 public:
  DegreesAsRadians()
      : Rule({"TL-V579", "degrees-as-radians", "value", findings::Severity::kWarning,
              "a distance on the earth whose latitudes are degrees where sine and cosine take radians"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    // Rare, and sought in fewer nodes than products.
    bool has_arc = false;
    each_node(view, out, {Opcode::kOther}, [&](const Expressions& expressions, const NodeCall& call) {
      has_arc = has_arc || is_arc(expressions, call.id());
    });
    if (!has_arc) return;
    each_node(view, out, {Opcode::kMul}, [&](const Expressions& expressions, const NodeCall& call) {
      const auto scaled = with_number(expressions, call.id());
      if (scaled && is_radius_of_earth(scaled->number)) check_distance(expressions, call, scaled->value, out);
    });
  }

 private:
  /// In kilometres, metres, miles or nautical miles, or twice that.
  static bool is_radius_of_earth(double number) {
    const auto is_one = [&](double radius) { return number > radius * 0.995 && number < radius * 1.005; };
    constexpr std::array kRadii{6371.0, 6371000.0, 3959.0, 3440.0};
    return std::ranges::any_of(kRadii, [&](double radius) { return is_one(radius) || is_one(2 * radius); });
  }

  static std::optional<double> at(const Expressions& expressions, NodeId node, double number) {
    const ops::ElementValue element = dataflow::element_function(expressions.analysis(), node, 1);
    if (element == nullptr || expressions.op(node) != Opcode::kOther) return std::nullopt;
    return element({std::array{number}, {}});
  }
  static bool gives(const Expressions& expressions, NodeId node, double number, double expected) {
    const auto found = at(expressions, node, number);
    return found && std::abs(*found - expected) < 1e-6;
  }
  static bool is_sine(const Expressions& expressions, NodeId node) {
    return gives(expressions, node, 0.5, std::sin(0.5)) && gives(expressions, node, 4, std::sin(4.0));
  }
  static bool is_cosine(const Expressions& expressions, NodeId node) {
    return gives(expressions, node, 0.5, std::cos(0.5)) && gives(expressions, node, 4, std::cos(4.0));
  }
  static bool is_arc(const Expressions& expressions, NodeId node) {
    return is_of_unit_interval(expressions, node) ||
           (gives(expressions, node, 1, std::atan(1.0)) && gives(expressions, node, 3, std::atan(3.0)));
  }

  /// An angle times the radius: an arc function of products of sines and cosines.
  static void check_distance(const Expressions& expressions, const NodeCall& call, ValueId angle, Reporter& out) {
    NodeId arc = NodeId::kNone, sine = NodeId::kNone, found = NodeId::kNone;
    bool has_cosine = false;
    std::optional<double> degrees;
    walk_back(expressions, angle, [&](ValueId, NodeId node) {
      const bool is_sin = is_sine(expressions, node), is_cos = !is_sin && is_cosine(expressions, node);
      if (is_sin || is_cos) {
        if (is_sin) sine = node;
        has_cosine = has_cosine || is_cos;
        int left = kMaxValues;
        if (found == NodeId::kNone) {
          degrees = beyond_half_turn(expressions, expressions.operand(node, 0), 1, left);
          if (degrees) found = node;
        }
        return false;
      }
      if (is_arc(expressions, node)) arc = node;
      return is_reduction_or_elementwise(expressions, node);
    });
    if (arc == NodeId::kNone || sine == NodeId::kNone || !has_cosine || found == NodeId::kNone) return;
    out.report(found, fmt::format("{} of degrees: {} is computed from numbers as large as {:.4g}, and an angle on the "
                                  "earth is no more than pi",
                                  NodeCall(call.analysis(), found).op_name(),
                                  Operand(call.analysis(), expressions.operand(found, 0)).name(), *degrees))
        .note_at(call.id(), "the distance is scaled with the radius of the earth here")
        .fix("convert to radians first: torch.deg2rad(x), x * pi / 180");
  }

  static constexpr int kMaxValues = 48;

  /// A number of more than half a turn that is added up to an angle, or that weights choose among; it is what the angle
  /// would be, scaled as it goes there.
  static std::optional<double> beyond_half_turn(const Expressions& expressions, ValueId value, double scale,
                                                int& left) {
    if (value == ValueId::kAbsent || left-- <= 0 || expressions.is_spent()) return std::nullopt;
    expressions.charge(4);
    value = before_moves(expressions, value);
    if (is_constant(expressions, value)) return largest(expressions, value, scale);
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
    const auto numbered = with_number(expressions, node);
    if (opcode == Opcode::kMul && numbered)
      return beyond_half_turn(expressions, numbered->value, scale * numbered->number, left);
    if (opcode == Opcode::kDiv && numbered && !numbered->is_first && numbered->number != 0)
      return beyond_half_turn(expressions, numbered->value, scale / numbered->number, left);
    if (opcode == Opcode::kNeg) return beyond_half_turn(expressions, first, scale, left);
    if (opcode == Opcode::kAdd || opcode == Opcode::kSub) {
      const auto found = beyond_half_turn(expressions, first, scale, left);
      return found ? found : beyond_half_turn(expressions, second, scale, left);
    }
    // A weighted mean of places.
    const bool is_weighted = opcode == Opcode::kMatMul && first != ValueId::kAbsent && second != ValueId::kAbsent &&
                             expressions.operand(node, 2) == ValueId::kAbsent;
    if (is_weighted && is_of_probabilities(expressions, first) && is_constant(expressions, second))
      return largest(expressions, second, scale);
    // Bounded to degrees: 90 * tanh(x), x.clamp(-90, 90).
    const bool bounds = opcode == Opcode::kSigmoid || opcode == Opcode::kClip || opcode == Opcode::kOther;
    const Range& range = expressions.analysis().fact(value).range;
    return bounds && first != ValueId::kAbsent && (second == ValueId::kAbsent || opcode == Opcode::kClip)
               ? beyond(std::max(std::abs(range.lo), std::abs(range.hi)) * std::abs(scale))
               : std::nullopt;
  }

  static bool is_of_probabilities(const Expressions& expressions, ValueId value) {
    const auto softmax = expressions.normalised(before_stretch(expressions, value));
    return softmax && !softmax->logarithm;
  }

  static std::optional<double> largest(const Expressions& expressions, ValueId table, double scale) {
    constexpr std::size_t kMostNumbers = 65536;
    const auto bounds = constant_bounds(expressions.analysis(), table, kMostNumbers);
    if (!bounds) return std::nullopt;
    return beyond(std::max(std::abs(bounds->first), std::abs(bounds->second)) * std::abs(scale));
  }

  static std::optional<double> beyond(double magnitude) {
    // Longitudes go to 180 degrees, from 0 to 360 in some data.
    constexpr double kHalfTurn = 3.2, kMost = 361;
    return magnitude > kHalfTurn && magnitude < kMost ? std::optional(magnitude) : std::nullopt;
  }
};

const RegisterRule<DegreesAsRadians> kRegisterDegreesAsRadians;

}  // namespace
}  // namespace tensorlint::rules
