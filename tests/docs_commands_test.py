"""The commands that README and docs tell people to build with run as they are written, in a copy of the tree without any build.

The presets' flags are those of the build that runs this test, so ccache has nearly all of it; without ccache it takes minutes.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]


def documented(page: str, beginning: str) -> str:
    """The one line of a block of code that begins so."""
    lines = [line.strip() for line in (ROOT / page).read_text().splitlines() if line.lstrip().startswith(beginning)]
    if len(lines) != 1:
        raise AssertionError(f"{page} has {len(lines)} lines that begin with `{beginning}`")
    return re.sub(r"\s+# .*", "", lines[0])


class DocsCommandsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.clone = pathlib.Path(folder.name) / "tensorlint"
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in names.split("\0"):
            if name and (ROOT / name).is_file():
                (cls.clone / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, cls.clone / name)

    def run_there(self, command, folder=None):
        environment = {**os.environ, "TENSORLINT_PYTHON": sys.executable}
        result = subprocess.run(["bash", "-ec", command], cwd=folder or self.clone, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=580, check=False)
        self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout[-4000:]}{result.stderr[-4000:]}")
        return result.stdout

    def test_1_the_builder_is_built_installed_and_found(self):
        prefix = self.clone.parent / "prefix"
        command = documented("docs/builder.md", "cmake ")
        self.assertIn("PREFIX", command)
        self.run_there(command.replace("PREFIX", str(prefix)))
        snippet = re.search(r"```cmake\n(.*?)```", (ROOT / "docs/builder.md").read_text(), re.DOTALL)
        self.assertIsNotNone(snippet)
        consumer = self.clone.parent / "consumer"
        consumer.mkdir()
        shutil.copy(ROOT / "tests/builder/consumer/main.cc", consumer)
        find, link = snippet[1].strip().splitlines()
        (consumer / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.24)\nproject(app LANGUAGES CXX)\n{find}\nadd_executable(app main.cc)\n{link}\n")
        self.run_there(f"cmake -S . -B build -DCMAKE_PREFIX_PATH={prefix} && cmake --build build", consumer)
        self.assertIn("TL-D101", self.run_there("build/app model.onnx", consumer))

    def test_2_the_samples_are_checked(self):
        """`./dev setup` installs packages, so it is left to CI, which begins with it."""
        command = documented("README.md", "./dev setup && ./dev demo")
        said = self.run_there(command.replace("./dev setup && ", ""))
        self.assertIn("-> exit code 1: findings, as expected of this model", said)

    def test_3_the_kernels_are_configured_alone(self):
        self.run_there(documented("docs/kernels.md", "cmake "))
        self.assertTrue((self.clone / "build/kernels/build.ninja").exists())

    def test_4_warnings_stop_the_presets_only(self):
        """Other compilers and flags warn of other things; then a build must go on."""
        self.run_there("cmake -S . -B build/plain -G Ninja -DCMAKE_BUILD_TYPE=Release -DTENSORLINT_TESTS=OFF")
        self.assertNotIn("-Werror", (self.clone / "build/plain/compile_commands.json").read_text())
        self.run_there("cmake --preset release -DTENSORLINT_TESTS=OFF")
        self.assertIn("-Werror", (self.clone / "build/compile_commands.json").read_text())


if __name__ == "__main__":
    unittest.main()
