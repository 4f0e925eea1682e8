#include "passes/dataflow/attributes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "base/hash.h"

namespace tensorlint::dataflow {

namespace {

/// Null where there is none.
const Attribute* find_sorted(std::span<const Attribute> attributes, std::string_view name) {
  const auto found = std::ranges::lower_bound(attributes, name, {}, &Attribute::name);
  return found == attributes.end() || found->name != name ? nullptr : &*found;
}

}  // namespace

std::span<const Attribute> resolve_references(std::span<const Attribute> given, const CallerAttributes& caller,
                                              std::vector<Attribute>& storage) {
  if (std::ranges::all_of(given, [](const Attribute& x) { return x.reference.empty(); })) return given;
  storage.clear();
  for (const Attribute& attribute : given) {
    if (attribute.reference.empty()) {
      storage.push_back(attribute);
      continue;
    }
    const Attribute* found = find_sorted(caller.given, attribute.reference);
    if (found == nullptr) found = find_sorted(caller.defaults, attribute.reference);
    if (found == nullptr) continue;  // the caller left it out: so does the node
    storage.push_back(*found);
    storage.back().name = attribute.name;
  }
  return storage;
}

std::vector<Attribute> with_defaults(std::span<const Attribute> given, std::span<const Attribute> defaults) {
  // Sorted by where they are: attributes are large. Of equal names the first counts.
  const auto name = [](const Attribute* attribute) { return attribute->name; };
  std::vector<const Attribute*> all;
  all.reserve(given.size() + defaults.size());
  for (const Attribute& attribute : given) all.push_back(&attribute);
  std::ranges::stable_sort(all, {}, name);
  const std::span<const Attribute* const> known(all.data(), all.size());  // no more memory is needed for the others
  for (const Attribute& fallback : defaults)
    if (!std::ranges::binary_search(known, fallback.name, {}, name)) all.push_back(&fallback);
  std::ranges::stable_sort(all, {}, name);
  std::vector<Attribute> sorted;
  sorted.reserve(all.size());
  for (const Attribute* const attribute : all) sorted.push_back(*attribute);
  return sorted;
}

bool same_attributes(std::span<const Attribute> a, std::span<const Attribute> b) {
  const auto same_bits = [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  };
  return are_comparable(a) && are_comparable(b) &&
         std::ranges::equal(a, b, [&](const Attribute& x, const Attribute& y) {
           return x.name == y.name && x.kind == y.kind && x.reference == y.reference && x.i == y.i &&
                  same_bits(x.f, y.f) && x.s == y.s && std::ranges::equal(x.ints, y.ints) &&
                  std::ranges::equal(x.floats, y.floats, same_bits) && std::ranges::equal(x.strings, y.strings);
         });
}

bool are_comparable(std::span<const Attribute> attributes) {
  return std::ranges::all_of(attributes, [](const Attribute& x) {
    return x.tensor == nullptr && x.tensors.empty() && x.sparse == nullptr && x.graph == GraphId::kNone &&
           x.graphs.empty() && x.type == nullptr && x.types.empty();
  });
}

namespace {

/// Texts may be empty, and there may be many extents of a tensor without elements.
std::uint64_t steps_of(const Tensor& tensor) {
  return tensor.inline_bytes() / 4 + 4 * tensor.strings.size() + tensor.dims.size();
}

}  // namespace

std::uint64_t steps_of(std::span<const Attribute> attributes) {
  std::uint64_t steps = 0;
  for (const Attribute& x : attributes) {
    steps += 16 + (x.name.size() + x.reference.size() + x.s.size()) / 4 + 4 * (x.ints.size() + x.floats.size());
    for (const std::string_view text : x.strings) steps += 4 + text.size() / 4;
    if (x.tensor != nullptr) steps += steps_of(*x.tensor);
    for (const Tensor* tensor : x.tensors) steps += steps_of(*tensor);
    if (x.sparse == nullptr) continue;
    steps += x.sparse->dims.size();
    for (const Tensor* tensor : {x.sparse->values, x.sparse->indices})
      if (tensor != nullptr) steps += steps_of(*tensor);
  }
  return steps;
}

std::uint64_t hash_of(std::span<const Attribute> attributes) {
  std::uint64_t hash = attributes.size();
  for (const Attribute& x : attributes) {
    hash = table_hash(hash, table_hash(x.name) + static_cast<std::uint64_t>(x.kind));
    hash = table_hash(hash, static_cast<std::uint64_t>(x.i) ^ table_hash(x.s));
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x.f, sizeof bits);
    hash = table_hash(hash, bits);
    for (const std::int64_t i : x.ints) hash = table_hash(hash, static_cast<std::uint64_t>(i));
    for (const float f : x.floats) hash = table_hash(hash, std::bit_cast<std::uint32_t>(f));
    for (const std::string_view text : x.strings) hash = table_hash(hash, table_hash(text));
  }
  return hash;
}

}  // namespace tensorlint::dataflow
