#include "ir/ops/violation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

/// The only violation of a call.
const Violation& only(const Outcome& outcome) {
  EXPECT_EQ(outcome.raw.violations.size(), 1U);
  return outcome.raw.violations.at(0);
}

TEST(Violations, CarryTheAxis) {
  Op op("Softmax", 13);
  const Outcome outcome = op.in("float32[2, 3]").with("axis", -4).infer();
  const Violation& violation = only(outcome);
  EXPECT_EQ(violation.kind(), ConstraintKind::kAxisRange);
  EXPECT_EQ(violation.axis(), -4);
  EXPECT_EQ(violation.operands, std::vector<int>{0});
  EXPECT_EQ(violation.index(), std::nullopt);
  EXPECT_EQ(violation.attribute(), std::nullopt);
}

TEST(Violations, CarryTheAttribute) {
  const Outcome unknown = Op("Relu", 14).in("float32[2]").with("alfa", 1).infer();
  EXPECT_EQ(only(unknown).kind(), ConstraintKind::kUnknownAttribute);
  EXPECT_EQ(only(unknown).attribute(), "alfa");
  const Outcome kind = Op("Softmax", 13).in("float32[2]").with("axis", "last").infer();
  EXPECT_EQ(only(kind).kind(), ConstraintKind::kAttribute);
  EXPECT_EQ(only(kind).attribute(), "axis");
}

TEST(Violations, CarryTheIndex) {
  Op op("Gather", 13);
  const Outcome outcome = op.in("float32[2, 3]").constant({1, 7}).infer();
  const Violation& violation = only(outcome);
  EXPECT_EQ(violation.kind(), ConstraintKind::kIndexRange);
  ASSERT_TRUE(violation.index());
  EXPECT_EQ(op.facts().dims().as_constant(*violation.index()), 7);
  EXPECT_EQ(violation.axis(), 0);  // in a message within the message
  EXPECT_EQ(violation.operands, (std::vector<int>{1, 0}));
}

TEST(Violations, CarryTheWitness) {
  Op op("Add", 14);
  const Outcome outcome = op.in("float32[2*N]").in("float32[3]").infer();
  for (const Violation& violation : outcome.raw.violations) {
    EXPECT_EQ(violation.certainty == Certainty::kMay, !violation.witness.empty());
  }
  const Outcome certain = Op("Add", 14).in("float32[2]").in("float32[3]").infer();
  EXPECT_TRUE(only(certain).witness.empty());
}

TEST(Violations, SayWhatIsAboutTheRankAlone) {
  EXPECT_TRUE(is_about_rank(only(Op("Gemm", 13).in("float32[2]").in("float32[2, 3]").infer()).kind()));
  const Outcome joined = Op("Concat", 13).in("float32[2]").in("float32[2, 3]").with("axis", 0).infer();
  EXPECT_TRUE(is_about_rank(only(joined).kind()));
  const Outcome extents = Op("Gemm", 13).in("float32[2, 4]").in("float32[3, 3]").infer();
  EXPECT_FALSE(is_about_rank(only(extents).kind()));
}

/// Each kind of argument, as it is written.
TEST(Messages, WriteTheirArguments) {
  FactStore facts;
  DimPool& dims = facts.dims();
  const Dim n = dims.symbol("N");
  const std::vector<Dim> shape{n, dims.constant(3)};
  Fact tensor;
  tensor.kind = ValueKind::kTensor;
  tensor.dtypes = DType::kInt64;
  tensor.shape = facts.intern_shape(shape);
  const FactId fact = facts.intern(tensor);
  const auto text = [&](const Message& message) { return to_text(message, facts); };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({"no arguments"}), "no arguments");
  EXPECT_EQ(text({"{} and {}", OperandRef(0), ResultRef(2)}), "{0} and {r2}");
  EXPECT_EQ(text({"{} is {}", AttributeName("axis"), -3}), "`axis` is -3");
  EXPECT_EQ(text({"axis {}, index {}", Axis(-1), Index(n)}), "axis -1, index N");
  EXPECT_EQ(text({"{} x {}", n, std::size_t{7}}), "N x 7");
  EXPECT_EQ(text({"{} {}", shape, tensor.shape}), "[N, 3] [N, 3]");
  EXPECT_EQ(text({"{}", ShapeId::kUnranked}), "[...]");
  EXPECT_EQ(text({"{} or {}", DType::kBool, DTypeSet(DType::kInt8)}), "bool or int8");
  EXPECT_EQ(text({"{} is {}", fact, DTypeOf(fact)}), "int64[N, 3] is int64");
  EXPECT_EQ(text({"{} in {}", 0.5, Range{0, 9, false}}), "0.5 in [0, 9]");
  EXPECT_EQ(text({"{}{}", 'x', std::string("yz")}), "xyz");
  EXPECT_EQ(text({"{}", joined(std::vector<int>{2, 3}, " or ")}), "2 or 3");
  EXPECT_EQ(text({"{}", operands_list(std::vector<int>{1, 2, 4})}), "{1}, {2} and {4}");
  EXPECT_EQ(text({"{} ({})", "all", Message("of {}", n)}), "all (of N)");
}

TEST(Messages, LeaveBracesOfTheirArguments) {
  FactStore facts;
  EXPECT_EQ(to_text({"mode `{}` of {}", "{}{0}", OperandRef(0)}, facts), "mode `{}{0}` of {0}");
}

class Capitals : public ValueNames {
 public:
  std::string operand(int index) const override { return std::string(1, static_cast<char>('A' + index)); }
};

TEST(Messages, NameValuesAsTheyAreAsked) {
  FactStore facts;
  EXPECT_EQ(to_text({"{} and {}: {}", OperandRef(0), OperandRef(1), ResultRef(0)}, facts, Capitals()), "A and B: {r0}");
}

}  // namespace
}  // namespace tensorlint::ops
