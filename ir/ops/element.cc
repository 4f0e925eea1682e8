#include "ir/ops/element.h"

#include <algorithm>

namespace tensorlint::ops {

double ElementCall::attribute(std::string_view name, double fallback) const {
  const auto found = std::ranges::find(attributes, name, &Attribute::name);
  if (found == attributes.end()) return fallback;
  if (found->kind == AttributeKind::kFloat) return static_cast<double>(found->f);
  return found->kind == AttributeKind::kInt ? static_cast<double>(found->i) : fallback;
}

}  // namespace tensorlint::ops
