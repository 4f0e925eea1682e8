#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/meter.h"

namespace tensorlint::placement {

/// A function from choices (conditions that are open, how often loops run) to small numbers, by id: equal functions
/// have equal ids. Id 0 is the constant 0 (false), id 1 the constant 1 (true).
struct Bdd {
  std::uint32_t id = 0;
  friend bool operator==(Bdd, Bdd) = default;
};

inline constexpr Bdd kFalse{0}, kTrue{1};

/// Reduced ordered decision diagrams over bool choices, with numbers at the leaves. Variables are tested in the order
/// of their numbers. Operations recurse as deep as there are variables: whoever makes variables bounds their number.
/// When the store is full, operations give the leaf 0 and is_full() tells so: results are worth nothing from then on.
class BddStore {
 public:
  /// `meter`: of the input; where it is spent, the store is full. `limit`: of nodes and remembered operations together,
  /// some 128 bytes and 1 us each; models that people write take a few thousand.
  explicit BddStore(Meter& meter, std::size_t limit = std::size_t{1} << 17);
  Meter& meter() const { return meter_; }

  Bdd leaf(std::uint32_t value);
  /// True where the choice is.
  Bdd choice(std::uint32_t variable) { return make(variable, kFalse, kTrue); }
  bool is_full() const { return full_; }

  bool is_leaf(Bdd d) const { return nodes_[d.id].variable == kLeaf; }
  std::uint32_t value(Bdd leaf) const { return nodes_[leaf.id].low; }
  std::uint32_t variable(Bdd d) const { return nodes_[d.id].variable; }  ///< not of a leaf
  Bdd when_false(Bdd d) const { return {nodes_[d.id].low}; }
  Bdd when_true(Bdd d) const { return {nodes_[d.id].high}; }

  // Of diagrams whose leaves are 0 and 1.
  Bdd and_(Bdd a, Bdd b);
  Bdd or_(Bdd a, Bdd b) { return not_(and_(not_(a), not_(b))); }
  Bdd not_(Bdd a) { return ite(a, kFalse, kTrue); }
  Bdd without(Bdd a, Bdd b) { return and_(a, not_(b)); }

  /// `yes` where the condition holds, else `no`.
  Bdd ite(Bdd condition, Bdd yes, Bdd no);

  /// Leaf by leaf. One `key` for each function that is ever passed: results are remembered by it.
  template <typename Function>
  Bdd map(std::uint32_t key, Bdd a, const Function& function) {
    if (is_leaf(a)) return leaf(function(value(a)));
    return map2(key, a, kFalse, [&](std::uint32_t x, std::uint32_t) { return function(x); });
  }
  template <typename Function>
  Bdd map2(std::uint32_t key, Bdd a, Bdd b, const Function& function) {
    if (is_leaf(a) && is_leaf(b)) return leaf(function(value(a), value(b)));
    if (full_) return kFalse;
    const Key memo{key, a.id, b.id};
    meter_.charge(kStepsPerLookup);
    if (const auto known = memo_.find(memo); known != memo_.end()) return known->second;
    meter_.charge(kStepsPerOperation);
    const std::uint32_t top = std::min(nodes_[a.id].variable, nodes_[b.id].variable);
    const Bdd low = map2(key, cofactor(a, top, false), cofactor(b, top, false), function);
    const Bdd high = map2(key, cofactor(a, top, true), cofactor(b, top, true), function);
    const Bdd result = make(top, low, high);
    memo_.emplace(memo, result);
    remember();
    return result;
  }

  /// The leaves that some choices reach, each once; `visit(value)`.
  template <typename Visit>
  void for_each_leaf(Bdd d, const Visit& visit) const {
    if (is_leaf(d)) return visit(value(d));
    for (const Bdd node : nodes_of(d))
      if (is_leaf(node)) visit(value(node));
  }
  /// Above all variables that `d` tests; 0 of a leaf.
  std::uint32_t variables_end(Bdd d) const { return nodes_[d.id].end; }
  /// Every diagram inside `d`, itself first, each once; in an order that depends on its structure alone.
  std::vector<Bdd> nodes_of(Bdd d) const;

  /// Choices for which a condition holds, `false` tried first: (variable, choice) in the variables' order; the others
  /// do not matter. nullopt when it never holds.
  std::optional<std::vector<std::pair<std::uint32_t, bool>>> example(Bdd condition) const;

 private:
  static constexpr std::uint32_t kLeaf = std::numeric_limits<std::uint32_t>::max();

  struct Node {
    std::uint32_t variable, low, high;  // of a leaf: kLeaf, its value, 0
    std::uint32_t end = 0;              // above all variables that are tested in it
    friend bool operator==(const Node& a, const Node& b) {
      return a.variable == b.variable && a.low == b.low && a.high == b.high;
    }
  };
  struct Key {
    std::uint32_t operation, a, b;  // of ite(): the condition, yes and no
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Node& node) const;
    std::size_t operator()(const Key& key) const { return (*this)(Node{key.operation, key.a, key.b}); }
  };
  static constexpr std::uint32_t kAnd = 0;  // the keys of map() begin at 16

  Bdd intern(Node node);
  Bdd make(std::uint32_t variable, Bdd low, Bdd high) {
    return low == high ? low
                       : intern({variable, low.id, high.id,
                                 std::max(variable + 1, std::max(nodes_[low.id].end, nodes_[high.id].end))});
  }
  Bdd cofactor(Bdd d, std::uint32_t variable, bool choice) const {
    const Node& node = nodes_[d.id];
    return node.variable != variable ? d : Bdd{choice ? node.high : node.low};
  }

  void remember() {
    memory_.add(kBytesPerEntry);
    ++remembered_;
  }

  static constexpr std::uint64_t kStepsPerOperation = 100, kStepsPerLookup = 12, kBytesPerEntry = 128;

  Meter& meter_;
  KeptMemory memory_;
  std::size_t limit_, remembered_ = 0;
  bool full_ = false;
  static constexpr std::uint32_t kListedLeaves = 4096;
  std::vector<Node> nodes_;
  mutable std::vector<std::uint32_t> met_;  // by node: the walk that met it last
  mutable std::uint32_t walk_ = 0;
  std::vector<Bdd> leaves_;  // by value, kFalse where there is none yet
  std::unordered_map<Node, std::uint32_t, Hash> ids_;
  std::unordered_map<Key, Bdd, Hash> memo_, choices_;  // of map(), of ite()
};

}  // namespace tensorlint::placement
