#include "runtime/compare/report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/version.h"

namespace tensorlint::compare {
namespace {

using Json = nlohmann::ordered_json;

std::string_view next_field(std::string_view& line) {
  const std::size_t end = std::min(line.find('\t'), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

template <typename Number>
bool number_in(std::string_view field, Number& to) {
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), to);
  return error == std::errc() && end == field.data() + field.size();
}

std::string_view op_of(const Model& model, NodeId node) { return model.text(model.op(model.node(node)).name); }

std::string node_text(const Model& model, NodeId node) {
  return fmt::format("{} ({})", quoted_for_people(model.label(node)), escape_for_display(op_of(model, node)));
}

std::string location_text(const ReportedModel& reported, NodeId node) {
  const auto found = reported.locations.find(node);
  if (found == reported.locations.end()) return {};
  const SourceLine& at = found->second;
  std::string text = fmt::format("  --> {}:{}", escape_for_display(at.file), at.line);
  if (at.column > 0) text += fmt::format(":{}", at.column);
  text += '\n';
  if (!at.source.empty()) text += fmt::format("   {:>5} | {}\n", at.line, escape_for_display(at.source));
  return text;
}

std::string figures_text(const NodeResult& result) {
  const TensorTest& test = result.test;
  if (test.is_other_class || !std::isfinite(test.ratio))
    return fmt::format("  at [{}]: {} instead of {}; {} of {} elements differ so\n",
                       fmt::join(result.worst_index, ", "), test.other, test.reference, test.beyond, test.count);
  std::string text;
  if (test.beyond > 0)
    text += fmt::format(
        "  at [{}]: {:.9g} instead of {:.9g}: off by {:.3g}, and rounding explains {:.3g}; {} of {} "
        "elements are beyond their bound\n",
        fmt::join(result.worst_index, ", "), test.other, test.reference, test.worst_error, test.bound, test.beyond,
        test.count);
  if (test.slope_z > kDeviations)
    text += fmt::format(
        "  the errors grow with the value: {:.3g} of it, {:.0f} standard errors beyond what rounding does\n",
        test.slope, test.slope_z);
  if (test.beyond == 0 && test.slope_z <= kDeviations)
    text += fmt::format("  the errors are {:.1f} times what rounding makes one expect\n", test.rms_ratio);
  return text;
}

Json number_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

Json location_json(const ReportedModel& reported, NodeId node, std::string_view field) {
  const auto found = reported.locations.find(node);
  if (found == reported.locations.end()) return nullptr;
  return field == "file" ? Json(found->second.file) : Json(found->second.line);
}

Json node_json(const NodeResult& result, const ReportedModel& reported) {
  const Model& model = reported.model;
  const TensorTest& test = result.test;
  Json json{{"node", model.label(result.node)},
            {"op", op_of(model, result.node)},
            {"value", model.name_of(result.value)},
            {"file", location_json(reported, result.node, "file")},
            {"line", location_json(reported, result.node, "line")},
            {"verdict", to_text(test.verdict)},
            {"condition", result.condition.empty() ? Json(nullptr) : Json(result.condition)},
            {"max_error", number_or_null(test.worst_error)},
            {"bound", number_or_null(test.bound)},
            {"ratio", number_or_null(test.ratio)},
            {"rms_ratio", number_or_null(test.rms_ratio)},
            {"slope", number_or_null(test.slope)},
            {"slope_z", number_or_null(test.slope_z)},
            {"worst_index", result.worst_index},
            {"reference", number_or_null(test.reference)},
            {"other", number_or_null(test.other)}};
  Json unrecorded = Json::array();
  for (const NodeId node : result.unrecorded) unrecorded.push_back(model.label(node));
  json["unrecorded"] = std::move(unrecorded);
  return json;
}

}  // namespace

SourceLines parse_locations(std::string_view text) {
  SourceLines locations;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::uint32_t node = 0;
    SourceLine at;
    const std::string_view id = next_field(line);
    at.file = next_field(line);
    const std::string_view row = next_field(line), column = next_field(line);
    at.source = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
    if (number_in(id, node) && number_in(row, at.line) && number_in(column, at.column))
      locations[static_cast<NodeId>(node)] = std::move(at);
  }
  return locations;
}

std::string text_report(const Comparison& comparison, const ReportedModel& reported) {
  const Model& model = reported.model;
  std::string text;
  if (comparison.first < comparison.results.size()) {
    const NodeResult& first = comparison.results[comparison.first];
    text += fmt::format("bug: {} of node {} is the first value that rounding does not explain\n",
                        quoted_for_people(model.name_of(first.value)), node_text(model, first.node));
    text += location_text(reported, first.node);
    text += figures_text(first);
    if (!first.cause.empty()) text += fmt::format("  looks like: {}\n", first.cause);
    constexpr std::size_t kShown = 8;
    const std::span<const NodeId> before = first.unrecorded;
    if (!before.empty())
      text += fmt::format(
          "  or a node before it, of which nothing is recorded: {}{}\n",
          [&] {
            std::string names;
            for (const NodeId node : before.last(std::min(kShown, before.size())))
              names += fmt::format("{}{}", names.empty() ? "" : ", ", node_text(model, node));
            return names;
          }(),
          before.size() > kShown ? fmt::format(" and {} more", before.size() - kShown) : "");
    text += '\n';
  }
  std::array<std::size_t, 5> counts{};
  std::map<std::string_view, std::vector<const NodeResult*>> conditions;
  for (const NodeResult& result : comparison.results) {
    ++counts[static_cast<std::size_t>(result.test.verdict)];
    if (!result.condition.empty()) conditions[result.condition].push_back(&result);
  }
  for (const auto& [condition, results] : conditions)
    text += fmt::format("explained if the engine computes with {}: {} value{}, the first of node {}\n", condition,
                        results.size(), results.size() == 1 ? "" : "s", node_text(model, results.front()->node));
  for (const std::string& note : comparison.notes) text += fmt::format("note: {}\n", escape_for_display(note, 500));
  for (const Skipped& skipped : comparison.skipped)
    text += fmt::format("not compared: node {}: {}\n", node_text(model, skipped.node),
                        escape_for_display(skipped.reason, 500));
  text += fmt::format("{} compared values:", comparison.results.size());
  bool is_first = true;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const bool are_bugs = static_cast<Verdict>(i) == Verdict::kBug && counts[i] > 1;
    text += fmt::format("{} {} {}{}", is_first ? "" : ",", counts[i], to_text(static_cast<Verdict>(i)),
                        are_bugs ? "s" : "");
    is_first = false;
  }
  return text + '\n';
}

std::string json_report(const Comparison& comparison, const ReportedModel& reported) {
  const Model& model = reported.model;
  Json json{{"schema", 1},
            {"tool", {{"name", "tensorlint"}, {"version", kVersion}}},
            {"verdict", to_text(comparison.verdict())},
            {"first", nullptr}};
  if (comparison.first < comparison.results.size()) {
    const NodeResult& first = comparison.results[comparison.first];
    json["first"] = {{"node", model.label(first.node)},
                     {"op", op_of(model, first.node)},
                     {"value", model.name_of(first.value)},
                     {"file", location_json(reported, first.node, "file")},
                     {"line", location_json(reported, first.node, "line")},
                     {"cause", first.cause.empty() ? Json(nullptr) : Json(first.cause)}};
  }
  json["nodes"] = Json::array();
  for (const NodeResult& result : comparison.results) json["nodes"].push_back(node_json(result, reported));
  json["skipped"] = Json::array();
  for (const Skipped& skipped : comparison.skipped)
    json["skipped"].push_back(
        {{"node", model.label(skipped.node)}, {"op", op_of(model, skipped.node)}, {"reason", skipped.reason}});
  json["notes"] = comparison.notes;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tensorlint::compare
