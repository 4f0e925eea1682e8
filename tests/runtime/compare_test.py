"""`tensorlint compare`: what onnxruntime records agrees; a planted fault is named at its node; bad input is refused."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "runtime/compare"))
import record

sys.path.insert(0, str(ROOT / "tests/cli"))
from json_schema import problems

TOOL = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
SCHEMA = json.loads((ROOT / "docs/schema/compare.schema.json").read_text())
NETWORK = """<ir_version: 10, opset_import: ["": 21]>
g (float[6, 48] x, float[48, 64] w, float[64] b, float[64] scale, float[64] shift) => (float[6, 64] y) {
  [product] p = MatMul (x, w)
  [bias] h = Add (p, b)
  [norm] n = LayerNormalization <axis = -1, epsilon = 1e-5> (h, scale, shift)
  [act] a = Gelu (n)
  [soft] s = Softmax <axis = -1> (a)
  [scaled] y = Mul (s, a)
}
"""

# How values jump where one passes 0.25.
JUMPS = {
    "Floor": "m = Mul (t, four) j = Floor (m)",
    "Ceil": "m = Mul (t, four) j = Ceil (m)",
    "Round": "m = Add (t, t) j = Round (m)",
    "Sign": "m = Sub (t, quarter) j = Sign (m)",
    "Mod": "j = Mod <fmod = 1> (t, quarter)",
    "ThresholdedRelu": "j = ThresholdedRelu <alpha = 0.25> (t)",
    "Shrink": "j = Shrink <lambd = 0.25> (t)",
    "Cast": "m = Mul (t, four) i = Cast <to = 7> (m) j = Cast <to = 1> (i)",
    "Greater": "b = Greater (t, quarter) j = Cast <to = 1> (b)",
    "Where": "b = Less (t, quarter) j = Where (b, four, quarter)",
    "QuantizeLinear": "q = QuantizeLinear (t, half, zero) j = DequantizeLinear (q, half, zero)",
    "DynamicQuantizeLinear": "c = Concat <axis = 0> (t, most) q, s, z = DynamicQuantizeLinear (c) d = DequantizeLinear (q, s, z) j = Slice (d, from, to)",
    "Hardmax": "r = Reshape (t, column) c = Concat <axis = 1> (r, quarters) h = Hardmax (c) f, g = Split <axis = 1, num_outputs = 2> (h) j = Reshape (f, row)",
    "ArgMax": "r = Reshape (t, column) c = Concat <axis = 1> (r, quarters) i = ArgMax <axis = 1, keepdims = 0> (c) j = Gather (both, i)",
    "TopK": "r = Reshape (t, column) c = Concat <axis = 1> (r, quarters) v, i = TopK (c, one) k = Reshape (i, row) j = Gather (both, k)",
}


def recorded(model: Path, folder: Path, **options: object) -> str:
    defaults: dict[str, object] = {"model": str(model), "out": str(folder), "inputs": [], "seed": 0, "most": 2, "values": "", "providers": "CPUExecutionProvider",
                                   "level": "disable_all", "threads": 1, "shard": 1 << 30, "memory": 1 << 30}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        record.record(argparse.Namespace(**{**defaults, **options}))
    return said.getvalue()


def write_npz(path: Path, arrays: dict[str, np.ndarray], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=True)


def write_message(path: Path, name: str, array: np.ndarray) -> None:
    path.write_bytes(onnx.numpy_helper.from_array(array, name).SerializeToString())


def for_each(arrays: dict[str, np.ndarray], write: Callable[[int, str, np.ndarray], None]) -> None:
    for i, (name, array) in enumerate(arrays.items()):
        write(i, name, array)


class CompareTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.folder / "m.onnx"
        onnx.save(onnx.parser.parse_model(NETWORK), self.model)

    def compare(self, against: Path, *arguments: str, model: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run([TOOL, "compare", str(model or self.model), "--against", str(against), *arguments], capture_output=True, text=True, timeout=120)

    def report(self, against: Path, *arguments: str, model: Path | None = None) -> dict:
        result = self.compare(against, "--format", "json", *arguments, model=model)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(problems(document, SCHEMA), [])
        self.assertEqual(result.returncode == 1, document["verdict"] == "bug")
        return document

    def arrays(self, **change: np.ndarray) -> Path:
        """What onnxruntime records, with other arrays in place of some."""
        if not (self.folder / "r").exists():
            recorded(self.model, self.folder / "r")
        arrays = dict(np.load(self.folder / "r/values-0000.npz")) | change
        out = self.folder / f"changed-{len(list(self.folder.iterdir()))}"
        out.mkdir()
        write_npz(out / "values.npz", arrays)
        return out

    def test_a_number_where_the_reference_has_none_is_a_bug(self) -> None:
        x = np.ones((3, 4), np.float32)
        x[0, 1], x[1, 2] = np.nan, -np.inf
        head = '<ir_version: 10, opset_import: ["": 21]>\ng (float[3, 4] x) => (y) {\n'
        axes = " a = Constant <value = int64[1] {1}> ()\n"
        for call in (axes + "y = ReduceSum <keepdims = 0> (x, a)", axes + "y = ReduceMean <keepdims = 0> (x, a)", axes + "y = ReduceLogSumExp <keepdims = 0> (x, a)",
                     "w = Constant <value = float[4, 1] {1, 1, 1, 1}> () y = MatMul (x, w)", "y = LogSoftmax (x)", "y = Exp (x)"):
            onnx.save(onnx.parser.parse_model(head + call + "\n}\n"), self.model)
            with contextlib.suppress(FileNotFoundError):
                for path in (self.folder / "r").iterdir():
                    path.unlink()
            np.save(self.folder / "x.npy", x)
            recorded(self.model, self.folder / "r", inputs=[f"x={self.folder}/x.npy"])
            arrays = dict(np.load(self.folder / "r/values-0000.npz"))
            with self.subTest(call):
                self.assertNotEqual(self.report(self.folder / "r")["verdict"], "bug")
                broken = np.where(np.isfinite(arrays["y"]), arrays["y"], 7).astype(np.float32)
                self.assertFalse(np.array_equal(broken, arrays["y"], equal_nan=True))
                write_npz(self.folder / "broken.npz", {**arrays, "y": broken})
                (self.folder / "b").mkdir(exist_ok=True)
                (self.folder / "broken.npz").replace(self.folder / "b/values.npz")
                self.assertEqual(self.report(self.folder / "b")["verdict"], "bug")

    def test_what_onnxruntime_computes_agrees(self) -> None:
        for level in ("disable_all", "basic", "extended", "all"):
            for seed in range(3):
                with self.subTest(level=level, seed=seed):
                    out = self.folder / f"{level}-{seed}"
                    self.assertNotIn("when more values are recorded", recorded(self.model, out, level=level, seed=seed))
                    document = self.report(out)
                    self.assertIn(document["verdict"], ("identical", "explained"))
                    self.assertEqual([node["node"] for node in document["nodes"]], ["product", "bias", "norm", "act", "soft", "scaled"])
                    self.assertEqual((document["first"], document["skipped"]), (None, []))

    def test_a_fault_is_named_at_its_node_and_nowhere_else(self) -> None:
        faults = {
            "product": NETWORK.replace("MatMul (x, w)", "MatMul (xx, w)").replace("  [product]", "  xx = Mul (x, x)\n  [product]"),
            "norm": NETWORK.replace("1e-5", "1e-2"),
            "act": NETWORK.replace("Gelu (n)", 'Gelu <approximate = "tanh"> (n)'),
            "soft": NETWORK.replace("Softmax <axis = -1>", "Softmax <axis = 0>"),
        }
        for node, text in faults.items():
            with self.subTest(node=node):
                faulty = self.folder / f"{node}.onnx"
                onnx.save(onnx.parser.parse_model(text), faulty)
                out = self.folder / node
                recorded(faulty, out, values="p,h,n,a,s")
                document = self.report(out)
                self.assertEqual([each["node"] for each in document["nodes"] if each["verdict"] == "bug"], [node])
                self.assertEqual(document["first"]["node"], node)

    def test_the_text_names_line_figures_and_cause(self) -> None:
        text_model = self.folder / "m.onnxtxt"
        text_model.write_text(NETWORK)
        recorded(self.model, self.folder / "r0")
        h = np.load(self.folder / "r0/values-0000.npz")["h"]
        result = self.compare(self.arrays(h=(h * np.float32(1.5)).astype(np.float32)), model=text_model)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("bug: `h` of node `bias` (Add) is the first value that rounding does not explain", result.stdout)
        self.assertIn("m.onnxtxt:4", result.stdout)
        self.assertIn("all elements are 1.5 times the reference", result.stdout)

    def test_the_page_shows_the_first_bug_and_is_a_page_by_itself(self) -> None:
        recorded(self.model, self.folder / "r0")
        a = np.array(np.load(self.folder / "r0/values-0000.npz")["a"])
        a[0, :9] = 7
        page = self.compare(self.arrays(a=a), "--format", "html").stdout
        self.assertIn("<strong>`a` of node `act` (Gelu) is the first value that rounding does not explain</strong>", page)
        self.assertEqual(page.count("<svg"), 3)
        self.assertEqual(page.count("<tr>"), 7)
        for elsewhere in ("<script", "http", "src="):
            self.assertNotIn(elsewhere, page)
        right = self.compare(self.arrays(), "--format", "html", "--output", str(self.folder / "page.html"))
        self.assertEqual((right.returncode, right.stdout), (0, ""))
        self.assertIn("rounding explains all differences", (self.folder / "page.html").read_text())

    def test_a_fault_behind_nodes_that_are_not_recorded_names_them_too(self) -> None:
        faulty = self.folder / "faulty.onnx"
        onnx.save(onnx.parser.parse_model(NETWORK.replace("1e-5", "1e-2")), faulty)
        recorded(faulty, self.folder / "r", values="p,a,s")
        document = self.report(self.folder / "r")
        self.assertEqual(document["first"]["node"], "act")
        self.assertEqual(document["nodes"][1]["unrecorded"], ["bias", "norm"])
        recorded(self.model, self.folder / "right", values="p,a,s")
        for arguments in ([], ["--chained"]):
            self.assertEqual(self.report(self.folder / "right", *arguments)["verdict"], "explained")

    def test_chained_runs_find_faults_too(self) -> None:
        faulty = self.folder / "faulty.onnx"
        onnx.save(onnx.parser.parse_model(NETWORK.replace("Gelu (n)", 'Gelu <approximate = "tanh"> (n)')), faulty)
        recorded(faulty, self.folder / "r")
        self.assertEqual(self.report(self.folder / "r", "--chained")["first"]["node"], "act")

    def test_every_way_to_write_arrays_is_read(self) -> None:
        recorded(self.model, self.folder / "r")
        arrays = dict(np.load(self.folder / "r/values-0000.npz"))
        ways: dict[str, Callable[[Path], None]] = {
            "deflated": lambda out: write_npz(out / "values.npz", arrays, zipfile.ZIP_DEFLATED),
            "fortran": lambda out: write_npz(out / "values.npz", {name: np.asfortranarray(array) for name, array in arrays.items()}),
            "big-endian": lambda out: write_npz(out / "values.npz", {name: array.astype(array.dtype.newbyteorder(">")) for name, array in arrays.items()}),
            "npy": lambda out: for_each(arrays, lambda i, name, array: np.save(out / f"{name}.npy", array)),
            "pb": lambda out: for_each(arrays, lambda i, name, array: write_message(out / f"{i}.pb", name, array)),
            "shards": lambda out: for_each(arrays, lambda i, name, array: write_npz(out / f"values-{i}.npz", {name: array})),
        }
        expected = self.report(self.folder / "r")
        for name, write in ways.items():
            with self.subTest(way=name):
                out = self.folder / name
                out.mkdir()
                write(out)
                self.assertEqual(self.report(out), expected)

    def refuses(self, what: str, against: Path, *arguments: str, model: Path | None = None) -> None:
        result = self.compare(against, *arguments, model=model)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn(what, result.stderr)
        self.assertLess(len(result.stderr), 2000)
        self.assertEqual(result.stdout, "")

    def test_bad_values_are_refused(self) -> None:
        good = self.arrays()
        self.refuses("the model has no value `q`", self.arrays(q=np.zeros(3, np.float32)))
        self.refuses("`h` is recorded as [6, 63], and its node `bias` gives [6, 64]", self.arrays(h=np.zeros((6, 63), np.float32)))
        self.refuses("int64, and float32 in the model", self.arrays(h=np.zeros((6, 64), np.int64)))
        self.refuses("float64, and float32 in the model", self.arrays(h=np.full((6, 64), 1 / 3)))
        self.refuses("is not supported", self.arrays(h=np.array([{}], object)))
        self.refuses("expected `onnxruntime`, cuda:N, emulated:N or a folder", good / "values.npz")
        self.refuses("has no recorded values", self.empty_folder())
        self.refuses("expected `onnxruntime`, cuda:N, emulated:N or a folder", Path("cuda0"))
        without = self.folder / "without"
        without.mkdir()
        write_npz(without / "values.npz", {"p": np.zeros((6, 64), np.float32)})
        self.refuses("the input `x` is missing", without)

    def test_archives_that_others_read_otherwise_are_refused(self) -> None:
        good = (self.arrays() / "values.npz").read_bytes()
        end = good.rfind(b"PK\5\6")
        count = int.from_bytes(good[end + 8 : end + 10], "little")
        one_less = (count - 1).to_bytes(2, "little")
        deflated = self.empty_folder()
        write_npz(deflated / "values.npz", dict(np.load(self.folder / "r/values-0000.npz")), zipfile.ZIP_DEFLATED)
        longer = bytearray((deflated / "values.npz").read_bytes())
        with zipfile.ZipFile(deflated / "values.npz") as archive:
            last = archive.infolist()[-1]
        # A byte after the compressed ones of the last member, which its directory counts.
        begin = longer.rfind(b"PK\1\2")
        directory = longer.find(b"PK\1\2")
        longer[begin + 20 : begin + 24] = (last.compress_size + 1).to_bytes(4, "little")
        longer[directory:directory] = b"x"
        at = longer.rfind(b"PK\5\6") + 16
        longer[at : at + 4] = (directory + 1).to_bytes(4, "little")
        for content, message in (
            (good[: end + 8] + 2 * one_less + good[end + 12 :], f"its directory continues after the {count - 1} members"),
            (good + b"x", "bytes follow the end of the archive"),
            (good.replace(b"h.npy", b"p.npy", 1), "the member has another name than in the directory"),
            (bytes(longer), "the compressed bytes are damaged"),
        ):
            out = self.empty_folder()
            (out / "values.npz").write_bytes(content)
            self.refuses(message, out)

    def test_initializers_of_one_name_are_refused(self) -> None:
        tensors = [onnx.numpy_helper.from_array(array, "h") for array in (np.zeros((6, 64), np.float32), np.ones((6, 64), np.float32))]
        model = onnx.helper.make_model(onnx.helper.make_graph([], "values", [], [], tensors), ir_version=10)
        out = self.arrays()
        (out / "more.initializers").write_bytes(model.SerializeToString())
        self.refuses("more.initializers", out)

    def test_strings_choices_and_complex_numbers(self) -> None:
        text = """<ir_version: 10, opset_import: ["": 22]>
        g (float[4, 8] x, string[3] s, float[1, 8, 1] signal) => (int64[4] k, string[3] t, float[4, 2] v, int64[4, 2] i, int64[2, n] z) {
          [argmax] k = ArgMax <axis = 1, keepdims = 0> (x)
          [join] t = StringConcat (s, s)
          [top] v, i = TopK <axis = 1> (x, two)
          [nonzero] z = NonZero (x)
          [fourier] f = DFT (signal)
        }
        """.replace("(int64[4] k", "(float[1, 8, 2] f, int64[4] k").replace(") {", ")\n<int64[1] two = {2}> {", 1)
        model = self.folder / "choices.onnxtxt"
        model.write_text(text)
        x = np.round(np.random.default_rng(0).standard_normal((4, 8)), 0).astype(np.float32)  # with ties
        x[0], x[1, 3] = 1, 5
        out = self.folder / "choices"
        out.mkdir()
        order = np.argsort(-x, axis=1, kind="stable")[:, :2]
        values = {"x": x, "signal": np.zeros((1, 8, 1), np.float32), "k": 7 - np.argmax(x[:, ::-1], axis=1), "v": np.take_along_axis(x, order, 1), "i": order, "z": np.stack(np.nonzero(x))}
        write_npz(out / "values.npz", values)
        for name, strings in (("s", [b"a", b"b", b"c"]), ("t", [b"aa", b"bb", b"cx"])):
            tensor = onnx.TensorProto(name=name, dims=[3], data_type=onnx.TensorProto.STRING, string_data=strings)
            (out / f"{name}.pb").write_bytes(tensor.SerializeToString())
        document = self.report(out, model=model)
        self.assertEqual({node["node"]: node["verdict"] for node in document["nodes"]},
                         {"argmax": "explained", "join": "bug", "top": "identical", "nonzero": "identical"})
        values["k"][1] = np.argmin(x[1])
        write_npz(out / "values.npz", values)
        self.assertEqual(self.report(out, model=model)["first"]["node"], "argmax")
        # All elements of the first row are equal: any of them is the largest, but there are only 8, and two are two.
        for name, node, row in (("k", "argmax", 8), ("k", "argmax", -1), ("i", "top", [3, 3]), ("i", "top", [3, 8])):
            with self.subTest(node=node, row=row):
                changed = {key: np.array(array) for key, array in values.items()}
                changed["k"][1] = 3
                changed[name][0] = row
                write_npz(out / "values.npz", changed)
                self.assertIn((node, "bug"), [(each["node"], each["verdict"]) for each in self.report(out, model=model)["nodes"]])
        values["k"][1], values["i"][0] = 3, [7, 2]
        write_npz(out / "values.npz", values)
        self.assertEqual([each["verdict"] for each in self.report(out, model=model)["nodes"] if each["node"] in ("argmax", "top")], ["explained", "identical", "explained"])

    def test_positions_of_values_that_are_not_recorded_are_held_against_their_gaps(self) -> None:
        text = """<ir_version: 10, opset_import: ["": 22]>
        g (float16[512, 40] x) => (int64[512] k, int64[512, 3] i) <int64[1] three = {3}> {
          [sigmoid] s = Sigmoid (x)
          [argmax] k = ArgMax <axis = 1, keepdims = 0> (s)
          [top] v, i = TopK <axis = 1> (s, three)
        }
        """
        model = self.folder / "gaps.onnxtxt"
        model.write_text(text)
        # Large scores lie close together, so that float16 decides which is the largest.
        x = (np.random.default_rng(0).standard_normal((512, 40)) / 2 + 5).astype(np.float16)
        stored = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float16)
        out = self.folder / "gaps"
        out.mkdir()

        def verdicts(**change: np.ndarray) -> dict[str, str]:
            order = np.argsort(-stored, axis=1, kind="stable")
            write_npz(out / "values.npz", {"x": x, "k": order[:, 0], "i": order[:, :3], **change})
            return {each["node"]: each["verdict"] for each in self.report(out, model=model)["nodes"]}

        self.assertGreater(np.count_nonzero(np.argmax(stored, axis=1) != np.argmax(x, axis=1)), 50)
        self.assertEqual(verdicts(), {"argmax": "explained", "top": "explained"})
        self.assertEqual(verdicts(k=np.argmin(x, axis=1)), {"argmax": "bug", "top": "explained"})
        self.assertEqual(verdicts(i=np.argsort(x, axis=1, kind="stable")[:, :3]), {"argmax": "explained", "top": "bug"})

    def test_rounding_may_carry_an_element_that_is_not_recorded_over_a_threshold(self) -> None:
        """An engine whose tanh is 8 ulps off, of 10.5 that its contract allows, is on the other side of a threshold there."""
        constants: dict[str, np.ndarray] = {
            **{name: np.array(value, np.float32) for name, value in (("four", 4), ("quarter", 0.25), ("half", 0.5))},
            "most": np.array([0.25 * 255 / 60.5], np.float32), "quarters": np.full((64, 1), 0.25, np.float32), "both": np.array([5, 7], np.float32),
            "zero": np.array(0, np.uint8), "one": np.array([1]), "column": np.array([64, 1]), "row": np.array([64]), "from": np.array([0]), "to": np.array([64]),
            "gain": np.random.default_rng(3).standard_normal(64).astype(np.float32),
        }
        x = np.random.default_rng(2).uniform(0, 0.2, 64).astype(np.float32)
        x[5] = np.arctanh(0.25 + 6 * 2.0**-25)
        right = np.tanh(x.astype(np.float64)).astype(np.float32)
        near, far = right.copy(), right.copy()
        near[5], far[7] = 0.25 - 3 * 2.0**-26, 0.3
        self.assertGreater(right[5], 0.25)
        for name, jump in JUMPS.items():
            with self.subTest(jump=name):
                def model(start: str, jump: str = jump) -> onnx.ModelProto:
                    parsed = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 19]> g (float[64] {start[0]}) => (float[64] y) {{ {start[1:]} {jump} [gain] y = Mul (j, gain) }}')
                    read = {name for node in parsed.graph.node for name in node.input}
                    parsed.graph.initializer.extend(onnx.numpy_helper.from_array(array, key) for key, array in constants.items() if key in read)
                    return parsed

                path, out = self.folder / "jump.onnx", self.folder / "jumps"
                onnx.save(model("x[tanh] t = Tanh (x)"), path)
                out.mkdir(exist_ok=True)
                engine = onnxruntime.InferenceSession(model("t").SerializeToString(), providers=["CPUExecutionProvider"])
                for t, verdict in ((near, {"explained", "ill-conditioned"}), (far, {"bug"})):
                    y = engine.run(None, {"t": t})[0]
                    self.assertTrue((y != engine.run(None, {"t": right})[0]).any())
                    write_npz(out / "values.npz", {"x": x, "y": y})
                    for mode in ("--isolated", "--chained"):
                        self.assertIn(self.report(out, mode, model=path)["verdict"], verdict, (mode, t is near))

    def test_softmax_between_quantized_values_is_off_by_a_step_where_the_contract_says_so(self) -> None:
        text = """<ir_version: 8, opset_import: ["": 18]>
        g (uint8[8, 32] x) => (uint8[8, 24] y) <float sx = {0.03}, uint8 z = {128}, float sp = {0.0039078}, uint8 zp = {0}, float sw = {0.02}, uint8[32, 24] w, float sy = {0.004}> {
          a = DequantizeLinear (x, sx, z)
          [soft] p = Softmax <axis = -1> (a)
          q = QuantizeLinear (p, sp, zp)
          d = DequantizeLinear (q, sp, zp)
          b = DequantizeLinear (w, sw, z)
          [product] m = MatMul (d, b)
          y = QuantizeLinear (m, sy, z)
        }
        """
        parsed = onnx.parser.parse_model(text)
        draw = np.random.default_rng(0)
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(draw.integers(0, 256, (32, 24)).astype(np.uint8), "w"))
        path, out = self.folder / "attention.onnx", self.folder / "attention"
        onnx.save(parsed, path)
        recorded(path, out, level="all", values="y", most=256)
        values = dict(np.load(next(out.glob("*.npz"))))
        self.assertEqual(self.report(out, model=path)["verdict"], "explained")
        strict = self.folder / "strict.txt"
        strict.write_text("engine exact\nquantized no\n")
        self.assertEqual(self.report(out, "--contract", str(strict), model=path)["verdict"], "bug")
        write_npz(next(out.glob("*.npz")), values | {"y": np.roll(values["y"], 1, axis=0)})
        self.assertEqual(self.report(out, model=path)["verdict"], "bug")

    def test_an_engine_may_lose_a_nan_where_its_contract_says_so(self) -> None:
        path, out = self.folder / "nan.onnx", self.folder / "nan"
        onnx.save(onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[3, 8] x) => (float[3] z) {
          [largest] y = ReduceMax <axes = [1], keepdims = 0> (x)
          z = Relu (y)
        }
        """), path)
        x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
        x[1, 4] = np.nan
        y = np.fmax.reduce(x, axis=1)
        out.mkdir()
        write_npz(out / "values.npz", {"x": x, "y": y, "z": np.maximum(y, 0)})
        exact = self.folder / "exact.txt"
        exact.write_text("engine exact\n")
        for mode in ("--isolated", "--chained"):
            self.assertEqual(self.report(out, mode, model=path)["verdict"], "explained")
            result = self.report(out, mode, "--contract", str(exact), model=path)
            self.assertEqual((result["verdict"], result["first"]["node"]), ("bug", "largest"))
        y[0] = 7
        write_npz(out / "values.npz", {"x": x, "y": y, "z": np.maximum(y, 0)})
        self.assertEqual(self.report(out, model=path)["verdict"], "bug")

    def test_a_pool_whose_window_does_not_fit_is_not_compared(self) -> None:
        """ONNX's formula gives no elements there, and onnxruntime rounds the number of windows toward 0, to one."""
        text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[1, 2, H, 3] x, int64[2] axes) => (float[1, 2] y) {
          [pool] p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
          [mean] y = ReduceMean <keepdims = 0> (p, axes)
        }
        """
        path = self.folder / "pool.onnx"
        onnx.save(onnx.parser.parse_model(text), path)
        np.save(self.folder / "x.npy", np.random.default_rng(0).standard_normal((1, 2, 1, 3)).astype(np.float32))
        np.save(self.folder / "axes.npy", np.array([2, 3]))
        given = [f"{name}={self.folder / name}.npy" for name in ("x", "axes")]
        recorded(path, self.folder / "all", inputs=given)
        result = self.compare(self.folder / "all", model=path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("not compared: node `pool` (MaxPool): no window fits into its operand", result.stdout)
        recorded(path, self.folder / "last", inputs=given, values="y")
        self.refuses("none of the recorded values could be compared with their nodes: node `pool`: no window fits", self.folder / "last", model=path)

    def test_a_signal_without_an_axis_of_parts_is_real(self) -> None:
        """The specification asks for [batch, length, 1]; exported recognisers of speech leave the last axis out, and onnxruntime runs them."""
        text = """<ir_version: 8, opset_import: ["": 17]>
        g (float[B, 60] x) => (float[B, F, 5, 2] y)
        <int64 step = {7}, float[8] window = {1, 2, 3, 4, 4, 3, 2, 1}> {
          [frames] y = STFT <onesided = 1> (x, step, window)
        }
        """
        path, out = self.folder / "stft.onnx", self.folder / "frames"
        onnx.save(onnx.parser.parse_model(text), path)
        recorded(path, out)
        report = self.report(out, model=path)
        self.assertIn(report["verdict"], ("identical", "explained"))
        self.assertEqual([node["node"] for node in report["nodes"]], ["frames"])

    def test_sequences_without_steps_have_no_state(self) -> None:
        """ONNX leaves open what the last state of such a sequence is; onnxruntime gives 0."""
        draw = np.random.default_rng(0)
        for op, gates, states in (("LSTM", 4, "c"), ("GRU", 3, ""), ("RNN", 1, "")):
            with self.subTest(op=op):
                text = f"""<ir_version: 8, opset_import: ["": 17]>
                g (float[4, 3, 2] x, int32[3] n, float[2, 3, 5] h{", float[2, 3, 5] c" if states else ""}) => (float[4, 2, 3, 5] y, float[2, 3, 5] yh{", float[2, 3, 5] yc" if states else ""}) {{
                  [layer] y, yh{", yc" if states else ""} = {op} <hidden_size = 5, direction = "bidirectional"> (x, w, r, , n, h{", c" if states else ""})
                }}
                """
                parsed = onnx.parser.parse_model(text)
                for name, shape in (("w", (2, 5 * gates, 2)), ("r", (2, 5 * gates, 5))):
                    parsed.graph.initializer.append(onnx.numpy_helper.from_array(draw.standard_normal(shape).astype(np.float32), name))
                path, out = self.folder / f"{op}.onnx", self.folder / op
                onnx.save(parsed, path)
                np.save(self.folder / "n.npy", np.array([0, 4, 2], np.int32))
                recorded(path, out, inputs=[f"n={self.folder / 'n.npy'}"])
                self.assertEqual(self.report(out, model=path)["verdict"], "explained")

    def test_truths_of_values_that_are_not_recorded_have_the_room_of_their_operands(self) -> None:
        """An engine that leaves float16 values unrounded compares a value with itself; what was recorded before it is rounded."""
        text = """<ir_version: 10, opset_import: ["": 22]>
        g (float16[4096] x) => (bool[4096] w, float16[4096] t) <float exact = {4}> {
          [narrow] four = Cast <to = 10> (exact)
          [plus] b = Add (x, four)
          [minus] a = Sub (b, four)
          [same] t = Identity (a)
          [less] w = Less (a, t)
        }
        """
        model = self.folder / "truths.onnxtxt"
        model.write_text(text)
        x = np.random.default_rng(0).uniform(-1, 1, 4096).astype(np.float16)
        out = self.folder / "truths"
        out.mkdir()
        values = {"x": x, "b": x + np.float16(4), "t": x, "w": np.zeros(4096, bool)}
        write_npz(out / "values.npz", values)
        self.assertNotIn("bug", [each["verdict"] for each in self.report(out, model=model)["nodes"]])
        moved = values["t"] + np.float16(0.25)
        write_npz(out / "values.npz", values | {"t": moved})
        self.assertIn(("less", "bug"), [(each["node"], each["verdict"]) for each in self.report(out, model=model)["nodes"]])

    def test_other_numbers_of_elements_are_explained_by_rounding_or_refused(self) -> None:
        """Which elements are above the threshold is for rounding to decide: another number of them is said, other ranks and extents are faults."""
        x = np.linspace(0.1, 0.8, 8, dtype=np.float32)
        threshold = ", ".join(str(number) for number in np.tanh(x))
        model = self.folder / "chosen.onnxtxt"
        model.write_text(f"""<ir_version: 10, opset_import: ["": 22]>
        g (float[8] x) => (int64[1, n] y, float[8] z)\n<float[8] c = {{{threshold}}}> {{
          [tanh] t = Tanh (x)
          [above] p = Greater (t, c)
          [which] y = NonZero (p)
          [relu] z = Relu (x)
        }}
        """)

        def recorded_as(y: np.ndarray) -> Path:
            out = self.folder / f"chosen-{len(list(self.folder.iterdir()))}"
            out.mkdir()
            write_npz(out / "values.npz", {"x": x, "y": y, "z": x})
            return out

        document = self.report(recorded_as(np.full((1, 50), 777)), model=model)
        self.assertEqual([node["node"] for node in document["nodes"]], ["relu"])
        self.assertEqual([(node["node"], node["reason"]) for node in document["skipped"]], [("which", "rounding decides how many elements it gives")])
        for shape in ((50,), (2, 50), (1, 50, 1)):
            result = self.compare(recorded_as(np.full(shape, 777)), model=model)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"`y` is recorded as [{', '.join(map(str, shape))}], and its node `which` gives [1, ", result.stderr)
        self.assertIn("float32, and int64 in the model", self.compare(recorded_as(np.full((1, 50), 777, np.float32)), model=model).stderr)

    def test_absolute_errors_of_functions_show_as_a_slope_of_small_values_alone(self) -> None:
        """A sigmoid by way of tanh has steps of 2^-25 near 0, a large part of results that are all small: cut off to them, all are too small."""
        model = self.folder / "small.onnxtxt"
        model.write_text('<ir_version: 10, opset_import: ["": 21]>\ng (float[400] x) => (float[400] y) {\n  [small] y = Sigmoid (x)\n}\n')
        x = np.linspace(-16.2, -15, 400, dtype=np.float32)
        right = 1 / (1 + np.exp(-x.astype(np.float64)))
        out = self.folder / "small"
        out.mkdir()
        write_npz(out / "values.npz", {"x": x, "y": (np.floor(right * 2.0**25) / 2.0**25).astype(np.float32)})
        self.assertEqual(self.report(out, model=model)["verdict"], "ill-conditioned")
        write_npz(out / "values.npz", {"x": x, "y": np.zeros(400, np.float32)})
        self.assertEqual(self.report(out, model=model)["verdict"], "bug")

    def test_bodies_have_the_errors_of_their_nodes(self) -> None:
        """A sigmoid in a branch is off by as much as one outside: what is below that may be 0."""
        text = """<ir_version: 10, opset_import: ["": 21]>
        g (bool branch, float[64] x) => (float[64] y) {
          [either] y = If (branch) <then_branch = gate () => (float[64] t) { s = Sigmoid (x)  t = Mul (s, x) }, else_branch = same () => (float[64] e) { e = Identity (x) }>
        }
        """
        model = self.folder / "branch.onnxtxt"
        model.write_text(text)
        x = np.linspace(-30, 3, 64, dtype=np.float32)
        sigmoid = 1 / (1 + np.exp(-x.astype(np.float64)))
        out = self.folder / "branch"
        out.mkdir()

        def verdict(values: np.ndarray, taken: bool = True) -> str:
            write_npz(out / "values.npz", {"branch": np.array(taken), "x": x, "y": values.astype(np.float32)})
            return self.report(out, model=model)["verdict"]

        self.assertNotEqual(verdict(x * np.where(sigmoid < 2.0**-24, 0, sigmoid)), "bug")
        self.assertEqual(verdict(x * np.where(sigmoid < 2.0**-12, 0, sigmoid)), "bug")
        self.assertEqual(verdict(x * sigmoid * (1 + 2.0**-10)), "bug")
        self.assertEqual(verdict(x, False), "identical")

    def verdicts_of(self, text: str, values: dict[str, np.ndarray], *arguments: str) -> dict[str, tuple[str, str | None]]:
        model = self.folder / "net.onnxtxt"
        model.write_text(text if text.startswith("<") else f'<ir_version: 10, opset_import: ["": 22]>\ng {text}')
        out = self.folder / "values"
        out.mkdir(exist_ok=True)
        write_npz(out / "values.npz", values)
        return {each["node"]: (each["verdict"], each["condition"]) for each in self.report(out, *arguments, model=model)["nodes"]}

    def test_values_that_are_not_recorded_may_overflow_their_dtype(self) -> None:
        text = "(float[3] x) => (float[3] y) {\n  [exp] e = Exp (x)\n  [log] y = Log (e)\n}\n"
        x = np.array([1, 90, 100], np.float32)
        for y, is_bug in (([1, np.inf, np.inf], False), ([1, 90, 100], False), ([1.5, np.inf, np.inf], True), ([np.inf, np.inf, np.inf], True)):
            with self.subTest(y=y):
                self.assertEqual(self.verdicts_of(text, {"x": x, "y": np.array(y, np.float32)})["log"][0] == "bug", is_bug)

    def test_noise_passes_through_sequences(self) -> None:
        text = "(float[100] x) => (float[200] y) {\n  [exp] e = Exp (x)\n  [pack] s = SequenceConstruct (e, e)\n  [unpack] y = ConcatFromSequence <axis = 0> (s)\n}\n"
        x = np.linspace(-3, 3, 100, dtype=np.float32)
        right = np.tile(np.exp(x.astype(np.float64)).astype(np.float32), 2)
        above = np.nextafter(right, np.float32(np.inf), dtype=np.float32)
        self.assertEqual(self.verdicts_of(text, {"x": x, "y": np.where(np.arange(200) % 3 == 0, above, right)})["unpack"][0], "explained")
        self.assertEqual(self.verdicts_of(text, {"x": x, "y": right * np.float32(1.001)})["unpack"][0], "bug")

    def test_values_stay_unrounded_along_many_nodes(self) -> None:
        """More nodes than are computed again with many replicas at most, between constants that nobody records."""
        count = 80
        factors = np.random.default_rng(1).uniform(0.9, 1.1, count).astype(np.float16)
        lines = "".join(f"  [c{i}] h{i} = Constant <value = float16 {{{int(bits)}}}> ()\n  [m{i}] v{i + 1} = Mul (v{i}, h{i})\n" for i, bits in enumerate(factors.view(np.uint16)))
        text = f"(float16[50] v0) => (float16[50] v{count}) {{\n{lines}}}\n"
        current = np.random.default_rng(0).standard_normal(50).astype(np.float16).astype(np.float64)
        values = {"v0": current.astype(np.float16)}
        for i, factor in enumerate(factors):
            current = current * float(factor)
            values[f"v{i + 1}"] = current.astype(np.float16)
        verdicts = self.verdicts_of(text, values)
        self.assertEqual([node for node, (verdict, _) in verdicts.items() if verdict == "bug"], [])
        self.assertIn(("explained-if", "wide-intermediates"), verdicts.values())
        self.assertEqual(self.verdicts_of(text, values | {"v40": values["v40"] * np.float16(1.01)})["m39"][0], "bug")

    def test_what_cancels_unrounded_values_says_nothing(self) -> None:
        """Some values are read as they are stored, and some as they were computed: of what is left of 4096 both say nothing."""
        text = """(float16[64] x) => (float16[64] a) <float three = {3}, float factor = {1.1}, float large = {4096}, float less = {4094}> {
          [h3] t = Cast <to = 10> (three)
          [hf] f = Cast <to = 10> (factor)
          [hl] l = Cast <to = 10> (large)
          [hm] m = Cast <to = 10> (less)
          [stored] p = Mul (x, t)
          [kept] q = Mul (p, f)
          [plus] c = Add (q, l)
          [minus] a = Sub (c, m)
        }
        """
        x = np.random.default_rng(0).uniform(-1, 1, 64).astype(np.float16)
        p = x * np.float16(3)
        q = p.astype(np.float64) * float(np.float16(1.1))
        constants = {"t": np.array(3, np.float16), "f": np.array(1.1, np.float16), "l": np.array(4096, np.float16), "m": np.array(4094, np.float16)}
        values = {"x": x, "p": p, "q": q.astype(np.float16), "c": (q + 4096).astype(np.float16), "a": (q + 2).astype(np.float16), **constants}
        verdicts = self.verdicts_of(text, values)
        self.assertEqual(verdicts["minus"], ("ill-conditioned", "wide-intermediates"))
        self.assertNotIn("bug", [verdict for verdict, _ in verdicts.values()])
        self.assertEqual(self.verdicts_of(text, values | {"a": (q + 30).astype(np.float16)})["minus"][0], "bug")

    def test_equal_values_are_rounded_equally(self) -> None:
        """A product of 40 equal factors, which were not rounded before it read them, is off by 40 times what one is."""
        text = """(float16[64, 40] x) => (float16[64] y) <float three = {3}, float factor = {1.1}, float less = {0.3}, int64[1] axes = {1}> {
          [h3] t = Cast <to = 10> (three)
          [hf] f = Cast <to = 10> (factor)
          [hl] l = Cast <to = 10> (less)
          [stored] p = Mul (x, t)
          [kept] q = Mul (p, f)
          [again] r = Mul (q, l)
          [product] y = ReduceProd <keepdims = 0> (r, axes)
        }
        """
        x = np.repeat(np.random.default_rng(0).uniform(0.95, 1.05, (64, 1)), 40, axis=1).astype(np.float16)
        constants = {"t": np.array(3, np.float16), "f": np.array(1.1, np.float16), "l": np.array(0.3, np.float16)}
        p = x * constants["t"]
        q = p.astype(np.float64) * float(constants["f"])
        r = q * float(constants["l"])
        values = {"x": x, "p": p, "q": q.astype(np.float16), "r": r.astype(np.float16), "y": np.prod(r, axis=1).astype(np.float16), **constants}
        self.assertEqual(self.verdicts_of(text, values)["product"], ("explained-if", "wide-intermediates"))
        self.assertEqual(self.verdicts_of(text, values | {"y": (np.prod(r, axis=1) * 1.5).astype(np.float16)})["product"][0], "bug")

    def test_negative_extents_fix_nothing(self) -> None:
        model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 21]>\ng (float[n, 3] x) => (float[n, 3] y) { y = Relu (x) }')
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
        onnx.save(model, self.folder / "negative.onnx")
        out = self.folder / "negative"
        out.mkdir()
        write_npz(out / "values.npz", {"x": np.ones((2, 3), np.float32), "y": np.ones((2, 3), np.float32)})
        self.assertEqual(self.report(out, model=self.folder / "negative.onnx")["verdict"], "identical")

    def test_random_nodes_are_not_compared_and_later_ones_read_what_was_drawn(self) -> None:
        text = """<ir_version: 10, opset_import: ["": 21]>
        g (float[8, 64] x, bool training, bool branch) => (float[8, 64] y) <float ratio = {0.4}> {
          [drop] d, mask = Dropout <seed = 1> (x, ratio, training)
          [after] a = Mul (d, d)
          [noise] r = RandomNormalLike <seed = 1.0> (a)
          [sum] s = Add (a, r)
          [hits] h = Bernoulli <dtype = 1, seed = 1.0> (mask_ratio)
          [either] e = If (branch) <then_branch = drawn () => (float[8, 64] t) { t = RandomUniform <shape = [8, 64], seed = 1.0> () },
            else_branch = plain () => (float[8, 64] u) { u = Exp (x) }>
          [both] b = Add (s, e)
          [out] y = Mul (b, h)
        }
        """.replace("[hits]", "[ratios] mask_ratio = Sigmoid (x)\n          [hits]")
        model = self.folder / "random.onnx"
        onnx.save(onnx.parser.parse_model(text), model)
        def skipped(out: Path, *arguments: str) -> set[str]:
            document = self.report(out, *arguments, model=model)
            self.assertNotEqual(document["verdict"], "bug", document)
            self.assertEqual({each["reason"] for each in document["skipped"]} - {"it draws random numbers"}, set())
            return {each["node"] for each in document["skipped"]}
        for training, branch, expected in ((True, True, {"drop", "noise", "hits", "either"}), (False, False, {"noise", "hits"})):
            for name, value in (("training", training), ("branch", branch)):
                np.save(self.folder / f"{name}.npy", np.array(value))
            out = self.folder / f"random-{training}"
            recorded(model, out, inputs=[f"{name}={self.folder}/{name}.npy" for name in ("training", "branch")])
            for arguments in ([], ["--chained"]):
                self.assertEqual(skipped(out, *arguments), expected)
        values = dict(np.load(self.folder / "random-True/values-0000.npz"))
        del values["r"]
        out = self.folder / "without-draws"
        out.mkdir()
        write_npz(out / "values.npz", values)
        document = self.report(out, model=model)
        self.assertNotEqual(document["verdict"], "bug")
        self.assertIn({"node": "sum", "op": "Add", "reason": "nothing is known of its operand `r`"}, document["skipped"])
        self.refuses("`h` is recorded as [3]", self.changed(values | {"h": np.zeros(3, np.float32)}), model=model)

    def changed(self, arrays: dict[str, np.ndarray]) -> Path:
        out = self.folder / f"changed-{len(list(self.folder.iterdir()))}"
        out.mkdir()
        write_npz(out / "values.npz", arrays)
        return out

    def test_the_first_bug_is_written_as_a_model_by_itself(self) -> None:
        recorded(self.model, self.folder / "r")
        arrays = dict(np.load(self.folder / "r/values-0000.npz"))
        n = np.array(arrays["n"])
        n[2] *= 2
        del arrays["h"]
        out = self.folder / "alone"
        result = self.compare(self.changed(arrays | {"n": n}), "--reproduce", str(out))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"the first bug by itself: {out}/model.onnx", result.stdout)
        model = onnx.load(out / "model.onnx")
        onnx.checker.check_model(model, full_check=True)
        self.assertEqual([node.op_type for node in model.graph.node], ["LayerNormalization"])
        data = ["--inputs", str(out / "test_data_set_0"), "--expect", str(out / "test_data_set_0")]
        run = subprocess.run([TOOL, "run", str(out / "model.onnx"), *data], capture_output=True, text=True, timeout=120)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        session = onnxruntime.InferenceSession(out / "model.onnx", providers=["CPUExecutionProvider"])
        inputs = {each.name: onnx.numpy_helper.to_array(onnx.load_tensor(out / f"recorded/input_{i}.pb")) for i, each in enumerate(model.graph.input)}
        right = onnx.numpy_helper.to_array(onnx.load_tensor(out / "test_data_set_0/output_0.pb"))
        np.testing.assert_allclose(session.run(None, inputs)[0], right, rtol=1e-5, atol=1e-5)
        again = self.report(out / "recorded", model=out / "model.onnx")
        self.assertEqual(again["first"]["node"], "norm")
        self.assertIn("expected a new or an empty folder", self.compare(self.folder / "r", "--reproduce", str(out)).stderr)
        self.assertEqual(self.compare(self.folder / "r", "--reproduce", str(self.folder / "none")).returncode, 0)
        self.assertFalse((self.folder / "none").exists())

    def test_a_node_by_itself_keeps_its_graphs_functions_and_weights(self) -> None:
        text = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
        g (float[4, 4] x, bool c, float[2, 4] z) => (float[4, 4] y, float[4, 4] w) <float[4, 4] weight = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}> {
          [scaled] s = Mul (x, weight)
          [either] y = If (c) <then_branch = a () => (float[4, 4] t) { t = Add (s, weight) }, else_branch = b () => (float[4, 4] u) { u = Sub (s, x) }>
          [twice] w = own.twice (y)
        }
        <opset_import: ["": 21], domain: "own">
        twice (p) => (q) { q = Add (p, p) }
        """
        model = self.folder / "nested.onnx"
        onnx.save(onnx.parser.parse_model(text), model)
        np.save(self.folder / "c.npy", np.array(True))
        recorded(model, self.folder / "n", inputs=[f"c={self.folder}/c.npy"])
        arrays = dict(np.load(self.folder / "n/values-0000.npz"))
        for name, node in (("y", "either"), ("w", "twice")):
            out = self.folder / f"alone-{node}"
            wrong = self.changed(arrays | {name: arrays[name] + np.float32(1)})
            self.assertEqual(self.compare(wrong, "--reproduce", str(out), model=model).returncode, 1)
            alone = onnx.load(out / "model.onnx")
            onnx.checker.check_model(alone, full_check=True)
            self.assertEqual([each.name for each in alone.graph.initializer], ["weight"] if node == "either" else [])
            self.assertEqual(self.report(out / "recorded", model=out / "model.onnx")["first"]["node"], node)

    def empty_folder(self) -> Path:
        out = self.folder / "empty"
        out.mkdir(exist_ok=True)
        return out

    def test_damaged_archives_are_refused(self) -> None:
        bytes_ = (self.arrays() / "values.npz").read_bytes()
        for size in (0, 1, 21, 100, len(bytes_) // 2, len(bytes_) - 30, len(bytes_) - 1):
            out = self.folder / f"cut-{size}"
            out.mkdir()
            (out / "values.npz").write_bytes(bytes_[:size])
            self.refuses("values.npz", out)
        middle = bytearray(bytes_)
        middle[len(bytes_) // 2] ^= 0x55
        out = self.folder / "flipped"
        out.mkdir()
        (out / "values.npz").write_bytes(bytes(middle))
        self.refuses("checksum", out)

    def test_recordings_that_say_nothing_are_refused(self) -> None:
        self.refuses("has no recorded values", self.changed({}))
        self.refuses("unknown format `none`; there are text, json and html", self.changed({}), "--format", "none")
        for option, form in (("--window", "a number of bytes, at least 1"), ("--threads", "a number from 1 to 256")):
            self.refuses(f"`{option}=none`: expected {form}", self.changed({}), option, "none")
        (self.empty_folder() / "values.npz").write_bytes(b"")
        self.refuses("values.npz", self.empty_folder())
        other = self.folder / "other.onnx"
        onnx.save(onnx.parser.parse_model(NETWORK.replace(" h", " hidden").replace("(h", "(hidden")), other)
        recorded(other, self.folder / "of-another")
        self.refuses("the model has no value `hidden`", self.folder / "of-another")
        self.refuses("has no value `scal`; did you mean `scale`?", self.changed({"scal": np.zeros(1)}))
        self.refuses("`p` is recorded as int32, and float32 in the model: record it in the dtype of the model", self.changed({**dict(np.load(self.arrays() / "values.npz")), "p": np.zeros((6, 64), np.int32)}))
        larger = self.folder / "larger.onnx"
        onnx.save(onnx.parser.parse_model(NETWORK.replace("6, 48", "7, 48").replace("6, 64", "7, 64")), larger)
        recorded(larger, self.folder / "of-a-larger-one")
        self.refuses("the input `x` is recorded as [7, 48], and the model declares [6, 48]", self.folder / "of-a-larger-one")

    def test_values_that_are_not_numbers_are_a_bug_where_they_begin(self) -> None:
        recorded(self.model, self.folder / "r")
        arrays = dict(np.load(self.folder / "r/values-0000.npz"))
        nans = {name: np.full_like(array, np.nan) for name, array in arrays.items() if name in ("n", "a", "s", "y")}
        document = self.report(self.changed(arrays | nans))
        self.assertEqual((document["first"]["node"], document["first"]["cause"]), ("norm", "not a number where the reference is one"))
        self.assertEqual([each["verdict"] for each in document["nodes"]], ["explained", "identical", "bug", "identical", "identical", "identical"])
        everywhere = {name: np.full_like(array, np.nan) for name, array in arrays.items()}
        self.assertEqual(self.report(self.changed(everywhere))["verdict"], "identical")

    def test_damaged_arrays_are_refused(self) -> None:
        recorded(self.model, self.folder / "r")
        h = dict(np.load(self.folder / "r/values-0000.npz"))["h"]
        whole = io.BytesIO()
        np.save(whole, h)
        good = whole.getvalue()
        damaged = {
            "7 more bytes than elements take": good + b"\0" * 7,
            "ends before its elements do": good[:-1],
            "the header is longer than the file": good[:100],
            "not a .npy file": good[:5],
            "not a .npy file of format 1 to 3": good[:6] + b"\x09" + good[7:],
            "the header has an entry `shope`": good.replace(b"'shape'", b"'shope'"),
            "the shape is not a tuple of extents": good.replace(b"(6, 64)", b"(-6,64)"),
            "is not supported": good.replace(b"<f4", b"|O4"),
            "ends before": good.replace(b"(6, 64), }", b"(6, 64000000000), }")[: len(good)],
        }
        for i, (what, data) in enumerate(damaged.items()):
            with self.subTest(what=what):
                out = self.folder / f"damaged-{i}"
                out.mkdir()
                (out / "h.npy").write_bytes(data)
                for name in ("x", "w", "b", "scale", "shift"):
                    np.save(out / f"{name}.npy", dict(np.load(self.folder / "r/values-0000.npz"))[name])
                self.refuses(what, out)

    def test_a_zip_bomb_is_refused_within_the_window(self) -> None:
        out = self.arrays()
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 30,)})
        with zipfile.ZipFile(out / "values-1.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open("zz.npy", "w", force_zip64=True) as member:
            member.write(header.getvalue())
            for _ in range(256):
                member.write(bytes(1 << 20))
        self.refuses("the model has no value `zz`", out)
        (out / "values.npz").unlink()
        bomb = self.folder / "bomb"
        bomb.mkdir()
        with zipfile.ZipFile(bomb / "values.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open("x.npy", "w", force_zip64=True) as member:
            for _ in range(256):
                member.write(bytes(1 << 20))
        for name in ("w", "b", "scale", "shift", "p"):
            np.save(bomb / f"{name}.npy", dict(np.load(self.folder / "r/values-0000.npz"))[name])
        self.refuses("(--window)", bomb, "--window", str(1 << 24))

    def test_contracts_are_files_of_statements(self) -> None:
        strict = self.folder / "strict.txt"
        strict.write_text("engine strict  # nothing is granted\nfunction gelu 0 0\n")
        out = self.arrays()
        self.assertEqual([node["node"] for node in self.report(out, "--contract", str(strict))["nodes"] if node["verdict"] == "bug"], ["act"])
        faults = {
            "function gelu -1 0": "line 2: expected `function NAME ULPS ROUNDOFFS`, two numbers that are not negative",
            "function exxp 1 0": "line 2: there is no function `exxp`; did you mean `exp`?: expected `function NAME",
            "tf32 Yes": "line 2: there is no operator `Yes`",
            "tf32 MatMull": "line 2: there is no operator `MatMull`; did you mean `MatMul`?: expected `tf32 yes`, `tf32 no` or `tf32 OPERATOR...`",
            "tf32 yes MatMul": "line 2: there is no operator `yes`",
            "quantized maybe": "line 2: there is no operator `maybe`: expected `quantized no` or `quantized OPERATOR...`",
            "flush maybe": "line 2: expected `flush yes` or `flush no`",
            "operation": "line 2: expected `operation ULPS`",
            "accumulate float16 float8": "line 2: expected `accumulate DTYPE DTYPE`, two of float64, float32, float16 and bfloat16",
            "ulps 3": "line 2: there is no statement `ulps`: expected one of `engine`, `operation`, `function`",
        }
        for statement, what in faults.items():
            with self.subTest(statement=statement):
                strict.write_text(f"engine strict\n{statement}\n")
                self.refuses(what, out, "--contract", str(strict))
        self.refuses("those that come with the program are onnxruntime-cpu, onnxruntime-cuda, tensorlint-cuda, torch-cpu, torch-cuda", out, "--contract", "none")

    def test_what_a_contract_grants_is_in_the_bounds_of_every_mode(self) -> None:
        draw = np.random.default_rng(1)
        x, v, w = (draw.standard_normal(shape).astype(np.float32) for shape in ((24, 64), (64, 48), (48, 40)))

        def in_tf32(array: np.ndarray) -> np.ndarray:
            bits = array.astype(np.float32).view(np.uint32)
            return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)

        p = (in_tf32(x) @ in_tf32(v)).astype(np.float32)
        r = np.maximum(p, 0)
        values: dict[str, np.ndarray] = {"x": x, "v": v, "w": w, "p": p, "r": r, "y": (in_tf32(r) @ in_tf32(w)).astype(np.float32)}
        text = """<ir_version: 10, opset_import: ["": 21]>
        g (float[24, 64] x, float[64, 48] v, float[48, 40] w) => (float[24, 40] y) { [p] p = MatMul (x, v)  [r] r = Relu (p)  [y] y = MatMul (r, w) }"""
        granted = self.folder / "granted.txt"
        granted.write_text("engine some\ntf32 yes\n")
        contract = ("--contract", str(granted))
        partly: dict[str, np.ndarray] = {name: array for name, array in values.items() if name not in ("p", "r")}
        for values_of_run, options in ((values, ()), (values, ("--chained",)), (partly, ()), (partly, ("--chained",))):
            with self.subTest(options=options, values=len(values_of_run)):
                self.assertLessEqual({verdict for verdict, _ in self.verdicts_of(text, values_of_run, *options, *contract).values()}, {"identical", "explained"})
        # Undeclared it is named where nodes are by themselves and along a chain; and a fault beyond it stays one.
        self.assertEqual(self.verdicts_of(text, values)["p"], ("explained-if", "tf32"))
        self.assertEqual(self.verdicts_of(text, values, "--chained")["p"], ("explained-if", "tf32"))
        wrong = values["y"] * np.float32(1.01)
        for run in (values, partly):
            for options in ((), ("--chained",)):
                self.assertEqual(self.verdicts_of(text, run | {"y": wrong}, *options, *contract)["y"][0], "bug")

    def test_weights_in_bfloat16_explain_chains_and_stretches(self) -> None:
        draw = np.random.default_rng(8)
        shapes = {"x": (24, 64), "v": (64, 48), "w": (48, 40)}
        values: dict[str, np.ndarray] = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        text = """<ir_version: 10, opset_import: ["": 21]>
        g (float[24, 64] x) => (float[24, 40] y) { [p] p = MatMul (x, v)  [r] r = Relu (p)  [y] y = MatMul (r, w) }"""
        model = onnx.parser.parse_model(text)
        model.graph.initializer.extend(onnx.numpy_helper.from_array(values[name], name) for name in ("v", "w"))
        onnx.save(model, self.model)

        def narrow(array: np.ndarray) -> np.ndarray:
            bits = array.view(np.uint32)
            return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)

        p = (values["x"].astype(np.float64) @ narrow(values["v"])).astype(np.float32)
        r = np.maximum(p, 0)
        full = {"x": values["x"], "p": p, "r": r, "y": (r.astype(np.float64) @ narrow(values["w"])).astype(np.float32)}
        partly = {name: full[name] for name in ("x", "y")}
        for run, options in ((full, ()), (full, ("--chained",)), (partly, ()), (partly, ("--chained",))):
            with self.subTest(options=options, values=len(run)):
                nodes = {each["node"]: each for each in self.report(self.changed(run), *options)["nodes"]}
                self.assertEqual((nodes["y"]["verdict"], nodes["y"]["condition"]), ("explained-if", "bf16-weights"))
                self.assertEqual(self.report(self.changed(run | {"y": full["y"] * np.float32(1.01)}), *options)["verdict"], "bug")

    def test_tf32_is_named_where_the_factors_are_not_recorded(self) -> None:
        draw = np.random.default_rng(9)
        shapes = {"x": (24, 64), "v": (64, 48), "w": (48, 40)}
        values: dict[str, np.ndarray] = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        text = """<ir_version: 10, opset_import: ["": 21]>
        g (float[24, 64] x) => (float[24, 40] z) { [p] p = MatMul (x, v)  [r] r = Relu (p)  [y] y = MatMul (r, w)  [z] z = Sigmoid (y) }"""
        model = onnx.parser.parse_model(text)
        model.graph.initializer.extend(onnx.numpy_helper.from_array(values[name], name) for name in ("v", "w"))
        onnx.save(model, self.model)

        def tf32(array: np.ndarray) -> np.ndarray:
            bits = array.view(np.uint32)
            return ((bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)

        r = np.maximum((tf32(values["x"]) @ tf32(values["v"])).astype(np.float32), 0)
        y = (tf32(r) @ tf32(values["w"])).astype(np.float32)
        z = (1 / (1 + np.exp(-y.astype(np.float64)))).astype(np.float32)
        for mode in ("--isolated", "--chained"):
            for run in ({"x": values["x"], "z": z}, {"x": values["x"], "r": r, "z": z}):
                with self.subTest(mode=mode, values=len(run)):
                    nodes = {each["node"]: each for each in self.report(self.changed(run), mode)["nodes"]}
                    self.assertEqual((nodes["z"]["verdict"], nodes["z"]["condition"]), ("explained-if", "tf32"))
                    self.assertEqual(self.report(self.changed(run | {"z": z * np.float32(1.0001)}), mode)["verdict"], "bug")

    def test_a_chain_goes_on_under_the_condition_that_explains_a_node(self) -> None:
        draw = np.random.default_rng(2)
        x, v = draw.standard_normal((16, 32)).astype(np.float32), draw.standard_normal(32).astype(np.float16)
        text = """<ir_version: 10, opset_import: ["": 21]>
        g (float[16, 32] x, float16[32] v) => (float16[16, 32] s) { [a] a = Exp (x)  [h] h = Cast <to = 10> (a)  [z] z = Mul (h, v)  [s] s = Sigmoid (z) }"""
        a = np.exp(x.astype(np.float64)).astype(np.float32)
        z = a.astype(np.float64) * v.astype(np.float64)  # the engine leaves out the conversion
        s = 1 / (1 + np.exp(-z))
        values: dict[str, np.ndarray] = {"x": x, "v": v, "a": a, "h": a.astype(np.float16), "z": z.astype(np.float16), "s": s.astype(np.float16)}
        verdicts = self.verdicts_of(text, values, "--chained")
        self.assertEqual(verdicts["z"], ("explained-if", "wide-intermediates"))
        self.assertIn(verdicts["s"][0], ("identical", "explained"))
        self.assertEqual(self.verdicts_of(text, values | {"z": (z * 1.01).astype(np.float16)}, "--chained")["z"][0], "bug")

    def test_a_chain_goes_on_where_a_condition_says_nothing(self) -> None:
        x = np.random.default_rng(9).standard_normal((16, 32)).astype(np.float32)
        v = np.nextafter(np.exp(x.astype(np.float64)).astype(np.float16), np.float16(0))
        text = """<ir_version: 10, opset_import: ["": 21]>
        g (float[16, 32] x, float16[16, 32] v) => (float16[16, 32] s) { [a] a = Exp (x)  [h] h = Cast <to = 10> (a)  [z] z = Sub (h, v)  [s] s = Sigmoid (z) }"""
        a = np.exp(x.astype(np.float64)).astype(np.float32)
        z = (a.astype(np.float64) - v.astype(np.float64)).astype(np.float16)  # as small as what the conversion rounds off
        s = 1 / (1 + np.exp(-z.astype(np.float64)))
        verdicts = self.verdicts_of(text, {"x": x, "v": v, "a": a, "h": a.astype(np.float16), "z": z, "s": s.astype(np.float16)}, "--chained")
        self.assertEqual(verdicts["z"], ("ill-conditioned", "wide-intermediates"))
        self.assertIn(verdicts["s"][0], ("identical", "explained"))

    def test_moved_elements_are_those_of_the_recorded_operand(self) -> None:
        x = np.random.default_rng(3).standard_normal((8, 16)).astype(np.float16)
        text = """<ir_version: 10, opset_import: ["": 21]>
        g (float16[8, 16] x) => (float16[16, 8] z) { [y] y = Exp (x)  shape = Constant <value_ints = [16, 8]> ()  [z] z = Reshape (y, shape) }"""
        y = np.exp(x.astype(np.float64)).astype(np.float16)
        z = y.reshape(16, 8).copy()
        self.assertEqual(self.verdicts_of(text, {"x": x, "y": y, "z": z})["z"], ("identical", None))
        z[3, :4] = np.nextafter(z[3, :4], np.float16(np.inf))
        self.assertEqual(self.verdicts_of(text, {"x": x, "y": y, "z": z})["z"], ("bug", None))

    def test_one_element_is_no_sum_in_half_precision(self) -> None:
        draw = np.random.default_rng(4)
        x, w = draw.standard_normal((16, 32)).astype(np.float16), draw.standard_normal((32, 32)).astype(np.float16)
        text = '<ir_version: 10, opset_import: ["": 21]> g (float16[16, 32] x, float16[32, 32] w) => (float16[16, 32] y) { [y] y = MatMul (x, w) }'
        right = (x.astype(np.float64) @ w.astype(np.float64)).astype(np.float16)
        in_half = np.zeros((16, 32), np.float16)
        for k in range(32):
            in_half = (in_half + (x[:, k : k + 1] * w[k]).astype(np.float16)).astype(np.float16)
        one = right.copy()
        one[3, 5] += np.float16(0.02)
        self.assertEqual(self.verdicts_of(text, {"x": x, "w": w, "y": in_half})["y"], ("explained-if", "fp16-accumulate"))
        self.assertEqual(self.verdicts_of(text, {"x": x, "w": w, "y": one})["y"], ("bug", None))

    def test_short_sums_have_no_order_beyond_their_bound(self) -> None:
        x = np.random.default_rng(5).standard_normal((30, 32)).astype(np.float32)
        text = """<ir_version: 10, opset_import: ["": 21]>
        g (float[30, 32] x, float[32] s) => (float[30, 32] y) { [y] y = LayerNormalization <epsilon = 1e-5> (x, s) }"""
        wide = x.astype(np.float64)
        y = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 2e-5)
        self.assertEqual(self.verdicts_of(text, {"x": x, "s": np.ones(32, np.float32), "y": y.astype(np.float32)})["y"], ("bug", None))

    def test_transforms_of_any_length_have_the_errors_of_their_angles(self) -> None:
        text = '<ir_version: 10, opset_import: ["": 18]> g (float[1, 1000, 1] x) => (float[1, 1000, 2] y) { [y] y = DFT (x) }'
        onnx.save(onnx.parser.parse_model(text), self.model)
        for seed in range(3):
            out = self.folder / f"transform-{seed}"
            recorded(self.model, out, seed=seed)
            for option in ("--isolated", "--chained"):
                self.assertEqual(self.report(out, option)["verdict"], "explained")

    def with_table(self, table: np.ndarray) -> str:
        numbers = ", ".join(repr(float(each)) for each in table.ravel())
        return f"""<ir_version: 10, opset_import: ["": 21]>
        g (float[4, 9, 8] x) => (float[4, 9, 8] y) <float[9, 8] table = {{{numbers}}}> {{ [y] y = Mul (x, table) }}"""

    def test_constants_that_an_exporter_folded(self) -> None:
        table = np.sin(np.arange(72, dtype=np.float32)).reshape(9, 8)
        own = table.copy()
        own.ravel()[::7] = np.nextafter(own.ravel()[::7], np.float32(2))
        x = np.random.default_rng(6).standard_normal((4, 9, 8)).astype(np.float32)
        values, torch = {"x": x, "y": x * own}, ("--contract", "torch-cpu")
        text = self.with_table(table)
        self.assertEqual(self.verdicts_of(text, values)["y"], ("bug", None))
        self.assertEqual(self.verdicts_of(text, values, *torch)["y"], ("explained-if", "own-constants"))
        self.assertEqual(self.verdicts_of(text, values | {"y": x * own * np.float32(1.0001)}, *torch)["y"][0], "bug")
        # Recorded, it is what the node read, unless it is another constant.
        self.assertEqual(self.verdicts_of(text, values | {"table": own})["y"], ("identical", None))
        onnx.save(onnx.parser.parse_model(text), self.model)
        report = self.report(self.changed(values | {"table": own}))
        self.assertEqual(len(report["notes"]), 1)
        self.assertIn("11 of 72 elements of the constant `table` are recorded with other numbers", report["notes"][0])
        report = self.report(self.changed(values | {"table": own + 1}))
        self.assertIn("nodes are given the model's", report["notes"][0])
        self.assertEqual(report["verdict"], "bug")
        self.refuses("the constant `table` is recorded as [9], and is [9, 8] in the model", self.changed(values | {"table": own[:, 0]}))

    def test_a_bug_that_folded_weights_may_be_says_so(self) -> None:
        draw = np.random.default_rng(7)
        x, w = draw.standard_normal((8, 256)).astype(np.float16), draw.standard_normal((256, 8)).astype(np.float32)
        folded, gain = (w * np.float32(1.37)).astype(np.float16), np.float64(1.37)
        text = """<ir_version: 10, opset_import: ["": 21]>
        g (float16[8, 256] x) => (float16[8, 8] y) { [y] y = MatMul (x, w) }"""
        model = onnx.parser.parse_model(text)
        model.graph.initializer.append(onnx.numpy_helper.from_array(folded, "w"))
        onnx.save(model, self.model)
        out = self.changed({"x": x, "y": (x.astype(np.float64) @ w.astype(np.float16).astype(np.float64) * gain).astype(np.float16)})
        report = self.report(out, "--contract", "torch-cpu")
        self.assertEqual(report["verdict"], "bug")
        self.assertIn("the exporter may have folded another node into them", report["notes"][0])
        self.assertEqual(self.report(out)["notes"], [])

    def test_recordings_in_narrower_floats_are_refused(self) -> None:
        self.arrays()
        h = np.load(self.folder / "r/values-0000.npz")["h"]
        self.refuses("`h` is recorded as float16, and float32 in the model: record it in its own dtype", self.arrays(h=h.astype(np.float16)))

    def test_where_nothing_can_be_compared_the_reason_is_said(self) -> None:
        text = """<ir_version: 10, opset_import: ["": 21, "other": 1]>
        g (float[3] x) => (float[3] z) { [y] y = other.Wave (x)  [z] z = Exp (y) }"""
        onnx.save(onnx.parser.parse_model(text), self.model)
        self.refuses("could be compared with their nodes: node `y`: the operator is not known; node `z`: nothing is known of its operand `y`", self.changed({"x": np.zeros(3, np.float32), "z": np.zeros(3, np.float32)}))


if __name__ == "__main__":
    unittest.main()
