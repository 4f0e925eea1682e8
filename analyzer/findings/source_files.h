#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/meter.h"

namespace tensorlint::findings {

/// Lines of the files that findings point to: the model's own, when it is text, and Python programs that its stack
/// traces name. A trace may name any file of the machine, and what is read ends up in reports. So programs are read
/// only below the model's folder, the working folder and the source root that the user gave, links followed first.
class SourceFiles {
 public:
  /// `source_root`: empty for none; programs of other machines are looked for below it by the end of their path.
  /// `meter`: of the input; what is looked up is counted there.
  SourceFiles(const std::string& model_path, const std::string& source_root, Meter& meter);
  SourceFiles(const SourceFiles&) = delete;
  SourceFiles& operator=(const SourceFiles&) = delete;

  /// Without its line end; empty where there is no such line or it may not be read. Lines are numbered from 1.
  std::string_view program_line(std::string_view file, std::uint32_t line);
  std::string_view model_line(std::uint32_t line);

 private:
  /// One file; a line is found from the beginning of its block. All but the last line of a block are short.
  struct File {
    void find_blocks();
    std::string_view line(std::uint32_t number) const;
    struct Block {
      std::uint32_t begin, first_line;  ///< lines are counted from 0 here
    };
    std::shared_ptr<const void> owner;
    std::string_view text;
    std::vector<Block> blocks;
  };
  std::filesystem::path find(std::string_view file);
  using Components = std::span<const std::filesystem::path>;
  std::filesystem::path below_a_root(const std::filesystem::path& folder, Components path);
  std::filesystem::path resolved(const std::filesystem::path& folder, Components path);
  const File* read(const std::filesystem::path& path);

  Meter& meter_;
  std::filesystem::path model_;
  std::filesystem::path source_root_, working_folder_, model_folder_;  ///< real ones; empty where there is none
  std::vector<std::filesystem::path> roots_;
  std::map<std::string, const File*, std::less<>> by_name_;  ///< null: not to be had
  std::map<std::pair<std::uint64_t, std::uint64_t>, File>
      files_;  ///< by device and inode: one file may have many names
  std::size_t bytes_ = 0;
};

}  // namespace tensorlint::findings
