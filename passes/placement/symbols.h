#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/meter.h"
#include "ir/ops/opcode.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/bdd.h"

namespace tensorlint::placement {

using ops::Opcode;

/// What is known of the one element of a condition or trip count.
struct Element {
  enum class Kind : std::uint8_t { kNone, kFormula, kNumber, kSymbol } kind = Kind::kNone;
  bool is_iteration = false;  ///< kNumber: the number of the iteration under way
  Bdd formula{};              ///< kFormula: when the condition holds
  std::uint32_t symbol = 0;   ///< kSymbol: an open condition or number
  std::int64_t number = 0;    ///< kNumber; conditions too
  friend bool operator==(const Element&, const Element&) = default;
};

/// Where a value is, and what its element is.
struct Placed {
  Bdd device;
  Element content;
  friend bool operator==(const Placed&, const Placed&) = default;
};

/// The conditions and numbers that the facts leave open, and the variables that stand for them in diagrams.
class Symbols {
 public:
  Symbols(const dataflow::Analysis& analysis, BddStore& store)
      : analysis_(analysis), store_(store), memory_(analysis.facts().meter()) {}

  static constexpr std::size_t kMaxVariables = 1024;
  struct Variable {
    std::uint32_t symbol;
    std::int64_t above;  ///< trip counts: the number is greater than this
    bool is_trip_count;
  };
  const Variable& variable(std::uint32_t number) const { return variables_[number]; }
  /// How many there are, to tell what was made since.
  struct Count {
    std::size_t symbols, variables;
  };
  Count count() const { return {sources_.size(), variables_.size()}; }

  /// The element of a value whose inferred fact is a constant, else an open one; nothing for what is no bool or integer
  /// of one element.
  Element open(ValueId value);
  Element fresh(ValueId value);
  /// The number that an extent is: the same one everywhere.
  std::uint32_t of_dim(Dim dim);

  /// The variable "`symbol` > k"; of a condition (k = 0) simply "it holds". nullopt past the number that is told apart.
  std::optional<Bdd> above(std::uint32_t symbol, std::int64_t k, bool is_trip_count);
  /// When a condition holds; nullopt when it is not told apart.
  std::optional<Bdd> formula(const Element& content);
  /// What the operator gives for one or two elements; `open` where that is not told apart.
  Element apply(Opcode opcode, const Element& a, const Element& b, const Element& open);
  /// The content of a value that is `yes` under a condition, else `no`.
  Element merge(Bdd chosen, const Element& yes, const Element& no, ValueId result);

  /// What the symbol stands for: a value, or 2^32 + a dim. The same in each pass over the model.
  std::uint64_t source(std::uint32_t symbol) const { return sources_[symbol]; }
  std::string name(std::uint32_t symbol) const;

 private:
  const dataflow::Analysis& analysis_;
  BddStore& store_;
  KeptMemory memory_;
  std::vector<std::uint64_t> sources_;  // by symbol
  std::vector<Variable> variables_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> variable_of_;
  std::map<std::uint32_t, std::uint32_t> dim_symbols_;
  std::map<std::uint32_t, std::string> dim_names_;
};

}  // namespace tensorlint::placement
