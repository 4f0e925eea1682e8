#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>

#include "ir/protobuf/onnx_fields.h"

namespace tensorlint::onnx {

/// Bytes that are no well-formed message. Thrown inside the reader only; read_onnx_* turn it into an Error.
struct WireFault {
  std::string message;
  std::uint64_t offset = 0;  ///< of the field at fault, from the start of the file
};

using WireType = protozero::pbf_wire_type;

/// Walks the fields of one protobuf message in place. Unlike protozero's own pbf_reader it knows its offset in the
/// file, refuses what that one truncates (tags above 32 bits, lengths above 2 GiB) and skips groups without recursion.
/// Every method throws WireFault on malformed bytes; `field names` in arguments are for that message only.
class Cursor {
 public:
  /// `file_start`: where offset 0 of the file is in memory.
  Cursor(std::string_view message, const char* file_start)
      : at_(message.data()), end_(message.data() + message.size()), file_start_(file_start) {}

  Cursor inside(std::string_view message) const { return Cursor(message, file_start_); }

  /// Steps to the next field; false at the end. The field must then be taken by one of view/integer/... or skip().
  bool next() {
    if (at_ == end_) return false;
    field_start_ = at_;
    std::uint64_t tag = static_cast<std::uint8_t>(*at_);
    if (tag < 0x80) [[likely]] {
      ++at_;
    } else {
      tag = long_varint(kMaxHeaderBytes);
      if (tag > std::numeric_limits<std::uint32_t>::max()) fail("field number above 2^29 - 1");
    }
    field_ = static_cast<std::uint32_t>(tag >> 3);
    type_ = static_cast<WireType>(tag & 7);
    if (field_ == 0) [[unlikely]]
      fail("field number 0");
    return true;
  }

  std::uint32_t field() const { return field_; }
  WireType type() const { return type_; }
  /// Start of the field, its tag included.
  const char* field_start() const { return field_start_; }
  const char* position() const { return at_; }
  /// Of the field, its tag and all of it that was read.
  std::uint64_t field_bytes() const { return static_cast<std::uint64_t>(at_ - field_start_); }
  /// What is left of the message.
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }
  std::uint64_t offset_of(const char* place) const { return static_cast<std::uint64_t>(place - file_start_); }

  /// Payload of a length-delimited field.
  std::string_view view(std::string_view name) {
    expect(WireType::length_delimited, name);
    return length_delimited();
  }
  std::uint64_t unsigned_integer(std::string_view name) {
    expect(WireType::varint, name);
    return varint();
  }
  std::int64_t integer(std::string_view name) { return static_cast<std::int64_t>(unsigned_integer(name)); }
  /// int32 and enum fields keep the low 32 bits, as protobuf does.
  std::int32_t integer32(std::string_view name) { return static_cast<std::int32_t>(unsigned_integer(name)); }
  float number(std::string_view name) {
    expect(WireType::fixed32, name);
    float value;
    std::memcpy(&value, fixed(sizeof value).data(), sizeof value);
    return value;
  }
  /// The bytes of a fixed field or of a varint, as they stand.
  std::string_view scalar_bytes() {
    switch (type_) {
      case WireType::fixed32:
        return fixed(4);
      case WireType::fixed64:
        return fixed(8);
      default: {
        const char* const start = at_;
        varint();
        return {start, static_cast<std::size_t>(at_ - start)};
      }
    }
  }

  /// Passes over the field, whatever it is.
  void skip() {
    switch (type_) {
      case WireType::length_delimited:
        length_delimited();
        return;
      case WireType::varint:
        varint();
        return;
      case WireType::fixed32:
        fixed(4);
        return;
      case WireType::fixed64:
        fixed(8);
        return;
      default:
        skip_group();
        return;
    }
  }

  void expect(WireType wanted, std::string_view name) const {
    if (type_ != wanted) [[unlikely]]
      fail(fmt::format("field `{}` has wire type {} instead of {}", name, static_cast<unsigned>(type_),
                       static_cast<unsigned>(wanted)));
  }

  [[noreturn]] void fail(std::string message) const { throw WireFault{std::move(message), offset_of(field_start_)}; }

  // A cursor over packed data: no tags in it.
  bool at_end() const { return at_ == end_; }
  std::int64_t packed_integer() {
    field_start_ = at_;
    return static_cast<std::int64_t>(varint());
  }
  float packed_number() {
    field_start_ = at_;
    float value;
    std::memcpy(&value, fixed(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::uint64_t varint(std::ptrdiff_t most_bytes = protozero::max_varint_length) {
    if (at_ != end_ && static_cast<std::int8_t>(*at_) >= 0) [[likely]]
      return static_cast<std::uint8_t>(*at_++);
    return long_varint(most_bytes);
  }
  /// Zero bytes may follow a number's own; protobuf refuses what is longer than this.
  std::uint64_t long_varint(std::ptrdiff_t most_bytes) {
    const char* const start = at_;
    try {
      const std::uint64_t number = protozero::decode_varint(&at_, end_);
      if (at_ - start > most_bytes) fail(fmt::format("varint of more than {} bytes", most_bytes));
      return number;
    } catch (const protozero::varint_too_long_exception&) {
      fail("varint of more than 10 bytes");
    } catch (const protozero::end_of_buffer_exception&) {
      fail("truncated: a varint runs past the end of its message");
    }
  }

  std::string_view length_delimited() {
    const std::uint64_t length = varint(kMaxHeaderBytes);
    if (length > static_cast<std::uint64_t>(end_ - at_)) [[unlikely]]
      fail(fmt::format("truncated: field {} claims {} bytes, {} are left in its message", field_, length, end_ - at_));
    if (length > std::numeric_limits<std::int32_t>::max()) [[unlikely]]
      fail("a field of more than 2 GiB");
    const std::string_view payload(at_, static_cast<std::size_t>(length));
    at_ += length;
    return payload;
  }

  std::string_view fixed(std::size_t size) {
    if (static_cast<std::size_t>(end_ - at_) < size) [[unlikely]]
      fail(fmt::format("truncated: field {} runs past the end of its message", field_));
    const std::string_view bytes(at_, size);
    at_ += size;
    return bytes;
  }

  /// Old-style groups nest by tags; no ONNX field is one, an unknown field may be. Depth needs a bound since each
  /// open group's number is kept to match its end.
  void skip_group() {
    constexpr std::size_t kMaxDepth = 64;
    std::uint32_t open[kMaxDepth];
    std::size_t depth = 0;
    for (;;) {
      switch (static_cast<unsigned>(type_)) {
        case 3:
          if (depth == kMaxDepth) fail("groups nested deeper than 64");
          open[depth++] = field_;
          break;
        case 4:
          if (depth == 0 || open[depth - 1] != field_) fail("end of a group that was not begun");
          if (--depth == 0) return;
          break;
        case 6:
        case 7:
          fail(fmt::format("unknown wire type {}", static_cast<unsigned>(type_)));
        default:
          skip();
          break;
      }
      if (!next()) fail("truncated: a group has no end");
    }
  }

  static constexpr std::ptrdiff_t kMaxHeaderBytes = 5;  // of a tag or length: 32 bits

  const char* at_;
  const char* end_;
  const char* file_start_;
  const char* field_start_ = nullptr;
  std::uint32_t field_ = 0;
  WireType type_ = WireType::unknown;
};

/// Takes a repeated integer field as it comes: one, or packed.
inline void append_integers(Cursor& fields, std::string_view name, std::vector<std::int64_t>& out) {
  if (fields.type() != WireType::length_delimited) {
    out.push_back(fields.integer(name));
    return;
  }
  for (Cursor packed = fields.inside(fields.view(name)); !packed.at_end();) out.push_back(packed.packed_integer());
}

}  // namespace tensorlint::onnx
