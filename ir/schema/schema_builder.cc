#include "ir/schema/schema_builder.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace tensorlint {
namespace {

struct Registration {
  std::string_view domain;
  bool complete;
  RegisterSchemas::Make make;
};

std::vector<Registration>& registrations() {
  static std::vector<Registration> all;
  return all;
}

constexpr std::uint16_t kUnbounded = 65535;

}  // namespace

SchemaBuilder::SchemaBuilder(std::string_view domain, std::string_view name, int since_version)
    : schema_{.domain = domain,
              .name = name,
              .since_version = since_version,
              .deprecated = false,
              .min_inputs = 0,
              .max_inputs = 0,
              .min_outputs = 0,
              .max_outputs = 0,
              .inputs = {},
              .outputs = {},
              .attributes = {},
              .types = {},
              .function_body = {},
              .function_opset = 0,
              .index = 0,
              .open = false} {}

std::uint16_t SchemaBuilder::variable_index(std::string_view variable) const {
  const auto found = std::ranges::find(types_, variable, &TypeConstraint::name);
  assert(found != types_.end() && "type() comes before the parameters that use it");
  return static_cast<std::uint16_t>(found - types_.begin());
}

SchemaBuilder& SchemaBuilder::type(std::string_view variable, TypeSet allowed) {
  types_.push_back({variable, allowed});
  return *this;
}

SchemaBuilder& SchemaBuilder::type(std::string_view variable, DTypeSet tensors) {
  TypeSet allowed;
  allowed.tensor = tensors;
  return type(variable, allowed);
}

SchemaBuilder& SchemaBuilder::input(std::string_view name, std::string_view variable, FormalOption option) {
  inputs_.push_back({name, variable_index(variable), option, true});
  if (option == FormalOption::kSingle) schema_.min_inputs = static_cast<std::uint16_t>(inputs_.size());
  schema_.max_inputs = option == FormalOption::kVariadic ? kUnbounded : static_cast<std::uint16_t>(inputs_.size());
  return *this;
}

SchemaBuilder& SchemaBuilder::output(std::string_view name, std::string_view variable, FormalOption option) {
  outputs_.push_back({name, variable_index(variable), option, true});
  if (option == FormalOption::kSingle) schema_.min_outputs = static_cast<std::uint16_t>(outputs_.size());
  schema_.max_outputs = option == FormalOption::kVariadic ? kUnbounded : static_cast<std::uint16_t>(outputs_.size());
  return *this;
}

SchemaBuilder& SchemaBuilder::attribute(std::string_view name, AttributeKind kind) {
  attributes_.push_back({name, kind, false, false, {}});
  return *this;
}

SchemaBuilder& SchemaBuilder::attribute(std::string_view name, AttributeKind kind, std::string_view default_value) {
  attributes_.push_back({name, kind, false, true, default_value});
  return *this;
}

SchemaBuilder& SchemaBuilder::required_attribute(std::string_view name, AttributeKind kind) {
  attributes_.push_back({name, kind, true, false, {}});
  return *this;
}

SchemaBuilder& SchemaBuilder::mixed_types() {
  (outputs_.empty() ? inputs_ : outputs_).back().homogeneous = false;
  return *this;
}

SchemaBuilder& SchemaBuilder::open() {
  schema_.open = true;
  return *this;
}

RegisterSchemas::RegisterSchemas(std::string_view domain, bool complete, Make make) {
  registrations().push_back({domain, complete, make});
}

/// All handwritten schemas, sorted by (domain, name, version), and the builders that own what these point to.
struct HandwrittenTable {
  std::vector<SchemaBuilder> owners;
  std::vector<OpSchema> schemas;

  HandwrittenTable() {
    for (const Registration& registration : registrations())
      for (SchemaBuilder& builder : registration.make()) owners.push_back(std::move(builder));
    const auto key = [](const SchemaBuilder& x) {
      return std::tie(x.schema_.domain, x.schema_.name, x.schema_.since_version);
    };
    std::ranges::sort(owners, std::ranges::less(), key);
    for (SchemaBuilder& owner : owners) {
      owner.schema_.inputs = owner.inputs_;
      owner.schema_.outputs = owner.outputs_;
      owner.schema_.attributes = owner.attributes_;
      owner.schema_.types = owner.types_;
      owner.schema_.index = static_cast<std::uint16_t>(all_schemas().size() + schemas.size());
      schemas.push_back(owner.schema_);
    }
  }

  static const HandwrittenTable& get() {
    static const HandwrittenTable table;  // made when a domain beyond ONNX's is first asked for
    return table;
  }
};

std::span<const OpSchema> handwritten_versions(std::string_view domain, std::string_view name) {
  const auto is_domain = [&](const Registration& registration) { return registration.domain == domain; };
  if (std::ranges::none_of(registrations(), is_domain)) return {};
  const auto key = [](const OpSchema& schema) { return std::tie(schema.domain, schema.name); };
  const auto found =
      std::ranges::equal_range(HandwrittenTable::get().schemas, std::tie(domain, name), std::ranges::less(), key);
  return {found.begin(), found.end()};
}

int newest_handwritten_opset(std::string_view domain) {
  const auto is_complete = [&](const Registration& registration) {
    return registration.domain == domain && registration.complete;
  };
  if (std::ranges::none_of(registrations(), is_complete)) return 0;
  int newest = 0;
  for (const OpSchema& schema : HandwrittenTable::get().schemas)
    if (schema.domain == domain) newest = std::max(newest, schema.since_version);
  return newest;
}

}  // namespace tensorlint
