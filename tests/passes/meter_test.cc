// A model that needs more work than its size allows: what is known stays true, and nothing else is claimed.
#include <memory>

#include "tests/passes/solved.h"

namespace tensorlint::dataflow {
namespace {

/// Options with a meter that has room for so many steps.
AnalysisOptions with_steps(std::uint64_t steps) {
  AnalysisOptions options;
  options.meter = std::make_shared<Meter>(std::uint64_t{1});
  const std::uint64_t usable = options.meter->steps_allowed() - options.meter->steps_allowed() / 4;
  options.meter->charge(usable - steps);
  return options;
}

TEST(MeteredAnalysis, LeavesAnOrdinaryModelAlone) {
  const Solved solved(with_header("g (float[N, 4] x) => (y) { y = Relu(x) }"));
  EXPECT_FALSE(solved.analysis().ran_out());
  EXPECT_LT(solved.analysis().facts().meter().steps(), 10'000);
  EXPECT_FALSE(solved.analysis().facts().meter().is_partial());
}

TEST(MeteredAnalysis, KnowsNothingWhereNoWorkIsLeft) {
  const Solved solved(with_header("g (float[N, 4] x) => (y) { y = Relu(x) z = Add(x, y) }"), with_steps(0));
  EXPECT_TRUE(solved.analysis().ran_out());
  EXPECT_EQ(solved.fact("x"), "float32[N, 4]");
  EXPECT_EQ(solved.fact("y"), "unknown");
  EXPECT_EQ(solved.analysis().gap(NodeId{0}), Gap::kBudget);
  EXPECT_EQ(solved.analysis().reason(NodeId{0}), "the model needs more inferences than the budget allows");
}

/// Wherever the work ends, what is known is what is known with all of it, or top; and nothing fails that would not.
TEST(MeteredAnalysis, ClaimsNothingThatIsNotProven) {
  const std::string models[] = {
      with_header("g (float[K, M] x, float[K, P] y) => (z) { a = Shape(x) b = Shape(y) c = Add(a, b) d = Mul(c, c) "
                  "t = Transpose <perm = [1, 0]> (x) u = Concat <axis = 0> (t, y) z = MatMul(u, u) w = Add(x, t) q = "
                  "Add(u, t) }"),
      with_header("g (float[N] x, bool c, int64 n) => (z) { z = Loop(n, c, x) <body = b (int64 i, bool d, v) => (e, w) "
                  "{ e = Identity(d) w = Concat <axis = 0> (v, v) }> s = Shape(z) r = Mul(s, s) q = Add(x, z) }"),
      with_header("g (float[N, 2] x, bool c) => (z) { y = If(c) <then_branch = t () => (a) { a = Transpose <perm = [1, "
                  "0]> (x) }, else_branch = f () => (b) { b = Relu(x) }> z = MatMul(y, y) }"),
  };
  for (const std::string& text : models) {
    const Solved whole(text);
    const std::uint64_t all = whole.analysis().facts().meter().steps();
    const std::vector<std::string> failures = whole.failures();
    for (std::uint64_t steps = 0; steps < all + 64; steps += 16) {
      const Solved part(text, with_steps(steps));
      for (const std::string& failure : part.failures())
        EXPECT_NE(std::ranges::find(failures, failure), failures.end()) << failure << " with " << steps << " steps";
      for (const std::string_view name : {"z", "d", "w", "q", "r"}) {
        const std::string fact = part.fact(name);
        if (fact == "unknown" || fact == "no such value") continue;
        // Extents that are no longer computed become unknown one by one.
        const std::string known = whole.fact(name);
        EXPECT_EQ(fact.substr(0, fact.find('[')), known.substr(0, known.find('[')));
        if (fact.find('?') == std::string::npos) {
          EXPECT_EQ(fact, known) << name << " with " << steps << " steps";
        }
      }
    }
  }
}

TEST(MeteredAnalysis, ForgetsTheBodiesOfALoopThatItDoesNotFollow) {
  const std::string text = with_header(
      "g (float[N] x, bool c, int64 n) => (z) { z = Loop(n, c, x) <body = b (int64 i, bool d, v) => (e, w) "
      "{ e = Identity(d) w = Concat <axis = 0> (v, v) }> }");
  const Solved part(text, with_steps(8));
  EXPECT_EQ(part.fact("z"), "unknown");
  EXPECT_EQ(part.fact("w"), "unknown");
  EXPECT_EQ(part.fact("v"), "unknown");
}

TEST(Allowances, AreSmallOnceOneWasExpensive) {
  Model model;
  model.input_bytes = 100;
  const std::uint64_t all = Meter(100).steps_allowed();
  Allowances allowances(model);
  const std::shared_ptr<Meter> first = allowances.next();
  EXPECT_EQ(first->steps_allowed(), all);
  first->charge(all / 4);
  const std::shared_ptr<Meter> second = allowances.next();
  EXPECT_EQ(second->steps_allowed(), all);
  second->charge(all / 3);
  EXPECT_EQ(allowances.next()->steps_allowed(), all / 16);
  EXPECT_EQ(allowances.next()->steps_allowed(), all / 16);
  EXPECT_EQ(Allowances(model, true).next()->steps_allowed(), all / 16);
}

}  // namespace
}  // namespace tensorlint::dataflow
