#include <gtest/gtest.h>

#include "analyzer/findings/escape.h"
#include "analyzer/findings/finding.h"
#include "analyzer/findings/source_location.h"

namespace tensorlint {
namespace {

TEST(Escape, MakesWhatCannotBeSeenVisible) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"plain name_0/x", "plain name_0/x"},
      {"tab\there\nline\r", "tab\\there\\nline\\r"},
      {"\x1b[2J\x07\x7f", "\\u001b[2J\\u0007\\u007f"},
      {"caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x99\x82", "caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x99\x82"},
      {"\xc2\x9b"
       "31m",
       "\\u009b31m"},  // C1 control sequence introducer
      {"a\xe2\x80\xae"
       "b\xe2\x81\xa6"
       "c",
       "a\\u202eb\\u2066c"},                                           // direction marks
      {"\xff\xc0\xaf\xed\xa0\x80", "\\xff\\xc0\\xaf\\xed\\xa0\\x80"},  // no UTF-8: stray, overlong, surrogate
      {"cut \xe2\x82", "cut \\xe2\\x82"},
      {std::string_view("nul\0x", 5), "nul\\u0000x"},
      {"\xf3\xa0\x81\x81", "\\U000e0041"},  // tag characters
      {"", ""},
  };
  for (const auto& [raw, escaped] : cases) {
    EXPECT_EQ(escape_for_people(raw), escaped);
    EXPECT_EQ(escape_for_people(escape_for_people(raw)), escaped);
  }
}

TEST(Escape, ShortensInTheMiddleBetweenCharacters) {
  const std::string long_name(1000, 'a');
  const std::string shown = escape_for_people(long_name + "_end");
  EXPECT_LE(shown.size(), kShownLength);
  EXPECT_TRUE(shown.ends_with("_end"));
  EXPECT_NE(shown.find("…"), std::string::npos);
  std::string wide;
  for (int i = 0; i < 300; ++i) wide += "\xe6\x97\xa5";
  EXPECT_EQ(escape_for_people(escape_for_people(wide)), escape_for_people(wide));
  EXPECT_EQ(escape_for_people(wide).find("\\x"), std::string::npos);
  EXPECT_LE(escape_for_people(std::string(10'000'000, '\x01')).size(), kShownLength);
}

TEST(LocationResolver, TakesTheInnermostFrameOfTheUsersOwnCode) {
  constexpr std::string_view kTrace =
      "  File \"torch/_dynamo/functional_export.py\", line 232, in forward\n"
      "    res = self._export_root(*args, **kwargs)\n"
      "          ^^^^^^^^^^^^^^^^^^\n"
      "  File \"train.py\", line 41, in forward\n"
      "    logits = self.head(x)\n"
      "  File \"models/head.py\", line 7, in forward\n"
      "    return self.linear(x)\n"
      "  File \"/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py\", line 134, in forward\n"
      "    return F.linear(input, self.weight, self.bias)\n";
  const std::vector<StackFrame> frames = parse_stack_trace(kTrace);
  ASSERT_EQ(frames.size(), 4U);
  const StackFrame* own = users_frame(frames);
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->file, "models/head.py");
  EXPECT_EQ(own->line, 7U);
  EXPECT_EQ(own->source, "return self.linear(x)");
}

TEST(LocationResolver, TakesAnyFrameWhereNoneIsTheUsersOwn) {
  const std::vector<StackFrame> frames = parse_stack_trace("File \"torch/nn/modules/linear.py\", line 134, in forward");
  ASSERT_NE(users_frame(frames), nullptr);
  EXPECT_EQ(users_frame(frames)->line, 134U);
  EXPECT_EQ(users_frame(frames)->source, "");
}

TEST(LocationResolver, TakesNothingFromWhatIsNoTrace) {
  for (const std::string_view text :
       {"", "\n\n", "File", "File \"", "File \"x.py\", line", "File \"x.py\", line -3, in f",
        "File \"x.py\", line 99999999999, in f", "File \"\", line 3, in f", "^^^^"})
    EXPECT_EQ(users_frame(parse_stack_trace(text)), nullptr) << text;
  std::string endless;
  for (int i = 0; i < 100'000; ++i) endless += "File \"x.py\", line 1, in f\n";
  EXPECT_LE(parse_stack_trace(endless).size(), 256U);
}

TEST(Findings, AreSortedByFileNodeAndCodeAndSaidOnce) {
  const auto finding = [](std::string path, std::uint64_t order, std::string_view code, std::string message) {
    Finding made;
    made.path = std::move(path);
    made.order = order;
    made.code = code;
    made.message = std::move(message);
    return made;
  };
  std::vector<Finding> findings{finding("b", 0, "TL-D101", "x"), finding("a", 2, "TL-D101", "x"),
                                finding("a", 1, "TL-S201", "x"), finding("a", 1, "TL-D101", "y"),
                                finding("a", 1, "TL-D101", "x"), finding("a", 1, "TL-D101", "y")};
  sort_and_deduplicate(findings);
  std::string order;
  for (const Finding& made : findings)
    order += made.path + std::to_string(made.order) + std::string(made.code) + made.message + " ";
  EXPECT_EQ(order, "a1TL-D101x a1TL-D101y a1TL-S201x a2TL-D101x b0TL-D101x ");
}

}  // namespace
}  // namespace tensorlint
