"""One mistake, one finding: the places that share a line, a constant or a cause are told together."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from json_schema import problems

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
SCHEMA = json.loads((ROOT / "docs/schema/check.schema.json").read_text())
HEADER = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft": 1]>\n'
UNSORTED = HEADER + "g (float[N] x) => (float[N] y)\n{\n  [second] y = Relu (a)\n  [first] a = Neg (x)\n}\n"


def constant(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def node(op, inputs, outputs, name, line, module, **attributes):
    """With the metadata that torch.onnx writes."""
    made = helper.make_node(op, inputs, outputs, name=name, **attributes)
    trace = (f'  File "model.py", line 90, in forward\n    return self.layers(x)\n'
             f'  File "model.py", line {line}, in forward\n    line_{line}(x)\n')
    scopes = repr(["", module.rsplit(".", 1)[0], module, op.lower()])
    for key, value in [("pkg.torch.onnx.stack_trace", trace), ("pkg.torch.onnx.name_scopes", scopes)]:
        made.metadata_props.add(key=key, value=value)
    return made


def encoder(layers, batch="batch", shared=True, heads=2):
    """Attention layers of width 16 whose projections were pruned to 8; the shape that splits the heads says heads * 8."""
    nodes, initializers = [helper.make_node("Shape", ["x"], ["size"], name="size", start=0, end=2)], []
    for name, rows, columns in [("into", 16, 8), ("out", 8, 16)]:
        initializers.append(numpy_helper.from_array(np.zeros((rows, columns), np.float32), name))
    value = "x"
    for layer in range(layers):
        own = "" if shared else f"_{layer}"
        if layer == 0 or not shared:
            initializers += [constant("split" + own, [heads, 8]), constant("joined" + own, [8])]
        module = f"encoder.layers.{layer}.attention"

        def add(op, inputs, output, line, layer=layer, module=module, **attributes):
            nodes.append(node(op, inputs, [f"{output}_{layer}"], f"node_{output}_{layer}", line, module, **attributes))
            return f"{output}_{layer}"

        split = add("Concat", ["size", "split" + own], "split_shape", 23, axis=0)
        parts = []
        for line, part in [(23, "query"), (24, "key"), (25, "value")]:
            projected = add("MatMul", [value, "into"], part, line)
            parts.append(add("Transpose", [add("Reshape", [projected, split], part + "_view", line)], part + "_heads", line,
                             perm=[0, 2, 3, 1] if part == "key" else [0, 2, 1, 3]))
        mixed = add("MatMul", [add("Softmax", [add("MatMul", parts[:2], "scores", 26)], "weights", 27), parts[2]], "mixed", 27)
        joined = add("Reshape", [add("Transpose", [mixed], "turned", 28, perm=[0, 2, 1, 3]),
                                 add("Concat", ["size", "joined" + own], "joined_shape", 28, axis=0)], "joined_view", 28)
        value = add("Add", [value, add("MatMul", [joined, "out"], "attended", 28)], "hidden", 40)
    graph = helper.make_graph(nodes, "encoder", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, "length", 16])],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


class PlacesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / ".git").mkdir()

    def write(self, name, content):
        path = self.folder / name
        if isinstance(content, onnx.ModelProto):
            onnx.save(content, path)
        else:
            path.write_text(content)
        return path

    def run_tool(self, *arguments):
        return subprocess.run([BINARY, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=60)

    def check(self, *arguments):
        result = self.run_tool("check", "--format", "json", *arguments)
        document = json.loads(result.stdout)
        self.assertEqual(problems(document, SCHEMA), [])
        summary = document["summary"]
        self.assertEqual(sum(summary[key] for key in ("error", "warning", "info")), len(document["findings"]))
        self.assertEqual(summary["places"], sum(1 + len(finding.get("also", [])) for finding in document["findings"]))
        return document

    def assert_one(self, document, rule, severity, places):
        found = [(f["rule"], f["severity"], 1 + len(f.get("also", []))) for f in document["findings"]]
        self.assertEqual(found, [(rule, severity, places)])
        return document["findings"][0]

    # ---- one source line, one constant, one cause

    def test_two_operators_of_one_line_are_two_mistakes(self) -> None:
        nodes = []
        for head, bias in [(0, "b7"), (1, "b7"), (2, "b9")]:
            module = f"heads.{head}.linear"
            nodes.append(node("MatMul", ["x", "w"], [f"p{head}"], f"product_{head}", 40, module))
            nodes.append(node("Add", ["z", bias], [f"s{head}"], f"sum_{head}", 40, module))
        weights = [numpy_helper.from_array(np.zeros(shape, np.float32), name)
                   for name, shape in [("w", (17, 8)), ("b7", (7,)), ("b9", (9,))]]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16]),
                                               helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 8])],
                                  [helper.make_tensor_value_info(f"{of}{head}", TensorProto.FLOAT, None)
                                   for head in range(3) for of in "ps"], weights)
        path = self.folder / "line.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
        report = json.loads(subprocess.run([BINARY, "check", "--format", "json", str(path)], capture_output=True).stdout)
        self.assertEqual([(finding["op"], len(finding["also"])) for finding in report["findings"]], [("MatMul", 2), ("Add", 2)])
        # The text says what else is wrong at the places of one line.
        text = subprocess.run([BINARY, "check", str(path)], capture_output=True, text=True).stdout
        self.assertEqual(text.count("there: "), 1, text)
        self.assertIn("9", text.partition("there: ")[2].partition("\n")[0])

    def test_the_pruned_sample(self):
        """Six views of one wrong shape, and two more that fail only for these."""
        finding = self.assert_one(self.check(ROOT / "samples/encoder_bad.onnx"), "reshape-changes-element-count", "error", 6)
        self.assertEqual([place["node"] for place in finding["also"]], [f"node_view_{i}" for i in range(1, 6)])
        self.assertEqual({place["line"] for place in finding["also"]}, {23, 24, 25})

    def test_48_layers(self):
        for options in [{}, {"shared": False}]:
            with self.subTest(**options):
                path = self.write("twin.onnx", encoder(48, **options))
                self.assert_one(self.check(path), "reshape-changes-element-count", "error", 3 * 48)
                text = self.run_tool("check", path).stdout
                self.assertIn(f"and {3 * 48 - 1} more places: `node_key_view_0` (model.py:24)", text)
                self.assertIn("1 error in 144 places", text)
        self.assertEqual(self.check(self.write("ok.onnx", encoder(48, heads=1)))["findings"], [])

    def test_instances_without_source_lines(self):
        """Exporters without stack traces write a constant for each view, and module paths into the names."""
        for heads, places in [(2, 3 * 12), (1, 0)]:
            model = encoder(12, heads=heads)
            graph = model.graph
            for made in [*graph.node]:
                del made.metadata_props[:]
                made.name = "/encoder/layers." + made.name.rsplit("_", 1)[-1] + "/attention/" + made.op_type + "_" + made.name.replace("_", "")
                if made.op_type == "Reshape" and "view" in made.name and "joined" not in made.name:
                    initializer = constant(made.output[0] + "_shape", [0, 0, heads, 8])
                    graph.initializer.append(initializer)
                    made.input[1] = initializer.name
            document = self.check(self.write("m.onnx", model), "--ignore", "dead-node,unused-initializer")
            self.assertEqual([(f["rule"], 1 + len(f["also"])) for f in document["findings"]], [("reshape-changes-element-count", places)] if places else [])

    def test_a_mistake_of_certain_extents_is_one_too(self):
        self.assert_one(self.check(self.write("fixed.onnx", encoder(4, batch=3)), "--input", "x=[3,5,16]"),
                        "reshape-changes-element-count", "error", 3)

    def test_a_second_mistake_is_a_second_finding(self):
        """After the residual addition shapes are as they should be again: what fails there is of its own."""
        model = encoder(2)
        model.graph.initializer.append(numpy_helper.from_array(np.zeros((9, 3), np.float32), "head"))
        model.graph.node.append(node("MatMul", ["hidden_1", "head"], ["logits"], "node_head", 70, "head"))
        model.graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, None))
        found = self.check(self.write("two.onnx", model))["findings"]
        self.assertEqual([finding["rule"] for finding in found], ["reshape-changes-element-count", "incompatible-operand-shapes"])

    def test_one_wrong_constant(self):
        path = self.write("m.onnxtxt", HEADER + "g (float[4, 6] x, float[2, 12] y, float[4, 9] w) => (a, b, c)\n<int64[2] list = {5, 5}>\n"
                          "{\n  a = Reshape (x, list)\n  b = Reshape (y, list)\n  c = Reshape (w, list)\n}\n")
        finding = self.assert_one(self.check(path), "reshape-changes-element-count", "error", 3)
        self.assertIn("[4, 9] has 36 elements", finding["also"][1]["message"])

    def test_more_places_than_are_kept_are_one_finding_too(self):
        nodes = "".join(f"  [n{i}] y{i} = Softmax (x)\n" for i in range(1500))
        path = self.write("m.onnxtxt", HEADER + f"g (int64[2] x) => ({', '.join(f'y{i}' for i in range(1500))})\n{{\n{nodes}}}\n")
        document = json.loads(self.run_tool("check", "--format", "json", path).stdout)
        self.assertEqual(document["summary"], {"error": 1, "warning": 0, "info": 0, "places": 1500})
        self.assertIn("1 error in 1500 places", self.run_tool("check", path).stdout)

    def test_other_constants_are_other_mistakes(self):
        path = self.write("m.onnxtxt", HEADER + "g (float[4, 6] x, float[2, 12] y) => (a, b)\n<int64[2] one = {5, 5}, int64[2] two = {5, 7}>\n"
                          "{\n  a = Reshape (x, one)\n  b = Reshape (y, two)\n}\n")
        self.assertEqual(len(self.check(path)["findings"]), 2)

    def test_other_known_mistakes(self):
        loss = ("  one = Constant <value_float = 1.0> ()\n  p = Sigmoid (logits)\n  lp = Log (p)\n  a = Mul (target, lp)\n  nt = Sub (one, target)\n"
                "  np = Sub (one, p)\n  lnp = Log (np)\n  b = Mul (nt, lnp)\n  s = Add (a, b)\n  n = Neg (s)\n  loss = ReduceMean <keepdims = 0> (n)\n")
        for graph, rule, places in [
                ("g (float[8,4,12,64] q, float[6,4,32,64] k) => (y)\n{\n  y = MatMul (q, k)\n}", "incompatible-operand-shapes", 1),
                ("g (float[N,224,224,3] x, float[64,3,7,7] w) => (y)\n{\n  y = Conv <strides = [2, 2]> (x, w)\n}", "incompatible-operand-shapes", 1),
                (("g (float trip, float[N] x) => (float[N] y)\n{\n  c = Constant <value = bool {1}> ()\n  y = Loop (trip, c, x) <body = b (int64 i, bool ci, float[N] s)"
                 " => (bool co, float[N] t) { co = Identity (ci)\n t = Add (s, s) }>\n}"), "type-constraint-violated", 1),
                ("g (float[N,1] logits, int64[N,1] target) => (float loss)\n{\n" + loss + "}", "integer-target-in-regression-loss", 2)]:
            with self.subTest(graph=graph[:60]):
                self.assert_one(self.check(self.write("m.onnxtxt", HEADER + graph + "\n")), rule, "error", places)

    def test_an_integer_target_is_one_mistake_in_every_loss(self):
        """However an exporter writes the loss out: each node that reads the target fails."""
        tried = 0
        for path in sorted((ROOT / "tests/models/losses").glob("*.onnx")):
            floats = [value.name for value in onnx.load(path).graph.input if value.type.tensor_type.elem_type == TensorProto.FLOAT]
            # Where the logarithm is taken inside a function, the loss around its call is not known.
            if len(floats) < 2 or ("kl_div" in path.name and path.stem.endswith("_functions") and "_log_" not in path.name):
                continue
            tried += 1
            with self.subTest(path=path.name):
                errors = [(f["rule"], f["node"]) for f in self.check(path, "--input", f"{floats[1]}=int64")["findings"] if f["severity"] == "error"]
                self.assertEqual(len(errors), 1, errors)
        self.assertGreater(tried, 150)

    def test_a_truncated_data_file(self):
        count = 72
        nodes = [helper.make_node("Identity", [f"w{i}"], [f"y{i}"]) for i in range(count)]
        tensors = [numpy_helper.from_array(np.full(300, i, np.float32), f"w{i}") for i in range(count)]
        graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, [300]) for i in range(count)], tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        path = self.folder / "m.onnx"
        onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
        self.assertEqual(self.check(path)["findings"], [])
        size = os.path.getsize(self.folder / "w.bin")
        os.truncate(self.folder / "w.bin", 100)
        finding = self.assert_one(self.check(path), "broken-external-data", "error", count)
        self.assertIn(f"it has 100 bytes, its tensors need {size}", finding["notes"][0]["message"])

    # ---- order of nodes

    def test_a_converter_that_appends_its_casts(self):
        """As onnxruntime's converter to half precision does."""
        nodes, casts = [], []
        for i in range(79):
            nodes.append(helper.make_node("Relu" if i % 2 else "Neg", [f"cast{i}"], [f"v{i}"], name=f"node{i}"))
            casts.append(helper.make_node("Cast", [f"v{i - 1}" if i else "x"], [f"cast{i}"], name=f"cast_node{i}", to=TensorProto.FLOAT16 if i % 2 else TensorProto.FLOAT))
        graph = helper.make_graph(nodes + casts, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])], [helper.make_tensor_value_info("v78", TensorProto.FLOAT, ["N"])])
        path = self.write("m.onnx", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
        finding = self.assert_one(self.check(path), "use-before-definition", "warning", 79)
        self.assertEqual([fix["applicability"] for fix in finding["fixes"]], ["safe"])
        self.assert_one(self.check(path, "--target", "onnx"), "use-before-definition", "error", 79)
        self.run_tool("fix", path, "-o", "sorted.onnx")
        onnx.checker.check_model(self.folder / "sorted.onnx", full_check=True)
        self.assertEqual(self.check("sorted.onnx")["findings"], [])

    def test_a_domain_that_is_not_imported(self):
        for operator, severity in [("ai.onnx.ml.Normalizer", "warning"), ("com.microsoft.Gelu", "warning"), ("ai.onnx.preview.training.Momentum", "error"), ("own.Op", "error")]:
            path = self.write("m.onnxtxt", f'<ir_version: 10, opset_import: ["" : 21]>\ng (float[N] x) => (y)\n{{\n  y = {operator} (x)\n}}\n')
            for arguments, expected in [([], severity), (["--target", "onnx"], "error")]:
                found = [finding["severity"] for finding in self.check(path, *arguments)["findings"] if finding["rule"] == "missing-opset-import"]
                self.assertEqual(found, [expected], (operator, arguments))

    def test_a_large_graph_in_random_order(self):
        nodes = [helper.make_node("Add", [f"v{i - 1}" if i else "x", f"v{i // 2}" if i > 1 else "x"], [f"v{i}"]) for i in range(30000)]
        random.Random(5).shuffle(nodes)
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])], [helper.make_tensor_value_info("v29999", TensorProto.FLOAT, ["N"])])
        path = self.write("m.onnx", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
        start = time.process_time() + sum(os.times()[2:4])
        result = self.run_tool("check", path)
        seconds = time.process_time() + sum(os.times()[2:4]) - start
        self.assertIn("use-before-definition", result.stdout)
        self.assertLess(seconds, 5, "11.5 s when each finding walked the graph")
        self.run_tool("fix", path, "-o", "sorted.onnx")
        onnx.checker.check_model(self.folder / "sorted.onnx")

    def test_target(self):
        path = self.write("m.onnxtxt", UNSORTED)
        for arguments, code in [([], 1), (["--fail-on", "error"], 0), (["--target", "onnxruntime", "--fail-on", "error"], 0), (["--target", "onnx", "--fail-on", "error"], 1)]:
            self.assertEqual(self.run_tool("check", path, *arguments).returncode, code, arguments)
        self.write("tensorlint.toml", "[severity]\nuse-before-definition = 'info'")
        self.assertEqual(self.check(path, "--target", "onnx")["findings"][0]["severity"], "info")
        result = self.run_tool("check", path, "--target", "onxx")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--target takes onnx or onnxruntime, not `onxx`", result.stderr)

    # ---- severities

    def test_misspelt_contrib_operators(self):
        for name, rule, severity in [("FusedMatmul", "unknown-operator", "warning"), ("FusedMatMull", "unknown-operator", "warning"), ("EmbedLayerNormalisation", "unknown-operator", "warning"),
                                     ("OurOwnAttention", "undeclared-custom-operator", "info"), ("MatMulNBits2", "undeclared-custom-operator", "info"), ("Foo", "undeclared-custom-operator", "info")]:
            with self.subTest(name=name):
                document = self.check(self.write("m.onnxtxt", HEADER + f"g (float[4,6] x, float[6,8] w) => (z)\n{{\n  z = com.microsoft.{name} (x, w)\n}}\n"))
                finding = self.assert_one(document, rule, severity, 1)
                self.assertEqual("did you mean" in finding["message"], rule == "unknown-operator")

    def test_stale_value_info(self):
        graph = "g (float[4, 6] x, float[6, 8] w, float[3, 9] w3) => (z, u)\n<float[4, 9] y, float[5, 6] r, float[5, 6] s, float[4, 6, 1] t>\n{\n  y = MatMul (x, w)\n"
        independent = "  z = Relu (y)\n  r = Relu (x)\n  s = Neg (r)\n  t = Abs (x)\n  q = Squeeze (t)\n  u = Add (s, q)\n}\n"
        found = self.check(self.write("m.onnxtxt", HEADER + graph + independent))["findings"]
        self.assertEqual([(f["rule"], f["severity"], f["value"], [p["value"] for p in f.get("also", [])]) for f in found],
                         [("declared-type-contradicted", "warning", "y", []), ("declared-type-contradicted", "warning", "r", ["s"]), ("declared-type-contradicted", "warning", "t", [])])
        with self.subTest("behind an error"):
            causing = "  p = Relu (y)\n  z = MatMul (p, w3)\n  u = Relu (x)\n}\n"
            finding = self.assert_one(self.check(self.write("m.onnxtxt", HEADER + graph + causing)), "incompatible-operand-shapes", "error", 1)
            self.assertTrue(any("`y` is declared with shape [4, 9] but has shape [4, 8]" in note["message"] for note in finding["notes"]), finding["notes"])

    def test_integers_in_a_loss(self):
        for body in ["  d = Sub (p, t)\n  s = Mul (d, d)\n", "  d = Sub (p, t)\n  s = Abs (d)\n"]:
            path = self.write("m.onnxtxt", HEADER + "g (int64[N, 3] p, int64[N, 3] t) => (loss)\n{\n" + body + "  loss = ReduceMean <keepdims = 0> (s)\n}\n")
            errors = [f["rule"] for f in self.check(path)["findings"] if f["severity"] == "error"]
            self.assertEqual(errors, ["integer-operands-in-loss"], body)

    # ---- what takes findings away

    def test_baselines_know_places(self):
        old, new = self.write("m.onnx", encoder(2)), self.folder / "b.json"
        self.run_tool("check", old, "--write-baseline", new)
        self.assertEqual(len(json.loads(new.read_text())["findings"]), 6)
        document = self.check(old, "--baseline", new)
        self.assertEqual((document["findings"], document["summary"]["baseline"]), ([], {"known": 6, "gone": 0}))
        document = self.check(self.write("m.onnx", encoder(3)), "--baseline", new)
        finding = self.assert_one(document, "reshape-changes-element-count", "error", 3)
        self.assertEqual(finding["node"], "node_query_view_2")

    def test_suppressions_are_of_places(self):
        path = self.write("m.onnx", encoder(2))
        self.write("tensorlint.toml", "[[suppress]]\nrule = 'shape'\nnode = '*_view_0'\nreason = 'a test'\n")
        document = self.check(path)
        finding = self.assert_one(document, "reshape-changes-element-count", "error", 3)
        self.assertEqual([finding["node"], *(place["node"] for place in finding["also"])], [f"node_{part}_view_1" for part in ("query", "key", "value")])

    def test_what_a_configuration_hides_is_counted(self):
        path = self.write("m.onnxtxt", UNSORTED)
        self.assertNotIn("config", self.check(path)["inputs"][0])
        self.write("tensorlint.toml", "ignore = 'use-before-definition'")
        document = self.check(path)
        self.assertEqual((document["inputs"][0]["config"], document["inputs"][0]["hidden"], document["summary"]["hidden"]), ("tensorlint.toml", 1, 1))
        self.assertIn("no findings; 1 of rules that the configuration excludes", self.run_tool("check", path).stdout)
        self.assertNotIn("hidden", self.check(path, "--ignore", "use-before-definition")["summary"])
        self.write("tensorlint.toml", "[[suppress]]\nrule = 'use-before-definition'\nreason = 'a test'\n")
        self.assertEqual(self.check(path)["inputs"][0]["hidden"], 1)

    def test_fixes_reach_every_place(self):
        """Two casts are missing for one integer target; the finding is one, and the fix mends both."""
        path = self.write("m.onnxtxt", HEADER + "g (float[N,1] logits, int64[N,1] target, float[N,1] w) => (a, b)\n{\n  a = Mul (target, logits)\n  b = Add (target, w)\n}\n")
        self.assertEqual(len(self.check(path)["findings"]), 1)
        self.run_tool("fix", path, "--unsafe", "-o", "fixed.onnxtxt")
        self.assertEqual(self.check("fixed.onnxtxt")["findings"], [])


if __name__ == "__main__":
    unittest.main()
