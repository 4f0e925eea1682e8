#include "ir/graph/new_nodes.h"

#include <utility>

namespace tensorlint {

NewNode new_cast(std::string name, std::string from, std::string result, DType to) {
  return {"",
          "Cast",
          std::move(name),
          {std::move(from)},
          {std::move(result)},
          {{.name = "to", .kind = AttributeKind::kInt, .i = static_cast<std::int64_t>(to)}}};
}

NewNode new_constant(std::string name, std::string result, NewAttribute value) {
  return {"", "Constant", std::move(name), {}, {std::move(result)}, {std::move(value)}};
}

NewNode new_transpose(std::string name, std::string from, std::string result, std::vector<std::int64_t> order) {
  return {"",
          "Transpose",
          std::move(name),
          {std::move(from)},
          {std::move(result)},
          {{.name = "perm", .kind = AttributeKind::kInts, .ints = std::move(order)}}};
}

NewNode new_squeeze(std::string name, std::string from, std::string result, std::vector<std::int64_t> axes) {
  return {"",
          "Squeeze",
          std::move(name),
          {std::move(from)},
          {std::move(result)},
          {{.name = "axes", .kind = AttributeKind::kInts, .ints = std::move(axes)}}};
}

NewNode new_squeeze(std::string name, std::string from, std::string result, std::string axes) {
  return {"", "Squeeze", std::move(name), {std::move(from), std::move(axes)}, {std::move(result)}, {}};
}

NewNode new_transfer(std::string name, std::string from, std::string result, std::string device) {
  return {"tensorlint",        "Transfer",
          std::move(name),     {std::move(from)},
          {std::move(result)}, {{.name = "device", .kind = AttributeKind::kString, .s = std::move(device)}}};
}

}  // namespace tensorlint
