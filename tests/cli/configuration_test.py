"""Configuration, suppressions and baselines as people use them."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from json_schema import problems

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
SCHEMA = json.loads((ROOT / "docs/schema/check.schema.json").read_text())
MODEL = """<ir_version: 8, opset_import: ["" : 13]>
g (float[N,4] x, int64[3] labels) => (y, z)
{
  [average] y = ReduceMean <axes = [5]> (x)
  [forgotten] a = Abs (x)
  [pick] z = Gather (x, labels)
}
"""


class ConfigurationTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / ".git").mkdir()
        self.write("models/m.onnxtxt", MODEL)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_tool(self, *arguments):
        return subprocess.run([BINARY, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=60)

    def check(self, *arguments):
        result = self.run_tool("check", "--format", "json", *arguments)
        self.assertTrue(result.stdout, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(problems(document, SCHEMA), [])
        return result.returncode, [finding["rule"] for finding in document["findings"]], document

    def test_without_one(self):
        self.assertEqual(self.check("models")[:2], (1, ["reduction-axis-out-of-range", "dead-node"]))

    def test_selection_severity_and_exit_code(self):
        for text, expected in [("ignore = 'reduction-axis-out-of-range'", (0, ["dead-node"])), ("select = ['graph']", (0, ["dead-node"])),
                               ("fail-on = 'info'\nselect = 'dead-node'", (1, ["dead-node"])), ("[severity]\nreduction-axis-out-of-range = 'info'", (0, ["reduction-axis-out-of-range", "dead-node"])),
                               ("[severity]\nTL-S2 = 'info'\nshape = 'warning'\nTL-S201 = 'error'\n", (1, ["reduction-axis-out-of-range", "dead-node"])),
                               ("max-findings = 1", (1, ["reduction-axis-out-of-range"]))]:
            with self.subTest(text=text):
                self.write("tensorlint.toml", text)
                self.assertEqual(self.check("models")[:2], expected)
        self.assertEqual(self.check("models", "--max-findings", "1000")[1], ["reduction-axis-out-of-range", "dead-node"])

    def test_the_command_line_wins(self):
        self.write("tensorlint.toml", "select = 'shape'\nfail-on = 'error'\n[ranges]\nlabels = '0:3'")
        self.assertEqual(self.check("models", "--select", "dead-node", "--fail-on", "info")[:2], (1, ["dead-node"]))
        self.assertEqual(self.check("models", "--ignore", "TL-S201")[:2], (0, []))

    def test_declarations(self):
        self.write("tensorlint.toml", "[inputs]\nx = 'float32[4,4]'\nnobody = 'float32[2]'\n[ranges]\nlabels = '4:9'")
        self.assertIn("index-out-of-range", self.check("models")[1])
        self.assertEqual(self.check("models", "--range", "labels=0:3")[1], ["reduction-axis-out-of-range", "dead-node"])
        self.write("tensorlint.toml", "[[models]]\npath = 'models/*'\ninputs = { x = 'float32[4,4]' }\nranges = { labels = '4:9' }")
        self.assertIn("index-out-of-range", self.check("models")[1])
        self.write("tensorlint.toml", "[[models]]\npath = 'others/*'\nranges = { labels = '4:9' }")
        self.assertNotIn("index-out-of-range", self.check("models")[1])
        self.write("tensorlint.toml", "[[models]]\npath = 'models/*'\nranges = { label = '4:9' }")
        result = self.run_tool("check", "models")
        self.assertEqual((result.returncode, result.stderr), (2, "tensorlint: using tensorlint.toml\ntensorlint: tensorlint.toml:3: no model that the row applies to has a value `label` in its main graph\n"))

    def test_suppressions(self):
        self.write("tensorlint.toml", "[[suppress]]\nrule = 'TL-S201'\npath = 'models/*'\nnode = 'aver*'\nreason = 'the export is kept as it was'")
        code, rules, document = self.check("models")
        self.assertEqual((code, rules, document["summary"]["suppressed"]), (0, ["dead-node"], 1))
        self.assertIn("1 suppressed", self.run_tool("check", "models").stdout)

    def test_unused_suppressions_are_reported(self):
        self.write("tensorlint.toml", "[[suppress]]\nrule = 'TL-S201'\nnode = 'max*'\nreason = 'so'\n[[suppress]]\nrule = 'cycle'\npath = 'others/**'\nreason = 'other models'")
        code, rules, document = self.check("models")
        self.assertEqual((code, rules), (1, ["reduction-axis-out-of-range", "dead-node", "unused-suppression"]))
        finding = document["findings"][-1]
        self.assertEqual((finding["path"], finding["file"], finding["line"], finding["severity"]), ("tensorlint.toml", "tensorlint.toml", 1, "info"))
        self.assertIn("--> tensorlint.toml:1:1\n", self.run_tool("check", "models").stdout)
        self.assertNotIn("unused-suppression", self.check("models", "--ignore", "shape")[1])

    def test_unused_suppressions_have_the_severity_of_their_rule(self):
        self.write("models/m.onnxtxt", MODEL.replace("(x, labels)", "(x, labels)  # tensorlint: ignore[cycle] so"))
        row = "\n[[suppress]]\nrule = 'cycle'\nreason = 'so'"
        for text, expected in [("unused-suppression = 'warning'", "warning"), ("graph = 'warning'", "warning"), ("TL-G6 = 'error'", "error"),
                               ("graph = 'error'\nunused-suppression = 'info'", "info")]:
            with self.subTest(text=text):
                self.write("tensorlint.toml", "[severity]\n" + text + row)
                unused = [finding for finding in self.check("models")[2]["findings"] if finding["rule"] == "unused-suppression"]
                self.assertEqual([(finding["file"], finding["severity"]) for finding in unused],
                                 [("models/m.onnxtxt", expected), ("tensorlint.toml", expected)])

    def test_each_configuration_says_whether_unused_suppressions_are_reported(self):
        row = "\n[[suppress]]\nrule = 'cycle'\nreason = 'so'"
        self.write("tensorlint.toml", "ignore = 'unused-suppression'" + row)
        self.write("models/inner/tensorlint.toml", row)
        self.write("models/inner/m.onnxtxt", MODEL)
        unused = [finding for finding in self.check("models")[2]["findings"] if finding["rule"] == "unused-suppression"]
        self.assertEqual([finding["file"] for finding in unused], ["models/inner/tensorlint.toml"])

    def test_fix_repairs_what_the_baseline_knows(self):
        self.assertEqual(self.check("models", "--write-baseline", "known.json")[:2], (0, []))
        self.write("tensorlint.toml", "baseline = 'known.json'")
        self.assertEqual(self.check("models")[:2], (0, []))
        result = self.run_tool("fix", "models/m.onnxtxt", "-o", "fixed.onnxtxt")
        self.assertIn("fixed dead-node at node forgotten", result.stdout)
        # What else the baseline knows does not count, as for check.
        self.assertIn("left: 1 in the baseline", result.stdout)
        self.assertNotIn("reduction-axis-out-of-range", result.stdout)
        self.assertEqual(result.returncode, 0)

    def test_fix_ends_as_check_would(self):
        for text, code in [("", 1), ("fail-on = 'never'", 0), ("fail-on = 'error'", 1), ("ignore = 'reduction-axis-out-of-range'", 0),
                           ("severity = {reduction-axis-out-of-range = 'warning'}\nfail-on = 'error'", 0), ("severity = {reduction-axis-out-of-range = 'info'}\nfail-on = 'info'", 1)]:
            with self.subTest(text):
                self.write("tensorlint.toml", text)
                self.assertEqual(self.run_tool("fix", "models/m.onnxtxt", "-o", "models/fixed.onnxtxt").returncode, code)
                self.assertEqual(self.check("models/fixed.onnxtxt")[0], code)

    def test_mistakes_are_refused(self):
        for text, message in [("igonre = []", "tensorlint.toml:1:1: unknown key `igonre`; did you mean `ignore`?"), ("[ranges]\nx = '3'", "tensorlint.toml:2: `3` is not of the form lo:hi with lo <= hi"),
                              ("baseline = 'none.json'", "baseline none.json: cannot be read: No such file or directory"), ("device = '='", "tensorlint.toml:1: `=` is not of the form of a device, such as cpu or cuda:0")]:
            with self.subTest(text=text):
                self.write("tensorlint.toml", text)
                result = self.run_tool("check", "models")
                self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", f"tensorlint: {message}\n"))

    def test_another_file(self):
        self.write("tensorlint.toml", "igonre = []")
        self.write("other.toml", "select = ['dead-node']")
        self.assertEqual(self.check("models", "--config", "other.toml")[:2], (0, ["dead-node"]))
        self.assertEqual(self.run_tool("check", "models", "--config", "none.toml").returncode, 2)

    def test_the_nearest_one_counts_for_each_input(self):
        self.write("tensorlint.toml", "ignore = 'dead-node'")
        self.write("models/inner/m.onnxtxt", MODEL)
        self.write("models/inner/tensorlint.toml", "ignore = 'shape'")
        _, rules, _ = self.check("models/inner/m.onnxtxt", "models/m.onnxtxt")
        self.assertEqual(rules, ["dead-node", "reduction-axis-out-of-range"])

    def test_other_commands_read_it_too(self):
        self.write("tensorlint.toml", "[inputs]\nx = 'float32[6,4]'")
        self.assertIn("[6, 4]", self.run_tool("show", "models/m.onnxtxt").stdout)
        self.assertIn("[6, 4]", self.run_tool("why", "models/m.onnxtxt", "a").stdout)

    def test_order_does_not_depend_on_jobs(self):
        for i in range(12):
            self.write(f"models/m{i}.onnxtxt", MODEL)
        outputs = {self.run_tool("check", "--format", "json", "models", "--jobs", jobs).stdout for jobs in (1, 2, 7)}
        self.assertEqual(len(outputs), 1)

    # ---- baselines

    def numbered_model(self, shift, extra=False):
        """A sum over a missing axis twice and an unused node; all names carry numbers that start at `shift`."""
        def name(kind, n):
            return f"{kind}_{n + shift}"

        nodes = [helper.make_node("Relu", ["x"], [name("val", 0)], name=name("node_Relu", 0)),
                 helper.make_node("ReduceMean", [name("val", 0)], [name("val", 1)], name=name("node_ReduceMean", 1), axes=[3]),
                 helper.make_node("Abs", ["x"], [name("val", 2)], name=name("node_Abs", 2)),
                 helper.make_node("ReduceMean", ["x"], [name("val", 3)], axes=[4])]
        if extra:
            nodes.insert(0, helper.make_node("ReduceMax", ["x"], ["first"], name="node_ReduceMax", axes=[2]))
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
                                  [helper.make_empty_tensor_value_info(value) for value in [name("val", 1), name("val", 3)] + (["first"] if extra else [])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), self.folder / "numbered.onnx")

    def test_a_baseline_hides_what_is_known(self):
        self.numbered_model(0)
        code, rules, _ = self.check("numbered.onnx")
        self.assertEqual((code, sorted(rules)), (1, ["dead-node", "reduction-axis-out-of-range", "reduction-axis-out-of-range"]))
        result = self.run_tool("check", "numbered.onnx", "--write-baseline", "known.json")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("3 in the baseline", result.stdout)
        self.assertEqual(self.check("numbered.onnx", "--baseline", "known.json")[:2], (0, []))
        self.numbered_model(1000)
        code, rules, document = self.check("numbered.onnx", "--baseline", "known.json")
        self.assertEqual((code, rules, document["summary"]["baseline"]), (0, [], {"known": 3, "gone": 0}))
        self.numbered_model(7, extra=True)
        code, _, document = self.check("numbered.onnx", "--baseline", "known.json")
        self.assertEqual((code, [finding["node"] for finding in document["findings"]]), (1, ["node_ReduceMax"]))

    def test_a_baseline_in_the_configuration(self):
        self.numbered_model(0)
        self.write("tensorlint.toml", "baseline = 'known/all.json'")
        (self.folder / "known").mkdir()
        self.assertEqual(self.run_tool("check", "numbered.onnx").returncode, 2)
        self.assertEqual(self.run_tool("check", "numbered.onnx", "models", "--write-baseline", "known/all.json").returncode, 0)
        self.assertEqual(self.check("numbered.onnx", "models")[0], 0)
        document = json.loads((self.folder / "known/all.json").read_text())
        self.assertEqual(sorted({row["path"] for row in document["findings"]}), ["../models/m.onnxtxt", "../numbered.onnx"])
        self.assertTrue(all(re.fullmatch("[0-9a-f]{16}", row["fingerprint"]) for row in document["findings"]))
        self.write("models/m.onnxtxt", MODEL.replace("[5]", "[1]"))
        self.assertEqual(self.check("models")[2]["summary"]["baseline"], {"known": 1, "gone": 1})

    def test_no_baseline_of_what_could_not_be_checked(self):
        self.write("broken.onnx", "no model")
        result = self.run_tool("check", "broken.onnx", "models", "--write-baseline", "known.json")
        self.assertEqual(result.returncode, 2)
        self.assertFalse((self.folder / "known.json").exists())
        for text in ["{}", "[", '{"schema": 9, "findings": []}', '{"schema": 1, "findings": [3]}', '{"schema": 1, "findings": [{"path": "m", "fingerprint": "0", "count": -1}]}']:
            with self.subTest(text=text):
                self.write("known.json", text)
                self.assertEqual(self.run_tool("check", "models", "--baseline", "known.json").returncode, 2)

    def test_what_was_found_is_named(self):
        """A configuration that nobody named may come with the model: every command says that it is used."""
        self.write("tensorlint.toml", "ignore = 'shape'")
        for arguments in [["check", "models"], ["show", "models/m.onnxtxt"], ["why", "models/m.onnxtxt", "y"], ["fix", "models/m.onnxtxt", "--diff"]]:
            self.assertEqual(self.run_tool(*arguments).stderr, "tensorlint: using tensorlint.toml\n")
        self.assertEqual(self.run_tool("check", "models", "-q").stderr, "")
        self.write("mine.toml", "ignore = 'shape'")
        self.assertEqual(self.run_tool("check", "models", "--config", "mine.toml").stderr, "")
        for number in range(30):
            self.write(f"many/{number:02}/m.onnxtxt", MODEL)
            self.write(f"many/{number:02}/tensorlint.toml", "")
        lines = self.run_tool("check", "many", "models").stderr.splitlines()
        self.assertEqual(lines, [f"tensorlint: using many/{number:02}/tensorlint.toml" for number in range(10)] + ["tensorlint: more configuration files are used"])

    def test_files_that_nest_too_deep(self):
        """Each of them overflowed the stack of a recursive parser, and each comes with the model or is named."""
        parts = ".".join(["a"] * 150_000)
        self.write("deep.toml", f"{parts} = 1")
        for text in [f"{parts} = 1", f"[{parts}]", f"[[{parts}]]", "a = " + "[" * 150_000]:
            self.write("tensorlint.toml", text)
            for arguments in [["check", "models"], ["show", "models/m.onnxtxt"], ["why", "models/m.onnxtxt", "y"], ["fix", "models/m.onnxtxt", "--diff"]]:
                result = self.run_tool(*arguments)
                self.assertEqual(result.returncode, 2)
                self.assertRegex(result.stderr, "^tensorlint: tensorlint.toml:1:[0-9]+: (a key of more than 16 parts|brackets are nested deeper than 32)\n$")
        self.write("tensorlint.toml", "")
        for option in ["--config", "--signatures", "--placement-file"]:
            result = self.run_tool("check", "models", option, "deep.toml")
            self.assertEqual(result.returncode, 2)
            self.assertIn("deep.toml:1:32: a key of more than 16 parts", result.stderr)
        self.write("tensorlint.toml", "baseline = 'b.json'")
        for text in ['{"schema":' + "[" * 400_000, '{"schema":' + '{"a":' * 400_000, '{"schema": 1, "findings": [' + "[" * 400_000 + "]" * 400_000 + "]}"]:
            self.write("b.json", text)
            result = self.run_tool("check", "models")
            self.assertEqual((result.returncode, result.stderr), (2, "tensorlint: baseline b.json: not a baseline of --write-baseline: nested too deeply\n"))

    def test_a_baseline_of_many_keys(self):
        """Processor time; 2.3 s where each key was compared with all before it."""
        row = {"path": "m", "fingerprint": "0" * 16, "count": 1}
        self.write("b.json", json.dumps({"schema": 1, "findings": [row | {f"k{i}": 0 for i in range(60_000)}], **{f"k{i}": 0 for i in range(60_000)}}))
        before = os.times().children_user
        self.assertEqual(self.run_tool("check", "models", "--baseline", "b.json").returncode, 1)
        self.assertLess(os.times().children_user - before, 0.5)


if __name__ == "__main__":
    unittest.main()
