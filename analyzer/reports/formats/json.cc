#include "analyzer/reports/json.h"

#include "analyzer/reports/report.h"

namespace tensorlint::reports {
namespace {

void write(std::span<const findings::InputReport> inputs, const ReportStyle& style, const TextSink& out) {
  check_json(inputs, style.timings, out);
}

const RegisterReport kJson({"json", write});

}  // namespace
}  // namespace tensorlint::reports
