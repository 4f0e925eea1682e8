#pragma once

#include <string_view>

namespace tensorlint {

/// Of the project, from CMakeLists.txt.
inline constexpr std::string_view kVersion = TENSORLINT_VERSION;

}  // namespace tensorlint
