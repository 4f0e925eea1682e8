#pragma once

#include <string>
#include <vector>

namespace tensorlint::runtime {

/// `tensorlint compare`, by options of the form --name=value; gives the exit code.
int run_compare(const std::vector<std::string>& arguments);

}  // namespace tensorlint::runtime
