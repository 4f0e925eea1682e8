#include "ir/readers/onnx/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <limits>

#include "base/file_bytes.h"
#include "tests/readers/temp_folder.h"
#include "tests/readers/wire_writer.h"
#include "tests/sanitized.h"

namespace tensorlint {
namespace {

using Texts = std::vector<std::string>;
using wire::Message;
using Kind = StructureFault::Kind;

/// The bytes must outlive the model; the model keeps them.
Result<Model> read_bytes(std::string_view bytes) {
  const auto kept = std::make_shared<const std::string>(bytes);
  return read_onnx_bytes(*kept, "test.onnx", kept);
}

Model read_ok(std::string_view bytes) {
  Result<Model> model = read_bytes(bytes);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? std::move(model).value() : Model{};
}

std::string error_of_bytes(std::string_view bytes) {
  const Result<Model> model = read_bytes(bytes);
  EXPECT_FALSE(model.ok());
  return model.ok() ? "" : model.error().message;
}

std::vector<std::string> names(const Model& model, std::span<const ValueId> values) {
  std::vector<std::string> texts;
  for (const ValueId id : values) texts.emplace_back(id == ValueId::kAbsent ? "-" : model.name_of(id));
  return texts;
}

std::vector<std::string> fault_messages(const Model& model, Kind kind) {
  std::vector<std::string> messages;
  for (const StructureFault& fault : model.faults)
    if (fault.kind == kind) messages.push_back(fault.message);
  return messages;
}

testing::AssertionResult contains(std::string_view text, std::string_view part) {
  if (text.find(part) != std::string_view::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "`" << part << "` is not in `" << text << "`";
}

template <typename T>
Texts texts(const T& views) {
  return Texts(views.begin(), views.end());
}

/// A model with one node `Op(x) -> y` that has the given attribute.
Message model_with_attribute(const Message& attribute) {
  return wire::model(Message().bytes(1, wire::node("Op", {"x"}, {"y"}).bytes(5, attribute)).bytes(2, "g"));
}

Model read_attribute(const Message& attribute) { return read_ok(model_with_attribute(attribute)); }

/// A model with one initializer.
Model read_initializer(const Message& tensor) { return read_ok(wire::model(Message().bytes(5, tensor))); }

TEST(OnnxReader, ReadsAModel) {
  const Message graph =
      Message()
          .bytes(1, wire::node("MatMul", {"x", "w"}, {"h"}).bytes(3, "mm"))
          .bytes(
              1,
              wire::node("ReduceMean", {"h", ""}, {"y"}).bytes(3, "mean").bytes(5, wire::int_attribute("keepdims", 0)))
          .bytes(2, "main_graph")
          .bytes(5, wire::raw_tensor("w", 1, {2, 1}, std::string(8, '\0')))
          .bytes(11, wire::tensor_info("x", 1, {3, 2}))
          .bytes(12, wire::tensor_info("y", 1, {3}))
          .bytes(13, wire::tensor_info("h", 1, {3, 1}));
  const Message whole =
      wire::model(graph).bytes(2, "maker").bytes(3, "1.2").bytes(14, Message().bytes(1, "key").bytes(2, "value"));
  const Model model = read_ok(whole);
  EXPECT_TRUE(model.faults.empty());
  EXPECT_EQ(model.ir_version, 8);
  EXPECT_EQ(model.producer_name, "maker");
  EXPECT_EQ(model.producer_version, "1.2");
  ASSERT_EQ(model.metadata.size(), 1U);
  EXPECT_EQ(model.metadata[0].key, "key");
  EXPECT_EQ(model.metadata[0].value, "value");
  EXPECT_EQ(model.opset(GraphId::kMain, ""), 18);
  EXPECT_EQ(model.opset(GraphId::kMain, "ai.onnx"), 18);

  const Graph& main = model.graph(GraphId::kMain);
  EXPECT_EQ(model.text(main.name), "main_graph");
  EXPECT_EQ(names(model, main.inputs), (Texts{"x"}));
  EXPECT_EQ(names(model, main.initializers), (Texts{"w"}));
  EXPECT_EQ(names(model, main.outputs), (Texts{"y"}));
  ASSERT_EQ(model.nodes.size(), 2U);
  EXPECT_EQ(model.label(NodeId{0}), "mm");
  EXPECT_EQ(names(model, model.operands(model.node(NodeId{0}))), (Texts{"x", "w"}));
  EXPECT_EQ(names(model, model.operands(model.node(NodeId{1}))), (Texts{"h", "-"}));
  EXPECT_NE(model.op(model.node(NodeId{0})).schema, nullptr);
  const Attribute* const keepdims = model.attribute(model.node(NodeId{1}), "keepdims");
  ASSERT_NE(keepdims, nullptr);
  EXPECT_EQ(keepdims->kind, AttributeKind::kInt);
  EXPECT_EQ(keepdims->i, 0);

  const Value& hidden = model.value(model.find_value(GraphId::kMain, "h"));
  EXPECT_EQ(hidden.origin, ValueOrigin::kNode);
  ASSERT_NE(hidden.type, nullptr);
  EXPECT_EQ(hidden.type->element_code, 1);
  ASSERT_EQ(hidden.type->dims.size(), 2U);
  EXPECT_EQ(hidden.type->dims[0].extent, 3);
  const Value& weight = model.value(model.find_value(GraphId::kMain, "w"));
  ASSERT_NE(weight.initializer, nullptr);
  EXPECT_EQ(weight.initializer->raw.size(), 8U);
  // Node positions point at the message in the file.
  EXPECT_EQ(
      whole.text().substr(model.node(NodeId{1}).position.offset, model.node(NodeId{1}).byte_length),
      wire::node("ReduceMean", {"h", ""}, {"y"}).bytes(3, "mean").bytes(5, wire::int_attribute("keepdims", 0)).text());
}

TEST(OnnxReader, InputsComeBeforeInitializersWhateverTheFileOrder) {
  // Models before IR version 4 list every initializer among the inputs too; files have initializers first.
  const Model model = read_ok(
      wire::model(Message().bytes(5, wire::raw_tensor("w", 1, {1}, "abcd")).bytes(11, wire::tensor_info("w", 1, {1}))));
  EXPECT_TRUE(model.faults.empty());
  const Value& value = model.value(model.find_value(GraphId::kMain, "w"));
  EXPECT_EQ(value.origin, ValueOrigin::kInput);
  EXPECT_NE(value.initializer, nullptr);
  EXPECT_TRUE(model.graph(GraphId::kMain).initializers.empty());
}

TEST(OnnxReader, ANodeThatReusesANameIsTheOneAtFault) {
  const Model model = read_ok(
      wire::model(Message().bytes(1, wire::node("Relu", {"x"}, {"x"})).bytes(11, wire::tensor_info("x", 1, {1}))));
  ASSERT_EQ(model.faults.size(), 1U);
  EXPECT_EQ(model.faults[0].kind, Kind::kDuplicateDefinition);
  EXPECT_EQ(model.faults[0].node, NodeId{0});
  EXPECT_EQ(model.value(model.find_value(GraphId::kMain, "x")).origin, ValueOrigin::kInput);
}

TEST(OnnxReader, SubgraphsKeepTheirNodesTogether) {
  const Message inner = Message()
                            .bytes(1, wire::node("Neg", {"x"}, {"n"}))
                            .bytes(1, wire::node("Abs", {"n"}, {"a"}))
                            .bytes(12, wire::tensor_info("a", 1, {}));
  const auto branch = [&](std::string_view name) { return Message().bytes(1, name).bytes(6, inner).varint(20, 5); };
  const Model model = read_ok(wire::model(
      Message()
          .bytes(1, wire::node("If", {"c"}, {"y"}).bytes(5, branch("then_branch")).bytes(5, branch("else_branch")))
          .bytes(1, wire::node("Relu", {"y"}, {"z"}))
          .bytes(11, wire::tensor_info("x", 1, {}))
          .bytes(11, wire::tensor_info("c", 9, {}))));
  EXPECT_TRUE(model.faults.empty());
  ASSERT_EQ(model.graphs.size(), 3U);
  EXPECT_EQ(model.graph(GraphId{0}).nodes.size(), 2U);
  const Attribute* const then_branch = model.attribute(model.node(NodeId{0}), "then_branch");
  ASSERT_NE(then_branch, nullptr);
  const Graph& graph = model.graph(then_branch->graph);
  EXPECT_EQ(graph.kind, GraphKind::kSubgraph);
  EXPECT_EQ(graph.parent, GraphId::kMain);
  EXPECT_EQ(graph.owner, NodeId{0});
  EXPECT_EQ(graph.attribute, "then_branch");
  EXPECT_EQ(graph.nodes.size(), 2U);
  EXPECT_EQ(model.node(graph.nodes.front()).graph, then_branch->graph);
  // `x` is the outer graph's value.
  EXPECT_EQ(model.operands(model.node(graph.nodes.front()))[0], model.find_value(GraphId::kMain, "x"));
}

TEST(OnnxReader, ReadsFunctions) {
  const Message with_default = Message().bytes(1, "alpha").fixed32(2, 0.5F).varint(20, 1);
  const Message referring = Message().bytes(1, "alpha").bytes(21, "alpha").varint(20, 1);
  const Message function = Message()
                               .bytes(1, "Leaky")
                               .bytes(10, "custom")
                               .bytes(13, "v2")
                               .bytes(4, "x")
                               .bytes(5, "y")
                               .bytes(6, "axis")
                               .bytes(11, with_default)
                               .bytes(7, wire::node("LeakyRelu", {"x"}, {"y"}).bytes(5, referring))
                               .bytes(9, wire::opset("", 16))
                               .bytes(12, wire::tensor_info("y", 1, {4}));
  const Message call = wire::node("Leaky", {"a"}, {"b"}).bytes(7, "custom").bytes(8, "v2");
  const Model model = read_ok(wire::model(Message().bytes(1, call).bytes(11, wire::tensor_info("a", 1, {4})))
                                  .bytes(8, wire::opset("custom", 1))
                                  .bytes(25, function));
  EXPECT_TRUE(model.faults.empty());
  ASSERT_EQ(model.graphs.size(), 2U);
  const Graph& body = model.graph(GraphId{1});
  EXPECT_EQ(body.kind, GraphKind::kFunction);
  EXPECT_EQ(model.op(model.node(NodeId{0})).function, GraphId{1});
  EXPECT_EQ(model.graph_path(GraphId{1}), "custom::Leaky:v2");
  EXPECT_EQ(model.opset(GraphId{1}, ""), 16);
  EXPECT_EQ(texts(body.attribute_names), (Texts{"axis"}));
  ASSERT_EQ(body.attribute_defaults.size(), 1U);
  EXPECT_EQ(body.attribute_defaults[0].f, 0.5F);
  EXPECT_EQ(model.attributes(model.node(NodeId{1}))[0].reference, "alpha");
  EXPECT_NE(model.value(model.find_value(GraphId{1}, "y")).type, nullptr);
}

TEST(OnnxReader, ChecksOpsetImports) {
  const Message graph = Message()
                            .bytes(1, wire::node("A", {}, {"a"}).bytes(7, "custom"))
                            .bytes(1, wire::node("B", {}, {"b"}).bytes(7, "custom"));
  const Model model =
      read_ok(wire::model(graph).bytes(8, wire::opset("ai.onnx", 17)).bytes(8, wire::opset("other", 1)));
  EXPECT_EQ(fault_messages(model, Kind::kDuplicateOpsetImport), (Texts{"domain `ai.onnx` is imported twice"}));
  EXPECT_EQ(model.op(model.node(NodeId{0})).opset, 0);
  Message many;
  for (int i = 0; i < 1025; ++i) many.bytes(8, wire::opset(fmt::format("d{}", i), 1));
  EXPECT_TRUE(contains(error_of_bytes(wire::model(graph).raw(many)), "more than 1,024 opset imports"));
}

TEST(OnnxReader, ReadsEveryKindOfAttribute) {
  const Message tensor = wire::raw_tensor("t", 7, {1}, std::string("\5\0\0\0\0\0\0\0", 8));
  const Message type = Message().bytes(4, Message().bytes(1, Message().bytes(1, Message().varint(1, 7))));
  const Message sparse = Message()
                             .bytes(1, wire::raw_tensor("v", 1, {1}, "abcd"))
                             .bytes(2, wire::raw_tensor("", 7, {1}, std::string(8, '\0')))
                             .varint(3, 9);
  const Message graph = Message().bytes(2, "body");
  struct Case {
    AttributeKind kind;
    Message value;
    std::function<bool(const Attribute&)> holds;
  };
  const Case cases[] = {
      {AttributeKind::kFloat, Message().fixed32(2, 1.5F), [](const Attribute& a) { return a.f == 1.5F; }},
      {AttributeKind::kInt, Message().varint(3, static_cast<std::uint64_t>(-3)),
       [](const Attribute& a) { return a.i == -3; }},
      {AttributeKind::kString, Message().bytes(4, "text"), [](const Attribute& a) { return a.s == "text"; }},
      {AttributeKind::kTensor, Message().bytes(5, tensor),
       [](const Attribute& a) { return a.tensor->integers(4) == std::vector<std::int64_t>{5}; }},
      {AttributeKind::kGraph, Message().bytes(6, graph), [](const Attribute& a) { return a.graph == GraphId{1}; }},
      {AttributeKind::kFloats, Message().fixed32(7, 1).bytes(7, std::string("\0\0\0\x40", 4)).fixed32(7, 3),
       [](const Attribute& a) {
         return std::vector<float>(a.floats.begin(), a.floats.end()) == std::vector<float>{1, 2, 3};
       }},
      {AttributeKind::kInts,
       Message().varint(8, 1).bytes(8, std::string("\x02\xac\x02", 3)).varint(8, static_cast<std::uint64_t>(-1)),
       [](const Attribute& a) {
         return std::vector<std::int64_t>(a.ints.begin(), a.ints.end()) == std::vector<std::int64_t>{1, 2, 300, -1};
       }},
      {AttributeKind::kStrings, Message().bytes(9, "a").bytes(9, ""),
       [](const Attribute& a) { return a.strings.size() == 2 && a.strings[0] == "a"; }},
      {AttributeKind::kTensors, Message().bytes(10, tensor).bytes(10, tensor),
       [](const Attribute& a) { return a.tensors.size() == 2; }},
      {AttributeKind::kGraphs, Message().bytes(11, graph).bytes(11, graph),
       [](const Attribute& a) { return a.graphs.size() == 2 && a.graphs[1] == GraphId{2}; }},
      {AttributeKind::kSparseTensor, Message().bytes(22, sparse),
       [](const Attribute& a) { return a.sparse->dims.size() == 1 && a.sparse->values != nullptr; }},
      {AttributeKind::kSparseTensors, Message().bytes(23, sparse), [](const Attribute&) { return true; }},
      {AttributeKind::kTypeProto, Message().bytes(14, type),
       [](const Attribute& a) { return a.type->kind == TypeKind::kSequence && a.type->element->element_code == 7; }},
      {AttributeKind::kTypeProtos, Message().bytes(15, type), [](const Attribute& a) { return a.types.size() == 1; }},
  };
  for (const Case& c : cases) {
    for (const bool with_kind : {true, false}) {  // the first IR versions leave the kind out
      Message attribute = Message().bytes(1, "a").raw(c.value);
      if (with_kind) attribute.varint(20, static_cast<std::uint64_t>(c.kind));
      const Model model = read_attribute(attribute);
      ASSERT_EQ(model.attribute_list.size(), 1U);
      EXPECT_TRUE(model.faults.empty()) << model.faults[0].message;
      EXPECT_EQ(model.attribute_list[0].kind, c.kind);
      EXPECT_TRUE(c.holds(model.attribute_list[0])) << to_text(c.kind);
    }
  }
}

TEST(OnnxReader, LeftOutScalarsAreZero) {
  const Model model = read_attribute(Message().bytes(1, "axis").varint(20, 2));
  EXPECT_TRUE(model.faults.empty());
  EXPECT_EQ(model.attribute_list[0].kind, AttributeKind::kInt);
  EXPECT_EQ(model.attribute_list[0].i, 0);
}

TEST(OnnxReader, KeepsMalformedAttributesAsFaults) {
  const auto message_of = [](const Message& attribute) {
    const Model model = read_attribute(attribute);
    const std::vector<std::string> messages = fault_messages(model, Kind::kMalformedAttribute);
    EXPECT_EQ(messages.size(), 1U);
    if (messages.empty()) return std::string();
    EXPECT_EQ(model.faults[0].node, NodeId{0});
    return messages[0];
  };
  EXPECT_EQ(message_of(Message().bytes(1, "a").fixed32(2, 1).varint(20, 2)),
            "attribute `a` is declared int and has a value of kind float");
  EXPECT_EQ(message_of(Message().bytes(1, "a").varint(3, 1).fixed32(2, 1).varint(20, 2)),
            "attribute `a` is declared int and has a value of kind float");
  EXPECT_EQ(message_of(Message().bytes(1, "a").varint(20, 4)), "attribute `a` is declared tensor and has no value");
  EXPECT_EQ(message_of(Message().bytes(1, "a").varint(3, 1).varint(20, 77)), "attribute `a` has the unknown kind 77");
  EXPECT_EQ(message_of(Message().bytes(1, "a")), "attribute `a` has no kind and 0 values");
  EXPECT_EQ(message_of(Message().varint(3, 1).varint(20, 2)), "an attribute has no name");
  EXPECT_EQ(message_of(Message().bytes(1, "a").bytes(21, "b").varint(20, 2)),
            "attribute `a` refers to attribute `b` of a function, outside of any");
}

TEST(OnnxReader, RefusesMessagesThatWouldBeMerged) {
  const Message tensor = wire::raw_tensor("t", 1, {1}, "abcd"),
                indices = wire::raw_tensor("", 7, {1}, std::string(8, '\0'));
  const Message shape = Message().bytes(1, Message().varint(1, 2)), one = Message().varint(1, 1).bytes(2, shape);
  const auto error_of = [](const Message& attribute) {
    return error_of_bytes(model_with_attribute(Message().bytes(1, "a").raw(attribute)));
  };
  EXPECT_TRUE(contains(error_of(Message().bytes(5, tensor).bytes(5, tensor)), "a second tensor of one attribute"));
  EXPECT_TRUE(contains(error_of(Message().bytes(6, "").bytes(6, "")), "a second graph of one attribute"));
  EXPECT_TRUE(contains(error_of(Message().bytes(22, Message().bytes(1, tensor).bytes(2, indices).bytes(1, tensor))),
                       "a second `SparseTensorProto.values`"));
  EXPECT_TRUE(contains(error_of(Message().bytes(22, Message().bytes(1, tensor).bytes(2, indices).bytes(2, indices))),
                       "a second `SparseTensorProto.indices`"));
  const auto error_of_type = [&](const Message& type) { return error_of(Message().bytes(14, type)); };
  EXPECT_TRUE(contains(error_of_type(Message().bytes(1, one).bytes(1, one)), "a second `TypeProto.value`"));
  EXPECT_TRUE(contains(error_of_type(Message().bytes(1, Message(one).bytes(2, shape))), "a second `TypeProto.shape`"));
  const Message elements = Message().bytes(1, Message().bytes(1, Message().varint(1, 1)));
  EXPECT_TRUE(contains(error_of_type(Message().bytes(4, Message(elements).bytes(1, Message()))),
                       "a second `TypeProto.elem_type`"));
  const Message typed = Message().bytes(1, "x").bytes(2, Message()).bytes(2, Message());
  EXPECT_TRUE(contains(error_of_bytes(wire::model(Message().bytes(2, "g").bytes(11, typed))),
                       "a second `ValueInfoProto.type`"));
}

TEST(OnnxReader, ManyAttributesOfOneNameGiveOneFault) {
  Message node = wire::node("Op", {}, {"y"});
  for (int i = 0; i < 5000; ++i) node.bytes(5, wire::int_attribute("a", i));
  const Model model = read_ok(wire::model(Message().bytes(1, node)));
  EXPECT_EQ(fault_messages(model, Kind::kMalformedAttribute).size(), 1U);
}

TEST(OnnxReader, ReadsTypes) {
  const auto type_of = [](const Model& model) { return model.value(model.find_value(GraphId::kMain, "v")).type; };
  const auto read_type = [](const Message& type) {
    return read_ok(wire::model(Message().bytes(11, Message().bytes(1, "v").bytes(2, type))));
  };
  const Message dims = Message()
                           .bytes(1, Message().varint(1, 4))
                           .bytes(1, Message().bytes(2, "N"))
                           .bytes(1, Message().bytes(3, "DATA_BATCH"));
  const Message tensor = Message().bytes(1, Message().varint(1, 1).bytes(2, dims));
  {
    const Model model = read_type(tensor);
    const TypeDecl* const type = type_of(model);
    EXPECT_EQ(type->kind, TypeKind::kTensor);
    ASSERT_EQ(type->dims.size(), 3U);
    EXPECT_TRUE(type->dims[0].has_extent);
    EXPECT_EQ(type->dims[0].extent, 4);
    EXPECT_EQ(model.text(type->dims[1].name), "N");
    EXPECT_FALSE(type->dims[2].has_extent);
    EXPECT_EQ(type->dims[2].name, NameId::kEmpty);
  }
  {
    const Model model = read_type(Message().bytes(1, Message().varint(1, 1)));
    EXPECT_FALSE(type_of(model)->ranked);
  }
  {
    const Model model = read_type(Message().bytes(1, Message().varint(1, 1).bytes(2, "")));
    EXPECT_TRUE(type_of(model)->ranked);
    EXPECT_TRUE(type_of(model)->dims.empty());
  }
  {
    const Model model =
        read_type(Message().bytes(9, Message().bytes(1, Message().bytes(4, Message().bytes(1, tensor)))));
    const TypeDecl* const type = type_of(model);
    EXPECT_EQ(type->kind, TypeKind::kOptional);
    ASSERT_NE(type->element, nullptr);
    EXPECT_EQ(type->element->kind, TypeKind::kSequence);
    EXPECT_EQ(type->element->element->kind, TypeKind::kTensor);
    EXPECT_EQ(type->element->element->dims.size(), 3U);
  }
  {
    const Model model = read_type(Message().bytes(5, Message().varint(1, 8).bytes(2, tensor)));
    EXPECT_EQ(type_of(model)->kind, TypeKind::kMap);
    EXPECT_EQ(type_of(model)->element_code, 8);
    EXPECT_EQ(type_of(model)->element->kind, TypeKind::kTensor);
  }
  {
    const Model model = read_type(Message().bytes(8, Message().varint(1, 1).bytes(2, dims)));
    EXPECT_EQ(type_of(model)->kind, TypeKind::kSparseTensor);
  }
  {
    const Model model = read_type(Message().bytes(7, Message().bytes(1, "d").bytes(2, "n")));
    EXPECT_EQ(type_of(model)->kind, TypeKind::kOpaque);
    EXPECT_TRUE(model.faults.empty());
  }
  {
    const Model model = read_type(Message().bytes(1, Message().varint(1, 99)));
    EXPECT_EQ(fault_messages(model, Kind::kMalformedType), (Texts{"a type declares the unknown dtype code 99"}));
  }
  {
    const Model model = read_type(Message().bytes(
        1, Message().varint(1, 1).bytes(2, Message().bytes(1, Message().varint(1, static_cast<std::uint64_t>(-5))))));
    EXPECT_EQ(fault_messages(model, Kind::kMalformedType), (Texts{"a type declares the negative dim -5"}));
  }
  {
    const Model model = read_type(Message().raw(tensor).bytes(4, Message().bytes(1, tensor)));
    EXPECT_EQ(fault_messages(model, Kind::kMalformedType), (Texts{"a type is declared as two things at once"}));
  }
  for (const std::uint64_t kind : {4U, 5U, 9U}) {
    const Model model = read_type(Message().bytes(kind, kind == 5 ? Message().varint(1, 7) : Message()));
    EXPECT_EQ(fault_messages(model, Kind::kMalformedType), (Texts{"a type declares no element type"}));
  }
  Message deep = tensor;
  for (int i = 0; i < 15; ++i) deep = Message().bytes(4, Message().bytes(1, deep));
  EXPECT_TRUE(read_type(deep).faults.empty());
  deep = Message().bytes(4, Message().bytes(1, deep));
  EXPECT_TRUE(contains(error_of_bytes(wire::model(Message().bytes(11, Message().bytes(1, "v").bytes(2, deep)))),
                       "types nested deeper than 16"));
}

// ONNX Runtime keeps the low bits, too.
TEST(OnnxReader, CutsNumbersThatTheirTypeDoesNotHold) {
  const auto integers = [](std::int32_t dtype, std::uint64_t field, std::uint64_t number) {
    const Model model =
        read_initializer(Message().varint(2, static_cast<std::uint64_t>(dtype)).varint(field, number).bytes(8, "w"));
    return model.value(ValueId{1}).initializer->integers(8);
  };
  EXPECT_EQ(integers(3, 5, 200), (std::vector<std::int64_t>{-56}));                           // int8
  EXPECT_EQ(integers(2, 5, 300), (std::vector<std::int64_t>{44}));                            // uint8
  EXPECT_EQ(integers(4, 5, 100000), (std::vector<std::int64_t>{34464}));                      // uint16
  EXPECT_EQ(integers(6, 5, ~std::uint64_t{0}), (std::vector<std::int64_t>{-1}));              // int32
  EXPECT_EQ(integers(12, 11, (std::uint64_t{1} << 32) + 5), (std::vector<std::int64_t>{5}));  // uint32
  EXPECT_EQ(integers(9, 5, 2), (std::vector<std::int64_t>{1}));                               // bool
}

TEST(OnnxReader, ReadsTensorDataInEveryField) {
  const auto tensor_of = [](const Model& model) { return model.value(ValueId{1}).initializer; };
  {
    // Two packed chunks and a single value in between are one list.
    const Model model = read_initializer(Message()
                                             .varint(1, 4)
                                             .varint(2, 7)
                                             .bytes(7, std::string("\x01\xac\x02", 3))
                                             .varint(7, 3)
                                             .bytes(7, "\x04")
                                             .bytes(8, "w"));
    EXPECT_TRUE(model.faults.empty());
    EXPECT_EQ(tensor_of(model)->integers(8), (std::vector<std::int64_t>{1, 300, 3, 4}));
  }
  {
    const Model model = read_initializer(
        Message().bytes(1, std::string("\x02\x01", 2)).varint(2, 1).fixed32(4, 1.5F).fixed32(4, -2).bytes(8, "w"));
    EXPECT_TRUE(model.faults.empty());
    EXPECT_EQ(tensor_of(model)->floats(8), (std::vector<double>{1.5, -2}));
    EXPECT_EQ(tensor_of(model)->dims.size(), 2U);
  }
  {
    const Model model = read_initializer(Message().varint(2, 11).fixed64(10, 0.25).bytes(8, "w"));
    EXPECT_TRUE(model.faults.empty());
    EXPECT_EQ(tensor_of(model)->floats(8), (std::vector<double>{0.25}));
  }
  {
    const Model model =
        read_initializer(Message().varint(1, 2).varint(2, 8).bytes(6, "one").bytes(6, "two").bytes(8, "w"));
    EXPECT_TRUE(model.faults.empty());
    EXPECT_EQ(texts(tensor_of(model)->strings), (Texts{"one", "two"}));
  }
  {
    // int4: two elements share an entry.
    const Model model =
        read_initializer(Message().varint(1, 3).varint(2, 22).bytes(5, std::string("\x21\x0f", 2)).bytes(8, "w"));
    EXPECT_TRUE(model.faults.empty()) << model.faults[0].message;
    EXPECT_EQ(tensor_of(model)->integers(8), (std::vector<std::int64_t>{1, 2, -1}));
  }
  {
    // complex64: two floats an element.
    const Model model =
        read_initializer(Message().varint(1, 1).varint(2, 14).bytes(4, std::string(8, '\0')).bytes(8, "w"));
    EXPECT_TRUE(model.faults.empty());
  }
  {
    const Message entry = Message().bytes(1, "location").bytes(2, "weights.bin");
    const Message model_bytes = Message()
                                    .varint(1, 4)
                                    .varint(2, 1)
                                    .bytes(8, "w")
                                    .bytes(13, entry)
                                    .bytes(13, Message().bytes(1, "offset").bytes(2, "4096"))
                                    .bytes(13, Message().bytes(1, "length").bytes(2, "16"))
                                    .varint(14, 1);
    const Model model = read_initializer(model_bytes);
    EXPECT_TRUE(model.faults.empty());
    EXPECT_TRUE(tensor_of(model)->external);
    EXPECT_EQ(tensor_of(model)->location, "weights.bin");
    EXPECT_EQ(tensor_of(model)->offset_text, "4096");
    EXPECT_EQ(tensor_of(model)->length_text, "16");
  }
}

TEST(OnnxReader, KeepsMalformedTensorsAsFaults) {
  const auto message_of = [](const Message& tensor) {
    const Model model = read_initializer(tensor);
    const std::vector<std::string> messages = fault_messages(model, Kind::kMalformedTensor);
    EXPECT_EQ(messages.size(), 1U);
    if (messages.empty()) return std::string();
    EXPECT_NE(model.faults[0].tensor, nullptr);
    return messages[0];
  };
  EXPECT_EQ(message_of(wire::raw_tensor("w", 0, {1}, "abcd")), "tensor `w` has no dtype");
  EXPECT_EQ(message_of(wire::raw_tensor("w", 99, {1}, "abcd")), "tensor `w` has the unknown dtype code 99");
  EXPECT_EQ(message_of(wire::raw_tensor("w", 1, {-1, -2}, "abcdabcd")),
            "tensor `w` has the negative dim -1 in [-1, -2]");
  EXPECT_EQ(message_of(wire::raw_tensor("w", 1, {std::int64_t{1} << 32, std::int64_t{1} << 32}, "")),
            "dims [4294967296, 4294967296] of tensor `w` overflow");
  EXPECT_EQ(message_of(wire::raw_tensor("w", 1, {3}, "abcdabcd")),
            "tensor `w` of float32 [3] takes 12 bytes, raw_data has 8");
  EXPECT_EQ(message_of(wire::raw_tensor("w", 8, {1}, "text")),
            "tensor `w` holds strings in raw_data, which ONNX does not allow");
  EXPECT_EQ(message_of(wire::raw_tensor("w", 1, {1}, "abcd").fixed32(4, 1)),
            "tensor `w` has two data fields: raw_data and float_data");
  EXPECT_EQ(message_of(Message().varint(1, 1).varint(2, 1).fixed32(4, 1).varint(7, 1).bytes(8, "w")),
            "tensor `w` has two data fields: TensorProto fields 4 and 7");
  EXPECT_EQ(message_of(Message().varint(1, 1).varint(2, 7).fixed32(4, 1).bytes(8, "w")),
            "tensor `w` of int64 has its data in float_data instead of int64_data");
  EXPECT_EQ(message_of(Message().varint(1, 2).varint(2, 7).varint(7, 1).bytes(8, "w")),
            "tensor `w` of int64 [2] takes 2 entries, int64_data has 1");
  EXPECT_EQ(message_of(Message().varint(1, 2).varint(2, 1).bytes(8, "w")), "tensor `w` of float32 [2] has no data");
  EXPECT_EQ(message_of(Message().varint(1, 1).varint(2, 1).bytes(8, "w").bytes(9, "abcd").varint(14, 1)),
            "tensor `w` has data inside the file and in external data");
  EXPECT_EQ(message_of(wire::raw_tensor("w", 1, {1}, "abcd").bytes(3, "")),
            "tensor `w` is stored in segments, which nothing supports");
  EXPECT_TRUE(read_initializer(wire::raw_tensor("w", 1, {0, 5}, "")).faults.empty());
  EXPECT_TRUE(read_initializer(Message().varint(1, 0).varint(2, 1).bytes(8, "w")).faults.empty());
}

TEST(OnnxReader, FindsMetadataAgain) {
  const auto entry = [](std::string_view key, std::string_view value) {
    return Message().bytes(1, key).bytes(2, value);
  };
  const Message graph = Message()
                            .bytes(1, wire::node("Relu", {"w"}, {"y"})
                                          .bytes(9, entry("pkg.torch.onnx.stack_trace", "line 3"))
                                          .bytes(9, entry("k", "v")))
                            .bytes(5, wire::raw_tensor("w", 1, {1}, "abcd").bytes(16, entry("origin", "layer.weight")))
                            .bytes(13, wire::tensor_info("y", 1, {1}).bytes(4, entry("a", "b")));
  const Model model = read_ok(wire::model(graph));
  ASSERT_NE(model.provenance, nullptr);
  const auto of_node = model.provenance->node_metadata(model.node(NodeId{0}));
  ASSERT_EQ(of_node.size(), 2U);
  EXPECT_EQ(of_node[0].key, "pkg.torch.onnx.stack_trace");
  EXPECT_EQ(of_node[0].value, "line 3");
  EXPECT_EQ(of_node[1].key, "k");
  const auto of_weight = model.provenance->value_metadata(model.find_value(GraphId::kMain, "w"));
  ASSERT_EQ(of_weight.size(), 1U);
  EXPECT_EQ(of_weight[0].value, "layer.weight");
  const auto of_result = model.provenance->value_metadata(model.find_value(GraphId::kMain, "y"));
  ASSERT_EQ(of_result.size(), 1U);
  EXPECT_EQ(of_result[0].key, "a");
  EXPECT_TRUE(model.provenance->value_metadata(ValueId::kAbsent).empty());
}

TEST(OnnxReader, SkipsWhatItDoesNotKnow) {
  Message graph = Message().bytes(
      1, wire::node("Relu", {"x"}, {"y"}).varint(100, 1).bytes(200, "?").fixed32(300, 1).fixed64(400, 1));
  // An unknown group, one inside another.
  graph.tag(500, 3).varint(1, 1).tag(2, 3).bytes(3, "in").tag(2, 4).tag(500, 4);
  const Model model = read_ok(wire::model(graph).bytes(27, "\xff not looked at").bytes(28, "\xff nor this"));
  EXPECT_EQ(model.nodes.size(), 1U);
  EXPECT_TRUE(model.faults.empty());
}

TEST(OnnxReader, RefusesWhatIsNoModel) {
  using namespace std::string_view_literals;
  EXPECT_EQ(error_of_bytes(""), "`test.onnx` is empty");
  EXPECT_TRUE(contains(error_of_bytes("\x89PNG\r\n\x1a\n and so on"), "not an ONNX model: the file is a PNG image"));
  EXPECT_TRUE(contains(error_of_bytes("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
                       "a Git LFS pointer"));
  EXPECT_TRUE(contains(error_of_bytes("PK\x03\x04 archive"), "a ZIP archive"));
  EXPECT_TRUE(contains(error_of_bytes("The quick brown fox jumps over the lazy dog\n"), "not an ONNX model"));
  EXPECT_TRUE(contains(error_of_bytes("{\"model\": 1}"), "not an ONNX model"));
  EXPECT_TRUE(contains(error_of_bytes("\n\n\n\n"), "not an ONNX model"));
  EXPECT_TRUE(contains(error_of_bytes("\0"sv), "not an ONNX model"));
  EXPECT_TRUE(contains(error_of_bytes(Message().varint(1, 8)), "it has no graph"));
  EXPECT_TRUE(
      contains(error_of_bytes(Message().bytes(7, "").bytes(8, wire::opset("", 18))), "the model has no ir_version"));
  EXPECT_TRUE(
      contains(error_of_bytes(Message().varint(1, 2).bytes(7, "")), "IR version 2: only 3 and later are understood"));
  EXPECT_TRUE(
      contains(error_of_bytes(Message().varint(1, static_cast<std::uint64_t>(-1)).bytes(7, "")), "IR version -1"));
  // Newer ones are read: what is unknown in them is skipped.
  EXPECT_EQ(read_ok(Message().varint(1, 99).bytes(7, "").bytes(8, wire::opset("", 18))).ir_version, 99);
}

TEST(OnnxReader, ConsumesTheWholeFile) {
  using namespace std::string_view_literals;
  const Message good = wire::model(Message().bytes(1, wire::node("Relu", {"x"}, {"y"})));
  const std::string at_end = fmt::format("(at byte {})", good.text().size());
  struct Case {
    std::string_view tail;
    std::string_view message;
  };
  const Case cases[] = {
      {"\0"sv, "field number 0"},
      {"\x02\x00"sv, "field number 0"},
      {"\x80\x80\x80\x80\x10\x00"sv, "field number above 2^29 - 1"},
      {"\x24"sv, "end of a group that was not begun"},
      {"\x23"sv, "truncated: a group has no end"},
      {"\x26"sv, "unknown wire type 6"},
      {"\x27"sv, "unknown wire type 7"},
      {"\x22"sv, "truncated"},
      {"\x0a\x05"
       "abc"sv,
       "wire type 2 instead of 0"},
      {"\x32\x05"
       "abc"sv,
       "truncated: field 6 claims 5 bytes, 3 are left"},
      {"\x32\x81\x80\x80\x80\x10"
       "a"sv,
       "truncated: field 6 claims 4294967297 bytes"},
      {"\x28\xff"sv, "truncated: a varint runs past"},
      {"\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv, "varint of more than 10 bytes"},
      {"\x2d"
       "abc"sv,
       "truncated: field 5 runs past"},
  };
  for (const Case& c : cases) {
    const Result<Model> model = read_bytes(Message().raw(good).raw(c.tail));
    ASSERT_FALSE(model.ok()) << c.message;
    EXPECT_TRUE(contains(model.error().message, std::string(c.message)));
    EXPECT_TRUE(model.error().message.ends_with(")"));
    EXPECT_GE(model.error().position.offset, good.text().size());
  }
  EXPECT_TRUE(contains(error_of_bytes(Message().raw(good).raw("\0"sv)), at_end));
}

TEST(OnnxReader, RefusesCutPackedNumbers) {
  const auto initializer = [](const Message& tensor) {
    return error_of_bytes(wire::model(Message().bytes(5, Message().raw(tensor).bytes(8, "w"))));
  };
  EXPECT_TRUE(contains(initializer(Message().varint(1, 2).varint(2, 1).bytes(4, "abcde")), "field 4 is cut"));
  EXPECT_TRUE(contains(initializer(Message().varint(1, 1).varint(2, 11).bytes(10, "abcdefg")), "field 10 is cut"));
  EXPECT_TRUE(contains(initializer(Message().varint(1, 1).varint(2, 7).bytes(7, "\x81")), "field 7 is cut"));
  EXPECT_TRUE(contains(initializer(Message().varint(1, 1).varint(2, 6).bytes(5, "\x01\xff")), "field 5 is cut"));
  EXPECT_TRUE(contains(initializer(Message().varint(1, 1).varint(2, 13).bytes(11, "\x80\x80")), "field 11 is cut"));
  EXPECT_TRUE(contains(initializer(Message().bytes(1, "\x80").varint(2, 1)), "truncated"));
}

/// Values, indices and dims of one sparse initializer; the message of its fault, "" where there is none.
std::string sparse_fault_of(std::size_t values, std::vector<std::int64_t> indices,
                            std::initializer_list<std::int64_t> indices_dims, std::initializer_list<std::int64_t> dims,
                            std::uint64_t index_dtype = 7) {
  Message packed;
  for (const std::int64_t index : indices) packed.number(static_cast<std::uint64_t>(index));
  Message index_tensor = Message().varint(2, index_dtype);
  for (const std::int64_t dim : indices_dims) index_tensor.varint(1, static_cast<std::uint64_t>(dim));
  if (!indices.empty()) index_tensor.bytes(index_dtype == 7 ? 7 : 5, packed);
  const auto count = static_cast<std::int64_t>(values);
  Message sparse =
      Message().bytes(1, wire::raw_tensor("w", 1, {count}, std::string(4 * values, '\0'))).bytes(2, index_tensor);
  for (const std::int64_t dim : dims) sparse.varint(3, static_cast<std::uint64_t>(dim));
  const Model model = read_ok(wire::model(Message().bytes(15, sparse)));
  EXPECT_LE(model.faults.size(), 1U);
  return model.faults.empty() ? "" : model.faults[0].message;
}

TEST(OnnxReader, ChecksSparseInitializers) {
  // Positions in the flattened tensor, and coordinates.
  EXPECT_EQ(sparse_fault_of(2, {0, 3}, {2}, {2, 2}), "");
  EXPECT_EQ(sparse_fault_of(2, {0, 0, 1, 1}, {2, 2}, {2, 2}), "");
  EXPECT_EQ(sparse_fault_of(0, {}, {0}, {2, 2}), "");
  EXPECT_EQ(sparse_fault_of(2, {0, 4}, {2}, {2, 2}), "index 1 of sparse tensor `w` is 4, it has 4 elements");
  EXPECT_EQ(sparse_fault_of(2, {-1, 3}, {2}, {2, 2}), "index 0 of sparse tensor `w` is -1, it has 4 elements");
  EXPECT_EQ(sparse_fault_of(2, {0, 0, 0, 2}, {2, 2}, {2, 2}),
            "index 1 of sparse tensor `w` is 2 along axis 1, which has extent 2");
  EXPECT_EQ(sparse_fault_of(2, {3, 0}, {2}, {2, 2}),
            "indices of sparse tensor `w` are not sorted: index 1 comes before index 0");
  EXPECT_EQ(sparse_fault_of(2, {1, 1, 0, 1}, {2, 2}, {2, 2}),
            "indices of sparse tensor `w` are not sorted: index 1 comes before index 0");
  EXPECT_EQ(sparse_fault_of(2, {1, 1}, {2}, {2, 2}), "indices 0 and 1 of sparse tensor `w` are the same");
  EXPECT_EQ(sparse_fault_of(2, {0, 1, 2}, {3}, {2, 2}), "sparse tensor `w` has 2 values and 3 indices");
  EXPECT_EQ(sparse_fault_of(2, {0, 1}, {2, 1}, {2, 2}),
            "indices of sparse tensor `w` have 1 coordinates each, it has rank 2");
  EXPECT_EQ(sparse_fault_of(2, {0, 1, 0, 1}, {2, 2, 1}, {2, 2}),
            "indices of sparse tensor `w` have rank 3, they have to have rank 1 or 2");
  EXPECT_EQ(sparse_fault_of(5, {0, 1, 2, 3, 4}, {5}, {2, 2}),
            "sparse tensor `w` has 5 values, its dims make 4 elements");
  EXPECT_EQ(sparse_fault_of(2, {0, 1}, {2}, {-2, 2}), "dims of sparse tensor `w` are negative or overflow");
  EXPECT_EQ(sparse_fault_of(1, {0}, {1}, {INT64_MAX, 4}), "dims of sparse tensor `w` are negative or overflow");
  EXPECT_EQ(sparse_fault_of(2, {0, 3}, {2}, {2, 2}, 6),
            "indices of sparse tensor `w` have dtype code 6, they have to be int64");
}

TEST(OnnxReader, ReportsFunctionsThatNoRuntimeLoads) {
  const Message body = Message().bytes(4, "a").bytes(5, "b").bytes(7, wire::node("Relu", {"a"}, {"b"})).bytes(10, "l");
  const auto faults = [](const Message& function, bool import = true) {
    Message model = Message()
                        .varint(1, 8)
                        .bytes(7, Message().bytes(1, wire::node("f", {"x"}, {"y"}).bytes(7, "l")))
                        .bytes(8, wire::opset("", 18))
                        .bytes(25, function);
    if (import) model.bytes(8, wire::opset("l", 1));
    Texts messages;
    for (const StructureFault& fault : read_ok(model).faults) messages.push_back(fault.message);
    return messages;
  };
  const Message whole = Message().bytes(1, "f").raw(body).bytes(9, wire::opset("", 18));
  EXPECT_EQ(faults(whole), Texts{});
  EXPECT_EQ(faults(Message().bytes(1, "f").raw(body)), Texts{"function `l::f` imports no opset"});
  EXPECT_EQ(faults(Message().raw(body).bytes(9, wire::opset("", 18))), Texts{"a function of domain `l` has no name"});
  EXPECT_EQ(faults(whole, false), Texts{"domain `l` of function `f` is not imported where it is called"});
}

TEST(OnnxReader, ReportsNamesThatShadowOuterOnes) {
  // t = Exp(x); y = If(c) { t = Relu(x) }
  const auto faults = [](std::string_view inner_name, bool before) {
    const Message branch = Message()
                               .bytes(1, wire::node("Relu", {"x"}, {inner_name}))
                               .bytes(2, "b")
                               .bytes(12, Message().bytes(1, inner_name));
    const Message choose = wire::node("If", {"c"}, {"y"})
                               .bytes(5, Message().bytes(1, "then_branch").bytes(6, branch).varint(20, 5))
                               .bytes(5, Message().bytes(1, "else_branch").bytes(6, branch).varint(20, 5));
    const Message exp = wire::node("Exp", {"x"}, {"t"});
    const Message graph = Message()
                              .bytes(1, before ? exp : choose)
                              .bytes(1, before ? choose : exp)
                              .bytes(11, wire::tensor_info("x", 1, {2}))
                              .bytes(11, wire::tensor_info("c", 9, {}));
    return fault_messages(read_ok(wire::model(graph)), Kind::kDuplicateDefinition).size();
  };
  EXPECT_EQ(faults("t", true), 2U);  // once in each branch
  EXPECT_EQ(faults("x", true), 2U);
  EXPECT_EQ(faults("u", true), 0U);
  EXPECT_EQ(faults("t", false), 0U);  // not visible in the body
}

TEST(OnnxReader, RefusesEveryTruncation) {
  const Message good =
      wire::model(Message()
                      .bytes(1, wire::node("Relu", {"x"}, {"y"}).bytes(5, wire::int_attribute("a", 300)))
                      .bytes(5, wire::raw_tensor("w", 1, {1}, "abcd"))
                      .bytes(11, wire::tensor_info("x", 1, {1})));
  // Cut at a boundary of top-level fields, a file is a smaller well-formed model; anywhere else it is an error.
  int accepted = 0;
  for (std::size_t size = 1; size < good.text().size(); ++size)
    accepted += read_bytes(good.text().substr(0, size)).ok() ? 1 : 0;
  EXPECT_EQ(accepted, 1);
}

TEST(OnnxReader, SurvivesEveryFlippedByte) {
  const Message inner = Message().bytes(1, wire::node("Neg", {"x"}, {"n"})).bytes(12, wire::tensor_info("n", 1, {}));
  const std::string good =
      wire::model(Message()
                      .bytes(1, wire::node("If", {"c"}, {"y"})
                                    .bytes(5, Message().bytes(1, "then_branch").bytes(6, inner).varint(20, 5)))
                      .bytes(5, wire::raw_tensor("w", 1, {1}, "abcd"))
                      .bytes(5, Message().varint(1, 2).varint(2, 7).varint(7, 1).varint(7, 2).bytes(8, "v"))
                      .bytes(11, wire::tensor_info("x", 1, {1})))
          .text();
  int faults = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (unsigned value = 0; value < 256; value += stride(5)) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(value);
      const Result<Model> model = read_bytes(bytes);
      if (!model) {
        EXPECT_FALSE(model.error().message.empty());
        continue;
      }
      for (const Node& node : model->nodes) faults += static_cast<int>(model->provenance->node_metadata(node).size());
      for (const Value& v : model->values)
        if (v.initializer != nullptr) faults += v.initializer->integers(16).has_value() ? 1 : 0;
    }
  }
  EXPECT_GT(faults, 0);
}

TEST(OnnxReader, RefusesWrongWireTypes) {
  EXPECT_TRUE(contains(error_of_bytes(wire::model(Message().varint(1, 5))),
                       "field `GraphProto.node` has wire type 0 instead of 2"));
  EXPECT_TRUE(contains(error_of_bytes(wire::model(Message().bytes(1, Message().varint(1, 5)))),
                       "field `NodeProto.input` has wire type 0 instead of 2"));
  EXPECT_TRUE(contains(error_of_bytes(wire::model(Message().bytes(5, Message().varint(4, 5)))),
                       "field `TensorProto.data` has wire type 0 instead of 5"));
  EXPECT_TRUE(contains(error_of_bytes(model_with_attribute(Message().bytes(1, "a").bytes(3, "x"))),
                       "field `AttributeProto.i` has wire type 2 instead of 0"));
  EXPECT_TRUE(contains(error_of_bytes(model_with_attribute(Message().bytes(1, "a").bytes(7, "abc"))), "truncated"));
  EXPECT_TRUE(contains(error_of_bytes(model_with_attribute(Message().bytes(1, "a").bytes(8, "\x80"))), "truncated"));
}

TEST(OnnxReader, RefusesTwoGraphs) {
  EXPECT_TRUE(
      contains(error_of_bytes(wire::model(Message().bytes(2, "a")).bytes(7, "")), "a second `ModelProto.graph`"));
}

TEST(OnnxReader, NestsGraphsToADepthOf64) {
  const auto nested = [](int depth) {
    Message graph = Message().bytes(2, "innermost");
    for (int i = 1; i < depth; ++i)
      graph = Message().bytes(
          1, wire::node("If", {"c"}, {}).bytes(5, Message().bytes(1, "then_branch").bytes(6, graph).varint(20, 5)));
    return wire::model(graph);
  };
  EXPECT_EQ(read_ok(nested(64)).graphs.size(), 64U);
  EXPECT_TRUE(contains(error_of_bytes(nested(65)), "graphs nested deeper than 64"));
  EXPECT_TRUE(contains(error_of_bytes(nested(2000)), "graphs nested deeper than 64"));
}

TEST(OnnxReader, RefusesDeepGroups) {
  Message groups;
  for (int i = 0; i < 100'000; ++i) groups.tag(99, 3);
  EXPECT_TRUE(contains(error_of_bytes(wire::model(Message()).raw(groups)), "groups nested deeper than 64"));
}

/// Some small message many times over, in places where each costs memory.
TEST(OnnxReader, RefusesFloodsOfTinyMessages) {
  constexpr std::size_t kSize = std::size_t{2} << 20;
  const auto flood = [](const Message& one) {
    std::string bytes;
    bytes.reserve(kSize + one.text().size());
    while (bytes.size() < kSize) bytes += one.text();
    return bytes;
  };
  const auto in_graph = [](std::string_view fields) { return wire::model(Message().raw(fields)).text(); };
  const auto in_attribute = [&](std::string_view fields) {
    return in_graph(Message().bytes(1, Message().bytes(5, fields)));
  };
  const std::string floods[] = {
      in_graph(flood(Message().bytes(1, ""))),                            // nodes
      in_graph(flood(Message().bytes(5, ""))),                            // initializers
      in_graph(flood(Message().bytes(11, ""))),                           // inputs
      in_graph(Message().bytes(1, flood(Message().bytes(5, "")))),        // attributes
      in_attribute(flood(Message().bytes(10, ""))),                       // tensors
      in_attribute(flood(Message().bytes(11, ""))),                       // graphs
      wire::model(Message()).raw(flood(Message().bytes(25, ""))).text(),  // functions
  };
  for (const std::string& bytes : floods) EXPECT_TRUE(contains(error_of_bytes(bytes), "too many tiny messages"));
}

TEST(OnnxReader, OpensRegularFilesOnly) {
  const TempFolder folder;
  const auto error_at = [](const std::string& path) {
    const Result<Model> model = read_onnx_file(path);
    EXPECT_FALSE(model.ok());
    return model.ok() ? "" : model.error().message;
  };
  EXPECT_TRUE(contains(error_at(folder.file("none.onnx")), "No such file"));
  EXPECT_TRUE(contains(error_at(folder.write("empty.onnx", "")), "is empty"));
  EXPECT_TRUE(contains(error_at(folder.file(".")), "is a directory, not a regular file"));
  EXPECT_TRUE(contains(error_at("/dev/zero"), "is a device, not a regular file"));
  EXPECT_TRUE(contains(error_at(std::string("a\0b", 3)), "zero byte"));
  ASSERT_EQ(::mkfifo(folder.file("fifo.onnx").c_str(), 0600), 0);
  EXPECT_TRUE(contains(error_at(folder.file("fifo.onnx")), "is a FIFO, not a regular file"));

  const Result<Model> model =
      read_onnx_file(folder.write("good.onnx", wire::model(Message().bytes(1, wire::node("Relu", {"x"}, {"y"})))));
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->path, folder.file("good.onnx"));
  EXPECT_EQ(model->nodes.size(), 1U);
}

TEST(FileBytes, ReadsOrMapsAndNoticesChanges) {
  const TempFolder folder;
  const std::string content(10'000, 'a');
  const std::string path = folder.write("file", content);
  for (const std::uint64_t limit : {std::uint64_t{1} << 20, std::uint64_t{0}}) {
    const auto file = FileBytes::open(path, limit);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ((*file)->bytes(), content);
    EXPECT_FALSE((*file)->check_unchanged());
  }
  const auto mapped = FileBytes::open(path, 0);
  ASSERT_TRUE(mapped.ok());
  std::ofstream(path, std::ios::binary | std::ios::app) << "more";
  const auto changed = (*mapped)->check_unchanged();
  ASSERT_TRUE(changed.has_value());
  EXPECT_TRUE(contains(changed->message, "changed while being read"));
}

TEST(FileBytes, SurvivesAFileCutUnderItsMapping) {
  const TempFolder folder;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::string content(page * 8, 'a');
  const std::string path = folder.write("file", content);
  for (int round = 0; round < 3; ++round) {
    folder.write("file", content);
    const auto file = FileBytes::open(path, 0);
    ASSERT_TRUE(file.ok());
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(page)), 0);
    std::size_t letters = 0;
    for (const char c : (*file)->bytes()) letters += c == 'a' ? 1 : 0;
    EXPECT_EQ(letters, page);  // lost pages read as zeros
    EXPECT_TRUE(contains((*file)->check_unchanged()->message, "changed while being read"));
  }
}

/// Whether the page at an offset comes into the system's cache, which it does on its own time, within a second.
bool comes_into_memory(std::string_view mapping, std::size_t offset) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto place = reinterpret_cast<std::uintptr_t>(mapping.data() + offset) & ~(page - 1);
  for (int wait = 0; wait < 1000; ++wait) {
    unsigned char is_there = 0;
    if (::mincore(reinterpret_cast<void*>(place), page, &is_there) == 0 && (is_there & 1) != 0) return true;
    ::usleep(1000);
  }
  return false;
}

TEST(ReadAhead, AsksForThePagesOfLeapsThatRepeat) {
  constexpr std::size_t kWeight = 1'000'000, kBias = 150'000;
  const TempFolder folder;
  const std::string path = folder.write("weights", "");
  ASSERT_EQ(::truncate(path.c_str(), 40 * (kWeight + kBias)), 0);
  const auto file = FileBytes::open(path, 0);
  ASSERT_TRUE(file.ok());
  const std::string_view bytes = (*file)->bytes();
  struct ::statfs system{};
  ASSERT_EQ(::statfs(path.c_str(), &system), 0);
  if (system.f_type == TMPFS_MAGIC) GTEST_SKIP() << "this file system keeps all files in memory";

  (*file)->read_page_by_page();
  ReadAhead ahead(file->get());
  std::size_t landing = 0;
  const auto leap = [&](std::size_t by) { ahead.at(bytes.data() + (landing += by)); };
  leap(kWeight + 1);
  leap(kBias + 7);  // unlike all others
  for (int block = 0; block < 6; ++block) {
    leap(kWeight);
    leap(kBias);
  }
  const std::size_t next = landing + kWeight;
  EXPECT_TRUE(comes_into_memory(bytes, next));
  EXPECT_TRUE(comes_into_memory(bytes, next + kBias));
  std::size_t read = 0;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> is_there((bytes.size() + page - 1) / page);
  ASSERT_EQ(::mincore(const_cast<char*>(bytes.data()), bytes.size(), is_there.data()), 0);
  for (const unsigned char bits : is_there) read += (bits & 1) != 0 ? page : 0;
  EXPECT_LT(read, 60 * 4 * page);  // no more than what some landings ahead take
}

}  // namespace
}  // namespace tensorlint
