#include "analyzer/rules/causes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "analyzer/findings/fingerprint.h"
#include "base/hash.h"

namespace tensorlint::rules {
namespace {

constexpr std::size_t kMaxListNodes = 64;  // a list that is computed by more, or from more at a time, is not compared

bool is_constant(const Model& model, ValueId id) {
  const Value& value = model.value(id);
  if (value.origin == ValueOrigin::kInitializer) return true;
  return value.producer != NodeId::kNone && model.node(value.producer).operand_count == 0;
}

/// The constants that a list of extents, axes or pads is computed from; nullopt where it needs more than a walk of
/// kMaxListNodes. What only the shape of a tensor decides is not a constant, and not followed further.
std::optional<std::set<ValueId>> constants_of(const dataflow::Analysis& analysis, ValueId list) {
  const Model& model = analysis.model();
  std::set<ValueId> constants, known{list};
  std::vector<ValueId> pending{list};
  while (!pending.empty()) {
    const ValueId value = pending.back();
    pending.pop_back();
    if (is_constant(model, value)) {
      constants.insert(value);
      continue;
    }
    const NodeId producer = model.value(value).producer;
    if (producer == NodeId::kNone) continue;
    const Node& node = model.node(producer);
    if (node.operand_count > kMaxListNodes) return std::nullopt;
    const ops::OpEntry* entry = analysis.entry(node);
    if (entry != nullptr && entry->has(ops::OpTrait::kShapeOf)) continue;
    for (const ValueId operand : analysis.operands(producer))
      if (operand != ValueId::kAbsent && known.insert(operand).second) pending.push_back(operand);
    if (known.size() > kMaxListNodes) return std::nullopt;
  }
  return constants;
}

/// Lists with the same elements, made of the same constants.
std::string list_key(const dataflow::Analysis& analysis, ValueId value) {
  const Fact& fact = analysis.fact(value);
  const Content* content = analysis.content(value);
  if (content == nullptr || content->integers.empty()) return {};
  const auto constants = constants_of(analysis, value);
  if (!constants || constants->empty()) return {};
  std::vector<std::uint32_t> ids;
  for (const ValueId constant : *constants) ids.push_back(static_cast<std::uint32_t>(constant));
  return fmt::format("list {} of {}", static_cast<std::uint32_t>(fact.content), fmt::join(ids, ","));
}

/// The dtypes that meet, in one order whoever comes first.
std::string dtypes_of(std::span<const Operand> operands) {
  std::set<std::string> dtypes;
  for (const Operand& operand : operands) dtypes.insert(operand.fact().dtypes.to_text());
  return fmt::format("{}", fmt::join(dtypes, " "));
}

std::string reason_of(const dataflow::Analysis& analysis, const dataflow::NodeViolation& violation) {
  std::string reason = to_text(violation.message, analysis.facts());
  analysis.meter().charge(1 + reason.size() / 4);
  return short_key(std::move(reason));
}

/// Where an exporter left no source lines, names show instances of one module: nodes below "/layers.0/attention" and
/// "/layers.7/attention" that fail in the same words. Empty for names without a module that is numbered.
std::string instance_key(const dataflow::Analysis& analysis, const dataflow::NodeViolation& violation) {
  const Model& model = analysis.model();
  const Node& node = model.node(violation.node);
  const std::string_view name = model.text(node.name), module = name.substr(0, name.rfind('/'));
  analysis.meter().charge(1 + name.size() / 4);
  const bool is_numbered = std::ranges::any_of(module, [](char c) { return c >= '0' && c <= '9'; });
  if (module.size() == name.size() || !is_numbered) return {};
  return fmt::format("instance {} {} {} {}", findings::without_numbers(module), model.text(model.op(node).name),
                     violation.constraint->label, reason_of(analysis, violation));
}

}  // namespace

std::string short_key(std::string key) {
  constexpr std::size_t kMaxKey = 256;
  if (key.size() <= kMaxKey) return key;
  std::uint64_t hash = key.size();
  for (const char c : key) hash = mix(hash, static_cast<unsigned char>(c));
  return fmt::format("{} {:016x}", std::string_view(key).substr(0, kMaxKey / 2), hash);
}

std::vector<std::string> causes_of(const ViolationCase& violation, dataflow::Origins& origins) {
  std::vector<std::string> causes;
  if (!violation.has_node()) return causes;
  const Aspect aspect = violation.at.aspect();
  const std::string_view label = violation.at.constraint->label;
  if (violation.loss != nullptr && violation.loss->anchor != NodeId::kNone)
    causes.push_back(
        fmt::format("loss {} {}", static_cast<int>(aspect), static_cast<std::uint32_t>(violation.loss->anchor)));
  if (std::string instance = instance_key(violation.analysis, violation.at); !instance.empty())
    causes.push_back(std::move(instance));
  const std::vector<Operand> operands = violation.operands();
  const std::string reason =
      aspect == Aspect::kDtype ? dtypes_of(operands) : reason_of(violation.analysis, violation.at);
  for (const Operand& operand : operands) {
    const dataflow::Origin origin = origins.of(operand.value(), aspect);
    const ValueId source = origin.value == ValueId::kAbsent ? operand.value() : origin.value;
    const auto id = static_cast<std::uint32_t>(source);
    // A wrong constant fails in many ways; what is computed is to blame where all say the same of it.
    const bool any_reason = aspect != Aspect::kDtype && is_constant(violation.model(), source);
    causes.push_back(fmt::format("{} {} {} {}", label, static_cast<int>(aspect), id, any_reason ? "" : reason));
    // A target of integers fails in each of the nodes that a loss is written out as, for other constraints.
    if (aspect == Aspect::kDtype && violation.loss_kind() && operand.fact().dtypes.proves(DTypeSet::integers()))
      causes.push_back(fmt::format("integers in a loss {}", id));
    if (const std::string list = list_key(violation.analysis, operand.value()); !list.empty())
      causes.push_back(fmt::format("{} {}", label, list));
  }
  return causes;
}

}  // namespace tensorlint::rules
