"""The lines of `tensorlint contract` against onnxruntime: inputs inside the contract run, and inputs that break exactly
one exact line fail.
"""

import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from traced_models import TRACED

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
INSIDE = int(os.environ.get("TENSORLINT_CONTRACT_RUNS", "12"))  # random inputs of each model
DTYPES = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.INT64: np.int64, onnx.TensorProto.INT32: np.int32,
          onnx.TensorProto.BOOL: np.bool_}
#: Behind the name of an input in the lines where an axis has that name too.
ELEMENTS = "_elements"
#: Expressions of the lines are Python's, with these.
FUNCTIONS = {"floor": math.floor, "ceil": math.ceil, "min": min, "max": max}


class Line:
    """A line of a contract."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.text, self.kind, self.exact, self.inputs = row["text"], row["kind"], row["exact"], row["inputs"]
        self.code = compile(self.text.replace("[...]", ELEMENTS), self.text, "eval")

    def holds(self, names: dict[str, int]) -> bool:
        return bool(eval(self.code, {"__builtins__": {}}, {**FUNCTIONS, **names}))


class ContractedModel:
    def __init__(self, path: pathlib.Path) -> None:
        result = subprocess.run([BINARY, "contract", path, "--format", "json"], capture_output=True, text=True,
                                timeout=60, check=True)
        document = json.loads(result.stdout)
        assert document["complete"], path
        self.lines = [Line(row) for row in document["requirements"]]
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        model = onnx.load(path)
        weights = {tensor.name for tensor in model.graph.initializer}
        self.inputs = [value for value in model.graph.input if value.name not in weights]
        self.symbols = sorted({dim.dim_param for value in self.inputs
                               for dim in value.type.tensor_type.shape.dim if dim.dim_param})
        self.integers = {value.name: value.name + (ELEMENTS if value.name in self.symbols else "") for value in self.inputs
                         if value.type.tensor_type.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)}

    def assignments(self, wanted: Callable[[dict[str, int]], bool], rng: random.Random) -> Iterator[dict[str, int]]:
        """Names of extents and of inputs of integers, with sizes and elements, that are wanted."""
        numbers = [int(number) for line in self.lines for number in re.findall(r"\d+", line.text)]
        pool = sorted({size for number in numbers for size in (number - 1, number, number + 1) if 1 <= size <= 800})
        for _ in range(20_000):
            names = {symbol: rng.choice([rng.randint(1, 40), rng.randint(1, 40), rng.choice(pool or [2])])
                     for symbol in self.symbols}
            for line in self.lines:
                if line.kind == "equal" and rng.random() < 0.9:
                    left, right = line.text.split(" == ")
                    if left in names:
                        names[left] = eval(right, {"__builtins__": {}}, {**FUNCTIONS, **names})
            for name in self.integers.values():
                names[name] = rng.choice([rng.randint(-3, 3), rng.randint(0, 40), rng.choice(pool or [1])])
            if wanted(names):
                yield names

    def feeds(self, names: dict[str, int]) -> dict[str, np.ndarray]:
        feeds: dict[str, np.ndarray] = {}
        for value in self.inputs:
            shape = [names[dim.dim_param] if dim.dim_param else dim.dim_value
                     for dim in value.type.tensor_type.shape.dim]
            dtype = DTYPES[value.type.tensor_type.elem_type]
            if value.name in self.integers:
                feeds[value.name] = np.full(shape, names[self.integers[value.name]], dtype)
            else:
                feeds[value.name] = np.random.default_rng(1).random(shape).astype(dtype)
        return feeds

    def runs(self, names: dict[str, int]) -> bool:
        try:
            self.session.run(None, self.feeds(names))
        except Exception:  # of many kinds: onnxruntime's own, of no common class
            return False
        return True


class ContractTest(unittest.TestCase):
    def setUp(self) -> None:
        onnxruntime.set_default_logger_severity(4)  # what fails is expected to

    def check(self, path: pathlib.Path) -> tuple[int, int]:
        """How many inputs ran inside the contract, and how many lines were broken alone."""
        model = ContractedModel(path)
        rng = random.Random(path.name)
        inside = 0
        for names in model.assignments(lambda names: all(line.holds(names) for line in model.lines), rng):
            self.assertTrue(model.runs(names), f"{path.name}: {names} inside {[line.text for line in model.lines]}")
            inside += 1
            if inside == INSIDE:
                break
        self.assertGreater(inside, 0, f"{path.name}: no inputs inside {[line.text for line in model.lines]}")
        broken = 0
        for line in model.lines:
            others = [other for other in model.lines if other is not line]

            def alone(names: dict[str, int], line: Line = line, others: list[Line] = others) -> bool:
                return not line.holds(names) and all(other.holds(names) for other in others)

            for names in model.assignments(alone, rng):
                broken += 1
                if line.exact:
                    self.assertFalse(model.runs(names), f"{path.name}: {names} breaks {line.text} and runs")
                break
        return inside, broken

    def test_models_of_traced_axes(self) -> None:
        broken = 0
        with tempfile.TemporaryDirectory() as folder:
            for case in TRACED:
                for baked in (True, False):
                    path = pathlib.Path(folder) / f"{case.name}_{baked}.onnx"
                    onnx.save(case.model(baked), path)
                    with self.subTest(path.stem):
                        broken += self.check(path)[1]
        self.assertGreater(broken, 20)

    def test_exported_models(self) -> None:
        lines = 0
        for path in sorted((ROOT / "tests/models/steps").glob("*.onnx")):
            with self.subTest(path.stem):
                lines += self.check(path)[1]
        self.assertGreater(lines, 5)

    def test_exports_of_real_architectures(self) -> None:
        lines = 0
        for path in sorted((ROOT / "tests/models/sizes").rglob("*.onnx")):
            if path.stem == "super_resolution_skip_dynamo_opened":
                continue  # resizes its batch to 1, which ONNX's reference implementation runs and onnxruntime refuses
            with self.subTest(path.stem):
                lines += self.check(path)[1]
        self.assertGreater(lines, 200)


if __name__ == "__main__":
    unittest.main()
