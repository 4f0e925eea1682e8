#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/schema/schema.h"

namespace tensorlint {

/// A schema written by hand, for domains that onnx.defs does not cover. All texts have to be literals.
class SchemaBuilder {
 public:
  SchemaBuilder(std::string_view domain, std::string_view name, int since_version = 1);
  /// Type variable, or a fixed type under its own name ("tensor(int64)"). Before the parameters that use it.
  SchemaBuilder& type(std::string_view variable, TypeSet allowed);
  SchemaBuilder& type(std::string_view variable, DTypeSet tensors);
  SchemaBuilder& input(std::string_view name, std::string_view variable, FormalOption option = FormalOption::kSingle);
  SchemaBuilder& output(std::string_view name, std::string_view variable, FormalOption option = FormalOption::kSingle);
  SchemaBuilder& attribute(std::string_view name, AttributeKind kind);  ///< optional, no default
  SchemaBuilder& attribute(std::string_view name, AttributeKind kind, std::string_view default_value);
  SchemaBuilder& required_attribute(std::string_view name, AttributeKind kind);
  SchemaBuilder& mixed_types();  ///< the last input or output, variadic, takes operands of different types
  SchemaBuilder& open();         ///< see OpSchema::open

 private:
  friend struct HandwrittenTable;
  std::uint16_t variable_index(std::string_view variable) const;
  OpSchema schema_;
  std::vector<FormalParameter> inputs_, outputs_;
  std::vector<FormalAttribute> attributes_;
  std::vector<TypeConstraint> types_;
};

/// At namespace scope: `const RegisterSchemas kOurs{domain, complete, make};`. `make` runs when such a domain is first
/// asked for. `complete`: an operator of the domain without schema is an error, not a custom operator that we do not
/// know.
struct RegisterSchemas {
  using Make = std::vector<SchemaBuilder> (*)();
  RegisterSchemas(std::string_view domain, bool complete, Make make);
};

/// Schemas written by hand for that domain and name, oldest first; empty when there are none.
std::span<const OpSchema> handwritten_versions(std::string_view domain, std::string_view name);

/// The newest version in a domain whose handwritten schemas are complete, else 0.
int newest_handwritten_opset(std::string_view domain);

}  // namespace tensorlint
