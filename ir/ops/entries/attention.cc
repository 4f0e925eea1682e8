// Attention. Source: ONNX Attention (23, 24, 25), RotaryEmbedding (23), LinearAttention (27), CausalConvWithState (27),
// TensorScatter (24); ai.onnx.preview FlexAttention (1).
#include "ir/ops/attributes.h"
#include "ir/ops/checks.h"

namespace tensorlint::ops {
namespace {

const Constraint kAttentionRank{"attention_rank", ConstraintKind::kRank, "query, key and value have 3 axes, or 4"};
const Constraint kAttentionHeads{"attention_heads", ConstraintKind::kAttribute,
                                 "3-d operands come with numbers of heads of at least 1; key heads divide query heads"};
const Constraint kAttentionLengths{"attention_lengths", ConstraintKind::kShapes,
                                   "nonpad_kv_seqlen has one length a sample"};
const Constraint kAttentionShapes{"attention_shapes", ConstraintKind::kShapes,
                                  "batch, length, head count and head size of query, key and value fit"};
const Constraint kAttentionCache{"attention_cache", ConstraintKind::kShapes,
                                 "past key and value fit batch, heads and head size"};
const Constraint kAttentionMask{"attention_mask", ConstraintKind::kShapes,
                                "the mask broadcasts to [batch, heads, query length, total length]"};
const Constraint kRotaryRank{"rotary_rank", ConstraintKind::kRank, "the data have 3 axes, or 4"};
const Constraint kRotaryHeads{"rotary_heads", ConstraintKind::kAttribute,
                              "3-d data come with num_heads of at least 1, which divides their width"};
const Constraint kRotarySize{"rotary_size", ConstraintKind::kAttribute,
                             "rotary_embedding_dim is at least 0, and at most the head size"};
const Constraint kRotaryCache{"rotary_cache", ConstraintKind::kShapes,
                              "sine and cosine have half the rotated size, and as many rows as each other"};
const Constraint kRotaryPositions{"rotary_positions", ConstraintKind::kShapes, "positions are [batch, length]"};
const Constraint kCausalConv{"causal_conv_shapes", ConstraintKind::kShapes,
                             "weights [C, 1, k] with k >= 1, bias [C], state [N, C, k - 1] fit the data [N, C, L]"};
const Constraint kCacheShapes{"tensor_scatter_shapes", ConstraintKind::kShapes,
                              "update and cache differ at most along the sequence axis", true};
const Constraint kAttentionChoice{"attention_choice", ConstraintKind::kAttribute,
                                  "a mode, rule or activation is one that there is"};
const Constraint kAttentionPrecision{"attention_precision", ConstraintKind::kAttribute,
                                     "softmax_precision is float32, float16, float64 or bfloat16"};
const Constraint kLinearGates{"linear_attention_gates", ConstraintKind::kShapes,
                              "decay is [batch, length, heads] or [batch, length, heads * head size], beta [batch, "
                              "length, heads] or [batch, length, 1]"};
const Constraint kCacheAxis{"tensor_scatter_axis", ConstraintKind::kAxisRange,
                            "-rank <= axis < rank, and not the batch axis", true};

/// Key and value of one attention, as [batch, heads, length, size], of 4-d operands or of 3-d ones with packed heads.
struct Heads {
  Dim batch, heads, length, size;
};

/// Splits operand `index`; `count` 0: not given. False where that fails.
bool split_heads(Inference& in, int index, std::int64_t count, Heads& heads) {
  DimPool& pool = in.dims();
  const auto shape = in.shape(index);
  heads = {};
  if (count > 0) heads.heads = pool.constant(count);
  if (!shape) return true;
  if (shape->size() == 4) {
    heads = {(*shape)[0], (*shape)[1], (*shape)[2], (*shape)[3]};
    return true;
  }
  heads.batch = (*shape)[0];
  heads.length = (*shape)[1];
  if (count < 1) return true;
  const Dim packed = (*shape)[2];
  const auto width = pool.as_constant(packed);
  if (width && *width % count != 0) {
    in.fail(kAttentionHeads, {index},
            {"width {} of {} is not divisible into {} heads", *width, OperandRef(index), count});
    return false;
  }
  heads.size = pool.floor_div(packed, pool.constant(count));
  return true;
}

/// The mask broadcasts to the scores [batch, heads, length, total]; its last axis may be shorter.
void check_mask(Inference& in, std::span<const Dim> scores) {
  DimPool& pool = in.dims();
  const auto mask = in.shape("attn_mask");
  if (!mask) return;
  const int operand = in.index_of("attn_mask");
  const auto misfit = [&] {
    in.fail(kAttentionMask, {operand, 0},
            {"mask {} of shape {} does not stretch to the scores' shape {}", OperandRef(operand), *mask, scores});
  };
  if (mask->empty() || mask->size() > 4) return misfit();
  for (std::size_t i = 0; i < mask->size(); ++i) {
    const Dim given = (*mask)[mask->size() - 1 - i], wanted = scores[3 - i];
    const bool is_one = !pool.never_equal(given, pool.constant(1));
    const bool differs = i == 0 ? pool.bounds(pool.sub(given, wanted)).lo > 0 : pool.never_equal(given, wanted);
    if (differs && !is_one) return misfit();
  }
}

/// Key heads are shared by groups of query heads.
void check_shared_heads(Inference& in, Dim query, Dim key) {
  const auto query_heads = in.dims().as_constant(query), key_heads = in.dims().as_constant(key);
  if (!query_heads || !key_heads || *query_heads == 0) return;
  if (*key_heads == 0 || *query_heads % *key_heads != 0)
    in.fail(kAttentionHeads, {0, 1}, {"{} query heads are not a multiple of {} key heads", *query_heads, *key_heads});
}

/// 0 stands for the default.
void check_precision(Inference& in) {
  const std::int64_t code = in.int_attribute("softmax_precision", 0);
  const DTypeSet precisions =
      DTypeSet(DType::kFloat32) | DTypeSet(DType::kFloat16) | DTypeSet(DType::kFloat64) | DTypeSet(DType::kBFloat16);
  if (code == 0 || (is_known_dtype(code) && precisions.contains(static_cast<DType>(code)))) return;
  in.fail(kAttentionPrecision, {},
          {"{} of {} is {}, which is not the number of float32, float16, float64 or bfloat16",
           AttributeName("softmax_precision"), in.call().name, code});
}

void attention(Inference& in) {
  DimPool& pool = in.dims();
  check_precision(in);
  for (const int operand : {0, 1, 2})
    if (!check_rank(in, operand, {3, 4}, kAttentionRank)) return;
  const auto q = in.rank(0), k = in.rank(1), v = in.rank(2);
  for (const auto& [a, b, first, second] : {std::tuple(q, k, 0, 1), std::tuple(q, v, 0, 2)}) {
    if (!a || !b || *a == *b) continue;
    in.fail(kAttentionRank, {second, first},
            {"{} has rank {}, {} has rank {}", OperandRef(first), *a, OperandRef(second), *b});
    return;
  }
  const bool packed = q == 3 || k == 3 || v == 3;
  const std::int64_t query_count = in.int_attribute("q_num_heads", 0), key_count = in.int_attribute("kv_num_heads", 0);
  if (packed && (query_count < 1 || key_count < 1)) {
    in.fail(kAttentionHeads, {},
            {"3-d operands of Attention need q_num_heads and kv_num_heads of at least 1, not {} and {}", query_count,
             key_count});
    return;
  }
  Heads query, key, value;
  if (!split_heads(in, 0, packed ? query_count : 0, query) || !split_heads(in, 1, packed ? key_count : 0, key) ||
      !split_heads(in, 2, packed ? key_count : 0, value))
    return;

  const Dim batch = same_extent(in, query.batch, key.batch, 0, 1, kAttentionShapes, {"batch of query and key"});
  same_extent(in, query.batch, value.batch, 0, 2, kAttentionShapes, {"batch of query and value"});
  same_extent(in, query.size, key.size, 0, 1, kAttentionShapes, {"head size of query and key"});
  const Dim length = same_extent(in, key.length, value.length, 1, 2, kAttentionShapes, {"length of key and value"});
  const Dim heads = same_extent(in, key.heads, value.heads, 1, 2, kAttentionShapes, {"heads of key and value"});
  check_shared_heads(in, query.heads, heads);
  if (in.opset() >= 24) check_shape(in, in.index_of("nonpad_kv_seqlen"), Dims{batch}, kAttentionLengths, "lengths", 0);

  Dim total = length;
  const int past_key = in.index_of("past_key"), past_value = in.index_of("past_value");
  if (in.has(past_key) || in.has(past_value)) {
    const Dim past = better(pool, dim_of(in, past_key, 2), dim_of(in, past_value, 2));
    check_shape(in, past_key, Dims{batch, heads, past, key.size}, kAttentionCache, "past key", 1);
    check_shape(in, past_value, Dims{batch, heads, past, value.size}, kAttentionCache, "past value", 2);
    total = pool.add(length, past);
  }
  for (const auto& [count, dim, name] :
       {std::tuple(query_count, query.heads, "q_num_heads"), std::tuple(key_count, heads, "kv_num_heads")}) {
    if (count < 1 || !pool.never_equal(pool.constant(count), dim)) continue;
    in.fail(kAttentionHeads, {0},
            {"{} of Attention is {}, its operands have {} heads", AttributeName(name), count, dim});
  }
  if (!in.failed()) check_mask(in, Dims{batch, query.heads, query.length, total});
  if (q)
    in.set_shape(0, *q == 4 ? Dims{batch, query.heads, query.length, value.size}
                            : Dims{batch, query.length, pool.mul(query.heads, value.size)});
  in.set_shape(1, Dims{batch, heads, total, key.size});
  in.set_shape(2, Dims{batch, heads, total, value.size});
  in.set_shape(3, Dims{batch, query.heads, query.length, total});
}

void flex_attention(Inference& in) {
  check_precision(in);
  for (const int operand : {0, 1, 2})
    if (!check_rank(in, operand, {4}, kAttentionRank)) return;
  const Dim batch =
      same_extent(in, dim_of(in, 0, 0), dim_of(in, 1, 0), 0, 1, kAttentionShapes, {"batch of query and key"});
  same_extent(in, batch, dim_of(in, 2, 0), 0, 2, kAttentionShapes, {"batch of query and value"});
  same_extent(in, dim_of(in, 0, 3), dim_of(in, 1, 3), 0, 1, kAttentionShapes, {"head size of query and key"});
  same_extent(in, dim_of(in, 1, 2), dim_of(in, 2, 2), 1, 2, kAttentionShapes, {"length of key and value"});
  same_extent(in, dim_of(in, 1, 1), dim_of(in, 2, 1), 1, 2, kAttentionShapes, {"heads of key and value"});
  check_shared_heads(in, dim_of(in, 0, 1), dim_of(in, 1, 1));
  in.set_shape(0, Dims{batch, dim_of(in, 0, 1), dim_of(in, 0, 2), dim_of(in, 2, 3)});
}

void rotary_embedding(Inference& in) {
  DimPool& pool = in.dims();
  const auto data = in.shape(0);
  if (!data) return;
  in.set_shape(0, *data);
  if (!check_rank(in, 0, {3, 4}, kRotaryRank)) return;
  const std::int64_t heads = in.int_attribute("num_heads", 0), rotated = in.int_attribute("rotary_embedding_dim", 0);
  Dim size = data->back();
  if (data->size() == 3) {
    if (heads < 1) {
      in.fail(kRotaryHeads, {0}, {"3-d {} needs num_heads of at least 1, not {}", OperandRef(0), heads});
      return;
    }
    if (const auto width = pool.as_constant(size); width && *width % heads != 0) {
      in.fail(kRotaryHeads, {0}, {"width {} of {} is not divisible into {} heads", *width, OperandRef(0), heads});
      return;
    }
    size = pool.floor_div(size, pool.constant(heads));
  }
  if (heads < 0) {
    in.fail(kRotaryHeads, {}, {"{} of RotaryEmbedding is {}", AttributeName("num_heads"), heads});
    return;
  }
  if (rotated < 0 || (!size.is_unknown() && pool.bounds(size).hi < rotated)) {
    in.fail(
        kRotarySize, {0},
        {"{} of RotaryEmbedding is {}, heads have {} elements", AttributeName("rotary_embedding_dim"), rotated, size});
    return;
  }
  if (rotated > 0) size = pool.constant(rotated);
  const bool by_position = in.has(3);
  const Dim batch = data->front(), length = (*data)[data->size() == 4 ? 2 : 1], unknown(Unknown::kNotTracked);
  check_shape(in, 3, Dims{batch, length}, kRotaryPositions, "positions", 0);
  for (const int operand : {1, 2}) {
    const auto cache = in.shape(operand);
    if (!cache || !check_shape(in, operand, by_position ? Dims{unknown, unknown} : Dims{batch, length, unknown},
                               kRotaryCache, "cache", 0))
      continue;
    same_extent(in, pool.floor_div(size, pool.constant(2)), cache->back(), 0, operand, kRotaryCache,
                {"half the rotated size and last extent of the cache"});
  }
  if (by_position) same_extent(in, dim_of(in, 1, 0), dim_of(in, 2, 0), 1, 2, kRotaryCache, {"rows of the caches"});
}

/// [batch, length, width], or of the other width.
void check_gate(Inference& in, std::string_view name, Dim batch, Dim length, Dim width, Dim other) {
  const int operand = in.index_of(name);
  const auto shape = in.shape(operand);
  if (!shape || !check_shape(in, operand, Dims{batch, length, Dim(Unknown::kNotTracked)}, kLinearGates, name, 0))
    return;
  const Dim given = shape->back();
  if (in.dims().never_equal(given, width) && in.dims().never_equal(given, other))
    in.fail(kLinearGates, {operand},
            {"{} {} has {} numbers a step, {} or {} needed", name, OperandRef(operand), given, width, other});
}

void linear_attention(Inference& in) {
  DimPool& pool = in.dims();
  for (const int operand : {0, 1, 2})
    if (!check_rank(in, operand, {3}, kAttentionRank)) return;
  const std::int64_t query_count = in.int_attribute("q_num_heads", 0), key_count = in.int_attribute("kv_num_heads", 0);
  if (query_count < 1 || key_count < 1 || query_count % key_count != 0) {
    in.fail(
        kAttentionHeads, {},
        {"q_num_heads of LinearAttention is {}, it has to be a multiple of kv_num_heads, {}", query_count, key_count});
    return;
  }
  Heads query, key, value;
  if (!split_heads(in, 0, query_count, query) || !split_heads(in, 1, key_count, key) ||
      !split_heads(in, 2, key_count, value))
    return;
  const Dim batch = same_extent(in, query.batch, key.batch, 0, 1, kAttentionShapes, {"batch of query and key"});
  same_extent(in, query.batch, value.batch, 0, 2, kAttentionShapes, {"batch of query and value"});
  const Dim length = same_extent(in, query.length, key.length, 0, 1, kAttentionShapes, {"length of query and key"});
  same_extent(in, query.length, value.length, 0, 2, kAttentionShapes, {"length of query and value"});
  same_extent(in, query.size, key.size, 0, 1, kAttentionShapes, {"head size of query and key"});
  choice_attribute(in, "update_rule", "gated_delta", {"linear", "gated", "delta", "gated_delta"}, kAttentionChoice);
  const Dims state{batch, key.heads, key.size, value.size};
  check_shape(in, 3, state, kAttentionCache, "past state", 2);
  check_gate(in, "decay", batch, length, key.heads, pool.mul(key.heads, key.size));
  check_gate(in, "beta", batch, length, key.heads, pool.constant(1));
  in.set_shape(0, Dims{batch, length, pool.mul(pool.constant(query_count), value.size)});
  in.set_shape(1, state);
  if (!in.has(3)) in.set_dtype(1, in.result(0).dtypes);
}

void causal_conv(Inference& in) {
  DimPool& pool = in.dims();
  choice_attribute(in, "activation", "none", {"none", "silu", "swish"}, kAttentionChoice);
  for (const int operand : {0, 1})
    if (!check_rank(in, operand, {3}, kCausalConv)) return;
  const Dim one = pool.constant(1), channels = better(pool, dim_of(in, 0, 1), dim_of(in, 1, 0)),
            kernel = dim_of(in, 1, 2);
  if (!kernel.is_unknown() && pool.bounds(kernel).hi < 1) {
    in.fail(kCausalConv, {1}, {"weights {} have a kernel of {} elements, at least 1 needed", OperandRef(1), kernel});
    return;
  }
  const Dims state{dim_of(in, 0, 0), channels, pool.sub(kernel, one)};
  check_shape(in, 1, Dims{dim_of(in, 0, 1), one, kernel}, kCausalConv, "weights", 0);
  check_shape(in, 2, Dims{channels}, kCausalConv, "bias", 0);
  check_shape(in, 3, state, kCausalConv, "past state", 0);
  if (const auto data = in.shape(0)) in.set_shape(0, *data);
  in.set_shape(1, state);
}

void tensor_scatter(Inference& in) {
  choice_attribute(in, "mode", "linear", {"linear", "circular"}, kAttentionChoice);
  const auto cache = in.shape(0);
  if (!cache) return;
  in.set_shape(0, *cache);
  const auto axis = normalise_axis(in, in.int_attribute("axis", -2), static_cast<int>(cache->size()), 0, kCacheAxis);
  if (!axis) return;
  if (*axis == 0) {
    in.fail(kCacheAxis, {0}, {"axis 0 of {} is the batch axis, it cannot be written along", OperandRef(0)});
    return;
  }
  Dims expected = copy_dims(*cache);
  expected[static_cast<std::size_t>(*axis)] = dim_of(in, 1, static_cast<std::size_t>(*axis));
  check_shape(in, 1, expected, kCacheShapes, "update", 0);
  check_shape(in, 2, Dims{cache->front()}, kCacheShapes, "write indices", 0);
}

const RegisterOps kRegisterAttention{
    OpEntry("Attention")
        .infer(attention)
        .constraint(kAttentionMask)
        .constraint(kAttentionLengths)
        .constraint(kAttentionPrecision)
        .constraint(kAttentionRank)
        .constraint(kAttentionHeads)
        .constraint(kAttentionShapes)
        .constraint(kAttentionCache),
    OpEntry("FlexAttention", "ai.onnx.preview")
        .infer(flex_attention)
        .constraint(kAttentionPrecision)
        .constraint(kAttentionRank)
        .constraint(kAttentionHeads)
        .constraint(kAttentionShapes),
    OpEntry("LinearAttention")
        .infer(linear_attention)
        .constraint(kLinearGates)
        .constraint(kAttentionChoice)
        .constraint(kAttentionRank)
        .constraint(kAttentionHeads)
        .constraint(kAttentionShapes)
        .constraint(kAttentionCache),
    OpEntry("RotaryEmbedding")
        .infer(rotary_embedding)
        .constraint(kRotaryRank)
        .constraint(kRotaryPositions)
        .constraint(kRotaryHeads)
        .constraint(kRotarySize)
        .constraint(kRotaryCache),
    OpEntry("CausalConvWithState").infer(causal_conv).constraint(kAttentionChoice).constraint(kCausalConv),
    OpEntry("TensorScatter")
        .infer(tensor_scatter)
        .constraint(kAttentionChoice)
        .constraint(kCacheShapes)
        .constraint(kCacheAxis),
};

}  // namespace
}  // namespace tensorlint::ops
