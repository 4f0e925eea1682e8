#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tensorlint {

/// Element types of ONNX tensors. Values are those of onnx.TensorProto.DataType (IR version 14).
enum class DType : std::uint8_t {
  kUndefined = 0,
  kFloat32 = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kFloat64 = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
  kFloat6E2M3 = 27,
  kFloat6E3M2 = 28,
};

inline constexpr int kDTypeCount = 29;

/// numpy's name (float32, bool, ...), else ONNX's in lower case (bfloat16, float8e4m3fn, ...).
std::string_view to_text(DType dtype);

/// The dtype of that name; also accepts torch's and ONNX's spellings (float, double, half, long, FLOAT, ...).
std::optional<DType> dtype_named(std::string_view name);

/// Bits of one element; 0 for strings and kUndefined.
int bit_width(DType dtype);

/// True for a code that ONNX defines.
constexpr bool is_known_dtype(std::int64_t code) { return code > 0 && code < kDTypeCount; }

/// Bytes that `count` elements take in raw_data (sub-byte types are packed); nullopt on overflow or for strings.
std::optional<std::uint64_t> packed_bytes(DType dtype, std::uint64_t count);

/// A set of dtypes: what a value's element type may be.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(DType dtype) : bits_(1U << static_cast<unsigned>(dtype)) {}  // NOLINT: a dtype is a set of one
  static constexpr DTypeSet from_bits(std::uint32_t bits) {
    DTypeSet set;
    set.bits_ = bits;
    return set;
  }
  static constexpr DTypeSet all() { return from_bits((1U << kDTypeCount) - 2U); }
  static constexpr DTypeSet none() { return {}; }
  static DTypeSet floats();    ///< every floating type, those of 4, 6 and 8 bits included
  static DTypeSet integers();  ///< signed and unsigned; bool is not an integer
  static DTypeSet signed_integers();
  static DTypeSet unsigned_integers();

  constexpr std::uint32_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int size() const { return std::popcount(bits_); }
  constexpr bool contains(DType dtype) const { return ((bits_ >> static_cast<unsigned>(dtype)) & 1U) != 0; }
  constexpr bool is_subset_of(DTypeSet other) const { return (bits_ & ~other.bits_) == 0; }
  constexpr bool intersects(DTypeSet other) const { return (bits_ & other.bits_) != 0; }
  /// Not empty and wholly inside `other`: the fact proves the property.
  constexpr bool proves(DTypeSet other) const { return bits_ != 0 && is_subset_of(other); }
  /// The dtype, where exactly one is possible.
  constexpr std::optional<DType> single() const {
    if (size() != 1) return std::nullopt;
    return static_cast<DType>(std::countr_zero(bits_));
  }
  friend constexpr DTypeSet operator|(DTypeSet a, DTypeSet b) { return from_bits(a.bits_ | b.bits_); }
  friend constexpr DTypeSet operator&(DTypeSet a, DTypeSet b) { return from_bits(a.bits_ & b.bits_); }
  friend constexpr bool operator==(DTypeSet a, DTypeSet b) = default;

  /// "float32", "float32 or int64", "any dtype".
  std::string to_text() const;

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace tensorlint
