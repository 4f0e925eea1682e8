#include "base/text.h"

#include <gtest/gtest.h>

namespace tensorlint {
namespace {

TEST(Text, IsTrimmedAtItsEnds) {
  EXPECT_EQ(trimmed(" \t a b\r\n\v\f"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \r\n"), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed("\u00a0a"), "\u00a0a");
}

TEST(Text, NounsFollowTheirNumbers) {
  EXPECT_EQ(counted(0U, "file"), "0 files");
  EXPECT_EQ(counted(1U, "file"), "1 file");
  EXPECT_EQ(counted(2.0, "file"), "2 files");
  EXPECT_EQ(counted(1.0, "file"), "1 file");
  EXPECT_EQ(counted(1, "copy", "copies"), "1 copy");
  EXPECT_EQ(counted(3, "copy", "copies"), "3 copies");
  EXPECT_EQ(plural(1), "");
  EXPECT_EQ(plural(0), "s");
}

}  // namespace
}  // namespace tensorlint
