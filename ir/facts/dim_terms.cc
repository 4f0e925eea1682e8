#include <algorithm>
#include <functional>
#include <utility>

#include "base/checked.h"
#include "base/hash.h"
#include "ir/facts/dim_impl.h"

namespace tensorlint {
namespace {

std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  const auto product = checked::mul(a, b);
  if (product && !is_infinite(a) && !is_infinite(b)) return *product;
  return (a > 0) == (b > 0) ? kMax : kMin;
}

Bounds sum_of(Bounds a, Bounds b) {
  // Overflow of an end widens it: the sum itself is checked elsewhere.
  const bool open_below = a.lo == kMin || b.lo == kMin, open_above = a.hi == kMax || b.hi == kMax;
  return {open_below ? kMin : checked::add(a.lo, b.lo).value_or(kMin),
          open_above ? kMax : checked::add(a.hi, b.hi).value_or(kMax)};
}

Bounds product_of(Bounds a, Bounds b) {
  const std::int64_t ends[] = {saturating_mul(a.lo, b.lo), saturating_mul(a.lo, b.hi), saturating_mul(a.hi, b.lo),
                               saturating_mul(a.hi, b.hi)};
  return {*std::min_element(std::begin(ends), std::end(ends)), *std::max_element(std::begin(ends), std::end(ends))};
}

/// Of a node of a standard hash table, and its bucket.
constexpr std::size_t kIndexEntry = 48;

bool by_monomial(const Term& x, const Term& y) { return x.monomial < y.monomial; }

}  // namespace

std::vector<Term> DimPool::Impl::terms(Dim dim) const {
  const auto value = inline_constant(dim);
  charge(value ? 2 : 4 + 2 * interned(dim).terms.size());
  if (!value) return interned(dim).terms;
  if (*value == 0) return {};
  return {Term{Monomial{}, *value}};
}

Bounds DimPool::Impl::bounds_of(const Monomial& monomial, bool from_two) const {
  Bounds result{1, 1};
  for (std::uint32_t i = 0; i < monomial.degree; ++i) {
    const Atom& atom = atoms[monomial.atoms[i]];
    result = product_of(result, from_two ? atom.bounds_from_two : atom.bounds);
  }
  const bool square = monomial.degree == 2 && monomial.atoms[0] == monomial.atoms[1];
  if (square) result.lo = std::max<std::int64_t>(result.lo, 0);
  return result;
}

Bounds DimPool::Impl::bounds_of(const std::vector<Term>& terms, bool from_two) const {
  Bounds result{0, 0};
  for (const Term& term : terms)
    result = sum_of(result, product_of({term.coefficient, term.coefficient}, bounds_of(term.monomial, from_two)));
  return result;
}

Dim DimPool::Impl::intern(std::vector<Term> terms) {
  if (terms.empty()) return constant(0);
  if (terms.size() == 1 && terms[0].monomial.degree == 0) return constant(terms[0].coefficient);
  if (terms.size() > kMaxTerms) return Dim(Unknown::kTooComplex);
  return lookup(std::move(terms));
}

Dim DimPool::Impl::lookup(std::vector<Term> terms) {
  charge(6 + 2 * terms.size());
  std::uint64_t hash = terms.size();
  for (const Term& term : terms) {
    hash = table_hash(hash, static_cast<std::uint64_t>(term.coefficient));
    for (std::uint32_t i = 0; i < term.monomial.degree; ++i) hash = table_hash(hash, term.monomial.atoms[i]);
  }
  const auto [first, last] = polynomial_index.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (polynomials[it->second].terms == terms) return Dim::from_id(it->second + Dim::kFirstInterned);
  charge(24 + 12 * terms.size());
  memory.add(sizeof(Polynomial) + terms.capacity() * sizeof(Term) + kIndexEntry);
  Polynomial polynomial;
  polynomial.bounds = bounds_of(terms, false);
  polynomial.bounds_from_two = bounds_of(terms, true);
  for (const Term& term : terms)
    for (std::uint32_t i = 0; i < term.monomial.degree; ++i) {
      polynomial.nesting = std::max(polynomial.nesting, atoms[term.monomial.atoms[i]].nesting);
      polynomial.has_blank = polynomial.has_blank || atoms[term.monomial.atoms[i]].has_blank;
      add_symbols(atoms[term.monomial.atoms[i]], polynomial.symbols);
    }
  polynomial.has_blank = polynomial.has_blank || terms.size() > 1;
  polynomial.terms = std::move(terms);
  const auto index = static_cast<std::uint32_t>(polynomials.size());
  polynomials.push_back(std::move(polynomial));
  polynomial_index.emplace(hash, index);
  return Dim::from_id(index + Dim::kFirstInterned);
}

void DimPool::Impl::add_symbols(const Atom& atom, FewSymbols& to) const {
  const auto add = [&](Dim symbol) {
    Dim* const end = to.dims.data() + to.count;
    Dim* const at = std::find_if(to.dims.data(), end, [&](Dim known) { return known.id() >= symbol.id(); });
    if (at != end && *at == symbol) return;
    if (to.count == FewSymbols::kMost) {
      to.are_all = false;
      return;
    }
    std::copy_backward(at, end, end + 1);
    *at = symbol;
    ++to.count;
  };
  const auto add_all = [&](Dim dim) {
    if (dim.is_unknown() || inline_constant(dim)) return;
    const FewSymbols& few = interned(dim).symbols;
    std::for_each(few.dims.begin(), few.dims.begin() + few.count, add);
    to.are_all = to.are_all && few.are_all;
  };
  if (atom.kind != AtomKind::kSymbol && atom.kind != AtomKind::kFresh) {
    add_all(atom.a);
    add_all(atom.b);
  } else {  // the polynomial that is the symbol alone is made first: this one
    add(atom.dim.is_unknown() ? Dim::from_id(static_cast<std::uint32_t>(polynomials.size()) + Dim::kFirstInterned)
                              : atom.dim);
  }
}

Dim DimPool::Impl::atom_dim(Atom atom) {
  charge(8 + atom.name.size() / 8);
  std::uint64_t hash = table_hash(static_cast<std::uint64_t>(atom.kind), atom.a.id());
  hash = table_hash(table_hash(table_hash(hash, atom.b.id()), atom.site), atom.slot);
  hash = table_hash(hash, table_hash(atom.name));
  const auto [first, last] = atom_index.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Atom& known = atoms[it->second];
    if (known.kind == atom.kind && known.a == atom.a && known.b == atom.b && known.site == atom.site &&
        known.slot == atom.slot && known.name == atom.name)
      return known.dim;
  }
  charge(24 + atom.name.size() / 8);
  memory.add(sizeof(Atom) + atom.name.capacity() + kIndexEntry);
  const auto id = static_cast<AtomId>(atoms.size());
  atoms.push_back(std::move(atom));
  atom_index.emplace(hash, id);
  Monomial monomial;
  monomial.atoms[0] = id;
  monomial.degree = 1;
  atoms[id].dim = lookup({Term{monomial, 1}});
  return atoms[id].dim;
}

Dim DimPool::Impl::symbol(AtomKind kind, std::string_view name, std::uint64_t site, std::uint32_t slot, std::int64_t lo,
                          std::int64_t usual, Unknown reason) {
  return atom_dim(Atom{.kind = kind,
                       .a = {},
                       .b = {},
                       .site = site,
                       .slot = slot,
                       .reason = reason,
                       .name = std::string(name),
                       .bounds = {lo, kMax},
                       .bounds_from_two = {std::max(lo, usual), kMax},
                       .nesting = 0,
                       .has_blank = false,  // quoted where it has one
                       .dim = {}});
}

Dim DimPool::Impl::opaque(AtomKind kind, Dim a, Dim b, Bounds bounds_all, Bounds bounds_two) {
  if (is_spent()) return Dim(Unknown::kBudget);
  const int depth = 1 + std::max(nesting(a), nesting(b));
  if (depth > kMaxNesting) return Dim(Unknown::kTooComplex);
  return atom_dim(Atom{.kind = kind,
                       .a = a,
                       .b = b,
                       .site = 0,
                       .slot = 0,
                       .name = {},
                       .bounds = bounds_all,
                       .bounds_from_two = bounds_two,
                       .nesting = depth,
                       .has_blank = kind != AtomKind::kFloorDiv || has_blank(a) || has_blank(b),
                       .dim = {}});
}

Dim DimPool::Impl::combine(Dim a, Dim b, std::int64_t scale) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  if (const auto x = inline_constant(a), y = inline_constant(b); x && y) return constant(*x + *y * scale);
  if (is_spent()) return Dim(Unknown::kBudget);
  const std::vector<Term> left = terms(a), right = terms(b);
  std::vector<Term> sum;
  sum.reserve(left.size() + right.size());
  std::size_t i = 0, j = 0;
  while (i < left.size() || j < right.size()) {
    if (j == right.size() || (i < left.size() && left[i].monomial < right[j].monomial)) {
      sum.push_back(left[i++]);
      continue;
    }
    auto coefficient = checked::mul(right[j].coefficient, scale);
    const bool same = i < left.size() && left[i].monomial == right[j].monomial;
    if (coefficient && same) coefficient = checked::add(left[i++].coefficient, *coefficient);
    if (!coefficient) return Dim(Unknown::kOverflow);
    if (*coefficient != 0) sum.push_back({right[j].monomial, *coefficient});
    ++j;
  }
  return intern(std::move(sum));
}

Dim DimPool::Impl::multiply(Dim a, Dim b) {
  if (as_constant(a) == 0 || as_constant(b) == 0) return constant(0);
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  if (const auto x = inline_constant(a), y = inline_constant(b); x && y) return constant(*x * *y);
  if (is_spent()) return Dim(Unknown::kBudget);
  const std::vector<Term> left = terms(a), right = terms(b);
  charge(8 * left.size() * right.size());
  std::vector<Term> products;
  products.reserve(left.size() * right.size());
  for (const Term& x : left) {
    for (const Term& y : right) {
      if (x.monomial.degree + y.monomial.degree > kMaxDegree) return Dim(Unknown::kTooComplex);
      const auto coefficient = checked::mul(x.coefficient, y.coefficient);
      if (!coefficient) return Dim(Unknown::kOverflow);
      Monomial monomial;
      std::merge(x.monomial.atoms.begin(), x.monomial.atoms.begin() + x.monomial.degree, y.monomial.atoms.begin(),
                 y.monomial.atoms.begin() + y.monomial.degree, monomial.atoms.begin());
      monomial.degree = x.monomial.degree + y.monomial.degree;
      products.push_back({monomial, *coefficient});
    }
  }
  std::sort(products.begin(), products.end(), by_monomial);
  std::vector<Term> merged;
  for (const Term& term : products) {
    if (merged.empty() || merged.back().monomial != term.monomial) {
      merged.push_back(term);
      continue;
    }
    const auto coefficient = checked::add(merged.back().coefficient, term.coefficient);
    if (!coefficient) return Dim(Unknown::kOverflow);
    merged.back().coefficient = *coefficient;
  }
  std::erase_if(merged, [](const Term& term) { return term.coefficient == 0; });
  return intern(std::move(merged));
}

std::optional<Dim> DimPool::Impl::exact_quotient(Dim a, Dim b) {
  const std::vector<Term> left = terms(a), right = terms(b);
  if (right.size() != 1 || bounds(b, false).contains(0)) return std::nullopt;
  const Term& divisor = right[0];
  std::vector<Term> quotient;
  for (const Term& term : left) {
    const std::optional<Term> part = divided(term, divisor);
    if (!part) return std::nullopt;
    quotient.push_back(*part);
  }
  std::sort(quotient.begin(), quotient.end(), by_monomial);
  return intern(std::move(quotient));
}

std::optional<Term> DimPool::Impl::divided(const Term& term, const Term& divisor) {
  const auto coefficient = checked::floor_div(term.coefficient, divisor.coefficient);
  if (checked::floor_mod(term.coefficient, divisor.coefficient) != 0 || !coefficient) return std::nullopt;
  Monomial rest;
  std::uint32_t matched = 0;
  for (std::uint32_t i = 0; i < term.monomial.degree; ++i) {
    if (matched < divisor.monomial.degree && term.monomial.atoms[i] == divisor.monomial.atoms[matched]) {
      ++matched;
    } else {
      rest.atoms[rest.degree++] = term.monomial.atoms[i];
    }
  }
  if (matched != divisor.monomial.degree) return std::nullopt;
  return Term{rest, *coefficient};
}

}  // namespace tensorlint
