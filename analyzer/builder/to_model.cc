#include "analyzer/builder/to_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/version.h"
#include "ir/graph/model_builder.h"

namespace tensorlint::builder {
namespace {

constexpr std::int64_t kIrVersion = 10;  // the first in which nodes have metadata
constexpr std::string_view kTraceKey = "pkg.torch.onnx.stack_trace", kModulesKey = "pkg.torch.onnx.name_scopes",
                           kScopeKey = "namespace", kDeviceKey = "tensorlint.device",
                           kTrainedKey = "tensorlint.requires_grad";
constexpr int kMaxTypeDepth = 8;

/// Metadata of a model in memory. A node's `position.offset` is its index in the builder.
class BuiltMetadata final : public Provenance {
 public:
  std::vector<MetadataEntry> node_metadata(const Node& node) const override { return nodes.at(node.position.offset); }
  std::vector<MetadataEntry> value_metadata(ValueId value) const override {
    const auto found = values.find(value);
    return found == values.end() ? std::vector<MetadataEntry>() : found->second;
  }
  std::vector<MetadataEntry> initializer_metadata(ValueId value) const override {
    return constants.contains(value) ? value_metadata(value) : std::vector<MetadataEntry>();
  }
  bool mentions(std::string_view key) const override { return keys.contains(key); }

  std::vector<std::vector<MetadataEntry>> nodes;
  std::map<ValueId, std::vector<MetadataEntry>> values;
  std::set<ValueId> constants;
  std::set<std::string_view> keys;
};

class Maker {
 public:
  Maker(const State& state, bool declare_types, std::vector<GraphId>* graphs)
      : state_(state),
        declare_types_(declare_types),
        graphs_(state.bodies.size(), GraphId::kNone),
        out_(graphs),
        metadata_(std::make_unique<BuiltMetadata>()) {}

  Model run() {
    Model& model = builder_.model();
    model.ir_version = kIrVersion;
    model.producer_name = "tensorlint";
    model.producer_version = kVersion;
    opset_imports();
    metadata_->nodes.resize(state_.steps.size());
    graphs_[0] = builder_.add_graph({.kind = GraphKind::kMain, .name = name(state_.bodies[0].name), .position = {}});
    std::vector<std::uint32_t> flat{0};
    for (std::uint32_t body = 1; body < state_.bodies.size(); ++body)
      if (state_.bodies[body].open) flat.push_back(body);
    for (const std::uint32_t body : flat) graphs_[body] = graphs_[0];
    graph(GraphId::kMain, flat);
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      const std::uint32_t body = pending_[i];  // the list grows meanwhile
      graph(graphs_[body], {&body, 1});
    }

    Model made = builder_.finish();
    for (std::uint32_t i = 0; i < state_.items.size(); ++i) note_metadata(made, state_.items[i]);
    made.provenance = std::move(metadata_);
    if (out_ != nullptr) *out_ = std::move(graphs_);
    return made;
  }

 private:
  NameId name(std::string_view text) { return text.empty() ? NameId::kEmpty : builder_.name(builder_.copy(text)); }

  void opset_imports() {
    std::set<std::string_view> domains{""};
    for (const State::Step& step : state_.steps) domains.insert(step.domain);
    for (const auto& [domain, version] : state_.imports) domains.insert(domain);
    std::vector<OpsetImport> imports;
    for (const std::string_view domain : domains) imports.push_back({name(domain), state_.version(domain)});
    builder_.add_opset_imports(std::move(imports));
  }

  void graph(GraphId id, std::span<const std::uint32_t> bodies) {
    for (const std::uint32_t body : bodies)
      for (const std::uint32_t input : state_.bodies[body].inputs) {
        const State::Item& item = state_.items[input];
        builder_.add_input(id, name(item.name), input_type(item), {});
        if (item.data != nullptr) builder_.add_initializer(id, name(item.name), tensor(item), nullptr);
      }
    if (id == GraphId::kMain)
      for (const std::uint32_t constant : state_.constants)
        builder_.add_initializer(id, name(state_.items[constant].name), tensor(state_.items[constant]), nullptr);
    builder_.begin_nodes(id);
    for (const std::uint32_t body : bodies)
      for (const std::uint32_t step : state_.bodies[body].steps) node(id, step);
    for (const std::uint32_t body : bodies) {
      if (state_.bodies[body].open && body != 0) continue;
      for (const std::uint32_t output : state_.bodies[body].outputs)
        builder_.add_output(id, name(state_.items[output].name),
                            declare_types_ ? type_of(state_.items[output].fact, 0) : nullptr);
    }
    if (!declare_types_) return;
    for (const std::uint32_t body : bodies) {
      for (const std::uint32_t step : state_.bodies[body].steps) {
        for (const std::uint32_t result : state_.steps[step].results) {
          // What follows from a mistake is no more than a guess.
          const auto& item = state_.items[result];
          if (item.taint != Taint()) continue;
          if (const TypeDecl* type = type_of(item.fact, 0)) builder_.add_value_info(id, name(item.name), type);
        }
      }
    }
  }

  void node(GraphId id, std::uint32_t index) {
    const State::Step& step = state_.steps[index];
    std::vector<NameId> operands, results;
    for (const std::uint32_t operand : step.operands)
      operands.push_back(operand == State::kNone ? NameId::kEmpty : name(state_.items[operand].name));
    for (const std::uint32_t result : step.results) results.push_back(name(state_.items[result].name));
    std::vector<Attribute> attributes;
    const AttributeViews views(step.attributes);
    for (const Attribute& view : views.views()) attributes.push_back(kept(view));
    for (const State::BodyAttribute& body : step.bodies) {
      Graph made{.kind = GraphKind::kSubgraph,
                 .name = name(state_.bodies[body.graph].name),
                 .parent = id,
                 .owner = static_cast<NodeId>(builder_.model().nodes.size()),
                 .attribute = builder_.copy(body.name),
                 .position = {}};
      Attribute attribute;
      attribute.name = made.attribute;
      attribute.kind = AttributeKind::kGraph;
      attribute.graph = graphs_[body.graph] = builder_.add_graph(std::move(made));
      attributes.push_back(attribute);
      pending_.push_back(body.graph);
    }
    builder_.add_node(id, name(step.domain), name(step.op), NameId::kEmpty, name(step.name), operands, results,
                      attributes, {.offset = index}, 0);

    std::vector<MetadataEntry>& entries = metadata_->nodes[index];
    const Place place = state_.place_of(step.at);
    std::string trace = fmt::format("File \"{}\", line {}, in {}", place.file, place.line, step.at.function_name());
    if (const std::size_t begin = place.source.find_first_not_of(" \t"); begin != std::string::npos)
      trace += "\n    " + place.source.substr(begin);
    note(entries, kTraceKey, trace);
    if (!step.scopes.empty()) note(entries, kModulesKey, fmt::format("{}'{}']", step.scopes, step.name));
    if (!step.metadata.empty()) note(entries, kScopeKey, step.metadata);
    if (!step.device.empty()) note(entries, kDeviceKey, step.device);
  }

  void note(std::vector<MetadataEntry>& entries, std::string_view key, std::string_view value) {
    entries.push_back({key, builder_.copy(value)});
    metadata_->keys.insert(key);
  }

  void note_metadata(const Model& made, const State::Item& item) {
    if (item.origin == State::Origin::kResult) return;
    const bool is_open_input = item.origin == State::Origin::kBodyInput && state_.bodies[item.graph].open;
    // The input of an open body stands for a value from outside, which may be anywhere.
    const std::string& device = is_open_input && state_.uses_devices ? item.guessed_device : item.device;
    if (device.empty() && !item.trained) return;
    const ValueId value = made.find_value(graphs_[item.graph], item.name);
    if (value == ValueId::kAbsent) return;
    if (item.origin == State::Origin::kConstant) metadata_->constants.insert(value);
    std::vector<MetadataEntry>& entries = metadata_->values[value];
    if (!device.empty()) entries.push_back({kDeviceKey, device});
    if (item.trained) entries.push_back({kTrainedKey, "true"});
    if (!device.empty()) metadata_->keys.insert(kDeviceKey);
    if (item.trained) metadata_->keys.insert(kTrainedKey);
  }

  Attribute kept(const Attribute& view) {
    Attribute attribute = view;
    attribute.name = builder_.copy(view.name);
    attribute.s = builder_.copy(view.s);
    attribute.ints = builder_.keep_ints(view.ints);
    attribute.floats = builder_.keep_floats(view.floats);
    std::vector<std::string_view> strings;
    for (const std::string_view text : view.strings) strings.push_back(builder_.copy(text));
    attribute.strings = builder_.keep_strings(strings);
    if (view.tensor != nullptr) {
      Tensor* const own = builder_.new_tensor();
      *own = *view.tensor;
      attribute.tensor = own;
    }
    return attribute;
  }

  const Tensor* tensor(const State::Item& item) {
    Tensor* const made = builder_.new_tensor();
    *made = tensor_of(*item.data, name(item.name));
    builder_.model().storage.push_back(item.data);
    return made;
  }

  const TypeDecl* input_type(const State::Item& item) {
    if (item.origin == State::Origin::kBodyInput) return type_of(item.fact, 0);
    TypeDecl* const type = builder_.new_type();
    type->kind = TypeKind::kTensor;
    type->element_code = static_cast<std::int32_t>(item.dtype);
    type->ranked = true;
    std::vector<DimDecl> dims;
    for (const Extent& extent : item.shape)
      dims.push_back({.extent = extent.is_named() ? -1 : extent.number(),
                      .name = name(extent.name()),
                      .has_extent = !extent.is_named()});
    type->dims = builder_.keep_dims(dims);
    return type;
  }

  /// What is known of a value, as far as a declaration can say it; null for nothing.
  const TypeDecl* type_of(FactId id, int depth) {
    FactStore& facts = *state_.store;
    const Fact& fact = facts.fact(id);
    if (depth > kMaxTypeDepth) return nullptr;
    if (fact.kind == ValueKind::kSequence || fact.kind == ValueKind::kOptional) {
      const TypeDecl* element = type_of(fact.element, depth + 1);
      if (element == nullptr) return nullptr;
      TypeDecl* const type = builder_.new_type();
      type->kind = fact.kind == ValueKind::kSequence ? TypeKind::kSequence : TypeKind::kOptional;
      type->element = element;
      return type;
    }
    const auto dtype = fact.dtypes.single();
    if (fact.kind != ValueKind::kTensor || !dtype) return nullptr;
    TypeDecl* const type = builder_.new_type();
    type->kind = TypeKind::kTensor;
    type->element_code = static_cast<std::int32_t>(*dtype);
    type->ranked = facts.is_ranked(fact.shape);
    std::vector<DimDecl> dims;
    for (const Dim dim : facts.dims_of(fact.shape)) {
      DimDecl decl;
      if (const auto extent = facts.dims().as_constant(dim)) {
        decl.extent = *extent;
        decl.has_extent = true;
      } else if (facts.dims().is_symbol(dim) && facts.dims().is_named(dim)) {
        decl.name = name(facts.dims().to_text(dim));  // a formula would be a name of its own: left open
      }
      dims.push_back(decl);
    }
    type->dims = builder_.keep_dims(dims);
    return type;
  }

  const State& state_;
  const bool declare_types_;
  ModelBuilder builder_;
  std::vector<GraphId> graphs_;  // by body
  std::vector<std::uint32_t> pending_;
  std::vector<GraphId>* out_;
  std::unique_ptr<BuiltMetadata> metadata_;
};

}  // namespace

AttributeViews::AttributeViews(std::span<const Attr> given) {
  for (const Attr& attribute : given) {
    Attribute view;
    view.name = attribute.name();
    const Attr::Payload& payload = attribute.payload();
    if (const auto* i = std::get_if<std::int64_t>(&payload)) {
      view.kind = AttributeKind::kInt;
      view.i = *i;
    } else if (const auto* f = std::get_if<float>(&payload)) {
      view.kind = AttributeKind::kFloat;
      view.f = *f;
    } else if (const auto* s = std::get_if<std::string>(&payload)) {
      view.kind = AttributeKind::kString;
      view.s = *s;
    } else if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&payload)) {
      view.kind = AttributeKind::kInts;
      view.ints = *ints;
    } else if (const auto* floats = std::get_if<std::vector<float>>(&payload)) {
      view.kind = AttributeKind::kFloats;
      view.floats = *floats;
    } else if (const auto* strings = std::get_if<std::vector<std::string>>(&payload)) {
      view.kind = AttributeKind::kStrings;
      view.strings = strings_.emplace_back(strings->begin(), strings->end());
    } else {
      view.kind = AttributeKind::kTensor;
      view.tensor = &tensors_.emplace_back(tensor_of(std::get<Data>(payload), NameId::kEmpty));
    }
    views_.push_back(view);
  }
}

Tensor tensor_of(const Data& data, NameId name) {
  Tensor tensor;
  tensor.name = name;
  tensor.dtype_code = static_cast<std::int32_t>(data.dtype());
  tensor.dims = data.dims();
  tensor.has_raw = true;
  tensor.raw = data.bytes();
  return tensor;
}

Model to_model(const State& state, bool declare_types, std::vector<GraphId>* graphs) {
  return Maker(state, declare_types, graphs).run();
}

}  // namespace tensorlint::builder
