"""Bodies that never run: a branch that a constant condition leaves out, a loop of no iterations. onnxruntime infers them
when it loads a model. What `check` warns of there, it refuses; what it refuses, `check` finds where ONNX compares dtypes,
axes and shapes. `python3 tests/soundness/unrun_bodies_test.py` needs TENSORLINT_BINARY."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import onnx.parser
import onnxruntime

INPUTS = """float[2] x, float[2, 3] m, float[2, 4] n, float[1, 2, 5, 5] image, float[4, 3, 2, 2] window, float[2, 2, 2, 2] fits, float[3, 2] fits3, bool[2] b,
bool[3] b3, float scalar, float[1] one, bool flag"""
CONSTANTS = """bool yes = {1}, bool[3] yes_no = {1, 0, 1}, int64 none = {0}, int64 sixteen = {16}, int64[1] axis7 = {7}, int64[1] axis0 = {0}, int64[1] axis1 = {1}, int64[3] three = {1, 2, 3},
int64[2] quarters = {4, -1}, float[3] row = {1, 2, 3}, float[2] two = {0, 1}, int64[2] index = {0, 1}, int64[2] twice = {0, 0}, uint8[2] u2 = {1, 2},
uint8[3] u3 = {1, 2, 3}, int64[2, 2] square = {0, 0, 1, 1}, int64[2] pair = {2, 2}, int64 zero = {0}, int64 five = {5}, int64 step = {1}"""

# What ONNX's inference refuses in every body, and `check` finds there.
FOUND = [
    *(f"q = {op}(x, row)" for op in ["Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Sum", "Mean", "Equal", "Less", "GreaterOrEqual"]),
    *(f"q = {op}(x, axis7)" for op in ["ReduceSum", "ReduceMax", "ReduceMean", "ReduceProd", "ReduceL2", "ReduceLogSumExp"]),
    *(f"q = {op} <axis = 5> (x)" for op in ["Softmax", "LogSoftmax", "ArgMax", "ArgMin"]),
    "q = And(b, b3)",
    "q = Where(b3, x, x)",
    'q = BitShift <direction = "LEFT"> (u2, u3)',
    "q = BitwiseAnd(index, three)",
    "q = Concat <axis = 5> (x, x)",
    "q = Concat <axis = 0> (m, n)",
    "q = Concat <axis = 0> (m, x)",
    "q = Gather <axis = 5> (x, index)",
    "q = Gather(scalar, index)",
    "q = Squeeze(x, axis7)",
    "q = Squeeze(x, axis0)",
    "q = Unsqueeze(x, axis7)",
    "q = Unsqueeze(x, twice)",
    "q = Split <axis = 5, num_outputs = 2> (x)",
    "q = Transpose <perm = [0, 0]> (m)",
    "q = Transpose <perm = [1, 0, 2]> (m)",
    "q = Cast(x)",
    "q = Concat(x, x)",
    "q = Hardmax <axis = 5> (x)",
    "q = Flatten <axis = 5> (x)",
    "q, k = TopK <axis = 5> (m, axis1)",
    "q = OneHot <axis = 5> (index, five, two)",
    "q = Compress <axis = 5> (m, b)",
    "q = Trilu(x)",
    "q = Det(m)",
    "q = Pad(m, axis7)",
    "q = Tile(m, axis7)",
    "q = DepthToSpace <blocksize = 2> (m)",
    'q = Einsum <equation = "ijk->i"> (m)',
    "q = MatMul(m, m)",
    "q = MatMul(scalar, m)",
    "q = Gemm(m, m)",
    "q = Gemm(x, m)",
    "q = Slice(x, axis0, axis7, axis7)",
    "q = Add(x, index)",
    "q = Relu(b)",
    "q = Gather(x, x)",
    "q = Where(x, x, x)",
    "q = Concat <axis = 0> (x, index)",
    "q = Foo(x)",
    "q = Relu <foo = 1> (x)",
    "q = Add(x)",
    "q = Relu(x, x)",
    # Through what engines infer before a run.
    "r = Relu(x) q = Add(r, row)",
    "r = Expand(x, pair) q = MatMul(r, m) s = MatMul(m, m)",
    "r = Tile(m, pair) q = Add(r, m)",
    "r = Pad(x, pair) q = Add(r, x)",
    "r = Slice(m, axis0, axis1) q = MatMul(r, r)",
    "r = Conv(image, fits) q = Add(r, image)",
    "r = MaxPool <kernel_shape = [2, 2]> (image) q = Add(r, image)",
    "r = GlobalAveragePool(image) q = Squeeze(r, axis1)",
    "k = Constant <value = float[3] {1, 2, 3}> () q = Add(x, k)",
]

# What onnxruntime loads, though a run of it would fail: nothing is to be said.
LOADED = [
    "q = Reshape(x, axis7)",
    "q = Conv(image, window)",
    "q = ConvTranspose(image, window)",
    "q = Gather(x, axis7)",
    "q = GatherND(x, axis7)",
    'q = Einsum <equation = "ij,jk->ik"> (m, m)',
    "q = MaxPool <kernel_shape = [9, 9]> (image)",
    "q = DepthToSpace <blocksize = 2> (image)",
    "q = Clip(x, m)",
    "q = Range(x, x, x)",
    "q = CumSum(x, axis7)",
    "q = PRelu(x, row)",
    "q = Transpose <perm = [0]> (m)",
    "q = ReduceSum(m, square)",
    "q = ReduceSum(m, twice)",
]


def branch(body: str, outer: str = "") -> str:
    return f"""{outer} y = If(yes) <then_branch: graph = taken () => (t) {{ t = Identity(x) }},
                    else_branch: graph = other () => (q) {{ {body} }}>"""


def loop(body: str, outer: str = "") -> str:
    return f"{outer} y = Loop(none, yes) <body: graph = inner (int64 i, bool c) => (d, q) {{ d = Identity(c) {body} }}>"


class UnrunBodies(unittest.TestCase):
    folder: tempfile.TemporaryDirectory

    @classmethod
    def setUpClass(cls) -> None:
        onnxruntime.set_default_logger_severity(4)
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def findings(self, nodes: str, functions: str = "", imports: str = "") -> tuple[list, str]:
        """What `check` finds at warning and above, and what onnxruntime says against the model."""
        model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21{imports}]>
            g ({INPUTS}) => (y) <{CONSTANTS}> {{ {nodes} }} {functions}""")
        path = Path(self.folder.name) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        try:
            onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            refusal = ""
        except Exception as error:
            refusal = str(error)
        report = subprocess.run([os.environ["TENSORLINT_BINARY"], "check", "--format", "json", path], check=False, capture_output=True)
        found = json.loads(report.stdout)["findings"]
        return [f for f in found if f["severity"] != "info" and f["rule"] != "result-always-the-same"], refusal

    def test_what_is_refused_is_found(self) -> None:
        for body in FOUND:
            for around in (branch, loop):
                with self.subTest(body=body, around=around.__name__):
                    found, refusal = self.findings(around(body))
                    self.assertTrue(refusal)
                    found = [f for f in found if f["rule"] != "branch-types-differ"]
                    self.assertEqual([(f["severity"], f["certainty"]) for f in found], [("warning", "may")])
                    self.assertIn("onnxruntime", found[0]["witness"]["case"])

    def test_of_what_is_loaded_nothing_is_said(self) -> None:
        for body in LOADED:
            for around in (branch, loop):
                with self.subTest(body=body, around=around.__name__):
                    self.assertEqual(self.findings(around(body)), ([], ""))

    def test_shapes_that_a_run_computes_are_not_compared(self) -> None:
        outer = "one_more = Add(index, index) r = Expand(one, one_more)"
        found, refusal = self.findings(branch("q = Add(r, image) s = MatMul(r, m)", outer))
        self.assertEqual((found, refusal), ([], ""))

    def test_shapes_that_engines_do_not_infer(self) -> None:
        """Of what sequences hold, and what is counted in elements."""
        sequence = "s = SequenceConstruct(m) "
        for outer in (sequence + "w = SequenceAt(s, zero)", sequence + "w = ConcatFromSequence <axis = 0> (s)", "w = Compress <axis = 0> (fits3, yes_no)"):
            for body in ("q = Softmax <axis = 4> (w)", "q = MatMul(w, w)", "q = Squeeze(w, axis0)", "q = Concat <axis = 0> (w, x)"):
                with self.subTest(outer=outer, body=body):
                    found, refusal = self.findings(branch(body, outer))
                    if found:
                        self.assertTrue(refusal, found[0]["message"])

    def test_what_one_engine_refuses_can_be_placed(self) -> None:
        self.findings(branch("q = Add(x, row)"))
        path = Path(self.folder.name) / "model.onnx"
        placed = subprocess.run([os.environ["TENSORLINT_BINARY"], "place", path], check=False, capture_output=True, text=True)
        self.assertEqual(placed.returncode, 0, placed.stderr)

    def test_branches_of_two_types(self) -> None:
        found, refusal = self.findings(branch("q = Identity(index)"))
        self.assertIn("Mismatched tensor element type", refusal)
        self.assertEqual([(f["rule"], f["severity"]) for f in found], [("branch-types-differ", "warning")])

    def test_bodies_in_such_bodies(self) -> None:
        fine = "then_branch: graph = inner_taken () => (p) { p = Identity(x) }"
        for condition in ("yes", "flag"):
            inner = f"q = If({condition}) <{fine}, else_branch: graph = inner_other () => (r) {{ r = Add(x, row) }}>"
            found, refusal = self.findings(branch(inner))
            self.assertTrue(refusal)
            self.assertEqual([(f["severity"], f["certainty"]) for f in found], [("warning", "may")])

    def test_dtypes_that_a_body_declares(self) -> None:
        found, refusal = self.findings(
            """y = Loop(none, yes, x) <body: graph = inner (int64 i, bool c, float[2] s) => (d, t) { d = Identity(c) t = Add(s, index) }>"""
        )
        self.assertTrue(refusal)
        self.assertEqual([(f["rule"], f["severity"]) for f in found], [("mixed-operand-dtypes", "warning")])

    def test_many_bodies_in_each_other(self) -> None:
        nodes = "q = Add(x, row)"
        for depth in range(30):
            nodes = f"q{depth} = Relu(x) q = If(yes) <then_branch: graph = t{depth} () => (p{depth}) {{ p{depth} = Identity(x) }}, else_branch: graph = e{depth} () => (q) {{ {nodes} }}>"
        found, _ = self.findings(branch(nodes))
        self.assertEqual([(f["severity"], f["certainty"]) for f in found], [("warning", "may")])

    def test_a_body_that_is_too_much_is_said_to_be(self) -> None:
        """Of what is not inferred nothing is known: the report is partial."""
        loops = "v = Concat <axis = 0> (s0, x)"
        for depth in range(5):
            outer = "x" if depth == 4 else f"s{depth + 1}"
            loops = f"v = Loop(sixteen, yes, {outer}) <body: graph = l{depth} (int64 i{depth}, bool c{depth}, float[N{depth}] s{depth}) => (d{depth}, v) {{ d{depth} = Identity(c{depth}) {loops} }}>"
        self.findings(branch(loops + " q = Add(x, row)"))
        report = subprocess.run([os.environ["TENSORLINT_BINARY"], "check", "--format", "json", Path(self.folder.name) / "model.onnx"], check=False, capture_output=True)
        self.assertIn("only a part was examined", json.loads(report.stdout)["inputs"][0].get("partial", ""))

    def test_each_failure_is_said(self) -> None:
        found, _ = self.findings(branch("q = Gather(x, axis7) r = Add(x, row) s = MatMul(m, m) t = Foo(x)"))
        self.assertEqual(len(found), 3)

    def test_what_fails_in_a_run_stays_an_error(self) -> None:
        """A function that a branch calls for nothing, and the model for certain."""
        function = '<domain: "local", opset_import: ["": 21]> f (a) => (b) { b = Add(a, a) c = MatMul(a, a) }'
        found, refusal = self.findings(branch("q = local.f(m)", "z = local.f(m)"), function, ', "local": 1')
        self.assertTrue(refusal)
        self.assertEqual([(f["severity"], f["certainty"]) for f in found], [("error", "must")])

    def test_the_branch_that_is_taken_is_as_before(self) -> None:
        found, _ = self.findings("y = If(yes) <then_branch: graph = a () => (t) { t = Add(x, row) }, else_branch: graph = o () => (q) { q = Identity(x) }>")
        self.assertEqual([(f["severity"], f["certainty"]) for f in found], [("error", "must")])


if __name__ == "__main__":
    unittest.main()
