#include "analyzer/config/config.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "analyzer/config/baseline.h"
#include "analyzer/findings/fingerprint.h"
#include "analyzer/rules/engine.h"
#include "base/did_you_mean.h"
#include "base/glob.h"
#include "tests/sanitized.h"

namespace tensorlint {
namespace {

namespace fs = std::filesystem;

bool matches_path(std::string_view glob, std::string_view path) { return PathMatcher(path).matches(glob); }

class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tensorlint_config_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(std::string_view text) const {
    const fs::path path = folder_ / "tensorlint.toml";
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  std::string error_of(std::string_view text) const {
    const Result<config::Config> config = config::read_config(write(text), rules::rule_names());
    return config ? "no error" : config.error().message.substr(folder_.string().size() + 1);
  }

  fs::path folder_;
};

TEST(Glob, OfNamesTakesAnyText) {
  EXPECT_TRUE(matches_name("", "anything"));
  EXPECT_TRUE(matches_name("/loss/*", "/loss/a/b"));
  EXPECT_TRUE(matches_name("*_?", "Add_1"));
  EXPECT_FALSE(matches_name("*_?", "Add_12"));
  EXPECT_FALSE(matches_name("loss", "/loss"));
  EXPECT_TRUE(matches_name("*a*b*c*", "xxaxxbxxc"));
  const std::string stars(200, '*'), text(5000, 'a');
  EXPECT_FALSE(matches_name("*a" + stars + "b", text));
  EXPECT_TRUE(matches_name("a*a", "aa"));
  EXPECT_FALSE(matches_name("a*a", "a"));
  EXPECT_FALSE(matches_name("ab*ba", "aba"));
  EXPECT_TRUE(matches_name("*?b?*c", "abbbc"));
  EXPECT_FALSE(matches_name("*??*??*", "abc"));
  EXPECT_TRUE(matches_name("**", ""));
}

/// The definition itself: a star takes nothing, or one byte and goes on.
bool matches_by_definition(std::string_view glob, std::string_view name) {
  if (glob.empty()) return name.empty();
  if (glob[0] == '*')
    return matches_by_definition(glob.substr(1), name) ||
           (!name.empty() && matches_by_definition(glob, name.substr(1)));
  return !name.empty() && (glob[0] == '?' || glob[0] == name[0]) &&
         matches_by_definition(glob.substr(1), name.substr(1));
}

/// The `number`th text of these letters, shortest first.
std::string numbered(std::string_view letters, std::size_t number) {
  std::string text;
  for (; number > 0; number = (number - 1) / letters.size()) text += letters[(number - 1) % letters.size()];
  return text;
}

TEST(Glob, OfNamesIsTheDefinitionOnAllShortTexts) {
  for (std::size_t g = 1; g < 5461; g += stride(7))  // up to six letters
    for (std::size_t n = 0; n < 127; ++n) {
      const std::string glob = numbered("ab*?", g), name = numbered("ab", n);
      ASSERT_EQ(matches_name(glob, name), matches_by_definition(glob, name)) << glob << " " << name;
    }
}

TEST(Glob, OfNamesFindsLongPartsWithWildcards) {
  std::string part(200, 'a');
  part[70] = '?';
  part[199] = 'b';
  const std::string before(1000, 'a');
  std::string inside = part;
  inside[70] = 'x';
  EXPECT_TRUE(matches_name("*" + part + "*c", before + inside + "c"));
  inside[69] = 'x';
  EXPECT_FALSE(matches_name("*" + part + "*c", before + inside + "c"));
}

TEST(Glob, StepsOfOneMatchAreCounted) {
  const std::string name(1000, 'a');
  EXPECT_LE(steps_of_match("", name), 1u);
  EXPECT_LT(steps_of_match("/layer/Add", name), 8u);
  EXPECT_GT(steps_of_match("*baaa*", name), 600u);  // 7 ns a byte
  // A part with a wildcard has a table of its own, as long as there is text for one.
  EXPECT_GT(steps_of_match("*?aa*?aa*?aa*", name), steps_of_match("*baa*baa*baa*", name) + 150);
  std::string parts;
  for (int i = 0; i < 10'000; ++i) parts += "*?a";
  EXPECT_LT(steps_of_match(parts, "aaaa"), 100'000u);
}

TEST(Glob, TakesTimeByLength) {
  const std::string name(60'000, 'a');
  const std::string parts[] = {std::string(30'000, 'a') + "b",
                               std::string(15'000, '?') + std::string(15'000, 'a') + "b"};
  const std::clock_t start = std::clock();
  for (const std::string& part : parts)
    for (unsigned row = 0; row < 5; row += stride(5)) EXPECT_FALSE(matches_name("*" + part + "*", name));
  std::string folders;
  for (int i = 0; i < 100'000; ++i) folders += "**/";
  EXPECT_FALSE(matches_path(folders + "x", std::string(4000, 'a')));
  // 0.1 s; restarts at the star took 0.7 s a row. Without optimisation and with sanitizers both take 25 times as long.
#ifdef __OPTIMIZE__
  constexpr std::clock_t kMost = 2 * CLOCKS_PER_SEC;
#else
  constexpr std::clock_t kMost = 30 * CLOCKS_PER_SEC;
#endif
  EXPECT_LT(std::clock() - start, kMost);
}

TEST(Glob, OfPathsKeepsFoldersApart) {
  EXPECT_TRUE(matches_path("*.onnx", "a/b/model.onnx"));
  EXPECT_TRUE(matches_path("exports/*.onnx", "exports/m.onnx"));
  EXPECT_FALSE(matches_path("exports/*.onnx", "exports/old/m.onnx"));
  EXPECT_TRUE(matches_path("exports/**", "exports/old/m.onnx"));
  EXPECT_TRUE(matches_path("exports/**/m.onnx", "exports/m.onnx"));
  EXPECT_TRUE(matches_path("exports/**/m.onnx", "exports/a/b/m.onnx"));
  EXPECT_FALSE(matches_path("exports/**/m.onnx", "exports/a/b/xm.onnx"));
  EXPECT_TRUE(matches_path("**/m.onnx", "m.onnx"));
  EXPECT_FALSE(matches_path("a/?.onnx", "a//.onnx"));
  EXPECT_TRUE(matches_path("a/**/**/**/m.onnx", "a/m.onnx"));
  EXPECT_TRUE(matches_path("a/**/**/**/m.onnx", "a/b/c/d/e/m.onnx"));
  EXPECT_FALSE(matches_path("a/**/**/**/m.onnx", "a/b/c/d/e/n.onnx"));
}

TEST(Suggestion, NamesTheNearest) {
  constexpr std::string_view kWords[] = {"select", "ignore", "severity"};
  EXPECT_EQ(did_you_mean("igonre", kWords), "; did you mean `ignore`?");
  EXPECT_EQ(did_you_mean("baseline", kWords), "");
}

TEST_F(ConfigTest, ReadsEveryKey) {
  const Result<config::Config> config = config::read_config(write(R"(
select = ["dtype", "TL-S2"]
ignore = "dead-node"
fail-on = "error"
max-findings = 7
baseline = "known/baseline.json"
device = "cuda:0"
[severity]
dtype = "info"
index-dtype = "error"
[inputs]
images = "float32[N,3]"
[ranges]
labels = "0:9"
[devices]
mask = "cpu"
[[models]]
path = "exports/*.onnx"
ranges = { ids = "0:99" }
[[suppress]]
rule = ["cycle", "dead-node"]
path = "old/**"
node = "/loss/*"
graph = "main"
reason = "kept for comparison"
)"),
                                                            rules::rule_names());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->says->select, (std::vector<std::string>{"dtype", "TL-S2"}));
  EXPECT_EQ(config->says->ignore, std::vector<std::string>{"dead-node"});
  EXPECT_EQ(config->says->fail_on, findings::FailOn{findings::Severity::kError});
  EXPECT_EQ(config->says->max_findings, 7U);
  EXPECT_EQ(config->baseline, (folder_ / "known/baseline.json").string());
  ASSERT_EQ(config->says->declarations.size(), 2U);
  EXPECT_EQ(config->says->declarations[0].inputs.at(0).text, "float32[N,3]");
  EXPECT_EQ(config->says->declarations[0].device->text, "cuda:0");
  EXPECT_EQ(config->says->declarations[1].path, "exports/*.onnx");
  EXPECT_EQ(config->says->declarations[1].ranges.at(0).name, "ids");
  ASSERT_EQ(config->says->suppressions.size(), 1U);
  EXPECT_EQ(config->says->suppressions[0].suppression->codes, (findings::RuleCodes{"TL-G606", "TL-G612"}));
  EXPECT_EQ(config->says->suppressions[0].suppression->place.line, 20U);
}

TEST_F(ConfigTest, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error_of("igonre = []"), "tensorlint.toml:1:1: unknown key `igonre`; did you mean `ignore`?");
  EXPECT_EQ(error_of("\nignore = [\"dead-nod\"]"),
            "tensorlint.toml:2:11: no rule is called `dead-nod`; did you mean `dead-node`?");
  EXPECT_EQ(error_of("ignore = 3"), "tensorlint.toml:1:10: expected a string");
  EXPECT_EQ(error_of("[severity]\ncycle = \"fatal\""),
            "tensorlint.toml:2:9: `fatal` is not a severity: expected error, warning or info");
  EXPECT_EQ(error_of("[severity]\ncycel = \"info\""),
            "tensorlint.toml:2:1: no rule is called `cycel`; did you mean `cycle`?");
  EXPECT_EQ(error_of("max-findings = -1"), "tensorlint.toml:1:16: expected a non-negative number");
  EXPECT_EQ(error_of("[[suppress]]\nrule = \"cycle\""),
            "tensorlint.toml:1:1: the suppression of `cycle` gives no `reason`");
  EXPECT_EQ(error_of("[[suppress]]\nreason = \"so\""),
            "tensorlint.toml:1:1: a [[suppress]] entry needs `rule`: what not to report");
  EXPECT_EQ(error_of("[[suppress]]\nrules = \"cycle\""),
            "tensorlint.toml:2:1: unknown key `rules` of a row [[suppress]]; did you mean `rule`?");
  EXPECT_EQ(error_of("[[models]]\ndevice = \"cpu\""),
            "tensorlint.toml:1:1: a [[models]] entry needs `path`: the models that it applies to");
  EXPECT_EQ(error_of("[suppress]\nrule = \"cycle\""),
            "tensorlint.toml:1:1: expected tables in double brackets: [[...]]");
  EXPECT_TRUE(error_of("select = [").starts_with("tensorlint.toml:1:")) << error_of("select = [");
  EXPECT_TRUE(error_of(std::string(20, '[')).starts_with("tensorlint.toml:1:3: "));
}

TEST_F(ConfigTest, RefusesWhatNestsTooDeepForTheParser) {
  std::string parts = "a";
  for (int i = 0; i < 150'000; ++i) parts += ".a";
  const std::string few = parts.substr(0, 60);
  const std::string braces(150'000, '{');
  const std::string key = "a key of more than 16 parts", depth = "brackets are nested deeper than 32";
  const std::pair<std::string, std::string> cases[] = {
      {parts + " = 1", "1:32: " + key},
      {"\n[" + parts + "]", "2:33: " + key},
      {"[[" + parts + "]]", "1:34: " + key},
      {"# a.b\na = { b = 1, " + parts + " = 2 }", "2:45: " + key},
      {"a = [\"\"\"b\"\"\"\", { " + parts + " = 2 }]", "1:49: " + key},
      {"a = ['''b'''', { " + parts + " = 2 }]", "1:49: " + key},
      {"# a comment\f" + parts + " = 1", "1:44: " + key},
      {"\"a\\\"b\"." + parts + " = 1", "1:37: " + key},
      {std::string(5000, '['), "1:33: " + depth},
      {"a = " + braces, "1:37: " + depth},
      {"\"" + few + "\" = 1", "1:1: unknown key `" + few + "`"},
      {"ignore = '''\n" + few + "'''", "1:10: no rule is called `" + few + "`; `tensorlint rules` lists them"},
      {"ignore = '" + few + "' # " + few, "1:10: no rule is called `" + few + "`; `tensorlint rules` lists them"},
  };
  for (const auto& [text, wrong] : cases) EXPECT_EQ(error_of(text), "tensorlint.toml:" + wrong) << text.substr(0, 40);
}

TEST_F(ConfigTest, IsFoundUpTheTreeUntilTheRepositorysRoot) {
  write("fail-on = \"info\"");
  fs::create_directories(folder_ / "models/a");
  fs::create_directories(folder_ / "other/.git");
  config::ConfigFinder finder(rules::rule_names());
  const auto near = finder.config_for((folder_ / "models/a/m.onnx").string());
  ASSERT_TRUE(near);
  ASSERT_NE(*near, nullptr);
  EXPECT_EQ((*near)->says->fail_on, findings::FailOn{findings::Severity::kInfo});
  EXPECT_EQ(finder.config_for((folder_ / "models/b.onnx").string()).value(), *near);
  EXPECT_EQ(finder.config_for((folder_ / "other/m.onnx").string()).value(), nullptr);
}

findings::Finding finding(std::string node, std::string value) {
  findings::Finding found;
  found.rule = "dead-node";
  found.code = "TL-G612";
  found.path = "m.onnx";
  found.graph = "main";
  found.node = std::move(node);
  found.op = "Add";
  found.value = std::move(value);
  found.message = "no result of the node is used";
  return found;
}

TEST(Fingerprint, StaysWhenNumbersChange) {
  const std::string one = findings::fingerprint(finding("/layers.3/Add_12", "val_17"));
  EXPECT_EQ(one.size(), 16U);
  EXPECT_EQ(one, findings::fingerprint(finding("/layers.3/Add_7", "val_9")));
  EXPECT_EQ(findings::fingerprint(finding("Add", "x")), findings::fingerprint(finding("Add_1", "x")));
  EXPECT_EQ(findings::fingerprint(finding("#4(Add)", "12")), findings::fingerprint(finding("#19(Add)", "35")));
  EXPECT_NE(one, findings::fingerprint(finding("/head/Add_12", "val_17")));
  EXPECT_NE(findings::fingerprint(finding("a", "bc")), findings::fingerprint(finding("ab", "c")));
}

TEST(Baseline, KnowsAsManyAsItHas) {
  config::Baseline baseline("some/folder/baseline.json");
  const std::vector<findings::Finding> old{finding("Add_1", "a"), finding("Add_2", "a"), finding("Mul_1", "b")};
  baseline.add("some/models/m.onnx", old);
  EXPECT_NE(baseline.to_json().find("\"../models/m.onnx\""), std::string::npos);
  std::vector<findings::Finding> now{finding("Add_5", "a"), finding("Add_6", "a"), finding("Add_7", "a")};
  const config::Baseline::Known known = baseline.take_out("some/folder/../models/m.onnx", now);
  EXPECT_EQ(known.found, 2U);
  EXPECT_EQ(known.gone, 1U);
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(now[0].node, "Add_7");
}

}  // namespace
}  // namespace tensorlint
