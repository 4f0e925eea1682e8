#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph/model.h"

namespace tensorlint::dataflow {

/// No tensors, graphs or types: what same_attributes compares.
bool are_comparable(std::span<const Attribute> attributes);
/// True when every bit of two attribute lists agrees; lists with tensors, graphs or types are never equal.
bool same_attributes(std::span<const Attribute> a, std::span<const Attribute> b);
/// What a function knows of the call that it runs for. Both lists are sorted by name, as with_defaults makes them.
struct CallerAttributes {
  std::span<const Attribute> given, defaults{};  ///< `defaults`: for those that are not given
  bool empty() const { return given.empty() && defaults.empty(); }
};
/// A node's attributes as they are in a call of the function it stands in: references become the values of `caller`,
/// and what the caller leaves out is left out. `given` itself where nothing refers, else kept in `storage`.
std::span<const Attribute> resolve_references(std::span<const Attribute> given, const CallerAttributes& caller,
                                              std::vector<Attribute>& storage);
/// The attributes of a call, and of `defaults` those that it leaves out, sorted by name.
std::vector<Attribute> with_defaults(std::span<const Attribute> given, std::span<const Attribute> defaults);
/// What they cost to read and to compare with others, in some 10 ns.
std::uint64_t steps_of(std::span<const Attribute> attributes);
/// Equal for the same attributes.
std::uint64_t hash_of(std::span<const Attribute> attributes);

}  // namespace tensorlint::dataflow
