#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_vector.h"
#include "passes/dataflow/analysis.h"
#include "passes/losses/expressions.h"
#include "passes/losses/formula.h"
#include "passes/losses/loss_sites.h"
#include "runtime/executor/kernel_call.h"
#include "runtime/executor/readers.h"

namespace tensorlint::runtime {

/// Which nodes a kernel computes, and why the others are left to the interpreter. Facts of `analysis` are those of one
/// run, joined over all visits of a body or function: a value whose extents they leave open is not for kernels.
///   kernel_registry.cc    operators, versions and dtypes that have a kernel at all
///   kernel_matcher.cc     the order of trials, and what a call may stand for
///   operator_calls.cc     one operator, one kernel
///   product_calls.cc      matrix products
///   attention_calls.cc    attention, and what exporters write out for it
///   window_calls.cc       convolutions and pools
///   normalization_calls.cc  normalizations
///   domain_calls.cc       losses of our own domain
///   pointwise_calls.cc    losses of elements, by what they compute
///   class_calls.cc        losses over classes that exporters write out
///   movement_calls.cc     what moves elements as they are
///   elementwise_calls.cc  chains of element by element operators
class KernelMatcher {
 public:
  /// `shared_bytes`: what a block of a kernel has of shared memory. `places`: a number for where the model places the
  /// results of each node; no call is of nodes with different ones. Empty: it places none.
  KernelMatcher(const dataflow::Analysis& analysis, const Readers& readers, std::uint64_t shared_bytes,
                const IdVector<NodeId, std::size_t>& places);

  /// No node is in two of them. By `KernelCall::node`.
  std::map<NodeId, KernelCall> find();
  /// Why a node was left to the interpreter; empty where there is nothing to say but that its operator has no kernel.
  std::string_view reason(NodeId node) const;

 private:
  using Opcode = ops::Opcode;
  using Nodes = std::vector<NodeId>;

  // ---- facts

  std::optional<DType> dtype(ValueId value) const;
  std::optional<Extents> extents(ValueId value) const;
  /// Each of them as a number; of no value there are none.
  bool knows_elements(ValueId value) const;
  static std::int64_t count(std::span<const std::int64_t> extents);
  /// The dtype is one of those that losses are computed in.
  static std::optional<kernels::Dtype> float_dtype(DType dtype);
  /// Every `period`-th element of what has the extents `whole` meets the same element of what has `part`.
  static std::optional<std::int64_t> period(const Extents& part, const Extents& whole);

  /// Something reads a result of the node after the first.
  bool needs_more_results(NodeId node) const;
  bool is_read(ValueId value) const { return readers_.is_output(value) || !readers_.of(value).empty(); }

  // ---- what a call stands for

  /// Takes what makes the call's results of `operands` into it: nodes of the formula, and others of which nothing else
  /// is made. False where one of the former has another reader, or computes in another dtype than `dtype`.
  bool take_nodes(std::span<const ValueId> operands, const std::set<NodeId>& formula, KernelCall& call);
  bool complete(KernelCall call, std::span<const ValueId> operands, const std::set<NodeId>& formula);
  /// No more calls are made: what Expressions says of the rest is cut off.
  bool is_spent();
  bool is_taken(NodeId node) const { return taken_[node]; }
  bool is_elsewhere(NodeId node, NodeId from) const;
  /// For certain: the interpreter says in what way.
  bool fails(NodeId node) const;
  /// By the registry of kernels; for a dtype that it lacks it leaves the node.
  bool is_registered(NodeId node);
  void leave(NodeId node, std::string reason);

  /// What comes after elements or rows that a kernel sums up.
  struct Tail {
    ValueId result = ValueId::kAbsent;
    Nodes nodes;
    bool is_reduced = false;
    bool is_negated = false;
    std::int64_t divisor = 1;  ///< the counts that were averaged over
  };
  /// All ends that sums, means, negations and changes of shape after `value` have, nearest first; `value` itself is the
  /// first one.
  std::vector<Tail> tails(ValueId value) const;

  // ---- operator_calls.cc

  void add_operator(NodeId node);
  void add_reduction(NodeId node, kernels::ReductionKind kind);
  void add_softmax(NodeId node, bool logarithmic);
  void add_class_operator(NodeId node, bool from_scores);

  // ---- product_calls.cc

  /// False where it is none of these operators.
  bool add_product(NodeId node, std::string_view name);
  void add_matmul(NodeId node);
  void add_gemm(NodeId node);
  void add_einsum(NodeId node);
  void add_matrix_product(NodeId node, std::string kernel, std::span<const ValueId> operands,
                          kernels::MatrixProduct request);

  // ---- attention_calls.cc

  struct StridedValue;
  struct WrittenAttention {
    kernels::Attention request;
    NodeId product = NodeId::kNone;  ///< of queries and keys
    ValueId mask = ValueId::kAbsent;
  };
  NodeId only_reader(ValueId value) const;
  std::optional<StridedValue> strided(ValueId value, std::set<NodeId>& formula, double* scale) const;
  bool is_of_product(ValueId value) const;
  bool read_scores(ValueId value, std::set<NodeId>& formula, WrittenAttention& found) const;
  NodeId read_weights(ValueId value, std::set<NodeId>& formula, kernels::Attention& request) const;
  bool add_written_attention(NodeId softmax);
  void add_attention(NodeId node);
  bool add_attention_call(ValueId result, std::vector<ValueId> operands, const kernels::Attention& request,
                          const std::set<NodeId>& formula);

  // ---- window_calls.cc

  /// False where it is none of these operators.
  bool add_window(NodeId node, std::string_view name);
  void add_convolution(NodeId node);
  void add_pool(NodeId node, bool maximum);
  void add_global_pool(NodeId node, kernels::ReductionKind kind, std::string kernel);
  /// The axes of `windows` over data [N, C, d...] with one or two spatial axes, as the interpreter reads them. False,
  /// and left with the reason, where there is no kernel for them.
  bool read_axes(NodeId node, const Extents& data, std::span<const std::int64_t> kernel, const Extents& result,
                 kernels::WindowAxis (&axes)[kernels::kWindowAxes]);

  // ---- normalization_calls.cc

  /// False where it is none of these operators.
  bool add_normalization(NodeId node, std::string_view name);
  void add_last_axes_normalization(NodeId node, kernels::NormalizationKind kind);
  void add_channel_normalization(NodeId node, kernels::NormalizationKind kind, bool has_groups);
  /// `operands`: those of the node that count; kAbsent among them is left out.
  void add_normalization_call(NodeId node, std::vector<ValueId> operands, kernels::Normalization request);

  // ---- domain_calls.cc

  void add_domain_loss(NodeId node);

  // ---- pointwise_calls.cc

  struct Pair;
  void add_pointwise(const losses::LossSite& site);
  bool add_elements(ValueId elements);
  bool add_pair(const losses::Formula& formula, ValueId elements, std::size_t prediction, std::size_t target);
  bool add_call(ValueId elements, const Pair& pair, const std::set<NodeId>& formula);

  // ---- class_calls.cc

  void add_classes(const losses::LossSite& site);
  bool add_gathered(NodeId gather);
  bool add_probabilities(NodeId product);
  /// Of scores with these extents, the classes along an axis; kind and averaging are the caller's.
  static kernels::ClassLoss class_loss(kernels::Dtype dtype, std::span<const std::int64_t> extents, std::size_t axis);

  // ---- elementwise_calls.cc

  /// An element by element operator as a function of the kernel.
  struct ElementNode {
    /// A value, or a number.
    struct Argument {
      ValueId value = ValueId::kAbsent;
      double number = 0;
    };

    NodeId node = NodeId::kNone;
    kernels::ElementOp op = kernels::ElementOp::kCast;
    std::vector<Argument> arguments;  ///< more than two of a function of two: one after the other
    double alpha = 0, beta = 0;
    unsigned classes = 0;  ///< bits of the classes that compute it
    unsigned as_root = 0;  ///< those that do so only where they end with it: the result is converted to its dtype
    unsigned as_leaf = 0;  ///< those that do so only where they begin with it: operands are converted from theirs

    std::size_t steps() const;
  };
  struct ElementProgram;
  enum class ElementClass : std::uint8_t { kFloat, kDouble, kInteger };
  /// Roots from the last node to the first, each with what comes before it as far as one call can take it.
  void add_elementwise();
  /// The node as an element function; null where it is none, or has no kernel, with the reason left. Until it is taken.
  const ElementNode* element_node(NodeId node);
  std::optional<ElementNode> describe(NodeId node);
  void describe_clip(std::int64_t opset, bool is_integer, ElementNode& element) const;
  static void describe_cast(DType from, DType to, ElementNode& element);
  void add_program(const ElementNode& root, ElementClass computed);
  std::optional<ElementProgram> program(const ElementNode& root, const std::set<NodeId>& members,
                                        ElementClass computed);
  bool add_steps(const ElementNode& element, const std::set<NodeId>& members, ElementProgram& program);
  std::optional<int> add_operand(ValueId value, double number, ElementProgram& program);
  /// The one element of a constant that a float64 holds exactly.
  std::optional<double> exact_number(ValueId value) const;
  /// Follows from constants alone: the interpreter keeps it from run to run.
  bool is_constant(ValueId value) const;
  void find_constants();
  /// An attribute is that of the call of the function that the node is in, which may be another one each time.
  bool refers_to_call(NodeId node) const;
  /// All elements are known, and `holds_for` each.
  template <typename Holds>
  bool all_integers(ValueId value, const Holds& holds_for) const;

  // ---- movement_calls.cc

  struct MovementNode;
  struct MovementOperator;
  void add_movement(NodeId node);
  bool complete_movement(const MovementNode& moved, std::string kernel, MovementCall request,
                         std::vector<ValueId> operands);
  bool complete_copy(const MovementNode& moved, std::string kernel, const kernels::Movement& copy);
  bool complete_scatter(const MovementNode& moved, std::string kernel, const kernels::Movement& m);
  // False where the node stays with the interpreter; then they may have left a reason.
  bool add_view(const MovementNode& moved);
  bool add_transpose(const MovementNode& moved);
  bool add_expand(const MovementNode& moved);
  bool add_tile(const MovementNode& moved);
  bool add_slice(const MovementNode& moved);
  bool add_concat(const MovementNode& moved);
  bool add_split(const MovementNode& moved);
  bool add_pad(const MovementNode& moved);
  bool add_permuted(const MovementNode& moved, const Extents& shape, std::span<const std::size_t> order);
  bool add_depth_to_space(const MovementNode& moved);
  bool add_space_to_depth(const MovementNode& moved);
  bool add_gather(const MovementNode& moved);
  bool add_gather_elements(const MovementNode& moved);
  bool add_gather_nd(const MovementNode& moved);
  bool add_scatter_elements(const MovementNode& moved);
  bool add_scatter_nd(const MovementNode& moved);
  bool add_fill(const MovementNode& moved);
  bool add_eye(const MovementNode& moved);
  bool add_one_hot(const MovementNode& moved);
  std::optional<Extents> indices_of(const MovementNode& moved, kernels::Movement& m);
  static void index_along(const Extents& data, std::size_t axis, const Extents& indices, kernels::Movement& m,
                          kernels::MovementSide& side);
  static bool index_tuples(const MovementNode& moved, std::size_t batch, const Extents& indices, kernels::Movement& m,
                           kernels::MovementSide& side);

  const dataflow::Analysis& analysis_;
  const Model& model_;
  const Readers& readers_;
  const std::uint64_t shared_bytes_;
  const IdVector<NodeId, std::size_t>& places_;
  const losses::Expressions expressions_;
  IdVector<NodeId, bool> taken_;
  IdVector<NodeId, bool> registered_;  ///< see is_registered
  std::map<NodeId, KernelCall> calls_;
  std::map<NodeId, std::string> reasons_;
  std::set<NodeId> constants_;                   ///< nodes of which all results follow from constants
  std::map<NodeId, ElementNode> element_nodes_;  ///< see element_node
  IdVector<NodeId, bool> is_described_;          ///< whether element_nodes_ has what there is to say
  int tries_left_ = 20'000;                      ///< pairs of values that are held against a loss
  bool is_cut_off_ = false;                      ///< see is_spent
};

}  // namespace tensorlint::runtime
