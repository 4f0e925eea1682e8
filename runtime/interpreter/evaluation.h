#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ir/ops/inference.h"
#include "runtime/interpreter/constant_cache.h"
#include "runtime/interpreter/purpose.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// A list that the account of the run counts: for whatever grows with the elements of a tensor, or with an attribute.
/// It is made with memory().resource(), and never assigned to one made without.
template <typename T>
using List = std::pmr::vector<T>;

/// What the facts of a call say of a result.
struct ResultType {
  bool is_tensor = false;
  std::optional<Shape> shape{};  ///< nullopt: an extent is open
  std::optional<DType> dtype{};
};

/// Inference of a call over concrete operands.
struct InferredCall {
  ops::InferenceResult result;
  /// The result's type, read from its fact when it is asked for first.
  const ResultType& type(const FactStore& facts, std::size_t index);
  /// Before it is inferred again.
  void clear();

 private:
  std::vector<std::optional<ResultType>> types_;
};

/// What an evaluator sees: one call whose facts `infer` has worked out from the concrete operands. Evaluators compute
/// no shapes: results have the extents and the dtype that inference gave them, and attributes, defaults and opset
/// differences are read by the functions that inference itself uses (`in()`).
class Evaluation {
 public:
  /// A graph's outputs for its inputs.
  using RunGraph = std::function<std::vector<HostValue>(GraphId, std::span<const HostValue>)>;

  Evaluation(const Application& call, InferredCall& inferred, std::span<const HostValue> operands,
             std::span<HostValue> results, Memory& memory, std::uint64_t seed)
      : in_(call, inferred.result),
        inferred_(inferred),
        operands_(operands),
        results_(results),
        memory_(memory),
        seed_(seed) {}
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;
  ~Evaluation() { memory_.give_back(numbers_); }

  /// Attributes and helpers of inference over the concrete facts (ir/ops/windows.h, shape_functions.h, contents.h).
  ops::Inference& in() { return in_; }
  const Application& call() const { return in_.call(); }
  std::int64_t opset() const { return in_.opset(); }
  Memory& memory() { return memory_; }
  /// Of random numbers where the node has no seed of its own: another one in each call of a run.
  std::uint64_t seed() const { return seed_; }
  /// The results are drawn, whatever the seed is: no two engines agree on them.
  void mark_random() { is_random_ = true; }
  bool is_random() const { return is_random_; }

  /// Work that operands and results do not show, as InterpreterOptions::work_limit counts it; before it is done. Throws
  /// RunFault where a limit would be passed.
  void charge(double steps) {
    if (charge_) charge_(steps < 0x1p62 ? static_cast<std::uint64_t>(steps) : std::uint64_t{1} << 62);
  }
  void set_charge(std::function<void(std::uint64_t)> charge) { charge_ = std::move(charge); }

  void set_purpose(Purpose purpose) { purpose_ = purpose; }
  /// The results are to be amplitudes; of an evaluator that says that it gives them (Rounding::with_amplitude).
  bool asks_amplitude() const { return purpose_ == Purpose::kAmplitude; }

  /// For operators with graphs that are not control flow.
  void set_run_graph(RunGraph run_graph) { run_graph_ = std::move(run_graph); }
  std::vector<HostValue> run_graph(GraphId graph, std::span<const HostValue> inputs) const {
    if (!run_graph_) throw RunFault{"a graph is not there"};
    return run_graph_(graph, inputs);
  }

  /// A bit of `fixed_operands` for each operand that is the same in every call of the node.
  void keep_weights(ConstantCache& constants, NodeId node, std::uint64_t fixed_operands) {
    constants_ = &constants;
    node_ = node;
    fixed_operands_ = fixed_operands;
  }
  /// `b` [k, n], which is made of operand `index` alone, packed for this and later calls; null where there is no point
  /// in that: the operand is another one each time, or nothing more is kept. `part` tells factors of one operand apart.
  ConstantCache::Weights keep_packed(int index, std::int64_t part, const Factor& b, std::int64_t k, std::int64_t n);
  /// What an earlier call packed; null: nothing.
  ConstantCache::Weights kept_packed(int index, std::int64_t part) const;
  /// A numeric operand as products read it, in float32 or float64, which is exact but for integers above 2^53.
  HostTensor widened(int index);
  /// Serves later calls, too, where the operand is the same in each of them.
  void keep_widened(int index, const HostTensor& widened);

  // Operands, by index or by formal name.
  std::size_t operand_count() const { return operands_.size(); }
  bool has(int index) const {
    return index >= 0 && static_cast<std::size_t>(index) < operands_.size() &&
           !operands_[static_cast<std::size_t>(index)].is_absent();
  }
  bool has(std::string_view name) const { return has(in_.index_of(name)); }
  const HostValue& value(int index) const { return operands_[static_cast<std::size_t>(index)]; }
  /// A dense tensor; throws RunFault where the operand is absent or something else.
  const HostTensor& operand(int index) const;
  const HostTensor& operand(std::string_view name) const { return operand(in_.index_of(name)); }
  /// All elements of an integer operand. Memory counts them until the evaluation ends.
  std::vector<std::int64_t> integers(int index) const;
  std::vector<std::int64_t> integers(std::string_view name) const { return integers(in_.index_of(name)); }
  /// All elements of a numeric operand, counted too.
  std::vector<double> numbers(int index) const;
  /// The one element of an operand that has one.
  std::int64_t integer(int index) const;
  double number(int index) const;

  // Results.
  std::size_t result_count() const { return results_.size(); }
  bool wants(int index) const;  ///< the node names the result
  /// The result, allocated as its fact says. Throws RunFault where the fact leaves dtype or an extent open.
  HostTensor& result(int index = 0);
  /// The same in the memory of an operand that nobody else reads any more and whose dtype and extents are those of the
  /// result, where there is one. For evaluators that read each element of these operands before they write the element
  /// of the result at the same index, and no other one afterwards.
  HostTensor& result_over(std::initializer_list<int> operands, int index = 0);
  /// What its fact says.
  const ResultType& type_of_result(int index = 0) const {
    return inferred_.type(*call().facts, static_cast<std::size_t>(index));
  }
  /// For the few operators whose extents depend on elements: held against what the fact says.
  HostTensor& allocate(int index, DType dtype, Extents extents);
  /// Shares elements instead of copying: of an operand, mostly.
  void set(int index, HostValue value);
  /// The elements of `tensor` in the extents of the result.
  void set_reshaped(int index, const HostTensor& tensor);

  template <typename... Arguments>
  [[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    throw RunFault{fmt::format(format, std::forward<Arguments>(arguments)...)};
  }

 private:
  void take_numbers(std::size_t count) const;
  bool is_fixed(int index) const { return constants_ != nullptr && ((fixed_operands_ >> index) & 1U) != 0; }

  ops::Inference in_;
  InferredCall& inferred_;
  std::span<const HostValue> operands_;
  std::span<HostValue> results_;
  Memory& memory_;
  RunGraph run_graph_;
  std::function<void(std::uint64_t)> charge_;
  std::uint64_t seed_;
  Purpose purpose_ = Purpose::kValue;
  bool is_random_ = false;
  mutable std::uint64_t numbers_ = 0;  ///< bytes of operands as numbers
  ConstantCache* constants_ = nullptr;
  NodeId node_ = NodeId::kNone;
  std::uint64_t fixed_operands_ = 0;
};

}  // namespace tensorlint::runtime
