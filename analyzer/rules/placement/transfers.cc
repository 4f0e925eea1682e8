#include "analyzer/rules/placement/transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/escape.h"
#include "passes/placement/operator_traits.h"
#include "passes/placement/transfer.h"

namespace tensorlint::rules {
namespace {

/// What a fix moves: `operands` of one node that are the same value.
struct Move {
  ValueId value = ValueId::kAbsent;
  std::vector<std::uint32_t> operands;
};

bool is_only_on(const std::vector<std::string>& devices, const std::string& device) {
  return devices.size() == 1 && devices[0] == device;
}

/// No other value and no node is called so: a key of the model may name it.
bool is_only_one_of_its_name(const dataflow::Analysis& analysis, ValueId value) {
  const Model& model = analysis.model();
  const NameId name = model.value(value).name;
  for (const ValueId other : analysis.values())
    if (other != value && model.value(other).name == name) return false;
  return std::ranges::none_of(analysis.nodes(), [&](NodeId node) { return model.node(node).name == name; });
}

class Proposal {
 public:
  Proposal(const ModelView& view, const placement::PlacementViolation& violation)
      : model_(view.model()), analysis_(view.analysis()), placement_(view.placement()), node_(violation.node) {}

  void gather(const placement::PlacementViolation& violation) {
    const std::span<const ValueId> operands = analysis_.operands(node_).read();
    if (violation.cause == placement::PlacementCause::kClaim) {
      if (violation.witness.iteration > 1) return;
      target_ = violation.witness.device;
      const Graph& body = model_.graph(model_.value(violation.first).graph);
      const auto input = std::ranges::find(body.inputs, violation.first);
      const auto at = static_cast<std::uint32_t>(input - body.inputs.begin());
      if (input != body.inputs.end() && at < operands.size() && operands[at] != ValueId::kAbsent)
        moves_.push_back({operands[at], {at}});
      return;
    }
    if (violation.first == violation.second) return;
    const ops::DeviceSignature roles = placement::device_signature(model_, model_.op(model_.node(node_)));
    target_ = best_target(roles, operands);
    std::map<ValueId, std::size_t> numbers;
    for (std::uint32_t i = 0; i < operands.size() && !target_.empty(); ++i) {
      if (operands[i] == ValueId::kAbsent) continue;
      if (analysis_.meter().is_spent()) return;  // the finding is dropped
      const std::vector<std::string> devices = devices_of(operands[i]);
      if (devices.empty() || is_only_on(devices, target_)) continue;
      if (roles.is_host(i) &&
          std::ranges::all_of(devices, [&](const std::string& device) { return device == target_ || device == "cpu"; }))
        continue;
      const auto [known, is_new] = numbers.emplace(operands[i], moves_.size());
      if (is_new) moves_.push_back({operands[i], {}});
      moves_[known->second].operands.push_back(i);
    }
  }

  void propose(FindingBuilder& finding) {
    if (moves_.empty()) return;
    std::string message;
    std::vector<GraphEdit> edits;
    for (const Move& move : moves_) {
      if (!message.empty()) message += ", ";
      message += places_initializer(move) ? place_initializer(move, edits) : transfer(move, edits);
    }
    finding.fix(std::move(message), findings::Applicability::kSafe, std::move(edits));
  }

 private:
  /// Their names are made and sorted each time.
  std::vector<std::string> devices_of(ValueId value) const {
    constexpr std::uint64_t kStepsOfName = 16;
    std::vector<std::string> devices = placement_.devices(value);
    analysis_.meter().charge(kStepsOfName * (1 + devices.size()));
    return devices;
  }

  /// The node's tag, else where most operands are; of equals an accelerator, of those where the first operand is.
  std::string best_target(const ops::DeviceSignature& roles, std::span<const ValueId> operands) const {
    if (const int tag = placement_.sources().node(node_); tag != placement::DeviceSources::kUnplaced)
      return placement_.sources().name(tag);
    std::vector<std::pair<std::string, int>> votes;  // in the order of the operands
    std::map<std::string, std::size_t> numbers;
    for (std::size_t i = 0; i < operands.size() && !analysis_.meter().is_spent(); ++i) {
      if (operands[i] == ValueId::kAbsent || roles.is_host(i)) continue;
      const std::vector<std::string> devices = devices_of(operands[i]);
      for (const std::string& device : devices) {
        const auto [known, is_new] = numbers.emplace(device, votes.size());
        if (is_new) votes.emplace_back(device, 0);
        votes[known->second].second += devices.size() == 1 ? 1 : 0;
      }
    }
    const auto rank = [](const std::pair<std::string, int>& vote) {
      return std::pair(vote.second, vote.first != "cpu");
    };
    const auto best = std::ranges::max_element(votes, [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    return best == votes.end() ? std::string() : best->first;
  }

  bool places_initializer(const Move& move) const {
    const Value& value = model_.value(move.value);
    return value.origin == ValueOrigin::kInitializer && value.graph == GraphId::kMain && !value.is_output &&
           placement_.sources().value_source(move.value) == placement::SourceKind::kNone &&
           analysis_.users(move.value).size() == move.operands.size() && is_only_one_of_its_name(analysis_, move.value);
  }

  std::string place_initializer(const Move& move, std::vector<GraphEdit>& edits) const {
    edits.push_back(AddModelMetadata{fmt::format("tensorlint.device:{}", model_.name_of(move.value)), target_});
    return fmt::format("place initializer {} on {}", quoted_for_people(model_.name_of(move.value)), target_);
  }

  std::string transfer(const Move& move, std::vector<GraphEdit>& edits) const {
    const NodeId before = placement::outermost_loop(model_, node_, move.value);
    const std::string from(model_.name_of(move.value));
    // Differs from node to node, so that fixes can be combined.
    const std::string made = unused_name(model_, fmt::format("{}_{}", placement::name_with_device(from, "on", target_),
                                                             static_cast<std::uint32_t>(node_)));
    for (GraphEdit& edit : placement::insert_transfer(made, from, made, target_, before, model_.node(before).graph))
      edits.push_back(std::move(edit));
    const std::size_t most = edits.size() + most_edits_with(made);
    for (std::size_t i = 0; i < move.operands.size() && edits.size() <= most; ++i)
      edits.push_back(SetOperand{node_, move.operands[i], made});
    const std::string what = fmt::format("move {} to {}", quoted_for_people(from), target_);
    return before == node_ ? what
                           : fmt::format("{} before `{}`, which does not change it", what,
                                         escape_for_display(model_.label(before)));
  }

  const Model& model_;
  const dataflow::Analysis& analysis_;
  const placement::Placement& placement_;
  NodeId node_;
  std::string target_;
  std::vector<Move> moves_;
};

}  // namespace

void propose_transfers(FindingBuilder& finding, const ModelView& view, const placement::PlacementViolation& violation) {
  Proposal proposal(view, violation);
  proposal.gather(violation);
  proposal.propose(finding);
}

}  // namespace tensorlint::rules
