#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

TEST(Gather, ShapesAndContents) {
  EXPECT_EQ(Op("Gather", 13).in("float32[N, 3, 4]").in("int64[5, 6]").with("axis", 1).infer().result(),
            "float32[N, 5, 6, 4]");
  EXPECT_EQ(Op("Gather", 13).in("float32[N, 3]").in("int64[]").with("axis", -1).infer().result(), "float32[N]");
  Op shape("Gather", 13), rows("Gather", 13);
  EXPECT_EQ(shape.content(shape.elements({"N", "3", "?"}).constant({0, -1, 1}).infer()), "N ? 3");
  const Outcome picked = rows.constant({1, 2, 3, 4}, "int64[2, 2]").constant({1}).with("axis", 1).infer();
  EXPECT_EQ(picked.result(), "int64[2, 1]");
  EXPECT_EQ(rows.content(picked), "2 4");
}

TEST(Gather, IndexOutside) {
  const Outcome outcome = Op("Gather", 13).in("float32[N, 3]").constant({0, 3}).with("axis", 1).infer();
  EXPECT_EQ(outcome.failures, Labels{"gather_index_in_range"});
  EXPECT_EQ(outcome.messages, Labels{"index 3 of {1} is outside [-3, 3) of axis 1 of {0}"});
  EXPECT_EQ(Op("Gather", 13).in("float32[3]").constant({-4}).infer().failures, Labels{"gather_index_in_range"});
  EXPECT_EQ(Op("Gather", 13).in("float32[3]").constant({-3, 2}).infer().failures, Labels{});
  EXPECT_EQ(Op("Gather", 13).in("float32[N]").constant({5}).infer().failures, Labels{});
  EXPECT_EQ(Op("Gather", 13).in("float32[N]").elements({"N"}).infer().failures, Labels{"gather_index_in_range"});
  EXPECT_EQ(Op("Gather", 13).in("float32[10]").in("int64[4]").range(10, 20).infer().failures,
            Labels{"gather_index_in_range"});
  EXPECT_EQ(Op("Gather", 13).in("float32[10]").in("int64[4]").range(9, 20).infer().failures, Labels{});
  EXPECT_EQ(Op("Gather", 13).in("float32[10]").in("int64[0]").range(10, 20).infer().failures, Labels{});
  EXPECT_EQ(Op("Gather", 13).in("float32[3]").constant({0}).with("axis", 1).infer().failures,
            Labels{"gather_axis_in_range"});
}

struct SliceCase {
  const char* data;
  const char *start, *end, *step;
  const char* result;
};

TEST(Slice, Table) {
  const SliceCase cases[] = {
      {"float32[10]", "1", "4", "1", "float32[3]"},
      {"float32[10]", "-3", "9223372036854775807", "1", "float32[3]"},
      {"float32[10]", "0", "-1", "1", "float32[9]"},
      {"float32[10]", "1", "1000", "2", "float32[5]"},
      {"float32[10]", "20", "30", "1", "float32[0]"},
      {"float32[10]", "5", "2", "1", "float32[0]"},
      {"float32[10]", "-1", "-9223372036854775808", "-1", "float32[10]"},
      {"float32[10]", "20", "0", "-4", "float32[3]"},
      {"float32[10]", "9", "0", "-9223372036854775808", "float32[1]"},
      {"float32[0]", "-1", "-9223372036854775808", "-1", "float32[0]"},
      {"float32[9223372036854775807]", "0", "9223372036854775807", "9223372036854775807", "float32[1]"},
      {"float32[N]", "0", "9223372036854775807", "1", "float32[N]"},
      {"float32[N]", "1", "2147483647", "1", "float32[max(N - 1, 0)]"},
      {"float32[N]", "0", "-1", "1", "float32[max(N - 1, 0)]"},
      {"float32[N]", "-1", "9223372036854775807", "1", "float32[min(N, 1)]"},
      {"float32[N]", "0", "N", "1", "float32[N]"},
      {"float32[N]", "-1", "-9223372036854775808", "-1", "float32[N]"},
      {"float32[2048]", "0", "S", "1", "float32[min(S, 2048)]"},
      {"float32[N]", "?", "5", "1", "float32[?]"},
      {"float32[N]", "0", "5", "?", "float32[?]"},
      {"float32[?]", "0", "5", "1", "float32[?]"},
  };
  for (const SliceCase& c : cases) {
    SCOPED_TRACE(std::string(c.data) + " from " + c.start + " to " + c.end + " by " + c.step);
    const Outcome outcome =
        Op("Slice", 13).in(c.data).elements({c.start}).elements({c.end}).constant({0}).elements({c.step}).infer();
    EXPECT_EQ(outcome.result(), c.result);
    EXPECT_EQ(outcome.failures, Labels{});
  }
}

TEST(Slice, LastElementsOfASymbol) {
  // x[-S:], where S may be 0: everything then.
  const auto last = [](std::string_view data) {
    Op op("Slice", 13);
    DimPool& pool = op.facts().dims();
    Fact start = op.tensor("int64[1]");
    start.content = op.facts().intern_content({{pool.sub(pool.constant(0), pool.symbol("S"))}, {}});
    return op.in(data).in(start).constant({INT64_MAX}).constant({0}).infer().result();
  };
  EXPECT_EQ(last("float32[S]"), "float32[S]");
  EXPECT_EQ(last("float32[N]"), "float32[max(N - mod(max(-S + N, 0), max(N, 1)), 0)]");
}

TEST(Slice, VersionsAxesAndContents) {
  EXPECT_EQ(
      Op("Slice", 1).in("float32[N, 10]").ints("axes", {1}).ints("starts", {2}).ints("ends", {-2}).infer().result(),
      "float32[N, 6]");
  EXPECT_EQ(Op("Slice", 10).in("float32[8, 10]").constant({2, 1}).constant({4, 3}).infer().result(), "float32[2, 2]");
  EXPECT_EQ(Op("Slice", 13).in("float32[8, 10]").in("int64[1]").in("int64[1]").constant({1}).infer().result(),
            "float32[8, ?]");
  EXPECT_EQ(Op("Slice", 13).in("float32[8, 10]").in("int64[1]").in("int64[1]").infer().result(), "float32[?, 10]");
  EXPECT_EQ(Op("Slice", 13).in("float32[8, 10]").in("int64[1]").in("int64[1]").in("int64[1]").infer().result(),
            "float32[?, ?]");
  Op reversed("Slice", 13), block("Slice", 13);
  EXPECT_EQ(
      reversed.content(
          reversed.elements({"N", "3", "4"}).constant({-1}).constant({-100}).constant({0}).constant({-2}).infer()),
      "4 N");
  EXPECT_EQ(block.content(
                block.constant({1, 2, 3, 4, 5, 6}, "int64[2, 3]").constant({1}).constant({3}).constant({-1}).infer()),
            "2 3 5 6");
  const auto broken = [](std::vector<std::int64_t> starts, std::vector<std::int64_t> axes,
                         std::vector<std::int64_t> steps) {
    const std::vector<std::int64_t> ends(starts.size(), 5);
    return Op("Slice", 13)
        .in("float32[8, 10]")
        .constant(starts)
        .constant(ends)
        .constant(axes)
        .constant(steps)
        .infer()
        .failures;
  };
  EXPECT_EQ(broken({0}, {2}, {1}), Labels{"slice_axes_in_range"});
  EXPECT_EQ(broken({0, 0}, {1, -1}, {1, 1}), Labels{"slice_axes_once"});
  EXPECT_EQ(broken({0, 0}, {1}, {1, 1}), Labels{"slice_lengths"});
  EXPECT_EQ(broken({0}, {1}, {0}), Labels{"slice_step"});
}

TEST(Concat, ShapesAndContents) {
  Op shape("Concat", 13), grid("Concat", 13), partly("Concat", 13);
  const Outcome list = shape.elements({"N", "3"}).constant({-1}).with("axis", 0).infer();
  EXPECT_EQ(list.result(), "int64[3]");
  EXPECT_EQ(shape.content(list), "N 3 -1");
  const Outcome joined =
      grid.constant({1, 2}, "int64[2, 1]").constant({3, 4, 5, 6}, "int64[2, 2]").with("axis", -1).infer();
  EXPECT_EQ(grid.content(joined), "1 3 4 2 5 6");
  EXPECT_EQ(partly.content(partly.in("int64[1]").constant({4}).with("axis", 0).infer()), "? 4");
  EXPECT_EQ(Op("Concat", 13).in("float32[N, 3]").in("float32[M, 3]").with("axis", 0).infer().result(),
            "float32[N + M, 3]");
  EXPECT_EQ(Op("Concat", 13).in("float32[N, ?]").in("float32[M, 3]").with("axis", 0).infer().result(),
            "float32[N + M, 3]");
  EXPECT_EQ(Op("Concat", 13).in("float32[...]").in("float32[2, 3]").with("axis", 0).infer().result(), "float32[?, 3]");
  EXPECT_EQ(Op("Concat", 1).in("float32[2, 3]").in("float32[2, 3]").infer().result(), "float32[2, 6]");
  EXPECT_EQ(Op("Concat", 13).in("float32[2, 3]").in("float32[2, 4]").with("axis", 0).infer().failures,
            Labels{"concat_extents"});
  EXPECT_EQ(Op("Concat", 13).in("float32[N, 3]").in("float32[M, 4]").with("axis", 1).infer().failures, Labels{});
  EXPECT_EQ(Op("Concat", 13).in("float32[2, 3]").in("float32[2]").with("axis", 0).infer().failures,
            Labels{"concat_ranks"});
  EXPECT_EQ(Op("Concat", 13).in("float32[2, 3]").in("float32[0]").with("axis", 0).infer().failures, Labels{});
  EXPECT_EQ(Op("Concat", 13).in("float32[2, 3]").in("float32[?]").with("axis", 0).infer().failures, Labels{});
  EXPECT_EQ(Op("Concat", 13).in("float32[2, 3]").in("float32[N]").with("axis", 0).infer().failures,
            Labels{"concat_ranks"});
  EXPECT_EQ(Op("Concat", 13).in("float32[2, 3]").with("axis", 2).infer().failures, Labels{"concat_axis_in_range"});
  EXPECT_EQ(Op("Concat", 13).in("int64[]").with("axis", 0).infer().failures, Labels{"concat_axis_in_range"});
}

TEST(Expand, TakesNoNegativeExtent) {
  const Outcome negative = Op("Expand", 13).in("float32[3, 1]").constant({3, -1}).infer();
  EXPECT_EQ(negative.failures, Labels{"expand_shapes"});
  EXPECT_EQ(negative.messages[0], "the shape {1} asks for the extent -1");
}

TEST(Lists, HaveOneAxis) {
  EXPECT_EQ(Op("Slice", 13).in("float32[4]").in("int64[]").constant({2}).infer().failures, Labels{"is_list"});
  EXPECT_EQ(Op("Slice", 13).in("float32[4]").constant({0}).constant({2}, "int64[1, 1]").infer().failures,
            Labels{"is_list"});
  EXPECT_EQ(Op("Tile", 13).in("float32[4]").constant({2}, "int64[1, 1]").infer().failures, Labels{"is_list"});
  EXPECT_EQ(Op("Squeeze", 13).in("float32[1, 4]").scalar(0).infer().failures, Labels{"is_list"});
  EXPECT_EQ(Op("ReduceSum", 13).in("float32[1, 4]").scalar(0).infer().failures, Labels{"is_list"});
  EXPECT_EQ(Op("Pad", 13).in("float32[4]").constant({0, 1}, "int64[1, 2]").infer().failures, Labels{"is_list"});
  EXPECT_EQ(Op("Slice", 13).in("float32[4]").in("int64[]").constant({2}).infer().messages[0],
            "{1} of shape [] has rank 0, Slice expects a list of rank 1");
  EXPECT_EQ(Op("Reshape", 13).constant({2, 2}).in("float32[1, 4]").infer().failures,
            Labels{"allowed_type"});                                                            // swapped: said once
  EXPECT_EQ(Op("Unsqueeze", 13).in("float32[4]").scalar(0).infer().result(), "float32[1, 4]");  // onnxruntime takes it
}

TEST(Split, SizesByVersion) {
  const auto results = [](Op& op, std::uint32_t count) {
    const Outcome outcome = op.results(count).infer();
    std::string text;
    for (const std::string& result : outcome.results) text += result + " ";
    for (const std::string& failure : outcome.failures) text += failure;
    return text;
  };
  Op even("Split", 13), uneven("Split", 18), symbolic("Split", 13), sizes("Split", 13), attribute("Split", 11),
      content("Split", 13);
  EXPECT_EQ(results(even.in("float32[6, 4]"), 2), "float32[3, 4] float32[3, 4] ");
  EXPECT_EQ(results(uneven.in("float32[7]").with("num_outputs", 3), 3), "float32[3] float32[3] float32[1] ");
  EXPECT_EQ(results(symbolic.in("float32[N, 3]").with("axis", -2), 2),
            "float32[floor(N/2), 3] float32[floor(N/2), 3] ");
  EXPECT_EQ(results(sizes.in("float32[6]").constant({2, 4}), 2), "float32[2] float32[4] ");
  EXPECT_EQ(results(attribute.in("float32[2, 6]").ints("split", {1, 5}).with("axis", 1), 2),
            "float32[2, 1] float32[2, 5] ");
  Op rest("Split", 13), wild("Split", 18);
  EXPECT_EQ(results(rest.in("float32[N]").elements({"2", "?"}), 2), "float32[2] float32[N - 2] ");
  EXPECT_EQ(results(wild.in("float32[5]").with("num_outputs", 4), 4),
            "float32[?] float32[?] float32[?] float32[?] split_count");
  const Outcome parts = content.elements({"N", "3", "4"}).constant({1, 2}).results(2).infer();
  EXPECT_EQ(content.content(parts, 0), "N");
  EXPECT_EQ(content.content(parts, 1), "3 4");
  Op odd("Split", 13), sum("Split", 13), count("Split", 13), axis("Split", 13), both("Split", 18),
      negative("Split", 13);
  EXPECT_EQ(odd.in("float32[5]").results(2).infer().failures, Labels{"split_even"});
  EXPECT_EQ(sum.in("float32[6]").constant({2, 3}).results(2).infer().failures, Labels{"split_sizes"});
  EXPECT_EQ(negative.in("float32[6]").constant({7, -1}).results(2).infer().failures, Labels{"split_sizes"});
  EXPECT_EQ(count.in("float32[6]").constant({2, 4}).results(3).infer().failures, Labels{"split_count"});
  EXPECT_EQ(both.in("float32[6]").constant({2, 4}).with("num_outputs", 2).results(2).infer().failures,
            Labels{"split_count"});
  EXPECT_EQ(Op("Split", 18).in("float32[6]").with("num_outputs", 2).infer().result(),
            "float32[3]");  // the second is left out
  EXPECT_EQ(Op("Split", 18).in("float32[2]").with("num_outputs", 3).results(3).infer().failures, Labels{"split_count"});
  EXPECT_EQ(Op("Split", 18).in("float32[6]").with("num_outputs", 1).results(2).infer().failures, Labels{"split_count"});
  EXPECT_EQ(axis.in("float32[6]").with("axis", 1).results(2).infer().failures, Labels{"split_axis_in_range"});
}

TEST(Transpose, PermutationAndContents) {
  EXPECT_EQ(Op("Transpose", 13).in("float32[N, 3, 4]").infer().result(), "float32[4, 3, N]");
  EXPECT_EQ(Op("Transpose", 13).in("float32[N, 3, 4]").ints("perm", {1, 2, 0}).infer().result(), "float32[3, 4, N]");
  EXPECT_EQ(Op("Transpose", 13).in("float32[...]").ints("perm", {1, 0}).infer().result(), "float32[?, ?]");
  Op content("Transpose", 13);
  EXPECT_EQ(content.content(content.constant({1, 2, 3, 4, 5, 6}, "int64[2, 3]").infer()), "1 4 2 5 3 6");
  EXPECT_EQ(Op("Transpose", 13).in("float32[2, 3]").ints("perm", {0, 2}).infer().failures,
            Labels{"transpose_axes_in_range"});
  EXPECT_EQ(Op("Transpose", 13).in("float32[2, 3]").ints("perm", {0, 0}).infer().failures,
            Labels{"transpose_axes_once"});
  EXPECT_EQ(Op("Transpose", 13).in("float32[2, 3]").ints("perm", {0}).infer().failures, Labels{"transpose_length"});
}

TEST(Expand, Broadcasts) {
  EXPECT_EQ(Op("Expand", 13).in("float32[3, 1]").elements({"N", "1", "5"}).infer().result(), "float32[N, 3, 5]");
  EXPECT_EQ(Op("Expand", 13).in("float32[3, 1]").in("int64[2]").infer().result(), "float32[3, ?]");
  EXPECT_EQ(Op("Expand", 13).in("float32[3, 1]").in("int64[K]").infer().result(), "float32[...]");
  Op content("Expand", 13);
  EXPECT_EQ(content.content(content.constant({1, 2}, "int64[2, 1]").constant({2, 2}).infer()), "1 1 2 2");
  EXPECT_EQ(Op("Expand", 13).in("float32[3, 2]").constant({4, 2}).infer().failures, Labels{"expand_shapes"});
  EXPECT_EQ(Op("Expand", 13).in("float32[3, 2]").in("int64[1, 2]").infer().failures, Labels{"is_list?"});
}

TEST(Tile, Repeats) {
  EXPECT_EQ(Op("Tile", 13).in("float32[N, 3]").elements({"2", "M"}).infer().result(), "float32[2*N, 3*M]");
  EXPECT_EQ(Op("Tile", 13).in("float32[N, 3]").in("int64[2]").infer().result(), "float32[?, ?]");
  Op content("Tile", 13);
  EXPECT_EQ(content.content(content.constant({1, 2}, "int64[1, 2]").constant({2, 2}).infer()), "1 2 1 2 1 2 1 2");
  EXPECT_EQ(Op("Tile", 13).in("float32[N, 3]").constant({2}).infer().failures, Labels{"tile_repeats_length"});
  EXPECT_EQ(Op("Tile", 13).in("float32[N]").constant({-2}).infer().failures, Labels{"tile_repeats_range"});
}

TEST(Logic, ContentsOfShapes) {
  // The pattern that exporters write for expand: -1 keeps the extent.
  Op equal("Equal", 13), where("Where", 9), never("Equal", 13);
  EXPECT_EQ(equal.content(equal.constant({2, -1}).constant({-1}).infer()), "0 1");
  EXPECT_EQ(never.content(never.elements({"N", "N"}).elements({"-1", "N"}).infer()), "0 1");
  EXPECT_EQ(where.content(where.constant({0, 1, 0}, "bool[3]").constant({1, 1, 1}).elements({"N", "-1", "5"}).infer()),
            "N 1 5");
  Op less("Less", 13), both("And", 7), either("Or", 7), odd("Xor", 7), no("Not", 1);
  EXPECT_EQ(less.content(less.elements({"N", "N", "2"}).elements({"0", "M", "3"}).infer()), "0 ? 1");
  EXPECT_EQ(both.content(both.elements({"1", "?", "?"}, "bool[3]").elements({"1", "0", "1"}, "bool[3]").infer()),
            "1 0 ?");
  EXPECT_EQ(either.content(either.elements({"0", "?"}, "bool[2]").elements({"0", "1"}, "bool[2]").infer()), "0 1");
  EXPECT_EQ(odd.content(odd.elements({"0", "1"}, "bool[2]").elements({"1", "1"}, "bool[2]").infer()), "1 0");
  EXPECT_EQ(no.content(no.elements({"0", "1"}, "bool[2]").infer()), "1 0");
  EXPECT_EQ(Op("Less", 13).in("float32[N, 1]").in("float32[3]").infer().result(), "bool[N, 3]");
  EXPECT_EQ(Op("Where", 9).in("bool[2]").in("float32[3]").in("float32[]").infer().failures, Labels{"broadcastable"});
}

}  // namespace
}  // namespace tensorlint::ops
