// Operators that onnxruntime's optimizers and quantizers write. Source: the operator schemas of onnxruntime 1.31,
// domain com.microsoft, and its kernels' results.
#include <algorithm>
#include <initializer_list>

#include "ir/ops/checks.h"
#include "ir/ops/entries/contrib.h"
#include "ir/ops/matmul.h"
#include "ir/ops/windows.h"

namespace tensorlint::ops {
namespace {

const Constraint kVector{"contrib_vector", ConstraintKind::kShapes,
                         "bias, scale and shift are 1-d with the data's last extent"};
const Constraint kSkip{"contrib_skip", ConstraintKind::kShapes, "the skipped operand stretches to the data's shape"};
const Constraint kContribAxis{"contrib_axis", ConstraintKind::kAxisRange, "-rank <= axis < rank"};
const Constraint kContribAxisOnce{"contrib_axis_once", ConstraintKind::kDuplicateAxis, "no axis is given twice"};
const Constraint kPackedInner{"contrib_packed_inner", ConstraintKind::kShapes,
                              "the last extent of the data is K of the packed weights"};
const Constraint kPackedWeights{
    "contrib_packed_weights", ConstraintKind::kShapes,
    "weights are [N, blocks, bytes of a block], scales and zero points [N, blocks] of them"};
const Constraint kContribConcat{"contrib_concat", ConstraintKind::kConcatShapes,
                                "shapes are equal but for the concatenated axis"};
const Constraint kContribElementwise{"contrib_broadcast", ConstraintKind::kShapes,
                                     "extents are equal or 1, aligned at the last axis"};

void same_as_first(Inference& in) {
  if (const auto data = in.shape(0)) in.set_shape(0, *data);
}

/// Every result has the first operand's shape.
void all_as_first(Inference& in) {
  const auto data = in.shape(0);
  for (std::size_t i = 0; data && i < in.result_count(); ++i) in.set_shape(static_cast<int>(i), *data);
}

void check_vector(Inference& in, int operand, std::string_view what) {
  const auto data = in.shape(0);
  if (data && !data->empty()) check_shape(in, operand, Dims{data->back()}, kVector, what, 0);
}

void with_bias(Inference& in) {
  same_as_first(in);
  check_vector(in, 1, "bias");
}

void bias_split_gelu(Inference& in) {
  const auto data = in.shape(0);
  if (!data || data->empty()) return;
  check_vector(in, 1, "bias");
  Dims result = copy_dims(*data);
  result.back() = in.dims().floor_div(result.back(), in.dims().constant(2));
  in.set_shape(0, result);
}

void broadcast_pair(Inference& in, int a, int b) {
  const auto x = in.shape(a), y = in.shape(b);
  if (x && y) in.set_shape(0, broadcast(in, *x, *y, a, b, kContribElementwise));
}

void qlinear_where(Inference& in) {
  const auto condition = in.shape(0), x = in.shape(1), y = in.shape(4);
  if (!condition || !x || !y) return;
  const Dims values = broadcast(in, *x, *y, 1, 4, kContribElementwise);
  in.set_shape(0, broadcast(in, *condition, values, 0, 1, kContribElementwise));
}

// Normalisation.

/// Data, skipped operand, then vectors; results are the norm, two statistics and the sum.
void skip_normalization(Inference& in) {
  const auto data = in.shape(0);
  if (!data || data->empty()) return;
  in.set_shape(0, *data);
  if (const auto skip = in.shape(1)) check_unidirectional(in, *skip, *data, 1, 0, kSkip);
  for (int operand = 2; operand < static_cast<int>(in.operand_count()); ++operand)
    check_vector(in, operand, operand == 2 ? "scale" : "shift or bias");
  Dims statistics = copy_dims(*data);
  statistics.back() = in.dims().constant(1);
  in.set_shape(1, statistics);
  in.set_shape(2, statistics);
  in.set_shape(3, *data);
}

void simplified_layer_normalization(Inference& in) {
  const auto data = in.shape(0);
  if (!data) return;
  in.set_shape(0, *data);
  const auto axis = normalise_axis(in, in.int_attribute("axis", -1), static_cast<int>(data->size()), 0, kContribAxis);
  if (!axis) return;
  if (const auto scale = in.shape(1)) check_unidirectional(in, *scale, *data, 1, 0, kSkip);
  Dims statistics(data->size(), in.dims().constant(1));
  std::copy_n(data->begin(), *axis, statistics.begin());
  in.set_shape(1, statistics);
}

void embed_layer_normalization(Inference& in) {
  DimPool& pool = in.dims();
  const Dim batch = dim_of(in, 0, 0), length = dim_of(in, 0, 1);
  const Dim hidden = better(pool, dim_of(in, 2, 1), dim_of(in, 5, 0));
  check_rank(in, 0, {2}, kSkip);
  check_shape(in, 1, Dims{batch, length}, kSkip, "segment ids", 0);
  check_shape(in, 2, Dims{Dim(Unknown::kNotTracked), hidden}, kVector, "word embedding");
  check_shape(in, 3, Dims{Dim(Unknown::kNotTracked), hidden}, kVector, "position embedding", 2);
  check_shape(in, 4, Dims{Dim(Unknown::kNotTracked), hidden}, kVector, "segment embedding", 2);
  for (const int operand : {5, 6}) check_shape(in, operand, Dims{hidden}, kVector, operand == 5 ? "scale" : "shift", 2);
  const Dims embedded{batch, length, hidden};
  in.set_shape(0, embedded);
  in.set_shape(1, Dims{batch});
  in.set_shape(2, embedded);
}

// Products.

/// The operand with its last two axes exchanged where asked for; vectors stay as they are.
Dims turned(std::span<const Dim> dims, bool turn) {
  Dims result = copy_dims(dims);
  if (turn && result.size() >= 2) std::swap(result[result.size() - 1], result[result.size() - 2]);
  return result;
}

void fused_matmul(Inference& in) {
  const auto a = in.shape(0), b = in.shape(1);
  if (!a || !b) return;
  const bool batches = in.int_attribute("transBatchA", 0) != 0 || in.int_attribute("transBatchB", 0) != 0;
  if (batches) return;
  const auto shape = matmul_shape(in, turned(*a, in.int_attribute("transA", 0) != 0),
                                  turned(*b, in.int_attribute("transB", 0) != 0), 0, 1);
  if (shape) in.set_shape(0, *shape);
}

void matmul(Inference& in) {
  if (const auto shape = matmul_shape(in, 0, 1)) in.set_shape(0, *shape);
}

void fused_gemm(Inference& in) {
  if (const auto shape = gemm_shape(in, 0, 1, 2)) in.set_shape(0, *shape);
}

void qgemm(Inference& in) {
  if (const auto shape = gemm_shape(in, 0, 3, 6)) in.set_shape(0, *shape);
  // Without scale and zero point of the result it is not quantised.
  if (!in.has(8)) {
    in.set_dtype(0, DType::kFloat32);
  } else if (!(in.operand(8).dtypes & in.result().dtypes).empty()) {
    in.set_dtype(0, in.operand(8).dtypes & in.result().dtypes);
  }
}

/// Data [..., K] against weights whose extents stand in attributes.
void packed_matmul(Inference& in, bool turned_weights) {
  DimPool& pool = in.dims();
  const auto data = in.shape(0);
  if (!data || data->empty()) return;
  std::int64_t inner = in.int_attribute("K", 0), outer = in.int_attribute("N", 0);
  if (!turned_weights) std::swap(inner, outer);
  if (pool.differ(data->back(), pool.constant(inner)) && !pool.bounds(data->back()).contains(inner))
    in.fail(kPackedInner, {0},
            {"last extent of {} of shape {} against {} of the weights", OperandRef(0), *data, inner});
  Dims result = copy_dims(*data);
  result.back() = pool.constant(outer);
  in.set_shape(0, result);
}

/// Shapes as onnxruntime checks them when it packs initializers. Scales and zero points may be flat.
void matmul_nbits(Inference& in) {
  packed_matmul(in, true);
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const std::int64_t inner = in.int_attribute("K", 0), outer = in.int_attribute("N", 0),
                     block = in.int_attribute("block_size", 0), bits = in.int_attribute("bits", 4);
  if (inner < 1 || outer < 1 || block < 16 || bits < 1 || bits > 8 || inner > kMost || outer > kMost || block > kMost)
    return;
  DimPool& pool = in.dims();
  const std::int64_t blocks = (inner + block - 1) / block;
  const auto fits = [&](int operand, std::initializer_list<std::int64_t> extents) {
    const auto shape = in.shape(operand);
    if (!shape) return true;
    return std::ranges::equal(*shape, extents,
                              [&](Dim dim, std::int64_t extent) { return !pool.differ(dim, pool.constant(extent)); });
  };
  const auto check = [&](int operand, std::string_view what, std::initializer_list<std::int64_t> extents,
                         bool may_be_flat) {
    if (fits(operand, extents) || (may_be_flat && fits(operand, {*extents.begin() * *(extents.end() - 1)}))) return;
    Dims expected;
    for (const std::int64_t extent : extents) expected.push_back(pool.constant(extent));
    in.fail(kPackedWeights, {operand},
            {"{} of shape {}, where K, N, bits and block_size make the {} {}", OperandRef(operand), *in.shape(operand),
             what, expected});
  };
  check(1, "weights", {outer, blocks, block * bits / 8}, false);
  check(2, "scales", {outer, blocks}, true);
  if (in.has(3) && in.operand(3).dtypes == DTypeSet(DType::kUint8))
    check(3, "zero points", {outer, (blocks * bits + 7) / 8}, true);
}
void matmul_bnb4(Inference& in) { packed_matmul(in, in.int_attribute("transB", 1) != 0); }

// Convolutions and pools.

void conv(Inference& in, int w, int bias, bool channels_last) {
  const auto shape = conv_shape(in, 0, w, bias, channels_last);
  if (!shape) return;
  in.set_shape(0, *shape);
}

bool asks_channels_last(const Inference& in) { return in.int_attribute("channels_last", 0) != 0; }

void qlinear_average_pool(Inference& in) {
  if (const auto shape = pool_shape(in, asks_channels_last(in))) in.set_shape(0, *shape);
}

void qlinear_global_average_pool(Inference& in) {
  if (const auto shape = global_pool_shape(in, asks_channels_last(in))) in.set_shape(0, *shape);
}

void nhwc_max_pool(Inference& in) {
  if (const auto shape = pool_shape(in, true)) in.set_shape(0, *shape);
}

// Other quantised operators.

void reduce_axes(Inference& in) {
  const auto data = in.shape(0);
  const auto axes = in.ints_attribute("axes");
  if (!data || !axes) return;
  const bool keepdims = in.int_attribute("keepdims", 1) != 0;
  const auto reduced = normalise_axes(in, *axes, static_cast<int>(data->size()), 0, kContribAxis, kContribAxisOnce);
  if (!reduced) return;
  Dims result;
  for (std::size_t i = 0; i < data->size(); ++i) {
    const bool gone =
        axes->empty() || std::find(reduced->begin(), reduced->end(), static_cast<int>(i)) != reduced->end();
    if (!gone) {
      result.push_back((*data)[i]);
    } else if (keepdims) {
      result.push_back(in.dims().constant(1));
    }
  }
  in.set_shape(0, result);
}

/// Operands behind scale and zero point come in threes: data, scale, zero point.
void qlinear_concat(Inference& in) {
  DimPool& pool = in.dims();
  std::optional<Dims> result;
  std::optional<int> axis;
  for (int operand = 2; operand < static_cast<int>(in.operand_count()); operand += 3) {
    const auto shape = in.shape(operand);
    if (!shape) return;
    if (!result) {
      axis = normalise_axis(in, in.int_attribute("axis", 0), static_cast<int>(shape->size()), operand, kContribAxis);
      if (!axis) return;
      result = copy_dims(*shape);
      continue;
    }
    Dims expected = *result;
    if (shape->size() == expected.size())
      expected[static_cast<std::size_t>(*axis)] = (*shape)[static_cast<std::size_t>(*axis)];
    if (!check_shape(in, operand, expected, kContribConcat, "concatenated operand", 2)) return;
    for (std::size_t i = 0; i < result->size(); ++i)
      (*result)[i] =
          static_cast<int>(i) == *axis ? pool.add((*result)[i], (*shape)[i]) : better(pool, (*result)[i], (*shape)[i]);
  }
  if (result) in.set_shape(0, *result);
}

// The rest.

void expand_dims(Inference& in) {
  const auto data = in.shape(0);
  const auto axis = in.constant("axis");
  if (!data || !axis) return;
  const auto at = normalise_axis(in, *axis, static_cast<int>(data->size()) + 1, 0, kContribAxis);
  if (!at) return;
  Dims result = copy_dims(*data);
  result.insert(result.begin() + *at, in.dims().constant(1));
  in.set_shape(0, result);
}

void cdist(Inference& in) {
  for (const int operand : {0, 1})
    if (!check_rank(in, operand, {2}, kSkip)) return;
  same_extent(in, dim_of(in, 0, 1), dim_of(in, 1, 1), 0, 1, kSkip, {"features"});
  in.set_shape(0, Dims{dim_of(in, 0, 0), dim_of(in, 1, 0)});
}

void torch_embedding(Inference& in) {
  const auto indices = in.shape(1);
  if (!indices) return;
  Dims result = copy_dims(*indices);
  result.push_back(dim_of(in, 0, 1));
  in.set_shape(0, result);
}

void scalar_result(Inference& in) { in.set_shape(0, {}); }

OpEntry with_vector(std::string_view name, InferFunction function) {
  return contrib(name, function).constraint(kVector);
}

OpEntry elementwise(std::string_view name, InferFunction function) {
  return contrib(name, function).trait(OpTrait::kElementwise).constraint(kContribElementwise);
}

OpEntry product(std::string_view name, InferFunction function) {
  return contrib(name, function).constraint(kMatMulInner).constraint(kMatMulRank).constraint(kMatMulBroadcast);
}

OpEntry gemm(std::string_view name, InferFunction function) {
  return contrib(name, function).constraint(kGemmRank).constraint(kGemmInner).constraint(kGemmAddend);
}

OpEntry convolution(std::string_view name, InferFunction function) {
  return with_conv_constraints(contrib(name, function));
}

OpEntry pool(std::string_view name, InferFunction function) {
  return contrib(name, function).constraint(kWindowAttributes).constraint(kWindowPadding).constraint(kWindowRank);
}

OpEntry reduction(std::string_view name) {
  return contrib(name, reduce_axes).trait(OpTrait::kReduction).constraint(kContribAxis).constraint(kContribAxisOnce);
}

const RegisterOps kRegisterContribActivations{
    contrib("Gelu", same_as_first),
    contrib("QuickGelu", same_as_first),
    with_vector("FastGelu", with_bias),
    with_vector("BiasGelu", with_bias),
    with_vector("BiasAdd", with_bias),
    with_vector("BiasSplitGelu", bias_split_gelu),
    contrib("BiasSoftmax", same_as_first),
    contrib("BiasDropout", all_as_first),
    contrib("QLinearSigmoid", same_as_first),
    contrib("QLinearSoftmax", same_as_first),
    contrib("QLinearLeakyRelu", same_as_first),
    contrib("QuantizeLinear", same_as_first),
    contrib("DequantizeLinear", same_as_first),
    contrib("RotaryEmbedding", same_as_first),
    contrib("GroupNorm", same_as_first),
    contrib("SkipGroupNorm", all_as_first),
    contrib("MoE", same_as_first),
    contrib("QMoE", same_as_first),
    contrib("Trilu", same_as_first),
    contrib("Inverse", same_as_first),
    contrib("IsAllFinite", scalar_result),
    contrib("MurmurHash3", same_as_first),
};

const RegisterOps kRegisterContribNormalizations{
    with_vector("SkipLayerNormalization", skip_normalization).constraint(kSkip),
    with_vector("SkipSimplifiedLayerNormalization", skip_normalization).constraint(kSkip),
    with_vector("EmbedLayerNormalization", embed_layer_normalization).constraint(kSkip),
    OpEntry("SimplifiedLayerNormalization")
        .computes(Opcode::kNormalize)
        .infer(simplified_layer_normalization)
        .constraint(kContribAxis)
        .constraint(kSkip),
};

const RegisterOps kRegisterContribProducts{
    product("FusedMatMul", fused_matmul),
    product("TransposeMatMul", fused_matmul),
    product("FusedMatMulActivation", fused_matmul),
    product("GemmFastGelu", matmul),
    product("MatMulIntegerToFloat", matmul),
    product("DynamicQuantizeMatMul", matmul),
    product("MatMulInteger16", matmul),
    gemm("FusedGemm", fused_gemm),
    gemm("QGemm", qgemm),
    contrib("MatMulNBits", matmul_nbits).constraint(kPackedInner).constraint(kPackedWeights),
    contrib("MatMulBnb4", matmul_bnb4).constraint(kPackedInner),
};

const RegisterOps kRegisterContribConvolutions{
    convolution("FusedConv", [](Inference& in) { conv(in, 1, 2, false); }),
    convolution("NhwcConv", [](Inference& in) { conv(in, 1, 2, true); }),
    convolution("NhwcFusedConv", [](Inference& in) { conv(in, 1, 2, true); }),
    convolution("QLinearConv", [](Inference& in) { conv(in, 3, 8, asks_channels_last(in)); }),
    pool("NhwcMaxPool", nhwc_max_pool),
    pool("QLinearAveragePool", qlinear_average_pool),
    pool("QLinearGlobalAveragePool", qlinear_global_average_pool),
};

const RegisterOps kRegisterContribQuantized{
    elementwise("QLinearAdd", [](Inference& in) { broadcast_pair(in, 0, 3); }),
    elementwise("QLinearMul", [](Inference& in) { broadcast_pair(in, 0, 3); }),
    elementwise("QLinearWhere", qlinear_where),
    elementwise("MulInteger", [](Inference& in) { broadcast_pair(in, 0, 2); }),
    elementwise("ComplexMul", [](Inference& in) { broadcast_pair(in, 0, 1); }),
    elementwise("ComplexMulConj", [](Inference& in) { broadcast_pair(in, 0, 1); }),
    reduction("QLinearReduceMean"),
    reduction("ReduceSumInteger"),
    contrib("QLinearConcat", qlinear_concat).constraint(kContribAxis).constraint(kContribConcat),
};

const RegisterOps kRegisterContribOthers{
    contrib("ExpandDims", expand_dims).computes(Opcode::kUnsqueeze).constraint(kContribAxis),
    contrib("CDist", cdist).constraint(kSkip),
    contrib("TorchEmbedding", torch_embedding),
};

}  // namespace
}  // namespace tensorlint::ops
