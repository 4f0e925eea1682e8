#include "analyzer/pipeline/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "analyzer/findings/grouping.h"
#include "analyzer/findings/source_location.h"
#include "analyzer/pipeline/comment_suppressions.h"
#include "base/escape.h"

namespace tensorlint::pipeline {
namespace {

using findings::Finding;
using findings::Suppression;

const rules::RuleInfo& unused_rule() { return rules::find_rule("unused-suppression")->info(); }

/// A finding of unused-suppression.
Finding about(findings::SourceLocation place, std::string message, const rules::RuleSelection& selection) {
  const rules::RuleInfo& rule = unused_rule();
  Finding finding;
  finding.rule = rule.name;
  finding.code = rule.code;
  finding.severity = selection.severity(rule.code).value_or(rule.severity);
  finding.path = place.file;
  finding.place = std::move(place);
  finding.message = std::move(message);
  finding.order = ~std::uint64_t{0};
  return finding;
}

/// The comments about each line, less those that say nothing new after others.
class CommentsByLine {
 public:
  explicit CommentsByLine(const std::vector<Suppression>& comments) : comments_(comments) {
    for (std::size_t i = 0; i < comments.size(); ++i) {
      Line& line = lines_[comments[i].line];
      if (comments[i].codes.is_subset_of(line.codes)) continue;
      line.codes |= comments[i].codes;
      line.comments.push_back(i);
    }
  }
  /// The first comment that covers the finding.
  std::optional<std::size_t> covering(const Finding& finding) const {
    const auto line = lines_.find(finding.place.line);
    if (line == lines_.end()) return std::nullopt;
    const auto found = std::ranges::find_if(line->second.comments,
                                            [&](std::size_t comment) { return comments_[comment].covers(finding); });
    return found == line->second.comments.end() ? std::nullopt : std::optional(*found);
  }

 private:
  struct Line {
    findings::RuleCodes codes;
    std::vector<std::size_t> comments;
  };
  const std::vector<Suppression>& comments_;
  std::unordered_map<std::uint32_t, Line> lines_;
};

class Filter {
 public:
  Filter(const Model& model, const rules::RuleSelection& selection, const FilterOptions& options, Meter& meter)
      : model_(model), selection_(selection), options_(options), meter_(meter) {}

  CheckResults run(rules::RuleResults found) {
    out_.findings = std::move(found.findings);
    out_.omitted_places = found.omitted_places;
    out_.left_out =
        std::erase_if(out_.findings, [&](const Finding& finding) { return !selection_.allows(finding.code); });
    const CommentSuppressions comments = suppressions_of(model_, rules::rule_names());
    const std::vector<bool> used = suppress(comments);
    // What follows from a suppressed finding stays: whoever suppresses says that the node works, and then what comes
    // after fails by itself.
    rules::drop_followers(found.followers, out_.findings);
    cut(found.omitted);
    report_unused(comments, used, found);
    findings::sort_and_deduplicate(out_.findings);
    findings::group_by_cause(out_.findings);
    if (options_.baseline != nullptr) {
      const config::Baseline::Known known = options_.baseline->take_out(model_.path, out_.findings);
      out_.in_baseline = known.found;
      if (!found.is_partial) out_.gone = known.gone;
    }
    out_.counts = findings::count(out_.findings);
    out_.counts += found.omitted;
    return std::move(out_);
  }

 private:
  /// By comment: it took something away.
  std::vector<bool> suppress(const CommentSuppressions& comments) {
    std::vector<bool> used(comments.good.size(), false);
    const CommentsByLine by_line(comments.good);
    static const FilterOptions::Suppressions kNone;
    const FilterOptions::Suppressions& rows = options_.suppressions == nullptr ? kNone : *options_.suppressions;
    out_.suppressed.assign(rows.size(), 0);
    std::erase_if(out_.findings, [&](const Finding& finding) {
      const auto covers = [&](const std::shared_ptr<const Suppression>& suppression) {
        if (meter_.is_spent()) return false;
        meter_.charge(suppression->steps(finding));
        return suppression->covers(finding);
      };
      if (const auto comment = by_line.covering(finding)) {
        used[*comment] = true;
        ++out_.suppressed_by_comments;
        return true;
      }
      const auto row = std::ranges::find_if(rows, covers);
      if (row == rows.end()) return false;
      ++out_.suppressed[static_cast<std::size_t>(row - rows.begin())];
      return true;
    });
    return used;
  }

  /// More were kept, for what comments take away.
  void cut(findings::SeverityCounts& omitted) {
    std::map<std::string_view, std::size_t> kept;  // by code
    std::erase_if(out_.findings, [&](const Finding& finding) {
      const bool is_over = kept[finding.code]++ >= selection_.limit();
      if (is_over) ++omitted[finding.severity];
      return is_over;
    });
  }

  void report_unused(const CommentSuppressions& comments, const std::vector<bool>& used, rules::RuleResults& found) {
    if (model_.comments.empty() || !reports_unused_suppressions(selection_)) return;
    findings::LocationResolver locations(model_, selection_.source_root());
    constexpr std::size_t kMostBytes = Meter::kMemoryAtLeast / 2;
    std::size_t kept = 0, bytes = 0;
    const auto add = [&](Finding finding) {
      if (kept++ >= selection_.limit() || bytes > kMostBytes) {
        ++found.omitted[finding.severity];
        return;
      }
      finding.path = model_.path;
      finding.graph = model_.graph_path(GraphId::kMain);
      finding.place = locations.in_text({.line = finding.place.line, .column = 0});
      bytes += findings::memory_of(finding);
      out_.findings.push_back(std::move(finding));
    };
    for (const BadSuppression& bad : comments.bad) add(about(bad.place, bad.message, selection_));
    for (std::size_t i = 0; i < used.size(); ++i) {
      const Suppression& comment = comments.good[i];
      // Of an input that is checked in part nobody knows what it would have suppressed.
      if (used[i] || found.is_partial || !all_run(comment, selection_)) continue;
      Finding finding = unused_suppression(comment, selection_);
      finding.fixes = {{.message = "remove the comment",
                        .applicability = findings::Applicability::kSafe,
                        .edits = {RemoveComment{comment.place.line}}}};
      add(std::move(finding));
    }
  }

  const Model& model_;
  const rules::RuleSelection& selection_;
  const FilterOptions& options_;
  Meter& meter_;
  CheckResults out_;
};

}  // namespace

CheckResults filter(const Model& model, rules::RuleResults found, const rules::RuleSelection& selection,
                    const FilterOptions& options, Meter& meter) {
  return Filter(model, selection, options, meter).run(std::move(found));
}

bool all_run(const Suppression& suppression, const rules::RuleSelection& selection) {
  return selection.allows(suppression.codes);
}

bool reports_unused_suppressions(const rules::RuleSelection& selection) { return selection.allows(unused_rule()); }

Finding unused_suppression(const Suppression& suppression, const rules::RuleSelection& selection) {
  Finding finding =
      about(suppression.place,
            fmt::format("the suppression of {} suppresses nothing", quoted_for_people(suppression.rules)), selection);
  finding.fixes.push_back({.message = "remove it", .applicability = findings::Applicability::kSafe});
  return finding;
}

}  // namespace tensorlint::pipeline
