"""`cmake --install` gives a program outside of the project all that it needs: it is configured, built and run here."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import onnx

BUILD = os.environ["TENSORLINT_BUILD_DIR"]
CONSUMER = Path(__file__).resolve().parent / "consumer"


def run(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout


class InstallTest(unittest.TestCase):
    def test_an_outside_program_builds_and_finds_its_mistake(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            prefix, build = f"{folder}/prefix", f"{folder}/build"
            run("cmake", "--install", BUILD, "--prefix", prefix)
            headers = sorted(str(path.relative_to(prefix)) for path in Path(prefix).rglob("*.h"))
            self.assertEqual(headers, ["include/tensorlint/builder.h", "include/tensorlint/dtype.h"])
            compiler = os.environ["TENSORLINT_CXX"]
            run("cmake", "-S", str(CONSUMER), "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}")
            run("cmake", "--build", build)
            line = next(number for number, text in enumerate((CONSUMER / "main.cc").read_text().splitlines(), 1) if "mse_loss" in text)
            self.assertEqual(run(f"{build}/app", f"{folder}/model.onnx"), f"float32[batch, 1]\nTL-D101 {line}\n")
            onnx.checker.check_model(onnx.load(f"{folder}/model.onnx"))
            findings = subprocess.run([f"{prefix}/bin/tensorlint", "check", f"{folder}/model.onnx"], capture_output=True, text=True, check=False)
            self.assertEqual(findings.returncode, 1)
            self.assertIn(f"main.cc:{line}\n", findings.stdout)


if __name__ == "__main__":
    unittest.main()
