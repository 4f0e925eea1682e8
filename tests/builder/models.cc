// Models for builder_test.py: each loss with each reduction, bodies, and whatever a checker might refuse.
#include <cstdio>
#include <string>

#include "tensorlint/builder.h"

namespace {

using namespace tensorlint::builder;
using tensorlint::DType;

std::string folder;

void write(const Builder& graph, const std::string& name) {
  graph.write(folder + "/" + name + ".onnx");
  for (const Finding& finding : graph.findings()) std::printf("%s: %s", name.c_str(), finding.to_text().c_str());
}

/// Scores that parameters go into, as every training step has them.
Value scores(Builder& graph) {
  return graph.linear(graph.input("x", DType::kFloat32, {"N", 8}), graph.parameter("weight", DType::kFloat32, {3, 8}));
}

using ElementLoss = Value (*)(Builder&, Value, Value, Reduction);
using ClassLossOf = Value (*)(Builder&, Value, Value, const ClassLoss&);

struct NamedElementLoss {
  const char* name;
  ElementLoss loss;
};
const NamedElementLoss kElementLosses[] = {
    {"mse", [](Builder& g, Value x, Value t, Reduction r) { return g.mse_loss(x, t, r); }},
    {"l1", [](Builder& g, Value x, Value t, Reduction r) { return g.l1_loss(x, t, r); }},
    {"smooth_l1", [](Builder& g, Value x, Value t, Reduction r) { return g.smooth_l1_loss(x, t, r); }},
    {"smooth_l1_beta", [](Builder& g, Value x, Value t, Reduction r) { return g.smooth_l1_loss(x, t, r, 0.5); }},
    {"huber", [](Builder& g, Value x, Value t, Reduction r) { return g.huber_loss(x, t, r); }},
    {"huber_delta", [](Builder& g, Value x, Value t, Reduction r) { return g.huber_loss(x, t, r, 0.5); }},
    {"bce", [](Builder& g, Value x, Value t, Reduction r) { return g.bce_loss(g.sigmoid(x), t, r); }},
    {"bce_with_logits", [](Builder& g, Value x, Value t, Reduction r) { return g.bce_with_logits_loss(x, t, r); }},
    {"cross_entropy_probabilities",
     [](Builder& g, Value x, Value t, Reduction r) { return g.cross_entropy_loss(x, t, {.reduction = r}); }},
    {"kl_div", [](Builder& g, Value x, Value t, Reduction r) { return g.kl_div_loss(g.log_softmax(x), t, r); }},
    {"kl_div_log",
     [](Builder& g, Value x, Value t, Reduction r) { return g.kl_div_loss(g.log_softmax(x), t, r, true); }},
};
struct NamedClassLoss {
  const char* name;
  ClassLossOf loss;
};
const NamedClassLoss kClassLosses[] = {
    {"cross_entropy", [](Builder& g, Value x, Value t, const ClassLoss& o) { return g.cross_entropy_loss(x, t, o); }},
    {"nll", [](Builder& g, Value x, Value t, const ClassLoss& o) { return g.nll_loss(g.log_softmax(x), t, o); }},
};
struct NamedReduction {
  const char* name;
  Reduction reduction;
};
const NamedReduction kReductions[] = {{"none", Reduction::kNone}, {"sum", Reduction::kSum}, {"mean", Reduction::kMean}};

void losses() {
  for (const NamedReduction& reduction : kReductions) {
    for (const NamedElementLoss& one : kElementLosses) {
      Builder graph;
      const Value input = scores(graph);
      graph.output(one.loss(graph, input, graph.input("target", DType::kFloat32, {"N", 3}), reduction.reduction),
                   "loss");
      write(graph, std::string("loss-") + one.name + "-" + reduction.name);
    }
    for (const NamedClassLoss& one : kClassLosses) {
      for (const bool weighted : {false, true}) {
        Builder graph;
        const Value input = scores(graph);
        ClassLoss options{.reduction = reduction.reduction, .ignore_index = 1};
        if (weighted) options.weight = graph.constant(Data({1.0F, 2.0F, 0.5F}, {3}), "class_weight");
        graph.output(one.loss(graph, input, graph.input("target", DType::kInt64, {"N"}), options), "loss");
        write(graph, std::string("loss-") + one.name + (weighted ? "_weight-" : "-") + reduction.name);
      }
    }
  }
  {
    Builder graph;
    const Value x = graph.input("x", DType::kFloat32, {"N", 3}), row = graph.input("row", DType::kFloat32, {3});
    graph.output(graph.mse_loss(x, row), "mse");
    graph.output(graph.l1_loss(row, x, Reduction::kNone), "l1");
    graph.output(graph.huber_loss(x, row, Reduction::kSum), "huber");
    const Value index = graph.input("index", DType::kInt64, {});
    graph.output(graph.cross_entropy_loss(row, index), "one");
    graph.output(graph.nll_loss(graph.log_softmax(row), index, {.reduction = Reduction::kNone}), "one_nll");
    write(graph, "shapes-21");
  }
  for (const DType dtype : {DType::kFloat16, DType::kFloat64}) {
    Builder graph;
    graph.output(graph.huber_loss(graph.input("x", dtype, {"N", 3}), graph.input("target", dtype, {"N", 3}),
                                  Reduction::kMean, 0.3),
                 "loss");
    write(graph, std::string("typed-") + std::string(tensorlint::to_text(dtype)));
  }
}

void bodies() {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 4});
  const Value flag = graph.input("flag", DType::kBool, {});
  const Value chosen = graph.if_(flag, [&] { return std::vector{graph.relu(x)}; }, [&] { return std::vector{x}; })[0];
  const Value one = graph.constant(1.0F);
  const std::vector<Value> results =
      graph.loop(graph.input("trips", DType::kInt64, {}), {}, {chosen}, [&](const LoopStep& step) {
        const Value odd = graph.op("Equal", {graph.op("Mod", {step.iteration, graph.constant<std::int64_t>(2)}),
                                             graph.constant<std::int64_t>(1)});
        const Value next = graph.if_(
            odd, [&] { return std::vector{graph.add(step.carried[0], one)}; },
            [&] { return std::vector{graph.mul(step.carried[0], x)}; })[0];
        return LoopResult{.carried = {next}, .stacked = {graph.reduce_sum(next)}};
      });
  graph.output(results[0], "last");
  graph.output(results[1], "sums");
  write(graph, "bodies");
}

void everything_else() {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 6});
  graph.output(x, "copy");
  const Value bits = graph.constant(Data({true, false, true, true, false, true}, {6}), "bits");
  graph.output(graph.op("Where", {bits, x, graph.constant(Data({-1.5F}, {1}))}), "chosen");
  const std::vector<Value> parts =
      graph.ops("Split", {x}, {.attributes = {{"axis", 1}, {"num_outputs", 2}}, .results = 2});
  graph.output(parts[1], "half");
  const Value best = graph.ops("TopK", {x, graph.constant(Data({std::int64_t{2}}, {1}))}, {.results = 2})[1];
  graph.output(best, "best");
  graph.output(graph.op("ConstantOfShape", {graph.op("Shape", {x})}, {.attributes = {{"value", Data({7.0F}, {1})}}}),
               "sevens");
  graph.output(graph.transpose(graph.reshape(x, {-1, 2, 3}), {0, 2, 1}), "turned");
  graph.output(graph.op("Clip", {x, Value(), graph.constant(0.5F)}), "clipped");
  write(graph, "everything_else");
}

/// With LayerNormalization and written out.
void layers(std::int64_t opset) {
  Builder graph({.opset = opset});
  const auto scope = graph.scope("net");
  const Value x = graph.input("x", DType::kFloat32, {"N", 4, 6});
  const Value scale = graph.parameter("scale", Data({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {6}));
  const Value table = graph.parameter("table", Data({0.5F, -1.0F, 2.0F, 1.5F}, {2, 2}));
  const Value kernel = graph.parameter("kernel", Data({1.0F, 0.0F, -1.0F, 2.0F, 1.0F, 0.5F, 1.0F, 1.0F}, {1, 4, 2}));
  const Value ids = graph.input("ids", DType::kInt64, {"N", "S"});
  graph.output(graph.layer_norm(x, scale, scale, -1, 1e-3), "norm");
  graph.output(graph.reshape(x, {"N", 2, -1}), "split");
  graph.output(graph.reshape(ids, {1, "N", "S"}), "framed");
  graph.output(graph.gather(table, ids), "rows");
  graph.output(graph.concat({x, -x}, 1), "both");
  graph.output(graph.conv(x, kernel, {}, {.strides = {2}, .pads = {1}}), "conv");
  graph.output((2 * x - 1) / (x * x + 0.5) + x, "mixed");
  graph.output(ids / 2 - ids, "integers");
  write(graph, "layers-" + std::to_string(opset));
}

void devices() {
  Builder graph({.graph_name = "placed", .default_device = "cuda:0"});
  const Value x = graph.input("x", DType::kFloat32, {"N", 3});
  const Value host = graph.transfer(graph.relu(x), "cpu");
  graph.output(host, "y");
  graph.output(graph.huber_loss(x, graph.input("target", DType::kFloat32, {"N", 3})), "loss");
  write(graph, "devices");
}

void mistake() {
  Builder graph;
  const Value labels = graph.input("labels", DType::kInt64, {"N", 3});
  graph.output(graph.mse_loss(scores(graph), labels), "loss");  // the finding's line
  write(graph, "mistake");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  folder = argv[1];
  losses();
  bodies();
  everything_else();
  layers(13);
  layers(21);
  devices();
  mistake();
}
