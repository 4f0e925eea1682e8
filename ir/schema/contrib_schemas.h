#pragma once

#include <span>
#include <string_view>

namespace tensorlint {

/// One operator of onnxruntime's contrib domains. Texts are lists of words:
/// types "T=float,float16", operands and results "name:T", with `?` optional, `*` variadic, `**` variadic of any types,
/// attributes "name:kind", with `!` required; kinds f, i, s, t and F, I, S for lists.
struct ContribSchema {
  std::string_view domain, name;
  int since_version;
  std::string_view types, inputs, outputs, attributes;
};

std::span<const ContribSchema> contrib_schemas();

}  // namespace tensorlint
