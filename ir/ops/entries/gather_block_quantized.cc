// Rows of a table that is quantized by blocks. Source: onnxruntime com.microsoft.GatherBlockQuantized, opset 1.
#include <bit>
#include <cstdint>

#include "ir/ops/checks.h"

namespace tensorlint::ops {
namespace {

const Constraint kAxis{"gather_block_quantized_axis", ConstraintKind::kAxisRange, "-rank <= axis < rank"};
const Constraint kScales{"gather_block_quantized_scales", ConstraintKind::kShapes,
                         "scales have the shape of the data, along quantize_axis one element per block"};
const Constraint kGatheredBlock{"gather_block_quantized_block_size", ConstraintKind::kAttribute,
                                "block_size is a power of 2 and at least 16; 0 for data of 8-bit and 4-bit floats"};
const Constraint kBits{"gather_block_quantized_bits", ConstraintKind::kAttribute, "uint8 has 2, 4 or 8 bits"};
const Constraint kPackedAxis{"gather_block_quantized_packed_axis", ConstraintKind::kAttribute,
                             "gather_axis is 0 where the data is uint8, and not quantize_axis where it is packed"};

bool has_integers(const Inference& in) {
  return in.operand(0).dtypes.proves(DTypeSet(DType::kUint8) | DType::kUint4 | DType::kInt4);
}

/// How many elements lie in one of the data: 1 unless several are packed into a uint8. 0: not known.
std::int64_t packed_elements(Inference& in) {
  const DTypeSet dtypes = in.operand(0).dtypes;
  if ((dtypes & DTypeSet(DType::kUint8)).empty()) return 1;
  const std::int64_t bits = in.int_attribute("bits", 4);
  if (bits == 8) return 1;
  if (dtypes.single() != DType::kUint8) return 0;
  if (bits == 2 || bits == 4) return 8 / bits;
  in.fail(kBits, {0}, {"{} is {}, where uint8 holds elements of 2, 4 or 8 bits", AttributeName("bits"), bits});
  return 0;
}

bool is_block_size(Inference& in, std::int64_t size) {
  if (size >= 16 && std::has_single_bit(static_cast<std::uint64_t>(size))) return true;
  if (size == 0 && !has_integers(in)) return false;  // one block, if the data is of floats
  in.fail(kGatheredBlock, {}, {"{} is {}, and not a power of 2 from 16 on", AttributeName("block_size"), size});
  return false;
}

void check_scales(Inference& in, std::span<const Dim> elements, int axis, std::int64_t block) {
  DimPool& pool = in.dims();
  Dims expected = copy_dims(elements);
  Dim& blocks = expected[static_cast<std::size_t>(axis)];
  blocks = pool.floor_div(pool.add(blocks, pool.constant(block - 1)), pool.constant(block));
  // The scales of floats may stretch, those of integers may not.
  if (!has_integers(in)) {
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (i != static_cast<std::size_t>(axis)) expected[i] = Dim(Unknown::kNotTracked);
  }
  check_shape(in, 2, expected, kScales, "one scale per block", 0);
}

void gather_block_quantized(Inference& in) {
  const std::int64_t packed = packed_elements(in), block = in.int_attribute("block_size", 128);
  const bool is_block = is_block_size(in, block);
  const auto data = in.shape(0), indices = in.shape(1);
  if (!data) return;  // nothing but the dtype is known
  const int rank = static_cast<int>(data->size());
  const auto gathered = normalise_axis(in, in.int_attribute("gather_axis", 0), rank, 0, kAxis);
  const auto quantized = normalise_axis(in, in.int_attribute("quantize_axis", 1), rank, 0, kAxis);
  if (!gathered || !quantized) return;
  if (in.operand(0).dtypes.single() == DType::kUint8 && (*gathered != 0 || (packed > 1 && *gathered == *quantized))) {
    in.fail(kPackedAxis, {0},
            {"{} is {} for {} of uint8 that is quantized along axis {}", AttributeName("gather_axis"), *gathered,
             OperandRef(0), *quantized});
    return;
  }
  DimPool& pool = in.dims();
  Dims elements = copy_dims(*data);
  elements.back() = packed == 0 ? Dim(Unknown::kNotTracked) : pool.mul(elements.back(), pool.constant(packed));
  if (is_block) check_scales(in, elements, *quantized, block);
  // An index outside the axis is no failure: its rows are 0.
  if (!indices) return;
  Dims result(elements.begin(), elements.begin() + *gathered);
  result.insert(result.end(), indices->begin(), indices->end());
  result.insert(result.end(), elements.begin() + *gathered + 1, elements.end());
  in.set_shape(0, result);
}

const RegisterOps kRegisterGatherBlockQuantized{OpEntry("GatherBlockQuantized", "com.microsoft")
                                                    .infer(gather_block_quantized)
                                                    .index("indices")
                                                    .constraint(kAxis)
                                                    .constraint(kScales)
                                                    .constraint(kGatheredBlock)
                                                    .constraint(kBits)
                                                    .constraint(kPackedAxis)};

}  // namespace
}  // namespace tensorlint::ops
