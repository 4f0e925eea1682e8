#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "ir/facts/dim_impl.h"
#include "ir/facts/dim_names.h"

namespace tensorlint {
namespace {

Dim apply(DimPool& pool, AtomKind kind, Dim a, Dim b) {
  switch (kind) {
    case AtomKind::kFloorDiv:
      return pool.floor_div(a, b);
    case AtomKind::kMod:
      return pool.mod(a, b);
    case AtomKind::kMin:
      return pool.min(a, b);
    case AtomKind::kMax:
      return pool.max(a, b);
    default:
      return pool.broadcast(a, b);
  }
}

}  // namespace

std::vector<Dim> DimPool::symbols(Dim dim) const {
  std::vector<Dim> found, pending{dim};
  const bool is_walk = !dim.is_unknown() && !as_constant(dim) && !impl_->interned(dim).symbols.are_all;
  if (is_walk && impl_->is_spent()) return found;
  // A mark for each part that was met: parts stand in one another, and there may be thousands.
  const std::uint32_t walk = ++impl_->walk;
  impl_->seen.resize(impl_->polynomials.size());
  while (!pending.empty()) {
    const Dim next = pending.back();
    pending.pop_back();
    impl_->charge(4);
    if (next.is_unknown() || as_constant(next)) continue;
    if (std::exchange(impl_->seen[next.id() - Dim::kFirstInterned], walk) == walk) continue;
    if (const FewSymbols& few = impl_->interned(next).symbols; few.are_all) {
      found.insert(found.end(), few.dims.begin(), few.dims.begin() + few.count);
      continue;
    }
    impl_->charge(4 * impl_->interned(next).terms.size());
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
  impl_->charge(4 * found.size());
  std::sort(found.begin(), found.end(), [](Dim a, Dim b) { return a.id() < b.id(); });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::optional<std::int64_t> DimPool::evaluate(Dim dim, const Assignment& values) const {
  if (impl_->is_spent() && !as_constant(dim)) return std::nullopt;
  Impl::Known<std::optional<std::int64_t>> known;
  return impl_->evaluate(dim, values, known);
}

std::optional<std::int64_t> DimPool::Impl::evaluate(Dim dim, const Assignment& values,
                                                    Known<std::optional<std::int64_t>>& known) const {
  if (nesting(dim) == 0) return sum(dim, values, known);
  if (const auto at = known.find(dim.id()); at != known.end()) return at->second;
  return known[dim.id()] = sum(dim, values, known);
}

std::optional<std::int64_t> DimPool::Impl::sum(Dim dim, const Assignment& values,
                                               Known<std::optional<std::int64_t>>& known) const {
  if (dim.is_unknown()) return std::nullopt;
  if (const auto value = as_constant(dim)) return value;
  charge(8 + 10 * interned(dim).terms.size());
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
          case AtomKind::kFloorDiv:
            factor = checked::floor_div(*a, *b);
            break;
          case AtomKind::kMod:
            factor = checked::floor_mod(*a, *b);
            break;
          case AtomKind::kMin:
            factor = std::min(*a, *b);
            break;
          case AtomKind::kMax:
            factor = std::max(*a, *b);
            break;
          default:
            factor = *a == 1 ? *b : *a;
            break;
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

Dim DimPool::substitute(Dim dim, const Replacement& replacement) {
  if (dim.is_unknown() || as_constant(dim)) return dim;
  Impl::Known<Dim> known;
  return impl_->substitute(*this, dim, replacement, known);
}

Dim DimPool::Impl::substitute(DimPool& pool, Dim dim, const Replacement& replacement, Known<Dim>& known) {
  if (dim.is_unknown() || as_constant(dim)) return dim;
  const bool has_parts = nesting(dim) > 0;
  if (has_parts)
    if (const auto at = known.find(dim.id()); at != known.end()) return at->second;
  charge(16);
  const std::vector<Term> terms = this->terms(dim);
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

std::string DimPool::to_text(Dim dim) const {
  std::string text;
  if (is_symbol(dim) && fresh_site(dim) == 0) {
    text = impl_->atoms[impl_->interned(dim).terms[0].monomial.atoms[0]].name;  // as it is declared, without quotes
  } else {
    impl_->print(dim, text);
  }
  impl_->charge(4 + text.size() / 2);
  if (text.size() <= kMaxText) return text;
  std::size_t end = kMaxText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a character of a name
  return text.substr(0, end) + "...";
}

void DimPool::Impl::print(Dim dim, std::string& text) const {
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
      if (text.size() > kMaxText) return;
      if (has_factor || i > 0) text += "*";
      print(atoms[term.monomial.atoms[i]], text);
    }
  }
}

void DimPool::Impl::print(const Atom& atom, std::string& text) const {
  switch (atom.kind) {
    case AtomKind::kSymbol:
      if (atom.name.size() > kMaxText) {
        text.append(atom.name, 0, kMaxText + 1);  // cut off further up
      } else {
        text += is_plain_name(atom.name) ? atom.name : '"' + atom.name + '"';
      }
      return;
    case AtomKind::kFresh:
      text += "?";
      return;
    case AtomKind::kFloorDiv:
      text += "floor(";
      break;
    case AtomKind::kMod:
      text += "mod(";
      break;
    case AtomKind::kMin:
      text += "min(";
      break;
    case AtomKind::kMax:
      text += "max(";
      break;
    case AtomKind::kBroadcast:
      text += "broadcast(";
      break;
  }
  if (atom.kind != AtomKind::kFloorDiv) {
    const bool joins = atom.kind != AtomKind::kMod;
    joins ? print_operands(atom.a, atom.kind, text) : print(atom.a, text);
    text += ", ";
    joins ? print_operands(atom.b, atom.kind, text) : print(atom.b, text);
    text += ")";
    return;
  }
  const auto print_side = [&](Dim side) {
    if (has_blank(side)) text += "(";
    print(side, text);
    if (has_blank(side)) text += ")";
  };
  print_side(atom.a);
  text += "/";
  print_side(atom.b);
  text += ")";
}

void DimPool::Impl::print_operands(Dim dim, AtomKind kind, std::string& text) const {
  const Atom* nested = bare_atom(dim, kind);
  if (nested == nullptr || text.size() > kMaxText) {
    print(dim, text);
    return;
  }
  print_operands(nested->a, kind, text);
  text += ", ";
  print_operands(nested->b, kind, text);
}

}  // namespace tensorlint
