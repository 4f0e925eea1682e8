// Walks the registry of rules: each has a page and fixtures, and each fixture gives what stands beside it.
#include "analyzer/rules/rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "analyzer/findings/input_report.h"
#include "analyzer/fixes/fixer.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/reports/text.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"
#include "ir/writers/text/writer.h"
#include "passes/placement/placement.h"
#include "passes/placement/runtime_cost.h"
#include "tests/ops/broken_constraints.h"

namespace tensorlint::rules {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = "tests/rules";  // relative, since reports name it

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_fixed(const fs::path& path) { return path.stem().extension() == ".fixed"; }

bool is_fixture(const fs::path& path) {
  return !is_fixed(path) && (path.extension() == ".onnxtxt" || path.extension() == ".onnx");
}

std::vector<fs::path> fixtures_of(const RuleInfo& rule) {
  std::vector<fs::path> found;
  const fs::path folder = kFixtures / rule.group / rule.name;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (is_fixture(entry.path())) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

using Expected = std::multimap<std::uint32_t, std::string>;

/// `# expect: TL-S201, TL-D103`: these findings on this line; on line 1 those without a line.
Expected expectations(const Model& model) {
  Expected expected;
  for (const Comment& comment : model.comments) {
    const std::size_t mark =
        comment.text.starts_with("expect: ") ? 0 : comment.text.find("# expect: ");  // behind another comment
    if (mark == std::string_view::npos) continue;
    std::istringstream codes(std::string(comment.text.substr(comment.text.find(": ", mark) + 2)));
    for (std::string code; std::getline(codes >> std::ws, code, ',');) expected.emplace(comment.line, code);
  }
  return expected;
}

/// Of a known wrong answer.
bool has_reason(const Model& model) {
  return std::ranges::any_of(model.comments,
                             [](const Comment& comment) { return comment.alone && !comment.text.empty(); });
}

Expected found_codes(const std::vector<findings::Finding>& findings) {
  Expected found;
  for (const findings::Finding& finding : findings)
    found.emplace(std::max(1U, finding.place.line), std::string(finding.code));
  return found;
}

std::string listed(const Expected& codes) {
  std::vector<std::string> lines;
  for (const auto& [line, code] : codes) lines.push_back("line " + std::to_string(line) + ": " + code + "\n");
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

/// A fixture with the comments `# placement: runtime` and `# provider: NAME` is checked as by these options. `only`: by
/// this rule alone.
findings::InputReport checked(const Model& model, const RuleInfo* only = nullptr) {
  const dataflow::Analysis analysis = dataflow::analyse(model, {});
  ops::note_broken(analysis);
  placement::PlacementOptions options;
  bool at_run_time = false;
  for (const Comment& comment : model.comments) {
    if (comment.text == "placement: runtime") at_run_time = true;
    if (comment.text.starts_with("provider: "))
      options.providers.push_back(placement::built_in_provider(comment.text.substr(10)));
  }
  pipeline::Options pipeline_options;
  pipeline_options.placement = std::move(options);
  if (only != nullptr) pipeline_options.selection.select(only->name);
  pipeline::CheckResults results = pipeline::Pipeline(analysis, std::move(pipeline_options)).check(at_run_time);
  findings::InputReport report;
  report.path = model.path;
  report.checked = true;
  report.nodes = model.nodes.size();
  report.findings = std::move(results.findings);
  report.counts = results.counts;
  report.places = findings::count_places(report.findings);
  return report;
}

std::string shown(const findings::InputReport& report) {
  return text_of([&](const TextSink& out) { reports::check_text({&report, 1}, {}, out); });
}

/// Places of the rule's findings, those of severity info only where that is the rule's own.
std::size_t count_of(const findings::InputReport& report, std::string_view code) {
  std::size_t places = 0;
  for (const findings::Finding& finding : report.findings)
    if (finding.code == code && (finding.severity != findings::Severity::kInfo ||
                                 find_rule(code)->info().severity == findings::Severity::kInfo))
      places += finding.places();
  return places;
}

/// What fixes, unsafe ones too, make of a faulty model in text stands beside it, and is mended where the rule has a
/// fix.
void expect_fixed(const fs::path& path, const Model& model, const findings::InputReport& report,
                  std::string_view code) {
  fs::path beside = path;
  beside.replace_extension(".fixed.onnxtxt");
  const fixes::FixPlan plan = fixes::plan_fixes(model, report.findings, true);
  if (plan.edits.empty()) {
    EXPECT_FALSE(fs::exists(beside)) << "nothing is fixed here any more";
    return;
  }
  const std::string before = read_text(path);
  const Result<EditedBytes> edited = edit_onnx_text(before, model, plan.edits);
  ASSERT_TRUE(edited) << edited.error().message;
  const std::string text = edited->joined();
  if (std::getenv("TENSORLINT_UPDATE") != nullptr) std::ofstream(beside, std::ios::binary) << text;
  EXPECT_EQ(text, read_text(beside));
  const Result<Model> fixed = read_onnx_text(text, path.string());
  ASSERT_TRUE(fixed) << fixed.error().message;
  const findings::InputReport after = checked(*fixed);
  for (const findings::Finding& finding : after.findings)
    EXPECT_LE(std::ranges::count(after.findings, finding.code, &findings::Finding::code),
              std::ranges::count(report.findings, finding.code, &findings::Finding::code))
        << "the fix adds a finding: " << finding.message;
  const bool mended =
      std::ranges::any_of(plan.fixed, [&](const findings::Finding* finding) { return finding->code == code; });
  if (mended) {
    EXPECT_LT(count_of(after, code), count_of(report, code));
  }
}

class RuleTest : public testing::TestWithParam<const Rule*> {};

TEST_P(RuleTest, HasAPage) {
  const RuleInfo& rule = GetParam()->info();
  const std::string_view page = rule_page(rule.name);
  EXPECT_TRUE(page.starts_with("# " + std::string(rule.name) + " (" + std::string(rule.code) + ")\n"))
      << rule.name << " has no page, or another title";
  for (const std::string_view part : {"\n## Symptoms\n", "\n## Example\n", "\n## Fix\n", "\n## When to ignore it\n"})
    EXPECT_NE(page.find(part), std::string_view::npos) << rule.name << ": the page lacks" << part;
}

TEST_P(RuleTest, GivesWhatItsFixturesExpect) {
  const RuleInfo& rule = GetParam()->info();
  bool has_bad = false, has_ok = false;
  for (const fs::path& path : fixtures_of(rule)) {
    SCOPED_TRACE(path.string());
    const bool text = path.extension() == ".onnxtxt";
    const Result<Model> model = text ? read_onnx_text_file(path.string()) : read_onnx_file(path.string());
    ASSERT_TRUE(model) << model.error().message;
    const findings::InputReport report = checked(*model);
    const bool fires = std::any_of(report.findings.begin(), report.findings.end(),
                                   [&](const findings::Finding& finding) { return finding.code == rule.code; });
    if (text) {
      EXPECT_EQ(listed(found_codes(report.findings)), listed(expectations(*model)));
    }
    if (path.filename().string().starts_with("fn_")) {
      EXPECT_FALSE(fires) << "found: name it bad_";
      EXPECT_TRUE(text && has_reason(*model)) << "no comment says why it is missed";
      continue;
    }
    if (path.filename().string().starts_with("fp_")) {
      EXPECT_TRUE(fires) << "quiet: name it ok_";
      EXPECT_TRUE(text && has_reason(*model)) << "no comment says why it is reported";
      continue;
    }
    if (path.filename().string().starts_with("ok_")) {
      has_ok = true;
      EXPECT_FALSE(fires);
      EXPECT_EQ(report.counts.total(), 0U) << shown(report);
      continue;
    }
    ASSERT_TRUE(path.filename().string().starts_with("bad_"));
    has_bad = true;
    EXPECT_TRUE(fires);
    // Whether a suppression is used is not known where the suppressed rule does not run.
    if (rule.name != "unused-suppression") {
      EXPECT_GT(std::ranges::count(checked(*model, &rule).findings, rule.code, &findings::Finding::code), 0)
          << "alone the rule finds nothing: it reads what another rule makes run";
    }
    fs::path expected = path;
    expected.replace_extension(".expected.txt");
    const std::string output = shown(report);
    if (std::getenv("TENSORLINT_UPDATE") != nullptr) std::ofstream(expected, std::ios::binary) << output;
    EXPECT_EQ(output, read_text(expected));
    if (text) expect_fixed(path, *model, report, rule.code);
  }
  EXPECT_TRUE(has_bad) << rule.name << " has no bad_ fixture";
  EXPECT_TRUE(has_ok) << rule.name << " has no ok_ fixture";
}

INSTANTIATE_TEST_SUITE_P(Rules, RuleTest, testing::ValuesIn(all_rules().begin(), all_rules().end()),
                         [](const auto& info) {
                           std::string name(info.param->info().name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Rules, HaveTheirOwnNamesAndCodes) {
  std::map<std::string_view, int> uses;
  for (const Rule* rule : all_rules()) {
    EXPECT_EQ(++uses[rule->info().name], 1) << rule->info().name;
    EXPECT_EQ(++uses[rule->info().code], 1) << rule->info().code;
    EXPECT_EQ(find_rule(rule->info().name), rule);
    EXPECT_EQ(find_rule(rule->info().code), rule);
  }
}

TEST(Rules, RunForTheirDoorsAlone) {
  RuleSelection builder;
  builder.enter_by(Door::kBuilder);
  const RuleSelection files;
  for (const Rule* rule : all_rules()) {
    EXPECT_TRUE(files.runs(rule->info())) << rule->info().name;
    EXPECT_EQ(builder.runs(rule->info()), rule->info().doors.has(Door::kBuilder)) << rule->info().name;
  }
  EXPECT_FALSE(builder.runs(find_rule("use-before-definition")->info()));
  EXPECT_TRUE(builder.runs(find_rule("dead-node")->info()));

  // A model of which a file's rule would speak, as if a builder had made it.
  const Result<Model> model = read_onnx_text(
      "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[N] x) => (z) { z = Relu (y) y = Relu (x) }", "m.onnxtxt");
  ASSERT_TRUE(model);
  const dataflow::Analysis analysis = dataflow::analyse(*model, {});
  passes::PassResults known(analysis);
  known.run(passes_needed(analysis, files, false));
  known.run(passes_needed(analysis, builder, false));
  EXPECT_EQ(run_rules(known, files).findings.size(), 1U);
  EXPECT_EQ(run_rules(known, builder).findings.size(), 0U);
}

TEST(Rules, MatchEveryKindOfConstraint) {
  const Result<Model> model = read_onnx_text(
      "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[N] x) => (y) { y = Relu (x) }", "m.onnxtxt");
  ASSERT_TRUE(model);
  const dataflow::Analysis analysis = dataflow::analyse(*model, {});
  for (int kind = 0; kind <= static_cast<int>(ops::kLastConstraintKind); ++kind) {
    const ops::Constraint constraint{"some_constraint", static_cast<ops::ConstraintKind>(kind), "holds"};
    const dataflow::NodeViolation violation{
        {&constraint, ops::Certainty::kMust, {}, {"it does not hold"}, {}}, NodeId{}, {}};
    const ViolationCase found{.analysis = analysis, .at = violation, .loss = nullptr, .named_loss = {}};
    const auto claims = [&](const Rule* rule) { return rule->match(found) != Specificity::kNone; };
    EXPECT_TRUE(std::any_of(all_rules().begin(), all_rules().end(), claims)) << "kind " << kind;
    // A violation can come from any program, and needs a rule there too.
    for (const Rule* rule : all_rules())
      for (const Door door : {Door::kFile, Door::kBuilder, Door::kRecording})
        EXPECT_TRUE(!claims(rule) || rule->info().doors.has(door)) << rule->info().name;
  }
}

}  // namespace
}  // namespace tensorlint::rules
