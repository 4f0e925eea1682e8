"""`tensorlint run`: inputs, outputs, exit codes, limits, and what it says when something is wrong."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

TOOL = os.environ["TENSORLINT_BINARY"]
RUNNER = Path(TOOL).with_name("tensorlint-run")
ROOT = Path(__file__).resolve().parents[2]
HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
AFFINE = HEAD + "g (float[N, 3] x, float[3] b) => (float[N, 3] y) { t = Add (x, b)\n [twice] y = Add (t, t) }\n"
ENDLESS = HEAD + """g (float[2] x) => (float[2] y) {
  y = Loop <body = b (int64 i, bool c, float[2] v) => (bool go, float[2] w) { go = Identity (c) w = Add (v, v) }> (, , x)
}
"""
HUGE = HEAD + "g (int64[1] n) => (float[] y) { y = ConstantOfShape (n) }\n"
# Large enough that several threads share the work.
WIDE = HEAD + """g (float[130, 700] a, float[700, 300] b, float[1, 16, 40, 40] x, float[70, 16, 3, 3] w, float[16, 1, 3, 3] d, float[1, 700] v)
    => (float[130, 300] m, float[1, 70, 38, 38] c, float[1, 16, 38, 38] e, float[1, 300] r, float[1, 130] t) {
  m = MatMul (a, b)
  c = Conv (x, w)
  e = Conv <group = 16> (x, d)
  r = MatMul (v, b)
  t = Gemm <transB = 1> (v, a)
}
"""


class RunTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def model(self, text: str, name: str = "m.onnxtxt") -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def array(self, name: str, value: np.ndarray) -> str:
        np.save(self.folder / f"{name}.npy", value)
        return f"{name}={self.folder / name}.npy"

    def run_model(self, *arguments: str, timeout: int = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run([TOOL, "run", *arguments], capture_output=True, text=True, timeout=timeout, check=False)

    def test_outputs_are_printed(self) -> None:
        x = self.array("x", np.array([[1, 2, 3]], np.float32))
        b = self.array("b", np.array([0.5, 0, -1], np.float32))
        result = self.run_model(self.model(AFFINE), "--inputs", x, "--inputs", b)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "`y`: float32[1, 3] = [[3, 4, 4]]\n")

    def test_facts_hold_only_where_declarations_do(self) -> None:
        x = self.array("x", np.zeros(3, np.float32))
        model = self.model(HEAD + "g (float[N] x) => (float[4] y, float[4] z) { y = Identity (x) z = Neg (y) }\n")
        result = self.run_model(model, "--inputs", x, "--check-facts")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("`y` is not as the model declares it: values after it were not compared", result.stdout)
        right = self.run_model(model, "--inputs", self.array("x", np.zeros(4, np.float32)), "--check-facts")
        self.assertIn("every value lies inside its fact", right.stdout)

    def test_facts_hold_of_infinities_and_negative_zeros(self) -> None:
        infinity, numbers = float("inf"), np.array([-1, -0.0, 0, 1], np.float32)
        cases: tuple[tuple[str, list, dict[str, Any]], ...] = (
            ("ReduceMean", [np.array([infinity, -infinity], np.float32)], {}),
            ("Pow", [numbers[1:], np.float32(-1)], {}),
            ("Pow", [numbers[1:], np.int64(-3)], {}),
            ("HardSigmoid", [numbers], {"alpha": infinity}),
            ("Selu", [numbers], {"alpha": infinity}),
            ("Selu", [numbers], {"gamma": infinity}),
            ("Celu", [numbers], {"alpha": infinity}),
            ("Elu", [numbers], {"alpha": infinity}),
            ("LeakyRelu", [numbers], {"alpha": infinity}),
            ("Swish", [numbers], {"alpha": infinity}),
        )
        for op, operands, attributes in cases:
            constants = [numpy_helper.from_array(np.asarray(value), f"c{i}") for i, value in enumerate(operands)]
            node = onnx.helper.make_node(op, [constant.name for constant in constants], ["y"], **attributes)
            graph = onnx.helper.make_graph([node], "g", [], [onnx.ValueInfoProto(name="y")], constants)
            path = self.folder / "m.onnx"
            onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 24)], ir_version=11), path)
            with self.subTest(node):
                result = self.run_model(str(path), "--check-facts")
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_facts_hold_of_the_first_selu_whose_constants_have_fewer_digits(self) -> None:
        for opset in (5, 6):
            text = f'<ir_version: 8, opset_import: ["" : {opset}]> g () => (float[2] y) <float[2] x = {{-100, 100}}> {{ y = Selu (x) }}'
            result = self.run_model(self.model(text), "--check-facts")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_facts_hold_of_a_slope_of_any_rank_which_stretches_the_data(self) -> None:
        for opset in (7, 9, 16, 21):
            model = self.model(f'<ir_version: 8, opset_import: ["" : {opset}]> g (float x, float[] s) => (float[] y) {{ y = PRelu (x, s) }}')
            result = self.run_model(model, "--check-facts", "--inputs", self.array("x", np.array(-2, np.float32)), "--inputs", self.array("s", np.ones(3, np.float32)))
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("[-2, -2, -2]", result.stdout)

    def test_operands_of_other_ranks_are_refused_before_opset_8(self) -> None:
        for op in ("Max", "Min", "Sum", "Mean"):
            for opset, code in ((7, 2), (8, 0)):
                model = self.model(f'<ir_version: 4, opset_import: ["" : {opset}]> g (float[] s, float x) => (float[] y) {{ y = {op} (s, x) }}')
                arrays = ["--inputs", self.array("x", np.array(1, np.float32)), "--inputs", self.array("s", np.ones(3, np.float32))]
                result = self.run_model(model, "--check-facts", *arrays)
                self.assertEqual(result.returncode, code, result.stdout + result.stderr)
                if code == 2:
                    self.assertIn("has 1 axes, `x` has 0", result.stderr)

    def test_lists_longer_than_inference_follows_are_refused(self) -> None:
        # Of axes nobody has held against the rank.
        for op in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2", "ReduceLogSumExp"):
            for shape in ("", "[2, 3]"):
                text = f"g (float{shape} x) => (float{shape or '[]'} y) {{ n = Constant <value_ints = [1025]> () a = ConstantOfShape <value = int64[1] {{1099511627776}}> (n) y = {op} (x, a) }}"
                for device in ([], ["--device", "emulated:0"]):
                    result = self.run_model(self.model(HEAD + text), "--seed", "1", *device)
                    self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                    self.assertIn("1025 elements", result.stderr)
        parts = self.model(HEAD + "g (float[2000] x, int64[2000] n) => (int64 k) { s = SplitToSequence <axis = 0> (x, n) k = SequenceLength (s) }")
        arrays = ["--inputs", self.array("x", np.zeros(2000, np.float32)), "--inputs", self.array("n", np.ones(2000, np.int64))]
        self.assertEqual(self.run_model(parts, *arrays).stdout, "`k`: int64[] = 2000\n")

    def test_facts_do_not_hold_after_a_default_of_another_shape(self) -> None:
        model = self.model(HEAD + "g (float[N, 8] x) => (y) <float[2, 3] x = {1, 2, 3, 4, 5, 6}> { y = Identity (x) }\n")
        self.assertEqual(self.run_model(model).returncode, 2)
        result = self.run_model(model, "--force", "--check-facts")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("`x` is not as the model declares it: values after it were not compared", result.stdout)

    def test_outputs_agree_with_what_was_written(self) -> None:
        model = self.model(AFFINE)
        out = str(self.folder / "out")
        self.assertEqual(self.run_model(model, "--seed", "4", "--outputs", out).returncode, 0)
        again = self.run_model(model, "--seed", "4", "--expect", out)
        self.assertEqual((again.returncode, again.stdout), (0, "all outputs agree\n"), again.stderr)
        tensor = onnx.load_tensor(str(Path(out) / "output_0.pb"))
        self.assertEqual((tensor.name, numpy_helper.to_array(tensor).dtype), ("y", np.float32))

    def test_results_do_not_depend_on_threads(self) -> None:
        model, outputs = self.model(WIDE), []
        for threads in ("1", "2", "3"):
            out = self.folder / threads
            self.assertEqual(self.run_model(model, "--seed", "4", "--threads", threads, "--outputs", str(out)).returncode, 0)
            outputs.append([(out / f"output_{i}.pb").read_bytes() for i in range(5)])
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(outputs[0], outputs[2])
        self.assertEqual(self.run_model(model, "--seed", "4", "--threads", "0").returncode, 2)

    def test_an_output_that_differs_is_told_and_exits_with_1(self) -> None:
        out = self.folder / "out"
        out.mkdir()
        np.save(out / "output_0.npy", np.array([[3, 4, 5]], np.float32))
        x = self.array("x", np.array([[1, 2, 3]], np.float32))
        b = self.array("b", np.array([0.5, 0, -1], np.float32))
        result = self.run_model(self.model(AFFINE), "--inputs", x, "--inputs", b, "--expect", str(out))
        self.assertEqual(result.returncode, 1)
        self.assertIn("output `y`: 1 of 3 elements differ, first element 2: 4 instead of 5", result.stderr)

    def test_tolerances_are_those_given(self) -> None:
        out = self.folder / "out"
        out.mkdir()
        np.save(out / "output_0.npy", np.array([[3, 4, 4.5]], np.float32))
        arguments = [self.model(AFFINE), "--inputs", self.array("x", np.array([[1, 2, 3]], np.float32)),
                     "--inputs", self.array("b", np.array([0.5, 0, -1], np.float32)), "--expect", str(out)]
        self.assertEqual(self.run_model(*arguments, "--atol", "0.6").returncode, 0)
        self.assertEqual(self.run_model(*arguments, "--rtol", "0.2").returncode, 0)
        self.assertEqual(self.run_model(*arguments, "--rtol", "0.1").returncode, 1)

    def test_tolerances_are_numbers(self) -> None:
        for option, text in (("--rtol", "nan"), ("--rtol", "-1"), ("--atol", "inf"), ("--atol", "-0.5")):
            result = self.run_model(self.model(AFFINE), "--seed", "1", f"{option}={text}")
            self.assertEqual((result.returncode, result.stderr), (2, f"tensorlint run: `{option}={text}`: expected a finite number of at least 0\n"))

    def test_what_is_expected_of_a_value_is_said(self) -> None:
        for option, text, form in (("--seed", "abc", "a whole number that is not negative"), ("--seed", "-1", "a whole number that is not negative"),
                                   ("--memory-limit", "4G", "a number of bytes"), ("--time-limit", "-1", "seconds, fewer than 1e9"), ("--time-limit", "1e9", "seconds, fewer than 1e9"),
                                   ("--threads", "0", "a number from 1 to 256"), ("--threads", "257", "a number from 1 to 256"), ("--repeat", "0", "a number of runs, at least 1")):
            result = self.run_model(self.model(AFFINE), f"{option}={text}")
            self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", f"tensorlint run: `{option}={text}`: expected {form}\n"))
        for words in ("--sed=1", "seed=1", "--seed"):
            result = subprocess.run([RUNNER, words], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((result.returncode, result.stderr), (2, f"tensorlint run: `{words}` is not a valid option; `tensorlint run --help` lists the options\n"))

    def test_large_integers_are_compared_as_they_are(self) -> None:
        for dtype, name in ((np.int64, "int64"), (np.uint64, "uint64")):
            model = self.model(HEAD + f"g ({name}[2] x) => ({name}[2] y) {{ y = Identity (x) }}\n")
            np.save(self.folder / "output_0.npy", np.array([1, 2**53], dtype))
            given = self.array("x", np.array([1, 2**53 + 1], dtype))
            arguments = [model, "--inputs", given, "--expect", str(self.folder), "--rtol", "0"]
            result = self.run_model(*arguments, "--atol", "0")
            self.assertEqual(result.returncode, 1)
            self.assertIn("1 of 2 elements differ, first element 1: 9007199254740993 instead of 9007199254740992", result.stderr)
            self.assertEqual(self.run_model(*arguments, "--atol", "1").returncode, 0)

    def test_folders_that_cannot_be_read(self) -> None:
        model = self.model(AFFINE)
        for name in ("input_0.pb", "output_0.pb"):
            (self.folder / name).symlink_to(name)
        for arguments in (["--seed", "1", "--expect", str(self.folder)], ["--inputs", str(self.folder)]):
            result = self.run_model(model, *arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("Too many levels of symbolic links", result.stderr)
        result = self.run_model(model, "--seed", "1", "--expect", "a" * 5000)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("File name too long", result.stderr)

    def test_a_missing_input_is_named(self) -> None:
        result = self.run_model(self.model(AFFINE), "--inputs", self.array("x", np.zeros((1, 3), np.float32)))
        self.assertEqual(result.returncode, 2)
        self.assertIn("the input `b` is missing", result.stderr)

    def test_an_input_of_another_type_is_refused(self) -> None:
        model = self.model(AFFINE)
        for wrong in (np.zeros((1, 3)), np.zeros((1, 4), np.float32), np.zeros(3, np.float32)):
            result = self.run_model(model, "--seed", "1", "--inputs", self.array("x", wrong))
            self.assertEqual(result.returncode, 2)
            self.assertIn("the model declares float32[N, 3]", result.stderr)

    def test_inputs_that_cannot_be_read(self) -> None:
        model = self.model(AFFINE)
        (self.folder / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{")
        (self.folder / "bad.pb").write_bytes(b"\xff\xff\xff")
        for argument, message in (("x=missing.npy", "missing.npy"), ("z=x.npy", "no input `z`"), ("x", "neither a folder nor NAME=FILE"),
                                  (f"x={self.folder}/bad.npy", "the header is longer than the file"), (f"x={self.folder}/bad.pb", "bad.pb"),
                                  (f"x={self.model(AFFINE)}", "expected a .pb or .npy file")):
            result = self.run_model(model, "--seed", "1", "--inputs", argument)
            self.assertEqual(result.returncode, 2, argument)
            self.assertIn(message, result.stderr)

    def test_headers_of_numpy_that_are_none(self) -> None:
        model = self.model(HEAD + "g (float[6] x) => (float[6] y) { y = Identity (x) }\n")
        path = self.folder / "x.npy"

        def run(header: str, version: bytes = b"\1\0") -> subprocess.CompletedProcess[str]:
            encoded = header.encode()
            path.write_bytes(b"\x93NUMPY" + version + len(encoded).to_bytes(2, "little") + encoded + np.arange(6, dtype=np.float32).tobytes())
            return self.run_model(model, "--inputs", f"x={path}")

        good = "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }"
        for header in (good, good + "   \n", "{'shape':(6L,),\n\"descr\":'<f4','fortran_order':False}", good.replace("<", "=")):
            self.assertEqual(run(header).stdout, "`y`: float32[6] = [0, 1, 2, 3, 4, 5]\n", header)
            np.load(path)
        for header in (
            "garbage 'shape': (6L) 'fortran_order' 'descr''<f4' ][", good + "x", good[:-1], good.replace("(6,)", "(6)"), good.replace("(6,)", "(6"),
            good.replace("(6,)", "(2 3)"), good.replace("(6,)", "(,6)"), good.replace("(6,)", "(06,)"), good.replace("False", "Maybe"), good.replace("<f4", "xf4"), good.replace("'<f4'", "[('a', '<f4')]"),
            good.replace("'shape'", "'shape': (6,), 'shape'"), good.replace("'shape'", "'form'"), "{'descr': '<f4', 'shape': (6,)}", "", "{",
        ):
            self.assertEqual(run(header).returncode, 2, header)
        self.assertEqual(run(good, b"\1\xc8").returncode, 2)

    def test_scan_outputs_of_no_iteration_whose_shape_is_open(self) -> None:
        """Their shape is that of the facts where the body declares none; of an empty part of a batch they are zeros."""
        body = "<body = b (int64 i, bool c, float[] a) => (bool d, float[] o, float[] s) { d = Identity (c) o = Identity (a) s = Identity (a) }>"
        loop = self.model(HEAD + f"g (int64 n, float[2, 3] x) => (y, z) {{ y, z = Loop {body} (n, , x) }}\n")
        shown = self.run_model(loop, "--check-facts", "--seed", "1", "--inputs", self.array("n", np.array(0)))
        self.assertEqual((shown.returncode, shown.stdout.splitlines()[1]), (0, "`z`: float32[0, 2, 3] = []"), shown.stderr)
        scan = '<ir_version: 8, opset_import: ["" : 8]>\n' + """g (float[2, 2, 3] x) => (y, z) <int64[2] n = {0, 1}, float[2, 1] first = {5, 6}> {
          y, z = Scan <num_scan_inputs = 1, body = b (a, r) => (o, s) { o = Identity (a) s = Identity (a) }> (n, first, x)
        }"""
        shown = self.run_model(self.model(scan, "scan.onnxtxt"), "--check-facts", "--seed", "1")
        self.assertEqual((shown.returncode, shown.stdout.splitlines()[1]), (0, "`z`: float32[2, 2, 1] = [[[0], [0]], [[6], [0]]]"), shown.stderr)

    def test_sequences_that_say_other_than_they_hold(self) -> None:
        model = self.model(HEAD + "g (seq(float[2]) s) => (int64 n) { n = SequenceLength (s) }\n")
        optional = self.model(HEAD + "g (optional(float[2]) o) => (bool b) { b = OptionalHasElement (o) }\n", "o.onnxtxt")
        tensor = numpy_helper.from_array(np.ones(2, np.float32)).SerializeToString()
        part = bytes([3 << 3 | 2, len(tensor)]) + tensor
        kind = b"\x10\x01"
        for name, path, content, code in (
            ("s", model, kind + part + part, 0), ("s", model, kind, 0), ("o", optional, kind + part, 0), ("o", optional, kind, 0),
            ("s", model, b"\x10\x63", 2), ("o", optional, b"\x10\x06", 2), ("s", model, part, 2), ("s", model, b"\x10\x03" + part, 2), ("o", optional, kind + part + part, 2),
            ("s", model, kind + b"\x18\x01", 2), ("s", model, kind + b"\x1d" + b"\0" * 4, 2), ("s", model, kind + b"\x1e", 2),
            ("s", model, kind + b"\x08\x01" + part, 2), ("s", model, kind + part + bytes([5 << 3 | 2, 0]), 2),
        ):
            (self.folder / "v.pb").write_bytes(content)
            result = self.run_model(path, "--inputs", f"{name}={self.folder}/v.pb")
            self.assertEqual(result.returncode, code, (content[:8], result.stdout, result.stderr))

    def test_arrays_of_numpy_in_all_layouts(self) -> None:
        model = self.model(HEAD + "g (int32[2, 3] x) => (int32[2, 3] y) { y = Identity (x) }\n")
        plain = np.arange(6, dtype=np.int32).reshape(2, 3)
        for layout in (plain, np.asfortranarray(plain), plain.astype(">i4")):
            result = self.run_model(model, "--inputs", self.array("x", layout))
            self.assertEqual(result.stdout, "`y`: int32[2, 3] = [[0, 1, 2], [3, 4, 5]]\n", result.stderr)

    def test_a_model_with_errors_is_refused(self) -> None:
        model = self.model(HEAD + "g (float[2, 3] x, float[4] b) => (float[2, 3] y) { y = Add (x, b) }\n")
        result = self.run_model(model, "--seed", "1")
        self.assertEqual(result.returncode, 2)
        self.assertIn("has 1 error: `tensorlint check` shows where, `--force` runs it anyway", result.stderr)
        forced = self.run_model(model, "--seed", "1", "--force")
        self.assertEqual(forced.returncode, 2)
        self.assertIn("node `#0(Add)` (Add): ", forced.stderr)

    def test_an_endless_loop_ends_with_its_time(self) -> None:
        result = self.run_model(self.model(ENDLESS), "--seed", "1", "--time-limit", "0.5", timeout=20)
        self.assertEqual(result.returncode, 2)
        self.assertIn("the time limit is over", result.stderr)

    def test_memory_is_refused_before_it_is_taken(self) -> None:
        model = self.model(HUGE)
        for count in (1 << 40, 1 << 62, 3_000_000_000):
            result = self.run_model(model, "--inputs", self.array("n", np.array([count])), timeout=20)
            self.assertEqual(result.returncode, 2)
            self.assertIn("node `#0(ConstantOfShape)` (ConstantOfShape): ", result.stderr)
        small = self.run_model(model, "--inputs", self.array("n", np.array([1000])), "--memory-limit", "3000")
        self.assertIn("the limit is 3000 (--memory-limit)", small.stderr)

    def test_values_of_nodes_are_shown_and_facts_are_held(self) -> None:
        result = self.run_model(self.model(AFFINE), "--seed", "1", "--dump", "t", "--check-facts")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith("`t`: float32["), result.stdout)
        self.assertTrue(result.stdout.endswith("every value lies inside its fact\n"), result.stdout)

    def test_the_last_of_several_runs_is_shown(self) -> None:
        model = self.model(AFFINE)
        self.assertEqual(self.run_model(model, "--seed", "1", "--repeat", "3").stdout, self.run_model(model, "--seed", "1").stdout)
        self.assertEqual(self.run_model(model, "--seed", "1", "--repeat", "0").returncode, 2)

    def test_the_check_before_the_run_is_under_the_time_limit(self) -> None:
        # The check finds an error, which it has no time for.
        model = self.model(HEAD + "g (float[2] x, float[3] z) => (float[2] y) { y = Add (x, z) }\n")
        self.assertIn("error[", self.run_model(model, "--seed", "1", "--time-limit", "60").stderr)
        result = self.run_model(model, "--seed", "1", "--time-limit", "0.000001")
        self.assertEqual((result.returncode, result.stderr), (2, "tensorlint run: stopped: the time limit is over (--time-limit)\n"))
        self.assertIn("`--time-limit=soon`: expected seconds, fewer than 1e9", self.run_model(self.model(AFFINE), "--time-limit", "soon").stderr)

    def test_scan_outputs_without_an_iteration(self) -> None:
        model = self.model(HEAD + """g (int64 n, float[2] x, float[k, 3] z) => (float[2] y, float[a, b] s, float[2] u, float[c, d] t) {
          y, s = Loop <body = b (int64 i, bool c, float[2] v) => (bool go, float[2] w, o) { go = Identity (c) w = Add (v, v) o = Identity (v) }> (n, , x)
          u, t = Scan <num_scan_inputs = 1, body = e (float[2] q, float[3] r) => (float[2] f, h) { f = Neg (q) h = Exp (r) }> (x, z)
        }""")
        n, x, z = self.array("n", np.array(0)), self.array("x", np.ones(2, np.float32)), self.array("z", np.ones((0, 3), np.float32))
        result = self.run_model(model, *(word for given in (n, x, z) for word in ("--inputs", given)))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("`s`: float32[0, 2] = []", result.stdout)
        self.assertIn("`t`: float32[0, 3] = []", result.stdout)

    def test_a_kernel_without_elements_leaves_the_bias(self) -> None:
        for filters in (1, 5):
            for kernel in ("0, 1", "1, 0"):
                model = self.model(HEAD + f"g (float[1, 1, 2, 2] x, float[{filters}, 1, {kernel}] w, float[{filters}] b) => (y) {{ y = Conv (x, w, b) }}")
                given = {"x": np.ones((1, 1, 2, 2)), "w": np.ones((filters, 1, *map(int, kernel.split(", ")))), "b": np.full(filters, 3)}
                words = [word for name, value in given.items() for word in ("--inputs", self.array(name, value.astype(np.float32)))]
                result = self.run_model(model, *words, "--force")
                self.assertEqual(result.returncode, 0, result.stderr)
                numbers = result.stdout.split(" = ")[1].replace("[", "").replace("]", "").split(", ")
                self.assertEqual({number.strip() for number in numbers}, {"3"}, result.stdout)

    def test_cross_entropy_of_a_row_that_a_mask_hides(self) -> None:
        for hidden in (-1e30, float(np.finfo(np.float32).min)):
            scores = self.array("x", np.array([[hidden] * 4, [0, hidden, hidden, hidden]], np.float32))
            labels = self.array("t", np.array([2, 0]))
            text = HEAD + 'g (float[2, 4] x, int64[2] t) => (l, p) { l, p = SoftmaxCrossEntropyLoss <reduction = "none"> (x, t) }\n'
            outputs = self.folder / "outputs"
            result = self.run_model(self.model(text), "--inputs", scores, "--inputs", labels, "--outputs", str(outputs))
            self.assertEqual(result.returncode, 0, result.stderr)
            losses, logarithms = (numpy_helper.to_array(onnx.load_tensor(outputs / f"output_{i}.pb")) for i in range(2))
            np.testing.assert_allclose(losses, [np.log(4), 0], rtol=1e-6)
            np.testing.assert_allclose(logarithms[0], [-np.log(4)] * 4, rtol=1e-6)

    def test_topk_takes_the_largest_or_the_smallest(self) -> None:
        for largest, expected in ((1, "[3, 2]"), (0, "[1, 2]")):
            model = self.model(HEAD + f"g (float[3] x) => (y, i) {{ k = Constant <value_ints = [2]> () y, i = TopK <largest = {largest}> (x, k) }}")
            self.assertIn(f"`y`: float32[2] = {expected}", self.run_model(model, "--inputs", self.array("x", np.array([1, 2, 3], np.float32))).stdout)
        model = self.model(HEAD + "g (float[3] x) => (y, i) { k = Constant <value_ints = [2]> () y, i = TopK <largest = 2> (x, k) }")
        result = self.run_model(model, "--seed", "1")
        self.assertEqual(result.returncode, 2)
        self.assertIn("the attribute largest is 2, not 0 or 1", result.stderr)

    def test_what_is_not_there_is_said(self) -> None:
        model = self.model(AFFINE)
        result = self.run_model(model, "--seed", "1", "--dump", "t", "--dump", "tt")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", "tensorlint run: no node of the model computes `tt`, which --dump names\n"))
        unknown = self.model('<ir_version: 10, opset_import: ["": 21, "own": 1]>\ng (float[2] x) => (float[2] y) { y = own.Score (x) }\n', "u.onnxtxt")
        self.assertIn("(Score): the operator is not known", self.run_model(unknown, "--seed", "1").stderr)

    def test_samples_run(self) -> None:
        samples = sorted((ROOT / "samples").glob("*_ok.onnx"))
        self.assertGreaterEqual(len(samples), 5)
        for sample in samples:
            with self.subTest(sample.name):
                result = self.run_model(str(sample), "--seed", "3", "--check-facts")
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_drawn_inputs_lie_inside_the_contract(self) -> None:
        # Sizes that divide, as many positions as the table has rows at most, words of the vocabulary, and what is given.
        model_text = HEAD + """g (int64[batch, words] ids, float[words, batch] w, float[5, 6] vocabulary, float[40, 6] table) => (float[a, b, 6] y, float[batch, c] z)
            <int64 zero = {0}, int64 one = {1}, int64[3] halves = {0, 16, -1}> {
          extents = Shape (ids)
          length = Gather (extents, one)
          positions = Range (zero, length, one)
          rows = Gather (table, positions)
          embedded = Gather (vocabulary, ids)
          y = Add (embedded, rows)
          split = Reshape (embedded, halves)
          turned = Transpose (w)
          z = Mul (turned, turned)
        }
        """
        model = self.model(model_text)
        for seed in range(4):
            result = self.run_model(model, "--seed", str(seed))
            self.assertEqual(result.returncode, 0, result.stderr)
        given = self.run_model(model, "--seed", "1", "--inputs", self.array("ids", np.full((2, 32), 4)))
        self.assertEqual(given.returncode, 0, given.stderr)
        self.assertIn("`z`: float32[2, 32]", given.stdout)
        # Large enough for the window of the pool.
        pooled = self.model(HEAD + """g (float[batch, 2, height, width] x, float[5, 30] w) => (float[batch, 5] y) {
          p = MaxPool <kernel_shape = [4, 4], strides = [4, 4]> (x)
          f = Flatten (p)
          y = Gemm <transB = 1> (f, w)
        }
        """)
        for seed in range(4):
            result = self.run_model(pooled, "--seed", str(seed))
            self.assertEqual(result.returncode, 0, result.stderr)
        model = self.model(model_text)
        beyond = self.run_model(model, "--seed", "1", "--inputs", self.array("ids", np.full((2, 48), 4)))
        self.assertIn("index 40", beyond.stderr)


if __name__ == "__main__":
    unittest.main()
