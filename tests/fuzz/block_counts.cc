// Counts how often each basic block runs, in a build with TENSORLINT_COUNT_BLOCKS, for block_profile.py: the callbacks
// of clang's -fsanitize-coverage=trace-pc-guard,pc-table (SanitizerCoverage in clang's manual).
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

extern "C" {
extern const char __executable_start;  // of the linker
void __sanitizer_cov_trace_pc_guard_init(std::uint32_t* first, std::uint32_t* last);
void __sanitizer_cov_trace_pc_guard(std::uint32_t* guard);
void __sanitizer_cov_pcs_init(const std::uintptr_t* first, const std::uintptr_t* last);
}

namespace {

constexpr std::size_t kMostBlocks = std::size_t{1} << 21;
std::uint64_t counts[kMostBlocks];  // by number of the guard; [0] is for what has none
std::uint32_t blocks = 0;
/// Of each block its address, and 1 where a function begins.
std::span<const std::uintptr_t> addresses;

/// At the end: for each block its address within the program, whether a function begins there, and how often it ran.
struct Writer {
  Writer() = default;
  ~Writer() {
    const char* const path = std::getenv("TENSORLINT_BLOCKS");
    if (path == nullptr) return;
    std::FILE* const file = std::fopen(path, "wb");
    if (file == nullptr) return;
    for (std::size_t i = 0; i < blocks; ++i) {
      const std::uint64_t row[] = {addresses[2 * i] - reinterpret_cast<std::uintptr_t>(&__executable_start),
                                   addresses[2 * i + 1] & 1, counts[i + 1]};
      std::fwrite(row, sizeof row, 1, file);
    }
    std::fclose(file);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
} writer;

}  // namespace

void __sanitizer_cov_trace_pc_guard_init(std::uint32_t* first, std::uint32_t* last) {
  if (first == last || *first != 0) return;
  for (; first != last && blocks + 1 < kMostBlocks; ++first) *first = ++blocks;
}

void __sanitizer_cov_trace_pc_guard(std::uint32_t* guard) { ++counts[*guard]; }

void __sanitizer_cov_pcs_init(const std::uintptr_t* first, const std::uintptr_t* last) {
  if (addresses.empty()) addresses = {first, last};
}
