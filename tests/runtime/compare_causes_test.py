"""The causes that `tensorlint compare` guesses: each fault gets its own, and what has no simple cause gets none."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from compare_test import TOOL, write_npz
from onnx import TensorProto, helper

Fault = Callable[[np.ndarray], np.ndarray]


def put(index: tuple, value: float) -> Fault:
    def fault(y: np.ndarray) -> np.ndarray:
        y[index] = value
        return y
    return fault


def lost_term(y: np.ndarray) -> np.ndarray:
    draw = np.random.default_rng(5)
    return y - draw.standard_normal((*y.shape[:-1], 1)) * draw.standard_normal(y.shape[-1])


def next_along_both(y: np.ndarray) -> np.ndarray:
    y[:, :, :-1, :-1] = y[:, :, 1:, 1:].copy()
    return y


def cut_off(y: np.ndarray) -> np.ndarray:
    return (y.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


class CausesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def cause(self, op: str, x: np.ndarray, y: np.ndarray) -> str | None:
        """Of a node that reads x and was recorded to give y."""
        kinds = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in (x, y)]
        operands = {"QuantizeLinear": ["x", "scale", "zero"], "Add": ["x", "b"]}.get(op, ["x"])
        constants = [] if op != "QuantizeLinear" else [helper.make_tensor("scale", TensorProto.FLOAT, [], [0.02]), helper.make_tensor("zero", kinds[1], [], [0])]
        b = np.full(1, 1 / 3).astype(x.dtype)  # sums are rounded
        if op == "Add":
            constants.append(onnx.numpy_helper.from_array(b, "b"))
        node = helper.make_node(op, operands, ["y"])
        infos = [helper.make_tensor_value_info(name, kind, array.shape) for name, kind, array in zip("xy", kinds, (x, y), strict=True)]
        graph = helper.make_graph([node], "g", infos[:1], infos[1:], constants)
        path = self.folder / "m.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
        (self.folder / "r").mkdir(exist_ok=True)
        write_npz(self.folder / "r/values.npz", {"x": x, "y": y})
        result = subprocess.run([TOOL, "compare", path, "--against", self.folder / "r", "--format", "json"], capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        cause: str | None = json.loads(result.stdout)["first"]["cause"]
        return cause

    def of_sum(self, shape: tuple[int, ...], fault: Fault, dtype: type = np.float32) -> str | None:
        x: np.ndarray = np.random.default_rng(1).standard_normal(shape).astype(dtype)
        y: np.ndarray = (x + np.full(1, 1 / 3).astype(dtype)).astype(dtype)
        return self.cause("Add", x, np.asarray(fault(y.astype(np.float64))).astype(dtype))

    def test_each_fault_has_its_cause(self) -> None:
        image, matrix = (2, 3, 12, 10), (24, 32)
        bias, rows = np.arange(3).reshape(1, 3, 1, 1) / 7, 1 + np.arange(24).reshape(24, 1) / 1e4
        faults: list[tuple[tuple[int, ...], Fault, str]] = [
            (matrix, lambda y: y * 0, "all elements are 0"),
            (matrix, lambda y: y * 1.004, "all elements are 1.004 times the reference"),
            (matrix, lambda y: y - 0.25, "all elements are off by -0.25"),
            (matrix, put((3, 4), 1.001), "1 of 768 elements is off"),
            (matrix, put((3, 4), 0), "1 of 768 elements is 0"),
            (matrix, put((slice(22, 24),), 0), "64 of 768 elements are 0, at [22:24, :]: they may not have been computed"),
            (matrix, put((slice(4, 8), slice(8, 16)), 7), "32 of 768 elements are off, at [4:8, 8:16]"),
            (matrix, lambda y: np.where(y > 0, y, 0.1 * y), "only elements that should be 0 or less are off: another activation, or another slope of it"),
            (matrix, lambda y: np.clip(y, -1, 2), "elements are clipped to -1 and 2"),
            (matrix, lambda y: np.roll(y, 1, 1), "elements are those one place before along axis 1: shifted by one"),
            (matrix, lambda y: y[::-1], "elements are in reverse order along axis 0"),
            (matrix, lambda y: np.roll(y, 16, 1), "the halves along axis 1 are exchanged"),
            (matrix, lambda y: y.T.reshape(matrix), "elements lie in memory as if axes 0 and 1 were exchanged"),
            ((16, 16), lambda y: y.T, "axes 0 and 1 are exchanged: a transposed operand or result"),
            (image, next_along_both, "elements are those one place further along axes 2 and 3: another padding or offset"),
            (matrix, lambda y: np.random.default_rng(2).permutation(y.ravel()).reshape(matrix), "the same elements in another order: a transposed operand, or another axis"),
            (image, lambda y: y + bias, "each index of axis 1 is off by a number of its own, from 0 to 0.285714: a bias or another term that depends on it"),
            (image, lambda y: y * (1 + bias), "each index of axis 1 has a factor of its own, from 1 to 1.28571: a scale that depends on it"),
            (image, lambda y: y * (1 + bias) + bias, "each index of axis 1 has a factor and an offset of its own: its scale, mean or variance"),
            (image, lambda y: y * 1.5 + bias, "elements are 1.5 times the reference, and each index of axis 1 is off by a number of its own: a scale before a bias"),
            (matrix, lambda y: y * rows, "each row along axis 1 has a factor of its own, from 1 to 1.0023: what the row is divided by, or another scale"),
            (matrix, lambda y: y + rows, "each row along axis 1 is off by a number of its own, from 1 to 1.0023: a sum or mean of the row, or another term"),
            (matrix, lost_term, "the difference is one column times one row: a term of the sum is missing, or another one"),
            (matrix, lambda y: y.astype(np.float16), "all elements are rounded to float16"),
            (matrix, cut_off, "all elements are cut off to bfloat16, toward zero"),
        ]
        for shape, fault, cause in faults:
            with self.subTest(cause=cause):
                said = self.of_sum(shape, fault)
                if "from 0 to" in cause:  # the channel that is right is off by what rounding leaves
                    assert said is not None
                    said = said.replace(said[said.index("from ") : said.index(" to ")], "from 0")
                self.assertEqual(said, cause)

    def test_half_precision_has_the_same_causes(self) -> None:
        for fault, cause in (
            (put((3, 4), 1.1), "1 of 768 elements is off"),
            (lambda y: y * 1.02, "times the reference"),
            (lambda y: np.roll(y, 1, 1), "shifted by one"),
        ):
            with self.subTest(cause=cause):
                self.assertIn(cause, self.of_sum((24, 32), fault, np.float16) or "")

    def test_what_no_simple_cause_explains_has_none(self) -> None:
        x = np.random.default_rng(3).standard_normal((16, 32)).astype(np.float32)
        wide = x.astype(np.float64)
        approximate = np.tanh(1.1283792 * wide + 0.10089 * wide**3)
        self.assertIsNone(self.cause("Erf", x, approximate.astype(np.float32)))
        approximate = 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
        self.assertIsNone(self.cause("Gelu", x, approximate.astype(np.float32)))
        # Errors of one ulp and of two, to both sides: not another order, nor one factor, nor a few elements.
        draw = np.random.default_rng(4)
        self.assertIsNone(self.of_sum((16, 32), lambda y: y * (1 + draw.choice([-1, 1, 2], y.shape) * 2.0**-10), np.float16))

    def test_integers_say_by_how_much(self) -> None:
        x = np.random.default_rng(6).uniform(-2, 2, (16, 32)).astype(np.float32)
        y = np.clip(np.rint(x.astype(np.float64) / np.float32(0.02)), -128, 127).astype(np.int8)
        some = np.where(np.random.default_rng(7).random(y.shape) < 0.1, 1, 0) * np.where(y > 0, -1, 1)
        count = np.count_nonzero(some)
        self.assertEqual(self.cause("QuantizeLinear", x, (y + some).astype(np.int8)), f"{count} of 512 integers differ, all by 1: another rounding of the quantisation")
        shifted = np.clip(y.astype(np.int64) + 1, -128, 127).astype(np.int8)
        self.assertRegex(self.cause("QuantizeLinear", x, shifted) or "", r"^\d+ of 512 integers differ, all by \+1: another zero point$")
        wrong = y.copy()
        wrong[2, 3], wrong[3, 3] = y[2, 3] + 5, y[3, 3] - 7
        self.assertEqual(self.cause("QuantizeLinear", x, wrong), "2 of 512 integers differ, by -7 to +5")
        self.assertEqual(self.cause("QuantizeLinear", x, np.roll(y, 1, 1)), "elements are those one place before along axis 1: shifted by one")
        truths = np.isnan(x)
        truths[0, :3] = True
        self.assertEqual(self.cause("IsNaN", x, truths), "3 of 512 truths differ")


if __name__ == "__main__":
    unittest.main()
