#include "ir/text/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/hash.h"
#include "ir/text/element_printer.h"
#include "ir/text/lexer.h"
#include "ir/text/words.h"

namespace tensorlint {
namespace {

constexpr std::string_view kDeviceKey = "tensorlint.device";

class Printer {
 public:
  Printer(const Model& model, const TextOptions& options, const TextSink& sink)
      : model_(model), options_(options), sink_(sink), values_(model.graphs.size()) {
    for (const ValueId id : model.values.ids(kFirstValue)) values_[model.value(id).graph].push_back(id);
  }

  void print() {
    header();
    if (!model_.graphs.empty()) whole_graph(GraphId::kMain);
    for (const GraphId id : model_.graphs.ids()) {
      if (model_.graph(id).kind != GraphKind::kFunction) continue;
      out_ += '\n';
      function(id);
    }
    sink_(out_);
  }

 private:
  /// What is still to be printed: a text, a graph inside an attribute, or a graph's nodes from one on. Graphs nest as
  /// deep as the model's maker liked, so this is a stack of our own.
  struct Task {
    enum class Kind : std::uint8_t { kText, kGraph, kNodes } kind = Kind::kText;
    std::string text{};
    GraphId graph = GraphId::kMain;
    std::uint32_t next = 0;
    unsigned indent = 0;
    bool named = true;  ///< kGraph: the name is to be printed, too
  };

  void header() {
    out_ += fmt::format("<\n  ir_version: {},\n  opset_import: ", model_.ir_version);
    opsets(0);
    const auto field = [this](std::string_view name, std::string_view value) {
      if (!value.empty()) out_ += fmt::format(",\n  {}: {}", name, text::quoted(value));
    };
    field("producer_name", model_.producer_name);
    field("producer_version", model_.producer_version);
    std::vector<std::pair<std::string, std::string>> entries;
    for (const MetadataEntry& entry : model_.metadata) entries.emplace_back(entry.key, entry.value);
    device_tags(entries);
    if (!entries.empty()) {
      out_ += ",\n  metadata_props: [";
      for (std::size_t i = 0; i < entries.size(); ++i)
        out_ += fmt::format("{}{}: {}", i == 0 ? "" : ", ", text::quoted(entries[i].first),
                            text::quoted(entries[i].second));
      out_ += ']';
    }
    out_ += "\n>\n";
  }

  /// Copied: they stand beside weights, whose pages are let go of while the next ones are looked for.
  void device_tags(std::vector<std::pair<std::string, std::string>>& entries) const {
    if (model_.provenance == nullptr) return;
    std::unordered_set<std::string, TextHash> keys;
    for (const auto& [key, value] : entries) keys.insert(key);
    const auto add = [&](NameId name, const std::vector<MetadataEntry>& metadata) {
      for (const MetadataEntry& entry : metadata) {
        if (entry.key != kDeviceKey) continue;
        std::string key = fmt::format("{}:{}", kDeviceKey, model_.text(name));
        if (keys.insert(key).second) entries.emplace_back(std::move(key), entry.value);
      }
    };
    for (const ValueId id : model_.values.ids(kFirstValue)) {
      const Value& value = model_.value(id);
      if (value.name != NameId::kEmpty &&
          (value.origin == ValueOrigin::kInput || value.origin == ValueOrigin::kInitializer))
        add(value.name, model_.provenance->value_metadata(id));
    }
    for (const Node& node : model_.nodes)
      if (node.name != NameId::kEmpty) add(node.name, model_.provenance->node_metadata(node));
  }

  void opsets(std::size_t index) {
    out_ += '[';
    if (index < model_.opset_imports.size()) {
      const auto& imports = model_.opset_imports[index];
      for (std::size_t i = 0; i < imports.size(); ++i)
        out_ += fmt::format("{}{} : {}", i == 0 ? "" : ", ", text::quoted(model_.text(imports[i].domain)),
                            imports[i].version);
    }
    out_ += ']';
  }

  void function(GraphId id) {
    const Graph& self = model_.graph(id);
    out_ += fmt::format("<\n  domain: {}", text::quoted(model_.text(self.domain)));
    if (self.overload != NameId::kEmpty)
      out_ += fmt::format(",\n  overload: {}", text::quoted(model_.text(self.overload)));
    if (self.opsets != 0) {
      out_ += ",\n  opset_import: ";
      opsets(self.opsets);
    }
    out_ += "\n>\n";
    emit(text::value_word(model_.text(self.name)) + ' ');
    if (!self.attribute_names.empty() || !self.attribute_defaults.empty()) {
      std::string_view separator = "<";
      for (const std::string_view name : self.attribute_names) {
        emit(fmt::format("{}{}", separator, text::plain_word(name)));
        separator = ", ";
      }
      for (const Attribute& attribute : self.attribute_defaults) {
        emit(std::string(separator));
        this->attribute(attribute, 0);
        separator = ", ";
      }
      emit("> ");
    }
    // A default that is a graph waits in pending_, and the function's body behind it.
    pending_.push_back({.kind = Task::Kind::kGraph, .graph = id, .named = false});
    run();
  }

  void whole_graph(GraphId id) {
    pending_.push_back({.kind = Task::Kind::kGraph, .graph = id});
    run();
  }

  /// Moves what is pending onto the stack and works until it is empty.
  void run() {
    std::vector<Task> stack;
    const auto push_pending = [&] {
      std::move(pending_.rbegin(), pending_.rend(), std::back_inserter(stack));
      pending_.clear();
    };
    push_pending();
    while (!stack.empty()) {
      Task task = std::move(stack.back());
      stack.pop_back();
      switch (task.kind) {
        case Task::Kind::kText:
          out_ += task.text;
          break;
        case Task::Kind::kGraph:
          graph_head(task.graph, task.indent, task.named);
          stack.push_back({.kind = Task::Kind::kNodes, .graph = task.graph, .next = 0, .indent = task.indent});
          break;
        case Task::Kind::kNodes: {
          const Graph& graph = model_.graph(task.graph);
          while (pending_.empty() && task.next < graph.nodes.size()) {
            node(model_.node(graph.nodes[task.next++]), task.indent + 2);
            hand_over();
          }
          if (pending_.empty()) {
            out_ += fmt::format("{:{}}}}", "", task.indent);
            if (stack.empty()) out_ += '\n';
          } else {
            stack.push_back(std::move(task));
            push_pending();
          }
          break;
        }
      }
    }
  }

  void hand_over() {
    // Who prints a mapped file lets go of its weights, whose first elements are printed, after each piece.
    constexpr std::size_t kPiece = std::size_t{8} << 10;
    if (out_.size() < kPiece) return;
    sink_(out_);
    out_.clear();
  }

  /// Text goes out at once, unless a graph that comes before it is still waiting.
  void emit(std::string text) {
    if (pending_.empty())
      out_ += text;
    else if (pending_.back().kind == Task::Kind::kText)
      pending_.back().text += text;
    else
      pending_.push_back({.text = std::move(text)});
  }

  /// Everything before the nodes.
  void graph_head(GraphId id, unsigned indent, bool with_name) {
    const Graph& self = model_.graph(id);
    if (with_name) out_ += text::value_word(model_.text(self.name)) + ' ';
    out_ += '(';
    for (std::size_t i = 0; i < self.inputs.size(); ++i) {
      if (i != 0) out_ += ", ";
      typed(model_.value(self.inputs[i]));
    }
    out_ += ") => (";
    std::unordered_set<ValueId> with_type;  // an output that is listed again has said its type
    for (std::size_t i = 0; i < self.outputs.size(); ++i) {
      if (i != 0) out_ += ", ";
      const Value& value = model_.value(self.outputs[i]);
      if (self.outputs[i] == ValueId::kAbsent)
        out_ += "\"\"";
      else if (value.graph != id || !with_type.insert(self.outputs[i]).second)
        out_ += text::value_word(model_.text(value.name));
      else
        typed(value);
    }
    out_ += ')';

    std::string_view separator = "";
    const auto begin_declaration = [&] {
      hand_over();
      if (separator.empty()) out_ += fmt::format("\n{:{}}<", "", indent);
      out_ += fmt::format("{}\n{:{}}", separator, "", indent + 2);
      separator = ",";
    };
    const auto initializer = [&](const Value& value) {
      if (value.initializer != nullptr) {
        begin_declaration();
        constant(*value.initializer, text::value_word(model_.text(value.name)) + " =");
      } else if (value.sparse_initializer != nullptr) {
        begin_declaration();
        sparse_constant(*value.sparse_initializer, text::value_word(model_.text(value.name)) + " =");
      }
    };
    for (const ValueId input : self.inputs) initializer(model_.value(input));
    for (const ValueId value : self.initializers) initializer(model_.value(value));
    for (const ValueId id_of_value : values_[id]) {
      const Value& value = model_.value(id_of_value);
      if (value.origin == ValueOrigin::kInput || value.is_output || value.type == nullptr ||
          value.type->kind == TypeKind::kNone)
        continue;
      begin_declaration();
      typed(value);
    }
    out_ += separator.empty() ? std::string(" {\n") : fmt::format("\n{0:{1}}>\n{0:{1}}{{\n", "", indent);
  }

  void typed(const Value& value) {
    if (value.type != nullptr && value.type->kind != TypeKind::kNone) {
      out_ += type(*value.type);
      out_ += ' ';
    }
    out_ += text::value_word(model_.text(value.name));
  }

  std::string type(const TypeDecl& outermost) const {
    std::string text, closing;
    for (const TypeDecl* at = &outermost; at != nullptr; at = at->element) {
      switch (at->kind) {
        case TypeKind::kNone:
          return text + closing;
        case TypeKind::kTensor:
          return text + dtype_and_dims(*at) + closing;
        case TypeKind::kSparseTensor:
          return text + "sparse_tensor(" + dtype_and_dims(*at) + ')' + closing;
        case TypeKind::kOpaque:
          return text + "opaque()" + closing;
        case TypeKind::kSequence:
          text += "seq(";
          break;
        case TypeKind::kOptional:
          text += "optional(";
          break;
        case TypeKind::kMap:
          text += "map(" + text::dtype_word(at->element_code) + ", ";
          break;
      }
      closing += ')';
    }
    return text + closing;
  }

  std::string dtype_and_dims(const TypeDecl& type) const {
    std::string text = text::dtype_word(type.element_code);
    if (!type.ranked) return text + "[]";
    std::string_view separator = "[";
    for (const DimDecl& dim : type.dims) {
      text += separator;
      separator = ", ";
      if (dim.has_extent)
        text::append_number(text, dim.extent);
      else
        text += dim.name == NameId::kEmpty ? "?" : text::plain_word(model_.text(dim.name));
    }
    return type.dims.empty() ? text : text + ']';
  }

  static std::string dtype_and_dims(std::int32_t code, std::span<const std::int64_t> dims) {
    return dims.empty() ? text::dtype_word(code) : fmt::format("{}[{}]", text::dtype_word(code), fmt::join(dims, ", "));
  }

  /// Type, `label` and value.
  void constant(const Tensor& tensor, const std::string& label) {
    out_ += dtype_and_dims(tensor.dtype_code, tensor.dims);
    if (!label.empty()) out_ += ' ' + label;
    if (tensor.external) {
      // In an attribute only `=` tells the brackets from dims.
      if (!label.ends_with('=')) out_ += " =";
      out_ += fmt::format(" [\"location\": {}", text::quoted(tensor.location));
      if (!tensor.offset_text.empty()) out_ += fmt::format(", \"offset\": {}", text::quoted(tensor.offset_text));
      if (!tensor.length_text.empty()) out_ += fmt::format(", \"length\": {}", text::quoted(tensor.length_text));
      out_ += ']';
      return;
    }
    out_ += " {";
    const text::ElementPrinter elements(tensor, options_.max_elements);
    for (std::uint64_t i = 0; i < elements.count(); ++i) {
      if (i != 0) out_ += ", ";
      if (i == options_.max_elements) {
        out_ += "...";
        break;
      }
      elements.append(out_, i);
    }
    out_ += '}';
  }

  void sparse_constant(const SparseTensor& sparse, const std::string& label) {
    static const Tensor kMissing;
    const Tensor& values = sparse.values != nullptr ? *sparse.values : kMissing;
    out_ += fmt::format("sparse_tensor({}) {}{}{{", dtype_and_dims(values.dtype_code, sparse.dims), label,
                        label.empty() ? "" : " ");
    part(values);
    out_ += ", ";
    part(sparse.indices != nullptr ? *sparse.indices : kMissing);
    out_ += '}';
  }

  void part(const Tensor& tensor) {
    constant(tensor, tensor.name == NameId::kEmpty ? "" : text::value_word(model_.text(tensor.name)));
  }

  void names(std::span<const ValueId> ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i != 0) emit(", ");
      emit(ids[i] == ValueId::kAbsent ? std::string("\"\"") : text::value_word(model_.name_of(ids[i])));
    }
  }

  void node(const Node& self, unsigned indent) {
    out_.append(indent, ' ');
    if (self.name != NameId::kEmpty) out_ += fmt::format("[{}] ", text::value_word(model_.text(self.name)));
    names(model_.results(self));
    const Operator& op = model_.op(self);
    out_ += self.result_count == 0 ? "= " : " = ";
    if (op.domain != NameId::kEmpty) out_ += text::domain_word(model_.text(op.domain)) + '.';
    out_ += text::plain_word(model_.text(op.name));
    if (op.overload != NameId::kEmpty) out_ += ':' + text::plain_word(model_.text(op.overload));

    const auto attributes = model_.attributes(self);
    const bool graphs_inside = std::ranges::any_of(attributes, &Attribute::has_graphs);
    // Graphs take many lines: operands first, where the eye finds them.
    if (!graphs_inside) this->attributes(attributes, indent);
    out_ += " (";
    names(model_.operands(self));
    out_ += ')';
    if (graphs_inside) this->attributes(attributes, indent);
    emit("\n");
  }

  void attributes(std::span<const Attribute> list, unsigned indent) {
    if (list.empty()) return;
    std::string_view separator = " <";
    for (const Attribute& attribute : list) {
      emit(std::string(separator));
      this->attribute(attribute, indent);
      separator = ", ";
    }
    emit(">");
  }

  void attribute(const Attribute& self, unsigned indent) {
    emit(text::plain_word(self.name));
    const auto with_kind = [&] { emit(fmt::format(": {}", to_text(self.kind))); };
    if (!self.reference.empty()) {
      if (self.kind != AttributeKind::kUndefined) with_kind();
      emit(" = @" + text::plain_word(self.reference));
      return;
    }
    // Constants are written straight to out_: lift what they append where a graph is waiting.
    const auto written = [&](auto&& write) {
      if (pending_.empty()) {
        write();
        return;
      }
      std::string before;
      std::swap(before, out_);
      write();
      std::swap(before, out_);
      emit(std::move(before));
    };
    const auto list = [&](const auto& items, auto&& write) {
      if (items.empty() || self.kind == AttributeKind::kTensors || self.kind == AttributeKind::kGraphs ||
          self.kind == AttributeKind::kTypeProtos)
        with_kind();
      emit(" = [");
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (i != 0) emit(", ");
        written([&] { write(items[i]); });
      }
      emit("]");
    };
    const auto graph = [&](GraphId id) {
      pending_.push_back({.kind = Task::Kind::kGraph, .graph = id, .indent = indent});
    };
    const auto nothing = [&] { emit(": undefined"); };
    switch (self.kind) {
      case AttributeKind::kInt:
        emit(" = ");
        written([&] { text::append_number(out_, self.i); });
        break;
      case AttributeKind::kFloat:
        emit(" = ");
        written([&] { out_ += text::float_word(self.f); });
        break;
      case AttributeKind::kString:
        emit(" = " + text::quoted(self.s));
        break;
      case AttributeKind::kTensor:
        if (self.tensor == nullptr) return nothing();
        emit(" = ");
        written([&] { part(*self.tensor); });
        break;
      case AttributeKind::kSparseTensor:
        if (self.sparse == nullptr) return nothing();
        emit(" = ");
        written([&] { sparse_constant(*self.sparse, ""); });
        break;
      case AttributeKind::kGraph:
        if (self.graph == GraphId::kNone) return nothing();
        emit(" = ");
        graph(self.graph);
        break;
      case AttributeKind::kTypeProto:
        if (self.type == nullptr || self.type->kind == TypeKind::kNone) return nothing();
        emit(" = " + type(*self.type));
        break;
      case AttributeKind::kInts:
        list(self.ints, [&](std::int64_t item) { text::append_number(out_, item); });
        break;
      case AttributeKind::kFloats:
        list(self.floats, [&](float item) { out_ += text::float_word(item); });
        break;
      case AttributeKind::kStrings:
        list(self.strings, [&](std::string_view item) { out_ += text::quoted(item); });
        break;
      case AttributeKind::kTensors:
        list(self.tensors, [&](const Tensor* item) { part(*item); });
        break;
      case AttributeKind::kTypeProtos:
        list(self.types, [&](const TypeDecl* item) { out_ += type(*item); });
        break;
      case AttributeKind::kGraphs:
        with_kind();
        emit(" = [");
        for (std::size_t i = 0; i < self.graphs.size(); ++i) {
          if (i != 0) emit(", ");
          graph(self.graphs[i]);
        }
        emit("]");
        break;
      case AttributeKind::kSparseTensors:
        with_kind();
        emit(" = []");
        break;
      case AttributeKind::kUndefined:
        nothing();
        break;
    }
  }

  const Model& model_;
  const TextOptions& options_;
  const TextSink& sink_;
  IdVector<GraphId, std::vector<ValueId>> values_;
  std::string out_;
  std::vector<Task> pending_;
};

}  // namespace

std::string to_text(const Model& model, const TextOptions& options) {
  return text_of([&](const TextSink& out) { to_text(model, options, out); });
}

void to_text(const Model& model, const TextOptions& options, const TextSink& out) {
  Printer(model, options, out).print();
}

}  // namespace tensorlint
