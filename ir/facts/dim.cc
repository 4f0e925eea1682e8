#include "ir/facts/dim.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "ir/facts/hash.h"

namespace tensorlint {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxTerms = 16;
constexpr std::size_t kMaxDegree = 4;
constexpr int kMaxNesting = 16;  // of opaque atoms; keeps evaluate, substitute and to_text shallow
constexpr std::size_t kMaxText = 4096;  // of an expression; parts that stand in parts many times would make it endless

using AtomId = std::uint32_t;

enum class AtomKind : std::uint8_t { kSymbol, kFresh, kFloorDiv, kMod, kMin, kMax, kBroadcast };

struct Monomial {
  std::array<AtomId, kMaxDegree> atoms{};  // sorted, the first `degree` count
  std::uint32_t degree = 0;
  friend auto operator<=>(const Monomial&, const Monomial&) = default;
};

struct Term {
  Monomial monomial;
  std::int64_t coefficient = 0;
  friend bool operator==(const Term&, const Term&) = default;
};

struct Polynomial {
  std::vector<Term> terms;  // sorted by monomial, no zero coefficient; empty is 0
  Bounds bounds{kMin, kMax};
  Bounds bounds_from_two{kMin, kMax};
  int nesting = 0;
  bool has_blank = false;  // in its text
};

struct Atom {
  AtomKind kind;
  Dim a, b;               // operands of opaque atoms
  std::uint64_t site;     // fresh symbols
  std::uint32_t slot;
  Unknown reason = Unknown::kNotTracked;  // fresh symbols; not what tells them apart
  std::string name;       // named symbols
  Bounds bounds;
  Bounds bounds_from_two;
  int nesting;
  bool has_blank;         // in its text
  Dim dim;                // the polynomial that is this atom alone
};

bool is_infinite(std::int64_t end) { return end == kMin || end == kMax; }

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

bool by_monomial(const Term& x, const Term& y) { return x.monomial < y.monomial; }

}  // namespace

namespace checked {

std::optional<std::int64_t> add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

std::optional<std::int64_t> sub(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
  return result;
}

std::optional<std::int64_t> mul(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

std::optional<std::int64_t> trunc_div(std::int64_t a, std::int64_t b) {
  if (b == 0 || (a == kMin && b == -1)) return std::nullopt;
  return a / b;
}

std::optional<std::int64_t> floor_div(std::int64_t a, std::int64_t b) {
  const auto quotient = trunc_div(a, b);
  if (!quotient) return std::nullopt;
  return *quotient - ((a % b != 0 && ((a < 0) != (b < 0))) ? 1 : 0);
}

std::optional<std::int64_t> floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return 0;
  const std::int64_t remainder = a % b;
  return (remainder != 0 && ((remainder < 0) != (b < 0))) ? remainder + b : remainder;
}

}  // namespace checked

std::string_view to_text(Unknown reason) {
  switch (reason) {
    case Unknown::kNotTracked: return "not derived by this operator's inference";
    case Unknown::kDataDependent: return "depends on tensor contents that are not known";
    case Unknown::kTooComplex: return "the expression passes the cap on terms, degree or nesting";
    case Unknown::kOverflow: return "arithmetic leaves the range of int64";
    case Unknown::kLoopCarried: return "changes from iteration to iteration";
    case Unknown::kJoined: return "branches or iterations disagree";
    case Unknown::kUnknownOperator: return "the operator that makes it is not known";
    case Unknown::kTainted: return "follows from something that failed";
  }
  return "";
}

struct DimPool::Impl {
  std::deque<Polynomial> polynomials;  // at id - kFirstInterned
  std::deque<Atom> atoms;
  std::unordered_multimap<std::uint64_t, std::uint32_t> polynomial_index;
  std::unordered_multimap<std::uint64_t, AtomId> atom_index;

  static std::optional<std::int64_t> inline_constant(Dim dim) {
    if (dim.id() >= Dim::kInlineConstant) return static_cast<std::int64_t>(dim.id() - Dim::kInlineConstant);
    return std::nullopt;
  }

  const Polynomial& interned(Dim dim) const { return polynomials[dim.id() - Dim::kFirstInterned]; }

  std::vector<Term> terms(Dim dim) const {
    const auto value = inline_constant(dim);
    if (!value) return interned(dim).terms;
    if (*value == 0) return {};
    return {Term{Monomial{}, *value}};
  }

  Bounds bounds_of(const Monomial& monomial, bool from_two) const {
    Bounds result{1, 1};
    for (std::uint32_t i = 0; i < monomial.degree; ++i) {
      const Atom& atom = atoms[monomial.atoms[i]];
      result = product_of(result, from_two ? atom.bounds_from_two : atom.bounds);
    }
    const bool square = monomial.degree == 2 && monomial.atoms[0] == monomial.atoms[1];
    if (square) result.lo = std::max<std::int64_t>(result.lo, 0);
    return result;
  }

  Bounds bounds_of(const std::vector<Term>& terms, bool from_two) const {
    Bounds result{0, 0};
    for (const Term& term : terms)
      result = sum_of(result, product_of({term.coefficient, term.coefficient}, bounds_of(term.monomial, from_two)));
    return result;
  }

  Dim intern(std::vector<Term> terms) {
    if (terms.empty()) return constant(0);
    if (terms.size() == 1 && terms[0].monomial.degree == 0) return constant(terms[0].coefficient);
    if (terms.size() > kMaxTerms) return Dim(Unknown::kTooComplex);
    return lookup(std::move(terms));
  }

  Dim lookup(std::vector<Term> terms) {
    std::uint64_t hash = terms.size();
    for (const Term& term : terms) {
      hash = mix(hash, static_cast<std::uint64_t>(term.coefficient));
      for (std::uint32_t i = 0; i < term.monomial.degree; ++i) hash = mix(hash, term.monomial.atoms[i]);
    }
    const auto [first, last] = polynomial_index.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (polynomials[it->second].terms == terms) return Dim::from_id(it->second + Dim::kFirstInterned);
    Polynomial polynomial;
    polynomial.bounds = bounds_of(terms, false);
    polynomial.bounds_from_two = bounds_of(terms, true);
    for (const Term& term : terms)
      for (std::uint32_t i = 0; i < term.monomial.degree; ++i) {
        polynomial.nesting = std::max(polynomial.nesting, atoms[term.monomial.atoms[i]].nesting);
        polynomial.has_blank = polynomial.has_blank || atoms[term.monomial.atoms[i]].has_blank;
      }
    polynomial.has_blank = polynomial.has_blank || terms.size() > 1;
    polynomial.terms = std::move(terms);
    const auto index = static_cast<std::uint32_t>(polynomials.size());
    polynomials.push_back(std::move(polynomial));
    polynomial_index.emplace(hash, index);
    return Dim::from_id(index + Dim::kFirstInterned);
  }

  Dim constant(std::int64_t value) {
    if (value >= 0 && value < static_cast<std::int64_t>(Dim::kInlineConstant))
      return Dim::from_id(Dim::kInlineConstant + static_cast<std::uint32_t>(value));
    return lookup({Term{Monomial{}, value}});
  }

  std::optional<std::int64_t> as_constant(Dim dim) const {
    if (const auto value = inline_constant(dim)) return value;
    if (dim.is_unknown()) return std::nullopt;
    const std::vector<Term>& terms = interned(dim).terms;
    if (terms.size() == 1 && terms[0].monomial.degree == 0) return terms[0].coefficient;
    return std::nullopt;
  }

  Bounds bounds(Dim dim, bool from_two) const {
    if (dim.is_unknown()) return {kMin, kMax};
    if (const auto value = inline_constant(dim)) return {*value, *value};
    return from_two ? interned(dim).bounds_from_two : interned(dim).bounds;
  }

  int nesting(Dim dim) const { return dim.is_unknown() || inline_constant(dim) ? 0 : interned(dim).nesting; }
  bool has_blank(Dim dim) const { return !dim.is_unknown() && !inline_constant(dim) && interned(dim).has_blank; }

  Dim atom_dim(Atom atom) {
    std::uint64_t hash = mix(static_cast<std::uint64_t>(atom.kind), atom.a.id());
    hash = mix(mix(mix(hash, atom.b.id()), atom.site), atom.slot);
    hash = mix(hash, std::hash<std::string>{}(atom.name));
    const auto [first, last] = atom_index.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      const Atom& known = atoms[it->second];
      if (known.kind == atom.kind && known.a == atom.a && known.b == atom.b && known.site == atom.site &&
          known.slot == atom.slot && known.name == atom.name)
        return known.dim;
    }
    const auto id = static_cast<AtomId>(atoms.size());
    atoms.push_back(std::move(atom));
    atom_index.emplace(hash, id);
    Monomial monomial;
    monomial.atoms[0] = id;
    monomial.degree = 1;
    atoms[id].dim = lookup({Term{monomial, 1}});
    return atoms[id].dim;
  }

  /// `usual`: the least value that DimPool::bounds_from_two allows for.
  Dim symbol(AtomKind kind, std::string_view name, std::uint64_t site, std::uint32_t slot, std::int64_t lo, std::int64_t usual, Unknown reason = Unknown::kNotTracked) {
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
                         .has_blank = name.find(' ') != std::string_view::npos,
                         .dim = {}});
  }

  Dim opaque(AtomKind kind, Dim a, Dim b, Bounds bounds_all, Bounds bounds_two) {
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

  /// a + scale * b.
  Dim combine(Dim a, Dim b, std::int64_t scale) {
    if (a.is_unknown()) return a;
    if (b.is_unknown()) return b;
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

  Dim multiply(Dim a, Dim b) {
    if (as_constant(a) == 0 || as_constant(b) == 0) return constant(0);
    if (a.is_unknown()) return a;
    if (b.is_unknown()) return b;
    const std::vector<Term> left = terms(a), right = terms(b);
    std::vector<Term> products;
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

  /// a / b where b is one term that divides every term of a and is never 0.
  std::optional<Dim> exact_quotient(Dim a, Dim b) {
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

  /// One term over another where that is a term again.
  static std::optional<Term> divided(const Term& term, const Term& divisor) {
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

  Dim apply(DimPool& pool, AtomKind kind, Dim a, Dim b) {
    switch (kind) {
      case AtomKind::kFloorDiv: return pool.floor_div(a, b);
      case AtomKind::kMod: return pool.mod(a, b);
      case AtomKind::kMin: return pool.min(a, b);
      case AtomKind::kMax: return pool.max(a, b);
      default: return pool.broadcast(a, b);
    }
  }

  /// `known`: of dims with parts, which may stand in one another many times: each is evaluated once.
  std::optional<std::int64_t> evaluate(Dim dim, const Assignment& values, std::unordered_map<std::uint32_t, std::optional<std::int64_t>>& known) const {
    if (nesting(dim) == 0) return sum(dim, values, known);
    if (const auto at = known.find(dim.id()); at != known.end()) return at->second;
    return known[dim.id()] = sum(dim, values, known);
  }

  std::optional<std::int64_t> sum(Dim dim, const Assignment& values, std::unordered_map<std::uint32_t, std::optional<std::int64_t>>& known) const {
    if (dim.is_unknown()) return std::nullopt;
    if (const auto value = as_constant(dim)) return value;
    std::int64_t sum = 0;
    for (const Term& term : interned(dim).terms) {
      std::optional<std::int64_t> product = term.coefficient;
      for (std::uint32_t i = 0; i < term.monomial.degree && product; ++i) {
        const Atom& atom = atoms[term.monomial.atoms[i]];
        std::optional<std::int64_t> factor;
        if (atom.kind == AtomKind::kSymbol || atom.kind == AtomKind::kFresh) {
          factor = values(atom.dim);
        } else {
          const auto a = evaluate(atom.a, values, known), b = evaluate(atom.b, values, known);  // nesting is capped
          if (!a || !b) return std::nullopt;
          switch (atom.kind) {
            case AtomKind::kFloorDiv: factor = checked::floor_div(*a, *b); break;
            case AtomKind::kMod: factor = checked::floor_mod(*a, *b); break;
            case AtomKind::kMin: factor = std::min(*a, *b); break;
            case AtomKind::kMax: factor = std::max(*a, *b); break;
            default: factor = *a == 1 ? *b : *a; break;
          }
        }
        product = factor ? checked::mul(*product, *factor) : std::nullopt;
      }
      const auto total = product ? checked::add(sum, *product) : std::nullopt;
      if (!total) return std::nullopt;
      sum = *total;
    }
    return sum;
  }

  /// `known`: as in evaluate.
  Dim substitute(DimPool& pool, Dim dim, const Replacement& replacement, std::unordered_map<std::uint32_t, Dim>& known) {
    if (dim.is_unknown() || as_constant(dim)) return dim;
    const bool has_parts = nesting(dim) > 0;
    if (has_parts)
      if (const auto at = known.find(dim.id()); at != known.end()) return at->second;
    const std::vector<Term> terms = interned(dim).terms;
    Dim sum = constant(0);
    for (const Term& term : terms) {
      Dim product = constant(term.coefficient);
      for (std::uint32_t i = 0; i < term.monomial.degree; ++i) {
        const Atom atom = atoms[term.monomial.atoms[i]];
        const bool symbol = atom.kind == AtomKind::kSymbol || atom.kind == AtomKind::kFresh;
        const Dim factor = symbol ? replacement(atom.dim).value_or(atom.dim)
                                  : apply(pool, atom.kind, substitute(pool, atom.a, replacement, known),
                                          substitute(pool, atom.b, replacement, known));  // nesting is capped
        product = pool.mul(product, factor);
      }
      sum = pool.add(sum, product);
    }
    if (has_parts) known.emplace(dim.id(), sum);
    return sum;
  }

  /// Appends the text, and stops somewhere behind kMaxText.
  void print(Dim dim, std::string& text) const {
    if (text.size() > kMaxText) return;
    if (dim.is_unknown()) {
      text += "?";
      return;
    }
    if (const auto value = as_constant(dim)) {
      text += std::to_string(*value);
      return;
    }
    const std::vector<Term>& terms = interned(dim).terms;
    // The constant term sorts first and reads best last.
    const std::size_t shift = terms[0].monomial.atoms == Monomial{}.atoms && terms[0].monomial.degree == 0 ? 1 : 0;
    for (std::size_t k = 0; k < terms.size(); ++k) {
      const Term& term = terms[(k + shift) % terms.size()];
      const bool negative = term.coefficient < 0;
      const auto bits = static_cast<std::uint64_t>(term.coefficient);
      const std::uint64_t magnitude = negative ? ~bits + 1 : bits;
      text += k == 0 ? (negative ? "-" : "") : (negative ? " - " : " + ");
      const bool has_factor = magnitude != 1 || term.monomial.degree == 0;
      if (has_factor) text += std::to_string(magnitude);
      for (std::uint32_t i = 0; i < term.monomial.degree; ++i) {
        if (has_factor || i > 0) text += "*";
        print(atoms[term.monomial.atoms[i]], text);
      }
    }
  }

  void print(const Atom& atom, std::string& text) const {
    switch (atom.kind) {
      case AtomKind::kSymbol: text += atom.name; return;
      case AtomKind::kFresh: text += "?"; return;
      case AtomKind::kFloorDiv: text += "floor("; break;
      case AtomKind::kMod: text += "mod("; break;
      case AtomKind::kMin: text += "min("; break;
      case AtomKind::kMax: text += "max("; break;
      case AtomKind::kBroadcast: text += "broadcast("; break;
    }
    const auto print_side = [&](Dim side) {
      const bool wrapped = atom.kind == AtomKind::kFloorDiv && has_blank(side);
      if (wrapped) text += "(";
      print(side, text);
      if (wrapped) text += ")";
    };
    print_side(atom.a);
    text += atom.kind == AtomKind::kFloorDiv ? "/" : ", ";
    print_side(atom.b);
    text += ")";
  }
};

DimPool::DimPool() : impl_(std::make_unique<Impl>()) {}
DimPool::~DimPool() = default;

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

Dim DimPool::floor_div(Dim a, Dim b) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  if (bounds(b).contains(0)) return Dim(Unknown::kDataDependent);
  const auto x = as_constant(a), y = as_constant(b);
  if (x && y) {
    const auto quotient = checked::floor_div(*x, *y);
    return quotient ? constant(*quotient) : Dim(Unknown::kOverflow);
  }
  if (const auto exact = impl_->exact_quotient(a, b)) return *exact;
  return impl_->opaque(AtomKind::kFloorDiv, a, b, quotient_of(bounds(a), bounds(b)),
                       quotient_of(bounds_from_two(a), bounds_from_two(b)));
}

std::optional<Dim> DimPool::exact_div(Dim a, Dim b) {
  if (a.is_unknown() || b.is_unknown() || is_constant(b, 0)) return std::nullopt;
  const std::vector<Term> divisor = impl_->terms(b);
  // Leading term by degree, then by the monomial that has most of the first atoms: an order that products keep, so the
  // leading term of the remainder has to be a multiple of the divisor's.
  const auto leading = [](const std::vector<Term>& terms) {
    return *std::min_element(terms.begin(), terms.end(), [](const Term& x, const Term& y) {
      return x.monomial.degree != y.monomial.degree ? x.monomial.degree > y.monomial.degree : x.monomial.atoms < y.monomial.atoms;
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
  if (const auto exact = impl_->exact_quotient(a, b)) return *exact;
  return floor_div(sub(add(a, b), constant(1)), b);
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
  if (impl_->exact_quotient(a, b)) return constant(0);
  return impl_->opaque(AtomKind::kMod, a, b, remainder_of(bounds(a), bounds(b)),
                       remainder_of(bounds_from_two(a), bounds_from_two(b)));
}

Dim DimPool::min(Dim a, Dim b) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  const Bounds difference = bounds(sub(a, b)), x = bounds(a), y = bounds(b);
  if (difference.hi <= 0 || x.hi <= y.lo) return a;
  if (difference.lo >= 0 || y.hi <= x.lo) return b;
  if (b.id() < a.id()) std::swap(a, b);
  const Bounds x2 = bounds_from_two(a), y2 = bounds_from_two(b);
  return impl_->opaque(AtomKind::kMin, a, b, {std::min(x.lo, y.lo), std::min(x.hi, y.hi)},
                       {std::min(x2.lo, y2.lo), std::min(x2.hi, y2.hi)});
}

Dim DimPool::max(Dim a, Dim b) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  const Bounds difference = bounds(sub(a, b)), x = bounds(a), y = bounds(b);
  if (difference.lo >= 0 || x.lo >= y.hi) return a;
  if (difference.hi <= 0 || y.lo >= x.hi) return b;
  if (b.id() < a.id()) std::swap(a, b);
  const Bounds x2 = bounds_from_two(a), y2 = bounds_from_two(b);
  return impl_->opaque(AtomKind::kMax, a, b, {std::max(x.lo, y.lo), std::max(x.hi, y.hi)},
                       {std::max(x2.lo, y2.lo), std::max(x2.hi, y2.hi)});
}

Dim DimPool::broadcast(Dim a, Dim b) {
  if (is_constant(a, 1) || equal(a, b)) return b;
  if (is_constant(b, 1)) return a;
  // Another constant decides: the other side has to be equal or 1.
  if (as_constant(a)) return a;
  if (as_constant(b)) return b;
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  if (b.id() < a.id()) std::swap(a, b);
  const Bounds x = bounds(a), y = bounds(b), x2 = bounds_from_two(a), y2 = bounds_from_two(b);
  return impl_->opaque(AtomKind::kBroadcast, a, b, {std::min(x.lo, y.lo), std::max(x.hi, y.hi)},
                       {std::min(x2.lo, y2.lo), std::max(x2.hi, y2.hi)});
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
  return !bounds_from_two(difference).contains(0) && symbols(a) == symbols(b);
}

bool DimPool::is_multiple(Dim a, Dim b) {
  if (a == b || a.is_unknown() || b.is_unknown() || as_constant(a) || as_constant(b)) return false;
  // Counts that depend on data may well be 0, or 1 and so be stretched.
  const std::vector<Dim> used = symbols(a);
  if (std::any_of(used.begin(), used.end(), [this](Dim symbol) { return bounds_from_two(symbol).lo < 2; })) return false;
  const auto is_factor = [this](std::optional<Dim> quotient) { return quotient && as_constant(*quotient).value_or(0) >= 2; };
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
  return is_symbol(symbol) ? impl_->atoms[impl_->interned(symbol).terms[0].monomial.atoms[0]].reason : Unknown::kNotTracked;
}

std::uint32_t DimPool::mark() const { return static_cast<std::uint32_t>(impl_->polynomials.size()) + Dim::kFirstInterned; }

std::vector<Dim> DimPool::symbols(Dim dim) const {
  std::vector<Dim> found, pending{dim}, seen;
  while (!pending.empty()) {
    const Dim next = pending.back();
    pending.pop_back();
    if (next.is_unknown() || as_constant(next) || std::find(seen.begin(), seen.end(), next) != seen.end()) continue;
    seen.push_back(next);
    for (const Term& term : impl_->interned(next).terms) {
      for (std::uint32_t i = 0; i < term.monomial.degree; ++i) {
        const Atom& atom = impl_->atoms[term.monomial.atoms[i]];
        if (atom.kind == AtomKind::kSymbol || atom.kind == AtomKind::kFresh) {
          found.push_back(atom.dim);
        } else {
          pending.push_back(atom.a);
          pending.push_back(atom.b);
        }
      }
    }
  }
  std::sort(found.begin(), found.end(), [](Dim a, Dim b) { return a.id() < b.id(); });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::optional<std::int64_t> DimPool::evaluate(Dim dim, const Assignment& values) const {
  std::unordered_map<std::uint32_t, std::optional<std::int64_t>> known;
  return impl_->evaluate(dim, values, known);
}

Dim DimPool::substitute(Dim dim, const Replacement& replacement) {
  if (dim.is_unknown() || as_constant(dim)) return dim;
  std::unordered_map<std::uint32_t, Dim> known;
  return impl_->substitute(*this, dim, replacement, known);
}

std::string DimPool::to_text(Dim dim) const {
  std::string text;
  impl_->print(dim, text);
  if (text.size() <= kMaxText) return text;
  std::size_t end = kMaxText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a character of a name
  return text.substr(0, end) + "...";
}

}  // namespace tensorlint
