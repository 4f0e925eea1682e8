#include <fmt/format.h>

#include <array>
#include <bit>
#include <utility>

#include "ir/readers/onnx/model_reader.h"
#include "ir/readers/onnx/unread_messages.h"

namespace tensorlint::onnx {
namespace {

/// Position in AttributeProto's value fields: field number -> the kind it makes; 0 for other fields.
constexpr AttributeKind kind_of_field(std::uint32_t field) {
  constexpr std::array<AttributeKind, 24> kKinds = [] {
    std::array<AttributeKind, 24> kinds{};
    kinds[2] = AttributeKind::kFloat;
    kinds[3] = AttributeKind::kInt;
    kinds[4] = AttributeKind::kString;
    kinds[5] = AttributeKind::kTensor;
    kinds[6] = AttributeKind::kGraph;
    kinds[7] = AttributeKind::kFloats;
    kinds[8] = AttributeKind::kInts;
    kinds[9] = AttributeKind::kStrings;
    kinds[10] = AttributeKind::kTensors;
    kinds[11] = AttributeKind::kGraphs;
    kinds[14] = AttributeKind::kTypeProto;
    kinds[15] = AttributeKind::kTypeProtos;
    kinds[22] = AttributeKind::kSparseTensor;
    kinds[23] = AttributeKind::kSparseTensors;
    return kinds;
  }();
  return field < kKinds.size() ? kKinds[field] : AttributeKind::kUndefined;
}

constexpr unsigned bit(AttributeKind kind) { return 1U << static_cast<unsigned>(kind); }

constexpr bool is_message(AttributeKind kind) {
  return kind == AttributeKind::kTensor || kind == AttributeKind::kGraph || kind == AttributeKind::kSparseTensor ||
         kind == AttributeKind::kTypeProto;
}

constexpr bool is_list(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kFloats:
    case AttributeKind::kInts:
    case AttributeKind::kStrings:
    case AttributeKind::kTensors:
    case AttributeKind::kGraphs:
    case AttributeKind::kSparseTensors:
    case AttributeKind::kTypeProtos:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Reader::attribute(std::string_view message, const Holder& holder, std::vector<Attribute>& out) {
  budget_.charge(kAttributeCost);
  // The list that is read into stays as large as the longest one was.
  if (out.size() >= kFewAttributes) budget_.charge(kListedAttributeCost);
  check_budget(message.data());
  Attribute self;
  std::int64_t kind_code = 0;
  unsigned present = 0;
  ints_.clear();
  floats_.clear();
  strings_.clear();
  std::vector<const Tensor*> tensors;
  std::vector<GraphId> graphs;
  std::vector<const TypeDecl*> types;
  Cursor fields = cursor(message);
  const bool is_long = message.size() >= kWeights;
  while (fields.next()) {
    if (is_long) ahead_.at(fields.field_start());
    const std::uint32_t field = fields.field();
    if (const AttributeKind kind = kind_of_field(field); kind != AttributeKind::kUndefined) {
      if (is_message(kind) && (present & bit(kind)) != 0)
        fields.fail(fmt::format("a second {} of one attribute", to_text(kind)));
      present |= bit(kind);
    }
    switch (field) {
      case wire::kAttributeName:
        self.name = lasting(fields.view("AttributeProto.name"));
        break;
      case wire::kAttributeFloat:
        self.f = fields.number("AttributeProto.f");
        break;
      case wire::kAttributeInt:
        self.i = fields.integer("AttributeProto.i");
        break;
      case wire::kAttributeString:
        self.s = lasting(fields.view("AttributeProto.s"));
        break;
      case wire::kAttributeTensor:
        self.tensor = tensor(fields.view("AttributeProto.t"), holder.graph, holder.node);
        break;
      case wire::kAttributeGraph:
        self.graph = queue_subgraph(fields.view("AttributeProto.g"), holder);
        break;
      case wire::kAttributeFloats:
        if (fields.type() == WireType::length_delimited) {
          const std::string_view list = fields.view("AttributeProto.floats");
          will_read(list);
          Cursor packed = fields.inside(list);
          while (!packed.at_end()) floats_.push_back(packed.packed_number());
        } else {
          floats_.push_back(fields.number("AttributeProto.floats"));
        }
        break;
      case wire::kAttributeInts:
        if (fields.type() == WireType::length_delimited) {
          const std::string_view list = fields.view("AttributeProto.ints");
          will_read(list);
          for (Cursor packed = fields.inside(list); !packed.at_end();) ints_.push_back(packed.packed_integer());
        } else {
          ints_.push_back(fields.integer("AttributeProto.ints"));
        }
        break;
      case wire::kAttributeStrings:
        strings_.push_back(lasting(fields.view("AttributeProto.strings")));
        break;
      case wire::kAttributeTensors:
        tensors.push_back(tensor(fields.view("AttributeProto.tensors"), holder.graph, holder.node));
        break;
      case wire::kAttributeGraphs:
        graphs.push_back(queue_subgraph(fields.view("AttributeProto.graphs"), holder));
        break;
      case wire::kAttributeTypeProto:
        self.type = type(fields.view("AttributeProto.tp"), holder.graph, holder.node);
        break;
      case wire::kAttributeTypeProtos:
        types.push_back(type(fields.view("AttributeProto.type_protos"), holder.graph, holder.node));
        break;
      case wire::kAttributeType:
        kind_code = fields.integer32("AttributeProto.type");
        break;
      case wire::kAttributeReference:
        self.reference = lasting(fields.view("AttributeProto.ref_attr_name"));
        break;
      case wire::kAttributeSparseTensor:
        self.sparse = sparse_tensor(fields.view("AttributeProto.sparse_tensor"), holder.graph, holder.node);
        break;
      case wire::kAttributeSparseTensors: {
        // No operator has a list of them: what is checked of tensors is checked of their parts.
        const SparseTensor* const item =
            sparse_tensor(fields.view("AttributeProto.sparse_tensors"), holder.graph, holder.node);
        for (const Tensor* const part : {item->values, item->indices})
          if (part != nullptr) tensors.push_back(part);
        break;
      }
      default:
        fields.skip();
        break;
    }
    check_budget(fields.field_start());
  }
  budget_.charge(8 * ints_.size() + 4 * floats_.size() + kStringCost * strings_.size() +
                 16 * (tensors.size() + types.size() + graphs.size()));
  self.ints = builder_.keep_ints(ints_);
  self.floats = builder_.keep_floats(floats_);
  self.strings = builder_.keep_strings(strings_);
  if (self.graph != GraphId::kNone) model().graphs[self.graph].attribute = self.name;
  for (const GraphId graph : graphs) model().graphs[graph].attribute = self.name;
  if (!tensors.empty()) self.tensors = builder_.keep(std::move(tensors));
  if (!graphs.empty()) self.graphs = builder_.keep(std::move(graphs));
  if (!types.empty()) self.types = builder_.keep(std::move(types));
  check_kind(self, kind_code, present, holder, message);
  if (is_long) weights_end(message.data() + message.size());
  out.push_back(self);
}

void Reader::check_kind(Attribute& self, std::int64_t kind_code, unsigned present, const Holder& holder,
                        std::string_view message) {
  const auto malformed = [&]<typename... Args>(fmt::format_string<Args...> text, Args&&... args) {
    if (!builder_.keeps_faults(holder.graph)) return;
    fault({.kind = StructureFault::Kind::kMalformedAttribute,
           .graph = holder.graph,
           .node = holder.node,
           .message = fmt::format(text, std::forward<Args>(args)...),
           .position = at(message)});
  };
  if (self.name.empty()) malformed("an attribute has no name");
  constexpr std::int64_t kLastKind = static_cast<std::int64_t>(AttributeKind::kTypeProtos);
  if (kind_code < 0 || kind_code > kLastKind) {
    malformed("attribute `{}` has the unknown kind {}", self.name, kind_code);
    return;
  }
  self.kind = static_cast<AttributeKind>(kind_code);
  if (!self.reference.empty()) {
    if (!holder.in_function)
      malformed("attribute `{}` refers to attribute `{}` of a function, outside of any", self.name, self.reference);
    if (present != 0) malformed("attribute `{}` has a value and refers to `{}`", self.name, self.reference);
    return;
  }
  if (self.kind == AttributeKind::kUndefined) {
    // Writers of the first IR versions leave the kind out: the only value tells.
    if (std::popcount(present) == 1) {
      self.kind = static_cast<AttributeKind>(std::countr_zero(present));
    } else {
      malformed("attribute `{}` has no kind and {} values", self.name, std::popcount(present));
    }
    return;
  }
  const unsigned others = present & ~bit(self.kind);
  if (others != 0) {
    malformed("attribute `{}` is declared {} and has a value of kind {}", self.name, to_text(self.kind),
              to_text(static_cast<AttributeKind>(std::countr_zero(others))));
  } else if ((present & bit(self.kind)) == 0 && !is_list(self.kind) && is_message(self.kind)) {
    // A scalar that is left out is 0 or empty: what writers of proto3 do.
    malformed("attribute `{}` is declared {} and has no value", self.name, to_text(self.kind));
  }
}

}  // namespace tensorlint::onnx
