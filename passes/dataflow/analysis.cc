#include "passes/dataflow/analysis.h"

#include <algorithm>

namespace tensorlint::dataflow {
namespace {

std::shared_ptr<Meter> meter_of(const Model& model, std::uint64_t part) {
  auto meter = model.input_bytes == 0 ? std::make_shared<Meter>() : std::make_shared<Meter>(model.input_bytes, part);
  meter->read_tables_of(model.weights_file);
  return meter;
}

}  // namespace

std::shared_ptr<Meter> meter_of(const Model& model) { return meter_of(model, 1); }

std::shared_ptr<Meter> Allowances::next() {
  is_expensive_ = is_expensive_ || (last_ != nullptr && is_expensive(*last_));
  auto meter = meter_of(model_, is_expensive_ ? kPartOnceExpensive : 1);
  last_ = meter;
  return meter;
}

AnalysisOptions options_with(Allowances* allowances) {
  AnalysisOptions options;
  if (allowances != nullptr) options.meter = allowances->next();
  return options;
}

std::string_view to_text(Gap gap) {
  switch (gap) {
    case Gap::kNone:
      return {};
    case Gap::kBudget:
      return "the model needs more inferences than the budget allows";
    case Gap::kNesting:
      return "bodies and calls are nested too deep";
    case Gap::kRecursion:
      return "the function calls itself";
    case Gap::kCycle:
      return "is on a cycle, or depends on one";
    case Gap::kUnknownOperator:
      return "the operator is not known";
    case Gap::kNoInference:
      return "no inference is written for the operator";
  }
  return {};
}

void Analysis::note_references(NodeId first_node, GraphId first_graph) {
  for (const GraphId id : model_->graphs.ids(first_graph))
    has_functions_ |= model_->graph(id).kind == GraphKind::kFunction;
  if (!has_functions_) return;
  refers_to_call_.resize(model_->nodes.size());
  for (const NodeId id : Walk(model_->nodes.ids(first_node), *meter_))
    refers_to_call_[id] =
        std::ranges::any_of(attributes(id), [](const Attribute& attribute) { return !attribute.reference.empty(); });
}

const NodeViolation* Analysis::fatal_violation() const {
  const auto fatal = std::ranges::find_if(violations_, [](const NodeViolation& violation) {
    return !violation.engines_differ && !ops::is_about_declared_shape(violation.kind());
  });
  return fatal == violations_.end() ? nullptr : &*fatal;
}

Analysis::NodeApplication::NodeApplication(const Analysis& analysis, NodeId id) {
  const Model& model = analysis.model();
  const Node& node = model.node(id);
  const Operator& op = model.op(node);
  for (const ValueId value : model.operands(node)) {
    operands_.push_back(value == ValueId::kAbsent ? FactId::kAbsent : analysis.fact_id(value));
    taints_.push_back(analysis.taint(value));
  }
  for (const ValueId value : model.results(node)) results_.push_back(analysis.fact_id(value));
  application_ = {.domain = model.text(op.domain),
                  .name = model.text(op.name),
                  .opset = op.opset,
                  .schema = op.schema,
                  .attributes = model.attributes(node),
                  .operands = operands_,
                  .operand_taints = taints_,
                  .results = results_,
                  .result_count = node.result_count,
                  .facts = &analysis.facts(),
                  .site = static_cast<std::uint64_t>(id) + 1};
}

SpanWalk<NodeId> Analysis::users(ValueId value) const {
  // A model that grows has got more since.
  if (user_offsets_.size() != model_->values.size() + 2 || user_list_.size() != model_->operand_list.size()) {
    user_offsets_.assign(model_->values.size() + 2, 0);
    for (const ValueId operand : model_->operand_list) ++user_offsets_[static_cast<std::size_t>(operand) + 2];
    for (std::size_t i = 2; i < user_offsets_.size(); ++i) user_offsets_[i] += user_offsets_[i - 1];
    user_list_.resize(model_->operand_list.size());
    for (const NodeId id : model_->nodes.ids())
      for (const ValueId operand : model_->operands(model_->node(id)))
        user_list_[user_offsets_[static_cast<std::size_t>(operand) + 1]++] = id;
  }
  const std::size_t index = static_cast<std::size_t>(value);
  return {std::span<const NodeId>(user_list_)
              .subspan(user_offsets_[index], user_offsets_[index + 1] - user_offsets_[index]),
          *meter_};
}

}  // namespace tensorlint::dataflow
