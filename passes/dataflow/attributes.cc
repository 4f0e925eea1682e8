#include "passes/dataflow/attributes.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/hash.h"

namespace tensorlint::dataflow {

std::span<const Attribute> resolve_references(std::span<const Attribute> given, std::span<const Attribute> caller,
                                              std::vector<Attribute>& storage) {
  if (std::ranges::all_of(given, [](const Attribute& x) { return x.reference.empty(); })) return given;
  storage.clear();
  for (const Attribute& attribute : given) {
    if (attribute.reference.empty()) {
      storage.push_back(attribute);
      continue;
    }
    const auto found = std::ranges::find(caller, attribute.reference, &Attribute::name);
    if (found == caller.end()) continue;  // the caller left it out: so does the node
    storage.push_back(*found);
    storage.back().name = attribute.name;
  }
  return storage;
}

std::vector<Attribute> with_defaults(std::span<const Attribute> given, std::span<const Attribute> defaults) {
  std::vector<Attribute> all(given.begin(), given.end());
  for (const Attribute& fallback : defaults)
    if (std::ranges::find(given, fallback.name, &Attribute::name) == given.end()) all.push_back(fallback);
  return all;
}

bool same_attributes(std::span<const Attribute> a, std::span<const Attribute> b) {
  const auto plain = [](const Attribute& x) {
    return x.tensor == nullptr && x.tensors.empty() && x.sparse == nullptr && x.graph == GraphId::kNone &&
           x.graphs.empty() && x.type == nullptr && x.types.empty();
  };
  const auto equal_lists = [](auto x, auto y) { return std::equal(x.begin(), x.end(), y.begin(), y.end()); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Attribute& x, const Attribute& y) {
    return plain(x) && plain(y) && x.name == y.name && x.kind == y.kind && x.reference == y.reference && x.i == y.i &&
           std::memcmp(&x.f, &y.f, sizeof x.f) == 0 && x.s == y.s && equal_lists(x.ints, y.ints) &&
           equal_lists(x.floats, y.floats) && equal_lists(x.strings, y.strings);
  });
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
  }
  return hash;
}

}  // namespace tensorlint::dataflow
