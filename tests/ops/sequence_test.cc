#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

/// "seq(float32[2]) of 3".
std::string described(Op& op, const Outcome& outcome) {
  const auto dims = op.facts().dims_of(op.fact(outcome).shape);
  return outcome.result() + " of " + (dims.size() == 1 ? op.facts().dims().to_text(dims[0]) : "?");
}

TEST(Sequence, Construction) {
  Op made("SequenceConstruct", 11), empty("SequenceEmpty", 11), first("SequenceInsert", 11), next("SequenceInsert", 11),
      less("SequenceErase", 11);
  EXPECT_EQ(described(made, made.in("float32[2, 3]").in("float32[2, 4]").infer()), "seq(float32[2, ?]) of 2");
  EXPECT_EQ(described(empty, empty.with("dtype", 7).infer()), "seq(int64[...]) of 0");
  EXPECT_EQ(described(first, first.sequence("float32[...]", "0").in("float32[2]").infer()), "seq(float32[2]) of 1");
  EXPECT_EQ(described(next, next.sequence("float32[2]", "N").in("float32[3]").infer()), "seq(float32[?]) of N + 1");
  EXPECT_EQ(described(less, less.sequence("float32[2]", "3").infer()), "seq(float32[2]) of 2");
  EXPECT_EQ(Op("SequenceEmpty", 11).with("dtype", 99).infer().failures, Labels{"sequence_empty_dtype"});
  EXPECT_EQ(Op("SequenceInsert", 11).sequence("float32[2]", "2").in("float32[2]").scalar(3).infer().failures,
            Labels{"sequence_position"});
  EXPECT_EQ(Op("SequenceInsert", 11).sequence("float32[2]", "2").in("float32[2]").scalar(2).infer().failures, Labels{});
  EXPECT_EQ(Op("SequenceErase", 11).sequence("float32[2]", "2").scalar(2).infer().failures,
            Labels{"sequence_position"});
  EXPECT_EQ(Op("SequenceErase", 11).sequence("float32[2]", "0").infer().failures, Labels{"sequence_position"});
}

TEST(Sequence, InsertedDtype) {
  const Outcome outcome = Op("SequenceInsert", 11).sequence("float32[2]", "2").in("int64[2]").infer();
  ASSERT_FALSE(outcome.failures.empty());
  EXPECT_EQ(outcome.failures.back(), "sequence_insert_dtype");
}

TEST(Sequence, Access) {
  EXPECT_EQ(Op("SequenceAt", 11).sequence("float32[2]", "2").scalar(-2).infer().result(), "float32[2]");
  EXPECT_EQ(Op("SequenceAt", 11).sequence("float32[2]", "2").scalar(-3).infer().failures, Labels{"sequence_position"});
  EXPECT_EQ(Op("SequenceAt", 11).sequence("float32[2]", "N").scalar(100).infer().failures, Labels{});
  Op length("SequenceLength", 11);
  EXPECT_EQ(length.content(length.sequence("float32[2]", "N").infer()), "N");
}

TEST(Sequence, SplitAndConcat) {
  const auto split = [](Op& op) { return described(op, op.infer()); };
  Op single("SplitToSequence", 11), squeezed("SplitToSequence", 11), chunks("SplitToSequence", 11),
      even("SplitToSequence", 11), sizes("SplitToSequence", 11);
  EXPECT_EQ(split(single.in("float32[3, N]")), "seq(float32[1, N]) of 3");
  EXPECT_EQ(split(squeezed.in("float32[3, N]").with("keepdims", 0)), "seq(float32[N]) of 3");
  EXPECT_EQ(split(chunks.in("float32[5, N]").scalar(2)), "seq(float32[?, N]) of 3");
  EXPECT_EQ(split(even.in("float32[4, N]").scalar(2)), "seq(float32[2, N]) of 2");
  EXPECT_EQ(split(sizes.in("float32[4, N]").constant({1, 3})), "seq(float32[?, N]) of 2");
  EXPECT_EQ(Op("SplitToSequence", 11).in("float32[4]").scalar(0).infer().failures, Labels{"split_to_sequence_sizes"});
  EXPECT_EQ(Op("SplitToSequence", 11).in("float32[4]").constant({1, 2}).infer().failures,
            Labels{"split_to_sequence_sizes"});
  EXPECT_EQ(Op("SplitToSequence", 11).in("float32[4]").with("axis", 1).infer().failures,
            Labels{"split_to_sequence_axis_in_range"});
  EXPECT_EQ(Op("ConcatFromSequence", 11).sequence("float32[2, N]", "3").with("axis", 0).infer().result(),
            "float32[6, N]");
  EXPECT_EQ(Op("ConcatFromSequence", 11).sequence("float32[?, N]", "3").with("axis", 0).infer().result(),
            "float32[?, N]");
  EXPECT_EQ(
      Op("ConcatFromSequence", 11).sequence("float32[2, N]", "3").with("axis", -1).with("new_axis", 1).infer().result(),
      "float32[2, N, 3]");
  EXPECT_EQ(Op("ConcatFromSequence", 11).sequence("float32[2, N]", "3").with("axis", 2).infer().failures,
            Labels{"concat_from_sequence_axis_in_range"});
  EXPECT_EQ(Op("ConcatFromSequence", 11).sequence("float32[2, N]", "0").with("axis", 0).infer().failures,
            Labels{"concat_from_sequence_empty"});
}

TEST(Optional, Elements) {
  EXPECT_EQ(Op("Optional", 15).in("float32[N]").infer().result(), "optional(float32[N])");
  Op has("OptionalHasElement", 18), none("OptionalHasElement", 18);
  EXPECT_EQ(has.content(has.in("float32[N]").infer()), "1");
  EXPECT_EQ(none.content(none.infer()), "0");
  EXPECT_EQ(Op("OptionalGetElement", 18).in("float32[N]").infer().result(), "float32[N]");
  Op held("OptionalGetElement", 15);
  Fact fact;
  fact.kind = ValueKind::kOptional;
  fact.element = held.facts().intern(held.tensor("float32[2]"));
  EXPECT_EQ(held.in(fact).infer().result(), "float32[2]");
  Op empty("OptionalGetElement", 18), ask("OptionalHasElement", 18);
  const auto without_element = [](Op& op) {
    const Dim none[] = {op.facts().dims().constant(0)};
    Fact optional;
    optional.kind = ValueKind::kOptional;
    optional.shape = op.facts().intern_shape(none);
    return optional;
  };
  EXPECT_EQ(empty.in(without_element(empty)).infer().failures, Labels{"optional_empty"});
  EXPECT_EQ(ask.content(ask.in(without_element(ask)).infer()), "0");
}

TEST(Strings, Shapes) {
  EXPECT_EQ(Op("StringNormalizer", 10).in("string[4]").infer().result(), "string[4]");
  EXPECT_EQ(Op("StringNormalizer", 10).in("string[1, 4]").strings("stopwords", {"a"}).infer().result(), "string[1, ?]");
  EXPECT_EQ(Op("StringNormalizer", 10).in("string[2, 4]").infer().failures, Labels{"string_normalizer_shape"});
  EXPECT_EQ(Op("StringNormalizer", 10).in("string[4]").with("case_change_action", "up").infer().failures,
            Labels{"string_normalizer_case"});
  EXPECT_EQ(Op("StringConcat", 20).in("string[4, 1]").in("string[N]").infer().result(), "string[4, N]");
  const Outcome split = Op("StringSplit", 20).in("string[4]").results(2).infer();
  EXPECT_EQ(split.results, (Labels{"string[4, ?]", "int64[4]"}));
  EXPECT_EQ(Op("RegexFullMatch", 20).in("string[4]").with("pattern", "a").infer().result(), "bool[4]");
  const auto tf_idf = [](const char* type, const char* mode, std::vector<std::int64_t> indexes) {
    return Op("TfIdfVectorizer", 9)
        .in(type)
        .with("mode", mode)
        .ints("ngram_indexes", std::move(indexes))
        .ints("ngram_counts", {0})
        .with("max_skip_count", 0)
        .with("min_gram_length", 1)
        .with("max_gram_length", 1)
        .infer();
  };
  EXPECT_EQ(tf_idf("int64[N, 9]", "TF", {0, 4, 2}).result(), "float32[N, 5]");
  EXPECT_EQ(tf_idf("int64[N, 9]", "TF", {0, -4}).failures, Labels{"tf_idf_indexes"});
  EXPECT_EQ(tf_idf("int64[N, 9]", "", {0}).failures, Labels{"tf_idf_mode"});
  EXPECT_EQ(tf_idf("int64[N, 9, 2]", "TF", {0}).failures, Labels{"tf_idf_shape"});
}

TEST(Random, ShapesAndDtypes) {
  EXPECT_EQ(Op("RandomNormal", 1).ints("shape", {2, 3}).infer().result(), "float32[2, 3]");
  EXPECT_EQ(Op("RandomUniform", 22).ints("shape", {2}).with("dtype", 16).infer().result(), "bfloat16[2]");
  EXPECT_EQ(Op("RandomNormal", 1).ints("shape", {-2}).infer().failures, Labels{"random_shape"});
  EXPECT_EQ(Op("RandomNormal", 1).ints("shape", {2}).with("dtype", 7).infer().failures, Labels{"random_dtype"});
  EXPECT_EQ(Op("RandomNormalLike", 1).in("float16[N]").infer().result(), "float16[N]");
  EXPECT_EQ(Op("RandomUniformLike", 1).in("int64[N]").with("dtype", 1).infer().result(), "float32[N]");
  EXPECT_EQ(Op("RandomUniformLike", 1).in("int64[N]").infer().failures, Labels{"random_dtype"});
  Op samples("Multinomial", 7), coins("Bernoulli", 15);
  const Outcome drawn = samples.in("float32[N, 10]").with("sample_size", 3).infer();
  EXPECT_EQ(drawn.result(), "int32[N, 3]");
  EXPECT_EQ(samples.fact(drawn).range, (Range{0, 9, false}));
  EXPECT_EQ(Op("Multinomial", 7).in("float32[N]").infer().failures, Labels{"multinomial_shape"});
  EXPECT_EQ(Op("Multinomial", 7).in("float32[N, 2]").with("sample_size", 0).infer().failures,
            Labels{"multinomial_sample_size"});
  EXPECT_EQ(coins.fact(coins.in("float64[N]").infer()).range, (Range{0, 1, false}));
  EXPECT_EQ(Op("Bernoulli", 15).in("float32[3]").range(2, 3).infer().failures, Labels{"bernoulli_probability"});
}

}  // namespace
}  // namespace tensorlint::ops
