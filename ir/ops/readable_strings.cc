#include "ir/ops/readable_strings.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace tensorlint::ops {
namespace {

/// Some number stands at the beginning of the text, spaces and a sign aside: std::stof and std::stoll of onnxruntime
/// take that, numpy wants a number to its end. What neither takes fails.
template <typename Number>
bool begins_with_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size()));
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number{};
  return std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc::invalid_argument;
}

}  // namespace

void note_readable(FactStore& facts, const Tensor& tensor, Fact& fact) {
  constexpr std::size_t kMostText = 1U << 16;
  std::size_t bytes = 0;
  std::uint32_t unreadable = 0;
  for (const std::string_view text : tensor.strings) {
    if ((bytes += text.size()) > kMostText) return;
    if (!begins_with_number<double>(text)) unreadable |= DTypeSet::floats().bits();
    if (!begins_with_number<std::int64_t>(text)) unreadable |= DTypeSet::integers().bits();
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
