#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ir/descriptor.h"
#include "ir/result.h"

namespace tensorlint::onnx {

/// The bytes of a file that other programs may be writing: read into memory up to 64 MiB, mapped when larger.
///
/// A file cut short under a mapping raises SIGBUS at the first touch of a lost page. While a mapping lives, a handler
/// puts a page of zeros there and marks the mapping, so that reading goes on and check_unchanged() tells: no jump over
/// destructors, and any later reader of a view (a rule that looks at a tensor) is safe too. Faults elsewhere go to the
/// handler that was there before.
class FileBytes {
 public:
  static constexpr std::uint64_t kReadLimit = std::uint64_t{64} << 20;

  /// Errors: not there, not permitted, not a regular file (a FIFO or device is never waited for), empty, changed while
  /// being read. `read_limit`: size in bytes up to which the file is read rather than mapped.
  static Result<std::shared_ptr<const FileBytes>> open(const std::string& path, std::uint64_t read_limit = kReadLimit);

  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes();

  std::string_view bytes() const { return {data_, size_}; }
  /// Forgets which pages of a mapping lie in memory, for a part that is mostly weights: systems map whole blocks of
  /// their cache around a touched byte. The bytes stay readable.
  void release(std::string_view part) const;
  /// Size and modification time are still those of the time when it was opened, and no page of a mapping was lost.
  std::optional<Error> check_unchanged() const;

 private:
  FileBytes() = default;

  std::string path_;
  Descriptor descriptor_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
  struct ::timespec modified_{};
  std::unique_ptr<char, void (*)(void*)> memory_{nullptr, nullptr};
  struct Guard;
  Guard* guard_ = nullptr;  ///< set: data_ is a mapping
};

}  // namespace tensorlint::onnx
