"""`tensorlint place`: the memory that it takes does not grow with the weights."""

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
ELEMENTS = 24 << 20  # 96 MiB: past the size up to which files are read, not mapped
MOST_BYTES = 64 << 20  # a sixth of what two copies would take; sanitizers need more


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


class PlaceMemoryTest(unittest.TestCase):
    def test_weights_are_not_copied_into_memory(self) -> None:
        weights = np.arange(ELEMENTS, dtype=np.float32)
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("NonZero", ["h"], ["y"])], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1024, 4096])],
                                  [helper.make_tensor_value_info("y", TensorProto.INT64, [2, None])],
                                  [helper.make_tensor("w", TensorProto.FLOAT, [4096, ELEMENTS // 4096], weights.tobytes(), raw=True)])
        with tempfile.TemporaryDirectory() as folder:
            path, placed = pathlib.Path(folder, "m.onnx"), pathlib.Path(folder, "placed.onnx")
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
            code, peak = peak_of("place", path, "-o", placed)
            self.assertEqual(code, 0)
            self.assertLess(peak, MOST_BYTES)
            result = onnx.load(placed)
        self.assertTrue(result.graph.initializer)
        self.assertEqual(result.graph.initializer[0].raw_data, weights.tobytes())


if __name__ == "__main__":
    if "asan" in BINARY:
        sys.exit(0)  # the sanitizer's own memory
    unittest.main()
