#include "ir/ops/inference.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/checked.h"
#include "base/text.h"
#include "ir/facts/equalities.h"
#include "ir/ops/ranges.h"
#include "ir/ops/shape_functions.h"
#include "ir/ops/value_types.h"

namespace tensorlint::ops {
namespace {

const Constraint kKnownOperator{"known_operator", ConstraintKind::kUnknownOperator,
                                "the domain has an operator of that name", true};
const Constraint kInOpset{"operator_in_opset", ConstraintKind::kNotInOpset, "the imported opset has the operator",
                          true};
const Constraint kOperandCount{"operand_count", ConstraintKind::kOperandCount,
                               "as many operands as the schema asks for", true};
const Constraint kResultCount{"result_count", ConstraintKind::kOperandCount, "as many results as the schema asks for",
                              true};
const Constraint kKnownAttribute{"known_attribute", ConstraintKind::kUnknownAttribute,
                                 "the schema has an attribute of that name", true};
const Constraint kAttributeOfKind{"attribute_kind", ConstraintKind::kAttribute, "the attribute has the schema's kind",
                                  true};
const Constraint kAttributePresent{"attribute_present", ConstraintKind::kAttribute, "a required attribute is given",
                                   true};
const Constraint kAllowedType{"allowed_type", ConstraintKind::kTypeConstraint,
                              "an operand's type is one that the operator allows", true};
const Constraint kSameType{"same_type", ConstraintKind::kMixedDtypes, "operands of one type variable have one type",
                           true};

const Constraint kTensorSize{"tensor_size", ConstraintKind::kShapes, "a tensor has less than 2^63 elements"};

constexpr const Constraint* kSharedConstraints[] = {
    &kKnownOperator,    &kInOpset,     &kOperandCount, &kResultCount,   &kKnownAttribute, &kAttributeOfKind,
    &kAttributePresent, &kAllowedType, &kSameType,     &kBroadcastable, &kIsList,         &kTensorSize};

/// What a type variable of the schema is bound to by the operands seen so far.
struct Binding {
  bool bound = false;
  ValueKind kind = ValueKind::kUnknown;
  DTypeSet dtypes = DTypeSet::all();
  DType key = DType::kUndefined;
  FactId element = FactId::kTop;
  int operand = -1;
  Taint taint;
};

DTypeSet allowed_dtypes(const TypeSet& types, ValueKind kind) {
  switch (kind) {
    case ValueKind::kTensor:
      return types.tensor;
    case ValueKind::kSparseTensor:
      return types.sparse_tensor;
    case ValueKind::kSequence:
      return types.sequence;
    case ValueKind::kOptional:
      return types.optional_tensor | types.optional_sequence;
    default:
      return DTypeSet::none();
  }
}

bool only_tensors(const TypeSet& types) {
  return !types.tensor.empty() && types.sequence.empty() && types.optional_tensor.empty() &&
         types.optional_sequence.empty() && types.sparse_tensor.empty() && !types.map && !types.sequence_map;
}

/// Checks one application against its schema and binds the type variables.
class SchemaCheck {
 public:
  SchemaCheck(const Application& call, Inference& in)
      : call_(call), schema_(*call.schema), in_(in), bindings_(schema_.types.size()) {}

  /// False when arity or attributes are so wrong that the entry must not run.
  bool check() {
    const bool arity = check_arity();
    const bool attributes = check_attributes();
    if (arity) bind_operands();
    return arity && attributes;
  }

  const Binding& binding(const FormalParameter& formal) const { return bindings_[formal.type]; }
  const TypeSet& allowed(const FormalParameter& formal) const { return schema_.types[formal.type].allowed; }

 private:
  bool check_arity() {
    const std::size_t count = call_.operands.size();
    bool good = true;
    if ((count > schema_.max_inputs && !schema_.open) || count < schema_.min_inputs) {
      const std::size_t wanted = count < schema_.min_inputs ? schema_.min_inputs : schema_.max_inputs;
      in_.fail(kOperandCount, {},
               {"{} takes {} {} operand{}, {} given", call_.name, count < wanted ? "at least" : "at most", wanted,
                plural(wanted), count});
      good = false;
    }
    for (std::size_t i = 0; good && i < count; ++i) {
      const FormalParameter* formal = call_.formal_operand(i);
      if (call_.has_operand(i) || formal == nullptr || formal->option == FormalOption::kOptional) continue;
      const bool one_of_many = formal->option == FormalOption::kVariadic;
      in_.fail(kOperandCount, {},
               one_of_many
                   ? Message("operand {} of {} is left out, none of its `{}` may be", i, call_.name, formal->name)
                   : Message("{} needs its operand `{}`, which is left out", call_.name, formal->name));
      good = false;
    }
    if ((call_.result_count > schema_.max_outputs && !schema_.open) || call_.result_count < schema_.min_outputs) {
      const std::size_t wanted = call_.result_count < schema_.min_outputs ? schema_.min_outputs : schema_.max_outputs;
      in_.fail(kResultCount, {},
               {"{} gives {} {} result{}, {} asked for", call_.name,
                call_.result_count < wanted ? "at least" : "at most", wanted, plural(wanted), call_.result_count});
      good = false;
    }
    return good;
  }

  bool check_attributes() {
    bool good = true;
    for (const Attribute& attribute : call_.attributes) {
      const FormalAttribute* formal = schema_.attribute(attribute.name);
      if (formal == nullptr) {
        // Names with two leading underscores are for runtimes' private use (onnx.defs.OpSchema.Verify).
        if (attribute.name.starts_with("__") || schema_.open) continue;
        in_.fail(kKnownAttribute, {},
                 {"{} has no attribute {} in opset {}", call_.name, AttributeName(attribute.name), call_.opset});
        good = false;
      } else if (attribute.kind != formal->kind) {
        in_.fail(kAttributeOfKind, {},
                 {"attribute {} of {} is {}, it has to be {}", AttributeName(attribute.name), call_.name,
                  to_text(attribute.kind), to_text(formal->kind)});
        good = false;
      }
    }
    for (const FormalAttribute& formal : schema_.attributes) {
      if (!formal.required || call_.attribute(formal.name) != nullptr) continue;
      in_.fail(kAttributePresent, {}, {"{} needs its attribute {}", call_.name, AttributeName(formal.name)});
      good = false;
    }
    return good;
  }

  void bind_operands() {
    for (std::size_t i = 0; i < call_.operands.size(); ++i)
      if (call_.has_operand(i)) bind(i);
  }

  void bind(std::size_t index) {
    const FormalParameter* formal = call_.formal_operand(index);
    const Fact& fact = call_.operand(index);
    if (formal == nullptr) return;
    Binding& binding = bindings_[formal->type];
    if (!(formal->option == FormalOption::kVariadic && !formal->homogeneous))
      binding.taint |= call_.taint(index) & Taint(Aspect::kDtype);
    if (fact.kind == ValueKind::kUnknown) return;
    const TypeSet& allowed = schema_.types[formal->type].allowed;
    const DTypeSet dtypes = innermost_dtypes(*call_.facts, fact);
    const DTypeSet possible = dtypes & allowed_dtypes(allowed, fact.kind);
    const bool map_allowed =
        holds_map(*call_.facts, fact) && (fact.kind == ValueKind::kMap ? allowed.map : allowed.sequence_map);
    if (possible.empty() && !dtypes.empty() && !map_allowed && !schema_.open) {
      in_.fail(kAllowedType, {static_cast<int>(index)},
               {"{} takes {} as `{}`, {} is {}", call_.name, &allowed, formal->name, OperandRef(index),
                DTypeOf(call_.operands[index])});
      return;
    }
    if (formal->option == FormalOption::kVariadic && !formal->homogeneous) return;
    if (!binding.bound) {
      binding = {true,         fact.kind,    possible.empty() ? dtypes : possible,
                 fact.key,     fact.element, static_cast<int>(index),
                 binding.taint};
      return;
    }
    const DTypeSet common = binding.dtypes & (possible.empty() ? dtypes : possible);
    if (fact.kind != binding.kind || common.empty()) {
      in_.fail(kSameType, {static_cast<int>(index), binding.operand},
               {"{} needs operands of one dtype: {} is {}, {} is {}", call_.name, OperandRef(binding.operand),
                DTypeOf(call_.operands[static_cast<std::size_t>(binding.operand)]), OperandRef(index),
                DTypeOf(call_.operands[index])});
      return;
    }
    binding.dtypes = common;
  }

  const Application& call_;
  const OpSchema& schema_;
  Inference& in_;
  std::vector<Binding> bindings_;
};

/// True where the extents are constants, none is 0, and their product exceeds int64: no such tensor exists.
bool is_too_large(const DimPool& pool, std::span<const Dim> shape) {
  std::int64_t count = 1;
  bool overflows = false;
  for (const Dim dim : shape) {
    const auto extent = pool.as_constant(dim);
    if (!extent || *extent < 1) return false;
    const auto product = overflows ? std::nullopt : checked::mul(count, *extent);
    overflows = !product;
    count = product.value_or(count);
  }
  return overflows;
}

}  // namespace

std::vector<const Constraint*> all_constraints() {
  std::vector<const Constraint*> constraints(std::begin(kSharedConstraints), std::end(kSharedConstraints));
  for (const OpEntry& entry : all_entries())
    constraints.insert(constraints.end(), entry.constraints().begin(), entry.constraints().end());
  std::sort(constraints.begin(), constraints.end(),
            [](const Constraint* a, const Constraint* b) { return a->label < b->label; });
  constraints.erase(std::unique(constraints.begin(), constraints.end()), constraints.end());
  return constraints;
}

void InferenceResult::clear() {
  results.clear();
  taints.clear();
  violations.clear();
  equalities.clear();
  repeatable = true;
}

int Inference::index_of(std::string_view operand) const {
  const int index = call_.schema->input_index(operand);
  assert(index >= 0 && "the schema has no operand of that name");
  return index;
}

std::optional<std::span<const Dim>> Inference::shape(int operand) const {
  if (!has(operand)) return std::nullopt;
  const Fact& fact = this->operand(operand);
  const bool tensor = fact.kind == ValueKind::kTensor || fact.kind == ValueKind::kSparseTensor;
  if (!tensor || fact.shape == ShapeId::kUnranked) return std::nullopt;
  return call_.facts->dims_of(fact.shape);
}

std::optional<int> Inference::rank(int operand) const {
  const auto dims = shape(operand);
  return dims ? std::optional(static_cast<int>(dims->size())) : std::nullopt;
}

std::optional<std::span<const Dim>> Inference::elements(int operand) const {
  if (!has(operand)) return std::nullopt;
  const Content* content = call_.facts->content(this->operand(operand).content);
  if (content == nullptr || !content->floats.empty()) return std::nullopt;
  return std::span<const Dim>(content->integers);
}

std::optional<std::vector<std::int64_t>> Inference::constants(int operand) const {
  const auto dims = elements(operand);
  return dims ? constant_extents(call_.facts->dims(), *dims) : std::nullopt;
}

std::optional<std::int64_t> Inference::constant(std::string_view operand) const {
  const auto values = constants(operand);
  return values && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
}

std::optional<std::vector<double>> Inference::float_constants(std::string_view operand) const {
  const int index = index_of(operand);
  if (!has(index)) return std::nullopt;
  const Content* content = call_.facts->content(this->operand(index).content);
  if (content == nullptr || !content->integers.empty()) return std::nullopt;
  return content->floats;
}

std::optional<std::int64_t> Inference::length(std::string_view operand) const {
  const auto dims = shape(operand);
  return dims && dims->size() == 1 ? call_.facts->dims().as_constant(dims->front()) : std::nullopt;
}

std::optional<std::int64_t> Inference::int_attribute(std::string_view name) const {
  const Attribute* attribute = this->attribute(name);
  return attribute != nullptr && attribute->kind == AttributeKind::kInt ? std::optional(attribute->i) : std::nullopt;
}

std::int64_t Inference::int_attribute(std::string_view name, std::int64_t fallback) const {
  return int_attribute(name).value_or(fallback);
}

double Inference::float_attribute(std::string_view name, double fallback) const {
  const Attribute* attribute = this->attribute(name);
  return attribute != nullptr && attribute->kind == AttributeKind::kFloat ? static_cast<double>(attribute->f)
                                                                          : fallback;
}

std::string_view Inference::string_attribute(std::string_view name, std::string_view fallback) const {
  const Attribute* attribute = this->attribute(name);
  return attribute != nullptr && attribute->kind == AttributeKind::kString ? attribute->s : fallback;
}

std::optional<std::span<const std::int64_t>> Inference::ints_attribute(std::string_view name) const {
  const Attribute* attribute = this->attribute(name);
  return attribute != nullptr && attribute->kind == AttributeKind::kInts ? std::optional(attribute->ints)
                                                                         : std::nullopt;
}

Fact& Inference::result(int index) {
  const auto at = static_cast<std::size_t>(index);
  if (at >= results_.size()) results_.resize(at + 1);
  return results_[at];
}

void Inference::set_tensor(int result, DTypeSet dtypes, std::span<const Dim> shape) {
  set_dtype(result, dtypes);
  set_shape(result, shape);
}

void Inference::set_shape(int result, std::span<const Dim> shape) {
  Fact& fact = this->result(result);
  if (fact.kind == ValueKind::kUnknown) fact.kind = ValueKind::kTensor;
  // A chain of calls that each add axes would take memory without bound.
  if (shape.size() > kMaxRank) return;
  fact.shape = call_.facts->intern_shape(shape);
}

void Inference::set_elements(int result, std::vector<Dim> elements) {
  if (elements.size() > kMaxContent) return;
  Fact& fact = this->result(result);
  if (!elements.empty()) {
    const Range range = range_of(dims(), elements), before = fact.range;
    fact.range = {std::max(range.lo, before.lo), std::min(range.hi, before.hi), false};
    if (fact.range.lo > fact.range.hi) fact.range = range;
  }
  fact.content = call_.facts->intern_content({std::move(elements), {}});
}

void Inference::set_floats(int result, std::vector<double> elements) {
  if (elements.size() > kMaxContent || elements.empty()) return;
  Fact& fact = this->result(result);
  Range range{HUGE_VAL, -HUGE_VAL, false};
  for (const double value : elements) {
    if (std::isnan(value)) {
      range.nan = true;
      continue;
    }
    range.lo = std::min(range.lo, value);
    range.hi = std::max(range.hi, value);
  }
  fact.range = range.lo <= range.hi ? range : Range{};
  fact.content = call_.facts->intern_content({{}, std::move(elements)});
}

Dim Inference::fresh(int result, int axis, Unknown reason, std::int64_t lo) {
  out_.repeatable = false;
  return dims().fresh(call_.site, static_cast<std::uint32_t>(result) << 16 | static_cast<std::uint32_t>(axis), reason,
                      lo);
}

void Inference::learn_equal(Dim a, Dim b) {
  if (out_.equalities.size() >= kMaxEqualities || !solve(dims(), a, b)) return;
  out_.equalities.emplace_back(a, b);
  // The second such call has nothing left to learn and is.
  out_.repeatable = false;
}

void Inference::fail(const Constraint& constraint, std::vector<int> operands, Message message) {
  const Aspect aspect = aspect_of(constraint.kind);
  facts().meter().charge(kStepsOfViolation);
  failed_ = true;
  failed_aspects_ |= aspect;
  for (const int operand : operands)
    if (operand >= 0 && call_.taint(static_cast<std::size_t>(operand)).has(aspect)) return;
  out_.violations.push_back({&constraint, Certainty::kMust, std::move(operands), std::move(message), {}});
}

void Inference::add_possible(Violation violation) {
  facts().meter().charge(kStepsOfViolation);
  for (const int operand : violation.operands)
    if (operand >= 0 && call_.taint(static_cast<std::size_t>(operand)).has(violation.aspect())) return;
  out_.violations.push_back(std::move(violation));
}

void Inference::may_fail(const Constraint& constraint, std::vector<int> operands, Message message, Message witness) {
  add_possible({&constraint, Certainty::kMay, std::move(operands), std::move(message), std::move(witness)});
}

void Inference::fails_somewhere(const Constraint& constraint, std::vector<int> operands, Message message,
                                Message witness) {
  add_possible({&constraint, Certainty::kMay, std::move(operands), std::move(message), std::move(witness), true});
}

void Inference::finish() {
  results_.resize(call_.result_count);
  // What follows from a shape that is wrong, or reported already, says nothing new.
  bool sound = !failed_aspects_.has(Aspect::kShape);
  for (std::size_t i = 0; sound && i < call_.operands.size(); ++i) sound = !call_.taint(i).has(Aspect::kShape);
  for (std::size_t r = 0; sound && r < results_.size(); ++r) {
    if (results_[r].kind != ValueKind::kTensor || !facts().is_ranked(results_[r].shape)) continue;
    const auto shape = facts().dims_of(results_[r].shape);
    if (!is_too_large(dims(), shape)) continue;
    fail(kTensorSize, {}, {"{} of shape {} would have 2^63 elements or more", ResultRef(r), shape});
    break;
  }
  for (Fact& fact : results_) {
    if (fact.kind != ValueKind::kTensor) continue;
    // Bounds of elements that are not known are wider than the dtype: nothing lies outside it.
    const Range widest = range_of(fact.dtypes);
    if (widest.is_everything()) continue;
    const Range narrowed{std::max(fact.range.lo, widest.lo), std::min(fact.range.hi, widest.hi), false};
    fact.range = narrowed.lo <= narrowed.hi ? narrowed : widest;
  }
  for (const Fact& fact : results_) out_.results.push_back(call_.facts->intern(fact));
}

void infer(const Application& call, const OpEntry* entry, InferenceResult& out) {
  out.clear();
  Inference in(call, out);
  in.results_.resize(call.result_count);
  Taint common;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Taint taint = call.taint(i);
    common |= taint & Taint(Aspect::kShape);
    common |= taint & Taint(Aspect::kValue);
    const bool integers = call.operand(i).dtypes.is_subset_of(DTypeSet::integers());
    if (taint.has(Aspect::kValue) && integers) common |= Aspect::kShape;  // shapes are computed from such values
    if (taint.has(Aspect::kShape) && entry != nullptr && entry->has(OpTrait::kShapeOf)) common |= Aspect::kValue;
  }
  for (const Attribute& attribute : call.attributes)
    if (attribute.tensor != nullptr || attribute.graph != GraphId::kNone || attribute.sparse != nullptr ||
        !attribute.tensors.empty())
      out.repeatable = false;

  std::vector<Taint> dtype_taints(call.result_count);
  if (call.opset == 0) {
    in.fail(
        kInOpset, {},
        {"domain `{}` of {} is not imported by the model", call.domain.empty() ? "ai.onnx" : call.domain, call.name});
  } else if (call.schema == nullptr) {
    if (newest_opset(call.domain) > 0) {
      if (const OpSchema* oldest = find_any_version(call.domain, call.name)) {
        in.fail(kInOpset, {},
                {"{} came with opset {}, the model imports opset {}", call.name, oldest->since_version, call.opset});
      } else {
        in.fail(kKnownOperator, {},
                {"`{}` has no operator {}", call.domain.empty() ? "ai.onnx" : call.domain, call.name});
      }
    }
  } else if (call.schema->deprecated && find_any_version(call.domain, call.name) != call.schema) {
    // A version that was deprecated later on, with nothing before it, still runs: GroupNormalization of opset 18.
    in.fail(kInOpset, {},
            {"{} is deprecated since opset {}, the model imports opset {}", call.name, call.schema->since_version,
             call.opset});
  } else {
    SchemaCheck check(call, in);
    const bool usable = check.check();
    for (std::uint32_t r = 0; r < call.result_count; ++r) {
      const FormalParameter* formal = call.formal_result(r);
      if (formal == nullptr) continue;
      Fact& fact = in.results_[r];
      const Binding& binding = check.binding(*formal);
      const TypeSet& allowed = check.allowed(*formal);
      const bool shared = !(formal->option == FormalOption::kVariadic && !formal->homogeneous);
      if (shared) dtype_taints[r] = binding.taint;
      if (binding.bound && shared) {
        fact.kind = binding.kind;
        fact.key = binding.key;
        if (fact.kind == ValueKind::kTensor || fact.kind == ValueKind::kSparseTensor) {
          fact.dtypes = binding.dtypes;
        } else {
          fact.element = binding.element;
        }
      } else if (only_tensors(allowed)) {
        fact.kind = ValueKind::kTensor;
        fact.dtypes = allowed.tensor;
      }
    }
    if (usable && entry != nullptr && entry->inference() != nullptr) {
      entry->inference()(in);
      if (attains_bounds(in, entry->opcode())) in.result().attains = true;
    }
  }
  in.finish();
  for (const Taint dtype_taint : dtype_taints) {
    Taint taint = common;
    taint |= dtype_taint;
    taint |= in.failed_aspects_;
    out.taints.push_back(taint);
  }
}

}  // namespace tensorlint::ops
