#include "ir/writers/onnx/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "ir/constants/weight_parts.h"
#include "ir/writers/onnx/wire.h"

namespace tensorlint {
namespace {

constexpr int kMaxDepth = 256;  // of messages inside each other; the reader allows 64 graphs, three messages each

/// What changes in one message of the file.
struct MessageEdit {
  std::map<std::uint64_t, EditedBytes> before_child;                       // by offset of the child's payload
  std::set<std::uint64_t> dropped_children;                                // by offset of the child's payload
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> replace;  // (field, occurrence) -> payload
  /// Of a node, by name: the payload of the AttributeProto, nullopt to take it away.
  std::map<std::string, std::optional<std::string>, std::less<>> attributes;
  std::set<std::string, std::less<>> dropped_value_infos;  // of a graph or function, by name
  std::uint32_t value_info_field = 0;
  EditedBytes append;
};

/// One field as it stands in the file.
struct Field {
  std::uint32_t number = 0;
  std::uint32_t wire_type = 0;
  std::uint64_t begin = 0;    // of the tag
  std::uint64_t payload = 0;  // length-delimited: after the length
  std::uint64_t end = 0;
};

class Splicer {
 public:
  Splicer(std::string_view file, const std::map<std::uint64_t, MessageEdit>& edits, const FileBytes* mapping)
      : file_(file), edits_(edits), passed_(file, mapping) {}

  Result<EditedBytes> run() {
    EditedBytes out;
    if (!rewrite(0, file_.size(), 0, out)) return Error{"the file is not well formed where it is to be edited", {}};
    if (applied_ != edits_.size()) return Error{"a place to be edited is not in the file", {}};
    return out;
  }

 private:
  std::optional<std::uint64_t> varint(std::uint64_t& at, std::uint64_t end) const {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(file_[at++]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    return std::nullopt;
  }

  std::optional<Field> next_field(std::uint64_t at, std::uint64_t end) const {
    Field field{.begin = at};
    const auto tag = varint(at, end);
    if (!tag || (*tag >> 3) == 0 || (*tag >> 3) >= (1U << 29)) return std::nullopt;
    field.number = static_cast<std::uint32_t>(*tag >> 3);
    field.wire_type = static_cast<std::uint32_t>(*tag & 7);
    if (field.wire_type == kGroup) {
      if (!skip_group(at, end)) return std::nullopt;
      field.payload = field.end = at;
      return field;
    }
    const auto length = payload_length(field.wire_type, at, end);
    if (!length || *length > end - at) return std::nullopt;
    field.payload = at;
    field.end = at + *length;
    return field;
  }

  /// Bytes of a payload that is no group, from `at` on, which goes past a length or a number of variable length.
  std::optional<std::uint64_t> payload_length(std::uint64_t wire_type, std::uint64_t& at, std::uint64_t end) const {
    switch (wire_type) {
      case 0:
        return varint(at, end) ? std::optional<std::uint64_t>(0) : std::nullopt;
      case 1:
        return 8;
      case 5:
        return 4;
      case 2:
        return varint(at, end);
      default:
        return std::nullopt;
    }
  }

  static constexpr std::uint64_t kGroup = 3, kEndOfGroup = 4;
  /// Whose ends match: the reader has seen that.
  bool skip_group(std::uint64_t& at, std::uint64_t end) const {
    for (std::size_t depth = 1; depth > 0;) {
      const auto tag = varint(at, end);
      if (!tag) return false;
      const std::uint64_t wire_type = *tag & 7;
      if (wire_type == kGroup || wire_type == kEndOfGroup) {
        wire_type == kGroup ? ++depth : --depth;
        continue;
      }
      const auto length = payload_length(wire_type, at, end);
      if (!length || *length > end - at) return false;
      at += *length;
    }
    return true;
  }

  bool touches(std::uint64_t begin, std::uint64_t end) const {
    const auto next = edits_.lower_bound(begin);
    return next != edits_.end() && next->first < end;
  }

  static void emit(EditedBytes& out, std::uint32_t number, EditedBytes payload) {
    wire::Encoder head;
    head.varint(std::uint64_t{number} << 3 | 2);
    head.varint(payload.size());
    out.add(head.take());
    out.append(std::move(payload));
  }

  static void emit(EditedBytes& out, std::uint32_t number, std::string payload) {
    EditedBytes bytes;
    bytes.add(std::move(payload));
    emit(out, number, std::move(bytes));
  }

  /// The name in the AttributeProto or ValueInfoProto at these bytes: field 1 of both, the last one of several.
  std::string_view name_of(const Field& message) const {
    static_assert(wire::kAttributeName == wire::kValueInfoName);
    std::string_view name;
    for (std::uint64_t at = message.payload; at < message.end;) {
      const auto field = next_field(at, message.end);
      if (!field) return {};
      if (field->number == wire::kAttributeName && field->wire_type == 2)
        name = file_.substr(field->payload, field->end - field->payload);
      at = field->end;
    }
    return name;
  }

  bool rewrite(std::uint64_t begin, std::uint64_t end, int depth, EditedBytes& out) {
    if (depth > kMaxDepth) return false;
    const auto found = edits_.find(begin);
    const MessageEdit* edit = found == edits_.end() ? nullptr : &found->second;
    if (edit != nullptr) ++applied_;
    std::map<std::uint32_t, std::uint32_t> occurrences;
    auto attributes = edit == nullptr ? decltype(MessageEdit::attributes)() : edit->attributes;
    std::size_t children = 0, dropped = 0;
    std::uint64_t kept = begin;
    for (std::uint64_t at = begin; at < end;) {
      passed_.read_until(file_.data() + at);
      const auto field = next_field(at, end);
      if (!field) return false;
      at = field->end;
      const bool message = field->wire_type == 2;
      const std::string* replacement = nullptr;
      const EditedBytes* inserted = nullptr;
      if (edit != nullptr && message) {
        if (const auto child = edit->before_child.find(field->payload); child != edit->before_child.end()) {
          inserted = &child->second;
          ++children;
        }
        if (edit->dropped_children.contains(field->payload)) {
          out.keep(file_.substr(kept, field->begin - kept));
          if (inserted != nullptr) out.append(*inserted);
          kept = field->end;
          ++dropped;
          continue;
        }
        const auto replaced = edit->replace.find({field->number, occurrences[field->number]++});
        if (replaced != edit->replace.end()) replacement = &replaced->second;
        if (!edit->dropped_value_infos.empty() && field->number == edit->value_info_field &&
            edit->dropped_value_infos.contains(name_of(*field))) {
          out.keep(file_.substr(kept, field->begin - kept));
          kept = field->end;
          continue;
        }
        if (!attributes.empty() && field->number == wire::kNodeAttribute) {
          if (const auto set = attributes.find(name_of(*field)); set != attributes.end()) {
            out.keep(file_.substr(kept, field->begin - kept));
            if (set->second) emit(out, field->number, *set->second);
            kept = field->end;
            attributes.erase(set);
            continue;
          }
        }
      }
      const bool inside = message && replacement == nullptr && touches(field->payload, field->end);
      if (inserted == nullptr && replacement == nullptr && !inside) continue;
      out.keep(file_.substr(kept, field->begin - kept));
      kept = field->begin;
      if (inserted != nullptr) out.append(*inserted);
      if (replacement != nullptr) {
        emit(out, field->number, *replacement);
        kept = field->end;
      } else if (inside) {
        EditedBytes payload;
        if (!rewrite(field->payload, field->end, depth + 1, payload)) return false;
        emit(out, field->number, std::move(payload));
        kept = field->end;
      }
    }
    out.keep(file_.substr(kept, end - kept));
    if (edit == nullptr) return true;
    for (auto& [name, payload] : attributes)
      if (payload) emit(out, wire::kNodeAttribute, *std::move(payload));
    out.append(edit->append);
    return children == edit->before_child.size() && dropped == edit->dropped_children.size();
  }

  std::string_view file_;
  const std::map<std::uint64_t, MessageEdit>& edits_;
  WeightParts passed_;
  std::size_t applied_ = 0;
};

std::string encoded(const NewAttribute& attribute) {
  wire::Encoder out;
  out.text(wire::kAttributeName, attribute.name);
  switch (attribute.kind) {
    case AttributeKind::kFloat:
      out.float32(wire::kAttributeFloat, attribute.f);
      break;
    case AttributeKind::kString:
      out.text(wire::kAttributeString, attribute.s);
      break;
    case AttributeKind::kInts:
      for (const std::int64_t i : attribute.ints) out.number(wire::kAttributeInts, i);
      break;
    default:
      out.number(wire::kAttributeInt, attribute.i);
      break;
  }
  out.number(wire::kAttributeType, static_cast<std::int64_t>(attribute.kind));
  return out.take();
}

std::string encoded(const NewNode& node) {
  wire::Encoder out;
  for (const std::string& operand : node.operands) out.text(wire::kNodeInput, operand);
  for (const std::string& result : node.results) out.text(wire::kNodeOutput, result);
  if (!node.name.empty()) out.text(wire::kNodeName, node.name);
  out.text(wire::kNodeOpType, node.op);
  for (const NewAttribute& attribute : node.attributes) out.text(wire::kNodeAttribute, encoded(attribute));
  if (!node.domain.empty()) out.text(wire::kNodeDomain, node.domain);
  return out.take();
}

std::string encoded(const AddInitializer& tensor) {
  wire::Encoder out;
  for (const std::int64_t dim : tensor.dims) out.number(wire::kTensorDims, dim);
  out.number(wire::kTensorDataType, static_cast<std::int64_t>(DType::kInt64));
  wire::Encoder elements;
  for (const std::int64_t element : tensor.elements) elements.varint(static_cast<std::uint64_t>(element));
  out.text(wire::kTensorInt64Data, elements.take());
  out.text(wire::kTensorName, tensor.name);
  return out.take();
}

std::string metadata_entry(std::uint32_t field, std::string_view key, std::string_view value) {
  wire::Encoder payload, out;
  payload.text(wire::kEntryKey, key);
  payload.text(wire::kEntryValue, value);
  out.text(field, payload.take());
  return out.take();
}

/// Sorts edits by the message that they change.
class EditPlan {
 public:
  EditPlan(std::string_view file, const Model& model) : file_(file), model_(model) {}

  std::optional<Error> add(const GraphEdit& edit) {
    return std::visit([this](const auto& one) { return plan(one); }, edit);
  }
  const std::map<std::uint64_t, MessageEdit>& messages() const { return messages_; }

 private:
  std::optional<Error> plan(const InsertNode& insert) {
    const Graph& graph = model_.graph(insert.before == NodeId::kNone ? insert.graph : model_.node(insert.before).graph);
    wire::Encoder out;
    out.text(graph.kind == GraphKind::kFunction ? wire::kFunctionNode : wire::kGraphNode, encoded(insert.node));
    MessageEdit& edit = messages_[graph.position.offset];
    (insert.before == NodeId::kNone ? edit.append : edit.before_child[model_.node(insert.before).position.offset])
        .add(out.take());
    return std::nullopt;
  }

  std::optional<Error> plan(const SetOperand& set) {
    const Node& node = model_.node(set.node);
    MessageEdit& edit = messages_[node.position.offset];
    if (set.index < node.operand_count) {
      edit.replace[{wire::kNodeInput, set.index}] = set.value;
      return std::nullopt;
    }
    const auto [known, first] = grown_.try_emplace(set.node, node.operand_count);
    if (set.index < known->second)
      return Error{fmt::format("operand {} of `{}` is added twice", set.index, model_.label(set.node)), {}};
    wire::Encoder out;
    for (; known->second < set.index; ++known->second) out.text(wire::kNodeInput, {});
    out.text(wire::kNodeInput, set.value);
    ++known->second;
    edit.append.add(out.take());
    return std::nullopt;
  }

  std::optional<Error> plan(const SetResult& set) {
    messages_[model_.node(set.node).position.offset].replace[{wire::kNodeOutput, set.index}] = set.value;
    return std::nullopt;
  }

  std::optional<Error> plan(const SetAttribute& set) {
    auto& payload = messages_[model_.node(set.node).position.offset].attributes[set.attribute.name];
    payload.reset();
    if (set.attribute.kind != AttributeKind::kUndefined) payload = encoded(set.attribute);
    return std::nullopt;
  }

  std::optional<Error> plan(const AddInitializer& tensor) {
    const Graph& graph = model_.graph(tensor.graph);
    if (graph.kind == GraphKind::kFunction)
      return Error{fmt::format("function `{}` cannot hold an initializer", model_.graph_path(tensor.graph)), {}};
    wire::Encoder out;
    out.text(wire::kGraphInitializer, encoded(tensor));
    messages_[graph.position.offset].append.add(out.take());
    return std::nullopt;
  }

  std::optional<Error> plan(const ImportDomain& import) {
    // A function with imports of its own sees none of the model's.
    GraphId owner = import.graph;
    while (model_.graph(owner).kind == GraphKind::kSubgraph) owner = model_.graph(owner).parent;
    const std::uint32_t list = model_.graph(owner).opsets;
    const bool into_function = model_.graph(owner).kind == GraphKind::kFunction && list != 0;
    const auto& imports = model_.opset_imports[list];
    const bool known =
        std::ranges::any_of(imports, [&](const OpsetImport& one) { return model_.text(one.domain) == import.domain; });
    if (known || !imported_.emplace(list, import.domain).second) return std::nullopt;
    wire::Encoder payload, out;
    payload.text(wire::kOpsetDomain, import.domain);
    payload.number(wire::kOpsetVersion, import.version);
    out.text(into_function ? wire::kFunctionOpsetImport : wire::kModelOpsetImport, payload.take());
    messages_[into_function ? model_.graph(owner).position.offset : 0].append.add(out.take());
    return std::nullopt;
  }

  std::optional<Error> plan(const AddModelMetadata& entry) {
    messages_[0].append.add(metadata_entry(wire::kModelMetadata, entry.key, entry.value));
    return std::nullopt;
  }

  std::optional<Error> plan(const AddMetadata& entry) {
    if (entry.node != NodeId::kNone) {
      messages_[model_.node(entry.node).position.offset].append.add(
          metadata_entry(wire::kNodeMetadata, entry.key, entry.value));
      return std::nullopt;
    }
    const Tensor* tensor = model_.value(entry.initializer).initializer;
    if (tensor == nullptr)
      return Error{fmt::format("`{}` is not an initializer", model_.name_of(entry.initializer)), {}};
    messages_[tensor->position.offset].append.add(metadata_entry(wire::kTensorMetadata, entry.key, entry.value));
    return std::nullopt;
  }

  std::optional<Error> plan(const DropValueInfo& drop) {
    const Graph& graph = model_.graph(drop.graph);
    MessageEdit& edit = messages_[graph.position.offset];
    edit.value_info_field = graph.kind == GraphKind::kFunction ? wire::kFunctionValueInfo : wire::kGraphValueInfo;
    edit.dropped_value_infos.insert(drop.value);
    return std::nullopt;
  }

  std::optional<Error> plan(const RemoveNode& removal) {
    const Node& node = model_.node(removal.node);
    messages_[model_.graph(node.graph).position.offset].dropped_children.insert(node.position.offset);
    return std::nullopt;
  }

  std::optional<Error> plan(const MoveNode& move) {
    const Node& node = model_.node(move.node);
    if (node.position.offset > file_.size() || node.byte_length > file_.size() - node.position.offset)
      return Error{fmt::format("node `{}` is not in the file", model_.label(move.node)), {}};
    const Graph& graph = model_.graph(node.graph);
    MessageEdit& edit = messages_[graph.position.offset];
    if (!edit.dropped_children.insert(node.position.offset).second)
      return Error{fmt::format("node `{}` is moved twice", model_.label(move.node)), {}};
    wire::Encoder head;
    head.head(graph.kind == GraphKind::kFunction ? wire::kFunctionNode : wire::kGraphNode, node.byte_length);
    EditedBytes& place =
        move.before == NodeId::kNone ? edit.append : edit.before_child[model_.node(move.before).position.offset];
    place.add(head.take());
    place.keep(file_.substr(node.position.offset, node.byte_length));
    return std::nullopt;
  }

  std::optional<Error> plan(const RemoveInitializer& removal) {
    const Value& value = model_.value(removal.value);
    if (value.initializer == nullptr)
      return Error{fmt::format("`{}` is not a constant of a graph", model_.name_of(removal.value)), {}};
    messages_[model_.graph(value.graph).position.offset].dropped_children.insert(value.initializer->position.offset);
    return std::nullopt;
  }

  std::optional<Error> plan(const RemoveComment& /*removal*/) { return Error{"a binary model has no comments", {}}; }

  std::string_view file_;
  const Model& model_;
  std::map<std::uint64_t, MessageEdit> messages_;
  std::map<NodeId, std::uint32_t> grown_;                     // operands of nodes that got new ones
  std::set<std::pair<std::uint32_t, std::string>> imported_;  // by list of imports
};

}  // namespace

void EditedBytes::keep(std::string_view old_bytes) {
  if (old_bytes.empty()) return;
  parts_.push_back(old_bytes);
  size_ += old_bytes.size();
}

void EditedBytes::add(std::string new_bytes) {
  if (new_bytes.empty()) return;
  keep(*owned_.emplace_back(std::make_shared<const std::string>(std::move(new_bytes))));
}

void EditedBytes::append(EditedBytes other) {
  parts_.insert(parts_.end(), other.parts_.begin(), other.parts_.end());
  owned_.insert(owned_.end(), std::make_move_iterator(other.owned_.begin()),
                std::make_move_iterator(other.owned_.end()));
  size_ += other.size_;
}

void EditedBytes::refer_to(const EditedBytes& old, std::string_view place) {
  std::vector<std::size_t> ends;  // of the old parts
  for (const std::string_view part : old.parts_) ends.push_back((ends.empty() ? 0 : ends.back()) + part.size());
  std::vector<std::string_view> parts;
  for (const std::string_view part : parts_) {
    if (std::less<>()(part.data(), place.data()) ||
        std::less<>()(place.data() + place.size(), part.data() + part.size())) {
      parts.push_back(part);
      continue;
    }
    auto at = static_cast<std::size_t>(part.data() - place.data());
    for (const std::size_t end = at + part.size(); at != end;) {
      const auto i = static_cast<std::size_t>(std::ranges::upper_bound(ends, at) - ends.begin());
      const std::string_view piece = old.parts_[i].substr(at - (ends[i] - old.parts_[i].size()), end - at);
      parts.push_back(piece);
      at += piece.size();
    }
  }
  parts_ = std::move(parts);
  owned_.insert(owned_.end(), old.owned_.begin(), old.owned_.end());
}

std::string EditedBytes::joined() const {
  std::string bytes;
  bytes.reserve(size_);
  for (const std::string_view part : parts_) bytes += part;
  return bytes;
}

Result<EditedBytes> edit_onnx(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                              const FileBytes* mapping) {
  EditPlan plan(file, model);
  for (const GraphEdit& edit : edits)
    if (auto error = plan.add(edit)) return *std::move(error);
  return Splicer(file, plan.messages(), mapping).run();
}

}  // namespace tensorlint
