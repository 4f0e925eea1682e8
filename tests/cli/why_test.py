"""`tensorlint why`: the chain behind a value, back to where its dtype and shape began."""

import os
import subprocess
import unittest
from pathlib import Path

TOOL = os.environ["TENSORLINT_BINARY"]
SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def why(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, "why", *arguments], capture_output=True, text=True, timeout=60, check=False)


class WhyTest(unittest.TestCase):
    def test_the_chain_goes_back_to_initializers_and_inputs(self) -> None:
        result = why(str(SAMPLES / "encoder_bad.onnx"), "val_16")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("`val_16` is int64[4] = {batch, sequence, 2, 8}", result.stdout)
        self.assertIn("made by node `node_Concat_16` (Concat) at samples/encoder_step.py:", result.stdout)
        self.assertIn("it is an input", result.stdout)
        self.assertIn("it is an initializer", result.stdout)

    def test_the_origin_of_a_dtype_is_named(self) -> None:
        result = why(str(SAMPLES / "regression_bad.onnx"), "val_3")
        self.assertIn("part of that is a guess: something it depends on failed", result.stdout)

    def test_values_of_bodies_are_found(self) -> None:
        result = why(str(SAMPLES / "refine_loop_bad.onnx"), "add_10")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("node `node_add_10` (Add)", result.stdout)

    def test_a_name_that_nothing_has_is_refused(self) -> None:
        result = why(str(SAMPLES / "regression_bad.onnx"), "no\x1b[31msuch")
        self.assertEqual(result.returncode, 2)
        self.assertIn("has no value", result.stderr)
        self.assertNotIn("\x1b", result.stderr)


if __name__ == "__main__":
    unittest.main()
