"""Models that the builder writes: onnx.checker takes them, onnxruntime computes from them what PyTorch's definitions say,
and `tensorlint` finds in them what a reader of the C++ source would."""

import json
import math
import os
import re
import subprocess
import tempfile
import unittest
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

TOOL = os.environ["TENSORLINT_BINARY"]
MODELS = os.environ["TENSORLINT_BUILDER_MODELS"]
EXAMPLE = os.environ["TENSORLINT_BUILDER_EXAMPLE"]
SAMPLE = os.environ["TENSORLINT_SAMPLE"]
ROOT = Path(__file__).resolve().parents[2]

KINDS = {
    "mse": "mean squared error",
    "l1": "L1 loss",
    "smooth_l1": "Huber loss",
    "smooth_l1_beta": "Huber loss",
    "huber": "Huber loss",
    "huber_delta": "Huber loss",
    "bce": "binary cross-entropy",
    "bce_with_logits": "binary cross-entropy with logits",
    "cross_entropy": "cross-entropy",
    "cross_entropy_weight": "cross-entropy",
    "cross_entropy_probabilities": "cross-entropy",
    "nll": "negative log-likelihood",
    "nll_weight": "negative log-likelihood",
    "kl_div": "KL divergence",
    "kl_div_log": "KL divergence",
}


def log_softmax(x: np.ndarray) -> np.ndarray:
    x = x - x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def smooth(d: np.ndarray, beta: float) -> np.ndarray:
    return np.where(np.abs(d) < beta, 0.5 * d * d / beta, np.abs(d) - 0.5 * beta)


def of_elements(name: str, x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """torch.nn.functional's losses without reduction, in float64."""
    if name == "mse":
        return (x - t) ** 2
    if name == "l1":
        return np.abs(x - t)
    if name.startswith("smooth_l1"):
        return smooth(x - t, 0.5 if name.endswith("beta") else 1.0)
    if name.startswith("huber"):
        delta = 0.5 if name.endswith("delta") else 1.0
        return delta * smooth(x - t, delta)
    if name in ("bce", "bce_with_logits"):
        return np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x)))
    if name == "cross_entropy_probabilities":
        return -(t * log_softmax(x)).sum(axis=1)
    if name == "kl_div":
        return np.where(t == 0, 0, t * np.log(np.where(t == 0, 1, t))) - t * log_softmax(x)
    return np.exp(t) * (t - log_softmax(x))


def of_classes(x: np.ndarray, t: np.ndarray, weight: np.ndarray, reduction: str) -> np.ndarray:
    weights = np.where(t == 1, 0, weight[t])  # class 1 is ignored
    rows = -weights * log_softmax(x)[np.arange(len(t)), t]
    return {"none": rows, "sum": rows.sum(), "mean": rows.sum() / weights.sum()}[reduction]


class BuilderTest(unittest.TestCase):
    folder: tempfile.TemporaryDirectory[str]
    path: Path
    said: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = Path(cls.folder.name)
        result = subprocess.run([MODELS, cls.folder.name], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        if result.returncode != 0:
            raise AssertionError(result.stderr)
        cls.said = result.stdout

    def tool(self, command: str, name: str) -> dict:
        result = subprocess.run([TOOL, command, str(self.path / f"{name}.onnx"), "--format", "json"], capture_output=True, text=True, timeout=60, check=False)
        return json.loads(result.stdout)

    def test_the_checker_takes_every_model(self) -> None:
        models = sorted(self.path.glob("*.onnx"))
        self.assertGreater(len(models), 45)
        for path in models:
            with self.subTest(path.name):
                full = path.stem not in ("mistake", "devices")  # shape inference refuses the mistake, and does not know Transfer
                onnx.checker.check_model(onnx.load(path), full_check=full)

    def test_losses_are_what_pytorch_defines(self) -> None:
        random = np.random.default_rng(5)
        feed = {"x": random.normal(size=(5, 8)).astype(np.float32), "weight": random.normal(size=(3, 8)).astype(np.float32)}
        x = feed["x"].astype(np.float64) @ feed["weight"].astype(np.float64).T
        floats = random.random(size=(5, 3)).astype(np.float32)
        floats[0] = (0, 1, 0)
        classes = np.array([0, 1, 2, 2, 0])
        weights = {"": np.ones(3), "_weight": np.array([1.0, 2.0, 0.5])}
        for path in sorted(self.path.glob("loss-*.onnx")):
            _, name, reduction = path.stem.split("-")
            with self.subTest(path.name):
                by_class = name.removesuffix("_weight") in ("cross_entropy", "nll")
                if by_class:
                    target: np.ndarray = classes
                    expected = of_classes(x, classes, weights["_weight" if name.endswith("_weight") else ""], reduction)
                else:
                    target = np.log(np.maximum(floats, 1e-3)) if name == "kl_div_log" else floats
                    elements = of_elements(name, x, target.astype(np.float64))
                    expected = {"none": elements, "sum": elements.sum(), "mean": elements.mean()}[reduction]
                session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
                got = session.run(None, {**feed, "target": target})[0]
                self.assertEqual(got.shape, np.shape(expected))
                np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)

    def test_losses_are_recognised(self) -> None:
        found = 0
        for path in sorted(self.path.glob("loss-*.onnx")):
            _, name, _ = path.stem.split("-")
            with self.subTest(path.name):
                losses = self.tool("show", path.stem)["losses"]
                self.assertEqual([loss["kind"] for loss in losses], [KINDS[name]])
                found += 1
        print(f"{found} losses recognised")

    def test_nothing_is_wrong_with_what_is_right(self) -> None:
        for path in sorted(self.path.glob("*.onnx")):
            if path.stem == "mistake":
                continue
            with self.subTest(path.name):
                findings = self.tool("check", path.stem)["findings"]
                self.assertEqual([finding for finding in findings if finding["severity"] != "info"], [])

    def test_numbers_of_a_loss_have_its_dtype(self) -> None:
        for name, dtype, tolerance in (("float16", np.float16, 2e-3), ("float64", np.float64, 1e-12)):
            x, t = np.array([[0.1, 2.0, -3.0]], dtype), np.zeros((1, 3), dtype)
            session = onnxruntime.InferenceSession(self.path / f"typed-{name}.onnx", providers=["CPUExecutionProvider"])
            got = session.run(None, {"x": x, "target": t})[0]
            expected = (0.3 * smooth(x.astype(np.float64), 0.3)).mean()
            self.assertTrue(math.isclose(float(got), expected, rel_tol=tolerance), (got, expected))

    def test_losses_stretch_and_take_a_single_row(self) -> None:
        random = np.random.default_rng(9)
        x, row = random.normal(size=(4, 3)).astype(np.float32), random.normal(size=3).astype(np.float32)
        session = onnxruntime.InferenceSession(self.path / "shapes-21.onnx", providers=["CPUExecutionProvider"])
        got = session.run(["mse", "l1", "huber", "one", "one_nll"], {"x": x, "row": row, "index": np.array(2)})
        wide, tall = row.astype(np.float64), x.astype(np.float64)
        of_row = -log_softmax(wide[None])[0, 2]
        expected = [((tall - wide) ** 2).mean(), np.abs(tall - wide), smooth(tall - wide, 1.0).sum(), of_row, of_row]
        for one, value in zip(got, expected):
            self.assertEqual(one.shape, np.shape(value))
            np.testing.assert_allclose(one, value, rtol=2e-5, atol=2e-6)

    def test_layers_and_arithmetic_compute_what_they_say(self) -> None:
        random = np.random.default_rng(7)
        x = random.normal(size=(3, 4, 6)).astype(np.float32)
        ids = random.integers(0, 2, size=(3, 5))
        scale = np.arange(1, 7, dtype=np.float32)
        kernel = np.array([1, 0, -1, 2, 1, 0.5, 1, 1], np.float32).reshape(1, 4, 2)
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1)))
        expected = {
            "norm": (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3) * scale + scale,
            "split": x.reshape(3, 2, -1),
            "framed": ids.reshape(1, 3, 5),
            "rows": np.array([[0.5, -1], [2, 1.5]], np.float32)[ids],
            "both": np.concatenate([x, -x], 1),
            "conv": np.stack([(padded[:, :, i : i + 2] * kernel).sum((1, 2)) for i in range(0, 7, 2)], -1)[:, None],
            "mixed": (2 * x - 1) / (x * x + 0.5) + x,
            "integers": ids // 2 - ids,
        }
        for opset in (13, 21):
            path = self.path / f"layers-{opset}.onnx"
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            for name, value in expected.items():
                with self.subTest(opset=opset, name=name):
                    got = session.run([name], {"x": x, "ids": ids})[0]
                    self.assertEqual((got.shape, got.dtype), (value.shape, value.dtype))
                    np.testing.assert_allclose(got, value, rtol=2e-5, atol=2e-5)
            names = [node.name for node in onnx.load(path).graph.node]
            self.assertTrue(all(name.startswith("net.") or name in expected for name in names), names)

    def test_the_page_shows_a_program_that_runs(self) -> None:
        page = (ROOT / "docs/builder.md").read_text()
        result = subprocess.run([EXAMPLE], cwd=os.environ["TENSORLINT_BUILD_DIR"], capture_output=True, text=True, timeout=60, check=True)
        shown = page.split("It prints:\n\n")[1].split("\n\n")[0]
        said = re.sub(r"(?m)^\S*\bbuilder_example\.cc:", "step.cc:", result.stdout)
        self.assertEqual(said.splitlines(), [line.removeprefix("    ") for line in shown.splitlines()])

    def test_bodies_run(self) -> None:
        x = np.array([[1.0, -2.0, 3.0, 0.5]], np.float32)
        session = onnxruntime.InferenceSession(self.path / "bodies.onnx", providers=["CPUExecutionProvider"])
        last, sums = session.run(None, {"x": x, "flag": np.array(True), "trips": np.array(3)})
        value, expected = np.maximum(x, 0), []
        for i in range(3):
            value = value + 1 if i % 2 == 1 else value * x
            expected.append(value.sum())
        np.testing.assert_allclose(last, value)
        np.testing.assert_allclose(sums, expected)

    def test_a_finding_names_the_line_of_the_program(self) -> None:
        source = "tests/builder/models.cc"
        lines = (ROOT / source).read_text().splitlines()
        line = next(number for number, text in enumerate(lines, 1) if text.endswith("// the finding's line"))
        findings = self.tool("check", "mistake")["findings"]
        self.assertEqual([(finding["rule"], finding["line"]) for finding in findings], [("integer-target-in-regression-loss", line)])
        file = findings[0]["file"]  # as the compiler was given it
        self.assertTrue(file.endswith(source), file)
        self.assertIn(f"mistake: {file}:{line}: error: ", self.said)
        self.assertEqual(self.said.count("error: "), 1)

    def test_the_sample_tells_its_mistake_and_trains_when_repaired(self) -> None:
        result = subprocess.run([SAMPLE, self.folder.name], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
        source = (ROOT / "samples/builder/training_step.cc").read_text().splitlines()
        line = next(number for number, text in enumerate(source, 1) if "const Value loss =" in text)
        self.assertIn(f"training_step.cc:{line}: error: mean squared error compares float32 values with the int64 target `arg_max`", result.stdout)
        self.assertIn("the gradient of `weight` is float32[1, 12]", result.stdout)
        self.assertTrue(result.stdout.endswith("mistakes told: 1, then 0\n"), result.stdout)
        found = [(finding["rule"], finding["line"]) for finding in self.tool("check", "training_step_bad")["findings"]]
        self.assertEqual(found, [("integer-target-in-regression-loss", line)])
        self.assertEqual(self.tool("check", "training_step_ok")["findings"], [])

        path = self.path / "training_step_ok.onnx"
        onnx.checker.check_model(onnx.load(path), full_check=True)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        random = np.random.default_rng(5)
        feed = {"features": random.normal(size=(64, 12)).astype(np.float32), "votes": random.random((64, 6)).astype(np.float32)}
        losses = []
        for _ in range(50):  # the first step starts from the file's own parameters
            loss, weight, bias = session.run(None, feed)
            feed |= {"weight": weight, "bias": bias}
            losses.append(float(loss))
        self.assertLess(losses[-1], 0.9 * losses[0])
        self.assertTrue(all(after <= before for before, after in pairwise(losses)), losses)


if __name__ == "__main__":
    unittest.main()
