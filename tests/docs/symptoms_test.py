"""docs/symptoms.md is what the rules' pages say, and ONNX Runtime says of the fixtures what the pages quote."""

import re
import subprocess
import sys
import unittest
from functools import cache
from pathlib import Path

import numpy
import onnx
import onnx.parser
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "tools"))

import symptoms

# Quoted of models that are no fixtures, with the reason.
NOT_FROM_FIXTURES = {
    "External data path validation failed for initializer: w. Error: ... External data path does not exist": "differs by where the model lies",
    "Failed to load model with error: Invalid tensor data type 99.": "ONNX text has no such type",
    "Node (normalise) Op (Softmax) [ShapeInferenceError] 'axis' must be in [-2 , 1]. Its actual value is: 2": "the page's own example",
    "4 Memcpy nodes are added to the graph main_graph for CUDAExecutionProvider. It might have negative impact on performance (including unable to run CUDA graph).": "needs a GPU",
    "Some nodes were not assigned to the preferred execution providers which may or may not have an negative impact on performance.": "needs a GPU",
    "Removing initializer 'leftover'. It is not used by any node and should be removed from the model.": "a line of the log",
}
NUMPY = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64, "tensor(bool)": numpy.bool_}


def run(path: Path) -> str:
    """What ONNX Runtime says of a fixture, on loading or else on running it."""
    try:
        model = onnx.load(path) if path.suffix == ".onnx" else onnx.parser.parse_model(path.read_text())
    except onnx.parser.ParseError:
        return ""  # tensorlint's reader takes more
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        feeds: dict[str, numpy.ndarray] = {}
        for each in session.get_inputs():
            if each.type not in NUMPY:
                return ""
            feeds[each.name] = numpy.ones([extent if isinstance(extent, int) else 4 for extent in each.shape], NUMPY[each.type])
        session.run(None, feeds)
    except Exception as error:
        return str(error)
    return ""


@cache
def verdicts(rule: str) -> list[str]:
    fixtures = [path for path in ROOT.glob(f"tests/rules/*/{rule}/bad_*.onnx*") if ".fixed" not in path.name]
    return [run(path) for path in sorted(fixtures)]


class SymptomsTest(unittest.TestCase):
    def test_the_index_is_up_to_date(self) -> None:
        tool = ROOT / "docs" / "tools" / "symptoms.py"
        result = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_messages_people_search_for_lead_to_rules(self) -> None:
        lines = (ROOT / "docs" / "symptoms.md").read_text().splitlines()
        for message, rule in {
            "`\"mse_cuda\" not implemented for 'Long'`": "integer-operands-in-loss",
            "Expected all tensors to be on the same device": "operands-on-different-devices",
            "bound to different types (tensor(float) and tensor(int64)": "mixed-operand-dtypes",
            "`CUDA error: device-side assert triggered`": "class-index-out-of-range",
        }.items():
            with self.subTest(message):
                self.assertTrue([line for line in lines if message in line and f"(rules/{rule}.md)" in line])

    def test_onnxruntime_says_what_the_pages_quote(self) -> None:
        onnxruntime.set_default_logger_severity(4)
        quoted = [symptom for symptom in symptoms.all_symptoms() if symptom.source == "ONNX Runtime"]
        self.assertGreater(len(quoted), 30)
        for symptom in quoted:
            if symptom.text in NOT_FROM_FIXTURES:
                continue
            pattern = ".*".join(re.escape(part) for part in symptom.text.split(" ... "))
            with self.subTest(rule=symptom.rule, text=symptom.text):
                self.assertTrue([verdict for verdict in verdicts(symptom.rule) if re.search(pattern, verdict, re.DOTALL)], verdicts(symptom.rule))
        self.assertLessEqual(set(NOT_FROM_FIXTURES), {symptom.text for symptom in quoted}, "an exception that no page needs")

    def test_a_page_of_another_form_is_refused(self) -> None:
        for page, reason in {
            "# a (TL-X1)\n\n## Fix\n": "no section",
            "## Symptoms\n\n## Fix\n": "empty",
            "## Symptoms\n\nIt is slow.\n": "neither",
            "## Symptoms\n\nTensorFlow:\n\n```\nboom\n```\n": "`TensorFlow`",
        }.items():
            with self.subTest(reason), self.assertRaisesRegex(symptoms.PageError, reason):
                symptoms.symptoms_of("a", page)

    def test_messages_with_backticks_and_bars_are_cells(self) -> None:
        self.assertEqual(symptoms.code("a `b` | c"), "`` a `b` \\| c ``")


if __name__ == "__main__":
    unittest.main()
