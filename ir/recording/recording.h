#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/model.h"
#include "ir/graph/model_builder.h"

namespace tensorlint {

/// A Model that grows call by call, whoever makes the calls. Values are defined before they are used and every name is
/// given once, so nothing has to be resolved later, and ids stay what they are.
///
/// What is added belongs to the innermost graph that is open: the main graph, a body or a function. A body is recorded
/// before the call that runs it: its nodes come before that node, between nodes of the graph around it. Misuse is a
/// fault of the program: it is asserted.
class Recording {
 public:
  struct Head {
    std::string_view graph_name = "main";
    std::int64_t ir_version = 10;
    std::string_view producer_name{}, producer_version{};
  };
  struct Call {
    std::string_view domain{};  ///< as model.h has it: ONNX's own is empty
    std::string_view op{};
    std::string_view overload{};
    NameId name = NameId::kEmpty;             ///< of the node
    std::span<const ValueId> operands{};      ///< visible ones; kAbsent: left out
    std::span<const NameId> results{};        ///< not taken; kEmpty: left out
    std::span<const Attribute> attributes{};  ///< lists and texts are copied; graphs are bodies that no call has yet
  };
  struct Function {
    std::string_view domain, name, overload{};
    std::span<const std::string_view> attribute_names{};  ///< without default
    std::span<const Attribute> attribute_defaults{};
    std::vector<OpsetImport> opset_imports{};  ///< names by intern()
  };

  explicit Recording(const Head& head);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Its address stays the same.
  const Model& model() const { return model_; }
  /// Memory for what calls refer to: tensors, types, lists.
  ModelBuilder& memory() { return parts_; }

  /// A domain is imported before the first call of one of its operators.
  void import(std::string_view domain, std::int64_t version);
  /// The number of a text, which is copied where it is new.
  NameId intern(std::string_view text);
  /// Some value or body has the name.
  bool is_taken(NameId name) const { return next_number(name) != 0; }
  /// `base`, or the first of `base_1`, `base_2`, ... that is not taken. It is taken by what it is given to.
  NameId unused_name(std::string_view base);

  /// The innermost graph that is open.
  GraphId current() const { return open_.back(); }
  bool is_visible(ValueId value) const;

  /// Of the innermost graph. `initial`: the default of an input.
  ValueId add_input(NameId name, const TypeDecl* type, const Tensor* initial = nullptr);
  /// Of the innermost graph, or one around it.
  ValueId add_constant(NameId name, const Tensor* tensor, const SparseTensor* sparse = nullptr) {
    return add_constant(current(), name, tensor, sparse);
  }
  ValueId add_constant(GraphId graph, NameId name, const Tensor* tensor, const SparseTensor* sparse = nullptr);
  NodeId add_call(const Call& call);

  GraphId open_body(NameId name);
  /// Of the innermost body; outputs may be values of graphs around it.
  void close_body(std::span<const ValueId> outputs);
  /// Takes back a body for which there will be no call: the innermost one that is open, or one that is closed and after
  /// which nothing was recorded but constants. The next call gets the number of its first node, and its values are
  /// undefined.
  void abandon_body(GraphId body);

  /// A function that later calls find by its name. It sees nothing but what it defines.
  GraphId open_function(const Function& function);
  void close_function(std::span<const ValueId> outputs);

  /// Of the main graph.
  void add_output(ValueId value);
  void rename(ValueId value, NameId name);
  void declare(ValueId value, const TypeDecl* type);
  void set_provenance(std::unique_ptr<Provenance> provenance) { model_.provenance = std::move(provenance); }

 private:
  Graph& graph(GraphId id) { return model_.graphs[id]; }
  Value& value(ValueId id) { return model_.values[id]; }
  /// Names of a function are its own.
  std::vector<std::uint32_t>& numbers() { return is_in_function_ ? function_numbers_ : next_numbers_; }
  std::uint32_t next_number(NameId name) const {
    const std::vector<std::uint32_t>& numbers = is_in_function_ ? function_numbers_ : next_numbers_;
    const auto number = static_cast<std::size_t>(name);
    return number < numbers.size() ? numbers[number] : 0;
  }
  void take(NameId name);
  void resolve(Operator& op, GraphId caller) const;
  Attribute kept(const Attribute& attribute);
  void close(std::span<const ValueId> outputs);

  ModelBuilder parts_;
  Model& model_;
  std::vector<GraphId> open_;
  std::vector<std::uint32_t> next_numbers_;      // by name: 0 where it is not taken, else what unused_name tries next
  std::vector<std::uint32_t> function_numbers_;  // the same of the function that is open
  bool is_in_function_ = false;
  std::vector<NameId> operand_names_;  // scratch
  std::vector<Attribute> attributes_;  // scratch
  std::string text_;                   // scratch
};

}  // namespace tensorlint
