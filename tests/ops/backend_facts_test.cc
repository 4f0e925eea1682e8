// ONNX's backend tests: what is inferred of each output is what the test records, or backend_facts.expected.txt lists
// how it falls short of that. Inner and output types are taken out of the models (backend_corpus.py), so nothing is
// believed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "passes/dataflow/analysis.h"
#include "tests/ops/backend_corpus.h"

namespace tensorlint::ops {
namespace {

constexpr std::string_view kListed = "tests/ops/backend_facts.expected.txt";

/// The letter by which the tests are divided: the first of the operator's name.
char letter_of(std::string_view name) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(name[name.find("test_") + 5])));
}

/// The extents that a shape has under the recorded inputs; "?" for those that are not known of them.
std::string shape_under(const dataflow::Analysis& analysis, const Fact& fact, const Json& symbols) {
  FactStore& facts = analysis.facts();
  if (fact.shape == ShapeId::kUnranked) return "[...]";
  const auto value = [&](Dim symbol) -> std::optional<std::int64_t> {
    const auto known = symbols.find(facts.dims().to_text(symbol));
    return known == symbols.end() ? std::nullopt : std::optional(known->get<std::int64_t>());
  };
  std::string text;
  for (const Dim dim : facts.dims_of(fact.shape)) {
    const auto extent = facts.dims().evaluate(dim, value);
    text += (text.empty() ? "" : ", ") + (extent ? std::to_string(*extent) : "?");
  }
  return "[" + text + "]";
}

std::string recorded_shape(const Json& output) {
  std::string text;
  for (const std::int64_t extent : output["shape"]) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

/// No recorded element is outside the content and the range.
void expect_inside(const dataflow::Analysis& analysis, const Fact& fact, const Json& output, const Json& symbols) {
  FactStore& facts = analysis.facts();
  if (output.contains("range")) {
    const Json& range = output["range"];
    // Floats are recorded with their own rounding.
    const double slack = fact.dtypes.proves(DTypeSet::floats()) ? 1e-3 * (1 + std::abs(range[1].get<double>())) : 0;
    EXPECT_LE(fact.range.lo, range[0].get<double>() + slack);
    EXPECT_GE(fact.range.hi, range[1].get<double>() - slack);
    EXPECT_TRUE(fact.range.nan || !range[2].get<bool>());
  }
  const Content* content = facts.content(fact.content);
  if (content != nullptr && !content->floats.empty() && output.contains("floats")) {
    ASSERT_EQ(content->floats.size(), output["floats"].size());
    for (std::size_t i = 0; i < content->floats.size(); ++i)
      EXPECT_FLOAT_EQ(static_cast<float>(content->floats[i]),
                      std::strtof(output["floats"][i].get<std::string>().c_str(), nullptr));
  }
  if (content == nullptr || content->integers.empty() || !output.contains("integers")) return;
  const Json& recorded = output["integers"];
  ASSERT_EQ(content->integers.size(), recorded.size());
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const auto value = facts.dims().evaluate(content->integers[i], [&](Dim symbol) -> std::optional<std::int64_t> {
      const auto known = symbols.find(facts.dims().to_text(symbol));
      return known == symbols.end() ? std::nullopt : std::optional(known->get<std::int64_t>());
    });
    if (value) {
      EXPECT_EQ(*value, recorded[i].get<std::int64_t>()) << "element " << i;
    }
  }
}

/// How many of the elements the content knows: all, some or none.
std::string_view content_of(const dataflow::Analysis& analysis, const Fact& fact, const Json& output) {
  const Content* content = analysis.facts().content(fact.content);
  if (content == nullptr) return "";
  if (!content->floats.empty()) return " known";
  if (!output.contains("integers")) return "";
  for (const Dim element : content->integers)
    if (element.is_unknown()) return " partly known";
  return " known";
}

/// The range of an output, where it says more than the dtype.
std::string range_of(const Fact& fact) {
  if (fact.kind != ValueKind::kTensor || fact.content != ContentId::kNone ||
      fact.range == tensorlint::range_of(fact.dtypes))
    return "";
  return fmt::format(" within [{:.6g}, {:.6g}]{}", fact.range.lo, fact.range.hi, fact.range.nan ? " or NaN" : "");
}

/// What falls short of the record, by line of the expected file; and the contents that are known.
std::set<std::string> facts_of(const BackendCase& entry) {
  std::set<std::string> lines;
  const Result<Model> model = model_of(entry);
  EXPECT_TRUE(model) << model.error().message;
  if (!model) return lines;
  const dataflow::Analysis analysis = dataflow::analyse(*model, {});
  const Json record = entry.parsed();
  for (const Json& output : record["outputs"]) {
    const std::string name = output["name"];
    SCOPED_TRACE(name);
    const Fact& fact = analysis.fact(model->find_value(GraphId::kMain, name));
    const std::string recorded = recorded_shape(output), shape = shape_under(analysis, fact, record["symbols"]);
    const auto dtype = static_cast<DType>(output["dtype"].get<int>());
    const bool exact = fact.kind == ValueKind::kTensor && fact.dtypes == DTypeSet(dtype) && shape == recorded;
    if (fact.kind == ValueKind::kTensor) expect_inside(analysis, fact, output, record["symbols"]);
    const std::string title = fmt::format("{} {}", entry.title(), name);
    if (!exact)
      lines.insert(fmt::format("{}: {}{} for {}{}", title, fact.dtypes.to_text(), shape, to_text(dtype), recorded));
    if (const std::string_view content = content_of(analysis, fact, output); !content.empty())
      lines.insert(fmt::format("{}:{}", title, content));
    if (const std::string range = range_of(fact); !range.empty()) lines.insert(fmt::format("{}:{}", title, range));
  }
  return lines;
}

class BackendFacts : public testing::TestWithParam<char> {};

TEST_P(BackendFacts, AreThoseThatTheTestsRecord) {
  if (std::getenv("TENSORLINT_UPDATE") != nullptr) return;  // the list is written below
  std::set<std::string> expected, found;
  std::istringstream listed(read_all(std::string(kListed)));
  for (std::string line; std::getline(listed, line);)
    if (line.find("test_") != std::string::npos && letter_of(line) == GetParam()) expected.insert(line);
  for (const BackendCase& entry : Corpus::get().cases) {
    if (letter_of(entry.name) != GetParam()) continue;
    SCOPED_TRACE(entry.title());
    found.merge(facts_of(entry));
  }
  for (const std::string& line : expected) EXPECT_TRUE(found.contains(line)) << "no longer so: " << line;
  for (const std::string& line : found) EXPECT_TRUE(expected.contains(line)) << "not listed: " << line;
}

INSTANTIATE_TEST_SUITE_P(Letters, BackendFacts, testing::Range('a', static_cast<char>('z' + 1)),
                         [](const auto& info) { return std::string(1, info.param); });

TEST(BackendFactsList, IsWrittenOnDemand) {
  ASSERT_GE(Corpus::get().cases.size(), 4000U) << "the corpus is not all there";
  if (std::getenv("TENSORLINT_UPDATE") == nullptr) return;
  std::ofstream out{std::string(kListed), std::ios::binary};
  out << "# Outputs of ONNX's backend tests whose type is not inferred as recorded, and outputs whose elements are "
         "known.\n";
  std::set<std::string> lines;
  for (const BackendCase& entry : Corpus::get().cases) lines.merge(facts_of(entry));
  for (const std::string& line : lines) out << line << '\n';
}

}  // namespace
}  // namespace tensorlint::ops
