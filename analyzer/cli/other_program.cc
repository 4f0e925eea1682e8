#include "analyzer/cli/other_program.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tensorlint::cli {

void Arguments::add(std::string_view name, const std::string& value) {
  if (!value.empty()) words_.push_back(fmt::format("--{}={}", name, value));
}

void Arguments::add_each(std::string_view name, const std::vector<std::string>& values) {
  for (const std::string& value : values) words_.push_back(fmt::format("--{}={}", name, value));
}

void Arguments::add_flag(std::string_view name, bool is_given) {
  if (is_given) words_.push_back(fmt::format("--{}=", name));
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

Descriptor memory_file(std::string_view text, Inherited inherited) {
  Descriptor file(::memfd_create("tensorlint", inherited == Inherited::kYes ? 0 : MFD_CLOEXEC));
  while (file.ok() && !text.empty()) {
    const ::ssize_t written = ::write(file.number(), text.data(), text.size());
    if (written <= 0) return Descriptor();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (file.ok() && ::lseek(file.number(), 0, SEEK_SET) != 0) return Descriptor();
  return file;
}

}  // namespace tensorlint::cli
