"""The mutants of every kind do what they say, what they must leave alone stays, and a slice of a real run kills what it should."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import mutants
import mutate

BUILD = pathlib.Path(os.environ.get("TENSORLINT_BUILD_DIR", mutate.ROOT / "build"))
COMPILER = os.environ.get("TENSORLINT_CXX", "g++")

# One function per kind; what each prints, and what it prints under each of its mutants, stands in RESULTS.
PROGRAM = """
#include <cstdio>
#include <string>
#include <vector>
int visits = 0;
bool yes() {
  ++visits;
  return true;
}
bool no() { return false; }
int less(int a, int b) { return a < b ? 1 : 0; }
int equal(int a, int b) { return a == b ? 1 : 0; }
bool both() { return no() && yes(); }
bool three(int a, int b) { return a == 1 && b == 2 && a < b; }
int sum(int a, int b) { return a + b * 2; }
std::string text(const std::string& a) { return a + "!"; }
int smaller(int a, int b) { return std::min(a, b); }
int skip() {
  int count = 0;
  for (const int i : {1, 2, 3}) {
    if (i == 2) continue;
    count += i == 3 ? 3 : i;
  }
  return count;
}
int early(bool now) {
  if (now) return 5;
  return 7;
}
int negated(bool a) {
  if (!a) return 1;
  return 2;
}
constexpr int kSize = 3 + 4;
template <int kN>
int fixed() { return kN; }
int constants(int k) {
  static_assert(kSize < 8);
  int array[kSize] = {};
  switch (k) {
    case 1: return fixed<2>();
    default: return array[0];
  }
}
int main() {
  std::printf("less %d %d\\n", less(1, 1), less(1, 2));
  std::printf("equal %d\\n", equal(1, 1));
  std::printf("both %d", both());
  std::printf(" %d\\n", visits);
  std::printf("three %d %d\\n", three(1, 2), three(1, 3));
  std::printf("sum %d\\n", sum(2, 3));
  std::printf("text %s\\n", text("a").c_str());
  std::printf("smaller %d\\n", smaller(2, 3));
  std::printf("skip %d\\n", skip());
  std::printf("early %d\\n", early(true));
  std::printf("negated %d %d\\n", negated(true), negated(false));
  std::printf("constants %d\\n", constants(1));
}
"""
# Line of the source, token, what is there instead: the line of output that differs from the one without a mutant, and what it is.
RESULTS = {
    ("int less", "<", "<="): "less 1 1",
    ("int less", "<", ">="): "less 1 0",
    ("int equal", "==", "!="): "equal 0",
    ("bool both", "&&", "||"): "both 1 1",
    ("bool three", "<", ">="): "three 0 0",
    ("int sum", "+", "-"): "sum -4",
    ("int sum", "*", "+"): "sum 7",
    ("int sum", "2", "3"): "sum 11",
    ("int sum", "2", "1"): "sum 5",
    ("int smaller", "min", "max"): "smaller 3",
    ("    if (i", "continue", "nothing"): "skip 6",
    ("    count", "+=", "-="): "skip -4",
    ("  if (now)", "return", "nothing"): "early 7",
    ("  if (now)", "now", "!(...)"): "early 7",
    ("  if (!a)", "!", "nothing"): "negated 1 2",
}
NEVER = ("constexpr", "template", "int fixed", "  static_assert", "    case")


class MutantsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, mutant: int) -> list[str]:
        ran = subprocess.run([str(self.folder / "program")], env={"TENSORLINT_MUTANT": str(mutant), "TENSORLINT_REACH": str(self.folder / "reach")},
                             capture_output=True, text=True, timeout=60, check=True)
        return ran.stdout.splitlines()

    def test_each_kind_does_what_it_says(self) -> None:
        sites = mutants.sites_of(PROGRAM, 1)
        source = self.folder / "program.cc"
        source.write_text(mutants.instrumented(PROGRAM, sites))
        header = pathlib.Path(mutants.__file__).with_name("switch.h")
        subprocess.run([COMPILER, "-std=c++20", "-O0", "-w", "-include", str(header), str(source), "-o", str(self.folder / "program")], check=True)
        usual = self.run_program(0)
        self.assertEqual(usual[3:7], ["three 1 0", "sum 8", "text a!", "smaller 2"])
        reached = (self.folder / "reach").read_text().split()
        lines = PROGRAM.splitlines()
        seen = set()
        for mutant in (mutant for site in sites for mutant in site.mutants):
            line = lines[mutant.line - 1]
            self.assertFalse(line.startswith(NEVER), line)
            if line.startswith("std::string text"):
                self.assertIn(f"-{mutant.id}", reached, "no arithmetic, so no mutant")
                continue
            for (start, before, after), expected in RESULTS.items():
                if line.startswith(start) and (mutant.before, mutant.after) == (before, after):
                    seen.add((start, before, after))
                    self.assertIn(str(mutant.id), reached)
                    changed = [text for text, old in zip(self.run_program(mutant.id), usual, strict=True) if text != old]
                    self.assertEqual(changed, [expected], f"{line}: {before} -> {after}")
        self.assertEqual(seen, set(RESULTS))

    def test_lines_stay(self) -> None:
        for path in ("passes/losses/expressions.cc", "passes/dataflow/loops.cc", "ir/ops/windows.cc"):
            text = (mutate.ROOT / path).read_text()
            sites = mutants.sites_of(text, 1)
            self.assertGreater(len(sites), 50)
            self.assertEqual(mutants.instrumented(text, sites).count("\n"), text.count("\n"))
            self.assertEqual(mutants.instrumented(text, []), text)

    def test_a_slice_is_killed(self) -> None:
        """Mutants of a small source of our own, through the whole machinery: all of these are known to be killed."""
        if not (BUILD / "build.ninja").exists():
            self.skipTest("the link commands are read from a Ninja build")
        results = self.folder / "results.json"
        status = mutate.main(["--build", str(BUILD), "--in", "passes/losses/binary_cross_entropy.cc", "--tests", "Losses.*", "--sample", "12", "--seed", "1",
                              "--least", "80", "--json", str(results)])
        found = json.loads(results.read_text())["mutants"]
        self.assertEqual(len(found), 12)
        self.assertEqual(status, 0, found)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
