#include "analyzer/reports/report.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tensorlint::reports {
namespace {

constexpr std::string_view kDefault = "text";

std::vector<Report>& registry() {
  static std::vector<Report> reports;
  return reports;
}

}  // namespace

std::span<const Report> all_reports() { return registry(); }

const Report* find_report(std::string_view name) {
  const auto found = std::ranges::find(registry(), name, &Report::name);
  return found == registry().end() ? nullptr : &*found;
}

RegisterReport::RegisterReport(const Report& report) {
  const auto order = [](const Report& each) { return std::pair(each.name != kDefault, each.name); };
  registry().insert(std::ranges::lower_bound(registry(), order(report), {}, order), report);
}

}  // namespace tensorlint::reports
