#include <cmath>

#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

/// A tensor attribute whose bytes live in `values`.
template <typename Element>
struct TensorAttribute {
  TensorAttribute(std::string_view name, DType dtype, std::vector<std::int64_t> extents_given,
                  std::vector<Element> values_given)
      : extents(std::move(extents_given)), values(std::move(values_given)) {
    tensor.dtype_code = static_cast<std::int32_t>(dtype);
    tensor.dims = extents;
    tensor.has_raw = true;
    tensor.raw = {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Element)};
    attribute.name = name;
    attribute.kind = AttributeKind::kTensor;
    attribute.tensor = &tensor;
  }
  std::vector<std::int64_t> extents;
  std::vector<Element> values;
  Tensor tensor;
  Attribute attribute;
};

TEST(Constant, EveryAttribute) {
  const auto check = [](Op& op, std::string_view type, std::string_view content) {
    const Outcome outcome = op.infer();
    EXPECT_EQ(outcome.result(), type);
    EXPECT_EQ(op.content(outcome), content);
    EXPECT_EQ(outcome.failures, Labels{});
  };
  Op integer("Constant", 13), integers("Constant", 13), number("Constant", 13), numbers("Constant", 13),
      text("Constant", 13), tensor("Constant", 9);
  check(integer.with("value_int", 7), "int64[]", "7");
  check(integers.ints("value_ints", {1, -2}), "int64[2]", "1 -2");
  check(number.with("value_float", 0.5), "float32[]", "0.5");
  check(numbers.float_list("value_floats", {1, 2}), "float32[2]", "1 2");
  check(text.with("value_string", "a"), "string[]", "none");
  const TensorAttribute<std::int32_t> value("value", DType::kInt32, {1, 2}, {3, 4});
  check(tensor.attribute(value.attribute), "int32[1, 2]", "3 4");
  EXPECT_EQ(Op("Constant", 13).infer().failures, Labels{"constant_one_value"});
  EXPECT_EQ(Op("Constant", 13).with("value_int", 7).with("value_float", 1.0).infer().failures,
            Labels{"constant_one_value?"});
}

TEST(ConstantOfShape, ShapeAndContent) {
  Op plain("ConstantOfShape", 9);
  const Outcome zeros = plain.constant({2, 3}).infer();
  EXPECT_EQ(zeros.result(), "float32[2, 3]");
  EXPECT_EQ(plain.content(zeros), "0 0 0 0 0 0");
  const TensorAttribute<std::int64_t> ones("value", DType::kInt64, {1}, {1});
  Op filled("ConstantOfShape", 9);
  const Outcome list = filled.constant({3}).attribute(ones.attribute).infer();
  EXPECT_EQ(list.result(), "int64[3]");
  EXPECT_EQ(filled.content(list), "1 1 1");
  EXPECT_EQ(Op("ConstantOfShape", 9).elements({"N", "3", "?"}).attribute(ones.attribute).infer().result(),
            "int64[N, 3, ?]");
  EXPECT_EQ(Op("ConstantOfShape", 9).in("int64[2]").infer().result(), "float32[?, ?]");
  EXPECT_EQ(Op("ConstantOfShape", 9).constant({}).infer().result(), "float32[]");
  // A shape, not an allocation.
  EXPECT_EQ(Op("ConstantOfShape", 9).constant({1LL << 40, 1LL << 40}).infer().result(),
            "float32[1099511627776, 1099511627776]");
  EXPECT_EQ(Op("ConstantOfShape", 9).constant({-1}).infer().failures, Labels{"constant_of_shape_extents"});
  EXPECT_EQ(Op("ConstantOfShape", 9).in("int64[1, 2]").infer().failures, Labels{"is_list?"});
  const TensorAttribute<std::int64_t> two("value", DType::kInt64, {2}, {1, 2});
  EXPECT_EQ(Op("ConstantOfShape", 9).constant({1}).attribute(two.attribute).infer().failures,
            Labels{"constant_of_shape_one_element"});
}

TEST(Range, LengthAndContent) {
  const auto run = [](std::string_view start, std::string_view limit, std::string_view delta) {
    Op op("Range", 11);
    const Outcome outcome =
        op.elements({start}, "int64[]").elements({limit}, "int64[]").elements({delta}, "int64[]").infer();
    return outcome.result() + " " + op.content(outcome);
  };
  EXPECT_EQ(run("3", "9", "3"), "int64[2] 3 6");
  EXPECT_EQ(run("10", "4", "-2"), "int64[3] 10 8 6");
  EXPECT_EQ(run("4", "10", "-2"), "int64[0] ");
  EXPECT_EQ(run("0", "N", "1"), "int64[N] none");
  EXPECT_EQ(run("P", "P", "1"), "int64[0] ");
  EXPECT_EQ(run("-9223372036854775808", "9223372036854775807", "1"), "int64[?] none");
  EXPECT_EQ(Op("Range", 11).scalar(0).scalar(5).scalar(0).infer().failures, Labels{"range_step"});
  EXPECT_EQ(Op("Range", 11).in("int64[2]").scalar(5).scalar(1).infer().failures, Labels{"range_scalars"});
  const auto floats = [](double start, double limit, double delta) {
    return Op("Range", 11)
        .floats({start}, "float32[]")
        .floats({limit}, "float32[]")
        .floats({delta}, "float32[]")
        .infer()
        .result();
  };
  EXPECT_EQ(floats(1, 5, 2), "float32[2]");
  EXPECT_EQ(floats(0, 0.3, 0.25), "float32[2]");
  EXPECT_EQ(floats(0, 1, static_cast<double>(0.1F)), "float32[?]");  // 10 or 11: rounding decides
}

TEST(Shape, StartAndEnd) {
  const auto run = [](std::string_view data, std::int64_t start, std::int64_t end) {
    Op op("Shape", 15);
    const Outcome outcome = op.in(data).with("start", start).with("end", end).infer();
    return outcome.result() + " " + op.content(outcome);
  };
  EXPECT_EQ(run("float32[N, 3, 4]", 0, 3), "int64[3] N 3 4");
  EXPECT_EQ(run("float32[N, 3, 4]", -2, 99), "int64[2] 3 4");
  EXPECT_EQ(run("float32[N, 3, 4]", 2, 1), "int64[0] ");
  EXPECT_EQ(run("float32[N, 3, 4]", INT64_MIN, INT64_MAX), "int64[3] N 3 4");
  EXPECT_EQ(run("float32[...]", 0, 1), "int64[?] none");
  Op size("Size", 13);
  EXPECT_EQ(size.content(size.in("float32[N, 3, 4]").infer()), "12*N");
}

TEST(Cast, DtypesAndContents) {
  const auto run = [](Op& op, DType to) {
    const Outcome outcome = op.with("to", static_cast<std::int64_t>(to)).infer();
    return outcome.result() + " " + op.content(outcome);
  };
  Op narrow("Cast", 13), bools("Cast", 13), floats("Cast", 13), back("Cast", 13), symbol("Cast", 13), small("Cast", 13),
      half("Cast", 13);
  EXPECT_EQ(run(narrow.constant({200, -1}), DType::kInt8), "int8[2] -56 -1");
  EXPECT_EQ(run(bools.elements({"3", "0", "N"}), DType::kBool), "bool[3] 1 0 ?");
  EXPECT_EQ(run(floats.constant({1, 16777217}), DType::kFloat32), "float32[2] 1 1.67772e+07");
  EXPECT_EQ(run(back.floats({2.9, -2.9, 1e10, HUGE_VAL}), DType::kInt32), "int32[4] 2 -2 ? ?");
  EXPECT_EQ(run(symbol.elements({"N", "3"}), DType::kInt32), "int32[2] N 3");
  EXPECT_EQ(run(small.elements({"N", "3"}), DType::kInt8), "int8[2] ? 3");
  EXPECT_EQ(run(half.constant({2049}), DType::kFloat16), "float16[1] none");
  EXPECT_EQ(Op("Cast", 1).in("float32[N]").with("to", "INT64").infer().result(), "int64[N]");
  EXPECT_EQ(Op("Cast", 13).in("float32[N]").with("to", 99).infer().failures, Labels{"cast_target"});
  EXPECT_EQ(Op("Cast", 9).in("float32[N]").with("to", static_cast<int>(DType::kBFloat16)).infer().failures,
            Labels{"cast_target"});
  EXPECT_EQ(Op("CastLike", 15).in("float32[N]").in("int32[]").infer().result(), "int32[N]");
  EXPECT_EQ(Op("BitCast", 26).in("float32[N]").with("to", static_cast<int>(DType::kInt32)).infer().result(),
            "int32[N]");
  EXPECT_EQ(Op("BitCast", 26).in("float32[N]").with("to", static_cast<int>(DType::kInt64)).infer().failures,
            Labels{"bit_cast_widths"});
  Op range("Cast", 13);
  const Fact& ids = range.fact(range.in("uint8[N]").with("to", static_cast<int>(DType::kFloat32)).infer());
  EXPECT_EQ(ids.range, (Range{0, 255, false}));
}

TEST(Identity, KeepsTheFact) {
  Op op("Identity", 16);
  EXPECT_EQ(op.content(op.elements({"N", "2"}).infer()), "N 2");
  EXPECT_EQ(Op("Identity", 16).sequence("float32[N]").infer().result(), "seq(float32[N])");
}

}  // namespace
}  // namespace tensorlint::ops
