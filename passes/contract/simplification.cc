#include "passes/contract/simplification.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace tensorlint::contract {
namespace {

class Simplification {
 public:
  Simplification(DimPool& pool, std::vector<Requirement>& requirements) : pool_(pool), requirements_(requirements) {}

  void run() {
    // Each round but the last finds one more number.
    for (std::size_t round = 0; round <= requirements_.size(); ++round) {
      find_numbers();
      bool changed = false;
      for (Requirement& requirement : requirements_) changed = rewrite(requirement) || changed;
      if (!changed) break;
    }
    std::erase_if(requirements_, [&](const Requirement& requirement) { return always_holds(requirement); });
    drop_repeated();
  }

 private:
  /// "sequence == 6": of these lines each extent has one at most that the others are simplified by.
  bool defines(const Requirement& requirement) const {
    if (requirement.kind != RequirementKind::kEqual || !requirement.is_exact) return false;
    return pool_.is_symbol(requirement.subject) && pool_.as_constant(requirement.equals);
  }

  void find_numbers() {
    numbers_.clear();
    for (const Requirement& requirement : requirements_)
      if (defines(requirement)) numbers_.try_emplace(requirement.subject.id(), requirement.equals);
  }

  Dim with_numbers(Dim dim) {
    const Dim result = pool_.substitute(dim, [&](Dim symbol) -> std::optional<Dim> {
      const auto number = numbers_.find(symbol.id());
      return number == numbers_.end() ? std::nullopt : std::optional(number->second);
    });
    return result.is_unknown() ? dim : result;
  }

  bool rewrite(Requirement& requirement) {
    if (defines(requirement)) return false;
    const auto before = key(requirement);
    requirement.subject = with_numbers(requirement.subject);
    if (requirement.kind == RequirementKind::kEqual) requirement.equals = with_numbers(requirement.equals);
    if (requirement.least) requirement.least = with_numbers(*requirement.least);
    if (requirement.most) requirement.most = with_numbers(*requirement.most);
    if (requirement.kind == RequirementKind::kEqual) {
      if (pool_.as_constant(requirement.subject)) std::swap(requirement.subject, requirement.equals);
      divide_equality(requirement);
    }
    if (requirement.kind == RequirementKind::kDivisor) divide_divisor(requirement);
    return key(requirement) != before;
  }

  /// The number that divides every term, as far as it shows.
  std::int64_t factor_of(Dim dim) const {
    std::int64_t factor = 0;
    const std::vector<Dim> symbols = pool_.symbols(dim);
    for (std::size_t i = 0; i <= symbols.size(); ++i) {
      const auto value = pool_.evaluate(dim, [&](Dim symbol) {
        return std::optional<std::int64_t>(i < symbols.size() && symbol == symbols[i] ? 2 : 1);
      });
      if (!value) return 1;
      factor = std::gcd(factor, *value);
    }
    return std::max<std::int64_t>(factor, 1);
  }

  void divide_equality(Requirement& requirement) {
    const auto number = pool_.as_constant(requirement.equals);
    const std::int64_t factor = factor_of(requirement.subject);
    if (!number || *number % factor != 0 || pool_.as_constant(requirement.subject)) return;
    const auto quotient = pool_.exact_div(requirement.subject, pool_.constant(factor));
    if (!quotient) return;
    requirement.subject = *quotient;
    requirement.equals = pool_.constant(*number / factor);
    // "width + 2 == 5" is "width == 3".
    const std::vector<Dim> symbols = pool_.symbols(*quotient);
    if (symbols.size() != 1) return;
    const Dim rest = pool_.sub(*quotient, symbols.front());
    if (!pool_.as_constant(rest)) return;
    requirement.subject = symbols.front();
    requirement.equals = pool_.sub(requirement.equals, rest);
  }

  void divide_divisor(Requirement& requirement) {
    const std::int64_t factor = factor_of(requirement.subject);
    const auto quotient = pool_.exact_div(requirement.subject, pool_.constant(factor));
    if (!quotient || pool_.as_constant(requirement.subject)) return;
    requirement.subject = *quotient;
    requirement.divisor /= std::gcd(factor, requirement.divisor);
  }

  /// Nothing but numbers is left of it: the working sizes satisfy it.
  bool always_holds(const Requirement& requirement) const {
    if (requirement.kind == RequirementKind::kRange) return false;
    if (requirement.kind == RequirementKind::kDivisor && requirement.divisor == 1) return true;
    if (requirement.kind == RequirementKind::kEqual && requirement.subject == requirement.equals) return true;
    return pool_.as_constant(requirement.subject) &&
           (requirement.kind != RequirementKind::kEqual || pool_.as_constant(requirement.equals));
  }

  static std::tuple<RequirementKind, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::int64_t, ValueId>
  key(const Requirement& requirement) {
    const auto id = [](const std::optional<Dim>& dim) { return dim ? dim->id() : Dim().id(); };
    return {requirement.kind,     requirement.subject.id(), requirement.equals.id(), id(requirement.least),
            id(requirement.most), requirement.divisor,      requirement.elements_of};
  }

  void drop_repeated() {
    std::vector<Requirement> kept;
    for (Requirement& requirement : requirements_) {
      const auto known = std::ranges::find(kept, key(requirement), &Simplification::key);
      if (known == kept.end()) {
        kept.push_back(std::move(requirement));
        continue;
      }
      known->is_exact = known->is_exact || requirement.is_exact;
    }
    requirements_ = std::move(kept);
  }

  DimPool& pool_;
  std::vector<Requirement>& requirements_;
  std::map<std::uint32_t, Dim> numbers_;  // by the id of a symbol
};

}  // namespace

void simplify(DimPool& pool, std::vector<Requirement>& requirements) { Simplification(pool, requirements).run(); }

}  // namespace tensorlint::contract
