#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "analyzer/findings/finding.h"
#include "analyzer/findings/fingerprint.h"
#include "analyzer/findings/source_files.h"
#include "analyzer/findings/source_location.h"
#include "base/escape.h"

namespace tensorlint {
namespace {

namespace fs = std::filesystem;

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
    EXPECT_EQ(escape_for_display(raw), escaped);
    EXPECT_EQ(escape_for_display(escape_for_display(raw)), escaped);
  }
}

TEST(Escape, ShortensInTheMiddleBetweenCharacters) {
  const std::string long_name(1000, 'a');
  const std::string shown = escape_for_display(long_name + "_end");
  EXPECT_LE(shown.size(), kShownLength);
  EXPECT_TRUE(shown.ends_with("_end"));
  EXPECT_NE(shown.find("…"), std::string::npos);
  std::string wide;
  for (int i = 0; i < 300; ++i) wide += "\xe6\x97\xa5";
  EXPECT_EQ(escape_for_display(escape_for_display(wide)), escape_for_display(wide));
  EXPECT_EQ(escape_for_display(wide).find("\\x"), std::string::npos);
  EXPECT_LE(escape_for_display(std::string(10'000'000, '\x01')).size(), kShownLength);
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
  const std::vector<findings::StackFrame> frames = findings::parse_stack_trace(kTrace);
  ASSERT_EQ(frames.size(), 4U);
  const findings::StackFrame* own = findings::users_frame(frames);
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->file, "models/head.py");
  EXPECT_EQ(own->line, 7U);
  EXPECT_EQ(own->source, "return self.linear(x)");
}

TEST(LocationResolver, TakesAnyFrameWhereNoneIsTheUsersOwn) {
  const std::vector<findings::StackFrame> frames =
      findings::parse_stack_trace("File \"torch/nn/modules/linear.py\", line 134, in forward");
  ASSERT_NE(findings::users_frame(frames), nullptr);
  EXPECT_EQ(findings::users_frame(frames)->line, 134U);
  EXPECT_EQ(findings::users_frame(frames)->source, "");
}

TEST(LocationResolver, TakesNothingFromWhatIsNoTrace) {
  for (const std::string_view text :
       {"", "\n\n", "File", "File \"", "File \"x.py\", line", "File \"x.py\", line -3, in f",
        "File \"x.py\", line 99999999999, in f", "File \"\", line 3, in f", "^^^^"})
    EXPECT_EQ(findings::users_frame(findings::parse_stack_trace(text)), nullptr) << text;
  std::string endless;
  for (int i = 0; i < 100'000; ++i) endless += "File \"x.py\", line 1, in f\n";
  EXPECT_LE(findings::parse_stack_trace(endless).size(), 256U);
}

class SourceFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "sources.XXXXXX";
    folder_ = ::mkdtemp(name.data());
    write("project/models/m.onnx", "x");
    write("project/models/beside.py", "one\ntwo\r\n\nfour");
    write("project/sub/train.py", "def train():\n");
    write("elsewhere/secret.py", "password = 1\n");
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string line(const std::string& file, std::uint32_t number, const std::string& root = {}) const {
    Meter meter;
    return std::string(findings::SourceFiles(at("project/models/m.onnx"), root, meter).program_line(file, number));
  }
  fs::path folder_;
};

TEST_F(SourceFilesTest, GiveLinesWithoutTheirEnds) {
  EXPECT_EQ(line("beside.py", 1), "one");
  EXPECT_EQ(line("beside.py", 2), "two");
  EXPECT_EQ(line("beside.py", 3), "");
  EXPECT_EQ(line("beside.py", 4), "four");
  for (const std::uint32_t none : {0U, 5U, 64U, 65U, 4'000'000'000U}) EXPECT_EQ(line("beside.py", none), "");
  std::string text;
  for (int i = 1; i <= 1000; ++i) text += std::to_string(i) + "\n";
  write("project/models/long.py", text);
  for (const std::uint32_t number : {1U, 63U, 64U, 65U, 128U, 129U, 999U, 1000U})
    EXPECT_EQ(line("long.py", number), std::to_string(number));
  EXPECT_EQ(line("long.py", 1001), "");
}

TEST_F(SourceFilesTest, AreReadBelowTheModelTheWorkingFolderAndTheRootOnly) {
  EXPECT_EQ(line(at("project/models/beside.py"), 1), "one");
  EXPECT_EQ(line(at("elsewhere/secret.py"), 1), "");
  EXPECT_EQ(line(at("project/models/../../elsewhere/secret.py"), 1), "");
  EXPECT_EQ(line("../../elsewhere/secret.py", 1), "");
  EXPECT_EQ(line("../sub/train.py", 1), "");
  EXPECT_EQ(line("tests/readme_test.py", 1).substr(0, 3), "\"\"\"");  // tests run in the repository's root
  fs::create_symlink("../../elsewhere/secret.py", folder_ / "project/models/innocent.py");
  fs::create_symlink("../../elsewhere", folder_ / "project/models/folder");
  EXPECT_EQ(line("innocent.py", 1), "");
  EXPECT_EQ(line("folder/secret.py", 1), "");
  write("project/models/notes.txt", "no program");
  EXPECT_EQ(line("notes.txt", 1), "");
  EXPECT_EQ(line(std::string("beside.py\0.py", 13), 1), "");
  fs::create_directory(folder_ / "project/models/package.py");
  ASSERT_EQ(::mkfifo(at("project/models/fifo.py").c_str(), 0600), 0);
  EXPECT_EQ(line("package.py", 1), "");
  EXPECT_EQ(line("fifo.py", 1), "");

  EXPECT_EQ(line(at("project/sub/train.py"), 1), "");
  EXPECT_EQ(line(at("project/sub/train.py"), 1, at("project")), "def train():");
  EXPECT_EQ(line("/home/ci/checkout/sub/train.py", 1, at("project")), "def train():");
  EXPECT_EQ(line("/home/ci/checkout/sub/train.py", 1, at("project") + "/"), "def train():");
  EXPECT_EQ(line("/home/ci/checkout/sub/train.py", 1), "");
  EXPECT_EQ(line("/home/../../elsewhere/secret.py", 1, at("project")), "");
  EXPECT_EQ(line("beside.py", 1, at("elsewhere")), "one");
  EXPECT_EQ(line("beside.py", 1, "no such folder"), "one");
}

TEST_F(SourceFilesTest, AreReadOnceAndNotWithoutLimit) {
  write("project/models/large.py", std::string(std::size_t{3} << 20, 'a'));
  Meter meter;
  findings::SourceFiles files(at("project/models/m.onnx"), {}, meter);
  const std::string_view first = files.program_line("large.py", 1);
  EXPECT_EQ(first.size(), 8192U) << "of a longer line";
  std::string name = "large.py";
  for (int i = 0; i < 100; ++i) {
    name = "./" + name;
    EXPECT_EQ(files.program_line(name, 1).data(), first.data());
  }
  fs::create_hard_link(folder_ / "project/models/large.py", folder_ / "project/models/same.py");
  EXPECT_EQ(files.program_line("same.py", 1).data(), first.data());
  std::size_t read = 1;
  for (int i = 0; i < 10; ++i) {
    const std::string other = "copy" + std::to_string(i) + ".py";
    fs::copy_file(folder_ / "project/models/large.py", folder_ / "project/models" / other);
    read += files.program_line(other, 1).empty() ? 0 : 1;
  }
  EXPECT_EQ(read, 5U);  // 16 MiB
  write("project/models/huge.py", std::string((std::size_t{4} << 20) + 1, 'a'));
  EXPECT_EQ(line("huge.py", 1), "");
}

TEST_F(SourceFilesTest, AreLookedUpSoOftenInOneRun) {
  Meter meter;
  const auto line_of_beside = [&] {
    return std::string(findings::SourceFiles(at("project/models/m.onnx"), {}, meter).program_line("beside.py", 1));
  };
  EXPECT_EQ(line_of_beside(), "one");
  for (std::uint32_t i = 0; i < Meter::kMaxLookups; ++i) meter.may_look_up();
  EXPECT_EQ(line_of_beside(), "");
  EXPECT_EQ(line("beside.py", 1), "one") << "another run";
}

TEST_F(SourceFilesTest, OfLongNamesAreNotLookedFor) {
  std::string name;
  for (int i = 0; i < 255; ++i) name += "./";
  EXPECT_EQ(line(name + "beside.py", 1), "one");
  EXPECT_EQ(line("./" + name + "beside.py", 1), "");
  EXPECT_EQ(line(std::string(4090, '/') + "beside.py", 1), "");
}

TEST(Fingerprint, DoesNotDependOnWhereTheLineWasRead) {
  findings::Finding finding;
  finding.place = {.file = "train.py", .line = 3, .column = 0, .source = "    y = f(x)"};
  const std::string indented = findings::fingerprint(finding);
  finding.place.source = "y = f(x)";
  EXPECT_EQ(findings::fingerprint(finding), indented);
  finding.place.source = "y = g(x)";
  EXPECT_NE(findings::fingerprint(finding), indented);
}

TEST(Findings, AreSortedByFileNodeAndCodeAndSaidOnce) {
  const auto finding = [](std::string path, std::uint64_t order, std::string_view code, std::string message) {
    findings::Finding made;
    made.path = std::move(path);
    made.order = order;
    made.code = code;
    made.message = std::move(message);
    return made;
  };
  std::vector<findings::Finding> findings{finding("b", 0, "TL-D101", "x"), finding("a", 2, "TL-D101", "x"),
                                          finding("a", 1, "TL-S201", "x"), finding("a", 1, "TL-D101", "y"),
                                          finding("a", 1, "TL-D101", "x"), finding("a", 1, "TL-D101", "y")};
  findings::sort_and_deduplicate(findings);
  std::string order;
  for (const findings::Finding& made : findings)
    order += made.path + std::to_string(made.order) + std::string(made.code) + made.message + " ";
  EXPECT_EQ(order, "a1TL-D101x a1TL-D101y a1TL-S201x a2TL-D101x b0TL-D101x ");
}

TEST(Findings, AreSortedInPlaceAndStay) {
  // All orders of six, two of which are equal.
  std::vector<std::uint64_t> keys{0, 1, 2, 2, 3, 4};
  do {
    std::vector<findings::Finding> sorted(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      sorted[i].order = keys[i];
      sorted[i].message = std::to_string(i);
    }
    std::vector<findings::Finding> expected = sorted;
    const auto less = [](const findings::Finding& a, const findings::Finding& b) { return a.order < b.order; };
    std::ranges::stable_sort(expected, less);
    findings::sort_in_place(sorted, less);
    for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(sorted[i].message, expected[i].message) << i;
  } while (std::ranges::next_permutation(keys).found);
}

}  // namespace
}  // namespace tensorlint
