#include "ir/recording/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace tensorlint {

Recording::Recording(const Head& head) : model_(parts_.model()) {
  model_.ir_version = head.ir_version;
  model_.producer_name = parts_.copy(head.producer_name);
  model_.producer_version = parts_.copy(head.producer_version);
  parts_.add_opset_imports({});
  open_.push_back(parts_.add_graph({.kind = GraphKind::kMain, .name = intern(head.graph_name), .position = {}}));
}

void Recording::import(std::string_view domain, std::int64_t version) {
  std::vector<OpsetImport>& imports = model_.opset_imports.front();
  const NameId name = intern(normalised_domain(domain));
  const auto known = std::ranges::find(imports, name, &OpsetImport::domain);
  assert(known == imports.end() || known->version == version);
  if (known == imports.end()) imports.push_back({name, version});
}

NameId Recording::intern(std::string_view text) {
  if (text.empty()) return NameId::kEmpty;
  if (const std::uint32_t known = model_.names.find(text)) return static_cast<NameId>(known);
  return parts_.name(parts_.copy(text));
}

NameId Recording::unused_name(std::string_view base) {
  const NameId first = intern(base);
  if (!is_taken(first)) return first;
  while (true) {
    std::uint32_t& number = numbers()[static_cast<std::size_t>(first)];
    text_.clear();
    fmt::format_to(std::back_inserter(text_), "{}_{}", base, number++);
    const NameId name = intern(text_);
    if (!is_taken(name)) return name;
  }
}

void Recording::take(NameId name) {
  if (name == NameId::kEmpty) return;
  assert(!is_taken(name));
  const auto number = static_cast<std::size_t>(name);
  if (number >= numbers().size()) numbers().resize(number + 1);
  numbers()[number] = 1;
}

bool Recording::is_visible(ValueId id) const {
  const GraphId home = model_.value(id).graph;
  for (GraphId at = current(); at != GraphId::kNone; at = model_.graph(at).parent)
    if (at == home) return true;
  return false;
}

ValueId Recording::add_input(NameId name, const TypeDecl* type, const Tensor* initial) {
  take(name);
  const ValueId id = parts_.add_input(current(), name, type, {});
  value(id).initializer = initial;
  return id;
}

ValueId Recording::add_constant(GraphId graph, NameId name, const Tensor* tensor, const SparseTensor* sparse) {
  take(name);
  return parts_.add_initializer(graph, name, tensor, sparse);
}

NodeId Recording::add_call(const Call& call) {
  const GraphId caller = current();
  operand_names_.clear();
  for (const ValueId operand : call.operands) {
    assert(operand == ValueId::kAbsent || is_visible(operand));
    operand_names_.push_back(model_.value(operand).name);
  }
  attributes_.clear();
  for (const Attribute& attribute : call.attributes) attributes_.push_back(kept(attribute));
  for (const NameId result : call.results) take(result);

  const std::size_t operators = model_.operators.size();
  const NodeId id = parts_.add_node(caller, intern(call.domain), intern(call.op), intern(call.overload), call.name,
                                    operand_names_, call.results, attributes_, {}, 0);
  model_.operand_list.insert(model_.operand_list.end(), call.operands.begin(), call.operands.end());
  if (model_.operators.size() != operators) resolve(model_.operators.back(), caller);
  for (const Attribute& attribute : call.attributes) {
    if (attribute.graph == GraphId::kNone) continue;
    Graph& body = graph(attribute.graph);
    assert(body.kind == GraphKind::kSubgraph && body.parent == caller && body.owner == NodeId::kNone);
    body.owner = id;
    body.attribute = model_.attribute(model_.node(id), attribute.name)->name;
  }
  return id;
}

void Recording::resolve(Operator& op, GraphId caller) const {
  const std::int64_t version = model_.opset(caller, model_.text(op.domain));
  GraphId function = GraphId::kNone;
  for (const GraphId id : model_.graphs.ids()) {
    const Graph& known = model_.graph(id);
    if (known.kind == GraphKind::kFunction && known.domain == op.domain && known.name == op.name &&
        known.overload == op.overload)
      function = id;
  }
  resolve_operator(model_, op, version, function);
}

Attribute Recording::kept(const Attribute& attribute) {
  Attribute own = attribute;
  own.name = model_.text(intern(attribute.name));
  own.reference = parts_.copy(attribute.reference);
  own.s = parts_.copy(attribute.s);
  own.ints = parts_.keep_ints(attribute.ints);
  own.floats = parts_.keep_floats(attribute.floats);
  if (!attribute.strings.empty()) {
    std::vector<std::string_view> strings;
    for (const std::string_view text : attribute.strings) strings.push_back(parts_.copy(text));
    own.strings = parts_.keep_strings(strings);
  }
  return own;
}

GraphId Recording::open_body(NameId name) {
  take(name);
  const GraphId outer = current();
  const std::uint32_t opsets = model_.graph(outer).opsets;
  open_.push_back(parts_.add_graph(
      {.kind = GraphKind::kSubgraph, .name = name, .parent = outer, .opsets = opsets, .position = {}}));
  return current();
}

void Recording::close(std::span<const ValueId> outputs) {
  Graph& closed = graph(current());
  closed.outputs.assign(outputs.begin(), outputs.end());
  for (const ValueId output : outputs)
    if (output != ValueId::kAbsent && model_.value(output).graph == current()) value(output).is_output = true;
  open_.pop_back();
}

void Recording::close_body(std::span<const ValueId> outputs) {
  assert(model_.graph(current()).kind == GraphKind::kSubgraph);
  close(outputs);
}

void Recording::abandon_body(GraphId abandoned) {
  assert(model_.graph(abandoned).kind == GraphKind::kSubgraph && model_.graph(abandoned).owner == NodeId::kNone);
  // Bodies in it were opened after it, and nothing else since.
  std::size_t first = model_.nodes.size();
  for (const GraphId id : model_.graphs.ids(abandoned)) {
    Graph& body = graph(id);
    if (!body.nodes.empty()) first = std::min(first, static_cast<std::size_t>(body.nodes.front()));
    body = {
        .kind = GraphKind::kSubgraph, .name = body.name, .parent = body.parent, .opsets = body.opsets, .position = {}};
  }
  parts_.drop_nodes(first);
  for (Value& value : model_.values)
    if (value.graph >= abandoned) value = {.name = value.name, .graph = value.graph, .origin = ValueOrigin::kUndefined};
  if (current() == abandoned) open_.pop_back();
}

GraphId Recording::open_function(const Function& function) {
  Graph added{.kind = GraphKind::kFunction,
              .name = intern(function.name),
              .domain = intern(normalised_domain(function.domain)),
              .overload = intern(function.overload),
              .position = {}};
  for (const std::string_view name : function.attribute_names) added.attribute_names.push_back(parts_.copy(name));
  for (const Attribute& attribute : function.attribute_defaults) added.attribute_defaults.push_back(kept(attribute));
  added.opsets = parts_.add_opset_imports(function.opset_imports);
  assert(!is_in_function_);
  is_in_function_ = true;
  function_numbers_.clear();
  open_.push_back(parts_.add_graph(std::move(added)));
  return current();
}

void Recording::close_function(std::span<const ValueId> outputs) {
  assert(model_.graph(current()).kind == GraphKind::kFunction);
  close(outputs);
  is_in_function_ = false;
}

void Recording::add_output(ValueId output) {
  assert(open_.size() == 1 && model_.value(output).graph == GraphId::kMain);
  graph(GraphId::kMain).outputs.push_back(output);
  value(output).is_output = true;
}

void Recording::rename(ValueId id, NameId name) {
  take(name);
  Value& renamed = value(id);
  assert(renamed.graph == GraphId::kMain);
  const auto home = static_cast<std::uint32_t>(renamed.graph);
  // The old name stays taken and means nothing.
  model_.value_index.slot(home, static_cast<std::uint32_t>(renamed.name)) = 0;
  model_.value_index.slot(home, static_cast<std::uint32_t>(name)) = static_cast<std::uint32_t>(id);
  renamed.name = name;
}

void Recording::declare(ValueId id, const TypeDecl* type) { value(id).type = type; }

}  // namespace tensorlint
