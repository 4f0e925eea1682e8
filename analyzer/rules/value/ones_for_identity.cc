#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

/// |W W^T - 1|^2 for |W W^T - I|^2: least where all rows are one and the same, and not where they are orthogonal.
class OnesForIdentity : public Rule {
 public:
  OnesForIdentity()
      : Rule({"TL-V571", "ones-for-identity", "value", findings::Severity::kWarning,
              "a product of a matrix with its transpose, less 1 in every element instead of the identity"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kSub}, [&](const Expressions& expressions, const NodeCall& call) {
      const ValueId products = before_scale(expressions, beside_one(expressions, call.id()));
      if (products == ValueId::kAbsent || !is_of_rows(expressions, expressions.producer(products), out) ||
          !is_penalty(expressions, call.result()))
        return;
      const dataflow::Analysis& analysis = view.analysis();
      const Operand matrix(analysis, products);
      const std::string shape = analysis.facts().shape_text(matrix.fact().shape);
      out.report(call.id(), fmt::format("{} {} is compared with 1 in every element: the penalty is least where all "
                                        "rows are the same, and not where they are orthogonal",
                                        matrix.name(), shape))
          .note_at(expressions.producer(products), "rows are multiplied with each other here")
          .fix("subtract the identity, such as torch.eye(n)");
    });
  }

 private:
  static constexpr int kMaxSteps = 8;

  /// What 1 is subtracted from, or what is subtracted from 1, as a number or a whole matrix.
  static ValueId beside_one(const Expressions& expressions, NodeId node) {
    if (const auto difference = with_number(expressions, node))
      return difference->number == 1 ? difference->value : ValueId::kAbsent;
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
      if (expressions.op_of(before_scale(expressions, expressions.operand(node, 1 - side))) != Opcode::kMatMul)
        continue;
      const auto numbers = constant_numbers(expressions, expressions.operand(node, side));
      if (numbers && !numbers->empty())
        return std::ranges::all_of(*numbers, [](double number) { return number == 1; })
                   ? expressions.operand(node, 1 - side)
                   : ValueId::kAbsent;
    }
    return ValueId::kAbsent;
  }

  /// A product of a matrix with its own transpose: of weights, of features over the samples, or of attention.
  static bool is_of_rows(const Expressions& expressions, NodeId product, Reporter& out) {
    if (expressions.op(product) != Opcode::kMatMul || expressions.operand(product, 2) != ValueId::kAbsent) return false;
    const ValueId a = expressions.operand(product, 0), b = expressions.operand(product, 1);
    const auto dims = expressions.dims(expressions.result(product));
    const DimPool& pool = expressions.analysis().facts().dims();
    if (dims.size() < 2 || !pool.equal(dims[dims.size() - 1], dims[dims.size() - 2]) ||
        pool.is_constant(dims.back(), 1))
      return false;
    if (!are_transposed(expressions, product, a, b)) return false;
    if (is_weight(expressions, a) && is_weight(expressions, b)) return true;
    if (const auto shares = expressions.normalised(expressions.op_of(a) == Opcode::kTranspose ? b : a);
        shares && !shares->logarithm)
      return true;
    losses::AxisOrigins& origins = out.shared<losses::LossAxes>().origins;
    const losses::AxisWay way(expressions);
    const auto summed = way.summed(product, 0);
    return dims.size() == 2 && summed.size() == 1 && origins.is_batch(a, summed.front()) &&
           !origins.is_batch(expressions.result(product), 0);
  }

  static bool are_transposed(const Expressions& expressions, NodeId product, ValueId a, ValueId b) {
    const auto turned = [&](ValueId value) {
      return expressions.op_of(value) == Opcode::kTranspose ? expressions.operand(expressions.producer(value), 0)
                                                            : ValueId::kAbsent;
    };
    if (turned(a) == b || turned(b) == a) return true;
    const auto turns = [&](std::string_view name) {
      const Attribute* const given = expressions.analysis().attribute(product, name);
      return given != nullptr && given->i != 0;
    };
    if (a == b) return turns("transA") != turns("transB");
    // A transposed weight is folded into one of its own.
    const auto x = expressions.dims(a), y = expressions.dims(b);
    const DimPool& pool = expressions.analysis().facts().dims();
    if (x.size() != 2 || y.size() != 2 || turns("transA") || turns("transB")) return false;
    const auto rows = pool.as_constant(x[0]), columns = pool.as_constant(x[1]);
    if (!rows || !columns || *rows < 1 || !pool.equal(x[0], y[1]) || !pool.equal(x[1], y[0])) return false;
    const auto first = constant_numbers(expressions, a), second = constant_numbers(expressions, b);
    if (!first || !second || first->size() != second->size() || first->empty()) return false;
    const auto width = static_cast<std::size_t>(*columns), height = static_cast<std::size_t>(*rows);
    if (width * height != first->size()) return false;
    for (std::size_t i = 0; i < first->size(); ++i)
      if ((*first)[i] != (*second)[i % width * height + i / width]) return false;
    return true;
  }

  /// Computed from initializers alone.
  static bool is_weight(const Expressions& expressions, ValueId value) {
    constexpr std::size_t kMaxValues = 16;
    const dataflow::Analysis& analysis = expressions.analysis();
    std::vector<ValueId> pending{value};
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const NodeId node = expressions.producer(pending[i]);
      if (node == NodeId::kNone) {
        if (analysis.model().value(pending[i]).initializer == nullptr) return false;
        continue;
      }
      for (const ValueId operand : analysis.operands(node)) {
        if (operand == ValueId::kAbsent || std::ranges::find(pending, operand) != pending.end()) continue;
        if (pending.size() == kMaxValues) return false;
        pending.push_back(operand);
      }
    }
    return true;
  }

  /// Its squares or sizes are added up, all of them alike.
  static bool is_penalty(const Expressions& expressions, ValueId value) {
    bool sized = false;
    for (int step = 0; step < kMaxSteps; ++step) {
      NodeId next = NodeId::kNone;
      for (const NodeId user : expressions.users(value)) {
        if (expressions.op(user) == Opcode::kShape || user == next) continue;
        if (next != NodeId::kNone) return false;
        next = user;
      }
      if (next == NodeId::kNone) return false;
      const Opcode opcode = expressions.op(next);
      const ValueId result = expressions.result(next);
      const bool is_norm =
          opcode == Opcode::kReduceL1 || opcode == Opcode::kReduceL2 || opcode == Opcode::kReduceSumSquare;
      const bool sums = opcode == Opcode::kReduceSum || opcode == Opcode::kReduceMean || is_norm;
      if (sums && (sized || is_norm)) return true;
      const bool squares = opcode == Opcode::kAbs || expressions.square_base(result) == value;
      sized = sized || squares;
      if (!squares && !ops::keeps_elements(opcode) && opcode != Opcode::kCast) return false;
      value = result;
    }
    return false;
  }
};

const RegisterRule<OnesForIdentity> kRegisterOnesForIdentity;

}  // namespace
}  // namespace tensorlint::rules
