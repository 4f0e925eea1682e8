"""Standard streams that are closed or full, paths that lead elsewhere: the exit code stays right, and no file is written by mistake."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "hostile"))
import wire

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
BAD = ROOT / "samples/regression_bad.onnx"
OK = ROOT / "samples/regression_ok.onnx"


class StreamsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def shell(self, command, *arguments):
        """`command` of a shell with the program as $0."""
        return subprocess.run(["bash", "-c", command, BINARY, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)

    def test_errors_that_nobody_can_be_told(self):
        (self.folder / "broken.toml").write_text("select = [")
        wrong = [["check", "missing.onnx", "--config", "broken.toml"], ["check", "--nonsense"], ["check", OK, "--format", "pdf"], ["show", "missing.onnx"],
                 ["why", OK, "no-such-value"], ["fix", "missing.onnx", "-o", "out.onnx"], ["place", "missing.onnx"], ["explain", "no-such-rule"], ["run"], []]
        for stream in ["2>&-", "2>/dev/full", "1>&- 2>&-", "0>&- 1>&- 2>&-"]:
            for arguments in wrong:
                with self.subTest(stream=stream, arguments=arguments):
                    self.assertEqual(self.shell(f'"$0" "$@" {stream}', *arguments).returncode, 2)
        for stream in ["2>&-", "2>/dev/full"]:
            result = self.shell(f'"$0" check "$@" {stream}', BAD)
            self.assertEqual((result.returncode, result.stderr), (1, ""))
            self.assertIn("error", result.stdout)

    def test_reports_that_cannot_be_written(self):
        for stream in ["1>&-", "1>/dev/full"]:
            for arguments in [["check", OK], ["show", OK], ["rules"], ["explain", "cycle"], ["--help"], ["check", "--help"], ["--version"]]:
                with self.subTest(stream=stream, arguments=arguments):
                    result = self.shell(f'"$0" "$@" {stream}', *arguments)
                    self.assertEqual(result.returncode, 2)
                    self.assertRegex(result.stderr, "^tensorlint: cannot write standard output: ")

    def test_messages_do_not_land_in_files(self):
        """A file that is opened while standard error is closed would get its number."""
        shutil.copy(BAD, self.folder / "m.onnx")
        before = (self.folder / "m.onnx").read_bytes()
        self.shell('"$0" fix m.onnx -o fixed.onnx --unsafe')
        expected = (self.folder / "fixed.onnx").read_bytes()
        for streams in ["2>&-", "1>&- 2>&-", "0>&- 1>&- 2>&-"]:
            (self.folder / "fixed.onnx").unlink()
            self.shell(f'"$0" fix m.onnx -o fixed.onnx --unsafe {streams}')
            self.assertEqual((self.folder / "fixed.onnx").read_bytes(), expected)
            self.shell(f'"$0" check m.onnx missing.onnx --format json=report.json {streams}')
            self.assertTrue((self.folder / "report.json").read_text().startswith("{"))
        self.assertEqual((self.folder / "m.onnx").read_bytes(), before)


class FixTargetTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def fix(self, *arguments):
        return subprocess.run([BINARY, "fix", *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)

    def test_nothing_to_fix_is_written_too(self):
        for name, source in [("m.onnx", OK), ("m.onnxtxt", ROOT / "tests/rules/shape/reduction-axis-out-of-range/ok_last_axis.onnxtxt")]:
            shutil.copy(source, self.folder / name)
            out = self.folder / f"out-{name}"
            result = self.fix(name, "-o", out)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(out.read_bytes(), source.read_bytes())
            self.assertEqual(result.stdout, f"nothing to fix\nwrote {out} with no fixes\n")
            modified = (self.folder / name).stat().st_mtime_ns
            for arguments in [["--in-place"], ["-o", name], ["-o", f"./{name}"]]:
                result = self.fix(name, *arguments)
                self.assertEqual((result.returncode, result.stdout), (0, f"nothing to fix\n{arguments[-1] if len(arguments) > 1 else name} is unchanged\n"))
            self.assertEqual((self.folder / name).stat().st_mtime_ns, modified)
            self.assertEqual(self.fix(name, "--diff").stdout, "nothing to fix\n")

    def test_a_folder_that_is_not_there(self):
        for source in [OK, BAD]:
            for out in ["none/out.onnx", "none/", f"{OK}/out.onnx"]:
                result = self.fix(source, "--unsafe", "-o", out) if out.endswith("onnx") else self.fix(source, "--unsafe", "-o", out + "m.onnx")
                self.assertEqual(result.returncode, 2, out)
                self.assertRegex(result.stderr, "cannot write .*: (No such file or directory|Not a directory)")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_in_place_keeps_links(self):
        """The layout of a model hub's cache: links into a store. The store's file changes; other links are replaced."""
        store = self.folder / "blobs"
        store.mkdir()
        (self.folder / "snapshot").mkdir()
        shutil.copy(BAD, store / "1234")
        (store / "1234").chmod(0o640)
        (self.folder / "snapshot/m.onnx").symlink_to("../blobs/1234")
        (self.folder / "again.onnx").symlink_to("snapshot/m.onnx")
        result = self.fix("again.onnx", "--unsafe", "--in-place")
        self.assertIn("wrote again.onnx with 1 fix", result.stdout)
        self.assertTrue((self.folder / "again.onnx").is_symlink() and (self.folder / "snapshot/m.onnx").is_symlink())
        self.assertNotEqual((store / "1234").read_bytes(), BAD.read_bytes())
        self.assertEqual((store / "1234").stat().st_mode & 0o777, 0o640)
        self.assertEqual(sorted(path.name for path in self.folder.rglob("*")), ["1234", "again.onnx", "blobs", "m.onnx", "snapshot"])
        (self.folder / "target").write_text("kept")
        (self.folder / "out.onnx").symlink_to("target")
        self.fix(BAD, "--unsafe", "-o", "out.onnx")
        self.assertEqual((self.folder / "target").read_text(), "kept")
        self.assertFalse((self.folder / "out.onnx").is_symlink())


class LongPathsTest(unittest.TestCase):
    def test_paths_that_are_too_long_are_said(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "a.onnx").write_bytes(OK.read_bytes())
            top = os.getcwd()
            try:
                os.chdir(root)
                for _ in range(18):
                    os.mkdir("d" * 250)
                    os.chdir("d" * 250)
                pathlib.Path("deep.onnx").write_bytes(wire.model(wire.graph([wire.node("Relu", ["x"], ["y"])])))
            finally:
                os.chdir(top)
            result = subprocess.run([BINARY, "check", root], capture_output=True, text=True, timeout=60, check=False)
            subprocess.run(["rm", "-rf", root / ("d" * 250)], check=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("File name too long", result.stdout)
        self.assertIn("1 checked file", result.stdout)


if __name__ == "__main__":
    unittest.main()
