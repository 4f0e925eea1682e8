"""The models of the benchmark are valid, and nothing is found in them."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
SMALLEST = ["decoder_1k", "nested_2", "nested_16", "siblings_1k", "doubling_10", "calls_1k", "fanout_10k"]


class BenchModelsTest(unittest.TestCase):
    def test_they_are_valid(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, ROOT / "bench" / "generate_models.py", folder, *SMALLEST], check=True, capture_output=True)
            for name in SMALLEST:
                path = pathlib.Path(folder) / f"{name}.onnx"
                with self.subTest(name=name):
                    onnx.checker.check_model(str(path), full_check=True)
                    result = subprocess.run([BINARY, "check", path], capture_output=True, text=True)
                    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
