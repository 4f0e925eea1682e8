#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

TEST(Recurrent, Shapes) {
  EXPECT_EQ(Op("LSTM", 14)
                .in("float32[T, N, 3]")
                .in("float32[2, 16, 3]")
                .in("float32[2, 16, 4]")
                .with("hidden_size", 4)
                .with("direction", "bidirectional")
                .results(3)
                .infer()
                .results,
            (Labels{"float32[T, 2, N, 4]", "float32[2, N, 4]", "float32[2, N, 4]"}));
  EXPECT_EQ(Op("GRU", 14)
                .in("float32[N, T, 3]")
                .in("float32[1, 12, 3]")
                .in("float32[1, 12, 4]")
                .with("layout", 1)
                .results(2)
                .infer()
                .results,
            (Labels{"float32[N, T, 1, 4]", "float32[N, 1, 4]"}));
  EXPECT_EQ(Op("RNN", 7)
                .in("float32[T, N, 3]")
                .in("float32[1, 4, 3]")
                .in("float32[...]")
                .with("hidden_size", 4)
                .infer()
                .result(),
            "float32[T, 1, N, 4]");
}

TEST(Recurrent, BatchFromTheState) {
  EXPECT_EQ(Op("LSTM", 14)
                .in("float32[...]")
                .in("float32[1, 16, 3]")
                .in("float32[1, 16, 4]")
                .absent()
                .absent()
                .in("float32[1, N, 4]")
                .in("float32[...]")
                .results(3)
                .infer()
                .results,
            (Labels{"float32[?, 1, N, 4]", "float32[1, N, 4]", "float32[1, N, 4]"}));
  EXPECT_EQ(Op("LSTM", 14)
                .in("float32[T, ?, 3]")
                .in("float32[1, 16, 3]")
                .in("float32[1, 16, 4]")
                .absent()
                .in("int32[N]")
                .infer()
                .result(),
            "float32[T, 1, N, 4]");
}

TEST(Recurrent, Broken) {
  const auto gru = [](const char* data, const char* weights, const char* state, const char* direction) {
    return Op("GRU", 14)
        .in(data)
        .in(weights)
        .in("float32[1, 12, 4]")
        .absent()
        .absent()
        .in(state)
        .with("direction", direction)
        .infer()
        .failures;
  };
  EXPECT_TRUE(gru("float32[5, 2, 3]", "float32[1, 12, 3]", "float32[1, 2, 4]", "forward").empty());
  EXPECT_EQ(gru("float32[5, 2, 3]", "float32[1, 12, 3]", "float32[1, 2, 4]", "backward"),
            Labels{"recurrent_direction"});
  EXPECT_EQ(gru("float32[5, 3]", "float32[1, 12, 3]", "float32[1, 2, 4]", "forward"), Labels{"recurrent_data_rank"});
  EXPECT_EQ(gru("float32[5, 2, 3]", "float32[1, 8, 3]", "float32[1, 2, 4]", "forward"), Labels{"recurrent_weights"});
  EXPECT_EQ(gru("float32[5, 2, 3]", "float32[1, 12, 3]", "float32[1, 5, 4]", "forward"), Labels{"recurrent_states"});
}

TEST(Attention, Shapes) {
  EXPECT_EQ(Op("Attention", 23)
                .in("float32[B, 8, Q, 16]")
                .in("float32[B, 2, K, 16]")
                .in("float32[B, 2, K, 32]")
                .results(4)
                .infer()
                .results,
            (Labels{"float32[B, 8, Q, 32]", "float32[B, 2, K, 16]", "float32[B, 2, K, 32]", "float32[B, 8, Q, K]"}));
  EXPECT_EQ(
      Op("Attention", 24)
          .in("float32[B, Q, 64]")
          .in("float32[B, K, 32]")
          .in("float32[B, K, 48]")
          .absent()
          .in("float32[B, 4, P, 8]")
          .in("float32[B, 4, P, 12]")
          .with("q_num_heads", 8)
          .with("kv_num_heads", 4)
          .results(4)
          .infer()
          .results,
      (Labels{"float32[B, Q, 96]", "float32[B, 4, K + P, 8]", "float32[B, 4, K + P, 12]", "float32[B, 8, Q, K + P]"}));
  EXPECT_EQ(Op("LinearAttention", 27)
                .in("float32[B, T, 32]")
                .in("float32[B, T, 16]")
                .in("float32[B, T, 8]")
                .with("q_num_heads", 4)
                .with("kv_num_heads", 2)
                .with("update_rule", "linear")
                .results(2)
                .infer()
                .results[0],
            "float32[B, T, 16]");
  EXPECT_EQ(Op("CausalConvWithState", 27).in("float32[N, 6, L]").in("float32[6, 1, 4]").results(2).infer().results,
            (Labels{"float32[N, 6, L]", "float32[N, 6, 3]"}));
  EXPECT_EQ(Op("RotaryEmbedding", 23)
                .in("float32[B, T, 64]")
                .in("float32[50, 8]")
                .in("float32[50, 8]")
                .in("int64[B, T]")
                .with("num_heads", 4)
                .infer()
                .failures,
            Labels{});
}

TEST(Attention, Mask) {
  const auto attention = [](const char* mask) {
    return Op("Attention", 23)
        .in("float32[B, 4, Q, 8]")
        .in("float32[B, 2, K, 8]")
        .in("float32[B, 2, K, 8]")
        .in(mask)
        .infer();
  };
  for (const char* fits : {"bool[K]", "bool[Q, K]", "bool[4, Q, K]", "bool[1, 1, 1, K]", "bool[B, 4, Q, K]",
                           "float32[N, 1, Q, M]", "bool[...]"})
    EXPECT_TRUE(attention(fits).failures.empty()) << fits;
  for (const char* misfit : {"bool[]", "bool[2, Q, K]", "bool[1, B, 4, Q, K]"})
    EXPECT_EQ(attention(misfit).failures, Labels{"attention_mask"}) << misfit;
  EXPECT_EQ(attention("bool[2, Q, K]").messages[0],
            "mask {3} of shape [2, Q, K] does not stretch to the scores' shape [B, 4, Q, K]");
  EXPECT_EQ(Op("Attention", 23)
                .in("float32[2, 4, 3, 8]")
                .in("float32[2, 4, 5, 8]")
                .in("float32[2, 4, 5, 8]")
                .in("bool[3, 6]")
                .infer()
                .failures,
            Labels{"attention_mask"});
  EXPECT_EQ(Op("Attention", 23)
                .in("float32[2, 4, 3, 8]")
                .in("float32[2, 4, 5, 8]")
                .in("float32[2, 4, 5, 8]")
                .with("q_num_heads", 5)
                .infer()
                .failures,
            Labels{"attention_heads"});
  EXPECT_EQ(Op("TensorScatter", 24).in("float32[2, 9, 4]").in("float32[2, 3, 4]").with("mode", "foo").infer().failures,
            Labels{"attention_choice"});
}

TEST(Recurrent, WrongHiddenSizeIsSaidOnce) {
  const Outcome lstm = Op("LSTM", 22)
                           .in("float32[4, 2, 3]")
                           .in("float32[1, 8, 3]")
                           .in("float32[1, 8, 2]")
                           .absent()
                           .absent()
                           .in("float32[1, 2, 2]")
                           .in("float32[1, 2, 2]")
                           .with("hidden_size", 3)
                           .infer();
  EXPECT_EQ(lstm.failures, Labels{"recurrent_weights"});  // no state is blamed
  EXPECT_EQ(lstm.messages[0], "`hidden_size` of LSTM is 3, but {1} and {2} are weights for hidden size 2");
}

TEST(Recurrent, WrongDirectionIsNamed) {
  const auto gru = [](const char* direction, const char* weights, const char* recurrence, const char* bias) {
    return Op("GRU", 22)
        .in("float32[4, 2, 3]")
        .in(weights)
        .in(recurrence)
        .in(bias)
        .with("hidden_size", 2)
        .with("direction", direction)
        .results(2)
        .infer();
  };
  const Outcome forward = gru("forward", "float32[2, 6, 3]", "float32[2, 6, 2]", "float32[2, 12]");
  EXPECT_EQ(forward.messages,
            Labels{"`direction` of GRU is forward, but {1}, {2} and {3} are weights for 2 directions (bidirectional)"});
  EXPECT_EQ(forward.results, (Labels{"float32[4, 2, 2, 2]", "float32[2, 2, 2]"}));
  const Outcome both = gru("bidirectional", "float32[1, 6, 3]", "float32[1, 6, 2]", "float32[1, 12]");
  EXPECT_EQ(both.messages, Labels{"`direction` of GRU is bidirectional, but {1}, {2} and {3} are weights for 1 "
                                  "direction (forward or reverse)"});
  // One operand against the rest: that operand.
  EXPECT_EQ(gru("forward", "float32[1, 6, 3]", "float32[2, 6, 2]", "float32[1, 12]").messages.size(), 1);
  EXPECT_EQ(gru("forward", "float32[1, 6, 3]", "float32[2, 6, 2]", "float32[1, 12]").messages[0].find("`direction`"),
            std::string::npos);
  EXPECT_TRUE(gru("forward", "float32[1, 6, 3]", "float32[1, 6, 2]", "float32[1, 12]").failures.empty());
}

TEST(Recurrent, Lengths) {
  const auto gru = [](std::vector<std::int64_t> lengths) {
    return Op("GRU", 22)
        .in("float32[4, 2, 3]")
        .in("float32[1, 6, 3]")
        .in("float32[1, 6, 2]")
        .absent()
        .constant(std::move(lengths), "int32[2]")
        .with("hidden_size", 2)
        .infer();
  };
  EXPECT_TRUE(gru({4, 0}).failures.empty());
  EXPECT_EQ(gru({4, 5}).failures, Labels{"recurrent_lengths"});
  EXPECT_EQ(gru({4, 5}).messages[0], "sequence length 5 in {4}, {0} has 4 steps");
  EXPECT_EQ(gru({-1, 4}).failures, Labels{"recurrent_lengths"});
  const auto ranged = [](const char* steps, double least, double most) {
    return Op("LSTM", 22)
        .in("float32[" + std::string(steps) + ", 2, 3]")
        .in("float32[1, 8, 3]")
        .in("float32[1, 8, 2]")
        .absent()
        .in("int32[2]")
        .range(least, most)
        .with("hidden_size", 2)
        .infer();
  };
  EXPECT_TRUE(ranged("4", 0, 9).failures.empty());  // some may do
  EXPECT_TRUE(ranged("S", 5, 9).failures.empty());
  EXPECT_EQ(ranged("4", 5, 9).failures, Labels{"recurrent_lengths"});
  EXPECT_EQ(ranged("4", 5, 9).messages[0], "sequence lengths [5, 9] in {4}, {0} has 4 steps");
  EXPECT_EQ(ranged("4", -3, -1).failures, Labels{"recurrent_lengths"});
}

TEST(Attention, Broken) {
  const auto attention = [](const char* q, const char* k, const char* v) {
    return Op("Attention", 23).in(q).in(k).in(v).infer().failures;
  };
  EXPECT_EQ(attention("float32[2, 8, 4, 16]", "float32[2, 2, 5, 8]", "float32[2, 2, 5, 32]"),
            Labels{"attention_shapes"});
  EXPECT_EQ(attention("float32[2, 8, 4, 16]", "float32[2, 3, 5, 16]", "float32[2, 3, 5, 32]"),
            Labels{"attention_heads"});
  EXPECT_EQ(attention("float32[2, 4, 64]", "float32[2, 5, 64]", "float32[2, 5, 64]"), Labels{"attention_heads"});
  EXPECT_EQ(attention("float32[2, 64]", "float32[2, 5, 64]", "float32[2, 5, 64]"), Labels{"attention_rank"});
  EXPECT_EQ(Op("Attention", 23)
                .in("float32[2, 2, 4, 8]")
                .in("float32[2, 2, 4, 8]")
                .in("float32[2, 2, 4, 8]")
                .absent()
                .in("float32[2, 2, 9, 7]")
                .in("float32[2, 2, 9, 8]")
                .results(3)
                .infer()
                .failures,
            Labels{"attention_cache"});
  EXPECT_EQ(
      Op("RotaryEmbedding", 23).in("float32[2, 3, 64]").in("float32[50, 8]").in("float32[50, 8]").infer().failures,
      Labels{"rotary_heads"});
  EXPECT_EQ(Op("RotaryEmbedding", 23)
                .in("float32[2, 4, 3, 20]")
                .in("float32[50, 8]")
                .in("float32[50, 10]")
                .in("int64[2, 3]")
                .infer()
                .failures,
            Labels{"rotary_cache"});
  EXPECT_EQ(Op("RotaryEmbedding", 23).in("float32[2, 20]").in("float32[50, 8]").in("float32[50, 10]").infer().failures,
            Labels{"rotary_rank"});
  EXPECT_EQ(Op("RotaryEmbedding", 23)
                .in("float32[2, 4, 3, 20]")
                .in("float32[2, 3, 10]")
                .in("float32[1, 3, 10]")
                .infer()
                .failures,
            Labels{"rotary_cache"});
  EXPECT_EQ(Op("RotaryEmbedding", 23)
                .in("float32[2, 4, 3, 20]")
                .in("float32[50, 10]")
                .in("float32[50, 10]")
                .in("int64[3]")
                .infer()
                .failures,
            Labels{"rotary_positions"});
  EXPECT_EQ(Op("RotaryEmbedding", 23)
                .in("float32[2, 4, 3, 20]")
                .in("float32[2, 3, 10]")
                .in("float32[2, 3, 10]")
                .with("num_heads", -1)
                .infer()
                .failures,
            Labels{"rotary_heads"});
  EXPECT_EQ(Op("CausalConvWithState", 27).in("float32[2, 6, 9]").in("float32[5, 1, 4]").results(2).infer().failures,
            Labels{"causal_conv_shapes"});
  EXPECT_EQ(Op("TensorScatter", 24).in("float32[2, 9, 4]").in("float32[2, 3, 5]").infer().failures,
            Labels{"tensor_scatter_shapes"});
  EXPECT_EQ(Op("TensorScatter", 24).in("float32[2, 9, 4]").in("float32[2, 3, 4]").with("axis", 0).infer().failures,
            Labels{"tensor_scatter_axis"});
}

TEST(Einsum, Shapes) {
  struct Case {
    const char *equation, *a, *b, *expected;
  };
  for (const Case& c : {Case{"ij,jk->ik", "float32[I, 3]", "float32[3, K]", "float32[I, K]"},
                        Case{"bij, bjk", "float32[2, 3, 4]", "float32[2, 4, 5]", "float32[3, 5]"},
                        Case{"...ij,...jk->...ik", "float32[B, 2, 3]", "float32[7, 1, 3, 4]", "float32[7, B, 2, 4]"},
                        Case{"i,i", "float32[3]", "float32[3]", "float32[]"},
                        Case{"b...,b->...b", "float32[2, 3, 4]", "float32[2]", "float32[3, 4, 2]"},
                        Case{"ij,ij->i", "float32[1, 3]", "float32[4, 3]", "float32[4]"},
                        Case{"Ba,Ac->", "float32[1, 3]", "float32[4, 3]", "float32[]"}}) {
    const Outcome outcome = Op("Einsum", 12).in(c.a).in(c.b).with("equation", c.equation).infer();
    EXPECT_EQ(outcome.result(), c.expected) << c.equation;
    EXPECT_TRUE(outcome.failures.empty()) << c.equation;
  }
  EXPECT_EQ(Op("Einsum", 12).in("float32[2, 3, 3]").with("equation", "...ii->...i").infer().result(), "float32[2, 3]");
  EXPECT_EQ(Op("Einsum", 12).in("float32[2, N]").with("equation", " i j ").infer().result(), "float32[2, N]");
}

TEST(Einsum, Broken) {
  const auto one = [](const char* equation, const char* label) {
    EXPECT_EQ(Op("Einsum", 12).in("float32[2, 3]").with("equation", equation).infer().failures, Labels{label})
        << equation;
  };
  for (const char* equation :
       {"....i", "..i", "i.", "ij,", "ij,k", "ij->k", "ij->ii", "i-j", "ij->i->j", "ij->i,j", "...i...j", "i\x01j"})
    one(equation, "einsum_equation");
  one("i->i", "einsum_rank");
  one("ijk...->i", "einsum_rank");
  EXPECT_EQ(Op("Einsum", 12).in("float32[2, 3]").in("float32[4, 5]").with("equation", "ij,jk->ik").infer().failures,
            Labels{"einsum_extents"});
  // The third operand is not compared with extents that are the first one's and not the second's.
  EXPECT_EQ(Op("Einsum", 12)
                .in("float32[2, 3]")
                .in("float32[4, 3]")
                .in("float32[5, 3]")
                .with("equation", "...i,...i,...i->...")
                .infer()
                .failures,
            Labels{"einsum_extents"});
  EXPECT_EQ(Op("Det", 11).in("float32[2, 3, 4]").infer().failures, Labels{"det_square"});
  EXPECT_EQ(Op("Det", 11).in("float32[2, N, N]").infer().result(), "float32[2]");
}

}  // namespace
}  // namespace tensorlint::ops
