#include <fmt/format.h>

#include <utility>

#include "ir/readers/onnx/model_reader.h"
#include "ir/readers/onnx/unread_messages.h"

namespace tensorlint::onnx {
namespace {

constexpr int kMaxTypeDepth = 16;

}  // namespace

Reader::ValueInfo Reader::value_info(std::string_view message, GraphId graph) {
  ValueInfo info;
  for (Cursor fields = cursor(message); fields.next();) {
    switch (fields.field()) {
      case wire::kValueInfoName:
        info.name = name(fields.view("ValueInfoProto.name"));
        break;
      case wire::kValueInfoType:
        if (info.type != nullptr) fields.fail("a second `ValueInfoProto.type`");
        info.type = type(fields.view("ValueInfoProto.type"), graph, NodeId::kNone);
        break;
      case wire::kValueInfoMetadata:
        skip_metadata(fields, "ValueInfoProto.metadata_props");
        info.has_metadata = true;
        break;
      default:
        fields.skip();
        break;
    }
  }
  if (info.has_metadata) note_metadata(graph, info.name, wire::kValueInfoMetadata, message);
  return info;
}

std::span<const DimDecl> Reader::shape(std::string_view message) {
  dims_.clear();
  for (Cursor fields = cursor(message); fields.next();) {
    if (fields.field() != wire::kShapeDim) {
      fields.skip();
      continue;
    }
    DimDecl dim;
    for (Cursor inner = fields.inside(fields.view("TensorShapeProto.dim")); inner.next();) {
      switch (inner.field()) {
        case wire::kDimValue:  // of a oneof the last one given counts
          dim = {.extent = inner.integer("Dimension.dim_value"), .has_extent = true};
          break;
        case wire::kDimParam:
          dim = {.name = name(inner.view("Dimension.dim_param"))};
          break;
        default:
          inner.skip();
          break;
      }
    }
    dims_.push_back(dim);
  }
  budget_.charge(kDimCost * dims_.size());
  return builder_.keep_dims(dims_);
}

// Of a message that stands twice where one may, protobuf makes one of the fields of both: such a file is refused.
// A type nests by wrapping exactly one other, so following it is a loop. What is inside goes into the declaration made
// before it: the outermost is returned.
const TypeDecl* Reader::type(std::string_view message, GraphId graph, NodeId node) {
  const std::string_view whole = message;
  TypeDecl* outermost = nullptr;
  TypeDecl* holder = nullptr;
  std::string problem;
  for (int depth = 0;; ++depth) {
    if (depth == kMaxTypeDepth)
      throw WireFault{fmt::format("types nested deeper than {}", kMaxTypeDepth), at(message).offset};
    TypeDecl* const self = builder_.new_type();
    budget_.charge(sizeof(TypeDecl));
    if (holder != nullptr) {
      holder->element = self;
    } else {
      outermost = self;
    }
    std::string_view body;
    std::uint32_t body_field = 0;
    for (Cursor fields = cursor(message); fields.next();) {
      TypeKind kind = TypeKind::kNone;
      switch (fields.field()) {
        case wire::kTypeTensor:
          kind = TypeKind::kTensor;
          break;
        case wire::kTypeSequence:
          kind = TypeKind::kSequence;
          break;
        case wire::kTypeMap:
          kind = TypeKind::kMap;
          break;
        case wire::kTypeOpaque:
          kind = TypeKind::kOpaque;
          break;
        case wire::kTypeSparseTensor:
          kind = TypeKind::kSparseTensor;
          break;
        case wire::kTypeOptional:
          kind = TypeKind::kOptional;
          break;
        default:
          fields.skip();
          continue;
      }
      if (self->kind == kind) fields.fail("a second `TypeProto.value`");
      if (self->kind != TypeKind::kNone) {
        problem = "a type is declared as two things at once";
        pass_over(fields.inside(body), *wire::message_in(wire::MessageType::kType, body_field), mapping_);
      }
      self->kind = kind;
      body = fields.view("TypeProto.value");
      body_field = fields.field();
    }
    if (self->kind == TypeKind::kOpaque) pass_over(cursor(body), wire::MessageType::kPlain, mapping_);
    if (self->kind == TypeKind::kNone || self->kind == TypeKind::kOpaque) break;
    const bool is_tensor = self->kind == TypeKind::kTensor || self->kind == TypeKind::kSparseTensor;
    const std::uint32_t inner_field = self->kind == TypeKind::kMap ? 2 : 1;
    std::string_view inner;
    bool has_inner = false;
    for (Cursor fields = cursor(body); fields.next();) {
      if (is_tensor && fields.field() == 1) {
        self->element_code = fields.integer32("TypeProto.elem_type");
      } else if (is_tensor && fields.field() == 2) {
        if (self->ranked) fields.fail("a second `TypeProto.shape`");
        self->dims = shape(fields.view("TypeProto.shape"));
        self->ranked = true;
      } else if (self->kind == TypeKind::kMap && fields.field() == 1) {
        self->element_code = fields.integer32("TypeProto.Map.key_type");
      } else if (!is_tensor && fields.field() == inner_field) {
        if (has_inner) fields.fail("a second `TypeProto.elem_type`");
        inner = fields.view("TypeProto.elem_type");
        has_inner = true;
      } else {
        fields.skip();
      }
    }
    if (is_tensor && self->element_code == 0) problem = "a tensor is declared without a dtype";
    if ((is_tensor && self->element_code != 0 && !is_known_dtype(self->element_code)) ||
        (self->kind == TypeKind::kMap && !is_known_dtype(self->element_code)))
      problem = fmt::format("a type declares the unknown dtype code {}", self->element_code);
    for (const DimDecl& dim : self->dims)
      if (dim.has_extent && dim.extent < -1) problem = fmt::format("a type declares the negative dim {}", dim.extent);
    if (!has_inner && !is_tensor) problem = "a type declares no element type";
    if (!has_inner) break;
    holder = self;
    message = inner;
  }
  if (!problem.empty())
    fault({.kind = StructureFault::Kind::kMalformedType,
           .graph = graph,
           .node = node,
           .message = std::move(problem),
           .position = at(whole)});
  return outermost;
}

}  // namespace tensorlint::onnx
