// One step of gradient descent for a linear rating model, written with tensorlint's builder: each row of `votes` counts
// how often a film got 0 to 5 stars. `training_step FOLDER` writes training_step_bad.onnx, where the reported loss
// compares floats with an ArgMax, and the repaired training_step_ok.onnx; what is wrong is told while the graph is
// built.
#include <tensorlint/builder.h>

#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

using namespace tensorlint::builder;
using tensorlint::DType;

namespace {

constexpr std::int64_t kFeatures = 12, kStars = 6;

/// Returns how many mistakes were told.
std::size_t write_step(const std::string& path, bool repaired) {
  Options options;
  options.graph_name = "training_step";
  options.on_finding = [](const Finding& finding) { std::cout << finding.to_text(); };
  Builder graph(options);

  const Value features = graph.input("features", DType::kFloat32, {"batch", kFeatures});
  const Value votes = graph.input("votes", DType::kFloat32, {"batch", kStars});
  const Value weight = graph.parameter("weight", Data(std::vector<float>(kFeatures, 0.0F), {1, kFeatures}));
  const Value bias = graph.parameter("bias", Data({2.5F}, {1}));

  const Value predicted = graph.linear(features, weight, bias);
  const Value stars = graph.arg_max(votes, 1, /*keepdims=*/true);
  const Value rating = graph.cast(stars, DType::kFloat32);
  const Value loss = repaired ? graph.mse_loss(predicted, rating) : graph.mse_loss(predicted, stars);

  // d loss / d predicted = 2 (predicted - rating) / batch
  const Value slope = graph.mul(graph.sub(predicted, rating), graph.constant(2.0F));
  const Value weight_gradient = graph.reduce_mean(graph.mul(slope, features), {0}, /*keepdims=*/true);
  const Value bias_gradient = graph.reduce_mean(slope, {0});
  const Value rate = graph.constant(0.05F);
  std::cout << path << ": the gradient of `weight` is " << weight_gradient.to_text() << '\n';

  graph.output(loss, "loss");
  graph.output(graph.sub(weight, graph.mul(weight_gradient, rate)), "next_weight");
  graph.output(graph.sub(bias, graph.mul(bias_gradient, rate)), "next_bias");
  graph.write(path);
  return graph.findings().size();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: training_step FOLDER\n";
    return 2;
  }
  try {
    const std::string folder = argv[1];
    const std::size_t bad = write_step(folder + "/training_step_bad.onnx", /*repaired=*/false);
    const std::size_t ok = write_step(folder + "/training_step_ok.onnx", /*repaired=*/true);
    std::cout << "mistakes told: " << bad << ", then " << ok << '\n';
  } catch (const std::exception& fault) {
    std::cerr << "training_step: " << fault.what() << '\n';
    return 2;
  }
}
