"""Real architectures that tracing gave the size of its example: each axis that is not free is named, at a node that fails.

The models are in `tests/models/sizes/*.py`, written without looking at the rule; what is true of them onnxruntime said.
"""

import json
import math
import os
import re
import subprocess
import unittest
from pathlib import Path

TOOL = os.environ["TENSORLINT_BINARY"]
MODELS = Path(__file__).resolve().parents[1] / "models"
INDEX = json.loads((MODELS / "sizes.json").read_text())["models"]
RULE = "works-only-at-some-sizes"

# Axes that are fixed and that nothing is said of.
MISSED = {
    ("lenet_flatten_torchscript", "height"): "with a height of 1, which pooling rounds up, all of the product is in the width",
    ("lenet_flatten_torchscript", "width"): "the same",
    ("super_resolution_skip_dynamo_opened", "batch"): "onnxruntime alone does not interpolate along the batch",
}
# onnxruntime stops at a Resize that ONNX allows, before the node that is named.
OTHER_NODE = {("deeplab_pooling_dynamo_opened", "batch")}


def checked() -> dict[str, list[dict]]:
    """Errors and warnings by file."""
    paths = {str(MODELS / entry["file"]): entry["file"] for entry in INDEX}
    result = subprocess.run([TOOL, "check", "--format", "json", *paths], capture_output=True, text=True, timeout=300, check=False)
    report = json.loads(result.stdout)
    found: dict[str, list[dict]] = {file: [] for file in paths.values()}
    for entry in report["inputs"]:
        if entry["status"] != "checked":
            raise AssertionError(entry)
    for finding in report["findings"]:
        if finding["severity"] != "info":
            found[paths[finding["path"]]].append(finding)
    return found


def named_axes(entry: dict, findings: list[dict]) -> dict[str, tuple[str, str]]:
    """By the name of the axis: the node, and what is said of the sizes that run."""
    named = {}
    for finding in findings:
        for place in [finding, *finding.get("also", [])] if finding["rule"] == RULE else []:
            message = re.fullmatch(r"axis (\d+) of `(\w+)` is declared `\w+`, and the model runs only (with|where) (.+)", place["message"])
            if message:
                named[entry["axes"][message[2]][message[1]]] = (place["node"], message[4])
    return named


def holds(text: str, entry: dict, symbol: str) -> bool:
    """Of the sizes of the example: "3", "8 to 15", "5*batch*sequence is 240"."""
    sizes = {name: axis["traced"] for name, axis in entry["sizes"].items()}
    if " is " in text:
        formula, value = text.split(" is ")
        return eval(formula, {"floor": math.floor, "max": max, "min": min}, sizes) == int(value)
    ends = [int(end) for end in text.split(" to ")]
    return ends[0] <= sizes[symbol] <= ends[-1]


class SizesTest(unittest.TestCase):
    found: dict[str, list[dict]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.found = checked()

    def test_fixed_axes_are_named_with_a_node_that_fails(self) -> None:
        named, fixed = 0, 0
        for entry in INDEX:
            axes = named_axes(entry, self.found[entry["file"]])
            for symbol in entry["fixed"]:
                fixed += 1
                named += symbol in axes
                key = (Path(entry["file"]).stem, symbol)
                if key in MISSED:
                    continue
                with self.subTest(entry["file"], axis=symbol):
                    self.assertIn(symbol, axes)
                    node, text = axes[symbol]
                    self.assertTrue(holds(text, entry, symbol), text)
                    if key not in OTHER_NODE:
                        self.assertIn(node, entry["sizes"][symbol]["nodes"])
        print("named", named, "of", fixed)

    def test_free_axes_get_nothing(self) -> None:
        for entry in INDEX:
            axes = named_axes(entry, self.found[entry["file"]])
            others = [finding["message"] for finding in self.found[entry["file"]] if finding["rule"] != RULE]
            with self.subTest(entry["file"]):
                self.assertEqual(set(axes) - set(entry["fixed"]), set())
                self.assertEqual(others, [])

    def test_each_model_is_there_free_as_well(self) -> None:
        free = {entry["model"] for entry in INDEX if not entry["fixed"]}
        self.assertGreaterEqual(len({entry["model"] for entry in INDEX if entry["fixed"]}), 60)
        self.assertGreaterEqual(len(free), 60)


if __name__ == "__main__":
    unittest.main()
