#include "base/output.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace tensorlint {
namespace {

namespace fs = std::filesystem;

class OutputTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/output_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  fs::path folder_;
};

TEST_F(OutputTest, LeavesTheFileAlone) {
  const std::string path = folder_ / "file";
  ASSERT_FALSE(write_file(path, "text"));
  remove_unfinished_file();
  EXPECT_EQ(fs::file_size(path), 4U);
  EXPECT_EQ(entries(), 1);
}

TEST_F(OutputTest, RemovesWhatIsNotFinished) {
  const std::string path = folder_ / "file";
  const ::pid_t child = ::fork();
  if (child == 0) {
    const std::string_view part = "text";
    (void)write_file(path, std::span(&part, 1), [](std::string_view) {
      remove_unfinished_file();  // as a handler of signals does
      ::_exit(0);
    });
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(entries(), 0);
}

}  // namespace
}  // namespace tensorlint
