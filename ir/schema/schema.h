#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/types/dtype.h"

namespace tensorlint {

/// Kinds of ONNX attributes. Values are those of onnx.AttributeProto.AttributeType.
enum class AttributeKind : std::uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kTypeProto = 13,
  kTypeProtos = 14,
};

std::string_view to_text(AttributeKind kind);

enum class FormalOption : std::uint8_t { kSingle, kOptional, kVariadic };

/// The types a formal parameter may have, as sets of element types per container.
struct TypeSet {
  DTypeSet tensor;
  DTypeSet sequence;           ///< seq(tensor(T))
  DTypeSet optional_tensor;    ///< optional(tensor(T))
  DTypeSet optional_sequence;  ///< optional(seq(tensor(T)))
  DTypeSet sparse_tensor;
  bool map = false;           ///< some map(K, V)
  bool sequence_map = false;  ///< some seq(map(K, V))
};

struct TypeConstraint {
  std::string_view name;  ///< "T", "tensor(int64)" for a parameter of one fixed type
  TypeSet allowed;
};

struct FormalParameter {
  std::string_view name;
  std::uint16_t type;  ///< index into OpSchema::types
  FormalOption option;
  bool homogeneous;  ///< variadic only: all actual operands share one type
};

struct FormalAttribute {
  std::string_view name;
  AttributeKind kind;
  bool required;
  bool has_default;
  std::string_view default_value;  ///< number or string as text; lists as "1,2"; empty without a default
};

/// One (operator, version) pair of ONNX. Everything has static storage duration.
struct OpSchema {
  std::string_view domain;  ///< "" for ai.onnx
  std::string_view name;
  int since_version;
  bool deprecated;
  std::uint16_t min_inputs, max_inputs;  ///< max 65535: unbounded
  std::uint16_t min_outputs, max_outputs;
  std::span<const FormalParameter> inputs;
  std::span<const FormalParameter> outputs;
  std::span<const FormalAttribute> attributes;
  std::span<const TypeConstraint> types;
  std::string_view function_body;  ///< serialised onnx.FunctionProto where ONNX defines a static body, else empty
  int function_opset;              ///< the ai.onnx opset that body is written in; 0 without a body
  std::uint16_t index;             ///< position in the table: dense, stable within one build
  /// Other releases of the runtime that the domain belongs to know more attributes, trailing operands, results and
  /// types.
  bool open = false;

  const FormalAttribute* attribute(std::string_view name) const;
  int input_index(std::string_view name) const;  ///< -1 when there is none
};

/// The newest opset of a domain that the table knows.
struct DomainOpset {
  std::string_view domain;
  int newest;
};

/// "ai.onnx" and "" are one domain: the latter.
std::string_view normalised_domain(std::string_view domain);

/// All domains of the table, sorted by name.
std::span<const DomainOpset> known_domains();

/// All schemas, sorted by (domain, name, since_version).
std::span<const OpSchema> all_schemas();

/// The schema in force for `name` at `opset` of `domain` ("" and "ai.onnx" are one); nullptr when there is none.
/// A deprecated operator is returned as such (`deprecated`), so that callers can tell it from an unknown one.
const OpSchema* find_schema(std::string_view domain, std::string_view name, int opset);

/// Some version of the operator exists in the domain, whatever the opset; the oldest, for messages. nullptr when none.
const OpSchema* find_any_version(std::string_view domain, std::string_view name);

/// The newest opset of `domain` that the table knows; 0 for a domain that it does not know.
int newest_opset(std::string_view domain);

}  // namespace tensorlint
