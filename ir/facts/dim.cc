#include "ir/facts/dim.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "ir/facts/dim_impl.h"

namespace tensorlint {

std::string_view to_text(Unknown reason) {
  switch (reason) {
    case Unknown::kNotTracked:
      return "not derived by this operator's inference";
    case Unknown::kDataDependent:
      return "depends on tensor contents that are not known";
    case Unknown::kTooComplex:
      return "the expression passes the cap on terms, degree or nesting";
    case Unknown::kOverflow:
      return "arithmetic leaves the range of int64";
    case Unknown::kLoopCarried:
      return "changes from iteration to iteration";
    case Unknown::kJoined:
      return "branches or iterations disagree";
    case Unknown::kUnknownOperator:
      return "the operator that makes it is not known";
    case Unknown::kBudget:
      return "the input needs more work than its size allows";
    case Unknown::kTainted:
      return "follows from something that failed";
  }
  return "";
}

DimPool::DimPool(std::shared_ptr<Meter> meter) : impl_(std::make_unique<Impl>(std::move(meter))) {}
DimPool::~DimPool() = default;

const std::shared_ptr<Meter>& DimPool::shared_meter() const { return impl_->meter; }

Dim DimPool::constant(std::int64_t value) { return impl_->constant(value); }

Dim DimPool::symbol(std::string_view name, std::int64_t lo) {
  return impl_->symbol(AtomKind::kSymbol, name, 0, 0, lo, 2);
}

Dim DimPool::fresh(std::uint64_t site, std::uint32_t slot, Unknown reason, std::int64_t lo) {
  // How many elements are not zero, say, is often 1, or 0.
  return impl_->symbol(AtomKind::kFresh, {}, site, slot, lo, reason == Unknown::kDataDependent ? lo : 2, reason);
}

Dim DimPool::add(Dim a, Dim b) { return impl_->combine(a, b, 1); }
Dim DimPool::sub(Dim a, Dim b) { return equal(a, b) ? constant(0) : impl_->combine(a, b, -1); }
Dim DimPool::mul(Dim a, Dim b) { return impl_->multiply(a, b); }

std::optional<Dim> DimPool::exact_div(Dim a, Dim b) {
  if (a.is_unknown() || b.is_unknown() || is_constant(b, 0)) return std::nullopt;
  const std::vector<Term> divisor = impl_->terms(b);
  // Leading term by degree, then by the monomial that has most of the first atoms: an order that products keep, so the
  // leading term of the remainder has to be a multiple of the divisor's.
  const auto leading = [](const std::vector<Term>& terms) {
    return *std::min_element(terms.begin(), terms.end(), [](const Term& x, const Term& y) {
      return x.monomial.degree != y.monomial.degree ? x.monomial.degree > y.monomial.degree
                                                    : x.monomial.atoms < y.monomial.atoms;
    });
  };
  Dim quotient = constant(0), remainder = a;
  for (std::size_t step = 0; step < 2 * kMaxTerms && !is_constant(remainder, 0); ++step) {
    const auto term = Impl::divided(leading(impl_->terms(remainder)), leading(divisor));
    if (!term) return std::nullopt;
    const Dim part = impl_->intern({*term});
    quotient = add(quotient, part);
    remainder = sub(remainder, mul(part, b));
    if (quotient.is_unknown() || remainder.is_unknown()) return std::nullopt;
  }
  return is_constant(remainder, 0) ? std::optional(quotient) : std::nullopt;
}

Dim DimPool::ceil_div(Dim a, Dim b) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  if (bounds(b).lo < 1) return sub(constant(0), floor_div(sub(constant(0), a), b));
  const auto x = as_constant(a), y = as_constant(b);
  if (x && y) return constant(*x / *y + (*x % *y > 0 ? 1 : 0));  // a + b - 1 may not be an int64
  if (const auto exact = impl_->exact_quotient(a, b)) return *exact;
  return floor_div(sub(add(a, b), constant(1)), b);
}

std::optional<std::int64_t> DimPool::as_constant(Dim dim) const { return impl_->as_constant(dim); }
Bounds DimPool::bounds(Dim dim) const { return impl_->bounds(dim, false); }
Bounds DimPool::bounds_from_two(Dim dim) const { return impl_->bounds(dim, true); }

bool DimPool::never_equal(Dim a, Dim b) {
  if (a == b || a.is_unknown() || b.is_unknown()) return false;
  if (as_constant(a) && as_constant(b)) return true;
  const Dim difference = sub(a, b);
  if (difference.is_unknown()) return false;
  if (!bounds(difference).contains(0)) return true;
  std::int64_t constant = 0;
  std::uint64_t divisor = 0;
  for (const Term& term : impl_->terms(difference)) {
    if (term.monomial.degree == 0) {
      constant = term.coefficient;
    } else {
      const auto bits = static_cast<std::uint64_t>(term.coefficient);
      divisor = std::gcd(divisor, term.coefficient < 0 ? ~bits + 1 : bits);
    }
  }
  const auto bits = static_cast<std::uint64_t>(constant);
  return divisor != 0 && (constant < 0 ? ~bits + 1 : bits) % divisor != 0;
}

bool DimPool::differ(Dim a, Dim b) {
  if (a == b || a.is_unknown() || b.is_unknown()) return false;
  if (never_equal(a, b)) return true;
  if (as_constant(a) || as_constant(b)) return false;
  if (is_multiple(a, b)) return true;
  const Dim difference = sub(a, b);
  if (difference.is_unknown()) return false;
  const std::vector<Dim> used = symbols(a);
  if (used != symbols(b)) return false;
  if (!bounds_from_two(difference).contains(0)) return true;
  // Written in symbols that are at least 2, minima and maxima are decided: max(T - 1, 0) is T - 1.
  if (impl_->nesting(difference) == 0 ||
      std::any_of(used.begin(), used.end(), [this](Dim symbol) { return bounds_from_two(symbol).lo < 2; }))
    return false;
  const auto usual = [this](Dim symbol) {
    return std::optional(this->symbol("2 or more: " + std::to_string(symbol.id()), 2));
  };
  const Dim decided = sub(substitute(a, usual), substitute(b, usual));
  return !decided.is_unknown() && !bounds(decided).contains(0);
}

bool DimPool::is_multiple(Dim a, Dim b) {
  if (a == b || a.is_unknown() || b.is_unknown() || as_constant(a) || as_constant(b)) return false;
  // Counts that depend on data may well be 0, or 1 and so be stretched.
  const std::vector<Dim> used = symbols(a);
  if (std::any_of(used.begin(), used.end(), [this](Dim symbol) { return bounds_from_two(symbol).lo < 2; }))
    return false;
  const auto is_factor = [this](std::optional<Dim> quotient) {
    return quotient && as_constant(*quotient).value_or(0) >= 2;
  };
  return is_factor(exact_div(a, b)) || is_factor(exact_div(b, a));
}

bool DimPool::is_named(Dim dim) const {
  if (dim.is_unknown()) return false;
  const std::vector<Dim> used = symbols(dim);
  return std::none_of(used.begin(), used.end(), [this](Dim symbol) { return fresh_site(symbol) != 0; });
}

bool DimPool::is_symbol(Dim dim) const {
  if (dim.is_unknown() || as_constant(dim)) return false;
  const std::vector<Term>& terms = impl_->interned(dim).terms;
  if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].monomial.degree != 1) return false;
  const AtomKind kind = impl_->atoms[terms[0].monomial.atoms[0]].kind;
  return kind == AtomKind::kSymbol || kind == AtomKind::kFresh;
}

std::uint64_t DimPool::fresh_site(Dim symbol) const {
  return is_symbol(symbol) ? impl_->atoms[impl_->interned(symbol).terms[0].monomial.atoms[0]].site : 0;
}

Unknown DimPool::fresh_reason(Dim symbol) const {
  return is_symbol(symbol) ? impl_->atoms[impl_->interned(symbol).terms[0].monomial.atoms[0]].reason
                           : Unknown::kNotTracked;
}

std::uint32_t DimPool::checkpoint() const {
  return static_cast<std::uint32_t>(impl_->polynomials.size()) + Dim::kFirstInterned;
}

}  // namespace tensorlint
