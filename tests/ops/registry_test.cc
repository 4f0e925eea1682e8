#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "ir/ops/inference.h"

namespace tensorlint::ops {
namespace {

bool has_role(const OpEntry& entry, OperandRole role) {
  return std::ranges::find(entry.roles(), role, &OpEntry::Role::role) != entry.roles().end();
}

TEST(Registry, OneEntryForEachVersion) {
  std::map<std::tuple<std::string_view, std::string_view, int>, const OpEntry*> sorted;
  for (const OpEntry& entry : all_entries()) {
    EXPECT_TRUE(sorted.emplace(std::tuple(entry.domain(), entry.name(), entry.first_version()), &entry).second)
        << entry.name() << " has the same entry twice";
  }
  const OpEntry* before = nullptr;
  for (const auto& [key, entry] : sorted) {
    const bool same = before != nullptr && before->domain() == entry->domain() && before->name() == entry->name();
    EXPECT_FALSE(same && before->last_version() >= entry->first_version())
        << entry->name() << " has two entries for one version";
    before = entry;
  }
}

TEST(Registry, EntriesAreOfOperators) {
  for (const OpEntry& entry : all_entries()) {
    EXPECT_NE(find_any_version(entry.domain(), entry.name()), nullptr) << entry.name();
    EXPECT_TRUE(entry.inference() != nullptr || entry.has(OpTrait::kControlFlow)) << entry.name() << " infers nothing";
    for (const OpEntry::Role& role : entry.roles()) {
      bool known = false;
      for (const OpSchema& schema : all_schemas())
        known = known || (schema.domain == entry.domain() && schema.name == entry.name() &&
                          schema.input_index(role.operand) >= 0);
      EXPECT_TRUE(known || find_any_version(entry.domain(), entry.name())->input_index(role.operand) >= 0)
          << entry.name() << " has no operand " << role.operand;
    }
    EXPECT_EQ(entry.loss().has_value(),
              has_role(entry, OperandRole::kPrediction) && has_role(entry, OperandRole::kTarget))
        << entry.name();
  }
}

TEST(Registry, LabelsAreUnique) {
  std::map<std::string_view, const Constraint*> labels;
  for (const Constraint* constraint : all_constraints()) {
    EXPECT_TRUE(labels.emplace(constraint->label, constraint).second)
        << constraint->label << " is the label of two constraints";
    EXPECT_FALSE(constraint->text.empty()) << constraint->label;
  }
}

}  // namespace
}  // namespace tensorlint::ops
