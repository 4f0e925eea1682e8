// Operations whose results are atoms: floor division, modulo, minimum, maximum, broadcast. Each first brings its
// operands into a canonical form, so that values that are equal more often have one id, and texts stay short.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "ir/facts/dim_impl.h"

namespace tensorlint {
namespace {

/// Operands of nested minima (maxima, broadcasts) that are compared pair by pair.
constexpr std::size_t kMaxLeaves = 16;

std::int64_t divide_end(std::int64_t end, std::int64_t divisor) {
  return is_infinite(end) ? end : checked::floor_div(end, divisor).value_or(end);
}

/// Of floor(a / b) with b >= 1; the whole line otherwise.
Bounds quotient_of(Bounds a, Bounds b) {
  if (b.lo < 1) return {kMin, kMax};
  const std::int64_t lo = a.lo >= 0 ? (b.hi == kMax ? 0 : divide_end(a.lo, b.hi)) : divide_end(a.lo, b.lo);
  const std::int64_t hi = a.hi >= 0 ? divide_end(a.hi, b.lo) : (b.hi == kMax ? -1 : divide_end(a.hi, b.hi));
  return {lo, hi};
}

Bounds remainder_of(Bounds a, Bounds b) {
  if (b.lo < 1) return {kMin, kMax};
  const std::int64_t top = b.hi == kMax ? kMax : b.hi - 1;
  return {0, a.lo >= 0 ? std::min(top, a.hi) : top};
}

Bounds of_kind(AtomKind kind, Bounds x, Bounds y) {
  switch (kind) {
    case AtomKind::kMin:
      return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    case AtomKind::kMax:
      return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    default:
      return {std::min(x.lo, y.lo), std::max(x.hi, y.hi)};
  }
}

/// True where no legal value is 1, so that broadcasting cannot stretch it.
bool never_one(Bounds bounds) { return bounds.lo > 1 || bounds.hi < 1; }

}  // namespace

const Atom* DimPool::Impl::bare_atom(Dim dim, AtomKind kind) const {
  if (dim.is_unknown() || as_constant(dim)) return nullptr;
  const std::vector<Term>& terms = interned(dim).terms;
  if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].monomial.degree != 1) return nullptr;
  const Atom& atom = atoms[terms[0].monomial.atoms[0]];
  return atom.kind == kind ? &atom : nullptr;
}

std::pair<Dim, Dim> DimPool::Impl::divide_out(Dim a, Dim b) {
  const std::pair<Dim, Dim> nothing{constant(0), a};
  const std::vector<Term> divisor = terms(b);
  if (divisor.size() != 1) return nothing;
  std::vector<Term> quotient, rest;
  for (const Term& term : terms(a)) {
    if (const std::optional<Term> part = divided(term, divisor[0])) {
      quotient.push_back(*part);
      continue;
    }
    const bool constants = term.monomial.degree == 0 && divisor[0].monomial.degree == 0;
    const auto whole = constants ? checked::floor_div(term.coefficient, divisor[0].coefficient) : std::nullopt;
    const auto left = constants ? checked::floor_mod(term.coefficient, divisor[0].coefficient) : std::nullopt;
    if (whole && *whole != 0) quotient.push_back({Monomial{}, *whole});
    rest.push_back(left ? Term{Monomial{}, *left} : term);
  }
  std::sort(quotient.begin(), quotient.end(), [](const Term& x, const Term& y) { return x.monomial < y.monomial; });
  return {intern(std::move(quotient)), intern(std::move(rest))};
}

std::pair<Dim, std::int64_t> DimPool::Impl::split_constant(Dim dim) {
  std::vector<Term> rest = terms(dim);
  // The constant term sorts first.
  if (rest.empty() || rest[0].monomial.degree != 0) return {dim, 0};
  const std::int64_t value = rest[0].coefficient;
  rest.erase(rest.begin());
  return {intern(std::move(rest)), value};
}

/// floor((g*p + r) / (g*d)) = floor((p + floor(r/g)) / d): the greatest such g over its non-constant terms and `b`.
std::pair<Dim, Dim> DimPool::Impl::cancel(Dim a, Dim b) {
  const auto divisor = as_constant(b);
  if (!divisor || *divisor < 2) return {a, b};
  std::int64_t common = *divisor;
  std::vector<Term> reduced = terms(a);
  for (const Term& term : reduced)
    if (term.monomial.degree > 0 && term.coefficient != kMin) common = std::gcd(common, term.coefficient);
  for (const Term& term : reduced)
    if (term.coefficient == kMin) common = 1;
  if (common == 1) return {a, b};
  for (Term& term : reduced) term.coefficient = *checked::floor_div(term.coefficient, common);
  std::erase_if(reduced, [](const Term& term) { return term.coefficient == 0; });
  return {intern(std::move(reduced)), constant(*divisor / common)};
}

Dim DimPool::floor_div(Dim a, Dim b) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  if (bounds(b).contains(0)) return Dim(Unknown::kDataDependent);
  const auto x = as_constant(a), y = as_constant(b);
  if (x && y) {
    const auto quotient = checked::floor_div(*x, *y);
    return quotient ? constant(*quotient) : Dim(Unknown::kOverflow);
  }
  // floor((q*b + rest) / b) = q + floor(rest/b).
  const auto [quotient, rest] = impl_->divide_out(a, b);
  if (is_constant(rest, 0)) return quotient;
  const Dim whole = rest.is_unknown() ? a : rest;
  const Dim fraction = impl_->floor_of_rest(*this, whole, b);
  return whole == a ? fraction : add(quotient, fraction);
}

Dim DimPool::Impl::floor_of_rest(DimPool& pool, Dim a, Dim b) {
  const auto [numerator, denominator] = cancel(a, b);
  const Bounds range = quotient_of(bounds(numerator, false), bounds(denominator, false));
  if (range.lo == range.hi) return constant(range.lo);
  // floor((floor(x/c) + k) / d) = floor((x + k*c) / (c*d)) for c, d >= 1.
  const auto [inner, k] = split_constant(numerator);
  const Atom* division = bare_atom(inner, AtomKind::kFloorDiv);
  if (division != nullptr && bounds(division->b, false).lo >= 1 && bounds(denominator, false).lo >= 1) {
    const Dim shift = multiply(constant(k), division->b), divisor = multiply(division->b, denominator);
    const Dim joined = combine(division->a, shift, 1);
    if (!joined.is_unknown() && !divisor.is_unknown()) return pool.floor_div(joined, divisor);
  }
  return opaque(AtomKind::kFloorDiv, numerator, denominator, range,
                quotient_of(bounds(numerator, true), bounds(denominator, true)));
}

Dim DimPool::mod(Dim a, Dim b) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  if (bounds(b).contains(0)) return Dim(Unknown::kDataDependent);
  const auto x = as_constant(a), y = as_constant(b);
  if (x && y) {
    const auto remainder = checked::floor_mod(*x, *y);
    return remainder ? constant(*remainder) : Dim(Unknown::kOverflow);
  }
  const Dim left = impl_->divide_out(a, b).second, rest = left.is_unknown() ? a : left;
  if (is_constant(rest, 0)) return rest;
  if (bounds(rest).lo >= 0 && bounds(rest).hi < bounds(b).lo) return rest;
  // mod(mod(x, c) + k, b) = mod(x + k, b) where b divides c.
  const auto [inner, k] = impl_->split_constant(rest);
  if (const Atom* modulo = impl_->bare_atom(inner, AtomKind::kMod); modulo != nullptr && exact_div(modulo->b, b)) {
    const Dim shifted = add(modulo->a, constant(k));
    if (!shifted.is_unknown()) return mod(shifted, b);
  }
  return impl_->opaque(AtomKind::kMod, rest, b, remainder_of(bounds(rest), bounds(b)),
                       remainder_of(bounds_from_two(rest), bounds_from_two(b)));
}

std::vector<Dim> DimPool::Impl::leaves(AtomKind kind, Dim a, Dim b) const {
  std::vector<Dim> found, pending{b, a}, seen;
  while (!pending.empty() && seen.size() < 4 * kMaxLeaves) {
    const Dim next = pending.back();
    pending.pop_back();
    charge(4 + seen.size());
    if (std::find(seen.begin(), seen.end(), next) != seen.end()) continue;
    seen.push_back(next);
    const Atom* nested = bare_atom(next, kind);
    if (nested == nullptr) {
      found.push_back(next);
    } else {
      pending.insert(pending.end(), {nested->b, nested->a});
    }
  }
  if (!pending.empty() || found.size() > kMaxLeaves) found = {a, b};
  std::sort(found.begin(), found.end(), [](Dim x, Dim y) { return x.id() < y.id(); });
  return found;
}

Dim DimPool::Impl::fold(AtomKind kind, std::vector<Dim> parts) {
  // In pairs: a chain would soon pass the cap on nesting.
  while (parts.size() > 1) {
    std::vector<Dim> joined;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
      const Dim a = parts[i], b = parts[i + 1];
      joined.push_back(opaque(kind, a, b, of_kind(kind, bounds(a, false), bounds(b, false)),
                              of_kind(kind, bounds(a, true), bounds(b, true))));
      if (joined.back().is_unknown()) return joined.back();
    }
    if (parts.size() % 2 == 1) joined.push_back(parts.back());
    parts = std::move(joined);
  }
  return parts.front();
}

Dim DimPool::Impl::extremum(DimPool& pool, AtomKind kind, Dim a, Dim b) {
  const AtomKind opposite = kind == AtomKind::kMin ? AtomKind::kMax : AtomKind::kMin;
  std::vector<Dim> parts = leaves(kind, a, b);
  /// `x` decides whatever `y` is: x <= y for a minimum, x >= y for a maximum.
  const auto decides = [&](Dim x, Dim y) {
    const Dim less = kind == AtomKind::kMin ? x : y, more = kind == AtomKind::kMin ? y : x;
    if (pool.bounds(less).hi <= pool.bounds(more).lo || pool.bounds(pool.sub(less, more)).hi <= 0) return true;
    const Atom* other = bare_atom(y, opposite);
    if (other == nullptr) return false;
    const std::vector<Dim> inside = leaves(opposite, other->a, other->b);
    return std::find(inside.begin(), inside.end(), x) != inside.end();
  };
  for (std::size_t i = 0; i < parts.size();) {
    const Dim part = parts[i];
    const bool is_needless =
        std::any_of(parts.begin(), parts.end(), [&](Dim other) { return other != part && decides(other, part); });
    if (is_needless) {
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return fold(kind, std::move(parts));
}

Dim DimPool::min(Dim a, Dim b) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  return impl_->extremum(*this, AtomKind::kMin, a, b);
}

Dim DimPool::max(Dim a, Dim b) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  return impl_->extremum(*this, AtomKind::kMax, a, b);
}

bool DimPool::Impl::is_stretched_like(Dim minimum, Dim part) const {
  const Atom* atom = bare_atom(minimum, AtomKind::kMin);
  if (atom == nullptr) return false;
  const std::vector<Dim> inside = leaves(AtomKind::kMin, atom->a, atom->b);
  return std::find(inside.begin(), inside.end(), part) != inside.end() &&
         std::all_of(inside.begin(), inside.end(), [&](Dim x) { return x == part || bounds(x, false).lo > 1; });
}

Dim DimPool::broadcast(Dim a, Dim b) {
  if (is_constant(a, 1) || equal(a, b)) return b;
  if (is_constant(b, 1)) return a;
  // Another constant decides: the other side has to be equal or 1.
  if (as_constant(a)) return a;
  if (as_constant(b)) return b;
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  std::vector<Dim> parts = impl_->leaves(AtomKind::kBroadcast, a, b);
  // So does whatever is never 1.
  for (const Dim part : parts)
    if (never_one(bounds(part))) return part;
  // min(x, c) with c > 1 is 1 exactly where x is, so that both are equal where broadcasting them is legal.
  const std::vector<Dim> all = parts;
  std::erase_if(parts, [&](Dim part) {
    return std::any_of(all.begin(), all.end(), [&](Dim x) { return impl_->is_stretched_like(part, x); });
  });
  return impl_->fold(AtomKind::kBroadcast, std::move(parts));
}

}  // namespace tensorlint
