#include "ir/facts/dim_names.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "ir/facts/dim_impl.h"

namespace tensorlint {
namespace {

constexpr std::size_t kMaxName = 256;  // of a formula; exporters' are below 100 characters
constexpr int kMaxDepth = 32;          // of its parentheses

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == ':'; }

/// A quotient that is still to be rounded: numerator / denominator.
struct Ratio {
  Dim numerator, denominator;
};

/// Recursive descent over one name; nullopt wherever the text is not a formula, or passes a cap of the pool.
class DimFormula {
 public:
  DimFormula(DimPool& pool, std::string_view text) : pool_(pool), text_(text) {}

  std::optional<Dim> read() {
    const auto dim = sum();
    skip_blanks();
    return at_ == text_.size() ? dim : std::nullopt;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  /// A binary minus; without a blank on both sides it is part of a name such as "batch-size" or "dim-0".
  bool take_minus() {
    const std::size_t before = at_;
    if (!take("-")) return false;
    const std::size_t sign = at_ - 1;
    const bool apart = sign > 0 && text_[sign - 1] == ' ' && at_ < text_.size() && text_[at_] == ' ';
    if (!apart) at_ = before;
    return apart;
  }

  static std::optional<Dim> known(Dim dim) { return dim.is_unknown() ? std::nullopt : std::optional(dim); }

  std::optional<Dim> sum() {
    auto total = product();
    while (total) {
      const bool plus = take("+");
      if (!plus && !take_minus()) break;
      const auto next = product();
      if (!next) return std::nullopt;
      total = known(plus ? pool_.add(*total, *next) : pool_.sub(*total, *next));
    }
    return total;
  }

  std::optional<Dim> product() {
    if (take("-")) {
      const auto rest = product();
      return rest ? known(pool_.sub(pool_.constant(0), *rest)) : std::nullopt;
    }
    auto result = power();
    while (result) {
      skip_blanks();
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        at_ += 2;
        const auto divisor = power();
        result = divisor ? known(pool_.floor_div(*result, *divisor)) : std::nullopt;
      } else if (rest.starts_with("*") && !rest.starts_with("**")) {
        ++at_;
        const auto factor = power();
        result = factor ? known(pool_.mul(*result, *factor)) : std::nullopt;
      } else if (rest.starts_with("%")) {
        ++at_;
        const auto divisor = power();
        result = divisor ? known(pool_.mod(*result, *divisor)) : std::nullopt;
      } else {
        break;
      }
    }
    return result;
  }

  std::optional<Dim> power() {
    const auto base = atom();
    if (!base || !take("**")) return base;
    const auto exponent = atom();
    const auto times = exponent ? pool_.as_constant(*exponent) : std::nullopt;
    if (!times || *times < 1 || *times > 4) return std::nullopt;
    std::optional<Dim> result = base;
    for (std::int64_t i = 1; i < *times && result; ++i) result = known(pool_.mul(*result, *base));
    return result;
  }

  std::optional<Dim> atom() {
    skip_blanks();
    if (at_ >= text_.size() || depth_ >= kMaxDepth) return std::nullopt;
    if (is_digit(text_[at_])) return number();
    ++depth_;
    std::optional<Dim> result;
    if (take("(")) {
      result = sum();
      if (!take(")")) result = std::nullopt;
    } else if (is_letter(text_[at_])) {
      result = name_or_call();
    }
    --depth_;
    return result;
  }

  std::optional<Dim> number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    // "2d" and "1.5" are no numbers.
    if (at_ < text_.size() && is_name_part(text_[at_])) return std::nullopt;
    return pool_.constant(value);
  }

  std::optional<Dim> name_or_call() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_part(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name == "None") return std::nullopt;  // what Python writes for an extent that is not known
    if (at_ < text_.size() && text_[at_] == '(') return call(name);
    return pool_.symbol(name);
  }

  std::optional<Dim> call(std::string_view name) {
    take("(");
    if (name == "floor" || name == "ceiling" || name == "ceil") {
      const auto ratio = quotient();
      if (!ratio || !take(")")) return std::nullopt;
      return known(name == "floor" ? pool_.floor_div(ratio->numerator, ratio->denominator)
                                   : pool_.ceil_div(ratio->numerator, ratio->denominator));
    }
    using Combine = Dim (DimPool::*)(Dim, Dim);
    Combine combine = nullptr;
    bool many = false;
    if (name == "Max" || name == "max") combine = &DimPool::max, many = true;
    if (name == "Min" || name == "min") combine = &DimPool::min, many = true;
    if (name == "Mod" || name == "mod" || name == "PythonMod") combine = &DimPool::mod;
    if (name == "FloorDiv" || name == "CleanDiv") combine = &DimPool::floor_div;
    if (name == "CeilDiv") combine = &DimPool::ceil_div;
    if (combine == nullptr) return std::nullopt;
    auto result = sum();
    int operands = 1;
    while (result && take(",")) {
      const auto next = sum();
      result = next ? known((pool_.*combine)(*result, *next)) : std::nullopt;
      ++operands;
    }
    return take(")") && operands >= 2 && (many || operands == 2) ? result : std::nullopt;
  }

  /// What sympy writes in floor() and ceiling(): a sum over terms each of which may be divided by a number, such as
  /// "h/2 - 1/2", brought to one denominator.
  std::optional<Ratio> quotient() {
    Ratio total{pool_.constant(0), pool_.constant(1)};
    bool minus = take("-");
    do {
      const auto term = product();
      if (!term) return std::nullopt;
      Ratio part{minus ? pool_.sub(pool_.constant(0), *term) : *term, pool_.constant(1)};
      skip_blanks();
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("/") && !rest.starts_with("//")) {
        ++at_;
        const auto divisor = power();
        if (!divisor || pool_.bounds(*divisor).lo < 1) return std::nullopt;
        part.denominator = *divisor;
      }
      const Dim numerator =
          part.denominator == total.denominator
              ? pool_.add(total.numerator, part.numerator)
              : pool_.add(pool_.mul(total.numerator, part.denominator), pool_.mul(part.numerator, total.denominator));
      const Dim denominator =
          part.denominator == total.denominator ? total.denominator : pool_.mul(total.denominator, part.denominator);
      if (numerator.is_unknown() || denominator.is_unknown()) return std::nullopt;
      total = {numerator, denominator};
      if (take("+")) {
        minus = false;
      } else if (take_minus()) {
        minus = true;
      } else {
        return total;
      }
    } while (true);
  }

  DimPool& pool_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

bool is_cut_off(std::string_view text) { return text.size() >= kMaxText && text.ends_with("..."); }

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return is_name_part(c) || c == '?'; });
}

Dim dim_of_name(DimPool& pool, std::string_view name) {
  if (is_plain_name(name) || name.size() > kMaxName) return pool.symbol(name);
  const auto dim = DimFormula(pool, name).read();
  // A formula that is never above 0 is not an extent.
  return dim && !pool.as_constant(*dim) && pool.bounds(*dim).hi > 0 ? *dim : pool.symbol(name);
}

}  // namespace tensorlint
