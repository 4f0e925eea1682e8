#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

struct ReshapeCase {
  const char* data;
  std::initializer_list<std::string_view> shape;
  std::int64_t allowzero;
  const char* result;
  Labels failures;
};

TEST(Reshape, Table) {
  const ReshapeCase cases[] = {
      {"float32[2, 3, 4]", {"-1", "4"}, 0, "float32[6, 4]", {}},
      {"float32[2, 3, 4]", {"0", "0", "2", "-1"}, 0, "float32[2, 3, 2, 2]", {}},
      {"float32[2, 3]", {}, 0, "float32[]", {"reshape_element_count"}},
      {"float32[1, 1]", {}, 0, "float32[]", {}},
      {"float32[0, 3]", {"3", "0"}, 1, "float32[3, 0]", {}},
      {"float32[0, 3]", {"0", "0"}, 1, "float32[0, 0]", {}},
      {"float32[2, 3]", {"0", "-1"}, 1, "float32[0, ?]", {"reshape_extents"}},
      {"float32[2, 3]", {"0", "-1"}, 0, "float32[2, 3]", {}},
      {"float32[2, 3]", {"2", "3", "0"}, 0, "float32[2, 3, ?]", {"reshape_zero_copies_axis"}},
      {"float32[2, 3]", {"-1", "-1"}, 0, "float32[?, ?]", {"reshape_extents"}},
      {"float32[2, 3]", {"-2", "3"}, 0, "float32[?, 3]", {"reshape_extents"}},
      {"float32[2, 3]", {"4", "-1"}, 0, "float32[4, ?]", {"reshape_element_count"}},
      {"float32[2, 3]", {"7"}, 0, "float32[7]", {"reshape_element_count"}},
      // Symbols.
      {"float32[B, S, 768]", {"B", "S", "12", "64"}, 0, "float32[B, S, 12, 64]", {}},
      {"float32[B, S, 768]", {"0", "-1", "12", "64"}, 0, "float32[B, S, 12, 64]", {}},
      {"float32[B, S, 768]", {"-1", "768"}, 0, "float32[B*S, 768]", {}},
      {"float32[B, S, 768]", {"B", "S", "-1"}, 0, "float32[B, S, 768]", {}},
      {"float32[B, S, 768]", {"B", "-1"}, 0, "float32[B, 768*S]", {}},
      {"float32[B, S, 768]", {"0", "0", "500"}, 0, "float32[B, S, 500]", {"reshape_element_count?"}},
      {"float32[N, 6]", {"-1", "4"}, 0, "float32[floor(3*N/2), 4]", {}},
      {"float32[N, 6]", {"-1", "K+1"}, 0, "float32[floor(6*N/(K + 1)), K + 1]", {}},
      {"float32[N, 6]", {"13"}, 0, "float32[13]", {"reshape_element_count"}},
      {"float32[N, 6]", {"12"}, 0, "float32[12]", {}},
      // M may be 0 and would copy N then: the number of elements says more.
      {"float32[N, 6]", {"M", "3"}, 0, "float32[2*N, 3]", {}},
      {"float32[N, 6]", {"M", "3"}, 1, "float32[M, 3]", {}},
      {"float32[N, 6]", {"M", "K"}, 0, "float32[?, ?]", {}},
      {"float32[N, 6]", {"N", "6"}, 0, "float32[N, 6]", {}},
      // What is not known.
      {"float32[?, 6]", {"-1", "3"}, 0, "float32[?, 3]", {}},
      {"float32[...]", {"-1", "3"}, 0, "float32[?, 3]", {}},
      {"float32[...]", {"0", "3"}, 0, "float32[?, 3]", {}},
      {"float32[4, 6]", {"?", "3"}, 0, "float32[8, 3]", {}},
      {"float32[4, 6]", {"?", "?"}, 0, "float32[?, ?]", {}},
      {"float32[4, 6]", {"-9223372036854775808"}, 0, "float32[?]", {"reshape_extents"}},
      {"float32[9223372036854775807, 2]", {"-1"}, 0, "float32[?]", {}},
  };
  for (const ReshapeCase& c : cases) {
    const Outcome outcome = Op("Reshape", 14).in(c.data).elements(c.shape).with("allowzero", c.allowzero).infer();
    SCOPED_TRACE(std::string(c.data) + " -> " + c.result);
    EXPECT_EQ(outcome.result(), c.result);
    EXPECT_EQ(outcome.failures, c.failures);
  }
}

TEST(Reshape, SaysBothSides) {
  const Outcome outcome = Op("Reshape", 13).in("float32[5, 3]").constant({2, 4}).infer();
  EXPECT_EQ(outcome.messages, Labels{"{0} of shape [5, 3] has 15 elements, shape [2, 4] asks for 8"});
  const Outcome tainted = Op("Reshape", 13).in("float32[5, 3]").constant({2, 4}).taint(Aspect::kShape).infer();
  EXPECT_EQ(tainted.failures, Labels{});
}

TEST(Reshape, OlderVersionsAndOddShapes) {
  EXPECT_EQ(Op("Reshape", 1).in("float32[2, 6]").ints("shape", {0, 3, -1}).infer().result(), "float32[2, 3, 2]");
  EXPECT_EQ(Op("Reshape", 13).in("float32[2, 6]").in("int64[3]").infer().result(), "float32[?, ?, ?]");
  EXPECT_EQ(Op("Reshape", 13).in("float32[2, 6]").in("int64[K]").infer().result(), "float32[...]");
  EXPECT_EQ(Op("Reshape", 13).in("float32[2, 6]").in("int64[1, 2]").infer().failures, Labels{"is_list"});
}

TEST(Flatten, AxisByVersion) {
  const auto flatten = [](int opset, std::int64_t axis) {
    return Op("Flatten", opset).in("float32[2, N, 4, 5]").with("axis", axis).infer();
  };
  EXPECT_EQ(flatten(13, 1).result(), "float32[2, 20*N]");
  EXPECT_EQ(flatten(13, 0).result(), "float32[1, 40*N]");
  EXPECT_EQ(flatten(13, 4).result(), "float32[40*N, 1]");
  EXPECT_EQ(flatten(13, -1).result(), "float32[8*N, 5]");
  EXPECT_EQ(flatten(13, 5).failures, Labels{"flatten_axis_in_range"});
  EXPECT_EQ(flatten(9, -1).failures, Labels{"flatten_axis_in_range"});
  EXPECT_EQ(Op("Flatten", 13).in("float32[]").with("axis", 0).infer().result(), "float32[1, 1]");
}

TEST(Squeeze, Axes) {
  EXPECT_EQ(Op("Squeeze", 13).in("float32[1, N, 1]").constant({-1}).infer().result(), "float32[1, N]");
  EXPECT_EQ(Op("Squeeze", 11).in("float32[1, N, 1]").ints("axes", {0, -1}).infer().result(), "float32[N]");
  EXPECT_EQ(Op("Squeeze", 13).in("float32[1, 3, 1]").infer().result(), "float32[3]");
  EXPECT_EQ(Op("Squeeze", 13).in("float32[1, N, 1]").infer().result(), "float32[...]");
  EXPECT_EQ(Op("Squeeze", 13).in("float32[1, 3]").in("int64[1]").infer().result(), "float32[?]");
  EXPECT_EQ(Op("Squeeze", 13).in("float32[1, 3]").constant({1}).infer().failures, Labels{"squeeze_extent_one"});
  EXPECT_EQ(Op("Squeeze", 13).in("float32[1, N]").constant({1}).infer().failures, Labels{});
  EXPECT_EQ(Op("Squeeze", 13).in("float32[1, 3]").constant({2}).infer().failures, Labels{"squeeze_axes_in_range"});
  EXPECT_EQ(Op("Squeeze", 13).in("float32[1, 3]").constant({0, -2}).infer().failures, Labels{"squeeze_axes_once?"});
}

TEST(Unsqueeze, Axes) {
  EXPECT_EQ(Op("Unsqueeze", 13).in("float32[N]").constant({0, -1}).infer().result(), "float32[1, N, 1]");
  EXPECT_EQ(Op("Unsqueeze", 11).in("float32[N, 3]").ints("axes", {1}).infer().result(), "float32[N, 1, 3]");
  EXPECT_EQ(Op("Unsqueeze", 13).in("float32[N]").in("int64[2]").infer().result(), "float32[?, ?, ?]");
  EXPECT_EQ(Op("Unsqueeze", 13).in("float32[N]").constant({2}).infer().failures, Labels{"unsqueeze_axes_in_range"});
  EXPECT_EQ(Op("Unsqueeze", 13).in("float32[N]").constant({0, -3}).infer().failures, Labels{"unsqueeze_axes_once"});
  Op scalar("Unsqueeze", 13);
  scalar.elements({"N"}, "int64[]").constant({0});
  EXPECT_EQ(scalar.content(scalar.infer()), "N");
}

}  // namespace
}  // namespace tensorlint::ops
