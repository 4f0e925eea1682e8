#include "analyzer/config/baseline.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "analyzer/findings/fingerprint.h"
#include "analyzer/findings/grouping.h"
#include "base/escape.h"
#include "base/small_file.h"
#include "base/version.h"

namespace tensorlint::config {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
constexpr int kSchema = 1;
constexpr std::size_t kMaxBrackets = 8;  // a baseline has 3

/// Values in one another, brackets in strings aside: copying JSON recurses once for each.
bool nests_deeper(std::string_view json, std::size_t limit) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (in_string) {
      if (c == '\\')
        ++at;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limit) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace

Baseline::Baseline(std::string path) : path_(std::move(path)) {}

std::string Baseline::key(const std::string& input) const { return relative_path(input, folder_of(path_)); }

Result<Baseline> Baseline::read(const std::string& path) {
  const Result<std::string> text = read_small_file(path, kMaxBytes);
  if (!text) return Error{fmt::format("baseline {}: {}", path, text.error().message), {}};
  const auto wrong = [&](std::string_view what) { return Error{fmt::format("baseline {}: {}", path, what), {}}; };
  if (nests_deeper(*text, kMaxBrackets)) return wrong("not a baseline of --write-baseline: nested too deeply");
  // Not ordered: keys of an ordered object are looked for one by one.
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("schema") || !json.contains("findings") || !json["findings"].is_array())
    return wrong("not a baseline of --write-baseline");
  if (json["schema"] != kSchema)
    return wrong("written by another version of tensorlint; renew it with --write-baseline");
  Baseline baseline(path);
  for (const nlohmann::json& row : json["findings"]) {
    const auto text_of = [&](const char* name) {
      return row.is_object() && row.contains(name) && row[name].is_string() ? row[name].get<std::string>()
                                                                            : std::string();
    };
    const std::string input = text_of("path"), print = text_of("fingerprint");
    const bool counted = row.is_object() && row.contains("count") && row["count"].is_number_unsigned();
    if (input.empty() || print.empty() || !counted) return wrong("a finding has no path, fingerprint or count");
    baseline.inputs_[input][print] = {text_of("rule"), text_of("message"), row["count"].get<std::size_t>()};
  }
  return baseline;
}

void Baseline::add(const std::string& input, std::span<const findings::Finding> findings) {
  auto& entries = inputs_[key(input)];
  const auto add_place = [&entries](const findings::Finding& place) {
    Entry& entry = entries[findings::fingerprint(place)];
    if (entry.count++ == 0) entry = {std::string(place.rule), escape_for_display(place.message, 500), 1};
  };
  for (const findings::Finding& finding : findings) {
    add_place(finding);
    for (const findings::Finding& place : finding.also) add_place(place);
  }
}

std::string Baseline::to_json() const {
  Json findings = Json::array();
  for (const auto& [input, entries] : inputs_)
    for (const auto& [print, entry] : entries)
      findings.push_back({{"path", input},
                          {"rule", entry.rule},
                          {"fingerprint", print},
                          {"count", entry.count},
                          {"message", entry.message}});
  const Json json = {{"schema", kSchema},
                     {"tool", {{"name", "tensorlint"}, {"version", kVersion}}},
                     {"findings", std::move(findings)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::size_t Baseline::size() const {
  std::size_t total = 0;
  for (const auto& [input, entries] : inputs_)
    for (const auto& [print, entry] : entries) total += entry.count;
  return total;
}

Baseline::Known Baseline::take_out(const std::string& input, std::vector<findings::Finding>& findings) const {
  Known known;
  const auto entries = inputs_.find(key(input));
  if (entries == inputs_.end()) return known;
  std::map<std::string, std::size_t> left;
  for (const auto& [print, entry] : entries->second) left[print] = entry.count;
  const auto is_known = [&](const findings::Finding& place) {
    const auto found = left.find(findings::fingerprint(place));
    if (found == left.end() || found->second == 0) return false;
    --found->second;
    ++known.found;
    return true;
  };
  std::erase_if(findings, [&](findings::Finding& finding) {
    const bool first = is_known(finding);
    std::erase_if(finding.also, is_known);
    return first && !findings::drop_first_place(finding);
  });
  for (const auto& [print, count] : left) known.gone += count;
  return known;
}

}  // namespace tensorlint::config
