"""`--signatures`: operators of one's own are inferred and checked as a file says; bad files are refused with the place."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
SIGNATURES = """
[[operator]]
domain = "own"
name = "RowNorm"
inputs = ["T[N, C]", "T[C]", "float32[]?"]
outputs = ["T[N, C]", "float32[N]"]

[[operator]]
domain = "own"
name = "Pairs"
inputs = ["float32|float16[B, L, D]"]
outputs = ["int64[B, L/2, 2*D + 1]", "int64[found, 2]", "bool[found]", "float32[...]"]
"""
HEADER = '<ir_version: 10, opset_import: ["" : 21, "own" : 1]>\n'


class Signatures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_with(self, command, graph, signatures=SIGNATURES):
        model, file = self.folder / "model.onnxtxt", self.folder / "own.toml"
        model.write_text(HEADER + graph)
        file.write_text(signatures)
        return subprocess.run([BINARY, command, str(model), "--signatures", str(file), "--format", "json"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    def shapes(self, graph):
        result = self.run_with("show", graph)
        self.assertEqual(result.returncode, 0, result.stderr)
        return {name: (fact["dtype"], fact["shape"]) for name, fact in json.loads(result.stdout)["values"].items()}

    def findings(self, graph):
        result = self.run_with("check", graph)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return [(finding["rule"], finding["message"]) for finding in json.loads(result.stdout)["findings"]]

    def test_results(self):
        shapes = self.shapes("g (float16[K, 8] x, float16[8] w, float[B, 6, 4] p) => (y) { y, n = own.RowNorm(x, w) a, b, c, d = own.Pairs(p) z = Relu(y) }")
        self.assertEqual(shapes["y"], (["float16"], ["K", 8]))
        self.assertEqual(shapes["z"], (["float16"], ["K", 8]))
        self.assertEqual(shapes["n"], (["float32"], ["K"]))
        self.assertEqual(shapes["a"], (["int64"], ["B", 3, 9]))
        self.assertEqual(shapes["b"], (["int64"], [None, 2]))
        self.assertEqual(shapes["c"], (["bool"], [None]))
        self.assertEqual(shapes["d"], (["float32"], None))

    def test_extents_of_one_name_are_one(self):
        graph = "g (float[B, 6, 4] p, bool[3] q) => (s, t) <int64[1] k = {1}> { a, b, c, d = own.Pairs(p) e = Cast <to = 7> (c) f = Unsqueeze(e, k) s = Concat <axis = 1> (b, f) t = Not(q) }"
        self.assertEqual(self.shapes(graph)["s"], (["int64"], [None, 3]))
        self.assertEqual(self.findings(graph), [])

    def test_mistakes_are_found(self):
        for graph, rule, part in [
                ("g (float[3, 8] x, float[7] w) => (y) { y = own.RowNorm(x, w) }", "incompatible-operand-shapes", "axis 0 of `w` has extent 7"),
                ("g (float[3] x, float[7] w) => (y) { y = own.RowNorm(x, w) }", "incompatible-operand-shapes", "rank 2"),
                ("g (float[3, 8] x, double[8] w) => (y) { y = own.RowNorm(x, w) }", "mixed-operand-dtypes", "one dtype T"),
                ("g (double[3, 8, 1] x) => (y) { y = own.Pairs(x) }", "type-constraint-violated", "`x` is float64"),
                ("g (float[3, 8] x) => (y) { y = own.RowNorm(x) }", "wrong-operand-count", "at least 2 operands"),
                ("g (float[3, 8] x, float[8] w) => (y) { y, a, b = own.RowNorm(x, w) }", "wrong-operand-count", "2 results"),
                ("g (float[5, 8] x, float[8] w) => (s) { y, n = own.RowNorm(x, w) s = MatMul(y, y) }", "incompatible-operand-shapes", ""),
        ]:
            with self.subTest(graph=graph):
                found = self.findings(graph)
                self.assertTrue(any(name == rule and part in message for name, message in found), found)

    def test_nothing_wrong_nothing_said(self):
        self.assertEqual(self.findings("g (float[N, 8] x, float[8] w) => (y) { y = own.RowNorm(x, w) }"), [])
        self.assertEqual([rule for rule, _ in self.findings("g (float[N, 8] x) => (y) { y = own.Other(x) }")], ["undeclared-custom-operator"])

    def test_bad_files(self):
        row = '[[operator]]\nname = "A"\n'
        for text, part in [("x = ", "1:"), ("[operator]\n", "unknown key"), ("[[other]]\n", "unknown key"), ("operator = [1]\n", "not a table"),
                           ('[[operator]]\noutputs = ["float32[]"]\n', "has no operator name"), (row, "no outputs"), (row + "outputs = 3\n", "not a list"),
                           (row + "outputs = [3]\n", "not a string"), (row + 'more = "x"\n', "unknown key"), (row + "domain = 1\n", "not a string"),
                           (row + 'outputs = ["float32"]\n', "is not a type"), (row + 'outputs = ["float33[]"]\n', "neither a dtype"),
                           (row + 'outputs = ["T[]"]\n', "no operand has"), (row + 'outputs = ["float32[N, ]"]\n', "the dim"),
                           (row + 'outputs = ["float32[2**3]"]\n', "the dim"), (row + 'outputs = ["float32[-1]"]\n', "the dim"),
                           (row + 'outputs = ["float32[99999999999999999999]"]\n', "the dim"), (row + 'outputs = ["float32[]?"]\n', "cannot be optional"),
                           (row + 'inputs = ["float32[N + 1]"]\noutputs = ["float32[]"]\n', "operand's dims"),
                           (row + 'outputs = ["float32[' + ", ".join(["1"] * 99) + ']"]\n', "more than 64"),
                           (row + 'outputs = ["' + "x" * 2000 + '"]\n', "1000 characters"),
                           ((row + 'outputs = ["float32[]"]\n') * 2, "declared twice")]:
            with self.subTest(text=text[:80]):
                result = self.run_with("check", "g (float[N] x) => (y) { y = Relu(x) }", text)
                self.assertEqual(result.returncode, 2, result.stdout)
                self.assertIn(part, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)
        missing = subprocess.run([BINARY, "check", "m.onnx", "--signatures", str(self.folder / "missing.toml")], capture_output=True, text=True, check=False)
        self.assertEqual(missing.returncode, 2)
        self.assertIn("missing.toml", missing.stderr)


if __name__ == "__main__":
    unittest.main()
