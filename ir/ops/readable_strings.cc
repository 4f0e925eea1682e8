#include "ir/ops/readable_strings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/letters.h"

namespace tensorlint::ops {
namespace {

/// Some number is at the beginning of the text, spaces and a sign aside: std::stof and std::stoll of onnxruntime take
/// that, numpy needs a number up to its end. What neither takes fails.
struct Beginning {
  bool is_float = false, is_integer = false;
};
Beginning beginning_of(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size()));
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto is_digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  const auto is_word = [&](std::string_view word) {
    return text.size() >= word.size() && lower_case(text.substr(0, word.size())) == word;
  };
  const bool is_integer = is_digit(0);
  return {is_integer || (text.starts_with('.') && is_digit(1)) || is_word("inf") || is_word("nan"), is_integer};
}

}  // namespace

void note_readable(FactStore& facts, const Tensor& tensor, Fact& fact) {
  constexpr std::size_t kMostText = 1U << 16;
  std::size_t bytes = 0;
  std::uint32_t unreadable = 0;
  for (const std::string_view text : tensor.strings) {
    if ((bytes += text.size()) > kMostText) return;
    const Beginning beginning = beginning_of(text);
    if (!beginning.is_float) unreadable |= DTypeSet::floats().bits();
    if (!beginning.is_integer) unreadable |= DTypeSet::integers().bits();
  }
  if (unreadable == 0) return;
  Fact read;
  read.kind = ValueKind::kTensor;
  read.dtypes = DTypeSet::from_bits(DTypeSet::all().bits() & ~unreadable);
  fact.element = facts.intern(read);
}

DTypeSet readable_dtypes(const FactStore& facts, const Fact& strings) {
  const bool known = strings.dtypes == DTypeSet(DType::kString) && strings.element != FactId::kTop;
  return known ? facts.fact(strings.element).dtypes : DTypeSet::all();
}

}  // namespace tensorlint::ops
