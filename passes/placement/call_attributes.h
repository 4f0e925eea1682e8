#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/meter.h"
#include "ir/graph/model.h"

namespace tensorlint::placement {

/// The attributes that nodes of a function's body refer to (`@name`): those of the call that is being followed. What is
/// looked at is charged.
class CallAttributes {
 public:
  CallAttributes(const Model& model, Meter& meter) : model_(model), meter_(meter) {}

  /// A node's attribute, the caller's where it refers to that; null where there is none.
  const Attribute* find(const Node& node, std::string_view name) const;

  /// Attributes of a call of `function` as its body sees them, defaults included.
  std::vector<Attribute> of_call(const Node& call, const Graph& function) const;

  /// From here on those of this call; returns the ones before, to be entered again behind it.
  std::vector<Attribute> enter(std::vector<Attribute> attributes) {
    return std::exchange(attributes_, std::move(attributes));
  }

 private:
  const Model& model_;
  Meter& meter_;
  std::vector<Attribute> attributes_;  // sorted by name
};

}  // namespace tensorlint::placement
