"""What people expect of a linter: standard input, -q, colours, `--fail-on never`, and advice for files of other kinds."""

import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest
import zipfile

import onnx
import onnx.parser

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from json_schema import problems

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
BAD = "tests/rules/shape/reduction-axis-out-of-range/bad_axis.onnxtxt"
OK = "tests/rules/shape/reduction-axis-out-of-range/ok_last_axis.onnxtxt"
COLOUR_VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")


def run(*arguments: object, stdin: bytes | None = None, env: dict[str, str] | None = None,
        cwd: pathlib.Path = ROOT) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in COLOUR_VARIABLES}
    result = subprocess.run([BINARY, *map(str, arguments)], cwd=cwd, capture_output=True, timeout=60, check=False,
                            input=stdin, env={**kept, **(env or {})})
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(errors="replace"), result.stderr.decode())


def schema(name: str) -> dict[str, object]:
    return json.loads((ROOT / "docs/schema" / f"{name}.schema.json").read_text())


def binary_model() -> bytes:
    return (ROOT / "samples/regression_bad.onnx").read_bytes()


class StandardInputTest(unittest.TestCase):
    def test_text_and_binary_models_are_read(self) -> None:
        text = (ROOT / BAD).read_bytes()
        for content, code in [(text, "TL-S201"), (b"# a comment\n\n" + text, "TL-S201"), (binary_model(), "TL-D101")]:
            with self.subTest(content=content[:20]):
                result = run("check", "--format", "json", "-", stdin=content)
                document = json.loads(result.stdout)
                self.assertEqual((result.returncode, result.stderr), (1, ""))
                self.assertEqual([item["path"] for item in document["inputs"]], ["<stdin>"])
                self.assertEqual(document["findings"][0]["code"], code)
                self.assertEqual(document["findings"][0]["path"], "<stdin>")

    def test_the_report_is_that_of_the_file(self) -> None:
        text = (ROOT / BAD).read_bytes()
        of_file = json.loads(run("check", "--format", "json", BAD).stdout)
        of_stdin = json.loads(run("check", "--format", "json", "-", stdin=text).stdout)
        for document in (of_file, of_stdin):
            document.pop("config", None)
            for finding in document["findings"]:
                finding.pop("fingerprint")
        self.assertEqual(json.dumps(of_file).replace(BAD, "<stdin>"), json.dumps(of_stdin))

    def test_it_stands_beside_files_and_counts_once(self) -> None:
        document = json.loads(run("check", "--format", "json", "-", OK, "-", stdin=(ROOT / OK).read_bytes()).stdout)
        self.assertEqual([(item["path"], item["status"]) for item in document["inputs"]], [("<stdin>", "checked"), (OK, "checked")])

    def test_show_why_and_fix_read_it(self) -> None:
        content = binary_model()
        self.assertEqual(run("show", "-", stdin=content).stdout, run("show", "samples/regression_bad.onnx").stdout)
        shown = json.loads(run("show", "-", "--format", "json", stdin=content).stdout)
        self.assertEqual(shown["path"], "<stdin>")
        self.assertEqual(run("why", "-", "val_3", stdin=content).stdout, run("why", "samples/regression_bad.onnx", "val_3").stdout)
        with tempfile.TemporaryDirectory() as folder:
            out, other = pathlib.Path(folder) / "out.onnx", pathlib.Path(folder) / "other.onnx"
            run("fix", "-", "--unsafe", "-o", out, stdin=content)
            run("fix", "samples/regression_bad.onnx", "--unsafe", "-o", other)
            self.assertEqual(out.read_bytes(), other.read_bytes())
            text = (ROOT / BAD).read_bytes()
            refused = run("fix", "-", "-o", out, stdin=text)
            self.assertEqual((refused.returncode, out.read_bytes()), (2, other.read_bytes()), refused.stderr)
        self.assertEqual(run("place", "-").stderr, "tensorlint: place reads and writes files, not standard streams\n")
        self.assertIn("--in-place needs a file", run("fix", "-", "--in-place", stdin=content).stderr)

    def test_fix_writes_to_standard_output(self) -> None:
        for name in ("samples/regression_bad.onnx", OK):
            content = (ROOT / name).read_bytes()
            with tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder, "out" + pathlib.Path(name).suffix)
                to_file = run("fix", name, "--unsafe", "-o", out)
                piped = subprocess.run([BINARY, "fix", "-", "--unsafe", "-o", "-"], input=content, capture_output=True, check=False, timeout=60)
                self.assertEqual((piped.stdout, piped.returncode), (out.read_bytes(), to_file.returncode))
                self.assertEqual(piped.stderr.decode(), to_file.stdout[: to_file.stdout.rindex("wrote ")])
        self.assertIn("both write to standard output", run("fix", BAD, "--diff", "-o", "-").stderr)

    def test_bad_standard_input(self) -> None:
        for content, said in [(b"", "standard input is empty"), (b"\x08\x0a\xff\xff", "at byte 2"), (b"<ir_version: 9", "(line 1, column 15)"), (b"\n \n", "at byte"),
                              (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer")]:
            with self.subTest(said=said):
                result = run("check", "-", stdin=content)
                self.assertEqual(result.returncode, 2)
                self.assertIn("cannot check <stdin>: ", result.stdout)
                self.assertIn(said, result.stdout)
                self.assertEqual(run("show", "-", stdin=content).returncode, 2)

    def test_a_file_of_that_name_is_a_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "<stdin>").write_bytes(binary_model())
            document = json.loads(run("check", "--format", "json", "<stdin>", cwd=pathlib.Path(folder), stdin=b"").stdout)
        self.assertEqual((document["inputs"][0]["status"], document["inputs"][0]["path"]), ("checked", "./<stdin>"))

    def test_the_configuration_of_the_working_folder_holds(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "tensorlint.toml").write_text('ignore = ["TL-S201"]\n')
            self.assertEqual(run("check", "-", cwd=pathlib.Path(folder), stdin=(ROOT / BAD).read_bytes()).returncode, 0)


class OptionsTest(unittest.TestCase):
    def test_quiet_prints_only_findings(self) -> None:
        loud, quiet = run("check", BAD), run("check", BAD, "-q")
        self.assertEqual(quiet.returncode, 1)
        self.assertEqual(loud.stdout.removeprefix(quiet.stdout), "1 checked file, 1 node: 1 error\n")
        for option in ("-q", "--quiet"):
            clean = run("check", OK, option)
            self.assertEqual((clean.returncode, clean.stdout, clean.stderr), (0, "", ""))
        failed = run("check", OK, "missing.onnx", "-q")
        self.assertEqual(failed.returncode, 2)
        self.assertTrue(failed.stdout.startswith("cannot check missing.onnx: "), failed.stdout)
        self.assertNotIn("checked file", failed.stdout)
        self.assertEqual(run("check", BAD, "-q", "--format", "json").stdout, run("check", BAD, "--format", "json").stdout)

    def test_fail_on_never(self) -> None:
        self.assertEqual(run("check", BAD, "--fail-on", "never").returncode, 0)
        self.assertIn("TL-S201", run("check", BAD, "--fail-on", "never").stdout)
        self.assertEqual(run("check", BAD, "missing.onnx", "--fail-on", "never").returncode, 2)
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder, "tensorlint.toml")
            config.write_text('fail-on = "never"\n')
            self.assertEqual(run("check", BAD, "--config", config).returncode, 0)
            self.assertEqual(run("check", BAD, "--config", config, "--fail-on", "error").returncode, 1)
            config.write_text('fail-on = "always"\n')
            self.assertIn("fail-on is one of error, warning, info and never, not `always`", run("check", BAD, "--config", config).stderr)
        self.assertIn("error, warning, info or never", run("check", BAD, "--fail-on", "no").stderr)

    def test_rules_as_json(self) -> None:
        result = run("rules", "--format", "json")
        document = json.loads(result.stdout)
        self.assertEqual((result.returncode, problems(document, schema("rules"))), (0, []))
        lines = run("rules").stdout.splitlines()
        self.assertEqual([line.split()[:3] for line in lines], [[rule["code"], rule["name"], rule["severity"]] for rule in document["rules"]])
        self.assertEqual({rule["group"] for rule in document["rules"]}, {path.name for path in (ROOT / "analyzer/rules").iterdir() if path.is_dir()})
        self.assertEqual(run("rules", "--format", "xml").returncode, 2)


class FamiliarWordsTest(unittest.TestCase):
    def test_help_and_version_as_words(self) -> None:
        for words, option in [(["help"], ["--help"]), (["help", "check"], ["check", "--help"]), (["version"], ["--version"]), (["-V"], ["--version"]), (["show", "-h"], ["show", "--help"])]:
            with self.subTest(words=words):
                result = run(*words)
                self.assertEqual((result.returncode, result.stdout), (0, run(*option).stdout))
                self.assertTrue(result.stdout)
        self.assertEqual(run("help", "nobody").returncode, 2)

    def test_help_lists_what_can_be_used(self) -> None:
        self.assertNotIn("--torch-version", run("check", "--help").stdout)
        for command in ("check", "show", "fix", "why"):
            self.assertIn("standard input", run(command, "--help").stdout)


class ColourTest(unittest.TestCase):
    def coloured(self, **env: str) -> bool:
        return "\x1b[" in run("check", BAD, env={"TERM": "xterm", **env}).stdout

    def on_terminal(self, **env: str) -> bool:
        kept = {name: value for name, value in os.environ.items() if name not in COLOUR_VARIABLES}
        master, slave = pty.openpty()
        with subprocess.Popen([BINARY, "check", BAD], cwd=ROOT, stdout=slave, stderr=slave, stdin=subprocess.DEVNULL,
                              env={**kept, "TERM": "xterm", **env}) as process:
            os.close(slave)
            output = b""
            while True:
                try:
                    part = os.read(master, 65536)
                except OSError:
                    break
                if not part:
                    break
                output += part
            process.wait(timeout=60)
        os.close(master)
        self.assertIn(b"TL-S201", output)
        return b"\x1b[" in output

    def test_outside_a_terminal(self) -> None:
        for env, expected in [({}, False), ({"FORCE_COLOR": "1"}, True), ({"CLICOLOR_FORCE": "1"}, True), ({"FORCE_COLOR": "0"}, False), ({"CLICOLOR_FORCE": "0"}, False),
                              ({"FORCE_COLOR": ""}, False), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False), ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
                              ({"FORCE_COLOR": "1", "TERM": "dumb"}, True), ({"CLICOLOR": "1"}, False)]:
            with self.subTest(env=env):
                self.assertEqual(self.coloured(**env), expected)

    def test_on_a_terminal(self) -> None:
        for env, expected in [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"CLICOLOR": "0"}, False), ({"FORCE_COLOR": "0"}, False),
                              ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, True)]:
            with self.subTest(env=env):
                self.assertEqual(self.on_terminal(**env), expected)

    def test_json_and_files_are_never_coloured(self) -> None:
        self.assertNotIn("\x1b", run("check", BAD, "--format", "json", env={"FORCE_COLOR": "1"}).stdout)
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "report.txt")
            run("check", BAD, "-o", report, env={"FORCE_COLOR": "1"})
            self.assertNotIn("\x1b", report.read_text())


def tensorflow_graph() -> bytes:
    """A GraphDef with one node: name, operator."""
    node = b"\x0a\x05input" + b"\x12\x0bPlaceholder"
    return b"\x0a" + bytes([len(node)]) + node


def saved_model() -> bytes:
    meta = b"\x0a\x40" + b"\x22\x05serve" + bytes(57)
    return b"\x08\x01\x12" + bytes([len(meta)]) + meta


def archive(*names: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "a.zip")
        with zipfile.ZipFile(path, "w") as zipped:
            for name in names:
                zipped.writestr(name, b"x" * 10)
        return path.read_bytes()


class OtherFilesTest(unittest.TestCase):
    def test_files_of_other_kinds_come_with_advice(self) -> None:
        torch_checkpoint = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."
        for name, content, kind, advice in [
            ("model.onnx", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "a Git LFS pointer", "run `git lfs pull`"),
            ("model.onnxtxt", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "a Git LFS pointer", "run `git lfs pull`"),
            ("net.pt", archive("net/data.pkl", "net/version"), "a PyTorch checkpoint", "torch.onnx.export("),
            ("net.pt2", archive("net/archive_format", "net/models/model.json"), "a PyTorch checkpoint", "torch.onnx.export("),
            ("net.pth", torch_checkpoint, "a PyTorch checkpoint", "torch.onnx.export("),
            ("net.bin", b"\x80\x04\x95\x00", "a Python pickle", "torch.onnx.export("),
            ("net.safetensors", b"\x3c" + bytes(7) + b'{"w":{}}', "a safetensors file", "torch.onnx.export("),
            ("frozen.pb", tensorflow_graph(), "a TensorFlow graph", "tf2onnx"),
            ("saved_model.pb", saved_model(), "a TensorFlow graph", "tf2onnx"),
            ("net.tflite", b"\x1c\0\0\0TFL3" + bytes(64), "a TensorFlow Lite model", "tf2onnx"),
            ("net.keras", archive("metadata.json", "config.json", "model.weights.h5"), "a Keras model", "tf2onnx"),
            ("net.h5", b"\x89HDF\r\n\x1a\n", "an HDF5 file", "tf2onnx"),
            ("net.ort", b"\x20\0\0\0ORTM" + bytes(64), "a model in ONNX Runtime's own format", "pass the ONNX file"),
            ("net.engine", b"ftrt\0\0", "a TensorRT engine", "pass the ONNX file"),
            ("net.zip", archive("net.onnx"), "a ZIP archive", "unpack it first"),
            ("input_0.pb", onnx.numpy_helper.from_array(__import__("numpy").zeros((2, 3), "float32"), "x").SerializeToString(), "a single tensor", "pass the model"),
        ]:
            with self.subTest(name=name), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, name)
                path.write_bytes(content)
                result = run("check", path)
                self.assertEqual(result.returncode, 2)
                self.assertIn(f"cannot check {path}: not an ONNX model: the file is {kind}", result.stdout)
                self.assertIn(advice, result.stdout)
                self.assertIn(kind, run("show", path).stderr)

    def test_names_tell_what_bytes_do_not(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, said in [("net.pt", "a .pt file is usually a PyTorch checkpoint; export the model itself"), ("net.pb", "a .pb file is usually a TensorFlow graph; convert it")]:
                path = pathlib.Path(folder, name)
                path.write_bytes(b"\x12\x03abc")
                self.assertIn(said, run("check", path).stdout)
            missing = run("check", pathlib.Path(folder, "none.pt")).stdout
            self.assertIn("No such file", missing)
            self.assertNotIn("usually", missing)
            self.assertIn("no .onnx or .onnxtxt file in the folder; a .pb file is usually", run("check", folder).stdout)

    def test_models_that_begin_alike_are_read(self) -> None:
        """No valid model is taken for something else: any version, producer or domain may come first."""
        model = onnx.parser.parse_model((ROOT / OK).read_text())
        for version in (3, 8, 10):
            for producer in ("", "pytorch", "x" * 200, "\n" * 3):
                model.ir_version, model.producer_name = version, producer
                result = run("check", "-", stdin=model.SerializeToString())
                self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    unittest.main()
