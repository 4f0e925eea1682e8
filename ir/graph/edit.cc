#include "ir/graph/edit.h"

#include <fmt/format.h>

#include <cstdint>

namespace tensorlint {

std::string unused_name(const Model& model, std::string_view base) {
  // Each of many names that are asked for may be taken with each of many numbers.
  constexpr std::int64_t kFirstNumbers = 64;
  std::string name(base);
  for (std::int64_t number = 2; model.names.find(name) != 0; number += number < kFirstNumbers ? 1 : number)
    name = fmt::format("{}_{}", base, number);
  return name;
}

}  // namespace tensorlint
