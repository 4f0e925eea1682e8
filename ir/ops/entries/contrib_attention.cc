// Attention and recurrent layers that onnxruntime's optimizers and quantizers write. Source: the operator schemas of
// onnxruntime 1.31, domain com.microsoft, and its kernels' results.
#include "base/checked.h"
#include "ir/ops/checks.h"
#include "ir/ops/entries/contrib.h"

namespace tensorlint::ops {
namespace {

const Constraint kContribAttention{"contrib_attention_shapes", ConstraintKind::kShapes,
                                   "data, projections and caches of an attention fit each other"};
const Constraint kContribHeads{"contrib_attention_heads", ConstraintKind::kAttribute,
                               "head counts are at least 1 and divide the hidden size"};

void dynamic_quantize_lstm(Inference& in) {
  DimPool& pool = in.dims();
  if (!check_rank(in, 0, {3}, kContribAttention)) return;
  const auto size = in.int_attribute("hidden_size");
  const Dim hidden = size && *size > 0 ? pool.constant(*size) : dim_of(in, 2, 1);
  const Dim directions = pool.constant(in.string_attribute("direction", "forward") == "bidirectional" ? 2 : 1);
  const Dim length = dim_of(in, 0, 0), batch = dim_of(in, 0, 1);
  in.set_shape(0, Dims{length, directions, batch, hidden});
  in.set_shape(1, Dims{directions, batch, hidden});
  in.set_shape(2, Dims{directions, batch, hidden});
}

/// `num_heads`, at least 1; 0 after a violation.
std::int64_t head_count(Inference& in, std::string_view attribute) {
  const std::int64_t heads = in.int_attribute(attribute, 0);
  if (heads >= 1) return heads;
  in.fail(kContribHeads, {}, {"{} of {} is {}, at least 1 needed", AttributeName(attribute), in.call().name, heads});
  return 0;
}

/// Each head has an equal part of `width`, of an operand.
void check_heads(Inference& in, Dim width, std::int64_t heads, std::string_view attribute, int operand) {
  const auto extent = in.dims().as_constant(width);
  if (heads < 1 || !extent || *extent % heads == 0) return;
  in.fail(kContribHeads, {operand},
          {"{} of {} is {}, which does not divide the hidden size {} of {}", AttributeName(attribute), in.call().name,
           heads, *extent, OperandRef(operand)});
}

/// Data [batch, length, width] times merged weights [width, 3 * hidden], or widths of their own in qkv_hidden_sizes.
void merged_attention(Inference& in, int past, bool packed) {
  DimPool& pool = in.dims();
  const std::int64_t heads = head_count(in, "num_heads");
  if (heads == 0 || !check_rank(in, 0, {packed ? std::size_t{2} : std::size_t{3}}, kContribAttention)) return;
  check_shape(in, 1, Dims{last(in, 0), dim_of(in, 1, 1)}, kContribAttention, "weights", 0);
  check_shape(in, 2, Dims{dim_of(in, 1, 1)}, kContribAttention, "bias", 1);
  const auto sizes = in.ints_attribute("qkv_hidden_sizes");
  const Dim third = pool.floor_div(dim_of(in, 1, 1), pool.constant(3));
  const bool own = sizes && sizes->size() == 3;
  const Dim hidden = own ? pool.constant((*sizes)[0]) : third, values = own ? pool.constant((*sizes)[2]) : third;
  check_heads(in, hidden, heads, "num_heads", 1);
  if (packed) return in.set_shape(0, Dims{dim_of(in, 0, 0), values});
  const Dim batch = dim_of(in, 0, 0), length = dim_of(in, 0, 1);
  in.set_shape(0, Dims{batch, length, values});
  // A buffer that past and present share keeps its own length.
  const bool shared = in.int_attribute("past_present_share_buffer", 0) != 0;
  Dim total = length;
  if (in.has(past)) total = shared ? dim_of(in, past, 3) : pool.add(dim_of(in, past, 3), length);
  in.set_shape(
      1, Dims{pool.constant(2), batch, pool.constant(heads), total, pool.floor_div(hidden, pool.constant(heads))});
}

void multi_head_attention(Inference& in) {
  DimPool& pool = in.dims();
  const std::int64_t count = head_count(in, "num_heads");
  const auto query = in.shape(0), key = in.shape(1), value = in.shape(2);
  if (count == 0 || !query || !check_rank(in, 0, {3, 5}, kContribAttention)) return;
  const Dim heads = pool.constant(count), batch = (*query)[0], length = (*query)[1];
  // Packed query, key and value: [batch, length, heads, 3, size].
  const bool packed = query->size() == 5;
  const Dim hidden = packed ? pool.mul((*query)[2], (*query)[4]) : (*query)[2];
  const Dim size = packed ? (*query)[4] : pool.floor_div(hidden, heads);
  if (!packed) check_heads(in, hidden, count, "num_heads", 0);
  Dim values(Unknown::kNotTracked), value_size(Unknown::kNotTracked), fed(Unknown::kNotTracked);
  if (packed) {
    values = hidden;
    value_size = size;
    fed = length;
  } else if (key && key->size() == 5) {
    values = pool.mul((*key)[2], (*key)[4]);
    value_size = (*key)[4];
    fed = (*key)[1];
  } else if (value && value->size() == 3) {
    values = (*value)[2];
    value_size = pool.floor_div(values, heads);
    fed = (*value)[1];
    if (key && key->size() == 3) {
      check_shape(in, 1, Dims{batch, fed, hidden}, kContribAttention, "key", 0);
      check_shape(in, 2, Dims{batch, (*key)[1], values}, kContribAttention, "value", 1);
    }
  } else if (value && value->size() == 4) {
    // Key and value of a cross attention come as they were cached: [batch, heads, length, size].
    values = pool.mul((*value)[1], (*value)[3]);
    value_size = (*value)[3];
    fed = (*value)[2];
  }
  in.set_shape(0, Dims{batch, length, values});
  Dim total = fed;
  const bool cached = in.has(6);
  if (cached) total = in.has(8) ? dim_of(in, 6, 2) : pool.add(fed, dim_of(in, 6, 2));
  in.set_shape(1, Dims{batch, heads, total, size});
  in.set_shape(2, Dims{batch, heads, total, value_size});
  in.set_shape(3, Dims{batch, heads, length, cached && in.has(8) ? Dim(Unknown::kDataDependent) : total});
}

void group_query_attention(Inference& in) {
  DimPool& pool = in.dims();
  const std::int64_t heads = head_count(in, "num_heads"), shared = head_count(in, "kv_num_heads");
  if (heads == 0 || shared == 0 || !check_rank(in, 0, {3}, kContribAttention)) return;
  const Dim batch = dim_of(in, 0, 0), length = dim_of(in, 0, 1), width = dim_of(in, 0, 2);
  const auto all = checked::add(heads, checked::mul(2, shared).value_or(0));
  if (!all) return;
  // Without a key, the query holds query, key and value.
  const Dim size = pool.floor_div(width, pool.constant(in.has(1) ? heads : *all));
  if (in.has(1)) check_heads(in, width, heads, "num_heads", 0);
  in.set_shape(0, Dims{batch, length, in.has(1) ? width : pool.mul(size, pool.constant(heads))});
  if (in.has(1)) {
    check_shape(in, 1, Dims{batch, dim_of(in, 1, 1), dim_of(in, 2, 2)}, kContribAttention, "key", 0);
    check_shape(in, 2, Dims{batch, dim_of(in, 1, 1), dim_of(in, 1, 2)}, kContribAttention, "value", 1);
  }
  // Whether past and present are one buffer is decided at run time, by its caller.
  for (const int result : {1, 2})
    in.set_shape(result, Dims{batch, pool.constant(shared), Dim(Unknown::kDataDependent), dim_of(in, 3, 3)});
}

void remove_padding(Inference& in) {
  DimPool& pool = in.dims();
  const Dim batch = dim_of(in, 0, 0);
  in.set_shape(0, Dims{in.fresh(0, 0, Unknown::kDataDependent), dim_of(in, 0, 2)});
  in.set_shape(1, Dims{batch, dim_of(in, 0, 1)});
  in.set_shape(2, Dims{pool.add(batch, pool.constant(1))});
  in.set_shape(3, Dims{pool.constant(1)});
}

void restore_padding(Inference& in) { in.set_shape(0, Dims{dim_of(in, 1, 0), dim_of(in, 1, 1), dim_of(in, 0, 1)}); }

void relative_position_bias(Inference& in) {
  const auto length = [&](int operand) {
    const auto elements = in.elements(operand);
    return elements && elements->size() == 1 ? elements->front() : Dim(Unknown::kDataDependent);
  };
  in.set_shape(0, Dims{in.dims().constant(1), dim_of(in, 0, 1), length(1), length(2)});
}

OpEntry attention(std::string_view name, InferFunction function) {
  return contrib(name, function).constraint(kContribAttention).constraint(kContribHeads);
}

const RegisterOps kRegisterContribAttentionAttention{
    attention("Attention", [](Inference& in) { merged_attention(in, 4, false); }),
    attention("QAttention", [](Inference& in) { merged_attention(in, 8, false); }),
    attention("PackedAttention", [](Inference& in) { merged_attention(in, -1, true); }),
    attention("MultiHeadAttention", multi_head_attention),
    attention("GroupQueryAttention", group_query_attention),
    contrib("RelativePositionBias", relative_position_bias),
    contrib("RemovePadding", remove_padding),
    contrib("RestorePadding", restore_padding),
};

const RegisterOps kRegisterContribAttentionRecurrent{
    contrib("DynamicQuantizeLSTM", dynamic_quantize_lstm).constraint(kContribAttention),
};

}  // namespace
}  // namespace tensorlint::ops
