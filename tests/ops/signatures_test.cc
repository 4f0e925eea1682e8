// Signatures of a user's operators: what their texts mean, and what they say of a call.
#include "ir/ops/signatures.h"

#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Texts = std::vector<std::string>;

std::string error_of(const Texts& inputs, const Texts& outputs) {
  const Result<Signature> signature = make_signature(inputs, outputs);
  return signature ? "" : signature.error().message;
}

Outcome call(const Texts& inputs, const Texts& outputs, Op& op, std::uint32_t results = 1) {
  const Result<Signature> signature = make_signature(inputs, outputs);
  EXPECT_TRUE(signature) << (signature ? "" : signature.error().message);
  return op.results(results).infer_as(*signature);
}

// ---- texts

TEST(Signatures, Types) {
  const Result<Signature> signature = make_signature({"T[N, 3, ?]", "float32|int64[...]", " float [] ?"}, {"T[N]"});
  ASSERT_TRUE(signature);
  const auto& inputs = signature->inputs;
  EXPECT_EQ(inputs[0].variable, "T");
  EXPECT_EQ(inputs[0].dims, (Texts{"N", "3", "?"}));
  EXPECT_TRUE(inputs[0].ranked);
  EXPECT_FALSE(inputs[0].optional);
  EXPECT_EQ(inputs[1].dtypes, DTypeSet(DType::kFloat32) | DType::kInt64);
  EXPECT_EQ(inputs[1].variable, "");
  EXPECT_FALSE(inputs[1].ranked);
  EXPECT_EQ(inputs[2].dtypes, DTypeSet(DType::kFloat32));
  EXPECT_TRUE(inputs[2].ranked && inputs[2].dims.empty() && inputs[2].optional);
  EXPECT_EQ(signature->required, 2U);
  EXPECT_EQ(make_signature({"T[N]?", "T[N]"}, {})->required, 2U);
  EXPECT_EQ(make_signature({"T[N]?"}, {})->required, 0U);
}

TEST(Signatures, NamesOfVariables) {
  for (const std::string name : {"A", "Z", "T2", "T_x", "Tz"}) EXPECT_EQ(error_of({name + "[N]"}, {}), "") << name;
  for (const std::string name : {"a", "z", "_", "2T", "", "T-x", "T x"})
    EXPECT_NE(error_of({name + "[N]"}, {}), "") << name;
}

TEST(Signatures, WrongTexts) {
  EXPECT_EQ(error_of({"float32"}, {}), "`float32` is not a type: write float32[N, 3], T[N] or T[...]");
  EXPECT_EQ(error_of({"float32[N"}, {}), "`float32[N` is not a type: write float32[N, 3], T[N] or T[...]");
  EXPECT_EQ(error_of({"float32|what[N]"}, {}), "`float32|what[N]` has the unknown dtype `what`");
  EXPECT_EQ(error_of({"what[N]"}, {}),
            "`what[N]` begins with `what`, which is neither a dtype nor a type variable (a name in capitals)");
  EXPECT_EQ(error_of({"float32[N+1]"}, {}),
            "`float32[N+1]` has the dim `N+1`; an operand's dims are numbers, names or ?");
  EXPECT_EQ(error_of({"float32[-1]"}, {}), "`float32[-1]` has the dim `-1`; an operand's dims are numbers, names or ?");
  EXPECT_EQ(error_of({}, {"float32[N]?"}), "`float32[N]?` is a result, which cannot be optional");
  EXPECT_EQ(error_of({"float32[N]"}, {"T[N]"}), "`T[N]` has the type variable `T`, which no operand has");
  for (const std::string dim : {"N+", "N 2", "2*M", "(N)", "N**2", "+", "*N", "3x"})
    EXPECT_EQ(error_of({"float32[N]"}, {"float32[" + dim + "]"}),
              "`float32[" + dim + "]` has the dim `" + dim +
                  "`; write numbers, the operands' names, and + - * / between them");
  EXPECT_EQ(error_of({"float32[N]"}, {"float32[M]"}), "");
}

TEST(Signatures, LongTexts) {
  const auto padded = [](std::size_t size) { return "float32[" + std::string(size - 9, ' ') + "]"; };
  EXPECT_EQ(error_of({padded(1000)}, {}), "");
  EXPECT_EQ(error_of({padded(1001)}, {}), "a type of more than 1000 characters");
  const auto ranked = [](std::size_t rank) {
    std::string dims = "1";
    for (std::size_t i = 1; i < rank; ++i) dims += ",1";
    return "float32[" + dims + "]";
  };
  EXPECT_EQ(error_of({ranked(kMaxRank)}, {}), "");
  EXPECT_NE(error_of({ranked(kMaxRank + 1)}, {}), "");
}

// ---- results

TEST(Signatures, DimsOfResults) {
  const auto result = [](const std::string& dim) {
    return call({"float32[A, B]"}, {"int64[" + dim + "]"}, Op("Own", 1, "own").in("float32[N, 6]")).result();
  };
  EXPECT_EQ(result("A"), "int64[N]");
  EXPECT_EQ(result("B*A + 2"), "int64[6*N + 2]");
  EXPECT_EQ(result("2 + A*2"), "int64[2*N + 2]");
  EXPECT_EQ(result("B - 1 - 2"), "int64[3]");
  EXPECT_EQ(result("B/4"), "int64[1]");
  EXPECT_EQ(result("B/4*2"), "int64[2]");
  EXPECT_EQ(result("10 - B/2"), "int64[7]");
  EXPECT_EQ(result("A/2"), "int64[floor(N/2)]");
  EXPECT_EQ(result("?"), "int64[?]");
  EXPECT_EQ(result("B - 7"), "int64[?]");
  EXPECT_EQ(result("B - 6"), "int64[0]");
  EXPECT_EQ(result("B/0"), "int64[?]");
  EXPECT_EQ(result("found"), "int64[?]");
  EXPECT_EQ(result(""), "int64[]");
  EXPECT_EQ(result("..."), "int64[...]");
}

TEST(Signatures, AFoundExtentIsTheSameInAllResults) {
  Op op("Own", 1, "own");
  const Outcome outcome = call({"float32[A]"}, {"int64[found, found]", "int64[more]"}, op.in("float32[4]"), 2);
  const auto dims = op.facts().dims_of(op.fact(outcome).shape);
  ASSERT_EQ(dims.size(), 2U);
  EXPECT_EQ(dims[0], dims[1]);
  EXPECT_NE(dims[0], op.facts().dims_of(op.fact(outcome, 1).shape)[0]);
}

TEST(Signatures, FoundExtentsDifferInAnyOrder) {
  for (const std::string text : {"int64[a, b]", "int64[b, a]", "int64[c, a]"}) {
    Op op("Own", 1, "own");
    const Outcome outcome = call({"float32[A]"}, {text}, op.in("float32[4]"));
    const auto dims = op.facts().dims_of(op.fact(outcome).shape);
    ASSERT_EQ(dims.size(), 2U);
    EXPECT_NE(dims[0], dims[1]) << text;
  }
}

TEST(Signatures, TypesOfResults) {
  const Texts inputs{"T[N]", "T[N]?", "U[...]?"};
  EXPECT_EQ(call(inputs, {"T[N]"}, Op("Own", 1, "own").in("int8[3]")).result(), "int8[3]");
  EXPECT_EQ(call(inputs, {"T[N]"}, Op("Own", 1, "own").in("int8[3]").in("int8[3]")).result(), "int8[3]");
  EXPECT_EQ(call(inputs, {"U[2]"}, Op("Own", 1, "own").in("int8[3]").absent().in("bool[]")).result(), "bool[2]");
  EXPECT_EQ(call(inputs, {"int64[]"}, Op("Own", 1, "own").unknown()).result(), "int64[]");
  EXPECT_EQ(call(inputs, {"T[N]", "bool[1]"}, Op("Own", 1, "own").in("int8[3]"), 2).result(1), "bool[1]");
  Op op("Own", 1, "own");
  const Outcome outcome = call(inputs, {"uint8[N]"}, op.in("int8[3]"));
  EXPECT_EQ(op.fact(outcome).range, (Range{0, 255, false}));
}

// ---- faults

Outcome faults(const Texts& inputs, Op& op, std::uint32_t results = 1) { return call(inputs, {"bool[]"}, op, results); }

TEST(Signatures, CountsOfOperands) {
  const Texts inputs{"T[N]", "T[N]", "T[N]?"};
  const std::string_view type = "float32[3]";
  EXPECT_EQ(faults(inputs, Op("Own", 1, "own").in(type).in(type)).failures, Texts{});
  EXPECT_EQ(faults(inputs, Op("Own", 1, "own").in(type).in(type).in(type)).failures, Texts{});
  EXPECT_EQ(faults(inputs, Op("Own", 1, "own").in(type)).messages,
            Texts{"Own is declared to take at least 2 operands, 1 given"});
  EXPECT_EQ(faults(inputs, Op("Own", 1, "own").in(type).in(type).in(type).in(type)).messages,
            Texts{"Own is declared to take at most 3 operands, 4 given"});
  EXPECT_EQ(faults({"T[N]"}, Op("Own", 1, "own").results(1)).messages,
            Texts{"Own is declared to take at least 1 operand, 0 given"});
  EXPECT_EQ(faults(inputs, Op("Own", 1, "own").absent().in(type)).messages,
            Texts{"Own is declared to need operand 0, which is left out"});
  EXPECT_EQ(faults(inputs, Op("Own", 1, "own").in(type).in(type).absent()).failures, Texts{});
}

TEST(Signatures, CountsOfResults) {
  EXPECT_EQ(faults({}, Op("Own", 1, "own").results(1), 2).messages,
            Texts{"Own is declared with 1 result, 2 asked for"});
  EXPECT_EQ(faults({}, Op("Own", 1, "own").results(1), 2).result(1), "unknown");
  EXPECT_EQ(call({}, {"bool[]", "bool[]"}, Op("Own", 1, "own").results(1), 3).messages,
            Texts{"Own is declared with 2 results, 3 asked for"});
}

TEST(Signatures, Dtypes) {
  EXPECT_EQ(faults({"float32|float16[N]"}, Op("Own", 1, "own").in("int8[3]")).messages,
            Texts{"Own is declared to take float32 or float16, {0} is int8"});
  EXPECT_EQ(faults({"float32|float16[N]"}, Op("Own", 1, "own").in("float16[3]")).failures, Texts{});
  EXPECT_EQ(faults({"bool[]", "T[N]", "T[N]"}, Op("Own", 1, "own").in("bool[]").in("int8[3]").in("int64[3]")).messages,
            Texts{"Own is declared to take operands of one dtype T: {1} is int8, {2} is int64"});
  EXPECT_EQ(faults({"T[N]", "U[N]"}, Op("Own", 1, "own").in("int8[3]").in("int64[3]")).failures, Texts{});
  EXPECT_EQ(faults({"bool[]", "T[N]"}, Op("Own", 1, "own").in("bool[]").sequence("float32[3]")).messages,
            Texts{"Own is declared to take a tensor, {1} is a sequence"});
}

TEST(Signatures, Shapes) {
  EXPECT_EQ(faults({"T[N, 3]"}, Op("Own", 1, "own").in("int8[3]")).messages,
            Texts{"Own is declared to take rank 2, {0} has shape [3]"});
  EXPECT_EQ(faults({"T[N, 3]"}, Op("Own", 1, "own").in("int8[3, 4]")).messages,
            Texts{"axis 1 of {0} has extent 4, Own is declared with 3"});
  EXPECT_EQ(faults({"T[N]", "T[N]"}, Op("Own", 1, "own").in("int8[3]").in("int8[4]")).messages,
            Texts{"axis 0 of {1} has extent 4, Own is declared with N, which is 3 already"});
  EXPECT_EQ(faults({"T[?]", "T[?]"}, Op("Own", 1, "own").in("int8[3]").in("int8[4]")).failures, Texts{});
  EXPECT_EQ(faults({"T[N]", "T[N]"}, Op("Own", 1, "own").in("int8[?]").in("int8[4]")).failures, Texts{});
  EXPECT_EQ(faults({"T[N]", "T[...]"}, Op("Own", 1, "own").in("int8[...]").in("int8[4, 5]")).failures, Texts{});
  EXPECT_EQ(faults({"T[N, N]"}, Op("Own", 1, "own").in("int8[3, M]")).failures, Texts{});
}

TEST(Signatures, WhatFollowsAFaultIsTainted) {
  EXPECT_EQ(faults({"T[N, 3]"}, Op("Own", 1, "own").in("int8[3]").taint(Aspect::kShape)).failures, Texts{});
  EXPECT_EQ(faults({"T[N, 3]"}, Op("Own", 1, "own").in("int8[3]").taint(Aspect::kDtype)).failures,
            Texts{"signature_shape"});
  EXPECT_TRUE(faults({"T[N, 3]"}, Op("Own", 1, "own").in("int8[3]")).raw.taints[0].has(Aspect::kShape));
  EXPECT_TRUE(
      faults({"T[N]"}, Op("Own", 1, "own").in("int8[3]").taint(Aspect::kDtype)).raw.taints[0].has(Aspect::kDtype));
  EXPECT_EQ(faults({"T[N]"}, Op("Own", 1, "own").in("int8[3]")).raw.taints[0], Taint());
}

}  // namespace
}  // namespace tensorlint::ops
