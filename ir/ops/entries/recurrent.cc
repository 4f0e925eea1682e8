// Recurrent layers. Source: ONNX RNN (1, 7, 14, 22), GRU (1, 3, 7, 14, 22), LSTM (1, 7, 14, 22).
#include <fmt/format.h>

#include "ir/ops/checks.h"

namespace tensorlint {
namespace {

const Constraint kRecurrentDirection{
    "recurrent_direction", ConstraintKind::kAttribute,
    "direction is forward, reverse or bidirectional; layout is 0 or 1; hidden_size is at least 1"};
const Constraint kRecurrentData{"recurrent_data_rank", ConstraintKind::kShapes, "the data have 3 axes"};
const Constraint kRecurrentWeights{"recurrent_weights", ConstraintKind::kShapes,
                                   "weights fit directions, gates, hidden and input sizes"};
const Constraint kRecurrentStates{"recurrent_states", ConstraintKind::kShapes,
                                  "lengths and initial states fit batch and hidden size"};

/// `gates`: rows of weights a hidden unit.
void recurrent(Inference& in, std::int64_t gates) {
  DimPool& pool = in.dims();
  const std::string_view direction = in.string_attribute("direction", "forward");
  const std::int64_t layout = in.int_attribute("layout", 0);
  const auto hidden_size = in.int_attribute("hidden_size");
  if (!check_choice(in, "direction", direction, {"forward", "reverse", "bidirectional"}, kRecurrentDirection)) return;
  if (layout != 0 && layout != 1) {
    in.fail(kRecurrentDirection, {}, fmt::format("`layout` of {} is {}, it has to be 0 or 1", in.call().name, layout));
    return;
  }
  if (hidden_size && *hidden_size < 1) {
    in.fail(kRecurrentDirection, {},
            fmt::format("`hidden_size` of {} is {}, at least 1 needed", in.call().name, *hidden_size));
    return;
  }
  const Dim directions = pool.constant(direction == "bidirectional" ? 2 : 1);
  if (!check_rank(in, 0, {3}, kRecurrentData)) return;
  const Dim length = dim_of(in, 0, layout == 0 ? 0 : 1), inputs = dim_of(in, 0, 2);
  const Dim batch = dim_of(in, 0, layout == 0 ? 1 : 0);
  const Dim hidden = hidden_size ? pool.constant(*hidden_size) : dim_of(in, 2, 2);
  const auto rows = [&](std::int64_t factor) { return pool.mul(pool.constant(factor), hidden); };

  check_shape(in, 1, Dims{directions, rows(gates), inputs}, kRecurrentWeights, "weights", 0);
  check_shape(in, 2, Dims{directions, rows(gates), hidden}, kRecurrentWeights, "recurrence weights");
  check_shape(in, 3, Dims{directions, rows(2 * gates)}, kRecurrentWeights, "bias");
  check_shape(in, 4, Dims{batch}, kRecurrentStates, "sequence lengths", 0);
  if (const auto lengths = in.elements(4)) {
    for (const Dim given : *lengths) {
      if (pool.bounds(given).hi >= 0 && pool.bounds(pool.sub(given, length)).lo <= 0) continue;
      in.fail(
          kRecurrentStates, {4, 0},
          fmt::format("sequence length {} in {{4}}, {{0}} has {} steps", pool.to_text(given), pool.to_text(length)));
      break;
    }
  }
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
      .infer(function)
      .constraint(kRecurrentDirection)
      .constraint(kRecurrentData)
      .constraint(kRecurrentWeights)
      .constraint(kRecurrentStates);
}

const RegisterOps kRecurrent{
    layer("RNN", [](Inference& in) { recurrent(in, 1); }),
    layer("GRU", [](Inference& in) { recurrent(in, 3); }),
    layer("LSTM", [](Inference& in) { recurrent(in, 4); }),
};

}  // namespace
}  // namespace tensorlint
