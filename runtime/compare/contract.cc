#include "runtime/compare/contract.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/escape.h"

namespace tensorlint::compare {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return words;
    line.remove_prefix(first);
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<double> number_of(std::string_view word) {
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(number) || number < 0) return {};
  return number;
}

std::optional<bool> truth_of(std::string_view word) {
  if (word == "yes") return true;
  if (word == "no") return false;
  return std::nullopt;
}

std::optional<DType> float_named(std::string_view word) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16})
    if (to_text(dtype) == word) return dtype;
  return std::nullopt;
}

/// One statement; false where it is not understood.
bool take(Contract& contract, const std::vector<std::string_view>& words) {
  if (words.size() == 2 && words[0] == "engine") return contract.engine = words[1], true;
  if (words.size() == 2 && words[0] == "operation") {
    const auto ulps = number_of(words[1]);
    if (ulps) contract.operation_ulps = *ulps;
    return ulps.has_value();
  }
  if (words.size() == 4 && words[0] == "function") {
    const auto ulps = number_of(words[2]), absolute = number_of(words[3]);
    if (!ulps || !absolute) return false;
    (words[1] == "other" ? contract.other_function : contract.functions[std::string(words[1])]) = {*ulps, *absolute};
    return true;
  }
  if (words.size() == 3 && words[0] == "accumulate") {
    const auto result = float_named(words[1]), sum = float_named(words[2]);
    if (result && sum) contract.accumulation[*result] = *sum;
    return result && sum;
  }
  if (words.size() >= 2 && words[0] == "tf32" && !truth_of(words[1])) {
    contract.allows_tf32 = false;
    contract.tf32_operators = {words.begin() + 1, words.end()};
    return true;
  }
  if (words.size() != 2 || (words[0] != "tf32" && words[0] != "flush")) return false;
  const auto truth = truth_of(words[1]);
  if (truth) (words[0] == "tf32" ? contract.allows_tf32 : contract.flushes_to_zero) = *truth;
  return truth.has_value();
}

}  // namespace

DType Contract::accumulates_in(DType dtype) const {
  const auto found = accumulation.find(dtype);
  if (found != accumulation.end()) return found->second;
  return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

Contract::FunctionError Contract::function(std::string_view name) const {
  const auto found = functions.find(name);
  return found == functions.end() ? other_function : found->second;
}

Result<Contract> parse_contract(std::string_view text) {
  Contract contract;
  std::size_t line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!words.empty() && !take(contract, words))
      return Error{fmt::format("line {}: the statement {} is not understood", line, quoted_for_people(words[0])), {}};
  }
  return contract;
}

}  // namespace tensorlint::compare
