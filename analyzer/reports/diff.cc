#include "analyzer/reports/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/escape.h"
#include "base/hash.h"

namespace tensorlint::reports {
namespace {

constexpr std::ptrdiff_t kMaxChanges = 1000;
constexpr std::ptrdiff_t kContext = 3;

/// A line in a text for people, who do not read more of it.
constexpr std::size_t kShownOfLine = 2000;

using Lines = std::vector<std::uint64_t>;  ///< hashes

template <typename Use>
void for_each_line(const TextSource& text, const Use& use) {
  std::string begun;
  text([&](std::string_view piece) {
    for (std::size_t end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
      if (begun.empty()) {
        use(piece.substr(0, end));
      } else {
        use(begun.append(piece.substr(0, end)));
        begun.clear();
      }
      piece.remove_prefix(end + 1);
    }
    begun += piece;
  });
  if (!begun.empty()) use(begun);
}

Lines lines_of(const TextSource& text) {
  Lines lines;
  for_each_line(text, [&](std::string_view line) { lines.push_back(table_hash(line)); });
  return lines;
}

struct Step {
  char kind;           // ' ', '-' or '+'
  std::uint32_t line;  // of a, of b where it is added
};

/// The steps from a to b, nullopt past kMaxChanges.
std::optional<std::vector<Step>> shortest(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  const auto n = static_cast<std::ptrdiff_t>(a.size()), m = static_cast<std::ptrdiff_t>(b.size());
  const std::ptrdiff_t limit = std::min(n + m, kMaxChanges);
  std::vector<std::ptrdiff_t> furthest(static_cast<std::size_t>(2 * limit + 3), 0);
  const auto at = [&](std::vector<std::ptrdiff_t>& row, std::ptrdiff_t diagonal) -> std::ptrdiff_t& {
    return row[row.size() / 2 + static_cast<std::size_t>(diagonal)];
  };
  std::vector<std::vector<std::ptrdiff_t>> rows;  // of each, the diagonals that so many changes reach, and one more
  for (std::ptrdiff_t changes = 0; changes <= limit; ++changes) {
    const auto middle = furthest.begin() + limit + 1;
    rows.emplace_back(middle - changes - 1, middle + changes + 2);
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
          steps.push_back({' ', static_cast<std::uint32_t>(--x)});
          --y;
        }
        if (was_down) {
          steps.push_back({'+', static_cast<std::uint32_t>(--y)});
        } else {
          steps.push_back({'-', static_cast<std::uint32_t>(--x)});
        }
      }
      while (x > 0) steps.push_back({' ', static_cast<std::uint32_t>(--x)});
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
  if (head == a.size() && head == b.size()) return {};
  const auto middle_a = std::span(a).subspan(head, a.size() - head - tail),
             middle_b = std::span(b).subspan(head, b.size() - head - tail);
  std::vector<Step> steps;
  const auto add = [&](char kind, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) steps.push_back({kind, static_cast<std::uint32_t>(i)});
  };
  const std::size_t first = head - std::min<std::size_t>(head, kContext), end = a.size() - tail + kContext;
  skipped = static_cast<std::ptrdiff_t>(first);
  add(' ', first, head);
  if (auto middle = shortest(middle_a, middle_b)) {
    for (Step& step : *middle) step.line += static_cast<std::uint32_t>(head);
    steps.insert(steps.end(), middle->begin(), middle->end());
  } else {
    add('-', head, a.size() - tail);
    add('+', head, b.size() - tail);
  }
  add(' ', a.size() - tail, std::min(a.size(), end));
  return steps;
}

/// Of one of the texts, the lines that are asked for in ascending order, as people see them: the first kMostOfDiff.
class ShownLines {
 public:
  void ask_for(const Step& step) { asked_.push_back(step); }
  void read(const TextSource& source) {
    std::uint32_t line = 0;
    for_each_line(source, [&](std::string_view text) {
      const std::size_t next = ends_.size();
      if (next == asked_.size() || asked_[next].line != line++ || text_.size() > kMostOfDiff) return;
      text_ += escape_for_display(fmt::format("{}{}", asked_[next].kind, text), kShownOfLine);
      ends_.push_back(text_.size());
    });
  }
  /// Null past those.
  std::optional<std::string_view> take() {
    if (taken_ == ends_.size()) return std::nullopt;
    const std::size_t begin = taken_ == 0 ? 0 : ends_[taken_ - 1];
    return std::string_view(text_).substr(begin, ends_[taken_++] - begin);
  }

 private:
  std::vector<Step> asked_;
  std::string text_;
  std::vector<std::size_t> ends_;
  std::size_t taken_ = 0;
};

struct Hunk {
  std::ptrdiff_t first, end;  // steps
  std::ptrdiff_t line_a, length_a, line_b, length_b;
};

std::vector<Hunk> hunks_of(std::span<const Step> steps, std::ptrdiff_t skipped) {
  std::vector<Hunk> hunks;
  const auto count = static_cast<std::ptrdiff_t>(steps.size());
  std::ptrdiff_t line_a = skipped + 1, line_b = skipped + 1, done = 0;
  while (true) {
    std::ptrdiff_t change = done;
    while (change < count && steps[static_cast<std::size_t>(change)].kind == ' ') ++change;
    if (change == count) return hunks;
    const std::ptrdiff_t first = std::max(done, change - kContext);
    // A hunk ends where the next change is further away than both contexts.
    std::ptrdiff_t last = change;
    for (std::ptrdiff_t i = change; i < count && i <= last + 2 * kContext + 1; ++i)
      if (steps[static_cast<std::size_t>(i)].kind != ' ') last = i;
    Hunk& hunk = hunks.emplace_back(first, std::min(count, last + kContext + 1));
    hunk.line_a = line_a += first - done;
    hunk.line_b = line_b += first - done;
    for (std::ptrdiff_t i = first; i < hunk.end; ++i) {
      if (steps[static_cast<std::size_t>(i)].kind != '+') ++hunk.length_a;
      if (steps[static_cast<std::size_t>(i)].kind != '-') ++hunk.length_b;
    }
    line_a += hunk.length_a;
    line_b += hunk.length_b;
    done = hunk.end;
  }
}

}  // namespace

void unified_diff(const TextSource& before, const TextSource& after, std::string_view before_name,
                  std::string_view after_name, const TextSink& out) {
  std::ptrdiff_t skipped = 0;
  const std::vector<Step> steps = steps_between(lines_of(before), lines_of(after), skipped);
  if (steps.empty()) return;
  const std::vector<Hunk> hunks = hunks_of(steps, skipped);
  ShownLines of_before, of_after;
  const auto lines_at = [&](std::ptrdiff_t i) -> ShownLines& {
    return steps[static_cast<std::size_t>(i)].kind == '+' ? of_after : of_before;
  };
  for (const Hunk& hunk : hunks)
    for (std::ptrdiff_t i = hunk.first; i < hunk.end; ++i) lines_at(i).ask_for(steps[static_cast<std::size_t>(i)]);
  of_before.read(before);
  of_after.read(after);

  std::size_t left = kMostOfDiff;
  // False past what is shown.
  const auto put = [&](std::optional<std::string_view> line) {
    if (!line || line->size() >= left) return false;
    left -= line->size() + 1;
    out(*line);
    out("\n");
    return true;
  };
  const auto put_all = [&] {
    if (!put(escape_for_display(fmt::format("--- {}", before_name), kShownOfLine)) ||
        !put(escape_for_display(fmt::format("+++ {}", after_name), kShownOfLine)))
      return false;
    for (const Hunk& hunk : hunks) {
      if (!put(fmt::format("@@ -{},{} +{},{} @@", hunk.length_a == 0 ? hunk.line_a - 1 : hunk.line_a, hunk.length_a,
                           hunk.length_b == 0 ? hunk.line_b - 1 : hunk.line_b, hunk.length_b)))
        return false;
      for (std::ptrdiff_t i = hunk.first; i < hunk.end; ++i)
        if (!put(lines_at(i).take())) return false;
    }
    return true;
  };
  if (!put_all()) out(fmt::format("(the diff continues beyond {} MiB of text)\n", kMostOfDiff >> 20));
}

}  // namespace tensorlint::reports
