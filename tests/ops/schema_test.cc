#include "ir/schema/schema.h"

#include <gtest/gtest.h>
#include <onnx.pb.h>

#include <set>
#include <string>
#include <tuple>

namespace tensorlint::ops {
namespace {

TEST(Schema, TableIsSortedAndDense) {
  const auto all = all_schemas();
  ASSERT_EQ(all.size(), 659U);  // (operator, version) pairs of onnx 1.23.2
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].index, i);
    if (i == 0) continue;
    const OpSchema &before = all[i - 1], &here = all[i];
    EXPECT_LT(std::tie(before.domain, before.name, before.since_version),
              std::tie(here.domain, here.name, here.since_version));
  }
}

TEST(Schema, EveryEntryIsConsistent) {
  for (const OpSchema& schema : all_schemas()) {
    SCOPED_TRACE(std::string(schema.name) + " " + std::to_string(schema.since_version));
    EXPECT_LE(schema.min_inputs, schema.max_inputs);
    EXPECT_LE(schema.min_outputs, schema.max_outputs);
    EXPECT_EQ(schema.function_body.empty(), schema.function_opset == 0);
    for (const auto parameters : {schema.inputs, schema.outputs}) {
      for (const FormalParameter& parameter : parameters) {
        ASSERT_LT(parameter.type, schema.types.size());
        const TypeSet& allowed = schema.types[parameter.type].allowed;
        EXPECT_TRUE(!allowed.tensor.empty() || !allowed.sequence.empty() || !allowed.optional_tensor.empty() ||
                    !allowed.optional_sequence.empty() || !allowed.sparse_tensor.empty() || allowed.map ||
                    allowed.sequence_map);
        EXPECT_TRUE(allowed.tensor.is_subset_of(DTypeSet::all()));
      }
    }
    for (const FormalAttribute& attribute : schema.attributes) {
      EXPECT_FALSE(attribute.required && attribute.has_default);
      EXPECT_EQ(schema.attribute(attribute.name), &attribute);
    }
  }
}

TEST(Schema, FindsTheVersionInForce) {
  EXPECT_EQ(find_schema("", "ReduceMean", 28)->since_version, 18);
  EXPECT_EQ(find_schema("ai.onnx", "ReduceMean", 18)->since_version, 18);
  EXPECT_EQ(find_schema("", "ReduceMean", 17)->since_version, 13);
  EXPECT_EQ(find_schema("", "ReduceMean", 1)->since_version, 1);
  EXPECT_EQ(find_schema("", "ReduceMean", 0), nullptr);
  EXPECT_EQ(find_schema("", "Mish", 17), nullptr);
  EXPECT_EQ(find_any_version("", "Mish")->since_version, 18);
  EXPECT_EQ(find_schema("", "NoSuchOperator", 28), nullptr);
  EXPECT_EQ(find_any_version("", "NoSuchOperator"), nullptr);
  EXPECT_EQ(find_schema("com.example", "Add", 28), nullptr);
  EXPECT_EQ(find_schema("ai.onnx.ml", "LabelEncoder", 3)->since_version, 2);
}

TEST(Schema, ReturnsDeprecatedEntries) {
  EXPECT_FALSE(find_schema("", "Upsample", 9)->deprecated);
  EXPECT_TRUE(find_schema("", "Upsample", 28)->deprecated);
  EXPECT_TRUE(find_schema("", "GroupNormalization", 18)->deprecated);
  EXPECT_FALSE(find_schema("", "GroupNormalization", 21)->deprecated);
}

TEST(Schema, NewestOpsets) {
  EXPECT_EQ(newest_opset(""), 28);
  EXPECT_EQ(newest_opset("ai.onnx"), 28);
  EXPECT_EQ(newest_opset("ai.onnx.ml"), 5);
  EXPECT_EQ(newest_opset("ai.onnx.preview.training"), 1);
  EXPECT_EQ(newest_opset("com.example"), 0);
}

TEST(Schema, ParametersAndTypes) {
  const OpSchema& gather = *find_schema("", "Gather", 13);
  EXPECT_EQ(gather.input_index("indices"), 1);
  EXPECT_EQ(gather.input_index("output"), -1);
  const TypeConstraint& indices = gather.types[gather.inputs[1].type];
  EXPECT_EQ(indices.name, "Tind");
  EXPECT_EQ(indices.allowed.tensor, DTypeSet(DType::kInt32) | DTypeSet(DType::kInt64));

  const OpSchema& reshape = *find_schema("", "Reshape", 13);
  const TypeConstraint& shape = reshape.types[reshape.inputs[1].type];
  EXPECT_EQ(shape.name, "tensor(int64)");
  EXPECT_EQ(shape.allowed.tensor, DTypeSet(DType::kInt64));

  const OpSchema& concat = *find_schema("", "Concat", 13);
  EXPECT_EQ(concat.min_inputs, 1);
  EXPECT_EQ(concat.max_inputs, 65535);
  EXPECT_EQ(concat.inputs[0].option, FormalOption::kVariadic);
  EXPECT_TRUE(concat.inputs[0].homogeneous);

  const OpSchema& loop = *find_schema("", "Loop", 13);
  EXPECT_FALSE(loop.inputs[static_cast<std::size_t>(loop.input_index("v_initial"))].homogeneous);
  EXPECT_EQ(loop.inputs[0].option, FormalOption::kOptional);

  const OpSchema& at = *find_schema("", "SequenceAt", 11);
  EXPECT_TRUE(at.types[at.inputs[0].type].allowed.sequence.contains(DType::kFloat32));
  EXPECT_TRUE(at.types[at.inputs[0].type].allowed.tensor.empty());
}

TEST(Schema, Attributes) {
  const FormalAttribute* axis = find_schema("", "ArgMax", 13)->attribute("axis");
  ASSERT_NE(axis, nullptr);
  EXPECT_EQ(axis->kind, AttributeKind::kInt);
  EXPECT_TRUE(axis->has_default);
  EXPECT_EQ(axis->default_value, "0");
  EXPECT_TRUE(find_schema("", "Concat", 13)->attribute("axis")->required);
  EXPECT_EQ(find_schema("", "Concat", 13)->attribute("axes"), nullptr);
  EXPECT_EQ(find_schema("", "BatchNormalization", 15)->attribute("epsilon")->default_value, "1e-05");
  EXPECT_EQ(find_schema("", "MeanVarianceNormalization", 13)->attribute("axes")->default_value, "0,2,3");
  EXPECT_EQ(find_schema("", "RNN", 14)->attribute("activations")->default_value, "Tanh,Tanh");
  EXPECT_EQ(find_schema("", "If", 13)->attribute("then_branch")->kind, AttributeKind::kGraph);
  EXPECT_EQ(find_schema("", "SoftmaxCrossEntropyLoss", 13)->attribute("reduction")->default_value, "mean");
}

TEST(Schema, StaticBodiesAreFunctionsOfTheirOperator) {
  int bodies = 0;
  for (const OpSchema& schema : all_schemas()) {
    if (schema.function_body.empty()) continue;
    SCOPED_TRACE(std::string(schema.name) + " " + std::to_string(schema.since_version));
    ++bodies;
    onnx::FunctionProto body;
    ASSERT_TRUE(body.ParseFromArray(schema.function_body.data(), static_cast<int>(schema.function_body.size())));
    EXPECT_EQ(body.name(), schema.name);
    EXPECT_EQ(static_cast<std::size_t>(body.input_size()), schema.inputs.size());
    EXPECT_EQ(static_cast<std::size_t>(body.output_size()), schema.outputs.size());
    EXPECT_GT(body.node_size(), 0);
    EXPECT_TRUE(body.doc_string().empty());
    for (const std::string& name : body.attribute()) EXPECT_NE(schema.attribute(name), nullptr) << name;
    int opset = 0;
    for (const auto& import : body.opset_import()) {
      if (import.domain().empty()) opset = static_cast<int>(import.version());
    }
    EXPECT_EQ(opset, schema.function_opset);
    for (const auto& node : body.node()) {
      EXPECT_NE(find_schema(node.domain(), node.op_type(), opset), nullptr) << node.op_type();
    }
  }
  EXPECT_EQ(bodies, 42);
  // The body depends on context there: no static one.
  EXPECT_TRUE(find_schema("", "SoftmaxCrossEntropyLoss", 13)->function_body.empty());
}

TEST(Schema, AttributeKindNames) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= 14; ++kind) names.insert(to_text(static_cast<AttributeKind>(kind)));
  EXPECT_EQ(names.size(), 15U);
  EXPECT_EQ(to_text(AttributeKind::kInts), "ints");
  EXPECT_EQ(to_text(AttributeKind::kSparseTensor), "sparse_tensor");
}

}  // namespace
}  // namespace tensorlint::ops
