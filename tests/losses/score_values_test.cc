#include "passes/losses/score_values.h"

#include <gtest/gtest.h>

#include <string>

#include <fmt/format.h>

#include "ir/text/reader.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::losses {
namespace {

/// Scores of a layer, their mean less 1, the mean of that less 1, and so on: `x0` to `x9`.
std::string means_of_means() {
  std::string nodes = "x0 = MatMul (x, w)\n";
  for (int i = 1; i < 10; ++i) nodes += fmt::format("m{0} = ReduceMean (x{1})\nx{0} = Sub (m{0}, one)\n", i, i - 1);
  return fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (float[N, 3] x) => (float[1, 1] x9)\n"
      "<float[3, 2] w = {{1, -2, 3, -4, 5, -6}}, float one = {{1}}> {{\n{}}}",
      nodes);
}

TEST(ScoreValues, DoNotDependOnWhatWasAskedForFirst) {
  const Result<Model> model = read_onnx_text(means_of_means(), "m.onnxtxt");
  ASSERT_TRUE(model) << model.error().message;
  const dataflow::Analysis analysis = dataflow::analyse(*model, {});
  const Expressions expressions(analysis);
  const auto value = [&](int i) { return model->find_value(GraphId::kMain, fmt::format("x{}", i)); };
  ScoreValues deepest_first(expressions);
  deepest_first.of(value(9));
  for (int i = 0; i < 10; ++i) {
    ScoreValues alone(expressions);
    const ScoreValues::Reach expected = alone.of(value(i)), known = deepest_first.of(value(i));
    EXPECT_EQ(known.negative, expected.negative) << i;
    EXPECT_EQ(known.positive, expected.positive) << i;
    EXPECT_EQ(known.layer, expected.layer) << i;
  }
  EXPECT_TRUE(ScoreValues(expressions).of(value(4)).negative);
  EXPECT_FALSE(ScoreValues(expressions).of(value(9)).negative);
}

}  // namespace
}  // namespace tensorlint::losses
