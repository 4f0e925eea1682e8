#include "analyzer/findings/finding.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>

namespace tensorlint::findings {
namespace {

auto sort_key(const Finding& finding) {
  return std::tie(finding.path, finding.order, finding.code, finding.graph, finding.node, finding.value,
                  finding.message);
}

}  // namespace

std::string_view to_text(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    default:
      return "info";
  }
}

std::optional<Severity> severity_named(std::string_view name) {
  for (const Severity severity : {Severity::kError, Severity::kWarning, Severity::kInfo})
    if (to_text(severity) == name) return severity;
  return std::nullopt;
}

std::string_view to_text(ops::Certainty certainty) { return certainty == ops::Certainty::kMust ? "must" : "may"; }

std::string_view to_text(Applicability applicability) {
  return applicability == Applicability::kSafe ? "safe" : "unsafe";
}

std::size_t memory_of(const SourceLocation& place) { return place.file.size() + place.source.size(); }

std::size_t memory_of(const Note& note) {
  return sizeof note + note.message.size() + note.node.size() + memory_of(note.place);
}

std::size_t memory_of(const Finding& finding) {
  constexpr std::size_t kEntry = 48;  // of a map, beside its contents
  std::size_t bytes = sizeof finding + finding.path.size() + finding.graph.size() + finding.node.size() +
                      finding.op.size() + finding.value.size() + finding.module.size() + finding.message.size() +
                      finding.witness.size() + memory_of(finding.place);
  for (const Note& note : finding.notes) bytes += memory_of(note);
  for (const Fix& fix : finding.fixes) bytes += sizeof fix + fix.message.size();
  if (finding.devices) {
    for (const std::string& device : finding.devices->devices) bytes += sizeof device + device.size();
    for (const std::string& call : finding.devices->calls) bytes += sizeof call + call.size();
    for (const auto& [name, choice] : finding.devices->conditions) bytes += kEntry + name.size();
    for (const auto& [name, count] : finding.devices->trip_counts) bytes += kEntry + name.size();
  }
  for (const Finding& place : finding.also) bytes += memory_of(place);
  return bytes;
}

std::optional<Severity> SeverityCounts::worst() const {
  if (error > 0) return Severity::kError;
  if (warning > 0) return Severity::kWarning;
  return info > 0 ? std::optional(Severity::kInfo) : std::nullopt;
}

SeverityCounts& SeverityCounts::operator+=(const SeverityCounts& other) {
  error += other.error;
  warning += other.warning;
  info += other.info;
  return *this;
}

SeverityCounts& SeverityCounts::operator-=(const SeverityCounts& other) {
  error -= other.error;
  warning -= other.warning;
  info -= other.info;
  return *this;
}

SeverityCounts count(const std::vector<Finding>& findings) {
  SeverityCounts counts;
  for (const Finding& finding : findings) ++counts[finding.severity];
  return counts;
}

std::size_t count_places(const std::vector<Finding>& findings) {
  std::size_t places = 0;
  for (const Finding& finding : findings) places += finding.places();
  return places;
}

void sort_in_place(std::vector<Finding>& findings, const std::function<bool(const Finding&, const Finding&)>& less) {
  std::vector<std::uint32_t> order(findings.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    if (less(findings[a], findings[b])) return true;
    return !less(findings[b], findings[a]) && a < b;
  });
  for (std::uint32_t at = 0; at < order.size(); ++at) {
    // What belongs here may have made way before, to where another one came from.
    std::uint32_t from = order[at];
    while (from < at) from = order[from];
    if (from != at) std::swap(findings[at], findings[from]);
    order[at] = from;
  }
}

void sort_and_deduplicate(std::vector<Finding>& findings) {
  sort_in_place(findings, [](const Finding& a, const Finding& b) { return sort_key(a) < sort_key(b); });
  const auto last = std::unique(findings.begin(), findings.end(),
                                [](const Finding& a, const Finding& b) { return sort_key(a) == sort_key(b); });
  findings.erase(last, findings.end());
}

}  // namespace tensorlint::findings
