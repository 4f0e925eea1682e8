#include "runtime/compare/noise.h"

#include <bit>

#include "runtime/values/codec.h"

namespace tensorlint::compare {

using runtime::HostTensor;
using runtime::HostValue;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15U + b * 0xbf58476d1ce4e5b9U + c * 0x94d049bb133111ebU;
  for (int round = 0; round < 2; ++round) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    x ^= x >> 31;
  }
  return x;
}

namespace {

/// Calls use(index, -1 or 1) for `count` elements.
template <typename Use>
void for_each_sign(std::size_t count, std::uint64_t seed, const Use& use) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 64 == 0) bits = mixed(seed, i / 64, 0x7a);
    use(i, (bits & 1U) != 0 ? 1.0 : -1.0);
    bits >>= 1;
  }
}

}  // namespace

HostValue shaken(const HostValue& value, double relative, double tiny, std::uint64_t seed, runtime::Memory& memory) {
  if (!value.is_tensor() || !runtime::is_float(value.tensor().dtype())) return value;
  const HostTensor wide = runtime::to_float64(value.tensor(), memory);
  HostTensor result(DType::kFloat64, wide.extents(), memory);
  const double* const from = wide.as<double>().data();
  double* const to = result.as_mutable<double>().data();
  for_each_sign(result.size(), seed,
                [&](std::size_t i, double sign) { to[i] = from[i] + sign * (relative * from[i] + tiny); });
  return result;
}

void shake(HostTensor& tensor, const HostTensor& amounts, std::uint64_t seed, std::size_t replica) {
  double* const elements = tensor.as_mutable<double>().data();
  const double* const by = amounts.as<double>().data();
  if (replica % 2 == 0) {
    for_each_sign(tensor.size(), seed, [&](std::size_t i, double sign) { elements[i] += sign * by[i]; });
    return;
  }
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const bool is_up = (mixed(seed, std::bit_cast<std::uint64_t>(elements[i]), 0x7b) & 1U) != 0;
    elements[i] += is_up ? by[i] : -by[i];
  }
}

}  // namespace tensorlint::compare
