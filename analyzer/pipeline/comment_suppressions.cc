#include "analyzer/pipeline/comment_suppressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace tensorlint::pipeline {
namespace {

using findings::RuleNames;
using findings::Suppression;

constexpr std::string_view kIgnore = "ignore";

/// Line that each comment is about: its own, or the next one that is no comment.
std::vector<std::uint32_t> lines_meant(std::span<const Comment> comments) {
  std::vector<std::uint32_t> lines(comments.size());
  for (std::size_t i = comments.size(); i-- > 0;) {
    const bool goes_on = i + 1 < comments.size() && comments[i + 1].line == comments[i].line + 1;
    lines[i] = !comments[i].alone ? comments[i].line : goes_on ? lines[i + 1] : comments[i].line + 1;
  }
  return lines;
}

/// Bad suppressions for which a similar name is looked for, which costs more than to read them.
constexpr std::size_t kMostWithSimilar = 64;

/// Fills in rules and reason; returns what is wrong.
std::optional<std::string> parse(std::string_view text, const RuleNames& names, bool with_similar, Suppression& out) {
  if (!text.starts_with(kIgnore)) return "a suppression is written `# tensorlint: ignore[rule] reason`";
  text = trimmed(text.substr(kIgnore.size()));
  const std::size_t close = text.find(']');
  if (!text.starts_with('[') || close == std::string_view::npos)
    return "a suppression names its rules: `# tensorlint: ignore[rule] reason`";
  std::string_view rules = text.substr(1, close - 1);
  out.rules = trimmed(rules);
  out.reason = trimmed(text.substr(close + 1));
  while (!rules.empty()) {
    const std::size_t comma = rules.find(',');
    const std::string_view rule = trimmed(rules.substr(0, comma));
    const findings::RuleCodes& codes = names.codes_of(rule);
    if (codes.empty()) return names.unknown(rule, with_similar);
    out.codes |= codes;
    rules.remove_prefix(comma == std::string_view::npos ? rules.size() : comma + 1);
  }
  if (out.codes.empty()) return "a suppression names its rules: `# tensorlint: ignore[rule] reason`";
  if (out.reason.empty())
    return fmt::format("the suppression of `{}` gives no reason, so it does not count", out.rules);
  return std::nullopt;
}

}  // namespace

CommentSuppressions suppressions_of(const Model& model, const RuleNames& names) {
  CommentSuppressions found;
  const std::vector<std::uint32_t> lines = lines_meant(model.comments);
  found.good.reserve(static_cast<std::size_t>(std::ranges::count_if(
      model.comments, [](const Comment& comment) { return comment.text.starts_with(Comment::kDirective); })));
  for (std::size_t i = 0; i < model.comments.size(); ++i) {
    const Comment& comment = model.comments[i];
    if (!comment.text.starts_with(Comment::kDirective)) continue;
    Suppression suppression;
    suppression.place.line = comment.line;
    suppression.line = lines[i];
    suppression.model_path = model.path;
    if (auto wrong = parse(trimmed(comment.text.substr(Comment::kDirective.size())), names,
                           found.bad.size() < kMostWithSimilar, suppression)) {
      found.bad.push_back({std::move(suppression.place), std::move(*wrong)});
    } else {
      found.good.push_back(std::move(suppression));
    }
  }
  return found;
}

}  // namespace tensorlint::pipeline
