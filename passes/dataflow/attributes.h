#pragma once

#include <cstdint>
#include <span>

#include "ir/graph/model.h"

namespace tensorlint::dataflow {

/// True when every bit of two attribute lists agrees; lists with tensors, graphs or types are never equal.
bool same_attributes(std::span<const Attribute> a, std::span<const Attribute> b);
/// Equal for the same attributes.
std::uint64_t hash_of(std::span<const Attribute> attributes);

}  // namespace tensorlint::dataflow
