"""`contract` on sizes that a model chooses: the work follows from the model's bytes, not from its numbers."""

import os
import resource
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = Path(os.environ["TENSORLINT_BUILD_DIR"]) / "bin" / "tensorlint"


class ContractWorkTest(unittest.TestCase):
    def contract(self, text: str) -> tuple[str, float]:
        """The output, and seconds of processor time."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnxtxt"
            path.write_text(text)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            result = subprocess.run([TOOL, "contract", path], capture_output=True, text=True, timeout=60)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return result.stdout, after.ru_utime - before.ru_utime

    def test_sums_of_wide_shapes_are_charged_by_their_axes(self) -> None:
        axes = ", ".join(f"n{i}" for i in range(60))
        inputs = ", ".join(f"float[{axes}] x{i}" for i in range(8))
        nodes = "\n".join(f"  y{i + 1} = Sum (y{i}, " + ", ".join(f"x{k}" for k in range(8)) + ")" for i in range(1500))
        text, seconds = self.contract(f'<ir_version: 10, opset_import: ["" : 21]>\ng ({inputs}) => (y1500)\n{{\n  y0 = Neg (x0)\n{nodes}\n}}\n')
        self.assertIn("incomplete", text)
        self.assertLess(seconds, 2, "10 s when a node counted as one, however many axes its operands have")

    def test_divisors_of_a_large_size(self) -> None:
        # A prime, a product of two large primes, and a number with many divisors.
        for size in (2147483629, 46337 * 46327, 2095133040):
            lines = [f"  y{i} = Reshape (x{i}, s)" for i in range(8)]
            inputs = ", ".join(f"float[N{i}] x{i}" for i in range(8))
            outputs = ", ".join(f"y{i}" for i in range(8))
            text = f'<ir_version: 10, opset_import: ["" : 21]>\ng ({inputs}) => ({outputs})\n<int64[2] s = {{-1, {size}}}>\n{{\n' + "\n".join(lines) + "\n}\n"
            _, seconds = self.contract(text)
            self.assertLess(seconds, 2, f"{size}: 5 s for each input when divisors were counted up to")


if __name__ == "__main__":
    unittest.main()
