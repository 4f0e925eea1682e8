#include <fmt/format.h>

#include <array>
#include <optional>

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
              "data and noise mixed with the root of one share and the other share itself"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kAdd}, [&](const Expressions& expressions, const NodeCall& call) {
      const auto first = share_of(expressions, call.operand(0).value()),
                 second = share_of(expressions, call.operand(1).value());
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
  /// What a factor of a product is: a, 1 - a, or the root of either.
  struct Share {
    ValueId of = ValueId::kAbsent;
    bool is_rest = false, is_root = false;
    NodeId node = NodeId::kNone;
  };

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
