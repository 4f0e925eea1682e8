"""`record.py` refuses arguments that mean nothing and engines that are not there, in a sentence."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from compare_test import NETWORK, ROOT, record, recorded
from onnx import TensorProto, helper, numpy_helper


class RecordArgumentsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.folder / "m.onnx"
        onnx.save(onnx.parser.parse_model(NETWORK), self.model)

    def record(self, *arguments: str, model: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, ROOT / "runtime/compare/record.py", model or self.model, "--out", self.folder / "r", *arguments]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)

    def refuses(self, what: str, *arguments: str, model: Path | None = None) -> None:
        result = self.record(*arguments, model=model)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(what, result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        self.assertFalse((self.folder / "r").exists())

    def test_bad_arguments_are_refused(self) -> None:
        self.refuses("the model has no value `nosuch`", "--values", "p,nosuch")
        self.refuses("the model has no input `zz`: it has `x`, `w`", "--inputs", "zz=")
        self.refuses("the model has no value `nn`; did you mean `n`?", "--values", "p, nn")
        self.refuses("argument --seed: expected at least 0", "--seed", "-1")
        np.save(self.folder / "wide.npy", np.zeros((6, 48)))
        np.save(self.folder / "short.npy", np.zeros((5, 48), np.float32))
        np.savez(self.folder / "many.npz", a=np.zeros(1))
        (self.folder / "text.npy").write_text("hello")
        self.refuses("the input `x` is float64[6, 48], and the model declares float32[6, 48]", "--inputs", f"x={self.folder / 'wide.npy'}")
        self.refuses("the input `x` is float32[5, 48], and the model declares float32[6, 48]", "--inputs", f"x={self.folder / 'short.npy'}")
        self.refuses("text.npy` is not a .npy file with numbers", "--inputs", f"x={self.folder / 'text.npy'}")
        self.refuses("has several arrays: give the input `x` a .npy file", "--inputs", f"x={self.folder / 'many.npz'}")
        self.refuses("none.npy` cannot be read: No such file", "--inputs", f"x={self.folder / 'none.npy'}")
        self.refuses("argument --most: expected at least 1", "--most", "0")
        self.refuses("cannot be read: No such file or directory", model=self.folder / "none.onnx")
        self.refuses("is not an ONNX model", model=Path(__file__))
        self.refuses("--device is of --torch, which is not given", "--device", "cuda")
        for option in (["--seed", "1"], ["--level", "all"], ["--providers", "CPUExecutionProvider"]):
            self.refuses(f"{option[0]} is of onnxruntime, and --torch is given", "--torch", "m.pt2", *option)

    def test_an_engine_that_is_not_there_is_refused(self) -> None:
        self.refuses("this onnxruntime has no provider `NoExecutionProvider`: it has ", "--providers", "NoExecutionProvider,CPUExecutionProvider")
        command = [sys.executable, "-c", f"import sys; sys.modules['onnxruntime'] = None; sys.argv = ['record.py', {str(self.model)!r}, '--out', 'r']; exec(open({str(ROOT / 'runtime/compare/record.py')!r}).read())"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=self.folder)
        self.assertIn("this Python has no onnxruntime", result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        bfloat16 = self.folder / "bf16.onnx"
        onnx.save(onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 22]>\ng (bfloat16[4, 4] x) => (bfloat16[4, 4] y) { y = MatMul (x, x) }\n'), bfloat16)
        self.refuses("or record PyTorch with --torch", model=bfloat16)

    def test_nothing_is_written_beside_a_model_without_external_data(self) -> None:
        beside = set(self.folder.iterdir())
        made: list[str] = []
        original = record.tempfile.NamedTemporaryFile

        def named(*arguments: object, **options: object) -> object:
            made.append(str(options["dir"]))
            return original(*arguments, **options)

        record.tempfile.NamedTemporaryFile = named
        self.addCleanup(setattr, record.tempfile, "NamedTemporaryFile", original)
        recorded(self.model, self.folder / "r")
        self.assertEqual(made, [])
        self.assertEqual(set(self.folder.iterdir()) - beside, {self.folder / "r"})
        weight = numpy_helper.from_array(np.random.default_rng(0).standard_normal((48, 64)).astype(np.float32), "w")
        model = onnx.load(self.model)
        model.graph.initializer.append(weight)
        onnx.save(model, self.folder / "external.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
        recorded(self.folder / "external.onnx", self.folder / "e")
        self.assertEqual(set(made), {str(self.folder)})
        self.assertIn("p", np.load(self.folder / "e/values-0000.npz"))

    def test_lengths_of_sequences_are_drawn_within_them(self) -> None:
        for layout in (0, 1):
            with self.subTest(layout=layout):
                shape = [3, 7, 4] if layout else [7, 3, 4]
                draw = np.random.default_rng(0)
                weights = [numpy_helper.from_array(draw.standard_normal((1, 15, extent)).astype(np.float32), name) for name, extent in (("w", 4), ("r", 5))]
                node = helper.make_node("GRU", ["x", "w", "r", "", "lengths"], ["y", "last"], hidden_size=5, layout=layout)
                infos = [helper.make_tensor_value_info("lengths", TensorProto.INT32, [3]), helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
                graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
                model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10).SerializeToString()
                self.assertEqual(record.sequence_lengths(model), {"lengths": ("x", layout)})
                if layout:
                    continue  # onnxruntime runs only the other one
                path = self.folder / "gru.onnx"
                path.write_bytes(model)
                drawn: set[int] = set()
                for seed in range(8):
                    out = self.folder / f"gru-{seed}"
                    recorded(path, out, seed=seed)
                    drawn |= set(np.load(out / "values-0000.npz")["lengths"].tolist())
                self.assertLessEqual(drawn, set(range(1, 8)))
                self.assertGreater(max(drawn), 3)

    def test_an_output_that_recording_changes_is_named(self) -> None:
        said = recorded(self.model, self.folder / "r")
        self.assertNotIn("when more values are recorded", said)
        run, calls = record.Runner.run, []

        def changing(self: record.Runner, names: list[str], inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            calls.append(names)
            values = run(self, names, inputs)
            return {name: array + len(names) for name, array in values.items()}

        record.Runner.run = changing
        self.addCleanup(setattr, record.Runner, "run", run)
        said = recorded(self.model, self.folder / "r2")
        self.assertIn("output `y` changes when more values are recorded: the engine fuses less then", said)


if __name__ == "__main__":
    unittest.main()
