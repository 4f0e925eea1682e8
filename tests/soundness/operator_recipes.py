"""Calls of operators that ONNX's backend tests do not have: operators without such a test, and old versions with parameters of
their own. Where neither onnxruntime nor the reference evaluator has the version, the recipe computes the results, as the
operator's specification says.
"""
import typing

import numpy as np
from onnx import TensorProto, helper

ML = "ai.onnx.ml"
RNG = np.random.default_rng(16)  # facts hold of all numbers; these are the same in every run


class Recipe(typing.NamedTuple):
    name: str
    version: int
    inputs: list     # arrays, lists of arrays (a sequence), None (absent)
    results: list    # arrays, where `exact`; else only how many count
    attributes: dict
    domain: str
    exact: bool      # for this version alone, and not for the reference evaluator, which takes it for another


def call(name, version, *inputs, outputs=1, domain="", exact=False, **attributes):
    return Recipe(name, version, list(inputs), [None] * outputs, attributes, domain, exact)


def computed(name, version, inputs, results, domain="", **attributes):
    """A call whose results stand here, for a version that the engines lack."""
    return Recipe(name, version, list(inputs), [np.asarray(result) for result in results], attributes, domain, True)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def texts(*values):
    return np.array(values, object)


def type_of(value):
    if isinstance(value, list):
        return helper.make_sequence_type_proto(type_of(value[0]))
    if isinstance(value, dict):
        key, item = next(iter(value.items()))
        return helper.make_map_type_proto(TensorProto.STRING if isinstance(key, str) else TensorProto.INT64, type_of(np.asarray(item)))
    code = TensorProto.STRING if value.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_type_proto(code, value.shape)


def feeds_of(recipe):
    return {f"x{i}": value for i, value in enumerate(recipe.inputs) if value is not None}


def results_of(recipe):
    return {f"y{i}": value for i, value in enumerate(recipe.results) if value is not None}


def model_of(recipe):
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(recipe.inputs)]
    outputs = [f"y{i}" for i in range(len(recipe.results))]
    node = helper.make_node(recipe.name, names, outputs, domain=recipe.domain, **recipe.attributes)
    graph = helper.make_graph([node], "main", [helper.make_value_info(name, type_of(value)) for name, value in feeds_of(recipe).items()], [])
    for name in outputs:
        graph.output.add().name = name
    imports = [helper.make_opsetid(recipe.domain, recipe.version)] + ([helper.make_opsetid("", 13)] if recipe.domain else [])
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def old_forms():
    """Versions before the first one that engines have, with the attributes of their time."""
    x, image = floats(2, 3), floats(1, 2, 4, 4)
    scale, bias, mean, var = floats(2), floats(2), floats(2), np.abs(floats(2)) + 1
    column = lambda v: v[:, None, None]
    yield computed("BatchNormalization", 1, [image, scale, bias, mean, var],
                   [column(scale) * (image - column(mean)) / np.sqrt(column(var) + np.float32(1e-5)) + column(bias)], consumed_inputs=[0, 0, 0, 1, 1], is_test=1)
    yield computed("Cast", 1, [x], [x.astype(np.int64)], to="INT64")
    yield computed("Clip", 1, [x], [np.clip(x, -0.5, 0.5)], min=-0.5, max=0.5)
    yield computed("Dropout", 1, [x], [x, np.ones_like(x)], ratio=0.0)
    yield computed("Dropout", 1, [x], [x], is_test=1)
    yield computed("Dropout", 6, [x], [x, np.ones_like(x)], ratio=0.0)
    a, b, c = floats(3, 2), floats(4, 3), floats(4)
    yield computed("Gemm", 1, [a, b, c], [2 * a.T @ b.T + c], alpha=2.0, transA=1, transB=1, broadcast=1)
    yield call("Gemm", 6, a, b, c, alpha=2.0, transA=1, transB=1, broadcast=1)
    yield computed("GlobalLpPool", 1, [image], [np.sqrt((image ** 2).sum((2, 3), keepdims=True))], p=2.0)
    windows = np.lib.stride_tricks.sliding_window_view(image, (2, 2), (2, 3))
    yield computed("LpPool", 1, [image], [np.sqrt((windows ** 2).sum((4, 5)))[:, :, ::2, ::2]], kernel_shape=[2, 2], strides=[2, 2], p=2.0)
    yield computed("Pad", 1, [x], [np.pad(x, ((0, 1), (2, 0)), constant_values=1.5)], paddings=[0, 2, 1, 0], value=1.5)
    step, w, r = floats(1, 2, 3), floats(1, 4, 3), floats(1, 4, 4)
    hidden = np.tanh(step[0] @ w[0].T)[None, None]
    yield computed("RNN", 1, [step, w, r], [hidden, hidden[0]], hidden_size=4, output_sequence=1)
    yield call("Reshape", 1, x, shape=[3, -1])
    yield computed("Reshape", 1, [x], [x.reshape(3, 2)], shape=[3, -1])
    yield computed("Split", 1, [floats(4, 2)], [floats(1, 2), floats(3, 2)], axis=0, split=[1, 3])
    yield computed("Split", 1, [floats(4, 2), np.array([1, 3], np.float32)], [floats(1, 2), floats(3, 2)], axis=0)
    yield computed("Tile", 1, [x, np.array(3, np.float32), np.array(1, np.float32)], [np.tile(x, (1, 3))])
    yield call("TopK", 1, floats(3, 5), outputs=2, axis=1, k=2)
    upsampled = image.repeat(2, 2).repeat(3, 3)
    yield computed("Upsample", 1, [image], [upsampled], height_scale=2.0, width_scale=3.0, mode="nearest")
    yield call("Upsample", 7, image, scales=[1.0, 1.0, 2.0, 3.0])
    yield call("Upsample", 9, image, np.array([1, 1, 2, 3], np.float32))
    yield call("DepthToSpace", 1, floats(1, 8, 2, 3), blocksize=2)
    yield call("DequantizeLinear", 10, np.array([[1, 2], [3, 255]], np.uint8), np.array(0.5, np.float32), np.array(3, np.uint8))
    yield call("DequantizeLinear", 13, np.array([[1, 2], [3, -5]], np.int8), np.array([0.5, 2], np.float32), axis=1)
    yield call("Scatter", 9, floats(3, 3), np.array([[1, 0, 2], [0, 2, 1]], np.int64), floats(2, 3), axis=0)
    for name in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean", "ReduceSum"):
        for attributes in ({"axes": [1], "keepdims": 0}, {"axes": [0, 2]}, {"keepdims": 0}):
            yield call(name, 1, np.abs(floats(2, 3, 4)) + 1, **attributes)
    roi = np.array([[0, 0, 1, 1], [1, 1, 3, 3]], np.float32)
    yield call("RoiAlign", 10, image, roi, ints(0, 0), output_height=2, output_width=3)
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Tanh", ["s"], ["t"]), helper.make_node("Identity", ["t"], ["z"])], "body",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("s", TensorProto.FLOAT, [2, 3])],
                             [helper.make_tensor_value_info("on", TensorProto.BOOL, []), *(helper.make_tensor_value_info(v, TensorProto.FLOAT, [2, 3]) for v in "tz")])
    yield computed("Loop", 1, [np.array(2, np.int64), np.array(True), x], [np.tanh(np.tanh(x)), np.stack([np.tanh(x), np.tanh(np.tanh(x))])], body=body)
    yield call("Resize", 10, image, np.array([1, 1, 2, 1.5], np.float32), mode="nearest")
    yield call("Resize", 11, image, np.zeros(0, np.float32), np.array([1, 1, 2, 1.5], np.float32))
    yield call("Resize", 11, image, np.zeros(0, np.float32), np.zeros(0, np.float32), ints(1, 2, 7, 5))


def without_backend_tests():
    """Operators that ONNX has no backend test of."""
    image = floats(1, 2, 4, 4)
    yield call("GlobalLpPool", 2, image, p=1)
    yield computed("GlobalLpPool", 22, [image], [np.abs(image).sum((2, 3), keepdims=True)], p=1)
    rois = np.array([[0, 0, 0, 1, 1], [0, 1, 1, 3, 3]], np.float32)
    pooled = np.zeros((2, 2, 2, 2), np.float32)
    pooled[0] = image[0, :, :2, :2]
    pooled[1, :, 0, 0], pooled[1, :, 0, 1] = image[0, :, 1:3, 1:3].max((1, 2)), image[0, :, 1:3, 2:4].max((1, 2))
    pooled[1, :, 1, 0], pooled[1, :, 1, 1] = image[0, :, 2:4, 1:3].max((1, 2)), image[0, :, 2:4, 2:4].max((1, 2))
    yield call("MaxRoiPool", 1, image, rois, pooled_shape=[2, 2])
    yield computed("MaxRoiPool", 22, [image, rois], [pooled], pooled_shape=[2, 2])
    for dtype in (TensorProto.INT32, TensorProto.INT64):
        drawn = np.array([[0, 2, 1, 1], [2, 2, 0, 0]], helper.tensor_dtype_to_np_dtype(dtype))
        yield call("Multinomial", 7, floats(2, 3), sample_size=4, dtype=dtype)
        yield computed("Multinomial", 22, [floats(2, 3)], [drawn], sample_size=4, dtype=dtype)
    for version in (1, 22):
        for name, more in (("RandomNormal", {"mean": 2.0, "scale": 0.5}), ("RandomUniform", {"low": -3.0, "high": -1.0})):
            yield call(name, version, shape=[3, 4], **more)
            yield call(name, version, shape=[0], dtype=TensorProto.DOUBLE, seed=1.0, **more)
            yield call(f"{name}Like", version, floats(2, 5), **more)
            yield call(f"{name}Like", version, ints(1, 2, 3), dtype=TensorProto.DOUBLE, **more)
    yield call("Identity", 1, image)
    yield call("Shape", 15, image, start=1, end=-1)
    yield call("Split", 18, floats(4, 5), outputs=2, axis=1, num_outputs=2)
    pair = [floats(2, 3), floats(2, 3)]
    yield call("SequenceAt", 11, pair, np.array(1, np.int64))
    yield call("SequenceInsert", 11, pair, floats(2, 3))
    yield call("SequenceErase", 11, pair, np.array(0, np.int64))
    yield call("SequenceLength", 11, pair)
    yield call("ConcatFromSequence", 11, pair, axis=1, new_axis=1)
    x = floats(2, 3)
    for version in (15, 28):
        yield computed("Optional", version, [x], [x])


def feature_operators():
    """ai.onnx.ml: from tables of features to tensors."""
    x, words = floats(4, 3), texts("a", "b", "a")
    yield call("ArrayFeatureExtractor", 1, x, ints(0, 2), domain=ML)
    yield call("Binarizer", 1, x, threshold=0.25, domain=ML)
    yield call("CastMap", 1, {0: 1.5, 2: -2.0}, cast_to="TO_FLOAT", map_form="DENSE", domain=ML)
    yield call("CastMap", 1, {0: 1.5, 2: -2.0}, cast_to="TO_INT64", map_form="SPARSE", max_map=5, domain=ML)
    yield call("CastMap", 1, {0: "1.5", 2: "3"}, cast_to="TO_STRING", domain=ML)
    yield call("CategoryMapper", 1, words, cats_strings=["a", "b"], cats_int64s=[3, 7], default_int64=-2, domain=ML)
    yield call("CategoryMapper", 1, ints(3, 4, 7), cats_strings=["a", "b"], cats_int64s=[3, 7], default_string="?", domain=ML)
    yield call("DictVectorizer", 1, {"a": 1.5, "c": 2.0}, string_vocabulary=["a", "b", "c", "d"], domain=ML)
    yield call("DictVectorizer", 1, {1: 1.5, 4: 2.0}, int64_vocabulary=[1, 2, 4], domain=ML)
    yield call("FeatureVectorizer", 1, floats(4, 2), floats(4, 3), inputdimensions=[2, 3], domain=ML)
    yield call("FeatureVectorizer", 1, floats(4, 2), inputdimensions=[2], domain=ML)
    yield call("Imputer", 1, x, imputed_value_floats=[0.5], replaced_value_float=0.0, domain=ML)
    yield call("Imputer", 1, np.array([[1, 2, 0], [0, 0, 3]], np.int64), imputed_value_int64s=[7, 8, 9], replaced_value_int64=0, domain=ML)
    yield call("LabelEncoder", 1, words, classes_strings=["b", "a"], default_int64=-3, domain=ML)
    yield call("LabelEncoder", 1, ints(0, 1, 2), classes_strings=["b", "a"], default_string="?", domain=ML)
    yield call("LabelEncoder", 2, words, keys_strings=["a", "b"], values_floats=[1.0, 2.0], domain=ML)
    yield call("LabelEncoder", 2, ints(1, 2), keys_int64s=[1, 2], values_int64s=[5, 6], domain=ML)
    yield call("Normalizer", 1, x, norm="L2", domain=ML)
    yield call("Normalizer", 1, np.abs(x), norm="MAX", domain=ML)
    yield call("OneHotEncoder", 1, ints(1, 2, 9), cats_int64s=[1, 2, 3], domain=ML)
    yield call("OneHotEncoder", 1, words, cats_strings=["a", "b", "c"], zeros=1, domain=ML)
    yield call("OneHotEncoder", 1, x.astype(np.int64), cats_int64s=[0, 1], domain=ML)
    yield call("Scaler", 1, x, offset=[1.0, 2.0, 3.0], scale=[0.5, 0.5, 2.0], domain=ML)
    yield call("Scaler", 1, x.astype(np.int64), offset=[1.0], scale=[0.5], domain=ML)
    yield call("ZipMap", 1, np.abs(floats(3, 2)), classlabels_strings=["a", "b"], domain=ML)
    yield call("ZipMap", 1, np.abs(floats(3, 2)), classlabels_int64s=[4, 9], domain=ML)


def linear_models():
    x = floats(4, 3)
    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        yield call("LinearClassifier", 1, x, outputs=2, coefficients=floats(9).tolist(), intercepts=[0.5, -0.5, 0.0], classlabels_ints=[4, 5, 9], post_transform=transform, domain=ML)
    yield call("LinearClassifier", 1, x, outputs=2, coefficients=floats(6).tolist(), intercepts=[0.5, -0.5], classlabels_strings=["no", "yes"], domain=ML)
    yield call("LinearClassifier", 1, x, outputs=2, coefficients=floats(3).tolist(), intercepts=[0.5], classlabels_ints=[0, 1], domain=ML)
    for targets in (1, 2):
        yield call("LinearRegressor", 1, x, coefficients=floats(3 * targets).tolist(), intercepts=floats(targets).tolist(), targets=targets, domain=ML)
    kernel = {"kernel_params": [0.5, 0.0, 3.0], "kernel_type": "RBF"}
    yield call("SVMRegressor", 1, x, coefficients=[1.0, -1.0], n_supports=2, support_vectors=floats(6).tolist(), rho=[0.25], domain=ML, **kernel)
    yield call("SVMRegressor", 1, x, coefficients=[1.0, -1.0], n_supports=2, support_vectors=floats(6).tolist(), rho=[0.25], one_class=1, domain=ML, **kernel)
    support = {"coefficients": floats(4).tolist(), "vectors_per_class": [2, 2], "support_vectors": floats(12).tolist(), "rho": [0.25]}
    yield call("SVMClassifier", 1, x, outputs=2, classlabels_ints=[3, 8], domain=ML, **support, **kernel)
    yield call("SVMClassifier", 1, x, outputs=2, classlabels_strings=["no", "yes"], prob_a=[0.5], prob_b=[0.25], domain=ML, **support, **kernel)
    yield call("SVMClassifier", 1, x, outputs=2, classlabels_ints=[3, 8, 9], coefficients=floats(12).tolist(), vectors_per_class=[2, 2, 2],
               support_vectors=floats(18).tolist(), rho=[0.25, 0.5, 0.0], domain=ML, **kernel)


def trees():
    """One tree of three nodes: x[1] <= 0.5 ? 0.25 : 0.75."""
    x = floats(4, 3)
    nodes = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
             "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "nodes_values": [0.5, 0.0, 0.0]}
    leaves = lambda kind: {f"{kind}_treeids": [0, 0], f"{kind}_nodeids": [1, 2], f"{kind}_ids": [0, 0 if kind == "target" else 1], f"{kind}_weights": [0.25, 0.75]}
    for version in (1, 3):
        yield call("TreeEnsembleRegressor", version, x, n_targets=1, domain=ML, **nodes, **leaves("target"))
        yield call("TreeEnsembleClassifier", version, x, outputs=2, classlabels_int64s=[4, 9], domain=ML, **nodes, **leaves("class"))
        yield call("TreeEnsembleClassifier", version, x, outputs=2, classlabels_strings=["no", "yes"], post_transform="SOFTMAX", domain=ML, **nodes, **leaves("class"))


def recipes():
    for family in (old_forms, without_backend_tests, feature_operators, linear_models, trees):
        yield from family()
