"""`tensorlint compare` of onnx's own models with noise before them and recordings that others altered: a verdict or an error, at once."""

import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import helper
from onnx.backend.test.loader import load_model_tests

TOOL = os.environ["TENSORLINT_BINARY"]
MODELS = int(os.environ.get("TENSORLINT_COMPARED_MODELS", "150"))  # of some 1,900
SECONDS = 20


def with_noise(model: onnx.ModelProto) -> None:
    """Each input in floats goes through an Exp and a Log, of which the reference knows what rounding makes."""
    nodes, renamed = [], {}
    for value in model.graph.input:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            renamed[value.name] = f"{value.name}__noisy"
            nodes += [helper.make_node("Exp", [value.name], [f"{value.name}__exp"]), helper.make_node("Log", [f"{value.name}__exp"], [renamed[value.name]])]
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)
    rest = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(nodes + rest)


def altered(array: np.ndarray, choose: random.Random) -> np.ndarray:
    kind = choose.randrange(5)
    if array.size == 0 or array.dtype.kind not in "fiu" or kind == 0:
        return array
    if kind == 1:
        return array[..., :-1] if array.ndim else array
    copy = array.copy()
    copy.flat[choose.randrange(array.size)] = 0 if kind == 2 else 1 if kind == 3 or array.dtype.kind != "f" else np.nan
    return copy


class CompareNoiseTest(unittest.TestCase):
    def test_models_of_onnx(self) -> None:
        choose = random.Random(7)
        tests = [(test.name, test.model, test.data_sets[0]) for test in load_model_tests(kind="node") if test.model is not None and test.data_sets]
        tests.sort(key=lambda test: test[0])
        compared = 0
        for name, model, values_of in choose.sample(tests, min(MODELS, len(tests))):
            if model.functions:
                continue
            with_noise(model)
            with tempfile.TemporaryDirectory() as place:
                path, recorded = Path(place) / "m.onnx", Path(place) / "recorded"
                recorded.mkdir()
                onnx.save(model, path)
                for declared, values in zip((model.graph.input, model.graph.output), values_of):
                    for value, array in zip(declared, values):
                        if isinstance(array, np.ndarray) and array.dtype.kind in "fiub" and array.dtype.isbuiltin:
                            np.save(recorded / f"{value.name}.npy", altered(array, choose) if declared is model.graph.output else array)
                for options in ([], ["--chained"], ["--reproduce", str(Path(place) / "r")]):
                    with self.subTest(model=name, options=options):
                        result = subprocess.run([TOOL, "compare", path, "--against", recorded, *options], capture_output=True, text=True, timeout=SECONDS)
                        self.assertIn(result.returncode, (0, 1, 2), result.stderr)
                        compared += result.returncode != 2
        self.assertGreater(compared, MODELS)


if __name__ == "__main__":
    unittest.main()
