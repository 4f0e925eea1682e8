#include "passes/placement/bdd.h"

#include <algorithm>

#include "base/hash.h"

namespace tensorlint::placement {

std::size_t BddStore::Hash::operator()(const Node& node) const {
  return static_cast<std::size_t>(table_hash(table_hash(node.variable, node.low), node.high));
}

BddStore::BddStore(Meter& meter, std::size_t limit) : meter_(meter), memory_(meter), limit_(limit) {
  intern({kLeaf, 0, 0});
  intern({kLeaf, 1, 0});
}

Bdd BddStore::intern(Node node) {
  meter_.charge(8);
  if (const auto known = ids_.find(node); known != ids_.end()) return {known->second};
  const bool is_constant = node.variable == kLeaf && node.low <= 1;
  if (nodes_.size() + remembered_ >= limit_ || (meter_.is_spent() && !is_constant)) {
    full_ = true;
    return kFalse;
  }
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  meter_.charge(24);
  memory_.add(kBytesPerEntry);
  nodes_.push_back(node);
  ids_.emplace(node, id);
  return {id};
}

Bdd BddStore::leaf(std::uint32_t value) {
  if (value <= 1) return {value};
  if (value >= kListedLeaves) return intern({kLeaf, value, 0});
  if (leaves_.size() <= value) leaves_.resize(value + 1);
  if (leaves_[value] == kFalse) leaves_[value] = intern({kLeaf, value, 0});
  return leaves_[value];
}

Bdd BddStore::and_(Bdd a, Bdd b) {
  if (a == kFalse || b == kFalse) return kFalse;
  if (a == kTrue || a == b) return b;
  if (b == kTrue) return a;
  if (a.id > b.id) std::swap(a, b);
  return map2(kAnd, a, b, [](std::uint32_t x, std::uint32_t y) { return x & y; });
}

Bdd BddStore::ite(Bdd condition, Bdd yes, Bdd no) {
  if (condition == kTrue || yes == no) return yes;
  if (condition == kFalse) return no;
  if (yes == kTrue && no == kFalse) return condition;
  if (full_) return kFalse;
  const Key memo{condition.id, yes.id, no.id};
  meter_.charge(kStepsPerLookup);
  if (const auto known = choices_.find(memo); known != choices_.end()) return known->second;
  meter_.charge(kStepsPerOperation);
  const std::uint32_t top = std::min({nodes_[condition.id].variable, nodes_[yes.id].variable, nodes_[no.id].variable});
  const Bdd low = ite(cofactor(condition, top, false), cofactor(yes, top, false), cofactor(no, top, false));
  const Bdd high = ite(cofactor(condition, top, true), cofactor(yes, top, true), cofactor(no, top, true));
  const Bdd result = make(top, low, high);
  choices_.emplace(memo, result);
  remember();
  return result;
}

std::vector<Bdd> BddStore::nodes_of(Bdd d) const {
  std::vector<Bdd> found{d};
  met_.resize(nodes_.size());
  met_[d.id] = ++walk_;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (is_leaf(found[i])) continue;
    for (const Bdd next : {when_false(found[i]), when_true(found[i])})
      if (std::exchange(met_[next.id], walk_) != walk_) found.push_back(next);
  }
  meter_.charge(4 * found.size());
  return found;
}

std::optional<std::vector<std::pair<std::uint32_t, bool>>> BddStore::example(Bdd condition) const {
  if (condition == kFalse) return std::nullopt;
  std::vector<std::pair<std::uint32_t, bool>> choices;
  // Reduced: every diagram other than kFalse holds for some choices.
  while (!is_leaf(condition)) {
    const bool choice = when_false(condition) == kFalse;
    choices.emplace_back(variable(condition), choice);
    condition = choice ? when_true(condition) : when_false(condition);
  }
  return choices;
}

}  // namespace tensorlint::placement
