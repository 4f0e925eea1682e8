#include "ir/readers/onnx/unread_messages.h"

#include <vector>

#include "ir/constants/weight_parts.h"
#include "ir/readers/onnx/packed_numbers.h"

namespace tensorlint::onnx {
namespace {

/// A field of TensorProto. Strings are no weights.
bool holds_numbers(std::uint32_t field) {
  return field == wire::kTensorRawData ||
         (field != wire::kTensorDims && wire::packing_in(wire::MessageType::kTensor, field));
}

}  // namespace

std::size_t pass_over(Cursor fields, wire::MessageType message, const FileBytes* mapping,
                      const std::function<void(std::string_view)>& numbers) {
  // A body takes three levels: its node, the attribute, the graph.
  constexpr std::size_t kMaxDepth = 3 * 64;
  struct Open {
    Cursor fields;
    wire::MessageType message;
  };
  std::vector<Open> open{{fields, message}};
  std::size_t messages = 1;
  WeightParts parts(fields.rest(), mapping);
  while (!open.empty()) {
    Open& innermost = open.back();
    parts.read_until(innermost.fields.position());
    if (!innermost.fields.next()) {
      open.pop_back();
      continue;
    }
    const auto inner = wire::message_in(innermost.message, innermost.fields.field());
    const auto packing = wire::packing_in(innermost.message, innermost.fields.field());
    const bool are_numbers = innermost.message == wire::MessageType::kTensor && holds_numbers(innermost.fields.field());
    // The library takes a field of another wire type as one that it does not know.
    if ((!inner && !packing && !are_numbers) || innermost.fields.type() != WireType::length_delimited) {
      innermost.fields.skip();
      continue;
    }
    const std::string_view content = innermost.fields.view("message");
    if (are_numbers && numbers) numbers(content);
    if (packing) {
      check_packed(innermost.fields, *packing, content, mapping);
      continue;
    }
    if (!inner) continue;
    if (open.size() == kMaxDepth) innermost.fields.fail("messages that are not read nest deeper than 192");
    const Cursor within = innermost.fields.inside(content);
    open.push_back({within, *inner});
    ++messages;
  }
  return messages;
}

}  // namespace tensorlint::onnx
