"""Planted faults: onnxruntime records a network in which one node is wrong, under the names of the right one, and
`tensorlint compare` has to name that node, and no other. Right runs at every level of optimisation have no bug.

`--all` plants every fault (minutes); the test takes every eighth."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import compare_networks
import numpy as np
import onnx
from compare_test import TOOL, recorded
from onnx import helper, numpy_helper

Edit = Callable[[onnx.ModelProto, onnx.NodeProto, tuple[int, ...]], bool]
FLOATS = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.FLOAT16: np.float16}
DTYPES = ("float", "float16")


def build(name: str, dtype: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(compare_networks.network(name, dtype))


def constant(model: onnx.ModelProto, array: np.ndarray) -> str:
    name = f"planted_{len(model.graph.initializer)}"
    model.graph.initializer.append(numpy_helper.from_array(array, name))
    return name


def after(model: onnx.ModelProto, node: onnx.NodeProto, *steps: tuple[str, list[str], dict[str, Any]]) -> None:
    """The first result of the node goes through further steps, `@` in whose operands is the result before."""
    at = list(model.graph.node).index(node)
    final, current = node.output[0], node.output[0] + "__0"
    node.output[0] = current
    for i, (op, operands, attributes) in enumerate(steps):
        result = final if i + 1 == len(steps) else f"{final}__{i + 1}"
        model.graph.node.insert(at + 1 + i, helper.make_node(op, [current if operand == "@" else operand for operand in operands], [result], **attributes))
        current = result


def scaled(factor: float) -> Edit:
    def edit(model: onnx.ModelProto, node: onnx.NodeProto, shape: tuple[int, ...], dtype: type = np.float32) -> bool:
        after(model, node, ("Mul", ["@", constant(model, np.array(factor, float_type(model)))], {}))
        return True
    return edit


def float_type(model: onnx.ModelProto) -> type:
    return FLOATS[model.graph.input[0].type.tensor_type.elem_type]


def offset(model: onnx.ModelProto, node: onnx.NodeProto, shape: tuple[int, ...]) -> bool:
    after(model, node, ("Add", ["@", constant(model, np.array(0.05, float_type(model)))], {}))
    return True


def through(dtype: int) -> Edit:
    """Stored in a narrower dtype on the way: sums in half precision, a cast too many."""
    def edit(model: onnx.ModelProto, node: onnx.NodeProto, shape: tuple[int, ...]) -> bool:
        own = model.graph.input[0].type.tensor_type.elem_type
        if own == dtype:
            return False
        after(model, node, ("Cast", ["@"], {"to": dtype}), ("Cast", ["@"], {"to": own}))
        return True
    return edit


def saturated(model: onnx.ModelProto, node: onnx.NodeProto, shape: tuple[int, ...]) -> bool:
    after(model, node, ("Clip", ["@", constant(model, np.array(-0.1, float_type(model))), constant(model, np.array(0.1, float_type(model)))], {}))
    return True


def masked(index: tuple[int, ...], value: float) -> Edit:
    """One element is lost: a tail that nobody computes, a NaN."""
    def edit(model: onnx.ModelProto, node: onnx.NodeProto, shape: tuple[int, ...]) -> bool:
        if len(shape) == 0:
            return False
        mask: np.ndarray = np.ones(shape, float_type(model))
        mask[tuple(i if i >= 0 else n - 1 for i, n in zip(index * len(shape), shape, strict=False))] = value
        after(model, node, ("Mul", ["@", constant(model, mask)], {}))
        return True
    return edit


def picked(order: Callable[[int], np.ndarray], axis: int) -> Edit:
    """Slices in another order: reversed, rolled by one, one tile stale."""
    def edit(model: onnx.ModelProto, node: onnx.NodeProto, shape: tuple[int, ...]) -> bool:
        if len(shape) == 0 or shape[axis] < 2:
            return False
        after(model, node, ("Gather", ["@", constant(model, order(shape[axis]).astype(np.int64))], {"axis": axis if axis >= 0 else len(shape) + axis}))
        return True
    return edit


def attribute(name: str, value: object, op: str = "") -> Edit:
    def edit(model: onnx.ModelProto, node: onnx.NodeProto, shape: tuple[int, ...]) -> bool:
        if op and node.op_type != op:
            return False
        kept = [each for each in node.attribute if each.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value)])
        return True
    return edit


def operator(before: str, now: str) -> Edit:
    def edit(model: onnx.ModelProto, node: onnx.NodeProto, shape: tuple[int, ...]) -> bool:
        if node.op_type != before:
            return False
        node.op_type = now
        return True
    return edit


def swapped(model: onnx.ModelProto, node: onnx.NodeProto, shape: tuple[int, ...]) -> bool:
    if node.op_type not in ("Sub", "Div", "Less"):
        return False
    node.input[0], node.input[1] = node.input[1], node.input[0]
    return True


def without(index: int, op: str) -> Edit:
    def edit(model: onnx.ModelProto, node: onnx.NodeProto, shape: tuple[int, ...]) -> bool:
        if node.op_type != op or len(node.input) <= index:
            return False
        del node.input[index:]
        return True
    return edit


def stale(n: int) -> np.ndarray:
    order = np.arange(n)
    order[-1] = order[0]
    return order


# By name; those of the second table fit one operator.
EVERYWHERE: dict[str, Edit] = {
    "scale-0.5": scaled(0.5), "scale-1.03": scaled(1.03), "offset": offset, "through-bfloat16": through(onnx.TensorProto.BFLOAT16), "through-float16": through(onnx.TensorProto.FLOAT16),
    "saturated": saturated, "nan": masked((0,), float("nan")), "tail-lost": masked((-1,), 0.0), "sign": masked((-1,), -1.0), "reversed": picked(lambda n: np.arange(n)[::-1], -1),
    "rolled": picked(lambda n: np.roll(np.arange(n), 1), -1), "stale-tile": picked(stale, 0),
}
ATTRIBUTES: dict[str, Edit] = {
    "epsilon-layer": attribute("epsilon", 1e-3, "LayerNormalization"), "epsilon-batch": attribute("epsilon", 1e-2, "BatchNormalization"), "epsilon-instance": attribute("epsilon", 1e-2, "InstanceNormalization"),
    "gelu-tanh": attribute("approximate", "tanh", "Gelu"), "alpha": attribute("alpha", 0.4, "Gemm"), "beta": attribute("beta", 0.0, "Gemm"), "slope": attribute("alpha", 1 / 6, "HardSigmoid"),
    "softmax-axis": attribute("axis", 0, "Softmax"), "log-softmax-axis": attribute("axis", 0, "LogSoftmax"), "size": attribute("size", 5, "LRN"), "lrn-beta": attribute("beta", 0.7, "LRN"),
    "include-pad": attribute("count_include_pad", 1, "AveragePool"), "pads": attribute("pads", [2, 2, 0, 0], "Conv"), "pads-shift": attribute("pads", [0, 0, 2, 2], "AveragePool"),
    "reduction": attribute("reduction", "sum", "SoftmaxCrossEntropyLoss"), "ignored": attribute("ignore_index", 1, "SoftmaxCrossEntropyLoss"), "ignored-nll": attribute("ignore_index", 0, "NegativeLogLikelihoodLoss"),
    "nll-mean": attribute("reduction", "mean", "NegativeLogLikelihoodLoss"), "asymmetric": attribute("coordinate_transformation_mode", "asymmetric", "Resize"), "nearest": attribute("mode", "nearest", "Resize"),
    "exclusive": attribute("exclusive", 1, "CumSum"), "backwards": attribute("reverse", 1, "CumSum"), "norm-1": attribute("p", 1, "LpNormalization"), "gru": attribute("linear_before_reset", 1, "GRU"),
    "sum-for-mean": operator("ReduceMean", "ReduceSum"), "l2-for-l1": operator("ReduceL1", "ReduceL2"), "sigmoid-for-tanh": operator("Tanh", "Sigmoid"), "max-for-mean": operator("GlobalAveragePool", "GlobalMaxPool"),
    "min-for-max": operator("ReduceMax", "ReduceMin"), "argmin": operator("ArgMax", "ArgMin"), "swapped": swapped, "no-bias-conv": without(2, "Conv"), "no-bias-gemm": without(2, "Gemm"), "no-weight": without(2, "SoftmaxCrossEntropyLoss"),
    "no-gate-bias": without(3, "LSTM"), "mean-for-sum": operator("Sum", "Mean"), "max-pool-shift": attribute("pads", [1, 1, 0, 0], "MaxPool"),
}


def shapes_of(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    return {info.name: tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)
            for info in [*inferred.graph.value_info, *inferred.graph.output]
            if info.type.tensor_type.elem_type in FLOATS or info.type.tensor_type.elem_type == onnx.TensorProto.INT64}


def faults(dtype: str) -> Iterator[tuple[str, str, str, onnx.ModelProto]]:
    """Network, node, fault, the model with it."""
    for network in compare_networks.TEXTS:
        right = build(network, dtype)
        shapes = shapes_of(right)
        for index, node in enumerate(right.graph.node):
            is_exact = node.op_type in ("Reshape", "Transpose", "Split", "Squeeze", "Flatten", "Slice", "Pad", "ArgMax", "Less", "GatherElements", "Concat")
            edits = {**({} if is_exact else EVERYWHERE), **({"reversed": EVERYWHERE["reversed"], "stale-tile": EVERYWHERE["stale-tile"]} if is_exact and node.op_type != "Split" else {}), **ATTRIBUTES}
            for name, edit in edits.items():
                model = onnx.ModelProto()
                model.CopyFrom(right)
                if (node.output[0] in shapes or name in ATTRIBUTES) and edit_applies(edit, name, model, index, shapes):
                    yield network, node.name, name, model


def edit_applies(edit: Edit, name: str, model: onnx.ModelProto, index: int, shapes: dict[str, tuple[int, ...]]) -> bool:
    node = model.graph.node[index]
    if name in ATTRIBUTES and name == "pads" and node.name != "conv":
        return False
    return edit(model, node, shapes.get(node.output[0], ()))


def compare(model: Path, values: Path, *options: str) -> dict:
    result = subprocess.run([TOOL, "compare", str(model), "--against", str(values), "--format", "json", "--threads", "1", *options], capture_output=True, text=True, timeout=120)
    if result.returncode not in (0, 1):
        raise AssertionError(result.stderr)
    return json.loads(result.stdout)


def same_values(a: Path, b: Path) -> bool:
    """The fault changes nothing for these inputs."""
    left, right = np.load(a / "values-0000.npz"), np.load(b / "values-0000.npz")
    return all(left[name].tobytes() == right[name].tobytes() for name in right.files)


def plant(dtype: str, step: int, folder: Path) -> tuple[collections.Counter, list[str]]:
    """How faults were judged, and those that were not named at their node alone."""
    counts: collections.Counter = collections.Counter()
    wrong: list[str] = []
    for network in compare_networks.TEXTS:
        onnx.save(build(network, dtype), folder / f"{network}-{dtype}.onnx")
    for i, (network, node, fault, model) in enumerate(faults(dtype)):
        if i % step:
            continue
        right = folder / f"{network}-{dtype}.onnx"
        path, out = folder / "faulty.onnx", folder / f"{dtype}-{i}"
        onnx.save(model, path)
        names = [name for each in onnx.load(right).graph.node for name in each.output]
        try:
            recorded(path, out, values=",".join(names))
        except Exception:  # this edit is no model
            counts["not recorded"] += 1
            continue
        if not (folder / f"{network}-{dtype}").exists():
            recorded(right, folder / f"{network}-{dtype}")
        if same_values(out, folder / f"{network}-{dtype}"):
            counts["no change"] += 1
            continue
        document = compare(right, out)
        named = document["first"]["node"] if document["first"] else None
        at = next((each for each in document["nodes"] if each["node"] == node), None)
        is_condition = at is not None and fault.startswith("through") and at["condition"] in ("fp16-accumulate", "bf16-accumulate") and named is None
        kind = "named" if named == node else f"named as {at['condition']}" if is_condition and at else "elsewhere" if named else f"missed: {at['condition'] or at['verdict'] if at else 'not compared'}"
        counts[kind] += 1
        if not kind.startswith("named"):
            wrong.append(f"{network} {dtype} {node} {fault}: {kind} {named or ''} {json.dumps(at)}")
    return counts, wrong


class PlantedFaults(unittest.TestCase):
    def test_faults_are_named_at_their_node(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            counts, wrong = plant("float", 8, Path(folder))
        named = sum(count for kind, count in counts.items() if kind.startswith("named"))
        self.assertGreater(named, 50)
        self.assertLessEqual(len(wrong), 0.03 * (named + len(wrong)), "\n".join(wrong))

    def test_right_runs_have_no_bug(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for network in compare_networks.TEXTS:
                for dtype in DTYPES:
                    model = folder / f"{network}-{dtype}.onnx"
                    onnx.save(build(network, dtype), model)
                    for level in ("disable_all", "all"):
                        out = folder / f"{network}-{dtype}-{level}"
                        recorded(model, out, level=level, seed=1)
                        document = compare(model, out)
                        self.assertEqual([each for each in document["nodes"] if each["verdict"] == "bug"], [], f"{network} {dtype} {level}")


if __name__ == "__main__":
    if "--all" in sys.argv:
        with tempfile.TemporaryDirectory() as where:
            for each in sys.argv[sys.argv.index("--all") + 1 :] or DTYPES:
                found, missed = plant(each, int(os.environ.get("STEP", "1")), Path(where))
                print(each, dict(found), *missed, sep="\n")
    else:
        unittest.main()
