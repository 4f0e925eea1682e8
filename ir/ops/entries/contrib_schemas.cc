// Registers the schemas of onnxruntime's contrib operators. Not complete: releases differ, and so do builds.
#include "ir/schema/contrib_schemas.h"

#include <cassert>

#include "ir/schema/schema_builder.h"

namespace tensorlint::ops {
namespace {

/// Calls visit(word) for each word of a list.
template <typename Visit>
void for_words(std::string_view list, char separator, Visit visit) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(separator), list.size());
    if (end > 0) visit(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

AttributeKind kind_of(char letter) {
  switch (letter) {
    case 'f':
      return AttributeKind::kFloat;
    case 'i':
      return AttributeKind::kInt;
    case 's':
      return AttributeKind::kString;
    case 't':
      return AttributeKind::kTensor;
    case 'F':
      return AttributeKind::kFloats;
    case 'I':
      return AttributeKind::kInts;
    case 'S':
      return AttributeKind::kStrings;
    default:
      assert(false && "no such kind");
      return AttributeKind::kUndefined;
  }
}

/// "name:T?" as name, type variable, option and whether types may be mixed.
struct Parameter {
  std::string_view name, variable;
  FormalOption option = FormalOption::kSingle;
  bool mixed = false;
};

Parameter parameter(std::string_view word) {
  Parameter result;
  const std::size_t colon = word.find(':');
  result.name = word.substr(0, colon);
  result.variable = word.substr(colon + 1);
  if (result.variable.ends_with("**")) {
    result.mixed = true;
    result.variable.remove_suffix(1);
  }
  if (result.variable.ends_with('*')) result.option = FormalOption::kVariadic;
  if (result.variable.ends_with('?')) result.option = FormalOption::kOptional;
  if (result.option != FormalOption::kSingle) result.variable.remove_suffix(1);
  return result;
}

SchemaBuilder built(const ContribSchema& contrib) {
  SchemaBuilder schema(contrib.domain, contrib.name, contrib.since_version);
  schema.open();
  for_words(contrib.types, ' ', [&](std::string_view word) {
    const std::size_t equals = word.find('=');
    DTypeSet allowed;
    for_words(word.substr(equals + 1), ',', [&](std::string_view name) {
      const auto dtype = dtype_named(name);
      assert(dtype.has_value());
      if (dtype) allowed = allowed | *dtype;
    });
    schema.type(word.substr(0, equals), allowed);
  });
  for_words(contrib.inputs, ' ', [&](std::string_view word) {
    const Parameter formal = parameter(word);
    schema.input(formal.name, formal.variable, formal.option);
    if (formal.mixed) schema.mixed_types();
  });
  for_words(contrib.outputs, ' ', [&](std::string_view word) {
    const Parameter formal = parameter(word);
    schema.output(formal.name, formal.variable, formal.option);
    if (formal.mixed) schema.mixed_types();
  });
  for_words(contrib.attributes, ' ', [&](std::string_view word) {
    const std::size_t colon = word.find(':');
    const AttributeKind kind = kind_of(word[colon + 1]);
    if (word.ends_with('!')) {
      schema.required_attribute(word.substr(0, colon), kind);
    } else {
      schema.attribute(word.substr(0, colon), kind);
    }
  });
  return schema;
}

template <bool kMicrosoft>
std::vector<SchemaBuilder> schemas() {
  std::vector<SchemaBuilder> all;
  for (const ContribSchema& contrib : contrib_schemas())
    if (contrib.domain.empty() != kMicrosoft) all.push_back(built(contrib));
  return all;
}

const RegisterSchemas kMicrosoft{"com.microsoft", /*complete=*/false, schemas<true>};
const RegisterSchemas kAiOnnx{"", /*complete=*/false, schemas<false>};

}  // namespace
}  // namespace tensorlint::ops
