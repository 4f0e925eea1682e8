#include "runtime/values/host_tensor.h"

#include <cassert>
#include <new>

#include <fmt/format.h>

namespace tensorlint::runtime {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line, and the widest vectors

/// Elements that the account knows about.
class Block {
 public:
  Block(std::size_t bytes, Memory& memory) : bytes_(bytes), memory_(memory) {
    memory_.take(bytes_);
    elements_ = static_cast<std::byte*>(::operator new(bytes_, kAlignment, std::nothrow));
    if (elements_ == nullptr) {
      memory_.give_back(bytes_);
      throw RunFault{fmt::format("the system has no {} bytes of memory left", bytes_)};
    }
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    ::operator delete(elements_, kAlignment);
    memory_.give_back(bytes_);
  }
  const std::byte* elements() const { return elements_; }

 private:
  std::size_t bytes_;
  Memory& memory_;
  std::byte* elements_ = nullptr;
};

}  // namespace

std::size_t element_count(std::span<const std::int64_t> extents) {
  std::size_t count = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0) throw RunFault{fmt::format("the extent {} is negative", extent)};
    if (extent == 0) return 0;
  }
  for (const std::int64_t extent : extents)
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(extent), &count))
      throw RunFault{"a tensor would have more than 2^64 elements"};
  return count;
}

std::size_t element_bytes(DType dtype) {
  const int bits = bit_width(dtype);
  return static_cast<std::size_t>((bits + 7) / 8);
}

HostTensor::HostTensor(DType dtype, Extents extents, Memory& memory)
    : dtype_(dtype), writable_(true), extents_(std::move(extents)), size_(element_count(extents_)) {
  if (dtype_ == DType::kString) {
    // What the strings themselves take is bounded by the operators that make them.
    auto account = std::make_shared<Block>(size_ * sizeof(std::string), memory);
    strings_ = std::make_shared<std::vector<std::string>>(size_);
    owner_ = std::move(account);
    return;
  }
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(size_, element_bytes(dtype_), &bytes))
    throw RunFault{"a tensor would take more than 2^64 bytes"};
  auto block = std::make_shared<Block>(bytes, memory);
  elements_ = block->elements();
  owner_ = std::move(block);
}

HostTensor::HostTensor(DType dtype, Extents extents, const std::byte* elements, std::shared_ptr<const void> owner)
    : dtype_(dtype),
      extents_(std::move(extents)),
      size_(element_count(extents_)),
      elements_(elements),
      owner_(std::move(owner)) {}

HostTensor HostTensor::reshaped(Extents extents) const {
  assert(element_count(extents) == size_);
  HostTensor view = *this;
  view.extents_ = std::move(extents);
  return view;
}

}  // namespace tensorlint::runtime
