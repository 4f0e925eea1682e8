#include "analyzer/reports/text.h"

#include "analyzer/reports/report.h"

namespace tensorlint::reports {
namespace {

const RegisterReport kText({"text", check_text});

}  // namespace
}  // namespace tensorlint::reports
