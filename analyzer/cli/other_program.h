#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"

namespace tensorlint::cli {

/// Words for a program that is started, the program's name among them or not.
class Arguments {
 public:
  explicit Arguments(std::vector<std::string> words) : words_(std::move(words)) {}

  /// `--NAME=VALUE`; nothing for an empty value, which stands for an option that is not given.
  void add(std::string_view name, const std::string& value);
  void add_each(std::string_view name, const std::vector<std::string>& values);
  /// `--NAME=` where it is given.
  void add_flag(std::string_view name, bool is_given);
  std::vector<std::string> take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

/// As exec takes them, null at the end. `words` outlive it.
std::vector<char*> pointers_to(std::vector<std::string>& words);

enum class Inherited : bool { kNo, kYes };
/// A file in memory that is read from its beginning, also by a program that is started where it is inherited; not ok
/// where there cannot be one.
Descriptor memory_file(std::string_view text, Inherited inherited);

}  // namespace tensorlint::cli
