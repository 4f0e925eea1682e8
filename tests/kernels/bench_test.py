"""kernels/bench/run.py and table.py with a stand-in for kernels_bench: what is skipped, resumed and printed."""

import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "kernels" / "bench"

# Appends what kernels_bench would; hangs in the part that the file beside it names, and removes the file.
STAND_IN = """#!/usr/bin/env python3
import json, pathlib, sys, time
out, part = sys.argv[2], sys.argv[4]
hang = pathlib.Path(__file__).with_name("hang")
if hang.exists() and hang.read_text() == part:
    hang.unlink()
    time.sleep(60)
lines = {
    "reductions": {"operation": "sum float32", "shape": "full", "bytes": 1 << 30, "ms": 2.0, "share_of_read": 0.97},
    "losses": {"operation": "cross entropy bfloat16 8192x131072x1", "ms": 2.0, "over_byte_floor": 1.1},
    "determinism": {"operation": "sum float32", "runs": 1000, "different": 1, "hash": "5"},
    "correctness": {"operation": "sum float32", "worst_error_over_bound": None}}
with open(out, "a") as file:
    file.write(json.dumps({"part": part, **lines.get(part, {"name": "x"})}) + "\\n" + json.dumps({"finished": part}) + "\\n")
"""

# tensorlint-run: refuses one model everywhere, and is wrong about another one on the device.
EXECUTOR = """#!/usr/bin/env python3
import sys
arguments = dict(argument.split("=", 1) for argument in sys.argv[1:])
on_device = "--device" in arguments
assert "--expect" in arguments if on_device else "--outputs" in arguments
if "refused" in arguments["--model"]:
    print("refused", file=sys.stderr)
    sys.exit(2)
print(f"run: {0.25 if on_device else 0.5} s, processor 0.1 s")
if on_device and "wrong" in arguments["--model"]:
    print("output `y` differs", file=sys.stderr)
    sys.exit(1)
"""


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bench = self.folder / "kernels_bench"
        self.bench.write_text(STAND_IN)
        self.bench.chmod(self.bench.stat().st_mode | stat.S_IXUSR)
        self.out = self.folder / "results.jsonl"

    def run_once(self, seconds, parts="device,bandwidth,correctness,determinism,reductions,losses"):
        return subprocess.run([sys.executable, str(BENCH / "run.py"), "--bench", str(self.bench), "--out", str(self.out), "--seconds",
                               str(seconds), "--parts", parts], capture_output=True, text=True, timeout=50)

    def records(self):
        return [json.loads(line) for line in self.out.read_text().splitlines()]

    def test_goes_on_where_it_was_cut_off(self):
        (self.folder / "hang").write_text("determinism")
        first = self.run_once(15)  # ample for the parts before it, on a busy machine too
        self.assertEqual(first.returncode, 3, first.stderr)
        self.assertIn("stopped in `determinism`", first.stdout)
        second = self.run_once(60)
        self.assertEqual(second.returncode, 0, second.stderr)
        finished = [record["finished"] for record in self.records() if "finished" in record]
        self.assertEqual(finished, ["device", "bandwidth", "correctness", "determinism", "reductions", "losses"])

    def test_goals_say_what_was_not_measured(self):
        self.assertEqual(self.run_once(60, "reductions,losses").returncode, 0)
        with self.out.open("a") as file:
            file.write(json.dumps({"part": "torch", "operation": "cross entropy bfloat16 8192x131072x1", "shape": "", "bytes": 0.0,
                                   "eager_ms": 8.0, "compiled_ms": None}) + "\n")
        text = subprocess.run([sys.executable, str(BENCH / "table.py"), str(self.out)], capture_output=True, text=True, check=True).stdout
        rows = dict(line.strip("| ").split(" | ") for line in text.split("\n## ")[0].splitlines() if line.startswith("| "))
        self.assertEqual(rows["the headline: at least 3 times torch eager's speed"], "4.00")
        self.assertEqual(rows["the headline: at least 1.5 times torch.compile's speed"], "not measured")
        self.assertEqual(rows["one set of bits in 1000 runs"], "not measured")
        self.assertEqual(rows["reductions of 64 MB and more, full and by rows: at least 0.93 of a read stream of that size"], "0.970")
        self.assertEqual(rows["the same by columns of 256 and 3: at least 0.93"], "not measured")

    def test_sums_meet_torch_by_bytes_and_columns_count(self):
        # The lines as kernels_bench (bench/line.h) and torch_part.py write them.
        self.out.write_text(
            '{"part": "reductions", "operation": "sum float32", "shape": "full", "bytes": 1073741824, "ms": 0.4, "share_of_read": 0.95}\n'
            '{"part": "reductions", "operation": "sum float32", "shape": "columns of 3", "bytes": 67108864, "ms": 0.4, "share_of_read": 0.31}\n'
            '{"part": "torch", "operation": "sum float32", "shape": "full", "bytes": 1073741824.0, "eager_ms": 0.42, "compiled_ms": null}\n')
        text = subprocess.run([sys.executable, str(BENCH / "table.py"), str(self.out)], capture_output=True, text=True, check=True).stdout
        rows = dict(line.strip("| ").split(" | ") for line in text.split("\n## ")[0].splitlines() if line.startswith("| "))
        self.assertEqual(rows["sums of 64 MB and more: at least 0.98 times torch.sum's speed"], "1.05")
        self.assertEqual(rows["the same by columns of 256 and 3: at least 0.93"], "0.310")

    def test_runs_the_suites_on_the_device(self):
        tests = self.folder / "kernels_device_tests"
        tests.write_text("#!/bin/sh\necho '[  FAILED  ] Loss/1.X, where TypeParam = float (3 ms)'\necho '[  PASSED  ] 12 tests.'\nexit 1\n")
        tests.chmod(tests.stat().st_mode | stat.S_IXUSR)
        self.assertEqual(self.run_once(60, "tests").returncode, 1)
        record = self.records()[0]
        self.assertEqual((record["status"], record["passed"], record["failed"]), (1, 12, "Loss/1.X"))

    def test_suites_that_are_missing_have_failed(self):
        for part in ("tests", "executor"):
            ran = self.run_once(60, part)
            self.assertEqual(ran.returncode, 1)
            self.assertIn(f"failed: {'executor, ' if part == 'executor' else ''}tests", ran.stdout)
        notes = [(record["part"], record["status"], record["note"]) for record in self.records() if "part" in record]
        self.assertEqual(notes, [("tests", "failed", "kernels_device_tests is not there"),
                                 ("executor", "failed", f"{self.folder.resolve() / 'tensorlint-run'} is not there")])

    def test_executor_against_the_interpreter(self):
        program = self.folder / "tensorlint-run"
        program.write_text(EXECUTOR)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (self.folder / "models").mkdir()
        for name in ("good", "refused", "wrong"):
            (self.folder / "models" / f"{name}.onnx").touch()
        self.out.write_text('{"finished": "executor good.onnx"}\n')
        self.assertEqual(self.run_once(60, "executor").returncode, 1)
        self.assertEqual(self.records()[1:], [
            {"part": "executor", "model": "refused.onnx", "status": "ok", "interpreter_s": None, "device_s": None, "note": "refused"},
            {"finished": "executor refused.onnx"},
            {"part": "executor", "model": "wrong.onnx", "status": "failed", "interpreter_s": 0.5, "device_s": 0.25, "note": "output `y` differs"},
            {"finished": "executor wrong.onnx"}, {"finished": "executor"}])

    def test_wrong_results_show(self):
        self.assertEqual(self.run_once(60, "correctness").returncode, 0)  # null: the error was NaN or infinite
        text = subprocess.run([sys.executable, str(BENCH / "table.py"), str(self.out)], capture_output=True, text=True, check=True).stdout
        self.assertIn("| error over bound: at most 1 | inf |", text)

    def test_what_is_not_there_is_said(self):
        ran = subprocess.run([sys.executable, str(BENCH / "run.py"), "--bench", str(self.bench), "--out", str(self.out), "--parts", "torch",
                              "--python", "/bin/false"], capture_output=True, text=True, timeout=50)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.records()[0]["note"], "not there: no torch")

    def test_reads_ncu(self):
        sys.path.insert(0, str(BENCH))
        self.addCleanup(sys.path.remove, str(BENCH))
        import run
        text = ("==PROF== Connected\n" '"ID","Kernel Name","Grid Size","launch__registers_per_thread"\n' '"","","","register/thread"\n'
                '"0","class_rows","(8, 1, 1)","80"\n' '"1","class_rows","(8, 1, 1)","80"\n')
        records = run.ncu_lines(text, "")
        self.assertEqual([(r["operation"], r["launch__registers_per_thread"]) for r in records], [("class_rows", "80")])
        self.assertEqual(run.ncu_lines("==ERROR== ERR_NVGPUCTRPERM no permission\n", "")[0]["note"], "==ERROR== ERR_NVGPUCTRPERM no permission")


if __name__ == "__main__":
    unittest.main()
