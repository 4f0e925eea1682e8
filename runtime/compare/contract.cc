#include "runtime/compare/contract.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/did_you_mean.h"
#include "base/escape.h"
#include "base/lines.h"
#include "runtime/interpreter/evaluator.h"

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

using Words = std::span<const std::string_view>;

/// Names that operators, or the functions in them, have; sorted.
std::vector<std::string_view> known_names(bool functions) {
  std::vector<std::string_view> names;
  for (const runtime::Evaluator& each : runtime::all_evaluators()) {
    const std::string_view name = functions ? each.rounding().function : each.name();
    if (!name.empty()) names.push_back(name);
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<std::string> unknown_name(std::string_view kind, std::string_view word, bool functions) {
  static const std::vector<std::string_view> kFunctions = known_names(true), kOperators = known_names(false);
  const std::vector<std::string_view>& names = functions ? kFunctions : kOperators;
  if (std::ranges::binary_search(names, word)) return std::nullopt;
  return fmt::format("there is no {} {}{}", kind, quoted_for_people(word), did_you_mean(word, names));
}

/// Each takes the words after the first one, and says what is wrong with them; "" where their form is not that which is
/// expected.
using Fault = std::optional<std::string>;

Fault take_ulps(Contract& contract, Words words) {
  const auto ulps = words.size() == 1 ? number_of(words[0]) : std::nullopt;
  if (!ulps) return "";
  contract.operation_ulps = *ulps;
  return std::nullopt;
}

Fault take_function(Contract& contract, Words words) {
  const auto ulps = words.size() == 3 ? number_of(words[1]) : std::nullopt;
  const auto absolute = words.size() == 3 ? number_of(words[2]) : std::nullopt;
  if (!ulps || !absolute) return "";
  if (words[0] == "other") return contract.other_function = {*ulps, *absolute}, std::nullopt;
  if (auto unknown = unknown_name("function", words[0], true)) return unknown;
  contract.functions[std::string(words[0])] = {*ulps, *absolute};
  return std::nullopt;
}

Fault take_accumulation(Contract& contract, Words words) {
  const auto result = words.size() == 2 ? float_named(words[0]) : std::nullopt;
  const auto sum = words.size() == 2 ? float_named(words[1]) : std::nullopt;
  if (!result || !sum) return "";
  contract.accumulation[*result] = *sum;
  return std::nullopt;
}

Fault take_operators(Words words, std::set<std::string, std::less<>>& operators) {
  for (const std::string_view word : words)
    if (auto unknown = unknown_name("operator", word, false)) return unknown;
  operators = {words.begin(), words.end()};
  return std::nullopt;
}

Fault take_tf32(Contract& contract, Words words) {
  if (words.empty()) return "";
  contract.allows_tf32 = false;
  contract.tf32_operators.clear();
  if (const auto truth = truth_of(words[0]); truth && words.size() == 1)
    return contract.allows_tf32 = *truth, std::nullopt;
  return take_operators(words, contract.tf32_operators);
}

template <std::set<std::string, std::less<>> Contract::* kMember>
Fault take_operators_or_no(Contract& contract, Words words) {
  if (words.empty()) return "";
  (contract.*kMember).clear();
  return words.size() == 1 && words[0] == "no" ? std::nullopt : take_operators(words, contract.*kMember);
}

template <bool Contract::* kMember>
Fault take_truth(Contract& contract, Words words) {
  const auto truth = words.size() == 1 ? truth_of(words[0]) : std::nullopt;
  if (!truth) return "";
  contract.*kMember = *truth;
  return std::nullopt;
}

Fault take_engine(Contract& contract, Words words) {
  if (words.size() != 1) return "";
  contract.engine = words[0];
  return std::nullopt;
}

struct Statement {
  std::string_view name, form;
  Fault (*take)(Contract&, Words);
};

constexpr Statement kStatements[] = {
    {"engine", "`engine NAME`", take_engine},
    {"operation", "`operation ULPS`, a number that is not negative", take_ulps},
    {"function", "`function NAME ULPS ROUNDOFFS`, two numbers that are not negative", take_function},
    {"accumulate", "`accumulate DTYPE DTYPE`, two of float64, float32, float16 and bfloat16", take_accumulation},
    {"tf32", "`tf32 yes`, `tf32 no` or `tf32 OPERATOR...`", take_tf32},
    {"quantized", "`quantized no` or `quantized OPERATOR...`", take_operators_or_no<&Contract::quantized_apart>},
    {"loses-nan", "`loses-nan no` or `loses-nan OPERATOR...`", take_operators_or_no<&Contract::nan_losing>},
    {"flush", "`flush yes` or `flush no`", take_truth<&Contract::flushes_to_zero>},
    {"own-constants", "`own-constants yes` or `own-constants no`", take_truth<&Contract::computes_constants>},
};

/// One statement; what is wrong with it.
Fault take(Contract& contract, Words words) {
  const auto* const statement = std::ranges::find(kStatements, words[0], &Statement::name);
  if (statement == std::end(kStatements)) {
    std::string names;
    for (const Statement& each : kStatements) names += fmt::format("{}`{}`", names.empty() ? "" : ", ", each.name);
    return fmt::format("there is no statement {}: expected one of {}", quoted_for_people(words[0]), names);
  }
  auto fault = statement->take(contract, words.subspan(1));
  if (!fault) return fault;
  return fmt::format("{}{}expected {}", *fault, fault->empty() ? "" : ": ", statement->form);
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
    const auto words = words_of(take_line(text));
    if (words.empty()) continue;
    if (const auto fault = take(contract, words)) return Error{fmt::format("line {}: {}", line, *fault), {}};
  }
  return contract;
}

}  // namespace tensorlint::compare
