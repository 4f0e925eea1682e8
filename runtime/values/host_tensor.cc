#include "runtime/values/host_tensor.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace tensorlint::runtime {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 56;

/// What a tensor takes beside its elements, about: so that millions of small ones are seen too.
constexpr std::uint64_t kTensorBytes = 256;

/// Elements that the account knows about.
class Block {
 public:
  Block(std::size_t bytes, Memory& memory) : bytes_(bytes), memory_(memory) {
    memory_.take(bytes_ + kTensorBytes);
    try {
      block_ = memory_.take_block(bytes_);
    } catch (...) {
      memory_.give_back(bytes_ + kTensorBytes);
      throw;
    }
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    memory_.give_back(bytes_ + kTensorBytes);
    memory_.give_back_block(block_);
  }
  const std::byte* elements() const { return block_.elements; }

 private:
  std::size_t bytes_;
  Memory& memory_;
  BlockStore::Block block_;
};

/// The same beside the count of its owners: one allocation where a tensor is small.
template <std::size_t kBytes>
class SmallBlock {
 public:
  SmallBlock(std::size_t bytes, Memory& memory) : bytes_(bytes), memory_(memory) {
    memory_.take(bytes_ + kTensorBytes);
  }
  SmallBlock(const SmallBlock&) = delete;
  SmallBlock& operator=(const SmallBlock&) = delete;
  ~SmallBlock() { memory_.give_back(bytes_ + kTensorBytes); }
  const std::byte* elements() const { return elements_; }

 private:
  std::size_t bytes_;
  Memory& memory_;
  alignas(std::max_align_t) std::byte elements_[kBytes];
};

/// Strings; what they and their list hold, the account takes as they grow.
class StringBlock {
 public:
  StringBlock(std::size_t count, Memory& memory) : memory_(memory), strings_(count, memory.resource()) {
    memory_.take(kTensorBytes);
  }
  StringBlock(const StringBlock&) = delete;
  StringBlock& operator=(const StringBlock&) = delete;
  ~StringBlock() { memory_.give_back(kTensorBytes); }
  Strings* strings() { return &strings_; }

 private:
  Memory& memory_;
  Strings strings_;
};

}  // namespace

const Extents Shape::kNoAxes;

Shape::Shape(Extents extents) {
  if (extents.size() > kMaxAxes)
    throw RunFault{fmt::format("a tensor would have {} axes; up to {} are computed", extents.size(), kMaxAxes)};
  size_ = element_count(extents);
  if (!extents.empty()) extents_ = std::make_shared<const Extents>(std::move(extents));
}

std::size_t element_count(std::span<const std::int64_t> extents) {
  // Axes without elements count as one element: strides and parts of shapes are products too, and have to fit int64.
  std::int64_t product = 1;
  bool is_empty = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0) throw RunFault{fmt::format("the extent {} is negative", extent)};
    if (extent == 0) is_empty = true;
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(extent, 1), &product) || product > kMostElements)
      throw RunFault{"a tensor would have more than 2^56 elements"};
  }
  return is_empty ? 0 : static_cast<std::size_t>(product);
}

std::size_t element_bytes(DType dtype) {
  const int bits = bit_width(dtype);
  return static_cast<std::size_t>((bits + 7) / 8);
}

HostTensor::HostTensor(Shape shape, DType dtype, Memory& memory)
    : dtype_(dtype), writable_(true), shape_(std::move(shape)) {
  if (dtype_ == DType::kString) {
    auto block = std::make_shared<StringBlock>(shape_.size(), memory);
    strings_ = block->strings();
    owner_ = std::move(block);
    return;
  }
  const std::size_t bytes = shape_.size() * element_bytes(dtype_);
  const auto own = [&](auto block) {
    elements_ = block->elements();
    owner_ = std::move(block);
  };
  if (!kIsSanitized && bytes <= 64) {
    own(std::make_shared<SmallBlock<64>>(bytes, memory));
  } else if (!kIsSanitized && bytes <= 512) {
    own(std::make_shared<SmallBlock<512>>(bytes, memory));
  } else {
    own(std::make_shared<Block>(bytes, memory));
  }
}

HostTensor::HostTensor(DType dtype, Extents extents, const std::byte* elements, std::shared_ptr<const void> owner)
    : dtype_(dtype), shape_(std::move(extents)), elements_(elements), owner_(std::move(owner)) {}

HostTensor HostTensor::reshaped_to(Shape shape) const {
  assert(shape.size() == size());
  HostTensor view = *this;
  view.shape_ = std::move(shape);
  return view;
}

}  // namespace tensorlint::runtime
