// What is said of every model in the repository, and of the same models with one thing changed: an operator, an
// attribute, the order of operands, a constant, what is declared of inputs, which values are given, the opset, steps
// between a value and its users that change nothing. A line of varied_models.expected.txt for each model, and below it
// its findings: hashes of all facts and where they came from, of the losses found and of the findings with notes, fixes
// and their edits; and how many findings its variations have, with a hash of these. Behind the models of a folder, the
// steps that the meter counted for all of them. Every text that the hashes stand for is written by
//     TENSORLINT_VARIATIONS=FILE tensorlint_tests --gtest_filter=*VariedModels*
// so that a change can be reviewed as the difference of two such files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analyzer/findings/input_report.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/reports/json.h"
#include "analyzer/reports/show.h"
#include "analyzer/reports/why.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"
#include "tests/ops/varied_calls.h"
#include "tests/sanitized.h"

namespace tensorlint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExpected = "tests/models/varied_models.expected.txt";
// Chosen for a minute and a half of one core. Of the programs' exports, which are alike, every one is looked at, and
// each so many-th is varied; of the variations of a model each so many-th is made.
constexpr std::size_t kVariedProgram = 12;
constexpr std::size_t kVariation = 8;
constexpr std::size_t kMostNodes = 40;       // of a model that is varied
constexpr std::size_t kMostBytes = 100'000;  // of a file: weights show nothing more
constexpr std::size_t kStride = stride(15);

/// FNV-1a, folded to 16 bits: the same on every machine.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:04x}", (hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) & 0xffff);
}

std::ofstream& all_texts() {
  static std::ofstream file([] {
    const char* path = std::getenv("TENSORLINT_VARIATIONS");
    return std::string(path == nullptr ? "" : path);
  }());
  return file;
}

std::string to_text(const NewAttribute& attribute) {
  return fmt::format("{}={}/{}/{}/[{}]", attribute.name, attribute.i, attribute.f, attribute.s,
                     fmt::join(attribute.ints, " "));
}

/// What a fix does to a model.
std::string to_text(const GraphEdit& edit) {
  const auto number = [](auto id) { return static_cast<std::uint32_t>(id); };
  std::string text = fmt::format(" edit {}", edit.index());
  if (const auto* insert = std::get_if<InsertNode>(&edit)) {
    const NewNode& node = insert->node;
    text += fmt::format(" before {} in {}: {} = {}.{}({})", number(insert->before), number(insert->graph),
                        fmt::join(node.results, ","), node.domain, node.op, fmt::join(node.operands, ","));
    for (const NewAttribute& attribute : node.attributes) text += " " + to_text(attribute);
  }
  if (const auto* set = std::get_if<SetOperand>(&edit))
    text += fmt::format(" operand {} of {} is {}", set->index, number(set->node), set->value);
  if (const auto* set = std::get_if<SetResult>(&edit))
    text += fmt::format(" result {} of {} is {}", set->index, number(set->node), set->value);
  if (const auto* set = std::get_if<SetAttribute>(&edit))
    text += fmt::format(" of {}: {}", number(set->node), to_text(set->attribute));
  if (const auto* add = std::get_if<AddInitializer>(&edit))
    text += fmt::format(" {} in {} [{}] = {}", add->name, number(add->graph), fmt::join(add->dims, ","),
                        fmt::join(add->elements, " "));
  if (const auto* drop = std::get_if<DropValueInfo>(&edit))
    text += fmt::format(" {} in {}", drop->value, number(drop->graph));
  if (const auto* remove = std::get_if<RemoveNode>(&edit)) text += fmt::format(" {}", number(remove->node));
  if (const auto* move = std::get_if<MoveNode>(&edit))
    text += fmt::format(" {} before {}", number(move->node), number(move->before));
  if (const auto* remove = std::get_if<RemoveInitializer>(&edit)) text += fmt::format(" {}", number(remove->value));
  return text;
}

std::string edits_of(const std::vector<findings::Finding>& found) {
  std::string text;
  for (const findings::Finding& finding : found)
    for (const findings::Fix& fix : finding.fixes) {
      text += finding.code;
      for (const GraphEdit& edit : fix.edits) text += to_text(edit);
      text += '\n';
    }
  return text;
}

/// What is said of a model.
struct Said {
  std::string facts, losses, findings;
  std::vector<findings::Finding> found;
  std::uint64_t steps = 0;  ///< of the meter, for what `check` does
};

Said said_of(const Model& model, const dataflow::AnalysisOptions& options, bool varied) {
  Said said;
  const dataflow::Analysis analysis = dataflow::analyse(model, options);
  pipeline::Options pipeline_options;
  pipeline_options.analysis = options;
  pipeline::Pipeline pipeline(analysis, std::move(pipeline_options));
  pipeline::CheckResults results = pipeline.check();
  findings::InputReport report;
  report.path = model.path;
  report.checked = true;
  report.nodes = model.nodes.size();
  report.findings = std::move(results.findings);
  report.counts = results.counts;
  said.steps = analysis.meter().steps();
  said.findings = text_of([&](const TextSink& out) { reports::check_json({&report, 1}, false, out); });
  said.found = std::move(report.findings);
  const passes::PassResults& passes = pipeline.run({passes::Pass::kLosses, passes::Pass::kPlacement});
  for (const losses::LossSite& site : passes.losses()) {
    said.losses += fmt::format("{} at {}: {}, {} from {}, {} of", to_text(site.kind), model.label(site.anchor),
                               model.name_of(site.prediction), model.name_of(site.target),
                               model.name_of(site.prediction_source), model.name_of(site.target_source));
    for (const NodeId node : site.nodes) said.losses += " " + model.label(node);
    said.losses += '\n';
  }
  if (varied) {
    for (const ValueId value : model.values.ids(kFirstValue))
      said.facts += fmt::format("{}: {}{}\n", model.name_of(value), analysis.facts().to_text(analysis.fact_id(value)),
                                analysis.taint(value).bits);
    return said;
  }
  said.facts = text_of([&](const TextSink& out) { reports::show_text(analysis, passes.placement(), {}, out); });
  reports::ShowStyle style;
  style.all_symbols = true;
  reports::show_json(analysis, passes.placement(), passes.losses(), style,
                     [&](std::string_view part) { said.facts += part; });
  const std::string root;
  const reports::WhySources sources{analysis, passes.placement(), root};
  for (const ValueId value : model.graph(GraphId::kMain).outputs)
    if (value != ValueId::kAbsent)
      said.facts += reports::why_text(sources, value) + reports::why_tree(sources, value, 4);
  said.findings += edits_of(said.found);
  return said;
}

/// Makes one change after another to a model, and takes each back.
class Variations {
 public:
  /// Makes the first of `stride`, and so on.
  Variations(Model& model, std::size_t stride) : model_(model), stride_(stride) {}

  /// All of them, and what is said of them.
  std::string all(std::string_view text) {
    for (const NodeId node : model_.nodes.ids()) {
      operators(node);
      operands(node);
      attributes(node);
    }
    constants();
    inputs();
    outputs();
    opsets();
    longer_ways(text);
    return fmt::format("{} findings in {}:{}", findings_, count_, hash_of(text_));
  }

  std::uint64_t steps() const { return steps_; }

 private:
  bool is_next() { return count_++ % stride_ == 0; }

  void say(const std::string& what, const dataflow::AnalysisOptions& options = {}) {
    if (is_next()) say(what, model_, options);
  }

  void say(const std::string& what, const Model& model, const dataflow::AnalysisOptions& options) {
    const Said said = said_of(model, options, true);
    findings_ += said.found.size();
    steps_ += said.steps;
    std::string text = fmt::format("{}\n{}{}", what, said.facts, said.losses);
    for (const findings::Finding& finding : said.found) {
      text += fmt::format("{} {} {}: {}", finding.code, to_text(finding.severity), finding.node, finding.message);
      for (const findings::Note& note : finding.notes) text += fmt::format("; {}", note.message);
      for (const findings::Fix& fix : finding.fixes) text += fmt::format("; {}", fix.message);
      text += fmt::format("; {}\n", finding.also.size());
    }
    text += edits_of(said.found);
    text_ += text;
    if (all_texts().is_open()) all_texts() << model_.path << " | " << text;
  }

  /// Two that the model has, with as many operands, and those that are like it.
  void operators(NodeId id) {
    Node& node = model_.nodes[id];
    const OperatorId old = node.op;
    std::size_t tried = 0;
    for (const OperatorId other : model_.operators.ids()) {
      const OpSchema* schema = model_.operators[other].schema;
      if (other == old || schema == nullptr || model_.operators[old].schema == nullptr || tried == 2) continue;
      if (node.operand_count < schema->min_inputs || node.operand_count > schema->max_inputs) continue;
      ++tried;
      node.op = other;
      say(fmt::format("{} is {}", model_.text(model_.operators[old].name), schema->name));
    }
    node.op = old;
    const Operator op = model_.operators[old];
    if (op.domain != NameId::kEmpty || op.schema == nullptr) return;
    const std::string_view name = model_.text(op.name);
    for (const auto& alike : kAlike) {
      if (std::ranges::find(alike, name) == alike.end()) continue;
      for (const std::string_view other : alike) {
        Operator changed = op;
        changed.schema = find_schema("", other, static_cast<int>(op.opset));
        if (other == name || changed.schema == nullptr) continue;
        changed.name = static_cast<NameId>(model_.names.intern(other));
        const OperatorId added = operator_like(changed);
        model_.nodes[id].op = added;
        say(fmt::format("{} is {}", name, other));
        model_.nodes[id].op = old;
      }
    }
  }

  OperatorId operator_like(const Operator& op) {
    for (const OperatorId id : model_.operators.ids())
      if (model_.operators[id].name == op.name && model_.operators[id].domain == op.domain &&
          model_.operators[id].opset == op.opset)
        return id;
    model_.operators.push_back(op);
    return static_cast<OperatorId>(model_.operators.size() - 1);
  }

  void operands(NodeId id) {
    const Node node = model_.nodes[id];
    ValueId* const list = model_.operand_list.data() + node.first_operand;
    for (std::uint32_t i = 0; i + 1 < node.operand_count; ++i) {
      if (list[i] == list[i + 1]) continue;
      std::swap(list[i], list[i + 1]);
      say(fmt::format("operands {} and {} of {}", i, i + 1, static_cast<std::uint32_t>(id)));
      std::swap(list[i], list[i + 1]);
    }
    for (std::uint32_t i = 0; i < node.operand_count; ++i) {
      const ValueId old = list[i];
      if (old == ValueId::kAbsent) continue;
      std::vector<ValueId> others{ValueId::kAbsent};
      // What the operand is computed from, as if that step were not there.
      if (const NodeId producer = model_.value(old).producer; producer != NodeId::kNone)
        for (const ValueId before : model_.operands(model_.node(producer))) others.push_back(before);
      others.push_back(list[(i + 1) % node.operand_count]);
      for (const ValueId input : model_.graph(node.graph).inputs) others.push_back(input);
      std::sort(others.begin(), others.end());
      others.erase(std::unique(others.begin(), others.end()), others.end());
      for (const ValueId other : others) {
        if (other == old) continue;
        list[i] = other;
        say(fmt::format("operand {} of {} is {}", i, static_cast<std::uint32_t>(id), model_.name_of(other)));
      }
      list[i] = old;
    }
  }

  void attributes(NodeId id) {
    const Node node = model_.nodes[id];
    for (std::uint32_t i = 0; i < node.attribute_count; ++i) {
      Attribute& attribute = model_.attribute_list[node.first_attribute + i];
      const Attribute old = attribute;
      const auto changed = [&](std::string_view to) {
        say(fmt::format("{} of {} is {}", old.name, static_cast<std::uint32_t>(id), to));
        attribute = old;
      };
      if (old.kind == AttributeKind::kInt)
        for (const std::int64_t other : {ops::next_to(old.i, 1), ops::next_to(old.i, -1)}) {
          attribute.i = other;
          changed(std::to_string(other));
        }
      if (old.kind == AttributeKind::kFloat)
        for (const float other : {0.0F, -old.f}) {
          attribute.f = other;
          changed(std::to_string(other));
        }
      if (old.kind == AttributeKind::kString)
        for (const std::string_view other : {"none", "sum", "mean"}) {
          attribute.s = other;
          changed(other);
        }
      if (old.kind == AttributeKind::kInts)
        for (std::size_t at = 0; at < std::min<std::size_t>(old.ints.size(), 4); ++at)
          for (const std::int64_t step : {1, -1}) {
            std::vector<std::int64_t> list(old.ints.begin(), old.ints.end());
            list[at] = ops::next_to(list[at], step);
            attribute.ints = list;
            changed(fmt::format("{}", fmt::join(list, " ")));
          }
      if (old.kind == AttributeKind::kGraph || old.kind == AttributeKind::kGraphs) continue;
      // The last takes its place.
      Attribute& last = model_.attribute_list[node.first_attribute + node.attribute_count - 1];
      std::swap(attribute, last);
      --model_.nodes[id].attribute_count;
      say(fmt::format("without {} of {}", old.name, static_cast<std::uint32_t>(id)));
      ++model_.nodes[id].attribute_count;
      std::swap(attribute, last);
    }
  }

  void constants() {
    for (const ValueId id : model_.values.ids(kFirstValue)) {
      const Tensor* const old = model_.values[id].initializer;
      if (old == nullptr) continue;
      const auto changed = [&](std::string raw, std::string_view to) {
        Tensor tensor = *old;
        tensor.has_raw = true;
        tensor.raw = raw;
        tensor.typed_field = TypedField::kNone;
        tensor.typed = {};
        model_.values[id].initializer = &tensor;
        say(fmt::format("{} is {}", model_.name_of(id), to));
        model_.values[id].initializer = old;
      };
      const auto as_raw = [](const auto& numbers) {
        std::string raw(numbers.size() * sizeof(numbers[0]), '\0');
        std::memcpy(raw.data(), numbers.data(), raw.size());
        return raw;
      };
      const auto each = [&](const auto& numbers, const auto& others) {
        if (!numbers || numbers->empty()) return;
        const std::size_t last = numbers->size() - 1;
        for (const std::size_t at : {std::size_t{0}, std::size_t{1}, last}) {
          if (at > last || (at != last && at + 1 >= last)) continue;
          for (const auto other : others(numbers->at(at))) {
            auto list = *numbers;
            if (list[at] == other) continue;
            list[at] = other;
            changed(as_raw(list), fmt::format("{} at {}", other, at));
          }
        }
      };
      if (old->dtype_code == static_cast<int>(DType::kFloat32)) {
        each(as_list<float>(old->floats(4)), [](float number) {
          return std::vector<float>{0.0F, 1.0F, -1.0F, 0.5F, 2.0F, -100.0F, -number, 2 * number, 1 - number};
        });
      } else if (old->dtype_code == static_cast<int>(DType::kInt64)) {
        each(as_list<std::int64_t>(old->integers(8)), [](std::int64_t number) {
          return std::vector<std::int64_t>{ops::next_to(number, 1), ops::next_to(number, -1), 0, 1, -1, 2};
        });
      }
    }
  }

  template <typename T, typename Numbers>
  static std::optional<std::vector<T>> as_list(const Numbers& numbers) {
    if (!numbers) return std::nullopt;
    return std::vector<T>(numbers->begin(), numbers->end());
  }

  void inputs() {
    together();
    for (const ValueId input : model_.graph(GraphId::kMain).inputs) {
      const TypeDecl* type = model_.value(input).type;
      if (type == nullptr || type->kind != TypeKind::kTensor || !type->ranked) continue;
      const std::string name(model_.name_of(input));
      const std::vector<std::string> extents = extents_of(*type);
      const auto declared = [&](const std::vector<std::string>& dims) {
        dataflow::AnalysisOptions options;
        options.values[name].has_shape = true;
        options.values[name].dims = dims;
        say(fmt::format("{}: {}", name, fmt::join(dims, ",")), options);
      };
      for (std::size_t axis = 0; axis < extents.size(); ++axis)
        for (const std::string_view other : {"1", "5", "n", "?", "s77", "2*n"}) {
          std::vector<std::string> dims = extents;
          dims[axis] = other;
          declared(dims);
        }
      std::vector<std::string> dims = extents;
      dims.insert(dims.begin(), "2");
      declared(dims);
      dims = extents;
      dims.push_back("1");
      declared(dims);
      if (extents.size() > 1) {
        dims = extents;
        std::swap(dims[0], dims[1]);
        declared(dims);
        std::ranges::fill(dims, "n");
        declared(dims);
      }
      if (!extents.empty()) declared({extents.begin(), extents.end() - 1});
      for (const DType dtype : {DType::kInt64, DType::kFloat16, DType::kFloat64, DType::kBool}) {
        dataflow::AnalysisOptions options;
        options.values[name].dtypes = dtype;
        say(fmt::format("{}: {}", name, to_text(dtype)), options);
      }
      for (const Range& range : {Range{0, 1, false}, Range{-1, 3, false}, Range{2, 9, false}, Range{0, 255, false},
                                 Range{-1, 1, false}, Range{0, 0, false}, Range{1, 1, false}, Range{-5, -2, false}}) {
        dataflow::AnalysisOptions options;
        options.values[name].range = range;
        say(fmt::format("{}: {}", name, range.to_text()), options);
      }
    }
  }

  /// What is declared of all inputs alike: one of them alone contradicts the others.
  void together() {
    for (std::size_t axis = 0; axis < 3; ++axis)
      for (const std::string_view other : {"1", "2", "7", "n", "?"}) {
        dataflow::AnalysisOptions options;
        for (const ValueId input : model_.graph(GraphId::kMain).inputs) {
          const TypeDecl* type = model_.value(input).type;
          if (type == nullptr || type->kind != TypeKind::kTensor || !type->ranked || type->dims.size() <= axis)
            continue;
          dataflow::InputDeclaration& declared = options.values[std::string(model_.name_of(input))];
          declared.has_shape = true;
          declared.dims = extents_of(*type);
          declared.dims[axis] = other;
        }
        if (options.values.size() > 1) say(fmt::format("axis {} of all: {}", axis, other), options);
      }
    for (const Range& range : {Range{0, 1, false}, Range{-1, 1, false}, Range{1, 5, false}, Range{0, 300, false}}) {
      dataflow::AnalysisOptions options;
      for (const ValueId input : model_.graph(GraphId::kMain).inputs)
        options.values[std::string(model_.name_of(input))].range = range;
      if (options.values.size() > 1) say(fmt::format("all: {}", range.to_text()), options);
    }
  }

  std::vector<std::string> extents_of(const TypeDecl& type) const {
    std::vector<std::string> extents;
    for (const DimDecl& dim : type.dims)
      extents.push_back(dim.has_extent               ? std::to_string(dim.extent)
                        : dim.name == NameId::kEmpty ? "?"
                                                     : std::string(model_.text(dim.name)));
    return extents;
  }

  /// The same nodes, imported from another version of ONNX.
  void opsets() {
    const std::vector<Operator> old(model_.operators.begin(), model_.operators.end());
    for (const int opset : {7, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20, 21, 22, 23, 24}) {
      bool is_known = !old.empty();
      for (std::size_t i = 0; i < old.size(); ++i) {
        Operator& op = model_.operators[static_cast<OperatorId>(i)];
        if (op.domain != NameId::kEmpty || op.schema == nullptr) continue;
        op.opset = opset;
        op.schema = find_schema("", model_.text(op.name), opset);
        is_known = is_known && op.schema != nullptr;
      }
      if (is_known) say(fmt::format("opset {}", opset));
      for (std::size_t i = 0; i < old.size(); ++i) model_.operators[static_cast<OperatorId>(i)] = old[i];
    }
  }

  /// Steps between a value and its users: searches that go along chains of nodes end somewhere. A line of the text for
  /// each node is changed, as fixtures are written.
  void longer_ways(std::string_view text) {
    std::vector<std::string> lines;
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    for (std::string& line : lines) {
      const std::string old = line;
      const std::size_t equals = old.find(" = "), label = old.find(']');
      const std::size_t begin = old.find_first_not_of(
          ' ',
          old.find_first_not_of(' ') != std::string::npos && old[old.find_first_not_of(' ')] == '[' ? label + 1 : 0);
      if (begin == 0 || begin == std::string::npos || equals == std::string::npos || equals < begin) continue;
      const std::string name = old.substr(begin, equals - begin);
      if (name.find_first_of(" ,(<\"") != std::string::npos || !ends_statement(old)) continue;
      for (const auto& [step, count] : kSteps) {
        if (!is_next()) continue;
        line = fmt::format("{}{}__0{}", old.substr(0, begin), name, old.substr(equals));
        // Behind the comment of the line, if there is one.
        for (int i = 0; i < count; ++i)
          line += fmt::format("\n  {} = {} ({}__{})", i + 1 == count ? name : fmt::format("{}__{}", name, i + 1), step,
                              name, i);
        std::string changed;
        for (const std::string& each : lines) changed += each + '\n';
        const Result<Model> longer = read_onnx_text(changed, model_.path);
        if (longer) say(fmt::format("{} after {} {}", name, count, step), *longer, {});
      }
      line = old;
    }
  }

  /// A line with all of a node: `f (x)  # comment`.
  static bool ends_statement(std::string_view line) {
    line = line.substr(0, line.find(" #"));
    const std::size_t last = line.find_last_not_of(' ');
    return last != std::string_view::npos && line[last] == ')' && std::ranges::count(line, '(') == 1 &&
           line.find('{') == std::string_view::npos;
  }

  /// Another value of the main graph is what it gives, alone and beside the others.
  void outputs() {
    std::vector<ValueId>& given = model_.graphs[GraphId::kMain].outputs;
    if (given.empty()) return;
    const ValueId old = given[0];
    for (const ValueId value : model_.values.ids(kFirstValue)) {
      const Value& at = model_.value(value);
      if (at.graph != GraphId::kMain || at.origin != ValueOrigin::kNode || at.is_output) continue;
      given.push_back(value);
      model_.values[value].is_output = true;
      say(fmt::format("{} is given too", model_.name_of(value)));
      given.pop_back();
      given[0] = value;
      if (old != ValueId::kAbsent) model_.values[old].is_output = false;
      say(fmt::format("{} is given", model_.name_of(value)));
      model_.values[value].is_output = false;
      if (old != ValueId::kAbsent) model_.values[old].is_output = true;
      given[0] = old;
    }
  }

  /// Operators that people and exporters write for each other.
  static const std::vector<std::vector<std::string_view>> kAlike;
  /// Operators that change nothing, or nothing in pairs, and how many of them: the bounds of searches, and 1 more.
  static constexpr std::array<std::pair<std::string_view, int>, 12> kSteps{{{"Identity", 1},
                                                                            {"Identity", 3},
                                                                            {"Identity", 4},
                                                                            {"Identity", 5},
                                                                            {"Identity", 6},
                                                                            {"Identity", 7},
                                                                            {"Identity", 8},
                                                                            {"Neg", 2},
                                                                            {"Neg", 4},
                                                                            {"Neg", 6},
                                                                            {"Neg", 8},
                                                                            {"Identity", 12}}};

  Model& model_;
  std::size_t stride_, count_ = 0, findings_ = 0;
  std::uint64_t steps_ = 0;
  std::string text_;
};

const std::vector<std::vector<std::string_view>> Variations::kAlike{
    {"Add", "Sub", "Mul", "Div", "Pow"},
    {"Max", "Min", "Sum", "Mean"},
    {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"},
    {"Softmax", "LogSoftmax", "Sigmoid"},
    {"Exp", "Log", "Sqrt", "Neg", "Abs", "Sigmoid", "Tanh", "Relu", "Reciprocal", "Identity", "Softplus", "Sign",
     "Floor"},
    {"ArgMax", "ArgMin"},
    {"Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"},
    {"And", "Or", "Xor"},
    {"Gather", "GatherElements", "GatherND"},
    {"MatMul", "Mul", "Sub"},
    {"LayerNormalization", "GroupNormalization", "InstanceNormalization", "BatchNormalization"},
    {"MaxPool", "AveragePool"},
    {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"},
    {"Reshape", "Expand", "Tile"},
};

std::string text_in(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// `stride`: of the variations; 0 for none. Adds to `steps` what the meter counts.
std::string lines_of(const fs::path& path, std::size_t stride, std::uint64_t& steps) {
  Result<Model> model =
      path.extension() == ".onnx" ? read_onnx_file(path.string()) : read_onnx_text_file(path.string());
  if (!model) return fmt::format("{}: {}\n", path.string(), model.error().message);
  const Said said = said_of(*model, {}, false);
  if (all_texts().is_open()) all_texts() << said.facts << said.losses << said.findings;
  std::string line = fmt::format("{}: facts {}, losses {}, findings {}", path.string(), hash_of(said.facts),
                                 hash_of(said.losses), hash_of(said.findings));
  steps += said.steps;
  if (stride > 0 && model->nodes.size() <= kMostNodes) {
    Variations variations(*model, stride);
    line += fmt::format(", varied {}", variations.all(path.extension() == ".onnx" ? "" : text_in(path)));
    steps += variations.steps();
  }
  line += '\n';
  for (const findings::Finding& finding : said.found)
    line +=
        fmt::format("  {} {} {}: {}\n", finding.place.line, finding.code, to_text(finding.severity), finding.message);
  return line;
}

/// The models below a folder, sorted.
std::vector<fs::path> models_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if ((entry.path().extension() == ".onnx" || entry.path().extension() == ".onnxtxt") &&
        entry.file_size() <= kMostBytes)
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// Folders of models: each is a test.
std::vector<std::string> folders() {
  std::vector<std::string> found{"tests/models/losses", "tests/models/sizes", "tests/models/steps",
                                 "tests/models/mistakes", "samples"};
  for (const std::string root : {"tests/rules", "tests/models/programs"}) {
    if (!fs::is_directory(root)) continue;  // where the program only lists its tests
    for (const auto& entry : fs::directory_iterator(root))
      if (entry.is_directory()) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string text_of(const std::string& folder) {
  std::string text;
  std::size_t number = 0;
  std::uint64_t steps = 0;
  const bool programs = folder.starts_with("tests/models/programs");
  for (const fs::path& path : models_in(folder)) {
    const std::size_t stride = programs && number % kVariedProgram != 0 ? 0 : kVariation;
    if (number++ % kStride == 0) text += lines_of(path, stride, steps);
  }
  if (kStride == 1) text += fmt::format("{}/: {} steps\n", folder, steps);
  return text;
}

/// The part of the expected file about a folder.
std::string expected_of(const std::string& folder) {
  std::ifstream in{std::string(kExpected), std::ios::binary};
  std::string text;
  bool here = false;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("  ")) here = line.starts_with(folder + "/");
    if (here) text += line + '\n';
  }
  return text;
}

class VariedModels : public testing::TestWithParam<std::string> {};

TEST_P(VariedModels, AreSaidWhatIsListed) {
  if (std::getenv("TENSORLINT_UPDATE") != nullptr) return;  // the list is written below
  const std::string found = text_of(GetParam()), expected = expected_of(GetParam());
  if (kStride == 1) {
    EXPECT_EQ(found, expected);
    return;
  }
  std::istringstream lines(found);
  for (std::string line; std::getline(lines, line);) EXPECT_NE(expected.find(line + '\n'), std::string::npos) << line;
}

INSTANTIATE_TEST_SUITE_P(Folders, VariedModels, testing::ValuesIn(folders()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

TEST(VariedModelsList, IsWrittenOnDemand) {
  if (std::getenv("TENSORLINT_UPDATE") == nullptr) return;
  std::ofstream out{std::string(kExpected), std::ios::binary};
  out << "# What is said of models and of their variations (varied_models_test.cc).\n";
  for (const std::string& folder : folders()) out << text_of(folder);
}

}  // namespace
}  // namespace tensorlint
