// `./dev ops`: what each ONNX operator has and lacks here, in its newest version. One row an operator, then the sums.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "ir/ops/inference.h"
#include "ir/ops/schema.h"

namespace tensorlint {
namespace {

struct Sums {
  int operators = 0, inferred = 0, bodies_unused = 0, lacking = 0;
};

/// The newest version of every operator, in the order of the table.
std::vector<const OpSchema*> newest_versions() {
  std::vector<const OpSchema*> newest;
  for (const OpSchema& schema : all_schemas()) {
    if (!newest.empty() && newest.back()->domain == schema.domain && newest.back()->name == schema.name) {
      newest.back() = &schema;
    } else {
      newest.push_back(&schema);
    }
  }
  return newest;
}

/// Versions of the schema without an entry in force, oldest first.
std::string versions_without_entry(const OpSchema& operation) {
  std::string versions;
  for (const OpSchema& schema : all_schemas()) {
    if (schema.domain != operation.domain || schema.name != operation.name) continue;
    if (find_entry(schema.domain, schema.name, schema.since_version)) continue;
    versions += fmt::format("{}{}", versions.empty() ? "" : ",", schema.since_version);
  }
  return versions;
}

void print_operator(const OpSchema& schema, bool only_lacking, Sums& sums) {
  const OpEntry* entry = find_entry(schema.domain, schema.name, schema.since_version);
  const bool has_body = !schema.function_body.empty();
  const char* inference = "-";
  ++sums.operators;
  if (entry && entry->inference()) {
    inference = "entry";
    ++sums.inferred;
  } else if (entry && entry->has(OpTrait::kControlFlow)) {
    inference = "solver";
    ++sums.inferred;
  } else {
    ++sums.lacking;
    if (has_body) ++sums.bodies_unused;
  }
  const bool lacks = std::strcmp(inference, "-") == 0;
  if (only_lacking && !lacks) return;
  std::string lacking = lacks ? (has_body ? "an entry (ONNX has a body)" : "an entry") : std::string();
  if (const std::string versions = versions_without_entry(schema); !lacks && !versions.empty()) {
    lacking = fmt::format("versions {}", versions);
  }
  const std::string name = schema.domain.empty() ? std::string(schema.name) : fmt::format("{}.{}", schema.domain, schema.name);
  fmt::print("{:<44} {:>5}  {:<9} {:>11}  {}\n", name, schema.since_version, inference,
             entry ? entry->constraints().size() : 0, schema.deprecated ? "(deprecated)" : lacking);
}

}  // namespace
}  // namespace tensorlint

int main(int argc, char** argv) {
  const bool only_lacking = argc > 1 && std::strcmp(argv[1], "--lacking") == 0;
  if (argc > 1 && !only_lacking) {
    std::fputs("usage: list_operators [--lacking]\n", stderr);
    return 2;
  }
  tensorlint::Sums sums;
  fmt::print("{:<44} {:>5}  {:<9} {:>11}  {}\n", "operator", "since", "inference", "constraints", "lacks");
  for (const tensorlint::OpSchema* schema : tensorlint::newest_versions()) {
    tensorlint::print_operator(*schema, only_lacking, sums);
  }
  fmt::print("\n{} operators: {} with inference of their own, {} without ({} of which have a body)\n",
             sums.operators, sums.inferred, sums.lacking, sums.bodies_unused);
  return 0;
}
