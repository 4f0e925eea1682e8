#include "ir/ops/entry.h"

#include <algorithm>
#include <unordered_map>

namespace tensorlint::ops {
namespace {

std::vector<OpEntry>& registry() {
  static std::vector<OpEntry> entries;
  return entries;
}

}  // namespace

std::optional<OperandRole> OpEntry::role_of(std::string_view operand) const {
  const auto found = std::ranges::find(roles_, operand, &Role::operand);
  return found == roles_.end() ? std::nullopt : std::optional(found->role);
}

int operand_with(const OpSchema& schema, const OpEntry& entry, OperandRole role) {
  for (const OpEntry::Role& declared : entry.roles())
    if (declared.role == role)
      if (const int index = schema.input_index(declared.operand); index >= 0) return index;
  return -1;
}

RegisterOps::RegisterOps(std::initializer_list<OpEntry> entries) {
  registry().insert(registry().end(), entries.begin(), entries.end());
}

std::span<const OpEntry> all_entries() { return registry(); }

const OpEntry* find_entry(std::string_view domain, std::string_view name, std::int64_t opset) {
  // Hashed, not sorted: a check of a small model would spend a thirtieth of its time on sorting.
  static const std::unordered_multimap<std::string_view, const OpEntry*> by_name = [] {
    std::unordered_multimap<std::string_view, const OpEntry*> index;
    index.reserve(registry().size());
    for (const OpEntry& entry : registry()) index.emplace(entry.name(), &entry);
    return index;
  }();
  // A file's names may be as long as itself, and are asked for again and again.
  static const std::size_t longest =
      std::ranges::max(registry(), {}, [](const OpEntry& entry) { return entry.name().size(); }).name().size();
  if (name.size() > longest) return nullptr;
  const auto [first, last] = by_name.equal_range(name);
  const auto in_force = std::find_if(first, last, [&](const auto& named) {
    const OpEntry& entry = *named.second;
    return entry.domain() == domain && entry.first_version() <= opset && opset <= entry.last_version();
  });
  return in_force == last ? nullptr : in_force->second;
}

}  // namespace tensorlint::ops
