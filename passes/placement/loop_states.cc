#include "passes/placement/loop_states.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "base/walk.h"

namespace tensorlint::placement {
namespace {

constexpr std::size_t kMaxOutcomes = 16;                       // of a forgotten choice
constexpr std::size_t kMaxParts = 64;                          // that are chosen in different ways
constexpr std::uint64_t kStepsOfValue = 8, kStepsOfNode = 24;  // a look-up and an entry in a table

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
  explicit Numbered(KeptMemory& memory) : memory_(memory) {}
  std::uint32_t number(Item item) {
    const auto [at, added] = numbers_.emplace(std::move(item), static_cast<std::uint32_t>(items_.size()));
    if (added) {
      constexpr std::uint64_t kBytesOfItem = 128, kBytesOfMember = 48;  // of a node of a set
      memory_.add(kBytesOfItem + kBytesOfMember * at->first.size());
      items_.push_back(&at->first);
    }
    return at->second;
  }
  const Item& operator[](std::uint32_t number) const { return *items_[number]; }

 private:
  KeptMemory& memory_;
  std::map<Item, std::uint32_t> numbers_;
  std::vector<const Item*> items_;
};

/// Whether a choice that was made since decides a diagram. Values share diagrams, and diagrams parts: each is looked
/// at once.
class NewChoices {
 public:
  NewChoices(const BddStore& store, const Symbols& symbols, Symbols::Count old)
      : store_(store), symbols_(symbols), old_(old) {}
  bool decide(Bdd d) {
    if (store_.variables_end(d) <= old_.variables || store_.meter().is_spent()) return false;
    if (const auto known = known_.find(d.id); known != known_.end()) return known->second;
    store_.meter().charge(kStepsOfNode);
    const bool result = symbols_.variable(store_.variable(d)).symbol >= old_.symbols || decide(store_.when_false(d)) ||
                        decide(store_.when_true(d));
    known_.emplace(d.id, result);
    return result;
  }

 private:
  const BddStore& store_;
  const Symbols& symbols_;
  Symbols::Count old_;
  std::unordered_map<std::uint32_t, bool> known_;
};

}  // namespace

LoopStates::Signature LoopStates::signature(std::span<const Placed> state, Bdd going, Symbols::Count old) const {
  constexpr std::uint64_t kSymbol = std::uint64_t{1} << 40, kVariable = std::uint64_t{1} << 41,
                          kNewVariable = std::uint64_t{1} << 42, kPart = std::uint64_t{1} << 43;
  Meter& meter = store_.meter();
  Digest text;
  std::unordered_map<std::uint32_t, std::uint64_t> names;
  const auto renamed = [&](std::uint32_t symbol) {
    if (symbol < old.symbols) return std::uint64_t{symbol};
    meter.charge(kStepsOfNode);
    return kSymbol + names.try_emplace(symbol, names.size()).first->second;
  };
  // Parts of diagrams, by the order in which they first came up: what values share is told once.
  std::unordered_map<std::uint32_t, std::uint64_t> numbers;
  std::vector<Bdd> untold;
  const auto refer_to = [&](Bdd part) {
    if (store_.variables_end(part) <= old.variables) {  // nothing in it has another name
      text.add(part.id);
      return;
    }
    const auto [known, is_new] = numbers.try_emplace(part.id, numbers.size());
    text.add(kPart + known->second);
    if (is_new) untold.push_back(part);
  };
  const auto add = [&](Bdd d) {
    refer_to(d);
    for (std::size_t i = 0; i < untold.size() && !meter.is_spent(); ++i) {
      meter.charge(kStepsOfNode);
      const Bdd part = untold[i];
      const std::uint32_t variable = store_.variable(part);
      if (variable < old.variables) {
        text.add(kVariable + variable);
      } else {
        text.add(kNewVariable + static_cast<std::uint64_t>(symbols_.variable(variable).above));
        text.add(renamed(symbols_.variable(variable).symbol));
      }
      refer_to(store_.when_false(part));
      refer_to(store_.when_true(part));
    }
    untold.clear();
  };
  for (const Placed& placed : Walk(state, meter)) {
    meter.charge(kStepsOfValue);
    add(placed.device);
    text.add(static_cast<std::uint64_t>(placed.content.kind));
    if (placed.content.kind == Element::Kind::kFormula) add(placed.content.formula);
    if (placed.content.kind == Element::Kind::kNumber) text.add(static_cast<std::uint64_t>(placed.content.number));
    if (placed.content.kind == Element::Kind::kSymbol) text.add(renamed(placed.content.symbol));
  }
  add(going);
  return text.words;
}

template <typename OfNode, typename OfLeaf>
Bdd LoopStates::rebuilt(Bdd root, const OfNode& of_node, const OfLeaf& of_leaf) {
  std::map<std::uint32_t, Bdd> done;  // there may be 2^n ways to one node
  const std::function<Bdd(Bdd)> rebuild = [&](Bdd d) -> Bdd {
    if (const auto known = done.find(d.id); known != done.end()) return known->second;
    if (store_.meter().is_spent()) return kFalse;
    store_.meter().charge(kStepsOfNode);
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
  // What no new choice decides stays as it is, and what is chosen alike is one part: outcomes of thousands of values
  // would be long.
  std::vector<Bdd> parts;
  std::map<std::uint32_t, std::size_t> numbers;
  std::vector<std::pair<Bdd*, std::size_t>> places;
  NewChoices choices(store_, symbols_, old);
  const auto add = [&](Bdd& d) {
    if (!choices.decide(d)) return;
    const auto [known, is_added] = numbers.try_emplace(d.id, parts.size());
    if (is_added) parts.push_back(d);
    places.emplace_back(&d, known->second);
  };
  Meter& meter = store_.meter();
  meter.charge(kStepsOfValue * state.size());
  for (Placed& placed : state) {
    add(placed.device);
    if (placed.content.kind == Element::Kind::kFormula) add(placed.content.formula);
  }
  meter.charge(4 * places.size());
  if (parts.empty() || parts.size() > kMaxParts) return;
  const std::uint32_t key = next_key_;
  next_key_ += 3;
  // An outcome: the leaves of all parts.
  KeptMemory memory(meter);
  Numbered<std::vector<std::uint32_t>> outcomes(memory);
  Bdd joint = store_.leaf(outcomes.number({}));
  for (const Bdd part : parts)
    joint = store_.map2(key, joint, part, [&](std::uint32_t known, std::uint32_t leaf) {
      std::vector<std::uint32_t> leaves = outcomes[known];
      leaves.push_back(leaf);
      meter.charge(kStepsOfNode + leaves.size());
      return meter.is_spent() ? known : outcomes.number(std::move(leaves));
    });
  if (meter.is_spent()) return;
  // Leaves are sets of outcomes from here on; 0 is the empty one.
  Numbered<std::set<std::uint32_t>> sets(memory);
  sets.number({});
  joint =
      store_.ite(inside, store_.map(key + 1, joint, [&](std::uint32_t item) { return sets.number({item}); }), kFalse);
  bool has_too_many = false;  // for good: where choices are forgotten, sets only grow
  const auto forgotten = [&](Bdd d, Bdd low, Bdd high) {
    const bool keep = symbols_.variable(store_.variable(d)).symbol < old.symbols && low != kFalse && high != kFalse;
    if (keep) return store_.ite(store_.choice(store_.variable(d)), high, low);
    return store_.map2(key + 2, low, high, [&](std::uint32_t a, std::uint32_t b) {
      if (has_too_many || meter.is_spent()) return std::uint32_t{0};
      std::set<std::uint32_t> items = sets[a];
      items.insert(sets[b].begin(), sets[b].end());
      meter.charge(kStepsOfValue * (1 + items.size()));
      has_too_many = items.size() > kMaxOutcomes;
      return sets.number(std::move(items));
    });
  };
  joint = rebuilt(joint, forgotten, [](Bdd leaf) { return leaf; });
  if (has_too_many || store_.is_full() || meter.is_spent()) return;
  std::size_t most = 1;
  store_.for_each_leaf(joint, [&](std::uint32_t leaf) { most = std::max(most, sets[leaf].size()); });
  std::vector<Bdd> selectors;
  for (std::size_t i = 1; i < most; ++i) {
    const auto selector = symbols_.above(symbols_.fresh(named).symbol, 0, false);
    if (!selector) return;
    selectors.push_back(*selector);
  }
  const auto part = [&](std::size_t index) {
    const auto chosen = [&](Bdd leaf) {
      // By content, so that the same set is told apart in the same way in every iteration.
      std::vector<const std::vector<std::uint32_t>*> items;
      for (const std::uint32_t item : sets[store_.value(leaf)]) items.push_back(&outcomes[item]);
      meter.charge(kStepsOfValue * items.size());
      std::ranges::sort(items, [](const auto* a, const auto* b) { return *a < *b; });
      Bdd d = items.empty() ? kFalse : store_.leaf((*items.back())[index]);
      for (std::size_t i = items.size(); i-- > 1;)
        d = store_.ite(selectors[i - 1], store_.leaf((*items[i - 1])[index]), d);
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
