/// A target as a program of libFuzzer's; TENSORLINT_FUZZ_TARGET names it.

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "tests/fuzz/extents.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" {

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t largest);
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t largest, unsigned seed);
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t largest, unsigned seed) {
  std::mt19937_64 random(seed);
  if (random() % 3 == 0) {
    const std::string_view model(reinterpret_cast<const char*>(data), size);
    const std::string changed = tensorlint::fuzz::with_other_extents(model, random);
    if (changed != model && changed.size() <= largest) {
      std::memcpy(data, changed.data(), changed.size());
      return changed.size();
    }
  }
  return LLVMFuzzerMutate(data, size, largest);
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tensorlint::fuzz::TENSORLINT_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}

}  // extern "C"
