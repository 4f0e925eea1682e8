#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/meter.h"

namespace tensorlint {

/// Why a dim or an element is not known; kept so that `why` and reports can say it.
enum class Unknown : std::uint8_t {
  kNotTracked,       ///< no entry derives it
  kDataDependent,    ///< depends on tensor contents that are not known
  kTooComplex,       ///< past the caps on terms, degree or nesting
  kOverflow,         ///< arithmetic leaves int64
  kLoopCarried,      ///< changes from iteration to iteration
  kJoined,           ///< branches disagree
  kUnknownOperator,  ///< the operator that makes it is not known
  kBudget,           ///< past the work that the input may cost
  kTainted,          ///< follows from something that failed
};

std::string_view to_text(Unknown reason);

/// An extent or an integer element: a constant, a polynomial over symbols, or unknown. A value of its DimPool.
/// Equal ids prove equal values, except for unknown ones, which prove nothing.
class Dim {
 public:
  constexpr Dim() = default;
  constexpr explicit Dim(Unknown reason) : id_(static_cast<std::uint32_t>(reason)) {}
  static constexpr Dim from_id(std::uint32_t id) {
    Dim dim;
    dim.id_ = id;
    return dim;
  }
  constexpr std::uint32_t id() const { return id_; }
  constexpr bool is_unknown() const { return id_ < kFirstInterned; }
  constexpr Unknown reason() const { return static_cast<Unknown>(id_); }  ///< only where is_unknown()
  /// Same representation; on unknowns this is no proof of equal values (see DimPool::equal).
  friend constexpr bool operator==(Dim a, Dim b) = default;

  static constexpr std::uint32_t kFirstInterned = 16;
  static constexpr std::uint32_t kInlineConstant = 0x8000'0000U;  ///< ids from here are constants 0 .. 2^31-1

 private:
  std::uint32_t id_ = 0;
};

/// Inclusive bounds; the ends of int64 mean "no bound".
struct Bounds {
  std::int64_t lo;
  std::int64_t hi;
  bool contains(std::int64_t value) const { return lo <= value && value <= hi; }
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

/// Hash-consed dims of one input. Not thread-safe; ids mean nothing outside their pool.
/// Polynomials over sorted atoms (symbols and opaque floor division, modulo, minimum, maximum, broadcast), at most 16
/// terms, degree 4 and nesting 16; past the caps the result is unknown. All arithmetic is checked: overflow is unknown.
/// Each operation charges the meter for the terms that it makes and looks at; where that is spent, arithmetic other
/// than that of small constants is unknown, and so is what takes a walk: their values, and symbols of long ones.
class DimPool {
 public:
  /// `meter`: of the input.
  explicit DimPool(std::shared_ptr<Meter> meter = std::make_shared<Meter>());
  ~DimPool();
  DimPool(const DimPool&) = delete;
  DimPool& operator=(const DimPool&) = delete;

  Dim constant(std::int64_t value);
  /// The symbol of that name, with values of at least `lo`. The first call decides `lo`.
  Dim symbol(std::string_view name, std::int64_t lo = 0);
  /// A symbol equal only to itself, one per (site, slot), site not 0: asking again gives the same one. Prints as "?".
  Dim fresh(std::uint64_t site, std::uint32_t slot, Unknown reason, std::int64_t lo = 0);

  Dim add(Dim a, Dim b);
  Dim sub(Dim a, Dim b);
  Dim mul(Dim a, Dim b);
  Dim floor_div(Dim a, Dim b);  ///< rounds towards minus infinity; unknown when b may be 0
  /// The q with a = q * b as polynomials: the quotient for all values where b is not 0. nullopt when there is none.
  std::optional<Dim> exact_div(Dim a, Dim b);
  Dim ceil_div(Dim a, Dim b);  ///< rounds towards plus infinity; unknown when b may be 0
  Dim mod(Dim a, Dim b);       ///< result has b's sign (Python's); unknown when b may be 0
  Dim min(Dim a, Dim b);
  Dim max(Dim a, Dim b);
  /// The extent that multidirectional broadcasting of a and b gives where it is legal: b if a is 1, else a.
  Dim broadcast(Dim a, Dim b);

  std::optional<std::int64_t> as_constant(Dim dim) const;
  bool is_constant(Dim dim, std::int64_t value) const { return as_constant(dim) == value; }
  /// Provably equal for every value of the symbols.
  bool equal(Dim a, Dim b) const { return a == b && !a.is_unknown(); }
  /// Bounds for all legal values of the symbols.
  Bounds bounds(Dim dim) const;
  /// Bounds where every symbol is at least 2.
  Bounds bounds_from_two(Dim dim) const;
  /// No legal value of the symbols makes them equal: their difference has one sign, or is no multiple of what divides
  /// its terms (6*N is never 4*M + 1).
  bool never_equal(Dim a, Dim b);
  /// Provably different: never equal for any legal value, or both sides depend on the same symbols and differ for all
  /// values >= 2 of these, or one is a multiple of the other.
  bool differ(Dim a, Dim b);
  /// Neither is constant and one is k >= 2 times the other: they agree only where both are 0.
  bool is_multiple(Dim a, Dim b);
  /// True when no fresh symbol and nothing unknown is in it.
  bool is_named(Dim dim) const;

  /// The value under an assignment of symbols; nullopt where a symbol has none, on overflow, or for unknown.
  using Assignment = std::function<std::optional<std::int64_t>(Dim symbol)>;
  std::optional<std::int64_t> evaluate(Dim dim, const Assignment& values) const;
  /// Replaces symbols; nullopt from `replacement` keeps the symbol. Unknown where the result passes a cap.
  using Replacement = std::function<std::optional<Dim>(Dim symbol)>;
  Dim substitute(Dim dim, const Replacement& replacement);
  /// The symbols in the dim, named and fresh, each once, in order of creation.
  std::vector<Dim> symbols(Dim dim) const;
  /// True for a bare symbol.
  bool is_symbol(Dim dim) const;
  /// For a bare fresh symbol its site; 0 for anything else.
  std::uint64_t fresh_site(Dim symbol) const;
  /// Why a bare fresh symbol has neither number nor name, as its first maker said.
  Unknown fresh_reason(Dim symbol) const;

  /// Every symbol made after this call has an id of at least its result.
  std::uint32_t checkpoint() const;

  /// Of the input; never null.
  const std::shared_ptr<Meter>& shared_meter() const;

  /// "3", "N", "2*N + 1", "floor(N/2)"; "?" for an unknown or a fresh symbol. Cut off behind 4,096 bytes.
  std::string to_text(Dim dim) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorlint
