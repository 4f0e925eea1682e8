// The lines that kernels_bench writes: what table.py finds them by must be exact.

#include "kernels/bench/line.h"

#include <gtest/gtest.h>

namespace tensorlint::kernels {
namespace {

TEST(BenchLine, WritesByteCountsInFull) {
  EXPECT_EQ(Line("reductions").add("bytes", 1073741824.0).done(), R"({"part": "reductions", "bytes": 1073741824})");
  EXPECT_EQ(Line("x").add("bytes", 67108864.0).add("memory", 85899345920.0).done(),
            R"({"part": "x", "bytes": 67108864, "memory": 85899345920})");
}

TEST(BenchLine, WritesOtherNumbersTo9DigitsAndNoNonNumbers) {
  EXPECT_EQ(Line("x").add("ms", 0.123456789012).add("share", NAN).add("name", "a").add("e", 1e300).done(),
            R"({"part": "x", "ms": 0.123456789, "share": null, "name": "a", "e": 1e+300})");
}

}  // namespace
}  // namespace tensorlint::kernels
