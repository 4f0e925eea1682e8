"""The command `contract`."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from json_schema import problems

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
ENCODER = """<ir_version: 9, opset_import: ["": 18]>
g (int64[batch, sequence] ids, float[batch_1, 1, 4] shift, float[30, 4] words, float[1, 16, 4] table) => (y)
<int64[1] zero = {0}, int64[1] one = {1}>
{
  [embed] hidden = Gather (words, ids)
  length = Shape <start = 1, end = 2> (ids)
  rows = Slice (table, zero, length, one)
  [place] placed = Add (hidden, rows)
  [join] y = Concat <axis = 1> (placed, shift)
}
"""


def run(*arguments: object, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, "contract", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True,
                          timeout=60, check=False, input=text)


class ContractTest(unittest.TestCase):
    def test_each_line_names_the_node_that_asks(self) -> None:
        result = run("-", text=ENCODER)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        for line, node in (("sequence <= 16", "place"), ("-30 <= ids < 30", "embed")):
            self.assertIn(line, lines)
            self.assertTrue(lines[lines.index(line) + 1].startswith(f"    asked for by node `{node}` ("), lines)
        equal = [line for line in lines if line.startswith(("batch_1 == batch", "batch == batch_1"))]
        self.assertEqual(len(equal), 1, lines)

    def test_json_follows_the_schema(self) -> None:
        document = json.loads(run("-", "--format", "json", text=ENCODER).stdout)
        self.assertEqual(problems(document, json.loads((ROOT / "docs/schema/contract.schema.json").read_text())), [])
        by_text = {row["text"]: row for row in document["requirements"]}
        self.assertTrue(document["complete"])
        bound = by_text["sequence <= 16"]
        self.assertEqual((bound["kind"], bound["exact"], bound["inputs"], bound["node"], bound["line"]),
                         ("bound", True, ["ids"], "place", 8))
        self.assertEqual(by_text["-30 <= ids < 30"]["kind"], "range")

    def test_what_is_declared_is_no_line(self) -> None:
        result = run("-", "--input", "ids=int64[batch, 8]", "--range", "ids=0:9", text=ENCODER)
        self.assertNotIn("sequence", result.stdout)

    def test_a_model_without_requirements(self) -> None:
        text = '<ir_version: 9, opset_import: ["": 18]>\ng (float[N] x) => (y) { y = Relu (x) }\n'
        result = run("-", text=text)
        self.assertEqual((result.returncode, result.stdout),
                         (0, "no requirement: inputs of the declared types run\n"))
        self.assertEqual(json.loads(run("-", "--format", "json", text=text).stdout)["requirements"], [])

    def lines_of(self, graph: str) -> list[str]:
        result = run("-", text=f'<ir_version: 9, opset_import: ["": 18]>\ng {graph}\n')
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return [line for line in result.stdout.splitlines() if not line.startswith("    asked for by")]

    def test_what_both_sides_of_a_comparison_have_is_taken_away(self) -> None:
        lines = self.lines_of("(float[A] x, float[B] y) => (z) { s = Concat <axis = 0> (x, y)  t = Concat <axis = 0> (y, y)  z = Add (s, t) }")
        self.assertIn(lines, (["A == B"], ["B == A"]))

    def test_a_divisor_where_halves_of_one_element_are_stretched(self) -> None:
        lines = self.lines_of("(float[A] x) => (z) { a, b = Split <num_outputs = 2> (x)  z = Add (a, b) }")
        self.assertEqual(lines, ["A % 2 == 0    (sufficient only: some other inputs run, too)"])

    def test_elements_that_decide_extents_are_not_tried(self) -> None:
        incomplete = ["incomplete: elements of an input decide extents, and which of them run was not tried"]
        self.assertEqual(self.lines_of("(float[A] x, int64[1] n) => (float[C] z) { z = Reshape (x, n) }"), incomplete)
        self.assertEqual(self.lines_of("(float[A] x, int64[1] n) => (float[C] z) <int64[1] o = {0}> { y = Slice (x, o, n)  z = Add (y, x) }"), incomplete)
        self.assertEqual(self.lines_of("(float[A] x, int64[B] n) => (z) <int64[1] o = {1}> { h = Shape (n)  z = Expand (o, h) }"),
                         ["no requirement: inputs of the declared types run"])

    def test_extents_of_which_one_has_to_be_a_multiple(self) -> None:
        lines = self.lines_of("(float[N, H, W, 2] x) => (z) <int64[3] s = {0, -1, 8}> { z = Reshape (x, s) }")
        self.assertEqual(lines, ["(H*W) % 4 == 0"])

    def test_positions_in_a_sequence(self) -> None:
        lines = self.lines_of("(float[N] x, int64 layer) => (z) { y = Neg (x)  s = SequenceConstruct (x, y)  z = SequenceAt (s, layer) }")
        self.assertEqual(lines, ["-2 <= layer < 2"])

    def test_sizes_for_which_nothing_is_too_large(self) -> None:
        shape = ", ".join(["s"] * 12)
        text = f"(float[A] x, float[7{', 1' * 11}] u) => (z) <float one = {{1}}> {{ s = Shape (x)  h = Concat <axis = 0> ({shape})  p = Expand (one, h)  z = Add (u, p) }}"
        self.assertEqual(self.lines_of(text), ["A == 1"])

    def test_elements_and_axes_of_one_name_are_told_apart(self) -> None:
        text = ('<ir_version: 9, opset_import: ["": 18]>\n'
                "g (int64[words, letters] letters, float[15, 4] table, float[letters] w) => (y, z) {\n"
                "  y = Gather (table, letters)\n  z = Identity (w)\n}\n")
        self.assertEqual(run("-", text=text).stdout.splitlines()[0], "-15 <= letters[...] < 15")

    def test_a_model_that_always_fails_is_refused(self) -> None:
        text = '<ir_version: 9, opset_import: ["": 18]>\ng (float[N, 2] x, float[3] z) => (y) { [sum] y = Add (x, z) }\n'
        result = run("-", text=text)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("fails for all inputs at node `sum`", result.stderr)

    def test_so_is_one_that_reads_nothing_or_runs_for_ever(self) -> None:
        head = '<ir_version: 9, opset_import: ["": 18, "f": 1]>\ng (float[N] x) => (y) {{ {} }}\n<domain: "f", opset_import: ["": 18, "f": 1]> A (a) => (b) {{ {} }}\n'
        for calls, body in (("[here] y = Add (x, q)", "b = Relu (a)"), ("y = f.A (x)", "[here] b = Add (a, q)"), ("y = f.A (x)", "[here] b = f.A (a)"),
                            ("[here] p = Add (x, y) y = Relu (p)", "b = Relu (a)")):
            with self.subTest(calls=calls, body=body):
                result = run("-", text=head.format(calls, body))
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn("fails for all inputs at node `here`", result.stderr)
        self.assertEqual(run("-", text=head.format("y = Relu (x)", "b = Add (a, q)")).returncode, 0)

    def test_what_fails_in_some_executions_hides_nothing(self) -> None:
        """One that fails with some sizes comes first."""
        text = '<ir_version: 9, opset_import: ["": 18]>\ng (float[N, 2] x, float[M, 2] v, float[3] z) => (w, y) { w = Add (x, v) [sum] y = Add (x, z) }\n'
        result = run("-", text=text)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("fails for all inputs at node `sum`", result.stderr)

    def test_bad_input_is_refused(self) -> None:
        for arguments, said in ((["missing.onnx"], "missing.onnx"), (["-", "--format", "xml"], "xml"),
                                (["-", "--input", "nothing=float32"], "nothing")):
            result = run(*arguments, text=ENCODER)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(said, result.stderr)

    def test_an_empty_model_has_no_contract(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "empty.onnx"
            path.write_bytes(b"\x08\x09")  # ir_version alone
            result = run(path)
        self.assertIn(result.returncode, (0, 2), result.stderr)
        self.assertNotIn("internal error", result.stderr)


if __name__ == "__main__":
    unittest.main()
