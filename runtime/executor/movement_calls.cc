#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "ir/ops/contents.h"
#include "ir/ops/slicing.h"
#include "runtime/executor/kernel_matcher.h"
#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/block_view.h"
#include "runtime/interpreter/constants.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {

using kernels::Movement;
using kernels::MovementKind;

/// A node that moves elements: what is known of it before it is looked at as a certain operator.
struct KernelMatcher::MovementNode {
  NodeId node = NodeId::kNone;
  ValueId data = ValueId::kAbsent, result = ValueId::kAbsent;
  DType dtype = DType::kUndefined;
  Extents shape, extents;  ///< of the data and of the result
  ops::Inference& in;
};

struct KernelMatcher::MovementOperator {
  std::string_view name;
  bool (KernelMatcher::*add)(const MovementNode& moved);
  bool reads_extents = false;  ///< of its first operand, and no elements
  int shape_operand = -1;      ///< whose elements say what extents the result has, so that they have to be known
};

namespace {

void set(std::int64_t (&to)[kernels::kMaxMovementRank], std::span<const std::int64_t> from) {
  std::ranges::copy(from, to);
}

/// Of all elements of a dense result, from a source of so many.
Movement into_result(const Extents& extents, DType dtype, std::int64_t source_elements) {
  Movement m;
  m.element_bytes = static_cast<int>(element_bytes(dtype));
  m.rank = static_cast<int>(extents.size());
  set(m.extents, extents);
  set(m.to.strides, strides_of(extents));
  m.to.elements = 1;
  for (const std::int64_t extent : extents) m.to.elements *= extent;
  m.from.elements = source_elements;
  return m;
}

std::int64_t elements_of(std::span<const std::int64_t> extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) elements *= extent;
  return elements;
}

/// The same bits for each index, of which the source has no element.
Movement fill_of(const Extents& extents, DType dtype, std::uint64_t bits) {
  Movement m = into_result(extents, dtype, 0);
  m.kind = MovementKind::kPad;
  m.fill = bits;
  return m;
}

std::uint64_t bits_of(DType dtype, double number) {
  if (dtype == DType::kFloat64) return std::bit_cast<std::uint64_t>(number);
  if (dtype == DType::kFloat32) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return encode(dtype, number);
  return static_cast<std::uint64_t>(truncated(number));
}

}  // namespace

PackedMovement::PackedMovement(const Movement& request) {
  const auto words = std::bit_cast<std::array<std::uint64_t, kWords>>(request);
  for (std::size_t i = 0; i < kWords; ++i) is_kept_[i] = words[i] != 0;
  words_.reserve(is_kept_.count());
  std::ranges::copy_if(words, std::back_inserter(words_), [](std::uint64_t word) { return word != 0; });
}

Movement PackedMovement::request() const {
  std::array<std::uint64_t, kWords> words{};
  std::size_t kept = 0;
  for (std::size_t i = 0; i < kWords; ++i)
    if (is_kept_[i]) words[i] = words_[kept++];
  return std::bit_cast<Movement>(words);
}

void KernelMatcher::add_movement(NodeId node) {
  static constexpr MovementOperator kOperators[] = {
      {"Identity", &KernelMatcher::add_view},
      {"Reshape", &KernelMatcher::add_view, false, 1},
      {"Flatten", &KernelMatcher::add_view},
      {"Squeeze", &KernelMatcher::add_view, false, 1},
      {"Unsqueeze", &KernelMatcher::add_view, false, 1},
      {"Transpose", &KernelMatcher::add_transpose},
      {"Expand", &KernelMatcher::add_expand, false, 1},
      {"Tile", &KernelMatcher::add_tile, false, 1},
      {"Slice", &KernelMatcher::add_slice},
      {"Concat", &KernelMatcher::add_concat},
      {"Split", &KernelMatcher::add_split, false, 1},
      {"Pad", &KernelMatcher::add_pad},
      {"DepthToSpace", &KernelMatcher::add_depth_to_space},
      {"SpaceToDepth", &KernelMatcher::add_space_to_depth},
      {"Gather", &KernelMatcher::add_gather},
      {"GatherElements", &KernelMatcher::add_gather_elements},
      {"GatherND", &KernelMatcher::add_gather_nd},
      {"ScatterElements", &KernelMatcher::add_scatter_elements},
      {"ScatterND", &KernelMatcher::add_scatter_nd},
      {"ConstantOfShape", &KernelMatcher::add_fill, true, 0},
      {"EyeLike", &KernelMatcher::add_eye, true},
      {"OneHot", &KernelMatcher::add_one_hot, false, 1},
  };
  const std::string_view name = model_.text(model_.op(model_.node(node)).name);
  const auto known = std::ranges::find(kOperators, name, &MovementOperator::name);
  if (known == std::end(kOperators)) return;
  const auto refuse = [&](std::string reason) { leave(node, std::move(reason)); };
  if (refers_to_call(node)) return refuse("an attribute is that of the function's call");
  const ValueId data = expressions_.operand(node, 0), result = expressions_.result(node);
  const auto type = dtype(data), result_type = dtype(result);
  const auto shape = extents(data), result_shape = extents(result);
  if (!type || !result_type || !shape || !result_shape) return refuse("its extents are not known before the run");
  // A declaration of the result may say otherwise than the elements do, and these may ask for what cannot be.
  if (known->shape_operand >= 0 &&
      !knows_elements(expressions_.operand(node, static_cast<std::size_t>(known->shape_operand))))
    return refuse("the shape that it asks for is not known before the run");
  if (!DTypeSet::floats().contains(*result_type) && analysis_.fact(result).content != ContentId::kNone)
    return refuse("its elements are known before the run");
  const auto readers = readers_.of(result);
  // What is filled is not worth a copy, unless the interpreter keeps all that is made of it.
  const bool is_made_anew = known->reads_extents &&
                            (readers_.is_output(result) || readers.empty() ||
                             std::ranges::any_of(readers, [&](NodeId reader) { return !constants_.contains(reader); }));
  if (!is_made_anew &&
      std::ranges::all_of(model_.operands(model_.node(node)), [&](ValueId value) { return is_constant(value); }))
    return refuse("its operands are constants");
  if (std::max(shape->size(), result_shape->size()) > kernels::kMaxMovementRank)
    return refuse(fmt::format("it has more than {} axes", kernels::kMaxMovementRank));
  const dataflow::Analysis::NodeApplication application(analysis_, node);
  ops::InferenceResult scratch;
  ops::Inference in(*application, scratch);
  const MovementNode moved{node, data, result, *type, *shape, *result_shape, in};
  if (!(this->*known->add)(moved) && reason(node).empty()) leave(node, "there is no kernel for it");
}

/// `operands`: sources and indices, as the parts number them.
bool KernelMatcher::complete_movement(const MovementNode& moved, std::string kernel, MovementCall request,
                                      std::vector<ValueId> operands) {
  KernelCall call{.kernel = std::move(kernel), .results = {{.value = moved.result}}, .request = std::move(request)};
  for (const ValueId operand : operands) call.operands.push_back({.value = operand});
  return complete(std::move(call), operands, {moved.node});
}

bool KernelMatcher::complete_copy(const MovementNode& moved, std::string kernel, const Movement& copy) {
  return complete_movement(moved, std::move(kernel), {{{copy, 0, -1}}}, {moved.data});
}

bool KernelMatcher::add_view(const MovementNode& moved) {
  if (count(moved.shape) != count(moved.extents)) return false;
  KernelCall call{.kernel = "view",
                  .results = {{.value = moved.result}},
                  .operands = {{.value = moved.data}},
                  .request = ViewCall{}};
  return complete(std::move(call), std::span(&moved.data, 1), {moved.node});
}

bool KernelMatcher::add_transpose(const MovementNode& moved) {
  const auto perm = moved.in.ints_attribute("perm");
  Movement m = into_result(moved.extents, moved.dtype, count(moved.shape));
  const std::vector<std::int64_t> own = strides_of(moved.shape);
  for (std::size_t i = 0; i < own.size(); ++i)
    m.from.strides[i] = own[perm ? static_cast<std::size_t>((*perm)[i]) : own.size() - 1 - i];
  return complete_copy(moved, "move transpose", m);
}

bool KernelMatcher::add_expand(const MovementNode& moved) {
  Movement m = into_result(moved.extents, moved.dtype, count(moved.shape));
  set(m.from.strides, broadcast_strides(moved.shape, moved.extents));
  return complete_copy(moved, "move expand", m);
}

/// Each axis of the result is two: which repeat, and where in it.
bool KernelMatcher::add_tile(const MovementNode& moved) {
  const std::vector<std::int64_t> own = strides_of(moved.shape);
  Extents extents;
  std::vector<std::int64_t> strides;
  for (std::size_t axis = 0; axis < moved.shape.size(); ++axis) {
    const std::int64_t extent = std::max<std::int64_t>(moved.shape[axis], 1);
    const std::int64_t repeats = moved.extents[axis] / extent;
    if (repeats != 1) {
      extents.push_back(repeats);
      strides.push_back(0);
    }
    extents.push_back(moved.shape[axis]);
    strides.push_back(own[axis]);
  }
  if (extents.size() > kernels::kMaxMovementRank) return false;
  Movement m = into_result(extents, moved.dtype, count(moved.shape));
  set(m.from.strides, strides);
  return complete_copy(moved, "move tile", m);
}

bool KernelMatcher::add_slice(const MovementNode& moved) {
  const auto bounds = ops::read_bounds(moved.in, *moved.in.shape(0));
  const auto open = [&] {
    leave(moved.node, "where it is sliced is not known before the run");
    return false;
  };
  if (!bounds) return open();
  const DimPool& pool = analysis_.facts().dims();
  Movement m = into_result(moved.extents, moved.dtype, count(moved.shape));
  std::vector<std::int64_t> strides = strides_of(moved.shape);
  for (std::size_t i = 0; i < bounds->axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(bounds->axes[i]);
    const auto start = pool.as_constant(bounds->starts[i]), end = pool.as_constant(bounds->ends[i]),
               step = pool.as_constant(bounds->steps[i]);
    if (!start || !end || !step) return open();
    const auto [begin, length] = ops::constant_slice(moved.shape[axis], *start, *end, *step);
    if (length != moved.extents[axis]) return open();
    m.from.offset += begin * strides[axis];
    if (length > 1) strides[axis] *= *step;
  }
  set(m.from.strides, strides);
  if (m.to.elements == 0) m.from.offset = 0;
  return complete_copy(moved, "move slice", m);
}

bool KernelMatcher::add_concat(const MovementNode& moved) {
  const auto parts = model_.operands(model_.node(moved.node));
  const std::size_t rank = moved.extents.size();
  const std::size_t axis = from_front(moved.in.int_attribute("axis", 1), rank);
  MovementCall request;
  request.parts.reserve(parts.size());
  std::vector<ValueId> values;
  std::map<ValueId, int> numbers;
  const std::vector<std::int64_t> whole = strides_of(moved.extents);
  std::int64_t first = 0;
  for (const ValueId part : parts) {
    const auto shape = extents(part);
    if (!shape || shape->size() != rank || axis >= rank || is_spent()) return false;
    analysis_.meter().charge(32);
    Movement m = into_result(*shape, moved.dtype, count(*shape));
    set(m.from.strides, strides_of(*shape));
    set(m.to.strides, whole);
    m.to.elements = count(moved.extents);
    m.to.offset = m.from.elements == 0 ? 0 : first * whole[axis];
    first += (*shape)[axis];
    const auto [number, is_new] = numbers.emplace(part, static_cast<int>(values.size()));
    if (is_new) values.push_back(part);
    request.parts.push_back({m, number->second, -1});
  }
  if (first != moved.extents[axis]) return false;
  std::string kernel = fmt::format("move concat of {}", request.parts.size());
  return complete_movement(moved, std::move(kernel), std::move(request), values);
}

/// A slice for each part that something reads.
bool KernelMatcher::add_split(const MovementNode& moved) {
  const std::size_t rank = moved.shape.size();
  const std::size_t axis = from_front(moved.in.int_attribute("axis", 0), rank);
  if (axis >= rank) return false;
  const std::vector<std::int64_t> whole = strides_of(moved.shape);
  KernelCall call{.kernel = {}, .operands = {{.value = moved.data}}};
  MovementCall request;
  std::int64_t first = 0;
  const std::span<const ValueId> parts = model_.results(model_.node(moved.node));
  std::vector<std::optional<Extents>> shapes;
  std::int64_t named = 0;
  for (const ValueId part : parts) {
    shapes.push_back(part == ValueId::kAbsent ? std::nullopt : extents(part));
    if (part == ValueId::kAbsent) continue;
    if (!shapes.back() || shapes.back()->size() != rank) {
      leave(moved.node, "where it is split is not known before the run");
      return false;
    }
    named += (*shapes.back())[axis];
  }
  // A result without a name has what the others leave.
  const auto absent = std::ranges::count(parts, ValueId::kAbsent);
  if (absent > 1) {
    leave(moved.node, "several of its results are left out");
    return false;
  }
  if (named > moved.shape[axis] || (absent == 0 && named < moved.shape[axis])) return false;
  analysis_.meter().charge(32 * parts.size());
  for (std::size_t i = 0; i < parts.size() && !is_spent(); ++i) {
    if (parts[i] != ValueId::kAbsent && is_read(parts[i])) {
      Movement m = into_result(*shapes[i], moved.dtype, count(moved.shape));
      set(m.from.strides, whole);
      m.from.offset = m.to.elements == 0 ? 0 : first * whole[axis];
      request.parts.push_back({.movement = m, .result = static_cast<int>(call.results.size())});
      call.results.push_back({.value = parts[i]});
    }
    first += shapes[i] ? (*shapes[i])[axis] : moved.shape[axis] - named;
  }
  if (call.results.empty()) {
    leave(moved.node, "nothing reads what it makes");
    return false;
  }
  call.kernel = fmt::format("move split into {}", call.results.size());
  call.request = std::move(request);
  return complete(std::move(call), std::span(&moved.data, 1), {moved.node});
}

bool KernelMatcher::add_pad(const MovementNode& moved) {
  const auto open = [&] {
    leave(moved.node, "its pads are not known before the run");
    return false;
  };
  bool has_pads = false, has_axes = false;
  const std::int64_t opset = moved.in.opset();
  const auto pads = ops::constant_list(moved.in, opset < 2 ? "paddings" : "pads", has_pads);
  if (!pads) return open();
  const auto axes = opset < 18 ? std::nullopt : ops::constant_list(moved.in, "axes", has_axes);
  if (has_axes && !axes) return open();
  const std::size_t rank = moved.shape.size(), given = pads->size() / 2;
  Movement m = into_result(moved.extents, moved.dtype, count(moved.shape));
  m.kind = MovementKind::kPad;
  set(m.from.strides, strides_of(moved.shape));
  set(m.inside, moved.shape);
  for (std::size_t i = 0; i < given; ++i) {
    std::int64_t axis = has_axes ? (*axes)[i] : static_cast<std::int64_t>(i);
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return open();
    m.before[axis] = (*pads)[i];
  }
  const std::string_view mode = moved.in.string_attribute("mode", "constant");
  m.border = mode == "edge"      ? kernels::Border::kEdge
             : mode == "reflect" ? kernels::Border::kReflect
             : mode == "wrap"    ? kernels::Border::kWrap
                                 : kernels::Border::kConstant;
  if (mode != "constant") {
    // Cut off on one side and mirrored on the other, or further than the data reaches: rare.
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const std::int64_t before = m.before[axis], after = moved.extents[axis] - moved.shape[axis] - before;
      const std::int64_t most = mode == "edge" ? INT64_MAX : mode == "wrap" ? moved.shape[axis] : moved.shape[axis] - 1;
      if (before < 0 || after < 0 || before > most || after > most || moved.shape[axis] == 0) return false;
    }
  } else if (opset < 11) {
    m.fill = bits_of(moved.dtype, moved.in.float_attribute("value", 0));
  } else if (const ValueId value = expressions_.operand(moved.node, 2); value != ValueId::kAbsent) {
    const auto number = exact_number(value);
    if (!number) {
      leave(moved.node, "the value that it pads with is not known before the run");
      return false;
    }
    m.fill = bits_of(moved.dtype, *number);
  }
  return complete_copy(moved, fmt::format("move pad {}", mode), m);
}

/// The data seen as `shape`, its axes in another order, as the result.
bool KernelMatcher::add_permuted(const MovementNode& moved, const Extents& shape, std::span<const std::size_t> order) {
  const ReorderedBox box = reordered(shape, order);
  Movement m = into_result(box.extents, moved.dtype, count(moved.shape));
  set(m.from.strides, box.strides);
  return elements_of(box.extents) == count(moved.extents) && complete_copy(moved, "move blocks", m);
}

bool KernelMatcher::add_depth_to_space(const MovementNode& moved) {
  const std::int64_t block = moved.in.int_attribute("blocksize", 1);
  if (block < 1 || block > (1 << 20) || moved.shape.size() != 4) return false;
  const BlockView view = depth_to_space_view(moved.in, moved.shape, block);
  return add_permuted(moved, view.seen, view.order);
}

bool KernelMatcher::add_space_to_depth(const MovementNode& moved) {
  const std::int64_t block = moved.in.int_attribute("blocksize", 1);
  if (block < 1 || block > (1 << 20) || moved.shape.size() != 4) return false;
  const BlockView view = space_to_depth_view(moved.in, moved.shape, block);
  return add_permuted(moved, view.seen, view.order);
}

// --- by indices

/// The shape of the indices, which are int32 or int64.
std::optional<Extents> KernelMatcher::indices_of(const MovementNode& moved, Movement& m) {
  const ValueId indices = expressions_.operand(moved.node, 1);
  const auto type = dtype(indices);
  const auto shape = extents(indices);
  if (!type || !shape || (*type != DType::kInt32 && *type != DType::kInt64)) return std::nullopt;
  m.wide_indices = *type == DType::kInt64;
  m.tuples = count(*shape);
  return shape;
}

bool KernelMatcher::add_gather(const MovementNode& moved) {
  const std::size_t rank = moved.shape.size();
  const std::size_t axis = from_front(moved.in.int_attribute("axis", 0), rank);
  if (axis >= rank) return false;
  const std::int64_t outer = count(std::span(moved.shape).first(axis)),
                     inner = count(std::span(moved.shape).subspan(axis + 1)), extent = moved.shape[axis];
  Movement picks;
  if (!indices_of(moved, picks)) return false;
  Movement m = into_result({outer, picks.tuples, inner}, moved.dtype, count(moved.shape));
  m.kind = MovementKind::kGather;
  m.wide_indices = picks.wide_indices;
  m.tuples = picks.tuples;
  m.from.strides[0] = extent * inner;
  m.from.strides[2] = 1;
  m.index_strides[1] = 1;
  m.part_extents[0] = extent;
  m.part_strides[0] = inner;
  return complete_movement(moved, "move gather", {{{m, 0, 1}}}, {moved.data, expressions_.operand(moved.node, 1)});
}

/// Where an index along `axis` of data with these extents moves an element, and where it is without.
void KernelMatcher::index_along(const Extents& data, std::size_t axis, const Extents& indices, Movement& m,
                                kernels::MovementSide& side) {
  const std::vector<std::int64_t> own = strides_of(data);
  set(side.strides, own);
  side.strides[axis] = 0;
  side.elements = count(data);
  set(m.index_strides, strides_of(indices));
  m.part_extents[0] = data[axis];
  m.part_strides[0] = own[axis];
}

bool KernelMatcher::add_gather_elements(const MovementNode& moved) {
  const std::size_t rank = moved.shape.size();
  const std::size_t axis = from_front(moved.in.int_attribute("axis", 0), rank);
  Movement m = into_result(moved.extents, moved.dtype, count(moved.shape));
  m.kind = MovementKind::kGather;
  const auto indices = indices_of(moved, m);
  if (!indices || axis >= rank || indices->size() != rank) return false;
  index_along(moved.shape, axis, *indices, m, m.from);
  return complete_movement(moved, "move gather elements", {{{m, 0, 1}}},
                           {moved.data, expressions_.operand(moved.node, 1)});
}

/// Tuples of indices, each for a slice after `batch` axes that both have. Iterated over tuples, and the slice.
bool KernelMatcher::index_tuples(const MovementNode& moved, std::size_t batch, const Extents& indices, Movement& m,
                                 kernels::MovementSide& side) {
  const std::size_t rank = moved.shape.size();
  if (indices.empty() || indices.back() < 1) return false;
  const auto parts = static_cast<std::size_t>(indices.back());
  if (batch + 1 > indices.size() || batch + parts > rank) return false;
  const std::vector<std::int64_t> own = strides_of(moved.shape);
  const std::int64_t batches = count(std::span(moved.shape).first(batch));
  const std::int64_t run = count(std::span(moved.shape).subspan(batch + parts));
  m.tuples = count(std::span(indices).first(indices.size() - 1));
  const std::int64_t each = batches == 0 ? 0 : m.tuples / batches;
  m.rank = 3;
  set(m.extents, Extents{batches, each, run});
  m.parts = static_cast<int>(parts);
  m.index_strides[0] = each;
  m.index_strides[1] = 1;
  m.index_strides[2] = 0;
  side.elements = count(moved.shape);
  set(side.strides, Extents{batches > 1 ? count(std::span(moved.shape).subspan(batch)) : 0, 0, 1});
  for (std::size_t part = 0; part < parts; ++part) {
    m.part_extents[part] = moved.shape[batch + part];
    m.part_strides[part] = own[batch + part];
  }
  return true;
}

bool KernelMatcher::add_gather_nd(const MovementNode& moved) {
  Movement m = into_result(moved.extents, moved.dtype, count(moved.shape));
  m.kind = MovementKind::kGather;
  const auto indices = indices_of(moved, m);
  const std::int64_t batch = moved.in.int_attribute("batch_dims", 0);
  if (!indices || batch < 0 || !index_tuples(moved, static_cast<std::size_t>(batch), *indices, m, m.from)) return false;
  set(m.to.strides, strides_of(Extents(m.extents, m.extents + m.rank)));
  return complete_movement(moved, "move gather tuples", {{{m, 0, 1}}},
                           {moved.data, expressions_.operand(moved.node, 1)});
}

/// The data as it is, and then the updates.
bool KernelMatcher::complete_scatter(const MovementNode& moved, std::string kernel, const Movement& m) {
  if (moved.in.string_attribute("reduction", "none") != "none") {
    leave(moved.node, "there is no kernel for updates that are combined with what is there");
    return false;
  }
  if (m.tuples > kernels::kMaxScatterTuples) {
    leave(moved.node, fmt::format("there is no kernel for more than {} updates", kernels::kMaxScatterTuples));
    return false;
  }
  const std::int64_t elements = count(moved.extents);
  Movement copy = into_result({elements}, moved.dtype, elements);
  copy.from.strides[0] = 1;
  return complete_movement(moved, std::move(kernel), {{{copy, 0, -1}, {m, 2, 1}}},
                           {moved.data, expressions_.operand(moved.node, 1), expressions_.operand(moved.node, 2)});
}

bool KernelMatcher::add_scatter_elements(const MovementNode& moved) {
  const std::size_t rank = moved.shape.size();
  const std::size_t axis = from_front(moved.in.int_attribute("axis", 0), rank);
  Movement m;
  const auto indices = indices_of(moved, m);
  const auto updates = extents(expressions_.operand(moved.node, 2));
  if (!indices || axis >= rank || indices->size() != rank || updates != indices) return false;
  Movement over = into_result(*indices, moved.dtype, m.tuples);
  over.kind = MovementKind::kScatter;
  over.wide_indices = m.wide_indices;
  over.tuples = m.tuples;
  set(over.from.strides, strides_of(*indices));
  index_along(moved.shape, axis, *indices, over, over.to);
  return complete_scatter(moved, "move scatter elements", over);
}

bool KernelMatcher::add_scatter_nd(const MovementNode& moved) {
  Movement m;
  m.kind = MovementKind::kScatter;
  m.element_bytes = static_cast<int>(element_bytes(moved.dtype));
  const auto indices = indices_of(moved, m);
  const auto updates = extents(expressions_.operand(moved.node, 2));
  if (!indices || !updates || !index_tuples(moved, 0, *indices, m, m.to)) return false;
  m.from.elements = count(*updates);
  set(m.from.strides, strides_of(Extents(m.extents, m.extents + m.rank)));
  if (count(*updates) != m.extents[0] * m.extents[1] * m.extents[2]) return false;
  return complete_scatter(moved, "move scatter tuples", m);
}

// --- made anew

bool KernelMatcher::add_fill(const MovementNode& moved) {
  const auto type = dtype(moved.result);
  const Attribute* const value = model_.attribute(model_.node(moved.node), "value");
  std::uint64_t bits = 0;
  if (value != nullptr) {
    if (value->tensor == nullptr || value->tensor->external || value->tensor->element_count() != 1) return false;
    Memory memory(4096);
    try {
      const HostTensor one = load_constant(*value->tensor, {}, nullptr, memory);
      if (one.dtype() != type || one.bytes() > sizeof bits) return false;
      std::memcpy(&bits, one.raw(), one.bytes());
    } catch (const RunFault&) {
      return false;  // the interpreter says why
    }
  }
  return complete_movement(moved, "move fill", {{{fill_of(moved.extents, *type, bits), -1}}}, {});
}

/// Zeros, and then a diagonal of ones.
bool KernelMatcher::add_eye(const MovementNode& moved) {
  const auto type = dtype(moved.result);
  if (moved.extents.size() != 2) return false;
  const std::int64_t rows = moved.extents[0], columns = moved.extents[1];
  const std::int64_t offset = std::clamp(moved.in.int_attribute("k", 0), -rows, columns);
  const std::int64_t first_row = std::max<std::int64_t>(0, -offset), first_column = std::max<std::int64_t>(0, offset);
  const std::int64_t length = std::max<std::int64_t>(0, std::min(rows - first_row, columns - first_column));
  Movement ones = fill_of({length}, *type, bits_of(*type, 1));
  ones.to.elements = count(moved.extents);
  ones.to.offset = length == 0 ? 0 : first_row * columns + first_column;
  ones.to.strides[0] = columns + 1;
  return complete_movement(moved, "move fill, diagonal", {{{fill_of(moved.extents, *type, 0), -1}, {ones, -1}}}, {});
}

/// The first of both values everywhere, and then the second one where indices say. Those outside of the axis name
/// nothing.
bool KernelMatcher::add_one_hot(const MovementNode& moved) {
  const ValueId values = expressions_.operand(moved.node, 2);
  const auto type = dtype(values);
  const auto pair = extents(values);
  if (!type || !pair || count(*pair) != 2) return false;
  const std::size_t rank = moved.extents.size();
  const std::size_t axis = from_front(moved.in.int_attribute("axis", -1), rank);
  if (axis >= rank || moved.shape.size() + 1 != rank) return false;
  Movement off = into_result(moved.extents, *type, 2);
  Movement on = into_result(moved.shape, *type, 2);
  on.kind = MovementKind::kScatter;
  on.from.offset = 1;
  on.wide_indices = moved.dtype == DType::kInt64;
  on.tuples = count(moved.shape);
  if (on.tuples > kernels::kMaxScatterTuples) {
    leave(moved.node, fmt::format("there is no kernel for more than {} indices", kernels::kMaxScatterTuples));
    return false;
  }
  set(off.from.strides, Extents(rank, 0));
  set(on.index_strides, strides_of(moved.shape));
  std::vector<std::int64_t> strides = strides_of(moved.extents);
  on.part_extents[0] = moved.extents[axis];
  on.part_strides[0] = strides[axis];
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
  set(on.to.strides, strides);
  on.to.elements = count(moved.extents);
  return complete_movement(moved, "move one hot",
                           {{{off, 1}, {.movement = on, .source = 1, .indices = 0, .skips_bad_indices = true}}},
                           {moved.data, values});
}

}  // namespace tensorlint::runtime
