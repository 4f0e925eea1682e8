"""What `tensorlint compare` says: text and page have the same facts, in words that help."""

from __future__ import annotations

import re
import subprocess
import tempfile
import unittest
from html import unescape
from pathlib import Path

import numpy as np
import onnx
from compare_test import NETWORK, ROOT, SCHEMA, TOOL, recorded, write_npz


class ReportTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.folder / "m.onnx"

    def write(self, text: str) -> None:
        onnx.save(onnx.parser.parse_model(text), self.model)

    def compare(self, against: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([TOOL, "compare", self.model, "--against", str(against), *arguments], capture_output=True, text=True, timeout=120)

    def page(self, against: Path, *arguments: str) -> str:
        result = self.compare(against, "--format", "html", *arguments)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return unescape(result.stdout)

    def arrays(self, out: str, arrays: dict[str, np.ndarray]) -> Path:
        (self.folder / out).mkdir()
        write_npz(self.folder / out / "values.npz", arrays)
        return self.folder / out

    def faulty(self) -> Path:
        """Another epsilon, in a node of which nothing is recorded."""
        self.write(NETWORK.replace("1e-5", "1e-2"))
        recorded(self.model, self.folder / "faulty", values="p,a,s")
        self.write(NETWORK)
        return self.folder / "faulty"

    def test_page_and_text_have_the_same_sentences(self) -> None:
        against = self.faulty()
        text, page = self.compare(against).stdout, self.page(against)
        sentences = [line.strip() for line in text.removeprefix("bug: ").splitlines() if line.strip() and not re.match(r" *(-->|\d+ \|)", line)]
        self.assertGreater(len(sentences), 3)
        for sentence in sentences:
            self.assertIn(sentence, page)
        self.assertIn("or a node before it, of which nothing is recorded: `bias` (Add), `norm` (LayerNormalization)", page)

    def test_the_page_says_what_was_compared_and_how(self) -> None:
        against = self.faulty()
        page = self.page(against)
        for part in (f"compared with: `{against}`", "contract: `onnxruntime-cpu`", "mode: isolated", "<dt>rms ratio</dt>", "<dt>slope</dt>", "record the values before it as well"):
            self.assertIn(part, page)
        page = self.page(against, "--chained", "--contract", "torch-cpu")
        self.assertIn("contract: `torch-cpu`", page)
        self.assertIn("mode: chained", page)
        recorded(self.model, self.folder / "right")
        arrays = dict(np.load(self.folder / "right/values-0000.npz"))
        wrong = self.arrays("wrong", arrays | {"a": arrays["a"] * np.float32(2)})
        self.assertIn("next: `--reproduce FOLDER` writes this node as a model by itself", self.page(wrong))
        self.assertIn("next: `--reproduce FOLDER` writes this node as a model by itself", self.compare(wrong).stdout)
        alone = self.folder / "alone"
        self.assertIn(f"the first bug by itself: {alone}/model.onnx", self.page(wrong, "--reproduce", str(alone)))
        self.assertNotIn("reproduce", self.page(self.folder / "right"))

    def test_a_condition_is_explained_and_is_not_called_rounding(self) -> None:
        self.write('<ir_version: 10, opset_import: ["": 22]>\ng (float16[64, 32] x) => (float16[64, 32] z) {\n  [first] y = Sqrt (x)\n  [second] z = Mul (y, y)\n}\n')
        x = np.random.default_rng(0).uniform(1, 4, (64, 32)).astype(np.float16)
        out = self.arrays("wide", {"x": x, "y": np.sqrt(x), "z": (np.sqrt(x.astype(np.float32)) ** 2).astype(np.float16)})
        sentence = "explained if the engine computes with wide-intermediates (values in half precision stay unrounded between nodes): 1 value, the first of node `second` (Mul)"
        self.assertIn(sentence, self.compare(out).stdout)
        page = self.page(out)
        self.assertIn(sentence, page)
        self.assertIn("if the engine computes as the contract does not grant", page)
        self.assertNotIn("No value differs", page)

    def test_every_condition_is_explained_in_program_and_docs(self) -> None:
        conditions = [each for each in SCHEMA["properties"]["nodes"]["items"]["properties"]["condition"]["enum"] if each]
        facts, docs = (ROOT / "runtime/compare/report_facts.cc").read_text(), (ROOT / "docs/compare.md").read_text()
        for condition in conditions:
            meaning = re.search(rf'{{"{condition}", "([^"]*)"}}', facts)
            assert meaning is not None, condition
            self.assertIn(f"| `{condition}` | {meaning[1]}", docs)

    def test_a_node_that_is_not_compared_is_named_once_and_before_the_table(self) -> None:
        self.write(NETWORK.replace('"": 21', '"": 21, "com.microsoft": 1').replace("Gelu (n)", "com.microsoft.FastGelu (n)"))
        draw = np.random.default_rng(0)
        arrays = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in (("x", (6, 48)), ("w", (48, 64)), ("b", (64,)), ("scale", (64,)), ("shift", (64,)), ("a", (6, 64)))}
        sentence = "not compared: node `act` (FastGelu): the interpreter has no evaluator for FastGelu"
        arrays["p"] = (arrays["x"].astype(np.float64) @ arrays["w"]).astype(np.float32)
        out = self.arrays("r", arrays)
        text, page = self.compare(out).stdout, self.page(out)
        self.assertIn(sentence, text)
        self.assertEqual(text.count("`act`"), 1)
        self.assertLess(page.index(sentence), page.index("<table>"))

    def test_a_node_by_itself_gives_what_is_expected_where_its_operands_were_not_recorded(self) -> None:
        """Files hold operands in float16, and the comparison had them in float64."""
        self.write('<ir_version: 10, opset_import: ["": 22]>\ng (float16[16, 32] x, float16[32, 32] w) => (float16[16, 32] z) {\n  [first] y = Sigmoid (x)\n  [second] z = MatMul (y, w)\n}\n')
        draw = np.random.default_rng(0)
        x, w = draw.standard_normal((16, 32)).astype(np.float16), draw.standard_normal((32, 32)).astype(np.float16)
        out = self.arrays("r", {"x": x, "w": w, "z": np.zeros((16, 32), np.float16)})
        alone = self.folder / "alone"
        self.assertEqual(self.compare(out, "--reproduce", str(alone)).returncode, 1)
        data = str(alone / "test_data_set_0")
        result = subprocess.run([TOOL, "run", alone / "model.onnx", "--inputs", data, "--expect", data], capture_output=True, text=True, timeout=120)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_where_nothing_could_be_compared_the_reason_is_said(self) -> None:
        self.write('<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>\ng (float[6] x) => (float[6] z) {\n  [one] y = com.microsoft.FastGelu (x)\n  [two] z = com.microsoft.FastGelu (y)\n}\n')
        result = self.compare(self.arrays("r", {"x": np.zeros(6, np.float32), "y": np.zeros(6, np.float32)}))
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("none of the recorded values could be compared with their nodes: node `one`: the interpreter has no evaluator for FastGelu", result.stderr)


if __name__ == "__main__":
    unittest.main()
