#pragma once

#include <algorithm>
#include <cstddef>
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

  bool has_default() const { return initializer != nullptr || sparse_initializer != nullptr; }
  /// An input of the main graph, without a default: each run brings it.
  bool is_given() const { return origin == ValueOrigin::kInput && graph == GraphId::kMain && !has_default(); }
};

/// The nodes of a graph, in order. They are consecutive in a model that was read; in one that grows, nodes of bodies
/// may lie between those of the graph around them.
class NodeList {
 public:
  class Iterator {
   public:
    using value_type = NodeId;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const NodeList* list, std::size_t at) : list_(list), at_(at) {}
    NodeId operator*() const { return (*list_)[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return {list_, at_++}; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    const NodeList* list_ = nullptr;
    std::size_t at_ = 0;
  };

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  NodeId operator[](std::size_t i) const {
    return scattered_.empty() ? static_cast<NodeId>(first_ + static_cast<std::uint32_t>(i)) : scattered_[i];
  }
  NodeId front() const { return (*this)[0]; }
  NodeId back() const { return (*this)[size_ - 1]; }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }
  /// The place of one of the nodes.
  std::size_t index_of(NodeId node) const {
    if (scattered_.empty()) return static_cast<std::uint32_t>(node) - first_;
    return static_cast<std::size_t>(std::ranges::lower_bound(scattered_, node) - scattered_.begin());
  }
  /// `node` comes after all nodes so far.
  void append(NodeId node) {
    if (size_ == 0) first_ = static_cast<std::uint32_t>(node);
    const bool follows = static_cast<std::uint32_t>(node) == first_ + size_;
    if (scattered_.empty() && !follows)
      for (std::size_t i = 0; i < size_; ++i) scattered_.push_back(static_cast<NodeId>(first_ + i));
    if (!scattered_.empty()) scattered_.push_back(node);
    ++size_;
  }

 private:
  std::uint32_t first_ = 0, size_ = 0;
  std::vector<NodeId> scattered_;  // empty where they are consecutive
};

enum class GraphKind : std::uint8_t { kMain, kSubgraph, kFunction };

struct Graph {
  GraphKind kind = GraphKind::kMain;
  NameId name = NameId::kEmpty;      ///< functions: the function's name
  NameId domain = NameId::kEmpty;    ///< functions
  NameId overload = NameId::kEmpty;  ///< functions
  GraphId parent = GraphId::kNone;   ///< subgraphs: the graph of the node that holds it
  NodeId owner = NodeId::kNone;      ///< subgraphs: that node
  std::string_view attribute{};      ///< subgraphs: the attribute that holds it (body, then_branch, ...)
  NodeList nodes{};                  ///< in file order
  std::vector<ValueId> inputs{};     ///< without initializers that are no inputs
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

  /// What a comment begins with that says how its line, or the one below it, is to be checked.
  static constexpr std::string_view kDirective = "tensorlint:";
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
