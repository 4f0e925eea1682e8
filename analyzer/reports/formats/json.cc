#include "analyzer/reports/json.h"

#include "analyzer/reports/report.h"

namespace tensorlint::reports {
namespace {

std::string write(std::span<const findings::InputReport> inputs, const ReportStyle& style) {
  return check_json(inputs, style.timings);
}

const RegisterReport kJson({"json", write});

}  // namespace
}  // namespace tensorlint::reports
