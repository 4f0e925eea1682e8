"""`tensorlint show`: operands, contents, filters; `tensorlint why --depth`: the tree."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from json_schema import problems

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
ENCODER = "samples/encoder_bad.onnx"
MODEL = """<ir_version: 9, opset_import: ["": 17]>
g (float[N, 3] x, bool c) => (float[] y, float[M] z, float[] w, int64[] odd)
<int64 zero = {0}, int64[3] dims = {1, -1, 3}, float[2, 2] ones = {1, 1, 1, 1}, float half = {0.5}, int64[20] long = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}>
{
  starts = Constant <value_ints = [0]> ()
  ends = Constant <value_ints = [9223372036854775807]> ()
  least = Constant <value = int64 least {-9223372036854775808}> ()
  first = Constant <value_ints = [1]> ()
  ["/encoder/layers.0/cut"] part = Slice (x, starts, ends, first)
  ["/encoder/layers.1/cut"] other = Slice (part, starts, ends, first)
  ["/decoder/clip"] y = Clip (other, , half)
  ["/decoder/pick"] z = If (c) <then_branch = yes () => (a) { ["/decoder/inner"] a = ReduceSum <keepdims = 0> (other) },
                                else_branch = no () => (b) { b = ReduceSum <keepdims = 0> (x) }>
  w = Identity (half)
  odd = Identity (least)
}
"""


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


class ShowTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.write("m.onnxtxt", MODEL)

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def show(self, *arguments: object) -> list[str]:
        result = run("show", self.model, *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.splitlines()

    def show_json(self, *arguments: object) -> dict[str, Any]:
        document = json.loads(run("show", self.model, "--format", "json", *arguments).stdout)
        self.assertEqual(problems(document, json.loads((ROOT / "docs/schema/show.schema.json").read_text())), [])
        return document

    def test_nodes_come_with_their_operands(self) -> None:
        lines = self.show()
        self.assertIn("  /encoder/layers.0/cut (Slice) <- x, starts, ends, first", lines)
        self.assertIn("  /decoder/clip (Clip) <- other, _, half", lines)  # min is left out
        self.assertIn("  #0(Constant)", lines)
        document = self.show_json()
        self.assertIn({"node": "/decoder/clip", "op": "Clip", "operands": ["other", None, "half"], "results": ["y"]}, document["nodes"])
        self.assertEqual([node["op"] for node in document["graphs"][0]["nodes"]], ["ReduceSum"])

    def test_a_node_with_many_operands_stays_on_a_readable_line(self) -> None:
        names = [f"x{i}" for i in range(100)]
        self.model = self.write("many.onnxtxt", '<ir_version: 9, opset_import: ["": 17]>\n'
                                f'g ({", ".join("float[2] " + name for name in names)}) => (float[200] y) {{ y = Concat <axis = 0> ({", ".join(names)}) }}\n')
        line = next(line for line in self.show() if "Concat" in line)
        self.assertTrue(line.endswith(", x31, and 68 more"), line)

    def test_contents_of_small_tensors(self) -> None:
        lines = self.show()
        for line in ["  initializer zero: int64[] = 0", "  initializer dims: int64[3] = {1, -1, 3}", "  initializer ones: float32[2, 2] = {1, 1, 1, 1}",
                     "  initializer half: float32[] = 0.5", "  initializer long: int64[20] = 7", "    ends: int64[1] = {INT64_MAX}", "    least: int64[] = INT64_MIN",
                     "    w: float32[] = 0.5", "    odd: int64[] = INT64_MIN"]:
            with self.subTest(line=line):
                self.assertIn(line, lines)
        self.assertEqual(self.show_json()["values"]["ends"]["contents"], [2**63 - 1])  # numbers stay numbers

    def test_what_is_assumed_after_a_failure_is_marked(self) -> None:
        path = self.write("bad.onnxtxt", '<ir_version: 9, opset_import: ["": 17]>\n'
                          "g (float[2, 3] x, float[4] y) => (c, d) { [add] a = Add (x, y) b = Relu (a) c = Exp (b) d = Neg (x) }\n")
        lines = run("show", path).stdout.splitlines()
        marked = {line.split(":")[0].strip(): line.split("# ")[1] for line in lines if "assumed" in line}
        self.assertEqual(marked, {"a": "assumed shape: the node fails", "b": "assumed shape: depends on a node that fails",
                                  "c": "assumed shape: depends on a node that fails"})
        document = json.loads(run("show", path, "--format", "json").stdout)
        self.assertEqual({name: fact.get("assumed") for name, fact in document["values"].items()},
                         {"x": None, "y": None, "a": ["shape"], "b": ["shape"], "c": ["shape"], "d": None})
        self.assertEqual(problems(document, json.loads((ROOT / "docs/schema/show.schema.json").read_text())), [])

    def test_the_contract_follows_where_it_is_asked_for(self) -> None:
        self.model = self.write("sizes.onnxtxt", '<ir_version: 9, opset_import: ["": 17]>\ng (float[N, 12] x, float[12, M] w, float[N, M] z) => (y) { p = MatMul (x, w) y = Concat <axis = 1> (p, z) }\n')
        self.assertNotIn("contract", self.show())
        self.assertNotIn("requirements", self.show_json())
        self.model = self.write("table.onnxtxt", '<ir_version: 9, opset_import: ["": 17]>\ng (int64[N] ids, float[30, 2] table) => (y) { [pick] y = Gather (table, ids) }\n')
        lines = self.show("--contract")
        self.assertEqual(lines[-3:], ["contract", "-30 <= ids < 30", "    asked for by node `pick` (Gather)" + lines[-1].partition("(Gather)")[2]])
        document = self.show_json("--contract")
        self.assertTrue(document["complete"])
        self.assertEqual([row["text"] for row in document["requirements"]], ["-30 <= ids < 30"])
        self.model = self.write("never.onnxtxt", '<ir_version: 9, opset_import: ["": 17]>\ng (float[2] x, float[3] z) => (y) { y = Add (x, z) }\n')
        self.assertEqual(self.show("--contract")[-1], "none: the model fails for all inputs")

    def test_formulas_in_names_and_in_json(self) -> None:
        path = self.write("names.onnxtxt", '<ir_version: 9, opset_import: ["": 17]>\n'
                          'g (float["a + 1", "b + 1"] x, float["batch size", 3] y) => (flat, rows) <int64[1] all = {-1}> '
                          "{ flat = Reshape (x, all) rows = Reshape (y, all) }\n")
        values = json.loads(run("show", path, "--format", "json").stdout)["values"]
        self.assertEqual(values["x"]["shape"], ["a + 1", "b + 1"])
        self.assertEqual(values["flat"]["shape"], ["a + a*b + b + 1"])
        self.assertEqual(values["y"]["shape"], ["batch size", 3])
        self.assertEqual(values["rows"]["shape"], ['3*"batch size"'])
        # 64 long names make a formula of thousands of characters: it is whole, or null, never cut.
        terms = " ".join(f"float[{'n' * 300}{i}, 1] x{i}," for i in range(15)).rstrip(",")
        joined = ", ".join(f"x{i}" for i in range(15))
        path = self.write("long.onnxtxt", '<ir_version: 9, opset_import: ["": 17]>\n'
                          f"g ({terms}) => (z) {{ some = Concat <axis = 0> (x0, x1, x2) z = Concat <axis = 0> ({joined}) }}\n")
        values = json.loads(run("show", path, "--format", "json").stdout)["values"]
        self.assertEqual(values["some"]["shape"][0].count("n" * 300), 3)
        self.assertNotIn("...", values["some"]["shape"][0])
        self.assertEqual(values["z"]["shape"], [None, 1])

    def test_node_filter(self) -> None:
        self.assertEqual(self.show("--node", "*layers.0*"), ["main", "  /encoder/layers.0/cut (Slice)", "    <- x: float32[N, 3]", "    <- starts: int64[1] = {0}",
                                                              "    <- ends: int64[1] = {INT64_MAX}", "    <- first: int64[1] = {1}", "    part: float32[N, 3]"])
        self.assertEqual([line for line in self.show("--node", "#?(Constant)") if line.startswith("  #")], [f"  #{i}(Constant)" for i in range(4)])
        self.assertEqual(sorted(self.show_json("--node", "/decoder/clip")["values"]), ["half", "other", "y"])

    def test_module_filter(self) -> None:
        def nodes(*arguments: str) -> list[str]:
            return [line.split()[0] for line in self.show(*arguments) if line.startswith(("  /", "  #"))]

        for arguments, expected in [(["--module", "encoder.layers.1"], ["/encoder/layers.1/cut"]), (["--module", "encoder"], ["/encoder/layers.0/cut", "/encoder/layers.1/cut"]),
                                    (["--module", "*layers.0"], ["/encoder/layers.0/cut"]), (["--module", "decoder"], ["/decoder/clip", "/decoder/pick", "/decoder/inner"]),
                                    (["--module", "decoder", "--node", "*clip"], ["/decoder/clip"])]:
            with self.subTest(arguments=arguments):
                self.assertEqual(nodes(*arguments), expected)
        of_exporter = run("show", ENCODER, "--module", "encoder.layers.1").stdout
        self.assertIn("node_layer_norm_2 (LayerNormalization)\n", of_exporter)
        self.assertNotIn("node_embedding", of_exporter)
        self.assertIn("main\n", of_exporter)

    def test_filters_that_match_nothing(self) -> None:
        for arguments, said in [(["--node", "nobody"], "no node matches `nobody`"), (["--module", "nobody"], "no node is in a module that matches `nobody`"),
                                (["--node", "*", "--module", "nobody"], "no node matches `*` in a module that matches `nobody`")]:
            with self.subTest(arguments=arguments):
                result = run("show", self.model, *arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(said, result.stderr)


class TreeTest(unittest.TestCase):
    def test_a_tree_of_the_depth_that_is_asked_for(self) -> None:
        lines = run("why", ENCODER, "val_16", "--depth", "1").stdout.splitlines()
        self.assertRegex(lines[0], r"^`val_16`: int64\[4\] = \{batch, sequence, 2, 8\}, made by node `node_Concat_16` \(Concat\) at samples/encoder_step.py:\d+$")
        self.assertRegex(lines[1], r"^  `val_2`: int64\[1\] = \{batch\}, made by node `node_Shape_2` \(Shape\).* \.\.\.$")
        self.assertEqual(lines[3], "  `val_14`: int64[1] = {2}, an initializer")
        self.assertEqual(len(lines), 5)
        self.assertEqual(len(run("why", ENCODER, "val_16", "--depth", "0").stdout.splitlines()), 1)
        self.assertIn("\n    `tags`: int64[batch, sequence], an input\n", run("why", ENCODER, "val_16", "--depth", "2").stdout)

    def test_what_was_expanded_is_not_repeated(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "m.onnxtxt")
            steps = "".join(f"  x{i + 1} = Add (x{i}, x{i})\n  y{i + 1} = Add (x{i}, x{i + 1})\n" for i in range(60))
            path.write_text(f'<ir_version: 9, opset_import: ["": 17]>\ng (float[N] x0) => (float[N] y60) {{\n{steps}}}\n')
            result = run("why", path, "y60", "--depth", "999999999")
            path.write_text('<ir_version: 9, opset_import: ["": 17]>\ng (float[N] x) => (float[N] y) { a = Relu (x) y = Add (a, b) b = Relu (y) }\n')
            cyclic = run("why", path, "y", "--depth", "50")
        lines = result.stdout.splitlines()
        self.assertEqual(sum("node `#116(Add)`" in line for line in lines), 2)
        self.assertEqual(sum(line.endswith("(see above)") for line in lines), 1)
        self.assertEqual(len(lines), 63)
        self.assertEqual(cyclic.returncode, 0, cyclic.stderr)
        self.assertIn("(see above)", cyclic.stdout)

    def test_failures_and_unknown_extents_are_named(self) -> None:
        self.assertRegex(run("why", "samples/refine_loop_bad.onnx", "div", "--depth", "1").stdout, r"^`div`: .*; it fails: Div needs operands of one dtype: ")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "m.onnxtxt")
            path.write_text('<ir_version: 9, opset_import: ["": 17]>\ng (float[N] x) => (float[] y) { p = NonZero (x) y = Cast <to = 1> (p) }\n')
            said = run("why", path, "y", "--depth", "3").stdout
        self.assertTrue(said.endswith("?1 is axis 1 of `p`, made by node `#0(NonZero)` (NonZero): depends on tensor contents that are not known\n"), said)

    def test_bad_depths(self) -> None:
        for depth in ("-1", "x", "1.5", "9999999999"):
            self.assertEqual(run("why", ENCODER, "val_16", "--depth", depth).returncode, 2)


if __name__ == "__main__":
    unittest.main()
