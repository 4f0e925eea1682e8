#pragma once

#include <cstdint>

#include "ir/constants/tensor.h"

namespace tensorlint::wire {

// Field numbers of onnx.proto (IR version 14): those that readers and writers know.
inline constexpr std::uint32_t kModelIrVersion = 1, kModelProducerName = 2, kModelProducerVersion = 3, kModelGraph = 7,
                               kModelOpsetImport = 8, kModelMetadata = 14, kModelTrainingInfo = 20, kModelFunction = 25,
                               kModelConfiguration = 26;
inline constexpr std::uint32_t kTrainingInitialization = 1, kTrainingAlgorithm = 2, kTrainingInitializationBinding = 3,
                               kTrainingUpdateBinding = 4;
inline constexpr std::uint32_t kAnnotationParameters = 2;
inline constexpr std::uint32_t kOpsetDomain = 1, kOpsetVersion = 2;
inline constexpr std::uint32_t kEntryKey = 1, kEntryValue = 2;
inline constexpr std::uint32_t kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5, kGraphInput = 11,
                               kGraphOutput = 12, kGraphValueInfo = 13, kGraphQuantizationAnnotation = 14,
                               kGraphSparseInitializer = 15, kGraphMetadata = 16;
inline constexpr std::uint32_t kFunctionName = 1, kFunctionInput = 4, kFunctionOutput = 5, kFunctionAttribute = 6,
                               kFunctionNode = 7, kFunctionOpsetImport = 9, kFunctionDomain = 10,
                               kFunctionAttributeProto = 11, kFunctionValueInfo = 12, kFunctionOverload = 13,
                               kFunctionMetadata = 14;
inline constexpr std::uint32_t kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeOpType = 4, kNodeAttribute = 5,
                               kNodeDocString = 6, kNodeDomain = 7, kNodeOverload = 8, kNodeMetadata = 9,
                               kNodeDeviceConfigurations = 10;
inline constexpr std::uint32_t kAttributeName = 1, kAttributeFloat = 2, kAttributeInt = 3, kAttributeString = 4,
                               kAttributeTensor = 5, kAttributeGraph = 6, kAttributeFloats = 7, kAttributeInts = 8,
                               kAttributeStrings = 9, kAttributeTensors = 10, kAttributeGraphs = 11,
                               kAttributeTypeProto = 14, kAttributeTypeProtos = 15, kAttributeType = 20,
                               kAttributeReference = 21, kAttributeSparseTensor = 22, kAttributeSparseTensors = 23;
inline constexpr std::uint32_t kTensorDims = 1, kTensorDataType = 2, kTensorSegment = 3, kTensorFloatData = 4,
                               kTensorInt32Data = 5, kTensorStringData = 6, kTensorInt64Data = 7, kTensorName = 8,
                               kTensorRawData = 9, kTensorDoubleData = 10, kTensorUint64Data = 11,
                               kTensorExternalData = 13, kTensorDataLocation = 14, kTensorMetadata = 16;
inline constexpr std::uint32_t kSparseValues = 1, kSparseIndices = 2, kSparseDims = 3;
inline constexpr std::uint32_t kValueInfoName = 1, kValueInfoType = 2, kValueInfoMetadata = 4;
inline constexpr std::uint32_t kTypeTensor = 1, kTypeSequence = 4, kTypeMap = 5, kTypeOpaque = 7, kTypeSparseTensor = 8,
                               kTypeOptional = 9;
inline constexpr std::uint32_t kTensorTypeElement = 1, kTensorTypeShape = 2, kContainerElement = 1, kMapKey = 1,
                               kMapValue = 2;
inline constexpr std::uint32_t kDeviceConfigurationName = 1, kDeviceConfigurationDeviceCount = 2,
                               kDeviceConfigurationDevice = 3;
inline constexpr std::uint32_t kNodeDeviceConfigurationId = 1, kNodeDeviceConfigurationShardingSpec = 2;
inline constexpr std::uint32_t kShardingSpecTensor = 1, kShardingSpecDevice = 2, kShardingSpecGroups = 3,
                               kShardingSpecDims = 4;
inline constexpr std::uint32_t kShardedDimAxis = 1, kShardedDimSimple = 2, kSimpleShardedDimCount = 3;
inline constexpr std::uint32_t kGroupKey = 1, kGroupValue = 2;
inline constexpr std::uint32_t kShapeDim = 1, kDimValue = 1, kDimParam = 2;

/// The field of onnx.TensorProto; 0 for kNone.
constexpr std::uint32_t number_of(TypedField field) {
  constexpr std::uint32_t kNumbers[] = {
      0, kTensorFloatData, kTensorInt32Data, kTensorInt64Data, kTensorDoubleData, kTensorUint64Data};
  return kNumbers[static_cast<std::size_t>(field)];
}

}  // namespace tensorlint::wire
