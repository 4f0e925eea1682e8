#include "ir/ops/attributes.h"

#include <algorithm>
#include <utility>

namespace tensorlint::ops {

std::optional<DType> dtype_attribute(Inference& in, std::string_view name, const Constraint& constraint) {
  const auto code = in.int_attribute(name);
  if (!code) return std::nullopt;
  if (!is_known_dtype(*code)) {
    in.fail(constraint, {}, {"{} of {} is {}, which is not a dtype", AttributeName(name), in.call().name, *code});
    return std::nullopt;
  }
  const auto dtype = static_cast<DType>(*code);
  const TypeSet& allowed = in.call().schema->types[in.call().formal_result(0)->type].allowed;
  if (!(allowed.tensor | allowed.sequence).contains(dtype))
    in.fail(constraint, {},
            {"{} of {} asks for {}, it gives {}", AttributeName(name), in.call().name, dtype,
             allowed.tensor | allowed.sequence});
  return dtype;
}

std::string_view choice_attribute(Inference& in, std::string_view name, std::string_view fallback,
                                  std::initializer_list<std::string_view> choices, const Constraint& constraint,
                                  Message refusing) {
  const std::string_view value = in.string_attribute(name, fallback);
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  Message message("{} of {} is `{}`, it has to be one of {}", AttributeName(name), in.call().name, value,
                  joined(choices, ", "));
  if (refusing.empty()) {
    in.fail(constraint, {}, std::move(message));
  } else {
    in.fails_somewhere(constraint, {}, std::move(message), std::move(refusing));
  }
  return value;
}

}  // namespace tensorlint::ops
