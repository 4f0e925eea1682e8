"""Folders of many models: the same report whatever --jobs, much faster than a loop of processes, progress on terminals only,
and a clean end by Ctrl-C.

TENSORLINT_FIGURES=1 measures 2,000 models and a longer sample of the loop, and prints the figures.
"""
import json
import os
import pathlib
import pty
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "hostile"))
import wire

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))


FIGURES = os.environ.get("TENSORLINT_FIGURES") == "1"


def small(number):
    """Every third has a finding, every seventh is cut."""
    axis = 5 if number % 3 == 0 else 1
    nodes = [wire.node("ReduceMean", ["x", "axes"], ["y"])]
    bytes_ = wire.model(wire.graph(nodes, [wire.value("x")], [wire.value("y", dims=("a", "b"))], [wire.integers("axes", [axis])]))
    return bytes_[:40] if number % 7 == 0 else bytes_


class FoldersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_the_report_does_not_depend_on_the_jobs(self):
        for number in range(300):
            path = self.folder / f"part{number % 5}" / f"m{number}.onnx"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(small(number))
        reports = []
        for jobs in ["1", "2", "7", "1000000"]:
            result = subprocess.run([BINARY, "check", "--format", "json", "--jobs", jobs, self.folder], capture_output=True, timeout=60)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(result.stderr, b"")
            reports.append(result.stdout)
        self.assertEqual(len(set(reports)), 1)
        inputs = json.loads(reports[0])["inputs"]
        self.assertEqual([item["path"] for item in inputs], sorted(str(path) for path in self.folder.rglob("*.onnx")))
        self.assertEqual(sum(item["status"] == "failed" for item in inputs), 43)

    def test_what_is_named_twice_is_checked_once(self):
        (self.folder / "sub").mkdir()
        for name in ["a.onnx", "sub/b.onnx"]:
            (self.folder / name).write_bytes(small(3))
        arguments = [self.folder / "sub/b.onnx", self.folder, self.folder / "sub/../a.onnx", f"{self.folder}/*.onnx"]
        result = subprocess.run([BINARY, "check", "--format", "json", *arguments], capture_output=True, timeout=60, check=False)
        self.assertEqual([item["path"] for item in json.loads(result.stdout)["inputs"]], [str(self.folder / "sub/b.onnx"), str(self.folder / "a.onnx")])

    def test_a_folder_inside_that_cannot_be_read_is_said(self):
        (self.folder / "a.onnx").write_bytes(small(1))
        closed = self.folder / "closed"
        closed.mkdir(mode=0)
        self.folder.chmod(0o755)
        nobody = {"user": 65534} if os.geteuid() == 0 else {}
        try:
            result = subprocess.run([BINARY, "check", self.folder], capture_output=True, text=True, timeout=60, check=False, cwd="/", **nobody)
        except PermissionError:
            self.skipTest("the program lies where only root may go")
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn(f"cannot check {closed}: cannot read the folder: Permission denied", result.stdout)
        self.assertIn("1 checked file", result.stdout)

    def test_much_faster_than_a_loop_over_the_checker(self):
        """The loop that people write today, one process a file. Only a sample of it is run: each file costs the same start."""
        try:
            import onnx
        except ImportError:
            self.skipTest("the loop needs the onnx package")
        count, sample = (2000, 40) if FIGURES else (200, 3)
        for number in range(count):
            content = wire.model(wire.graph([wire.node("Relu", ["x"], ["t"]), wire.node("Add", ["t", "x"], ["y"])], [wire.value("x")], [wire.value("y")]))
            (self.folder / f"m{number:04}.onnx").write_bytes(content)

        def folder():
            start = time.perf_counter()
            result = subprocess.run([BINARY, "check", "--jobs", "2", self.folder], capture_output=True, timeout=60)
            self.assertEqual(result.returncode, 0, result.stdout[-500:])
            return time.perf_counter() - start

        def loop(first):
            program = "import onnx, sys; onnx.checker.check_model(sys.argv[1], full_check=True)"
            script = f'for f in {self.folder}/m{first:04}.onnx; do "{sys.executable}" -c "{program}" "$f" || exit 1; done'
            start = time.perf_counter()
            subprocess.run(["sh", "-c", script], check=True, timeout=60)
            return time.perf_counter() - start

        # In turn, so that a machine whose speed changes slows both.
        ours, theirs = [], []
        for number in range(sample):
            ours.append(folder())
            theirs.append(loop(number))
        ours, theirs = statistics.median(ours), statistics.median(theirs) * count
        if FIGURES:
            print(f"\n{count} models: {ours:.3f} s with --jobs 2; a loop over onnx.checker {onnx.__version__} {theirs:.0f} s, "
                  f"from {sample} files; {theirs / ours:.0f} times")
        # A start of the process belongs to ours as well: a fifth of the files saves little of it.
        self.assertGreater(theirs / ours, 100)

    def many_large(self, count=400):
        """A large model under many names: minutes of work for a machine that is slow enough, seconds for any."""
        large = self.folder / "large"
        large.write_bytes(wire.model(wire.chain(100_000)))
        models = self.folder / "models"
        models.mkdir()
        for number in range(count):
            (models / f"m{number:03}.onnx").symlink_to(large)
        return models

    def test_ctrl_c_leaves_a_report_of_what_was_done(self):
        models = self.many_large()
        terminal, stderr = pty.openpty()
        self.addCleanup(os.close, terminal)
        report = self.folder / "report.json"
        process = subprocess.Popen([BINARY, "check", "--format", "json", "-o", report, "--jobs", "2", models], stderr=stderr,
                                   env={**os.environ, "TERM": "xterm"})
        self.addCleanup(process.kill)
        os.close(stderr)
        seen = b""
        deadline = time.monotonic() + 60
        while b"checked " not in seen and time.monotonic() < deadline:
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 4096)
        self.assertRegex(seen, rb"\rchecked \d+ of 400")
        self.interrupt(process)
        while select.select([terminal], [], [], 1)[0]:
            try:
                seen += os.read(terminal, 4096)
            except OSError:  # how a pseudo terminal says that its other end is closed
                break
        document = json.loads(report.read_text())
        done = len(document["inputs"])
        self.assertIn(f"\r\x1b[Ktensorlint: interrupted: {done} of 400 inputs were checked".encode(), seen)
        self.assertTrue(0 < done < 400, done)
        self.assertEqual({item["status"] for item in document["inputs"]}, {"checked"})
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["large", "models", "report.json"])

    def interrupt(self, process):
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
        self.assertLess(time.monotonic() - start, 1 if FIGURES else 10)

    def test_ctrl_c_does_not_wait_for_a_model_that_takes_long(self):
        """A model of a million nodes under four names keeps two threads for seconds."""
        slow = self.folder / "slow"
        relu = wire.node("Relu", ["v0000000"], ["v0000000"]).replace(b"0000000", b"%07d")
        nodes = b"".join(wire.data(1, relu) % (i, i + 1) for i in range(1_000_000))
        slow.write_bytes(wire.model(nodes + wire.graph([], [wire.value("v0000000")], [wire.value("v1000000")])))
        models = self.folder / "models"
        models.mkdir()
        (models / "a.onnx").write_bytes(small(1))
        for number in range(4):
            (models / f"b{number}.onnx").symlink_to(slow)
        process = subprocess.Popen([BINARY, "check", "--format", "json", "--jobs", "2", models], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        time.sleep(0.5)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - start, 1 if FIGURES else 10)
        self.assertEqual(process.returncode, 130, errors)
        document = json.loads(output)
        self.assertEqual(document["inputs"][0]["path"], str(models / "a.onnx"))
        self.assertEqual(errors.decode(), f"tensorlint: interrupted: {len(document['inputs'])} of 5 inputs were checked\n")
        # A model alone: nothing to report.
        process = subprocess.Popen([BINARY, "check", "--format", "json", models / "b0.onnx"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, output, errors), (130, b"", b"tensorlint: interrupted\n"))

    def test_a_second_ctrl_c_ends_at_once(self):
        models = self.many_large()
        process = subprocess.Popen([BINARY, "check", "--jobs", "2", models], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        time.sleep(0.5)
        # Signals sent without a pause may arrive as one.
        for _ in range(200):
            process.send_signal(signal.SIGINT)
            time.sleep(0.001)
            if process.poll() is not None:
                break
        process.communicate(timeout=60)
        self.assertIn(process.returncode, (-signal.SIGINT, 130))


if __name__ == "__main__":
    unittest.main()
