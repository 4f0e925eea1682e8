// What was found and is not reported: by selection, suppression and baseline, counted all the same.
#include "analyzer/pipeline/filter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/pipeline/pipeline.h"
#include "ir/text/reader.h"

namespace tensorlint::pipeline {
namespace {

CheckResults check_text(const std::string& text, const Options& options) {
  Result<Model> model = read_onnx_text(text, "m.onnxtxt");
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return Pipeline(std::move(*model), options).check();
}

/// Two dead nodes and a reduction over an axis that there is not; `comment` follows the first dead node.
CheckResults check(const std::string& comment, const Options& options) {
  const std::string text =
      "<ir_version: 8, opset_import: [\"\" : 13]>\n"
      "g (float[N, 4] x) => (y)\n"
      "{\n"
      "  [first] a = Abs (x)  " +
      comment +
      "\n"
      "  [second] b = Neg (x)\n"
      "  [mean] y = ReduceMean <axes = [5]> (x)\n"
      "}\n";
  return check_text(text, options);
}

std::vector<std::string> rules_of(const CheckResults& results) {
  std::vector<std::string> rules;
  for (const findings::Finding& finding : results.findings) rules.emplace_back(finding.rule);
  return rules;
}

using Rules = std::vector<std::string>;

std::shared_ptr<const findings::Suppression> suppression_of(const std::string& rule, const std::string& node = {}) {
  findings::Suppression suppression{.rules = rule,
                                    .codes = rules::rule_names().codes_of(rule),
                                    .node = node,
                                    .graph = {},
                                    .reason = "so",
                                    .place = {.file = "c.toml", .line = 1, .column = 1, .source = {}}};
  return std::make_shared<const findings::Suppression>(std::move(suppression));
}

TEST(Filter, LetsThroughWhatNobodyTakesAway) {
  const CheckResults results = check("", {});
  EXPECT_EQ(rules_of(results), (Rules{"dead-node", "dead-node", "reduction-axis-out-of-range"}));
  EXPECT_EQ(results.counts.total(), 3U);
  EXPECT_EQ(results.left_out + results.suppressed_by_comments + results.in_baseline, 0U);
}

TEST(Filter, CountsFindingsOfRulesThatAreLeftOut) {
  Options options;
  options.selection.ignore("dead-node");
  EXPECT_EQ(check("", options).left_out, 0U);
  options.selection.count_left_out("TL-G612");
  const CheckResults results = check("", options);
  EXPECT_EQ(rules_of(results), Rules{"reduction-axis-out-of-range"});
  EXPECT_EQ(results.left_out, 2U);
  EXPECT_EQ(results.counts.total(), 1U);
}

TEST(Filter, ACommentComesBeforeTheConfiguration) {
  Options options;
  options.filter.suppressions = std::make_shared<const FilterOptions::Suppressions>(
      FilterOptions::Suppressions{suppression_of("dead-node"), suppression_of("dead-node", "second")});
  const CheckResults results = check("# tensorlint: ignore[dead-node] read by a hook", options);
  EXPECT_EQ(rules_of(results), Rules{"reduction-axis-out-of-range"});
  EXPECT_EQ(results.suppressed_by_comments, 1U);
  EXPECT_EQ(results.suppressed, (std::vector<std::size_t>{1, 0}));
}

TEST(Filter, AnUnusedCommentHasTheSeverityOfItsRule) {
  Options options;
  options.selection.set_severity("graph", findings::Severity::kWarning);
  const CheckResults results = check("# tensorlint: ignore[cycle] so", options);
  ASSERT_EQ(results.findings.size(), 4U);
  const findings::Finding& unused = results.findings.back();
  EXPECT_EQ(unused.rule, "unused-suppression");
  EXPECT_EQ(unused.severity, findings::Severity::kWarning);
  EXPECT_EQ(unused.place.line, 4U);
  EXPECT_EQ(unused.place.file, "m.onnxtxt");
  EXPECT_EQ(results.counts.warning, 3U);
  ASSERT_EQ(unused.fixes.size(), 1U);
  EXPECT_EQ(unused.fixes[0].edits.size(), 1U);
}

TEST(Filter, AnInputThatIsCheckedInPartProvesNothing) {
  Options options;
  options.analysis.meter = std::make_shared<Meter>(std::uint64_t{1});
  options.analysis.meter->charge(options.analysis.meter->steps_allowed());
  const CheckResults results = check("# tensorlint: ignore[cycle] so", options);
  EXPECT_TRUE(results.is_partial);
  EXPECT_EQ(rules_of(results), Rules());
}

TEST(Filter, ARuleThatDidNotRunProvesNothing) {
  Options options;
  options.selection.ignore("cycle");
  EXPECT_EQ(check("# tensorlint: ignore[cycle] so", options).findings.size(), 3U);
  EXPECT_EQ(check("# tensorlint: ignore[cycle, dead-node] so", options).findings.size(), 2U);
}

TEST(Filter, UnusedCommentsPastTheCapAreCounted) {
  Options options;
  options.selection.keep(0);
  const CheckResults results = check("# tensorlint: ignore[cycle] so", options);
  EXPECT_TRUE(results.findings.empty());
  EXPECT_EQ(results.counts.info, 3U);
  EXPECT_EQ(results.counts.error, 1U);
}

TEST(Filter, CommentsTakeAwayWhatTheCapWouldLeaveOut) {
  std::string nodes;
  for (int i = 0; i < 5; ++i) nodes += fmt::format("u{} = Relu (x) # tensorlint: ignore[dead-node] so\n", i);
  Options options;
  options.selection.keep(2);
  const CheckResults results = check_text(
      "<ir_version: 10, opset_import: [\"\": 21]>\ng (float[2] x) => (float[2] y) {\n" + nodes + "y = Relu (x)\n}\n",
      options);
  EXPECT_TRUE(results.findings.empty());
  EXPECT_EQ(results.suppressed_by_comments, 5U);
  EXPECT_EQ(results.counts.total(), 0U);
}

TEST(Filter, TakesTheBaselineAwayLast) {
  config::Baseline known("baseline.json");
  known.add("m.onnxtxt", check("", {}).findings);
  Options options;
  options.filter.baseline = std::make_shared<const config::Baseline>(std::move(known));
  options.filter.suppressions = std::make_shared<const FilterOptions::Suppressions>(
      FilterOptions::Suppressions{suppression_of("dead-node", "first")});
  const CheckResults results = check("# tensorlint: ignore[cycle] so", options);
  EXPECT_EQ(rules_of(results), Rules{"unused-suppression"});
  EXPECT_EQ(results.suppressed, std::vector<std::size_t>{1});
  EXPECT_EQ(results.in_baseline, 2U);
  EXPECT_EQ(results.gone, 1U);
  EXPECT_EQ(results.counts.total(), 1U);
}

}  // namespace
}  // namespace tensorlint::pipeline
