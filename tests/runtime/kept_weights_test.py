"""What runs keep of constants changes no bit: not in the first run, nor in later ones, with any number of threads."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

RUNNER = Path(os.environ["TENSORLINT_BINARY"]).with_name("tensorlint-run")
RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


# Operator, data, weights, attributes, results.
Product = tuple[str, np.ndarray, list[np.ndarray], dict[str, Any], int]
PRODUCTS: list[Product] = [
    ("Conv", floats(2, 6, 9), [floats(40, 6, 3), floats(40)], {"strides": [2]}, 1),
    ("Conv", floats(2, 6, 9, 5), [floats(24, 2, 3, 2)], {"group": 3, "pads": [1, 0, 1, 1]}, 1),
    ("Conv", floats(1, 300, 7, 7), [floats(520, 300, 1, 1)], {}, 1),
    ("Conv", floats(1, 4, 30, 30), [floats(8, 4, 3, 3)], {}, 1),
    ("Conv", floats(1, 4, 8).astype(np.float16), [floats(20, 4, 8).astype(np.float16)], {}, 1),
    ("MatMul", floats(3, 5, 70), [floats(3, 70, 20)], {}, 1),
    ("Gemm", floats(7, 300), [floats(90, 300), floats(90)], {"transB": 1, "alpha": 0.5}, 1),
    ("Gemm", floats(300, 7), [floats(300, 90), floats(7, 1)], {"transA": 1}, 1),
    ("RNN", floats(5, 3, 9), [floats(2, 12, 9), floats(2, 12, 12)], {"hidden_size": 12, "direction": "bidirectional"}, 2),
    ("GRU", floats(5, 3, 9), [floats(2, 36, 9), floats(2, 36, 12), floats(2, 72)], {"hidden_size": 12, "direction": "bidirectional"}, 2),
    ("LSTM", floats(5, 1, 9), [floats(1, 48, 9), floats(1, 48, 12), floats(1, 96)], {"hidden_size": 12}, 3),
]

# Narrow floats: converted for products, packed or as they are.
HALVES: list[Product] = [(op, data.astype(np.float16), [w.astype(np.float16) for w in weights], attributes, results) for op, data, weights, attributes, results in PRODUCTS if data.dtype == np.float32]
PRODUCTS += HALVES
PRODUCTS += [("MatMul", floats(m, 70).astype(ml_dtypes.bfloat16), [floats(70, 50).astype(ml_dtypes.bfloat16)], {}, 1) for m in (1, 5, 65)]
PRODUCTS += [("MatMul", floats(m, 70).astype(np.float16), [floats(70, 50).astype(np.float16)], {}, 1) for m in (1, 5, 65)]
PRODUCTS += [("ConvTranspose", floats(1, 4, 9), [floats(4, 3, 5)], {}, 1), ("ConvTranspose", floats(1, 4, 9).astype(np.float16), [floats(4, 3, 5).astype(np.float16)], {}, 1)]

for m in (1, 2, 64, 65):
    PRODUCTS += [("MatMul", floats(m, 70), [floats(70, n)], {}, 1) for n in (1, 50, 600)]


class KeptWeightsTest(unittest.TestCase):
    def outputs(self, folder: Path, *options: str) -> list[bytes]:
        out = folder / "out"
        command = [str(RUNNER), f"--model={folder / 'model.onnx'}", f"--inputs={folder}", f"--outputs={out}", *options]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [path.read_bytes() for path in sorted(out.iterdir())]

    def test_every_run_gives_the_same_bits(self) -> None:
        for op, data, weights, attributes, results in PRODUCTS:
            with self.subTest(op=op, shape=data.shape, **attributes), tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                names = [f"w{i}" for i in range(len(weights))]
                # Weights come from constants by way of other nodes, as exporters write them.
                nodes = [helper.make_node("Identity", [f"c{i}"], [f"w{i}"]) for i in range(len(weights))]
                nodes.append(helper.make_node(op, ["x", *names], [f"y{i}" for i in range(results)], **attributes))
                elem = helper.np_dtype_to_tensor_dtype(data.dtype)
                graph = helper.make_graph(
                    nodes,
                    "g",
                    [helper.make_tensor_value_info("x", elem, data.shape)],
                    [helper.make_tensor_value_info(f"y{i}", elem, None) for i in range(results)],
                    [numpy_helper.from_array(w, f"c{i}") for i, w in enumerate(weights)],
                )
                onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "model.onnx")
                (folder / "input_0.pb").write_bytes(numpy_helper.from_array(data).SerializeToString())
                first = self.outputs(folder, "--threads=1")
                self.assertEqual(len(first), results)
                for threads in (1, 2, 3):
                    for repeat in (2, 3, 4):
                        self.assertEqual(self.outputs(folder, f"--threads={threads}", f"--repeat={repeat}"), first, f"{threads} threads, run {repeat}")


if __name__ == "__main__":
    unittest.main()
