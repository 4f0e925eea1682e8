#include "ir/ops/tools/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

enum class Fill { kUnknown, kBounded, kZeros, kOnes, kTwos };

/// One way of making up a call.
struct Profile {
  DType dtype;                      ///< of operands whose type variable allows it
  std::vector<std::int64_t> shape;  ///< of operands without a shape of their own below
  Fill fill;
  bool optional_operands;
  int variadic = 1;           ///< how many operands a variadic parameter gets
  bool known_shapes = false;  ///< where the operands cannot have one shape: those of `known_shapes`
};

/// An attribute, or the elements of an integer operand, that a call needs. An `op` "" is any operator.
struct KnownValue {
  std::string_view op, name;
  std::vector<std::int64_t> ints{};
  std::string_view text{};
  AttributeKind kind =
      AttributeKind::kUndefined;  ///< set: an attribute that is given though the schema does not require it
};

/// Operands that do not all have one shape; operands past these have the last one.
struct KnownShapes {
  std::string_view op;
  std::vector<std::vector<std::int64_t>> shapes;
  int variadic = 0;  ///< how many operands a variadic parameter gets; 0: as in the profile
};

const std::vector<KnownValue>& known_values() {
  static const std::vector<KnownValue> values{
      {"", "to", {1}, "FLOAT"},
      {"", "blocksize", {1}},
      {"", "axis", {0}},
      {"", "kernel_shape", {1, 1}},
      {"", "output_shape", {1, 1}},
      {"", "split", {1}},
      {"BitShift", "direction", {}, "LEFT"},
      {"CategoryMapper", "cats_int64s", {1}, {}, AttributeKind::kInts},
      {"CategoryMapper", "cats_strings", {}, {}, AttributeKind::kStrings},
      {"Imputer", "imputed_value_floats", {}, {}, AttributeKind::kFloats},
      {"LabelEncoder", "keys_int64s", {1}, {}, AttributeKind::kInts},
      {"LabelEncoder", "values_int64s", {1}, {}, AttributeKind::kInts},
      {"LinearClassifier", "classlabels_ints", {1}, {}, AttributeKind::kInts},
      {"SVMClassifier", "classlabels_ints", {1}, {}, AttributeKind::kInts},
      {"Scaler", "offset", {}, {}, AttributeKind::kFloats},
      {"Scaler", "scale", {}, {}, AttributeKind::kFloats},
      {"TreeEnsembleClassifier", "classlabels_int64s", {1}, {}, AttributeKind::kInts},
      {"BatchNormalization", "training_mode", {1}, {}, AttributeKind::kInt},
      {"Constant", "value", {}, {}, AttributeKind::kTensor},
      {"Einsum", "equation", {}, "a->a"},
      {"MaxRoiPool", "pooled_shape", {1, 1}},
      {"OneHotEncoder", "cats_int64s", {1}, {}, AttributeKind::kInts},
      {"Pad", "paddings", {0, 0}},
      {"Pad", "pads", {0, 0}},
      {"TfIdfVectorizer", "mode", {}, "TF"},
      {"TfIdfVectorizer", "ngram_counts", {0}},
      {"TfIdfVectorizer", "ngram_indexes", {0}},
      {"TfIdfVectorizer", "pool_int64s", {1}, {}, AttributeKind::kInts},
  };
  return values;
}

const KnownShapes* known_shapes(std::string_view op) {
  static const std::vector<KnownShapes> shapes{
      {"Adam", {{}, {}, {2}}, 4},
      {"AffineGrid", {{1, 2, 3}, {4}}},
      {"BatchNormalization", {{1, 1}, {1}}},
      {"Col2Im", {{1, 1, 1}, {1}}},
      {"GRU", {{1, 1, 1}, {1, 3, 1}}},
      {"GridSample", {{1, 1, 1, 1}, {1, 1, 1, 2}}},
      {"GroupNormalization", {{1, 1, 1}, {1}}},
      {"InstanceNormalization", {{1, 1, 1}, {1}}},
      {"LSTM", {{1, 1, 1}, {1, 4, 1}}},
      {"MaxRoiPool", {{1, 1, 1, 1}, {1, 5}}},
      {"NegativeLogLikelihoodLoss", {{1, 2}, {1}}},
      {"NonMaxSuppression", {{1, 1, 4}, {1, 1, 1}, {}}},
      {"OneHot", {{1}, {}, {2}}},
      {"Resize", {{1}, {1}, {0}, {1}}},
      {"ReverseSequence", {{1, 1}, {1}}},
      {"RoiAlign", {{1, 1, 1, 1}, {1, 4}, {1}}},
      {"RotaryEmbedding", {{1, 1, 1, 2}, {1, 1, 1}}},
      {"ScatterND", {{1}, {1, 1}, {1}}},
      {"SoftmaxCrossEntropyLoss", {{1, 2}, {1}}},
  };
  const auto found =
      std::find_if(shapes.begin(), shapes.end(), [&](const KnownShapes& known) { return known.op == op; });
  return found == shapes.end() ? nullptr : &*found;
}

const KnownValue* known_value(std::string_view op, std::string_view name) {
  const KnownValue* found = nullptr;
  for (const KnownValue& value : known_values())
    if (value.name == name && (value.op == op || (value.op.empty() && found == nullptr))) found = &value;
  return found;
}

DType choose(DTypeSet allowed, DType wanted) {
  if (allowed.contains(wanted)) return wanted;
  for (const DType fallback :
       {DType::kFloat32, DType::kInt64, DType::kBool, DType::kString, DType::kUint8, DType::kInt8})
    if (allowed.contains(fallback)) return fallback;
  for (int code = 1; code < kDTypeCount; ++code)
    if (allowed.contains(static_cast<DType>(code))) return static_cast<DType>(code);
  return DType::kUndefined;
}

class Caller {
 public:
  Caller(const OpSchema& schema, const Profile& profile, FactStore& facts)
      : schema_(schema), profile_(profile), facts_(facts) {}

  InferenceResult call() {
    const KnownShapes* known = profile_.known_shapes ? known_shapes(schema_.name) : nullptr;
    for (const FormalParameter& formal : schema_.inputs) {
      if (formal.option == FormalOption::kOptional && !profile_.optional_operands) {
        operands_.push_back(FactId::kAbsent);
        continue;
      }
      int count = 1;
      if (formal.option == FormalOption::kVariadic) {
        const bool told = known != nullptr && known->variadic > 0;
        count = told ? known->variadic : std::max<int>(profile_.variadic, schema_.min_inputs);
      }
      for (int i = 0; i < count; ++i) {
        shape_ =
            known == nullptr ? &profile_.shape : &known->shapes[std::min(operands_.size(), known->shapes.size() - 1)];
        operands_.push_back(facts_.intern(operand(formal)));
      }
    }
    while (!operands_.empty() && operands_.back() == FactId::kAbsent) operands_.pop_back();
    for (const FormalAttribute& formal : schema_.attributes)
      if (const KnownValue* given = known_value(schema_.name, formal.name);
          formal.required || (given != nullptr && given->kind == formal.kind))
        add(formal);
    const std::vector<Taint> taints(operands_.size());
    Application call;
    call.domain = schema_.domain;
    call.name = schema_.name;
    call.opset = schema_.since_version;
    call.schema = &schema_;
    call.attributes = attributes_;
    call.operands = operands_;
    call.operand_taints = taints;
    call.result_count = std::max<std::uint32_t>(
        1, std::min<std::uint32_t>(schema_.max_outputs, static_cast<std::uint32_t>(schema_.outputs.size())));
    call.facts = &facts_;
    call.site = 1;
    InferenceResult result;
    infer(call, find_entry(schema_.domain, schema_.name, schema_.since_version), result);
    return result;
  }

  std::span<const FactId> operands() const { return operands_; }

 private:
  Fact operand(const FormalParameter& formal) {
    const TypeSet& allowed = schema_.types[formal.type].allowed;
    Fact fact;
    if (!allowed.tensor.empty()) {
      fact = tensor(choose(allowed.tensor, profile_.dtype), formal.name);
    } else if (!allowed.sequence.empty()) {
      fact.kind = ValueKind::kSequence;
      fact.element = facts_.intern(tensor(choose(allowed.sequence, profile_.dtype), formal.name));
      fact.shape = facts_.intern_shape(std::vector<Dim>{facts_.dims().constant(2)});
    } else if (!allowed.optional_tensor.empty()) {
      fact.kind = ValueKind::kOptional;
      fact.element = facts_.intern(tensor(choose(allowed.optional_tensor, profile_.dtype), formal.name));
    } else if (!allowed.sparse_tensor.empty()) {
      fact = tensor(choose(allowed.sparse_tensor, profile_.dtype), formal.name);
      fact.kind = ValueKind::kSparseTensor;
    } else if (allowed.map) {
      fact.kind = ValueKind::kMap;
      fact.key = DType::kInt64;
    }
    return fact;
  }

  Fact tensor(DType dtype, std::string_view name) {
    Fact fact;
    fact.kind = ValueKind::kTensor;
    fact.dtypes = dtype;
    fact.range = range_of(fact.dtypes);
    std::vector<Dim> dims;
    std::size_t elements = 1;
    for (const std::int64_t extent : *shape_) {
      dims.push_back(facts_.dims().constant(extent));
      elements *= static_cast<std::size_t>(extent);
    }
    fact.shape = facts_.intern_shape(dims);
    const KnownValue* known = known_value(schema_.name, name);
    if (profile_.fill == Fill::kBounded && dtype != DType::kString) fact.range = {0, 1, false};
    if (profile_.fill <= Fill::kBounded || elements > kMaxContent) return fact;
    const int value = profile_.fill == Fill::kZeros ? 0 : profile_.fill == Fill::kOnes ? 1 : 2;
    Content content;
    if (DTypeSet(dtype).is_subset_of(DTypeSet::integers() | DTypeSet(DType::kBool))) {
      const std::int64_t element = dtype == DType::kBool                         ? std::min(value, 1)
                                   : known != nullptr && known->ints.size() == 1 ? known->ints[0]
                                                                                 : value;
      content.integers.assign(elements, facts_.dims().constant(element));
      if (elements > 0) fact.range = {static_cast<double>(element), static_cast<double>(element), false};
    } else if (dtype == DType::kFloat32 || dtype == DType::kFloat64) {
      content.floats.assign(elements, value);
      if (elements > 0) fact.range = {static_cast<double>(value), static_cast<double>(value), false};
    }
    if (content.size() > 0) fact.content = facts_.intern_content(std::move(content));
    return fact;
  }

  void add(const FormalAttribute& formal) {
    Attribute& attribute = attributes_.emplace_back();
    attribute.name = formal.name;
    attribute.kind = formal.kind;
    const KnownValue* known = known_value(schema_.name, formal.name);
    switch (formal.kind) {
      case AttributeKind::kInt:
        attribute.i = known != nullptr && !known->ints.empty() ? known->ints[0] : 1;
        break;
      case AttributeKind::kFloat:
        attribute.f = 1;
        break;
      case AttributeKind::kString:
        attribute.s = known != nullptr ? known->text : "a";
        break;
      case AttributeKind::kInts:
        lists_.push_back(known != nullptr ? known->ints : std::vector<std::int64_t>{1});
        attribute.ints = lists_.back();
        break;
      case AttributeKind::kFloats:
        attribute.floats = kOneFloat;
        break;
      case AttributeKind::kStrings:
        attribute.strings = kOneText;
        break;
      case AttributeKind::kTensor:
        attribute.tensor = &kOneTensor;
        break;
      default:
        break;
    }
  }

  static constexpr float kOneFloat[] = {1};
  static constexpr std::string_view kOneText[] = {"a"};
  static inline const Tensor kOneTensor = [] {
    Tensor tensor;
    tensor.dtype_code = 1;
    tensor.has_raw = true;
    tensor.raw = std::string_view("\0\0\x80\x3f", 4);
    return tensor;
  }();

  const OpSchema& schema_;
  const Profile& profile_;
  FactStore& facts_;
  const std::vector<std::int64_t>* shape_ = nullptr;  // of the operand being made
  std::vector<FactId> operands_;
  std::vector<Attribute> attributes_;
  std::deque<std::vector<std::int64_t>> lists_;
};

std::vector<Profile> profiles() {
  std::vector<Profile> list;
  const std::vector<std::int64_t> shapes[] = {{},     {1},       {2},       {4},          {2, 3},
                                              {2, 2}, {1, 1, 1}, {2, 1, 3}, {1, 1, 4, 4}, {4, 4, 4, 4}};
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kBool, DType::kUint8, DType::kString})
    for (const auto& shape : shapes)
      for (const Fill fill : {Fill::kUnknown, Fill::kBounded, Fill::kZeros, Fill::kOnes, Fill::kTwos})
        for (const bool optional : {false, true})
          list.push_back({dtype, shape, fill, optional, optional ? 3 : 1, shape.size() == 1});
  return list;
}

/// A result that the schema does not allow; empty where there is none.
std::string fault_of(const OpSchema& schema, const FactStore& facts, const InferenceResult& result) {
  for (std::size_t r = 0; r < result.results.size(); ++r) {
    const Fact& fact = facts.fact(result.results[r]);
    if (fact.kind != ValueKind::kTensor || schema.outputs.empty()) continue;
    const FormalParameter& formal = schema.outputs[std::min(r, schema.outputs.size() - 1)];
    const TypeSet& allowed = schema.types[formal.type].allowed;
    if (!fact.dtypes.is_subset_of(allowed.tensor))
      return fmt::format("result {} is {}, the schema allows {}", r, fact.dtypes.to_text(), allowed.tensor.to_text());
    if (fact.range.lo > fact.range.hi) return fmt::format("result {} has bounds {}", r, fact.range.to_text());
    const Content* content = facts.content(fact.content);
    if (content == nullptr || !facts.is_ranked(fact.shape)) continue;
    std::size_t elements = 1;
    for (const Dim dim : facts.dims_of(fact.shape))
      elements *= static_cast<std::size_t>(facts.dims().as_constant(dim).value_or(0));
    if (content->size() != elements)
      return fmt::format("result {} of shape {} has {} elements", r, facts.shape_text(fact.shape), content->size());
  }
  return {};
}

/// How much of the results' shapes is open: a rank counts as many extents.
std::size_t open_extents(const FactStore& facts, std::span<const FactId> results) {
  constexpr std::size_t kRank = 100;
  std::size_t open = 0;
  for (const FactId id : results) {
    const Fact& fact = facts.fact(id);
    const Fact& tensor =
        fact.kind == ValueKind::kTensor || fact.element == FactId::kAbsent ? fact : facts.fact(fact.element);
    if (!facts.is_ranked(tensor.shape)) {
      open += kRank;
      continue;
    }
    for (const Dim dim : facts.dims_of(tensor.shape))
      if (!facts.dims().as_constant(dim)) ++open;
  }
  return open;
}

/// Different extents among the operands: the more, the more a result's shape says.
std::size_t different_extents(const FactStore& facts, std::span<const FactId> operands) {
  std::set<std::uint32_t> seen;
  for (const FactId id : operands)
    if (id != FactId::kAbsent && facts.is_ranked(facts.fact(id).shape))
      for (const Dim dim : facts.dims_of(facts.fact(id).shape)) seen.insert(dim.id());
  return seen.size();
}

std::string call_text(const FactStore& facts, std::span<const FactId> operands, std::span<const FactId> results) {
  const auto list = [&](std::span<const FactId> ids) {
    std::string text;
    for (const FactId id : ids)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", id == FactId::kAbsent ? "_" : facts.to_text(id));
    return text;
  };
  return fmt::format("({}) -> {}", list(operands), list(results));
}

}  // namespace

Probe probe(const OpSchema& schema, std::size_t stride) {
  Probe found;
  std::pair<std::size_t, std::size_t> best;
  const std::vector<Profile> all = profiles();
  for (std::size_t p = 0; p < all.size(); p += stride) {
    const Profile& profile = all[p];
    FactStore facts;
    Caller caller(schema, profile, facts);
    const InferenceResult result = caller.call();
    ++found.calls;
    const bool typed = std::all_of(result.results.begin(), result.results.end(), [&](FactId id) {
      const Fact& fact = facts.fact(id);
      return fact.kind != ValueKind::kTensor || !fact.dtypes.empty();
    });
    if (!result.violations.empty() || !typed) continue;
    ++found.accepted;
    if (found.fault.empty()) found.fault = fault_of(schema, facts, result);
    const std::pair score{open_extents(facts, result.results), 100 - different_extents(facts, caller.operands())};
    if (found.clearest.empty() || score < best) {
      best = score;
      found.shaped = score.first == 0;
      found.clearest = call_text(facts, caller.operands(), result.results);
    }
    for (const FactId id : result.results) {
      const Fact& fact = facts.fact(id);
      if (fact.kind != ValueKind::kTensor) continue;
      found.contents = found.contents || facts.content(fact.content) != nullptr;
      // Bounds that follow from known elements do not count.
      if (profile.fill <= Fill::kBounded && facts.content(fact.content) == nullptr)
        found.range = found.range || !(fact.range == range_of(fact.dtypes));
    }
  }
  return found;
}

}  // namespace tensorlint::ops
