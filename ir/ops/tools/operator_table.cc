#include "ir/ops/tools/operator_table.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "ir/ops/inference.h"
#include "ir/ops/tools/probe.h"
#include "ir/schema/contrib_schemas.h"
#include "ir/schema/schema.h"

namespace tensorlint::ops {
namespace {

struct Row {
  std::string name, versions, inference, contents, range;
  std::size_t constraints = 0, version_count = 0, inferred = 0;
  bool deprecated = false;
};

bool is_inferred(const OpEntry* entry) {
  return entry != nullptr && (entry->inference() != nullptr || entry->has(OpTrait::kControlFlow));
}

Row row_of(std::span<const OpSchema> versions) {
  const OpSchema& newest = versions.back();
  const OpEntry* entry = find_entry(newest.domain, newest.name, newest.since_version);
  Row row;
  row.name = newest.domain.empty() ? std::string(newest.name) : fmt::format("{}.{}", newest.domain, newest.name);
  row.deprecated = newest.deprecated;
  row.constraints = entry == nullptr ? 0 : entry->constraints().size();
  for (const OpSchema& schema : versions) {
    row.versions += fmt::format("{}{}", row.versions.empty() ? "" : ", ", schema.since_version);
    ++row.version_count;
    row.inferred += is_inferred(find_entry(schema.domain, schema.name, schema.since_version)) ? 1U : 0U;
  }
  if (entry != nullptr && entry->has(OpTrait::kControlFlow)) {
    // What its bodies compute goes on: contents and ranges as the bodies have them.
    row.inference = row.contents = row.range = "solver";
    return row;
  }
  row.inference = row.inferred == 0 ? "-" : "entry";
  const Probe found = newest.deprecated && versions.size() > 1 ? probe(versions[versions.size() - 2]) : probe(newest);
  row.contents = found.contents ? "yes" : "-";
  row.range = found.range ? "yes" : "-";
  return row;
}

std::vector<Row> rows() {
  std::vector<Row> list;
  const std::span<const OpSchema> all = all_schemas();
  for (std::size_t first = 0; first < all.size();) {
    std::size_t last = first;
    while (last < all.size() && all[last].domain == all[first].domain && all[last].name == all[first].name) ++last;
    list.push_back(row_of(all.subspan(first, last - first)));
    first = last;
  }
  return list;
}

std::string sums(const std::vector<Row>& list) {
  std::size_t operators = 0, versions = 0, inferred = 0, contents = 0, range = 0;
  for (const Row& row : list) {
    operators += row.inferred == row.version_count ? 1U : 0U;
    versions += row.version_count;
    inferred += row.inferred;
    contents += row.contents != "-" ? 1U : 0U;
    range += row.range != "-" ? 1U : 0U;
  }
  return fmt::format("{} of {} operators, {} of {} versions with inference; contents for {}, ranges for {} operators",
                     operators, list.size(), inferred, versions, contents, range);
}

/// Those of onnxruntime's own domains, one to a line as `./dev new op` takes them.
std::string contrib_without_entry() {
  std::string text;
  for (const ContribSchema& schema : contrib_schemas()) {
    if (is_inferred(find_entry(schema.domain, schema.name, schema.since_version))) continue;
    text +=
        schema.domain.empty() ? fmt::format("{}\n", schema.name) : fmt::format("{}.{}\n", schema.domain, schema.name);
  }
  return text;
}

}  // namespace

std::string operator_table(bool lacking) {
  const std::vector<Row> list = rows();
  std::string text =
      fmt::format("{:<44} {:<9} {:<8} {:<6} {:>11}\n", "operator", "inference", "contents", "range", "constraints");
  for (const Row& row : list) {
    if (lacking && row.inferred == row.version_count) continue;
    text += fmt::format("{:<44} {:<9} {:<8} {:<6} {:>11}\n", row.name, row.inference, row.contents, row.range,
                        row.constraints);
  }
  text += "\n" + sums(list) + "\n";
  const std::string contrib = lacking ? contrib_without_entry() : "";
  if (!contrib.empty()) text += "\nof onnxruntime's own domains without inference:\n" + contrib;
  return text;
}

std::string operator_page() {
  const std::vector<Row> list = rows();
  std::string text =
      "# Operators\n"
      "\n"
      "What is there for each ONNX operator. `./dev ops --write` writes this page, and a test holds it against the "
      "program.\n"
      "\n"
      "- inference: `entry`, dtypes, shapes and more from the operator's own entry; `solver`, the dataflow solver "
      "follows the operator's bodies.\n"
      "- contents: elements of small tensors are computed from known operands, so that chains such as Shape, Gather, "
      "Concat, Reshape stay exact.\n"
      "- range: bounds of the result, from the operator itself or from its operands' bounds. Both are found by trying "
      "calls.\n"
      "- constraints: labelled preconditions of its own, whose failure is reported; those of the schema (number of "
      "operands, types, attributes) come on top.\n"
      "\n"
      "Which versions `run` evaluates and which have a kernel, and for which dtypes: the tables `tensorlint-cpu` and "
      "`tensorlint-cuda` in `passes/placement/providers/` ([providers](providers.md)).\n"
      "\n" +
      sums(list) +
      ".\n"
      "\n"
      "| operator | versions | inference | contents | range | constraints |\n"
      "|---|---|---|---|---|---|\n";
  for (const Row& row : list) {
    text += fmt::format("| {} | {}{} | {} | {} | {} | {} |\n", row.name, row.versions,
                        row.deprecated ? " (deprecated)" : "", row.inference, row.contents, row.range,
                        row.constraints == 0 ? "-" : std::to_string(row.constraints));
  }
  return text;
}

}  // namespace tensorlint::ops
