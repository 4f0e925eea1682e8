#pragma once

#include <string>

namespace tensorlint::cli {

/// Prints the page of a rule, given by name or code.
int run_explain(const std::string& rule);

}  // namespace tensorlint::cli
