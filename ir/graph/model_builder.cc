#include "ir/graph/model_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>

namespace tensorlint {
namespace {

constexpr std::size_t kMaxFaultsPerGraph = 1000;
/// What they take in arrays that double when they grow, and of an undefined value its slot in the index.
constexpr std::uint64_t kFaultCost = 3 * sizeof(StructureFault) + 160, kUndefinedCost = 3 * sizeof(Value) + 64;
constexpr std::string_view kOwnDomain = "tensorlint";

template <typename Id>
constexpr std::uint32_t number(Id id) {
  return static_cast<std::uint32_t>(id);
}

}  // namespace

struct ModelBuilder::Impl {
  /// Memory for small arrays, in chunks that never move.
  class Arena {
   public:
    template <typename T>
    std::span<const T> copy(std::span<const T> items) {
      if (items.empty()) return {};
      const std::size_t bytes = items.size_bytes();
      used_ = (used_ + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
      if (chunks_.empty() || used_ + bytes > capacity_) {
        capacity_ = std::max<std::size_t>(bytes, std::clamp<std::size_t>(capacity_ * 2, 4096, 1 << 20));
        chunks_.push_back(std::make_unique<std::byte[]>(capacity_));
        used_ = 0;
      }
      std::byte* const place = chunks_.back().get() + used_;
      std::memcpy(place, items.data(), bytes);
      used_ += bytes;
      return {reinterpret_cast<const T*>(place), items.size()};
    }

   private:
    std::vector<std::unique_ptr<std::byte[]>> chunks_;
    std::size_t used_ = 0, capacity_ = 0;
  };

  struct Store {
    Arena arena;
    std::deque<Tensor> tensors;
    std::deque<SparseTensor> sparse_tensors;
    std::deque<TypeDecl> types;
  };

  std::shared_ptr<Store> store = std::make_shared<Store>();
  FlatMap operator_index;  // hash of (domain, name, overload, opsets) -> operator + 1
  IdVector<OperatorId, std::uint32_t> operator_opsets;
  std::vector<NameId> operand_names;  // parallel to Model::operand_list
  std::vector<std::uint32_t> fault_counts;
  struct PendingOutput {
    GraphId graph;
    NameId name;
    const TypeDecl* type;
  };
  std::vector<PendingOutput> outputs, value_infos;
  std::vector<std::string_view> attribute_names;  // scratch

  struct Sizes {
    std::size_t nodes = 0, values = 0, results = 0, attributes = 0, operands = 0, names = 0, interned = 0;
  };
  Sizes at_begin;
  Sizes sizes(const Model& model) const {
    return {model.nodes.size(),   model.values.size(), model.result_list.size(), model.attribute_list.size(),
            operand_names.size(), model.names.size(),  model.names.interned()};
  }

  /// A name that two of the attributes share, null when there is none. Not quadratic: a hostile node has thousands.
  const std::string_view* repeated_name(std::span<const Attribute> attributes) {
    constexpr std::size_t kFew = 16;
    if (attributes.size() <= kFew) {
      for (std::size_t i = 1; i < attributes.size(); ++i)
        for (std::size_t k = 0; k < i; ++k)
          if (attributes[i].name == attributes[k].name) return &attributes[i].name;
      return nullptr;
    }
    attribute_names.clear();
    for (const Attribute& attribute : attributes) attribute_names.push_back(attribute.name);
    std::sort(attribute_names.begin(), attribute_names.end());
    const auto twice = std::adjacent_find(attribute_names.begin(), attribute_names.end());
    return twice == attribute_names.end() ? nullptr : &*twice;
  }
};

ModelBuilder::ModelBuilder() : impl_(std::make_unique<Impl>()) {
  model_.values.emplace_back();
  model_.storage.push_back(impl_->store);
}

ModelBuilder::~ModelBuilder() = default;

NameId ModelBuilder::name(std::string_view text) { return static_cast<NameId>(model_.names.intern(text)); }

NameId ModelBuilder::label(std::string_view text) { return static_cast<NameId>(model_.names.append(text)); }

void ModelBuilder::reserve(double factor) {
  const Impl::Sizes &from = impl_->at_begin, now = impl_->sizes(model_);
  const auto later = [factor](std::size_t before, std::size_t at) {
    return before + static_cast<std::size_t>(static_cast<double>(at - before) * factor);
  };
  model_.nodes.reserve(later(from.nodes, now.nodes));
  model_.values.reserve(later(from.values, now.values));
  model_.result_list.reserve(later(from.results, now.results));
  model_.attribute_list.reserve(later(from.attributes, now.attributes));
  impl_->operand_names.reserve(later(from.operands, now.operands));
  model_.names.reserve(later(from.names, now.names), later(from.interned, now.interned));
  model_.value_index.reserve(later(from.names, now.names));
}

std::string_view ModelBuilder::copy(std::string_view text) {
  const std::span<const char> kept = impl_->store->arena.copy(std::span<const char>(text));
  return {kept.data(), kept.size()};
}

Tensor* ModelBuilder::new_tensor() { return &impl_->store->tensors.emplace_back(); }
SparseTensor* ModelBuilder::new_sparse_tensor() { return &impl_->store->sparse_tensors.emplace_back(); }
TypeDecl* ModelBuilder::new_type() { return &impl_->store->types.emplace_back(); }

std::span<const std::int64_t> ModelBuilder::keep_ints(std::span<const std::int64_t> ints) {
  return impl_->store->arena.copy(ints);
}
std::span<const float> ModelBuilder::keep_floats(std::span<const float> floats) {
  return impl_->store->arena.copy(floats);
}
std::span<const std::string_view> ModelBuilder::keep_strings(std::span<const std::string_view> strings) {
  return impl_->store->arena.copy(strings);
}
std::span<const DimDecl> ModelBuilder::keep_dims(std::span<const DimDecl> dims) {
  return impl_->store->arena.copy(dims);
}

std::uint32_t ModelBuilder::add_opset_imports(std::vector<OpsetImport> imports) {
  for (OpsetImport& import : imports) import.domain = name(normalised_domain(model_.text(import.domain)));
  model_.opset_imports.push_back(std::move(imports));
  return static_cast<std::uint32_t>(model_.opset_imports.size() - 1);
}

GraphId ModelBuilder::add_graph(Graph graph) {
  if (graph.kind == GraphKind::kFunction) graph.domain = name(normalised_domain(model_.text(graph.domain)));
  model_.graphs.push_back(std::move(graph));
  return static_cast<GraphId>(model_.graphs.size() - 1);
}

void ModelBuilder::begin_nodes(GraphId) { impl_->at_begin = impl_->sizes(model_); }

ValueId ModelBuilder::add_input(GraphId graph, NameId name, const TypeDecl* type, Position position) {
  Graph& owner = model_.graphs[graph];
  const ValueId id = model_.values.next_id();
  const auto index = static_cast<std::uint32_t>(owner.inputs.size());
  model_.values.push_back(
      {.name = name, .graph = graph, .origin = ValueOrigin::kInput, .result_index = index, .type = type});
  owner.inputs.push_back(id);
  if (name == NameId::kEmpty) {
    if (owner.kind != GraphKind::kSubgraph)
      fault({.kind = StructureFault::Kind::kEmptyName,
             .graph = graph,
             .value = id,
             .message = fmt::format("input {} has no name", index),
             .position = position});
    return id;
  }
  std::uint32_t& slot = model_.value_index.slot(number(graph), number(name));
  if (slot == 0) {
    slot = static_cast<std::uint32_t>(id);
  } else {
    fault({.kind = StructureFault::Kind::kDuplicateDefinition,
           .graph = graph,
           .value = static_cast<ValueId>(slot),
           .message = fmt::format("`{}` is an input twice", model_.text(name)),
           .position = position});
  }
  return id;
}

ValueId ModelBuilder::add_initializer(GraphId graph, NameId name, const Tensor* tensor, const SparseTensor* sparse) {
  Graph& owner = model_.graphs[graph];
  const Position position = tensor ? tensor->position : Position{};
  if (name == NameId::kEmpty) {
    fault({.kind = StructureFault::Kind::kEmptyName,
           .graph = graph,
           .tensor = tensor,
           .message = "an initializer has no name",
           .position = position});
    return ValueId::kAbsent;
  }
  std::uint32_t& slot = model_.value_index.slot(number(graph), number(name));
  if (slot != 0) {
    Value& known = model_.values[static_cast<ValueId>(slot)];
    if (known.origin == ValueOrigin::kInput && !known.has_default()) {
      known.initializer = tensor;
      known.sparse_initializer = sparse;
    } else {
      fault({.kind = StructureFault::Kind::kDuplicateDefinition,
             .graph = graph,
             .value = static_cast<ValueId>(slot),
             .tensor = tensor,
             .message = fmt::format("`{}` is defined twice, the second time by an initializer", model_.text(name)),
             .position = position});
    }
    return static_cast<ValueId>(slot);
  }
  const ValueId id = model_.values.next_id();
  slot = static_cast<std::uint32_t>(id);
  model_.values.push_back({.name = name,
                           .graph = graph,
                           .origin = ValueOrigin::kInitializer,
                           .initializer = tensor,
                           .sparse_initializer = sparse});
  owner.initializers.push_back(id);
  return id;
}

void ModelBuilder::add_output(GraphId graph, NameId name, const TypeDecl* type) {
  impl_->outputs.push_back({graph, name, type});
}
void ModelBuilder::add_value_info(GraphId graph, NameId name, const TypeDecl* type) {
  impl_->value_infos.push_back({graph, name, type});
}

NodeId ModelBuilder::add_node(GraphId graph, NameId domain, NameId op, NameId overload, NameId name,
                              std::span<const NameId> operands, std::span<const NameId> results,
                              std::vector<Attribute>& attributes, Position position, std::uint32_t byte_length) {
  Graph& owner = model_.graphs[graph];
  const NodeId id = model_.nodes.next_id();
  owner.nodes.append(id);
  Node node{.name = name, .graph = graph, .position = position, .byte_length = byte_length};

  if (normalised_domain(model_.text(domain)).empty()) domain = NameId::kEmpty;
  std::uint64_t key = table_hash(static_cast<std::uint64_t>(domain) << 32 | static_cast<std::uint64_t>(op),
                                 static_cast<std::uint64_t>(overload));
  key = table_hash(key, owner.opsets);
  for (;; ++key) {  // linear probing where two operators share a hash
    std::uint32_t& slot = impl_->operator_index[key];
    if (slot == 0) {
      slot = static_cast<std::uint32_t>(model_.operators.size() + 1);
      model_.operators.push_back({.domain = domain, .name = op, .overload = overload});
      impl_->operator_opsets.push_back(owner.opsets);
    }
    const auto op_id = static_cast<OperatorId>(slot - 1);
    const Operator& known = model_.operators[op_id];
    if (known.domain != domain || known.name != op || known.overload != overload ||
        impl_->operator_opsets[op_id] != owner.opsets)
      continue;
    node.op = op_id;
    break;
  }

  node.first_operand = static_cast<std::uint32_t>(impl_->operand_names.size());
  node.operand_count = static_cast<std::uint32_t>(operands.size());
  impl_->operand_names.insert(impl_->operand_names.end(), operands.begin(), operands.end());

  node.first_result = static_cast<std::uint32_t>(model_.result_list.size());
  node.result_count = static_cast<std::uint32_t>(results.size());
  for (std::uint32_t i = 0; i < results.size(); ++i) {
    if (results[i] == NameId::kEmpty) {
      model_.result_list.push_back(ValueId::kAbsent);
      continue;
    }
    const auto value = static_cast<ValueId>(model_.values.size());
    model_.values.push_back(
        {.name = results[i], .graph = graph, .origin = ValueOrigin::kNode, .result_index = i, .producer = id});
    model_.result_list.push_back(value);
    std::uint32_t& slot = model_.value_index.slot(number(graph), number(results[i]));
    if (slot == 0) {
      slot = static_cast<std::uint32_t>(value);
    } else {
      fault({.kind = StructureFault::Kind::kDuplicateDefinition,
             .graph = graph,
             .node = id,
             .value = static_cast<ValueId>(slot),
             .message = fmt::format("`{}` is defined again", model_.text(results[i])),
             .position = position});
    }
  }

  node.first_attribute = static_cast<std::uint32_t>(model_.attribute_list.size());
  node.attribute_count = static_cast<std::uint32_t>(attributes.size());
  if (const std::string_view* const twice = impl_->repeated_name(attributes))
    fault({.kind = StructureFault::Kind::kMalformedAttribute,
           .graph = graph,
           .node = id,
           .message = fmt::format("attribute `{}` is given twice", *twice),
           .position = position});
  model_.attribute_list.insert(model_.attribute_list.end(), attributes.begin(), attributes.end());
  attributes.clear();
  model_.nodes.push_back(node);
  return id;
}

void ModelBuilder::fault(StructureFault fault) {
  const auto graph = static_cast<std::size_t>(fault.graph);
  if (impl_->fault_counts.size() <= graph) impl_->fault_counts.resize(graph + 1);
  if (impl_->fault_counts[graph]++ >= kMaxFaultsPerGraph) return;
  memory_made_ += kFaultCost + fault.message.size();
  if (memory_made_ <= most_memory_) model_.faults.push_back(std::move(fault));
}

void ModelBuilder::drop_nodes(std::size_t first) {
  if (first >= model_.nodes.size()) return;
  const Node& dropped = model_.nodes[static_cast<NodeId>(first)];
  model_.operand_list.resize(std::min<std::size_t>(dropped.first_operand, model_.operand_list.size()));
  impl_->operand_names.resize(dropped.first_operand);
  model_.result_list.resize(dropped.first_result);
  model_.attribute_list.resize(dropped.first_attribute);
  model_.nodes.resize(first);
}

bool ModelBuilder::keeps_faults(GraphId graph) const {
  const auto index = static_cast<std::size_t>(graph);
  return index >= impl_->fault_counts.size() || impl_->fault_counts[index] < kMaxFaultsPerGraph;
}

namespace {

/// Results of nodes in bodies whose name an outer graph has given to a value that the body sees: neither onnx.checker
/// nor onnxruntime takes these. Inputs of bodies may shadow.
void find_shadowing_names(ModelBuilder& builder, const Model& model) {
  for (const Value& value : model.values) {
    if (value.origin != ValueOrigin::kNode) continue;
    GraphId inner = value.graph;
    for (GraphId outer = model.graph(inner).parent; outer != GraphId::kNone;
         inner = outer, outer = model.graph(inner).parent) {
      const auto found = static_cast<ValueId>(model.value_index.find(number(outer), number(value.name)));
      if (found == ValueId::kAbsent) continue;
      // What the outer graph defines after the node that has the body is not visible in it.
      const Value& known = model.values[found];
      const bool is_visible = known.origin == ValueOrigin::kInput || known.origin == ValueOrigin::kInitializer ||
                              (known.origin == ValueOrigin::kNode && known.producer < model.graph(inner).owner);
      if (!is_visible) continue;
      builder.fault({.kind = StructureFault::Kind::kDuplicateDefinition,
                     .graph = value.graph,
                     .node = value.producer,
                     .value = found,
                     .message = fmt::format("`{}` is defined again in a body: its outer graph has a value of that name",
                                            model.text(value.name)),
                     .position = model.node(value.producer).position});
      break;
    }
  }
}

}  // namespace

/// The model's own functions by domain, name and overload.
struct ModelBuilder::FunctionIndex {
  static std::uint64_t key_of(NameId domain, NameId name, NameId overload) {
    return table_hash(static_cast<std::uint64_t>(domain) << 32 | static_cast<std::uint64_t>(name),
                      static_cast<std::uint64_t>(overload));
  }
  GraphId find(const Model& model, NameId domain, NameId name, NameId overload) const {
    for (std::uint64_t key = key_of(domain, name, overload);; ++key) {
      const std::uint32_t found = graphs.find(key);
      if (found == 0) return GraphId::kNone;
      const Graph& graph = model.graph(static_cast<GraphId>(found));
      if (graph.domain == domain && graph.name == name && graph.overload == overload)
        return static_cast<GraphId>(found);
    }
  }
  void add(const Graph& graph, GraphId id) {
    std::uint64_t key = key_of(graph.domain, graph.name, graph.overload);
    while (graphs.find(key) != 0) ++key;
    graphs[key] = number(id);
  }

  FlatMap graphs;
};

namespace {

void sort_attributes(Model& model) {
  for (const Node& node : model.nodes) {
    if (node.attribute_count <= Model::kFewAttributes) continue;
    std::vector<std::uint32_t>& all = model.attributes_by_name;
    all.resize(model.attribute_list.size());
    const auto own = std::span(all).subspan(node.first_attribute, node.attribute_count);
    std::iota(own.begin(), own.end(), node.first_attribute);
    std::ranges::stable_sort(own, {}, [&](std::uint32_t number) { return model.attribute_list[number].name; });
  }
}

}  // namespace

std::optional<Model> ModelBuilder::finish(std::uint64_t most_memory) {
  most_memory_ = most_memory;
  Model model = finish();
  if (memory_made_ > most_memory_) return std::nullopt;
  return model;
}

Model ModelBuilder::finish() {
  if (model_.opset_imports.empty()) model_.opset_imports.emplace_back();
  resolve_operands();
  apply_declarations();
  resolve_operators(index_functions());
  find_shadowing_names(*this, model_);
  sort_attributes(model_);
  return std::move(model_);
}

/// The value that a name means in a graph: its own, an outer graph's, or an undefined one.
ValueId ModelBuilder::resolve(GraphId graph, NameId name) {
  for (GraphId at = graph; at != GraphId::kNone; at = model_.graph(at).parent)
    if (const std::uint32_t found = model_.value_index.find(number(at), number(name)))
      return static_cast<ValueId>(found);
  memory_made_ += kUndefinedCost;
  if (memory_made_ > most_memory_) return ValueId::kAbsent;
  const ValueId id = model_.values.next_id();
  model_.values.push_back({.name = name, .graph = graph, .origin = ValueOrigin::kUndefined});
  model_.value_index.slot(number(graph), number(name)) = static_cast<std::uint32_t>(id);
  return id;
}

void ModelBuilder::resolve_operands() {
  model_.operand_list.resize(impl_->operand_names.size());
  for (const Node& node : model_.nodes) {
    for (std::uint32_t i = node.first_operand; i < node.first_operand + node.operand_count; ++i) {
      const NameId name = impl_->operand_names[i];
      model_.operand_list[i] = name == NameId::kEmpty ? ValueId::kAbsent : resolve(node.graph, name);
    }
  }
}

void ModelBuilder::apply_declarations() {
  for (const auto& [graph, name, type] : impl_->value_infos) {
    const auto found = static_cast<ValueId>(model_.value_index.find(number(graph), number(name)));
    if (found != ValueId::kAbsent && model_.values[found].type == nullptr) model_.values[found].type = type;
  }
  for (const auto& [graph, name, type] : impl_->outputs) {
    const ValueId id = name == NameId::kEmpty ? ValueId::kAbsent : resolve(graph, name);
    Graph& owner = model_.graphs[graph];
    owner.outputs.push_back(id);
    if (id == ValueId::kAbsent) {
      fault({.kind = StructureFault::Kind::kEmptyName,
             .graph = graph,
             .message = fmt::format("output {} has no name", owner.outputs.size() - 1),
             .position = owner.position});
      continue;
    }
    Value& value = model_.values[id];
    if (value.graph != graph) {  // a subgraph yields an outer value as it is
      if (type == nullptr) continue;
      owner.outer_output_types.resize(owner.outputs.size());
      owner.outer_output_types.back() = type;
      continue;
    }
    value.is_output = true;
    if (type != nullptr && type->kind != TypeKind::kNone && value.origin != ValueOrigin::kInput) value.type = type;
  }
}

ModelBuilder::FunctionIndex ModelBuilder::index_functions() {
  FunctionIndex functions;
  for (const GraphId id : model_.graphs.ids()) {
    const Graph& graph = model_.graph(id);
    if (graph.kind != GraphKind::kFunction) continue;
    if (graph.name == NameId::kEmpty)
      fault({.kind = StructureFault::Kind::kEmptyName,
             .graph = id,
             .message = fmt::format("a function of domain `{}` has no name", model_.text(graph.domain)),
             .position = graph.position});
    if (graph.opsets == 0 && !graph.nodes.empty())
      fault({.kind = StructureFault::Kind::kMissingOpsetImport,
             .graph = id,
             .message = fmt::format("function `{}` imports no opset", model_.graph_path(id)),
             .position = graph.position});
    if (functions.find(model_, graph.domain, graph.name, graph.overload) != GraphId::kNone) {
      fault({.kind = StructureFault::Kind::kDuplicateFunction,
             .graph = id,
             .message = fmt::format("function `{}` is defined twice", model_.graph_path(id)),
             .position = graph.position});
      continue;
    }
    functions.add(graph, id);
  }
  return functions;
}

void ModelBuilder::resolve_operators(const FunctionIndex& functions) {
  for (const OperatorId id : model_.operators.ids()) {
    Operator& op = model_.operators[id];
    std::int64_t version = 0;
    for (const OpsetImport& import : model_.opset_imports[impl_->operator_opsets[id]])
      if (import.domain == op.domain) version = import.version;
    resolve_operator(model_, op, version, functions.find(model_, op.domain, op.name, op.overload));
    if (op.function != GraphId::kNone && version == 0)
      fault({.kind = StructureFault::Kind::kMissingOpsetImport,
             .message = fmt::format("domain `{}` of function `{}` is not imported where it is called",
                                    model_.text(op.domain), model_.text(op.name)),
             .position = {}});
  }
}

void resolve_operator(const Model& model, Operator& op, std::int64_t version, GraphId function) {
  op.opset = version;
  op.schema = find_schema(model.text(op.domain), model.text(op.name),
                          static_cast<int>(std::clamp<std::int64_t>(version, 0, 1 << 20)));
  // Operators of our own domain are known by name: a function says the same to runtimes that do not know them.
  const bool is_own = model.text(op.domain) == kOwnDomain && op.schema != nullptr;
  op.function = is_own ? GraphId::kNone : function;
}

}  // namespace tensorlint
