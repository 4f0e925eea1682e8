// Recurrent layers. Source: ONNX RNN (1, 7, 14, 22), GRU (1, 3, 7, 14, 22), LSTM (1, 7, 14, 22).
#include "ir/ops/checks.h"
#include "ir/ops/indexing.h"

namespace tensorlint::ops {
namespace {

const Constraint kRecurrentDirection{
    "recurrent_direction", ConstraintKind::kAttribute,
    "direction is forward, reverse or bidirectional; layout is 0 or 1; hidden_size is at least 1"};
const Constraint kRecurrentData{"recurrent_data_rank", ConstraintKind::kRank, "the data have 3 axes", true};
const Constraint kRecurrentWeights{"recurrent_weights", ConstraintKind::kShapes,
                                   "weights fit directions, gates, hidden and input sizes"};
const Constraint kRecurrentStates{"recurrent_states", ConstraintKind::kShapes,
                                  "lengths and initial states fit batch and hidden size"};
const Constraint kRecurrentLengths{"recurrent_lengths", ConstraintKind::kDomain, "0 <= length <= steps"};

/// What the operands say of a size that an attribute gives, where at least two of them agree and none with the
/// attribute: then the attribute is wrong, and one mistake is not told as many.
struct Agreement {
  std::int64_t value = 0;
  std::vector<int> operands;
};

std::optional<Agreement> agree_against(std::int64_t given,
                                       const std::vector<std::pair<int, std::optional<std::int64_t>>>& votes) {
  Agreement found;
  for (const auto& [operand, value] : votes) {
    if (!value) continue;
    if (*value == given || *value < 1 || (!found.operands.empty() && *value != found.value)) return std::nullopt;
    found.value = *value;
    if (found.operands.empty() || found.operands.back() != operand) found.operands.push_back(operand);
  }
  return found.operands.size() >= 2 ? std::optional(found) : std::nullopt;
}

std::optional<std::int64_t> extent_of(Inference& in, int operand, std::size_t rank, std::size_t axis,
                                      std::int64_t divisor = 1) {
  const auto shape = in.shape(operand);
  if (!shape || shape->size() != rank) return std::nullopt;
  const auto extent = in.dims().as_constant((*shape)[axis]);
  return extent && *extent % divisor == 0 ? std::optional(*extent / divisor) : std::nullopt;
}

/// The hidden size that holds, and the number of directions: the attributes', or what the weights agree on.
struct Sizes {
  std::optional<std::int64_t> hidden;
  std::int64_t directions = 1;
};

Sizes checked_sizes(Inference& in, std::int64_t gates, std::string_view direction,
                    std::optional<std::int64_t> hidden_size) {
  Sizes sizes{hidden_size, direction == "bidirectional" ? 2 : 1};
  if (hidden_size) {
    const auto other = agree_against(*hidden_size, {{1, extent_of(in, 1, 3, 1, gates)},
                                                    {2, extent_of(in, 2, 3, 1, gates)},
                                                    {2, extent_of(in, 2, 3, 2)},
                                                    {3, extent_of(in, 3, 2, 1, 2 * gates)}});
    if (other) {
      in.fail(kRecurrentWeights, other->operands,
              {"{} of {} is {}, but {} are weights for hidden size {}", AttributeName("hidden_size"), in.call().name,
               *hidden_size, operands_list(other->operands), other->value});
      sizes.hidden = other->value;
    }
  }
  const auto other = agree_against(
      sizes.directions, {{1, extent_of(in, 1, 3, 0)}, {2, extent_of(in, 2, 3, 0)}, {3, extent_of(in, 3, 2, 0)}});
  if (other && other->value <= 2) {
    in.fail(kRecurrentWeights, other->operands,
            {"{} of {} is {}, but {} are weights for {}", AttributeName("direction"), in.call().name, direction,
             operands_list(other->operands),
             other->value == 2 ? "2 directions (bidirectional)" : "1 direction (forward or reverse)"});
    sizes.directions = other->value;
  }
  return sizes;
}

/// `gates`: rows of weights a hidden unit.
void recurrent(Inference& in, std::int64_t gates) {
  DimPool& pool = in.dims();
  const std::string_view direction = in.string_attribute("direction", "forward");
  const std::int64_t layout = in.int_attribute("layout", 0);
  const auto hidden_size = in.int_attribute("hidden_size");
  if (!check_choice(in, "direction", direction, {"forward", "reverse", "bidirectional"}, kRecurrentDirection)) return;
  if (layout != 0 && layout != 1) {
    in.fail(kRecurrentDirection, {},
            {"{} of {} is {}, it has to be 0 or 1", AttributeName("layout"), in.call().name, layout});
    return;
  }
  if (hidden_size && *hidden_size < 1) {
    in.fail(kRecurrentDirection, {},
            {"{} of {} is {}, at least 1 needed", AttributeName("hidden_size"), in.call().name, *hidden_size});
    return;
  }
  if (!check_rank(in, 0, {3}, kRecurrentData)) return;
  const Sizes sizes = checked_sizes(in, gates, direction, hidden_size);
  const Dim directions = pool.constant(sizes.directions);
  const Dim length = dim_of(in, 0, layout == 0 ? 0 : 1), inputs = dim_of(in, 0, 2);
  const Dim batch = dim_of(in, 0, layout == 0 ? 1 : 0);
  const Dim hidden = sizes.hidden ? pool.constant(*sizes.hidden) : dim_of(in, 2, 2);
  const auto rows = [&](std::int64_t factor) { return pool.mul(pool.constant(factor), hidden); };

  check_shape(in, 1, Dims{directions, rows(gates), inputs}, kRecurrentWeights, "weights", 0);
  check_shape(in, 2, Dims{directions, rows(gates), hidden}, kRecurrentWeights, "recurrence weights");
  check_shape(in, 3, Dims{directions, rows(2 * gates)}, kRecurrentWeights, "bias");
  check_shape(in, 4, Dims{batch}, kRecurrentStates, "sequence lengths", 0);
  check_lengths(in, kRecurrentLengths, 4, length, 0);
  const Dims state = layout == 0 ? Dims{directions, batch, hidden} : Dims{batch, directions, hidden};
  // Weights that do not fit mean another hidden size or direction, which no state fits either.
  const bool fitting = !in.failed();
  if (fitting) check_shape(in, 5, state, kRecurrentStates, "initial hidden state", 0);
  if (gates == 4) {
    if (fitting) check_shape(in, 6, state, kRecurrentStates, "initial cell state", 0);
    check_shape(in, 7, Dims{directions, rows(3)}, kRecurrentWeights, "peephole weights");
  }
  // Lengths and initial states have the data's batch.
  Dim known = better(pool, batch, dim_of(in, 4, 0));
  for (const int initial : {5, 6})
    if (initial < 6 || gates == 4) known = better(pool, known, dim_of(in, initial, layout == 0 ? 1 : 0));
  in.set_shape(0, layout == 0 ? Dims{length, directions, known, hidden} : Dims{known, length, directions, hidden});
  for (std::size_t i = 1; i < in.result_count(); ++i)
    in.set_shape(static_cast<int>(i), layout == 0 ? Dims{directions, known, hidden} : Dims{known, directions, hidden});
  // With the default activations a hidden state is a product or a mean of values in [-1, 1].
  if (in.attribute("activations") == nullptr && !in.has(5))
    for (std::size_t i = 0; i < std::min<std::size_t>(in.result_count(), 2); ++i)
      in.set_range(static_cast<int>(i), {-1, 1, true});
}

OpEntry layer(std::string_view name, InferFunction function) {
  return OpEntry(name)
      .computes(Opcode::kRecurrence)
      .infer(function)
      .constraint(kRecurrentDirection)
      .constraint(kRecurrentData)
      .constraint(kRecurrentWeights)
      .constraint(kRecurrentStates)
      .constraint(kRecurrentLengths);
}

const RegisterOps kRegisterRecurrent{
    layer("RNN", [](Inference& in) { recurrent(in, 1); }),
    layer("GRU", [](Inference& in) { recurrent(in, 3); }),
    layer("LSTM", [](Inference& in) { recurrent(in, 4); }),
};

}  // namespace
}  // namespace tensorlint::ops
