#include "ir/facts/equalities.h"

#include <algorithm>

namespace tensorlint {

std::optional<std::pair<Dim, Dim>> solve(DimPool& pool, Dim a, Dim b) {
  if (a.is_unknown() || b.is_unknown() || a == b) return std::nullopt;
  const Dim difference = pool.sub(a, b);
  if (difference.is_unknown() || pool.as_constant(difference)) return std::nullopt;
  std::vector<Dim> symbols = pool.symbols(difference);
  const auto is_fresh = [&](Dim symbol) { return pool.fresh_site(symbol) != 0; };
  std::sort(symbols.begin(), symbols.end(), [](Dim x, Dim y) { return x.id() > y.id(); });
  std::ranges::stable_partition(symbols, is_fresh);
  for (const Dim symbol : symbols) {
    for (const Dim other : {pool.sub(symbol, difference), pool.add(symbol, difference)}) {
      if (other.is_unknown()) continue;
      const std::vector<Dim> used = pool.symbols(other);
      // Symbols made in an iteration must not get into what outlives it: those younger than the symbol are left alone.
      const bool lasts = std::none_of(used.begin(), used.end(), [&](Dim x) {
        return x == symbol || (is_fresh(x) && (!is_fresh(symbol) || x.id() > symbol.id()));
      });
      if (!lasts || pool.bounds(other).lo < pool.bounds(symbol).lo) continue;
      if (pool.as_constant(other) && !is_fresh(symbol)) continue;
      return std::pair(symbol, other);
    }
  }
  return std::nullopt;
}

bool Equalities::learn(DimPool& pool, Dim a, Dim b) {
  if (known_.size() >= kMaxEqualities) return false;
  const auto solved = solve(pool, apply(pool, a), apply(pool, b));
  if (!solved) return false;
  const auto [symbol, other] = *solved;
  const auto replace = [symbol = symbol, other = other](Dim x) {
    return x == symbol ? std::optional(other) : std::nullopt;
  };
  std::vector<std::pair<Dim, Dim>> next = known_;
  for (auto& [left, right] : next) {
    right = pool.substitute(right, replace);
    if (right.is_unknown()) return false;
  }
  next.emplace_back(symbol, other);
  known_ = std::move(next);
  return true;
}

Dim Equalities::apply(DimPool& pool, Dim dim) const {
  if (known_.empty() || dim.is_unknown() || pool.as_constant(dim)) return dim;
  const Dim applied = pool.substitute(dim, [this](Dim symbol) -> std::optional<Dim> {
    const auto found =
        std::find_if(known_.begin(), known_.end(), [symbol](const auto& equality) { return equality.first == symbol; });
    return found == known_.end() ? std::nullopt : std::optional(found->second);
  });
  return applied.is_unknown() ? dim : applied;
}

}  // namespace tensorlint
