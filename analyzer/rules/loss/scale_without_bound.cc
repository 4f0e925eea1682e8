#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/reported_nodes.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

/// A loss with c * s and a square of what exp(a * s) scales, which is never below 0: with c and a of one sign both fall
/// together, and nothing keeps s where it is. Deviations that a model predicts and what the layers of a flow stretch by
/// are learned so.
class ScaleWithoutBound : public Rule {
 public:
  ScaleWithoutBound()
      : Rule({"TL-L413", "scale-without-bound", "loss", findings::Severity::kWarning,
              "the logarithm of a scale that is added to a loss, which falls the same way as what is scaled by it"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() != 1 || !has_node(out, {Opcode::kExp, Opcode::kLog})) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const auto [terms, is_complete] = loss_terms(expressions, outputs[0]);
    if (!is_complete) return;
    std::vector<Scale> scales;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const NodeId node = expressions.producer(terms[i].value);
      if (expressions.op(node) != Opcode::kLog) continue;
      const ValueId of = before_guard(expressions, expressions.operand(node, 0));
      if (of != ValueId::kAbsent) scales.push_back({i, node, of, 1});
    }
    each_node(view, out, {Opcode::kExp}, [&](const Expressions&, const NodeCall& call) {
      double sign = 1;
      const ValueId exponent = before_signed_scale(expressions, call.operand(0).value(), sign);
      if (exponent == ValueId::kAbsent) return;
      for (std::size_t i = 0; i < terms.size() && scales.size() < kMaxScales; ++i)
        if (is_same(expressions, terms[i].value, exponent)) scales.push_back({i, call.id(), call.result(), sign});
    });
    if (scales.empty()) return;
    const auto squared = values_in_squares(expressions, terms);
    for (Scale& scale : scales) follow(expressions, terms, squared, scale);
    for (const Scale& scale : scales)
      if (scale.squared && std::ranges::none_of(scales, [&](const Scale& other) {
            return other.is_held && terms[other.term].value == terms[scale.term].value;
          })) {
        report_scale(expressions, terms, scale, out);
        return;
      }
  }

 private:
  /// `of` is exp(sign * s), and s is a term of the loss.
  struct Scale {
    std::size_t term;
    NodeId node;
    ValueId of;
    double sign;
    std::optional<std::size_t> squared{};  ///< the square that falls with s
    NodeId scaled = NodeId::kNone;         ///< a part of it
    bool is_held = false;                  ///< something else rises, or is not known to fall
  };

  static constexpr std::size_t kMaxScales = 64;

  /// One value, or the same element of it that is taken twice.
  static bool is_same(const Expressions& expressions, ValueId a, ValueId b) {
    a = before_stretch(expressions, a);
    if (a == b) return true;
    const Opcode opcode = expressions.op_of(a);
    return opcode == expressions.op_of(b) && (opcode == Opcode::kGather || opcode == Opcode::kSlice) &&
           are_computed_alike(expressions, a, b, 2);
  }

  /// What squares and distances of the loss are computed from, and which of them.
  static std::map<ValueId, std::size_t> values_in_squares(const Expressions& expressions,
                                                          const std::vector<LossTerm>& terms) {
    constexpr int kMaxSquares = 4;
    std::map<ValueId, std::size_t> found;
    int squares = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      ValueId base = expressions.square_base(terms[i].value);
      const NodeId node = expressions.producer(terms[i].value);
      if (base == ValueId::kAbsent && expressions.op(node) == Opcode::kAbs) base = expressions.operand(node, 0);
      if (base == ValueId::kAbsent || !(terms[i].factor > 0) || ++squares > kMaxSquares) continue;
      walk_back(expressions, base, [&](ValueId value, NodeId) {
        found.try_emplace(value, i);
        return true;
      });
    }
    return found;
  }

  /// Where two terms are added, or one is subtracted.
  static NodeId sum_of(const Expressions& expressions, const std::vector<LossTerm>& terms, std::size_t a,
                       std::size_t b) {
    while (a != b) (a > b ? a : b) = terms[std::max(a, b)].from;
    return expressions.producer(terms[a].value);
  }

  static void follow(const Expressions& expressions, const std::vector<LossTerm>& terms,
                     const std::map<ValueId, std::size_t>& squared, Scale& scale) {
    constexpr std::size_t kMaxValues = 12;
    struct Power {
      ValueId value;
      double sign;
    };
    const auto is_term = [&](ValueId value) {
      return std::ranges::any_of(terms, [&](const LossTerm& term) { return term.value == value; });
    };
    const auto meet = [&](ValueId product, double sign, NodeId node) {
      const auto square = squared.find(product);
      // Of a term that is scaled itself, one-sided-loss says which way it goes.
      scale.is_held |= is_term(product) || (square != squared.end() && sign * terms[scale.term].factor < 0);
      if (square == squared.end()) return;
      scale.squared = square->second;
      scale.scaled = node;
    };
    scale.is_held = is_term(scale.of);
    std::vector<Power> powers{{scale.of, scale.sign}};
    for (std::size_t i = 0; i < powers.size() && powers.size() < kMaxValues; ++i) {
      const auto [value, sign] = powers[i];
      for (const NodeId user : expressions.users(value)) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        expressions.charge(kMaxScales);
        if (result == ValueId::kAbsent || user == scale.node) continue;
        const auto numbered = with_number(expressions, user);
        const bool is_square = expressions.square_base(result) == value;
        if (is_square || ops::repeats_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kClip ||
            (numbered && numbered->number > 0 &&
             (opcode == Opcode::kMul || opcode == Opcode::kAdd || (opcode == Opcode::kDiv && !numbered->is_first)))) {
          if (is_term(result))
            meet(result, sign, user);
          else
            powers.push_back({result, sign});
        } else if (opcode == Opcode::kMul) {
          meet(result, sign, user);
        } else if (opcode == Opcode::kDiv) {
          meet(result, expressions.operand(user, 0) == value ? sign : -sign, user);
        }
      }
    }
  }

  static void report_scale(const Expressions& expressions, const std::vector<LossTerm>& terms, const Scale& scale,
                           Reporter& out) {
    const NodeId sum = sum_of(expressions, terms, scale.term, *scale.squared);
    if (out.shared<ReportedNodes>().has("TL-L312", sum)) return;
    const bool falls = terms[scale.term].factor > 0;
    const Operand logarithm(expressions.analysis(), terms[scale.term].value);
    out.report(sum, fmt::format(
                        "the loss falls without bound as {} {}: it is {} the loss, and what {} scales goes to 0 with "
                        "it",
                        logarithm.name(), falls ? "falls" : "rises", falls ? "added to" : "subtracted from",
                        Operand(expressions.analysis(), scale.of).name()))
        .note_at(scale.node, "the scale and its logarithm part here")
        .note_at(scale.scaled, "what is squared in the loss is scaled here")
        .fix("change the sign of one of the two");
  }
};

const RegisterRule<ScaleWithoutBound> kRegisterScaleWithoutBound;

}  // namespace
}  // namespace tensorlint::rules
