#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tensorlint::runtime {

/// Walks the indices of a box in row-major order, with the offset of each in `Count` tensors of any strides.
template <std::size_t Count = 1>
class Offsets {
 public:
  explicit Offsets(std::span<const std::int64_t> extents) : extents_(extents.begin(), extents.end()) {
    index_.assign(extents_.size(), 0);
    for (const std::int64_t extent : extents_) is_empty_ |= extent == 0;
  }
  /// Strides in tensor `which`, one an axis of the box; none: its offset stays 0.
  Offsets& strides(std::size_t which, std::span<const std::int64_t> strides) {
    strides_[which].assign(strides.begin(), strides.end());
    return *this;
  }

  bool is_empty() const { return is_empty_; }
  std::int64_t operator[](std::size_t which) const { return offsets_[which]; }
  const std::vector<std::int64_t>& index() const { return index_; }

  /// False after the last index; then at the first again.
  bool next() {
    for (std::size_t axis = extents_.size(); axis-- > 0;) {
      const bool stays = ++index_[axis] < extents_[axis];
      for (std::size_t which = 0; which < Count; ++which)
        if (!strides_[which].empty())
          offsets_[which] += stays ? strides_[which][axis] : -strides_[which][axis] * (extents_[axis] - 1);
      if (stays) return true;
      index_[axis] = 0;
    }
    return false;
  }

 private:
  std::vector<std::int64_t> extents_, index_;
  std::array<std::vector<std::int64_t>, Count> strides_;
  std::array<std::int64_t, Count> offsets_{};
  bool is_empty_ = false;
};

}  // namespace tensorlint::runtime
