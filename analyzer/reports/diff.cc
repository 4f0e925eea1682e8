#include "analyzer/reports/diff.h"
#include "base/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tensorlint::reports {
namespace {

constexpr std::ptrdiff_t kMaxChanges = 1000;
constexpr std::ptrdiff_t kContext = 3;

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) lines.push_back(take_line(text));
  return lines;
}

struct Step {
  char kind;  // ' ', '-' or '+'
  std::string_view line;
};

/// The steps from a to b, nullopt past kMaxChanges.
std::optional<std::vector<Step>> shortest(std::span<const std::string_view> a, std::span<const std::string_view> b) {
  const auto n = static_cast<std::ptrdiff_t>(a.size()), m = static_cast<std::ptrdiff_t>(b.size());
  const std::ptrdiff_t limit = std::min(n + m, kMaxChanges);
  std::vector<std::ptrdiff_t> furthest(static_cast<std::size_t>(2 * limit + 3), 0);
  const auto at = [&](std::vector<std::ptrdiff_t>& row, std::ptrdiff_t diagonal) -> std::ptrdiff_t& {
    return row[static_cast<std::size_t>(diagonal + limit + 1)];
  };
  std::vector<std::vector<std::ptrdiff_t>> rows;
  for (std::ptrdiff_t changes = 0; changes <= limit; ++changes) {
    rows.push_back(furthest);
    for (std::ptrdiff_t k = -changes; k <= changes; k += 2) {
      const bool down = k == -changes || (k != changes && at(furthest, k - 1) < at(furthest, k + 1));
      std::ptrdiff_t x = down ? at(furthest, k + 1) : at(furthest, k - 1) + 1;
      while (x < n && x - k < m && a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(x - k)]) ++x;
      at(furthest, k) = x;
      if (x < n || x - k < m) continue;
      // Walk back over the rows.
      std::vector<Step> steps;
      std::ptrdiff_t y = m;
      x = n;
      for (std::ptrdiff_t d = changes; d > 0; --d) {
        std::vector<std::ptrdiff_t>& row = rows[static_cast<std::size_t>(d)];
        const std::ptrdiff_t diagonal = x - y;
        const bool was_down = diagonal == -d || (diagonal != d && at(row, diagonal - 1) < at(row, diagonal + 1));
        const std::ptrdiff_t from = was_down ? at(row, diagonal + 1) : at(row, diagonal - 1);
        const std::ptrdiff_t from_y = from - (was_down ? diagonal + 1 : diagonal - 1);
        while (x > from + (was_down ? 0 : 1) && y > from_y + (was_down ? 1 : 0)) {
          steps.push_back({' ', a[static_cast<std::size_t>(--x)]});
          --y;
        }
        if (was_down) {
          steps.push_back({'+', b[static_cast<std::size_t>(--y)]});
        } else {
          steps.push_back({'-', a[static_cast<std::size_t>(--x)]});
        }
      }
      while (x > 0) steps.push_back({' ', a[static_cast<std::size_t>(--x)]});
      std::ranges::reverse(steps);
      return steps;
    }
  }
  return std::nullopt;
}

/// Lines before and after all changes are left out but for their context: `skipped` of them come first.
std::vector<Step> steps_between(const Lines& a, const Lines& b, std::ptrdiff_t& skipped) {
  std::size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  const auto middle_a = std::span(a).subspan(head, a.size() - head - tail),
             middle_b = std::span(b).subspan(head, b.size() - head - tail);
  std::vector<Step> steps;
  const std::size_t first = head - std::min<std::size_t>(head, kContext), end = a.size() - tail + kContext;
  skipped = static_cast<std::ptrdiff_t>(first);
  for (std::size_t i = first; i < head; ++i) steps.push_back({' ', a[i]});
  if (const auto middle = shortest(middle_a, middle_b)) {
    steps.insert(steps.end(), middle->begin(), middle->end());
  } else {
    for (const std::string_view line : middle_a) steps.push_back({'-', line});
    for (const std::string_view line : middle_b) steps.push_back({'+', line});
  }
  for (std::size_t i = a.size() - tail; i < std::min(a.size(), end); ++i) steps.push_back({' ', a[i]});
  return steps;
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, std::string_view before_name,
                         std::string_view after_name) {
  if (before == after) return {};
  const Lines a = lines_of(before), b = lines_of(after);
  std::ptrdiff_t skipped = 0;
  const std::vector<Step> steps = steps_between(a, b, skipped);
  const auto count = static_cast<std::ptrdiff_t>(steps.size());
  std::string text = fmt::format("--- {}\n+++ {}\n", before_name, after_name);
  std::ptrdiff_t line_a = skipped + 1, line_b = skipped + 1, done = 0;
  while (true) {
    std::ptrdiff_t change = done;
    while (change < count && steps[static_cast<std::size_t>(change)].kind == ' ') ++change;
    if (change == count) return text;
    const std::ptrdiff_t first = std::max(done, change - kContext);
    // A hunk ends where the next change is further away than both contexts.
    std::ptrdiff_t last = change;
    for (std::ptrdiff_t i = change; i < count && i <= last + 2 * kContext + 1; ++i)
      if (steps[static_cast<std::size_t>(i)].kind != ' ') last = i;
    const std::ptrdiff_t end = std::min(count, last + kContext + 1);
    line_a += first - done;
    line_b += first - done;
    std::ptrdiff_t length_a = 0, length_b = 0;
    std::string body;
    for (std::ptrdiff_t i = first; i < end; ++i) {
      const Step& step = steps[static_cast<std::size_t>(i)];
      if (step.kind != '+') ++length_a;
      if (step.kind != '-') ++length_b;
      body += fmt::format("{}{}\n", step.kind, step.line);
    }
    text += fmt::format("@@ -{},{} +{},{} @@\n{}", length_a == 0 ? line_a - 1 : line_a, length_a,
                        length_b == 0 ? line_b - 1 : line_b, length_b, body);
    line_a += length_a;
    line_b += length_b;
    done = end;
  }
}

}  // namespace tensorlint::reports
