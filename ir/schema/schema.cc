#include "ir/schema/schema.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "ir/schema/schema_builder.h"

namespace tensorlint {
namespace {

/// All versions of one operator, oldest first.
std::span<const OpSchema> versions(std::string_view domain, std::string_view name) {
  const auto key = [](const OpSchema& schema) { return std::tie(schema.domain, schema.name); };
  domain = normalised_domain(domain);
  const auto found = std::ranges::equal_range(all_schemas(), std::tie(domain, name), std::ranges::less(), key);
  if (found.empty()) return handwritten_versions(domain, name);
  return {found.begin(), found.end()};
}

int index_of(std::span<const FormalParameter> parameters, std::string_view name) {
  const auto found = std::ranges::find(parameters, name, &FormalParameter::name);
  return found == parameters.end() ? -1 : static_cast<int>(found - parameters.begin());
}

}  // namespace

std::string_view normalised_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

std::string_view to_text(AttributeKind kind) {
  static constexpr std::array<std::string_view, 15> kNames = {
      "undefined", "float",   "int",    "string",        "tensor",         "graph",      "floats",     "ints",
      "strings",   "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : kNames[0];
}

const FormalAttribute* OpSchema::attribute(std::string_view attribute_name) const {
  const auto found = std::ranges::find(attributes, attribute_name, &FormalAttribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

int OpSchema::input_index(std::string_view parameter) const { return index_of(inputs, parameter); }

const OpSchema* find_schema(std::string_view domain, std::string_view name, int opset) {
  const auto in_force = [&](std::span<const OpSchema> all) {
    const auto later = std::ranges::upper_bound(all, opset, std::ranges::less(), &OpSchema::since_version);
    return later == all.begin() ? nullptr : &*std::prev(later);
  };
  const OpSchema* found = in_force(versions(domain, name));
  // Runtimes write some operators into opsets of ai.onnx older than ONNX's own version of these.
  return found != nullptr ? found : in_force(handwritten_versions(normalised_domain(domain), name));
}

const OpSchema* find_any_version(std::string_view domain, std::string_view name) {
  const auto all = versions(domain, name);
  return all.empty() ? nullptr : &all.front();
}

int newest_opset(std::string_view domain) {
  const auto found = std::ranges::find(known_domains(), normalised_domain(domain), &DomainOpset::domain);
  return found == known_domains().end() ? newest_handwritten_opset(domain) : found->newest;
}

}  // namespace tensorlint
