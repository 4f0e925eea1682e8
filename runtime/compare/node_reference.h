#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/id_vector.h"
#include "runtime/compare/contract.h"
#include "runtime/compare/floats.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/interpreter.h"

namespace tensorlint::compare {

/// Runs of the reference with rounding at random, by which the noise of a node or of a chain of nodes is known: their
/// deviations are what the roundings of an engine may do to a value.
inline constexpr int kReplicas = 8;
/// Before a node is called a bug: with so few degrees of freedom as 8, a deviation is found too small now and then.
inline constexpr int kManyReplicas = 32;
/// So many standard deviations are explained by rounding. Those of 32 replicas lie beyond it once in 10^6, were their
/// roundings no larger than an engine's; they are twice as large and more.
inline constexpr double kDeviations = 6;

/// What a node reads: what the other engine recorded, or what the reference computed instead of it.
struct Estimate {
  runtime::HostValue value;
  std::vector<runtime::HostValue> replicas;  ///< none: the other engine read this very value
};

/// What a node should have given for what it read.
struct Expected {
  runtime::HostValue value;    ///< in float64 where the operator allows it: not yet rounded to its dtype
  bool is_rounded = false;     ///< to its dtype, by the interpreter
  runtime::HostTensor own;     ///< float64: bound of the node's errors but for the rounding to the result's dtype
  runtime::HostTensor spread;  ///< float64: standard deviation of the replicas; of integers, where noise is at its most
  bool is_chosen = false;      ///< replicas have other shapes: elements decide about them
  double terms = 0;            ///< of its sums
  double systematic = 0;       ///< relative error that all elements may share
  bool is_random = false;      ///< the node draws: its results say nothing about another engine's
  std::vector<runtime::HostValue> replicas;
};

/// The value as the model declares it, rounded where it was computed in float64.
runtime::HostValue as_declared(const runtime::HostValue& value, DType dtype, runtime::Memory& memory);

/// How nodes are computed and how far their results may be off.
struct ReferenceOptions {
  int replicas = kReplicas;
  bool keeps_replicas = false;            ///< for nodes after it
  std::optional<DType> accumulates_in{};  ///< instead of what the contract says
  bool reads_unrounded = false;           ///< operands are computed, and not yet rounded to their dtypes
  bool in_any_order = false;              ///< the bound of the worst order of a sum, not of nearly all orders
  bool only_values = false;               ///< nothing of how far they may be off
  bool uses_grants = false;               ///< replicas round factors to tf32 where the contract grants that
};

/// Computes nodes of the main graph one by one from operands that it is given.
class NodeReference {
 public:
  /// `dtypes`: of the values in the model; kUndefined where that is not known. `allowances`: as of InterpreterOptions.
  /// All outlive this.
  NodeReference(const Model& model, runtime::Memory& memory, const Contract& contract,
                const IdVector<ValueId, DType>& dtypes, dataflow::Allowances* allowances);

  /// Values that the node reads: operands, and what its bodies capture.
  std::span<const ValueId> reads(NodeId node) const;
  using Inputs = std::map<ValueId, Estimate>;

  /// One for each result; an absent value where the node leaves a result out.
  Result<std::vector<Expected>> expect(NodeId node, const Inputs& inputs, const ReferenceOptions& options);
  runtime::Rounding rounding_of(NodeId node) const;
  /// What a node took when it was first computed without noise, as InterpreterOptions::work_limit counts it; 0 before.
  std::uint64_t work_of(NodeId node) const;
  /// Operands of a product of float32 matrices, or of an operator that has such in it; nothing for other nodes.
  std::vector<ValueId> float32_factors(NodeId node) const;

 private:
  using Results = std::vector<runtime::HostValue>;
  /// The operands of a node as they are held for a computation.
  struct Form {
    bool in_float64 = true;         ///< where float32 and narrower floats are declared
    bool is_magnitude = false;      ///< absolute values
    int replica = -1;               ///< which; -1: none
    double shaken = 0;              ///< relative change of each element
    std::vector<ValueId> tf32{};    ///< operands that an engine may round to tf32
    double stretch = 1;             ///< of what parts replicas from their values
    double steps = 1;               ///< of sums in the bodies of the node
    DType dtype = DType::kFloat32;  ///< of values in them whose dtype is not known
  };

  Result<std::vector<Expected>> expect_held(NodeId node, const Inputs& inputs, const ReferenceOptions& options);
  void hold(NodeId node, const Inputs& inputs, const Form& form);
  /// Computes the node from what it reads without noise, in float64 where `form` asks for it and that is possible, else
  /// says so there. What the node is computed for later takes some times this work at most: a loop that ends where a
  /// number is met need not meet it with noise, and an extent that follows from numbers may become any other.
  Result<Results> evaluate_centre(NodeId node, const Inputs& inputs, Form& form);
  bool has_nodes(NodeId node) const;  ///< a function's call, or bodies
  double terms_of(NodeId node, const Inputs& inputs);
  double relative_shake(const runtime::Rounding& rounding, double terms, DType dtype,
                        const ReferenceOptions& options) const;
  void set_own_errors(NodeId node, const Inputs& inputs, bool in_float64, double terms, const ReferenceOptions& options,
                      std::vector<Expected>& results);
  /// Errors: the memory limit.
  void set_spread(NodeId node, const Inputs& inputs, Form form, const ReferenceOptions& options,
                  std::vector<Expected>& results);
  /// Lets replicas of results that jump have what operands `far` off give, where too few of them have it by chance: an
  /// engine's error brings a jump about once in many elements, and the few replicas may all have missed it.
  void cover_jumps(NodeId node, std::span<const std::size_t> jumping, std::span<const runtime::HostValue> far,
                   std::span<const runtime::HostTensor> centres, std::vector<Expected>& results, std::size_t& replaced);
  /// These elements of `from`, each in some of the replicas.
  void replace_elements(std::vector<runtime::HostValue>& replicas, const runtime::HostTensor& from,
                        std::span<const std::size_t> elements, std::uint64_t seed);
  /// Whether the node quantizes what an operator gives that engines of the contract compute with it in integers.
  bool quantizes_apart(NodeId node, const Inputs& inputs) const;
  /// Lets each element be off by 1 in some of the replicas.
  void step_off(NodeId node, Expected& result);
  DType working_dtype(DType dtype, const ReferenceOptions& options) const;
  /// The bound of an element's error in steps of this size, but for storing it. `function`: what the contract says of
  /// the operator, looked up once for all elements.
  double own_error(const runtime::Rounding& rounding, const Contract::FunctionError& function, double steps,
                   const FloatFormat& format, const FloatFormat& working, double value, double amplitude) const;

  /// While replicas are computed: what nodes in the bodies of one round by.
  struct InnerNoise {
    std::uint64_t seed = 0, calls = 0;
    std::size_t replica = 0;
    double steps = 1, stretch = 1;
    DType dtype = DType::kFloat32;  ///< of values whose dtype is not known
    bool uses_grants = false;
  };
  /// The same where the contract grants tf32; nothing for other nodes.
  std::vector<ValueId> tf32_factors(NodeId node) const;
  void shake_inner(NodeId node, std::span<runtime::HostValue> results);

  const Model& model_;
  runtime::Memory& memory_;
  const Contract& contract_;
  const IdVector<ValueId, DType>& dtypes_;
  runtime::Interpreter interpreter_;
  std::map<NodeId, std::vector<ValueId>> reads_;
  std::vector<ValueId> nothing_;
  std::optional<InnerNoise> inner_;
  std::map<NodeId, std::uint64_t> work_;  // of a node, when it was first computed
};

}  // namespace tensorlint::compare
