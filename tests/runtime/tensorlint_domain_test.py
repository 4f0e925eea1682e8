"""Operators of the domain tensorlint against their definitions in torch.nn.functional, written with numpy."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

RUNNER = Path(os.environ["TENSORLINT_BINARY"]).with_name("tensorlint-run")
RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((4, 3, 5)).astype(np.float32)
T = RANDOM.standard_normal((4, 3, 5)).astype(np.float32)
P = RANDOM.random((4, 3, 5)).astype(np.float32)
Q = RANDOM.random((4, 3, 5)).astype(np.float32)
LABELS = np.array([[0, 1, 2, 1, -100], [2, 2, 0, 1, 1], [1, -100, 0, 0, 2], [0, 1, 2, 0, 1]])
WEIGHTS = np.array([0.5, 2, 1.25], np.float32)


def wide(array):
    return array.astype(np.float64)


def log_softmax(x):
    x = wide(x)
    return x - x.max(1, keepdims=True) - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True))


def huber(x, t, delta):
    d = np.abs(wide(x) - wide(t))
    return np.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta))


def smooth_l1(x, t, beta):
    d = np.abs(wide(x) - wide(t))
    return np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)


def class_loss(logs, labels, weights, smoothing, ignored=-100):
    """Each position's loss, and its weight."""
    classes = logs.shape[1]
    keep = labels != ignored
    safe = np.where(keep, labels, 0)
    picked = np.take_along_axis(logs, safe[:, None], 1)[:, 0]
    weight = np.where(keep, wide(weights)[safe], 0)
    spread = (logs * wide(weights)[None, :, None]).sum(1)
    return np.where(keep, -(1 - smoothing) * weight * picked - smoothing / classes * spread, 0), weight


def probability_loss(logs, target, weights, smoothing):
    smoothed = wide(target) * (1 - smoothing) + smoothing / logs.shape[1]
    return -(logs * smoothed * wide(weights)[None, :, None]).sum(1)


ELEMENTWISE = [
    ("MseLoss", "", X, T, None, (wide(X) - T) ** 2),
    ("MseLoss", "", X, T[0], None, (wide(X) - T[0]) ** 2),
    ("L1Loss", "", X, T, None, np.abs(wide(X) - T)),
    ("SmoothL1Loss", "beta = 0.75", X, T, None, smooth_l1(X, T, 0.75)),
    ("SmoothL1Loss", "beta = 0.0", X, T, None, np.abs(wide(X) - T)),
    ("HuberLoss", "delta = 0.5", X, T, None, huber(X, T, 0.5)),
    ("BceLoss", "", P, Q, None, -(Q * np.log(wide(P)) + (1 - wide(Q)) * np.log(1 - wide(P)))),
    ("BceLoss", "", np.array([0, 1], np.float32), np.array([1, 0.5], np.float32), None, np.array([100, 50.0])),
    ("BceWithLogitsLoss", "", X, Q, None, (1 - wide(Q)) * X + np.log1p(np.exp(-wide(X)))),
    ("BceWithLogitsLoss", "", X, Q, np.full(5, 3, np.float32), (1 - wide(Q)) * X + (1 + 2 * wide(Q)) * np.log1p(np.exp(-wide(X)))),
    # What is left of a confident prediction: log(1 + exp(x)) of x far below 0.
    ("BceWithLogitsLoss", "", np.array([-30, -40], np.float32), np.zeros(2, np.float32), None, np.exp(np.array([-30.0, -40.0]))),
    ("KlDivLoss", "", X, Q, None, wide(Q) * (np.log(wide(Q)) - X)),
    ("KlDivLoss", "", X, np.zeros_like(X), None, np.zeros_like(X)),
    ("KlDivLoss", "log_target = 1", X, T, None, np.exp(wide(T)) * (wide(T) - X)),
]


class TensorlintDomainTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_loss(self, call: str, operands: list[np.ndarray]) -> subprocess.CompletedProcess[str]:
        dtypes = {"float32": "float", "int64": "int64"}
        inputs, arguments = [], []
        for path in self.folder.glob("input_*.npy"):
            path.unlink()
        for i, operand in enumerate(operands):
            np.save(self.folder / f"input_{i}.npy", operand)
            inputs.append(f"{dtypes[operand.dtype.name]}[{', '.join(map(str, operand.shape))}] i{i}")
            arguments.append(f"i{i}")
        name, _, attributes = call.partition(" ")
        model = self.folder / "m.onnxtxt"
        model.write_text(
            '<ir_version: 10, opset_import: ["": 21, "tensorlint": 1]>\n'
            f"g ({', '.join(inputs)}) => (y) {{ y = tensorlint.{name} {attributes} ({', '.join(arguments)}) }}\n"
        )
        command = [str(RUNNER), f"--model={model}", "--text=", f"--inputs={self.folder}", f"--expect={self.folder}", "--rtol=1e-6", "--check-facts="]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def check(self, call: str, operands: list[np.ndarray], expected: np.ndarray) -> None:
        np.save(self.folder / "output_0.npy", np.asarray(expected, np.float32))
        result = self.run_loss(call, operands)
        self.assertEqual(result.returncode, 0, call + ": " + result.stderr + result.stdout)

    def test_losses_of_elements(self) -> None:
        for name, attribute, x, target, weight, expected in ELEMENTWISE:
            operands = [x, target] + ([] if weight is None else [weight])
            for reduction, value in (("none", expected), ("sum", expected.sum()), ("mean", expected.mean())):
                with self.subTest(name, attribute=attribute, reduction=reduction):
                    attributes = ", ".join(filter(None, [attribute, f'reduction = "{reduction}"']))
                    self.check(f"{name} <{attributes}>", operands, value)
        self.check('KlDivLoss <reduction = "batchmean">', [X, Q], (wide(Q) * (np.log(wide(Q)) - X)).sum() / 4)

    def test_losses_over_classes(self) -> None:
        ones = np.ones(3, np.float32)
        for weights in (None, WEIGHTS):
            rest = [] if weights is None else [weights]
            for smoothing in (0.0, 0.25):
                each, weight = class_loss(log_softmax(X), LABELS, ones if weights is None else weights, smoothing)
                for reduction, value in (("none", each), ("sum", each.sum()), ("mean", each.sum() / weight.sum())):
                    call = f'CrossEntropyLoss <reduction = "{reduction}", label_smoothing = {smoothing}>'
                    with self.subTest(call, weighted=weights is not None):
                        self.check(call, [X, LABELS, *rest], value)
                soft = probability_loss(log_softmax(X), Q, ones if weights is None else weights, smoothing)
                for reduction, value in (("none", soft), ("sum", soft.sum()), ("mean", soft.mean())):
                    call = f'CrossEntropyLoss <reduction = "{reduction}", label_smoothing = {smoothing}>'
                    with self.subTest(call, weighted=weights is not None, soft=True):
                        self.check(call, [X, Q, *rest], value)
            each, weight = class_loss(wide(X), LABELS, ones if weights is None else weights, 0)
            self.check('NllLoss <reduction = "mean">', [X, LABELS, *rest], each.sum() / weight.sum())

    def test_a_row_that_a_mask_hides(self) -> None:
        for hidden in (-1e30, float(np.finfo(np.float32).min)):
            scores = np.full((1, 4), hidden, np.float32)
            self.check("CrossEntropyLoss", [scores, np.array([1])], np.log(4))
            self.check("CrossEntropyLoss", [scores, np.full((1, 4), 0.25, np.float32)], np.log(4))

    def test_no_batch_and_no_label(self) -> None:
        row = X[0, :, 0].copy()
        self.check("CrossEntropyLoss", [row, np.array(1)], -log_softmax(row[None])[0, 1])
        self.check("NllLoss", [row[None], np.array([-100])], np.array(np.nan))

    def test_transfer_keeps_values(self) -> None:
        self.check('Transfer <device = "cuda:0">', [X], X)

    def test_refusals(self) -> None:
        (self.folder / "output_0.npy").write_bytes(b"")
        self.assertIn("class 3 in `i1` is outside [0, 3)", self.run_loss("NllLoss", [X[:1, :, 0].copy(), np.array([3])]).stderr)
        many = np.tile(LABELS, (5, 1))
        many[3, 3] = 3
        self.assertIn("label 3 is outside the 3 classes", self.run_loss("NllLoss", [np.tile(X, (5, 1, 1)), many]).stderr)
        self.assertIn("the prediction -", self.run_loss("BceLoss", [-P, Q]).stderr)


if __name__ == "__main__":
    unittest.main()
