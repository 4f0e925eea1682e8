"""`tensorlint fix` on the samples: what it writes passes the checker, runs, and gives the values of the repaired twin."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

TOOL = os.environ["TENSORLINT_BINARY"]
SAMPLES = Path(__file__).resolve().parents[2] / "samples"
FIXABLE = ["regression", "encoder_score", "refine_loop"]


def fix(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, "fix", *arguments], capture_output=True, text=True, timeout=60, check=False)


def feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Random values of the declared types; named dims are 4."""
    random = np.random.default_rng(7)
    constants = {tensor.name for tensor in model.graph.initializer}
    values = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        shape = [dim.dim_value if dim.HasField("dim_value") else 4 for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        whole = np.issubdtype(dtype, np.integer)
        values[value.name] = (random.integers(0, 3, shape) if whole else random.standard_normal(shape)).astype(dtype)
    return values


def run(path: Path, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, values)


class FixTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name) / "fixed.onnx"

    def test_fixed_samples_compute_what_their_twins_do(self) -> None:
        for name in FIXABLE:
            with self.subTest(name):
                result = fix(str(SAMPLES / f"{name}_bad.onnx"), "-o", str(self.out), "--unsafe")
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                onnx.checker.check_model(str(self.out), full_check=True)
                values = feeds(onnx.load(str(self.out)))
                for got, wanted in zip(run(self.out, values), run(SAMPLES / f"{name}_ok.onnx", values), strict=True):
                    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)

    def test_unsafe_fixes_wait_for_permission(self) -> None:
        result = fix(str(SAMPLES / "encoder_score_bad.onnx"), "-o", str(self.out))
        self.assertEqual(result.returncode, 1)
        self.assertIn("--unsafe", result.stdout)
        self.assertEqual(self.out.read_bytes(), (SAMPLES / "encoder_score_bad.onnx").read_bytes())

    def test_diff_shows_the_inserted_node_and_writes_nothing(self) -> None:
        result = fix(str(SAMPLES / "regression_bad.onnx"), "--diff", "--unsafe")
        self.assertRegex(result.stdout, r"(?m)^\+ .*Cast <to = 1>")
        self.assertEqual(result.returncode, 0)
        self.assertFalse(self.out.exists())

    def test_a_sound_model_is_left_alone(self) -> None:
        result = fix(str(SAMPLES / "regression_ok.onnx"), "-o", str(self.out))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(self.out.read_bytes(), (SAMPLES / "regression_ok.onnx").read_bytes())

    def test_a_line_of_a_string_is_not_a_comment(self) -> None:
        """What goes above a node goes above its comments, and not into a string of the node above it."""
        model, fixed = self.out.with_name("m.onnxtxt"), self.out.with_name("o.onnxtxt")
        strings = 't = StringNormalizer<stopwords=["a", "\n#\n# b"]>(s)'
        for nodes, arguments in (("y = Add(x, h)", ["--unsafe"]), ("y = Max(a, b)\na = Neg(x)\nb = Abs(x)", [])):
            for comments in ("", "# of y\n  # of y, too\n"):
                with self.subTest(nodes, comments=comments):
                    model.write_text(f'<ir_version: 8, opset_import: ["" : 18]>\ng (float[N] x, float16[N] h, string[M] s) => (float[N] y, string[K] t) {{\n{strings}\n{comments}{nodes}\n}}\n')
                    result = fix(*arguments, "-o", str(fixed), str(model))
                    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                    text = fixed.read_text()
                    self.assertIn(strings + "\n", text)
                    self.assertIn(comments + ("y = " if arguments else "a = "), text)
                    again = subprocess.run([TOOL, "check", str(fixed)], capture_output=True, text=True, timeout=60, check=False)
                    self.assertEqual(again.returncode, 0, again.stdout)

    def test_wrong_use_and_bad_files_are_refused(self) -> None:
        sample = str(SAMPLES / "regression_bad.onnx")
        self.out.write_bytes(b"\x89PNG\r\n\x1a\n")
        for arguments in ([sample], [sample, "-o", "x", "--in-place"], ["missing.onnx", "--in-place"], [str(self.out), "--in-place"]):
            with self.subTest(arguments):
                result = fix(*arguments)
                self.assertEqual(result.returncode, 2, result.stdout)
                self.assertNotEqual(result.stderr, "")
        self.assertEqual(self.out.read_bytes(), b"\x89PNG\r\n\x1a\n")

    def test_an_output_that_cannot_be_written_leaves_nothing(self) -> None:
        result = fix(str(SAMPLES / "regression_bad.onnx"), "--unsafe", "-o", str(self.out.parent / "no" / "such.onnx"))
        self.assertEqual(result.returncode, 2)
        self.assertEqual(list(self.out.parent.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
