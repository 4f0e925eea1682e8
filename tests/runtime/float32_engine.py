"""An engine that tests can bend: it runs a network node by node in float32, with sums in an order that is drawn, values
stored in another dtype, operands cut to tf32, or one node computed wrongly.

What is a sum it computes itself, one addition after the other, which rounds more than any engine does; onnxruntime
computes the other nodes, and all of them where `shuffles` is off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

Array = np.ndarray
Operands = list[Array | None]
Attributes = dict[str, Any]


def to_bfloat16(x: Array) -> Array:
    """float32 numbers rounded to those of bfloat16, to nearest even."""
    bits = x.view(np.uint32)
    rounded = (bits + (0x7FFF + (bits >> 16 & 1))) & np.uint32(0xFFFF0000)
    return np.where(np.isfinite(x), rounded.astype(np.uint32).view(np.float32), x).astype(np.float32)


def to_float16(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


def to_tf32(x: Array, how: str = "even") -> Array:
    """10 bits after the point: to nearest even, to nearest away from zero, or cut off."""
    bits = x.view(np.uint32).astype(np.uint64)
    if how == "even":
        bits = bits + np.uint64(0xFFF) + (bits >> np.uint64(13) & np.uint64(1))
    elif how == "away":
        bits = bits + np.uint64(0x1000)
    return (bits & np.uint64(0xFFFFE000)).astype(np.uint32).view(np.float32)


STORED: dict[str, Callable[[Array], Array]] = {"float": lambda x: x, "float16": to_float16, "bfloat16": to_bfloat16}


class Sums:
    """Operators that add up, for one draw of orders. `stored`: the dtype in which partial sums are kept."""

    def __init__(self, draw: np.random.Generator, stored: Callable[[Array], Array] | None = None) -> None:
        self.draw, self.stored = draw, stored

    def total(self, terms: Array, axes: int | tuple[int, ...], keepdims: bool = False) -> Array:
        axes = tuple(axis % terms.ndim for axis in ((axes,) if isinstance(axes, int) else axes))
        kept = [axis for axis in range(terms.ndim) if axis not in axes]
        rows = np.transpose(terms, [*kept, *axes]).reshape(*[terms.shape[axis] for axis in kept], -1)
        rows = rows[..., self.draw.permutation(rows.shape[-1])].astype(np.float32)
        if self.stored is None:
            result = np.cumsum(rows, axis=-1, dtype=np.float32)[..., -1] if rows.shape[-1] else np.zeros(rows.shape[:-1], np.float32)
        else:
            result = np.zeros(rows.shape[:-1], np.float32)
            for k in range(rows.shape[-1]):
                result = self.stored(np.asarray(result + rows[..., k], np.float32))
        if keepdims:
            result = result.reshape([1 if axis in axes else extent for axis, extent in enumerate(terms.shape)])
        return np.asarray(result, np.float32)

    def matmul(self, operands: Operands, attributes: Attributes) -> Array:
        a, b = operands[0], operands[1]
        assert a is not None and b is not None
        if a.ndim == 1 or b.ndim == 1:
            return self.total(a * np.moveaxis(b, -2, -1) if b.ndim > 1 else a * b, -1)
        return self.total(a[..., :, :, None] * b[..., None, :, :], -2)

    def gemm(self, operands: Operands, attributes: Attributes) -> Array:
        a, b = operands[0], operands[1]
        assert a is not None and b is not None
        product = self.matmul([a.T if attributes.get("transA") else a, b.T if attributes.get("transB") else b], {}) * np.float32(attributes.get("alpha", 1))
        return product if len(operands) < 3 or operands[2] is None else product + np.float32(attributes.get("beta", 1)) * operands[2]

    def conv(self, operands: Operands, attributes: Attributes) -> Array:
        x, w = operands[0], operands[1]
        assert x is not None and w is not None
        rank = x.ndim - 2
        pads, strides, group = attributes.get("pads", [0] * 2 * rank), attributes.get("strides", [1] * rank), attributes.get("group", 1)
        x = np.pad(x, [(0, 0), (0, 0), *[(pads[i], pads[rank + i]) for i in range(rank)]])
        spatial = tuple(range(2, 2 + rank))
        windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=spatial)[(slice(None), slice(None), *[slice(None, None, step) for step in strides])]
        parts = []
        for part, filters in zip(np.split(windows, group, axis=1), np.split(w, group, axis=0), strict=True):
            # [n, 1, c, out..., k...] and [1, m, c, 1..., k...]
            terms = part[:, None] * filters.reshape(1, filters.shape[0], filters.shape[1], *[1] * rank, *filters.shape[2:])
            parts.append(self.total(terms, (2, *range(3 + rank, 3 + 2 * rank))))
        result = np.concatenate(parts, axis=1)
        bias = operands[2] if len(operands) > 2 else None
        return result if bias is None else result + bias.reshape(1, -1, *[1] * rank)

    def axes_of(self, operands: Operands, attributes: Attributes) -> tuple[tuple[int, ...], bool]:
        x = operands[0]
        assert x is not None
        given = operands[1] if len(operands) > 1 else None
        axes = [int(axis) for axis in given] if given is not None else attributes.get("axes", range(x.ndim))
        return tuple(axes), bool(attributes.get("keepdims", 1))

    def reduction(self, before: Callable[[Array], Array], after: Callable[[Array, int], Array]) -> Callable[[Operands, Attributes], Array]:
        def reduce(operands: Operands, attributes: Attributes) -> Array:
            x = operands[0]
            assert x is not None
            axes, keepdims = self.axes_of(operands, attributes)
            count = int(np.prod([x.shape[axis] for axis in axes]))
            return np.asarray(after(self.total(before(x), axes, keepdims), count), np.float32)
        return reduce

    def normalised(self, x: Array, axes: tuple[int, ...], epsilon: float, divisor: int = 0) -> Array:
        count = np.float32(int(np.prod([x.shape[axis] for axis in axes])))
        off = x - self.total(x, axes, True) / count
        variance = self.total(off * off, axes, True) / (count - np.float32(divisor))
        return np.asarray(off / np.sqrt(variance + np.float32(epsilon)), np.float32)

    def layer_norm(self, operands: Operands, attributes: Attributes, divisor: int = 0) -> Array:
        x, scale = operands[0], operands[1]
        assert x is not None and scale is not None
        y = self.normalised(x, tuple(range(attributes.get("axis", -1) % x.ndim, x.ndim)), attributes.get("epsilon", 1e-5), divisor) * scale
        return y if len(operands) < 3 or operands[2] is None else y + operands[2]

    def instance_norm(self, operands: Operands, attributes: Attributes, divisor: int = 0) -> Array:
        x, scale, shift = operands
        assert x is not None and scale is not None and shift is not None
        per_channel = (1, -1, *[1] * (x.ndim - 2))
        return self.normalised(x, tuple(range(2, x.ndim)), attributes.get("epsilon", 1e-5), divisor) * scale.reshape(per_channel) + shift.reshape(per_channel)

    def rms_norm(self, operands: Operands, attributes: Attributes) -> Array:
        x, scale = operands
        assert x is not None and scale is not None
        axes = tuple(range(attributes.get("axis", -1) % x.ndim, x.ndim))
        count = np.float32(int(np.prod([x.shape[axis] for axis in axes])))
        return np.asarray(x / np.sqrt(self.total(x * x, axes, True) / count + np.float32(attributes.get("epsilon", 1e-5))) * scale, np.float32)

    def softmax(self, operands: Operands, attributes: Attributes) -> Array:
        x = operands[0]
        assert x is not None
        e = np.exp(x - x.max(attributes.get("axis", -1), keepdims=True))
        return np.asarray(e / self.total(e, attributes.get("axis", -1), True), np.float32)

    def log_softmax(self, operands: Operands, attributes: Attributes) -> Array:
        x = operands[0]
        assert x is not None
        off = x - x.max(attributes.get("axis", -1), keepdims=True)
        return np.asarray(off - np.log(self.total(np.exp(off), attributes.get("axis", -1), True)), np.float32)

    def variadic(self, operands: Operands, attributes: Attributes) -> Array:
        return self.total(np.stack(np.broadcast_arrays(*[x for x in operands if x is not None])), 0)

    def log_sum_exp(self, operands: Operands, attributes: Attributes) -> Array:
        x = operands[0]
        assert x is not None
        axes, keepdims = self.axes_of(operands, attributes)
        most = x.max(axes, keepdims=True)
        result = np.log(self.total(np.exp(x - most), axes, True)) + most
        return np.asarray(result if keepdims else result.reshape([extent for axis, extent in enumerate(x.shape) if axis not in [a % x.ndim for a in axes]]), np.float32)

    def table(self) -> dict[str, Callable[[Operands, Attributes], Array]]:
        whole: Callable[[Operands, Attributes], Array] = lambda operands, attributes: self.reduction(lambda x: x, lambda s, n: s / np.float32(n))(operands[:1], {"axes": range(2, operands[0].ndim)})  # type: ignore[union-attr]
        return {
            "MatMul": self.matmul, "Gemm": self.gemm, "Conv": self.conv, "GlobalAveragePool": whole,
            "ReduceSum": self.reduction(lambda x: x, lambda s, n: s), "ReduceMean": self.reduction(lambda x: x, lambda s, n: s / np.float32(n)),
            "ReduceL1": self.reduction(np.abs, lambda s, n: s), "ReduceSumSquare": self.reduction(np.square, lambda s, n: s),
            "ReduceL2": self.reduction(np.square, lambda s, n: np.sqrt(s)), "ReduceLogSum": self.reduction(lambda x: x, lambda s, n: np.log(s)), "ReduceLogSumExp": self.log_sum_exp,
            "LayerNormalization": self.layer_norm, "InstanceNormalization": self.instance_norm, "RMSNormalization": self.rms_norm,
            "Softmax": self.softmax, "LogSoftmax": self.log_softmax, "Sum": self.variadic,
        }


PRODUCTS = ("MatMul", "Gemm", "Conv")
Wrong = Callable[[Sums, Operands, Attributes], Array]


class Engine:
    """`stored`: the dtype of floating values between nodes. `wide`: this share of them stays in float32. `tf32`: how the
    operands of products are rounded. `wrong`: by name of node, what it computes instead."""

    def __init__(self, stored: str = "float", shuffles: bool = False, wide: float = 0, tf32: str = "", seed: int = 0, flushes: bool = False,
                 sums_in: str = "float", wrong: dict[str, Wrong] | None = None) -> None:
        self.stored, self.shuffles, self.wide, self.tf32, self.flushes, self.wrong = STORED[stored], shuffles, wide, tf32, flushes, wrong or {}
        self.draw = np.random.default_rng(seed)
        self.sums = Sums(self.draw, None if sums_in == "float" else STORED[sums_in])
        self.sums_in = sums_in

    def run(self, model: onnx.ModelProto, inputs: dict[str, Array], rounds: set[str] | None = None) -> dict[str, Array]:
        """All values, as they are recorded; `rounds`: those that are stored, others stay in float32 (default: all)."""
        constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        values = dict(constants)
        values.update({name: self.kept(array) for name, array in inputs.items()})
        reads = dict(values)
        for node in model.graph.node:
            for name, array in zip(node.output, self.node(model, node, [reads[name] if name else None for name in node.input]), strict=True):
                is_stored = rounds is None or name in rounds
                values[name] = self.kept(array) if is_stored else array
                reads[name] = array if self.draw.random() < self.wide else values[name]
        return {name: array for name, array in values.items() if name not in constants}

    def kept(self, array: Array) -> Array:
        if array.dtype != np.float32:
            return array
        array = self.stored(np.asarray(array, order="C"))
        return np.where(np.abs(array) < np.float32(2.0**-126), np.float32(0), array) if self.flushes else array

    def node(self, model: onnx.ModelProto, node: onnx.NodeProto, operands: Operands) -> list[Array]:
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        if self.tf32 and node.op_type in PRODUCTS:
            operands = [to_tf32(np.asarray(x, order="C"), self.tf32) if x is not None and i < 2 else x for i, x in enumerate(operands)]
        if node.name in self.wrong:
            return [self.wrong[node.name](self.sums, operands, attributes)]
        own = self.sums.table().get(node.op_type)
        if own is not None and (self.shuffles or self.sums_in != "float") and all(x is None or x.dtype in (np.float32, np.int64) for x in operands):
            return [own(operands, attributes)]
        return run_node(model, node, operands)


SESSIONS: dict[bytes, ort.InferenceSession] = {}


def run_node(model: onnx.ModelProto, node: onnx.NodeProto, operands: Operands) -> list[Array]:
    given = {name: array for name, array in zip(node.input, operands, strict=True) if array is not None}
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in given.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    alone = helper.make_model(helper.make_graph([node], "alone", infos, outputs), opset_imports=model.opset_import, ir_version=model.ir_version)
    key = alone.SerializeToString()
    if key not in SESSIONS:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        SESSIONS[key] = ort.InferenceSession(key, options, providers=["CPUExecutionProvider"])
    found = iter(SESSIONS[key].run(None, given))
    return [next(found) if name else np.zeros(0, np.float32) for name in node.output]


def drawn(model: onnx.ModelProto, seed: int, most: int = 2) -> dict[str, Array]:
    draw = np.random.default_rng(seed)
    inputs = {}
    for each in model.graph.input:
        shape = [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        is_float = each.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        inputs[each.name] = draw.standard_normal(shape).astype(np.float32) if is_float else draw.integers(0, most, shape)
    return inputs
