// Strings. Source: ONNX StringNormalizer (opset 10), StringConcat, StringSplit, RegexFullMatch (20).
#include <clocale>
#include <cstring>
#include <cwctype>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <memory_resource>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <re2/re2.h>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/elementwise.h"

namespace tensorlint::runtime {
namespace {

void string_concat(Evaluation& e) {
  const BroadcastWalk walk = binary_operands(e);
  const Strings &a = walk.operand(0).strings(), &b = walk.operand(1).strings();
  Strings& to = e.result().mutable_strings();
  walk.for_each_run([&](std::size_t first, std::size_t run, std::span<const std::size_t> from) {
    for (std::size_t i = 0; i < run; ++i) {
      const std::pmr::string &begin = a[from[0] + (walk.varies(0) ? i : 0)],
                             &end = b[from[1] + (walk.varies(1) ? i : 0)];
      to[first + i].reserve(begin.size() + end.size());
      to[first + i].append(begin).append(end);
    }
  });
}

// --- StringNormalizer

/// Code points of UTF-8; a byte that is not part of a character is U+FFFD.
std::pmr::vector<std::uint32_t> code_points(std::string_view text, std::pmr::memory_resource* memory) {
  std::pmr::vector<std::uint32_t> points(memory);
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<std::uint8_t>(text[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : (lead & 0xf0U) == 0xe0      ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    std::uint32_t point = length < 2 ? lead : lead & (0x7fU >> length);
    bool valid = length != 0 && i + length <= text.size();
    for (std::size_t k = 1; valid && k < length; ++k) {
      const auto byte = static_cast<std::uint8_t>(text[i + k]);
      valid = (byte & 0xc0U) == 0x80;
      point = point << 6 | (byte & 0x3fU);
    }
    points.push_back(valid ? point : 0xfffdU);
    i += valid ? length : 1;
  }
  return points;
}

void append_utf8(std::pmr::string& text, std::uint32_t point) {
  const auto tail = [&](unsigned shift) { text += static_cast<char>(0x80U | ((point >> shift) & 0x3fU)); };
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else if (point < 0x800) {
    text += static_cast<char>(0xc0U | (point >> 6));
    tail(0);
  } else if (point < 0x10000) {
    text += static_cast<char>(0xe0U | (point >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0U | (point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

/// The case of every character by Unicode's simple mappings, in glibc's C.UTF-8.
class CaseMapping {
 public:
  CaseMapping() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_ == nullptr) throw RunFault{"the system has no locale C.UTF-8, by which letters have cases"};
  }
  CaseMapping(const CaseMapping&) = delete;
  CaseMapping& operator=(const CaseMapping&) = delete;
  ~CaseMapping() { freelocale(locale_); }

  std::pmr::string mapped(std::string_view text, bool upper, std::pmr::memory_resource* memory) const {
    std::pmr::string result(memory);
    result.reserve(text.size());
    for (const std::uint32_t point : code_points(text, memory)) {
      const auto character = static_cast<wint_t>(point);
      append_utf8(result,
                  static_cast<std::uint32_t>(upper ? towupper_l(character, locale_) : towlower_l(character, locale_)));
    }
    return result;
  }

 private:
  locale_t locale_;
};

/// Turkish, Azerbaijani and Lithuanian have cases of their own.
void check_locale(Evaluation& e) {
  const std::string_view locale = e.in().string_attribute("locale", "en_US");
  for (const std::string_view other : {"tr", "az", "lt"})
    if (locale.starts_with(other)) e.fail("the locale {} is not supported", locale);
}

/// Drops stop words, then changes case. Where nothing is left the result is one empty string.
void string_normalizer(Evaluation& e) {
  check_locale(e);
  const HostTensor& words = e.operand(0);
  const std::string_view action = e.in().string_attribute("case_change_action", "NONE");
  const bool is_case_sensitive = e.in().int_attribute("is_case_sensitive", 0) != 0;
  static const CaseMapping mapping;
  std::pmr::memory_resource* const memory = e.memory().resource();
  std::pmr::set<std::pmr::string, std::less<>> stopwords(memory);
  if (const Attribute* const given = e.in().attribute("stopwords"))
    for (const std::string_view word : given->strings)
      stopwords.insert(is_case_sensitive ? std::pmr::string(word, memory) : mapping.mapped(word, false, memory));
  std::pmr::vector<std::string_view> kept(memory);
  for (const std::string_view word : words.strings())
    if (stopwords.empty() ||
        !(is_case_sensitive ? stopwords.contains(word) : stopwords.contains(mapping.mapped(word, false, memory))))
      kept.push_back(word);
  if (kept.empty()) kept.emplace_back();
  Extents extents = words.extents();
  extents.back() = static_cast<std::int64_t>(kept.size());
  if (extents.size() == 2) extents.front() = 1;
  Strings& to = e.allocate(0, DType::kString, std::move(extents)).mutable_strings();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (action == "NONE")
      to[i] = kept[i];
    else
      to[i] = mapping.mapped(kept[i], action == "UPPER", memory);
  }
}

// --- StringSplit

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// At runs of white space, of which none begins or ends a part but the end of the last one where `most` splits are
/// made. Calls visit(i, part) for each part and returns how many there are.
template <typename Visit>
std::size_t split_at_space(std::string_view text, std::int64_t most, Visit visit) {
  for (std::size_t count = 0;; ++count) {
    const auto begin = std::ranges::find_if_not(text, is_space);
    text.remove_prefix(static_cast<std::size_t>(begin - text.begin()));
    if (text.empty()) return count;
    const bool is_last = most >= 0 && static_cast<std::int64_t>(count) == most;
    const std::size_t length =
        is_last ? text.size() : static_cast<std::size_t>(std::ranges::find_if(text, is_space) - text.begin());
    visit(count, text.substr(0, length));
    text.remove_prefix(length);
  }
}

/// In time of the text and the delimiter, which std::string_view::find takes the product of.
std::size_t find_delimiter(std::string_view text, std::string_view delimiter) {
  const void* const found = ::memmem(text.data(), text.size(), delimiter.data(), delimiter.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

template <typename Visit>
std::size_t split_at_delimiter(std::string_view text, std::string_view delimiter, std::int64_t most, Visit visit) {
  if (delimiter.empty()) return split_at_space(text, most, visit);
  for (std::size_t count = 0;; ++count) {
    const bool is_last = most >= 0 && static_cast<std::int64_t>(count) == most;
    const std::size_t at = is_last ? std::string_view::npos : find_delimiter(text, delimiter);
    visit(count, text.substr(0, at));
    if (at == std::string_view::npos) return count + 1;
    text.remove_prefix(at + delimiter.size());
  }
}

/// Parts along a new last axis, padded with empty strings; the second result counts them.
void string_split(Evaluation& e) {
  const HostTensor& texts = e.operand(0);
  const std::string_view delimiter = e.in().string_attribute("delimiter", "");
  const std::int64_t most = e.in().int_attribute("maxsplit", -1);
  std::size_t width = 0;
  for (const std::string_view text : texts.strings())
    width = std::max(width, split_at_delimiter(text, delimiter, most, [](std::size_t, std::string_view) {}));
  Extents extents = texts.extents();
  extents.push_back(static_cast<std::int64_t>(width));
  Strings& parts = e.allocate(0, DType::kString, std::move(extents)).mutable_strings();
  const std::span<std::int64_t> counts =
      e.wants(1) ? e.result(1).as_mutable<std::int64_t>() : std::span<std::int64_t>();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::size_t count =
        split_at_delimiter(texts.strings()[i], delimiter, most,
                           [&](std::size_t k, std::string_view part) { parts[i * width + k] = part; });
    if (!counts.empty()) counts[i] = static_cast<std::int64_t>(count);
  }
}

/// The compiled pattern. The last few are kept: compiling takes as long as thousands of matches, and nodes in loops and
/// functions have the same ones each time.
const re2::RE2& compiled(std::string_view pattern) {
  // RE2 takes 8 MiB unless told, and several times as much while it compiles.
  constexpr std::int64_t kMostMemory = std::int64_t{512} << 10;
  constexpr std::size_t kMostKept = 8;
  thread_local std::deque<re2::RE2> kept;
  const re2::StringPiece text(pattern.data(), pattern.size());
  for (const re2::RE2& each : kept)
    if (re2::StringPiece(each.pattern()) == text) return each;
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  if (kept.size() == kMostKept) kept.pop_front();
  return kept.emplace_back(text, options);
}

void regex_full_match(Evaluation& e) {
  constexpr std::size_t kLongestPattern = std::size_t{16} << 10;
  const std::string_view pattern = e.in().string_attribute("pattern", "");
  if (pattern.size() > kLongestPattern) e.fail("pattern has {} bytes, more than {}", pattern.size(), kLongestPattern);
  const re2::RE2& expression = compiled(pattern);
  if (!expression.ok()) e.fail("pattern is not a regular expression of RE2: {}", expression.error());
  const double automaton = expression.ProgramSize();
  double texts = 16;  // as much as compiling, about
  for (const std::string_view text : e.operand(0).strings()) texts += 1 + static_cast<double>(text.size());
  e.charge(automaton * texts);
  std::ranges::transform(
      e.operand(0).strings(), e.result().as_mutable<std::uint8_t>().begin(), [&](std::string_view text) {
        return static_cast<std::uint8_t>(re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), expression));
      });
}

const RegisterEvaluators kStrings{
    Evaluator("StringConcat").evaluate(string_concat).error(Rounding::exact()),
    Evaluator("StringNormalizer").evaluate(string_normalizer).error(Rounding::exact()),
    Evaluator("StringSplit").evaluate(string_split).error(Rounding::exact()),
    Evaluator("RegexFullMatch").evaluate(regex_full_match).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
