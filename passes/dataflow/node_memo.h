#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/name_table.h"
#include "ir/call/application.h"
#include "ir/facts/fact.h"
#include "ir/graph/model.h"
#include "passes/dataflow/attributes.h"

namespace tensorlint::dataflow {

/// Results of nodes that were inferred, by operator, attributes and operands' facts. Only for calls whose outcome
/// depends on these alone: with a schema, nothing tainted, nothing failed, InferenceResult::repeatable.
class NodeMemo {
 public:
  explicit NodeMemo(const Model& model) : model_(model) {}

  /// Forgets all nodes: some were taken back.
  void clear() {
    entries_.clear();
    index_ = FlatMap();
    facts_.clear();
  }

  static std::uint64_t key_of(const Node& node, const Application& call) {
    std::uint64_t key =
        table_hash(hash_of(call.attributes), static_cast<std::uint64_t>(node.op) << 32 | node.result_count);
    for (const FactId operand : call.operands) key = table_hash(key, static_cast<std::uint64_t>(operand));
    return key;
  }

  /// Facts of the results, one for each the node has, valid until the next `remember`; null where no such call is
  /// known.
  const FactId* find(std::uint64_t key, const Node& node, const Application& call) const {
    // Nodes that share a key stand under the keys that follow it.
    for (std::uint64_t end = key + kMaxSharers; key != end; ++key) {
      const std::uint32_t number = index_.find(key);
      if (number == 0) break;
      const Entry& entry = entries_[number - 1];
      const Node& known = model_.node(entry.node);
      if (known.op != node.op || known.result_count != node.result_count || known.operand_count != node.operand_count)
        continue;
      if (!std::equal(call.operands.begin(), call.operands.end(), facts_.begin() + entry.first_operand)) continue;
      if (same_attributes(call.attributes, model_.attributes(known))) return facts_.data() + entry.first_result;
    }
    return nullptr;
  }

  /// `node` has the attributes of the call: they are compared with later calls.
  void remember(std::uint64_t key, NodeId node, std::span<const FactId> operands, std::span<const FactId> results) {
    if (facts_.size() + operands.size() + results.size() > std::max(kFactsAtLeast, kFactsPerNode * model_.nodes.size()))
      return;
    const std::uint64_t end = key + kMaxSharers;
    while (key != end && index_.find(key) != 0) ++key;
    if (key == end) return;
    Entry entry{node, static_cast<std::uint32_t>(facts_.size()), 0};
    facts_.insert(facts_.end(), operands.begin(), operands.end());
    entry.first_result = static_cast<std::uint32_t>(facts_.size());
    facts_.insert(facts_.end(), results.begin(), results.end());
    entries_.push_back(entry);
    index_[key] = static_cast<std::uint32_t>(entries_.size());
  }

 private:
  /// Of 4 bytes each. What is inferred for one node in many visits may be more than there is room for.
  static constexpr std::size_t kFactsAtLeast = std::size_t{1} << 20, kFactsPerNode = 16;
  static constexpr std::uint64_t kMaxSharers = 8;  // of one key: attributes that never compare equal share theirs

  struct Entry {
    NodeId node;
    std::uint32_t first_operand, first_result;
  };

  const Model& model_;
  std::vector<Entry> entries_;
  FlatMap index_;              // from a key to the place in entries_, plus 1
  std::vector<FactId> facts_;  // operands and results of the entries
};

}  // namespace tensorlint::dataflow
