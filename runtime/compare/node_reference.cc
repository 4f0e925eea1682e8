#include "runtime/compare/node_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "ir/graph/region_op.h"
#include "ir/ops/entry.h"
#include "runtime/compare/floats.h"
#include "runtime/compare/noise.h"
#include "runtime/values/codec.h"

namespace tensorlint::compare {

using runtime::HostTensor;
using runtime::HostValue;
using runtime::Purpose;
using runtime::Rounding;

namespace {

/// float32 and narrower floats, which float64 holds with room for errors.
bool is_narrow(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

HostValue widened(const HostValue& value, runtime::Memory& memory) {
  if (!value.is_tensor() || !is_narrow(value.dtype())) return value;
  return runtime::to_float64(value.tensor(), memory);
}

HostValue magnitude(const HostValue& value, runtime::Memory& memory) {
  if (!value.is_tensor() || !runtime::is_float(value.dtype())) return value;
  const HostTensor wide = runtime::to_float64(value.tensor(), memory);
  HostTensor result(DType::kFloat64, wide.extents(), memory);
  std::ranges::transform(wide.as<double>(), result.as_mutable<double>().begin(), [](double x) { return std::fabs(x); });
  return result;
}

/// A replica that is kDeviations times as far from the value. Of two operands that are compared either may be the
/// larger one then: with few replicas, chance leaves that out for some elements. So in every other replica all elements
/// of an operand go one way, and the replicas have all ways of the first operands.
HostValue stretched(const HostValue& value, const HostValue& replica, int index, std::size_t operand,
                    runtime::Memory& memory) {
  if (!value.is_tensor() || !replica.is_tensor() || !runtime::is_float(replica.dtype()) ||
      value.tensor().extents() != replica.tensor().extents())
    return replica;
  const HostTensor centre = runtime::to_float64(value.tensor(), memory);
  const HostTensor from = runtime::to_float64(replica.tensor(), memory);
  HostTensor result(DType::kFloat64, centre.extents(), memory);
  const auto pattern = static_cast<unsigned>(index) / 2;
  const double way = operand < 16 && (pattern >> operand & 1U) != 0 ? 1 : -1;
  std::ranges::transform(centre.as<double>(), from.as<double>(), result.as_mutable<double>().begin(),
                         [&](double x, double y) {
                           if (x == y) return x;
                           return x + kDeviations * (index % 2 == 0 ? y - x : way * std::fabs(y - x));
                         });
  return result;
}

bool is_float_tensor(const HostValue& value) { return value.is_tensor() && runtime::is_float(value.dtype()); }

/// Of a sum of n terms: n roundings at worst (Higham, 2002, 4.2), and four standard deviations of a random walk for
/// nearly every order and every element (Higham and Mary, 2019).
double steps_of(double terms, bool in_any_order) {
  return in_any_order ? terms : std::min(terms, 4 * std::sqrt(terms));
}

/// How much larger amplitudes are than the values, by their root mean squares; 1 at least.
double cancellation_of(const HostTensor& amplitudes, const HostTensor& values) {
  const auto squares = [](const HostTensor& tensor) {
    double sum = 0;
    for (const double x : tensor.as<double>()) sum += x * x;
    return sum;
  };
  const double share = std::sqrt(squares(amplitudes) / squares(values));
  return share >= 1 ? share : 1;
}

constexpr double kTf32Roundoff = 0x1p-11;

/// A replica as tensor cores may read it: rounded one way or the other, and in every fourth replica cut off, which
/// makes all elements smaller.
HostValue in_tf32(const HostValue& value, int replica, std::uint64_t seed, runtime::Memory& memory) {
  if (replica % 4 != 3) return shaken(value, kTf32Roundoff, 0, seed, memory);
  const HostTensor wide = runtime::to_float64(value.tensor(), memory);
  HostTensor result(DType::kFloat64, wide.extents(), memory);
  std::ranges::transform(wide.as<double>(), result.as_mutable<double>().begin(),
                         [](double x) { return to_tf32(x, Tf32::kCut); });
  return result;
}

/// So many of the replicas have a jump that an operand's error may bring about, however rarely it does: of kDeviations
/// standard deviations, that covers the jump twice over.
constexpr std::size_t kJumpsOneIn = 8;
std::size_t jumps_of(std::size_t replicas) { return std::max<std::size_t>(replicas / kJumpsOneIn, 1); }

constexpr double kFurtherSteps = 8;  ///< of a composite operator beside its sums: functions, scales, offsets

}  // namespace

HostValue as_declared(const HostValue& value, DType dtype, runtime::Memory& memory) {
  if (!value.is_tensor() || value.dtype() != DType::kFloat64 || !is_narrow(dtype)) return value;
  const HostTensor& wide = value.tensor();
  HostTensor narrow(dtype, wide.extents(), memory);
  runtime::store(narrow, 0, wide.size(), wide.as<double>().data(), false);
  return narrow;
}

NodeReference::NodeReference(const Model& model, runtime::Memory& memory, const Contract& contract,
                             const IdVector<ValueId, DType>& dtypes, dataflow::Allowances* allowances)
    : model_(model),
      memory_(memory),
      contract_(contract),
      dtypes_(dtypes),
      interpreter_(model, memory,
                   {.work_limit = runtime::InterpreterOptions::kAnyWork,
                    .observer = [this](NodeId node, std::span<HostValue> results) { shake_inner(node, results); },
                    .allowances = allowances}) {
  std::set<std::pair<NodeId, ValueId>> seen;
  const auto read = [&](NodeId user, ValueId value) {
    if (value == ValueId::kAbsent || model.value(value).graph != GraphId::kMain) return;
    while (user != NodeId::kNone && model.node(user).graph != GraphId::kMain)
      user = model.graph(model.node(user).graph).owner;
    if (user != NodeId::kNone && seen.emplace(user, value).second) reads_[user].push_back(value);
  };
  for (const NodeId node : ids_below<NodeId>(model.nodes.size()))
    for (const ValueId operand : model.operands(model.node(node))) read(node, operand);
  for (const Graph& graph : model.graphs)
    for (const ValueId output : graph.outputs)
      if (graph.owner != NodeId::kNone) read(graph.owner, output);
}

std::span<const ValueId> NodeReference::reads(NodeId node) const {
  const auto found = reads_.find(node);
  return found == reads_.end() ? std::span<const ValueId>(nothing_) : found->second;
}

Rounding NodeReference::rounding_of(NodeId node) const {
  const Operator& op = model_.op(model_.node(node));
  const runtime::Evaluator* const evaluator =
      op.function == GraphId::kNone ? runtime::find_evaluator(model_.text(op.domain), model_.text(op.name), op.opset)
                                    : nullptr;
  return evaluator == nullptr ? Rounding::composite() : evaluator->rounding();
}

DType NodeReference::working_dtype(DType dtype, const ReferenceOptions& options) const {
  if (options.accumulates_in) return *options.accumulates_in;
  return contract_.accumulates_in(runtime::is_float(dtype) ? dtype : DType::kFloat32);
}

void NodeReference::hold(NodeId node, const Inputs& inputs, const Form& form) {
  const Operator& op = model_.op(model_.node(node));
  const ops::OpEntry* const entry = ops::find_entry(model_.text(op.domain), model_.text(op.name), op.opset);
  const std::set<ValueId> tf32(form.tf32.begin(), form.tf32.end());
  // An operand that says how to compute is not data that rounding changes.
  const auto is_host = [&](ValueId value) {
    if (entry == nullptr || op.schema == nullptr) return false;
    const std::span<const ValueId> operands = model_.operands(model_.node(node));
    const std::span<const FormalParameter> formals = op.schema->inputs;
    for (std::size_t i = 0; i < operands.size() && i < formals.size(); ++i) {
      if (operands[i] != value) continue;
      const auto role = entry->role_of(formals[i].name);
      if (role == ops::OperandRole::kHost || role == ops::OperandRole::kHostList) return true;
    }
    return false;
  };
  std::size_t operand = 0;
  for (const ValueId id : reads(node)) {
    const auto found = inputs.find(id);
    if (found == inputs.end()) continue;
    const Estimate& estimate = found->second;
    HostValue value = estimate.value;
    if (form.replica >= 0 && !estimate.replicas.empty()) {
      value = estimate.replicas[static_cast<std::size_t>(form.replica) % estimate.replicas.size()];
      if (form.stretch != 1) value = stretched(estimate.value, value, form.replica, operand, memory_);
      ++operand;
    }
    if (form.replica >= 0 && tf32.contains(id) && is_float_tensor(value)) {
      const auto seed = mixed(static_cast<std::uint64_t>(id), static_cast<std::uint64_t>(form.replica), 0x32);
      value = in_tf32(value, form.replica, seed, memory_);
    }
    if (form.shaken > 0 && is_float_tensor(value) && !is_host(id)) {
      const double tiny = rounding_of(node).kind == Rounding::Kind::kSelects ? 1e-300 : 0;  // parts equal zeros
      const auto seed = mixed(static_cast<std::uint64_t>(node), static_cast<std::uint64_t>(id),
                              static_cast<std::uint64_t>(form.replica));
      const DType dtype = value.dtype();
      value = shaken(value, form.stretch * form.shaken, tiny, seed, memory_);
      if (!form.in_float64) value = as_declared(value, dtype, memory_);
    }
    value = form.in_float64 ? widened(value, memory_) : as_declared(value, dtypes_[id], memory_);
    interpreter_.hold(id, form.is_magnitude ? magnitude(value, memory_) : std::move(value));
  }
}

double NodeReference::terms_of(NodeId node, const Inputs& inputs) {
  if (const Result<double> terms = interpreter_.terms(node); terms && *terms > 0) return std::max(*terms, 1.0);
  double longest = 1;
  for (const ValueId id : reads(node))
    if (const auto found = inputs.find(id); found != inputs.end() && is_float_tensor(found->second.value))
      for (const std::int64_t extent : found->second.value.tensor().extents())
        longest = std::max(longest, static_cast<double>(extent));
  return longest;
}

double NodeReference::own_error(const Rounding& rounding, const Contract::FunctionError& function, double steps,
                                const FloatFormat& format, const FloatFormat& working, double value,
                                double amplitude) const {
  const double roundoff = roundoff_of(working);
  const double underflow = kFurtherSteps * ulp_of(working, 0) / 2;  // of steps whose results are subnormal
  switch (rounding.kind) {
    case Rounding::Kind::kExact:
    case Rounding::Kind::kSelects:
    case Rounding::Kind::kRandom:
      return 0;
    case Rounding::Kind::kRounded:
      return std::max(contract_.operation_ulps - 0.5, 0.0) * ulp_of(format, value);
    case Rounding::Kind::kFunction:
      return function.ulps * ulp_of(working, value) + function.absolute * roundoff;
    case Rounding::Kind::kAccumulates:
      return 2 * steps * roundoff * std::fabs(amplitude) + underflow;
    case Rounding::Kind::kComposite:
      return 2 * (steps + kFurtherSteps) * roundoff * std::max(std::fabs(amplitude), rounding.scale) + underflow;
  }
  return HUGE_VAL;
}

void NodeReference::set_own_errors(NodeId node, const Inputs& inputs, bool in_float64, double terms,
                                   const ReferenceOptions& options, std::vector<Expected>& results) {
  const Rounding rounding = rounding_of(node);
  const bool accumulates = rounding.kind == Rounding::Kind::kAccumulates;
  std::vector<HostValue> amplitudes;
  if (accumulates || rounding.gives_amplitude) {
    hold(node, inputs, {.in_float64 = in_float64, .is_magnitude = accumulates && in_float64});
    if (auto given = interpreter_.evaluate(node, Purpose::kAmplitude)) amplitudes = *std::move(given);
    hold(node, inputs, {.in_float64 = in_float64});
  }
  const std::span<const ValueId> names = model_.results(model_.node(node));
  const Contract::FunctionError function = contract_.function(rounding.function);
  const bool may_lose_nan = contract_.nan_losing.contains(model_.text(model_.op(model_.node(node)).name));
  for (std::size_t r = 0; r < results.size(); ++r) {
    Expected& result = results[r];
    if (!is_float_tensor(result.value)) continue;
    const HostTensor& value = result.value.tensor();
    const HostTensor wide = runtime::to_float64(value, memory_);
    const DType dtype = dtypes_[names[r]] == DType::kUndefined ? value.dtype() : dtypes_[names[r]];
    const FloatFormat format = float_format(dtype), working = float_format(working_dtype(dtype, options));
    const double roundoff = roundoff_of(working), steps = steps_of(terms, options.in_any_order);
    result.own = HostTensor(DType::kFloat64, value.extents(), memory_);
    double* const own = result.own.as_mutable<double>().data();
    const double* const y = wide.as<double>().data();
    HostTensor scale;
    if (r < amplitudes.size() && amplitudes[r].is_tensor() && amplitudes[r].tensor().extents() == value.extents())
      scale = runtime::to_float64(amplitudes[r].tensor(), memory_);
    for (std::size_t i = 0; i < value.size(); ++i) {
      // A sum of unknown amplitude says nothing. NaN and infinity are not rounded: a finite number there is another.
      const bool is_unknown = accumulates && scale.is_absent();
      const double amplitude = is_unknown ? HUGE_VAL : scale.is_absent() ? y[i] : scale.as<double>()[i];
      const bool is_lost = may_lose_nan && std::isnan(y[i]);
      own[i] = is_lost || is_unknown  ? HUGE_VAL
               : !std::isfinite(y[i]) ? 0
                                      : own_error(rounding, function, steps, format, working, y[i], amplitude);
    }
    const bool is_one_rounding = rounding.kind <= Rounding::Kind::kRounded;
    // Elements that share a sum share its error: that of a variance, which cancellation enlarges, or of small terms
    // that sums in one order lose.
    const bool may_cancel = rounding.kind == Rounding::Kind::kComposite && !scale.is_absent();
    const double cancellation = may_cancel ? cancellation_of(scale, wide) : 1;
    result.systematic = is_one_rounding ? 0 : 2 * (steps + kFurtherSteps) * roundoff * cancellation;
    // Sums to nearest err in both directions; what all elements share is that constants of the operator, a divisor and
    // a factor, are rounded.
    if (options.accumulates_in) result.systematic = 2 * roundoff;
    if (rounding.kind == Rounding::Kind::kFunction) {
      double squares = 0;
      for (std::size_t i = 0; i < value.size(); ++i) squares += std::isfinite(y[i]) ? y[i] * y[i] : 0;
      const double size = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(value.size(), 1)));
      // Absolute errors are a large part of small values.
      result.systematic = (2 * (function.ulps + 1) + (size > 0 ? function.absolute / size : 0)) * roundoff;
    }
  }
}

void NodeReference::set_spread(NodeId node, const Inputs& inputs, Form form, const ReferenceOptions& options,
                               std::vector<Expected>& results) {
  const Rounding rounding = rounding_of(node);
  const bool selects = rounding.kind == Rounding::Kind::kSelects;
  std::vector<HostTensor> centres(results.size());
  const auto is_discrete = [&](std::size_t r) { return !runtime::is_float(results[r].value.dtype()); };
  std::vector<std::size_t> jumping;  // results
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (!results[r].value.is_tensor() || !is_real(results[r].value.dtype())) continue;
    centres[r] = runtime::to_float64(results[r].value.tensor(), memory_);
    results[r].spread = HostTensor(DType::kFloat64, centres[r].extents(), memory_);
    std::ranges::fill(results[r].spread.as_mutable<double>(), 0.0);
    if (is_discrete(r) || rounding.jumps || selects) jumping.push_back(r);
  }
  const bool keeps = options.keeps_replicas || rounding.jumps;
  const auto add_deviations = [&](std::size_t r, const HostValue& replica) {
    const HostTensor wide = runtime::to_float64(replica.tensor(), memory_);
    const std::span<const double> a = wide.as<double>(), b = centres[r].as<double>();
    double* const squares = results[r].spread.as_mutable<double>().data();
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
      const double off = a[i] - b[i];
      squares[i] += std::isfinite(off) ? off * off : HUGE_VAL;
    }
  };
  /// use(result, replica) for each, then finish(all of them): empty where they are not what they stand for.
  const auto run = [&](const auto& use, const auto& finish) {
    for (form.replica = 0; form.replica < options.replicas; ++form.replica) {
      hold(node, inputs, form);
      inner_ = {.seed = mixed(static_cast<std::uint64_t>(node), static_cast<std::uint64_t>(form.replica), 0x1b),
                .replica = static_cast<std::size_t>(form.replica),
                .steps = form.steps,
                .stretch = form.stretch,
                .dtype = form.dtype,
                .uses_grants = options.uses_grants};
      auto replica = interpreter_.evaluate(node);
      inner_.reset();
      bool is_complete = true;
      for (std::size_t r = 0; r < results.size(); ++r) {
        if (centres[r].is_absent()) {
          // Sequences and the like: nothing to compare, and later nodes take tensors from them.
          if (options.keeps_replicas && form.stretch == 1 && replica && r < replica->size())
            results[r].replicas.push_back((*replica)[r]);
          is_complete &= replica.ok();
          continue;
        }
        const bool is_there = replica && r < replica->size() && (*replica)[r].is_tensor() &&
                              (*replica)[r].dtype() == results[r].value.dtype() &&
                              (*replica)[r].tensor().extents() == centres[r].extents();
        results[r].is_chosen |= !is_there;
        is_complete &= is_there;
        if (is_there) use(r, (*replica)[r]);
      }
      finish(is_complete ? *std::move(replica) : std::vector<HostValue>());
    }
  };
  run(
      [&](std::size_t r, const HostValue& replica) {
        if (!is_discrete(r) && !rounding.jumps) add_deviations(r, replica);
        if (keeps) results[r].replicas.push_back(replica);
      },
      [](const std::vector<HostValue>&) {});
  // Operands as far off as bounds allow, of which few deviations of usual size say nothing: an integer or a truth is
  // what it is until an operand passes a threshold.
  form.stretch = kDeviations;
  const bool has_discrete = std::ranges::any_of(jumping, is_discrete);
  if (!jumping.empty() && (keeps || (has_discrete && !selects))) {
    std::size_t replaced = 0;
    run(
        [&](std::size_t r, const HostValue& replica) {
          if (is_discrete(r) && !selects) add_deviations(r, replica);
        },
        [&](const std::vector<HostValue>& far) {
          if (keeps && !far.empty()) cover_jumps(node, jumping, far, centres, results, replaced);
        });
  }
  if (keeps && quantizes_apart(node, inputs)) step_off(node, results.front());
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (results[r].spread.is_absent()) continue;
    if (rounding.jumps && !is_discrete(r))
      for (const HostValue& replica : results[r].replicas) add_deviations(r, replica);
    for (double& x : results[r].spread.as_mutable<double>()) x = std::sqrt(x / options.replicas);
    if (!options.keeps_replicas && !centres[r].is_absent()) results[r].replicas.clear();
  }
}

void NodeReference::cover_jumps(NodeId node, std::span<const std::size_t> jumping, std::span<const HostValue> far,
                                std::span<const HostTensor> centres, std::vector<Expected>& results,
                                std::size_t& replaced) {
  std::vector<std::pair<std::size_t, std::vector<std::size_t>>> short_of;  // results, and elements of them
  for (const std::size_t r : jumping) {
    const std::vector<HostValue>& replicas = results[r].replicas;
    if (replicas.empty()) continue;  // all of them took another way
    const HostTensor wide = runtime::to_float64(far[r].tensor(), memory_);
    const std::span<const double> there = wide.as<double>(), here = centres[r].as<double>();
    std::vector<std::size_t> elements;
    for (std::size_t i = 0; i < here.size(); ++i) {
      const double jump = std::fabs(there[i] - here[i]);
      if (!(jump > 0) || !std::isfinite(jump)) continue;
      // A result that does not jump is kDeviations times as far off as the replicas are.
      const auto is_near = [&](const HostValue& replica) {
        return std::fabs(runtime::number_at(replica.tensor(), i) - here[i]) < jump / (2 * kDeviations);
      };
      const auto with = static_cast<std::size_t>(replicas.size()) -
                        static_cast<std::size_t>(std::ranges::count_if(replicas, is_near));
      if (with < jumps_of(replicas.size())) elements.push_back(i);
    }
    if (!elements.empty()) short_of.emplace_back(r, std::move(elements));
  }
  if (short_of.empty()) return;
  if (short_of.size() > 1) {  // positions and what is there belong together
    const std::size_t count = results[short_of.front().first].replicas.size();
    if (replaced == jumps_of(count)) return;
    const std::size_t at = (static_cast<std::size_t>(node) + replaced++ * kJumpsOneIn) % count;
    for (std::size_t r = 0; r < far.size(); ++r)
      if (at < results[r].replicas.size()) results[r].replicas[at] = far[r];
    return;
  }
  const auto& [r, elements] = short_of.front();
  replace_elements(results[r].replicas, far[r].tensor(), elements, static_cast<std::uint64_t>(node));
}

void NodeReference::replace_elements(std::vector<HostValue>& replicas, const HostTensor& from,
                                     std::span<const std::size_t> elements, std::uint64_t seed) {
  const std::size_t bytes = runtime::element_bytes(from.dtype());
  std::vector<std::byte*> writable(replicas.size(), nullptr);
  for (const std::size_t i : elements) {
    const std::size_t first = mixed(seed, i, 0x5e) % replicas.size();
    for (std::size_t k = 0; k < jumps_of(replicas.size()); ++k) {
      const std::size_t at = (first + k * kJumpsOneIn) % replicas.size();
      if (writable[at] == nullptr) {
        const HostTensor& old = replicas[at].tensor();
        HostTensor copy(from.dtype(), from.extents(), memory_);
        if (old.dtype() != from.dtype()) return;
        std::copy_n(old.raw(), old.bytes(), copy.mutable_raw());
        writable[at] = copy.mutable_raw();
        replicas[at] = HostValue(std::move(copy));
      }
      std::copy_n(from.raw() + i * bytes, bytes, writable[at] + i * bytes);
    }
  }
}

bool NodeReference::quantizes_apart(NodeId node, const Inputs& inputs) const {
  const std::span<const ValueId> operands = model_.operands(model_.node(node));
  if (contract_.quantized_apart.empty() || operands.empty() || !rounding_of(node).jumps) return false;
  const auto found = inputs.find(operands.front());
  if (found == inputs.end() || found->second.replicas.empty()) return false;  // what is recorded is not fused
  const NodeId producer = model_.value(operands.front()).producer;
  return producer != NodeId::kNone &&
         contract_.quantized_apart.contains(model_.text(model_.op(model_.node(producer)).name));
}

void NodeReference::step_off(NodeId node, Expected& result) {
  if (!result.value.is_tensor() || !runtime::is_integer_or_bool(result.value.dtype()) || result.replicas.empty())
    return;
  const HostTensor& value = result.value.tensor();
  HostTensor moved(value.dtype(), value.extents(), memory_);
  std::vector<std::size_t> elements(value.size());
  double* const squares = result.spread.as_mutable<double>().data();
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::int64_t x = runtime::integer_at(value, i);
    std::int64_t next = (mixed(static_cast<std::uint64_t>(node), i, 0x0f) & 1U) != 0 ? x + 1 : x - 1;
    runtime::store(moved, i, 1, &next);
    if (runtime::integer_at(moved, i) != next) next = 2 * x - next, runtime::store(moved, i, 1, &next);
    elements[i] = i;
    squares[i] += static_cast<double>(jumps_of(result.replicas.size()));
  }
  replace_elements(result.replicas, moved, elements, static_cast<std::uint64_t>(node));
}

std::vector<ValueId> NodeReference::tf32_factors(NodeId node) const {
  const bool is_granted = contract_.allows_tf32_in(model_.text(model_.op(model_.node(node)).name));
  return is_granted ? float32_factors(node) : std::vector<ValueId>();
}

std::vector<ValueId> NodeReference::float32_factors(NodeId node) const {
  const Operator& op = model_.op(model_.node(node));
  if (op.function != GraphId::kNone) return {};
  // Composites without an amplitude of their own: recurrent layers, attention.
  const Rounding rounding = rounding_of(node);
  const bool accumulates = rounding.kind == Rounding::Kind::kAccumulates;
  if (!accumulates && (rounding.kind != Rounding::Kind::kComposite || rounding.gives_amplitude)) return {};
  const ops::OpEntry* const entry = ops::find_entry(model_.text(op.domain), model_.text(op.name), op.opset);
  if (entry != nullptr && (entry->has(ops::OpTrait::kElementwise) || entry->has(ops::OpTrait::kControlFlow))) return {};
  std::span<const ValueId> operands = model_.operands(model_.node(node));
  // What is added to products is not rounded; of a variadic operator all operands are factors.
  const bool is_variadic = op.schema != nullptr && op.schema->inputs.size() < operands.size();
  if (accumulates && !is_variadic && operands.size() > 2) operands = operands.first(2);
  std::vector<ValueId> factors;
  for (const ValueId operand : operands)
    if (operand != ValueId::kAbsent && dtypes_[operand] == DType::kFloat32) factors.push_back(operand);
  const bool is_product = factors.size() > 1 && (!accumulates || factors.size() == operands.size());
  return is_product ? factors : std::vector<ValueId>();
}

void NodeReference::shake_inner(NodeId node, std::span<HostValue> results) {
  if (!inner_) return;
  const Rounding rounding = rounding_of(node);
  const Contract::FunctionError function = contract_.function(rounding.function);
  const std::span<const ValueId> names = model_.results(model_.node(node));
  for (std::size_t r = 0; r < results.size() && r < names.size(); ++r) {
    // What is moved is not stored anew.
    if (rounding.kind <= Rounding::Kind::kExact || !is_float_tensor(results[r])) continue;
    const HostTensor& tensor = results[r].tensor();
    const DType known = names[r] == ValueId::kAbsent ? DType::kUndefined : dtypes_[names[r]];
    const DType dtype = runtime::is_float(known) ? known : inner_->dtype;
    const FloatFormat format = float_format(dtype), working = float_format(contract_.accumulates_in(dtype));
    HostTensor wide = runtime::to_float64(tensor, memory_);
    const std::span<const double> y = wide.as<double>();
    double squares = 0;
    for (const double x : y) squares += std::isfinite(x) ? x * x : 0;
    // Sums of terms of both signs are about as large as the root of their number, and errors, too.
    const double size = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(y.size(), 1)));
    HostTensor amounts(DType::kFloat64, wide.extents(), memory_);
    const double roundings = tensor.dtype() == DType::kFloat64 ? 1 : 2;  // its own and the other engine's
    const bool is_tf32 = inner_->uses_grants && !tf32_factors(node).empty();
    std::ranges::transform(y, amounts.as_mutable<double>().begin(), [&](double x) {
      const double amplitude = std::max(std::fabs(x), size);
      const double factors = is_tf32 ? 2 * kTf32Roundoff * amplitude : 0;
      const double own = own_error(rounding, function, inner_->steps, format, working, x, amplitude) + 4 * factors;
      const double amount = inner_->stretch * (own / 4 + roundings * ulp_of(format, x) / 2);
      return std::isfinite(amount) ? amount : 0;
    });
    HostTensor copy(DType::kFloat64, wide.extents(), memory_);
    std::ranges::copy(y, copy.as_mutable<double>().begin());
    shake(copy, amounts, mixed(inner_->seed, ++inner_->calls, static_cast<std::uint64_t>(node)), inner_->replica);
    results[r] = as_declared(HostValue(std::move(copy)), tensor.dtype(), memory_);
  }
}

double NodeReference::relative_shake(const Rounding& rounding, double terms, DType dtype,
                                     const ReferenceOptions& options) const {
  if (rounding.kind == Rounding::Kind::kSelects) return options.keeps_replicas ? 0x1p-50 : 0;  // parts what is equal
  if (rounding.kind != Rounding::Kind::kComposite || rounding.gives_amplitude) return 0;
  return 2 * std::sqrt(terms) * roundoff_of(float_format(dtype));
}

Result<std::vector<Expected>> NodeReference::expect(NodeId node, const Inputs& inputs,
                                                    const ReferenceOptions& options) {
  Result<std::vector<Expected>> results = expect_held(node, inputs, options);
  for (const ValueId id : reads(node)) interpreter_.hold(id, {});  // what it read takes no memory after it
  return results;
}

std::uint64_t NodeReference::work_of(NodeId node) const {
  const auto found = work_.find(node);
  return found == work_.end() ? 0 : found->second;
}

bool NodeReference::has_nodes(NodeId node) const {
  const Operator& op = model_.op(model_.node(node));
  return op.function != GraphId::kNone || region_kind(model_, op) != RegionKind::kNone;
}

Result<NodeReference::Results> NodeReference::evaluate_centre(NodeId node, const Inputs& inputs, Form& form) {
  constexpr std::uint64_t kTimes = 16, kMore = 1 << 23, kAny = runtime::InterpreterOptions::kAnyWork;
  const bool is_first = !work_.contains(node);
  const auto set_most_work = [&] {
    const auto work = work_.find(node);
    const bool has_limit = work != work_.end() && work->second < (kAny - kMore) / kTimes;
    interpreter_.set_most_work(has_limit ? kTimes * work->second + kMore : kAny);
  };
  set_most_work();
  const auto evaluate = [&](bool in_float64) {
    form.in_float64 = in_float64;
    hold(node, inputs, form);
    Result<Results> values = interpreter_.evaluate(node);
    if (!values) return values;
    work_.emplace(node, interpreter_.work());
    set_most_work();
    return values;
  };
  if (!form.in_float64) return evaluate(false);
  // In float64 a loop may end otherwise, too.
  if (is_first && has_nodes(node))
    if (Result<Results> values = evaluate(false); !values) return values;
  if (Result<Results> values = evaluate(true)) return values;
  return evaluate(false);
}

Result<std::vector<Expected>> NodeReference::expect_held(NodeId node, const Inputs& inputs,
                                                         const ReferenceOptions& options) {
  try {
    const Rounding rounding = rounding_of(node);
    const bool is_noisy = std::ranges::any_of(reads(node), [&](ValueId id) {
      const auto found = inputs.find(id);
      return found != inputs.end() && !found->second.replicas.empty();
    });
    // Texts of numbers have the digits of their dtype.
    const bool makes_text = std::ranges::any_of(model_.results(model_.node(node)),
                                                [&](ValueId result) { return dtypes_[result] == DType::kString; });
    Form form{.in_float64 =
                  !makes_text && (options.reads_unrounded || is_noisy || rounding.kind != Rounding::Kind::kExact)};
    Result<std::vector<HostValue>> values = evaluate_centre(node, inputs, form);
    if (!values) return values.error();
    const bool is_random = interpreter_.drew_random();
    std::vector<Expected> results(values->size());
    const std::span<const ValueId> names = model_.results(model_.node(node));
    DType dtype = DType::kUndefined;
    for (std::size_t r = 0; r < results.size(); ++r) {
      results[r].value = std::move((*values)[r]);
      results[r].is_random = is_random;
      results[r].is_rounded = !form.in_float64 && rounding.kind != Rounding::Kind::kExact;
      if (dtype == DType::kUndefined && runtime::is_float(dtypes_[names[r]])) dtype = dtypes_[names[r]];
    }
    if (results.empty() || results.front().is_random || options.only_values) return results;
    const double terms = terms_of(node, inputs);
    for (Expected& result : results) result.terms = terms;
    set_own_errors(node, inputs, form.in_float64, terms, options, results);
    form.steps = steps_of(terms, options.in_any_order);
    if (dtype != DType::kUndefined) form.dtype = dtype;
    form.shaken = relative_shake(rounding, terms, working_dtype(dtype, options), options);
    if (options.uses_grants) form.tf32 = tf32_factors(node);
    if (is_noisy || form.shaken > 0 || !form.tf32.empty()) set_spread(node, inputs, form, options, results);
    return results;
  } catch (const runtime::RunFault& fault) {
    return Error{fault.message, {}};
  }
}

}  // namespace tensorlint::compare
