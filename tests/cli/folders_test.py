"""Folders of many models: the same report whatever --jobs, progress on terminals only, and a clean end by Ctrl-C."""
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "hostile"))
import wire

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))


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
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
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
