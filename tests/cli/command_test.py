"""The command line as people and scripts use it: exit codes, streams, formats, bad usage and bad input."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import onnx
import onnx.parser

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from json_schema import problems

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
BAD = "tests/rules/shape/reduction-axis-out-of-range/bad_axis.onnxtxt"
OK = "tests/rules/shape/reduction-axis-out-of-range/ok_last_axis.onnxtxt"
WARNING = "tests/rules/loss/silent-broadcast-in-loss/bad_pow.onnxtxt"
HINT = "tests/rules/graph/dead-node/bad_dead.onnxtxt"
LABELS = """<ir_version: 10, opset_import: ["" : 21]>
classify (float[N, 3] scores, int64[N] labels) => (loss)
{
  [loss] loss = SoftmaxCrossEntropyLoss (scores, labels)
}
"""


def run(*arguments, cwd=ROOT, env=None):
    return subprocess.run([BINARY, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(env or {})})


def schema(name):
    return json.loads((ROOT / "docs/schema" / f"{name}.schema.json").read_text())


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def check_json(self, *arguments):
        result = run("check", "--format", "json", *arguments)
        document = json.loads(result.stdout)
        self.assertEqual(problems(document, schema("check")), [])
        return result.returncode, document

    # ---- exit codes

    def test_exit_codes(self):
        missing = self.folder / "missing.onnx"
        for expected, arguments in [(0, [OK]), (1, [BAD]), (1, [BAD, OK]), (2, [missing]), (2, [BAD, missing]), (1, [WARNING]),
                                    (0, [WARNING, "--fail-on", "error"]), (0, [HINT]), (1, [HINT, "--fail-on", "info"])]:
            with self.subTest(arguments=arguments):
                result = run("check", *arguments)
                self.assertEqual(result.returncode, expected, result.stdout + result.stderr)

    def test_one_broken_input_leaves_the_others_checked(self):
        broken = self.write("broken.onnx", b"\x08\x0a\xff\xff\xff")
        code, document = self.check_json(broken, BAD, OK)
        self.assertEqual(code, 2)
        self.assertEqual([item["status"] for item in document["inputs"]], ["failed", "checked", "checked"])
        self.assertIn("at byte 2", document["inputs"][0]["error"])
        self.assertEqual([finding["code"] for finding in document["findings"]], ["TL-S201"])

    def test_inputs_that_are_no_models(self):
        os.mkfifo(self.folder / "pipe.onnx")
        (self.folder / "empty.onnx").touch()
        (self.folder / "folder").mkdir()
        for name in ["pipe.onnx", "empty.onnx", "folder", "none-*.onnx", "train.py", "net.cpp"]:
            with self.subTest(name=name):
                result = run("check", self.folder / name)
                self.assertEqual(result.returncode, 2)
                self.assertIn(name, result.stdout)
                self.assertIn("nothing was checked: 1 file could not be", result.stdout)

    def test_usage_errors(self):
        for arguments in [["check"], ["check", "--no-such-option", OK], ["chekc", OK], ["check", OK, "--format", "xml"], ["check", OK, "--fail-on", "always"],
                          ["check", OK, "--select", "no-such-rule"], ["check", OK, "--ignore", "TL-"], ["check", OK, "--device", "="], ["check", OK, "--input", "x"],
                          ["check", OK, "--input", "scores=float33[2]"], ["check", OK, "--input", "scores=float32[2"], ["check", OK, "--range", "scores=3:1"],
                          ["check", OK, "--range", "nothing=0:1"], ["check", OK, "--format", "text", "--format", "json"], ["check", OK, "--jobs", "many"],
                          ["show"], ["show", OK, "--format", "xml"], ["show", self.folder / "missing.onnx"], ["explain", "no-such-rule"]]:
            with self.subTest(arguments=arguments):
                result = run(*arguments)
                self.assertEqual(result.returncode, 2, result.stdout)
                self.assertTrue(result.stderr.startswith("tensorlint: "), result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)

    def test_usage_errors_say_what_was_meant(self):
        for arguments, said in [(["chekc", OK], "unknown command `chekc`; did you mean `check`?"),
                                (["check", OK, "--fomat=json"], "check has no option `--fomat`; did you mean `--format`?"),
                                (["--jobs", "3"], "tensorlint has no option `--jobs`; see `tensorlint --help`"),
                                (["rules", "a", "b"], "unexpected argument `b`; see `tensorlint rules --help`"),
                                (["check"], "INPUT is required; see `tensorlint check --help`"),
                                (["check", OK, "-o"], "-o needs a value"),
                                (["check", OK, "--jobs", "1", "--jobs", "2"], "--jobs is given more than once"),
                                (["check", OK, "--max-findings", "-1"], "expected a number from 0 to 999999999, not `-1`"),
                                (["check", OK, "--input", "scores=float32[2 3]"], "is not of the form NAME=dtype[dims]"),
                                (["check", OK, "--select", ""], "--select is empty"),
                                (["explain", "mixed-operand-dtype"], "did you mean `mixed-operand-dtypes`?"),
                                (["explain", "nothing-like-it"], "no rule is called `nothing-like-it`; `tensorlint rules` lists them"),
                                (["check", OK, "--ignore", "cycle,nothing-like-it"], "no rule is called `nothing-like-it`; `tensorlint rules` lists them"),
                                (["why", OK, "y", "--input", "zz=float32"], "has no value `zz` in its main graph"),
                                (["fix", BAD, "--diff", "--device", "zz=cpu"], "has no value `zz` in its main graph"),
                                (["place", ROOT / "samples/encoder_ok.onnx", "--range", "zz=0:1"], "has no value `zz` in its main graph"),
                                (["why", OK, ""], "has no value ``; `tensorlint show` lists them"),
                                (["fix", ROOT / "samples/regression_bad.onnx", "--unsafe", "-o", self.folder], "is a folder; add a file name for the model")]:
            with self.subTest(arguments=arguments):
                result = run(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
                self.assertIn(said, result.stderr)
        nothing = run("check", BAD, "--select", "TL-S201", "--ignore", "shape")
        self.assertEqual((nothing.returncode, nothing.stderr), (0, f"tensorlint: no rule runs on {BAD}: all selected rules are ignored\n"))
        self.assertEqual(run().returncode, 2)
        self.assertIn("find bugs in models", run().stderr)
        self.assertIn("Exit codes: 0 no findings", run("--help").stdout)
        self.assertIn("--write-baseline FILE", run("check", "--help").stdout)
        self.assertEqual(run("explain", "tl-s201").stdout, run("explain", "TL-S201").stdout)

    def test_files_of_other_kinds_are_named(self):
        for content, said in [(b"\x20\0\0\0ORTM" + bytes(64), "a model in ONNX Runtime's own format"), (b"\x1c\0\0\0TFL3" + bytes(64), "a TensorFlow Lite model"),
                              (b"\x3c" + bytes(7) + b'{"w":{}}', "a safetensors file"), (b'{"irVersion": 9}', "JSON"), (b"\xfd7zXZ\0", "an xz archive"),
                              (b"ir_version: 9\ngraph {\n}\n", "protobuf's text format"), (b'<ir_version: 9, opset_import: ["": 17]>', "has to end in .onnxtxt")]:
            with self.subTest(said=said):
                result = run("check", self.write("other.onnx", content))
                self.assertEqual(result.returncode, 2)
                self.assertIn(f"not an ONNX model: the file is {said}" if said.startswith(("a ", "an ", "J")) else said, result.stdout)

    def test_a_line_of_code_is_shown_once_in_a_finding(self):
        findings = run("check", "samples/encoder_bad.onnx").stdout.split("\n\n")
        self.assertEqual(findings[0].count("samples/encoder_step.py:23"), 1, findings[0])
        self.assertIn("note: `val_16` becomes [4] = {batch, sequence, 2, 8} here (node `node_Concat_16`)\n", findings[0] + "\n")

    def test_every_kind_of_report_is_of_the_schema(self):
        samples = sorted((ROOT / "samples").glob("*.onnx")) + sorted((ROOT / "tests/rules/placement").rglob("bad_*.onnxtxt"))
        keys = set()
        for options in [[], ["--placement", "runtime", "--provider", "cuda"], ["--placement", "runtime"], ["--device", "cuda:0"], ["--max-findings", "1"], ["--timings"]]:
            with self.subTest(options=options):
                _, document = self.check_json(*options, *samples, self.folder / "missing.onnx")
                keys |= {f"{kind}.{key}" for kind in ("inputs", "findings") for item in document[kind] for key in item}
        self.assertLessEqual({"inputs.cost", "inputs.error", "inputs.seconds", "findings.cost", "findings.witness"}, keys)

    def test_reports_never_replace_models(self):
        model = self.folder / "model.onnx"
        shutil.copy(BAD, model)
        plain = self.folder / "plain"
        shutil.copy(BAD, plain)
        before = model.read_bytes()
        for arguments in [[model, "-o", model], [OK, "--format", f"json={model}"], ["--write-baseline", model, model], [plain, "-o", plain],
                          [plain, "--write-baseline", plain], [OK, "--format", "text=a", "--format", "json=a"]]:
            with self.subTest(arguments=arguments):
                result = run("check", *arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertEqual((model.read_bytes(), plain.read_bytes()), (before, before))
        self.assertEqual(run("check", BAD, "-o", "-").stdout, run("check", BAD).stdout)

    def test_several_models_are_shown_with_their_names(self):
        shown = run("show", OK, BAD).stdout
        self.assertTrue(shown.startswith(f"== {OK}\n"), shown)
        self.assertIn(f"\n\n== {BAD}\n", shown)

    def test_what_is_not_built_yet_says_so(self):
        for arguments in [["preflight", "train.py"],
                          ["check", OK, "--format", "sarif"], ["check", OK, "--format", "html=report.html"], ["show", OK, "--format", "html"],
                          ["check", OK, "--torch-version", "2.13"],
                          ["check", OK, "--", "-std=c++20"]]:
            with self.subTest(arguments=arguments):
                result = run(*arguments)
                self.assertEqual(result.returncode, 2)
                self.assertIn("not built yet", result.stderr)

    # ---- inputs

    def test_folders_and_globs(self):
        shutil.copy(ROOT / BAD, self.folder / "b.onnxtxt")
        (self.folder / "sub").mkdir()
        shutil.copy(ROOT / OK, self.folder / "sub/a.onnxtxt")
        self.write("notes.txt", "no model")
        (self.folder / "sub/up").symlink_to(self.folder)
        for argument in [self.folder, self.folder / "*"]:
            with self.subTest(argument=argument):
                code, document = self.check_json(*([argument] if argument == self.folder else [self.folder / "*.onnxtxt", self.folder / "s*"]))
                self.assertEqual(code, 1)
                self.assertEqual([pathlib.Path(item["path"]).name for item in document["inputs"]], ["b.onnxtxt", "a.onnxtxt"])

    def test_declarations(self):
        model = self.write("labels.onnxtxt", LABELS)
        self.assertEqual(run("check", model).returncode, 0)
        self.assertEqual(run("check", model, "--range", "labels=0:2").returncode, 0)
        code, document = self.check_json(model, "--input", "labels=float32[N]")
        self.assertEqual((code, [f["rule"] for f in document["findings"]]), (1, ["float-class-index"]))
        code, document = self.check_json(model, "--input", "labels=[7,2]")
        self.assertEqual((code, [f["rule"] for f in document["findings"]]), (1, ["loss-shape-mismatch"]))
        self.assertEqual(run("check", model, "--input", "nobody=int64[2]").returncode, 2)

    def test_selection(self):
        for arguments, expected in [([], 1), (["--ignore", "reduction-axis-out-of-range"], 0), (["--ignore", "TL-S201,cycle"], 0), (["--select", "shape"], 1),
                                    (["--select", "TL-S2"], 1), (["--select", "dtype"], 0), (["--select", "TL-S201", "--ignore", "shape"], 0)]:
            with self.subTest(arguments=arguments):
                self.assertEqual(run("check", BAD, *arguments).returncode, expected)

    # ---- reports

    def test_json_names_the_place(self):
        _, document = self.check_json(BAD)
        finding = document["findings"][0]
        self.assertEqual((finding["rule"], finding["code"], finding["severity"], finding["certainty"]), ("reduction-axis-out-of-range", "TL-S201", "error", "must"))
        self.assertEqual((finding["path"], finding["graph"], finding["node"], finding["op"], finding["value"]), (BAD, "main", "average", "ReduceMean", "y"))
        self.assertEqual((finding["file"], finding["line"], finding["column"]), (BAD, 4, 3))
        self.assertEqual(document["summary"], {"error": 1, "warning": 0, "info": 0, "places": 1})

    def test_places_in_the_users_program(self):
        _, document = self.check_json("samples/regression_bad.onnx")
        finding = document["findings"][0]
        self.assertEqual((finding["rule"], finding["file"], finding["node"]), ("integer-target-in-regression-loss", "samples/regression_step.py", "node_Sub_1"))
        line = (ROOT / finding["file"]).read_text().splitlines()[finding["line"] - 1]
        self.assertIn("mse_loss", line)
        text = run("check", "samples/regression_bad.onnx").stdout
        self.assertIn(line.strip(), text)

    def traced(self, file, line, source):
        """A model whose only mistake was written at `line` of `file`, as the exporter says it."""
        model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 13]> g (float[N, 4] x) => (y) { y = ReduceMean <axes = [5]> (x) }')
        trace = f'File "{file}", line {line}, in forward\n    {source}\n'
        model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.stack_trace", value=trace)
        return self.write("models/traced.onnx", model.SerializeToString())

    def test_sources_are_read_below_known_folders(self):
        program = self.write("programs/deep/train.py", "import torch\n" + "    y = x.mean(5)  # here\n")
        model = self.traced(program, 2, "")
        self.assertNotIn("# here", run("check", model).stdout)
        for root in [self.folder, self.folder / "programs", program.parent]:
            self.assertIn("y = x.mean(5)  # here", run("check", model, "--source-root", root).stdout)
        self.assertIn("y = x.mean(5)  # here", run("check", model, cwd=self.folder).stdout)
        self.traced("/home/ci/checkout/deep/train.py", 2, "")
        self.assertIn("y = x.mean(5)  # here", run("check", model, "--source-root", self.folder / "programs").stdout)
        self.traced("/home/ci/checkout/deep/train.py", 2, "y = x.mean(6)")  # the program has changed since
        self.assertIn("y = x.mean(6)", run("check", model, "--source-root", self.folder / "programs").stdout)
        result = run("check", model, "--source-root", program)
        self.assertEqual((result.returncode, result.stderr), (2, f"tensorlint: --source-root: {program} is not a folder\n"))

    def test_links_to_other_files_show_nothing_of_them(self):
        self.write("models/secrets.txt", "password\n")
        (self.folder / "models/train.py").symlink_to("secrets.txt")
        shown = run("check", self.traced("train.py", 1, ""), "--source-root", self.folder).stdout
        self.assertIn("train.py:1", shown)
        self.assertNotIn("password", shown)

    def test_a_long_line_is_kept_short(self):
        """Memory: the line was kept whole in each of a thousand findings."""
        nodes = "".join(f"[n{i}] y{i} = ReduceMean <axes = [5]> (x) " for i in range(1000))
        model = self.write("line.onnxtxt", f'<ir_version: 8, opset_import: ["": 13]> g (float[N, 4] x) => (y0) {{ {nodes} }}')
        result = run("check", "--format", "json", "--timings", model)
        self.assertLess(json.loads(result.stdout)["inputs"][0]["peak_rss_bytes"], (64 << 20) + 40 * model.stat().st_size)

    def test_output_files(self):
        target = self.folder / "report.json"
        target.write_text("old")
        result = run("check", BAD, "--format", "json", "-o", target)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(problems(json.loads(target.read_text()), schema("check")), [])
        other = self.folder / "other.json"
        result = run("check", BAD, "--format", "text", "--format", f"json={other}")
        self.assertIn("TL-S201", result.stdout)
        self.assertEqual(other.read_text(), target.read_text())
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["other.json", "report.json"])
        for name, kind in (("m.data", "data of models"), ("tensorlint.toml", "a configuration"), ("w.bin", "data of models")):
            written = self.folder / "kept" / name
            written.parent.mkdir(exist_ok=True)
            written.write_text("old")
            for options in (["-o", written], ["--write-baseline", written], ["--format", f"json={written}"]):
                result = run("check", BAD, *options)
                self.assertEqual((result.returncode, written.read_text()), (2, "old"))
                self.assertIn(f"is the name of {kind}", result.stderr)
        result = run("check", BAD, "-o", self.folder / "no/such/folder")
        self.assertEqual(result.returncode, 2)
        self.assertIn("cannot write", result.stderr)

    def test_the_number_of_findings_is_capped(self):
        nodes = "\n".join(f"  [n{i}] y{i} = Softmax (x{i})" for i in range(1500))
        model = self.write("many.onnxtxt", f'<ir_version: 10, opset_import: ["" : 21]>\nmany ({", ".join(f"int64[2] x{i}" for i in range(1500))}) => ({", ".join(f"y{i}" for i in range(1500))})\n{{\n{nodes}\n}}\n')
        code, document = self.check_json(model, "--max-findings", "3")
        self.assertEqual((code, len(document["findings"])), (1, 3))
        self.assertEqual(document["summary"], {"error": 1500, "warning": 0, "info": 0, "places": 1500, "omitted": 1497})
        self.assertIn("1497 more findings", run("check", model, "--max-findings", "3").stdout)

    def test_reports_do_not_depend_on_jobs(self):
        first = run("check", "samples", "tests/rules", "--jobs", "1", "--format", "json")
        second = run("check", "samples", "tests/rules", "--jobs", "4", "--format", "json")
        self.assertEqual(first.stdout, second.stdout)

    def test_timings(self):
        _, document = self.check_json(BAD, "--timings")
        self.assertGreater(document["inputs"][0]["peak_rss_bytes"], 0)
        self.assertIn("infer", run("check", BAD, "--timings").stdout)

    def test_names_cannot_reach_the_terminal_raw(self):
        name = 'a\x1b[31m\u202eb\x07\\\x9b'
        model = self.write("odd \x1b[2J.onnxtxt", f'<ir_version: 10, opset_import: ["" : 21]>\ng (int64[2] "{name}") => (y)\n{{\n  ["{name}"] y = Softmax ("{name}")\n}}\n')
        for arguments in [["check"], ["check", "--format", "json"], ["show"], ["show", "--format", "json"]]:
            result = run(*arguments, model)
            for character in "\x1b\u202e\x07\x9b":
                self.assertNotIn(character, result.stdout + result.stderr)

    def test_no_colour_outside_a_terminal(self):
        self.assertNotIn("\x1b", run("check", BAD, env={"TERM": "xterm-256color"}).stdout)

    # ---- the other commands

    def test_show(self):
        result = run("show", "--format", "json", OK)
        document = json.loads(result.stdout)
        self.assertEqual(problems(document, schema("show")), [])
        self.assertEqual(document["values"]["y"], {"dtype": ["float32"], "shape": ["N"], "device": document["values"]["y"]["device"], "range": [None, None]})
        self.assertEqual(document["values"]["axes"]["range"], [-1, -1])
        text = run("show", OK)
        self.assertEqual(text.returncode, 0)
        self.assertIn("scores: float32[N, 5]", text.stdout)
        for sample in sorted((ROOT / "samples").glob("*.onnx")):
            self.assertEqual(problems(json.loads(run("show", "--format", "json", sample).stdout), schema("show")), [], sample)

    def test_rules_and_explain(self):
        lines = run("rules").stdout.splitlines()
        self.assertGreater(len(lines), 30)
        for line in lines:
            code, name = line.split()[:2]
            self.assertTrue(run("explain", name).stdout.startswith(f"# {name} ({code})"))
        self.assertEqual(run("explain", "TL-S201").stdout, (ROOT / "docs/rules/reduction-axis-out-of-range.md").read_text())

    def test_help_and_version(self):
        for arguments in [["--help"], ["check", "--help"], ["--version"]]:
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(run("--version").stdout, r"^tensorlint \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
