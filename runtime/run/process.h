#pragma once

#include <cstdint>
#include <string_view>

namespace tensorlint::runtime {

/// Says on stderr why the command ends; what comes from files becomes visible text. Gives the exit code.
int refuse(std::string_view command, std::string_view message);

inline constexpr int kDone = 0, kDiffers = 1, kRefused = 2, kInternal = 3;  // exit codes

/// What takes memory beside tensors, rows of float64 for one, ends with an error too, before the system runs short.
/// `threads`: those that --threads asks for, whose stacks have room beside.
void limit_process(std::uint64_t tensors, int threads);

}  // namespace tensorlint::runtime
