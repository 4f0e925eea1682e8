#pragma once

#include <string>

namespace tensorlint::cli {

struct RulesOptions {
  std::string format = "text";  ///< or json
};

/// Lists all rules, a line each, or as one JSON document (docs/schema/rules.schema.json).
int run_rules(const RulesOptions& options);

}  // namespace tensorlint::cli
