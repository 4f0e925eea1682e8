#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_bytes.h"
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

  /// Without its line end, and the first 8 KiB of it; empty where there is no such line or it may not be read. Lines
  /// are numbered from 1.
  std::string_view program_line(std::string_view file, std::uint32_t line);
  std::string_view model_line(std::uint32_t line);

 private:
  /// One file; a line is found from the beginning of its block of bytes.
  struct File {
    std::string_view line(std::uint32_t number) const;
    std::shared_ptr<const FileBytes> owner;
    std::string_view text;
    std::vector<std::uint32_t> ends_before;  ///< each block: of lines
  };
  void find_roots();
  std::string find(std::string_view file);
  using Components = std::span<const std::string_view>;
  std::string below_a_root(const std::string& folder, Components path);
  std::string resolved(const std::string& folder, Components path);
  const File* read(const std::string& path);

  Meter& meter_;
  std::string model_, given_root_;
  bool knows_roots_ = false;
  std::string source_root_, working_folder_, model_folder_;  ///< real ones; empty where there is none
  std::vector<std::string> roots_;
  std::map<std::string, const File*, std::less<>> by_name_;  ///< null: not to be had
  std::map<std::pair<std::uint64_t, std::uint64_t>, File>
      files_;                         ///< by device and inode: one file may have many names
  std::size_t bytes_ = 0, held_ = 0;  ///< of programs that were read; those of them that stay in memory
};

}  // namespace tensorlint::findings
