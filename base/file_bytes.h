#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/result.h"

namespace tensorlint {

/// The bytes of a file that other programs may be writing: read into memory up to 1 MiB, mapped when larger.
///
/// A file cut short under a mapping raises SIGBUS at the first touch of a lost page. While a mapping lives, a handler
/// puts a page of zeros there and marks the mapping, so that reading goes on and check_unchanged() tells: no jump over
/// destructors, and any later reader of a view (a rule that looks at a tensor) is safe too. Faults elsewhere go to the
/// handler that was there before.
class FileBytes {
 public:
  static constexpr std::uint64_t kReadLimit = std::uint64_t{1} << 20;

  /// Errors: not there, not permitted, not a regular file (a FIFO or device is never waited for), empty, changed while
  /// being read. `read_limit`: size in bytes up to which the file is read rather than mapped.
  static Result<std::shared_ptr<const FileBytes>> open(const std::string& path, std::uint64_t read_limit = kReadLimit);

  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes();

  std::string_view bytes() const { return {data_, size_}; }
  /// Forgets which pages of a mapping lie in memory, for a part that is mostly weights: systems map whole blocks of
  /// their cache around a touched byte. The bytes stay readable. What is no part of the file stays as it is. From the
  /// first release on the mapping is read by pages of the smallest size.
  void release(std::string_view part) const;
  /// From now on a page of a mapping that is not in memory is read alone, whatever the system would read around it.
  void read_page_by_page() const;
  /// Has the system begin to read a part of a mapping; does not wait. What is in memory costs little.
  void will_need(std::string_view part) const;
  /// Size and modification time are still those of the time when it was opened, and no page of a mapping was lost.
  std::optional<Error> check_unchanged() const;
  /// Many small mappings may live at once, and descriptors are few. check_unchanged() then tells lost pages alone.
  void close_descriptor() const { descriptor_ = Descriptor(); }

 private:
  FileBytes() = default;

  std::string path_;
  mutable Descriptor descriptor_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
  struct ::timespec modified_{};
  std::unique_ptr<char, void (*)(void*)> memory_{nullptr, nullptr};
  struct Guard;
  Guard* guard_ = nullptr;  ///< set: data_ is a mapping
  mutable std::atomic<bool> has_small_pages_ = false;
};

/// Reads a mapping ahead of a walk over its fields: where fields are dense in windows that double, as the system's own
/// reading ahead does, and not at all where the walk leaps over weights. The system cannot tell these apart, reads
/// around each touched page (up to megabytes) and so reads the weights; reading single pages only is slow where fields
/// are dense. Leaps repeat, since a model's blocks have weights of the same sizes: the pages on which the next ones
/// would land are asked for while this one's is read, more of them the longer the leaps go on as before.
class ReadAhead {
 public:
  /// A mapping that is read page by page; null: bytes in memory.
  explicit ReadAhead(const FileBytes* mapping);

  /// The walk goes on at `place`, which may be the end of the file.
  void at(const char* place) {
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(place) - start_;
    if (offset - begin_ >= size_) [[unlikely]]
      go_on(offset);
  }

 private:
  void go_on(std::size_t offset);
  void leap_to(std::size_t offset);

  const FileBytes* mapping_;
  std::uintptr_t start_ = 0;                ///< of the mapping; the others are offsets
  std::size_t begin_ = 0, size_ = 0;        ///< where nothing is to be done
  std::size_t asked_end_ = 0, window_ = 0;  ///< what was asked for last

  std::array<std::size_t, 64> leaps_{};            ///< bytes from landing to landing; of leap i at i % 64
  std::size_t leap_count_ = 0, landing_ = 0;       ///< landing_: offset of the last one
  std::size_t period_ = 0;                         ///< leaps are as those so many leaps before; 0: none is known
  std::size_t expected_ = 0, expected_asked_ = 0;  ///< how many landings to ask for ahead, how many were
};

}  // namespace tensorlint
