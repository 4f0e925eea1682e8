#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "analyzer/rules/casts.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class IndexThroughLowPrecision : public Rule {
 public:
  IndexThroughLowPrecision()
      : Rule({"TL-D113", "index-through-low-precision", "dtype", findings::Severity::kWarning,
              "an index that was kept in a floating-point dtype which does not have all of them"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.is(Opcode::kGather)) check_lookup(expressions, call, out);
    });
  }

 private:
  static void check_lookup(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const Operand table = call.operand(0), index = call.operand(1);
    const Attribute* axis = call.attribute("axis");
    const auto dims = table.present() ? expressions.dims(table.value()) : std::span<const Dim>();
    if (!index.present() || dims.empty() || (axis != nullptr && axis->i != 0)) return;
    const auto rows = analysis.facts().dims().as_constant(dims[0]);
    const auto narrow = narrow_source(expressions, index.value());
    if (!rows || !narrow) return;
    const double last = std::fmin(static_cast<double>(*rows - 1), narrow->range.hi);
    if (is_exact_in({0, last, false}, narrow->dtype)) return;
    const double exact = largest_exact(narrow->dtype);
    out.report(narrow->cast, fmt::format("{} has indices in {}, which has only some of the integers above {}",
                                         Operand(analysis, narrow->value).name(), to_text(narrow->dtype), exact))
        .note_at(call.id(), fmt::format("used as an index of {} rows here", *rows))
        .certainty(ops::Certainty::kMay,
                   fmt::format("an index is {:.0f}, and becomes {:.0f} or {:.0f}", exact + 1, exact, exact + 2))
        .fix("keep indices in an integer dtype, apart from numbers of low precision");
  }

  struct Narrow {
    NodeId cast;
    ValueId value;
    DType dtype;
    Range range;
  };

  /// What the index was cast from, where that is an index as it is: an input, or integers before another cast.
  static std::optional<Narrow> narrow_source(const Expressions& expressions, ValueId index) {
    const dataflow::Analysis& analysis = expressions.analysis();
    std::optional<Narrow> found;
    constexpr int kMaxSteps = 12;
    for (int step = 0; step < kMaxSteps && index != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(index);
      if (node == NodeId::kNone) return is_input(analysis, index) ? found : std::nullopt;
      const Opcode opcode = expressions.op(node);
      const ValueId before = expressions.operand(node, 0);
      if (before == ValueId::kAbsent) return std::nullopt;
      const Fact& fact = analysis.fact(before);
      if (opcode == Opcode::kCast) {
        const auto dtype = fact.dtypes.single();
        if (found && fact.dtypes.proves(DTypeSet::integers())) {
          found->range = fact.range;
          return found;
        }
        if (dtype && DTypeSet::floats().contains(*dtype) &&
            (!found || largest_exact(*dtype) < largest_exact(found->dtype)))
          found = Narrow{node, before, *dtype, fact.range};
      } else if (!ops::picks_elements(opcode) && opcode != Opcode::kClip && opcode != Opcode::kRound) {
        return std::nullopt;
      }
      index = before;
    }
    return std::nullopt;
  }

  static double largest_exact(DType dtype) {
    double exact = 1;
    while (exact < 1e18 && is_exact_in({0, 2 * exact, false}, dtype)) exact *= 2;
    return exact;
  }
};

const RegisterRule<IndexThroughLowPrecision> kRegisterIndexThroughLowPrecision;

}  // namespace
}  // namespace tensorlint::rules
