#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "ir/constants/sparse_check.h"
#include "ir/readers/onnx/model_reader.h"
#include "ir/readers/onnx/packed_numbers.h"
#include "ir/readers/onnx/tensor_check.h"
#include "ir/readers/onnx/unread_messages.h"

namespace tensorlint::onnx {
namespace {

constexpr std::size_t kScannedIntegers = std::size_t{512} << 10;  // as fact_of_tensor does: 64 Ki int64

TypedField typed_field_of(std::uint32_t number) {
  for (const TypedField field : {TypedField::kFloat, TypedField::kInt32, TypedField::kInt64, TypedField::kDouble})
    if (wire::number_of(field) == number) return field;
  return TypedField::kUint64;
}

/// Bytes that pay nothing.
std::uint64_t weights_of(std::string_view elements) { return elements.size() >= kWeights ? elements.size() : 0; }

bool is_varints(TypedField field) {
  return field == TypedField::kInt32 || field == TypedField::kInt64 || field == TypedField::kUint64;
}

}  // namespace

const Tensor* Reader::tensor(std::string_view message, GraphId graph, NodeId node, bool* has_metadata) {
  Tensor& self = *builder_.new_tensor();
  budget_.charge(kTensorCost);
  self.position = at(message);
  self.byte_length = length_of(message);
  tensor_dims_.clear();
  tensor_strings_.clear();
  TypedData data;
  bool is_segment = false;
  const bool amid_weights = is_amid_weights(message);
  Cursor fields = cursor(message);
  const bool is_long = message.size() >= kWeights;
  while (fields.next()) {
    if (is_long) ahead_.at(fields.field_start());
    const std::uint32_t field = fields.field();
    switch (field) {
      case wire::kTensorDims:
        append_integers(fields, "TensorProto.dims", tensor_dims_);
        break;
      case wire::kTensorDataType:
        self.dtype_code = fields.integer32("TensorProto.data_type");
        break;
      case wire::kTensorSegment:
        pass_over(fields.inside(fields.view("TensorProto.segment")), wire::MessageType::kPlain, mapping_);
        is_segment = true;
        break;
      case wire::kTensorFloatData:
      case wire::kTensorInt32Data:
      case wire::kTensorInt64Data:
      case wire::kTensorDoubleData:
      case wire::kTensorUint64Data:
        typed_data(fields, self, data);
        break;
      case wire::kTensorStringData:
        tensor_strings_.push_back(lasting(fields.view("TensorProto.string_data")));
        budget_.charge(kStringCost);
        check_budget(fields.field_start());
        break;
      case wire::kTensorName:
        self.name = this->name(fields.view("TensorProto.name"));
        break;
      case wire::kTensorRawData:
        self.raw = numbers(fields.view("TensorProto.raw_data"));
        self.has_raw = true;
        budget_.take_back(weights_of(self.raw));
        if (self.raw.size() >= kWeights) weights_end(fields.position());
        break;
      case wire::kTensorExternalData: {
        const MetadataEntry entry = metadata_entry(fields.inside(fields.view("TensorProto.external_data")));
        // A value that is left out is an empty one.
        const std::string_view value = entry.value.data() == nullptr ? std::string_view("") : lasting(entry.value);
        if (entry.key == "location") self.location = value;
        if (entry.key == "offset") self.offset_text = value;
        if (entry.key == "length") self.length_text = value;
        break;
      }
      case wire::kTensorDataLocation:
        self.external = fields.integer32("TensorProto.data_location") == 1;
        break;
      case wire::kTensorMetadata:
        skip_metadata(fields, "TensorProto.metadata_props");
        if (has_metadata != nullptr) *has_metadata = true;
        break;
      default:
        fields.skip();
        break;
    }
  }
  if (!data.pieces.empty()) self.typed = builder_.copy({data.pieces.data(), data.pieces.size()});
  budget_.charge(8 * tensor_dims_.size());
  self.dims = builder_.keep_ints(tensor_dims_);
  self.strings = builder_.keep_strings(tensor_strings_);

  // Packed varints are counted, and the range of not too many integers is taken: never that of float weights.
  if (is_varints(self.typed_field)) will_read(self.typed);
  if (self.raw.size() <= kScannedIntegers && is_known_dtype(self.dtype_code) &&
      DTypeSet::integers().contains(static_cast<DType>(self.dtype_code)))
    will_read(self.raw);

  if (amid_weights && self.raw.size() <= kKeptContents) self.raw = apart(self.raw);
  if (amid_weights && self.typed.size() <= kKeptContents) self.typed = apart(self.typed);

  report_tensor_fault(self, data, is_segment, graph, node);
  return &self;
}

std::string_view Reader::numbers(std::string_view piece) {
  if (piece.size() < kWeights) return piece;
  const auto found = std::ranges::lower_bound(elsewhere_, piece.data(), std::less<>(), &ElementsElsewhere::place);
  if (found != elsewhere_.end() && found->place == piece.data() && found->elements.size() == piece.size())
    piece = found->elements;
  model().weights.push_back(piece);
  return piece;
}

void Reader::typed_data(Cursor& fields, Tensor& self, TypedData& data) {
  const std::uint32_t field = fields.field();
  std::string_view piece;
  const bool is_packed = fields.type() == WireType::length_delimited;
  if (is_packed) {
    piece = fields.view("TensorProto.data");
    const wire::Packing packing = *wire::packing_in(wire::MessageType::kTensor, field);
    if (packing == wire::Packing::kVarints) will_read(piece);
    check_packed(fields, packing, piece, weights_);
    piece = numbers(piece);
    budget_.take_back(weights_of(piece));
    if (piece.size() >= kWeights) weights_end(fields.position());
  } else {
    fields.expect(field == wire::kTensorFloatData    ? WireType::fixed32
                  : field == wire::kTensorDoubleData ? WireType::fixed64
                                                     : WireType::varint,
                  "TensorProto.data");
    piece = fields.scalar_bytes();
  }
  if (piece.empty()) return;
  const TypedField typed = typed_field_of(field);
  if (self.typed_field != TypedField::kNone && self.typed_field != typed) {
    data.second_field = field;
    return;
  }
  if (self.typed_field == TypedField::kNone) {
    self.typed_field = typed;
    if (is_packed) {
      self.typed = piece;
      return;
    }
  }
  // What is put together is in memory, twice for a while, and no weights that can be passed over.
  const std::string_view before = data.pieces.empty() ? self.typed : std::string_view();
  budget_.pay(weights_of(before) + weights_of(piece));
  budget_.charge(kCostOfPieces * (before.size() + piece.size()));
  if (data.pieces.empty()) data.pieces.assign(self.typed.begin(), self.typed.end());
  data.pieces.insert(data.pieces.end(), piece.begin(), piece.end());
}

void Reader::report_tensor_fault(const Tensor& self, const TypedData& data, bool is_segment, GraphId graph,
                                 NodeId node) {
  if (!builder_.keeps_faults(graph)) return;
  const std::string_view name = model().text(self.name);
  std::optional<std::string> problem;
  if (is_segment) {
    problem = fmt::format("tensor `{}` is stored in segments, which nothing supports", name);
  } else if (data.second_field != 0) {
    problem = fmt::format("tensor `{}` has two data fields: TensorProto fields {} and {}", name,
                          wire::number_of(self.typed_field), data.second_field);
  } else {
    problem = tensor_fault(self, name, weights_);
  }
  if (problem)
    fault({.kind = StructureFault::Kind::kMalformedTensor,
           .graph = graph,
           .node = node,
           .tensor = &self,
           .message = *std::move(problem),
           .position = self.position});
}

const SparseTensor* Reader::sparse_tensor(std::string_view message, GraphId graph, NodeId node, bool* has_metadata) {
  SparseTensor& self = *builder_.new_sparse_tensor();
  budget_.charge(sizeof(SparseTensor));
  std::vector<std::int64_t> dims;
  for (Cursor fields = cursor(message); fields.next();) {
    switch (fields.field()) {
      case wire::kSparseValues:
        if (self.values != nullptr) fields.fail("a second `SparseTensorProto.values`");
        self.values = tensor(fields.view("SparseTensorProto.values"), graph, node, has_metadata);
        break;
      case wire::kSparseIndices:
        if (self.indices != nullptr) fields.fail("a second `SparseTensorProto.indices`");
        self.indices = tensor(fields.view("SparseTensorProto.indices"), graph, node);
        break;
      case wire::kSparseDims:
        append_integers(fields, "SparseTensorProto.dims", dims);
        break;
      default:
        fields.skip();
        break;
    }
  }
  budget_.charge(8 * dims.size());
  self.dims = builder_.keep_ints(dims);
  if (!builder_.keeps_faults(graph)) return &self;
  const auto report = [&](std::string problem) {
    fault({.kind = StructureFault::Kind::kMalformedTensor,
           .graph = graph,
           .node = node,
           .tensor = self.values,
           .message = std::move(problem),
           .position = at(message)});
  };
  if (self.values == nullptr || self.indices == nullptr) {
    report(fmt::format("a sparse tensor has no {}", self.values == nullptr ? "values" : "indices"));
  } else if (!tensor_fault(*self.values, "", weights_) && !tensor_fault(*self.indices, "", weights_)) {
    if (auto problem = sparse_fault(self, model().text(self.values->name), weights_)) report(*std::move(problem));
  }
  return &self;
}

}  // namespace tensorlint::onnx
