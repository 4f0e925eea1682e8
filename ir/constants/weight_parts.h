#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "base/file_bytes.h"

namespace tensorlint {

/// Numbers of at least so many bytes in one piece are weights. Systems map about as much of a file around each byte
/// that is read.
inline constexpr std::size_t kWeights = std::size_t{64} << 10;

/// Lets go of what has been read of weights, or passed between them, part by part: they may be larger than memory.
/// `mapping`: of the file; null where it was read as a whole.
class WeightParts {
 public:
  WeightParts(std::string_view weights, const FileBytes* mapping)
      : begin_(weights.data()),
        end_(weights.data() + weights.size()),
        mapping_(is_inside(weights, mapping) ? mapping : nullptr) {}

  WeightParts(const WeightParts&) = delete;
  WeightParts& operator=(const WeightParts&) = delete;
  /// All of them have been read.
  ~WeightParts() {
    if (mapping_ != nullptr && end_ - begin_ >= static_cast<std::ptrdiff_t>(kWeights))
      mapping_->release({begin_, static_cast<std::size_t>(end_ - begin_)});
  }

  /// All before `place` has been read. A place elsewhere says nothing.
  void read_until(const char* place) {
    constexpr std::ptrdiff_t kPart = std::ptrdiff_t{2} << 20;
    if (mapping_ == nullptr || std::less<>()(place, begin_) || std::less<>()(end_, place) || place - begin_ < kPart)
      return;
    mapping_->release({begin_, static_cast<std::size_t>(place - begin_)});
    begin_ = place;
  }

 private:
  /// What a file has in pieces is put together elsewhere.
  static bool is_inside(std::string_view weights, const FileBytes* mapping) {
    if (mapping == nullptr || weights.empty()) return false;
    const std::string_view file = mapping->bytes();
    return weights.data() >= file.data() && weights.data() + weights.size() <= file.data() + file.size();
  }

  const char* begin_;
  const char* end_;
  const FileBytes* mapping_;
};

}  // namespace tensorlint
