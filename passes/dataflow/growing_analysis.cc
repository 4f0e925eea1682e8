#include "passes/dataflow/growing_analysis.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {

GrowingAnalysis::GrowingAnalysis(const Recording& recording, AnalysisOptions options)
    : recording_(recording),
      options_(std::move(options)),
      analysis_(std::make_unique<Analysis>(Solver::begin(recording.model(), options_))),
      solver_(new Solver(recording.model(), options_, *analysis_)) {}

GrowingAnalysis::~GrowingAnalysis() = default;

void GrowingAnalysis::add_input(ValueId input) {
  solver_->grow();
  solver_->set(input, {solver_->initial_facts_.input(input), {}});
}

void GrowingAnalysis::add_body_input(ValueId input, const AbstractValue& given) {
  solver_->grow();
  solver_->set(input, given);
}

void GrowingAnalysis::add_constant(ValueId constant) {
  solver_->grow();
  solver_->set(constant, {solver_->initial_facts_.initializer(recording_.model().value(constant)), {}});
}

std::span<const NodeViolation> GrowingAnalysis::add_call(NodeId id) {
  const Model& model = recording_.model();
  solver_->grow();
  violations_.clear();
  const Node& node = model.node(id);
  // Nodes of a function are inferred when it is called.
  GraphId root = node.graph;
  while (model.graph(root).parent != GraphId::kNone) root = model.graph(root).parent;
  if (root != GraphId::kMain) return violations_;

  std::vector<GraphId> bodies;
  for (const Attribute& attribute : model.attributes(node))
    if (attribute.graph != GraphId::kNone) bodies.push_back(attribute.graph);
  if (!bodies.empty()) solver_->reset(bodies);
  violations_ = solver_->append(id);
  return violations_;
}

void GrowingAnalysis::open_body() {
  solver_->grow();
  solver_->open_body(recording_.current());
}

void GrowingAnalysis::close_body() { solver_->close_body(); }

void GrowingAnalysis::abandon_body(GraphId body) { solver_->abandon_body(body); }

void GrowingAnalysis::finish() {
  assert(solver_->open_bodies_.empty());
  if (!solver_->has_shape_clash_ && solver_->unrun_violations_.empty()) return;
  solver_.reset();
  *analysis_ = Solver::begin(recording_.model(), options_);
  solver_.reset(new Solver(recording_.model(), options_, *analysis_));
  solver_->run();
}

}  // namespace tensorlint::dataflow
