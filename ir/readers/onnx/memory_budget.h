#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/graph/model.h"

namespace tensorlint::onnx {

// What an entry costs: its size, tripled where it stands in an array that doubles when it grows.
inline constexpr std::uint64_t kNodeCost = 3 * sizeof(Node);
inline constexpr std::uint64_t kOperandCost = 3 * (sizeof(ValueId) + sizeof(NameId));
inline constexpr std::uint64_t kValueCost = 3 * sizeof(Value) + 3 * sizeof(ValueId) + 64;  // 64: its slot in the index
inline constexpr std::uint64_t kNameCost = 3 * sizeof(std::string_view) + 32;
inline constexpr std::uint64_t kAttributeCost = 2 * sizeof(Attribute);
inline constexpr std::size_t kFewAttributes = 64;  // of one node; more are listed and searched for doubles
inline constexpr std::uint64_t kListedAttributeCost = 3 * sizeof(Attribute) + 2 * sizeof(std::string_view);
inline constexpr std::uint64_t kTensorCost = sizeof(Tensor) + 16;
inline constexpr std::uint64_t kCostOfPieces = 4;  // of a byte of elements that a file has in pieces
inline constexpr std::uint64_t kGraphCost = 3 * sizeof(Graph) + 128;
inline constexpr std::uint64_t kDeclarationCost = 3 * 24;
inline constexpr std::uint64_t kDimCost = 2 * sizeof(DimDecl);
/// Of a node, while it is placed: each message in them, and what is wrong with it.
inline constexpr std::uint64_t kDeviceConfigurationCost = 3 * sizeof(ShardingSpec);
inline constexpr std::uint64_t kStringCost = 2 * sizeof(std::string_view);

/// Takes account of the memory that a model takes and of the bytes of the file that pay for it; weights pay nothing.
class MemoryBudget {
 public:
  void charge(std::uint64_t memory) { charged_ += memory; }
  void pay(std::uint64_t bytes) { paid_ += bytes; }
  /// Bytes that were paid for with what is around them, and are weights or pay later.
  void take_back(std::uint64_t bytes) { paid_ -= bytes; }
  std::uint64_t paid() const { return paid_; }

  /// `more`: what is not charged here.
  bool is_exceeded(std::uint64_t more) const { return charged_ + more > allowed(); }
  /// What is left for that.
  std::uint64_t left() const { return allowed() - std::min(allowed(), charged_); }

 private:
  std::uint64_t allowed() const { return kFreeBytes + kBytesPerByte * paid_; }

  // Memory that a model may take: kFreeBytes + kBytesPerByte for each byte that is not weights. The smallest honest
  // node (16 bytes: an operator of three letters, two operands and a result of one letter) costs 35 bytes a byte while
  // its arrays grow.
  static constexpr std::uint64_t kFreeBytes = std::uint64_t{16} << 20;
  static constexpr std::uint64_t kBytesPerByte = 36;

  std::uint64_t charged_ = 0, paid_ = 0;
};

}  // namespace tensorlint::onnx
