// What is inferred of calls in which one thing is changed. Each call is a line of varied_calls.expected.txt: what is
// inferred of it, and for each of its parts how many of the variations of that part are rejected, of how many, and a
// hash of all that is inferred of them. Every text that the hashes stand for is written by
//     TENSORLINT_VARIATIONS=FILE tensorlint_tests --gtest_filter=VariedCalls*
// so that a change can be reviewed as the difference of two such files. That facts hold is for the soundness tests.
#include "tests/ops/varied_calls.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "passes/dataflow/analysis.h"
#include "tests/ops/backend_corpus.h"
#include "tests/ops/op_test.h"
#include "tests/sanitized.h"

namespace tensorlint::ops {
namespace {

constexpr std::string_view kCalls = "tests/ops/varied_calls.txt";
constexpr std::string_view kExpected = "tests/ops/varied_calls.expected.txt";
/// Calls of the backend tests that have the same operator, version, attributes and ranks: more of them show little new.
constexpr std::size_t kMostAlike = 3;
constexpr std::size_t kStride = stride(30);

/// FNV-1a, folded to 16 bits: the same on every machine.
struct Fingerprint {
  std::uint64_t hash = 0xcbf29ce484222325;
  int count = 0, rejected = 0;

  void add(std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    ++count;
  }
  std::string to_text() const {
    return fmt::format("{}/{}:{:04x}", rejected, count, (hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) & 0xffff);
  }
};

std::ofstream& all_variations() {
  static std::ofstream file([] {
    const char* path = std::getenv("TENSORLINT_VARIATIONS");
    return std::string(path == nullptr ? "" : path);
  }());
  return file;
}

std::string line_of(const VariedCall& call) {
  const std::string title = call.title();
  std::map<std::string, Fingerprint, std::less<>> parts;
  std::string line;
  vary(call, [&](const std::string& text, const VariedCall& varied) {
    bool rejected = false;
    const std::string outcome = varied.outcome(rejected);
    if (line.empty()) line = fmt::format("{} -> {}", title, outcome);
    Fingerprint& part = parts[text.substr(0, text.find_first_of(" ="))];
    part.add(fmt::format("{}: {}\n", text, outcome));
    part.rejected += rejected;
    if (all_variations().is_open()) all_variations() << title << " | " << text << ": " << outcome << '\n';
  });
  for (const auto& [part, fingerprint] : parts) line += fmt::format(" | {} {}", part, fingerprint.to_text());
  return line;
}

std::vector<std::string> parts_of(const std::string& line, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = line.find(separator, at);
    parts.push_back(line.substr(at, end - at));
    if (end == std::string::npos) return parts;
    at = end + separator.size();
  }
}

template <typename T>
std::vector<T> numbers_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<T> numbers;
  for (std::string word; in >> word;) {
    // Streams do not read infinities.
    if constexpr (std::is_floating_point_v<T>)
      numbers.push_back(static_cast<T>(std::strtod(word.c_str(), nullptr)));
    else
      numbers.push_back(static_cast<T>(std::stoll(word)));
  }
  return numbers;
}

/// Of a listed call.
Fact operand_of(Op& op, const std::string& text) {
  if (text == "?") return {};
  if (text.starts_with("seq(")) {
    const std::size_t close = text.rfind(')');
    Fact fact;
    fact.kind = ValueKind::kSequence;
    fact.element = op.facts().intern(operand_of(op, text.substr(4, close - 4)));
    fact.shape = op.facts().intern_shape(std::vector<Dim>{op.dim(text.substr(close + 2))});
    return fact;
  }
  const std::size_t end = text.find(']') + 1;
  Fact fact = op.tensor(text.substr(0, end));
  const std::string rest = text.substr(end);
  if (rest.starts_with(" i{")) {
    std::istringstream words(rest.substr(3, rest.size() - 4));
    Content content;
    for (std::string word; words >> word;) content.integers.push_back(op.dim(word));
    fact.range = range_of(op.facts().dims(), content.integers);
    fact.content = op.facts().intern_content(std::move(content));
  } else if (rest.starts_with(" f{")) {
    fact.content = op.facts().intern_content({{}, numbers_of<double>(rest.substr(3, rest.size() - 4))});
  } else if (rest.starts_with(" in ")) {
    const std::vector<double> bounds = numbers_of<double>(rest.substr(4));
    fact.range = {bounds.at(0), bounds.at(1), bounds.at(2) != 0};
  }
  return fact;
}

/// What the attributes of listed calls point to.
struct Texts {
  std::deque<std::string> texts;
  std::string_view keep(std::string text) { return texts.emplace_back(std::move(text)); }
};

void add_attribute(Op& op, const std::string& text, Texts& texts) {
  const std::size_t equals = text.find('='), space = std::min(text.find(' ', equals), text.size());
  const std::string_view name = texts.keep(text.substr(0, equals));
  const std::string kind = text.substr(equals + 1, space - equals - 1);
  const std::string value = space < text.size() ? text.substr(space + 1) : "";
  if (kind == "int") op.with(name, std::int64_t{std::stoll(value)});
  if (kind == "float") op.with(name, std::strtod(value.c_str(), nullptr));
  if (kind == "string") op.with(name, texts.keep(value).data());
  if (kind == "ints") op.ints(name, numbers_of<std::int64_t>(value));
  if (kind == "floats") op.float_list(name, numbers_of<float>(value));
  if (kind == "strings") {
    std::istringstream words(value);
    std::vector<std::string_view> list;
    for (std::string word; words >> word;) list.push_back(texts.keep(word));
    op.strings(name, list);
  }
}

std::string listed_line(const std::string& text) {
  const std::vector<std::string> parts = parts_of(text, " | ");
  const std::size_t dash = parts[0].rfind('-'), dot = parts[0].rfind('.', dash), space = parts[0].find(' ', dash);
  const std::string domain = dot == std::string::npos ? "" : parts[0].substr(0, dot);
  const std::string name = parts[0].substr(domain.empty() ? 0 : dot + 1, dash - (domain.empty() ? 0 : dot + 1));
  Op op(name, std::stoll(parts[0].substr(dash + 1)), domain);
  op.results(static_cast<std::uint32_t>(std::stoul(parts[0].substr(space + 1))));
  Texts texts;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    if (parts[i] == "_")
      op.absent();
    else if (equals != std::string::npos && parts[i].find_first_of("[?") > equals)
      add_attribute(op, parts[i], texts);
    else
      op.in(operand_of(op, parts[i]));
  }
  std::deque<std::vector<std::int64_t>> lists;
  return line_of(VariedCall(op.application(), lists));
}

/// 'A' for operators of other domains too: by the operator's name.
char letter_of(const std::string& call) {
  const std::size_t dash = call.rfind('-', call.find(' '));
  const std::size_t dot = call.rfind('.', dash);
  return call[dot == std::string::npos ? 0 : dot + 1];
}

/// Operator, version, attributes' names and operands' ranks.
std::string kind_of(const VariedCall& call) {
  std::string text = fmt::format("{}-{}", call.name, call.opset);
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Fact& fact = call.operands[i];
    text += fmt::format(" {}{}", call.facts->dims_of(fact.shape).size(), fact.content == ContentId::kNone ? "" : "!");
  }
  for (const Attribute& attribute : call.attributes) text += fmt::format(" {}", attribute.name);
  return text;
}

/// The lines of the operators that begin with the letter; of all with 0.
std::set<std::string> lines_of(char letter) {
  std::set<std::string> lines;
  std::size_t number = 0;
  std::istringstream listed(read_all(std::string(kCalls)));
  for (std::string line; std::getline(listed, line);)
    if (!line.starts_with('#') && (letter == 0 || letter_of(line) == letter) && number++ % kStride == 0)
      lines.insert(listed_line(line));
  std::map<std::string, std::size_t> alike;
  for (const BackendCase& entry : Corpus::get().cases) {
    if (!entry.name.starts_with("node-") || entry.variant == "symbols") continue;
    if (letter != 0 && entry.op[0] != letter) continue;
    const Result<Model> model = model_of(entry);
    EXPECT_TRUE(model) << entry.name;
    if (!model || model->nodes.size() != 1 || model->graphs.size() != 1) continue;
    const dataflow::Analysis analysis = dataflow::analyse(*model, {});
    const dataflow::Analysis::NodeApplication application(analysis, NodeId{0});
    std::deque<std::vector<std::int64_t>> lists;
    const VariedCall call(*application, lists);
    if (++alike[kind_of(call)] <= kMostAlike && number++ % kStride == 0) lines.insert(line_of(call));
  }
  return lines;
}

class VariedCalls : public testing::TestWithParam<char> {};

TEST_P(VariedCalls, AreInferredAsListed) {
  if (std::getenv("TENSORLINT_UPDATE") != nullptr) return;  // the list is written below
  std::set<std::string> expected;
  std::istringstream listed(read_all(std::string(kExpected)));
  for (std::string line; std::getline(listed, line);)
    if (!line.starts_with('#') && letter_of(line) == GetParam()) expected.insert(line);
  const std::set<std::string> found = lines_of(GetParam());
  for (const std::string& line : found) EXPECT_TRUE(expected.contains(line)) << "not listed: " << line;
  if (kStride > 1) return;
  for (const std::string& line : expected) EXPECT_TRUE(found.contains(line)) << "no longer so: " << line;
}

INSTANTIATE_TEST_SUITE_P(Letters, VariedCalls, testing::Range('A', static_cast<char>('Z' + 1)),
                         [](const auto& info) { return std::string(1, info.param); });

TEST(VariedCallsList, IsWrittenOnDemand) {
  if (std::getenv("TENSORLINT_UPDATE") == nullptr) return;
  std::ofstream out{std::string(kExpected), std::ios::binary};
  out << "# What is inferred of calls, and of their variations: rejected/all:hash for each part "
         "(varied_calls_test.cc).\n";
  for (const std::string& line : lines_of(0)) out << line << '\n';
}

}  // namespace
}  // namespace tensorlint::ops
