// What is planned where the meter of the input is spent before the plan is made, at each point of it.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string_view>

#include "passes/dataflow/analysis.h"
#include "runtime/executor/kernel_matcher.h"
#include "runtime/executor/readers.h"
#include "tests/runtime/read_graph.h"

namespace tensorlint::runtime {
namespace {

constexpr std::string_view kGraph =
    "g (float[4, 6] x, float[6, 5] w) => (float[4, 5] y, float[2, 12] z, float[8, 6] c) {\n"
    " s = Constant <value_ints = [2, 12]> ()\n a = Neg (x)\n b = Mul (a, x)\n p = MatMul (b, w)\n q = Softmax (p)\n"
    " y = Exp (q)\n z = Reshape (b, s)\n c = Concat <axis = 0> (x, b)\n}";

TEST(KernelMatchers, EndWhereTheMeterIsSpent) {
  const Model model = read_graph(kGraph);
  const Readers readers(model);
  const IdVector<NodeId, std::size_t> places;
  std::size_t all = 0, none = 0;
  for (std::uint64_t left = 0; all < 3; left += 7) {
    dataflow::AnalysisOptions options;
    options.meter = dataflow::meter_of(model);
    const dataflow::Analysis analysis = dataflow::analyse(model, options);
    Meter& meter = analysis.meter();
    // A quarter is kept for the report.
    meter.charge(meter.steps_allowed() - meter.steps_allowed() / 4 - meter.steps() - left);
    KernelMatcher matcher(analysis, readers, UINT64_MAX, places);
    const std::map<NodeId, KernelCall> calls = matcher.find();
    none += calls.empty() ? 1 : 0;
    all += calls.size() >= 6 ? 1 : 0;
    if (!meter.is_spent()) continue;
    for (const NodeId node : model.nodes.ids()) {
      if (!calls.empty() || model.text(model.op(model.node(node)).name) != "Exp") continue;
      EXPECT_EQ(matcher.reason(node), "the model needs more work than its size allows") << left;
    }
    ASSERT_LT(left, 1'000'000U);
  }
  EXPECT_GT(none, 0U);
}

}  // namespace
}  // namespace tensorlint::runtime
