#include "analyzer/reports/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/escape.h"
#include "base/text.h"

namespace tensorlint::reports {
namespace {

/// Findings of severity info, of one rule, shown per input; the rest is counted. Errors and warnings are all shown.
constexpr std::size_t kShownInfos = 5;
/// Other places of a finding that are named; JSON has all of them.
constexpr std::size_t kShownMessages = 3;
constexpr std::size_t kShownPlaces = 3;
constexpr std::size_t kSourceLength = 160;
constexpr std::size_t kMessageLength = 2000;

class TextReport {
 public:
  TextReport(bool colour, const TextSink& out) : colour_(colour), sink_(out) {}

  void add(const findings::InputReport& input) {
    if (!input.checked) add_failure(input);
    std::map<std::string_view, std::size_t> infos;
    for (const findings::Finding& finding : input.findings) {
      if (finding.severity == findings::Severity::kInfo && ++infos[finding.code] > kShownInfos) continue;
      add(finding);
      flush();
    }
    for (const auto& [code, number] : infos)
      if (number > kShownInfos) line("{} more of {} in {}", number - kShownInfos, code, escape_for_display(input.path));
    if (input.omitted() > 0)
      line("{} more findings in {} are not shown (--max-findings)", input.omitted(), escape_for_display(input.path));
    if (input.is_partial) line("{}: {}", escape_for_display(input.path), input.partial_text());
    counts_ += input.counts;
    places_ += input.places;
    suppressed_ += input.suppressed;
    left_out_ += input.left_out;
    in_baseline_ += input.in_baseline;
    gone_ += input.gone;
    (input.checked ? checked_ : failed_) += 1;
    nodes_ += input.nodes;
    flush();
  }

  void add_timings(const findings::InputReport& input) {
    line("{}: load {:.1f} ms, infer {:.1f} ms, rules {:.1f} ms, total {:.1f} ms, peak {:.1f} MiB",
         escape_for_display(input.path), 1e3 * input.seconds.load, 1e3 * input.seconds.infer, 1e3 * input.seconds.rules,
         1e3 * input.seconds.total, static_cast<double>(input.peak_rss_bytes) / 1048576.0);
  }

  void flush() {
    sink_(out_);
    out_.clear();
  }

  void add_summary() {
    std::string summary;
    const auto add_count = [&](std::size_t number, std::string_view one, std::string_view many) {
      if (number > 0) summary += (summary.empty() ? "" : ", ") + counted(number, one, many);
    };
    add_count(counts_.error, "error", "errors");
    add_count(counts_.warning, "warning", "warnings");
    add_count(counts_.info, "info", "info");
    if (summary.empty()) summary = "no findings";
    if (places_ > counts_.total()) summary += fmt::format(" in {} places", places_);
    if (left_out_ > 0) summary += fmt::format("; {} of rules that the configuration excludes", left_out_);
    if (suppressed_ > 0) summary += fmt::format("; {} suppressed", suppressed_);
    if (in_baseline_ > 0) summary += fmt::format("; {} in the baseline", in_baseline_);
    if (gone_ > 0) summary += fmt::format("; {} of the baseline gone", gone_);
    if (failed_ > 0) summary += fmt::format("; {} could not be checked", counted(failed_, "file"));
    if (checked_ == 0 && failed_ > 0) {
      line("nothing was checked: {} could not be", counted(failed_, "file"));
    } else {
      line("{}, {}: {}", counted(checked_, "checked file"), counted(nodes_, "node"), summary);
    }
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  std::string painted(std::string_view text, std::string_view code) const {
    return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
  static std::string_view colour_of(findings::Severity severity) {
    switch (severity) {
      case findings::Severity::kError:
        return "1;31";
      case findings::Severity::kWarning:
        return "1;33";
      default:
        return "1;36";
    }
  }

  static std::string place_text(const findings::SourceLocation& place) {
    std::string text = escape_for_display(place.file);
    if (place.line > 0) text += fmt::format(":{}", place.line);
    if (place.column > 0) text += fmt::format(":{}", place.column);
    return text;
  }

  void add_failure(const findings::InputReport& input) {
    line("{} {}: {}\n", painted("cannot check", colour_of(findings::Severity::kError)), escape_for_display(input.path),
         escape_for_display(input.error, kMessageLength));
  }

  void add_source(const findings::SourceLocation& place) {
    if (place.source.empty() || place.line == 0) return;
    const std::size_t indent = place.source.find_first_not_of(" \t");
    if (indent == std::string::npos) return;
    const std::string number = fmt::format("{}", place.line);
    line("{} {} {}", painted(fmt::format("{:>5}", number), "2"), painted("|", "2"),
         escape_for_display(place.source.substr(indent), kSourceLength));
  }

  void add(const findings::Finding& finding) {
    const std::string head = fmt::format("{}[{} {}]", findings::to_text(finding.severity), finding.code, finding.rule);
    const bool may = finding.certainty == ops::Certainty::kMay;
    line("{}: {}", painted(head, colour_of(finding.severity)),
         painted(escape_for_display(finding.message, kMessageLength), "1"));
    const std::string node =
        finding.node.empty() ? fmt::format("graph `{}`", escape_for_display(finding.graph)) : node_text(finding);
    if (finding.place.known()) {
      line("  {} {}", painted("-->", "2"), place_text(finding.place));
      add_source(finding.place);
      const std::string of_model =
          finding.place.file == finding.path ? "" : fmt::format(" of {}", escape_for_display(finding.path));
      if (!finding.node.empty() || !finding.graph.empty()) line("   in {}{}", node, of_model);
    } else {
      line("  {} {}: {}", painted("-->", "2"), escape_for_display(finding.path), node);
    }
    if (!finding.module.empty()) line("   in module `{}`", escape_for_display(finding.module));
    if (!finding.also.empty()) add_places(finding);
    if (may && !finding.witness.empty()) line("   when: {}", escape_for_display(finding.witness, kMessageLength));
    for (const findings::Note& note : finding.notes) add(note, finding.place);
    for (const findings::Fix& fix : finding.fixes)
      line("   {}: {}{}", painted("fix", "32"), escape_for_display(fix.message, kMessageLength),
           fix.applicability == findings::Applicability::kSafe ? "" : " (check that this is what you mean)");
    out_ += '\n';
  }

  /// "and 47 more places: `a` (train.py:3), `b` (train.py:7), `c`, ...": those on lines that are not named yet first.
  void add_places(const findings::Finding& finding) {
    const auto line_of = [](const findings::Finding& place) { return std::pair(place.place.file, place.place.line); };
    std::set<std::pair<std::string, std::uint32_t>> lines{line_of(finding)};
    std::vector<const findings::Finding*> shown, others;
    for (const findings::Finding& place : finding.also)
      (place.place.known() && shown.size() < kShownPlaces && lines.insert(line_of(place)).second ? shown : others)
          .push_back(&place);
    for (std::size_t i = 0; i < others.size() && shown.size() < kShownPlaces; ++i) shown.push_back(others[i]);
    std::string text;
    for (const findings::Finding* place : shown) {
      const std::string_view name = !place->node.empty() ? place->node : place->value;
      text += fmt::format("{}`{}`", text.empty() ? "" : ", ",
                          escape_for_display(name.empty() ? std::string_view(place->graph) : name));
      if (place->place.known() && line_of(*place) != line_of(finding))
        text += fmt::format(" ({})", place_text(place->place));
    }
    line("   and {}: {}{}", counted(finding.also.size(), "more place"), text,
         shown.size() < finding.also.size() ? ", ..." : "");
    add_other_messages(finding);
  }

  /// What is said of other places in other words: names and numbers of layers may differ, what is wrong should not.
  void add_other_messages(const findings::Finding& finding) {
    std::set<std::string> known{without_names(finding.message)};
    for (const findings::Finding& place : finding.also) {
      if (!known.insert(without_names(place.message)).second) continue;
      if (known.size() > kShownMessages + 1)
        return line("   and with other messages at more places: see --format json");
      line("   there: {}", escape_for_display(place.message, kMessageLength));
    }
  }

  static std::string without_names(std::string_view message) {
    std::string text;
    bool is_name = false;
    for (const char c : message) {
      if (c == '`') is_name = !is_name;
      if (!is_name) text += c;
    }
    return text;
  }

  static std::string node_text(const findings::Finding& finding) {
    std::string text = fmt::format("node `{}`", escape_for_display(finding.node));
    if (!finding.op.empty() && finding.node.find('(') == std::string::npos)
      text += fmt::format(" ({})", escape_for_display(finding.op));
    if (finding.graph != "main") text += fmt::format(" of graph `{}`", escape_for_display(finding.graph));
    return text;
  }

  /// A note whose line is that of the finding does not show it again.
  void add(const findings::Note& note, const findings::SourceLocation& shown) {
    std::string where;
    if (!note.node.empty()) where = fmt::format(" (node `{}`)", escape_for_display(note.node));
    line("   {}: {}{}", painted("note", "36"), escape_for_display(note.message, kMessageLength), where);
    if (!note.place.known() || (note.place.file == shown.file && note.place.line == shown.line)) return;
    line("     {} {}", painted("-->", "2"), place_text(note.place));
    add_source(note.place);
  }

  bool colour_;
  const TextSink& sink_;
  std::string out_;  ///< of the finding that is written
  findings::SeverityCounts counts_;
  std::size_t places_ = 0, checked_ = 0, failed_ = 0, nodes_ = 0, suppressed_ = 0, left_out_ = 0, in_baseline_ = 0,
              gone_ = 0;
};

}  // namespace

void check_text(std::span<const findings::InputReport> inputs, const ReportStyle& style, const TextSink& out) {
  TextReport report(style.colour, out);
  for (const findings::InputReport& input : inputs) report.add(input);
  if (style.timings)
    for (const findings::InputReport& input : inputs) report.add_timings(input);
  if (!style.quiet) report.add_summary();
  report.flush();
}

}  // namespace tensorlint::reports
