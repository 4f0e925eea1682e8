#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "passes/contract/probing.h"

namespace tensorlint::contract {

/// Usual sizes: powers of two fit what strides and windows divide, small ones fit below the ends of tables.
inline constexpr std::initializer_list<std::int64_t> kUsualSizes{64, 32};

Sizes all_of_size(const Prober& prober, std::int64_t size);

/// Sizes for which nothing fails for certain: usual ones, or what the nodes that fail ask for. nullopt where none are
/// found within the budget.
std::optional<Sizes> find_working_sizes(Prober& prober);

}  // namespace tensorlint::contract
