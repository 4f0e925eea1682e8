"""Runs in float32 stay within the bounds that `tensorlint compare` computes from the amplitudes of its evaluators: random
operands of several sizes, sums one addition after the other in an order that is drawn (float32_engine.py), functions and
other composite operators as onnxruntime or ONNX's reference implementation computes them.

`--runs 1000` makes that many runs of each operator; the test makes a few."""

from __future__ import annotations

import argparse
import sys
import tempfile
import unittest
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import float32_engine
import numpy as np
import onnx
from compare_faults_test import compare
from compare_test import ROOT, write_npz
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = np.ndarray
Draw = Callable[[np.random.Generator], Array]


def normal(*shape: int) -> Draw:
    """Of one size, of many sizes, or far from 0: sums cancel, lose small terms, or grow."""
    def draw(random: np.random.Generator) -> Array:
        x = random.standard_normal(shape)
        kind = random.integers(3)
        return np.asarray(x * np.exp2(random.uniform(-12, 12, shape)) if kind == 1 else x + 30 if kind == 2 else x, np.float32)
    return draw


def within(least: float, most: float, *shape: int) -> Draw:
    return lambda random: np.asarray(random.uniform(least, most, shape), np.float32)


def whole(most: int, *shape: int) -> Draw:
    return lambda random: random.integers(0, most, shape)


@dataclass
class Case:
    operands: list[Draw | Array | None]  # an array is a constant of the model
    attributes: dict[str, Any] = field(default_factory=dict)
    results: int = 1
    opset: int = 22
    own: Callable[[float32_engine.Sums, list[Any]], Array] | None = None  # of our own domain, which no other engine has


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


WIDE = {"Acos": (-1, 1), "Acosh": (1, 100), "Asin": (-1, 1), "Atanh": (-0.99, 0.99), "Log": (1e-3, 1e3), "Cosh": (-30, 30), "Sinh": (-30, 30), "Exp": (-30, 30)}
FUNCTIONS = ["Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "Log", "Mish", "Selu",
             "Sigmoid", "Sin", "Sinh", "Softplus", "Softsign", "Swish", "Tan", "Tanh"]
LENGTH = 300  # of sums
WINDOW = {"kernel_shape": [5, 5], "strides": [2, 2]}
ROWS = normal(4, LENGTH)



def mean(sums: float32_engine.Sums, x: Array) -> Array:
    return np.asarray(sums.total(x.ravel(), 0) / np.float32(x.size), np.float32)


def smooth(sums: float32_engine.Sums, operands: list[Array]) -> Array:
    off = np.abs(operands[0] - operands[1])
    return mean(sums, np.where(off < 1, np.float32(0.5) * off * off, off - np.float32(0.5)))


def binary(sums: float32_engine.Sums, operands: list[Array]) -> Array:
    p, t = operands
    return mean(sums, -(t * np.log(p) + (1 - t) * np.log(1 - p)))


def binary_logits(sums: float32_engine.Sums, operands: list[Array]) -> Array:
    x, t = operands
    return mean(sums, np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x))))


def picked(sums: float32_engine.Sums, operands: list[Array]) -> Array:
    return mean(sums, -operands[0][np.arange(len(operands[1])), operands[1]])


def cross_entropy(sums: float32_engine.Sums, operands: list[Array]) -> Array:
    return picked(sums, [sums.log_softmax(operands[:1], {"axis": 1}), operands[1]])


PAIR: list[Draw | Array | None] = [normal(4, LENGTH), normal(4, LENGTH)]
CASES: dict[str, Case] = {
    **{name: Case([within(*WIDE.get(name, (-12, 12)), 8, 40)], opset=24 if name == "Swish" else 22) for name in FUNCTIONS},
    "Pow": Case([within(0.1, 8, 8, 40), within(-4, 4, 8, 40)]),
    "Sum": Case([normal(5, 40)] * 6),
    "Mean": Case([normal(5, 40)] * 6),
    "SwiGLU": Case([within(-8, 8, 5, 40), within(-8, 8, 5, 40)], opset=28),
    "Attention": Case([normal(1, 2, 9, 16), normal(1, 2, 11, 16), normal(1, 2, 11, 16)], opset=24),
    "RotaryEmbedding": Case([normal(1, 2, 5, 16), within(-1, 1, 1, 5, 8), within(-1, 1, 1, 5, 8)], opset=23),
    "LinearAttention": Case([within(-1, 1, 1, 9, 16), within(-1, 1, 1, 9, 16), within(-1, 1, 1, 9, 16)], {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}, 2, opset=27),
    "CausalConvWithState": Case([within(-2, 2, 1, 6, 20), within(-2, 2, 6, 1, 4)], {}, 2, opset=27),
    "Range": Case([np.array(0.1, np.float32), np.array(30, np.float32), np.array(0.1, np.float32)]),
    "Conv": Case([normal(1, 12, 9, 9), normal(4, 12, 3, 3), normal(4)]),
    "QLinearConv": Case([lambda r: r.integers(0, 256, (1, 3, 9, 9)).astype(np.uint8), np.array(0.1, np.float32), np.array(7, np.uint8), lambda r: r.integers(0, 256, (4, 3, 3, 3)).astype(np.uint8), np.array(0.05, np.float32), np.array(128, np.uint8), np.array(0.7, np.float32), np.array(100, np.uint8)]),
    "ConvTranspose": Case([normal(1, 12, 5, 5), normal(12, 4, 3, 3)]),
    "DeformConv": Case([normal(1, 4, 7, 7), normal(3, 4, 3, 3), within(-1.5, 1.5, 1, 18, 5, 5)]),
    "Einsum": Case([normal(4, 100), normal(100, 5)], {"equation": "ik,kj->ij"}),
    "RoiAlign": Case([normal(1, 3, 9, 9), np.array([[0, 0, 6, 6], [1, 2, 8, 7]], np.float32), ints(0, 0)], {"output_height": 3, "output_width": 3, "sampling_ratio": 2}),
    "GridSample": Case([normal(1, 3, 8, 8), within(-1, 1, 1, 6, 6, 2)]),
    "AffineGrid": Case([within(-2, 2, 1, 2, 3), ints(1, 1, 7, 9)]),
    "Col2Im": Case([normal(1, 9, 36), ints(8, 8), ints(3, 3)]),
    "SoftmaxCrossEntropyLoss": Case([within(-9, 9, 20, 30), whole(30, 20)], {"reduction": "mean"}),
    "NegativeLogLikelihoodLoss": Case([within(-9, 0, LENGTH, 7), whole(7, LENGTH), within(0, 2, 7)], {"reduction": "mean"}),
    "MatMul": Case([normal(5, LENGTH), normal(LENGTH, 6)]),
    "Gemm": Case([normal(5, LENGTH), normal(LENGTH, 6), normal(6)], {"alpha": 0.7, "beta": 1.3}),
    "QLinearMatMul": Case([lambda r: r.integers(0, 256, (5, 30)).astype(np.uint8), np.array(0.1, np.float32), np.array(7, np.uint8), lambda r: r.integers(0, 256, (30, 6)).astype(np.uint8), np.array(0.05, np.float32), np.array(128, np.uint8), np.array(0.9, np.float32), np.array(100, np.uint8)]),
    "Det": Case([within(-2, 2, 20, 5, 5)]),
    "BatchNormalization": Case([normal(3, 5, 20), within(-2, 2, 5), within(-2, 2, 5), within(-2, 2, 5), within(0.1, 9, 5)]),
    "InstanceNormalization": Case([normal(2, 3, LENGTH), within(-2, 2, 3), within(-2, 2, 3)]),
    "GroupNormalization": Case([normal(2, 4, 100), within(-2, 2, 4), within(-2, 2, 4)], {"num_groups": 2}),
    "LayerNormalization": Case([ROWS, within(-2, 2, LENGTH), within(-2, 2, LENGTH)]),
    "RMSNormalization": Case([ROWS, within(-2, 2, LENGTH)], opset=23),
    "LpNormalization": Case([ROWS], {"p": 2}),
    "LRN": Case([normal(1, 9, 6, 6)], {"size": 5, "alpha": 0.01}),
    "AveragePool": Case([normal(2, 2, 15, 15)], WINDOW),
    "LpPool": Case([normal(2, 2, 15, 15)], WINDOW),
    "GlobalAveragePool": Case([normal(2, 3, 15, 20)]),
    "GlobalLpPool": Case([normal(2, 3, 15, 20)], opset=21),
    "QuantizeLinear": Case([normal(8, 40), np.array(0.3, np.float32), np.array(100, np.uint8)]),
    "DynamicQuantizeLinear": Case([normal(8, 40)], {}, 3),
    "RNN": Case([within(-2, 2, 6, 2, 9), within(-1, 1, 1, 8, 9), within(-1, 1, 1, 8, 8)], {"hidden_size": 8}),
    "GRU": Case([within(-2, 2, 6, 2, 9), within(-1, 1, 1, 24, 9), within(-1, 1, 1, 24, 8)], {"hidden_size": 8}),
    "LSTM": Case([within(-2, 2, 6, 2, 9), within(-1, 1, 1, 32, 9), within(-1, 1, 1, 32, 8)], {"hidden_size": 8}),
    **{f"Reduce{name}": Case([ROWS, ints(1)]) for name in ("Sum", "Mean", "L1", "L2", "SumSquare")},
    "ReduceProd": Case([within(0.8, 1.25, 4, LENGTH), ints(1)]),
    "ReduceLogSum": Case([within(0.01, 8, 4, LENGTH), ints(1)]),
    "ReduceLogSumExp": Case([within(-9, 9, 4, LENGTH), ints(1)]),
    "CumSum": Case([ROWS, np.array(1, np.int64)]),
    "CumProd": Case([within(0.9, 1.1, 4, LENGTH), np.array(1, np.int64)], opset=26),
    "Resize": Case([normal(1, 2, 7, 7), None, np.array([1, 1, 1.7, 2.3], np.float32)], {"mode": "linear"}),
    "Upsample": Case([normal(1, 2, 7, 7), np.array([1, 1, 2, 3], np.float32)], {"mode": "linear"}, opset=9),
    "ScatterElements": Case([normal(20), np.zeros(100, np.int64), normal(100)], {"reduction": "add"}),
    "ScatterND": Case([normal(20), np.zeros((100, 1), np.int64), normal(100)], {"reduction": "add"}),
    "DFT": Case([normal(1, 32, 1)], {"onesided": 1}),
    "STFT": Case([normal(1, 64, 1), np.array(16, np.int64), within(0, 1, 32)], {"onesided": 1}),
    "MelWeightMatrix": Case([np.array(8, np.int64), np.array(64, np.int64), np.array(16000, np.int64), np.array(125, np.float32), np.array(7500, np.float32)]),
    **{f"{name}Window": Case([np.array(97, np.int64)]) for name in ("Hann", "Hamming", "Blackman")},
    "Softmax": Case([within(-20, 20, 4, LENGTH)]),
    "LogSoftmax": Case([within(-20, 20, 4, LENGTH)]),
    "MseLoss": Case(PAIR, own=lambda sums, x: mean(sums, np.square(x[0] - x[1]))),
    "L1Loss": Case(PAIR, own=lambda sums, x: mean(sums, np.abs(x[0] - x[1]))),
    "SmoothL1Loss": Case(PAIR, own=smooth),
    "HuberLoss": Case(PAIR, own=smooth),
    "BceLoss": Case([within(0.01, 0.99, 4, LENGTH), within(0, 1, 4, LENGTH)], own=binary),
    "BceWithLogitsLoss": Case([within(-9, 9, 4, LENGTH), within(0, 1, 4, LENGTH)], own=binary_logits),
    "KlDivLoss": Case([within(-9, 0, 4, LENGTH), within(0.01, 1, 4, LENGTH)], own=lambda sums, x: mean(sums, x[1] * (np.log(x[1]) - x[0]))),
    "CrossEntropyLoss": Case([within(-9, 9, LENGTH, 7), whole(7, LENGTH)], own=cross_entropy),
    "NllLoss": Case([within(-9, 0, LENGTH, 7), whole(7, LENGTH)], own=picked),
}
# No other implementation is at hand.
UNCOMPARED = {"FlexAttention"}


def model_of(name: str, case: Case, copies: int, random: np.random.Generator) -> tuple[onnx.ModelProto, list[dict[str, Array]]]:
    """`copies` nodes, each with operands of its own, and these."""
    nodes, inputs, constants, feeds = [], [], [], []
    for copy in range(copies):
        names, feed = [], {}
        for i, operand in enumerate(case.operands):
            each = f"x{i}_{copy}"
            if operand is None:
                names.append("")
                continue
            if isinstance(operand, np.ndarray):
                if copy == 0:
                    constants.append(numpy_helper.from_array(operand, f"c{i}"))
                names.append(f"c{i}")
                continue
            feed[each] = operand(random)
            inputs.append(helper.make_tensor_value_info(each, helper.np_dtype_to_tensor_dtype(feed[each].dtype), feed[each].shape))
            names.append(each)
        nodes.append(helper.make_node(name, names, [f"y{r}_{copy}" for r in range(case.results)], f"{name}_{copy}", domain="tensorlint" if case.own else "", **case.attributes))
        feeds.append(feed)
    outputs = [onnx.ValueInfoProto(name=result) for node in nodes for result in node.output]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    imports = [helper.make_opsetid("", case.opset), *([helper.make_opsetid("tensorlint", 1)] if case.own else [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=10), feeds


def computed(model: onnx.ModelProto, node: onnx.NodeProto, operands: list[Array | None], random: np.random.Generator) -> list[Array]:
    engine = float32_engine.Engine(shuffles=True, seed=int(random.integers(1 << 30)))
    if own := CASES[node.op_type].own:
        return [own(engine.sums, operands)]
    try:
        return engine.node(model, node, operands)
    except Exception:  # onnxruntime has no such operator
        given = {name: array for name, array in zip(node.input, operands, strict=True) if array is not None}
        infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in given.items()]
        alone = helper.make_model(helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=name) for name in node.output]), opset_imports=model.opset_import, ir_version=model.ir_version)
        return [np.asarray(each) for each in ReferenceEvaluator(alone).run(None, given)]


def runs(name: str, count: int, folder: Path, seed: int = 0) -> tuple[int, list[str]]:
    """How many runs there were, and those that were called a bug; of constant operands alone there is one."""
    case = CASES[name]
    random = np.random.default_rng(seed)
    if all(not callable(operand) for operand in case.operands):
        count = 1
    model, feeds = model_of(name, case, count, random)
    constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    values: dict[str, Array] = {}
    for node, feed in zip(model.graph.node, feeds, strict=True):
        operands = [(feed | constants)[each] if each else None for each in node.input]
        values |= feed | dict(zip(node.output, computed(model, node, operands, random), strict=True))
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    out = folder / name
    out.mkdir(exist_ok=True)
    write_npz(out / "values.npz", values)
    document = compare(path, out)
    bad = [f"{each['node']} {each['value']}: {each}" for each in document["nodes"] if each["verdict"] == "bug" or each["condition"]]
    return len({each["node"] for each in document["nodes"]}), bad + [f"{each['node']}: {each['reason']}" for each in document["skipped"]]


class AmplitudeTest(unittest.TestCase):
    def test_runs_in_float32_stay_within_their_bounds(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in CASES:
                with self.subTest(operator=name):
                    count, bad = runs(name, 6, Path(folder))
                    self.assertGreater(count, 0)
                    self.assertEqual(bad, [])

    def test_every_evaluator_that_rounds_more_than_once_has_a_case(self) -> None:
        listed = (ROOT / "tests/runtime/roundings.txt").read_text().split()
        self.assertEqual(set(listed) - UNCOMPARED, set(CASES))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    arguments = parser.parse_args()
    failed = 0
    for name in arguments.only:
        done, at = 0, 0
        bad: list[str] = []
        with tempfile.TemporaryDirectory() as folder:
            while done < arguments.runs:
                count, worse = runs(name, min(50, arguments.runs - done), Path(folder), seed=at)
                done, bad, at = done + count, bad + worse, at + 1
                if count == 0 or all(not callable(operand) for operand in CASES[name].operands):
                    break
        failed += len(bad)
        print(f"{name}: {done} runs, {len(bad)} outside", *bad[:3], sep="\n  ", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    if "--runs" in sys.argv:
        sys.exit(main())
    unittest.main()
