#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/meter.h"
#include "ir/graph/model.h"
#include "runtime/files/drawn_inputs.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// Extents and ranges of elements inside the model's contract (passes/contract), for the inputs that are not given:
/// small extents drawn from the seed where the model runs with these, else sizes with which it does; integers between
/// the bounds of what they index, and below what makes an index that is computed from them invalid. Nothing is said of
/// what the contract does not know, nor of what takes more work than the meter allows, which counts all of it.
InputPlan runnable_inputs(const Model& model, std::uint64_t seed, std::span<const HostValue> given,
                          std::shared_ptr<Meter> meter);

}  // namespace tensorlint::runtime
