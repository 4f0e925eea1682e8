#include "ir/writers/text/code.h"

#include <fmt/format.h>

#include <vector>

#include "ir/text/lexer.h"
#include "ir/text/words.h"

namespace tensorlint::text {

std::string code_of(const NewAttribute& attribute) {
  const std::string name = plain_word(attribute.name);
  switch (attribute.kind) {
    case AttributeKind::kFloat:
      return fmt::format("{} = {}", name, float_word(attribute.f));
    case AttributeKind::kString:
      return fmt::format("{} = {}", name, quoted(attribute.s));
    case AttributeKind::kInts:
      return fmt::format("{}: ints = [{}]", name, fmt::join(attribute.ints, ", "));
    default:
      return fmt::format("{} = {}", name, attribute.i);
  }
}

std::string names_code(std::span<const std::string> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += ", ";
    if (!names[i].empty()) list += value_word(names[i]);
  }
  // A last name that is absent needs a comma behind it.
  if (!names.empty() && names.back().empty()) list += ",";
  return list;
}

std::string code_of(const NewNode& node) {
  std::string line;
  if (!node.name.empty()) line += fmt::format("[{}] ", value_word(node.name));
  line += names_code(node.results) + " = ";
  if (!node.domain.empty()) line += domain_word(node.domain) + ".";
  line += plain_word(node.op);
  if (!node.attributes.empty()) {
    std::vector<std::string> attributes;
    for (const NewAttribute& attribute : node.attributes) attributes.push_back(code_of(attribute));
    line += fmt::format(" <{}>", fmt::join(attributes, ", "));
  }
  return fmt::format("{} ({})", line, names_code(node.operands));
}

std::string code_of(const AddInitializer& tensor) {
  const std::string type = tensor.dims.empty() ? "int64" : fmt::format("int64[{}]", fmt::join(tensor.dims, ", "));
  return fmt::format("{} {} = {{{}}}", type, value_word(tensor.name), fmt::join(tensor.elements, ", "));
}

}  // namespace tensorlint::text
