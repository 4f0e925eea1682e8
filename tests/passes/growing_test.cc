// A recording whose analysis grew call by call, and the same model analysed as a whole, know the same.
#include "passes/dataflow/growing_analysis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "analyzer/pipeline/pipeline.h"
#include "ir/graph/region_op.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"
#include "tests/sanitized.h"

namespace tensorlint::dataflow {
namespace {

namespace fs = std::filesystem;

/// A recording with its analysis.
struct Program {
  Recording recording{{}};
  GrowingAnalysis growing{recording, {}};

  const Model& model() const { return recording.model(); }

  TypeDecl* tensor_type(DType dtype, std::initializer_list<std::int64_t> extents) {
    std::vector<DimDecl> dims;
    for (const std::int64_t extent : extents) dims.push_back({.extent = extent, .has_extent = extent >= 0});
    return tensor_type(dtype, dims);
  }
  TypeDecl* tensor_type(DType dtype, std::span<const DimDecl> dims) {
    TypeDecl* type = recording.memory().new_type();
    type->kind = TypeKind::kTensor;
    type->element_code = static_cast<std::int32_t>(dtype);
    type->ranked = true;
    type->dims = recording.memory().keep_dims(dims);
    return type;
  }
  ValueId input(std::string_view name, const TypeDecl* type) {
    const ValueId id = recording.add_input(recording.unused_name(name), type);
    growing.add_input(id);
    return id;
  }
  ValueId integers(const std::vector<std::int64_t>& numbers) {
    Tensor* tensor = recording.memory().new_tensor();
    tensor->dtype_code = static_cast<std::int32_t>(DType::kInt64);
    const std::int64_t count[] = {static_cast<std::int64_t>(numbers.size())};
    tensor->dims = recording.memory().keep_ints(count);
    tensor->has_raw = true;
    tensor->raw =
        recording.memory().copy({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int64_t)});
    const ValueId id = recording.add_constant(GraphId::kMain, recording.unused_name("constant"), tensor);
    growing.add_constant(id);
    return id;
  }
  std::vector<ValueId> call(std::string_view op, std::vector<ValueId> operands, std::vector<Attribute> attributes = {},
                            std::size_t results = 1) {
    std::vector<NameId> names;
    for (std::size_t r = 0; r < results; ++r) {
      names.push_back(recording.unused_name(fmt::format("{}_r{}", op, model().nodes.size() * 8 + r)));
    }
    const NodeId node =
        recording.add_call({.op = op, .operands = operands, .results = names, .attributes = attributes});
    growing.add_call(node);
    const auto made = model().results(model().node(node));
    return {made.begin(), made.end()};
  }
  GraphId open() {
    const GraphId body = recording.open_body(recording.unused_name("body"));
    growing.open_body();
    return body;
  }
  void close(const std::vector<ValueId>& outputs) {
    recording.close_body(outputs);
    growing.close_body();
  }
  void abandon() {
    const GraphId body = recording.current();
    recording.abandon_body(body);
    growing.abandon_body(body);
  }
};

Attribute integer(std::string_view name, std::int64_t value) {
  Attribute attribute;
  attribute.name = name;
  attribute.kind = AttributeKind::kInt;
  attribute.i = value;
  return attribute;
}
Attribute body(std::string_view name, GraphId graph) {
  Attribute attribute;
  attribute.name = name;
  attribute.kind = AttributeKind::kGraph;
  attribute.graph = graph;
  return attribute;
}

std::string facts_text(const Analysis& analysis, ValueId value) {
  return fmt::format("{} {} taint {}", analysis.facts().to_text(analysis.fact_id(value)),
                     analysis.fact(value).range.to_text(), static_cast<int>(analysis.taint(value).bits));
}

std::string violation_text(const Analysis& analysis, const NodeViolation& violation, NodeId node) {
  // Which values are outputs is recorded last.
  const std::string_view label =
      ops::is_about_declared_shape(violation.kind()) ? "declared shape" : violation.constraint->label;
  return fmt::format("{} {} {} {} {}", static_cast<std::uint32_t>(node), label, static_cast<int>(violation.certainty),
                     violation.iteration, to_text(violation.message, analysis.facts()));
}

std::multiset<std::string> findings_of(const Analysis& analysis) {
  std::multiset<std::string> found;
  for (const findings::Finding& finding : pipeline::Pipeline(analysis, {}).check().findings)
    found.insert(fmt::format("{} {} {}: {} ({} notes, {} more)", finding.code, findings::to_text(finding.severity),
                             finding.node, finding.message, finding.notes.size(), finding.also.size()));
  return found;
}

/// `growing` knows what `whole` knows; `value_of` and `node_of` give what a part of the first is in the second.
template <typename ValueOf, typename NodeOf>
void expect_equal(const Analysis& growing, const Analysis& whole, const ValueOf& value_of, const NodeOf& node_of) {
  for (std::size_t v = 1; v < growing.model().values.size(); ++v) {
    const auto value = static_cast<ValueId>(v);
    const std::optional<ValueId> other = value_of(value);
    if (!other) continue;
    EXPECT_EQ(facts_text(growing, value), facts_text(whole, *other)) << growing.model().name_of(value);
  }
  for (std::size_t n = 0; n < growing.model().nodes.size(); ++n) {
    const auto node = static_cast<NodeId>(n);
    EXPECT_EQ(growing.is_visited(node), whole.is_visited(node_of(node))) << growing.model().label(node);
    EXPECT_EQ(growing.reason(node), whole.reason(node_of(node))) << growing.model().label(node);
    EXPECT_EQ(growing.has_failed(node), whole.has_failed(node_of(node))) << growing.model().label(node);
    EXPECT_EQ(growing.entry(growing.model().node(node)), whole.entry(whole.model().node(node_of(node))));
  }
  std::multiset<std::string> grown, expected;
  for (const NodeViolation& violation : growing.violations())
    grown.insert(violation_text(growing, violation, node_of(violation.node)));
  for (const NodeViolation& violation : whole.violations())
    expected.insert(violation_text(whole, violation, violation.node));
  EXPECT_EQ(grown, expected);
  EXPECT_TRUE(std::ranges::is_sorted(growing.violations(), {}, &NodeViolation::node));
}

void expect_as_a_whole(Program& program) {
  program.growing.finish();
  const Analysis whole = analyse(program.model(), {});
  expect_equal(
      program.growing.analysis(), whole, [](ValueId value) { return std::optional(value); },
      [](NodeId node) { return node; });
  EXPECT_EQ(findings_of(program.growing.analysis()), findings_of(whole));
}

TEST(Growing, KnowsAStraightLineAtOnce) {
  Program program;
  program.recording.import("", 21);
  const ValueId x = program.input("x", program.tensor_type(DType::kFloat32, {2, 3}));
  const ValueId y = program.call("Relu", {x})[0];
  EXPECT_EQ(program.growing.analysis().facts().to_text(program.growing.analysis().fact_id(y)), "float32[2, 3]");
  const ValueId shape = program.integers({3, 2});
  const ValueId z = program.call("Reshape", {y, shape})[0];
  EXPECT_EQ(program.growing.analysis().facts().to_text(program.growing.analysis().fact_id(z)), "float32[3, 2]");
  const NodeId bad = program.recording.add_call({.op = "MatMul", .operands = std::vector{x, y}, .results = {}});
  EXPECT_EQ(program.growing.add_call(bad).size(), 1U);
  EXPECT_TRUE(program.growing.analysis().has_failed(bad));
  expect_as_a_whole(program);
}

TEST(Growing, ALoopIsVisitedAsAWholeWhenItsBodyIsComplete) {
  Program program;
  program.recording.import("", 21);
  const ValueId x = program.input("x", program.tensor_type(DType::kFloat32, {1, 3}));
  const ValueId trips = program.input("trips", program.tensor_type(DType::kInt64, {}));
  const GraphId graph = program.open();
  const ValueId number = program.recording.add_input(program.recording.unused_name("i"), nullptr);
  const ValueId condition = program.recording.add_input(program.recording.unused_name("c"), nullptr);
  const ValueId carried = program.recording.add_input(program.recording.unused_name("x"), nullptr);
  program.growing.add_body_input(number, {});
  program.growing.add_body_input(condition, {});
  program.growing.add_body_input(carried, {program.growing.analysis().fact_id(x), {}});
  const ValueId twice = program.call("Concat", {carried, carried}, {integer("axis", 0)})[0];
  EXPECT_EQ(program.growing.analysis().facts().to_text(program.growing.analysis().fact_id(twice)), "float32[2, 3]");
  const ValueId same = program.call("Identity", {condition})[0];
  program.close({same, twice, number});
  const std::vector<ValueId> results = program.call("Loop", {trips, ValueId::kAbsent, x}, {body("body", graph)}, 2);
  EXPECT_EQ(program.growing.analysis().facts().to_text(program.growing.analysis().fact_id(results[0])),
            "float32[?, 3]");
  program.call("Neg", {results[0]});
  expect_as_a_whole(program);
  EXPECT_TRUE(program.growing.analysis().violations().empty());
}

TEST(Growing, WhatAFirstPassFindsIsFoundOnce) {
  Program program;
  program.recording.import("", 21);
  const ValueId x = program.input("x", program.tensor_type(DType::kFloat32, {2, 3}));
  const ValueId condition = program.input("condition", program.tensor_type(DType::kBool, {}));
  const GraphId left = program.open();
  program.close({program.call("MatMul", {x, x})[0]});
  EXPECT_EQ(program.growing.analysis().violations().size(), 1U);
  const GraphId right = program.open();
  program.close({program.call("Relu", {x})[0]});
  program.call("If", {condition}, {body("then_branch", left), body("else_branch", right)});
  EXPECT_EQ(program.growing.analysis().violations().size(), 1U);
  expect_as_a_whole(program);
}

TEST(Growing, AnAbandonedBodyLeavesNothing) {
  Program program;
  program.recording.import("", 21);
  const ValueId x = program.input("x", program.tensor_type(DType::kFloat32, {2, 3}));
  const std::size_t nodes = program.model().nodes.size();
  program.open();
  const ValueId inner = program.call("MatMul", {x, x})[0];
  program.open();
  program.call("Abs", {x});
  program.abandon();
  EXPECT_EQ(program.model().nodes.size(), nodes + 1);
  program.open();
  program.close({program.call("MatMul", {x, x})[0]});
  program.abandon();
  EXPECT_EQ(program.model().nodes.size(), nodes);
  // One that is closed already.
  const GraphId closed = program.open();
  program.close({program.call("MatMul", {x, x})[0]});
  program.recording.abandon_body(closed);
  program.growing.abandon_body(closed);
  EXPECT_EQ(program.model().nodes.size(), nodes);
  EXPECT_TRUE(program.growing.analysis().violations().empty());
  EXPECT_FALSE(program.recording.is_visible(inner));
  EXPECT_TRUE(program.recording.is_visible(x));
  // The next call has the number of the first one that was taken back, and is not taken for it.
  const ValueId y = program.call("Transpose", {x})[0];
  EXPECT_EQ(program.growing.analysis().facts().to_text(program.growing.analysis().fact_id(y)), "float32[3, 2]");
  EXPECT_EQ(program.model().graph(GraphId::kMain).nodes.size(), 1U);
  expect_as_a_whole(program);
}

TEST(Growing, FinishKnowsAnIfByWhatComesAfterIt) {
  Program program;
  program.recording.import("", 21);
  const ValueId x = program.input("x", program.tensor_type(DType::kFloat32, {2, 3}));
  const ValueId condition = program.input("condition", program.tensor_type(DType::kBool, {}));
  const GraphId left = program.open();
  program.close({program.call("Flatten", {x})[0]});
  const GraphId right = program.open();
  const ValueId axes = program.integers({0});
  program.close({program.call("Unsqueeze", {x, axes})[0]});
  const ValueId y = program.call("If", {condition}, {body("then_branch", left), body("else_branch", right)})[0];
  const ValueId weight = program.input("weight", program.tensor_type(DType::kFloat32, {3, 5}));
  const ValueId product = program.call("Gemm", {y, weight})[0];
  EXPECT_EQ(program.growing.analysis().facts().to_text(program.growing.analysis().fact_id(product)), "float32[?, 5]");
  program.growing.finish();
  EXPECT_EQ(program.growing.analysis().facts().to_text(program.growing.analysis().fact_id(product)), "float32[2, 5]");
  program.call("Relu", {product});
  expect_as_a_whole(program);
}

TEST(Growing, FinishKnowsWhatFailsInABranchThatIsNeverTaken) {
  Program program;
  program.recording.import("", 21);
  const ValueId x = program.input("x", program.tensor_type(DType::kFloat32, {2, 3}));
  const ValueId one = program.integers({1});
  const ValueId condition = program.call("Equal", {one, one})[0];
  const GraphId left = program.open();
  program.close({program.call("Relu", {x})[0]});
  const GraphId right = program.open();
  program.close({program.call("MatMul", {x, x})[0]});
  program.call("If", {condition}, {body("then_branch", left), body("else_branch", right)});
  program.growing.finish();
  const std::vector<NodeViolation>& violations = program.growing.analysis().violations();
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_TRUE(violations[0].engines_differ);
  expect_as_a_whole(program);
}

/// Programs of calls that mostly fit, with bodies in bodies.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint32_t seed) : random_(seed) {
    program_.recording.import("", 21);
    const DimDecl named[] = {{.name = program_.recording.intern("N")}, {.extent = 4, .has_extent = true}};
    values_ = {program_.input("a", program_.tensor_type(DType::kFloat32, {4, 4})),
               program_.input("b", program_.tensor_type(DType::kFloat32, {1, 4})),
               program_.input("c", program_.tensor_type(DType::kFloat32, named)),
               program_.input("d", program_.tensor_type(DType::kInt64, {4}))};
    condition_ = program_.input("condition", program_.tensor_type(DType::kBool, {}));
    trips_ = {ValueId::kAbsent, program_.input("trips", program_.tensor_type(DType::kInt64, {})),
              program_.integers({3})};
  }

  Program& run(int calls) {
    for (int i = 0; i < calls; ++i) step(0);
    return program_;
  }

 private:
  std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }
  ValueId any() { return values_[below(values_.size())]; }
  void keep(const std::vector<ValueId>& made) { values_.insert(values_.end(), made.begin(), made.end()); }

  void step(int depth) {
    switch (below(depth < 3 ? 12 : 9)) {
      case 0:
        return keep(program_.call("Add", {any(), any()}));
      case 1:
        return keep(program_.call("MatMul", {any(), any()}));
      case 2:
        return keep(program_.call("Relu", {any()}));
      case 3:
        return keep(
            program_.call("Concat", {any(), any()}, {integer("axis", static_cast<std::int64_t>(below(3)) - 1)}));
      case 4:
        return keep(program_.call("Transpose", {any()}));
      case 5:
        return keep(program_.call("Shape", {any()}));
      case 6:
        return keep(program_.call("ReduceMean", {any()}, {integer("keepdims", static_cast<std::int64_t>(below(2)))}));
      case 7:
        return keep(program_.call("Cast", {any()}, {integer("to", below(2) == 0 ? 1 : 7)}));
      case 8:
        return keep(program_.call("NonZero", {any()}));
      case 9:
        return branch(depth);
      default:
        return loop(depth);
    }
  }

  template <typename Inside>
  GraphId inside(int depth, const Inside& outputs) {
    const std::vector<ValueId> outer = values_;
    const GraphId body = program_.open();
    const auto made = outputs([&] {
      for (std::size_t i = below(4); i > 0; --i) step(depth + 1);
    });
    program_.close(made);
    values_ = outer;
    return body;
  }
  ValueId copied(ValueId value) { return program_.call("Identity", {value})[0]; }

  void branch(int depth) {
    const auto one = [&] {
      return inside(depth, [&](const auto& steps) {
        steps();
        return std::vector{copied(any())};
      });
    };
    const GraphId left = one(), right = one();
    keep(program_.call("If", {condition_}, {body("then_branch", left), body("else_branch", right)}));
  }

  void loop(int depth) {
    const ValueId first = any();
    const ValueId trips = trips_[below(trips_.size())];
    const GraphId graph = inside(depth, [&](const auto& steps) {
      std::vector<ValueId> inputs;
      for (const char* name : {"i", "going", "x"})
        inputs.push_back(program_.recording.add_input(program_.recording.unused_name(name), nullptr));
      program_.growing.add_body_input(inputs[0], {});
      program_.growing.add_body_input(inputs[1], {});
      program_.growing.add_body_input(inputs[2], {program_.growing.analysis().fact_id(first), {}});
      values_.push_back(inputs[2]);
      if (below(3) == 0) values_.push_back(inputs[0]);
      steps();
      return std::vector{copied(inputs[1]), copied(values_.back()), copied(any())};
    });
    keep(program_.call("Loop", {trips, ValueId::kAbsent, first}, {body("body", graph)}, 2));
  }

  std::mt19937 random_;
  Program program_;
  std::vector<ValueId> values_, trips_;
  ValueId condition_{};
};

TEST(Growing, EqualsTheWholeOnRandomPrograms) {
  for (std::uint32_t seed = 0; seed < 300; seed += stride(5)) {
    SCOPED_TRACE(seed);
    RandomProgram random(seed);
    expect_as_a_whole(random.run(12));
    if (testing::Test::HasFailure()) break;
  }
}

/// What exporters left in the file, for a recording of its calls.
class ReplayedProvenance final : public Provenance {
 public:
  ReplayedProvenance(const Model& from, const Recording& to, const std::vector<ValueId>& values,
                     const std::vector<NodeId>& nodes)
      : from_(from), to_(to), values_(values), nodes_(nodes) {}

  std::vector<MetadataEntry> node_metadata(const Node& node) const override {
    const NodeId original = nodes_[static_cast<std::size_t>(to_.model().id_of(node))];
    return from_.provenance == nullptr ? std::vector<MetadataEntry>()
                                       : from_.provenance->node_metadata(from_.node(original));
  }
  std::vector<MetadataEntry> value_metadata(ValueId value) const override {
    const auto original = std::ranges::find(values_, value);
    return from_.provenance == nullptr || original == values_.end()
               ? std::vector<MetadataEntry>()
               : from_.provenance->value_metadata(static_cast<ValueId>(original - values_.begin()));
  }
  bool mentions(std::string_view key) const override {
    return from_.provenance != nullptr && from_.provenance->mentions(key);
  }

 private:
  const Model& from_;
  const Recording& to_;
  const std::vector<ValueId>& values_;
  const std::vector<NodeId>& nodes_;
};

/// Makes the calls of a model that was read; false where it is not made of calls in order.
class Replay {
 public:
  explicit Replay(const Model& model) : model_(model), values_(model.values.size()), nodes_() {}

  bool run() {
    if (!model_.faults.empty() || model_.graphs.empty() || model_.has_node_device_configurations) return false;
    program_.recording.memory().model().metadata = model_.metadata;
    program_.recording.set_provenance(
        std::make_unique<ReplayedProvenance>(model_, program_.recording, values_, nodes_));
    std::set<std::pair<std::string_view, std::int64_t>> imports;
    for (const OpsetImport& import : model_.opset_imports.front())
      if (!imports.emplace(model_.text(import.domain), import.version).second) return false;
    for (const auto& [domain, version] : imports) program_.recording.import(domain, version);
    for (const GraphId id : model_.graphs.ids())
      if (model_.graph(id).kind == GraphKind::kFunction && !define(id)) return false;
    if (!inputs_of(GraphId::kMain) || !nodes_of(GraphId::kMain)) return false;
    for (const ValueId output : model_.graph(GraphId::kMain).outputs) {
      if (output == ValueId::kAbsent || !is_known(output)) return false;
      program_.recording.add_output(value(output));
    }
    program_.growing.finish();
    return true;
  }

  void compare() {
    const Analysis whole = analyse(model_, {});
    std::map<ValueId, ValueId> originals;
    for (std::size_t v = 1; v < values_.size(); ++v)
      if (values_[v] != ValueId::kAbsent) originals.emplace(values_[v], static_cast<ValueId>(v));
    expect_equal(
        program_.growing.analysis(), whole,
        [&](ValueId value) {
          const auto found = originals.find(value);
          return found == originals.end() ? std::nullopt : std::optional(found->second);
        },
        [&](NodeId node) { return nodes_[static_cast<std::size_t>(node)]; });
    // What files alone are told of: comments, places in text.
    const auto is_declared = [](const NodeViolation& one) { return ops::is_about_declared_shape(one.kind()); };
    if (renamed_ || !model_.comments.empty() || std::ranges::any_of(whole.violations(), is_declared)) return;
    EXPECT_EQ(findings_of(program_.growing.analysis()), findings_of(whole));
  }

  std::size_t calls() const { return nodes_.size(); }

 private:
  bool is_known(ValueId value) const {
    return value == ValueId::kAbsent || values_[static_cast<std::size_t>(value)] != ValueId::kAbsent;
  }
  ValueId value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }

  NameId name_for(ValueId id) {
    const std::string_view wanted = model_.name_of(id);
    const NameId name = program_.recording.unused_name(wanted.empty() ? "unnamed" : wanted);
    renamed_ = renamed_ || program_.model().text(name) != wanted;
    return name;
  }

  const TypeDecl* type_of(const TypeDecl* type) {
    if (type == nullptr) return nullptr;
    TypeDecl* own = program_.recording.memory().new_type();
    *own = *type;
    std::vector<DimDecl> dims(type->dims.begin(), type->dims.end());
    for (DimDecl& dim : dims) dim.name = program_.recording.intern(model_.text(dim.name));
    own->dims = program_.recording.memory().keep_dims(dims);
    own->element = type_of(type->element);
    return own;
  }

  bool inputs_of(GraphId id) {
    const Graph& graph = model_.graph(id);
    for (const ValueId input : graph.inputs) {
      if (input == ValueId::kAbsent || model_.value(input).sparse_initializer != nullptr) return false;
      const Value& known = model_.value(input);
      if (graph.kind == GraphKind::kMain && known.type == nullptr) return false;
      if (known.initializer != nullptr && model_.ir_version < 4) return false;
      const ValueId made = program_.recording.add_input(name_for(input), type_of(known.type), known.initializer);
      values_[static_cast<std::size_t>(input)] = made;
      if (graph.kind == GraphKind::kMain) program_.growing.add_input(made);
      if (graph.kind == GraphKind::kSubgraph) program_.growing.add_body_input(made, {});
    }
    for (const ValueId constant : graph.initializers) {
      const Value& known = model_.value(constant);
      if (known.initializer != nullptr && known.initializer->external) return false;  // named after the file
      const ValueId made =
          program_.recording.add_constant(name_for(constant), known.initializer, known.sparse_initializer);
      values_[static_cast<std::size_t>(constant)] = made;
      program_.growing.add_constant(made);
    }
    return true;
  }

  bool outputs_of(GraphId id, std::vector<ValueId>& outputs) {
    const Graph& graph = model_.graph(id);
    if (!graph.outer_output_types.empty()) return false;
    for (const ValueId output : graph.outputs) {
      if (!is_known(output)) return false;
      outputs.push_back(value(output));
    }
    return true;
  }

  bool define(GraphId id) {
    const Graph& graph = model_.graph(id);
    if (graph.opsets == 0) return false;
    Recording::Function function{.domain = model_.text(graph.domain),
                                 .name = model_.text(graph.name),
                                 .overload = model_.text(graph.overload),
                                 .attribute_names = graph.attribute_names,
                                 .attribute_defaults = graph.attribute_defaults};
    for (const OpsetImport& import : model_.opset_imports[graph.opsets])
      function.opset_imports.push_back({program_.recording.intern(model_.text(import.domain)), import.version});
    program_.recording.open_function(function);
    std::vector<ValueId> outputs;
    if (!inputs_of(id) || !nodes_of(id) || !outputs_of(id, outputs)) return false;
    program_.recording.close_function(outputs);
    return true;
  }

  bool nodes_of(GraphId id) {
    for (const NodeId node : model_.graph(id).nodes)
      if (!call(node)) return false;
    return true;
  }

  bool call(NodeId id) {
    const Node& node = model_.node(id);
    const Operator& op = model_.op(node);
    if (op.function != GraphId::kNone && is_defined_later(id, op.function)) return false;
    std::vector<Attribute> attributes(model_.attributes(node).begin(), model_.attributes(node).end());
    const bool in_main = root_of(node.graph) == GraphId::kMain;
    for (Attribute& attribute : attributes) {
      if (!attribute.graphs.empty() || attribute.type != nullptr || !attribute.types.empty()) return false;
      if (attribute.graph == GraphId::kNone) continue;
      const GraphId body = attribute.graph;
      attribute.graph =
          program_.recording.open_body(program_.recording.unused_name(model_.text(model_.graph(body).name)));
      if (in_main) program_.growing.open_body();
      std::vector<ValueId> outputs;
      if (!inputs_of(body) || !nodes_of(body) || !outputs_of(body, outputs)) return false;
      program_.recording.close_body(outputs);
      if (in_main) program_.growing.close_body();
    }
    std::vector<ValueId> operands;
    for (const ValueId operand : model_.operands(node)) {
      if (!is_known(operand)) return false;
      operands.push_back(value(operand));
    }
    std::vector<NameId> results;
    for (const ValueId result : model_.results(node))
      results.push_back(result == ValueId::kAbsent ? NameId::kEmpty : name_for(result));
    const NodeId made = program_.recording.add_call({.domain = model_.text(op.domain),
                                                     .op = model_.text(op.name),
                                                     .overload = model_.text(op.overload),
                                                     .name = program_.recording.intern(model_.text(node.name)),
                                                     .operands = operands,
                                                     .results = results,
                                                     .attributes = attributes});
    nodes_.resize(program_.model().nodes.size(), NodeId::kNone);
    nodes_[static_cast<std::size_t>(made)] = id;
    const auto own = program_.model().results(program_.model().node(made));
    for (std::size_t r = 0; r < own.size(); ++r) {
      const ValueId original = model_.results(node)[r];
      if (original == ValueId::kAbsent) continue;
      values_[static_cast<std::size_t>(original)] = own[r];
      if (model_.value(original).type != nullptr)
        program_.recording.declare(own[r], type_of(model_.value(original).type));
    }
    program_.growing.add_call(made);
    return true;
  }

  GraphId root_of(GraphId id) const {
    while (model_.graph(id).parent != GraphId::kNone) id = model_.graph(id).parent;
    return id;
  }
  bool is_defined_later(NodeId caller, GraphId function) const {
    const GraphId root = root_of(model_.node(caller).graph);
    return model_.graph(root).kind == GraphKind::kFunction && function >= root;
  }

  const Model& model_;
  Program program_;
  std::vector<ValueId> values_;  // by value of the model
  std::vector<NodeId> nodes_;    // by node of the recording
  bool renamed_ = false;
};

constexpr std::size_t kStride = stride(40);

TEST(Growing, EqualsTheWholeOnModelsThatAreReplayed) {
  std::vector<fs::path> paths;
  for (const char* folder : {"tests", "samples"})
    for (const auto& file : fs::recursive_directory_iterator(folder))
      if (const fs::path& path = file.path(); path.extension() == ".onnx" || path.extension() == ".onnxtxt")
        paths.push_back(path);
  std::ranges::sort(paths);
  std::size_t replayed = 0, calls = 0, bodies = 0;
  for (std::size_t i = 0; i < paths.size(); i += kStride) {
    const fs::path& path = paths[i];
    const Result<Model> model =
        path.extension() == ".onnx" ? read_onnx_file(path.string()) : read_onnx_text_file(path.string());
    if (!model) continue;
    SCOPED_TRACE(path.string());
    Replay replay(*model);
    if (!replay.run()) continue;
    replay.compare();
    ++replayed;
    calls += replay.calls();
    bodies += std::ranges::count(model->graphs, GraphKind::kSubgraph, &Graph::kind) > 0 ? 1 : 0;
  }
  std::printf("%zu models of %zu calls, %zu with bodies\n", replayed, calls, bodies);
  EXPECT_GT(replayed, 2000U / kStride);
  EXPECT_GT(bodies, 50U / kStride);
}

}  // namespace
}  // namespace tensorlint::dataflow
