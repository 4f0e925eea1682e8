#include "ir/graph/edit.h"

#include <fmt/format.h>

namespace tensorlint {

std::string unused_name(const Model& model, std::string_view base) {
  std::string name(base);
  for (int number = 2; model.names.find(name) != 0; ++number) name = fmt::format("{}_{}", base, number);
  return name;
}

}  // namespace tensorlint
