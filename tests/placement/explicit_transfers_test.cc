// Models split between the cpu and an accelerator: what is copied, and where, counted by hand; that random ones pass
// the placement check and compute the same graph; that the choice is the cheapest of all.
#include "passes/placement/explicit_transfers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir/readers/onnx/reader.h"
#include "ir/text/printer.h"
#include "ir/text/reader.h"
#include "ir/writers/onnx/model_writer.h"
#include "ir/writers/onnx/writer.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/minimum_cut.h"
#include "passes/placement/placement.h"
#include "tests/sanitized.h"

namespace tensorlint::placement {
namespace {

constexpr int kModels = kSanitized ? 60 : 2000;

/// Kernels of these on acc:0; none of Tanh. `local.Only` has no other.
constexpr std::string_view kTable =
    "provider acc\ndevice acc:0\nNeg 1-99\nExp 1-99\nAdd 1-99\nMatMul 1-99\nReduceSum 1-99\nExpand 1-99\nReshape "
    "1-99\nIdentity 1-99\nRange 1-99\nlocal.Only 1-99\n";

PlacementOptions with_provider() {
  PlacementOptions options;
  options.providers.push_back(std::make_shared<const ProviderTable>(parse_provider(kTable, "acc.txt").value()));
  return options;
}

/// A placed model, read again.
struct Placed {
  std::string bytes, problem;
  std::vector<std::string> wiring_before;
  std::unique_ptr<Model> model;
  std::unique_ptr<dataflow::Analysis> analysis;
  TransferPlan plan;
};

std::vector<std::string> wiring(const Model& model);

Placed placed(const std::string& graph, const std::string& metadata = {}) {
  const std::string text = fmt::format(
      "<ir_version: 10, opset_import: [\"\": 21, \"local\": 1], metadata_props: [{}]>\n{}", metadata, graph);
  Placed out;
  const Result<Model> written = read_onnx_text(text, "model.onnxtxt");
  if (!written) return out.problem = written.error().message, std::move(out);
  out.bytes = write_onnx(*written).value().joined();
  const Model model = read_onnx_bytes(out.bytes, "model.onnx").value();
  out.wiring_before = wiring(model);
  const dataflow::Analysis analysis = dataflow::analyse(model, {});
  Result<TransferPlan> plan = make_transfers_explicit(analysis, with_provider());
  if (!plan) return out.problem = plan.error().message, std::move(out);
  out.plan = std::move(*plan);
  const Result<EditedBytes> edited = edit_onnx(out.bytes, model, out.plan.edits);
  if (!edited) return out.problem = edited.error().message, std::move(out);
  out.bytes = edited->joined();
  out.model = std::make_unique<Model>(read_onnx_bytes(out.bytes, "placed.onnx").value());
  out.analysis = std::make_unique<dataflow::Analysis>(dataflow::analyse(*out.model, {}));
  for (const dataflow::NodeViolation& violation : out.analysis->violations())
    out.problem += to_text(violation.message, out.analysis->facts()) + "\n";
  const Placement placement = place(*out.analysis, {});
  for (const PlacementViolation& failure : placement.violations())
    out.problem += "mixed at " + out.model->label(failure.node) + "\n";
  if (!out.model->faults.empty()) out.problem += out.model->faults[0].message;
  if (!out.analysis->early_uses().empty()) out.problem += "used before it is defined";
  return out;
}

/// What each node reads and each graph hands out, with Transfers looked through and values named by what makes them.
std::vector<std::string> wiring(const Model& model) {
  const auto is_transfer = [&](const Node& node) { return model.text(model.op(node).name) == "Transfer"; };
  std::map<NodeId, std::size_t> ordinals;
  for (const Node& node : model.nodes)
    if (!is_transfer(node)) ordinals.emplace(model.id_of(node), ordinals.size());
  const auto source = [&](ValueId value) {
    while (model.value(value).producer != NodeId::kNone && is_transfer(model.node(model.value(value).producer)))
      value = model.operands(model.node(model.value(value).producer))[0];
    const Value& made = model.value(value);
    return made.producer == NodeId::kNone
               ? fmt::format("{} of graph {}", model.name_of(value), static_cast<int>(made.graph))
               : fmt::format("result {} of node {}", made.result_index, ordinals.at(made.producer));
  };
  std::vector<std::string> out;
  for (const auto& [id, ordinal] : ordinals) {
    out.push_back(std::string(model.text(model.op(model.node(id)).name)));
    for (const ValueId operand : model.operands(model.node(id))) out.push_back(source(operand));
  }
  for (const Graph& graph : model.graphs)
    for (const ValueId output : graph.outputs) out.push_back("output " + source(output));
  return out;
}

/// The Transfers of a placed model, "value -> device in graph", in file order.
std::vector<std::string> transfers(const Placed& from) {
  std::vector<std::string> out;
  if (!from.problem.empty() || !from.model) return {from.problem};
  for (const Node& node : from.model->nodes)
    if (from.model->text(from.model->op(node).name) == "Transfer")
      out.push_back(fmt::format("{} -> {} in {}", from.model->name_of(from.model->operands(node)[0]),
                                from.model->attribute(node, "device")->s, from.model->graph_path(node.graph)));
  return out;
}
using Transfers = std::vector<std::string>;

TEST(ExplicitTransfers, CopyOnceWhatSeveralNodesRead) {
  EXPECT_EQ(transfers(placed("g (float[4000000] x) => (a, b) { a = Exp (x) b = Neg (x) }")),
            Transfers{"x -> acc:0 in main"});
}

TEST(ExplicitTransfers, LeaveWhatCostsLessThanItsCopyOnTheCpu) {
  EXPECT_EQ(transfers(placed("g (float[4] x) => (a) { a = Exp (x) }")), Transfers{});
}

TEST(ExplicitTransfers, CopyTheSmallerSideOfAReduction) {
  // Tanh has to run on the cpu. What goes there is the sum, not its operand.
  EXPECT_EQ(
      transfers(placed(
          "g (float[4000000] x) => (t) { e = Exp (x) n = Neg (e) s = ReduceSum <keepdims = 1> (n) t = Tanh (s) }")),
      (Transfers{"x -> acc:0 in main", "s -> cpu in main"}));
}

TEST(ExplicitTransfers, StandBeforeTheLoopThatDoesNotChangeThem) {
  const std::string loop =
      "g (float[1000000] x, float[1000000] w) => (y) <int64 n = {9}, bool go = {1}> { k = Tanh (w) "
      "y = Loop (n, go, x) <body = b (int64 i, bool c, float[1000000] s) => (bool d, float[1000000] t) { d = Identity "
      "(c) e = Exp (s) t = Add (e, k) }> }";
  EXPECT_EQ(transfers(placed(loop)), (Transfers{"x -> acc:0 in main", "k -> acc:0 in main"}));
}

TEST(ExplicitTransfers, StayInTheBranchThatNeedsThem) {
  const std::string branch =
      "g (float[4000000] x, bool c) => (y) { h = Exp (x) k = Neg (h) "
      "y = If (c) <then_branch = a () => (float[1] p) { s = ReduceSum <keepdims = 1> (k) p = Tanh (s) }, else_branch = "
      "b () => (float[1] q) { q = ReduceSum <keepdims = 1> (h) }> }";
  EXPECT_EQ(transfers(placed(branch))[1], "s -> cpu in main/a");
}

TEST(ExplicitTransfers, HandOutACopyUnderTheNameOfTheResult) {
  // The body's result is made on the cpu and carried on the accelerator.
  const std::string loop =
      "g (float[1000000] x) => (y) <int64 n = {9}, bool go = {1}> { h = Exp (x) "
      "y = Loop (n, go, h) <body = b (int64 i, bool c, float[1000000] s) => (bool d, float[1000000] t) "
      "{ d = Identity (c) e = Exp (s) f = Neg (e) g = Exp (f) t = Tanh (g) }> z = Exp (y) }";
  EXPECT_EQ(transfers(placed(loop)),
            (Transfers{"x -> acc:0 in main", "g -> cpu in main/b", "t_before_acc_0 -> acc:0 in main/b"}));
}

TEST(ExplicitTransfers, AreNotNeededForConstants) {
  const Placed out = placed(
      "g (float[4000000] x) => (y) <float[1] w = {2}> { c = Constant <value = float[1] {3}> ()\n a = Add (x, w)\n b = "
      "Add (a, c)\n y = Exp (b) }");
  EXPECT_EQ(transfers(out), Transfers{"x -> acc:0 in main"});
}

TEST(ExplicitTransfers, KeepWhatTheModelPlaces) {
  EXPECT_EQ(transfers(placed("g (float[4] x) => (a) { [n] a = Exp (x) }", "\"tensorlint.device:n\": \"acc:0\"")),
            Transfers{"x -> acc:0 in main"});
  EXPECT_EQ(placed("g (float[4] x) => (a) { [n] a = Exp (x) }", "\"tensorlint.device:n\": \"acc:1\"").problem,
            "`n` is placed on acc:1; a model is split between the cpu and acc:0");
}

TEST(ExplicitTransfers, AreRefusedForModelsWithErrors) {
  EXPECT_EQ(placed("g (float[4] x, float[3] w) => (a) { a = Add (x, w) }").problem,
            "the model has errors, which `tensorlint check` lists: it cannot be placed");
  const Result<Model> model =
      read_onnx_text("<ir_version: 10, opset_import: [\"\": 21]>\ng (float[4] x) => (a) { a = Exp (x) }", "m");
  EXPECT_EQ(make_transfers_explicit(dataflow::analyse(*model, {}), {}).error().message,
            "a model is split between the cpu and one provider");
}

// ---- random models

class ModelMaker {
 public:
  explicit ModelMaker(std::uint32_t seed) : random_(seed) {}

  std::string make() {
    extent_ = pick({"1000", "100000", "10000000"});
    std::vector<std::string> values{"x0", "x1"};
    std::string body = block(values, 0, number(3, 9));
    return fmt::format(
        "g (float[{0}] x0, float[{0}] x1, bool f0, bool f1, int64 n) => ({1}) <float[1] w = {{2}}, bool go = {{1}}> {{ "
        "{2} }}\n{3}",
        extent_, values.back(), body, functions_);
  }

  /// Nodes of the main graph only, each of one or two operands.
  std::string make_line(int nodes) {
    extent_ = pick({"10000", "100000", "1000000"});
    std::vector<std::string> values{"x0", "x1"};
    std::string body;
    for (int i = 0; i < nodes; ++i) {
      const std::string a = value_of(values), b = value_of(values), out = fresh("v");
      const std::string call = pick({"Tanh (" + a + ")", "Exp (" + a + ")", "Neg (" + a + ")",
                                     "Add (" + a + ", " + b + ")", "ReduceSum <keepdims = 1> (" + a + ")"});
      body += fmt::format("{} = {} ", out, call);
      values.push_back(out);
    }
    std::string outputs;
    for (const std::string& value : values) outputs += (outputs.empty() ? "" : ", ") + value;
    return fmt::format("g (float[{0}] x0, float[{0}] x1) => ({1}) {{ {2} }}", extent_, outputs.substr(8), body);
  }

 private:
  int number(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }
  template <typename T>
  T pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(number(0, static_cast<int>(from.size()) - 1))];
  }
  std::string pick(std::initializer_list<std::string> from) { return pick(std::vector<std::string>(from)); }
  std::string fresh(std::string_view what) { return fmt::format("{}{}", what, ++count_); }
  std::string value_of(const std::vector<std::string>& values) {
    return number(0, 1) == 0 ? values.back() : pick(values);
  }

  std::string block(std::vector<std::string>& values, int depth, int statements) {
    std::string text;
    for (int i = 0; i < statements; ++i) text += statement(values, depth);
    return text;
  }

  /// A body whose last value is new.
  std::string body(std::vector<std::string> values, int depth, std::string* result) {
    std::string text = block(values, depth + 1, number(0, 3));
    *result = number(0, 5) == 0 ? values.back() : fresh("v");
    if (*result != values.back())
      text += fmt::format("{} = {} ({}) ", *result, pick({"Exp", "Tanh", "Neg"}), value_of(values));
    return text;
  }

  std::string statement(std::vector<std::string>& values, int depth) {
    const std::string a = value_of(values), b = value_of(values), out = fresh("v");
    std::string text;
    const int kind = number(0, depth < 2 ? 14 : 8);
    if (kind <= 2) {
      text = fmt::format("{} = {} ({}) ", out, pick({"Exp", "Neg", "Tanh"}), a);
    } else if (kind == 3) {
      text = fmt::format("{} = Add ({}, {}) ", out, a, b);
    } else if (kind == 4) {
      const std::string sum = fresh("v");
      text = fmt::format("{} = ReduceSum <keepdims = 1> ({}) {} = Add ({}, {}) ", sum, a, out, b, sum);
    } else if (kind == 5) {
      const std::string shape = fresh("s");
      text = fmt::format("{} = Shape ({}) {} = Reshape ({}, {}) ", shape, a, out, b, shape);
    } else if (kind == 6) {
      text = fmt::format("{} = Add ({}, w) ", out, a);
    } else if (kind == 7) {
      const std::string constant = fresh("c");
      text = fmt::format("{} = Constant <value = float[1] {{3}}> () {} = Add ({}, {}) ", constant, out, a, constant);
    } else if (kind == 8) {
      text = fmt::format("{} = Identity ({}) ", out, a);
    } else if (kind <= 10) {
      std::string then_result, else_result;
      const std::string then_text = body(values, depth, &then_result), else_text = body(values, depth, &else_result);
      text = fmt::format(
          "{} = If ({}) <then_branch = a () => (float[{}] {}) {{ {} }}, else_branch = b () => (float[{}] {}) {{ {} "
          "}}> ",
          out, pick({"f0", "f1"}), extent_, then_result, then_text, extent_, else_result, else_text);
      if (then_result == else_result || then_text.empty() || else_text.empty())
        text = fmt::format("{} = Neg ({}) ", out, a);
    } else if (kind <= 12) {
      const std::string carried = fresh("p"), i = fresh("i"), c = fresh("c"), d = fresh("d"), stacked = fresh("v");
      std::vector<std::string> inner = values;
      inner.push_back(carried);
      std::string result;
      const std::string inside = body(inner, depth, &result);
      const bool scans = number(0, 2) == 0;
      text = fmt::format(
          "{}{} = Loop ({}, go, {}) <body = b (int64 {}, bool {}, float[{}] {}) => (bool {}, float[{}] {}{}) {{ {} = "
          "Identity ({}) {} }}> ",
          out, scans ? ", " + stacked : "", pick({"n", "t"}), a, i, c, extent_, carried, d, extent_, result,
          scans ? fmt::format(", float[{}] {}", extent_, carried) : "", d, c, inside);
      if (text.find("(t,") != std::string::npos) {
        const std::string trips = fresh("t");
        text = fmt::format("{} = Constant <value = int64 {{{}}}> () ", trips, number(0, 3)) +
               text.replace(text.find("(t,"), 3, fmt::format("({},", trips));
      }
      if (scans) text += fmt::format("{} = Exp ({}) ", fresh("u"), stacked);
    } else if (functions_.size() < 600) {
      const std::string name = fresh("F"), p = fresh("p"), q = fresh("p"), result = fresh("v");
      functions_ += fmt::format(
          "<domain: \"local\", opset_import: [\"\": 21]> {} ({}, {}) => ({}) {{ h = {} ({}) k = {} ({}) {} = Add (h, "
          "k) }}\n",
          name, p, q, result, pick({"Exp", "Tanh"}), p, pick({"Neg", "Tanh"}), q, result);
      names_.push_back(name);
      text = fmt::format("{} = local.{} ({}, {}) ", out, pick(names_), a, b);
    } else {
      text = fmt::format("{} = local.{} ({}, {}) ", out, pick(names_), a, b);
    }
    values.push_back(out);
    return text;
  }

  std::mt19937 random_;
  int count_ = 1;
  std::string extent_, functions_;
  std::vector<std::string> names_;
};

TEST(ExplicitTransfers, OfRandomModelsPassTheCheck) {
  int with_transfers = 0, inside = 0, handed_out = 0;
  for (int seed = 0; seed < kModels; ++seed) {
    const std::string text = ModelMaker(static_cast<std::uint32_t>(seed)).make();
    const Placed out = placed(text);
    ASSERT_EQ(out.problem, "") << "seed " << seed << "\n" << text << "\n" << (out.model ? to_text(*out.model) : "");
    ASSERT_EQ(wiring(*out.model), out.wiring_before) << "seed " << seed << "\n" << text;
    with_transfers += out.plan.transfers > 0 ? 1 : 0;
    for (const std::string& transfer : transfers(out)) {
      inside += transfer.ends_with(" in main") ? 0 : 1;
      handed_out += transfer.find("_before_") != std::string::npos ? 1 : 0;
    }
    ASSERT_EQ(transfers(out).size(), out.plan.transfers);
  }
  EXPECT_GT(with_transfers, kModels / 3);
  EXPECT_GT(inside, kModels / 10);
  EXPECT_GT(handed_out, kModels / 50);
}

TEST(ExplicitTransfers, CostLeastOfAllSplits) {
  int split = 0;
  for (int seed = 0; seed < kModels / 10; ++seed) {
    const std::string text = ModelMaker(static_cast<std::uint32_t>(seed)).make_line(seed % 9 + 1);
    const Placed out = placed(text);
    ASSERT_EQ(out.problem, "") << text;
    const Result<Model> model = read_onnx_text("<ir_version: 10, opset_import: [\"\": 21]>\n" + text, "m");
    const dataflow::Analysis analysis = dataflow::analyse(*model, {});
    const auto bytes = [&](ValueId value) {
      const auto extents = analysis.facts().dims_of(analysis.fact(value).shape);
      return 4 * *analysis.facts().dims().as_constant(extents[0]);
    };
    // Bit n: node n is on the accelerator.
    const auto cost = [&](std::uint32_t split_of_nodes) -> std::int64_t {
      std::int64_t sum = 0;
      const auto is_there = [&](NodeId node) {
        return ((split_of_nodes >> static_cast<std::uint32_t>(node)) & 1U) != 0;
      };
      std::map<ValueId, bool> crosses;
      for (const NodeId id : model->nodes.ids()) {
        const Node& node = model->node(id);
        const bool there = is_there(id);
        if (there && model->text(model->op(node).name) == "Tanh") return MinimumCut::kInfinite;
        for (const ValueId operand : model->operands(node)) {
          const Value& value = model->value(operand);
          crosses[operand] = crosses[operand] || there != (value.producer != NodeId::kNone && is_there(value.producer));
          if (!there) sum += bytes(operand);
        }
        if (!there) sum += bytes(model->results(node)[0]);
      }
      for (const auto& [value, is_copied] : crosses) sum += is_copied ? bytes(value) + kCopyOverhead : 0;
      return sum;
    };
    std::int64_t least = MinimumCut::kInfinite;
    for (std::uint32_t side = 0; side < (1U << model->nodes.size()); ++side) least = std::min(least, cost(side));
    std::uint32_t chosen = 0;
    const Placement placement = place(*out.analysis, {});
    for (const NodeId id : model->nodes.ids()) {
      const ValueId result = out.model->find_value(GraphId::kMain, model->name_of(model->results(model->node(id))[0]));
      const auto devices = placement.devices(result);
      if (!devices.empty() && devices[0] == "acc:0") chosen |= 1U << static_cast<std::uint32_t>(id);
    }
    EXPECT_EQ(cost(chosen), least) << text;
    split += chosen != 0 && chosen + 1 != 1U << model->nodes.size() ? 1 : 0;
  }
  EXPECT_GT(split, kModels / 100);
}

}  // namespace
}  // namespace tensorlint::placement
