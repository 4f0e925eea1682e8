#include "passes/placement/symbols.h"

#include "passes/placement/tensor_facts.h"

namespace tensorlint::placement {

Element Symbols::open(ValueId value) {
  const Fact& fact = analysis_.fact(value);
  const bool is_bool = fact.dtypes == DTypeSet(DType::kBool);
  if (!is_bool && !(fact.dtypes == DTypeSet(DType::kInt64)) && !(fact.dtypes == DTypeSet(DType::kInt32))) return {};
  if (fact.shape != ShapeId::kUnranked) {
    analysis_.facts().meter().charge(analysis_.facts().dims_of(fact.shape).size());
    for (const Dim dim : analysis_.facts().dims_of(fact.shape))
      if (const auto extent = analysis_.facts().dims().as_constant(dim); extent && *extent != 1) return {};
  }
  if (const auto number = known_integer(analysis_, value)) return {.kind = Element::Kind::kNumber, .number = *number};
  return fresh(value);
}

Element Symbols::fresh(ValueId value) {
  Element content{.kind = Element::Kind::kSymbol, .symbol = static_cast<std::uint32_t>(sources_.size())};
  sources_.push_back(static_cast<std::uint64_t>(value));
  memory_.add(2 * sizeof sources_.front());  // as much again while it grows
  return content;
}

std::uint32_t Symbols::of_dim(Dim dim) {
  const auto [at, added] = dim_symbols_.emplace(dim.id(), static_cast<std::uint32_t>(sources_.size()));
  if (added) {
    sources_.push_back((std::uint64_t{1} << 32) + dim.id());
    dim_names_[at->second] = analysis_.facts().dims().to_text(dim);
  }
  return at->second;
}

std::optional<Bdd> Symbols::above(std::uint32_t symbol, std::int64_t k, bool is_trip_count) {
  const auto known = variable_of_.find({symbol, k});
  if (known != variable_of_.end()) return store_.choice(known->second);
  if (variables_.size() >= kMaxVariables) return std::nullopt;
  const auto variable = static_cast<std::uint32_t>(variables_.size());
  variables_.push_back({symbol, k, is_trip_count});
  variable_of_.emplace(std::pair(symbol, k), variable);
  return store_.choice(variable);
}

std::optional<Bdd> Symbols::formula(const Element& content) {
  switch (content.kind) {
    case Element::Kind::kFormula:
      return content.formula;
    case Element::Kind::kNumber:
      return content.number != 0 ? kTrue : kFalse;
    case Element::Kind::kSymbol:
      return above(content.symbol, 0, false);
    case Element::Kind::kNone:
      return std::nullopt;
  }
  return std::nullopt;
}

Element Symbols::apply(Opcode opcode, const Element& first, const Element& second, const Element& open) {
  if (keeps_elements(opcode)) return first.kind == Element::Kind::kNone ? open : first;
  if (opcode != Opcode::kNot && opcode != Opcode::kAnd && opcode != Opcode::kOr && opcode != Opcode::kXor) return open;
  const auto a = formula(first);
  if (!a) return open;
  if (opcode == Opcode::kNot) return {.kind = Element::Kind::kFormula, .formula = store_.not_(*a)};
  const auto b = formula(second);
  if (!b) return open;
  const Bdd both = opcode == Opcode::kAnd  ? store_.and_(*a, *b)
                   : opcode == Opcode::kOr ? store_.or_(*a, *b)
                                           : store_.ite(*a, store_.not_(*b), *b);
  return {.kind = Element::Kind::kFormula, .formula = both};
}

Element Symbols::merge(Bdd chosen, const Element& yes, const Element& no, ValueId result) {
  if (yes == no || chosen == kTrue) return yes;
  if (chosen == kFalse) return no;
  const bool is_condition = analysis_.fact(result).dtypes == DTypeSet(DType::kBool);
  if (is_condition && yes.kind != Element::Kind::kNone && no.kind != Element::Kind::kNone) {
    const auto a = formula(yes), b = formula(no);
    if (a && b) return {.kind = Element::Kind::kFormula, .formula = store_.ite(chosen, *a, *b)};
  }
  return open(result);
}

std::string Symbols::name(std::uint32_t symbol) const {
  if (const auto dim = dim_names_.find(symbol); dim != dim_names_.end()) return dim->second;
  return std::string(analysis_.model().name_of(static_cast<ValueId>(sources_[symbol])));
}

}  // namespace tensorlint::placement
