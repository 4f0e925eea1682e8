// Every operator of ai.onnx and of our own domain runs, or is listed with the reason why not.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>

#include "ir/ops/entry.h"
#include "ir/schema/schema.h"
#include "runtime/interpreter/evaluator.h"

namespace tensorlint::runtime {
namespace {

/// Run by the interpreter itself.
bool is_control_flow(const OpSchema& schema) {
  const ops::OpEntry* const entry = ops::find_entry(schema.domain, schema.name, schema.since_version);
  return ops::has_trait(entry, ops::OpTrait::kControlFlow);
}

bool runs(const OpSchema& schema) {
  return find_evaluator(schema.domain, schema.name, schema.since_version) != nullptr || is_control_flow(schema) ||
         !schema.function_body.empty();
}

/// `Name: reason` a line.
std::map<std::string, std::string> listed() {
  std::ifstream file(TENSORLINT_SOURCE_DIR "/tests/runtime/no_evaluator.txt");
  std::map<std::string, std::string> reasons;
  for (std::string line; std::getline(file, line);)
    if (const std::size_t colon = line.find(": "); colon != std::string::npos && line.front() != '#')
      reasons[line.substr(0, colon)] = line.substr(colon + 2);
  return reasons;
}

TEST(Evaluators, EveryOperatorRunsOrIsListed) {
  const std::map<std::string, std::string> reasons = listed();
  std::set<std::string> lacking;
  int versions = 0;
  for (const OpSchema& schema : all_schemas()) {
    if ((!schema.domain.empty() && schema.domain != "tensorlint") || schema.deprecated) continue;
    versions += runs(schema) ? 1 : 0;
    if (!runs(schema)) lacking.emplace(schema.name);
  }
  for (const std::string& name : lacking) EXPECT_TRUE(reasons.contains(name)) << name << " has no evaluator";
  for (const auto& [name, reason] : reasons) EXPECT_TRUE(lacking.contains(name)) << name << " runs: take it out";
  EXPECT_GT(versions, 500);
}

TEST(Evaluators, EachBelongsToAnOperatorAndSaysHowItRounds) {
  for (const Evaluator& evaluator : all_evaluators()) {
    EXPECT_NE(find_any_version(evaluator.domain(), evaluator.name()), nullptr) << evaluator.name();
    EXPECT_NE(evaluator.function(), nullptr) << evaluator.name();
    EXPECT_EQ(evaluator.rounding().kind == Rounding::Kind::kFunction, !evaluator.rounding().function.empty())
        << evaluator.name();
  }
}

/// tests/runtime/amplitude_test.py runs each of these against an engine in float32.
TEST(Evaluators, ThoseThatRoundMoreThanOnceAreListed) {
  std::set<std::string> rounding, in_file;
  for (const Evaluator& evaluator : all_evaluators()) {
    const Rounding::Kind kind = evaluator.rounding().kind;
    if (kind == Rounding::Kind::kFunction || kind == Rounding::Kind::kAccumulates || kind == Rounding::Kind::kComposite)
      rounding.emplace(evaluator.name());
  }
  std::ifstream file(TENSORLINT_SOURCE_DIR "/tests/runtime/roundings.txt");
  for (std::string name; file >> name;) in_file.insert(name);
  EXPECT_EQ(rounding, in_file);
}

TEST(Evaluators, NoVersionHasTwo) {
  for (const OpSchema& schema : all_schemas()) {
    int found = 0;
    for (const Evaluator& evaluator : all_evaluators())
      found += evaluator.domain() == schema.domain && evaluator.name() == schema.name &&
               evaluator.first_version() <= schema.since_version && schema.since_version <= evaluator.last_version();
    EXPECT_LE(found, 1) << schema.name << ' ' << schema.since_version;
  }
}

}  // namespace
}  // namespace tensorlint::runtime
