// The losses that are found in formulas written by hand: every way to write one, and next to each what only looks like
// it.
#include "passes/losses/loss_sites.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/text/reader.h"

namespace tensorlint::losses {
namespace {

constexpr std::string_view kHeader = "<ir_version: 10, opset_import: [\"\": 20, \"tensorlint\": 1]>\n";
constexpr std::string_view kConstants =
    "float zero = {0}, float one = {1}, float two = {2}, float three = {3}, float half = {0.5}, float twentieth = "
    "{0.05}, "
    "float less = {-1}, float tiny = {1e-7}, float[1] ones = {1}, float[1] less1 = {-1}, float[3] w = {1, 2, 3}, "
    "float[4, 3] weights = {1,2,3,4,5,6,7,8,9,10,11,12}, int64 itwo = {2}, int64 ione = {1}, int64[1] last = {1}, "
    "int64[2] both = {0, 1}, int64[0] none = {}, int64[2] sizes = {4, 3}";

std::string losses_of(std::string_view text) {
  const Result<Model> model = read_onnx_text(std::string(text), "test.onnxtxt");
  if (!model) return "does not parse: " + model.error().message;
  const dataflow::Analysis analysis = dataflow::analyse(*model, {});
  std::string found;
  for (const LossSite& site : find_losses(analysis)) {
    const auto name = [&](ValueId value) { return model->text(model->value(value).name); };
    std::string nodes;
    for (const NodeId node : site.nodes)
      nodes += (nodes.empty() ? "" : " ") + std::string(name(model->results(model->node(node))[0]));
    found +=
        fmt::format("{}{} at {}: {}, {} of [{}]", found.empty() ? "" : "; ", to_text(site.kind),
                    name(model->results(model->node(site.anchor))[0]), name(site.prediction), name(site.target), nodes);
    if (site.prediction != site.prediction_source || site.target != site.target_source)
      found += fmt::format(" from {}, {}", name(site.prediction_source), name(site.target_source));
    if (site.evidence == LossEvidence::kMetadata) found += " by metadata";
  }
  return found;
}

/// The losses of a graph with float inputs p, t, x of shape [4, 3] and class indices c [4, 1], output `z` (of any
/// name).
std::string losses(std::string_view nodes, std::string_view outputs = "z") {
  return losses_of(fmt::format(
      "{}g (float[4, 3] p, float[4, 3] t, float[4, 3] x, int64[4, 1] c, bool[4, 3] b) => ({})\n<{}>\n{{\n{}\n}}\n",
      kHeader, outputs, kConstants, nodes));
}

// ---- differences

TEST(Losses, SquaredDifferences) {
  const std::string found = "mean squared error at d: p, t of [d q z]";
  EXPECT_EQ(losses("d = Sub(p, t) q = Pow(d, two) z = ReduceMean<keepdims = 0>(q)"), found);
  EXPECT_EQ(losses("d = Sub(p, t) q = Pow(d, itwo) z = ReduceMean<keepdims = 0>(q)"), found);
  EXPECT_EQ(losses("d = Sub(p, t) q = Mul(d, d) z = ReduceMean<keepdims = 0>(q)"), found);
  EXPECT_EQ(losses("d = Sub(p, t) q = Mul(d, d) z = ReduceSum(q)"), found);
  EXPECT_EQ(losses("d = Sub(t, p) q = Mul(d, d) z = ReduceMean(q)"), "mean squared error at d: t, p of [d q z]");
}

TEST(Losses, SquaresOfSomethingElseAreNone) {
  EXPECT_EQ(losses("d = Sub(p, t) q = Pow(d, three) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("d = Sub(p, t) q = Pow(two, d) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("d = Sub(p, t) q = Pow(d, w) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("d = Sub(p, t) q = Mul(d, x) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("d = Sub(p, t) q = Mul(x, d) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("d = Add(p, t) q = Mul(d, d) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("d = Sub(p, p) q = Mul(d, d) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("d = Sub(p, t) q = Sqrt(d) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("d = Sub(p, t) z = ReduceMean(d)"), "");
}

TEST(Losses, AVarianceIsNone) {
  EXPECT_EQ(losses("m = ReduceMean(p) d = Sub(p, m) q = Mul(d, d) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("m = ReduceMean(p) d = Sub(m, p) q = Mul(d, d) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("m = ReduceMax(p) d = Sub(p, m) q = Mul(d, d) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("m = ReduceMean(p) d = Sub(t, m) q = Mul(d, d) z = ReduceMean(q)"),
            "mean squared error at d: t, m of [d q z]");
}

TEST(Losses, TwoDifferencesOfTheSameOperandsMultiplied) {
  EXPECT_EQ(losses("d = Sub(p, t) e = Sub(p, t) q = Mul(d, e) z = ReduceMean(q)"),
            "mean squared error at d: p, t of [d e q z]");
  EXPECT_EQ(losses("d = Sub(p, t) e = Sub(p, t) q = Mul(e, d) z = ReduceMean(q)"),
            "mean squared error at d: p, t of [d e q z]");
  EXPECT_EQ(losses("f = Cast<to = 1>(p) d = Sub(p, t) e = Sub(f, t) q = Mul(d, e) z = ReduceMean(q)"),
            "mean squared error at d: p, t of [f d e q z]");
  EXPECT_EQ(losses("d = Sub(p, t) e = Sub(p, x) q = Mul(d, e) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("d = Sub(p, t) e = Sub(x, t) q = Mul(d, e) z = ReduceMean(q)"), "");
  EXPECT_EQ(losses("d = Sub(p, t) e = Add(p, t) q = Mul(d, e) z = ReduceMean(q)"), "");
}

TEST(Losses, StretchedToTheShapeOfTheirSum) {
  const std::string stretch =
      "s = Add(p, t) h = Shape(s) pe = Expand(p, h) te = Expand(t, h) d = Sub(pe, te) q = Mul(d, d)";
  EXPECT_EQ(losses(stretch, "q"), "mean squared error at d: pe, te of [s pe te d q] from p, t");
  EXPECT_EQ(losses("s = Add(p, t) h = Shape(s) pe = Expand(p, h) pc = Cast<to = 1>(pe) te = Expand(t, h) "
                   "d = Sub(pc, te) q = Mul(d, d)",
                   "q"),
            "mean squared error at d: pc, te of [s pe te d q] from p, t");
  // Not of one sum, not by a shape, or of one of them alone: without a reduction that is a distance.
  EXPECT_EQ(losses("s = Add(p, t) r = Add(p, t) h = Shape(s) i = Shape(r) pe = Expand(p, h) te = Expand(t, i) "
                   "d = Sub(pe, te) q = Mul(d, d)",
                   "q"),
            "");
  EXPECT_EQ(losses("pe = Expand(p, sizes) te = Expand(t, sizes) d = Sub(pe, te) q = Mul(d, d)", "q"), "");
  EXPECT_EQ(losses("h = Shape(x) pe = Expand(p, h) te = Expand(t, h) d = Sub(pe, te) q = Mul(d, d)", "q"), "");
  EXPECT_EQ(losses("s = Mul(p, t) h = Shape(s) pe = Expand(p, h) te = Expand(t, h) d = Sub(pe, te) q = Mul(d, d)", "q"),
            "");
  EXPECT_EQ(losses("s = Add(p, t) h = Shape(s) te = Expand(t, h) d = Sub(p, te) q = Mul(d, d)", "q"), "");
  EXPECT_EQ(losses("s = Add(p, t) h = Shape(s) pe = Expand(p, h) d = Sub(pe, t) q = Mul(d, d)", "q"), "");
}

TEST(Losses, AbsoluteDifferences) {
  EXPECT_EQ(losses("d = Sub(p, t) a = Abs(d) z = ReduceMean(a)"), "L1 loss at d: p, t of [d a z]");
  EXPECT_EQ(losses("d = Sub(p, t) a = Abs(d) s = Cosh(d) z = ReduceMean(s)"), "");
}

TEST(Losses, LogCosh) {
  EXPECT_EQ(losses("d = Sub(p, t) a = Cosh(d) z = Log(a)"), "log-cosh loss at d: p, t of [d a z]");
  EXPECT_EQ(losses("d = Sub(p, t) a = Cosh(d) z = ReduceMean(a)"), "");
  EXPECT_EQ(losses("d = Sub(p, t) a = Cosh(d) z = Log(a) y = Exp(a)", "z, y"), "");
}

// ---- Huber

TEST(Losses, HuberInItsSpellings) {
  const std::string start = "d = Sub(p, t) a = Abs(d) l = Less(a, one) ";
  EXPECT_EQ(losses(start + "s = Mul(d, d) q = Mul(s, half) m = Sub(a, half) z = Where(l, q, m)"),
            "Huber loss at d: p, t of [d a l s q m z]");
  EXPECT_EQ(losses(start + "s = Mul(a, a) q = Mul(half, s) m = Sub(a, half) z = Where(l, q, m)"),
            "Huber loss at d: p, t of [d a l s q m z]");
  EXPECT_EQ(losses(start + "s = Pow(d, two) q = Mul(s, half) m = Sub(a, half) n = Mul(m, one) z = Where(l, q, n)"),
            "Huber loss at d: p, t of [d a l s q m n z]");
  EXPECT_EQ(losses(start + "s = Pow(a, two) q = Div(s, two) m = Sub(a, half) z = Where(l, q, m)"),
            "Huber loss at d: p, t of [d a l s q m z]");
  EXPECT_EQ(
      losses("d = Sub(p, t) a = Abs(d) l = GreaterOrEqual(a, one) s = Mul(d, d) m = Sub(a, half) z = Where(l, m, s)"),
      "Huber loss at d: p, t of [d a l s m z]");
}

TEST(Losses, OtherSelectionsByADistanceAreNone) {
  const std::string start = "d = Sub(p, t) a = Abs(d) l = Less(a, one) ";
  // Cubed, to the first power, of the wrong constant, selected by something else, both parts squares, both parts lines.
  for (const std::string_view rest : {
           "s = Mul(d, d) q = Mul(s, d) m = Sub(a, half) z = Where(l, q, m)",
           "q = Mul(d, half) m = Sub(a, half) z = Where(l, q, m)",
           "q = Pow(d, three) m = Sub(a, half) z = Where(l, q, m)",
           "q = Pow(x, two) m = Sub(a, half) z = Where(l, q, m)",
           "q = Pow(d, two) m = Sub(a, x) z = Where(l, q, m)",
           "q = Pow(d, two) m = Sub(d, half) z = Where(l, q, m)",
           "q = Pow(d, two) m = Add(a, half) z = Where(l, q, m)",
           "q = Pow(d, two) m = Sub(a, half) z = Where(b, q, m)",
           "q = Pow(d, two) m = Pow(a, two) z = Where(l, q, m)",
           "q = Sub(a, one) m = Sub(a, half) z = Where(l, q, m)",
       })
    EXPECT_EQ(losses(start + std::string(rest)), "") << rest;
}

// ---- reductions behind a distance

TEST(Losses, ReducedOnTheWay) {
  const std::string start = "d = Sub(p, t) q = Mul(d, d) ";
  EXPECT_EQ(losses(start + "r = Mul(q, w) z = ReduceMean(r)"), "mean squared error at d: p, t of [d q r z]");
  EXPECT_EQ(losses(start + "r = ReduceSum<keepdims = 0>(q, last) z = ReduceMean(r)"),
            "mean squared error at d: p, t of [d q r z]");
  EXPECT_EQ(losses(start + "n = Neg(q) r = Div(n, two) s = Squeeze(r) z = ReduceSum(s)"),
            "mean squared error at d: p, t of [d q n r s z]");
  EXPECT_EQ(losses(start + "z = ReduceMean(q, both)"), "mean squared error at d: p, t of [d q z]");
  EXPECT_EQ(losses(start + "z = ReduceMean(q, none)"), "mean squared error at d: p, t of [d q z]");
  EXPECT_EQ(losses(start + "z = ReduceMean<noop_with_empty_axes = 0>(q)"), "mean squared error at d: p, t of [d q z]");
  EXPECT_EQ(losses(start + "z = ReduceMean<noop_with_empty_axes = 1>(q)"), "");
  EXPECT_EQ(losses(start + "z = ReduceMean(q, last)"), "mean squared error at d: p, t of [d q z]");
  EXPECT_EQ(losses(start + "z = ReduceMax(q)"), "");
  EXPECT_EQ(losses(start + "r = Exp(q) z = ReduceMean(r)"), "");
  EXPECT_EQ(losses(start + "r = Add(q, one) z = ReduceMean(r)"), "mean squared error at d: p, t of [d q r z]");
  EXPECT_EQ(losses(start + "r = ReduceMean(q, last) z = ReduceMean(r)"), "mean squared error at d: p, t of [d q r z]");
  EXPECT_EQ(losses(start + "r = ReduceMean<keepdims = 1>(q, last) z = ReduceMean(r)"),
            "mean squared error at d: p, t of [d q r z]");
}

TEST(Losses, ReducedFarBehind) {
  const std::string start = "d = Sub(p, t) q = Mul(d, d) a1 = Neg(q) a2 = Neg(a1) a3 = Neg(a2) a4 = Neg(a3) ";
  EXPECT_EQ(losses(start + "z = ReduceMean(a4)"), "mean squared error at d: p, t of [d q a1 a2 a3 a4 z]");
  EXPECT_EQ(losses(start + "a5 = Neg(a4) z = ReduceMean(a5)"),
            "mean squared error at d: p, t of [d q a1 a2 a3 a4 a5 z]");
}

TEST(Losses, WithoutReductionBetweenParametersAndInput) {
  EXPECT_EQ(losses("y = Mul(p, weights) d = Sub(y, t) z = Mul(d, d)"), "mean squared error at d: y, t of [d z]");
  EXPECT_EQ(losses("y = Mul(p, weights) d = Sub(t, y) z = Abs(d)"), "L1 loss at d: y, t of [d z]");
  // No parameters: constants of one element are none, nor are integers. The target is computed. It is no output.
  EXPECT_EQ(losses("y = Mul(p, two) d = Sub(y, t) z = Mul(d, d)"), "");
  EXPECT_EQ(losses("y = Mul(p, ones) d = Sub(y, t) z = Mul(d, d)"), "");
  EXPECT_EQ(losses("i = Cast<to = 1>(sizes) y = Reshape(p, sizes) d = Sub(y, t) z = Mul(d, d)"), "");
  EXPECT_EQ(losses("y = Mul(p, weights) u = Relu(t) d = Sub(y, u) z = Mul(d, d)"), "");
  EXPECT_EQ(losses("y = Mul(p, weights) d = Sub(y, t) q = Mul(d, d) z = Relu(q)"), "");
  EXPECT_EQ(losses("y = Mul(p, weights) d = Sub(y, weights) z = Mul(d, d)"), "");
}

TEST(Losses, ThePredictionIsWhatParametersGoInto) {
  const std::string rest = " q = Mul(d, d) z = ReduceMean(q)";
  EXPECT_EQ(losses("y = Mul(p, weights) d = Sub(t, y)" + rest), "mean squared error at d: y, t of [d q z]");
  EXPECT_EQ(losses("y = Mul(p, weights) d = Sub(y, t)" + rest), "mean squared error at d: y, t of [d q z]");
  EXPECT_EQ(losses("y = Mul(p, weights) v = Mul(t, w) d = Sub(v, y)" + rest),
            "mean squared error at d: v, y of [d q z]");
  EXPECT_EQ(losses("y = Mul(p, ones) d = Sub(t, y)" + rest), "mean squared error at d: t, y of [d q z]");
}

TEST(Losses, LooksThroughCastsAndStretching) {
  EXPECT_EQ(
      losses("f = Cast<to = 1>(c) g = Identity(f) h = Expand(g, sizes) y = CastLike(p, t) d = Sub(y, h) q = Mul(d, d) "
             "z = ReduceMean(q)"),
      "mean squared error at d: y, h of [d q z] from p, c");
}

// ---- binary cross-entropy

TEST(Losses, BinaryCrossEntropy) {
  const std::string start = "lp = Log(p) q = Sub(one, p) lq = Log(q) u = Sub(one, t) ";
  EXPECT_EQ(losses(start + "m = Mul(t, lp) n = Mul(u, lq) z = Add(m, n)"),
            "binary cross-entropy at m: p, t of [lp lq u m n z]");
  EXPECT_EQ(losses(start + "n = Mul(u, lq) m = Mul(lp, t) z = Add(n, m)"),
            "binary cross-entropy at n: p, t of [lp lq u n m z]");
  EXPECT_EQ(losses(start + "m = Mul(t, lp) v = Neg(m) n = Mul(lq, u) z = Sub(v, n)"),
            "binary cross-entropy at m: p, t of [lp lq u m v n z]");
  // t - 1 for 1 - t, and -t + 1 on either side.
  EXPECT_EQ(
      losses("lp = Log(p) q = Sub(one, p) lq = Log(q) u = Sub(t, one) m = Mul(t, lp) n = Mul(u, lq) z = Sub(n, m)"),
      "binary cross-entropy at m: p, t of [lp lq u m n z]");
  EXPECT_EQ(losses("lp = Log(p) i = Neg(p) q = Add(i, one) lq = Log(q) j = Neg(t) u = Add(one, j) m = Mul(t, lp) "
                   "n = Mul(u, lq) z = Add(m, n)"),
            "binary cross-entropy at m: p, t of [lp lq u m n z]");
}

TEST(Losses, AlmostBinaryCrossEntropy) {
  const std::string logs = "lp = Log(p) q = Sub(one, p) lq = Log(q) u = Sub(one, t) ";
  for (const std::string& text : {
           logs + "m = Mul(x, lp) n = Mul(u, lq) z = Add(m, n)",  // another target
           logs + "m = Mul(t, lp) n = Mul(t, lq) z = Add(m, n)",  // not complemented
           logs + "m = Mul(t, lp) n = Mul(u, lp) z = Add(m, n)",  // the same logarithm twice
           logs + "m = Mul(t, lq) n = Mul(u, lq) z = Add(m, n)",  //
           logs + "m = Mul(t, lp) n = Mul(u, lq) z = Mul(m, n)",  // a product of both
           logs + "m = Add(t, lp) n = Add(u, lq) z = Add(m, n)",  // no products
           std::string(
               "lp = Log(x) q = Sub(one, p) lq = Log(q) u = Sub(one, t) m = Mul(t, lp) n = Mul(u, lq) z = Add(m, n)"),
           std::string(
               "lp = Log(p) q = Sub(two, p) lq = Log(q) u = Sub(one, t) m = Mul(t, lp) n = Mul(u, lq) z = Add(m, n)"),
           std::string(
               "lp = Log(p) q = Sub(one, p) lq = Log(q) u = Sub(two, t) m = Mul(t, lp) n = Mul(u, lq) z = Add(m, n)"),
           std::string(
               "lp = Log(p) q = Add(one, p) lq = Log(q) u = Sub(one, t) m = Mul(t, lp) n = Mul(u, lq) z = Add(m, n)"),
           std::string(
               "lp = Exp(p) q = Sub(one, p) lq = Log(q) u = Sub(one, t) m = Mul(t, lp) n = Mul(u, lq) z = Add(m, n)"),
       })
    EXPECT_EQ(losses(text), "") << text;
}

TEST(Losses, BinaryCrossEntropyKeptFromLogarithmsOfZero) {
  const std::string rest = " u = Sub(one, t) m = Mul(t, lp) n = Mul(u, lq) z = Add(m, n)";
  const std::string nodes = "binary cross-entropy at m: p, t of [lp lq u m n z]";
  // The logarithm clamped, from either side.
  EXPECT_EQ(losses("q = Sub(one, p) l = Log(p) k = Log(q) lp = Clip(l, less) lq = Max(less, k)" + rest), nodes);
  EXPECT_EQ(losses("q = Sub(one, p) l = Log(p) k = Log(q) lp = Max(l, less) lq = Max(k, less)" + rest), nodes);
  // The probability clamped, or a small number added.
  EXPECT_EQ(losses("q = Sub(one, p) cp = Clip(p, tiny) lp = Log(cp) cq = Clip(q, tiny) lq = Log(cq)" + rest), nodes);
  EXPECT_EQ(losses("q = Sub(one, p) cp = Add(p, tiny) lp = Log(cp) cq = Add(tiny, q) lq = Log(cq)" + rest), nodes);
  EXPECT_EQ(losses("q = Sub(one, p) cp = Add(twentieth, p) lp = Log(cp) cq = Add(q, twentieth) lq = Log(cq)" + rest),
            nodes);
  EXPECT_EQ(losses("cp = Clip(p, tiny) q = Sub(one, cp) lp = Log(cp) lq = Log(q)" + rest), "");
  EXPECT_EQ(losses("q = Sub(one, p) cp = Add(p, half) lp = Log(cp) cq = Add(q, tiny) lq = Log(cq)" + rest), "");
  EXPECT_EQ(losses("q = Sub(one, p) cp = Max(p, x) lp = Log(cp) cq = Clip(q, tiny) lq = Log(cq)" + rest), "");
}

TEST(Losses, BinaryCrossEntropyWithLogits) {
  // (1 - t) * x - log(sigmoid(x)), the logarithm in its spellings.
  const std::string start = "u = Sub(one, t) m = Mul(u, x) ";
  const std::string found = "binary cross-entropy with logits at m: x, t of [u m ";
  EXPECT_EQ(losses(start + "s = Sigmoid(x) l = Log(s) z = Sub(m, l)"), found + "l z]");
  EXPECT_EQ(losses(start + "i = Neg(x) s = Softplus(i) z = Add(m, s)"), found + "s z]");
  EXPECT_EQ(losses("u = Sub(one, t) m = Mul(x, u) i = Neg(x) s = Softplus(i) z = Add(s, m)"), found + "s z]");
  EXPECT_EQ(losses(start + "s = Softplus(x) z = Add(m, s)"), "");
  EXPECT_EQ(losses(start + "i = Neg(p) s = Softplus(i) z = Add(m, s)"), "");
  EXPECT_EQ(losses("u = Sub(one, t) m = Mul(u, p) i = Neg(x) s = Softplus(i) z = Add(m, s)"), "");
  EXPECT_EQ(losses("m = Mul(t, x) i = Neg(x) s = Softplus(i) z = Add(m, s)"), "");
}

TEST(Losses, ClassWeightsBelongToIt) {
  EXPECT_EQ(
      losses("u = Sub(one, t) m = Mul(u, x) i = Neg(x) s = Softplus(i) k = Mul(t, w) l = Add(k, one) v = Mul(s, l) "
             "z = Add(m, v)"),
      "binary cross-entropy with logits at m: x, t of [u m s k l v z]");
  EXPECT_EQ(
      losses("u = Sub(one, t) m = Mul(u, x) i = Neg(x) s = Softplus(i) k = Mul(w, t) l = Add(one, k) v = Mul(s, l) "
             "z = Add(m, v)"),
      "binary cross-entropy with logits at m: x, t of [u m s k l v z]");
  EXPECT_EQ(
      losses("u = Sub(one, t) m = Mul(u, x) i = Neg(x) s = Softplus(i) k = Mul(w, p) l = Add(one, k) v = Mul(s, l) "
             "z = Add(m, v)"),
      "binary cross-entropy with logits at m: x, t of [u m s l v z]");
}

TEST(Losses, LogitsOfASigmoidAsExported) {
  // With constants of shape [1] and the sign right behind, the probability was none of the program's values.
  const std::string start = "s = Sigmoid(x) lp = Log(s) q = Sub(one, s) lq = Log(q) ";
  EXPECT_EQ(losses(start + "u = Sub(ones, t) m = Mul(t, lp) n = Mul(u, lq) a = Add(m, n) z = Neg(a)"),
            "binary cross-entropy with logits at m: x, t of [lp lq u m n a]");
  EXPECT_EQ(losses(start + "u = Sub(one, t) m = Mul(t, lp) n = Mul(u, lq) a = Add(m, n) z = Neg(a)"),
            "binary cross-entropy at m: s, t of [lp lq u m n a]");
  EXPECT_EQ(losses(start + "u = Sub(ones, t) m = Mul(t, lp) n = Mul(u, lq) a = Add(m, n) z = Relu(a)"),
            "binary cross-entropy at m: s, t of [lp lq u m n a]");
  EXPECT_EQ(
      losses(start + "u = Sub(ones, t) m = Mul(t, lp) n = Mul(u, lq) a = Add(m, n) z = Neg(a) y = Neg(a)", "z, y"),
      "binary cross-entropy at m: s, t of [lp lq u m n a]");
}

// ---- cross-entropy

TEST(Losses, CrossEntropyWithProbabilities) {
  const std::string found = "cross-entropy at m: x, t of [l m r z]";
  EXPECT_EQ(losses("l = LogSoftmax(x) m = Mul(l, t) r = ReduceSum<keepdims = 0>(m, last) z = Neg(r)"), found);
  EXPECT_EQ(losses("l = LogSoftmax(x) m = Mul(t, l) r = Neg(m) z = ReduceMean(r)"), found);
  EXPECT_EQ(losses("l = LogSoftmax(x) m = Mul(t, l) r = Mul(m, less) z = ReduceMean(r)"), found);
  EXPECT_EQ(losses("l = LogSoftmax(x) m = Mul(t, l) r = Mul(less1, m) z = ReduceMean(r)"), found);
  EXPECT_EQ(losses("s = Softmax(x) l = Log(s) m = Mul(t, l) r = Neg(m) z = ReduceMean(r)"),
            "cross-entropy at m: x, t of [s l m r z]");
  EXPECT_EQ(losses("l = LogSoftmax(x) m = Mul(t, l) r = ReduceSum(m) v = Squeeze(r) y = Div(v, two) z = Neg(y)"),
            "cross-entropy at m: x, t of [l m r v y z]");
}

TEST(Losses, AlmostCrossEntropy) {
  for (const std::string_view text : {
           "l = LogSoftmax(x) m = Mul(t, l) z = ReduceMean(m)",                   // not negated
           "l = LogSoftmax(x) m = Mul(t, l) r = Mul(m, two) z = ReduceMean(r)",   //
           "l = LogSoftmax(x) m = Mul(t, l) r = Mul(m, zero) z = ReduceMean(r)",  //
           "l = LogSoftmax(x) m = Mul(t, l) r = Mul(m, p) z = ReduceMean(r)",     //
           "l = LogSoftmax(x) m = Mul(t, l) z = Neg(m)",                          // not reduced
           "l = LogSoftmax(x) m = Mul(t, l) r = Exp(m) s = Neg(r) z = ReduceMean(s)",
           "l = LogSoftmax(x) m = Add(t, l) r = Neg(m) z = ReduceMean(r)",
           "l = LogSoftmax(x) m = Mul(l, l) r = Neg(m) z = ReduceMean(r)",
           "s = Sigmoid(x) l = Log(s) m = Mul(t, l) r = Neg(m) z = ReduceMean(r)",
           "l = LogSoftmax(x) s = Softmax(x) m = Mul(s, l) r = Neg(m) z = ReduceMean(r)",  // an entropy
           "l = LogSoftmax(x) e = Exp(l) m = Mul(e, l) r = Neg(m) z = ReduceMean(r)",
       })
    EXPECT_EQ(losses(text), "") << text;
  EXPECT_EQ(losses("l = LogSoftmax(x) m = Mul(t, l) a = Squeeze(m) b1 = Squeeze(a) c1 = Squeeze(b1) r = Neg(c1) z = "
                   "ReduceMean(r)"),
            "cross-entropy at m: x, t of [l m a b1 c1 r z]");
  EXPECT_EQ(losses("l = LogSoftmax(x) s = Softmax(p) m = Mul(s, l) r = Neg(m) z = ReduceMean(r)"),
            "cross-entropy at m: x, s of [l m r z]");
}

TEST(Losses, CrossEntropyGatheredAtClasses) {
  EXPECT_EQ(losses("l = LogSoftmax(x) m = GatherElements<axis = 1>(l, c) r = Neg(m) z = ReduceMean(r)"),
            "cross-entropy at m: x, c of [l m r z]");
  EXPECT_EQ(losses("l = LogSoftmax(x) f = Squeeze(c, last) u = Unsqueeze(f, last) m = GatherElements<axis = 1>(l, u) "
                   "r = Neg(m) z = ReduceMean(r)"),
            "cross-entropy at m: x, f of [l m r z]");
  EXPECT_EQ(losses("l = LogSoftmax(x) k = Cast<to = 6>(c) o = Reshape(k, sizes) m = GatherElements<axis = 1>(l, o) "
                   "r = Neg(m) z = ReduceMean(r)"),
            "cross-entropy at m: x, c of [l m r z]");
  EXPECT_EQ(
      losses("l = LogSoftmax(x) i = Cast<to = 7>(l) m = GatherElements<axis = 1>(p, i) r = Neg(m) z = ReduceMean(r)"),
      "");
}

// ---- divergence

TEST(Losses, Divergence) {
  EXPECT_EQ(losses("l = Log(t) h = Mul(t, l) m = Mul(t, x) z = Sub(h, m)"), "KL divergence at m: x, t of [l h m z]");
  EXPECT_EQ(losses("l = Log(t) h = Mul(l, t) m = Mul(x, t) z = Sub(h, m)"), "KL divergence at m: x, t of [l h m z]");
  EXPECT_EQ(losses("l = Log(t) d = Sub(l, x) z = Mul(t, d)"), "KL divergence at d: x, t of [l d z]");
  EXPECT_EQ(losses("l = Log(t) d = Sub(l, x) z = Mul(d, t)"), "KL divergence at d: x, t of [l d z]");
  EXPECT_EQ(losses("l = Log(t) d = Sub(l, x) m = Mul(d, t) z = Where(b, zero, m)"),
            "KL divergence at d: x, t of [l d m z]");
  EXPECT_EQ(losses("l = Log(t) d = Sub(l, x) m = Mul(d, t) e = Equal(t, zero) z = Where(e, zero, m)"),
            "KL divergence at d: x, t of [l d m e z]");
  EXPECT_EQ(losses("e = Exp(t) d = Sub(t, x) z = Mul(e, d)"), "KL divergence at d: x, t of [e d z]");
  EXPECT_EQ(losses("e = Exp(t) d = Sub(t, x) z = Mul(d, e)"), "KL divergence at d: x, t of [e d z]");
}

TEST(Losses, DivergenceWithSelections) {
  EXPECT_EQ(losses("l = Log(t) h = Mul(t, l) e = Equal(t, zero) i = Where(e, zero, h) n = IsNaN(t) j = Where(n, t, i) "
                   "m = Mul(t, x) z = Sub(j, m)"),
            "KL divergence at m: x, t of [l h e i n j m z]");
  EXPECT_EQ(losses("l = Log(t) h = Mul(t, l) e = Equal(t, zero) i = Where(e, h, zero) m = Mul(t, x) z = Sub(i, m)"),
            "");
}

TEST(Losses, AlmostDivergence) {
  for (const std::string_view text : {
           "l = Log(t) h = Mul(t, l) m = Mul(p, x) z = Sub(h, m)",
           "l = Log(t) h = Mul(p, l) m = Mul(t, x) z = Sub(h, m)",
           "l = Exp(t) h = Mul(t, l) m = Mul(t, x) z = Sub(h, m)",
           "l = Log(t) h = Add(t, l) m = Mul(t, x) z = Sub(h, m)",
           "l = Log(t) h = Mul(t, l) m = Add(t, x) z = Sub(h, m)",
           "l = Log(t) d = Sub(l, x) z = Mul(p, d)",
           "l = Log(t) d = Sub(l, x) z = Add(t, d)",
           "e = Exp(p) d = Sub(t, x) z = Mul(e, d)",
           "e = Log(t) d = Sub(t, x) z = Mul(e, d)",
       })
    EXPECT_EQ(losses(text), "") << text;
}

// ---- operators and functions

TEST(Losses, Operators) {
  EXPECT_EQ(losses("z = SoftmaxCrossEntropyLoss(x, c)"), "cross-entropy at z: x, c of [z]");
  EXPECT_EQ(losses("z = NegativeLogLikelihoodLoss(x, c, w)"), "negative log-likelihood at z: x, c of [z]");
  EXPECT_EQ(losses("z = tensorlint.MseLoss(p, t)"), "mean squared error at z: p, t of [z]");
  EXPECT_EQ(losses("z = tensorlint.NoLoss(p, t)"), "");
  EXPECT_EQ(losses("z = SoftmaxCrossEntropyLoss(x)"), "");
  EXPECT_EQ(losses("z = SoftmaxCrossEntropyLoss(x, )"), "");
}

/// A model whose library function `f` is called at z.
std::string with_function(std::string_view parameters, std::string_view body, std::string_view call) {
  return losses_of(
      fmt::format("<ir_version: 10, opset_import: [\"\": 20, \"lib\": 1]>\n"
                  "g (float[4, 3] t, float[4, 3] x, bool[4, 3] b) => (z) <float one = {{1}}>\n{{\n{}\n}}\n"
                  "<domain: \"lib\", opset_import: [\"\": 20]>\nf ({}) => (r)\n{{\n{}\n}}\n",
                  call, parameters, body));
}

TEST(Losses, FunctionsAreKnownByTheirBodies) {
  const std::string_view logits = "u = Sub(one, t) m = Mul(u, x) l = lib.f(x) z = Sub(m, l)";
  const std::string found = "binary cross-entropy with logits at m: x, t of [u m l z]";
  EXPECT_EQ(with_function("a", "s = Sigmoid(a) r = Log(s)", logits), found);
  EXPECT_EQ(with_function("a", "s = Tanh(a) r = Log(s)", logits), "");
  EXPECT_EQ(with_function("a", "s = Sigmoid(a) r = Exp(s)", logits), "");
  EXPECT_EQ(with_function("a", "k = Neg(a) s = Sigmoid(k) r = Log(s)", logits), "");
}

TEST(Losses, LogOfOnePlusX) {
  const std::string_view call =
      "l = Log(x) i = Neg(x) k = lib.f(i) u = Sub(one, t) m = Mul(t, l) n = Mul(u, k) z = Add(m, n)";
  const std::string found = "binary cross-entropy at m: x, t of [l k u m n z]";
  const std::string_view one = "o = Constant<value_float = 1.0>() ";
  EXPECT_EQ(with_function("a", fmt::format("{}s = Add(a, o) r = Log(s)", one), call), found);
  EXPECT_EQ(with_function("a", fmt::format("{}s = Add(o, a) r = Log(s)", one), call), found);
  EXPECT_EQ(with_function("a", fmt::format("{}s = Sub(a, o) r = Log(s)", one), call), "");
  EXPECT_EQ(with_function("a", fmt::format("{}s = Add(o, o) r = Log(s)", one), call), "");
  EXPECT_EQ(with_function("a", "o = Constant<value_float = 2.0>() s = Add(a, o) r = Log(s)", call), "");
  EXPECT_EQ(with_function("a", "o = Constant<value_float = 2.0>() s = Add(o, a) r = Log(s)", call), "");
  EXPECT_EQ(with_function("a", fmt::format("{}s = Add(a, o) r = Log(s)", one),
                          "l = Log(x) k = lib.f(x) u = Sub(one, t) m = Mul(t, l) n = Mul(u, k) z = Add(m, n)"),
            "");
}

TEST(Losses, XLogY) {
  const std::string_view call = "h = lib.f(t, t) m = Mul(t, x) z = Sub(h, m)";
  const std::string found = "KL divergence at m: x, t of [h m z]";
  EXPECT_EQ(with_function("a, c", "l = Log(c) r = Mul(a, l)", call), found);
  EXPECT_EQ(with_function(
                "a, c", "l = Log(c) s = Mul(a, l) o = Constant<value_float = 0.0>() e = Equal(a, o) r = Where(e, o, s)",
                call),
            found);
  EXPECT_EQ(with_function("a, c", "l = Log(a) r = Mul(a, l)", call), "");
  EXPECT_EQ(with_function("a, c", "l = Log(c) r = Mul(c, l)", call), "");
  EXPECT_EQ(with_function("a, c", "l = Exp(c) r = Mul(a, l)", call), "");
  EXPECT_EQ(with_function("a, c", "l = Log(c) r = Add(a, l)", call), "");
  EXPECT_EQ(with_function("a, c", "l = Log(c) r = Mul(a, l)", "h = lib.f(t, x) m = Mul(t, x) z = Sub(h, m)"), "");
  EXPECT_EQ(with_function("a, c, e", "l = Log(c) r = Mul(a, l)", "h = lib.f(t, t, t) m = Mul(t, x) z = Sub(h, m)"), "");
}

// ---- names

TEST(Losses, AnOperatorsDomainCounts) {
  const auto loss_operator = [](std::string_view domain, std::string_view name) {
    const ops::OpEntry* entry = ops::find_entry(domain, name, 13);
    return entry == nullptr ? std::nullopt : entry->loss();
  };
  EXPECT_EQ(loss_operator("", "SoftmaxCrossEntropyLoss"), LossKind::kCrossEntropy);
  EXPECT_EQ(loss_operator("tensorlint", "HuberLoss"), LossKind::kHuber);
  EXPECT_EQ(loss_operator("", "HuberLoss"), std::nullopt);
  EXPECT_EQ(loss_operator("tensorlint", "SoftmaxCrossEntropyLoss"), std::nullopt);
  EXPECT_EQ(loss_operator("other", "HuberLoss"), std::nullopt);
}

// Operators that the model gives fewer operands than they take are reported elsewhere; what they compute is not asked
// for.
TEST(Losses, OperatorsWithoutTheirOperands) {
  EXPECT_EQ(losses("d = Sub(p)\ns = Mul(d, t)\nz = ReduceMean<keepdims=0>(s)"), "");
  EXPECT_EQ(losses("d = Sub(p, t)\nb1 = Less(d)\ns = Where(b1, d)\nz = ReduceMean<keepdims=0>(s)"), "");
  EXPECT_EQ(losses("d = Sub(p, t)\ns = PRelu(d)\nz = ReduceMean<keepdims=0>(s)"), "");
}

TEST(Losses, NamedByMetadata) {
  EXPECT_EQ(loss_named("step/aten.mse_loss.default"), LossKind::kMse);
  EXPECT_EQ(loss_named("aten.mse_loss"), LossKind::kMse);
  EXPECT_EQ(loss_named("aten.binary_cross_entropy_with_logits.default"), LossKind::kBinaryCrossEntropyWithLogits);
  EXPECT_EQ(loss_named("aten.mse_loss.default/aten.sub.Tensor"), std::nullopt);
  EXPECT_EQ(loss_named("torch.nn.modules.loss.HuberLoss/aten.sub.Tensor"), LossKind::kHuber);
  EXPECT_EQ(loss_named("torch.nn.modules.loss.HuberLoss aten.sub.Tensor"), LossKind::kHuber);
  EXPECT_EQ(loss_named("torch.nn.modules.loss.MyLoss/aten.sub.Tensor"), std::nullopt);
  EXPECT_EQ(loss_named("torch.nn.modules.loss.HuberLoss"), std::nullopt);
  EXPECT_EQ(loss_named("aten.sub.Tensor/torch.nn.modules.loss.HuberLoss"), std::nullopt);
  EXPECT_EQ(loss_named(""), std::nullopt);
}

TEST(Losses, Kinds) {
  for (const LossKind kind :
       {LossKind::kMse, LossKind::kL1, LossKind::kHuber, LossKind::kLogCosh, LossKind::kKlDivergence,
        LossKind::kBinaryCrossEntropy, LossKind::kBinaryCrossEntropyWithLogits}) {
    EXPECT_TRUE(is_regression(kind)) << to_text(kind);
    EXPECT_FALSE(takes_class_indices(kind)) << to_text(kind);
  }
  for (const LossKind kind : {LossKind::kNegativeLogLikelihood, LossKind::kCrossEntropy}) {
    EXPECT_FALSE(is_regression(kind)) << to_text(kind);
    EXPECT_TRUE(takes_class_indices(kind)) << to_text(kind);
  }
}

}  // namespace
}  // namespace tensorlint::losses
