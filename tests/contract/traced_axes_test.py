"""works-only-at-some-sizes on models that hold the size of the trace, and on their twins that follow the input."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from traced_models import TRACED

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
RULE = "works-only-at-some-sizes"


class TracedAxesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def findings(self, name: str, model: onnx.ModelProto) -> list[dict[str, Any]]:
        path = self.folder / f"{name}.onnx"
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)
        result = subprocess.run([BINARY, "check", path, "--format", "json"], capture_output=True, text=True,
                                timeout=60, check=False)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        found: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
        self.assertEqual([f for f in found if f["severity"] == "error"], [], name)
        return [f for f in found if f["rule"] == RULE]

    def test_each_traced_axis_is_named_with_its_size_and_node(self) -> None:
        for case in TRACED:
            with self.subTest(case.name):
                found = self.findings(case.name, case.model(baked=True))
                places = [each for finding in found for each in [finding, *finding.get("also", [])]]
                self.assertEqual({each["node"] for each in places}, {case.node})
                messages = sorted(finding["message"] for finding in found)
                expected = []
                for (name, axis), (least, most) in case.axes.items():
                    sizes = str(most) if least == most else f"{least} to {most}"
                    runs = f"where {case.formula}" if case.formula else f"with {sizes}"
                    expected.append((f"axis {axis} of `{name}` is declared ", f" runs only {runs}"))
                self.assertEqual(len(messages), len(expected), messages)
                for message, (first, last) in zip(messages, sorted(expected), strict=True):
                    self.assertTrue(message.startswith(first), message)
                    self.assertTrue(message.endswith(last), message)

    def test_what_follows_the_input_is_quiet(self) -> None:
        for case in TRACED:
            with self.subTest(case.name):
                self.assertEqual(self.findings(case.name, case.model(baked=False)), [])

    def test_a_declared_size_is_quiet(self) -> None:
        for case in TRACED:
            with self.subTest(case.name):
                model = case.model(baked=True)
                for value in model.graph.input:
                    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                        if (value.name, axis) in case.axes:
                            dim.dim_value = case.axes[value.name, axis][1]
                self.assertEqual(self.findings(case.name, model), [])


if __name__ == "__main__":
    unittest.main()
