#include "runtime/compare/report_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/escape.h"
#include "base/text.h"

namespace tensorlint::compare {
namespace {

/// docs/compare.md has the same table.
std::string_view meaning_of(std::string_view condition) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kMeanings{{
      {"tf32", "operands of float32 products are rounded to 11 significant bits"},
      {"wide-intermediates", "values in half precision stay unrounded between nodes"},
      {"fp16-accumulate", "sums are added up in float16"},
      {"bf16-accumulate", "sums are added up in bfloat16"},
      {"flush-to-zero", "numbers below the smallest normal one become 0"},
      {"bf16-weights", "weights are rounded to bfloat16"},
      {"own-constants", "constants that the exporter folded are computed by the engine"},
      {"other-order", "terms of sums are added up in an order in which nearly all roundings have one sign"},
  }};
  const auto found = std::ranges::find(kMeanings, condition, [](const auto& each) { return each.first; });
  return found == kMeanings.end() ? std::string_view() : found->second;
}

std::string node_text(const Model& model, NodeId node) {
  return fmt::format("{} ({})", quoted_for_people(model.label(node)), escape_for_display(op_of(model, node)));
}

std::vector<std::string> figures_of(const NodeResult& result) {
  const TensorTest& test = result.test;
  const std::string index = fmt::format("at [{}]", fmt::join(result.worst_index, ", "));
  if (test.is_other_class || !std::isfinite(test.ratio))
    return {fmt::format("{}: {} instead of {}; {} of {} differ{} so", index, test.other, test.reference, test.beyond,
                        counted(test.count, "element"), test.beyond == 1 ? "s" : "")};
  std::vector<std::string> figures;
  if (test.beyond > 0)
    figures.push_back(fmt::format(
        "{}: {:.9g} instead of {:.9g}: off by {:.3g}, and rounding explains {:.3g}; {} of {} {} "
        "beyond {} bound",
        index, test.other, test.reference, test.worst_error, test.bound, test.beyond, counted(test.count, "element"),
        test.beyond == 1 ? "is" : "are", test.beyond == 1 ? "its" : "their"));
  if (test.slope_z > kDeviations)
    figures.push_back(
        fmt::format("the errors grow with the value: {:.3g} of it, {:.0f} standard errors beyond what rounding does",
                    test.slope, test.slope_z));
  if (figures.empty())
    figures.push_back(fmt::format("the errors are {:.1f} times what rounding makes one expect", test.rms_ratio));
  return figures;
}

/// The nearest ones to the bug come last.
std::string nodes_before(const Model& model, const Unrecorded& unrecorded) {
  constexpr std::size_t kShown = 8;
  const std::span<const NodeId> before = unrecorded.nearest;
  if (before.empty()) return {};
  std::vector<std::string> names;
  for (const NodeId node : before.last(std::min(kShown, before.size()))) names.push_back(node_text(model, node));
  const std::size_t more = before.size() - names.size();
  return fmt::format("or a node before it, of which nothing is recorded: {}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {}{} more", unrecorded.is_cut ? "at least " : "", more) : "");
}

std::string outcome_of(const Comparison& comparison, const Model& model) {
  switch (comparison.verdict()) {
    case Verdict::kIdentical:
      return "all compared values are identical";
    case Verdict::kExplained:
      return "rounding explains all differences";
    case Verdict::kExplainedIf:
      return "rounding explains all differences if the engine computes as the contract does not grant: see the "
             "conditions";
    case Verdict::kIllConditioned:
      return "rounding explains all differences, and would explain more: bounds of the ill-conditioned values reach a "
             "tenth of them";
    case Verdict::kBug:
      break;
  }
  const NodeResult& first = comparison.results[comparison.first];
  return fmt::format("{} of node {} is the first value that rounding does not explain",
                     quoted_for_people(model.name_of(first.value)), node_text(model, first.node));
}

std::vector<std::string> conditions_of(const Comparison& comparison, const Model& model) {
  std::map<std::string_view, std::vector<const NodeResult*>> conditions;
  for (const NodeResult& result : comparison.results)
    if (!result.condition.empty()) conditions[result.condition].push_back(&result);
  std::vector<std::string> sentences;
  for (const auto& [condition, results] : conditions)
    sentences.push_back(fmt::format("explained if the engine computes with {} ({}): {}, the first of node {}",
                                    condition, meaning_of(condition), counted(results.size(), "value"),
                                    node_text(model, results.front()->node)));
  return sentences;
}

std::string summary_of(const Comparison& comparison) {
  std::array<std::size_t, 5> counts{};
  for (const NodeResult& result : comparison.results) ++counts[static_cast<std::size_t>(result.test.verdict)];
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      parts.push_back(fmt::format("{} {}{}", counts[i], to_text(static_cast<Verdict>(i)),
                                  static_cast<Verdict>(i) == Verdict::kBug ? plural(counts[i]) : ""));
  return fmt::format("{}: {}", counted(comparison.results.size(), "compared value"), fmt::join(parts, ", "));
}

}  // namespace

std::string_view op_of(const Model& model, NodeId node) { return model.text(model.op(model.node(node)).name); }

std::string reason_of(const Model& model, const Skipped& skipped) {
  const std::string prefix = fmt::format("node {}: ", node_text(model, skipped.node));
  return skipped.reason.starts_with(prefix) ? skipped.reason.substr(prefix.size()) : skipped.reason;
}

std::string location_text(const SourceLine& at) {
  return fmt::format("{}:{}{}", escape_for_display(*at.file), at.line,
                     at.column > 0 ? fmt::format(":{}", at.column) : "");
}

ReportFacts facts_of(const Comparison& comparison, const ReportedModel& reported) {
  const Model& model = reported.model;
  const ReportSetting& setting = reported.setting;
  ReportFacts facts{.outcome = outcome_of(comparison, model),
                    .first = std::nullopt,
                    .conditions = conditions_of(comparison, model),
                    .notes = {},
                    .skipped = {},
                    .summary = summary_of(comparison),
                    .setting = {},
                    .next = {}};
  for (const std::string& note : comparison.notes)
    facts.notes.push_back(fmt::format("note: {}", escape_for_display(note, 500)));
  for (const Skipped& skipped : comparison.skipped)
    facts.skipped.push_back(fmt::format("not compared: node {}: {}", node_text(model, skipped.node),
                                        escape_for_display(reason_of(model, skipped), 500)));
  facts.setting = {
      fmt::format("compared with: {}", quoted_for_people(setting.against)),
      fmt::format("contract: {}", quoted_for_people(setting.contract)),
      setting.is_chained ? "mode: chained, each node reads what the reference computed, with its noise"
                         : "mode: isolated, each node reads what was recorded of its operands",
  };
  if (comparison.first >= comparison.results.size()) return facts;
  const NodeResult& first = comparison.results[comparison.first];
  const auto at = reported.locations.find(first.node);
  facts.first = {.location = at == reported.locations.end() ? nullptr : &at->second,
                 .figures = figures_of(first),
                 .cause = escape_for_display(first.cause, 500),
                 .before = nodes_before(model, first.before)};
  if (!setting.reproduction.empty())
    facts.next = fmt::format("the first bug by itself: {}/model.onnx", escape_for_display(setting.reproduction));
  else if (first.before.empty())
    facts.next = "next: `--reproduce FOLDER` writes this node as a model by itself, with what it read";
  else
    facts.next = "next: record the values before it as well, to know which of these nodes it is";
  return facts;
}

}  // namespace tensorlint::compare
