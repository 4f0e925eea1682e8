"""The profile of blocks names the function whose loop runs, and how often it did."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
COMPILER = shutil.which("clang++-22")
PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
__attribute__((noinline)) int searched(int count) {
  volatile int found = 0;
  for (int i = 0; i < count; ++i) found = found + i % 3;
  return found;
}
int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--version") != 0)
    std::printf("{\\"inputs\\": [{\\"work\\": {\\"steps\\": %d}}]}", searched(std::atoi(argv[1])) * 0 + 1000);
}
"""


@unittest.skipUnless(COMPILER, "clang++-22 counts the blocks: `./dev setup fuzz`")
class BlockProfileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "p.cc").write_text(PROGRAM)

    def build(self, *flags):
        counts = self.folder / "counts.o"
        subprocess.run([COMPILER, "-std=c++20", "-c", HERE / "block_counts.cc", "-o", counts], check=True)
        subprocess.run([COMPILER, "-O1", "-g1", *flags, "-fuse-ld=lld", self.folder / "p.cc", counts, "-o", self.folder / "p"], check=True)

    def profile(self, *arguments):
        return subprocess.run([sys.executable, HERE / "block_profile.py", self.folder / "p", *arguments], capture_output=True, text=True)

    def test_a_loop_is_counted(self):
        self.build("-fsanitize-coverage=trace-pc-guard,pc-table")
        said = self.profile("5000").stdout
        count, name, place = re.search(r"^ +([\d,]+)  (\S+)  (\S+)$", said, re.MULTILINE).groups()
        self.assertIn("searched", name)
        self.assertIn("p.cc", place)
        self.assertGreaterEqual(int(count.replace(",", "")), 5000)
        self.assertRegex(said, r"exit code 0: [\d,]+ blocks, 1,000 steps, (5|10)\.\d blocks each")

    def test_a_program_that_counts_nothing(self):
        (self.folder / "p").write_text("#!/bin/sh\n")
        (self.folder / "p").chmod(0o755)
        ran = self.profile("5000")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("counts no blocks: build it with -DTENSORLINT_COUNT_BLOCKS=ON", ran.stderr)


if __name__ == "__main__":
    unittest.main()
