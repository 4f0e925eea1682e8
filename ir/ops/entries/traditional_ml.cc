// Traditional machine learning. Source: ONNX ai.onnx.ml, opsets 1 to 5.
// Runtimes take [F] for one row of [1, F] in most of these: a result's row count is claimed for 2-d operands only.
#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "base/text.h"
#include "ir/ops/checks.h"

namespace tensorlint::ops {
namespace {

const Constraint kFeatureRank{"feature_extractor_rank", ConstraintKind::kRank, "the data have at least 1 axis"};
const Constraint kFeatureIndex{"feature_extractor_index", ConstraintKind::kIndexRange,
                               "indices are below the last extent"};
const Constraint kEncoderTable{"label_encoder_table", ConstraintKind::kAttribute,
                               "one list of keys, and as many values"};
const Constraint kImputerValues{"imputer_values", ConstraintKind::kAttribute,
                                "imputed values are given: for floats or for integers"};
const Constraint kMapperTable{"category_mapper_table", ConstraintKind::kAttribute,
                              "as many strings as integers, at least one of each"};
const Constraint kMapForm{"cast_map_form", ConstraintKind::kAttribute,
                          "cast_to is TO_FLOAT, TO_STRING or TO_INT64; map_form is DENSE, or SPARSE with max_map >= 1"};
const Constraint kScalerTable{
    "scaler_table", ConstraintKind::kAttribute,
    "offset and scale have one entry, or one a feature; onnxruntime takes lists of one length"};
const Constraint kNormalizerNorm{"normalizer_norm", ConstraintKind::kAttribute, "the norm is MAX, L1 or L2"};
const Constraint kDataRank{"ml_data_rank", ConstraintKind::kRank, "the data are [N, F], or [F]"};
const Constraint kTargets{"regressor_targets", ConstraintKind::kAttribute, "the number of targets is at least 1"};
const Constraint kCoefficients{"regressor_coefficients", ConstraintKind::kAttribute,
                               "a coefficient for each target and feature; nothing reads further ones"};
const Constraint kLabels{"classifier_labels", ConstraintKind::kAttribute, "class labels are given"};
const Constraint kTreeData{"tree_data_rank", ConstraintKind::kRank, "the data have 2 axes"};
const Constraint kTreeNodes{"tree_nodes", ConstraintKind::kAttribute, "every list has one entry a node"};
const Constraint kTreeLinks{"tree_links", ConstraintKind::kAttribute,
                            "nodes of a tree have numbers of their own, and what refers to a node is in its tree"};
const Constraint kTreeFeatures{"tree_features", ConstraintKind::kIndexRange, "features are below the last extent"};
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
    in.fail(kFeatureRank, {0}, {"{} is a scalar, ArrayFeatureExtractor needs at least 1 axis", OperandRef(0)});
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
    // Unlike Gather's, these indices do not count from the back. Only onnxruntime looks.
    if (!element.is_unknown() && pool.bounds(element).hi < 0) {
      in.fails_somewhere(kFeatureIndex, {1, 0}, {"index {} in {} is negative", Index(element), OperandRef(1)},
                         {"the engine checks indices, as onnxruntime does"});
      return;
    }
    if (pool.bounds(element).lo < extent.hi) continue;
    in.fail(kFeatureIndex, {1, 0},
            {"index {} in {} is outside the last axis of {}, which has {} elements", Index(element), OperandRef(1),
             OperandRef(0), data->back()});
    return;
  }
}

void binarizer(Inference& in) {
  same_shape(in);
  in.set_range(0, {0, 1, false});
}

/// Data of one row or of rows; false where that fails.
bool check_rows(Inference& in) { return check_rank(in, 0, {1, 2}, kDataRank); }

/// The number of features: the last extent of [F] and [N, F].
std::optional<std::int64_t> feature_count(const Inference& in) {
  const auto rank = in.rank(0);
  if (!rank || *rank < 1 || *rank > 2) return std::nullopt;
  return in.call().facts->dims().as_constant(dim_of(in, 0, static_cast<std::size_t>(*rank) - 1));
}

void imputer(Inference& in) {
  same_shape(in);
  if (in.rank(0) == 0) {
    in.fail(kDataRank, {0}, {"{} is a scalar, Imputer needs at least 1 axis", OperandRef(0)});
  } else if (count_of(in, "imputed_value_floats") == 0 && count_of(in, "imputed_value_int64s") == 0) {
    in.fail(kImputerValues, {}, {"Imputer has neither imputed_value_floats nor imputed_value_int64s"});
  }
}

void scaler(Inference& in) {
  same_shape(in);
  if (in.rank(0) == 0) {
    in.fail(kDataRank, {0}, {"{} is a scalar, Scaler needs at least 1 axis", OperandRef(0)});
    return;
  }
  const auto features = feature_count(in);
  const auto offsets = static_cast<std::int64_t>(count_of(in, "offset")),
             scales = static_cast<std::int64_t>(count_of(in, "scale"));
  for (const auto& [name, count] : {std::pair("offset", offsets), std::pair("scale", scales)}) {
    if (count == 0) {
      in.fail(kScalerTable, {}, {"Scaler has no {}", AttributeName(name)});
      return;
    }
    if (count == 1 || !features || *features == count || *features == 1) continue;
    in.fail(kScalerTable, {0},
            {"{} of Scaler has {} entries, {} has {} features", AttributeName(name), count, OperandRef(0), *features});
    return;
  }
  if (offsets != scales)
    in.fails_somewhere(kScalerTable, {}, {"Scaler has {} offsets and {} scales", offsets, scales},
                       {"the engine is onnxruntime, which takes lists of one length only"});
}

void normalizer(Inference& in) {
  same_shape(in);
  if (!check_rows(in)) return;
  static_cast<void>(check_choice(in, "norm", in.string_attribute("norm", "MAX"), {"MAX", "L1", "L2"}, kNormalizerNorm));
}

/// One column for each entry of a map; a sparse map has `max_map` columns.
void cast_map(Inference& in) {
  const std::string_view target = in.string_attribute("cast_to", "TO_FLOAT");
  const std::string_view form = in.string_attribute("map_form", "DENSE");
  check_choice(in, "cast_to", target, {"TO_FLOAT", "TO_STRING", "TO_INT64"}, kMapForm);
  check_choice(in, "map_form", form, {"DENSE", "SPARSE"}, kMapForm);
  if (form == "SPARSE" && in.int_attribute("max_map", 1) < 1)
    in.fail(kMapForm, {},
            {"{} of CastMap is {}, at least 1 needed", AttributeName("max_map"), in.int_attribute("max_map", 1)});
  if (target == "TO_FLOAT") in.set_dtype(0, DType::kFloat32);
  if (target == "TO_STRING") in.set_dtype(0, DType::kString);
  if (target == "TO_INT64") in.set_dtype(0, DType::kInt64);
  const bool sparse = form == "SPARSE";
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

void category_mapper(Inference& in) {
  swap_strings(in);
  const std::size_t integers = count_of(in, "cats_int64s"), strings = count_of(in, "cats_strings");
  if (integers != strings || integers == 0)
    in.fail(kMapperTable, {},
            {"CategoryMapper has {} integers and {} strings, it needs as many of both, and at least one", integers,
             strings});
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
  if (key_lists == 0 || value_lists == 0) {
    in.fail(kEncoderTable, {}, {"LabelEncoder has no list of {}", key_lists == 0 ? "keys" : "values"});
  } else if (key_lists > 1 || value_lists > 1) {
    in.fail(kEncoderTable, {},
            {"LabelEncoder has {} lists of {}, it takes one", key_lists > 1 ? key_lists : value_lists,
             key_lists > 1 ? "keys" : "values"});
  } else if (key_count && value_count && *key_count != *value_count) {
    in.fail(kEncoderTable, {}, {"LabelEncoder has {} keys and {} values", *key_count, *value_count});
  }
  if (in.attribute("values_strings") != nullptr) in.set_dtype(0, DType::kString);
  if (in.attribute("values_int64s") != nullptr) in.set_dtype(0, DType::kInt64);
  if (in.attribute("values_floats") != nullptr) in.set_dtype(0, DType::kFloat32);
  const Attribute* values = in.attribute("values_tensor");
  if (values == nullptr || values->tensor == nullptr || !is_known_dtype(values->tensor->dtype_code)) return;
  const DTypeSet dtype = DTypeSet(static_cast<DType>(values->tensor->dtype_code)) & in.result().dtypes;
  if (!dtype.empty()) in.set_dtype(0, dtype);
}

/// The class of each row, and scores in `columns` columns where their number is known. Strings win where both kinds of
/// labels are given.
void classes(Inference& in, std::string_view integers, Dim columns) {
  const bool named = count_of(in, "classlabels_strings") > 0;
  if (!named && count_of(in, integers) == 0)
    in.fail(
        kLabels, {},
        {"{} has neither {} nor {}", in.call().name, AttributeName(integers), AttributeName("classlabels_strings")});
  in.set_dtype(0, named ? DType::kString : DType::kInt64);
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

/// Columns of scores: a probability for each class; without these, the value of each pair of classes, with both signs
/// where there is one pair; and without support vectors, one linear function for each class.
Dim svm_columns(Inference& in, std::size_t labels) {
  const std::size_t classes = count_of(in, "vectors_per_class");
  // The reference implementation drops a column of two after PROBIT.
  if (labels == 0 || in.string_attribute("post_transform", "NONE") == "PROBIT") return Dim(Unknown::kNotTracked);
  if (classes == 0) return constant(in, labels);
  if (classes != labels || labels < 2 || labels > kMaxContent) return Dim(Unknown::kNotTracked);
  return constant(in, count_of(in, "prob_a") > 0 || labels == 2 ? labels : labels * (labels - 1) / 2);
}

void svm_classifier(Inference& in) {
  check_rows(in);
  classes(in, "classlabels_ints",
          svm_columns(in, std::max(count_of(in, "classlabels_ints"), count_of(in, "classlabels_strings"))));
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
              {"{} of {} has {} entries, {} has {}: one a node needed", AttributeName(name), in.call().name, count,
               AttributeName(reference), nodes});
      return;
    }
  }
}

/// Branches lead to other nodes of their tree, and leaves of it have weights. onnxruntime refuses other trees when it
/// loads a model, and reads nothing of a leaf's links.
void check_links(Inference& in, std::string_view tree_ids, std::string_view node_ids) {
  const auto trees = in.ints_attribute("nodes_treeids"), nodes = in.ints_attribute("nodes_nodeids");
  const Attribute* const modes = in.attribute("nodes_modes");
  if (!trees || !nodes || trees->size() != nodes->size() || modes == nullptr ||
      modes->strings.size() != nodes->size() || in.failed())
    return;
  constexpr std::uint64_t kStepsPerNode = 24;  // to sort them, and to look each link up
  in.call().facts->meter().charge(kStepsPerNode * nodes->size());
  std::vector<std::pair<std::int64_t, std::int64_t>> known;
  known.reserve(nodes->size());
  for (std::size_t i = 0; i < nodes->size(); ++i) known.emplace_back((*trees)[i], (*nodes)[i]);
  std::ranges::sort(known);
  if (const auto twice = std::ranges::adjacent_find(known); twice != known.end()) {
    in.fail(kTreeLinks, {}, {"{} has two nodes {} in tree {}", in.call().name, twice->second, twice->first});
    return;
  }
  const auto is_known = [&](std::int64_t tree, std::int64_t node) {
    return std::ranges::binary_search(known, std::pair(tree, node));
  };
  for (const std::string_view name : {"nodes_truenodeids", "nodes_falsenodeids"}) {
    const auto links = in.ints_attribute(name);
    if (!links || links->size() != nodes->size()) continue;
    for (std::size_t i = 0; i < links->size(); ++i) {
      if (modes->strings[i] == "LEAF") continue;
      const std::int64_t node = (*nodes)[i], tree = (*trees)[i], to = (*links)[i];
      if (to != node && is_known(tree, to)) continue;
      in.fail(kTreeLinks, {},
              {"{} of {} is {} for node {} of tree {}, {}", AttributeName(name), in.call().name, to, node, tree,
               to == node ? "which is this node" : "which has no such node"});
      return;
    }
  }
  const auto weighted_trees = in.ints_attribute(tree_ids), weighted = in.ints_attribute(node_ids);
  if (!weighted_trees || !weighted || weighted_trees->size() != weighted->size()) return;
  for (std::size_t i = 0; i < weighted->size(); ++i) {
    if (is_known((*weighted_trees)[i], (*weighted)[i])) continue;
    in.fail(kTreeLinks, {},
            {"{} of {} has a weight for node {} of tree {}, which has no such node", AttributeName(node_ids),
             in.call().name, (*weighted)[i], (*weighted_trees)[i]});
    return;
  }
}

/// Features that branches ask for.
void check_features(Inference& in) {
  const auto features = in.ints_attribute("nodes_featureids");
  const auto count = feature_count(in);
  const Attribute* const modes = in.attribute("nodes_modes");
  if (!features || !count || modes == nullptr || modes->strings.size() != features->size()) return;
  for (std::size_t i = 0; i < features->size(); ++i) {
    if (modes->strings[i] == "LEAF" || ((*features)[i] >= 0 && (*features)[i] < *count)) continue;
    in.fail(kTreeFeatures, {0},
            {"{} of {} asks for feature {} of {} of shape {}", AttributeName("nodes_featureids"), in.call().name,
             (*features)[i], OperandRef(0), *in.shape(0)});
    return;
  }
}

void tree_classifier(Inference& in) {
  check_nodes(in, "nodes_treeids");
  check_links(in, "class_treeids", "class_nodeids");
  check_features(in);
  const std::size_t labels = std::max(count_of(in, "classlabels_int64s"), count_of(in, "classlabels_strings"));
  classes(in, "classlabels_int64s", labels > 1 ? constant(in, labels) : Dim(Unknown::kNotTracked));
}

/// [N, targets]; `fallback` 0: unknown without the attribute.
void regressor(Inference& in, std::string_view attribute, std::int64_t fallback) {
  const std::int64_t targets = in.int_attribute(attribute, fallback);
  if (in.attribute(attribute) != nullptr && targets < 1)
    in.fail(kTargets, {}, {"{} of {} is {}, at least 1 needed", AttributeName(attribute), in.call().name, targets});
  in.set_shape(0, Dims{rows(in), targets > 0 ? in.dims().constant(targets) : Dim(Unknown::kNotTracked)});
}

void linear_regressor(Inference& in) {
  regressor(in, "targets", 1);
  const auto features = feature_count(in);
  const std::int64_t targets = in.int_attribute("targets", 1);
  const auto given = static_cast<std::int64_t>(count_of(in, "coefficients"));
  if (!features || targets < 1 || given == 0 || given / targets >= *features) return;
  in.fail(kCoefficients, {0},
          {"{} of {} has {} numbers for {} target{} and the {} features of {}", AttributeName("coefficients"),
           in.call().name, given, targets, plural(targets), *features, OperandRef(0)});
}

void tree_ensemble(Inference& in) {
  check_nodes(in, "nodes_featureids");
  check_rank(in, 0, {2}, kTreeData);
  regressor(in, "n_targets", 1);
}

void tree_regressor(Inference& in) {
  check_nodes(in, "nodes_treeids");
  check_links(in, "target_treeids", "target_nodeids");
  check_features(in);
  regressor(in, "n_targets", 0);
}

void svm_regressor(Inference& in) {
  check_rows(in);
  in.set_shape(0, Dims{rows(in), in.dims().constant(1)});
}

void one_hot_encoder(Inference& in) {
  const std::size_t integers = count_of(in, "cats_int64s"), strings = count_of(in, "cats_strings");
  if ((integers == 0) == (strings == 0)) {
    in.fail(kOneHotCategories, {},
            {"OneHotEncoder has {} of cats_int64s and cats_strings", integers == 0 ? "neither" : "both"});
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

const RegisterOps kRegisterTraditionalMl{
    ml("ArrayFeatureExtractor", array_feature_extractor).constraint(kFeatureRank).constraint(kFeatureIndex),
    ml("Binarizer", binarizer),
    ml("CastMap", cast_map).constraint(kMapForm),
    ml("CategoryMapper", category_mapper).constraint(kMapperTable),
    ml("DictVectorizer", dict_vectorizer),
    ml("FeatureVectorizer", feature_vectorizer),
    ml("Imputer", imputer).constraint(kImputerValues).constraint(kDataRank),
    ml("LabelEncoder", label_encoder).constraint(kEncoderTable),
    ml("LinearClassifier", linear_classifier).constraint(kLabels),
    ml("LinearRegressor", linear_regressor).constraint(kTargets).constraint(kCoefficients),
    ml("Normalizer", normalizer).constraint(kNormalizerNorm).constraint(kDataRank),
    ml("OneHotEncoder", one_hot_encoder).constraint(kOneHotCategories),
    ml("SVMClassifier", svm_classifier).constraint(kLabels).constraint(kDataRank),
    ml("SVMRegressor", svm_regressor).constraint(kDataRank),
    ml("Scaler", scaler).constraint(kScalerTable).constraint(kDataRank),
    ml("TreeEnsemble", tree_ensemble).constraint(kTreeNodes).constraint(kTreeData).constraint(kTargets),
    ml("TreeEnsembleClassifier", tree_classifier)
        .constraint(kTreeNodes)
        .constraint(kTreeLinks)
        .constraint(kTreeFeatures)
        .constraint(kLabels),
    ml("TreeEnsembleRegressor", tree_regressor)
        .constraint(kTreeNodes)
        .constraint(kTreeLinks)
        .constraint(kTreeFeatures)
        .constraint(kTargets),
    ml("ZipMap", zip_map),
};

}  // namespace
}  // namespace tensorlint::ops
