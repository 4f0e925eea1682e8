#include "passes/placement/loop_states.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/hash.h"

namespace tensorlint::placement {
namespace {

constexpr std::size_t kMaxOutcomes = 16;  // of a forgotten choice
constexpr std::size_t kMaxParts = 64;     // that are chosen in different ways

/// Two hashes of a text that is given word by word.
struct Digest {
  LoopStates::Signature words{1, 2};
  void add(std::uint64_t word) {
    words[0] = table_hash(words[0], word);
    words[1] = table_hash(words[1], ~word);
  }
};

/// Things by number, in the order in which they first came up.
template <typename Item>
class Numbered {
 public:
  std::uint32_t number(Item item) {
    const auto [at, added] = numbers_.emplace(std::move(item), static_cast<std::uint32_t>(items_.size()));
    if (added) items_.push_back(&at->first);
    return at->second;
  }
  const Item& operator[](std::uint32_t number) const { return *items_[number]; }

 private:
  std::map<Item, std::uint32_t> numbers_;
  std::vector<const Item*> items_;
};

}  // namespace

LoopStates::Signature LoopStates::signature(std::span<const Placed> state, Bdd going, Symbols::Count old) const {
  Digest text;
  std::map<std::uint64_t, std::uint64_t> names;
  const auto renamed = [&](std::uint32_t symbol) {
    return symbol < old.symbols ? symbol : (std::uint64_t{1} << 40) + names.emplace(symbol, names.size()).first->second;
  };
  const auto add = [&](Bdd d) {
    if (store_.variables_end(d) <= old.variables) {  // nothing in it has another name
      text.add(0);
      text.add(d.id);
      return;
    }
    std::unordered_map<std::uint32_t, std::uint64_t> numbers;
    const std::vector<Bdd> nodes = store_.nodes_of(d);
    for (std::size_t i = 0; i < nodes.size(); ++i) numbers[nodes[i].id] = i;
    text.add(nodes.size());
    for (const Bdd node : nodes) {
      if (store_.is_leaf(node)) {
        text.add(store_.value(node));
        continue;
      }
      const std::uint32_t variable = store_.variable(node);
      if (variable < old.variables) {
        text.add((std::uint64_t{1} << 41) + variable);
      } else {
        text.add((std::uint64_t{1} << 42) + static_cast<std::uint64_t>(symbols_.variable(variable).above));
        text.add(renamed(symbols_.variable(variable).symbol));
      }
      text.add(numbers[store_.when_false(node).id]);
      text.add(numbers[store_.when_true(node).id]);
    }
  };
  for (const Placed& placed : state) {
    add(placed.device);
    text.add(static_cast<std::uint64_t>(placed.content.kind));
    if (placed.content.kind == Element::Kind::kFormula) add(placed.content.formula);
    if (placed.content.kind == Element::Kind::kNumber) text.add(static_cast<std::uint64_t>(placed.content.number));
    if (placed.content.kind == Element::Kind::kSymbol) text.add(renamed(placed.content.symbol));
  }
  add(going);
  return text.words;
}

/// A choice that was made since decides it.
bool LoopStates::is_new(Bdd d, Symbols::Count old) const {
  if (store_.variables_end(d) <= old.variables) return false;
  const std::vector<Bdd> nodes = store_.nodes_of(d);
  return std::any_of(nodes.begin(), nodes.end(), [&](Bdd node) {
    return !store_.is_leaf(node) && symbols_.variable(store_.variable(node)).symbol >= old.symbols;
  });
}

bool LoopStates::depends_on_new(std::span<const Placed> state, Symbols::Count old) const {
  return std::any_of(state.begin(), state.end(), [&](const Placed& placed) {
    return is_new(placed.device, old) ||
           (placed.content.kind == Element::Kind::kFormula && is_new(placed.content.formula, old));
  });
}

template <typename OfNode, typename OfLeaf>
Bdd LoopStates::rebuilt(Bdd root, const OfNode& of_node, const OfLeaf& of_leaf) {
  std::map<std::uint32_t, Bdd> done;  // there may be 2^n ways to one node
  const std::function<Bdd(Bdd)> rebuild = [&](Bdd d) -> Bdd {
    if (const auto known = done.find(d.id); known != done.end()) return known->second;
    Bdd result;
    if (store_.is_leaf(d)) {
      result = of_leaf(d);
    } else {
      const Bdd low = rebuild(store_.when_false(d)), high = rebuild(store_.when_true(d));
      result = of_node(d, low, high);
    }
    done.emplace(d.id, result);
    return result;
  };
  return rebuild(root);
}

void LoopStates::forget_choices(std::vector<Placed>& state, Bdd inside, Symbols::Count old, ValueId named) {
  const std::uint32_t key = next_key_;
  next_key_ += 3;
  // What no new choice decides stays as it is, and what is chosen alike is one part: outcomes of thousands of values
  // would be long.
  std::vector<Bdd> parts;
  std::map<std::uint32_t, std::size_t> numbers;
  std::vector<std::pair<Bdd*, std::size_t>> places;
  const auto add = [&](Bdd& d) {
    if (!is_new(d, old)) return;
    const auto [known, is_added] = numbers.try_emplace(d.id, parts.size());
    if (is_added) parts.push_back(d);
    places.emplace_back(&d, known->second);
  };
  for (Placed& placed : state) {
    add(placed.device);
    if (placed.content.kind == Element::Kind::kFormula) add(placed.content.formula);
  }
  store_.meter().charge(4 * places.size());
  if (parts.size() > kMaxParts) return;
  // An outcome: the leaves of all parts.
  Numbered<std::vector<std::uint32_t>> outcomes;
  Bdd joint = store_.leaf(outcomes.number({}));
  for (const Bdd part : parts)
    joint = store_.map2(key, joint, part, [&](std::uint32_t known, std::uint32_t leaf) {
      std::vector<std::uint32_t> leaves = outcomes[known];
      leaves.push_back(leaf);
      return outcomes.number(std::move(leaves));
    });
  // Leaves are sets of outcomes from here on; 0 is the empty one.
  Numbered<std::set<std::uint32_t>> sets;
  sets.number({});
  joint =
      store_.ite(inside, store_.map(key + 1, joint, [&](std::uint32_t item) { return sets.number({item}); }), kFalse);
  const auto forgotten = [&](Bdd d, Bdd low, Bdd high) {
    const bool keep = symbols_.variable(store_.variable(d)).symbol < old.symbols && low != kFalse && high != kFalse;
    if (keep) return store_.ite(store_.choice(store_.variable(d)), high, low);
    return store_.map2(key + 2, low, high, [&](std::uint32_t a, std::uint32_t b) {
      std::set<std::uint32_t> items = sets[a];
      items.insert(sets[b].begin(), sets[b].end());
      return sets.number(std::move(items));
    });
  };
  joint = rebuilt(joint, forgotten, [](Bdd leaf) { return leaf; });
  std::size_t most = 1;
  store_.for_each_leaf(joint, [&](std::uint32_t leaf) { most = std::max(most, sets[leaf].size()); });
  if (most > kMaxOutcomes || store_.is_full()) return;
  std::vector<Bdd> selectors;
  for (std::size_t i = 1; i < most; ++i) {
    const auto selector = symbols_.above(symbols_.fresh(named).symbol, 0, false);
    if (!selector) return;
    selectors.push_back(*selector);
  }
  const auto part = [&](std::size_t index) {
    const auto chosen = [&](Bdd leaf) {
      // By content, so that the same set is told apart in the same way in every iteration.
      std::vector<std::vector<std::uint32_t>> items;
      for (const std::uint32_t item : sets[store_.value(leaf)]) items.push_back(outcomes[item]);
      std::sort(items.begin(), items.end());
      Bdd d = items.empty() ? kFalse : store_.leaf(items.back()[index]);
      for (std::size_t i = items.size(); i-- > 1;)
        d = store_.ite(selectors[i - 1], store_.leaf(items[i - 1][index]), d);
      return d;
    };
    return rebuilt(
        joint, [&](Bdd d, Bdd low, Bdd high) { return store_.ite(store_.choice(store_.variable(d)), high, low); },
        chosen);
  };
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = part(i);
  for (const auto& [place, number] : places) *place = parts[number];
}

}  // namespace tensorlint::placement
