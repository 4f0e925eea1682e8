#include "runtime/executor/kernel_registry.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/ops/entry.h"
#include "ir/schema/schema.h"
#include "ir/schema/schema_builder.h"
#include "runtime/interpreter/evaluator.h"

namespace tensorlint::runtime {
namespace {

constexpr DTypeSet kSmallFloats = DTypeSet(DType::kFloat32) | DType::kFloat16 | DType::kBFloat16;
constexpr DTypeSet kFloats = kSmallFloats | DType::kFloat64;
constexpr DTypeSet kElements =
    kFloats | DType::kInt8 | DType::kInt16 | DType::kInt32 | DType::kInt64 | DType::kUint8 | DType::kBool;
constexpr DTypeSet kWords = kElements | DType::kUint16 | DType::kUint32 | DType::kUint64;

struct KernelOperators {
  std::string_view domain;
  std::string_view names;      ///< separated by spaces
  DTypeSet dtypes;             ///< of every type variable that allows one of them; another one keeps all that it allows
  std::string_view condition;  ///< besides extents that are known before the run
  DTypeSet indices = {};       ///< of the first type variable, where these are others
};

constexpr KernelOperators kKernelOperators[] = {
    {"", "ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceSumSquare", kElements, "axes known before the run"},
    {"", "ReduceMean ReduceL2 ReduceLogSum ReduceLogSumExp", kFloats, "axes known before the run"},
    {"", "ArgMax ArgMin", kElements, ""},
    {"", "Softmax LogSoftmax", kFloats, ""},
    {"", "SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss", kFloats, "first result only"},
    {"tensorlint", "MseLoss L1Loss SmoothL1Loss HuberLoss BceLoss BceWithLogitsLoss KlDivLoss", kFloats,
     "operands of one shape"},
    {"tensorlint", "CrossEntropyLoss NllLoss", kFloats | DType::kInt64, ""},
    {"", "MatMul Gemm", kFloats, ""},
    {"", "Einsum", kFloats, "two operands, of which no axis is summed up alone"},
    {"", "Attention", kSmallFloats | DType::kBool,
     "one dtype; first result only; no caches, windows or capped scores; heads of at most 256 elements"},
    {"", "Conv", kFloats, "one or two spatial axes"},
    {"", "MaxPool AveragePool", kFloats, "one or two spatial axes; first result only"},
    {"", "GlobalAveragePool GlobalMaxPool", kFloats, ""},
    {"", "LayerNormalization RMSNormalization InstanceNormalization GroupNormalization", kFloats,
     "one dtype; first result only"},
    {"", "BatchNormalization", kFloats, "one dtype; given statistics"},
    {"", "Add Sub Mul Min Max Neg Abs Sign Relu Equal Greater Less GreaterOrEqual LessOrEqual And Or Xor Not Where",
     kElements, "at most 8 axes"},
    {"", "Cast CastLike", kElements, "at most 8 axes"},
    {"", "Clip", kElements, "at most 8 axes"},
    {"", "Div", kElements, "at most 8 axes; integers: a divisor that is known and not 0"},
    {"", "Mod", kElements,
     "at most 8 axes; integers: a divisor that is known and not 0; floats: a remainder with the sign of the dividend"},
    {"", "Pow", kElements, "at most 8 axes; integers: an exponent that is known and not negative"},
    {"", "Sum", kFloats, "at most 8 axes; two operands"},
    {"",
     "Exp Log Sqrt Reciprocal Erf Tanh Sigmoid LeakyRelu Elu Gelu HardSigmoid HardSwish Softplus Swish Floor Ceil "
     "Round Sin Cos IsNaN",
     kFloats, "at most 8 axes"},
    {"",
     "Identity Reshape Flatten Squeeze Unsqueeze Transpose Expand Tile Concat Split DepthToSpace SpaceToDepth Gather "
     "GatherElements GatherND",
     kWords, "at most 8 axes"},
    {"", "Slice Pad", kWords, "at most 8 axes; bounds known before the run"},
    {"", "ScatterElements ScatterND", kWords, "at most 8 axes; no reduction"},
    {"", "ConstantOfShape EyeLike", kWords, "at most 8 axes"},
    {"", "OneHot", kWords, "at most 8 axes; at most 16384 indices", DTypeSet(DType::kInt32) | DType::kInt64},
};

const KernelOperators* operators_of(const OpSchema& schema) {
  for (const KernelOperators& group : kKernelOperators) {
    if (group.domain != schema.domain) continue;
    for (std::string_view rest = group.names; !rest.empty();) {
      const std::size_t space = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, space) == schema.name) return &group;
      rest.remove_prefix(std::min(space + 1, rest.size()));
    }
  }
  return nullptr;
}

/// "T=float32,int64" of the type variables that have fewer dtypes here than the operator allows.
std::string types_text(const OpSchema& schema, const KernelOperators& group) {
  std::string text;
  for (const TypeConstraint& variable : schema.types) {
    const bool is_index = !group.indices.empty() && &variable == &schema.types[0];
    const DTypeSet common = variable.allowed.tensor & (is_index ? group.indices : group.dtypes);
    if (common.empty() || variable.name.find('(') != std::string_view::npos) continue;
    std::vector<std::string_view> names;
    for (int i = 1; i < kDTypeCount; ++i)
      if (const auto dtype = static_cast<DType>(i); common.contains(dtype)) names.push_back(to_text(dtype));
    text += fmt::format(" {}={}", variable.name, fmt::join(names, ","));
  }
  return text;
}

/// Rows of all versions for which `row` gives the end of one, the newest of an operator first.
template <typename Row>
std::string rows(std::span<const OpSchema> schemas, const Row& row) {
  std::string text;
  for (std::size_t first = 0; first < schemas.size();) {
    std::size_t last = first;
    while (last + 1 < schemas.size() && schemas[last + 1].name == schemas[first].name &&
           schemas[last + 1].domain == schemas[first].domain)
      ++last;
    for (std::size_t i = last + 1; i-- > first;) {
      const OpSchema& schema = schemas[i];
      std::string end;
      if (!row(schema, end)) continue;
      text += fmt::format("{}{}{} ", schema.domain, schema.domain.empty() ? "" : ".", schema.name);
      text += i == last ? fmt::format("{}+", schema.since_version)
                        : fmt::format("{}-{}", schema.since_version, schemas[i + 1].since_version - 1);
      text += end + "\n";
    }
    first = last + 1;
  }
  return text;
}

constexpr std::string_view kNotice =
    "# Generated by `./dev update`, from {}. Do not edit.\nprovider {}\ndevice {}\nhost tensorlint-cpu\n"
    "source tensorlint\n";

/// All of ai.onnx and our own domain, whose losses have schemas of their own. Sorted.
template <typename Row>
std::string rows(const Row& row) {
  std::string text = rows(all_schemas(), row);
  std::set<std::string_view> losses;
  for (const Evaluator& evaluator : all_evaluators())
    if (evaluator.domain() == "tensorlint") losses.insert(evaluator.name());
  for (const std::string_view name : losses) text += rows(handwritten_versions("tensorlint", name), row);
  return text;
}

}  // namespace

std::string kernel_registry_text() {
  return fmt::format(fmt::runtime(kNotice), "runtime/executor/kernel_registry.cc", "tensorlint-cuda", "cuda:0") +
         rows([](const OpSchema& schema, std::string& end) {
           const KernelOperators* const group = operators_of(schema);
           if (group == nullptr) return false;
           end = types_text(schema, *group);
           if (!group->condition.empty()) end += fmt::format("  # {}", group->condition);
           return true;
         });
}

const placement::ProviderTable& kernel_registry() {
  static const placement::ProviderTable table =
      *placement::parse_provider(kernel_registry_text(), "kernel_registry.cc");
  return table;
}

std::string interpreter_provider_text() {
  return fmt::format(fmt::runtime(kNotice), "the evaluators of runtime/interpreter/ops", "tensorlint-cpu", "cpu") +
         rows([](const OpSchema& schema, std::string&) {
           return find_evaluator(schema.domain, schema.name, schema.since_version) != nullptr ||
                  !schema.function_body.empty() ||
                  ops::has_trait(ops::find_entry(schema.domain, schema.name, schema.since_version),
                                 ops::OpTrait::kControlFlow);
         });
}

}  // namespace tensorlint::runtime
