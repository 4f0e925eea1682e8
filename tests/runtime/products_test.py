"""Evaluators of sums and products against onnxruntime, over random shapes and attributes."""

import os
import subprocess
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

RUNNER = Path(os.environ["TENSORLINT_BINARY"]).with_name("tensorlint-run")
Case = tuple[str, list[np.ndarray | None], dict[str, Any], int]


def pick(rng: np.random.Generator, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def windows(rng: np.random.Generator, rank: int, largest: int = 3, *, pads: bool = True) -> tuple[list[int], dict[str, Any]]:
    """A kernel and attributes of windows that fit images of 7 elements an axis."""
    kernel = [int(k) for k in rng.integers(1, largest + 1, rank)]
    attributes: dict[str, Any] = {"strides": [int(s) for s in rng.integers(1, 4, rank)]}
    if pads and rng.random() < 0.7:
        attributes["pads"] = [int(rng.integers(0, k)) for k in kernel + kernel]
    elif pads:
        # onnxruntime refuses the negative padding that a stride beyond the kernel leads to.
        attributes["strides"] = [min(stride, k) for stride, k in zip(attributes["strides"], kernel, strict=True)]
        attributes["auto_pad"] = pick(rng, "SAME_UPPER", "SAME_LOWER", "VALID")
    return kernel, attributes


def convolutions(rng: np.random.Generator) -> Iterator[Case]:
    for _ in range(24):
        rank, group = pick(rng, 1, 2, 2, 3), pick(rng, 1, 1, 2, 3)
        kernel, attributes = windows(rng, rank)
        if "auto_pad" not in attributes:
            attributes["dilations"] = [int(d) for d in rng.integers(1, 3, rank)]
        filters = group * int(rng.integers(1, 7))
        bias = floats(rng, filters) if rng.random() < 0.5 else None
        data = floats(rng, 2, group * 2, *rng.integers(7, 20, rank))
        yield "Conv", [data, floats(rng, filters, 2, *kernel), bias], {"group": group, **attributes}, 1
    for _ in range(16):
        rank, group = pick(rng, 1, 2, 2, 3), pick(rng, 1, 2)
        kernel, attributes = windows(rng, rank, pads=False)
        attributes["dilations"] = [int(d) for d in rng.integers(1, 3, rank)]
        attributes["pads"] = [int(rng.integers(0, 2)) for _ in range(2 * rank)]
        attributes["output_padding"] = [int(rng.integers(0, s)) for s in attributes["strides"]]
        data = floats(rng, 2, group * 3, *rng.integers(4, 9, rank))
        yield "ConvTranspose", [data, floats(rng, group * 3, 2, *kernel), floats(rng, group * 2)], {"group": group, **attributes}, 1
    for _ in range(6):
        data = rng.integers(0, 255, (1, 3, 8, 9)).astype(np.uint8)
        weights = rng.integers(0, 255, (4, 3, 3, 2)).astype(np.uint8)
        yield "ConvInteger", [data, weights, np.array(pick(rng, 0, 120), np.uint8), np.array(pick(rng, 0, 7), np.uint8)], {"pads": [1, 0, 1, 1]}, 1


def pools(rng: np.random.Generator) -> Iterator[Case]:
    for _ in range(30):
        rank = pick(rng, 1, 2, 2, 3)
        kernel, attributes = windows(rng, rank, 4)
        attributes["kernel_shape"] = kernel
        data = floats(rng, 2, 3, *rng.integers(7, 14, rank))
        name = pick(rng, "MaxPool", "AveragePool", "LpPool")
        if "auto_pad" not in attributes:
            attributes["ceil_mode"] = int(rng.integers(0, 2))
        if name == "AveragePool":
            attributes["count_include_pad"] = int(rng.integers(0, 2))
        if name == "LpPool":
            attributes["p"] = pick(rng, 1, 2, 3)
            attributes.pop("ceil_mode", None)
        if name == "MaxPool" and "auto_pad" not in attributes:
            attributes["dilations"] = [int(d) for d in rng.integers(1, 3, rank)]
        yield name, [data], attributes, 2 if name == "MaxPool" else 1


def reductions(rng: np.random.Generator) -> Iterator[Case]:
    for name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp"):
        for _ in range(4):
            rank = int(rng.integers(1, 5))
            data = floats(rng, *rng.integers(1, 12, rank))
            axes = np.sort(rng.permutation(rank)[: int(rng.integers(0, rank + 1))]).astype(np.int64)
            attributes = {"keepdims": int(rng.integers(0, 2)), "noop_with_empty_axes": int(rng.integers(0, 2))}
            if axes.size == 0:
                attributes["noop_with_empty_axes"] = 0
            yield f"Reduce{name}", [data, axes - rank * int(rng.integers(0, 2))], attributes, 1
    for _ in range(8):
        data = rng.integers(0, 4, (3, 5, 6)).astype(np.float32)
        attributes = {"axis": int(rng.integers(-3, 3)), "select_last_index": int(rng.integers(0, 2))}
        yield pick(rng, "ArgMax", "ArgMin"), [data], attributes, 1
        yield "CumSum", [data, np.array(rng.integers(-3, 3))], {"exclusive": int(rng.integers(0, 2)), "reverse": int(rng.integers(0, 2))}, 1
        yield pick(rng, "Softmax", "LogSoftmax"), [floats(rng, 3, 40, 5) * 9], {"axis": int(rng.integers(-3, 3))}, 1


def products(rng: np.random.Generator) -> Iterator[Case]:
    for _ in range(12):
        m, n, k = (int(extent) for extent in rng.integers(1, 90, 3))
        batch = pick(rng, ([], []), ([2], [2]), ([3, 1], [2]), ([2, 3], []))
        yield "MatMul", [floats(rng, *batch[0], m, k), floats(rng, *batch[1], k, n)], {}, 1
        a, b = floats(rng, m, k), floats(rng, k, n)
        turn_a, turn_b = int(rng.integers(0, 2)), int(rng.integers(0, 2))
        addend = floats(rng, *pick(rng, [n], [m, 1], [m, n], []))
        yield "Gemm", [a.T.copy() if turn_a else a, b.T.copy() if turn_b else b, addend], {"transA": turn_a, "transB": turn_b, "alpha": 0.5, "beta": 2.0}, 1
    for equation, shapes in (("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))), ("ij,jk,kl->il", ((3, 4), (4, 5), (5, 6))), ("...ij->...ji", ((2, 3, 4),)),
                             ("ii->i", ((4, 4),)), ("bhid,bhjd->bhij", ((2, 3, 4, 5), (2, 3, 6, 5))), ("ij->", ((3, 4),)), ("i,j->ij", ((3,), (4,)))):
        yield "Einsum", [floats(rng, *shape) for shape in shapes], {"equation": equation}, 1


def layers(rng: np.random.Generator) -> Iterator[Case]:
    for _ in range(18):
        name, gates, results = pick(rng, ("RNN", 1, 2), ("GRU", 3, 2), ("LSTM", 4, 3))
        direction = pick(rng, "forward", "reverse", "bidirectional")
        d, steps, batch, size, hidden = 1 + (direction == "bidirectional"), 5, 3, 4, 6
        operands: list[np.ndarray | None] = [floats(rng, steps, batch, size), floats(rng, d, gates * hidden, size), floats(rng, d, gates * hidden, hidden),
                                             floats(rng, d, 2 * gates * hidden), None, floats(rng, d, batch, hidden)]
        if rng.random() < 0.5:
            operands[4] = rng.integers(1, steps + 1, batch).astype(np.int32)
        attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
        if name == "LSTM":
            operands += [floats(rng, d, batch, hidden), floats(rng, d, 3 * hidden) if rng.random() < 0.5 else None]
        if name == "GRU":
            attributes["linear_before_reset"] = int(rng.integers(0, 2))
        yield name, operands, attributes, results


def normalizations(rng: np.random.Generator) -> Iterator[Case]:
    x = floats(rng, 2, 6, 5, 7)
    yield "BatchNormalization", [x, floats(rng, 6), floats(rng, 6), floats(rng, 6), np.abs(floats(rng, 6))], {"epsilon": 1e-3}, 1
    yield "InstanceNormalization", [x, floats(rng, 6), floats(rng, 6)], {}, 1
    yield "LRN", [x], {"size": 3, "alpha": 0.5, "beta": 0.6, "bias": 2.0}, 1
    yield "LayerNormalization", [x, floats(rng, 5, 7), floats(rng, 5, 7)], {"axis": -2}, 3
    for p in (1, 2):
        yield "LpNormalization", [x], {"axis": 1, "p": p}, 1
    for reduction in ("none", "mean", "sum"):
        labels = rng.integers(0, 6, (2, 5, 7))
        labels[0, :2] = -1
        yield "SoftmaxCrossEntropyLoss", [x, labels, np.abs(floats(rng, 6))], {"reduction": reduction, "ignore_index": -1}, 2
        yield "NegativeLogLikelihoodLoss", [x, labels, np.abs(floats(rng, 6))], {"reduction": reduction, "ignore_index": -1}, 1


class ProductsTest(unittest.TestCase):
    def run_case(self, case: Case, folder: Path) -> None:
        name, operands, attributes, results = case
        names = [f"x{i}" if operand is not None else "" for i, operand in enumerate(operands)]
        outputs = [f"y{i}" for i in range(results)]
        given = [(n, np.asarray(o)) for n, o in zip(names, operands, strict=True) if o is not None]
        inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(o.dtype), o.shape) for n, o in given]
        graph = helper.make_graph([helper.make_node(name, names, outputs, **attributes)], "g", inputs, [onnx.ValueInfoProto(name=o) for o in outputs])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = session.run(None, dict(given))
        onnx.save(model, folder / "m.onnx")
        for kind in ("in", "out"):
            (folder / kind).mkdir()
        for i, (n, operand) in enumerate(given):
            (folder / "in" / f"input_{i}.pb").write_bytes(numpy_helper.from_array(operand, n).SerializeToString())
        command = [str(RUNNER), f"--model={folder / 'm.onnx'}", f"--inputs={folder / 'in'}", f"--outputs={folder / 'out'}"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        for i, value in enumerate(expected):
            ours = numpy_helper.to_array(onnx.load_tensor(str(folder / "out" / f"output_{i}.pb")))
            np.testing.assert_allclose(ours, value, rtol=2e-4, atol=2e-5)

    def run_cases(self, cases: Iterator[Case]) -> None:
        for case in cases:
            shapes = [None if operand is None else np.shape(operand) for operand in case[1]]
            with self.subTest(name=case[0], shapes=shapes, attributes=case[2]), tempfile.TemporaryDirectory() as folder:
                self.run_case(case, Path(folder))

    def test_convolutions(self) -> None:
        self.run_cases(convolutions(np.random.default_rng(1)))

    def test_pools(self) -> None:
        self.run_cases(pools(np.random.default_rng(2)))

    def test_reductions(self) -> None:
        self.run_cases(reductions(np.random.default_rng(3)))

    def test_products(self) -> None:
        self.run_cases(products(np.random.default_rng(4)))

    def test_recurrent_layers(self) -> None:
        self.run_cases(layers(np.random.default_rng(5)))

    def test_normalizations_and_losses(self) -> None:
        self.run_cases(normalizations(np.random.default_rng(6)))


if __name__ == "__main__":
    unittest.main()
