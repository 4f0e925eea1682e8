#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/letters.h"

namespace tensorlint::losses {

/// An axis is the batch if it is called so, and is not if it is called otherwise: `tokens`, `nodes`, `frames`.
inline bool is_batch_name(std::string_view text) {
  const std::string name = lower_case(text.substr(0, 64));
  static constexpr std::array<std::string_view, 4> kNames{"n", "b", "bs", "samples"};
  return std::ranges::find(kNames, name) != kNames.end() || name.find("batch") != std::string::npos;
}

}  // namespace tensorlint::losses
