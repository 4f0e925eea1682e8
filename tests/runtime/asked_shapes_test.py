"""`run --device emulated:0` where the elements of an input say what shape a result has, and a declaration says otherwise, or they ask for what
cannot be: the device gives what the interpreter gives."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

RUNNER = Path(os.environ["TENSORLINT_BINARY"]).with_name("tensorlint-run")
HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
ROW, TABLE = np.arange(5, dtype=np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


# What is declared is wrong for these inputs.
DECLARED = {
    "expand": ("(float[A] x, int64[1] s) => (float[7] y) { y = Expand (x, s) }", [ROW[:1], ints(5)]),
    "expand, then a sum": ("(float[A] x, int64[1] s) => (float z) <float[7] y> { y = Expand (x, s)\nz = ReduceSum <keepdims = 0> (y) }", [ROW[1:2], ints(5)]),
    "expand in a branch": ("(bool c, float[A] x, int64[1] s) => (float[3] y) { y = If <then_branch = t () => (float[3] a) { a = Expand (x, s) }, else_branch = e () => (float[3] b) { b = Expand (x, s) }> (c) }",
                           [np.array(True), ROW[:1], ints(5)]),
    "reshape": ("(float[A, B] x, int64[2] s) => (float[2, 3] y) { y = Reshape (x, s) }", [TABLE, ints(3, 2)]),
    "reshape, then a product": ("(float[A, B] x, int64[2] s) => (float[C, D] y) <float[2, 3] t> { t = Reshape (x, s)\nu = Transpose (t)\ny = MatMul (t, u) }", [TABLE, ints(3, 2)]),
    "tile": ("(float[A] x, int64[1] s) => (float[9] y) { y = Tile (x, s) }", [ROW[:3], ints(2)]),
    "fill": ("(int64[1] s) => (float[3] y) { y = ConstantOfShape (s) }", [ints(4)]),
    "one hot": ("(int64[2] i, int64 d, float[2] v) => (float[2, 5] y) { y = OneHot (i, d, v) }", [ints(0, 1), np.array(4), ROW[:2]]),
    "split": ("(float[A] x, int64[2] s) => (float[2] y, float[3] z) { y, z = Split (x, s) }", [ROW, ints(1, 4)]),
    "unsqueeze": ("(float[A, B] x, int64[1] s) => (float[1, 2, 3] y) { y = Unsqueeze (x, s) }", [TABLE, ints(2)]),
    "squeeze": ("(float[A, B, C] x, int64[1] s) => (float[1, 5] y) { y = Squeeze (x, s) }", [ROW.reshape(1, 5, 1), ints(0)]),
}
IMPOSSIBLE = {
    "expand to another extent": ("(float[2, 3] x, int64[2] s) => (float[A, B] y) { y = Expand (x, s) }", [TABLE, ints(4, 3)]),
    "expand, then a sum": ("(float[2, 3] x, int64[2] s) => (float[A, B] z) { y = Expand (x, s)\nz = Add (y, x) }", [TABLE, ints(2, 4)]),
    "squeeze of a long axis": ("(float[1, 3] x, int64[1] s) => (float[3] y) { y = Squeeze (x, s) }", [TABLE[:1], ints(1)]),
    "reshape to more elements": ("(float[2, 3] x, int64[2] s) => (float[A, B] y) { y = Reshape (x, s) }", [TABLE, ints(3, 3)]),
    "split to more elements": ("(float[5] x, int64[2] s) => (float[2] y, float[3] z) { y, z = Split (x, s) }", [ROW, ints(2, 4)]),
}


class AskedShapesTest(unittest.TestCase):
    def run_both(self, graph: str, inputs: list[np.ndarray]) -> list[subprocess.CompletedProcess[str]]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            (path / "m.onnxtxt").write_text(f"{HEAD}g {graph}\n")
            for i, array in enumerate(inputs):
                np.save(path / f"input_{i}.npy", array)
            arguments = [str(RUNNER), f"--model={path / 'm.onnxtxt'}", "--text=", f"--inputs={folder}"]
            return [subprocess.run([*arguments, *more], capture_output=True, text=True, timeout=60, check=False) for more in ([], ["--device=emulated:0"])]

    def test_elements_count_more_than_declarations(self) -> None:
        for name, (graph, inputs) in DECLARED.items():
            with self.subTest(name):
                host, device = self.run_both(graph, inputs)
                self.assertEqual(host.returncode, 0, host.stderr)
                self.assertEqual((device.returncode, device.stdout), (0, host.stdout), device.stderr)

    def test_what_cannot_be_is_refused(self) -> None:
        for name, (graph, inputs) in IMPOSSIBLE.items():
            with self.subTest(name):
                host, device = self.run_both(graph, inputs)
                self.assertEqual(host.returncode, 2, host.stdout)
                self.assertEqual((device.returncode, device.stderr), (2, host.stderr))


if __name__ == "__main__":
    unittest.main()
