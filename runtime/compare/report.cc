#include "runtime/compare/report.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/json_stream.h"
#include "base/lines.h"
#include "base/version.h"
#include "runtime/compare/report_facts.h"

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

Json number_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

Json location_json(const ReportedModel& reported, NodeId node, std::string_view field) {
  const auto found = reported.locations.find(node);
  if (found == reported.locations.end()) return nullptr;
  return field == "file" ? Json(escape_identifier(*found->second.file)) : Json(found->second.line);
}

Json node_json(const NodeResult& result, const ReportedModel& reported) {
  const Model& model = reported.model;
  const TensorTest& test = result.test;
  Json json{{"node", escape_identifier(model.label(result.node))},
            {"op", escape_identifier(op_of(model, result.node))},
            {"value", escape_identifier(model.name_of(result.value))},
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
  // The same nodes stand before many results: not all, and no name of any length.
  constexpr std::size_t kMostNodes = 16, kMostOfLabel = 200;
  Json unrecorded = Json::array();
  const std::span<const NodeId> before = result.before.nearest;
  for (const NodeId node : before.last(std::min(kMostNodes, before.size())))
    unrecorded.push_back(escape_for_display(model.label(node), kMostOfLabel));
  json["unrecorded"] = std::move(unrecorded);
  return json;
}

}  // namespace

SourceLines parse_locations(std::string_view text) {
  SourceLines locations;
  const auto shared = [](std::string_view part) { return std::make_shared<const std::string>(part); };
  SourceLine at{.file = shared(""), .source = shared("")};
  while (!text.empty()) {
    std::string_view line = take_line(text);
    std::uint32_t node = 0;
    const std::string_view id = next_field(line);
    const std::string_view file = next_field(line), row = next_field(line), column = next_field(line);
    if (!file.empty()) at.file = shared(file);
    if (!line.empty()) at.source = shared(line.substr(std::min(line.find_first_not_of(" \t"), line.size())));
    if (!at.file->empty() && number_in(id, node) && number_in(row, at.line) && number_in(column, at.column))
      locations[static_cast<NodeId>(node)] = at;
  }
  return locations;
}

std::string text_report(const Comparison& comparison, const ReportedModel& reported) {
  const ReportFacts facts = facts_of(comparison, reported);
  std::string text;
  if (facts.first) {
    const ReportFacts::First& first = *facts.first;
    text += fmt::format("bug: {}\n", facts.outcome);
    if (first.location != nullptr) {
      text += fmt::format("  --> {}\n", location_text(*first.location));
      if (!first.location->source->empty())
        text += fmt::format("   {:>5} | {}\n", first.location->line, escape_for_display(*first.location->source));
    }
    for (const std::string& figure : first.figures) text += fmt::format("  {}\n", figure);
    if (!first.cause.empty()) text += fmt::format("  looks like: {}\n", first.cause);
    if (!first.before.empty()) text += fmt::format("  {}\n", first.before);
    text += '\n';
  }
  for (const std::vector<std::string>* const sentences : {&facts.conditions, &facts.notes, &facts.skipped})
    for (const std::string& sentence : *sentences) text += sentence + '\n';
  text += facts.summary + '\n';
  return facts.next.empty() ? text : text + facts.next + '\n';
}

void json_report(const Comparison& comparison, const ReportedModel& reported, const TextSink& out) {
  const Model& model = reported.model;
  JsonStream document(out);
  document.member("schema", 1);
  document.member("tool", {{"name", "tensorlint"}, {"version", kVersion}});
  document.member("verdict", to_text(comparison.verdict()));
  Json found(nullptr);
  if (comparison.first < comparison.results.size()) {
    const NodeResult& first = comparison.results[comparison.first];
    found = {{"node", escape_identifier(model.label(first.node))},
             {"op", escape_identifier(op_of(model, first.node))},
             {"value", escape_identifier(model.name_of(first.value))},
             {"file", location_json(reported, first.node, "file")},
             {"line", location_json(reported, first.node, "line")},
             {"cause", first.cause.empty() ? Json(nullptr) : Json(first.cause)}};
  }
  document.member("first", found);
  document.begin_list("nodes");
  for (const NodeResult& result : comparison.results) document.element(node_json(result, reported));
  document.end_list();
  document.begin_list("skipped");
  for (const Skipped& skipped : comparison.skipped)
    document.element({{"node", escape_identifier(model.label(skipped.node))},
                      {"op", escape_identifier(op_of(model, skipped.node))},
                      {"reason", escape_identifier(reason_of(model, skipped))}});
  document.end_list();
  document.begin_list("notes");
  for (const std::string& note : comparison.notes) document.element(escape_identifier(note));
  document.end_list();
  document.end();
}

}  // namespace tensorlint::compare
