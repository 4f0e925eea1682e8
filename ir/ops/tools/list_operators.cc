// `./dev ops`: what each ONNX operator has and lacks here. One row an operator, then the sums.
#include <cstdio>
#include <string>
#include <string_view>

#include "ir/ops/tools/operator_table.h"

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (argc > 2 || (!mode.empty() && mode != "--lacking" && mode != "--page")) {
    std::fputs("usage: list_operators [--lacking | --page]\n", stderr);
    return 2;
  }
  const std::string text =
      mode == "--page" ? tensorlint::ops::operator_page() : tensorlint::ops::operator_table(mode == "--lacking");
  return std::fputs(text.c_str(), stdout) < 0 ? 1 : 0;
}
