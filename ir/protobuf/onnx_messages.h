#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "ir/protobuf/onnx_fields.h"

namespace tensorlint::wire {

/// Messages of onnx.proto (IR version 14) that stand in others. kPlain: any of those that have none in them.
enum class MessageType : std::uint8_t {
  kPlain,
  kModel,
  kTrainingInfo,
  kFunction,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparseTensor,
  kValueInfo,
  kType,
  kTypeOfTensor,
  kTypeOfElements,
  kTypeOfMap,
  kShape,
  kDimension,
  kAnnotation,
  kDeviceConfiguration,
  kShardingSpec,
  kShardedDim,
  kDeviceGroup,
};

/// How the numbers of a repeated field stand one after the other.
enum class Packing : std::uint8_t { kVarints, kFixed32, kFixed64 };

namespace messages {

struct Inner {
  MessageType message;
  std::uint32_t field;
  MessageType of;
};

using enum MessageType;
inline constexpr Inner kInner[] = {
    {kModel, kModelGraph, kGraph},
    {kModel, kModelOpsetImport, kPlain},
    {kModel, kModelMetadata, kPlain},
    {kModel, kModelTrainingInfo, kTrainingInfo},
    {kModel, kModelFunction, kFunction},
    {kModel, kModelConfiguration, kPlain},
    {kFunction, kFunctionNode, kNode},
    {kFunction, kFunctionOpsetImport, kPlain},
    {kFunction, kFunctionAttributeProto, kAttribute},
    {kFunction, kFunctionValueInfo, kValueInfo},
    {kFunction, kFunctionMetadata, kPlain},
    {kTrainingInfo, kTrainingInitialization, kGraph},
    {kTrainingInfo, kTrainingAlgorithm, kGraph},
    {kTrainingInfo, kTrainingInitializationBinding, kPlain},
    {kTrainingInfo, kTrainingUpdateBinding, kPlain},
    {kGraph, kGraphNode, kNode},
    {kGraph, kGraphInitializer, kTensor},
    {kGraph, kGraphInput, kValueInfo},
    {kGraph, kGraphOutput, kValueInfo},
    {kGraph, kGraphValueInfo, kValueInfo},
    {kGraph, kGraphQuantizationAnnotation, kAnnotation},
    {kGraph, kGraphSparseInitializer, kSparseTensor},
    {kGraph, kGraphMetadata, kPlain},
    {kNode, kNodeAttribute, kAttribute},
    {kNode, kNodeMetadata, kPlain},
    {kNode, kNodeDeviceConfigurations, kDeviceConfiguration},
    {kAttribute, kAttributeTensor, kTensor},
    {kAttribute, kAttributeGraph, kGraph},
    {kAttribute, kAttributeTensors, kTensor},
    {kAttribute, kAttributeGraphs, kGraph},
    {kAttribute, kAttributeTypeProto, kType},
    {kAttribute, kAttributeTypeProtos, kType},
    {kAttribute, kAttributeSparseTensor, kSparseTensor},
    {kAttribute, kAttributeSparseTensors, kSparseTensor},
    {kTensor, kTensorSegment, kPlain},
    {kTensor, kTensorExternalData, kPlain},
    {kTensor, kTensorMetadata, kPlain},
    {kSparseTensor, kSparseValues, kTensor},
    {kSparseTensor, kSparseIndices, kTensor},
    {kValueInfo, kValueInfoType, kType},
    {kValueInfo, kValueInfoMetadata, kPlain},
    {kType, kTypeTensor, kTypeOfTensor},
    {kType, kTypeSequence, kTypeOfElements},
    {kType, kTypeMap, kTypeOfMap},
    {kType, kTypeOpaque, kPlain},
    {kType, kTypeSparseTensor, kTypeOfTensor},
    {kType, kTypeOptional, kTypeOfElements},
    {kTypeOfTensor, kTensorTypeShape, kShape},
    {kTypeOfElements, kContainerElement, kType},
    {kTypeOfMap, kMapValue, kType},
    {kShape, kShapeDim, kDimension},
    {kAnnotation, kAnnotationParameters, kPlain},
    {kDeviceConfiguration, kNodeDeviceConfigurationShardingSpec, kShardingSpec},
    {kShardingSpec, kShardingSpecGroups, kDeviceGroup},
    {kShardingSpec, kShardingSpecDims, kShardedDim},
    {kShardedDim, kShardedDimSimple, kPlain},
};

struct PackedField {
  MessageType message;
  std::uint32_t field;
  Packing packing;
};

using enum Packing;
inline constexpr PackedField kPackedFields[] = {
    {kAttribute, kAttributeFloats, kFixed32}, {kAttribute, kAttributeInts, kVarints},
    {kTensor, kTensorDims, kVarints},         {kTensor, kTensorFloatData, kFixed32},
    {kTensor, kTensorInt32Data, kVarints},    {kTensor, kTensorInt64Data, kVarints},
    {kTensor, kTensorDoubleData, kFixed64},   {kTensor, kTensorUint64Data, kVarints},
    {kSparseTensor, kSparseDims, kVarints},   {kShardingSpec, kShardingSpecDevice, kVarints},
    {kDeviceGroup, kGroupValue, kVarints},
};

}  // namespace messages

/// The type of the message in a field of a message; nothing where the field holds none.
inline std::optional<MessageType> message_in(MessageType message, std::uint32_t field) {
  const auto* const inner = std::ranges::find_if(
      messages::kInner, [&](const messages::Inner& each) { return each.message == message && each.field == field; });
  return inner == std::end(messages::kInner) ? std::nullopt : std::optional(inner->of);
}

/// How the numbers of a field of a message are packed; nothing where it is no list of numbers.
inline std::optional<Packing> packing_in(MessageType message, std::uint32_t field) {
  const auto* const packed = std::ranges::find_if(messages::kPackedFields, [&](const messages::PackedField& each) {
    return each.message == message && each.field == field;
  });
  return packed == std::end(messages::kPackedFields) ? std::nullopt : std::optional(packed->packing);
}

}  // namespace tensorlint::wire
