// What is said of wrong and of narrowed operands: each input of ONNX's backend tests of single operators is declared
// with other axes, extents and dtypes, and all its float inputs with other bounds. The list is reviewed by eye; that
// what runs is never said to fail, and that bounds hold, is for the soundness tests.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "passes/dataflow/analysis.h"
#include "tests/ops/backend_corpus.h"

namespace tensorlint::ops {
namespace {

constexpr std::string_view kListed = "tests/ops/backend_faults.expected.txt";
/// Lines of one operator, constraint and list of operands: more of them show nothing new.
constexpr std::size_t kMostAlike = 8;

using Extents = std::vector<std::string>;

/// The declared extents of an input; nothing for what is no tensor of known rank.
std::optional<Extents> extents_of(const Model& model, ValueId input) {
  const TypeDecl* type = model.value(input).type;
  if (type == nullptr || type->kind != TypeKind::kTensor || !type->ranked) return std::nullopt;
  Extents extents;
  for (const DimDecl& dim : type->dims) extents.push_back(std::to_string(dim.extent));
  return extents;
}

/// An axis more, an axis less, none, each extent one more, and each none.
std::vector<Extents> other_shapes(const Extents& extents) {
  std::vector<Extents> others;
  others.push_back(extents);
  others.back().insert(others.back().begin(), "2");
  if (!extents.empty()) {
    others.emplace_back(extents.begin(), extents.end() - 1);
    others.push_back({});
  }
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    for (const std::int64_t extent : {std::stoll(extents[axis]) + 1, 0LL}) {
      others.push_back(extents);
      others.back()[axis] = std::to_string(extent);
    }
  return others;
}

std::vector<dataflow::InputDeclaration> other_declarations(const Extents& extents) {
  std::vector<dataflow::InputDeclaration> others;
  for (const Extents& dims : other_shapes(extents)) {
    others.emplace_back();
    others.back().has_shape = true;
    others.back().dims = dims;
  }
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kBool, DType::kString}) {
    others.emplace_back();
    others.back().dtypes = dtype;
  }
  return others;
}

std::string text_of(const Violation& violation, const FactStore& facts) {
  std::string operands;
  for (const int operand : violation.operands) operands += fmt::format("{}{}", operands.empty() ? "" : " ", operand);
  return fmt::format("{} ({}){}: {}", violation.constraint->label, operands,
                     violation.certainty == Certainty::kMay ? " perhaps" : "", to_text(violation.message, facts));
}

void add_faults(const Model& model, const std::string& op, std::set<std::string>& lines) {
  for (const ValueId input : model.graph(GraphId::kMain).inputs) {
    const auto extents = extents_of(model, input);
    if (!extents) continue;
    for (dataflow::InputDeclaration& declaration : other_declarations(*extents)) {
      dataflow::AnalysisOptions options;
      options.values.emplace(model.text(model.value(input).name), std::move(declaration));
      const dataflow::Analysis analysis = dataflow::analyse(model, options);
      for (const dataflow::NodeViolation& violation : analysis.violations()) {
        // What the schema table says of each operator alike.
        const ConstraintKind kind = violation.kind();
        if (kind == ConstraintKind::kTypeConstraint || kind == ConstraintKind::kMixedDtypes) continue;
        lines.insert(fmt::format("{}: {}", op, text_of(violation, analysis.facts())));
      }
    }
  }
}

void add_bounds(const Model& model, const std::string& op, std::set<std::string>& lines) {
  for (const Range& range : {Range{0.25, 3, false}, Range{-2, -0.5, false}, Range{-1, 2, true}}) {
    dataflow::AnalysisOptions options;
    for (const ValueId input : model.graph(GraphId::kMain).inputs) {
      const TypeDecl* type = model.value(input).type;
      if (type == nullptr || type->kind != TypeKind::kTensor || type->element_code != static_cast<int>(DType::kFloat32))
        continue;
      options.values[std::string(model.text(model.value(input).name))].range = range;
    }
    const dataflow::Analysis analysis = dataflow::analyse(model, options);
    for (const ValueId output : model.graph(GraphId::kMain).outputs) {
      const Fact& fact = analysis.fact(output);
      if (fact.kind != ValueKind::kTensor || fact.range == range_of(fact.dtypes)) continue;
      lines.insert(fmt::format("{}: [{}, {}]{} gives [{:.6g}, {:.6g}]{}", op, range.lo, range.hi,
                               range.nan ? " or NaN" : "", fact.range.lo, fact.range.hi,
                               fact.range.nan ? " or NaN" : ""));
    }
  }
}

std::set<std::string> first_of_each(const std::set<std::string>& lines) {
  std::map<std::string, std::size_t> alike;
  std::set<std::string> kept;
  for (const std::string& line : lines)
    if (++alike[line.substr(0, line.find(": ", line.find(": ") + 2))] <= kMostAlike) kept.insert(line);
  return kept;
}

/// By the operator of a model that has just one node.
std::set<std::string> lines_of(char letter) {
  std::set<std::string> lines;
  for (const BackendCase& entry : Corpus::get().cases) {
    if (!entry.name.starts_with("node-") || entry.variant == "symbols") continue;
    if (letter != 0 && entry.op[0] != letter) continue;
    const Result<Model> model = model_of(entry);
    EXPECT_TRUE(model) << entry.name;
    if (!model || model->nodes.size() != 1 || model->graphs.size() != 1) continue;
    add_faults(*model, entry.op, lines);
    add_bounds(*model, entry.op, lines);
  }
  return first_of_each(lines);
}

class BackendFaults : public testing::TestWithParam<char> {};

TEST_P(BackendFaults, AreWordedAsListed) {
  if (std::getenv("TENSORLINT_UPDATE") != nullptr) return;  // the list is written below
  std::set<std::string> expected;
  std::istringstream listed(read_all(std::string(kListed)));
  for (std::string line; std::getline(listed, line);)
    if (line.starts_with(GetParam())) expected.insert(line);
  const std::set<std::string> found = lines_of(GetParam());
  for (const std::string& line : expected) EXPECT_TRUE(found.contains(line)) << "no longer so: " << line;
  for (const std::string& line : found) EXPECT_TRUE(expected.contains(line)) << "not listed: " << line;
}

INSTANTIATE_TEST_SUITE_P(Letters, BackendFaults, testing::Range('A', static_cast<char>('Z' + 1)),
                         [](const auto& info) { return std::string(1, info.param); });

TEST(BackendFaultsList, IsWrittenOnDemand) {
  if (std::getenv("TENSORLINT_UPDATE") == nullptr) return;
  std::ofstream out{std::string(kListed), std::ios::binary};
  out << "# What single operators are said to fail at, and between which bounds their results are, for other "
         "operands.\n";
  for (const std::string& line : lines_of(0)) out << line << '\n';
}

}  // namespace
}  // namespace tensorlint::ops
