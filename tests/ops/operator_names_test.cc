#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/inference.h"

/// An operator is declared in one place, its entry. No pass, rule or report asks for one by its name: it asks for what
/// the entry declares, which holds for the next operator of the kind too, and for no other domain's of the same name.

namespace tensorlint {
namespace {

/// Names that PyTorch's exporters write into metadata: some of its loss modules are called like operators.
constexpr std::string_view kMayHoldNames[] = {"passes/losses/loss_names.cc"};

/// Writes nodes, so it has to name them; it may not compare names.
constexpr std::string_view kWritesNodes = "analyzer/builder/";

struct Literal {
  std::size_t line = 1;
  std::string text;
  std::string before;  ///< the code right before it, without spaces
};

/// String literals of C++ source, without those in comments. Good enough for this code base: no trigraphs, no line
/// continuation within a literal.
std::vector<Literal> literals_of(std::string_view source) {
  std::vector<Literal> found;
  std::string code;  // what was read, without comments and spaces
  std::size_t line = 1;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const std::string_view rest = source.substr(i);
    if (rest.starts_with("//")) {
      i += std::min(rest.find('\n'), rest.size()) - 1;
    } else if (rest.starts_with("/*")) {
      const std::size_t end = std::min(rest.find("*/"), rest.size() - 2);
      line += static_cast<std::size_t>(std::ranges::count(rest.substr(0, end), '\n'));
      i += end + 1;
    } else if (rest.starts_with("R\"")) {
      const std::string close = ")" + std::string(rest.substr(2, rest.find('(') - 2)) + "\"";
      const std::size_t begin = rest.find('(') + 1, end = std::min(rest.find(close, begin), rest.size());
      found.push_back({line, std::string(rest.substr(begin, end - begin)), code});
      line += static_cast<std::size_t>(std::ranges::count(rest.substr(0, end), '\n'));
      i += end + close.size() - 1;
    } else if (rest[0] == '"') {
      std::size_t end = 1;
      while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
      found.push_back({line, std::string(rest.substr(1, end - 1)),
                       code.substr(code.size() - std::min(code.size(), std::size_t{40}))});
      code += "\"\"";
      i += end;
    } else if (rest[0] == '\'' && (i == 0 || std::isalnum(static_cast<unsigned char>(source[i - 1])) == 0)) {
      std::size_t end = 1;
      while (end < rest.size() && rest[end] != '\'') end += rest[end] == '\\' ? 2 : 1;
      i += end;
    } else {
      line += rest[0] == '\n' ? 1 : 0;
      if (std::isspace(static_cast<unsigned char>(rest[0])) == 0) code += rest[0];
    }
  }
  return found;
}

std::set<std::string_view> operator_names() {
  std::set<std::string_view> names;
  for (const OpSchema& schema : all_schemas()) names.insert(schema.name);
  for (const ops::OpEntry& entry : ops::all_entries()) names.insert(entry.name());
  return names;
}

/// The literal is part of a comparison, as in `name == "Add"`, `is("Add")`, `name.starts_with("Reduce")`.
bool is_asked(const Literal& literal) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"==", "!=", "is(", "_with(", "find(", "compare("},
                             [&](std::string_view asks) { return literal.before.ends_with(asks); });
}

/// "Reduce" in `name.starts_with("Reduce")`: part of a name, which stands for several operators.
bool is_part_of_name(const Literal& literal, const std::set<std::string_view>& names) {
  if (!literal.before.ends_with("starts_with(") && !literal.before.ends_with("ends_with(")) return false;
  const bool prefix = literal.before.ends_with("starts_with(");
  return literal.text.size() >= 3 && std::ranges::any_of(names, [&](std::string_view name) {
           return prefix ? name.starts_with(literal.text) : name.ends_with(literal.text);
         });
}

std::vector<std::string> asked_names(std::string_view path, std::string_view source) {
  static const std::set<std::string_view> names = operator_names();
  if (std::ranges::find(kMayHoldNames, path) != std::end(kMayHoldNames)) return {};
  const bool writes = path.starts_with(kWritesNodes);
  std::vector<std::string> asked;
  for (const Literal& literal : literals_of(source)) {
    const bool named = names.contains(literal.text) && (!writes || is_asked(literal));
    if (named || is_part_of_name(literal, names))
      asked.push_back(fmt::format("{}:{}: \"{}\"", path, literal.line, literal.text));
  }
  return asked;
}

TEST(OperatorNames, NobodyAsksOutsideOfTheEntries) {
  namespace fs = std::filesystem;
  const fs::path root = TENSORLINT_SOURCE_DIR;
  std::size_t files = 0;
  for (const std::string_view room : {"passes", "analyzer"}) {
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(root / room)) {
      if (file.path().extension() != ".cc" && file.path().extension() != ".h") continue;
      ++files;
      std::ifstream in(file.path());
      const std::string source{std::istreambuf_iterator<char>(in), {}};
      for (const std::string& asked : asked_names(fs::relative(file.path(), root).generic_string(), source))
        ADD_FAILURE() << asked << " is an operator's name: declare in its entry what you ask it for";
    }
  }
  EXPECT_GT(files, 150U);
}

/// The files that may hold names exist, and still need to.
TEST(OperatorNames, ExceptionsAreNeeded) {
  const std::set<std::string_view> names = operator_names();
  for (const std::string_view path : kMayHoldNames) {
    std::ifstream in(std::filesystem::path(TENSORLINT_SOURCE_DIR) / path);
    const std::string source{std::istreambuf_iterator<char>(in), {}};
    EXPECT_TRUE(std::ranges::any_of(literals_of(source), [&](const Literal& x) { return names.contains(x.text); }))
        << path << " names no operator: take it off the list";
  }
}

TEST(OperatorNames, FindsWhatAsks) {
  const auto count = [](std::string_view source, std::string_view path = "passes/x.cc") {
    return asked_names(path, source).size();
  };
  EXPECT_EQ(count(R"(if (name == "Softmax") return;)"), 1U);
  EXPECT_EQ(count(R"(if (call.is("Transfer") || call.is("FusedConv")) return;)"), 2U);
  EXPECT_EQ(count(R"(constexpr std::string_view kNames[] = {"Gather", "GatherND"};)"), 2U);
  EXPECT_EQ(count(R"(if (op.starts_with("Reduce")) return;)"), 1U);
  EXPECT_EQ(count("// \"Add\" in a comment\n/* \"Mul\" */ const char quote = '\"'; f(\"axis\"); g(\"use a Sigmoid\");"),
            0U);
  EXPECT_EQ(count(R"(return state.call("Add", {a, b});)", "analyzer/builder/builder.cc"), 0U);
  EXPECT_EQ(count(R"(if (step.op == "Transfer") return;)", "analyzer/builder/state.cc"), 1U);
  EXPECT_EQ(asked_names("passes/x.cc", "\n\nf(\"If\")").front(), "passes/x.cc:3: \"If\"");
}

}  // namespace
}  // namespace tensorlint
