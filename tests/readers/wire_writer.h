#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tensorlint::wire {

/// Writes protobuf messages byte by byte, malformed ones too. `Message().varint(1, 8).bytes(7, graph)`.
class Message {
 public:
  Message& varint(std::uint64_t field, std::uint64_t value) { return tag(field, 0).number(value); }
  Message& bytes(std::uint64_t field, std::string_view payload) {
    return tag(field, 2).number(payload.size()).raw(payload);
  }
  Message& bytes(std::uint64_t field, const Message& payload) { return bytes(field, std::string_view(payload.text_)); }
  Message& fixed32(std::uint64_t field, float value) {
    tag(field, 5);
    return raw({reinterpret_cast<const char*>(&value), sizeof value});
  }
  Message& fixed64(std::uint64_t field, double value) {
    tag(field, 1);
    return raw({reinterpret_cast<const char*>(&value), sizeof value});
  }
  Message& tag(std::uint64_t field, unsigned type) { return number(field << 3 | type); }
  Message& number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
    return *this;
  }
  Message& raw(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }
  const std::string& text() const { return text_; }
  operator std::string_view() const { return text_; }  // NOLINT: a message is its bytes

 private:
  std::string text_;
};

inline Message opset(std::string_view domain, std::uint64_t version) {
  return Message().bytes(1, domain).varint(2, version);
}

/// A model of IR version 8 and opset 18 around a GraphProto.
inline Message model(const Message& graph) { return Message().varint(1, 8).bytes(7, graph).bytes(8, opset("", 18)); }

/// A NodeProto; attributes are appended by the caller.
inline Message node(std::string_view op, std::initializer_list<std::string_view> operands,
                    std::initializer_list<std::string_view> results) {
  Message message;
  for (const std::string_view name : operands) message.bytes(1, name);
  for (const std::string_view name : results) message.bytes(2, name);
  return message.bytes(4, op);
}

inline Message int_attribute(std::string_view name, std::int64_t value) {
  return Message().bytes(1, name).varint(3, static_cast<std::uint64_t>(value)).varint(20, 2);
}

/// A ValueInfoProto of a tensor type.
inline Message tensor_info(std::string_view name, std::uint64_t dtype, std::initializer_list<std::int64_t> dims) {
  Message shape;
  for (const std::int64_t dim : dims) shape.bytes(1, Message().varint(1, static_cast<std::uint64_t>(dim)));
  return Message().bytes(1, name).bytes(2, Message().bytes(1, Message().varint(1, dtype).bytes(2, shape)));
}

/// A TensorProto with raw_data.
inline Message raw_tensor(std::string_view name, std::uint64_t dtype, std::initializer_list<std::int64_t> dims,
                          std::string_view data) {
  Message message;
  for (const std::int64_t dim : dims) message.varint(1, static_cast<std::uint64_t>(dim));
  return message.varint(2, dtype).bytes(8, name).bytes(9, data);
}

}  // namespace tensorlint::wire
