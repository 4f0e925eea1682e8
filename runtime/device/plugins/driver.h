#pragma once

// Why the CUDA runtime refuses the driver, in words that say what to do.

#include <string>

namespace tensorlint::plugins {

/// Versions as CUDA counts them, 1000 * major + 10 * minor; `driver`: the newest CUDA that the machine's driver runs,
/// 0 where there is no driver.
/// Source: CUDA Toolkit 13.0, CUDA Runtime API, cudaDriverGetVersion and cudaErrorInsufficientDriver.
inline std::string unsuitable_driver(int driver, int runtime) {
  const auto text = [](int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  };
  if (driver == 0)
    return "this machine has no NVIDIA driver: install one that runs CUDA " + text(runtime) +
           ", or run with --device cpu";
  return "the NVIDIA driver of this machine runs CUDA " + text(driver) + " at most: install one that runs CUDA " +
         text(runtime);
}

}  // namespace tensorlint::plugins
