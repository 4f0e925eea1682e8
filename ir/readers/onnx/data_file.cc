#include "ir/readers/onnx/data_file.h"

#include <fmt/format.h>

#include <protozero/pbf_writer.hpp>
#include <utility>

#include "ir/protobuf/onnx_fields.h"
#include "ir/readers/onnx/memory_budget.h"
#include "ir/readers/onnx/reader.h"
#include "ir/readers/onnx/wire.h"

namespace tensorlint {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::int64_t kIrVersion = 10;
// onnx.SequenceProto and OptionalProto: elem_type, then one field for each kind of value.
constexpr std::uint32_t kName = 1, kElementKind = 2, kTensors = 3, kSequences = 5, kOptionals = 7;

/// Those of the list are the fields of the kinds 1 to 5, in this order.
constexpr std::uint32_t kFieldOfKind = 2;

/// What an element takes until it is a value, its place in a list that grows included: bounded as that of models.
constexpr std::uint64_t kElementCost = 3 * sizeof(ValueMessage) + 256;

ValueMessage read(onnx::Cursor fields, std::string_view message, TypeKind kind, int depth, onnx::MemoryBudget& budget) {
  ValueMessage value{.kind = kind, .tensor = {}, .elements = {}};
  if (kind == TypeKind::kTensor) {
    value.tensor = message;
    return value;
  }
  if (depth == kMaxDepth) fields.fail("sequences and optionals are nested too deep");
  std::int32_t element_kind = 0;
  std::uint32_t element_field = 0;
  while (fields.next()) {
    TypeKind element = TypeKind::kNone;
    switch (fields.field()) {
      case kElementKind:
        element_kind = fields.integer32("elem_type");
        continue;
      case kTensors:
        element = TypeKind::kTensor;
        break;
      case kSequences:
        element = TypeKind::kSequence;
        break;
      case kOptionals:
        element = TypeKind::kOptional;
        break;
      case kName:
        fields.view("name");
        continue;
      default:
        fields.fail("sparse tensors and maps are not read from files");
    }
    if (element_field != 0 && (element_field != fields.field() || kind == TypeKind::kOptional))
      fields.fail(kind == TypeKind::kOptional ? "an optional has two values" : "a sequence has elements of two kinds");
    element_field = fields.field();
    const std::string_view part = fields.view("value");
    budget.charge(kElementCost);
    if (budget.is_exceeded(0))
      fields.fail("too many tiny elements: they would take 36 bytes of memory for each of its bytes");
    value.elements.push_back(read(fields.inside(part), part, element, depth + 1, budget));
  }
  constexpr std::int32_t kLastKind = 5;
  if (element_kind < 0 || element_kind > kLastKind)
    throw onnx::WireFault{fmt::format("unknown `elem_type` {}", element_kind)};
  if (element_field != 0 && static_cast<std::int64_t>(element_kind) + kFieldOfKind != element_field)
    throw onnx::WireFault{
        fmt::format("`elem_type` is {}, that of its values is {}", element_kind, element_field - kFieldOfKind)};
  return value;
}

}  // namespace

Result<Model> read_tensor_message(std::string_view message, std::string path) {
  auto bytes = std::make_shared<std::string>();
  {
    constexpr std::size_t kAround = 64;
    bytes->reserve(message.size() + kAround);
    protozero::pbf_writer model(*bytes);
    model.add_int64(wire::kModelIrVersion, kIrVersion);
    protozero::pbf_writer graph(model, wire::kModelGraph);
    protozero::pbf_writer tensor(graph, wire::kGraphInitializer);
    tensor.add_string(wire::kTensorName, "value");  // for those without one: a later one counts
    bytes->append(message);
  }
  const std::string_view view = *bytes;
  Result<Model> read = read_onnx_bytes(view, std::move(path), std::move(bytes));
  if (!read) return read;
  for (const StructureFault& fault : read->faults)
    if (fault.kind == StructureFault::Kind::kMalformedTensor) return Error{fault.message, {}};
  return read;
}

Result<ValueMessage> read_value_message(std::string_view message, TypeKind kind) {
  try {
    onnx::MemoryBudget budget;
    budget.pay(message.size());
    return read(onnx::Cursor(message, message.data()), message, kind, 0, budget);
  } catch (const onnx::WireFault& fault) {
    return Error{fmt::format("not a value: {}", fault.message), {}};
  }
}

}  // namespace tensorlint
