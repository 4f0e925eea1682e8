"""Models with an axis that is declared dynamic and holds the size of the trace somewhere, each with its twin that follows
the input: what exporters write of programs that use a number where they meant `x.shape[...]`.

The trace has batch 4 and sequence 12; images are 28 by 28.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BATCH, SEQUENCE, WIDTH, HEADS = 4, 12, 8, 2
OPSET = 18


class Builder:
    """Nodes one after the other; names of results are those of their nodes."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.random = np.random.default_rng(7)

    def input(self, name: str, dims: list[str | int], dtype: int = TensorProto.FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, dtype, dims))
        return name

    def weight(self, *dims: int) -> str:
        return self.constant(self.random.standard_normal(dims).astype(np.float32))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op: str, *operands: str, name: str = "", results: int = 1, **attributes: Any) -> str:
        name = name or f"n{len(self.nodes)}"
        outputs = [name] + [f"{name}_{i}" for i in range(1, results)]
        self.nodes.append(helper.make_node(op, list(operands), outputs, name=name, **attributes))
        return name

    def extent(self, value: str, axis: int) -> str:
        """The extent along an axis, as a list of one."""
        return self.add("Shape", value, start=axis, end=axis + 1)

    def shape(self, *parts: str | int) -> str:
        """A list of numbers and extents."""
        lists = [self.integers(part) if isinstance(part, int) else part for part in parts]
        return self.add("Concat", *lists, axis=0)

    def model(self, *outputs: str) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "traced", self.inputs, [], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        inferred = onnx.shape_inference.infer_shapes(model)
        ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in inferred.graph.value_info}
        for name in outputs:
            dims = [f"{name}_{axis}" for axis in range(ranks[name])]
            model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        return model


def position_table(b: Builder, baked: bool) -> str:
    ids = b.input("ids", ["batch", "sequence"], TensorProto.INT64)
    hidden = b.add("Gather", b.weight(30, WIDTH), ids)
    table = b.weight(1, SEQUENCE, WIDTH)
    if not baked:
        table = b.add("Slice", b.weight(1, 64, WIDTH), b.integers(0), b.extent(ids, 1), b.integers(1))
    return b.add("Add", hidden, table, name="positions")


def rotary_table(b: Builder, baked: bool) -> str:
    x = b.input("x", ["batch", HEADS, "sequence", WIDTH])
    table = b.weight(1, 1, SEQUENCE, WIDTH)
    if not baked:
        table = b.add("Slice", b.weight(1, 1, 64, WIDTH), b.integers(0), b.extent(x, 2), b.integers(2))
    return b.add("Mul", x, table, name="rotate")


def batch_in_heads(b: Builder, baked: bool) -> str:
    x = b.input("x", ["batch", "sequence", WIDTH])
    batch = b.integers(BATCH) if baked else b.extent(x, 0)
    split = b.add("Reshape", x, b.shape(batch, -1, HEADS, WIDTH // HEADS), name="split")
    turned = b.add("Transpose", split, perm=[0, 2, 1, 3])
    back = b.add("Transpose", b.add("Relu", turned), perm=[0, 2, 1, 3])
    merged = b.add("Reshape", back, b.shape(batch, -1, WIDTH), name="merge")
    return b.add("Add", x, merged, name="residual")


def sequence_in_view(b: Builder, baked: bool) -> str:
    x = b.input("x", ["batch", "sequence", WIDTH])
    flat = b.add("Reshape", x, b.integers(-1, WIDTH))
    layer = b.add("MatMul", flat, b.weight(WIDTH, 5))
    if baked:
        return b.add("Reshape", layer, b.integers(BATCH, SEQUENCE, 5), name="view")
    return b.add("Reshape", layer, b.shape(b.extent(x, 0), b.extent(x, 1), 5), name="view")


def state_of_lstm(b: Builder, baked: bool) -> str:
    x = b.input("x", ["sequence", "batch", WIDTH])
    zero = numpy_helper.from_array(np.zeros(1, np.float32))
    batch = b.integers(BATCH) if baked else b.extent(x, 1)
    state = b.add("ConstantOfShape", b.shape(1, batch, 5), value=zero)
    return b.add("LSTM", x, b.weight(1, 20, WIDTH), b.weight(1, 20, 5), "", "", state, state, name="lstm", hidden_size=5)


def state_of_gru(b: Builder, baked: bool) -> str:
    x = b.input("x", ["sequence", "batch", WIDTH])
    state = b.weight(1, BATCH, 5) if baked else ""
    return b.add("GRU", x, b.weight(1, 15, WIDTH), b.weight(1, 15, 5), "", "", state, name="gru", hidden_size=5)


def scores_of(b: Builder) -> tuple[str, str]:
    x = b.input("x", ["batch", "sequence", WIDTH])
    return x, b.add("MatMul", x, b.add("Transpose", x, perm=[0, 2, 1]))


def causal_mask(b: Builder, baked: bool) -> str:
    x, scores = scores_of(b)
    length = b.integers(SEQUENCE) if baked else b.extent(x, 1)
    one = numpy_helper.from_array(np.ones(1, np.float32))
    square = b.add("ConstantOfShape", b.shape(length, length), value=one)
    return b.add("Add", scores, b.add("Trilu", square, upper=1), name="mask")


def boolean_mask(b: Builder, baked: bool) -> str:
    x, scores = scores_of(b)
    mask = b.constant(np.tril(np.ones((1, SEQUENCE, SEQUENCE), bool)))
    if not baked:
        whole = b.constant(np.tril(np.ones((1, 64, 64), bool)))
        length = b.extent(x, 1)
        mask = b.add("Slice", whole, b.integers(0, 0), b.shape(length, length), b.integers(1, 2))
    return b.add("Where", mask, scores, b.constant(np.array(-1e4, np.float32)), name="fill")


def flatten_before_linear(b: Builder, baked: bool) -> str:
    image = b.input("image", ["batch", 1, "height", 28])
    features = b.add("Conv", image, b.weight(2, 1, 3, 3), pads=[1, 1, 1, 1])
    if baked:
        pooled = b.add("MaxPool", features, kernel_shape=[4, 4], strides=[4, 4])
    else:
        pooled = b.add("GlobalAveragePool", features)
    flat = b.add("Flatten", pooled)
    return b.add("Gemm", flat, b.weight(98 if baked else 2, 10), name="head")


def features_in_view(b: Builder, baked: bool) -> str:
    x = b.input("x", ["batch", "sequence", WIDTH])
    if not baked:
        x = b.add("ReduceMean", x, b.integers(1), keepdims=1)
    view = b.add("Reshape", x, b.integers(0, (SEQUENCE if baked else 1) * WIDTH), name="view")
    return b.add("Gemm", view, b.weight((SEQUENCE if baked else 1) * WIDTH, 3))


def class_token(b: Builder, baked: bool) -> str:
    patches = b.input("patches", ["batch", "count", WIDTH])
    batch = b.integers(BATCH) if baked else b.extent(patches, 0)
    token = b.add("Expand", b.weight(1, 1, WIDTH), b.shape(batch, 1, WIDTH))
    return b.add("Concat", token, patches, name="prepend", axis=1)


def patches_with_positions(b: Builder, baked: bool) -> str:
    image = b.input("image", ["batch", 1, "height", 28])
    patches = b.add("Conv", image, b.weight(WIDTH, 1, 7, 7), strides=[7, 7])
    flat = b.add("Transpose", b.add("Reshape", patches, b.integers(0, 0, -1)), perm=[0, 2, 1])
    table = b.weight(1, 16, WIDTH)
    if not baked:
        table = b.add("Slice", b.weight(1, 400, WIDTH), b.integers(0), b.extent(flat, 1), b.integers(1))
    return b.add("Add", flat, table, name="positions")


def squeezed_batch(b: Builder, baked: bool) -> str:
    x = b.input("x", ["batch", WIDTH])
    if not baked:
        return b.add("Relu", x)
    return b.add("Squeeze", x, b.integers(0), name="row")


def relative_bias(b: Builder, baked: bool) -> str:
    _, scores = scores_of(b)
    if baked:
        return b.add("Add", scores, b.weight(SEQUENCE, SEQUENCE), name="bias")
    return b.add("Add", scores, b.weight(1, 1), name="bias")


def split_sequence(b: Builder, baked: bool) -> str:
    x = b.input("x", ["batch", "sequence", WIDTH])
    axis = 1 if baked else 2
    parts = b.integers(5, SEQUENCE - 5) if baked else b.integers(3, WIDTH - 3)
    return b.add("Split", x, parts, name="parts", results=2, axis=axis)


def resized_skip(b: Builder, baked: bool) -> str:
    image = b.input("image", ["batch", 2, "height", 28])
    down = b.add("MaxPool", image, kernel_shape=[2, 2], strides=[2, 2])
    if baked:
        up = b.add("Resize", down, "", b.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest")
        up = b.add("Slice", up, b.integers(0), b.integers(28), b.integers(2))
        up = b.add("Pad", up, b.shape(0, 0, 0, 0, 0, 0, 0, 0))
        up = b.add("Reshape", up, b.integers(0, 2, 28, 28), name="fixed")
    else:
        height = b.extent(image, 2)
        rest = b.add("Concat", b.extent(down, 0), b.integers(2), height, b.integers(28), axis=0)
        up = b.add("Resize", down, "", "", rest, mode="nearest")
    return b.add("Concat", image, up, name="skip", axis=1)


def adjacency(b: Builder, baked: bool) -> str:
    x = b.input("x", ["batch", "nodes", WIDTH])
    if baked:
        return b.add("MatMul", b.weight(SEQUENCE, SEQUENCE), x, name="neighbours")
    return b.add("MatMul", x, b.weight(WIDTH, WIDTH), name="neighbours")


def zeros_in_front(b: Builder, baked: bool) -> str:
    x = b.input("x", ["batch", "sequence", WIDTH])
    zero = numpy_helper.from_array(np.zeros(1, np.float32))
    batch = b.integers(BATCH) if baked else b.extent(x, 0)
    start = b.add("ConstantOfShape", b.shape(batch, 1, WIDTH), value=zero)
    return b.add("Concat", start, x, name="shift", axis=1)


@dataclass
class Traced:
    """A model, and the axis that holds the size of the trace."""

    build: Callable[[Builder, bool], str]
    axes: dict[tuple[str, int], tuple[int, int]]  # by input and axis: the sizes that run
    node: str
    formula: str = ""  # that has to be a number, where several sizes of the axes make it that

    @property
    def name(self) -> str:
        return self.build.__name__

    def model(self, baked: bool) -> onnx.ModelProto:
        builder = Builder()
        return builder.model(self.build(builder, baked))


def one(name: str, axis: int, size: int) -> dict[tuple[str, int], tuple[int, int]]:
    return {(name, axis): (size, size)}


TRACED = [
    Traced(position_table, one("ids", 1, SEQUENCE), "positions"),
    Traced(rotary_table, one("x", 2, SEQUENCE), "rotate"),
    Traced(batch_in_heads, one("x", 0, BATCH), "residual"),
    Traced(sequence_in_view, one("x", 0, BATCH) | one("x", 1, SEQUENCE), "view", "5*batch*sequence is 240"),
    Traced(state_of_lstm, one("x", 1, BATCH), "lstm"),
    Traced(state_of_gru, one("x", 1, BATCH), "gru"),
    Traced(causal_mask, one("x", 1, SEQUENCE), "mask"),
    Traced(boolean_mask, one("x", 1, SEQUENCE), "fill"),
    Traced(flatten_before_linear, {("image", 2): (28, 31)}, "head"),
    Traced(features_in_view, one("x", 1, SEQUENCE), "view"),
    Traced(class_token, one("patches", 0, BATCH), "prepend"),
    Traced(patches_with_positions, {("image", 2): (28, 34)}, "positions"),
    Traced(squeezed_batch, one("x", 0, 1), "row"),
    Traced(relative_bias, one("x", 1, SEQUENCE), "bias"),
    Traced(split_sequence, one("x", 1, SEQUENCE), "parts"),
    Traced(resized_skip, one("image", 2, 28), "skip"),
    Traced(adjacency, one("x", 1, SEQUENCE), "neighbours"),
    Traced(zeros_in_front, one("x", 0, BATCH), "shift"),
]
