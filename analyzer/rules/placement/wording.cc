#include "analyzer/rules/placement/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyzer/rules/placement/transfers.h"
#include "base/escape.h"
#include "passes/placement/transfer.h"

namespace tensorlint::rules {
namespace {

std::string name_of(const Model& model, ValueId value) { return quoted_for_people(model.name_of(value)); }

std::string side_text(const Model& model, const placement::PlacementViolation& violation, ValueId value,
                      const std::string& device) {
  if (value != ValueId::kAbsent) return fmt::format("{} is on {}", name_of(model, value), device);
  return fmt::format("`{}` runs on {}", escape_for_display(model.label(violation.node)), device);
}

std::string message_of(const Model& model, const placement::PlacementViolation& violation) {
  const placement::PlacementWitness& witness = violation.witness;
  std::string text;
  if (violation.cause == placement::PlacementCause::kClaim) {
    text = fmt::format("{} receives a value on {} but is declared to be on {}", name_of(model, violation.first),
                       witness.other, witness.device);
  } else if (violation.first == violation.second) {
    text = fmt::format("the slices of {} are on {} and on {}", name_of(model, violation.first), witness.device,
                       witness.other);
  } else if (violation.cause == placement::PlacementCause::kIndex) {
    text = fmt::format("{} is on {} and is indexed by {} on {}", name_of(model, violation.first), witness.device,
                       name_of(model, violation.second), witness.other);
  } else {
    text = fmt::format("{}, {} is on {}", side_text(model, violation, violation.first, witness.device),
                       name_of(model, violation.second), witness.other);
  }
  if (witness.iteration > 1) text += " " + iteration_text(witness.iteration);
  return text;
}

/// The witness in words: "`flag` is true, `steps` is 3".
std::string case_of(const placement::PlacementWitness& witness) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const auto& [name, choice] : witness.conditions) add(fmt::format("{} is {}", quoted_for_people(name), choice));
  for (const auto& [name, count] : witness.trip_counts) add(fmt::format("{} is {}", quoted_for_people(name), count));
  if (witness.left_out > 0) add(fmt::format("{} more decide", witness.left_out));
  if (witness.iteration > 0) add(iteration_text(witness.iteration));
  return text;
}

std::string source_text(placement::SourceKind source) {
  switch (source) {
    case placement::SourceKind::kCommandLine:
      return "placed on the command line";
    case placement::SourceKind::kPlacementFile:
      return "placed by the placement file";
    case placement::SourceKind::kTag:
      return "tagged";
    case placement::SourceKind::kModelKey:
      return "placed by a key of the model";
    case placement::SourceKind::kDeviceConfiguration:
      return "placed by its device configuration";
    case placement::SourceKind::kProvider:
      return "run by its provider";
    case placement::SourceKind::kNone:
      break;
  }
  return "without a device";
}

/// Where the device of one side comes from.
void add_origin(const ModelView& view, const placement::PlacementViolation& violation, ValueId value,
                const std::string& device, FindingBuilder& finding) {
  const Model& model = view.model();
  const placement::DeviceSources& sources = view.placement().sources();
  if (value == ValueId::kAbsent) {
    finding.note_at(violation.node,
                    fmt::format("runs on {}: {}", device, source_text(sources.node_source(violation.node))));
    return;
  }
  const dataflow::Origin origin = view.placement().origin(view.analysis(), value, device);
  const std::string name = name_of(model, origin.value);
  if (origin.node == NodeId::kNone) {
    const Value& source = model.value(origin.value);
    const std::string_view what = source.origin == ValueOrigin::kInitializer ? "initializer"
                                  : source.graph == GraphId::kMain           ? "graph input"
                                                                             : "input of the body";
    finding.note(
        fmt::format("{} lives on {}: {} {}", name, device, what, source_text(sources.value_source(origin.value))));
  } else if (placement::is_transfer(model, model.op(model.node(origin.node)))) {
    finding.note_at(origin.node, fmt::format("{} is moved to {} here", name, device));
  } else if (sources.node_source(origin.node) != placement::SourceKind::kNone) {
    finding.note_at(origin.node, fmt::format("{} is made on {} here: the node is {}", name, device,
                                             source_text(sources.node_source(origin.node))));
  } else {
    finding.note_at(origin.node, fmt::format("{} is made on {} here", name, device));
  }
}

/// One side comes from an initializer that nothing placed.
bool from_unplaced_initializer(const ModelView& view, const placement::PlacementViolation& violation) {
  const placement::Placement& placement = view.placement();
  const auto is_unplaced = [&](ValueId value, const std::string& device) {
    if (value == ValueId::kAbsent) return false;
    const dataflow::Origin origin = placement.origin(view.analysis(), value, device);
    return origin.node == NodeId::kNone && view.model().value(origin.value).origin == ValueOrigin::kInitializer &&
           placement.sources().value_source(origin.value) == placement::SourceKind::kNone;
  };
  return is_unplaced(violation.first, violation.witness.device) ||
         is_unplaced(violation.second, violation.witness.other);
}

findings::DeviceWitness witness_of(const Model& model, const placement::PlacementWitness& witness) {
  findings::DeviceWitness out;
  out.devices = {witness.device, witness.other};
  out.conditions = witness.conditions;
  out.trip_counts = witness.trip_counts;
  out.left_out = witness.left_out;
  out.iteration = witness.iteration;
  for (const NodeId call : witness.calls) out.calls.push_back(model.label(call));
  return out;
}

}  // namespace

std::string bytes_text(const dataflow::Analysis& analysis, Dim bytes) {
  const DimPool& dims = analysis.facts().dims();
  return dims.as_constant(bytes) || dims.is_named(bytes) ? dims.to_text(bytes) : std::string();
}

findings::TransferCost to_transfer_cost(const dataflow::Analysis& analysis, const placement::CostCase& run) {
  return {run.cost.copies, run.cost.setup_copies, bytes_text(analysis, run.cost.bytes),
          bytes_text(analysis, run.cost.setup_bytes), run.named_conditions()};
}

std::string iteration_text(std::int64_t iteration) {
  constexpr std::array<std::string_view, 6> kWords{"first", "second", "third", "fourth", "fifth", "sixth"};
  if (iteration >= 1 && iteration <= static_cast<std::int64_t>(kWords.size()))
    return fmt::format("in the {} iteration", kWords[static_cast<std::size_t>(iteration - 1)]);
  return fmt::format("in iteration {}", iteration);
}

void report_placement_violations(const ModelView& view, Reporter& out,
                                 std::initializer_list<placement::PlacementCause> causes) {
  if (view.copies_at_run_time()) return;
  const placement::Placement& placement = view.placement();
  const Model& model = view.model();
  for (const placement::PlacementViolation& violation : placement.violations()) {
    if (std::find(causes.begin(), causes.end(), violation.cause) == causes.end()) continue;
    const bool unplaced = placement.sources().only_single_values() && from_unplaced_initializer(view, violation);
    if (unplaced && !out.first("unplaced initializers")) continue;
    FindingBuilder finding = out.report(violation.node, message_of(model, violation));
    finding.certainty(violation.certainty, case_of(violation.witness)).devices(witness_of(model, violation.witness));
    add_origin(view, violation, violation.first, violation.witness.device, finding);
    if (violation.second != violation.first)
      add_origin(view, violation, violation.second, violation.witness.other, finding);
    for (std::size_t i = 0; i < violation.witness.loops.size(); ++i)
      finding.note_at(violation.witness.loops[i],
                      fmt::format("{} of this {}", iteration_text(violation.witness.iterations[i]),
                                  model.text(model.op(model.node(violation.witness.loops[i])).name)));
    finding.calls(violation.witness.calls);
    propose_transfers(finding, view, violation);
    if (unplaced)
      finding.note(
          "only single values were placed: initializers that nothing places count as on the default device (`--device "
          "NAME` sets it); said once");
  }
}

}  // namespace tensorlint::rules
