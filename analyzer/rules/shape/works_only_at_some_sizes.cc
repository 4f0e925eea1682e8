#include <fmt/format.h>

#include <string>

#include "analyzer/findings/violation_text.h"
#include "analyzer/rules/rule.h"
#include "base/escape.h"
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
  }

 private:
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
