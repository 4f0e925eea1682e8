#include "ir/writers/onnx/model_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "ir/writers/onnx/wire.h"

namespace tensorlint {
namespace {

constexpr int kMaxGraphDepth = 64;     // the reader's own limit
constexpr std::size_t kCopied = 4096;  // tensor data above this stay where they are
constexpr std::int64_t kExternal = 1;  // TensorProto.DataLocation.EXTERNAL

/// A message under construction: its bytes, and views that belong in between.
class Message {
 public:
  void number(std::uint32_t field, std::int64_t value) { text_.number(field, value); }
  void text(std::uint32_t field, std::string_view value) { text_.text(field, value); }
  void text_if(std::uint32_t field, std::string_view value) {
    if (!value.empty()) text(field, value);
  }
  /// Whole fields.
  void fields(std::string_view bytes) { text_.raw(bytes); }
  void float32(std::uint32_t field, float value) { text_.float32(field, value); }
  /// Bytes that may be many: not copied then.
  void data(std::uint32_t field, std::string_view bytes) {
    if (bytes.size() <= kCopied) return text(field, bytes);
    text_.head(field, bytes.size());
    views_.push_back({text_.bytes().size(), bytes});
    viewed_ += bytes.size();
  }
  void message(std::uint32_t field, Message inner) {
    text_.head(field, inner.size());
    const std::size_t begin = text_.bytes().size();
    text_.raw(inner.text_.bytes());
    for (const View& view : inner.views_) views_.push_back({begin + view.at, view.bytes});
    viewed_ += inner.viewed_;
  }
  std::uint64_t size() const { return text_.bytes().size() + viewed_; }

  EditedBytes finish() {
    EditedBytes out;
    const std::string text = text_.take();
    std::size_t at = 0;
    for (const View& view : views_) {
      out.add(text.substr(at, view.at - at));
      out.keep(view.bytes);
      at = view.at;
    }
    out.add(text.substr(at));
    return out;
  }

 private:
  struct View {
    std::size_t at;  // in text_
    std::string_view bytes;
  };
  wire::Encoder text_;
  std::vector<View> views_;
  std::uint64_t viewed_ = 0;
};

class ModelWriter {
 public:
  explicit ModelWriter(const Model& model) : model_(model) {}

  Result<EditedBytes> run() {
    Message out;
    out.number(wire::kModelIrVersion, model_.ir_version);
    out.text_if(wire::kModelProducerName, model_.producer_name);
    out.text_if(wire::kModelProducerVersion, model_.producer_version);
    if (!model_.graphs.empty()) out.message(wire::kModelGraph, graph(GraphId::kMain, 1));
    if (!model_.opset_imports.empty()) opset_imports(wire::kModelOpsetImport, model_.opset_imports[0], out);
    metadata(wire::kModelMetadata, model_.metadata, out);
    for (const GraphId id : model_.graphs.ids())
      if (model_.graph(id).kind == GraphKind::kFunction) out.message(wire::kModelFunction, function(id));
    if (model_.provenance != nullptr)
      out.fields(model_.provenance->other_fields(MessageKind::kModel, {}, std::numeric_limits<std::uint64_t>::max()));
    if (too_deep_) return Error{fmt::format("graphs are nested deeper than {}", kMaxGraphDepth), {}};
    if (out.size() > std::numeric_limits<std::int32_t>::max())
      return Error{fmt::format("the model takes {} bytes, a binary file holds 2 GiB at most", out.size()), {}};
    return out.finish();
  }

 private:
  std::string_view text(NameId name) const { return model_.text(name); }

  static void metadata(std::uint32_t field, const std::vector<MetadataEntry>& entries, Message& out) {
    for (const MetadataEntry& entry : entries) {
      Message inner;
      inner.text(wire::kEntryKey, entry.key);
      inner.text(wire::kEntryValue, entry.value);
      out.message(field, std::move(inner));
    }
  }

  /// What stands at the value's ValueInfoProto, and what at its initializer.
  std::vector<MetadataEntry> declaration_metadata(ValueId value) const {
    if (model_.provenance == nullptr) return {};
    std::vector<MetadataEntry> entries = model_.provenance->value_metadata(value);
    if (entries.empty()) return entries;
    // An output that is declared once more, as torch does with outputs of empty branches, has its entries twice.
    std::set<std::pair<std::string_view, std::string_view>> seen;
    std::erase_if(entries, [&](const MetadataEntry& entry) { return !seen.emplace(entry.key, entry.value).second; });
    for (const MetadataEntry& other : initializer_metadata(value))
      if (const auto same = std::ranges::find_if(
              entries, [&](const MetadataEntry& entry) { return entry.key.data() == other.key.data(); });
          same != entries.end())
        entries.erase(same);
    return entries;
  }
  std::vector<MetadataEntry> initializer_metadata(ValueId value) const {
    return model_.provenance == nullptr ? std::vector<MetadataEntry>() : model_.provenance->initializer_metadata(value);
  }

  void carry_over(MessageKind kind, Position message, std::uint32_t byte_length, Message& out) const {
    if (model_.provenance != nullptr && byte_length != 0)
      out.fields(model_.provenance->other_fields(kind, message, byte_length));
  }

  void opset_imports(std::uint32_t field, std::span<const OpsetImport> imports, Message& out) const {
    for (const OpsetImport& import : imports) {
      Message inner;
      inner.text(wire::kOpsetDomain, text(import.domain));
      inner.number(wire::kOpsetVersion, import.version);
      out.message(field, std::move(inner));
    }
  }

  Message graph(GraphId id, int depth) {
    Message out;
    if (depth > kMaxGraphDepth) {
      too_deep_ = true;
      return out;
    }
    const Graph& self = model_.graph(id);
    for (const NodeId id : self.nodes) out.message(wire::kGraphNode, node(model_.node(id), depth));
    out.text_if(wire::kGraphName, text(self.name));
    initializers(self, out);
    for (const ValueId value : self.inputs) out.message(wire::kGraphInput, value_info(value, type_of(value)));
    for (std::size_t i = 0; i < self.outputs.size(); ++i) {
      const ValueId value = self.outputs[i];
      const bool is_outer = value != ValueId::kAbsent && model_.value(value).graph != id;
      const TypeDecl* outer_type = i < self.outer_output_types.size() ? self.outer_output_types[i] : nullptr;
      out.message(wire::kGraphOutput,
                  value_info(value, is_outer ? outer_type : type_of(value), /*with_metadata=*/is_made_in(id, value)));
    }
    value_infos(self, id, wire::kGraphValueInfo, out);
    carry_over(MessageKind::kGraph, self.position, self.byte_length, out);
    return out;
  }

  const TypeDecl* type_of(ValueId value) const {
    return value == ValueId::kAbsent ? nullptr : model_.value(value).type;
  }
  /// Else what stands at its declaration stands at the graph's input, or in the graph outside.
  bool is_made_in(GraphId graph, ValueId value) const {
    return value != ValueId::kAbsent && model_.value(value).graph == graph &&
           model_.value(value).origin != ValueOrigin::kInput;
  }
  bool is_result(ValueId value, GraphId graph) const {
    return value != ValueId::kAbsent && model_.value(value).graph == graph &&
           model_.value(value).origin == ValueOrigin::kNode;
  }

  /// In the order of the file, which inputs' defaults stand in too.
  void initializers(const Graph& self, Message& out) const {
    std::vector<ValueId> values = self.initializers;
    for (const ValueId value : self.inputs)
      if (model_.value(value).has_default()) values.push_back(value);
    const auto place = [&](ValueId value) {
      return model_.value(value).initializer == nullptr ? 0 : model_.value(value).initializer->position.offset;
    };
    std::ranges::stable_sort(values, {}, place);
    for (const ValueId id : values) {
      const Value& value = model_.value(id);
      if (value.initializer != nullptr) {
        Message inner = tensor(*value.initializer);
        metadata(wire::kTensorMetadata, initializer_metadata(id), inner);
        out.message(wire::kGraphInitializer, std::move(inner));
      }
      if (value.sparse_initializer != nullptr)
        out.message(wire::kGraphSparseInitializer, sparse(*value.sparse_initializer, id));
    }
  }

  /// Declarations of values that are neither inputs nor outputs.
  void value_infos(const Graph& self, GraphId id, std::uint32_t field, Message& out) const {
    const auto declare = [&](ValueId value) {
      if (value == ValueId::kAbsent) return;
      const Value& known = model_.value(value);
      if (known.graph == id && !known.is_output && (known.type != nullptr || !declaration_metadata(value).empty()))
        out.message(field, value_info(value, known.type));
    };
    for (const ValueId value : self.initializers) declare(value);
    for (const NodeId id : self.nodes)
      for (const ValueId value : model_.results(model_.node(id))) declare(value);
  }

  Message value_info(ValueId id, const TypeDecl* declared, bool with_metadata = true) const {
    Message out;
    if (id == ValueId::kAbsent) return out;
    out.text(wire::kValueInfoName, text(model_.value(id).name));
    if (declared != nullptr) out.message(wire::kValueInfoType, type(*declared));
    if (with_metadata) metadata(wire::kValueInfoMetadata, declaration_metadata(id), out);
    return out;
  }

  Message function(GraphId id) {
    const Graph& self = model_.graph(id);
    Message out;
    out.text(wire::kFunctionName, text(self.name));
    for (const ValueId value : self.inputs) out.text(wire::kFunctionInput, name_of(value));
    for (const ValueId value : self.outputs) out.text(wire::kFunctionOutput, name_of(value));
    for (const std::string_view name : self.attribute_names) out.text(wire::kFunctionAttribute, name);
    for (const NodeId id : self.nodes) out.message(wire::kFunctionNode, node(model_.node(id), 1));
    if (self.opsets != 0) opset_imports(wire::kFunctionOpsetImport, model_.opset_imports[self.opsets], out);
    out.text_if(wire::kFunctionDomain, text(self.domain));
    for (const Attribute& one : self.attribute_defaults) out.message(wire::kFunctionAttributeProto, attribute(one, 1));
    for (const ValueId value : self.inputs)
      if (type_of(value) != nullptr) out.message(wire::kFunctionValueInfo, value_info(value, type_of(value)));
    value_infos(self, id, wire::kFunctionValueInfo, out);
    for (const ValueId value : self.outputs)
      if (is_result(value, id) && type_of(value) != nullptr)
        out.message(wire::kFunctionValueInfo, value_info(value, type_of(value)));
    out.text_if(wire::kFunctionOverload, text(self.overload));
    carry_over(MessageKind::kFunction, self.position, self.byte_length, out);
    return out;
  }

  std::string_view name_of(ValueId value) const {
    return value == ValueId::kAbsent ? std::string_view() : model_.name_of(value);
  }

  Message node(const Node& self, int depth) {
    const Operator& op = model_.op(self);
    Message out;
    for (const ValueId value : model_.operands(self)) out.text(wire::kNodeInput, name_of(value));
    for (const ValueId value : model_.results(self)) out.text(wire::kNodeOutput, name_of(value));
    out.text_if(wire::kNodeName, text(self.name));
    out.text(wire::kNodeOpType, text(op.name));
    for (const Attribute& one : model_.attributes(self)) out.message(wire::kNodeAttribute, attribute(one, depth));
    out.text_if(wire::kNodeDomain, text(op.domain));
    out.text_if(wire::kNodeOverload, text(op.overload));
    if (model_.provenance != nullptr) metadata(wire::kNodeMetadata, model_.provenance->node_metadata(self), out);
    carry_over(MessageKind::kNode, self.position, self.byte_length, out);
    return out;
  }

  Message attribute(const Attribute& self, int depth) {
    Message out;
    out.text(wire::kAttributeName, self.name);
    if (!self.reference.empty()) {
      out.text(wire::kAttributeReference, self.reference);
    } else {
      switch (self.kind) {
        case AttributeKind::kFloat:
          out.float32(wire::kAttributeFloat, self.f);
          break;
        case AttributeKind::kInt:
          out.number(wire::kAttributeInt, self.i);
          break;
        case AttributeKind::kString:
          out.text(wire::kAttributeString, self.s);
          break;
        case AttributeKind::kTensor:
          if (self.tensor != nullptr) out.message(wire::kAttributeTensor, tensor(*self.tensor));
          break;
        case AttributeKind::kGraph:
          if (self.graph != GraphId::kNone) out.message(wire::kAttributeGraph, graph(self.graph, depth + 1));
          break;
        case AttributeKind::kFloats:
          for (const float f : self.floats) out.float32(wire::kAttributeFloats, f);
          break;
        case AttributeKind::kInts:
          for (const std::int64_t i : self.ints) out.number(wire::kAttributeInts, i);
          break;
        case AttributeKind::kStrings:
          for (const std::string_view s : self.strings) out.text(wire::kAttributeStrings, s);
          break;
        case AttributeKind::kTensors:
          for (const Tensor* one : self.tensors) out.message(wire::kAttributeTensors, tensor(*one));
          break;
        case AttributeKind::kGraphs:
          for (const GraphId one : self.graphs) out.message(wire::kAttributeGraphs, graph(one, depth + 1));
          break;
        case AttributeKind::kSparseTensor:
          if (self.sparse != nullptr) out.message(wire::kAttributeSparseTensor, sparse(*self.sparse, ValueId::kAbsent));
          break;
        case AttributeKind::kTypeProto:
          if (self.type != nullptr) out.message(wire::kAttributeTypeProto, type(*self.type));
          break;
        case AttributeKind::kTypeProtos:
          for (const TypeDecl* one : self.types) out.message(wire::kAttributeTypeProtos, type(*one));
          break;
        case AttributeKind::kUndefined:
        case AttributeKind::kSparseTensors:
          break;  // Attribute holds nothing of them
      }
    }
    if (self.kind != AttributeKind::kUndefined) out.number(wire::kAttributeType, static_cast<std::int64_t>(self.kind));
    return out;
  }

  Message tensor(const Tensor& self) const {
    Message out;
    for (const std::int64_t dim : self.dims) out.number(wire::kTensorDims, dim);
    out.number(wire::kTensorDataType, self.dtype_code);
    // Typed fields are packed: their bytes are one length-delimited field, whatever they hold.
    if (self.typed_field != TypedField::kNone) out.data(wire::number_of(self.typed_field), self.typed);
    for (const std::string_view text : self.strings) out.text(wire::kTensorStringData, text);
    out.text_if(wire::kTensorName, text(self.name));
    if (self.has_raw) out.data(wire::kTensorRawData, self.raw);
    if (self.external) {
      std::vector<MetadataEntry> entries{{"location", self.location}};
      if (!self.offset_text.empty()) entries.push_back({"offset", self.offset_text});
      if (!self.length_text.empty()) entries.push_back({"length", self.length_text});
      metadata(wire::kTensorExternalData, entries, out);
      out.number(wire::kTensorDataLocation, kExternal);
    }
    carry_over(MessageKind::kTensor, self.position, self.byte_length, out);
    return out;
  }

  Message sparse(const SparseTensor& self, ValueId initializer) const {
    Message out;
    if (self.values != nullptr) {
      Message values = tensor(*self.values);
      if (initializer != ValueId::kAbsent) metadata(wire::kTensorMetadata, initializer_metadata(initializer), values);
      out.message(wire::kSparseValues, std::move(values));
    }
    if (self.indices != nullptr) out.message(wire::kSparseIndices, tensor(*self.indices));
    for (const std::int64_t dim : self.dims) out.number(wire::kSparseDims, dim);
    return out;
  }

  static std::uint32_t field_of(TypeKind kind) {
    switch (kind) {
      case TypeKind::kTensor:
        return wire::kTypeTensor;
      case TypeKind::kSparseTensor:
        return wire::kTypeSparseTensor;
      case TypeKind::kSequence:
        return wire::kTypeSequence;
      case TypeKind::kOptional:
        return wire::kTypeOptional;
      case TypeKind::kMap:
        return wire::kTypeMap;
      default:
        return wire::kTypeOpaque;
    }
  }

  /// From the innermost type outwards: types nest as deep as the reader allows, without recursion here.
  Message type(const TypeDecl& outermost) const {
    std::vector<const TypeDecl*> chain;
    for (const TypeDecl* self = &outermost; self != nullptr; self = self->element) chain.push_back(self);
    Message inner;
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      const TypeDecl& self = **it;
      const bool has_inner = it != chain.rbegin();
      Message out;
      if (self.kind == TypeKind::kNone) {
        inner = std::move(out);
        continue;
      }
      Message body;
      if (self.kind == TypeKind::kTensor || self.kind == TypeKind::kSparseTensor) {
        body.number(wire::kTensorTypeElement, self.element_code);
        if (self.ranked) body.message(wire::kTensorTypeShape, shape(self.dims));
      } else if (self.kind == TypeKind::kMap) {
        body.number(wire::kMapKey, self.element_code);
        if (has_inner) body.message(wire::kMapValue, std::move(inner));
      } else if (has_inner) {
        body.message(wire::kContainerElement, std::move(inner));
      }
      out.message(field_of(self.kind), std::move(body));
      inner = std::move(out);
    }
    return inner;
  }

  Message shape(std::span<const DimDecl> dims) const {
    Message out;
    for (const DimDecl& dim : dims) {
      Message inner;
      if (dim.has_extent) {
        inner.number(wire::kDimValue, dim.extent);
      } else {
        inner.text_if(wire::kDimParam, text(dim.name));
      }
      out.message(wire::kShapeDim, std::move(inner));
    }
    return out;
  }

  const Model& model_;
  bool too_deep_ = false;
};

}  // namespace

Result<EditedBytes> write_onnx(const Model& model) { return ModelWriter(model).run(); }

}  // namespace tensorlint
