"""`tensorlint fix` on models that mix devices: what it proposes, and that the fixed model is clean."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import onnx

TOOL = os.environ["TENSORLINT_BINARY"]
HEAD = '<ir_version: 10, opset_import: ["": 21, "tensorlint": 1, "local": 1], metadata_props: [{}]>\n'


def keys(**devices: str) -> str:
    return HEAD.format(", ".join(f'"tensorlint.device:{name}": "{device}"' for name, device in devices.items()))


MASK = keys(scores="cuda:0") + "g (float[N, 5] scores, float[N, 5] mask) => (float[N, 5] y) { [apply] y = Mul (scores, mask) }"
WEIGHT = keys(x="cuda:0") + "g (float[N, 2] x) => (float[N, 2] y) <float[2] w = {1, 2}> { [scale] y = Mul (x, w) }"
CAPTURED = (
    keys(x="cuda:0")
    + """g (float[4] x, float[4] w, int64 n, bool go) => (float[4] y) {
  [repeat] y = Loop (n, go, x) <body = step (int64 i, bool c, float[4] s) => (bool again, float[4] t) {
    again = Identity (c)
    [add] t = Add (s, w)
  }>
}"""
)
SECOND = (
    keys(x="cuda:0", w="cuda:0")
    + """g (float[4] x, float[4] w, int64 n, bool go) => (float[4] y) {
  [repeat] y = Loop (n, go, x) <body = step (int64 i, bool c, float[4] s) => (bool again, float[4] t) {
    again = Identity (c)
    [add] u = Add (s, w)
    [down] t = tensorlint.Transfer <device = "cpu"> (u)
  }>
}"""
)
FUNCTION = (
    keys(x="cuda:0")
    + """g (float[4] x, float[4] w) => (float[4] y) { [call] y = local.sum (x, w) }
<domain: "local", opset_import: ["": 21]>
sum (a, b) => (c) { [inside] c = Add (a, b) }"""
)
# What one fix brings to light is fixed in the next round.
CHAIN = (
    keys(x="cuda:0", y="cuda:1")
    + "g (float[4] x, float[4] y, float[4] z) => (float[4] r) { [first] s = Add (x, y) [second] r = Add (s, z) }"
)


class FixTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = Path(folder.name) / "model.onnx"
        self.fixed = Path(folder.name) / "fixed.onnx"

    def fix(self, text: str, *arguments: str) -> str:
        onnx.save(onnx.parser.parse_model(text), self.model)
        done = subprocess.run([TOOL, "fix", str(self.model), "-o", str(self.fixed), *arguments], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        onnx.checker.check_model(str(self.fixed))
        again = subprocess.run([TOOL, "check", "--format", "json", *arguments, str(self.fixed)], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual([f["rule"] for f in json.loads(again.stdout)["findings"] if f["severity"] != "info"], [])
        return done.stdout

    def test_a_transfer_before_the_node(self) -> None:
        self.assertIn("at node apply: move `mask` to cuda:0 (safe)", self.fix(MASK))

    def test_an_initializer_is_placed(self) -> None:
        self.assertIn("place initializer `w` on cuda:0 (safe)", self.fix(WEIGHT))
        metadata = {entry.key: entry.value for entry in onnx.load(self.fixed).metadata_props}
        self.assertEqual(metadata["tensorlint.device:w"], "cuda:0")

    def test_what_a_loop_does_not_change_is_moved_before_it(self) -> None:
        self.assertIn("move `w` to cuda:0 before `repeat`, which does not change it", self.fix(CAPTURED))
        self.assertEqual([node.op_type for node in onnx.load(self.fixed).graph.node], ["Transfer", "Loop"])

    def test_a_carried_value_that_comes_back_elsewhere(self) -> None:
        self.assertIn("device-changes-in-loop at node add: move `s` to cuda:0 (safe)", self.fix(SECOND))

    def test_a_function_gets_the_import_of_its_own(self) -> None:
        self.fix(FUNCTION)
        function = onnx.load(self.fixed).functions[0]
        self.assertEqual({entry.domain for entry in function.opset_import}, {"", "tensorlint"})
        self.assertEqual([node.op_type for node in function.node], ["Transfer", "Add"])

    def test_what_a_fix_brings_to_light(self) -> None:
        said = self.fix(CHAIN)
        self.assertIn("at node first", said)
        self.assertIn("at node second", said)

    def test_a_placement_file_counts(self) -> None:
        rows = self.model.parent / "place.toml"
        rows.write_text('[[place]]\nvalues = "mask"\ndevice = "cuda:1"\n')
        self.assertIn("at node apply: move `mask` to cuda:0 (safe)", self.fix(MASK, "--placement-file", str(rows)))


if __name__ == "__main__":
    unittest.main()
