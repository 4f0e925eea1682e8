#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/facts/dim.h"

namespace tensorlint {

inline constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
inline constexpr std::size_t kMaxTerms = 16;
inline constexpr std::size_t kMaxDegree = 4;
inline constexpr int kMaxNesting = 16;  // of opaque atoms; keeps evaluate, substitute and to_text shallow
inline constexpr std::size_t kMaxText =
    4096;  // of an expression; parts that stand in parts many times would make it endless

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

/// The symbols of a polynomial, where they are few: parts stand in parts by the thousand, and most have one or two.
struct FewSymbols {
  static constexpr std::size_t kMost = 4;
  std::array<Dim, kMost> dims{};  // sorted by id, the first `count`
  std::uint8_t count = 0;
  bool are_all = true;  // false: there are more
};

struct Polynomial {
  std::vector<Term> terms;  // sorted by monomial, no zero coefficient; empty is 0
  Bounds bounds{kMin, kMax};
  Bounds bounds_from_two{kMin, kMax};
  int nesting = 0;
  bool has_blank = false;  // in its text
  FewSymbols symbols;
};

struct Atom {
  AtomKind kind;
  Dim a, b;            // operands of opaque atoms
  std::uint64_t site;  // fresh symbols
  std::uint32_t slot;
  Unknown reason = Unknown::kNotTracked;  // fresh symbols; not what tells them apart
  std::string name;                       // named symbols
  Bounds bounds;
  Bounds bounds_from_two;
  int nesting;
  bool has_blank;  // in its text
  Dim dim;         // the polynomial that is this atom alone
};

/// An end of bounds that says nothing.
inline bool is_infinite(std::int64_t end) { return end == kMin || end == kMax; }

/// What stands behind a DimPool; private to this folder. Polynomials and atoms are interned: dim_terms.cc. What is
/// asked of a whole expression, part by part: dim_walks.cc.
struct DimPool::Impl {
  explicit Impl(std::shared_ptr<Meter> of_input) : meter(std::move(of_input)), memory(*meter) {}

  std::shared_ptr<Meter> meter;
  KeptMemory memory;
  std::deque<Polynomial> polynomials;  // at id - kFirstInterned
  std::deque<Atom> atoms;
  std::unordered_multimap<std::uint64_t, std::uint32_t> polynomial_index;
  std::unordered_multimap<std::uint64_t, AtomId> atom_index;
  mutable std::vector<std::uint32_t> seen;  // by polynomial: the walk that met it last
  mutable std::uint32_t walk = 0;

  static std::optional<std::int64_t> inline_constant(Dim dim) {
    if (dim.id() >= Dim::kInlineConstant) return static_cast<std::int64_t>(dim.id() - Dim::kInlineConstant);
    return std::nullopt;
  }

  const Polynomial& interned(Dim dim) const { return polynomials[dim.id() - Dim::kFirstInterned]; }

  void charge(std::size_t steps) const { meter->charge(steps); }
  bool is_spent() const { return meter->is_spent(); }

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

  std::vector<Term> terms(Dim dim) const;
  Dim intern(std::vector<Term> terms);
  Dim lookup(std::vector<Term> terms);

  /// `usual`: the least value that DimPool::bounds_from_two allows for.
  Dim symbol(AtomKind kind, std::string_view name, std::uint64_t site, std::uint32_t slot, std::int64_t lo,
             std::int64_t usual, Unknown reason = Unknown::kNotTracked);
  Dim opaque(AtomKind kind, Dim a, Dim b, Bounds bounds_all, Bounds bounds_two);
  Dim atom_dim(Atom atom);
  /// Notes the symbols of a part of a polynomial that is being made.
  void add_symbols(const Atom& atom, FewSymbols& to) const;

  /// a + scale * b.
  Dim combine(Dim a, Dim b, std::int64_t scale);
  Dim multiply(Dim a, Dim b);
  /// a / b where b is one term that divides every term of a and is never 0.
  std::optional<Dim> exact_quotient(Dim a, Dim b);
  /// One term over another where that is a term again.
  static std::optional<Term> divided(const Term& term, const Term& divisor);

  // Canonical forms of the operations that give opaque atoms: dim_opaque.cc.
  /// The atom where the dim is one of that kind and nothing else; null otherwise.
  const Atom* bare_atom(Dim dim, AtomKind kind) const;
  /// q and r with a = q * b + r: the terms that `b`, one term, divides, and of a constant term the whole part.
  std::pair<Dim, Dim> divide_out(Dim a, Dim b);
  /// The dim without its constant term, and that term.
  std::pair<Dim, std::int64_t> split_constant(Dim dim);
  std::pair<Dim, Dim> cancel(Dim a, Dim b);
  /// floor(a / b) where no term of `a` is a multiple of `b`.
  Dim floor_of_rest(DimPool& pool, Dim a, Dim b);
  /// Operands of nested atoms of one kind, each once, sorted; just the two where there are too many.
  std::vector<Dim> leaves(AtomKind kind, Dim a, Dim b) const;
  /// One atom over all parts, which are sorted and not empty.
  Dim fold(AtomKind kind, std::vector<Dim> parts);
  Dim extremum(DimPool& pool, AtomKind kind, Dim a, Dim b);
  /// `minimum` is min(part, ...) and everything else in it is above 1.
  bool is_stretched_like(Dim minimum, Dim part) const;

  /// Values of dims with parts, which may stand in one another many times: each is followed once.
  template <typename Value>
  using Known = std::unordered_map<std::uint32_t, Value>;
  std::optional<std::int64_t> evaluate(Dim dim, const Assignment& values,
                                       Known<std::optional<std::int64_t>>& known) const;
  std::optional<std::int64_t> sum(Dim dim, const Assignment& values, Known<std::optional<std::int64_t>>& known) const;
  Dim substitute(DimPool& pool, Dim dim, const Replacement& replacement, Known<Dim>& known);
  /// Appends the text, and stops somewhere behind kMaxText.
  void print(Dim dim, std::string& text) const;
  void print(const Atom& atom, std::string& text) const;
  /// The operands of an atom of that kind; nested ones of the same kind in the same list.
  void print_operands(Dim dim, AtomKind kind, std::string& text) const;

 private:
  Bounds bounds_of(const Monomial& monomial, bool from_two) const;
  Bounds bounds_of(const std::vector<Term>& terms, bool from_two) const;
};

}  // namespace tensorlint
