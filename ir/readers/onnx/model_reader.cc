#include "ir/readers/onnx/model_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/readers/onnx/unread_messages.h"

namespace tensorlint::onnx {
namespace {

constexpr int kMaxGraphDepth = 64;
constexpr std::size_t kMaxOpsetImports = 1024;
constexpr std::int64_t kOldestIrVersion = 3;

}  // namespace

Reader::Reader(std::string_view file, std::string path, const FileBytes* mapping,
               std::span<const ElementsElsewhere> elsewhere, const FileBytes* weights)
    : file_(file),
      start_(file.data()),
      released_(start_),
      passed_(start_),
      landing_(start_ + file.size()),
      mapping_(mapping),
      weights_(weights),
      elsewhere_(elsewhere),
      ahead_(mapping) {
  model().path = std::move(path);
  model().weights_file = weights;
}

Model Reader::read() {
  read_model_fields();
  walk_graphs();
  const std::uint64_t names = kNameCost * model().names.size(), left = budget_.left();
  std::optional<Model> finished = builder_.finish(left - std::min(left, names));
  if (!finished) fail_budget(file_.data() + file_.size());
  Model model = *std::move(finished);
  finish_metadata(model);
  model.input_bytes = std::max<std::uint64_t>(budget_.paid(), 1);
  return model;
}

void Reader::read_model_fields() {
  builder_.add_opset_imports({});
  std::vector<OpsetImport> imports;
  std::string_view graph;
  bool has_version = false, has_graph = false;
  std::vector<std::string_view> functions;
  Cursor fields = cursor(file_);
  try {
    for (; ahead_.at(fields.position()), fields.next();) {
      passed(fields.field_start());
      switch (fields.field()) {
        case wire::kModelIrVersion:
          model().ir_version = fields.integer("ModelProto.ir_version");
          has_version = true;
          break;
        case wire::kModelProducerName:
          model().producer_name = fields.view("ModelProto.producer_name");
          break;
        case wire::kModelProducerVersion:
          model().producer_version = fields.view("ModelProto.producer_version");
          break;
        case wire::kModelGraph:
          if (has_graph) fields.fail("a second `ModelProto.graph`");
          graph = fields.view("ModelProto.graph");
          has_graph = true;
          break;
        case wire::kModelOpsetImport:
          opset_import(fields.view("ModelProto.opset_import"), GraphId::kMain, imports);
          break;
        case wire::kModelMetadata:
          model().metadata.push_back(metadata_entry(fields.inside(fields.view("ModelProto.metadata_props"))));
          for (std::string_view* const text : {&model().metadata.back().key, &model().metadata.back().value})
            *text = lasting(*text);
          budget_.charge(3 * sizeof(MetadataEntry));
          budget_.pay(fields.field_bytes());
          check_budget(fields.field_start());
          break;
        case wire::kModelConfiguration:
          model().device_configurations.push_back(
              device_configuration(fields.inside(fields.view("ModelProto.configuration"))));
          budget_.charge(sizeof(DeviceConfiguration) * 3 +
                         sizeof(std::string_view) * 3 * model().device_configurations.back().devices.size());
          budget_.pay(fields.field_bytes());
          check_budget(fields.field_start());
          break;
        case wire::kModelFunction:
          functions.push_back(fields.view("ModelProto.functions"));
          budget_.charge(3 * sizeof(std::string_view));
          budget_.pay(fields.field_bytes());
          check_budget(fields.field_start());
          budget_.take_back(functions.back().size());
          break;
        case wire::kModelTrainingInfo:
          pass_over(fields.inside(fields.view("ModelProto.training_info")), wire::MessageType::kTrainingInfo, mapping_,
                    [this](std::string_view piece) { numbers(piece); });
          break;
        default:
          fields.skip();
          break;
      }
    }
  } catch (WireFault& fault) {
    // A file that never looked like a model deserves that said first.
    if (!has_graph && (!has_version || model().ir_version < kOldestIrVersion))
      fault.message = "not an ONNX model: " + fault.message;
    throw;
  }
  if (!has_graph) throw WireFault{"not an ONNX model: it has no graph", 0};
  if (!has_version) throw WireFault{"the model has no ir_version", 0};
  if (model().ir_version < kOldestIrVersion)
    throw WireFault{fmt::format("IR version {}: only 3 and later are understood", model().ir_version), 0};

  model().opset_imports[0] = std::move(imports);

  pending_.push_back(
      {graph, builder_.add_graph({.kind = GraphKind::kMain, .position = at(graph), .byte_length = length_of(graph)}), 1,
       false, false});
  for (const std::string_view function : functions) {
    budget_.charge(kGraphCost);
    budget_.pay(function.size());
    check_budget(function.data());
    budget_.take_back(function.size());
    pending_.push_back(
        {function,
         builder_.add_graph(
             {.kind = GraphKind::kFunction, .position = at(function), .byte_length = length_of(function)}),
         1, true, true});
  }
}

void Reader::opset_import(std::string_view message, GraphId graph, std::vector<OpsetImport>& imports) {
  if (imports.size() == kMaxOpsetImports) throw WireFault{"more than 1,024 opset imports", at(message).offset};
  OpsetImport import;
  for (Cursor fields = cursor(message); fields.next();) {
    switch (fields.field()) {
      case wire::kOpsetDomain:
        import.domain = builder_.name(normalised_domain(fields.view("OperatorSetIdProto.domain")));
        break;
      case wire::kOpsetVersion:
        import.version = fields.integer("OperatorSetIdProto.version");
        break;
      default:
        fields.skip();
        break;
    }
  }
  // Runtimes take a domain that is listed twice with one version.
  if (std::any_of(imports.begin(), imports.end(), [&](const OpsetImport& known) {
        return known.domain == import.domain && known.version != import.version;
      }))
    fault({.kind = StructureFault::Kind::kDuplicateOpsetImport,
           .graph = graph,
           .message = fmt::format("domain `{}` is imported twice",
                                  import.domain == NameId::kEmpty ? "ai.onnx" : model().text(import.domain)),
           .position = at(message)});
  imports.push_back(import);
}

void Reader::walk_graphs() {
  while (!pending_.empty()) {
    const Pending next = pending_.front();
    pending_.pop_front();
    if (next.is_function) {
      function_fields(next);
    } else {
      graph_fields(next);
    }
  }
}

// Fields come in any order, by custom nodes first and inputs last. Values are defined in the order inputs,
// initializers, nodes (an initializer may give an input's default; a node that reuses a name is the one at fault), so
// the fields are passed three times: twice over headers, once into the nodes.
void Reader::graph_fields(const Pending& pending) {
  const char* first_initializer = nullptr;
  const char* last_initializer = nullptr;
  const char* first_node = nullptr;
  const char* last_node = nullptr;
  const auto self = [&]() -> Graph& { return model().graphs[pending.id]; };
  begin_walk(pending.bytes.data());
  Cursor fields = cursor(pending.bytes);
  for (; ahead_.at(fields.position()), fields.next();) {
    passed(fields.field_start());
    switch (fields.field()) {
      case wire::kGraphNode:
        fields.view("GraphProto.node");
        if (first_node == nullptr) first_node = fields.field_start();
        last_node = fields.position();
        continue;
      case wire::kGraphInitializer:
      case wire::kGraphSparseInitializer:
        if (fields.view("GraphProto.initializer").size() >= kWeights) weights_end(fields.position());
        if (first_initializer == nullptr) first_initializer = fields.field_start();
        last_initializer = fields.position();
        continue;
      case wire::kGraphName:
        self().name = name(fields.view("GraphProto.name"));
        break;
      case wire::kGraphInput: {
        const std::string_view message = fields.view("GraphProto.input");
        const ValueInfo info = value_info(message, pending.id);
        builder_.add_input(pending.id, info.name, info.type, at(message));
        budget_.charge(kValueCost);
        break;
      }
      case wire::kGraphOutput: {
        const ValueInfo info = value_info(fields.view("GraphProto.output"), pending.id);
        builder_.add_output(pending.id, info.name, info.type);
        budget_.charge(kDeclarationCost);
        break;
      }
      case wire::kGraphValueInfo: {
        const ValueInfo info = value_info(fields.view("GraphProto.value_info"), pending.id);
        builder_.add_value_info(pending.id, info.name, info.type);
        budget_.charge(kDeclarationCost);
        break;
      }
      case wire::kGraphQuantizationAnnotation:
        pass_over(fields.inside(fields.view("GraphProto.quantization_annotation")), wire::MessageType::kAnnotation,
                  mapping_);
        continue;
      case wire::kGraphMetadata:
        pass_over(fields.inside(fields.view("GraphProto.metadata_props")), wire::MessageType::kPlain, mapping_);
        continue;
      default:
        fields.skip();
        continue;
    }
    budget_.pay(fields.field_bytes());
    check_budget(fields.field_start());
  }
  initializers(pending, first_initializer, last_initializer);
  nodes(pending, 1, first_node, last_node);
}

void Reader::function_fields(const Pending& pending) {
  const char* first_node = nullptr;
  const char* last_node = nullptr;
  const auto self = [&]() -> Graph& { return model().graphs[pending.id]; };
  std::vector<OpsetImport> imports;
  std::vector<Attribute> defaults;
  begin_walk(pending.bytes.data());
  Cursor fields = cursor(pending.bytes);
  for (; ahead_.at(fields.position()), fields.next();) {
    passed(fields.field_start());
    switch (fields.field()) {
      case wire::kFunctionName:
        self().name = this->name(fields.view("FunctionProto.name"));
        break;
      case wire::kFunctionInput: {
        const std::string_view name = fields.view("FunctionProto.input");
        builder_.add_input(pending.id, this->name(name), nullptr, at(name));
        budget_.charge(kValueCost);
        break;
      }
      case wire::kFunctionOutput:
        builder_.add_output(pending.id, this->name(fields.view("FunctionProto.output")), nullptr);
        budget_.charge(kDeclarationCost);
        break;
      case wire::kFunctionAttribute:
        self().attribute_names.push_back(lasting(fields.view("FunctionProto.attribute")));
        budget_.charge(3 * sizeof(std::string_view));
        break;
      case wire::kFunctionNode:
        fields.view("FunctionProto.node");
        if (first_node == nullptr) first_node = fields.field_start();
        last_node = fields.position();
        continue;
      case wire::kFunctionOpsetImport:
        opset_import(fields.view("FunctionProto.opset_import"), pending.id, imports);
        budget_.charge(3 * sizeof(OpsetImport));
        break;
      case wire::kFunctionDomain:
        self().domain = this->name(fields.view("FunctionProto.domain"));
        break;
      case wire::kFunctionAttributeProto: {
        const std::string_view message = fields.view("FunctionProto.attribute_proto");
        budget_.pay(message.size());
        attribute(message, {pending.id, NodeId::kNone, pending.depth, true}, defaults);
        budget_.take_back(message.size());
        break;
      }
      case wire::kFunctionValueInfo: {
        const ValueInfo info = value_info(fields.view("FunctionProto.value_info"), pending.id);
        builder_.add_value_info(pending.id, info.name, info.type);
        budget_.charge(kDeclarationCost);
        break;
      }
      case wire::kFunctionOverload:
        self().overload = this->name(fields.view("FunctionProto.overload"));
        break;
      case wire::kFunctionMetadata:
        pass_over(fields.inside(fields.view("FunctionProto.metadata_props")), wire::MessageType::kPlain, mapping_);
        continue;
      default:
        fields.skip();
        continue;
    }
    budget_.pay(fields.field_bytes());
    check_budget(fields.field_start());
  }
  self().attribute_defaults = std::move(defaults);
  if (normalised_domain(model().text(self().domain)).empty()) self().domain = NameId::kEmpty;
  // A function without imports of its own binds to the model's.
  if (!imports.empty()) {
    const std::uint32_t opsets = builder_.add_opset_imports(std::move(imports));
    self().opsets = opsets;
  }
  nodes(pending, 7, first_node, last_node);
}

void Reader::initializers(const Pending& pending, const char* first, const char* last) {
  if (first == nullptr) return;
  begin_walk(first);
  for (Cursor fields = cursor({first, static_cast<std::size_t>(last - first)}); fields.next();) {
    passed(fields.field_start());
    if (fields.field() != 5 && fields.field() != 15) {
      fields.skip();
      continue;
    }
    const std::string_view message = fields.view("GraphProto.initializer");
    budget_.pay(fields.field_bytes());
    bool has_metadata = false;
    const Tensor* named = nullptr;
    if (fields.field() == 5) {
      named = tensor(message, pending.id, NodeId::kNone, &has_metadata);
      builder_.add_initializer(pending.id, named->name, named, nullptr);
      if (has_metadata) note_metadata(pending.id, named->name, wire::kTensorMetadata, message);
    } else {
      const SparseTensor* const sparse = sparse_tensor(message, pending.id, NodeId::kNone);
      named = sparse->values;
      builder_.add_initializer(pending.id, named != nullptr ? named->name : NameId::kEmpty, nullptr, sparse);
    }
    budget_.charge(kValueCost);
    check_budget(message.data());
  }
  passed(last);
  release_passed();
}

void Reader::release_passed() {
  if (has_leapt_) release({released_, static_cast<std::size_t>(passed_ - released_)});
  released_ = passed_;
  has_leapt_ = false;
}

// All names of a model come this way: looking one up costs less than a call.
[[gnu::flatten]] NameId Reader::name(std::string_view text) {
  return name(text, model().names.ask_for(text), is_kept_apart(text));
}

[[gnu::flatten]] void Reader::intern_names() {
  // They stand in their order: where the first one is far from weights before them, so are the others.
  const bool is_amid_weights = later_count_ > 0 && is_after_leap(later_names_[0].text);
  for (const LaterName& name : std::span(later_names_).first(later_count_))
    name.list->push_back(this->name(name.text, name.hash, is_amid_weights && is_kept_apart(name.text)));
  later_count_ = 0;
}

NameId Reader::name_apart(std::string_view text, std::uint32_t hash) {
  const std::size_t known = model().names.size();
  const NameId id = builder_.name(text, hash);
  if (model().names.size() != known) model().names.move(static_cast<std::uint32_t>(id), apart(text));
  return id;
}

std::string_view Reader::apart(std::string_view part) {
  budget_.charge(part.size());
  return builder_.copy(part);
}

void Reader::nodes(const Pending& pending, std::uint32_t field, const char* first, const char* last) {
  builder_.begin_nodes(pending.id);
  if (first == nullptr) return;
  // A sixteenth of a large graph tells how much memory the rest will want: growing by doubling would take it twice.
  constexpr std::ptrdiff_t kLarge = 1 << 15;
  const char* const sampled =
      pending.id == GraphId::kMain && last - first > kLarge ? first + (last - first) / 16 : nullptr;
  bool is_sampled = sampled == nullptr;
  begin_walk(first);
  for (Cursor fields = cursor({first, static_cast<std::size_t>(last - first)}); fields.next();) {
    passed(fields.field_start());
    if (!is_sampled && fields.field_start() >= sampled) [[unlikely]] {
      is_sampled = true;
      builder_.reserve(1.03 * static_cast<double>(last - first) / static_cast<double>(fields.field_start() - first));
    }
    if (fields.field() == field) {
      node(fields.view("GraphProto.node"), pending);
    } else {
      fields.skip();
    }
  }
}

void Reader::node(std::string_view message, const Pending& pending) {
  operands_.clear();
  results_.clear();
  attributes_.clear();
  budget_.pay(message.size() + 2);  // 2: the least that its header takes
  const Holder holder{pending.id, static_cast<NodeId>(model().nodes.size()), pending.depth, pending.in_function};
  NameId name = NameId::kEmpty, op = NameId::kEmpty, domain = NameId::kEmpty, overload = NameId::kEmpty;
  for (Cursor fields = cursor(message); fields.next();) {
    switch (fields.field()) {
      case wire::kNodeInput:
        intern_later(fields.view("NodeProto.input"), operands_);
        break;
      case wire::kNodeOutput:
        intern_later(fields.view("NodeProto.output"), results_);
        break;
      case wire::kNodeName:
        name = builder_.label(lasting(fields.view("NodeProto.name")));
        break;
      case wire::kNodeOpType:
        op = this->name(fields.view("NodeProto.op_type"));
        break;
      case wire::kNodeAttribute: {
        const std::string_view attribute = fields.view("NodeProto.attribute");
        if (attribute.size() >= kWeights) intern_names();  // their pages are let go of with the weights
        this->attribute(attribute, holder, attributes_);
        break;
      }
      case wire::kNodeDomain:
        domain = this->name(fields.view("NodeProto.domain"));
        break;
      case wire::kNodeOverload:
        overload = this->name(fields.view("NodeProto.overload"));
        break;
      case wire::kNodeMetadata:
        skip_metadata(fields, "NodeProto.metadata_props");
        break;
      case wire::kNodeDeviceConfigurations:
        budget_.charge(kDeviceConfigurationCost *
                       pass_over(fields.inside(fields.view("NodeProto.device_configurations")),
                                 wire::MessageType::kDeviceConfiguration, mapping_));
        check_budget(fields.field_start());
        model().has_node_device_configurations = true;
        break;
      default:
        fields.skip();
        break;
    }
  }
  intern_names();
  budget_.charge(kNodeCost + kOperandCost * operands_.size() + kValueCost * results_.size());
  check_budget(message.data());
  builder_.add_node(pending.id, domain, op, overload, name, operands_, results_, attributes_, at(message),
                    length_of(message));
}

GraphId Reader::queue_subgraph(std::string_view message, const Holder& holder) {
  if (holder.depth >= kMaxGraphDepth)
    throw WireFault{fmt::format("graphs nested deeper than {}", kMaxGraphDepth), at(message).offset};
  budget_.charge(kGraphCost);
  check_budget(message.data());
  budget_.take_back(message.size());  // pays when it is walked itself
  const std::uint32_t opsets = model().graph(holder.graph).opsets;
  const GraphId id = builder_.add_graph({.kind = GraphKind::kSubgraph,
                                         .parent = holder.graph,
                                         .owner = holder.node,
                                         .opsets = opsets,
                                         .position = at(message),
                                         .byte_length = length_of(message)});
  pending_.push_back({message, id, holder.depth + 1, holder.in_function, false});
  return id;
}

void Reader::note_metadata(GraphId graph, NameId name, std::uint32_t field, std::string_view message) {
  value_metadata_.push_back({graph, name, field, message});
  budget_.charge(3 * (sizeof(NamedMetadata) + sizeof(MetadataSpan)));
}

void Reader::finish_metadata(Model& model) {
  std::vector<MetadataSpan> spans;
  spans.reserve(value_metadata_.size());
  for (const NamedMetadata& named : value_metadata_)
    if (const ValueId value = model.find_value(named.graph, model.text(named.name)); value != ValueId::kAbsent)
      spans.push_back({static_cast<std::uint32_t>(value), named.field, named.message});
  std::sort(spans.begin(), spans.end(), [](const MetadataSpan& a, const MetadataSpan& b) {
    return std::pair(a.value, a.message.data()) < std::pair(b.value, b.message.data());
  });
  model.provenance = make_file_provenance(file_, std::move(spans), metadata_keys_, mapping_);
}

}  // namespace tensorlint::onnx
