#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/position.h"
#include "ir/constants/attribute.h"
#include "ir/constants/tensor.h"
#include "ir/schema/schema.h"
#include "ir/types/ids.h"
#include "ir/types/type_decl.h"

// What a Model is made of.

namespace tensorlint {

/// What a node calls: (domain, name, overload) under the opset imports of its graph. Shared by all such nodes.
struct Operator {
  NameId domain = NameId::kEmpty;  ///< normalised: "ai.onnx" is kEmpty
  NameId name = NameId::kEmpty;
  NameId overload = NameId::kEmpty;
  std::int64_t opset = 0;             ///< 0: the domain is not imported
  const OpSchema* schema = nullptr;   ///< null: not an operator that the table knows at this opset
  GraphId function = GraphId::kNone;  ///< the model-local function it names; it wins over a schema
};

struct Node {
  OperatorId op{};
  NameId name = NameId::kEmpty;
  GraphId graph = GraphId::kMain;
  std::uint32_t first_operand = 0, first_result = 0, first_attribute = 0;
  std::uint32_t operand_count = 0, result_count = 0, attribute_count = 0;
  Position position;
  std::uint32_t byte_length = 0;  ///< of the NodeProto in a binary file; 0 in text
};

/// How a value comes to be.
enum class ValueOrigin : std::uint8_t {
  kUndefined,  ///< a name that nothing defines
  kInput,      ///< graph or function input (an initializer of the same name is its default)
  kInitializer,
  kNode,
};

struct Value {
  NameId name = NameId::kEmpty;
  GraphId graph = GraphId::kMain;
  ValueOrigin origin = ValueOrigin::kUndefined;
  bool is_output = false;           ///< of its graph
  std::uint32_t result_index = 0;   ///< kNode: which result; kInput: which input
  NodeId producer = NodeId::kNone;  ///< kNode
  const TypeDecl* type = nullptr;   ///< declared by input, output or value_info
  const Tensor* initializer = nullptr;
  const SparseTensor* sparse_initializer = nullptr;
};

enum class GraphKind : std::uint8_t { kMain, kSubgraph, kFunction };

struct Graph {
  GraphKind kind = GraphKind::kMain;
  NameId name = NameId::kEmpty;                  ///< functions: the function's name
  NameId domain = NameId::kEmpty;                ///< functions
  NameId overload = NameId::kEmpty;              ///< functions
  GraphId parent = GraphId::kNone;               ///< subgraphs: the graph of the node that holds it
  NodeId owner = NodeId::kNone;                  ///< subgraphs: that node
  std::string_view attribute{};                  ///< subgraphs: the attribute that holds it (body, then_branch, ...)
  std::uint32_t first_node = 0, node_count = 0;  ///< nodes of one graph are consecutive, in file order
  std::vector<ValueId> inputs{};                 ///< without initializers that are no inputs
  std::vector<ValueId> outputs{};
  std::vector<ValueId> initializers{};
  std::vector<std::string_view> attribute_names{};  ///< functions: without default
  std::vector<Attribute> attribute_defaults{};      ///< functions: with default
  std::uint32_t opsets = 0;                         ///< index into Model::opset_imports
  Position position;
  std::uint32_t byte_length = 0;  ///< of the GraphProto or FunctionProto in a binary file; 0 in text
  /// Declared types of outputs that are values of an outer graph, by output; empty where no output is such.
  std::vector<const TypeDecl*> outer_output_types{};
};

struct OpsetImport {
  NameId domain = NameId::kEmpty;  ///< normalised
  std::int64_t version = 0;
};

/// A `#` comment of a model in text, without the mark and the blanks around it.
struct Comment {
  std::uint32_t line = 0;  ///< from 1
  std::string_view text;
  bool alone = false;  ///< nothing but blanks stands before it on its line
};

/// What a graph already shows to be wrong when it is read: reported by rules, so that reading itself never stops there.
struct StructureFault {
  enum class Kind : std::uint8_t {
    kDuplicateDefinition,  ///< `value` is defined again by `node` (or as input, initializer)
    kDuplicateFunction,
    kDuplicateOpsetImport,
    kMissingOpsetImport,  ///< `node` uses a domain that is not imported
    kMalformedTensor,     ///< `tensor`: data does not fit dims and dtype, unknown dtype, two data fields, ...
    kMalformedType,
    kMalformedAttribute,  ///< `node`: kind and value disagree, no name, twice the same name, ...
    kEmptyName,
    kBrokenExternalData,  ///< `tensor`: its file or range; found by check_external_data, never while reading
  };
  Kind kind;
  GraphId graph = GraphId::kMain;
  NodeId node = NodeId::kNone;
  ValueId value = ValueId::kAbsent;
  const Tensor* tensor = nullptr;
  std::string message{};  ///< the situation, lower case, names not yet escaped
  Position position;
};

}  // namespace tensorlint
