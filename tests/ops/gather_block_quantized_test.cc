#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

Op gather(std::string_view data, std::string_view indices, std::string_view scales) {
  Op op("GatherBlockQuantized", 1, "com.microsoft");
  op.in(data).in(indices).in(scales);
  return op;
}

using Failures = std::vector<std::string>;

TEST(GatherBlockQuantized, IndicesReplaceTheGatheredAxis) {
  EXPECT_EQ(gather("uint4[V, 256]", "int64[B, T]", "float16[V, 2]").infer().result(), "float16[B, T, 256]");
  EXPECT_EQ(gather("int4[256, V]", "int32[B]", "float32[2, V]")
                .with("gather_axis", -1)
                .with("quantize_axis", 0)
                .infer()
                .result(),
            "float32[256, B]");
  EXPECT_EQ(gather("uint4[V, D]", "int64[...]", "float32[V, ?]").infer().result(), "float32[...]");
  EXPECT_EQ(gather("uint4[...]", "int64[T]", "float32[...]").infer().result(), "float32[...]");
}

TEST(GatherBlockQuantized, BytesHoldSeveralElements) {
  const auto packed = [](int bits, std::string_view scales) {
    return gather("uint8[V, 128]", "int64[T]", scales).with("bits", bits).infer();
  };
  EXPECT_EQ(packed(4, "float32[V, 2]").result(), "float32[T, 256]");
  EXPECT_EQ(packed(2, "float32[V, 4]").result(), "float32[T, 512]");
  EXPECT_EQ(packed(8, "float32[V, 1]").result(), "float32[T, 128]");
  EXPECT_EQ(packed(8, "float32[V, 1]").failures, Failures{});
  EXPECT_EQ(packed(3, "float32[V, 1]").failures, Failures{"gather_block_quantized_bits"});
  EXPECT_EQ(gather("uint8[V, 128]", "int64[T]", "float32[V, 2]").infer().result(), "float32[T, 256]");
  // Other dtypes are not packed.
  EXPECT_EQ(gather("uint4[V, 128]", "int64[T]", "float32[V, 1]").with("bits", 2).infer().result(), "float32[T, 128]");
}

TEST(GatherBlockQuantized, ABlockHasOneScale) {
  EXPECT_EQ(gather("uint4[V, 129]", "int64[T]", "float32[V, 2]").infer().failures, Failures{});
  const Outcome wrong = gather("uint4[V, 129]", "int64[T]", "float32[V, 1]").infer();
  EXPECT_EQ(wrong.failures, Failures{"gather_block_quantized_scales"});
  EXPECT_EQ(gather("uint4[8, 64]", "int64[T]", "float32[1, 1]").infer().failures, wrong.failures);
  EXPECT_EQ(gather("uint4[8, 64]", "int64[T]", "float32[8]").infer().failures, wrong.failures);
  // Scales of floats stretch.
  EXPECT_EQ(gather("float8e4m3fn[8, 64]", "int64[T]", "float32[1, 1]").infer().failures, Failures{});
  EXPECT_EQ(gather("float8e4m3fn[8, 64]", "int64[T]", "float32[8, 2]").infer().failures, wrong.failures);
}

TEST(GatherBlockQuantized, BlockSizesArePowersOfTwo) {
  const auto with_size = [](std::string_view data, std::int64_t size) {
    return gather(data, "int64[T]", "float32[?, ?]").with("block_size", size).infer().failures;
  };
  const Failures wrong{"gather_block_quantized_block_size"};
  EXPECT_EQ(with_size("uint4[V, 64]", 16), Failures{});
  EXPECT_EQ(with_size("uint4[V, 64]", 8), wrong);
  EXPECT_EQ(with_size("uint4[V, 64]", 48), wrong);
  EXPECT_EQ(with_size("uint4[V, 64]", -64), wrong);
  EXPECT_EQ(with_size("uint4[V, 64]", 0), wrong);
  EXPECT_EQ(with_size("float8e4m3fn[V, 64]", 0), Failures{});
  EXPECT_EQ(with_size("float8e4m3fn[V, 64]", 24), wrong);
}

TEST(GatherBlockQuantized, AxesExistAndPackedDataIsGatheredByRows) {
  const auto with_axes = [](std::string_view data, int gathered, int quantized) {
    return gather(data, "int64[T]", "float32[?, ?]")
        .with("gather_axis", gathered)
        .with("quantize_axis", quantized)
        .infer()
        .failures;
  };
  EXPECT_EQ(with_axes("uint4[V, 64]", 2, 1), Failures{"gather_block_quantized_axis"});
  EXPECT_EQ(with_axes("uint4[V, 64]", 0, -3), Failures{"gather_block_quantized_axis"});
  EXPECT_EQ(with_axes("uint8[V, 64]", 1, 0), Failures{"gather_block_quantized_packed_axis"});
  EXPECT_EQ(with_axes("uint8[V, 64]", 0, -2), Failures{"gather_block_quantized_packed_axis"});
  EXPECT_EQ(with_axes("uint8[V, 64]", -2, 1), Failures{});
  EXPECT_EQ(with_axes("uint4[V, 64]", 0, 0), Failures{});
}

TEST(GatherBlockQuantized, IndicesOutsideGiveZeros) {
  Op op("GatherBlockQuantized", 1, "com.microsoft");
  EXPECT_EQ(op.in("uint4[4, 16]").constant({7}).in("float32[4, 1]").infer().failures, Failures{});
}

}  // namespace
}  // namespace tensorlint::ops
