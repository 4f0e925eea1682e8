// What was found out about a model, and that a pass which has not run is not read as if it had found nothing.
#include "passes/results/pass_results.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "analyzer/pipeline/pipeline.h"
#include "ir/text/reader.h"

namespace tensorlint::passes {
namespace {

Model loss_model() {
  Result<Model> model = read_onnx_text(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[2, 3] x, int64[2] t) => (loss) { loss = SoftmaxCrossEntropyLoss (x, t) })",
                                       "m.onnxtxt");
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return std::move(*model);
}

PassResults results() { return PassResults(std::make_unique<const Model>(loss_model())); }

TEST(PassResults, APassRunsAfterThoseThatItNeeds) {
  PassResults known = results();
  known.run({Pass::kLosses});
  EXPECT_TRUE(known.has(Pass::kAnalysis));
  EXPECT_FALSE(known.has(Pass::kPlacement));
  ASSERT_EQ(known.losses().size(), 1U);
}

TEST(PassResults, WhatHasNotRunCannotBeRead) {
  PassResults known = results();
  EXPECT_THROW(known.analysis(), std::logic_error);
  EXPECT_THROW(known.runtime_cost(), std::logic_error);
  known.run({Pass::kAnalysis});
  try {
    known.placement();
    FAIL() << "no exception";
  } catch (const std::logic_error& fault) {
    EXPECT_EQ(std::string(fault.what()), "the result of the pass `placement` is read before the pass has run");
  }
}

TEST(PassResults, APassRunsOnce) {
  PassResults known = results();
  known.run({Pass::kAnalysis, Pass::kLosses});
  const dataflow::Analysis* const first = &known.analysis();
  const losses::LossSite* const site = known.losses().data();
  known.run({Pass::kAnalysis, Pass::kLosses, Pass::kPlacement, Pass::kRuntimeCost});
  EXPECT_EQ(&known.analysis(), first);
  EXPECT_EQ(known.losses().data(), site);
  EXPECT_TRUE(known.placement().violations().empty());
}

TEST(Pipeline, RulesGetThePassesThatTheyRead) {
  pipeline::Pipeline pipeline(loss_model(), {});
  EXPECT_FALSE(pipeline.results().has(Pass::kAnalysis));
  EXPECT_EQ(pipeline.check().counts.error, 0U);
  EXPECT_TRUE(pipeline.results().has(Pass::kLosses));
  EXPECT_FALSE(pipeline.results().has(Pass::kRuntimeCost));
  pipeline.check(/*copies_at_run_time=*/true);
  EXPECT_TRUE(pipeline.results().has(Pass::kRuntimeCost));
}

TEST(Pipeline, OnlyThePassesOfTheSelectedRulesRun) {
  pipeline::Options options;
  ASSERT_TRUE(options.selection.select("cycle"));
  pipeline::Pipeline pipeline(loss_model(), std::move(options));
  pipeline.check(/*copies_at_run_time=*/true);
  EXPECT_TRUE(pipeline.results().has(Pass::kCycles));
  for (const Pass pass : {Pass::kLosses, Pass::kPlacement, Pass::kRuntimeCost, Pass::kLiveness, Pass::kExternalData})
    EXPECT_FALSE(pipeline.results().has(pass)) << to_text(pass);
}

TEST(ModelView, ARuleReadsWhatItSaysThatItNeeds) {
  PassResults known = results();
  known.run({Pass::kLosses, Pass::kLiveness});
  const rules::ModelView view(known, {Pass::kLosses}, /*copies_at_run_time=*/false);
  EXPECT_EQ(view.losses().size(), 1U);
  try {
    view.liveness();
    FAIL() << "no exception";
  } catch (const std::logic_error& fault) {
    EXPECT_EQ(std::string(fault.what()),
              "a rule reads the result of the pass `liveness` and does not say that it needs it");
  }
}

}  // namespace
}  // namespace tensorlint::passes
