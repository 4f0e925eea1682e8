#include "ir/writers/onnx/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <map>
#include <optional>

#include "ir/writers/onnx/wire.h"

namespace tensorlint {
namespace {

constexpr int kMaxDepth = 256;  // of messages inside each other; the reader allows 64 graphs, three messages each

/// What changes in one message of the file.
struct MessageEdit {
  std::map<std::uint64_t, std::string> before_child;           // by offset of the child's payload
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> replace;  // (field, occurrence) -> payload
  std::map<std::string, std::string, std::less<>> attributes;  // of a node, by name -> payload of the AttributeProto
  std::string append;
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
  Splicer(std::string_view file, const std::map<std::uint64_t, MessageEdit>& edits) : file_(file), edits_(edits) {}

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
    std::uint64_t length = 0;
    switch (field.wire_type) {
      case 0:
        if (!varint(at, end)) return std::nullopt;
        break;
      case 1: length = 8; break;
      case 5: length = 4; break;
      case 2: {
        const auto given = varint(at, end);
        if (!given) return std::nullopt;
        length = *given;
        break;
      }
      default: return std::nullopt;
    }
    if (length > end - at) return std::nullopt;
    field.payload = at;
    field.end = at + length;
    return field;
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

  /// The name of the AttributeProto at these bytes.
  std::string_view attribute_name(const Field& attribute) const {
    for (std::uint64_t at = attribute.payload; at < attribute.end;) {
      const auto field = next_field(at, attribute.end);
      if (!field) return {};
      if (field->number == wire::kAttributeName && field->wire_type == 2) return file_.substr(field->payload, field->end - field->payload);
      at = field->end;
    }
    return {};
  }

  bool rewrite(std::uint64_t begin, std::uint64_t end, int depth, EditedBytes& out) {
    if (depth > kMaxDepth) return false;
    const auto found = edits_.find(begin);
    const MessageEdit* edit = found == edits_.end() ? nullptr : &found->second;
    if (edit != nullptr) ++applied_;
    std::map<std::uint32_t, std::uint32_t> occurrences;
    auto attributes = edit == nullptr ? decltype(MessageEdit::attributes)() : edit->attributes;
    std::size_t children = 0;
    std::uint64_t kept = begin;
    for (std::uint64_t at = begin; at < end;) {
      const auto field = next_field(at, end);
      if (!field) return false;
      at = field->end;
      const bool message = field->wire_type == 2;
      const std::string* replacement = nullptr;
      std::string_view inserted;
      if (edit != nullptr && message) {
        if (const auto child = edit->before_child.find(field->payload); child != edit->before_child.end()) {
          inserted = child->second;
          ++children;
        }
        const auto replaced = edit->replace.find({field->number, occurrences[field->number]++});
        if (replaced != edit->replace.end()) replacement = &replaced->second;
        if (!attributes.empty() && field->number == wire::kNodeAttribute) {
          if (const auto set = attributes.find(attribute_name(*field)); set != attributes.end()) {
            out.keep(file_.substr(kept, field->begin - kept));
            emit(out, field->number, set->second);
            kept = field->end;
            attributes.erase(set);
            continue;
          }
        }
      }
      const bool inside = message && replacement == nullptr && touches(field->payload, field->end);
      if (inserted.empty() && replacement == nullptr && !inside) continue;
      out.keep(file_.substr(kept, field->begin - kept));
      kept = field->begin;
      if (!inserted.empty()) out.add(std::string(inserted));
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
    for (auto& [name, payload] : attributes) emit(out, wire::kNodeAttribute, std::move(payload));
    out.add(edit->append);
    return children == edit->before_child.size();
  }

  std::string_view file_;
  const std::map<std::uint64_t, MessageEdit>& edits_;
  std::size_t applied_ = 0;
};

std::string encoded(const NewAttribute& attribute) {
  wire::Encoder out;
  out.text(wire::kAttributeName, attribute.name);
  switch (attribute.kind) {
    case AttributeKind::kFloat: out.float32(wire::kAttributeFloat, attribute.f); break;
    case AttributeKind::kString: out.text(wire::kAttributeString, attribute.s); break;
    case AttributeKind::kInts:
      for (const std::int64_t i : attribute.ints) out.number(wire::kAttributeInts, i);
      break;
    default: out.number(wire::kAttributeInt, attribute.i); break;
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

/// Sorts edits by the message that they change.
class EditPlan {
 public:
  explicit EditPlan(const Model& model) : model_(model) {}

  std::optional<Error> add(const GraphEdit& edit) {
    return std::visit([this](const auto& one) { return plan(one); }, edit);
  }
  const std::map<std::uint64_t, MessageEdit>& messages() const { return messages_; }

 private:
  std::optional<Error> plan(const InsertNode& insert) {
    const Node& next = model_.node(insert.before);
    const Graph& graph = model_.graph(next.graph);
    const std::uint32_t field = graph.kind == GraphKind::kFunction ? wire::kFunctionNode : wire::kGraphNode;
    wire::Encoder out;
    out.text(field, encoded(insert.node));
    messages_[graph.position.offset].before_child[next.position.offset] += out.take();
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
    if (set.index < known->second) return Error{fmt::format("operand {} of `{}` is added twice", set.index, model_.label(set.node)), {}};
    wire::Encoder out;
    for (; known->second < set.index; ++known->second) out.text(wire::kNodeInput, {});
    out.text(wire::kNodeInput, set.value);
    ++known->second;
    edit.append += out.take();
    return std::nullopt;
  }

  std::optional<Error> plan(const SetAttribute& set) {
    messages_[model_.node(set.node).position.offset].attributes[set.attribute.name] = encoded(set.attribute);
    return std::nullopt;
  }

  std::optional<Error> plan(const AddInitializer& tensor) {
    const Graph& graph = model_.graph(tensor.graph);
    if (graph.kind == GraphKind::kFunction) return Error{fmt::format("function `{}` cannot hold an initializer", model_.graph_path(tensor.graph)), {}};
    wire::Encoder out;
    out.text(wire::kGraphInitializer, encoded(tensor));
    messages_[graph.position.offset].append += out.take();
    return std::nullopt;
  }

  std::optional<Error> plan(const ImportDomain& import) {
    const auto& imports = model_.opset_imports[0];
    const bool known = std::ranges::any_of(imports, [&](const OpsetImport& one) { return model_.text(one.domain) == import.domain; });
    if (known || std::ranges::find(imported_, import.domain) != imported_.end()) return std::nullopt;
    imported_.push_back(import.domain);
    wire::Encoder payload, out;
    payload.text(wire::kOpsetDomain, import.domain);
    payload.number(wire::kOpsetVersion, import.version);
    out.text(wire::kModelOpsetImport, payload.take());
    messages_[0].append += out.take();
    return std::nullopt;
  }

  const Model& model_;
  std::map<std::uint64_t, MessageEdit> messages_;
  std::map<NodeId, std::uint32_t> grown_;  // operands of nodes that got new ones
  std::vector<std::string> imported_;
};

Error system_error(const std::string& path, std::string_view what) {
  return Error{fmt::format("cannot {} `{}`: {}", what, path, std::strerror(errno)), {}};
}

/// Writes everything, also where the system takes it in pieces.
bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), std::min<std::size_t>(bytes.size(), SSIZE_MAX));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

void EditedBytes::keep(std::string_view old_bytes) {
  if (old_bytes.empty()) return;
  parts_.push_back(old_bytes);
  size_ += old_bytes.size();
}

void EditedBytes::add(std::string new_bytes) {
  if (new_bytes.empty()) return;
  keep(owned_.emplace_back(std::move(new_bytes)));
}

void EditedBytes::append(EditedBytes other) {
  parts_.insert(parts_.end(), other.parts_.begin(), other.parts_.end());
  owned_.splice(owned_.end(), other.owned_);
  size_ += other.size_;
}

std::string EditedBytes::joined() const {
  std::string bytes;
  bytes.reserve(size_);
  for (const std::string_view part : parts_) bytes += part;
  return bytes;
}

Result<EditedBytes> edit_onnx(std::string_view file, const Model& model, std::span<const GraphEdit> edits) {
  EditPlan plan(model);
  for (const GraphEdit& edit : edits)
    if (auto error = plan.add(edit)) return *std::move(error);
  return Splicer(file, plan.messages()).run();
}

Result<std::uint64_t> write_file(const std::string& path, std::span<const std::string_view> parts) {
  struct stat known {};
  const bool exists = ::stat(path.c_str(), &known) == 0;
  if (exists && !S_ISREG(known.st_mode)) return Error{fmt::format("cannot write `{}`: not a regular file", path), {}};
  std::string temporary = path + ".XXXXXX";
  const int descriptor = ::mkstemp(temporary.data());
  if (descriptor < 0) return system_error(path, "write");
  const auto give_up = [&](std::string_view what) {
    const Error error = system_error(path, what);
    ::close(descriptor);
    ::unlink(temporary.c_str());
    return error;
  };
  std::uint64_t size = 0;
  for (const std::string_view part : parts) {
    if (!write_all(descriptor, part)) return give_up("write");
    size += part.size();
  }
  // mkstemp leaves the file to its owner alone; what stood there before, else the usual mask, decides instead.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(descriptor, exists ? known.st_mode & 07777 : 0666 & ~mask) != 0) return give_up("set the permissions of");
  if (::fsync(descriptor) != 0) return give_up("write");
  if (::close(descriptor) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const Error error = system_error(path, "rename to");
    ::unlink(temporary.c_str());
    return error;
  }
  return size;
}

}  // namespace tensorlint
