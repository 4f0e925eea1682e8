"""`tensorlint compare --against onnxruntime`: the recorder runs as a child process; and memory stays within the window."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np
import onnx
from compare_test import NETWORK, ROOT, TOOL, record, recorded


class EngineTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.folder / "m.onnx"
        onnx.save(onnx.parser.parse_model(NETWORK), self.model)

    def compare(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([TOOL, "compare", *map(str, arguments)], capture_output=True, text=True, timeout=120)

    def test_the_package_of_a_python_is_the_other_engine(self) -> None:
        live = ["--against", "onnxruntime", "--python", sys.executable]
        result = self.compare(self.model, *live, "--seed", 5)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("6 compared values", result.stdout)
        np.save(self.folder / "x.npy", np.full((6, 48), np.nan, np.float32))
        self.assertEqual(self.compare(self.model, *live, "--inputs", f"x={self.folder}/x.npy").returncode, 0)
        np.save(self.folder / "x.npy", np.zeros((6, 47), np.float32))
        result = self.compare(self.model, *live, "--inputs", f"x={self.folder}/x.npy")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("onnxruntime did not record the model", result.stderr)
        self.assertIn("cannot be started: name a Python that has onnxruntime", self.compare(self.model, "--against", "onnxruntime", "--python", self.folder / "none").stderr)
        self.assertIn("not ONNX text", self.compare(ROOT / "tests/rules/shape/reduction-axis-out-of-range/ok_last_axis.onnxtxt", *live).stderr)
        self.assertIn("--seed works with --against onnxruntime", self.compare(self.model, "--against", self.folder, "--seed", 1).stderr)

    def test_values_of_all_kinds_of_dtypes_come_from_a_device(self) -> None:
        text = """<ir_version: 10, opset_import: ["" : 21]>
g (float[3] x) => (float[3] a, bfloat16[3] b, int4[3] i, bool[3] m, string[3] s, float16[3] h, float[3] a)
<float[3] z = {0, 0, 0}>
{
  a = Abs (x)  b = Cast <to = 16> (x)  i = Cast <to = 22> (a)
  m = Greater (x, z)  s = Cast <to = 8> (x)  h = Cast <to = 10> (x)
}
"""
        model = self.folder / "dtypes.onnxtxt"
        model.write_text(text)
        result = self.compare(model, "--against", "emulated:0")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("6 compared values: 6 identical", result.stdout)

    def test_folders_of_inputs_are_given_to_the_other_engine(self) -> None:
        live = ["--against", "onnxruntime", "--python", sys.executable]
        inputs = self.folder / "inputs"
        inputs.mkdir()
        draw = np.random.default_rng(0)
        for i, shape in enumerate(((6, 48), (48, 64), (64,), (64,), (64,))):
            array = draw.standard_normal(shape).astype(np.float32)
            if i % 2:
                np.save(inputs / f"input_{i}.npy", array)
            else:
                (inputs / f"input_{i}.pb").write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())
        result = self.compare(self.model, *live, "--inputs", inputs)
        self.assertEqual((result.returncode, result.stderr.splitlines()[1:]), (0, []), result.stderr)
        self.assertIn("6 compared values", result.stdout)
        (inputs / "input_5.npy").write_bytes((inputs / "input_3.npy").read_bytes())
        self.assertIn("has 6 inputs, the model 5", self.compare(self.model, *live, "--inputs", inputs).stderr)
        (inputs / "input_0.pb").write_bytes(b"\x08")
        (inputs / "input_5.npy").unlink()
        self.assertIn("is not a tensor message of ONNX", self.compare(self.model, *live, "--inputs", inputs).stderr)

    def test_a_signal_ends_the_other_engine_and_leaves_no_folder(self) -> None:
        waits = self.started()
        temporary = self.folder / "temporary"
        temporary.mkdir()
        for sent in (signal.SIGINT, signal.SIGTERM):
            (self.folder / "started").unlink(missing_ok=True)
            process = subprocess.Popen([TOOL, "compare", str(self.model), "--against", "onnxruntime", "--python", str(waits)], env={**os.environ, "TMPDIR": str(temporary)}, stderr=subprocess.DEVNULL)
            while not (self.folder / "started").exists():
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            self.assertEqual(len(list(temporary.iterdir())), 1)
            process.send_signal(sent)
            self.assertEqual(process.wait(timeout=30), -sent)
            self.assertEqual(list(temporary.iterdir()), [])

    def test_every_kind_of_tensor_message_is_read(self) -> None:
        for dtype in (np.float32, np.float64, np.float16, np.bool_, np.uint8, np.int8, np.uint16, np.int16, np.int32, np.int64, np.uint32, np.uint64):
            array = np.array([[0, 1, 100], [2, 3, 0]]).astype(dtype) if dtype in (np.bool_, np.uint8, np.uint16, np.uint32, np.uint64) else np.array([[0, -1, 100], [-2, 3, 0]]).astype(dtype)
            elements = array.view(np.uint16) if dtype == np.float16 else array
            for tensor in (onnx.numpy_helper.from_array(array), onnx.helper.make_tensor("t", onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, elements.ravel().tolist() if dtype != np.float16 else array.ravel().tolist())):
                path = self.folder / "t.pb"
                path.write_bytes(tensor.SerializeToString())
                read = record.tensor_in(path)
                self.assertEqual((read.dtype, read.tolist()), (array.dtype, array.tolist()))

    def test_kernels_are_the_other_engine(self) -> None:
        losses = ROOT / "tests/models/losses"
        for name in ("cross_entropy_mean_dynamo", "mse_mean_dynamo", "kl_div_batchmean_dynamo"):
            result = self.compare(losses / f"{name}.onnx", "--against", "emulated:0", "--seed", 3)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("1 compared value:", result.stdout)
        self.assertIn("emulated:9", self.compare(losses / "mse_mean_dynamo.onnx", "--against", "emulated:9").stderr)

    def test_the_root_of_sources_is_a_folder(self) -> None:
        for force in ([], ["--force"]):
            result = self.compare(self.model, "--against", "emulated:0", "--source-root", self.model, *force)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", f"tensorlint: --source-root: {self.model} is not a folder\n"))

    def started(self) -> Path:
        """A program for --python that says that it was started, and waits."""
        waits = self.folder / "waits"
        waits.write_text(f"#!/bin/sh\ntouch {self.folder}/started\nexec sleep 60\n")
        waits.chmod(0o755)
        return waits

    def test_values_of_options_are_refused_before_another_program_runs(self) -> None:
        contract = self.folder / "contract.txt"
        contract.write_text("tf32 maybe\n")
        for option, value, message in (
            ("--format", "pdf", "unknown format `pdf`; there are text, json and html"),
            ("--threads", "0", "`--threads=0`: expected a number from 1 to 256"),
            ("--window", "4G", "`--window=4G`: expected a number of bytes, at least 1"),
            ("--seed", "-1", "`--seed=-1`: expected a whole number that is not negative"),
            ("--time-limit", "soon", "`--time-limit=soon`: expected seconds, fewer than 1e9"),
            ("--contract", "none", "the contract `none`: "),
            ("--contract", contract, "line 1: there is no operator `maybe`"),
            ("--reproduce", self.folder, "expected a new or an empty folder"),
        ):
            result = self.compare(self.model, "--against", "onnxruntime", "--python", self.started(), f"{option}={value}")
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(message, result.stderr)
            self.assertFalse((self.folder / "started").exists())

    def test_the_run_on_a_device_speaks_of_options_of_compare(self) -> None:
        for arguments, message in (
            (["emulated:0", "--window", "100"], "the limit is 100 (--window)"),
            (["emulated:0,emulated:0"], "--against names emulated:0 twice"),
            (["emulated:9"], "emulated:9: there are 2 emulated devices"),
            (["emulated:0", "--seed", "abc"], "`--seed=abc`: expected a whole number that is not negative"),
        ):
            result = self.compare(self.model, "--against", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertTrue(result.stderr.startswith("tensorlint compare: "), result.stderr)
            self.assertIn(message, result.stderr)
            self.assertNotIn("tensorlint run", result.stderr)

    def program_with(self, runner: str) -> str:
        """The tool in a folder with another program in place of the one that executes."""
        shutil.copy(TOOL, self.folder / "tensorlint")
        (self.folder / "tensorlint-run").write_text(f"#!/bin/sh\n{runner}\n")
        (self.folder / "tensorlint-run").chmod(0o755)
        return str(self.folder / "tensorlint")

    def test_programs_get_what_those_before_them_leave_of_the_time_limit(self) -> None:
        program = self.program_with(f"echo $@ >> {self.folder}/calls; sleep 0.2")
        python = self.folder / "python"
        python.write_text("#!/bin/sh\nsleep 0.2\n")
        python.chmod(0o755)
        for arguments, pauses in (
            (["compare", "--against", "emulated:0"], (0, 0.2, 0.4)),
            (["compare", "--against", "onnxruntime", "--python", python], (0, 0.4)),
            (["compare", "--against", self.folder], (0, 0.2)),
            (["run"], (0,)),
        ):
            (self.folder / "calls").unlink(missing_ok=True)
            done = subprocess.run([program, *map(str, arguments), str(self.model), "--time-limit", "90"], capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            left = [float(text) for text in re.findall("--time-limit=([^ ]+)", (self.folder / "calls").read_text())]
            self.assertEqual(len(left), len(pauses))
            for seconds, pause in zip(left, pauses, strict=True):
                self.assertLess(seconds, 90 - pause)
                self.assertGreater(seconds, 1)

    def test_every_program_is_stopped_when_the_time_is_over(self) -> None:
        over = (2, "", "tensorlint compare: stopped: the time limit is over (--time-limit)\n")
        temporary = self.folder / "temporary"
        temporary.mkdir()
        endless = self.folder / "endless.onnx"
        body = "go = Identity (c) w = Add (v, v)"
        onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]>\ng (float[2] x) => (float[2] y) {{ y = Loop <body = b (int64 i, bool c, float[2] v) => (bool go, float[2] w) {{ {body} }}> (, , x) }}'), endless)
        for model, against in ((endless, ["emulated:0"]), (self.model, ["onnxruntime", "--python", str(self.started())])):
            begin = time.monotonic()
            result = subprocess.run([TOOL, "compare", str(model), "--against", *against, "--time-limit", "1"], env={**os.environ, "TMPDIR": str(temporary)}, capture_output=True, text=True, timeout=120)
            self.assertEqual((result.returncode, result.stdout, result.stderr), over)
            self.assertLess(time.monotonic() - begin, 30)
            self.assertEqual(list(temporary.iterdir()), [])
        self.assertTrue((self.folder / "started").exists())
        # The check of the model, which would find an error.
        onnx.save(onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 21]>\ng (float[2] x, float[3] z) => (float[2] y) { y = Add (x, z) }'), self.model)
        result = subprocess.run([self.program_with("exit 0"), "compare", str(self.model), "--against", "emulated:0", "--time-limit", "0.000001"], capture_output=True, text=True, timeout=120)
        self.assertEqual((result.returncode, result.stdout, result.stderr), over)

    def test_modules_of_the_current_folder_are_not_run(self) -> None:
        for module in ("onnxruntime", "numpy", "argparse", "json", "sitecustomize"):
            (self.folder / f"{module}.py").write_text("open('ran', 'w')\nraise SystemExit(7)\n")
        result = subprocess.run([TOOL, "compare", self.model, "--against", "onnxruntime", "--python", sys.executable], capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse((self.folder / "ran").exists())

    def test_a_python_that_dies(self) -> None:
        python = self.folder / "python"
        python.write_text("#!/bin/sh\nkill -SEGV $$\n")
        python.chmod(0o755)
        result = self.compare(self.model, "--against", "onnxruntime", "--python", python)
        self.assertEqual(result.returncode, 2)
        self.assertIn("signal 11 ended Python", result.stderr)

    def test_values_of_four_times_the_window_are_compared_within_it(self) -> None:
        nodes, extent = 96, 256
        steps = ["Mul", "Add", "Sigmoid", "Tanh", "Sub", "Softmax"]
        lines = [f"v{i + 1} = {steps[i % 6]} (v{i}{', b' if i % 6 in (0, 1, 4) else ''})" for i in range(nodes)]
        text = f'<ir_version: 10, opset_import: ["": 21]>\ng (float[{extent}, {extent}] x, float[{extent}] b) => (float[{extent}, {extent}] v{nodes}) {{\n  v0 = Add (x, b)\n  ' + "\n  ".join(lines) + "\n}\n"
        onnx.save(onnx.parser.parse_model(text), self.model)
        recorded(self.model, self.folder / "r", memory=1 << 22, shard=1 << 23)
        shards = list((self.folder / "r").iterdir())
        self.assertGreater(len(shards), 2)
        self.assertLess(max(shard.stat().st_size for shard in shards), (1 << 23) + (1 << 20))
        window = nodes * extent * extent * 4 // 4
        result = self.compare(self.model, "--against", self.folder / "r", "--window", window)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"{nodes + 1} compared values", result.stdout)
        result = self.compare(self.model, "--against", self.folder / "r", "--window", window // 16)
        self.assertEqual(result.returncode, 2)
        self.assertIn("(--window)", result.stderr)


if __name__ == "__main__":
    unittest.main()
