// The splice writer against libprotobuf: what protobuf reads after an edit is the model with that edit and nothing
// else, and every byte outside the edit stands.
#include "ir/writers/onnx/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "ir/readers/onnx/reader.h"
#include "onnx.pb.h"
#include "tests/writers/sample_bytes.h"

namespace tensorlint {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sample_models() {
  std::vector<fs::path> models;
  for (const char* folder : {"samples", "tests/models/losses"})
    for (const auto& entry : fs::directory_iterator(fs::path(TENSORLINT_SOURCE_DIR) / folder))
      if (entry.path().extension() == ".onnx") models.push_back(entry.path());
  std::ranges::sort(models);
  return models;
}

/// The judge's view of a graph of ours: main, or the body that an attribute of a node holds.
::onnx::GraphProto* judge_graph(::onnx::ModelProto& judge, const Model& model, GraphId id);

::onnx::NodeProto* judge_node(::onnx::ModelProto& judge, const Model& model, NodeId id) {
  const Node& node = model.node(id);
  const Graph& graph = model.graph(node.graph);
  const int index = static_cast<int>(graph.nodes.index_of(id));
  if (graph.kind == GraphKind::kFunction) {
    for (::onnx::FunctionProto& function : *judge.mutable_functions())
      if (function.name() == model.text(graph.name) && function.domain() == model.text(graph.domain))
        return function.mutable_node(index);
    return nullptr;
  }
  return judge_graph(judge, model, node.graph)->mutable_node(index);
}

::onnx::GraphProto* judge_graph(::onnx::ModelProto& judge, const Model& model, GraphId id) {
  const Graph& graph = model.graph(id);
  if (graph.kind == GraphKind::kMain) return judge.mutable_graph();
  for (::onnx::AttributeProto& attribute : *judge_node(judge, model, graph.owner)->mutable_attribute())
    if (attribute.name() == graph.attribute) return attribute.mutable_g();
  return nullptr;
}

/// The nodes that the judge has of the graph of `node`.
google::protobuf::RepeatedPtrField<::onnx::NodeProto>* judge_nodes(::onnx::ModelProto& judge, const Model& model,
                                                                   NodeId id) {
  const Graph& graph = model.graph(model.node(id).graph);
  if (graph.kind != GraphKind::kFunction) return judge_graph(judge, model, model.node(id).graph)->mutable_node();
  for (::onnx::FunctionProto& function : *judge.mutable_functions())
    if (function.name() == model.text(graph.name) && function.domain() == model.text(graph.domain))
      return function.mutable_node();
  return nullptr;
}

struct Loaded {
  std::string bytes;
  Model model;
  ::onnx::ModelProto judge;
};

Loaded load(const fs::path& path) {
  Loaded loaded{.bytes = bytes_of(path), .model = {}, .judge = {}};
  Result<Model> read = read_onnx_bytes(loaded.bytes, path.string());
  EXPECT_TRUE(read.ok()) << path;
  loaded.model = std::move(*read);
  EXPECT_TRUE(loaded.judge.ParseFromString(loaded.bytes));
  return loaded;
}

void expect_same(const ::onnx::ModelProto& wanted, const std::string& bytes, const std::string& what) {
  ::onnx::ModelProto got;
  ASSERT_TRUE(got.ParseFromString(bytes)) << what;
  // The proto is of the lite runtime, which cannot compare messages; equal messages serialise to equal bytes.
  EXPECT_TRUE(wanted.SerializeAsString() == got.SerializeAsString()) << what;
}

TEST(OnnxWriter, WithoutEditsEveryByteStands) {
  for (const fs::path& path : sample_models()) {
    const Loaded loaded = load(path);
    const auto edited = edit_onnx(loaded.bytes, loaded.model, {});
    ASSERT_TRUE(edited.ok()) << path;
    EXPECT_EQ(edited->joined(), loaded.bytes) << path;
  }
}

TEST(OnnxWriter, RandomEditsChangeWhatTheySayAndNothingElse) {
  const std::vector<fs::path> paths = sample_models();
  ASSERT_FALSE(paths.empty());
  std::mt19937 random(20);
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  int edits_made = 0;
  for (int round = 0; edits_made < 1000; ++round) {
    Loaded loaded = load(paths[static_cast<std::size_t>(round) % paths.size()]);
    if (loaded.model.nodes.empty()) continue;
    for (int k = 0; k < 6; ++k, ++edits_made) {
      const auto id = static_cast<NodeId>(below(loaded.model.nodes.size()));
      const Node& node = loaded.model.node(id);
      ::onnx::ModelProto wanted = loaded.judge;
      std::vector<GraphEdit> edits;
      const Graph& graph = loaded.model.graph(node.graph);
      const int at = static_cast<int>(graph.nodes.index_of(id));
      switch (below(9)) {
        case 0: {
          const bool in_function = loaded.model.graph(node.graph).kind == GraphKind::kFunction;
          edits.push_back(InsertNode{
              id, {"", "Cast", "made", {"in"}, {"out"}, {{.name = "to", .kind = AttributeKind::kInt, .i = 7}}}});
          ::onnx::NodeProto made;
          made.set_op_type("Cast");
          made.set_name("made");
          made.add_input("in");
          made.add_output("out");
          ::onnx::AttributeProto* attribute = made.add_attribute();
          attribute->set_name("to");
          attribute->set_type(::onnx::AttributeProto::INT);
          attribute->set_i(7);
          const int index = static_cast<int>(loaded.model.graph(node.graph).nodes.index_of(id));
          auto* nodes = judge_node(wanted, loaded.model, id) == nullptr ? nullptr
                        : in_function                                   ? [&] {
                            for (auto& function : *wanted.mutable_functions())
                              if (function.name() == loaded.model.text(loaded.model.graph(node.graph).name))
                                return function.mutable_node();
                            return static_cast<google::protobuf::RepeatedPtrField<::onnx::NodeProto>*>(nullptr);
                          }()
                                      : judge_graph(wanted, loaded.model, node.graph)->mutable_node();
          ASSERT_NE(nodes, nullptr);
          *nodes->Add() = made;
          for (int i = nodes->size() - 1; i > index; --i) nodes->SwapElements(i, i - 1);
          break;
        }
        case 1: {
          const auto index = static_cast<std::uint32_t>(below(node.operand_count + 2));
          edits.push_back(SetOperand{id, index, "another"});
          ::onnx::NodeProto* changed = judge_node(wanted, loaded.model, id);
          while (changed->input_size() <= static_cast<int>(index)) changed->add_input("");
          changed->set_input(static_cast<int>(index), "another");
          break;
        }
        case 2: {
          edits.push_back(SetAttribute{id, {.name = "axis", .kind = AttributeKind::kInts, .ints = {-1, 3}}});
          ::onnx::NodeProto* changed = judge_node(wanted, loaded.model, id);
          ::onnx::AttributeProto* attribute = nullptr;
          for (auto& known : *changed->mutable_attribute())
            if (known.name() == "axis") attribute = &known;
          if (attribute == nullptr) attribute = changed->add_attribute();
          attribute->Clear();
          attribute->set_name("axis");
          attribute->set_type(::onnx::AttributeProto::INTS);
          attribute->add_ints(-1);
          attribute->add_ints(3);
          break;
        }
        case 3: {
          edits.push_back(RemoveNode{id});
          auto* nodes = judge_nodes(wanted, loaded.model, id);
          ASSERT_NE(nodes, nullptr);
          nodes->DeleteSubrange(at, 1);
          break;
        }
        case 4: {
          // Before another node of the graph, or behind all of them.
          const int to = static_cast<int>(below(graph.nodes.size() + 1));
          if (to == at) continue;
          const bool last = to == static_cast<int>(graph.nodes.size());
          edits.push_back(MoveNode{id, last ? NodeId::kNone : graph.nodes[static_cast<std::size_t>(to)]});
          auto* nodes = judge_nodes(wanted, loaded.model, id);
          ASSERT_NE(nodes, nullptr);
          for (int i = at; i + 1 < to; ++i) nodes->SwapElements(i, i + 1);
          for (int i = at; i > to; --i) nodes->SwapElements(i, i - 1);
          break;
        }
        case 5: {
          const Graph& main = loaded.model.graph(GraphId::kMain);
          if (main.initializers.empty()) continue;
          const ValueId gone = main.initializers[below(main.initializers.size())];
          if (loaded.model.value(gone).initializer == nullptr) continue;
          edits.push_back(RemoveInitializer{gone});
          auto* constants = wanted.mutable_graph()->mutable_initializer();
          for (int i = 0; i < constants->size(); ++i)
            if (constants->Get(i).name() == loaded.model.name_of(gone)) constants->DeleteSubrange(i--, 1);
          break;
        }
        case 6: {
          if (node.result_count == 0) continue;
          const auto index = static_cast<std::uint32_t>(below(node.result_count));
          edits.push_back(SetResult{id, index, "renamed"});
          judge_node(wanted, loaded.model, id)->set_output(static_cast<int>(index), "renamed");
          edits.push_back(InsertNode{NodeId::kNone, {"", "Neg", "", {"renamed"}, {"end"}, {}}, node.graph});
          auto* nodes = judge_nodes(wanted, loaded.model, id);
          ASSERT_NE(nodes, nullptr);
          ::onnx::NodeProto* last = nodes->Add();
          last->add_input("renamed");
          last->add_output("end");
          last->set_op_type("Neg");
          break;
        }
        case 7: {
          edits.push_back(AddMetadata{id, ValueId::kAbsent, "key", "of a node"});
          auto* entry = judge_node(wanted, loaded.model, id)->add_metadata_props();
          entry->set_key("key");
          entry->set_value("of a node");
          const Graph& main = loaded.model.graph(GraphId::kMain);
          if (main.initializers.empty() || loaded.model.value(main.initializers[0]).initializer == nullptr) break;
          edits.push_back(AddMetadata{NodeId::kNone, main.initializers[0], "key", "of a constant"});
          for (auto& tensor : *wanted.mutable_graph()->mutable_initializer()) {
            if (tensor.name() != loaded.model.name_of(main.initializers[0])) continue;
            entry = tensor.add_metadata_props();
            entry->set_key("key");
            entry->set_value("of a constant");
          }
          break;
        }
        default: {
          edits.push_back(AddInitializer{GraphId::kMain, "made", {2}, {5, -7}});
          edits.push_back(ImportDomain{"made.domain", 3});
          ::onnx::TensorProto* tensor = wanted.mutable_graph()->add_initializer();
          tensor->set_name("made");
          tensor->set_data_type(7);
          tensor->add_dims(2);
          tensor->add_int64_data(5);
          tensor->add_int64_data(-7);
          auto* import = wanted.add_opset_import();
          import->set_domain("made.domain");
          import->set_version(3);
          break;
        }
      }
      const auto edited = edit_onnx(loaded.bytes, loaded.model, edits);
      ASSERT_TRUE(edited.ok()) << edited.error().message;
      const std::string bytes = edited->joined();
      EXPECT_EQ(bytes.size(), edited->size());
      expect_same(wanted, bytes, paths[static_cast<std::size_t>(round) % paths.size()].string());
      EXPECT_TRUE(read_onnx_bytes(bytes, "edited.onnx").ok());
    }
  }
}

TEST(OnnxWriter, SeveralEditsOfOneNodeMeet) {
  Loaded loaded = load(fs::path(TENSORLINT_SOURCE_DIR) / "samples/regression_bad.onnx");
  const NodeId id{0};
  const std::vector<GraphEdit> edits = {
      SetOperand{id, 0, "first"}, SetOperand{id, 1, "second"},
      SetAttribute{id, {.name = "alpha", .kind = AttributeKind::kFloat, .f = 0.5F}},
      SetAttribute{id, {.name = "mode", .kind = AttributeKind::kString, .s = "linear"}}};
  const auto edited = edit_onnx(loaded.bytes, loaded.model, edits);
  ASSERT_TRUE(edited.ok()) << edited.error().message;
  ::onnx::ModelProto got;
  ASSERT_TRUE(got.ParseFromString(edited->joined()));
  EXPECT_EQ(got.graph().node(0).input(0), "first");
  EXPECT_EQ(got.graph().node(0).input(1), "second");
}

SetAttribute removal(NodeId node, std::string name) {
  return {node, {.name = std::move(name), .kind = AttributeKind::kUndefined}};
}

TEST(OnnxWriter, AttributesGo) {
  Loaded loaded = load(fs::path(TENSORLINT_SOURCE_DIR) / "samples/regression_bad.onnx");
  ::onnx::ModelProto before;
  ASSERT_TRUE(before.ParseFromString(loaded.bytes));
  int node = 0;
  while (node < before.graph().node_size() && before.graph().node(node).attribute_size() == 0) ++node;
  ASSERT_LT(node, before.graph().node_size());
  const std::string name = before.graph().node(node).attribute(0).name();
  const std::vector<GraphEdit> edits = {removal(NodeId(node), name), removal(NodeId(node), "none")};
  const auto edited = edit_onnx(loaded.bytes, loaded.model, edits);
  ASSERT_TRUE(edited.ok()) << edited.error().message;
  ::onnx::ModelProto got;
  ASSERT_TRUE(got.ParseFromString(edited->joined()));
  before.mutable_graph()->mutable_node(node)->mutable_attribute()->DeleteSubrange(0, 1);
  EXPECT_EQ(got.SerializeAsString(), before.SerializeAsString());
}

TEST(OnnxWriter, UnknownFieldsStand) {
  Loaded loaded = load(fs::path(TENSORLINT_SOURCE_DIR) / "samples/regression_bad.onnx");
  const std::string unknown("\xa2\x06\x03xyz", 6);  // field 100, three bytes
  const std::string bytes = loaded.bytes + unknown;
  const Result<Model> read = read_onnx_bytes(bytes, "unknown.onnx");
  ASSERT_TRUE(read.ok());
  const std::vector<GraphEdit> edits = {SetOperand{NodeId{0}, 0, "first"}};
  const auto edited = edit_onnx(bytes, *read, edits);
  ASSERT_TRUE(edited.ok());
  EXPECT_TRUE(edited->joined().ends_with(unknown));
}

TEST(OnnxWriter, EditsOfAnEditedModelReferToTheFirstFile) {
  for (const fs::path& path : sample_models()) {
    const std::string file = bytes_of(path);
    const Model model = read_onnx_bytes(file, "m").value();
    const NodeId last = model.graph(GraphId::kMain).nodes.back();
    const std::vector<GraphEdit> first{AddModelMetadata{"once", "1"},
                                       AddMetadata{.node = last, .key = "k", .value = "v"}};
    const EditedBytes before = edit_onnx(file, model, first).value();
    const std::string place = before.joined();
    const Model again = read_onnx_bytes(place, "m").value();
    const NodeId moved = again.graph(GraphId::kMain).nodes.back();
    const std::vector<GraphEdit> second{AddModelMetadata{"twice", "2"},
                                        MoveNode{.node = moved, .before = again.graph(GraphId::kMain).nodes.front()}};
    EditedBytes after = edit_onnx(place, again, second).value();
    const std::string expected = after.joined();
    after.refer_to(before, place);
    EXPECT_EQ(after.joined(), expected) << path;
    EXPECT_EQ(after.size(), expected.size());
    for (const std::string_view part : after.parts()) {
      const bool is_of_place = part.data() >= place.data() && part.data() < place.data() + place.size();
      EXPECT_FALSE(is_of_place) << path << ": " << part.size();
    }
  }
}

TEST(Edit, UnusedNamesAreUnused) {
  Loaded loaded = load(fs::path(TENSORLINT_SOURCE_DIR) / "samples/regression_bad.onnx");
  const std::string taken(loaded.model.name_of(loaded.model.graph(GraphId::kMain).inputs[0]));
  EXPECT_EQ(unused_name(loaded.model, "surely_new"), "surely_new");
  EXPECT_EQ(unused_name(loaded.model, taken), taken + "_2");
}

}  // namespace
}  // namespace tensorlint
