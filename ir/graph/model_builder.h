#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/model.h"

namespace tensorlint {

/// Interns names and operators, resolves names to values and records structure faults: the one way readers make models.
/// Usage: begin_graph / add_* in file order for each graph (a subgraph may be begun any time after its owner node),
/// then finish(). Operand names are resolved in finish(): first in the node's own graph, then in the graphs around it.
class ModelBuilder {
 public:
  ModelBuilder();
  ~ModelBuilder();

  Model& model() { return model_; }
  NameId name(std::string_view text);  ///< `text` must outlive the model (file bytes or copy())
  NameId name(std::string_view text, std::uint32_t hash) {
    return static_cast<NameId>(model_.names.intern(text, hash));
  }

  /// A name that nothing is looked up by (a node's): its number is its own, Model::names does not find it.
  NameId label(std::string_view text);
  /// Room for `factor` times what has been added since the last begin_nodes, in one allocation an array. The factor
  /// must come from bytes in all over bytes read, never from a count that the file claims: memory then follows the
  /// bytes.
  void reserve(double factor);

  /// Arena memory that lives as long as the model.
  std::string_view copy(std::string_view text);
  template <typename T>
  std::span<const T> keep(std::vector<T> items) {
    auto owner = std::make_shared<const std::vector<T>>(std::move(items));
    const std::span<const T> view(*owner);
    model_.storage.push_back(std::move(owner));
    return view;
  }
  Tensor* new_tensor();
  SparseTensor* new_sparse_tensor();
  TypeDecl* new_type();
  /// Small arrays without an allocation each; valid as long as the model.
  std::span<const std::int64_t> keep_ints(std::span<const std::int64_t> ints);
  std::span<const float> keep_floats(std::span<const float> floats);
  std::span<const std::string_view> keep_strings(std::span<const std::string_view> strings);
  std::span<const DimDecl> keep_dims(std::span<const DimDecl> dims);

  /// [0] is the model's own list and must be added first.
  std::uint32_t add_opset_imports(std::vector<OpsetImport> imports);
  GraphId add_graph(Graph graph);  ///< kind, names, parent, owner, attribute, opsets, position filled in
  /// Graph 'id' receives nodes from now on; its nodes must be added without those of another graph in between.
  void begin_nodes(GraphId id);
  ValueId add_input(GraphId graph, NameId name, const TypeDecl* type, Position position);
  ValueId add_initializer(GraphId graph, NameId name, const Tensor* tensor, const SparseTensor* sparse);
  void add_output(GraphId graph, NameId name, const TypeDecl* type);
  void add_value_info(GraphId graph, NameId name, const TypeDecl* type);
  /// Attributes are moved from; operands and results are names, kEmpty for an absent one.
  NodeId add_node(GraphId graph, NameId domain, NameId op, NameId overload, NameId name,
                  std::span<const NameId> operands, std::span<const NameId> results, std::vector<Attribute>& attributes,
                  Position position, std::uint32_t byte_length);
  void fault(StructureFault fault);  ///< dropped after 1,000 of one graph
  /// Another fault of the graph is still kept: else its message need not be made.
  bool keeps_faults(GraphId graph) const;

  /// Takes back all nodes from number `first` on; their values stay, and no graph may have them.
  void drop_nodes(std::size_t first);

  /// What faults and undefined values take, spare room of growing arrays included: nobody else can count these.
  std::uint64_t memory_made() const { return memory_made_; }

  /// Resolves operands, outputs and functions and hands the model over. Functions may be added in any order before.
  Model finish();
  /// The same where memory_made() stays within `most_memory`; nullopt where it does not.
  std::optional<Model> finish(std::uint64_t most_memory);

 private:
  struct Impl;
  struct FunctionIndex;

  ValueId resolve(GraphId graph, NameId name);
  void resolve_operands();
  void apply_declarations();
  FunctionIndex index_functions();
  void resolve_operators(const FunctionIndex& functions);

  Model model_;
  std::unique_ptr<Impl> impl_;
  std::uint64_t memory_made_ = 0, most_memory_ = std::numeric_limits<std::uint64_t>::max();
};

/// What an operator of a model means, where its domain is imported in this version (0: not at all) and the model
/// defines `function` for it (kNone: nothing).
void resolve_operator(const Model& model, Operator& op, std::int64_t version, GraphId function);

}  // namespace tensorlint
