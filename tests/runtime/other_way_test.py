"""`tensorlint compare` where results take another way than the reference: other extents, dtypes or kinds, or none at all."""

import os
import resource
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
from onnx import numpy_helper

TOOL = os.environ.get("TENSORLINT_BINARY", str(Path(__file__).resolve().parents[2] / "build/bin/tensorlint"))
HEAD = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>\n'
# The number of elements follows from how far `v` is from 1.
NEAR_ONE = """
<domain: "local", opset_import: ["" : 21]>
repeated (v, one, far, large, zero) => (o) {
  a = Sub (v, one) d = Abs (a) g = Greater (d, zero) l = Less (d, far) n = And (g, l)
  i = Cast <to = 7> (n) c = Constant <value_int = 1> () m = Add (i, c) x = Constant <value_ints = [0]> () s = Unsqueeze (m, x)
  b = Mul (d, large) e = Cast <to = 7> (b) o = Expand (e, s)
}
"""


class OtherWayTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compare(self, text: str, **recorded: np.ndarray | np.generic) -> str:
        (self.folder / "m.onnxtxt").write_text(HEAD + text)
        against = self.folder / "recorded"
        against.mkdir(exist_ok=True)
        for name, value in recorded.items():
            np.save(against / f"{name}.npy", value)
        for options in ([], ["--chained"]):
            result = subprocess.run([TOOL, "compare", self.folder / "m.onnxtxt", "--against", against, "--time-limit", "10", *options], capture_output=True, text=True, timeout=60)
            self.assertIn(result.returncode, (0, 1), result.stderr)
        return result.stdout

    def test_sequences_that_a_shaken_operand_makes_impossible(self) -> None:
        text = """g (float x) => (int64 y) <float k = {0.99999994}> {
          z = Exp (x) w = Mul (z, k) i = Cast <to = 7> (w) s = SequenceConstruct (x) t = SequenceErase (s, i) y = SequenceLength (t)
        }"""
        self.compare(text, x=np.float32(0), y=np.int64(0))

    def test_results_whose_extents_follow_from_rounding(self) -> None:
        for far in ("4e-7", "5e-7", "7e-7", "1e-6", "2e-6"):
            text = f"""g (float x) => (int64 y) <float one = {{1}}, float far = {{{far}}}, float large = {{1e12}}, float zero = {{0}}> {{
              v = Exp (x) o = local.repeated (v, one, far, large, zero) y = ReduceSum <keepdims = 0> (o)
            }}"""
            self.compare(text + NEAR_ONE, x=np.float32(0), y=np.int64(7))

    def test_results_whose_dtype_follows_from_rounding(self) -> None:
        text = """g (float x) => (y) <float one = {1}> {
          v = Exp (x) a = Sub (v, one) b = Abs (a) c = Cast <to = 9> (b)
          y = If (c) <then_branch = t () => (p) { p = Constant <value_string = "a"> () }, else_branch = e () => (q) { q = Identity (v) }>
        }"""
        (self.folder / "m.onnxtxt").write_text(HEAD + text)
        against = self.folder / "recorded"
        against.mkdir()
        np.save(against / "x.npy", np.float32(0))
        np.save(against / "y.npy", np.float32(3))
        result = subprocess.run([TOOL, "compare", self.folder / "m.onnxtxt", "--against", against, "--force"], capture_output=True, text=True, timeout=60)
        self.assertIn(result.returncode, (0, 1, 2), result.stderr)

    def test_terms_of_a_function_are_not_those_of_its_first_node(self) -> None:
        text = """g (float[2] x) => (float[2] y) { y = local.none (x) }
        <domain: "local", opset_import: ["" : 21]>
        none (x) => (y) {
          n = Constant <value_int = 0> ()
          y = Loop <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] o) { d = Identity (c) o = Add (a, a) }> (n, , x)
        }"""
        self.compare(text, x=np.ones(2, np.float32), y=np.ones(2, np.float32))

    def test_loops_that_noise_would_never_end(self) -> None:
        text = """g (float x) => (float y) <bool go = {1}, float one = {1}, float eight = {8}> {
          v = Exp (x)
          y = Loop <body = b (int64 i, bool c, float a) => (bool d, float o) { o = Add (a, one) e = Equal (o, eight) d = Not (e) }> (, go, v)
        }"""
        self.compare(text, x=np.float32(0), y=np.float32(8))

    def test_sizes_that_noise_would_make_large(self) -> None:
        """Without it the list has no elements, with it hundreds of millions, which the limit of memory would allow."""
        text = """g (float x) => (int64 y) <float one = {1}, float large = {1e15}, int64[1] flat = {1}> {
          y = local.counted (x, one, large, flat)
        }
        <domain: "local", opset_import: ["" : 21]>
        counted (x, one, large, flat) => (y) {
          v = Exp (x) a = Sub (v, one) b = Abs (a) d = Mul (b, large) i = Cast <to = 7> (d) s = Reshape (i, flat) z = ConstantOfShape (s) t = Shape (z) y = Squeeze (t)
        }"""
        for _ in range(2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            shown = self.compare(text, x=np.float32(0), y=np.int64(0))
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertLess(used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime, 1, shown)
        self.assertLess(used.ru_maxrss, 400 << 10, "KiB")

    def test_text_where_the_reference_would_give_numbers(self) -> None:
        """The recorded product is rounded; with what it was before, the other branch is taken."""
        nothing = '[""]'
        text = f"""g (float16[1] a, float16[1] b, bool t) => (y) {{
          u = local.unknown () h = Mul (a, b)
          y = If (t) <then_branch = o () => (z) {{ c = Greater (h, a)
              z = If (c) <then_branch = n () => (p) {{ p = Constant <value_floats = [3.0]> () }}, else_branch = e () => (r) {{ r = Identity (u) }}> }},
            else_branch = f () => (q) {{ q = Constant <value_strings = {nothing}> () }}>
        }}"""
        head = HEAD.replace('"local" : 1', '"local" : 1, "other" : 1')
        (self.folder / "m.onnxtxt").write_text(head + text.replace("local.unknown", "other.unknown"))
        against = self.folder / "recorded"
        against.mkdir()
        for name in "abh":
            np.save(against / f"{name}.npy", np.array([1 + 2**-10], np.float16))
        np.save(against / "t.npy", np.array(True))
        for name, value in (("u", "abc"), ("y", "abd")):
            (against / f"{name}.pb").write_bytes(numpy_helper.from_array(np.array([value], object), name).SerializeToString())
        for options in ([], ["--chained"]):
            result = subprocess.run([TOOL, "compare", self.folder / "m.onnxtxt", "--against", against, "--force", *options], capture_output=True, text=True, timeout=60)
            self.assertIn(result.returncode, (0, 1, 2), result.stderr)

    def test_another_way_for_want_of_memory(self) -> None:
        """Within a window float64 fits once: computed again, the node gives two elements and not a hundred thousand."""
        (self.folder / "m.onnxtxt").write_text(HEAD + """g (float[1] one, float[1] tiny, float[1] zero, bool t) => (float[K] y) <int64[1] big = {100000}, int64[1] small = {2}, int64[1] many = {1000000}> {
          y = If (t) <then_branch = a () => (float[K] r) { s = Add (one, tiny) c = Greater (s, one) n = Where (c, big, small) h = Expand (one, many)
              v = ReduceSum <keepdims = 0> (h) w = Mul (v, zero) o = Add (one, w) r = Expand (o, n) }, else_branch = e () => (float[L] q) { q = Expand (one, small) }>
        }""")
        against = self.folder / "recorded"
        against.mkdir()
        for name, value in (("one", [1]), ("tiny", [1e-9]), ("zero", [0])):
            np.save(against / f"{name}.npy", np.array(value, np.float32))
        np.save(against / "t.npy", np.array(True))
        np.save(against / "y.npy", np.linspace(5, 9, 100_000).astype(np.float32))
        for window in range(8_000_000, 13_000_000, 500_000):
            command = [TOOL, "compare", str(self.folder / "m.onnxtxt"), "--against", str(against), "--threads", "1", "--window", str(window)]
            result = subprocess.run(command, capture_output=True, text=True, timeout=60)
            self.assertIn(result.returncode, (1, 2), (window, result.stdout, result.stderr))  # all elements are wrong: never explained

    def test_values_of_integers_are_no_positions(self) -> None:
        text = "g (int64[4] x) => (int64[2] v, int64[2] i) <int64[1] k = {2}> { v, i = TopK (x, k) }"
        x = np.array([1 << 40, 3, 2, 1 << 41])
        shown = self.compare(text, x=x, v=np.array([1, 2]))
        self.assertIn("bug", shown)
        self.compare(text, x=np.array([1, 0, 3, 2]), v=np.array([3, 1]))


if __name__ == "__main__":
    unittest.main()
