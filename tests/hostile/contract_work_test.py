"""`contract` on sizes that a model chooses: the work follows from the model's bytes, not from its numbers."""

import os
import resource
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = Path(os.environ["TENSORLINT_BUILD_DIR"]) / "bin" / "tensorlint"


class ContractWorkTest(unittest.TestCase):
    def test_divisors_of_a_large_size(self) -> None:
        # A prime, a product of two large primes, and a number with many divisors.
        for size in (2147483629, 46337 * 46327, 2095133040):
            lines = [f"  y{i} = Reshape (x{i}, s)" for i in range(8)]
            inputs = ", ".join(f"float[N{i}] x{i}" for i in range(8))
            outputs = ", ".join(f"y{i}" for i in range(8))
            text = f'<ir_version: 10, opset_import: ["" : 21]>\ng ({inputs}) => ({outputs})\n<int64[2] s = {{-1, {size}}}>\n{{\n' + "\n".join(lines) + "\n}\n"
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "m.onnxtxt"
                path.write_text(text)
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                result = subprocess.run([TOOL, "contract", path], capture_output=True, text=True, timeout=60)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertIn(result.returncode, (0, 1), result.stderr)
            self.assertLess(after.ru_utime - before.ru_utime, 2, f"{size}: 5 s for each input when divisors were counted up to")


if __name__ == "__main__":
    unittest.main()
