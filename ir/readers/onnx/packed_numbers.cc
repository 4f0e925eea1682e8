#include "ir/readers/onnx/packed_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "ir/constants/weight_parts.h"

namespace tensorlint::onnx {
namespace {

constexpr std::size_t kLongestVarint = 10;

/// All bytes of a varint but the last one have the high bit.
bool goes_on(char byte) { return static_cast<signed char>(byte) < 0; }

/// Of a run of ten such bytes one stands at a multiple of ten.
bool has_longer_varint(std::string_view packed, const FileBytes* mapping) {
  WeightParts parts(packed, mapping);
  for (std::size_t at = 0; at < packed.size(); at += kLongestVarint) {
    parts.read_until(packed.data() + at);
    if (!goes_on(packed[at])) continue;
    std::size_t begin = at, end = at + 1;
    while (begin > 0 && at - begin < kLongestVarint && goes_on(packed[begin - 1])) --begin;
    while (end < packed.size() && end - begin < kLongestVarint && goes_on(packed[end])) ++end;
    if (end - begin == kLongestVarint) return true;
  }
  return false;
}

}  // namespace

void check_packed(const Cursor& fields, wire::Packing packing, std::string_view packed, const FileBytes* mapping) {
  const std::size_t width = packing == wire::Packing::kFixed32 ? 4 : packing == wire::Packing::kFixed64 ? 8 : 0;
  const bool is_cut = width != 0 ? packed.size() % width != 0 : !packed.empty() && goes_on(packed.back());
  if (is_cut) fields.fail(fmt::format("truncated: the last number packed into field {} is cut", fields.field()));
  if (width == 0 && has_longer_varint(packed, mapping))
    fields.fail(fmt::format("a varint of more than {} bytes is packed into field {}", kLongestVarint, fields.field()));
}

}  // namespace tensorlint::onnx
