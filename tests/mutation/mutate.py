"""Mutation testing of our own sources: what share of one-token changes do the tests notice?

    mutate.py [--build DIR] [--in GLOB]... [--sample N] [--seed S] [--jobs J] [--tests FILTER] [--python] [--json FILE]
    mutate.py --again FILE            the survivors of an earlier run's --json, once more
    mutate.py --mutant "FILE:LINE:COLUMN BEFORE -> AFTER"

Every source is compiled once, with all its mutants in it as choices at run time (mutants.py, switch.h), and linked with the other
objects of an up-to-date build. Each test is run once to see which mutants it reaches; then each mutant runs the tests that reach it,
the quick ones first and the slow ones last, until one fails, crashes or runs past its limit: killed. --python adds the Python tests listed in PYTHON_TESTS
for what survives. Mutants that change no behaviour are listed with the reason in equivalent.txt and left out of the score.
Exit: 0 score at least --least percent, 1 below, 2 something is wrong.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

import mutants

ROOT = pathlib.Path(__file__).resolve().parents[2]
EQUIVALENT = pathlib.Path(__file__).with_name("equivalent.txt")
SOURCES = ["passes/losses/*.cc", "passes/dataflow/*.cc", "analyzer/rules/*.cc", "analyzer/rules/*/*.cc", "ir/ops/*.cc", "ir/ops/entries/*.cc"]
# Half a minute and more, about the placer's answers alone.
LEFT_OUT = ["RandomPlacements.*"]
PYTHON_TESTS = ["losses/losses_test.py", "soundness/coverage_test.py", "soundness/facts_hold_test.py", "fixes/fix_test.py", "cli/why_test.py", "cli/signatures_test.py"]
QUICK, SLOW = 0.05, 1  # seconds
WITHOUT_MUTANT = 3600  # seconds at most: all tests, or the longest with a list of what it reaches, on a busy machine
MEMORY = 4 << 30
PROGRAMS = ["tensorlint_tests", "tensorlint"]


class Trouble(Exception):
    pass


@dataclass
class Source:
    path: str
    text: str
    sites: list[mutants.Site]
    dropped: int = 0

    def mutants(self) -> list[mutants.Mutant]:
        return [mutant for site in self.sites for mutant in site.mutants]


@dataclass
class Test:
    name: str
    seconds: float
    reaches: set[int] = field(default_factory=set)
    command: list[str] = field(default_factory=list)  # of a Python test
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Verdict:
    mutant: mutants.Mutant
    path: str
    line: str  # of the source
    killed_by: str = ""
    reached: bool = True
    reason: str = ""  # why it is equivalent

    def key(self) -> str:
        """Without a line number, which other changes shift."""
        start = self.mutant.column - 1 - (len(self.line) - len(self.line.lstrip()))
        text = self.line.strip()
        nth = text[:start].count(self.mutant.before) + 1
        mark = f"{self.mutant.before} #{nth}" if text.count(self.mutant.before) > 1 else self.mutant.before
        return f"{self.path} | {text} | {mark} -> {self.mutant.after}"

    def title(self) -> str:
        return f"{self.path}:{self.mutant.line}:{self.mutant.column} {self.mutant.before} -> {self.mutant.after}"


# ---- building


def chosen_sources(patterns: list[str]) -> list[Source]:
    known = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    # Component by component: a `*` of git takes folders too.
    paths = [path for path in known if all(any(pathlib.PurePath(path).match(pattern) for pattern in some) for some in (SOURCES, patterns))]
    if not paths:
        raise Trouble(f"no source matches {' '.join(patterns)}")
    found = []
    bases: dict[int, str] = {}
    for path in sorted(paths):
        text = (ROOT / path).read_text()
        base = mutants.number_base(path)
        if other := bases.get(base):
            raise Trouble(f"{path} and {other} have the same numbers: change number_base")
        bases[base] = path
        sites = mutants.sites_of(text, base + 1)
        if sites and sites[-1].mutants[-1].id - base >= 1 << mutants.MUTANT_BITS:
            raise Trouble(f"{path} has too many mutants for its numbers")
        found.append(Source(path, text, sites))
    return found


class Build:
    """Objects and programs of instrumented sources, in DIR/mutation of an existing build."""

    def __init__(self, folder: pathlib.Path, jobs: int) -> None:
        self.folder = folder.resolve()
        self.out = self.folder / "mutation"
        self.jobs = jobs
        commands = self.folder / "compile_commands.json"
        if not commands.exists():
            raise Trouble(f"{folder} is not a build: run `./dev build` first")
        self.commands: dict[str, str] = {}
        #: Of a file that is compiled together with others: all of them.
        self.together: dict[str, list[str]] = {}
        for entry in json.loads(commands.read_text()):
            unit = pathlib.Path(entry["file"])
            files = [str(ROOT / name) for name in re.findall(r'^#include "(.*)"$', unit.read_text(), re.MULTILINE)] if unit.parent.name == "units" else []
            for file in files or [entry["file"]]:
                self.commands[file] = entry["command"]
                self.together[file] = files

    def command(self, source: Source) -> list[str]:
        line = self.commands.get(str(ROOT / source.path))
        if line is None:
            raise Trouble(f"{self.folder} does not compile {source.path}")
        return shlex.split(line)

    def compile(self, source: Source) -> None:
        """Leaves out the sites that do not compile."""
        copy = self.out / source.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        known = self.out / f"{source.path}.dropped"
        if known.exists():
            stored = json.loads(known.read_text())
            if stored["text"] == source.text:
                source.sites = [site for site in source.sites if site.mutants[0].id not in stored["dropped"]]
        for _ in range(20):
            errors = self.compile_once(source, copy)
            if not errors:
                break
            # A compiler cache with a base folder makes the path relative.
            name = re.escape(str(copy.relative_to(self.folder)))
            lines = {int(line) for line in re.findall(rf"(?:^|/){name}:(\d+)(?::\d+)?: +(?:error|required from)", errors, re.MULTILINE)}
            kept = [site for site in source.sites if not self.touches(source, site, lines)]
            if len(kept) == len(source.sites):
                raise Trouble(f"{source.path} does not compile:\n{errors[:2000]}")
            source.sites = kept
        left = {mutant.id for mutant in source.mutants()}
        every = [m.id for s in mutants.sites_of(source.text, mutants.number_base(source.path) + 1) for m in s.mutants]
        source.dropped = len(every) - len(left)
        known.write_text(json.dumps({"text": source.text, "dropped": [i for i in every if i not in left]}))

    @staticmethod
    def touches(source: Source, site: mutants.Site, lines: set[int]) -> bool:
        if site.mutants[0].line in lines:
            return True
        spans = [(start, end) for start, end, *_ in site.around + site.outside]
        return any(source.text.count("\n", 0, start) + 1 in lines for start, _ in spans)

    def compile_once(self, source: Source, copy: pathlib.Path) -> str:
        command = self.command(source)
        at = command.index("-o")
        target = self.out / f"{source.path}.o"
        flags = [word for word in command[1:at] if not word.startswith(("-W", "-O"))]
        text = mutants.instrumented(source.text, source.sites)
        if not copy.exists() or copy.read_text() != text:
            copy.write_text(text)
        header = pathlib.Path(__file__).with_name("switch.h")
        newest = max(path.stat().st_mtime for path in [copy, header, *self.headers(target)])
        if target.exists() and target.stat().st_mtime > newest:
            return ""
        launcher = ["ccache"] if shutil.which("ccache") else []
        full = [*launcher, command[0], *flags, "-O1", "-w", "-D_GLIBCXX_ASSERTIONS", "-include", str(header), "-MMD", "-MF", f"{target}.d", "-o", str(target), "-c", str(copy)]
        ran = subprocess.run(full, cwd=self.folder, capture_output=True, text=True)
        return "" if ran.returncode == 0 else ran.stderr or "the compiler gives no reason"

    def headers(self, target: pathlib.Path) -> list[pathlib.Path]:
        listed = pathlib.Path(f"{target}.d")
        words = listed.read_text().replace("\\\n", " ").split()[1:] if listed.exists() else []
        paths = [(self.folder / word).resolve() for word in words]  # a compiler cache makes some relative
        # Of a precompiled header the list has the name, and not what it holds.
        paths += [path.with_name(f"{path.name}.gch") for path in paths]
        return [path for path in paths if path.is_relative_to(ROOT) and path.exists()]

    def rest_of_units(self, sources: list[Source]) -> list[str]:
        """Objects of what was compiled together with the sources, as it is."""
        objects = []
        ours = {str(ROOT / source.path) for source in sources}
        for source in sources:
            command = self.command(source)
            at = command.index("-o")
            rest = [file for file in self.together[str(ROOT / source.path)] if file not in ours]
            name = f"mutation/rest/{command[at + 1].replace('/', '_')}"
            if not rest or name in objects:
                continue
            objects.append(name)
            unit = self.folder / f"{name}.cc"
            unit.parent.mkdir(parents=True, exist_ok=True)
            unit.write_text("".join(f'#include "{file}"\n' for file in rest))
            launcher = ["ccache"] if shutil.which("ccache") else []
            ran = subprocess.run([*launcher, *command[:at], "-w", "-o", name, "-c", str(unit)], cwd=self.folder, capture_output=True, text=True)
            if ran.returncode != 0:
                raise Trouble(f"{unit} does not compile:\n{ran.stderr[:2000]}")
        return objects

    def link(self, sources: list[Source]) -> None:
        shown = subprocess.run(["ninja", "-C", str(self.folder), "-t", "commands", *(f"bin/{name}" for name in PROGRAMS)], capture_output=True, text=True, check=True)
        rest = self.rest_of_units(sources)
        for name in PROGRAMS:
            line = next(text for text in shown.stdout.splitlines() if f" -o bin/{name} " in text)
            ours = list(rest)
            for source in sources:
                ours.append(f"mutation/{source.path}.o")
                # An object stands in the line itself; a member of an archive stays behind, since ours comes first.
                target = self.command(source)
                line = line.replace(f" {target[target.index('-o') + 1]} ", " ")
            line = line.replace(f" -o bin/{name} ", f" {' '.join(ours)} -o mutation/{name} ")
            ran = subprocess.run(line, shell=True, cwd=self.folder, capture_output=True, text=True)
            if ran.returncode != 0:
                raise Trouble(f"{name} does not link: {ran.stderr[:2000]}")
        # What the programs look for beside themselves.
        for path in (self.folder / "bin").iterdir():
            beside = self.out / path.name
            if path.name not in PROGRAMS and not beside.exists():
                beside.unlink(missing_ok=True)
                beside.symlink_to(path)

    def make(self, sources: list[Source]) -> None:
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(self.compile, sources))
        self.link(sources)


# ---- tests


class Tests:
    def __init__(self, build: Build, chosen: str, python: list[str]) -> None:
        self.build = build
        self.chosen = chosen
        self.program = build.out / "tensorlint_tests"
        self.tests = self.of_gtest()
        self.python = self.of_ctest(python) if python else []
        self.left_out: set[int] = set()

    def run(self, command: list[str], environment: dict[str, str], limit: float) -> tuple[int, str]:
        """Exit status and output; status 124 past the limit."""
        def bound() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        inherited = {name: value for name, value in os.environ.items() if name != "TENSORLINT_UPDATE"}
        try:
            ran = subprocess.run(command, cwd=ROOT, env={**inherited, **environment}, capture_output=True, text=True, errors="replace", timeout=limit, preexec_fn=bound, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return 124, ""
        return ran.returncode, ran.stdout + ran.stderr

    def of_gtest(self) -> list[Test]:
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            status, output = self.run([str(self.program), f"--gtest_filter={self.chosen}-{':'.join(LEFT_OUT)}", f"--gtest_output=json:{file.name}"], {}, WITHOUT_MUTANT)
            if status != 0:
                raise Trouble(f"the tests fail without a mutant:\n{output[-2000:]}")
            suites = json.loads(pathlib.Path(file.name).read_text()).get("testsuites", [])
        if not suites:
            raise Trouble(f"no test matches {self.chosen}")
        return [Test(f"{suite['name']}.{test['name']}", float(test["time"].rstrip("s"))) for suite in suites for test in suite["testsuite"]]

    def of_ctest(self, names: list[str]) -> list[Test]:
        shown = subprocess.run(["ctest", "--test-dir", str(self.build.folder), "--show-only=json-v1"], capture_output=True, text=True, check=True)
        found = []
        for entry in json.loads(shown.stdout)["tests"]:
            if entry["name"].removeprefix("python:") not in names:
                continue
            properties = {item["name"]: item["value"] for item in entry["properties"]}
            environment = dict(text.split("=", 1) for text in properties.get("ENVIRONMENT", []))
            environment["TENSORLINT_BINARY"] = str(self.build.out / "tensorlint")
            found.append(Test(entry["name"], 0, command=entry["command"], environment=environment))
        if missing := set(names) - {test.name.removeprefix("python:") for test in found}:
            raise Trouble(f"{self.build.folder} has no Python test {', '.join(sorted(missing))}")
        return found

    def measure_reach(self, jobs: int) -> None:
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.measure, [*self.tests, *self.python]))

    def measure(self, test: Test) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "reach"
            start = time.monotonic()
            command = test.command or [str(self.program), f"--gtest_filter={test.name}"]
            status, output = self.run(command, {**test.environment, "TENSORLINT_REACH": str(file)}, WITHOUT_MUTANT)
            if status != 0:
                raise Trouble(f"{test.name} fails without a mutant:\n{output[-2000:]}")
            if test.command:
                test.seconds = time.monotonic() - start
            numbers = [int(text) for text in file.read_text().split()] if file.exists() else []
        test.reaches = {number for number in numbers if number > 0}
        self.left_out |= {-number for number in numbers if number < 0}

    def killer(self, mutant: mutants.Mutant) -> tuple[str, bool]:
        """The test that fails with the mutant, or "" ; and whether any test reaches it."""
        reaching = [test for test in self.tests if self.reaches(test, mutant)]
        for least, below in ((0, QUICK), (QUICK, SLOW), (SLOW, math.inf)):
            tests = [test for test in reaching if least <= test.seconds < below]
            if not tests:
                continue
            names = ":".join(test.name for test in tests)
            # A loaded machine is slow; a run starts with loading the program.
            limit = 20 + 10 * sum(test.seconds for test in tests)
            status, output = self.run([str(self.program), "--gtest_fail_fast", "--gtest_brief=1", f"--gtest_filter={names}"], self.active(mutant), limit)
            if status != 0:
                failed = re.search(r"\[  FAILED  \] ([^\s,]+)", output)
                return failed[1] if failed else ("time limit" if status == 124 else f"exit status {status}"), True
        for test in self.python:
            if not self.reaches(test, mutant):
                continue
            reaching.append(test)
            status, _ = self.run(test.command, {**test.environment, **self.active(mutant)}, 30 + 10 * test.seconds)
            if status != 0:
                return test.name, True
        return "", bool(reaching)

    @staticmethod
    def reaches(test: Test, mutant: mutants.Mutant) -> bool:
        return mutant.id in test.reaches

    @staticmethod
    def active(mutant: mutants.Mutant) -> dict[str, str]:
        return {"TENSORLINT_MUTANT": str(mutant.id)}


# ---- results


def equivalents() -> dict[str, str]:
    """What equivalent.txt lists: mutant -> reason. A reason stands on the lines below its mutants, indented."""
    found: dict[str, str] = {}
    pending: list[str] = []
    for line in EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []:
        if line.startswith("    "):
            found.update(dict.fromkeys(pending, line.strip()))
            pending = []
        elif line and not line.startswith("#"):
            pending.append(line)
    if pending:
        raise Trouble(f"{EQUIVALENT.name}: no reason follows {pending[0]}")
    return found


def candidates(sources: list[Source], options: argparse.Namespace) -> list[Verdict]:
    """In the order in which they are drawn; some of a sample are to spare, for those that turn out to be no mutants."""
    everything = []
    for source in sources:
        lines = source.text.splitlines()
        everything += [Verdict(mutant, source.path, lines[mutant.line - 1]) for mutant in source.mutants()]
    if options.again:
        keys = {entry["key"] for entry in json.loads(options.again.read_text())["mutants"] if not entry["killed by"]}
        return [verdict for verdict in everything if verdict.key() in keys]
    if options.mutant:
        return [verdict for verdict in everything if verdict.title() in options.mutant]
    if options.sample:
        return random.Random(options.seed).sample(everything, min(options.sample + options.sample // 5 + 5, len(everything)))
    return everything


def chosen(drawn: list[Verdict], sources: list[Source], options: argparse.Namespace, left_out: set[int]) -> list[Verdict]:
    compiled = {mutant.id for source in sources for mutant in source.mutants()}
    valid = [verdict for verdict in drawn if verdict.mutant.id in compiled and verdict.mutant.id not in left_out]
    if options.sample and not options.again and not options.mutant:
        if len(valid) < options.sample < len(drawn):
            raise Trouble(f"only {len(valid)} of {len(drawn)} drawn are mutants")
        valid = valid[: options.sample]
    return sorted(valid, key=lambda verdict: (verdict.path, verdict.mutant.id))


def table(verdicts: list[Verdict]) -> str:
    rows: dict[str, list[int]] = {}
    for verdict in verdicts:
        row = rows.setdefault(str(pathlib.Path(verdict.path).parent), [0, 0, 0])
        row[0] += 1
        row[1] += bool(verdict.killed_by)
        row[2] += bool(verdict.reason) and not verdict.killed_by
    rows["all"] = [sum(row[i] for row in rows.values()) for i in range(3)]
    lines = ["| folder | mutants | killed | equivalent | score |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, (count, killed, same) in rows.items():
        lines.append(f"| {name} | {count} | {killed} | {same} | {100 * killed / max(count - same, 1):.1f} % |")
    return "\n".join(lines)


def judge(tests: Tests, verdict: Verdict, reasons: dict[str, str]) -> None:
    verdict.reason = reasons.get(verdict.key(), "")
    verdict.killed_by, verdict.reached = tests.killer(verdict.mutant)
    if verdict.killed_by:
        if verdict.reason:
            print(f"NOT EQUIVALENT {verdict.key()}: {verdict.killed_by}", flush=True)
        return
    state = "equivalent" if verdict.reason else "survives" if verdict.reached else "not reached"
    print(f"{state:12} {verdict.title()}\n             {verdict.line.strip()}", flush=True)


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--in", dest="patterns", action="append", help="sources, as a glob from the root (default: all of SOURCES)")
    parser.add_argument("--sample", type=int, default=0, help="that many mutants, drawn by chance (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mutant", action="append", help="this mutant, as printed")
    parser.add_argument("--again", type=pathlib.Path, help="the survivors of an earlier --json")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tests", default="*", help="only these, as a filter of gtest")
    parser.add_argument("--python", action="store_true", help="run the Python tests too")
    parser.add_argument("--least", type=float, default=90.0, help="percent to be killed")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = options_of(arguments)
    reasons = equivalents()
    build = Build(options.build, options.jobs)
    sources = chosen_sources(options.patterns or SOURCES)
    count = sum(len(source.mutants()) for source in sources)
    drawn = candidates(sources, options)
    # The rest is not needed.
    paths = {verdict.path for verdict in drawn}
    of = len(sources)
    sources = [source for source in sources if source.path in paths]
    if not sources:
        raise Trouble("there is no such mutant")
    build.make(sources)
    dropped = sum(source.dropped for source in sources)
    print(f"{count} mutants in {of} sources; {dropped} in the {len(sources)} that are needed do not compile", flush=True)
    tests = Tests(build, options.tests, PYTHON_TESTS if options.python else [])
    tests.measure_reach(options.jobs)
    verdicts = chosen(drawn, sources, options, tests.left_out)
    if not verdicts:
        raise Trouble("there is no such mutant")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda verdict: judge(tests, verdict, reasons), verdicts))
    print(table(verdicts))
    killed = sum(bool(verdict.killed_by) for verdict in verdicts)
    same = sum(bool(verdict.reason) and not verdict.killed_by for verdict in verdicts)
    score = 100 * killed / max(len(verdicts) - same, 1)
    if options.json:
        entries = [{"key": v.key(), "title": v.title(), "kind": v.mutant.kind, "killed by": v.killed_by, "reached": v.reached, "equivalent": v.reason} for v in verdicts]
        options.json.write_text(json.dumps({"seed": options.seed, "score": score, "mutants": entries}, indent=1) + "\n")
    return 0 if score >= options.least else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Trouble as trouble:
        print(f"mutate.py: {trouble}", file=sys.stderr)
        sys.exit(2)
