#pragma once

#include <cstdint>

namespace tensorlint {

// Numbers of the parts of a model. An attribute refers to its graphs by them, a declared type to its names.

enum class NameId : std::uint32_t { kEmpty = 0 };
enum class ValueId : std::uint32_t { kAbsent = 0 };  ///< kAbsent: an optional operand or result that is left out
/// The first value there is.
inline constexpr ValueId kFirstValue{1};
enum class NodeId : std::uint32_t { kNone = 0xffff'ffffU };
enum class GraphId : std::uint32_t { kMain = 0, kNone = 0xffff'ffffU };
enum class OperatorId : std::uint32_t {};

}  // namespace tensorlint
