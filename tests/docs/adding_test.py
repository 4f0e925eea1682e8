"""What docs/adding and `./dev new` say about adding a rule, an operator, a pass, a report and a command holds.

In a copy of the tree the files that the pages show are written and `./dev new` is run; what is new is compiled with the flags of
the build that runs this test and linked with its objects, and their tests run.
"""

import concurrent.futures
import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["TENSORLINT_BUILD_DIR"])
# Always the same folder, so that ccache knows it again.
COPY = BUILD / "adding" / "tree"
OUT = BUILD / "adding" / "out"
sys.path.insert(0, str(ROOT / "docs" / "tools"))

import new_files

# A new source of a folder is compiled as those of this target are.
ALIKE = {
    "analyzer/rules/": "analyzer/CMakeFiles/tensorlint_rules.dir/",
    "analyzer/reports/": "analyzer/CMakeFiles/tensorlint_report_formats.dir/",
    "analyzer/cli/": "analyzer/CMakeFiles/tensorlint.dir/",
    "ir/ops/entries/": "ir/CMakeFiles/tensorlint_ops.dir/",
    "passes/": "passes/CMakeFiles/tensorlint_losses.dir/",
    "tests/": "tests/CMakeFiles/tensorlint_tests.dir/",
}
SCAFFOLDS = ["rule dtype/scaffolded-rule", "op com.microsoft.ScaledSiLU", "report scaffolded", "command scaffold"]
# Not the rule's: it would report what the scaffolded one reports, which is the same under another name.
PAGES = ["operator", "pass", "report", "command"]


def run(command: list[str], folder: Path = COPY, **environment: str) -> str:
    result = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{shlex.join(command)[:300]}\n{result.stdout[-6000:]}{result.stderr[-6000:]}")
    return result.stdout


def copy_tree() -> None:
    shutil.rmtree(COPY, ignore_errors=True)
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)


@functools.cache
def launcher(compiler: str) -> list[str]:
    """What the build puts before the compiler: a compiler cache and its settings, here for the copy."""
    compilation = next(line for line in run(["ninja", "-t", "commands", "bin/tensorlint"], BUILD).splitlines() if f"{compiler} " in line and " -c " in line)
    words = shlex.split(compilation)
    return [word.replace(str(ROOT), str(COPY)) for word in words[: words.index(compiler)]]


def compile_new(source: str, alike: str) -> str:
    """The object of a source of the copy, by the command for one alike. Headers are those of the copy, too."""
    words = shlex.split(alike)
    target = OUT / (source.replace("/", "_") + ".o")
    words[words.index("-o") + 1] = str(target)
    words[words.index("-c") + 1] = str(COPY / source)
    words = [f"-I{COPY}" if word == f"-I{ROOT}" else word for word in words]
    run([*launcher(words[0]), *words], BUILD)
    return str(target)


def link(target: str, objects: list[str]) -> Path:
    """A program of the build with more objects, which come first."""
    command = run(["ninja", "-t", "commands", target], BUILD).splitlines()[-1]
    path = OUT / Path(target).name
    run(["bash", "-c", command.replace(f" -o {target} ", f" -o {shlex.quote(str(path))} {shlex.join(objects)} ")], BUILD)
    return path


class AddingTest(unittest.TestCase):
    new: list[str]  # files of the pages and of `./dev new`
    tests: Path
    program: Path

    @classmethod
    def setUpClass(cls) -> None:
        copy_tree()
        OUT.mkdir(parents=True, exist_ok=True)
        before = {path for path in COPY.rglob("*") if path.is_file()}
        for page in PAGES:
            for name, text in new_files.example(page).items():
                if (COPY / name).exists():
                    raise AssertionError(f"docs/adding/{page}.md shows {name}, which exists")
                (COPY / name).parent.mkdir(parents=True, exist_ok=True)
                (COPY / name).write_text(text)
        for scaffold in SCAFFOLDS:
            run(["./dev", "new", *scaffold.split()], TENSORLINT_PYTHON=sys.executable)
        cls.new = sorted(str(path.relative_to(COPY)) for path in COPY.rglob("*") if path.is_file() and path not in before)

        entries = json.loads((BUILD / "compile_commands.json").read_text())
        commands = [entry["command"] for entry in entries if "cmake_pch" not in entry["file"]]
        # The pages that are compiled in, with the new ones.
        ((pages, page_command),) = ((entry["file"], entry["command"]) for entry in entries if entry["file"].endswith("/rule_page.cc"))
        embed = run(["ninja", "-t", "commands", str(Path(pages).relative_to(BUILD))], BUILD).splitlines()[-1]
        run(["bash", "-c", embed.replace(f"{ROOT}/docs/rules", f"{COPY}/docs/rules").replace(f"-DOUTPUT={pages}", f"-DOUTPUT={COPY}/rule_page.cc")], BUILD)

        def alike(name: str) -> str:
            target = next(target for folder, target in ALIKE.items() if name.startswith(folder))
            return next(command for command in commands if f" -o {target}" in command)

        sources = {name: alike(name) for name in cls.new if name.endswith(".cc")}
        sources["rule_page.cc"] = page_command
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = dict(zip(sources, pool.map(lambda name: compile_new(name, sources[name]), sources), strict=True))
        cls.tests = link("bin/tensorlint_tests", [path for name, path in objects.items() if not name.startswith("analyzer/cli/")])
        cls.program = link("bin/tensorlint", [path for name, path in objects.items() if not name.startswith("tests/")])

    def test_the_cpp_tests_pass(self) -> None:
        """Those of what is new, of all rules (a new one must not report what others' fixtures hold), and of the registries."""
        output = run([str(self.tests), "--gtest_filter=*UnfoldTensor*:*ScaledSiLU*:FanOut*:Rules*:Registry*"])
        for name in ["scaffolded_rule", "UnfoldTensor.TheAxisExists", "ScaledSiLU.Shape", "FanOut.OperandsAndOutputsAreReaders"]:
            self.assertIn(name, output)

    def test_the_python_tests_pass(self) -> None:
        scripts = [name for name in self.new if name.endswith("_test.py")]
        self.assertEqual(len(scripts), 4, scripts)
        for script in scripts:
            with self.subTest(script):
                run([sys.executable, script], TENSORLINT_BINARY=str(self.program))

    def test_the_program_knows_them(self) -> None:
        self.assertIn("scaffold ", run([str(self.program), "--help"]))
        self.assertIn("text (default), csv, json or scaffolded;", " ".join(run([str(self.program), "check", "--help"]).split()))
        self.assertIn("scaffolded-rule", run([str(self.program), "rules"]))
        self.assertTrue(run([str(self.program), "explain", "scaffolded-rule"]).startswith("# scaffolded-rule (TL-D"))

    def test_the_index_of_symptoms_is_up_to_date(self) -> None:
        run([sys.executable, "docs/tools/symptoms.py", "--check"])

    def test_the_style_is_that_of_the_project(self) -> None:
        formatter = Path(sys.executable).parent / "clang-format"
        run([str(formatter), "--dry-run", "-Werror", *(name for name in self.new if name.endswith((".cc", ".h")))])
        run([sys.executable, "-m", "ruff", "check", "--quiet", *(name for name in self.new if name.endswith(".py"))])

    def test_bad_names_are_refused(self) -> None:
        for arguments, reason in {
            "rule shape": "a rule is named like",
            "rule fruit/apple": "no group `fruit`",
            "rule shape/Bad": "a rule is named like",
            "rule dtype/scaffolded-rule": "there is a rule of that name",
            "op NoSuchOperator": "no schema",
            "op unfoldtensor": "is `com.microsoft.UnfoldTensor` meant?",
            "op reducemean": "is `ReduceMean` meant?",
            "op ReduceMean": "has an entry in",
            "op com.microsoft.FusedMatMul": "has an entry in",
            "op ../../x": "an operator is named like",
            "report Csv": "one word in lower case",
            "report csv": "exists already",
            "command ../x": "one word in lower case",
            "command": "usage",
        }.items():
            with self.subTest(arguments):
                result = subprocess.run([sys.executable, "docs/tools/new_files.py", *arguments.split()], cwd=COPY, capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 2)
                self.assertIn(reason, result.stderr)


if __name__ == "__main__":
    unittest.main()
