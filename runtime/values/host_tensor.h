#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/types/dtype.h"
#include "runtime/values/memory.h"

namespace tensorlint::runtime {

using Extents = std::vector<std::int64_t>;

/// Elements of a tensor of strings: what they hold is in the account of the tensor's Memory.
using Strings = std::pmr::vector<std::pmr::string>;

/// Elements that `extents` hold. Throws RunFault on a negative extent and on overflow.
std::size_t element_count(std::span<const std::int64_t> extents);

/// Bytes of one element in memory: types below a byte take a byte each, complex numbers two parts; strings 0.
std::size_t element_bytes(DType dtype);

/// Axes of a tensor at most: shapes are inferred up to as many.
inline constexpr std::size_t kMaxAxes = 64;

/// Extents and how many elements they hold. Copies share the extents.
class Shape {
 public:
  /// Of no axes: one element.
  Shape() = default;
  /// Throws RunFault as element_count does, and where there are more than kMaxAxes axes.
  explicit Shape(Extents extents);

  const Extents& extents() const { return extents_ == nullptr ? kNoAxes : *extents_; }
  std::size_t size() const { return size_; }
  friend bool operator==(const Shape& a, const Shape& b) {
    return a.extents_ == b.extents_ || a.extents() == b.extents();
  }

 private:
  static const Extents kNoAxes;
  std::shared_ptr<const Extents> extents_;  // null: no axes
  std::size_t size_ = 1;
};

/// A dense tensor in host memory, row-major, in the value's own dtype. Copies share the elements. Making one of more
/// than kMaxAxes axes throws RunFault.
///
/// In memory: bool is a byte of 0 or 1; integers of 2 and 4 bits are int8 or uint8; floats of 4 and 6 bits are a byte
/// with their bits at the low end; float16 and bfloat16 are their bits in a std::uint16_t.
class HostTensor {
 public:
  HostTensor() = default;
  /// Elements that are not strings are not initialised. Throws RunFault past the memory limit.
  HostTensor(DType dtype, Extents extents, Memory& memory) : HostTensor(Shape(std::move(extents)), dtype, memory) {}
  HostTensor(Shape shape, DType dtype, Memory& memory);
  /// A view of bytes in that layout which `owner` keeps alive; they are never written to.
  HostTensor(DType dtype, Extents extents, const std::byte* elements, std::shared_ptr<const void> owner);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const Extents& extents() const { return shape_.extents(); }
  std::size_t rank() const { return extents().size(); }
  std::int64_t extent(std::size_t axis) const { return extents()[axis]; }
  std::size_t size() const { return is_absent() ? 0 : shape_.size(); }
  std::size_t bytes() const { return size() * element_bytes(dtype_); }
  bool is_absent() const { return dtype_ == DType::kUndefined; }

  const std::byte* raw() const { return elements_; }
  /// Only of a tensor that nobody else holds.
  std::byte* mutable_raw() { return const_cast<std::byte*>(elements_); }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(elements_), size()};
  }
  template <typename T>
  std::span<T> as_mutable() {
    return {reinterpret_cast<T*>(mutable_raw()), size()};
  }
  const Strings& strings() const { return *strings_; }
  Strings& mutable_strings() { return *strings_; }

  /// The same elements in another shape of as many.
  HostTensor reshaped(Extents extents) const { return reshaped_to(Shape(std::move(extents))); }
  HostTensor reshaped_to(Shape shape) const;
  /// Elements that somebody else keeps: they cost no memory here.
  bool is_view() const { return !writable_; }
  /// Nobody else holds the elements, and they may be written to.
  bool is_sole_owner() const { return writable_ && owner_.use_count() == 1; }

 private:
  DType dtype_ = DType::kUndefined;
  bool writable_ = false;
  Shape shape_;
  const std::byte* elements_ = nullptr;
  std::shared_ptr<const void> owner_;
  Strings* strings_ = nullptr;  // of the owner
};

}  // namespace tensorlint::runtime
