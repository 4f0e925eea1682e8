#include "ir/types/dtype.h"

#include <array>
#include <limits>

#include "base/letters.h"

namespace tensorlint {
namespace {

struct DTypeInfo {
  std::string_view name;
  std::uint8_t bits;
};

constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {"undefined", 0},      {"float32", 32},  {"uint8", 8},        {"int8", 8},           {"uint16", 16},
    {"int16", 16},         {"int32", 32},    {"int64", 64},       {"string", 0},         {"bool", 8},
    {"float16", 16},       {"float64", 64},  {"uint32", 32},      {"uint64", 64},        {"complex64", 64},
    {"complex128", 128},   {"bfloat16", 16}, {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
    {"float8e5m2fnuz", 8}, {"uint4", 4},     {"int4", 4},         {"float4e2m1", 4},     {"float8e8m0", 8},
    {"uint2", 2},          {"int2", 2},      {"float6e2m3", 6},   {"float6e3m2", 6},
}};

struct Alias {
  std::string_view name;
  DType dtype;
};

constexpr Alias kAliases[] = {
    {"float", DType::kFloat32}, {"double", DType::kFloat64}, {"half", DType::kFloat16},
    {"long", DType::kInt64},    {"int", DType::kInt32},      {"short", DType::kInt16},
    {"char", DType::kInt8},     {"byte", DType::kUint8},     {"str", DType::kString},
};

constexpr DTypeSet set_of(std::initializer_list<DType> dtypes) {
  DTypeSet set;
  for (const DType dtype : dtypes) set = set | dtype;
  return set;
}

}  // namespace

std::string_view to_text(DType dtype) { return kInfo[static_cast<std::size_t>(dtype)].name; }

std::optional<DType> dtype_named(std::string_view name) {
  const std::string lower = lower_case(name);
  for (std::size_t code = 1; code < kInfo.size(); ++code)
    if (kInfo[code].name == lower) return static_cast<DType>(code);
  for (const Alias& alias : kAliases)
    if (alias.name == lower) return alias.dtype;
  return std::nullopt;
}

int bit_width(DType dtype) { return kInfo[static_cast<std::size_t>(dtype)].bits; }

std::optional<std::uint64_t> packed_bytes(DType dtype, std::uint64_t count) {
  const auto bits = static_cast<std::uint64_t>(bit_width(dtype));
  if (bits == 0 || count > (std::numeric_limits<std::uint64_t>::max() - 7) / bits) return std::nullopt;
  return (count * bits + 7) / 8;
}

DTypeSet DTypeSet::floats() {
  return set_of({DType::kFloat32, DType::kFloat16, DType::kFloat64, DType::kBFloat16, DType::kFloat8E4M3FN,
                 DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ, DType::kFloat4E2M1,
                 DType::kFloat8E8M0, DType::kFloat6E2M3, DType::kFloat6E3M2});
}

DTypeSet DTypeSet::signed_integers() {
  return set_of({DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kInt4, DType::kInt2});
}

DTypeSet DTypeSet::unsigned_integers() {
  return set_of({DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64, DType::kUint4, DType::kUint2});
}

DTypeSet DTypeSet::integers() { return signed_integers() | unsigned_integers(); }

std::string DTypeSet::to_text() const {
  if (*this == all()) return "any dtype";
  std::string text;
  for (int code = 1; code < kDTypeCount; ++code) {
    if (!contains(static_cast<DType>(code))) continue;
    if (!text.empty()) text += " or ";
    text += tensorlint::to_text(static_cast<DType>(code));
  }
  return text.empty() ? "no dtype" : text;
}

}  // namespace tensorlint
