#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "ir/ops/entry.h"
#include "ir/readers/onnx/schema_function.h"
#include "passes/dataflow/attributes.h"
#include "runtime/interpreter/concrete_facts.h"
#include "runtime/interpreter/interpreter_impl.h"

namespace tensorlint::runtime {
namespace {

constexpr std::uint64_t kContentsKept = std::uint64_t{1} << 20;  // elements; then facts begin anew
constexpr std::uint64_t kElementsOfFact = 16;                    // as much memory, of a tensor without elements, too
constexpr std::size_t kSmallContent = 16;                        // of operands that are data

/// Operands and results by the names that they have in the model.
class NodeNames : public ops::ValueNames {
 public:
  NodeNames(const Model& model, NodeId node) : model_(model), node_(model.node(node)) {}
  std::string operand(int index) const override { return name(model_.operands(node_), index); }
  std::string result(int index) const override { return name(model_.results(node_), index); }

 private:
  std::string name(std::span<const ValueId> values, int index) const {
    const auto at = static_cast<std::size_t>(index);
    return at < values.size() ? fmt::format("`{}`", model_.name_of(values[at])) : "an operand";
  }
  const Model& model_;
  const Node& node_;
};

/// Extents and elements that a fact holds.
std::uint64_t size_of(const FactStore& facts, FactId id) {
  if (id == FactId::kAbsent || id == FactId::kTop) return 0;
  const Fact& fact = facts.fact(id);
  const Content* const content = facts.content(fact.content);
  const std::uint64_t rank = facts.is_ranked(fact.shape) ? facts.dims_of(fact.shape).size() : 0;
  return rank + (content == nullptr ? 0 : content->size());
}

/// Whether the operand says how to compute, and not what on.
bool is_direction(const Application& call, const ops::OpEntry* entry, std::size_t operand) {
  if (entry == nullptr || call.schema == nullptr) return false;
  const FormalParameter* const formal = call.formal_operand(operand);
  if (formal == nullptr) return false;
  const auto role = entry->role_of(formal->name);
  return role == ops::OperandRole::kHost || role == ops::OperandRole::kHostList;
}

/// Without an entry that says more, small operands are taken to say how to compute.
bool needs_content(const Application& call, const ops::OpEntry* entry, std::size_t operand, const HostValue& value) {
  return value.is_tensor() && (value.tensor().size() <= kSmallContent || is_direction(call, entry, operand));
}

/// The schema's defaults that the call leaves out: the body refers to them. `lists` keeps those that are lists.
void append_defaults(const OpSchema& schema, std::vector<Attribute>& attributes,
                     std::deque<std::vector<std::int64_t>>& lists) {
  for (const FormalAttribute& formal : schema.attributes) {
    if (!formal.has_default || std::ranges::find(attributes, formal.name, &Attribute::name) != attributes.end())
      continue;
    Attribute attribute;
    attribute.name = formal.name;
    attribute.kind = formal.kind;
    const char* const end = formal.default_value.data() + formal.default_value.size();
    if (formal.kind == AttributeKind::kInt) {
      std::from_chars(formal.default_value.data(), end, attribute.i);
    } else if (formal.kind == AttributeKind::kFloat) {
      std::from_chars(formal.default_value.data(), end, attribute.f);
    } else if (formal.kind == AttributeKind::kString) {
      attribute.s = formal.default_value;
    } else if (formal.kind == AttributeKind::kInts) {
      std::vector<std::int64_t>& list = lists.emplace_back();
      for (const char* at = formal.default_value.data(); at < end; ++at) {
        std::int64_t number = 0;
        at = std::from_chars(at, end, number).ptr;
        list.push_back(number);
      }
      attribute.ints = list;
    } else {
      continue;
    }
    attributes.push_back(attribute);
  }
}

/// What evaluators ask of an inference is forgotten afterwards: it serves later calls, too.
class AsInferred {
 public:
  explicit AsInferred(ops::InferenceResult& result)
      : result_(result),
        violations_(result.violations.size()),
        equalities_(result.equalities.size()),
        repeatable_(result.repeatable) {}
  AsInferred(const AsInferred&) = delete;
  AsInferred& operator=(const AsInferred&) = delete;
  ~AsInferred() {
    truncate(result_.violations, violations_);
    truncate(result_.equalities, equalities_);
    result_.repeatable = repeatable_;
  }

 private:
  template <typename Item>
  static void truncate(std::vector<Item>& items, std::size_t size) {
    if (items.size() > size) items.erase(items.begin() + static_cast<std::ptrdiff_t>(size), items.end());
  }

  ops::InferenceResult& result_;
  std::size_t violations_, equalities_;
  bool repeatable_;
};

/// Allocates the results where their facts say that none of them has elements: then there is nothing to compute, and no
/// evaluator walks axes around one of extent 0.
bool allocates_empty(Evaluation& e) {
  for (std::size_t r = 0; r < e.result_count(); ++r) {
    const ResultType& type = e.type_of_result(static_cast<int>(r));
    if (!type.is_tensor || !type.dtype || !type.shape || type.shape->size() != 0) return false;
  }
  for (std::size_t r = 0; r < e.result_count(); ++r) e.result(static_cast<int>(r));
  return e.result_count() > 0;
}

bool is_empty_tensor(const HostValue& value) { return value.is_tensor() && value.tensor().size() == 0; }

std::uint64_t elements_of_results(Evaluation& e) {
  std::uint64_t elements = 0;
  for (std::size_t r = 0; r < e.result_count(); ++r)
    if (const auto& shape = e.type_of_result(static_cast<int>(r)).shape) elements += shape->size();
  return elements;
}

/// Of an operand without elements no result is a view: what cannot be is refused before an evaluator works for it.
void check_room(Evaluation& e, std::span<const ValueId> names) {
  for (std::size_t r = 0; r < std::min(e.result_count(), names.size()); ++r) {
    const ResultType& type = e.type_of_result(static_cast<int>(r));
    if (!type.shape || !type.dtype || names[r] == ValueId::kAbsent) continue;
    if (const std::uint64_t bytes = type.shape->size() * element_bytes(*type.dtype); bytes > e.memory().limit())
      e.memory().require(bytes);
  }
}

/// A text counts a part of its bytes as well.
std::uint64_t elements_of(const HostValue& value) {
  constexpr std::uint64_t kBytesOfElement = 8;
  if (value.is_tensor()) {
    std::uint64_t bytes = 0;
    if (value.dtype() == DType::kString)
      for (const auto& text : value.tensor().strings()) bytes += text.size();
    return value.tensor().size() + bytes / kBytesOfElement;
  }
  std::uint64_t elements = 0;
  if (!value.is_absent())
    for (const HostValue& element : value.elements()) elements += 1 + elements_of(element);
  return elements;
}

/// As InterpreterOptions::work_limit counts it; of results whose extents depend on elements nothing is known here.
std::uint64_t work_of(Evaluation& e) {
  std::uint64_t operands = 1, work = 0;
  const std::uint64_t results = 1 + elements_of_results(e);
  for (std::size_t i = 0; i < e.operand_count(); ++i) operands += elements_of(e.value(static_cast<int>(i)));
  if (__builtin_mul_overflow(operands, results, &work)) return std::numeric_limits<std::uint64_t>::max();
  return work;
}

}  // namespace

void check_reach(std::span<const HostValue> operands, std::uint64_t result_elements) {
  constexpr double kAlways = 1 << 16, kPerElement = 64;
  std::uint64_t held = result_elements;
  for (const HostValue& operand : operands)
    if (operand.is_tensor()) held += operand.tensor().size();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!is_empty_tensor(operands[i])) continue;
    double reach = 1;
    for (const std::int64_t extent : operands[i].tensor().extents())
      if (extent != 0) reach *= static_cast<double>(extent);
    if (reach > kAlways + kPerElement * static_cast<double>(held))
      throw RunFault{fmt::format("operand {} has no elements, and axes that are too long for that: [{}]", i,
                                 fmt::join(operands[i].tensor().extents(), ", "))};
  }
}

bool Interpreter::Impl::OperandKey::matches(const HostValue& value) const {
  if (!value.is_tensor()) return false;
  const HostTensor& tensor = value.tensor();
  return tensor.dtype() == dtype && tensor.shape() == shape &&
         (content.empty() || std::memcmp(content.data(), tensor.raw(), content.size()) == 0);
}

void Interpreter::Impl::OperandKey::set(const HostValue& value, bool with_content) {
  content.clear();
  dtype = DType::kUndefined;
  if (!value.is_tensor()) return;
  const HostTensor& tensor = value.tensor();
  if (with_content && tensor.dtype() != DType::kString) {
    if (tensor.bytes() > kMostContent) return;
    content.assign(tensor.raw(), tensor.raw() + tensor.bytes());
  }
  dtype = tensor.dtype();
  shape = tensor.shape();
}

std::vector<HostValue> Interpreter::Impl::take_list() {
  if (lists_.empty()) return {};
  std::vector<HostValue> list = std::move(lists_.back());
  lists_.pop_back();
  return list;
}

void Interpreter::Impl::give_back(std::vector<HostValue> list) {
  constexpr std::size_t kMostLists = 16, kMostValues = 64;
  list.clear();
  if (lists_.size() < kMostLists && list.capacity() <= kMostValues) lists_.push_back(std::move(list));
}

std::vector<HostValue> Interpreter::Impl::take_operands(NodeId id, const LastReads& last) {
  const std::span<const ValueId> names = model_.operands(model_.node(id));
  std::vector<HostValue> operands = take_list();
  operands.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const HostValue& held = read(names[i]);
    if (i < 64 && ((last.leaves >> i) & 1U) != 0) {
      operands.push_back(std::move(slot(names[i])));
      slot(names[i]) = {};
    } else {
      operands.push_back(held);
    }
  }
  // A body may read values of the graphs around it.
  if (!plan_.has_graphs(id))
    for (const ValueId value : last.drops) drop(value);
  return operands;
}

std::vector<HostValue> Interpreter::Impl::compute(NodeId id, const LastReads& last) {
  const Node& node = model_.node(id);
  const Operator& op = model_.op(node);
  try {
    work_->take(InterpreterOptions::kWorkOfNode);
    std::vector<HostValue> operands = take_operands(id, last);
    std::vector<Attribute> resolved;
    Application call{.domain = model_.text(op.domain),
                     .name = model_.text(op.name),
                     .opset = op.opset,
                     .schema = op.schema,
                     .attributes = dataflow::resolve_references(model_.attributes(node), caller_attributes_, resolved),
                     .operands = {},
                     .operand_taints = {},
                     .results = {},
                     .result_count = node.result_count,
                     .facts = facts_.get(),
                     .site = static_cast<std::uint64_t>(id) + 1};
    std::vector<HostValue> results = evaluate(id, call, operands);
    results.resize(node.result_count);
    give_back(std::move(operands));
    return results;
  } catch (RunFault& fault) {
    // The innermost node says it; those around it add where they are.
    throw RunFault{fmt::format("node `{}` ({}): {}", model_.label(id), model_.text(op.name), fault.message)};
  }
}

ConstantCache::Results Interpreter::Impl::kept_results(NodeId id) {
  if (!constants_ || !has_run_[id] || !plan_.is_fixed(id)) return nullptr;
  ConstantCache::Results kept = constants_->results(id);
  if (kept != nullptr) {
    // As if it ran: the nodes after it find the same work left, and draw the same numbers.
    work_->take(InterpreterOptions::kWorkOfNode);
    work_->take(inferred_[id].work);
    ++calls_;
  }
  return kept;
}

std::vector<HostValue> Interpreter::Impl::compute_and_keep(NodeId id, const LastReads& last) {
  const std::uint64_t calls = calls_;
  const bool was_random = std::exchange(is_random_, false);
  std::vector<HostValue> results = compute(id, last);
  // What runs once need not be kept, and the function of an operator draws numbers of its own.
  if (constants_ && has_run_[id] && plan_.is_fixed(id) && !is_random_ && calls_ == calls + 1)
    constants_->keep(id, results);
  is_random_ |= was_random;
  has_run_[id] = true;
  return results;
}

void Interpreter::Impl::run_node(NodeId id, const LastReads& last) {
  const Node& node = model_.node(id);
  const std::span<const ValueId> names = model_.results(node);
  std::vector<HostValue> results;
  if (const ConstantCache::Results kept = kept_results(id)) {
    results = take_list();
    results.assign(kept->begin(), kept->end());
  } else {
    results = compute_and_keep(id, last);
  }
  if (options_.observer) options_.observer(id, results);
  for (std::size_t r = 0; r < names.size(); ++r)
    if (names[r] != ValueId::kAbsent) slot(names[r]) = std::move(results[r]);
  give_back(std::move(results));
}

std::vector<HostValue> Interpreter::Impl::evaluate(NodeId id, const Application& call,
                                                   std::span<const HostValue> operands) {
  const Operator& op = model_.op(model_.node(id));
  const Kind& kind = kinds_[model_.node(id).op];
  // What is asked of a node is not asked of the first one inside of it, which would give no values to the next.
  const Purpose purpose = std::exchange(purpose_, Purpose::kValue);
  const bool is_computed_here =
      op.function == GraphId::kNone && kind.region == RegionKind::kNone && kind.evaluator != nullptr;
  if (purpose == Purpose::kTerms && !is_computed_here) return {};
  if (op.function != GraphId::kNone) return call_function(op.function, call, operands);
  if (kind.region != RegionKind::kNone) {
    const auto find = [&](std::string_view name) { return call.attribute(name); };
    return run_region(call, region_op(model_, model_.node(id), find), operands);
  }
  if (op.schema == nullptr) throw RunFault{"the operator is not known"};
  const Evaluator* const evaluator = kind.evaluator;
  if (evaluator == nullptr) return expand(id, call, operands);
  Application concrete = call;
  InferredCall& inferred = infer(id, concrete, operands);
  const AsInferred as_inferred(inferred.result);
  // A graph of the node infers, too, which may begin a new store.
  const std::shared_ptr<FactStore> facts = facts_;
  std::vector<HostValue> results = take_list();
  results.resize(call.result_count);
  // Seeds of neighbouring runs and calls are far apart: 2^64 divided by the golden ratio.
  const std::uint64_t seed = (options_.seed << 32) + 0x9e3779b97f4a7c15U * ++calls_;
  Evaluation evaluation(concrete, inferred, operands, results, memory_, seed);
  evaluation.set_purpose(purpose);
  if (constants_ && has_run_[id]) evaluation.keep_weights(*constants_, id, plan_.fixed_operands(id));
  if (plan_.has_graphs(id))
    evaluation.set_run_graph([this](GraphId graph, std::span<const HostValue> inputs) {
      const Nesting nesting(depth_);
      return run_graph(graph, inputs);
    });
  if (purpose == Purpose::kTerms) {
    if (const Rounding::Terms terms = evaluator->rounding().terms) terms_ = terms(evaluation);
    return results;
  }
  if (work_->is_counted()) {
    work_->take(inferred_[id].work = work_of(evaluation));
    evaluation.set_charge([&](std::uint64_t work) {
      work_->take(work);
      inferred_[id].work += work;
    });
  }
  if (!allocates_empty(evaluation)) {
    if (std::ranges::any_of(operands, is_empty_tensor)) {
      check_room(evaluation, model_.results(model_.node(id)));
      if (evaluator->walks_empty_operands()) check_reach(operands, elements_of_results(evaluation));
    }
    evaluator->function()(evaluation);
  }
  is_random_ |= evaluation.is_random();
  return results;
}

bool Interpreter::Impl::still_holds(const Inferred& last, std::uint64_t fixed, std::span<const HostValue> operands) {
  if (!last.holds || !last.has_keys || last.keys.size() != operands.size()) return false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i < 64 && ((fixed >> i) & 1U) != 0) continue;
    if (operands[i].is_absent() ? last.operands[i] != FactId::kAbsent : !last.keys[i].matches(operands[i]))
      return false;
  }
  return true;
}

InferredCall& Interpreter::Impl::infer(NodeId id, Application& call, std::span<const HostValue> operands) {
  if (contents_ > kContentsKept) {
    facts_ = std::make_shared<FactStore>();
    lists_known_.clear();
    for (Inferred& each : inferred_) each.holds = false;
    contents_ = 0;
  }
  call.facts = facts_.get();
  Inferred& last = inferred_[id];
  const std::uint64_t fixed = constants_ && last.holds ? plan_.fixed_operands(id) : 0;
  if (still_holds(last, fixed, operands)) {
    call.operands = last.operands;
    return last.call;
  }
  const Kind& kind = kinds_[model_.node(id).op];
  const ops::OpEntry* const entry = kind.entry;
  const bool takes_long_lists = kind.evaluator != nullptr && kind.evaluator->has_own_checks();
  std::vector<FactId>& facts = operand_facts_;
  facts.clear();
  last.has_keys = false;  // until all are
  last.keys.resize(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i < 64 && ((fixed >> i) & 1U) != 0) {
      facts.push_back(last.operands[i]);
      continue;
    }
    const bool with_content = needs_content(call, entry, i, operands[i]);
    // Inference holds such operands against the others, and follows no longer ones: evaluators rely on that.
    if (with_content && !takes_long_lists && operands[i].tensor().size() > kMaxContent)
      throw RunFault{fmt::format("operand {} says how to compute, by {} elements: no more than {} are read", i,
                                 operands[i].tensor().size(), kMaxContent)};
    facts.push_back(concrete_fact(*facts_, operands[i], with_content, lists_known_));
    last.keys[i].set(operands[i], with_content);
  }
  if (!last.holds || last.operands != facts) {
    for (const HostValue& operand : operands)
      if (operand.is_tensor())
        contents_ += kElementsOfFact + operand.tensor().rank() + std::min(operand.tensor().size(), kMaxContent);
    last.operands = facts;
    call.operands = last.operands;
    last.call.clear();
    ops::infer(call, entry, last.call.result);
    for (const FactId result : last.call.result.results) contents_ += kElementsOfFact + size_of(*facts_, result);
    // Attributes inside a function are those of the call, and may change from one to the next.
    last.holds = last.call.result.repeatable && last.call.result.violations.empty() && caller_attributes_.empty();
    for (const ops::Violation& violation : last.call.result.violations)
      if (violation.certainty == ops::Certainty::kMust)
        throw RunFault{ops::to_text(violation.message, *facts_, NodeNames(model_, id))};
  }
  last.has_keys = true;
  call.operands = last.operands;
  return last.call;
}

std::vector<HostValue> Interpreter::Impl::call_function(GraphId function, const Application& call,
                                                        std::span<const HostValue> operands) {
  const Nesting nesting(depth_);
  // By a graph that it was given, which calls it: its values have one place each.
  if (std::ranges::find(called_, function) != called_.end()) throw RunFault{"the function is called within itself"};
  const Called called(called_, function);
  // A call costs what it gives and takes, however much the function has beside that.
  const auto [defaults, is_new] = function_defaults_.try_emplace(function);
  if (is_new) defaults->second = dataflow::with_defaults({}, model_.graph(function).attribute_defaults);
  const CallScope scope(caller_attributes_, call.attributes, defaults->second);
  return run_graph(function, operands, call.result_count);
}

/// ONNX defines some operators by a function of others.
std::vector<HostValue> Interpreter::Impl::expand(NodeId id, const Application& call,
                                                 std::span<const HostValue> operands) {
  if (call.schema->function_body.empty())
    throw RunFault{fmt::format("the interpreter has no evaluator for {} of opset {}", call.name, call.opset)};
  const Nesting nesting(depth_);
  Expansion& expansion = expansions_[call.schema];
  if (expansion.impl == nullptr) {
    Result<Model> model = read_schema_function(*call.schema);
    if (!model) throw RunFault{model.error().message};
    expansion.model = std::make_unique<Model>(std::move(*model));
    expansion.impl = std::make_unique<Impl>(*expansion.model, memory_,
                                            InterpreterOptions{.seed = options_.seed, .observer = {}}, work_, depth_);
  }
  Application concrete = call;
  infer(id, concrete, operands);  // what the operator asks of its operands, before its body does
  std::vector<Attribute> attributes(call.attributes.begin(), call.attributes.end());
  std::deque<std::vector<std::int64_t>> lists;
  append_defaults(*call.schema, attributes, lists);
  Application of_body = call;
  of_body.attributes = attributes;
  expansion.impl->is_random_ = false;
  std::vector<HostValue> results = expansion.impl->call_function(static_cast<GraphId>(1), of_body, operands);
  is_random_ |= expansion.impl->is_random_;
  return results;
}

}  // namespace tensorlint::runtime
