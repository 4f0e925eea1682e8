// What a call of the builder costs, with all rules that run on calls: straight lines of layers of 1,000, 10,000 and
// 100,000 calls. Linear where the three are alike.
//
//   bench_recording      prints a line each: calls, microseconds a call (the least of five runs), findings
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tensorlint/builder.h"

namespace {

using namespace tensorlint::builder;
using tensorlint::DType;

/// A transformer's worth of operators, over and over: of 10 calls one has constants among its operands.
std::size_t build(std::size_t calls) {
  std::size_t findings = 0;
  Options options;
  options.on_finding = [&](const Finding&) { ++findings; };
  Builder graph(options);
  Value x = graph.input("x", DType::kFloat32, {"batch", 16, 64});
  const Value weight = graph.parameter("weight", DType::kFloat32, {64, 64});
  const Value scale = graph.parameter("scale", DType::kFloat32, {64});
  for (std::size_t made = 0; made + 10 <= calls; made += 10) {
    const Value normal = graph.layer_norm(x, scale);
    const Value query = graph.matmul(normal, weight), key = graph.matmul(normal, weight);
    const Value turned = graph.transpose(key, {0, 2, 1});
    const Value scores = graph.softmax(graph.matmul(query, turned));
    const Value mixed = graph.matmul(scores, normal);
    x = graph.cast(graph.relu(graph.add(x, mixed)), DType::kFloat32);
  }
  return findings;
}

double microseconds_a_call(std::size_t calls, std::size_t& findings) {
  const auto begin = std::chrono::steady_clock::now();
  findings = build(calls);
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  return time.count() / static_cast<double>(calls);
}

}  // namespace

int main() {
  for (const std::size_t calls : {std::size_t{1'000}, std::size_t{10'000}, std::size_t{100'000}}) {
    std::size_t findings = 0;
    double least = microseconds_a_call(calls, findings);
    for (int run = 1; run < 5; ++run) least = std::min(least, microseconds_a_call(calls, findings));
    std::printf("%7zu calls: %.2f us a call, %zu findings\n", calls, least, findings);
  }
}
