#include "ir/ops/einsum.h"

#include <array>
#include <utility>

namespace tensorlint::ops {

std::optional<EinsumEquation> parse_einsum(std::string_view text, Message& error) {
  EinsumEquation equation;
  EinsumTerm term;
  bool after_arrow = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == ' ') continue;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      term.letters += c;
    } else if (text.substr(i, 3) == "...") {
      if (term.has_ellipsis) return error = {"has two ellipses in one term"}, std::nullopt;
      term.has_ellipsis = true;
      term.ellipsis = term.letters.size();
      i += 2;
    } else if (c == ',' || text.substr(i, 2) == "->") {
      if (after_arrow && i < text.size())
        return error = c == ',' ? Message("has a comma after `->`") : Message("has `->` twice"), std::nullopt;
      (after_arrow ? equation.result.emplace() : equation.terms.emplace_back()) = std::move(term);
      term = {};
      if (c == '-') {
        after_arrow = true;
        ++i;
        equation.result.emplace();
      }
    } else {
      const bool is_printable = c >= ' ' && c <= '~';
      error =
          is_printable ? Message("has `{}` at position {}", c, i) : Message("has an unexpected byte at position {}", i);
      return std::nullopt;
    }
  }
  return equation;
}

EinsumTerm implied_result(const std::vector<EinsumTerm>& terms) {
  EinsumTerm result;
  std::array<int, 128> uses{};  // letters are ASCII
  for (const EinsumTerm& term : terms) {
    for (const char letter : term.letters) ++uses[static_cast<std::size_t>(letter)];
    result.has_ellipsis |= term.has_ellipsis;
  }
  for (std::size_t letter = 0; letter < uses.size(); ++letter)
    if (uses[letter] == 1) result.letters += static_cast<char>(letter);
  return result;
}

std::vector<int> einsum_labels(const EinsumTerm& term, std::size_t rank) {
  std::vector<int> labels(term.letters.begin(), term.letters.end());
  if (!term.has_ellipsis) return labels;
  const auto covered = static_cast<int>(rank - term.letters.size());
  std::vector<int> middle;
  for (int i = 0; i < covered; ++i) middle.push_back(i - covered);
  labels.insert(labels.begin() + static_cast<std::ptrdiff_t>(term.ellipsis), middle.begin(), middle.end());
  return labels;
}

}  // namespace tensorlint::ops
