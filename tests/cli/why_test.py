"""`tensorlint why`: the chain behind a value, back to where its dtype and shape began."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = os.environ["TENSORLINT_BINARY"]
ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
MODEL = """<ir_version: 9, opset_import: ["": 17, "own": 1]>
g (float[N, ?] x, int64[2] s, bool c, seq(float[]) q) => (float[] a, float[] b, float[] d, float[] e, float[] f)
{
  a0 = own.Foo (x)
  a1, a2 = own.Bar (a0)
  [last] a = Relu (a1)
  b0 = Reshape (x, s)
  b1 = Relu (b0)
  b = Transpose <perm = [1, 0]> (b1)
  d = If (c) <then_branch = yes () => (float[] y) { z = NonZero (x) y = Cast <to = 1> (z) },
              else_branch = no () => (float[] n) { w = NonZero (x) n = Cast <to = 1> (w) }>
  e = Reshape (x, f0)
  f0 = Shape (q0)
  q0 = ConcatFromSequence <axis = 0> (q)
  f = Identity (q0)
}
"""


def why(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, "why", *arguments], capture_output=True, text=True, timeout=60, check=False)


class WhyTest(unittest.TestCase):
    def test_the_chain_goes_back_to_initializers_and_inputs(self) -> None:
        result = why(str(SAMPLES / "encoder_bad.onnx"), "val_16")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("`val_16` is int64[4] = {batch, sequence, 2, 8}", result.stdout)
        self.assertIn("made by node `node_Concat_16` (Concat) at samples/encoder_step.py:", result.stdout)
        self.assertIn("it is an input", result.stdout)
        self.assertIn("it is an initializer", result.stdout)

    def test_the_origin_of_a_dtype_is_named(self) -> None:
        result = why(str(SAMPLES / "regression_bad.onnx"), "val_3")
        self.assertIn("partly assumed: an operand comes from a node that fails", result.stdout)

    def test_what_failed_is_said_where_it_failed(self) -> None:
        said = why(str(SAMPLES / "refine_loop_bad.onnx"), "div").stdout
        self.assertRegex(said, r"(?m)^  it fails: Div needs operands of one dtype: `\w+` is float32, `\w+` is int64$")

    def test_a_declaration_that_counts_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnxtxt"
            path.write_text(MODEL.replace("float[] a,", "float[N, 2] a,"))
            said = why(str(path), "a").stdout
        self.assertTrue(said.startswith("`a` is float32[N, 2]"), said)
        self.assertIn("\n  the model declares its type, which is used where the operands determine nothing\n", said)

    def test_bounds_are_short_and_hold(self) -> None:
        self.assertIn("`rating.weight` is float32[1, 16] in [-0.347099, 0.584312]\n", why(str(SAMPLES / "regression_bad.onnx"), "val_3").stdout)

    def test_values_of_bodies_are_found(self) -> None:
        result = why(str(SAMPLES / "refine_loop_bad.onnx"), "add_10")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("node `node_add_10` (Add)", result.stdout)

    def why_of(self, value: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnxtxt"
            path.write_text(MODEL)
            result = why(str(path), value)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_what_is_not_known_has_a_reason_and_a_beginning(self) -> None:
        for value, said in [
            ("a", "its rank is not known, as of `a1`, made by node `#1(Bar)` (Bar): the operator is not known"),
            ("a2", "kind, dtype and shape are not known: the operator is not known\n  made by node `#1(Bar)`"),
            ("b", "axes 0, 1 are not known, as of `b0`, made by node `#3(Reshape)` (Reshape): depends on tensor contents that are not known"),
            ("b0", "  axes 0, 1 are not known: depends on tensor contents that are not known"),
            ("x", "?1 is axis 1 of `x`, an input: its declaration gives neither a number nor a name"),
            ("y", "`y` of graph `main/yes` is float32[2, ?1]"),
            ("y", "?1 is axis 1 of `z`, made by node `#0(NonZero)` (NonZero): depends on tensor contents that are not known"),
            ("d", "axis 1 is not known: branches or iterations disagree"),
            ("d", "`n` of graph `main/no` is float32[2, ?"),
            ("f", "its rank is not known, as of `q0`, made by node"),
        ]:
            with self.subTest(value=value, said=said):
                self.assertIn(said, self.why_of(value))

    def test_bounds_that_are_the_dtypes_own_are_not_said(self) -> None:
        self.assertIn("`z` of graph `main/yes` is int64[2, ?1] >= 0\n", self.why_of("y"))
        self.assertIn("`c` is bool[]\n", self.why_of("d"))

    def test_the_chain_goes_into_functions(self) -> None:
        model = (
            '<ir_version: 10, opset_import: ["": 21, "own": 1]>\ng (float[N, 4] x) => (float[] y) { y = own.pick (x) }\n'
            '<domain: "own", opset_import: ["": 21]>\npick (a) => (p) { n = NonZero (a) p = Cast <to = 1> (n) }\n'
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnxtxt"
            path.write_text(model)
            said = why(str(path), "y").stdout
        self.assertIn("`p` of graph `own::pick` is float32[2, ?1]", said)
        self.assertIn("`a` of graph `own::pick` is float32[N, 4]\n  it is an input of the function\n", said)
        self.assertIn("?1 is axis 1 of `n`, made by node `#0(NonZero)` (NonZero)", said)

    def test_a_condition_is_not_where_a_shape_began(self) -> None:
        model = (
            '<ir_version: 10, opset_import: ["": 21]>\ng (bool c, float x) => (float[] y)\n'
            "{ y = If (c) <then_branch = t () => (float[] a) { a = ReduceSum <keepdims = 0> (x) }, else_branch = e () => (float[] b) { b = Neg (x) }> }\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnxtxt"
            path.write_text(model)
            said = why(str(path), "y").stdout
        self.assertIn("`a` of graph `main/t` is float32[]", said)
        self.assertNotIn("began", said)

    def test_a_chain_says_only_what_began_in_it(self) -> None:
        self.assertEqual(self.why_of("b").count("not known"), 4)  # of b, and of b0 where it began

    def test_the_page_shows_what_is_printed(self) -> None:
        page = (ROOT / "docs/facts.md").read_text()
        blocks = re.findall(r"(?s)```\n(.*?)```\n", page)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "pick.onnxtxt").write_text(blocks[0])
            for block in blocks[1:]:
                command, _, output = block.partition("\n")
                result = subprocess.run([TOOL, *command.split()[2:]], capture_output=True, text=True, timeout=60, check=False, cwd=folder)
                self.assertEqual(result.stdout, output)
        self.assertEqual(len(blocks), 4)

    def test_devices_are_those_of_the_placement_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path, places = Path(folder) / "m.onnxtxt", Path(folder) / "places.toml"
            path.write_text('<ir_version: 10, opset_import: ["": 21]>\ng (float[N] x, float[N] w) => (float[] y) { y = Add (x, w) }\n')
            places.write_text('[[place]]\nvalues = "*"\ndevice = "cuda:1"\n')
            self.assertTrue(why(str(path), "y").stdout.startswith("`y` is float32[N]\n"))
            said = why(str(path), "y", "--placement-file", str(places)).stdout
            self.assertIn("`y` is float32[N] on cuda:1\n", said)
            self.assertIn("`w` is float32[N] on cuda:1\n", said)
            tree = why(str(path), "y", "--depth", "1", "--placement-file", str(places)).stdout
            self.assertIn("  `x`: float32[N] on cuda:1, an input\n", tree)
            places.write_text("[[place]]\n")
            self.assertEqual(why(str(path), "y", "--placement-file", str(places)).returncode, 2)

    def test_the_lines_of_the_program_are_shown(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "regression_bad.onnx"
            model.write_bytes((SAMPLES / "regression_bad.onnx").read_bytes())
            known = why(str(model), "val_3", "--source-root", str(ROOT)).stdout
            places = re.findall(r"(?m) at samples/regression_step.py:(\d+)\n    (\d+) \| (.*)$", known)
            lines = (SAMPLES / "regression_step.py").read_text().splitlines()
            self.assertTrue(places, known)
            for said, number, code in places:
                self.assertEqual((said, code), (number, lines[int(number) - 1].strip()))
            result = why(str(model), "val_3", "--source-root", str(model))
            self.assertEqual((result.returncode, result.stderr), (2, f"tensorlint: --source-root: {model} is not a folder\n"))

    def test_a_name_that_is_nearly_right(self) -> None:
        model = str(SAMPLES / "encoder_bad.onnx")
        self.assertIn("did you mean `val_16`?", why(model, "valu_16").stderr)
        self.assertIn("a node has that name, its first result is `val_16`", why(model, "node_Concat_16").stderr)
        self.assertIn("`tensorlint show` lists them", why(model, "nothing like any of them").stderr)

    def test_a_name_that_nothing_has_is_refused(self) -> None:
        result = why(str(SAMPLES / "regression_bad.onnx"), "no\x1b[31msuch")
        self.assertEqual(result.returncode, 2)
        self.assertIn("has no value", result.stderr)
        self.assertNotIn("\x1b", result.stderr)


if __name__ == "__main__":
    unittest.main()
