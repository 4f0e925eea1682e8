#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "analyzer/findings/violation_text.h"
#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "base/escape.h"
#include "ir/ops/shape_functions.h"
#include "passes/contract/dim_text.h"

namespace tensorlint::rules {
namespace {

class WorksOnlyAtSomeSizes : public Rule {
 public:
  WorksOnlyAtSomeSizes()
      : Rule({"TL-S210", "works-only-at-some-sizes", "shape", findings::Severity::kWarning,
              "an axis that is declared dynamic and works at one size only"},
             {passes::Pass::kSingleSizes}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    for (const contract::SingleSize& single : view.single_sizes().found) report(view.analysis(), single, out);
    std::set<NodeId> known;  // class-axis-position reports these
    for (const losses::AxisMistake& mistake : axis_mistakes(out)) known.insert(mistake.node);
    each_node(view, out, {ops::Opcode::kReshape}, [&](const losses::Expressions& expressions, const NodeCall& call) {
      if (!known.contains(call.id())) check_rows(expressions, call, out);
    });
  }

 private:
  /// The elements of a sample are neither whole rows of a layer nor a whole part of one: the rows take from several
  /// samples, and one sample alone does not fill them.
  static void check_rows(const losses::Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Operand data = call.operand(0);
    // What is in a branch need not run.
    if (call.node().graph != GraphId::kMain || !data.present() || data.taint().has(Aspect::kShape)) return;
    DimPool& pool = call.analysis().facts().dims();
    const auto before = expressions.dims(data.value()), after = expressions.dims(call.result());
    if (before.size() < 2 || after.size() < 2 || !pool.is_symbol(before[0]) || after[0].is_unknown() ||
        pool.as_constant(after[0]) || pool.equal(before[0], after[0]))
      return;
    const auto of_sample = pool.as_constant(ops::element_count(pool, before.subspan(1))),
               of_row = pool.as_constant(ops::element_count(pool, after.subspan(1)));
    if (!of_sample || !of_row || *of_sample < 2 || *of_row < 2 || *of_sample % *of_row == 0 ||
        *of_row % *of_sample == 0)
      return;
    const auto [input, axis] = input_with(call.analysis(), before[0]);
    // Without a layer the rows may be cut again, and mean no samples.
    if (input == ValueId::kAbsent || !is_read_by_layer(expressions, call.result())) return;
    const std::string named = quoted_for_people(call.model().name_of(input));
    const bool has_name = pool.is_named(before[0]);
    const std::string name = has_name ? quoted_for_people(pool.to_text(before[0])) : "dynamic";
    out.report(call.id(), fmt::format("axis {} of {} is declared {}, and the model runs only with multiples of {}",
                                      axis, named, name, *of_row / std::gcd(*of_sample, *of_row)))
        .value(input)
        .note_at(call.id(), fmt::format("with {}1: the {} elements of {} do not fill rows of {}",
                                        has_name ? name + " = " : "", *of_sample, data.name(), *of_row))
        .fix(fmt::format("keep the axis of the samples, as flatten(1) does, and give the layer {} features",
                         *of_sample));
  }

  static std::pair<ValueId, std::size_t> input_with(const dataflow::Analysis& analysis, Dim symbol) {
    for (const ValueId input : analysis.inputs(GraphId::kMain)) {
      const Fact& fact = analysis.fact(input);
      if (fact.kind != ValueKind::kTensor || !analysis.facts().is_ranked(fact.shape)) continue;
      const auto dims = analysis.facts().dims_of(fact.shape);
      analysis.meter().charge(dims.size());
      for (std::size_t axis = 0; axis < dims.size(); ++axis)
        if (dims[axis] == symbol) return {input, axis};
    }
    return {ValueId::kAbsent, 0};
  }

  static void report(const dataflow::Analysis& analysis, const contract::SingleSize& single, Reporter& out) {
    const dataflow::NodeViolation& failure = single.failure();
    const DimPool& dims = analysis.facts().dims();
    const std::string input = quoted_for_people(analysis.model().name_of(single.extent.input));
    const bool is_named = dims.is_named(single.extent.symbol);
    const std::string name = is_named ? quoted_for_people(dims.to_text(single.extent.symbol)) : "dynamic";
    const std::string sizes = single.least == single.most ? fmt::format("{}", single.most)
                                                          : fmt::format("{} to {}", single.least, single.most);
    const std::string runs =
        single.formula ? fmt::format("where {} is {}", contract::text_of(analysis, *single.formula), single.value)
                       : "with " + sizes;
    const std::string fix =
        single.formula
            ? fmt::format("compute the shape from the shape of {}, or declare each of these axes with its extent",
                          input)
            : fmt::format("compute what has the size {} from the shape of {}, or declare the axis with that extent",
                          sizes, input);
    out.report(failure.node, fmt::format("axis {} of {} is declared {}, and the model runs only {}", single.extent.axis,
                                         input, name, runs))
        .value(single.extent.input)
        .note_at(failure.node, fmt::format("with {}{}: {}", is_named ? name + " = " : "", single.tried,
                                           findings::violation_text(*single.solved, failure)))
        .fix(fix);
  }
};

const RegisterRule<WorksOnlyAtSomeSizes> kRegisterWorksOnlyAtSomeSizes;

}  // namespace
}  // namespace tensorlint::rules
