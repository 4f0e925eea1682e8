#include <cmath>

#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

TEST(ArgMax, AxisAndRange) {
  Op op("ArgMax", 13);
  const Outcome outcome = op.in("float32[N, 10, 4]").with("axis", 1).with("keepdims", 0).infer();
  EXPECT_EQ(outcome.result(), "int64[N, 4]");
  EXPECT_EQ(op.fact(outcome).range, (Range{0, 9, false}));
  EXPECT_EQ(Op("ArgMin", 13).in("float32[N, 10]").with("axis", -1).infer().result(), "int64[N, 1]");
  EXPECT_EQ(Op("ArgMax", 13).in("float32[N]").with("axis", 1).infer().failures, Labels{"arg_axis_in_range"});
}

TEST(TopK, CountByVersion) {
  const Outcome one = Op("TopK", 1).in("float32[N, 10]").with("k", 3).results(2).infer();
  EXPECT_EQ(one.results, (Labels{"float32[N, 3]", "int64[N, 3]"}));
  const Outcome symbolic = Op("TopK", 11).in("float32[N, 10]").elements({"K"}).with("axis", 0).results(2).infer();
  EXPECT_EQ(symbolic.results, (Labels{"float32[K, 10]", "int64[K, 10]"}));
  Op unknown("TopK", 11);
  const Outcome data = unknown.in("float32[N, 10]").in("int64[1]").results(2).infer();
  EXPECT_EQ(unknown.facts().dims_of(unknown.fact(data, 0).shape)[1],
            unknown.facts().dims_of(unknown.fact(data, 1).shape)[1]);
  EXPECT_FALSE(data.raw.repeatable);
  EXPECT_EQ(Op("TopK", 11).in("float32[N, 10]").constant({11}).results(2).infer().failures, Labels{"top_k_count"});
  EXPECT_EQ(Op("TopK", 11).in("float32[N, 10]").constant({3}, "int64[1, 1]").results(2).infer().failures,
            Labels{"top_k_count"});
  EXPECT_EQ(Op("TopK", 11).in("float32[N, 10]").constant({3}).with("axis", 2).results(2).infer().failures,
            Labels{"top_k_axis_in_range"});
}

TEST(CumSum, AxisAndFlags) {
  EXPECT_TRUE(Op("CumSum", 14).in("float32[N, 3]").constant({1}).with("reverse", 1).infer().failures.empty());
  EXPECT_EQ(Op("CumSum", 14).in("float32[N, 3]").constant({0, 1}).infer().failures, Labels{"cumulative_flags"});
  EXPECT_EQ(Op("CumSum", 14).in("float32[N, 3]").scalar(1).with("exclusive", -1).infer().failures,
            Labels{"cumulative_flags"});
}

TEST(OneHot, DepthAndAxis) {
  EXPECT_EQ(Op("OneHot", 11).in("int64[N]").scalar(5).in("float32[2]").infer().result(), "float32[N, 5]");
  EXPECT_EQ(Op("OneHot", 11).in("int64[N, 2]").floats({5}).in("float32[2]").with("axis", 0).infer().result(),
            "float32[5, N, 2]");
  EXPECT_EQ(Op("OneHot", 11).in("int64[N]").in("int64[]").in("float32[2]").with("axis", -2).infer().result(),
            "float32[?, N]");
  EXPECT_EQ(Op("OneHot", 11).in("int64[N]").scalar(5).in("float32[2]").with("axis", 2).infer().failures,
            Labels{"one_hot_axis_in_range"});
  EXPECT_EQ(Op("OneHot", 11).in("int64[N]").scalar(5).in("float32[3]").infer().failures, Labels{"one_hot_values"});
  EXPECT_EQ(Op("OneHot", 11).in("int64[N]").in("int64[2]").in("float32[2]").infer().failures, Labels{"one_hot_values"});
}

TEST(NonZero, Counts) {
  EXPECT_EQ(Op("NonZero", 13).in("float32[N, 3]").infer().result(), "int64[2, ?]");
  EXPECT_EQ(Op("NonZero", 13).in("float32[]").infer().result(), "int64[0, ?]");
  EXPECT_EQ(Op("NonZero", 13).constant({1, 0, 2}).infer().result(), "int64[1, 2]");
  // Exporters' way of counting up to N.
  EXPECT_EQ(Op("NonZero", 13).in("int64[N]").range(1, 1).infer().result(), "int64[1, N]");
}

TEST(Unique, FlattenedOrAlongAnAxis) {
  const Outcome flat = Op("Unique", 11).in("float32[2, 3]").results(4).infer();
  EXPECT_EQ(flat.results, (Labels{"float32[?]", "int64[?]", "int64[6]", "int64[?]"}));
  const Outcome along = Op("Unique", 11).in("float32[2, 3]").with("axis", -1).results(4).infer();
  EXPECT_EQ(along.results, (Labels{"float32[2, ?]", "int64[?]", "int64[3]", "int64[?]"}));
  EXPECT_EQ(Op("Unique", 11).constant({2, 1, 1, 3}).infer().result(), "int64[3]");
  EXPECT_EQ(Op("Unique", 11).floats({0.5, -0.0, 0, 0.5, 2}).infer().result(), "float32[3]");
  EXPECT_EQ(Op("Unique", 11).floats({0.5, std::nan("")}).infer().result(), "float32[?]");
  // Rows 1 2, 1 3, 1 2; columns 1 1 1, 2 3 2.
  EXPECT_EQ(Op("Unique", 11).constant({1, 2, 1, 3, 1, 2}, "int64[3, 2]").with("axis", 0).infer().result(),
            "int64[2, 2]");
  EXPECT_EQ(Op("Unique", 11).constant({1, 2, 1, 3, 1, 2}, "int64[3, 2]").with("axis", 1).infer().result(),
            "int64[3, 2]");
  EXPECT_EQ(Op("Unique", 11).constant({1, 1, 1, 1, 1, 2}, "int64[3, 2]").with("axis", 1).infer().result(),
            "int64[3, 2]");
  EXPECT_EQ(Op("Unique", 11).constant({1, 1, 1, 1, 1, 1}, "int64[3, 2]").with("axis", 1).infer().result(),
            "int64[3, 1]");
  EXPECT_EQ(Op("Unique", 11).in("float32[2]").with("axis", 1).infer().failures, Labels{"unique_axis_in_range"});
}

TEST(Compress, ConditionsAndAxes) {
  EXPECT_EQ(Op("Compress", 11).in("float32[2, 3]").constant({1, 0, 1}, "bool[3]").with("axis", 1).infer().result(),
            "float32[2, 2]");
  EXPECT_EQ(Op("Compress", 11).in("float32[2, 3]").constant({0, 1}, "bool[2]").infer().result(), "float32[1]");
  EXPECT_EQ(Op("Compress", 11).in("float32[2, 3]").in("bool[3]").with("axis", 1).infer().result(), "float32[2, ?]");
  EXPECT_EQ(Op("Compress", 11).in("float32[2, 3]").in("bool[3]").with("axis", 2).infer().failures,
            Labels{"compress_axis_in_range"});
  EXPECT_EQ(Op("Compress", 11).in("float32[2, 3]").in("bool[3, 1]").infer().failures, Labels{"compress_condition?"});
}

TEST(Masks, EyeLikeTriluCumulative) {
  EXPECT_EQ(Op("EyeLike", 9).in("int32[N, 3]").infer().result(), "int32[N, 3]");
  EXPECT_EQ(Op("EyeLike", 9).in("int32[N, 3]").with("dtype", 1).infer().result(), "float32[N, 3]");
  EXPECT_EQ(Op("EyeLike", 9).in("int32[N]").infer().failures, Labels{"eye_like_rank"});
  EXPECT_EQ(Op("EyeLike", 9).in("int32[N, 3]").with("dtype", 8).infer().failures, Labels{"eye_like_dtype"});
  EXPECT_EQ(Op("Trilu", 14).in("float32[N, 3]").infer().result(), "float32[N, 3]");
  EXPECT_EQ(Op("Trilu", 14).in("float32[N]").infer().failures, Labels{"trilu_rank"});
  EXPECT_EQ(Op("CumSum", 14).in("float32[N, 3]").scalar(-2).infer().result(), "float32[N, 3]");
  EXPECT_EQ(Op("CumProd", 26).in("float32[N, 3]").scalar(2).infer().failures, Labels{"cumulative_axis_in_range"});
}

TEST(ReverseSequence, Axes) {
  EXPECT_EQ(Op("ReverseSequence", 10).in("float32[4, N]").in("int64[N]").infer().result(), "float32[4, N]");
  EXPECT_EQ(Op("ReverseSequence", 10).in("float32[4, 3]").in("int64[4]").infer().failures,
            Labels{"reverse_sequence_shapes"});
  EXPECT_EQ(Op("ReverseSequence", 10).in("float32[4, 3]").in("int64[3]").with("time_axis", 1).infer().failures,
            Labels{"reverse_sequence_axes"});
  EXPECT_TRUE(Op("ReverseSequence", 10).in("float32[4, 2]").constant({4, 0}).infer().failures.empty());
  EXPECT_EQ(Op("ReverseSequence", 10).in("float32[4, 2]").constant({4, 5}).infer().failures,
            Labels{"reverse_sequence_lengths"});
  EXPECT_EQ(Op("ReverseSequence", 10)
                .in("float32[2, 4]")
                .constant({4, -1})
                .with("time_axis", 1)
                .with("batch_axis", 0)
                .infer()
                .failures,
            Labels{"reverse_sequence_lengths"});
}

TEST(Softmax, AxisByVersion) {
  Op op("Softmax", 13);
  const Outcome outcome = op.in("float32[N, 10]").infer();
  EXPECT_EQ(outcome.result(), "float32[N, 10]");
  EXPECT_EQ(op.fact(outcome).range, (Range{0, 1, true}));
  EXPECT_EQ(Op("Softmax", 13).in("float32[N]").with("axis", 1).infer().failures, Labels{"softmax_axis_in_range"});
  EXPECT_EQ(Op("LogSoftmax", 11).in("float32[N]").infer().failures,
            Labels{"softmax_axis_in_range"});  // axis 1 by default
  EXPECT_EQ(Op("Softmax", 1).in("float32[N]").infer().failures, Labels{"softmax_axis_in_range?"});
  EXPECT_TRUE(find_entry("", "LogSoftmax", 13)->opcode() == Opcode::kLogSoftmax);
}

TEST(Layout, BlocksAndPads) {
  EXPECT_EQ(Op("DepthToSpace", 13).in("float32[N, 8, 2, W]").with("blocksize", 2).infer().result(),
            "float32[N, 2, 4, 2*W]");
  EXPECT_EQ(Op("SpaceToDepth", 13).in("float32[N, 2, 4, W]").with("blocksize", 2).infer().result(),
            "float32[N, 8, 2, floor(W/2)]");
  EXPECT_EQ(Op("DepthToSpace", 13).in("float32[N, 6, 2, 2]").with("blocksize", 2).infer().failures,
            Labels{"block_divides"});
  EXPECT_EQ(Op("DepthToSpace", 13).in("float32[N, 8, 2]").with("blocksize", 2).infer().failures, Labels{"block_rank"});
  EXPECT_EQ(Op("DepthToSpace", 13).in("float32[N, 8, 2, 2]").with("blocksize", 0).infer().failures,
            Labels{"block_size"});
  EXPECT_EQ(Op("DepthToSpace", 13).in("float32[N, 8, 2, 2]").with("blocksize", 2).with("mode", "X").infer().failures,
            Labels{"block_mode"});
  EXPECT_EQ(Op("DepthToSpace", 13).in("float32[N, 8, 2, 2]").with("blocksize", INT64_MAX).infer().result(),
            "float32[N, ?, ?, ?]");

  EXPECT_EQ(Op("Pad", 13).in("float32[N, 4]").constant({1, 0, 2, -1}).infer().result(), "float32[N + 3, 3]");
  EXPECT_EQ(Op("Pad", 18).in("float32[N, 4]").constant({1, 2}).absent().constant({-1}).infer().result(),
            "float32[N, 7]");
  EXPECT_EQ(Op("Pad", 1).in("float32[2, 4]").ints("paddings", {1, 0, 0, 0}).infer().result(), "float32[3, 4]");
  EXPECT_EQ(Op("Pad", 2).in("float32[2, 4]").ints("pads", {1, 0, 0, 0}).with("value", 1.0).infer().result(),
            "float32[3, 4]");
  EXPECT_EQ(Op("Pad", 13).in("float32[N, 4]").in("int64[4]").infer().result(), "float32[?, ?]");
  EXPECT_EQ(Op("Pad", 13).in("float32[N, 4]").constant({1, 2}).infer().failures, Labels{"pad_length"});
  EXPECT_EQ(Op("Pad", 13).in("float32[N, 4]").constant({0, -5, 0, 0}).infer().failures, Labels{"pad_extent"});
  EXPECT_EQ(Op("Pad", 13).in("float32[N, 4]").constant({0, 0, 0, 0}).with("mode", "zeros").infer().failures,
            Labels{"pad_mode"});
  EXPECT_EQ(Op("Pad", 13).in("float32[N, 4]").constant({0, 4, 0, 0}).with("mode", "reflect").infer().failures,
            Labels{"pad_reflect"});
  EXPECT_TRUE(
      Op("Pad", 13).in("float32[N, 4]").constant({9, 3, 0, 3}).with("mode", "reflect").infer().failures.empty());
  EXPECT_TRUE(Op("Pad", 18)
                  .in("float32[N, 4]")
                  .constant({0, 0, 0, 0})
                  .with("mode", "wrap")
                  .infer()
                  .failures.empty());  // exporters write it before opset 19
  EXPECT_EQ(Op("Pad", 18).in("float32[N, 4]").constant({1, 2}).absent().constant({2}).infer().failures,
            Labels{"pad_axes_in_range"});
  EXPECT_EQ(Op("Pad", 18).in("float32[N, 4]").constant({1, 2, 3, 4}).absent().constant({1, -1}).infer().failures,
            Labels{"pad_axes_once"});
}

TEST(GatherElements, ShapesAndIndices) {
  EXPECT_EQ(Op("GatherElements", 13).in("float32[3, N]").in("int64[2, N]").infer().result(), "float32[2, N]");
  EXPECT_EQ(Op("GatherElements", 13).in("float32[3]").in("int64[2, 1]").infer().failures,
            Labels{"gather_elements_ranks"});
  EXPECT_EQ(Op("GatherElements", 13).in("float32[3, 2]").in("int64[2, 3]").infer().failures,
            Labels{"gather_elements_extents"});
  EXPECT_EQ(Op("GatherElements", 13).in("float32[3]").constant({0, 3}).infer().failures,
            Labels{"gather_elements_index_in_range"});
  EXPECT_EQ(Op("GatherElements", 13).in("float32[3]").in("int64[1]").with("axis", 1).infer().failures,
            Labels{"gather_elements_axis_in_range"});
}

TEST(GatherND, BatchDims) {
  EXPECT_EQ(Op("GatherND", 13).in("float32[2, 3, 4]").in("int64[5, 2]").infer().result(), "float32[5, 4]");
  EXPECT_EQ(Op("GatherND", 13).in("float32[B, 3, 4]").in("int64[B, 5, 1]").with("batch_dims", 1).infer().result(),
            "float32[B, 5, 4]");
  EXPECT_EQ(Op("GatherND", 13).in("float32[2, 3]").in("int64[2]").infer().result(), "float32[]");
  EXPECT_EQ(Op("GatherND", 13).in("float32[2, 3]").in("int64[5, K]").infer().result(), "float32[...]");
  EXPECT_EQ(Op("GatherND", 13).in("float32[2, 3]").in("int64[5, 3]").infer().failures, Labels{"gather_nd_shapes"});
  EXPECT_EQ(Op("GatherND", 13).in("float32[2, 3]").in("int64[5, 1]").with("batch_dims", 2).infer().failures,
            Labels{"gather_nd_batch_dims"});
  EXPECT_EQ(Op("GatherND", 13).in("float32[2, 3]").constant({1, 2, 0, 3}, "int64[2, 2]").infer().failures,
            Labels{"gather_nd_index_in_range"});
}

TEST(Scatter, ShapesAndIndices) {
  for (const int opset : {9, 11, 18}) {
    const char* const name = opset == 9 ? "Scatter" : "ScatterElements";
    EXPECT_EQ(Op(name, opset).in("float32[3, N]").in("int64[2, N]").in("float32[2, N]").infer().result(),
              "float32[3, N]");
    EXPECT_EQ(Op(name, opset).in("float32[3]").in("int64[2]").in("float32[1]").infer().failures,
              Labels{"scatter_shapes"});
    EXPECT_EQ(Op(name, opset).in("float32[3]").constant({-4}).in("float32[1]").infer().failures,
              Labels{"scatter_index_in_range"});
    EXPECT_EQ(Op(name, opset).in("float32[3]").in("int64[1]").in("float32[1]").with("axis", 1).infer().failures,
              Labels{"scatter_axis_in_range"});
  }
  EXPECT_EQ(Op("ScatterElements", 18)
                .in("float32[3]")
                .in("int64[1]")
                .in("float32[1]")
                .with("reduction", "sum")
                .infer()
                .failures,
            Labels{"scatter_reduction?"});
  EXPECT_EQ(Op("ScatterND", 18).in("float32[4, 5, 6]").in("int64[2, 1]").in("float32[2, 5, 6]").infer().result(),
            "float32[4, 5, 6]");
  EXPECT_EQ(Op("ScatterND", 18).in("float32[4, 5]").in("int64[2, 1]").in("float32[2, 6]").infer().failures,
            Labels{"scatter_nd_shapes"});
  EXPECT_EQ(Op("ScatterND", 18).in("float32[4]").constant({4}, "int64[1, 1]").in("float32[1]").infer().failures,
            Labels{"scatter_nd_index_in_range"});
}

}  // namespace
}  // namespace tensorlint::ops
