#include "passes/dataflow/initial_facts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "ir/facts/dim_names.h"
#include "ir/ops/contents.h"
#include "ir/ops/value_types.h"

namespace tensorlint::dataflow {
namespace {

constexpr std::size_t kMaxFloatContent = 64;  // Resize scales, Clip bounds, quantisation constants

/// Formulas in names are read up to so many bytes a model, each name once: a formula takes up to 100 times its text.
constexpr std::size_t kMaxFormulaBytes = 1U << 16;

/// False for what exporters write for an extent that they do not know: "?" (Paddle), "-1", "None". One such word stands
/// for many extents.
bool is_extent_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
  };
  return name != "None" && std::any_of(name.begin(), name.end(), is_letter);
}

}  // namespace

FactId InitialFacts::input(ValueId id) {
  const Value& value = model_.value(id);
  const std::uint64_t site = mix(0x1090, static_cast<std::uint64_t>(id)) | 1;
  FactId fact = value.type != nullptr ? declared(*value.type, site) : FactId::kTop;
  if (value.initializer != nullptr) {
    // Until IR version 3 every initializer had to be an input too; from 4 on an input's initializer is a default.
    const FactId constant = dense(*value.initializer);
    if (model_.ir_version < 4) {
      fact = constant;
    } else if (fact == FactId::kTop) {
      Fact widest = facts_.fact(constant);
      widest.content = ContentId::kNone;
      widest.range = range_of(widest.dtypes);
      fact = facts_.intern(widest);
    }
  }
  const auto wanted = options_.values.find(model_.text(value.name));
  if (wanted != options_.values.end()) fact = refine(fact, wanted->second, site);
  return fact;
}

FactId InitialFacts::initializer(const Value& value) {
  return value.initializer != nullptr ? dense(*value.initializer) : sparse(value.sparse_initializer);
}

FactId InitialFacts::dense(const Tensor& tensor) {
  if (!malformed_.contains(&tensor)) return facts_.intern(ops::fact_of_tensor(facts_, tensor, kMaxFloatContent));
  Fact fact;
  fact.kind = ValueKind::kTensor;
  if (is_known_dtype(tensor.dtype_code)) fact.dtypes = static_cast<DType>(tensor.dtype_code);
  fact.range = range_of(fact.dtypes);
  return facts_.intern(fact);
}

FactId InitialFacts::sparse(const SparseTensor* sparse) {
  Fact fact;
  fact.kind = ValueKind::kSparseTensor;
  if (sparse == nullptr || sparse->values == nullptr) return FactId::kTop;
  if (is_known_dtype(sparse->values->dtype_code)) fact.dtypes = static_cast<DType>(sparse->values->dtype_code);
  ops::Dims dims;
  for (const std::int64_t extent : sparse->dims.first(std::min(sparse->dims.size(), ops::kMaxRank)))
    dims.push_back(extent < 0 ? Dim() : facts_.dims().constant(extent));
  if (sparse->dims.size() <= ops::kMaxRank) fact.shape = facts_.intern_shape(dims);
  // A constant of the model is used like a dense tensor (onnx.GraphProto.sparse_initializer).
  fact.kind = ValueKind::kTensor;
  return facts_.intern(fact);
}

FactId InitialFacts::declared(const TypeDecl& type, std::uint64_t site) {
  Fact fact;
  const std::optional<ValueKind> kind = ops::value_kind(type.kind);
  if (!kind) return FactId::kTop;
  fact.kind = *kind;
  if (fact.kind == ValueKind::kTensor || fact.kind == ValueKind::kSparseTensor) {
    if (is_known_dtype(type.element_code)) fact.dtypes = static_cast<DType>(type.element_code);
    fact.range = range_of(fact.dtypes);
    // Shapes with more axes than any runtime has are not tracked: a file may declare millions.
    if (type.ranked && type.dims.size() <= ops::kMaxRank) fact.shape = facts_.intern_shape(dims_of(type, site));
  } else if (fact.kind == ValueKind::kMap && is_known_dtype(type.element_code)) {
    fact.key = static_cast<DType>(type.element_code);
  }
  // Elements of one sequence may differ in what the declaration leaves open: no shared symbols (site 0).
  if (type.element != nullptr) fact.element = declared(*type.element, 0);
  return facts_.intern(fact);
}

ops::Dims InitialFacts::dims_of(const TypeDecl& type, std::uint64_t site) {
  ops::Dims dims;
  for (std::uint32_t axis = 0; axis < type.dims.size(); ++axis) {
    const DimDecl& dim = type.dims[axis];
    if (dim.has_extent && dim.extent >= 0) {
      dims.push_back(facts_.dims().constant(dim.extent));
    } else if (const Dim named = dim.has_extent || site == 0 ? Dim() : extent_named(dim.name); !named.is_unknown()) {
      dims.push_back(named);
    } else {
      dims.push_back(site == 0 ? Dim() : facts_.dims().fresh(site, axis, Unknown::kNotTracked));
    }
  }
  return dims;
}

Dim InitialFacts::extent_named(NameId name) {
  const auto [known, is_new] = named_.try_emplace(static_cast<std::uint32_t>(name));
  if (!is_new) return known->second;
  const std::string_view text = model_.text(name);
  if (!is_extent_name(text)) return known->second;
  if (is_plain_name(text)) {
    known->second = facts_.dims().symbol(text);
  } else {
    formula_bytes_ += text.size();
    known->second = formula_bytes_ <= kMaxFormulaBytes ? dim_of_name(facts_.dims(), text) : facts_.dims().symbol(text);
  }
  return known->second;
}

FactId InitialFacts::refine(FactId base, const InputDeclaration& declared, std::uint64_t site) {
  Fact fact = facts_.fact(base);
  if (declared.dtypes) {
    fact.kind = ValueKind::kTensor;
    fact.dtypes = *declared.dtypes;
    fact.range = range_of(fact.dtypes);
    fact.attains = false;
    fact.content = ContentId::kNone;
  }
  if (declared.has_shape) {
    fact.kind = ValueKind::kTensor;
    fact.content = ContentId::kNone;
    ops::Dims dims;
    for (std::uint32_t axis = 0; axis < declared.dims.size(); ++axis) {
      const std::string& text = declared.dims[axis];
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
      if (error == std::errc() && end == text.data() + text.size() && extent >= 0) {
        dims.push_back(facts_.dims().constant(extent));
      } else {
        dims.push_back(text == "?" ? facts_.dims().fresh(site, axis, Unknown::kNotTracked)
                                   : dim_of_name(facts_.dims(), text));
      }
    }
    fact.shape = dims.size() <= ops::kMaxRank ? facts_.intern_shape(dims) : ShapeId::kUnranked;
  }
  if (declared.range) fact.range = *declared.range;
  // One number is known as such where positions, counts and limits are.
  constexpr double kExact = 9007199254740992;  // 2^53
  const bool is_scalar =
      fact.kind == ValueKind::kTensor && facts_.is_ranked(fact.shape) && facts_.dims_of(fact.shape).empty();
  if (declared.range && is_scalar && fact.dtypes.proves(DTypeSet::integers()) && fact.range.lo == fact.range.hi &&
      std::abs(fact.range.lo) < kExact)
    fact.content = facts_.intern_content({{facts_.dims().constant(static_cast<std::int64_t>(fact.range.lo))}, {}});
  return facts_.intern(fact);
}

}  // namespace tensorlint::dataflow
