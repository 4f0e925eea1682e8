#include "runtime/interpreter/interpreter.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "runtime/interpreter/constants.h"
#include "runtime/interpreter/interpreter_impl.h"
#include "runtime/values/guarded.h"

namespace tensorlint::runtime {

Interpreter::Interpreter(const Model& model, Memory& memory, InterpreterOptions options)
    : impl_(std::make_unique<Impl>(model, memory, options, std::make_shared<Work>(options.work_limit), 0)) {}
Interpreter::~Interpreter() = default;

Result<std::vector<HostValue>> Interpreter::run(std::vector<HostValue> inputs) { return impl_->run(std::move(inputs)); }
void Interpreter::set_allowances(dataflow::Allowances& allowances) { impl_->set_allowances(allowances); }
void Interpreter::hold(ValueId value, HostValue held) { impl_->hold(value, std::move(held)); }
Result<HostValue> Interpreter::held(ValueId value) { return impl_->held(value); }
Result<std::vector<HostValue>> Interpreter::evaluate(NodeId node, Purpose purpose) {
  return impl_->evaluate_alone(node, purpose);
}
bool Interpreter::drew_random() const { return impl_->is_random(); }
void Interpreter::set_most_work(std::uint64_t most) { impl_->set_most_work(most); }
std::uint64_t Interpreter::work() const { return impl_->work(); }
Result<double> Interpreter::terms(NodeId node) { return impl_->terms(node); }
std::map<std::string, Interpreter::Timing> Interpreter::timings() const { return impl_->timings(); }

Interpreter::Impl::Impl(const Model& model, Memory& memory, InterpreterOptions options, std::shared_ptr<Work> work,
                        int depth)
    : model_(model),
      memory_(memory),
      options_(std::move(options)),
      work_(std::move(work)),
      plan_(model),
      kinds_(kinds_of(model)),
      storage_(std::make_shared<std::vector<std::shared_ptr<const void>>>(model.storage)),
      values_(model.values.size()),
      facts_(std::make_shared<FactStore>()),
      inferred_(model.nodes.size()),
      has_run_(model.nodes.size()),
      timings_(model.operators.size()),
      depth_(depth) {}

IdVector<OperatorId, Interpreter::Impl::Kind> Interpreter::Impl::kinds_of(const Model& model) {
  IdVector<OperatorId, Kind> kinds;
  for (const Operator& op : model.operators) {
    const std::string_view domain = model.text(op.domain), name = model.text(op.name);
    kinds.push_back(
        {ops::find_entry(domain, name, op.opset), find_evaluator(domain, name, op.opset), region_kind(model, op)});
  }
  return kinds;
}

Result<std::vector<HostValue>> Interpreter::Impl::run(std::vector<HostValue> inputs) {
  calls_ = 0;
  work_->begin();
  if (is_held_ || overrides_default(inputs)) {
    constants_.reset();
  } else if (!constants_) {
    constants_.emplace(memory_);
    for (Inferred& each : inferred_) each.holds = false;  // constants had other values
  }
  ++runs_;
  return guarded([&] { return run_graph(GraphId::kMain, inputs); });
}

bool Interpreter::Impl::overrides_default(std::span<const HostValue> inputs) const {
  const std::vector<ValueId>& names = model_.graph(GraphId::kMain).inputs;
  for (std::size_t i = 0; i < std::min(inputs.size(), names.size()); ++i)
    if (!inputs[i].is_absent() && plan_.is_fixed(names[i])) return true;
  return false;
}

void Interpreter::Impl::hold(ValueId value, HostValue held) {
  is_held_ = true;
  constants_.reset();
  slot(value) = std::move(held);
}

Result<std::vector<HostValue>> Interpreter::Impl::evaluate_alone(NodeId node, Purpose purpose) {
  purpose_ = purpose;
  is_random_ = false;
  constants_.reset();
  work_->begin();
  Result<std::vector<HostValue>> results = guarded([&] { return compute(node, {}); });
  purpose_ = Purpose::kValue;  // where no evaluator was called
  return results;
}

Result<HostValue> Interpreter::Impl::held(ValueId value) {
  auto values = guarded([&] { return std::vector{read(value)}; });
  if (!values) return values.error();
  return std::move(values->front());
}

Result<double> Interpreter::Impl::terms(NodeId node) {
  terms_ = 0;
  const auto none = evaluate_alone(node, Purpose::kTerms);
  if (!none) return none.error();
  return terms_;
}

std::map<std::string, Interpreter::Timing> Interpreter::Impl::timings() const {
  std::map<std::string, Timing> timings;
  for (const OperatorId id : timings_.ids()) {
    if (timings_[id].calls == 0) continue;
    Timing& timing = timings[std::string(model_.text(model_.operators[id].name))];
    timing.calls += timings_[id].calls;
    timing.seconds += timings_[id].seconds;
  }
  return timings;
}

const HostValue& Interpreter::Impl::read(ValueId id) {
  HostValue& held = slot(id);
  if (id == ValueId::kAbsent || !held.is_absent()) return held;
  const Value& value = model_.value(id);
  if (constants_ && is_constant(id)) held = constants_->constant(id);
  if (!held.is_absent()) return held;
  if (value.initializer != nullptr) {
    held = load_constant(*value.initializer, model_.path, storage_, memory_);
  } else if (value.sparse_initializer != nullptr) {
    held = load_constant(*value.sparse_initializer, model_.path, storage_, memory_);
  } else if (value.origin == ValueOrigin::kUndefined) {
    throw RunFault{fmt::format("nothing defines `{}`", model_.name_of(id))};
  }
  return held;
}

void Interpreter::Impl::drop(ValueId id) {
  HostValue& held = slot(id);
  // Constants that lie in the model's bytes cost nothing, and decoding small ones again costs more than they take.
  constexpr std::size_t kSmallConstant = std::size_t{64} << 10;
  const bool stays = model_.value(id).initializer != nullptr && held.is_tensor() &&
                     (held.tensor().is_view() || held.tensor().bytes() <= kSmallConstant);
  if (stays) return;
  // What a run needs once need not be kept.
  if (constants_ && runs_ > 1 && is_constant(id)) constants_->keep(id, held);
  held = {};
}

std::vector<HostValue> Interpreter::Impl::run_graph(GraphId id, std::span<const HostValue> inputs, std::size_t most) {
  const Graph& graph = model_.graph(id);
  const GraphPlan::Steps& steps = plan_.steps(id);
  work_->take(InterpreterOptions::kWorkOfNode);
  if (steps.is_cyclic) throw RunFault{"nodes of the graph depend on each other"};
  if (inputs.size() > graph.inputs.size())
    throw RunFault{fmt::format("{} inputs for a graph that has {}", inputs.size(), graph.inputs.size())};
  if (options_.graph_runner && id != GraphId::kMain)
    if (auto outputs = options_.graph_runner(id, inputs, most)) return *std::move(outputs);
  // Those that are not given are absent, since whoever sets some takes them away again, also where a node fails.
  struct GivenInputs {
    Impl& impl;
    const std::span<const ValueId> names;
    ~GivenInputs() {
      for (const ValueId name : names) impl.slot(name) = {};
    }
  };
  const GivenInputs given{*this, std::span(graph.inputs).first(inputs.size())};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    HostValue& input = slot(graph.inputs[i]);
    input = inputs[i];
    // The body of a Loop may hand back what its own optional holds (ONNX's test loop16_seq_none).
    const TypeDecl* const type = model_.value(graph.inputs[i]).type;
    if (type != nullptr && type->kind == TypeKind::kOptional && !input.is_absent() &&
        input.kind() != ValueKind::kOptional)
      input = HostValue::optional(std::move(input));
  }
  using Clock = std::chrono::steady_clock;
  Clock::time_point now = options_.measures_time ? Clock::now() : Clock::time_point();
  for (std::size_t at = 0; at < steps.nodes.size(); ++at) {
    run_node(steps.nodes[at], {steps.drops[at], steps.leaves[at]});
    if (options_.measures_time) {
      Timing& timing = timings_[model_.node(steps.nodes[at]).op];
      ++timing.calls;
      const Clock::time_point start = std::exchange(now, Clock::now());
      timing.seconds += std::chrono::duration<double>(now - start).count();
    }
    for (const ValueId value : steps.drops[at]) drop(value);
  }
  const std::span<const ValueId> names = std::span(graph.outputs).first(std::min(most, graph.outputs.size()));
  std::vector<HostValue> outputs;
  outputs.reserve(names.size());
  for (const ValueId output : names) {
    outputs.push_back(read(output));
    if (outputs.back().is_absent() && graph.kind != GraphKind::kFunction)
      throw RunFault{fmt::format("the output `{}` has no value", model_.name_of(output))};
  }
  // Outputs and inputs are the last that a body holds on to; constants of a body serve its next run.
  for (const ValueId output : steps.kept) slot(output) = {};
  return outputs;
}

}  // namespace tensorlint::runtime
