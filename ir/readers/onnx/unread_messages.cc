#include "ir/readers/onnx/unread_messages.h"

#include <vector>

namespace tensorlint::onnx {

void pass_over(Cursor fields, wire::MessageType message) {
  // A body takes three levels: its node, the attribute, the graph.
  constexpr std::size_t kMaxDepth = 3 * 64;
  struct Open {
    Cursor fields;
    wire::MessageType message;
  };
  std::vector<Open> open{{fields, message}};
  while (!open.empty()) {
    Open& innermost = open.back();
    if (!innermost.fields.next()) {
      open.pop_back();
      continue;
    }
    const auto inner = wire::message_in(innermost.message, innermost.fields.field());
    // The library takes a field of another wire type as one that it does not know.
    if (!inner || innermost.fields.type() != WireType::length_delimited) {
      innermost.fields.skip();
      continue;
    }
    if (open.size() == kMaxDepth) innermost.fields.fail("messages that are not read nest deeper than 192");
    const Cursor within = innermost.fields.inside(innermost.fields.view("message"));
    open.push_back({within, *inner});
  }
}

}  // namespace tensorlint::onnx
