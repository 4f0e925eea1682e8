// The kernels' test suites on a GPU: built by nvcc, the same sources as on the emulator.

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  int devices = 0;
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  if (counted != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "kernels_device_tests: no GPU here (%s); nothing tested\n",
                 counted != cudaSuccess ? cudaGetErrorString(counted) : "no CUDA device");
    return 2;
  }
  return RUN_ALL_TESTS();
}
