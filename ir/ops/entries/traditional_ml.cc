// Traditional machine learning. Source: ONNX ai.onnx.ml, opsets 1 to 5.
// Runtimes take [F] for one row of [1, F] in most of these: a result's row count is claimed for 2-d operands only.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "ir/ops/checks.h"

namespace tensorlint {
namespace {

const Constraint kFeatureRank{"feature_extractor_rank", ConstraintKind::kShapes, "the data have at least 1 axis"};
const Constraint kFeatureIndex{"feature_extractor_index", ConstraintKind::kIndexRange,
                               "indices are below the last extent"};
const Constraint kEncoderTable{"label_encoder_table", ConstraintKind::kAttribute,
                               "one list of keys, and as many values"};
const Constraint kTreeData{"tree_data_rank", ConstraintKind::kShapes, "the data have 2 axes"};
const Constraint kTreeNodes{"tree_nodes", ConstraintKind::kAttribute, "every list has one entry a node"};
const Constraint kOneHotCategories{"one_hot_encoder_categories", ConstraintKind::kAttribute,
                                   "exactly one of cats_int64s and cats_strings is given"};

std::size_t count_of(const Inference& in, std::string_view name) {
  const Attribute* attribute = in.attribute(name);
  return attribute == nullptr ? 0
                              : std::max({attribute->ints.size(), attribute->strings.size(), attribute->floats.size()});
}

Dim constant(Inference& in, std::size_t value) { return in.dims().constant(static_cast<std::int64_t>(value)); }

/// Rows of [N, F]; unknown for other ranks.
Dim rows(const Inference& in) { return in.rank(0) == 2 ? dim_of(in, 0, 0) : Dim(Unknown::kNotTracked); }

void same_shape(Inference& in) {
  if (const auto data = in.shape(0)) in.set_shape(0, *data);
}

void array_feature_extractor(Inference& in) {
  DimPool& pool = in.dims();
  const auto data = in.shape(0), indices = in.shape(1);
  if (!data) return;
  if (data->empty()) {
    in.fail(kFeatureRank, {0}, "{0} is a scalar, ArrayFeatureExtractor needs at least 1 axis");
    return;
  }
  Dims result = copy_dims(data->first(data->size() - 1));
  if (result.empty()) result.push_back(pool.constant(1));
  result.push_back(indices ? element_count(pool, *indices) : Dim(Unknown::kNotTracked));
  in.set_shape(0, result);
  const Bounds extent = pool.bounds(data->back());
  const auto elements = in.elements(1);
  if (!elements) return;
  for (const Dim element : *elements) {
    if (pool.bounds(element).lo < extent.hi) continue;
    in.fail(kFeatureIndex, {1, 0},
            fmt::format("index {} in {{1}} is outside the last axis of {{0}}, which has {} elements",
                        pool.to_text(element), pool.to_text(data->back())));
    return;
  }
}

void binarizer(Inference& in) {
  same_shape(in);
  in.set_range(0, {0, 1, false});
}

void cast_map(Inference& in) {
  const std::string_view target = in.string_attribute("cast_to", "TO_FLOAT");
  if (target == "TO_FLOAT") in.set_dtype(0, DType::kFloat32);
  if (target == "TO_STRING") in.set_dtype(0, DType::kString);
  if (target == "TO_INT64") in.set_dtype(0, DType::kInt64);
  const bool sparse = in.string_attribute("map_form", "DENSE") == "SPARSE";
  const std::int64_t length = in.int_attribute("max_map", 1);
  in.set_shape(0, Dims{in.dims().constant(1),
                       sparse && length >= 0 ? in.dims().constant(length) : Dim(Unknown::kDataDependent)});
}

/// Strings to int64 and back.
void swap_strings(Inference& in) {
  same_shape(in);
  const DTypeSet from = in.operand(0).dtypes;
  if (from == DTypeSet(DType::kString)) in.set_dtype(0, DType::kInt64);
  if (from == DTypeSet(DType::kInt64)) in.set_dtype(0, DType::kString);
}

void dict_vectorizer(Inference& in) {
  const Fact& map = in.operand(0);
  if (map.kind != ValueKind::kMap) return;
  const DTypeSet values = in.facts().fact(map.element).dtypes & in.result().dtypes;
  if (!values.empty()) in.set_dtype(0, values);
}

void feature_vectorizer(Inference& in) {
  DimPool& pool = in.dims();
  Dim width = pool.constant(0);
  for (std::size_t i = 0; i < in.operand_count(); ++i) {
    const auto shape = in.shape(static_cast<int>(i));
    if (!shape || shape->size() != 2) return;
    width = pool.add(width, shape->back());
  }
  const auto dimensions = in.ints_attribute("inputdimensions");
  if (dimensions) {
    width = pool.constant(0);
    for (const std::int64_t dimension : *dimensions) width = pool.add(width, pool.constant(dimension));
  }
  in.set_shape(0, Dims{rows(in), width});
}

void label_encoder(Inference& in) {
  if (in.opset() < 2) return swap_strings(in);
  same_shape(in);
  std::optional<std::size_t> key_count, value_count;
  std::size_t key_lists = 0, value_lists = 0;
  for (const std::string_view kind : {"int64s", "floats", "strings"}) {
    for (const auto& [role, lists, count] :
         {std::tuple("keys_", &key_lists, &key_count), std::tuple("values_", &value_lists, &value_count)}) {
      const std::string name = role + std::string(kind);
      if (in.attribute(name) == nullptr) continue;
      ++*lists;
      *count = count_of(in, name);
    }
  }
  if (in.attribute("keys_tensor") != nullptr) ++key_lists;
  if (in.attribute("values_tensor") != nullptr) ++value_lists;
  if (key_lists > 1 || value_lists > 1) {
    in.fail(kEncoderTable, {},
            fmt::format("LabelEncoder has {} lists of {}, it takes one", key_lists > 1 ? key_lists : value_lists,
                        key_lists > 1 ? "keys" : "values"));
  } else if (key_count && value_count && *key_count != *value_count) {
    in.fail(kEncoderTable, {}, fmt::format("LabelEncoder has {} keys and {} values", *key_count, *value_count));
  }
  if (in.attribute("values_strings") != nullptr) in.set_dtype(0, DType::kString);
  if (in.attribute("values_int64s") != nullptr) in.set_dtype(0, DType::kInt64);
  if (in.attribute("values_floats") != nullptr) in.set_dtype(0, DType::kFloat32);
  const Attribute* values = in.attribute("values_tensor");
  if (values == nullptr || values->tensor == nullptr || !is_known_dtype(values->tensor->dtype_code)) return;
  const DTypeSet dtype = DTypeSet(static_cast<DType>(values->tensor->dtype_code)) & in.result().dtypes;
  if (!dtype.empty()) in.set_dtype(0, dtype);
}

/// The class of each row, and scores in `columns` columns where their number is known.
void classes(Inference& in, std::string_view integers, Dim columns) {
  in.set_dtype(0, in.attribute(integers) != nullptr ? DType::kInt64 : DType::kString);
  in.set_shape(0, Dims{rows(in)});
  in.set_shape(1, Dims{rows(in), columns});
}

void linear_classifier(Inference& in) {
  const std::size_t labels = std::max(count_of(in, "classlabels_ints"), count_of(in, "classlabels_strings"));
  const auto features = in.rank(0) == 2 ? in.dims().as_constant(dim_of(in, 0, 1)) : std::nullopt;
  const auto weights = static_cast<std::int64_t>(count_of(in, "coefficients"));
  Dim columns(Unknown::kNotTracked);
  // One row of weights for two labels: the score of the other class is its complement.
  if (features && *features > 0 && weights % *features == 0) {
    const std::int64_t scores = weights / *features;
    if (labels == 2 ? scores == 1 || scores == 2 : labels > 2 && scores == static_cast<std::int64_t>(labels))
      columns = constant(in, labels);
  }
  classes(in, "classlabels_ints", columns);
}

void svm_classifier(Inference& in) {
  const std::size_t labels = std::max(count_of(in, "classlabels_ints"), count_of(in, "classlabels_strings"));
  classes(in, "classlabels_ints",
          count_of(in, "prob_a") > 0 && labels > 1 ? constant(in, labels) : Dim(Unknown::kNotTracked));
}

/// Lists that describe the nodes of trees: one entry a node, each. `reference` is one that has to be there.
void check_nodes(Inference& in, std::string_view reference) {
  const std::size_t nodes = count_of(in, reference);
  for (const std::string_view name :
       {"nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs",
        "nodes_nodeids", "nodes_modes", "nodes_values", "nodes_missing_value_tracks_true"}) {
    const Attribute* given = in.attribute(name);
    if (nodes == 0 || given == nullptr || given->kind == AttributeKind::kTensor) continue;
    if (const std::size_t count = count_of(in, name); count != 0 && count != nodes) {
      in.fail(kTreeNodes, {},
              fmt::format("`{}` of {} has {} entries, `{}` has {}: one a node needed", name, in.call().name, count,
                          reference, nodes));
      return;
    }
  }
}

void tree_classifier(Inference& in) {
  check_nodes(in, "nodes_treeids");
  const std::size_t labels = std::max(count_of(in, "classlabels_int64s"), count_of(in, "classlabels_strings"));
  classes(in, "classlabels_int64s", labels > 1 ? constant(in, labels) : Dim(Unknown::kNotTracked));
}

/// [N, targets]; `fallback` 0: unknown without the attribute.
void regressor(Inference& in, std::string_view attribute, std::int64_t fallback) {
  const std::int64_t targets = in.int_attribute(attribute, fallback);
  in.set_shape(0, Dims{rows(in), targets > 0 ? in.dims().constant(targets) : Dim(Unknown::kNotTracked)});
}

void tree_ensemble(Inference& in) {
  check_nodes(in, "nodes_featureids");
  check_rank(in, 0, {2}, kTreeData);
  regressor(in, "n_targets", 1);
}

void tree_regressor(Inference& in) {
  check_nodes(in, "nodes_treeids");
  regressor(in, "n_targets", 0);
}

void svm_regressor(Inference& in) { in.set_shape(0, Dims{rows(in), in.dims().constant(1)}); }

void one_hot_encoder(Inference& in) {
  const std::size_t integers = count_of(in, "cats_int64s"), strings = count_of(in, "cats_strings");
  if ((integers == 0) == (strings == 0)) {
    in.fail(kOneHotCategories, {},
            fmt::format("OneHotEncoder has {} of cats_int64s and cats_strings", integers == 0 ? "neither" : "both"));
    return;
  }
  in.set_range(0, {0, 1, false});
  const auto data = in.shape(0);
  if (!data) return;
  Dims result = copy_dims(*data);
  result.push_back(constant(in, std::max(integers, strings)));
  in.set_shape(0, result);
}

void zip_map(Inference& in) {
  Fact value, map;
  value.kind = ValueKind::kTensor;
  value.dtypes = DType::kFloat32;
  map.kind = ValueKind::kMap;
  map.key = in.attribute("classlabels_strings") != nullptr ? DType::kString : DType::kInt64;
  map.element = in.facts().intern(value);
  Fact& result = in.result();
  result = Fact();
  result.kind = ValueKind::kSequence;
  result.element = in.facts().intern(map);
  result.shape = in.facts().intern_shape(Dims{rows(in)});
}

OpEntry ml(std::string_view name, InferFunction function) { return OpEntry(name, "ai.onnx.ml").infer(function); }

const RegisterOps kTraditional{
    ml("ArrayFeatureExtractor", array_feature_extractor).constraint(kFeatureRank).constraint(kFeatureIndex),
    ml("Binarizer", binarizer),
    ml("CastMap", cast_map),
    ml("CategoryMapper", swap_strings),
    ml("DictVectorizer", dict_vectorizer),
    ml("FeatureVectorizer", feature_vectorizer),
    ml("Imputer", same_shape),
    ml("LabelEncoder", label_encoder).constraint(kEncoderTable),
    ml("LinearClassifier", linear_classifier),
    ml("LinearRegressor", [](Inference& in) { regressor(in, "targets", 1); }),
    ml("Normalizer", same_shape),
    ml("OneHotEncoder", one_hot_encoder).constraint(kOneHotCategories),
    ml("SVMClassifier", svm_classifier),
    ml("SVMRegressor", svm_regressor),
    ml("Scaler", same_shape),
    ml("TreeEnsemble", tree_ensemble).constraint(kTreeNodes).constraint(kTreeData),
    ml("TreeEnsembleClassifier", tree_classifier).constraint(kTreeNodes),
    ml("TreeEnsembleRegressor", tree_regressor).constraint(kTreeNodes),
    ml("ZipMap", zip_map),
};

}  // namespace
}  // namespace tensorlint
