// Attention: the operator, and products, softmax and products as exporters write it out.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "runtime/executor/kernel_matcher.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// Operators between two products that are looked through, in each direction.
constexpr int kMostSteps = 6;

}  // namespace

/// A value by the elements of another one that lie apart, as transposes between them say.
struct KernelMatcher::StridedValue {
  ValueId value = ValueId::kAbsent;
  Extents extents;
  std::vector<std::int64_t> strides;

  /// Strides along `batch`, 0 where it repeats; nullopt where it does not fit. The last two axes are left out.
  std::optional<std::vector<std::int64_t>> along(std::span<const std::int64_t> batch) const {
    const std::size_t own = extents.size() - 2;
    if (own > batch.size()) return std::nullopt;
    std::vector<std::int64_t> steps(batch.size(), 0);
    for (std::size_t axis = 0; axis < own; ++axis) {
      const std::size_t to = batch.size() - own + axis;
      if (extents[axis] != 1 && extents[axis] != batch[to]) return std::nullopt;
      if (extents[axis] != 1) steps[to] = strides[axis];
    }
    return steps;
  }
  kernels::MatrixOperand rows() const { return {.row = strides[extents.size() - 2], .column = strides.back()}; }
  kernels::MatrixOperand columns() const { return {.row = strides.back(), .column = strides[extents.size() - 2]}; }
};

/// The node that alone reads a value; kNone where there are others, or it is an output.
NodeId KernelMatcher::only_reader(ValueId value) const {
  const auto readers = readers_.of(value);
  return readers.size() == 1 && !readers_.is_output(value) ? readers.front() : NodeId::kNone;
}

/// A factor of scores without the numbers it was multiplied with, which go to `scale`, and as it was before transposes.
std::optional<KernelMatcher::StridedValue> KernelMatcher::strided(ValueId value, std::set<NodeId>& formula,
                                                                  double* scale) const {
  const auto shape = extents(value);
  if (!shape || shape->size() < 2) return std::nullopt;
  const std::optional<DType> kept = dtype(value);
  std::vector<std::size_t> order(shape->size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const GraphId graph = formula.empty() ? GraphId::kNone : model_.node(*formula.begin()).graph;
  for (int step = 0; step < kMostSteps; ++step) {
    const NodeId node = expressions_.producer(value);
    if (node == NodeId::kNone || is_taken(node) || model_.node(node).graph != graph) break;
    if (only_reader(value) == NodeId::kNone) break;
    ValueId before = expressions_.operand(node, 0);
    const Opcode opcode = expressions_.op(node);
    if (opcode == Opcode::kTranspose) {
      const Attribute* const perm = model_.attribute(model_.node(node), "perm");
      if (perm != nullptr && (!perm->reference.empty() || perm->ints.size() != order.size())) break;
      for (std::size_t& axis : order)
        axis = perm == nullptr ? order.size() - 1 - axis : static_cast<std::size_t>(perm->ints[axis]);
    } else if (scale != nullptr && (opcode == Opcode::kMul || opcode == Opcode::kDiv)) {
      const bool first = opcode == Opcode::kMul && exact_number(before);
      const auto number = exact_number(expressions_.operand(node, first ? 0 : 1));
      if (!number) break;
      if (first) before = expressions_.operand(node, 1);
      if (extents(before) != extents(value)) break;
      *scale = opcode == Opcode::kMul ? *scale * *number : *scale / *number;
    } else {
      break;
    }
    if (dtype(before) != kept) break;
    formula.insert(node);
    value = before;
  }
  const auto source = extents(value);
  if (!source || source->size() != order.size()) return std::nullopt;
  const std::vector<std::int64_t> own = strides_of(*source);
  StridedValue found{.value = value, .extents = {}, .strides = {}};
  for (const std::size_t axis : order) {
    found.extents.push_back((*source)[axis]);
    found.strides.push_back(own[axis]);
  }
  return found;
}

/// A product, or one that is scaled or in another dtype.
bool KernelMatcher::is_of_product(ValueId value) const {
  for (int step = 0; step < kMostSteps; ++step) {
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    if (opcode == Opcode::kMatMul) return true;
    if (opcode != Opcode::kCast && opcode != Opcode::kMul && opcode != Opcode::kDiv) return false;
    value = expressions_.operand(node, opcode == Opcode::kMul && exact_number(expressions_.operand(node, 0)) ? 1 : 0);
  }
  return false;
}

/// What comes before a softmax, back to the product: scaling, a mask that is added or selects.
bool KernelMatcher::read_scores(ValueId value, std::set<NodeId>& formula, WrittenAttention& found) const {
  const auto shape = extents(value);
  kernels::Attention& request = found.request;
  for (int step = 0; step < kMostSteps; ++step) {
    const NodeId node = expressions_.producer(value);
    const ValueId first = expressions_.operand(node, 0), second = expressions_.operand(node, 1);
    const bool is_masked = request.mask_kind != kernels::AttentionMask::kNone;
    if (node == NodeId::kNone || is_taken(node) || extents(value) != shape) return false;
    formula.insert(node);
    switch (expressions_.op(node)) {
      case Opcode::kMatMul:
        found.product = node;
        return model_.text(model_.op(model_.node(node)).name) == "MatMul";
      case Opcode::kCast:
        if (!dtype(first) || !float_dtype(*dtype(first))) return false;
        value = first;
        break;
      case Opcode::kMul:
      case Opcode::kDiv: {
        const bool swapped = expressions_.op(node) == Opcode::kMul && exact_number(first);
        const auto number = exact_number(swapped ? first : second);
        if (!number) return false;
        request.scale = expressions_.op(node) == Opcode::kMul ? request.scale * *number : request.scale / *number;
        value = swapped ? second : first;
        break;
      }
      // What is added or selected after it is not scaled.
      case Opcode::kAdd: {
        if (is_masked || request.scale != 1) return false;
        const bool swapped = !is_of_product(first);
        found.mask = swapped ? first : second;
        request.mask_kind = kernels::AttentionMask::kAdded;
        value = swapped ? second : first;
        break;
      }
      case Opcode::kWhere: {
        if (is_masked || request.scale != 1) return false;
        const ValueId third = expressions_.operand(node, 2);
        const auto chosen = exact_number(second), otherwise = exact_number(third);
        if (chosen.has_value() == otherwise.has_value()) return false;
        found.mask = first;
        request.mask_kind = chosen ? kernels::AttentionMask::kDrops : kernels::AttentionMask::kKeeps;
        request.fill = chosen ? *chosen : *otherwise;
        value = chosen ? third : second;
        break;
      }
      default:
        return false;
    }
  }
  return false;
}

/// What comes after a softmax, as far as the product with the values.
NodeId KernelMatcher::read_weights(ValueId value, std::set<NodeId>& formula, kernels::Attention& request) const {
  for (int step = 0; step < kMostSteps; ++step) {
    const auto readers = readers_.of(value);
    if (readers_.is_output(value) || readers.empty()) return NodeId::kNone;
    const NodeId node = readers.front();
    if (readers.size() == 2) {
      // What is not a number becomes 0.
      const bool swapped = model_.text(model_.op(model_.node(node)).name) != "IsNaN";
      const NodeId test = swapped ? readers.back() : node, select = swapped ? node : readers.back();
      if (model_.text(model_.op(model_.node(test)).name) != "IsNaN" || expressions_.op(select) != Opcode::kWhere ||
          expressions_.operand(select, 0) != expressions_.result(test) ||
          exact_number(expressions_.operand(select, 1)) != 0.0 || expressions_.operand(select, 2) != value ||
          extents(expressions_.result(select)) != extents(value))
        return NodeId::kNone;
      formula.insert({test, select});
      request.undefined = kernels::UndefinedRows::kZero;
      value = expressions_.result(select);
      continue;
    }
    if (readers.size() != 1 || is_taken(node) || expressions_.operand(node, 0) != value) return NodeId::kNone;
    formula.insert(node);
    if (expressions_.op(node) == Opcode::kMatMul)
      return model_.text(model_.op(model_.node(node)).name) == "MatMul" && expressions_.operand(node, 1) != value
                 ? node
                 : NodeId::kNone;
    if (expressions_.op(node) != Opcode::kCast) return NodeId::kNone;
    value = expressions_.result(node);
    if (!dtype(value) || !float_dtype(*dtype(value))) return NodeId::kNone;
  }
  return NodeId::kNone;
}

/// MatMul, Softmax, MatMul: what stands between them is a scale, a mask, changes of dtype.
bool KernelMatcher::add_written_attention(NodeId softmax) {
  const ValueId scores = expressions_.operand(softmax, 0);
  const auto axes = expressions_.axes_of(softmax);
  const auto shape = extents(scores);
  if (!axes || axes->size() != 1 || !shape || axes->front() + 1 != shape->size()) return false;
  std::set<NodeId> formula{softmax};
  WrittenAttention found;
  kernels::Attention& request = found.request;
  if (!read_scores(scores, formula, found)) return false;
  const NodeId last = read_weights(expressions_.result(softmax), formula, request);
  if (last == NodeId::kNone) return false;
  const auto query = strided(expressions_.operand(found.product, 0), formula, &request.scale),
             key = strided(expressions_.operand(found.product, 1), formula, &request.scale),
             value = strided(expressions_.operand(last, 1), formula, nullptr);
  ValueId result = expressions_.result(last);
  const auto type = dtype(result);
  const auto made = extents(result);
  if (!query || !key || !value || !type || !made || made->size() != shape->size()) return false;
  for (const StridedValue* const operand : {&*query, &*key, &*value})
    if (dtype(operand->value) != type) return false;
  if (!float_dtype(*type) || *type == DType::kFloat64) return false;
  const std::size_t stack = shape->size() - 2;
  const auto batch = std::span(*made).first(stack);
  if (!std::ranges::equal(batch, std::span(*shape).first(stack))) return false;
  request.dtype = *float_dtype(*type);
  request.queries = (*shape)[stack];
  request.keys = shape->back();
  request.width = query->extents.back();
  request.value_width = made->back();
  if (request.width > kernels::kMaxAttentionWidth || request.value_width > kernels::kMaxAttentionWidth) return false;
  const auto query_steps = query->along(batch), key_steps = key->along(batch), value_steps = value->along(batch);
  if (!query_steps || !key_steps || !value_steps) return false;
  request.query = query->rows();
  request.key = key->columns();
  request.value = value->rows();
  std::vector<std::int64_t> mask_steps(shape->size(), 0);
  std::vector<ValueId> operands{query->value, key->value, value->value};
  if (found.mask != ValueId::kAbsent) {
    const auto mask = extents(found.mask);
    if (!mask || mask->size() > shape->size() ||
        dtype(found.mask) != (request.mask_kind == kernels::AttentionMask::kAdded ? *type : DType::kBool))
      return false;
    for (std::size_t axis = 0; axis < mask->size(); ++axis)
      if ((*mask)[axis] != 1 && (*mask)[axis] != (*shape)[shape->size() - mask->size() + axis]) return false;
    mask_steps = broadcast_strides(*mask, *shape);
    request.mask.row = mask_steps[stack];
    request.mask.column = mask_steps[stack + 1];
    operands.push_back(found.mask);
  }
  // Heads are put back beside each other as results are written.
  std::vector<std::int64_t> result_steps = strides_of(*made);
  if (const NodeId turn = only_reader(result); turn != NodeId::kNone && !is_taken(turn) &&
                                               expressions_.op(turn) == Opcode::kTranspose &&
                                               model_.node(turn).graph == model_.node(last).graph) {
    const Attribute* const perm = model_.attribute(model_.node(turn), "perm");
    const auto transposed = extents(expressions_.result(turn));
    if (transposed && perm != nullptr && perm->reference.empty() && perm->ints.size() == made->size() &&
        perm->ints.back() == static_cast<std::int64_t>(made->size()) - 1) {
      const std::vector<std::int64_t> own = strides_of(*transposed);
      for (std::size_t axis = 0; axis < own.size(); ++axis)
        result_steps[static_cast<std::size_t>(perm->ints[axis])] = own[axis];
      formula.insert(turn);
      result = expressions_.result(turn);
    }
  }
  request.result_row = result_steps[stack];
  for (std::size_t axis = 0; axis < stack; ++axis) {
    if (batch[axis] == 1) continue;
    if (request.batch_rank == kernels::kMaxBatchAxes) return false;
    const int to = request.batch_rank++;
    request.batch[to] = batch[axis];
    request.query.batch[to] = (*query_steps)[axis];
    request.key.batch[to] = (*key_steps)[axis];
    request.value.batch[to] = (*value_steps)[axis];
    request.mask.batch[to] = mask_steps[axis];
    request.result_batch[to] = result_steps[axis];
  }
  if (kernels::attention_shared_bytes(request.width, request.value_width) > shared_bytes_)
    return false;  // products and a softmax do fit
  return add_attention_call(result, std::move(operands), request, formula);
}

/// Attention of ai.onnx: heads of 4 axes, or packed into the last one of 3; several of queries may share one of keys.
void KernelMatcher::add_attention(NodeId node) {
  const auto operands = model_.operands(model_.node(node));
  const auto number = [&](std::string_view key, std::int64_t fallback) {
    const Attribute* const attribute = model_.attribute(model_.node(node), key);
    return attribute == nullptr ? fallback : attribute->i;
  };
  if (needs_more_results(node)) return leave(node, "there is no kernel for its further results");
  for (std::size_t i = 4; i < operands.size(); ++i)
    if (operands[i] != ValueId::kAbsent) return leave(node, "there is no kernel for caches of keys and values");
  if (const Attribute* const cap = model_.attribute(model_.node(node), "softcap"); cap != nullptr && cap->f != 0)
    return leave(node, "there is no kernel for capped scores");
  if (number("left_window_size", -1) >= 0 || number("right_window_size", -1) >= 0)
    return leave(node, "there is no kernel for windows of keys");
  const auto type = dtype(operands[0]);
  if (!type) return leave(node, "its dtype is not known before the run");
  const ValueId result = expressions_.result(node);
  struct Heads {
    std::int64_t batch, heads, length, size, batch_step, head_step, row;
  };
  const auto heads_of = [&](ValueId value, std::string_view attribute) -> std::optional<Heads> {
    const auto shape = extents(value);
    if (!shape) return std::nullopt;
    const Extents& e = *shape;
    if (e.size() == 4) return Heads{e[0], e[1], e[2], e[3], e[1] * e[2] * e[3], e[2] * e[3], e[3]};
    const std::int64_t heads = number(attribute, 0);
    if (e.size() != 3 || heads < 1 || e[2] % heads != 0) return std::nullopt;
    return Heads{e[0], heads, e[1], e[2] / heads, e[1] * e[2], e[2] / heads, e[2]};
  };
  const auto query = heads_of(operands[0], "q_num_heads"), key = heads_of(operands[1], "kv_num_heads"),
             value = heads_of(operands[2], "kv_num_heads"), made = heads_of(result, "q_num_heads");
  if (!query || !key || !value || !made) return leave(node, "its extents are not known before the run");
  if (key->heads < 1 || query->heads % key->heads != 0 || key->heads != value->heads || key->length != value->length ||
      query->size != key->size || query->batch != key->batch || query->batch != value->batch ||
      made->heads != query->heads || made->size != value->size || made->length != query->length)
    return leave(node, "its operands do not fit");
  if (query->size > kernels::kMaxAttentionWidth || value->size > kernels::kMaxAttentionWidth)
    return leave(node,
                 fmt::format("there is no kernel for heads of more than {} elements", kernels::kMaxAttentionWidth));
  if (!float_dtype(*type) || *type == DType::kFloat64 || dtype(operands[1]) != type || dtype(operands[2]) != type)
    return leave(node, "its operands have different dtypes");
  kernels::Attention request;
  request.dtype = *float_dtype(*type);
  request.queries = query->length;
  request.keys = key->length;
  request.width = query->size;
  request.value_width = value->size;
  const Attribute* const scale = model_.attribute(model_.node(node), "scale");
  request.scale = scale == nullptr ? 1 / std::sqrt(static_cast<double>(query->size)) : static_cast<double>(scale->f);
  request.causal = number("is_causal", 0) != 0;
  request.undefined = kernels::UndefinedRows::kZeroWithoutKeys;
  const std::int64_t shares = query->heads / key->heads;
  request.batch_rank = 3;
  std::ranges::copy(std::array{query->batch, key->heads, shares}, request.batch);
  const auto operand = [](const Heads& heads, std::int64_t shared, bool repeats) {
    kernels::MatrixOperand steps{.row = heads.row, .column = 1};
    std::ranges::copy(std::array{heads.batch_step, heads.head_step * (repeats ? 1 : shared),
                                 repeats ? std::int64_t{0} : heads.head_step},
                      steps.batch);
    return steps;
  };
  request.query = operand(*query, shares, false);
  request.key = operand(*key, shares, true);
  request.value = operand(*value, shares, true);
  const kernels::MatrixOperand to = operand(*made, shares, false);
  request.result_row = to.row;
  std::ranges::copy(to.batch, request.result_batch);
  std::vector<ValueId> read{operands[0], operands[1], operands[2]};
  if (const ValueId given = expressions_.operand(node, 3); given != ValueId::kAbsent) {
    const auto mask = extents(given);
    const bool is_bool = dtype(given) == DType::kBool;
    if (!mask) return leave(node, "its extents are not known before the run");
    if (!is_bool && dtype(given) != type) return leave(node, "its operands have different dtypes");
    const Extents scores{query->batch, query->heads, query->length, key->length};
    if (mask->size() > 4 || mask->size() < 2 || mask->back() != key->length)
      return leave(node, "there is no kernel for a mask of fewer keys");
    for (std::size_t axis = 0; axis < mask->size(); ++axis)
      if ((*mask)[axis] != 1 && (*mask)[axis] != scores[4 - mask->size() + axis])
        return leave(node, "its operands do not fit");
    const std::vector<std::int64_t> steps = broadcast_strides(*mask, scores);
    request.mask_kind = is_bool ? kernels::AttentionMask::kKeeps : kernels::AttentionMask::kAdded;
    request.mask.row = steps[2];
    request.mask.column = steps[3];
    std::ranges::copy(std::array{steps[0], steps[1] * shares, steps[1]}, request.mask.batch);
    read.push_back(given);
  }
  if (const std::size_t needed = kernels::attention_shared_bytes(request.width, request.value_width);
      needed > shared_bytes_)
    return leave(
        node, fmt::format("its kernel takes {} bytes of shared memory, and the device has {}", needed, shared_bytes_));
  (void)add_attention_call(result, std::move(read), request, {node});
}

bool KernelMatcher::add_attention_call(ValueId result, std::vector<ValueId> operands, const kernels::Attention& request,
                                       const std::set<NodeId>& formula) {
  std::string kernel = "attention";
  if (request.causal) kernel += ", causal";
  if (request.mask_kind == kernels::AttentionMask::kAdded) kernel += ", mask added";
  if (request.mask_kind == kernels::AttentionMask::kKeeps || request.mask_kind == kernels::AttentionMask::kDrops)
    kernel += ", mask selects";
  KernelCall call{.kernel = std::move(kernel),
                  .results = {{.value = result}},
                  .request = std::make_shared<const kernels::Attention>(request)};
  for (const ValueId operand : operands) call.operands.push_back({.value = operand});
  call.operands.resize(4);
  return complete(std::move(call), operands, formula);
}

}  // namespace tensorlint::runtime
