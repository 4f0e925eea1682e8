#include "analyzer/reports/json.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

#include "analyzer/findings/fingerprint.h"
#include "base/escape.h"
#include "base/json_stream.h"
#include "base/version.h"

namespace tensorlint::reports {
namespace {

using Json = nlohmann::ordered_json;

std::string prose(std::string_view text) { return escape_for_display(text, 2 * kIdentifierLength); }

Json text_or_null(std::string_view text) { return text.empty() ? Json() : Json(escape_identifier(text)); }
Json number_or_null(std::uint32_t number) { return number == 0 ? Json() : Json(number); }

Json to_json(const findings::Note& note) {
  return {{"message", prose(note.message)},
          {"node", text_or_null(note.node)},
          {"file", text_or_null(note.place.file)},
          {"line", number_or_null(note.place.line)}};
}

/// A number where it is one, a formula as text, null where it is not known.
Json bytes_json(const std::string& bytes) {
  if (bytes.empty()) return {};
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), number);
  return error == std::errc() && end == bytes.data() + bytes.size() ? Json(number) : Json(escape_identifier(bytes));
}

Json to_json(const findings::TransferCost& cost) {
  Json json = {{"copies", cost.copies},
               {"bytes", bytes_json(cost.bytes)},
               {"setup_copies", cost.setup_copies},
               {"setup_bytes", bytes_json(cost.setup_bytes)}};
  if (!cost.conditions.empty()) {
    json["conditions"] = Json::object();
    for (const auto& [name, choice] : cost.conditions) json["conditions"][escape_identifier(name)] = choice;
  }
  return json;
}

Json to_json(const findings::DeviceWitness& witness) {
  Json json = {{"devices", Json::array()},
               {"conditions", Json::object()},
               {"trip_counts", Json::object()},
               {"iteration", witness.iteration},
               {"calls", Json::array()}};
  for (const std::string& device : witness.devices) json["devices"].push_back(escape_identifier(device));
  for (const auto& [name, choice] : witness.conditions) json["conditions"][escape_identifier(name)] = choice;
  for (const auto& [name, count] : witness.trip_counts) json["trip_counts"][escape_identifier(name)] = count;
  if (witness.left_out > 0) json["left_out"] = witness.left_out;
  for (const std::string& call : witness.calls) json["calls"].push_back(escape_identifier(call));
  return json;
}

/// Another place of a finding.
Json place_json(const findings::Finding& place) {
  return {{"graph", escape_identifier(place.graph)},
          {"node", text_or_null(place.node)},
          {"op", text_or_null(place.op)},
          {"value", text_or_null(place.value)},
          {"file", text_or_null(place.place.file)},
          {"line", number_or_null(place.place.line)},
          {"message", prose(place.message)},
          {"fingerprint", findings::fingerprint(place)}};
}

Json to_json(const findings::Finding& finding) {
  Json notes = Json::array(), fixes = Json::array();
  for (const findings::Note& note : finding.notes) notes.push_back(to_json(note));
  for (const findings::Fix& fix : finding.fixes)
    fixes.push_back({{"message", prose(fix.message)}, {"applicability", findings::to_text(fix.applicability)}});
  Json json = {{"rule", finding.rule},
               {"code", finding.code},
               {"severity", findings::to_text(finding.severity)},
               {"certainty", findings::to_text(finding.certainty)},
               {"path", escape_identifier(finding.path)},
               {"graph", escape_identifier(finding.graph)},
               {"node", text_or_null(finding.node)},
               {"op", text_or_null(finding.op)},
               {"value", text_or_null(finding.value)},
               {"file", text_or_null(finding.place.file)},
               {"line", number_or_null(finding.place.line)},
               {"column", number_or_null(finding.place.column)},
               {"message", prose(finding.message)},
               {"notes", std::move(notes)},
               {"fixes", std::move(fixes)},
               {"fingerprint", findings::fingerprint(finding)}};
  if (!finding.also.empty()) {
    json["also"] = Json::array();
    for (const findings::Finding& place : finding.also) json["also"].push_back(place_json(place));
  }
  if (finding.cost) json["cost"] = to_json(*finding.cost);
  if (finding.devices) {
    json["witness"] = to_json(*finding.devices);
  } else if (!finding.witness.empty()) {
    json["witness"] = {{"case", prose(finding.witness)}};
  }
  return json;
}

Json to_json(const findings::InputReport& input, bool timings) {
  Json json = {{"path", escape_identifier(input.path)}, {"status", input.checked ? "checked" : "failed"}};
  if (input.checked) {
    json["nodes"] = input.nodes;
    if (input.is_partial) json["partial"] = input.partial_text();
  } else {
    json["error"] = prose(input.error);
  }
  if (!input.config.empty()) {
    json["config"] = escape_identifier(input.config);
    json["hidden"] = input.hidden;
  }
  if (input.cost) {
    json["cost"] = input.cost->first.conditions.empty()
                       ? to_json(input.cost->first)
                       : Json({{"min", to_json(input.cost->first)}, {"max", to_json(input.cost->second)}});
  } else if (input.is_cost_unknown) {
    json["cost"] = nullptr;
  }
  if (timings) {
    json["seconds"] = {{"load", input.seconds.load},
                       {"infer", input.seconds.infer},
                       {"rules", input.seconds.rules},
                       {"total", input.seconds.total}};
    json["peak_rss_bytes"] = input.peak_rss_bytes;
    json["work"] = {{"steps", input.work.steps},
                    {"steps_allowed", input.work.steps_allowed},
                    {"heap_steps", input.work.heap_steps},
                    {"heap_steps_allowed", input.work.heap_steps_allowed},
                    {"memory", input.work.memory},
                    {"heap", input.work.heap},
                    {"memory_allowed", input.work.memory_allowed}};
  }
  return json;
}

}  // namespace

void check_json(std::span<const findings::InputReport> inputs, bool timings, const TextSink& out) {
  JsonStream document(out);
  document.member("schema", 1);
  document.member("tool", {{"name", "tensorlint"}, {"version", kVersion}});
  document.begin_list("inputs");
  for (const findings::InputReport& input : inputs) document.element(to_json(input, timings));
  document.end_list();
  document.begin_list("findings");
  for (const findings::InputReport& input : inputs)
    for (const findings::Finding& finding : input.findings) document.element(to_json(finding));
  document.end_list();
  findings::SeverityCounts counts;
  std::size_t places = 0, omitted = 0, hidden = 0, suppressed = 0, in_baseline = 0, gone = 0;
  for (const findings::InputReport& input : inputs) {
    counts += input.counts;
    places += input.places;
    omitted += input.omitted();
    hidden += input.hidden;
    suppressed += input.suppressed;
    in_baseline += input.in_baseline;
    gone += input.gone;
  }
  Json summary = {{"error", counts.error}, {"warning", counts.warning}, {"info", counts.info}, {"places", places}};
  if (omitted > 0) summary["omitted"] = omitted;  // found and counted, but past --max-findings
  if (suppressed > 0) summary["suppressed"] = suppressed;
  if (hidden > 0) summary["hidden"] = hidden;
  if (in_baseline + gone > 0) summary["baseline"] = {{"known", in_baseline}, {"gone", gone}};
  document.member("summary", summary);
  document.end();
}

}  // namespace tensorlint::reports
