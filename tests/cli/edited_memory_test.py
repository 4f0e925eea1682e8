"""`tensorlint place` and `fix`: the memory that they take does not grow with the weights, which arrive as they were."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
ELEMENTS = 8 << 20  # 32 MiB: past the size up to which files are read, not mapped
COLUMNS = ELEMENTS // 4096
MOST_BYTES = 28 << 20  # less than one copy; sanitizers need more


# A process begins with the peak of the one that it is forked from: that has to be a small one.
MEASURE = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
"""


def peak_of(*arguments: object) -> tuple[int, int]:
    """Exit code and peak memory of one run."""
    command = [sys.executable, "-S", "-c", MEASURE, BINARY, *map(str, arguments)]
    code, peak = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.split()
    return int(code), int(peak)


WEIGHTS = np.arange(ELEMENTS, dtype=np.float32)


def value(name: str, dtype: int, dims: list[int | None]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def save(path: pathlib.Path, nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], output: onnx.ValueInfoProto, *weights: onnx.TensorProto) -> None:
    graph = helper.make_graph(nodes, "g", inputs, [output], list(weights))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def raw_weights(name: str) -> onnx.TensorProto:
    return helper.make_tensor(name, TensorProto.FLOAT, [4096, COLUMNS], WEIGHTS.tobytes(), raw=True)


class EditedMemoryTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path, self.edited = pathlib.Path(folder.name, "m.onnx"), pathlib.Path(folder.name, "edited.onnx")

    def edit(self, *command: str) -> onnx.ModelProto:
        code, peak = peak_of(*command, self.path, "-o", self.edited)
        self.assertEqual(code, 0)
        self.assertLess(peak, MOST_BYTES)
        return onnx.load(self.edited)

    def test_of_a_placed_model(self) -> None:
        save(self.path, [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("NonZero", ["h"], ["y"])],
             [value("x", TensorProto.FLOAT, [1024, 4096])], value("y", TensorProto.INT64, [2, None]), raw_weights("w"))
        result = self.edit("place")
        self.assertEqual(result.graph.initializer[0].raw_data, WEIGHTS.tobytes())

    def test_of_a_model_that_is_fixed_in_two_rounds(self) -> None:
        # The weights in raw_data stand behind their reader and move; that `j` is cast is found after `i` was cast.
        nodes = [helper.make_node("MatMul", ["x", "w"], ["g"]), helper.make_node("Constant", [], ["w"], value=raw_weights("v")),
                 helper.make_node("MatMul", ["g", "i"], ["h"]), helper.make_node("Add", ["h", "j"], ["y"])]
        save(self.path, nodes, [value("x", TensorProto.FLOAT, [2, 4096]), value("i", TensorProto.INT64, [COLUMNS, 2]), value("j", TensorProto.INT64, [2])],
             value("y", TensorProto.FLOAT, [2, 2]))
        result = self.edit("fix", "--unsafe")
        self.assertEqual([node.op_type for node in result.graph.node], ["Constant", "MatMul", "Cast", "MatMul", "Cast", "Add"])
        self.assertEqual(result.graph.node[0].attribute[0].t.raw_data, WEIGHTS.tobytes())

    def test_of_weights_that_are_no_raw_data(self) -> None:
        weights = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4096, COLUMNS], float_data=WEIGHTS)
        save(self.path, [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "j"], ["y"])],
             [value("x", TensorProto.FLOAT, [2, 4096]), value("j", TensorProto.INT64, [1])], value("y", TensorProto.FLOAT, [2, COLUMNS]), weights)
        result = self.edit("fix", "--unsafe")
        self.assertEqual([node.op_type for node in result.graph.node], ["MatMul", "Cast", "Add"])
        self.assertEqual(result.graph.initializer[0], weights)

    def test_the_diff_shows_weights_as_they_are(self) -> None:
        save(self.path, [helper.make_node("Add", ["w", "i"], ["y"])], [value("i", TensorProto.INT64, [1])], value("y", TensorProto.FLOAT, [4096, COLUMNS]), raw_weights("w"))
        diff = subprocess.run([BINARY, "fix", "--unsafe", "--diff", self.path], capture_output=True, text=True, check=True).stdout
        self.assertIn("\n+  y = Add (w, i_float32_0)\n", diff)
        self.assertNotIn("w {", "".join(line for line in diff.splitlines() if line.startswith(("+", "-"))))


if __name__ == "__main__":
    if "asan" in BINARY:
        sys.exit(0)  # the sanitizer's own memory
    unittest.main()
