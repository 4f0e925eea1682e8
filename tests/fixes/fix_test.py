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

    def fixed_text(self, text: str, code: int = 0) -> str:
        """What becomes of a model in text; nothing is left for `fix`."""
        path = self.out.with_name("m.onnxtxt")
        path.write_text(text, newline="")
        result = fix(str(path), "--in-place", "--unsafe")
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertIn("wrote", result.stdout)
        self.assertIn("nothing to fix", fix(str(path), "-o", str(self.out.with_suffix(".onnxtxt")), "--unsafe").stdout)
        with open(path, newline="") as file:
            return file.read()

    def test_attributes_behind_the_operands(self) -> None:
        head = '<ir_version: 8, opset_import: ["": 13]>\ng (float[1, 4] x) => (float[4] y) { '
        for code in ("y = Squeeze (x) <axes = [0]>", "y = Squeeze <> (x) <axes = [0]>", "y = Squeeze <axes = [0]> (x)"):
            text = self.fixed_text(head + code + " }\n")
            self.assertNotIn("<axes", text)
            model = onnx.parser.parse_model(text.replace("Squeeze <>", "Squeeze"))
            self.assertEqual([len(model.graph.node), model.graph.node[-1].input[0]], [2, "x"])

    def test_declarations_of_a_function_with_a_header(self) -> None:
        text = self.fixed_text('''<ir_version: 8, opset_import: ["": 13, "f": 1]>
g (float[1, 4] x) => (float[4] y) { y = f.foo (x) }
<domain: "f", opset_import: ["": 13]>
foo (x) => (y) <int32 z> {
  z = Shape (x)
  i = Constant <value = int32 {1}> ()
  w = Add (z, i)
  y = Squeeze <axes = [0]> (x)
}
''')
        self.assertNotIn("int32 z", text)
        onnx.checker.check_model(onnx.parser.parse_model(text), full_check=True)

    def test_comments_with_other_blanks(self) -> None:
        for before, after in (("", "\f"), ("\v", ""), (" ", "\v\f\t")):
            text = self.fixed_text(f'''<ir_version: 8, opset_import: ["": 13]>
g (float[1, 4] x) => (float[1, 4] y) {{
  y = Abs (x)  #{before}tensorlint: ignore[dead-node] foo{after}
}}
''')
            self.assertIn("y = Abs (x)\n}", text)

    def test_moved_nodes_take_their_comments_along(self) -> None:
        head = '<ir_version: 8, opset_import: ["": 17]>\ng (float[N, 4] x) => (float[N, 4] y)\n'
        ignored = "tensorlint: ignore[samples-depend-on-each-other] known"
        for body, wanted in (
            # The node after it stands on the line of the bracket.
            (f"{{ y = Abs (z)\n  z = Softmax <axis = 0> (x)  # {ignored}\n}}\n", f"{{ \nz = Softmax <axis = 0> (x)  # {ignored}\ny = Abs (z)\n}}\n"),
            (f"{{ y = Abs (z)  # of z\n  # {ignored}\n  # really\n  z = Softmax <axis = 0> (x)\n}}\n",
             f"{{ \n  # {ignored}\n  # really\nz = Softmax <axis = 0> (x)\ny = Abs (z)  # of z\n}}\n"),
            (f"{{\n  y = Abs (z)\n\n  # {ignored}\n  z = Softmax <axis = 0> (x)  # of x\n}}\n",
             f"{{\n  # {ignored}\n  z = Softmax <axis = 0> (x)  # of x\n  y = Abs (z)\n\n}}\n"),
            # A comment that is about a part of the graph stays.
            (f"{{\n  y = Abs (z)\n\n  # The first part.\n  z = Softmax <axis = 0> (x)  # {ignored}\n}}\n",
             f"{{\n  z = Softmax <axis = 0> (x)  # {ignored}\n  y = Abs (z)\n\n  # The first part.\n}}\n"),
            (f"{{ y = Abs (z)\r\n  z = Softmax <axis = 0> (x)  # {ignored}\r\n}}\r\n", f"{{ \r\nz = Softmax <axis = 0> (x)  # {ignored}\r\ny = Abs (z)\r\n}}\r\n"),
        ):
            lines = head.replace("\n", "\r\n") if "\r" in body else head
            self.assertEqual(self.fixed_text(lines + body), lines + wanted)

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
