// Strings. Source: ONNX StringNormalizer (opset 10), StringConcat, StringSplit, RegexFullMatch (20).
#include <clocale>
#include <cwctype>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/elementwise.h"
#include "runtime/interpreter/ops/regular_expression.h"

namespace tensorlint::runtime {
namespace {

void string_concat(Evaluation& e) {
  const BroadcastWalk walk = binary_operands(e);
  const std::vector<std::string>&a = walk.operand(0).strings(), &b = walk.operand(1).strings();
  std::vector<std::string>& to = e.result().mutable_strings();
  // Strings double in a loop: what they take is not in the account of tensors.
  std::uint64_t bytes = 0;
  walk.for_each_run([&](std::size_t first, std::size_t run, std::span<const std::size_t> from) {
    for (std::size_t i = 0; i < run; ++i)
      bytes += a[from[0] + (walk.varies(0) ? i : 0)].size() + b[from[1] + (walk.varies(1) ? i : 0)].size();
    if (bytes > e.memory().limit())
      e.fail("the strings pass the limit of {} bytes (--memory-limit)", e.memory().limit());
    for (std::size_t i = 0; i < run; ++i)
      to[first + i] = a[from[0] + (walk.varies(0) ? i : 0)] + b[from[1] + (walk.varies(1) ? i : 0)];
  });
}

// --- StringNormalizer

/// The case of every character by Unicode's simple mappings, in glibc's C.UTF-8.
class CaseMapping {
 public:
  CaseMapping() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_ == nullptr) throw RunFault{"the system has no locale C.UTF-8, by which letters have cases"};
  }
  CaseMapping(const CaseMapping&) = delete;
  CaseMapping& operator=(const CaseMapping&) = delete;
  ~CaseMapping() { freelocale(locale_); }

  std::string mapped(const std::string& text, bool upper) const {
    std::string result;
    for (const std::uint32_t point : code_points(text)) {
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
  const CaseMapping mapping;
  const auto key = [&](const std::string& word) { return is_case_sensitive ? word : mapping.mapped(word, false); };
  std::set<std::string> stopwords;
  if (const Attribute* const given = e.in().attribute("stopwords"))
    for (const std::string_view word : given->strings) stopwords.insert(key(std::string(word)));
  std::vector<std::string> kept;
  for (const std::string& word : words.strings())
    if (stopwords.empty() || !stopwords.contains(key(word)))
      kept.push_back(action == "NONE" ? word : mapping.mapped(word, action == "UPPER"));
  if (kept.empty()) kept.emplace_back();
  Extents extents = words.extents();
  extents.back() = static_cast<std::int64_t>(kept.size());
  if (extents.size() == 2) extents.front() = 1;
  e.allocate(0, DType::kString, std::move(extents)).mutable_strings() = std::move(kept);
}

// --- StringSplit

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// At runs of white space, of which none begins or ends a part but the end of the last one where `most` splits are
/// made.
std::vector<std::string> split_at_space(std::string_view text, std::int64_t most) {
  std::vector<std::string> parts;
  for (;;) {
    const auto begin = std::ranges::find_if_not(text, is_space);
    text.remove_prefix(static_cast<std::size_t>(begin - text.begin()));
    if (text.empty()) return parts;
    const bool is_last = most >= 0 && static_cast<std::int64_t>(parts.size()) == most;
    const std::size_t length =
        is_last ? text.size() : static_cast<std::size_t>(std::ranges::find_if(text, is_space) - text.begin());
    parts.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
}

std::vector<std::string> split_at(std::string_view text, std::string_view delimiter, std::int64_t most) {
  if (delimiter.empty()) return split_at_space(text, most);
  std::vector<std::string> parts;
  for (;;) {
    const bool is_last = most >= 0 && static_cast<std::int64_t>(parts.size()) == most;
    const std::size_t at = is_last ? std::string_view::npos : text.find(delimiter);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + delimiter.size());
  }
}

/// Parts along a new last axis, padded with empty strings; the second result counts them.
void string_split(Evaluation& e) {
  const HostTensor& texts = e.operand(0);
  const std::string_view delimiter = e.in().string_attribute("delimiter", "");
  const std::int64_t most = e.in().int_attribute("maxsplit", -1);
  std::vector<std::vector<std::string>> all;
  std::size_t width = 0;
  for (const std::string& text : texts.strings()) {
    all.push_back(split_at(text, delimiter, most));
    width = std::max(width, all.back().size());
  }
  Extents extents = texts.extents();
  extents.push_back(static_cast<std::int64_t>(width));
  std::vector<std::string>& parts = e.allocate(0, DType::kString, std::move(extents)).mutable_strings();
  for (std::size_t i = 0; i < all.size(); ++i)
    std::ranges::move(all[i], parts.begin() + static_cast<std::ptrdiff_t>(i * width));
  if (!e.wants(1)) return;
  std::ranges::transform(all, e.result(1).as_mutable<std::int64_t>().begin(),
                         [](const auto& each) { return static_cast<std::int64_t>(each.size()); });
}

void regex_full_match(Evaluation& e) {
  const RegularExpression expression(e.in().string_attribute("pattern", ""));
  std::ranges::transform(e.operand(0).strings(), e.result().as_mutable<std::uint8_t>().begin(),
                         [&](const std::string& text) { return static_cast<std::uint8_t>(expression.matches(text)); });
}

const RegisterEvaluators kStrings{
    Evaluator("StringConcat").evaluate(string_concat).error(Rounding::exact()),
    Evaluator("StringNormalizer").evaluate(string_normalizer).error(Rounding::exact()),
    Evaluator("StringSplit").evaluate(string_split).error(Rounding::exact()),
    Evaluator("RegexFullMatch").evaluate(regex_full_match).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
