"""What copies between devices cost under `--placement runtime`: counted by hand, beside each case, and by the program.

One copy for each tensor and destination, whoever reads it there; those of initializers count as setup.
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import typing
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
GPU, SECOND = "cuda:0", "cuda:1"
UNPLACED = {"loop", "turn", "if", "one", "two", "keep", "on"}  # loops, branches and calls, and what hands conditions on
X = 4 * 2 * 4  # bytes of the float[4, 2] that most values are


class Case(typing.NamedTuple):
    name: str
    devices: dict   # of values and nodes; inputs and other nodes that compute are on the cpu
    graph: str
    costs: list     # (condition, copies, bytes, setup copies, setup bytes), the least first
    nodes: list     # that copies are blamed on where they cost most


LOOP = """g (float[4, 2] x, float[4, 2] w) => (y) <int64 trips = {{5}}> {{
  [loop] y = Loop (trips, "", x) <body = step (int64 i, bool go, s) => (again, b) {{
    [keep] again = Identity (go)
    [a] t = Add (s, w)
    [b] b = Relu (t)
  }}>{after}
}}"""

CASES = [
    # x to the GPU, a back, b there again, c to the second one.
    Case("to and fro", {"a": GPU, "c": GPU, "d": SECOND},
         "g (float[4, 2] x) => (y) { [a] a = Relu (x) [b] b = Neg (a) [c] c = Tanh (b) [d] y = Abs (c) }",
         [({}, 4, 4 * X, 0, 0)], ["a", "b", "c", "d"]),
    # Five readers of x on two devices: two copies, made for the first reader on each.
    Case("one copy for many readers", {"a": GPU, "b": GPU, "c": GPU, "d": SECOND, "e": SECOND},
         "g (float[4, 2] x) => (b, c, e, f) { [a] a = Relu (x) [b] b = Neg (x) [c] c = Add (x, a) [d] d = Tanh (x) [e] e = Mul (x, d) [f] f = Abs (x) }",
         [({}, 2, 2 * X, 0, 0)], ["a", "d"]),
    # x to both, both results back.
    Case("apart and together", {"l": GPU, "r": SECOND},
         "g (float[4, 2] x) => (y) { [l] l = Relu (x) [r] r = Neg (x) [j] y = Add (l, r) }",
         [({}, 4, 4 * X, 0, 0)], ["j", "l", "r"]),
    # x in each run; w and v once, when the model is loaded; q is there.
    Case("weights on the cpu", {"a": GPU, "b": GPU, "c": GPU, "q": GPU},
         "g (float[4, 2] x) => (y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[3] v = {1, 2, 3}, float[3] q = {1, 2, 3}>"
         " { [a] a = MatMul (x, w) [b] b = Add (a, v) [c] y = Mul (b, q) }",
         [({}, 1, X, 2, 6 * 4 + 3 * 4)], ["a"]),
    # x as float32, h as float16, g as bool, m as int64; the shape of Reshape stays on the cpu.
    Case("dtypes", {"p": SECOND, "h": GPU, "z": SECOND, "g": SECOND, "n": GPU, "m": GPU, "r": GPU},
         "g (float[4, 2] x, float16[1] p) => (n, mm, r) <int64[2] to = {2, 4}> { [h] h = Cast <to = 10> (x) [z] z = Neg (h) [g] g = Greater (z, p)"
         " [n] n = Not (g) [m] m = ArgMax <axis = 1, keepdims = 0> (h) [mm] mm = Add (m, m) [r] r = Reshape (h, to) }",
         [({}, 4, X + 8 * 2 + 8 + 4 * 8, 0, 0)], ["h", "mm", "n", "z"]),
    # To the GPU and back in each of five iterations; w, which the body captures, once.
    Case("a loop through the cpu", {"a": GPU}, LOOP.format(after=""), [({}, 11, 11 * X, 0, 0)], ["a", "b"]),
    # Only the first value and w; the result is read on the cpu.
    Case("a loop on the GPU", {"a": GPU, "b": GPU}, LOOP.format(after="\n  [z] z = Neg (y)").replace("=> (y)", "=> (z)"), [({}, 3, 3 * X, 0, 0)], ["a", "z"]),
    # (s, t) -> (t, f(s, t)): x and w to the GPU in the first iteration, f's operand back in each, its result there in the four after the first.
    Case("a loop that swaps", {"a": GPU, "b": GPU, "e": GPU},
         'g (float[4, 2] x, float[4, 2] w) => (y, z) <int64 trips = {5}> { [loop] y, z = Loop (trips, "", x, w)'
         " <body = step (int64 i, bool go, s, t) => (again, e, d) { [keep] again = Identity (go) [a] a = Relu (s) [b] b = Add (a, t) [d] d = Neg (b) [e] e = Identity (t) }> }",
         [({}, 11, 11 * X, 0, 0)], ["a", "b", "d"]),
    # x to the GPU; in each of three outer turns p to the second one, which the inner body reads in all of its two turns, and u there and back.
    Case("a loop in a loop", {"p": GPU, "m": SECOND, "n": GPU},
         'g (float[4, 2] x) => (y) <int64 trips = {3}, int64 turns = {2}> { [loop] y = Loop (trips, "", x) <body = outer (int64 i, bool go, s) => (again, q) {'
         ' [keep] again = Identity (go) [p] p = Relu (s) [turn] q = Loop (turns, "", p) <body = inner (int64 j, bool on, u) => (more, v) {'
         " [on] more = Identity (on) [m] k = Mul (u, p) [n] v = Abs (k) }> }> }",
         [({}, 1 + 3 * 2 * 2, (1 + 3 * 2 * 2) * X, 0, 0)], ["m", "n", "p"]),
    # x and w to the GPU, one copy inside each of two calls, the second call's operand back; then nothing, or the result and x's neighbour to the cpu and on.
    Case("calls and branches", {"f1": GPU, "f2": SECOND, "t": SECOND, "e": SECOND},
         "g (float[4, 4] x, float[4, 4] w, bool flag) => (y) { [one] a = local.Block (x, w) [two] b = local.Block (a, w) [if] y = If (flag) <"
         "then_branch = yes () => (t) { [t] t = Neg (b) }, else_branch = no () => (e) { [add] k = Add (b, x) [e] e = Abs (k) }> }\n"
         '<domain: "local", opset_import: ["": 21]>\nBlock (p, q) => (r) { [f1] k = MatMul (p, q) [f2] r = Relu (k) }',
         [({"flag": True}, 5, 5 * 64, 0, 0), ({"flag": False}, 7, 7 * 64, 0, 0)], ["add", "e", "f1", "f2"]),
]


def text_of(case):
    labels = set(re.findall(r"\s\[(\w+)\]", case.graph)) - UNPLACED
    devices = ", ".join(f'"tensorlint.device:{name}": "{device}"' for name, device in sorted(({label: "cpu" for label in labels} | case.devices).items()))
    return f'<ir_version: 10, opset_import: ["": 21, "local": 1], metadata_props: [{devices}]>\n{case.graph}\n'


class RealCost(unittest.TestCase):
    def test_cases(self):
        with tempfile.TemporaryDirectory() as folder:
            for case in CASES:
                with self.subTest(case=case.name):
                    path = pathlib.Path(folder) / "m.onnxtxt"
                    path.write_text(text_of(case))
                    done = subprocess.run([BINARY, "check", "--placement", "runtime", "--format", "json", path], capture_output=True, text=True, timeout=60, check=False)
                    report = json.loads(done.stdout)
                    self.assertEqual(report["inputs"][0]["status"], "checked", report["inputs"])
                    cost = report["inputs"][0]["cost"]
                    costs = [cost["min"], cost["max"]] if "min" in cost else [cost]
                    self.assertEqual([(c.get("conditions", {}), c["copies"], c["bytes"], c["setup_copies"], c["setup_bytes"]) for c in costs], case.costs)
                    self.assertEqual(sorted({f["node"] for f in report["findings"] if f["rule"] in ("costly-transfers", "transfer-in-loop")}), case.nodes)


if __name__ == "__main__":
    unittest.main()
