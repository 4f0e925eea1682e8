#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "ir/graph/model.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// Fills the inputs that are absent and have no default: floats from N(0, 1), integers from [0, 10), one extent from
/// [1, 4] for each name of a dim and each dim without one. The same seed gives the same inputs. Errors: an input whose
/// type is not declared, or is not a numeric tensor.
std::optional<Error> draw_inputs(const Model& model, std::uint64_t seed, Memory& memory,
                                 std::vector<HostValue>& inputs);

/// A value that an input is given has the declared kind, dtype and extents.
std::optional<Error> check_input(const Model& model, ValueId input, const HostValue& value);

}  // namespace tensorlint::runtime
