#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class GramOfWholeBatch : public Rule {
 public:
  GramOfWholeBatch()
      : Rule({"TL-S218", "gram-of-whole-batch", "shape", findings::Severity::kWarning,
              "products of channels with channels of other pictures of the batch"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kMatMul}, [&](const Expressions& expressions, const NodeCall& call) {
      const NodeId view_of_all = flattened_twice(expressions, call);
      if (view_of_all == NodeId::kNone || call.operand(0).taint().has(Aspect::kShape)) return;
      const ValueId maps = expressions.operand(view_of_all, 0);
      if (!out.shared<losses::LossAxes>().origins.is_batch(maps, 0) || !has_channels(expressions, maps) ||
          is_taken_apart(expressions, call.result()))
        return;
      out.report(call.id(),
                 fmt::format("the channels of {} pictures are the rows of {}: each is multiplied with those of "
                             "the others, too",
                             call.facts().dims().as_constant(expressions.dims(maps)[0]).value_or(0),
                             described(call.analysis(), expressions.result(view_of_all))))
          .note_at(view_of_all, "the axes of pictures and channels become one here")
          .fix("keep the axis of the pictures: view(b, c, h * w), and multiply with torch.bmm");
    });
  }

 private:
  static constexpr int kMaxSteps = 12;

  /// The Reshape [N, C, ...] to [N * C, rest] of M for M * transposed M, where N is a number above 1; else kNone.
  static NodeId flattened_twice(const Expressions& expressions, const NodeCall& call) {
    const dataflow::Analysis& analysis = call.analysis();
    const ValueId rows = call.operand(0).value(), columns = call.operand(1).value();
    const NodeId reshape = expressions.producer(rows);
    if (expressions.op(reshape) != Opcode::kReshape || columns == ValueId::kAbsent) return NodeId::kNone;
    const Attribute* turned = call.attribute("transB");
    const bool is_turned = turned != nullptr && turned->i != 0;
    const NodeId other = expressions.producer(columns);
    const ValueId twin = is_turned                                     ? columns
                         : expressions.op(other) == Opcode::kTranspose ? expressions.operand(other, 0)
                                                                       : ValueId::kAbsent;
    const ValueId maps = expressions.operand(reshape, 0);
    const auto before = expressions.dims(maps), after = expressions.dims(rows);
    if (twin == ValueId::kAbsent || (twin != rows && !are_computed_alike(expressions, twin, rows, 2)) ||
        before.size() < 3 || after.size() != 2)
      return NodeId::kNone;
    DimPool& pool = analysis.facts().dims();
    const auto pictures = pool.as_constant(before[0]), channels = pool.as_constant(before[1]);
    return pictures && *pictures > 1 && channels && *channels > 1 &&
                   pool.equal(after[0], pool.mul(before[0], before[1]))
               ? reshape
               : NodeId::kNone;
  }

  /// Maps of a convolution as it gives them, [N, C, ...].
  static bool has_channels(const Expressions& expressions, ValueId value) {
    const std::size_t rank = expressions.dims(value).size();
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (expressions.dims(value).size() != rank || node == NodeId::kNone) return false;
      if (opcode == Opcode::kConv) return true;
      const bool keeps_axes = opcode == Opcode::kOther || opcode == Opcode::kNormalize || opcode == Opcode::kCast ||
                              opcode == Opcode::kExpand || opcode == Opcode::kIdentity || opcode == Opcode::kDropout ||
                              has_trait(expressions.entry(node), ops::OpTrait::kElementwise);
      if (!keeps_axes) return false;
      value = expressions.operand(node, 0);
    }
    return false;
  }

  /// Some of the products are chosen or hidden: the others may be left out.
  static bool is_taken_apart(const Expressions& expressions, ValueId product) {
    constexpr std::size_t kMaxValues = 8;
    std::vector<ValueId> pending{product};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        if (ops::picks_elements(opcode) && opcode != Opcode::kExpand && opcode != Opcode::kIdentity) return true;
        if (opcode == Opcode::kWhere || opcode == Opcode::kSoftmax || opcode == Opcode::kEinsum) return true;
        const bool is_product = opcode == Opcode::kMul || opcode == Opcode::kDiv;
        if (is_product && !with_number(expressions, user) &&
            expressions.operand(user, 0) != expressions.operand(user, 1))
          return true;
        const ValueId result = expressions.result(user);
        if (result != ValueId::kAbsent && (is_product || opcode == Opcode::kCast)) pending.push_back(result);
      }
    return false;
  }
};

const RegisterRule<GramOfWholeBatch> kRegisterGramOfWholeBatch;

}  // namespace
}  // namespace tensorlint::rules
