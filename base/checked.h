#pragma once

#include <cstdint>
#include <optional>

/// Checked int64 arithmetic: nullopt on overflow, division by zero, INT64_MIN / -1.
namespace tensorlint::checked {

std::optional<std::int64_t> add(std::int64_t a, std::int64_t b);
std::optional<std::int64_t> sub(std::int64_t a, std::int64_t b);
std::optional<std::int64_t> mul(std::int64_t a, std::int64_t b);
std::optional<std::int64_t> floor_div(std::int64_t a, std::int64_t b);
std::optional<std::int64_t> trunc_div(std::int64_t a, std::int64_t b);
std::optional<std::int64_t> floor_mod(std::int64_t a, std::int64_t b);

}  // namespace tensorlint::checked
