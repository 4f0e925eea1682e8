// A program outside of the project: has only what is installed.
#include <tensorlint/builder.h>

#include <iostream>

int main(int argc, char** argv) {
  using namespace tensorlint::builder;
  if (argc != 2) return 2;
  Builder graph;
  const Value x = graph.input("x", tensorlint::DType::kFloat32, {"batch", 8});
  const Value labels = graph.input("labels", tensorlint::DType::kInt64, {"batch", 1});
  const Value prediction = graph.linear(x, graph.parameter("weight", tensorlint::DType::kFloat32, {1, 8}));
  std::cout << prediction.to_text() << '\n';
  graph.output(graph.mse_loss(prediction, labels), "loss");
  for (const Finding& finding : graph.findings()) std::cout << finding.code << ' ' << finding.place.line << '\n';
  graph.write(argv[1]);
}
