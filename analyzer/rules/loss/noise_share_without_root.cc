#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class NoiseShareWithoutRoot : public Rule {
 public:
  NoiseShareWithoutRoot()
      : Rule({"TL-L340", "noise-share-without-root", "loss", findings::Severity::kWarning,
              "data and noise mixed with shares themselves, where their roots are needed"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kAdd}, [&](const Expressions& expressions, const NodeCall& call) {
      const auto first = share_of(expressions, call.operand(0).value()),
                 second = share_of(expressions, call.operand(1).value());
      if (check_plain(expressions, view, call, out)) return;
      if (first && second && check_roots(expressions, view, call, *first, *second, out)) return;
      if (!first || !second || first->of != second->of || first->is_rest == second->is_rest ||
          first->is_root == second->is_root)
        return;
      const Share& root = first->is_root ? *first : *second;
      const Share& plain = first->is_root ? *second : *first;
      out.report(call.id(),
                 fmt::format("the root of a share and {} itself mix two values: their squares do not add up to "
                             "1, and the variance changes with the share",
                             plain.is_rest ? "the rest" : "the share"))
          .note_at(root.node, "the root is taken here")
          .fix("take the root of both shares: sqrt(a) * x + sqrt(1 - a) * noise");
    });
  }

 private:
  /// a * x + (1 - a) * noise, with a from a table of what is left of the data after so many steps, where the noise is
  /// what is to be predicted. A straight way from data to noise has such shares as well, and predicts the difference.
  static bool check_plain(const Expressions& expressions, const ModelView& view, const NodeCall& call, Reporter& out) {
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const NodeId data = expressions.producer(call.operand(side).value()),
                   added = expressions.producer(call.operand(1 - side).value());
      if (expressions.op(data) != Opcode::kMul || expressions.op(added) != Opcode::kMul) continue;
      for (const std::size_t at : {std::size_t{0}, std::size_t{1}}) {
        ValueId share = rest_of(expressions, expressions.operand(added, at));
        const ValueId noise = expressions.operand(added, 1 - at);
        // The rest may be a table of its own.
        if (share == ValueId::kAbsent) share = share_beside_rest(expressions, data, expressions.operand(added, at));
        if (share == ValueId::kAbsent || noise == ValueId::kAbsent || !has_factor(expressions, data, share) ||
            !is_of_table(expressions, share))
          continue;
        const ValueId drawn = before_stretch(expressions, noise);
        const bool is_target = std::ranges::any_of(view.losses(), [&](const losses::LossSite& loss) {
          return ops::is_regression(loss.kind) && loss.target != ValueId::kAbsent &&
                 before_stretch(expressions, loss.target) == drawn;
        });
        if (!is_target) continue;
        out.report(call.id(),
                   fmt::format("a share and the rest of it mix the data and {}: their squares do not add up to "
                               "1, and the variance changes with the step",
                               Operand(call.analysis(), drawn).name()))
            .note_at(expressions.producer(share), "the share of the data is looked up here")
            .fix("take the root of both shares: sqrt(a) * x + sqrt(1 - a) * noise");
        return true;
      }
    }
    return false;
  }

  /// The factor of a product that is looked up at the same steps as `rest`, in a table of what that one leaves to 1.
  static ValueId share_beside_rest(const Expressions& expressions, NodeId product, ValueId rest) {
    constexpr double kRounding = 1e-4;
    const auto looked_up = [&](ValueId value) {
      const NodeId node =
          value == ValueId::kAbsent ? NodeId::kNone : expressions.producer(before_stretch(expressions, value));
      const bool is_it = expressions.op(node) == Opcode::kGather || expressions.op(node) == Opcode::kGatherND;
      return is_it && is_constant(expressions, expressions.operand(node, 0)) ? node : NodeId::kNone;
    };
    const NodeId other = looked_up(rest);
    if (other == NodeId::kNone) return ValueId::kAbsent;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const NodeId own = looked_up(expressions.operand(product, side));
      if (own == NodeId::kNone || own == other ||
          !are_computed_alike(expressions, expressions.operand(own, 1), expressions.operand(other, 1)))
        continue;
      const auto shares = constant_numbers(expressions, expressions.operand(own, 0)),
                 rests = constant_numbers(expressions, expressions.operand(other, 0));
      const auto add_up = [](double a, double b) { return std::abs(a + b - 1) < kRounding; };
      if (shares && rests && std::ranges::equal(*shares, *rests, add_up)) return expressions.result(own);
    }
    return ValueId::kAbsent;
  }

  static bool has_factor(const Expressions& expressions, NodeId product, ValueId share) {
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
      if (const ValueId factor = expressions.operand(product, side);
          factor != ValueId::kAbsent && before_stretch(expressions, factor) == share)
        return true;
    return false;
  }

  /// Looked up in numbers that fall from nearly 1 towards 0, and not by equal steps.
  static bool is_of_table(const Expressions& expressions, ValueId share) {
    constexpr double kFirst = 0.9, kBend = 0.02;
    const NodeId node = expressions.producer(share);
    if (expressions.op(node) != Opcode::kGather && expressions.op(node) != Opcode::kGatherND) return false;
    const auto table = constant_numbers(expressions, expressions.operand(node, 0));
    if (!table || table->size() < 4 || !(table->front() > kFirst) || table->front() > 1 || table->back() < 0)
      return false;
    if (!std::ranges::is_sorted(*table, std::ranges::greater())) return false;
    const std::size_t last = table->size() - 1;
    const double whole = table->front() - table->back();
    const double middle = table->front() - whole * static_cast<double>(table->size() / 2) / static_cast<double>(last);
    return whole > 0 && std::abs((*table)[table->size() / 2] - middle) > kBend * whole;
  }

  /// What a factor of a product is: a, 1 - a, or the root of either.
  struct Share {
    ValueId of = ValueId::kAbsent;
    bool is_rest = false, is_root = false;
    NodeId node = NodeId::kNone;
  };

  static bool is_noise(const Expressions& expressions, ValueId value) {
    if (is_drawn(expressions, value)) return true;
    if (!is_input(expressions.analysis(), value)) return false;
    const std::string_view name = telling_name(expressions.analysis(), value);
    return name.find("noise") != std::string_view::npos || name == "eps" || name == "epsilon";
  }

  /// sqrt(1 - a) * x + sqrt(a) * noise, with a table of what is left of the data: the shares are exchanged. And
  /// sqrt(a) * x + (1 - sqrt(a)) * noise, whose squares do not add up to 1.
  static bool check_roots(const Expressions& expressions, const ModelView& view, const NodeCall& call,
                          const Share& first, const Share& second, Reporter& out) {
    const Share &root = first.is_rest ? second : first, &rest = first.is_rest ? first : second;
    if (root.is_rest || !rest.is_rest || !root.is_root) return false;
    const ValueId of_root = expressions.result(root.node);
    if (!rest.is_root) {
      if (rest.of != of_root || !is_of_table(expressions, root.of)) return false;
      out.report(call.id(),
                 "a root of a share and the rest of that root mix two values: their squares do not add up to 1")
          .note_at(root.node, "the root is taken here")
          .fix("take the root of the rest: sqrt(a) * x + sqrt(1 - a) * noise");
      return true;
    }
    if (rest.of != root.of || !is_of_table(expressions, root.of)) return false;
    const NodeId product = expressions.producer(call.operand(first.is_rest ? 1 : 0).value());
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId noise = expressions.operand(product, side);
      if (noise == ValueId::kAbsent || before_stretch(expressions, noise) == of_root) continue;
      const ValueId drawn = before_stretch(expressions, noise);
      // The data may be what is to be predicted: a name tells the two apart, unless one was drawn.
      if (!is_noise(expressions, drawn) || std::ranges::none_of(view.losses(), [&](const losses::LossSite& loss) {
            return ops::is_regression(loss.kind) && loss.target != ValueId::kAbsent &&
                   before_stretch(expressions, loss.target) == drawn;
          }))
        continue;
      out.report(call.id(), fmt::format("{}, which is to be predicted, has the share of the data, and the data what is "
                                        "left: the first steps are nearly all noise",
                                        Operand(call.analysis(), drawn).name()))
          .note_at(expressions.producer(root.of), "the share of the data is looked up here")
          .fix("exchange the two: sqrt(a) * x + sqrt(1 - a) * noise");
      return true;
    }
    return false;
  }

  /// Of a product the factor that is a root or a rest; a share itself only where it is known from the other one.
  static std::optional<Share> share_of(const Expressions& expressions, ValueId product) {
    const NodeId node = product == ValueId::kAbsent ? NodeId::kNone : expressions.producer(product);
    if (expressions.op(node) != Opcode::kMul) return std::nullopt;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      ValueId factor = expressions.operand(node, side);
      if (factor == ValueId::kAbsent) continue;
      factor = before_stretch(expressions, factor);
      Share share{factor, false, false, expressions.producer(factor)};
      if (expressions.op(share.node) == Opcode::kSqrt) {
        share.is_root = true;
        share.of = before_stretch(expressions, expressions.operand(share.node, 0));
      }
      if (const ValueId rest = expressions.complement(share.of); rest != ValueId::kAbsent) {
        share.is_rest = true;
        share.of = before_stretch(expressions, rest);
      }
      if (share.is_root || share.is_rest) return share;
    }
    return std::nullopt;
  }
};

const RegisterRule<NoiseShareWithoutRoot> kRegisterNoiseShareWithoutRoot;

}  // namespace
}  // namespace tensorlint::rules
