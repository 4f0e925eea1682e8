"""The losses that `tensorlint show` finds in exported models: each where prediction and target meet, and nothing else."""

import json
import os
import subprocess
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import onnx
from onnx import TensorProto, helper

TOOL = os.environ["TENSORLINT_BINARY"]
MODELS = Path(__file__).resolve().parents[1] / "models"
INDEX = json.loads((MODELS / "losses.json").read_text())["models"]

KINDS = {
    "mse": "mean squared error",
    "l1": "L1 loss",
    "smooth_l1": "Huber loss",
    "huber": "Huber loss",
    "bce": "binary cross-entropy",
    "bce_logits": "binary cross-entropy with logits",
    "cross_entropy": "cross-entropy",
    "nll": "negative log-likelihood",
    "kl_div": "KL divergence",
    "hand_mse": "mean squared error",
    "hand_rmse": "mean squared error",
    "hand_l1": "L1 loss",
    "hand_log_cosh": "log-cosh loss",
    "hand_bce": "binary cross-entropy",
    "hand_ce": "cross-entropy",
    "hand_kl": "KL divergence",
}
DISCRETE = ("cross_entropy", "nll", "hand_ce_gather")
FOR_LOSSES = {"integer-target-in-regression-loss", "integer-operands-in-loss"}


def run(*arguments: str) -> dict:
    result = subprocess.run([TOOL, *arguments, "--format", "json"], capture_output=True, text=True, timeout=60, check=False)
    if not result.stdout:
        raise AssertionError(result.stderr)
    return json.loads(result.stdout)


def kind_of(entry: dict) -> str:
    if entry["meet_op"] == "SoftmaxCrossEntropyLoss":  # one exporter fuses log-softmax and NLL
        return KINDS["cross_entropy"]
    return KINDS[max((name for name in KINDS if entry["loss"].startswith(name)), key=len)]


Constants = dict[str, tuple[list[int], list[float]]]


def graph_model(nodes: list[onnx.NodeProto], inputs: dict[str, list], output: str, constants: Constants | None = None) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [helper.make_tensor(name, TensorProto.FLOAT, shape, values) for name, (shape, values) in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


class LossesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "model.onnx"

    def losses_of(self, model: onnx.ModelProto) -> list[dict]:
        onnx.save(model, self.path)
        return run("show", str(self.path))["losses"]

    def test_each_exported_loss_is_found_where_it_meets(self) -> None:
        found: Counter[str] = Counter()
        all_of: Counter[str] = Counter()
        for entry in INDEX:
            with self.subTest(entry["file"]):
                all_of[entry["exporter"]] += 1
                losses = run("show", str(MODELS / entry["file"]))["losses"]
                expected = {"kind": kind_of(entry), "node": entry["meet"], "prediction": entry["prediction"], "target": entry["target"]}
                self.assertEqual(losses, [expected])
                found[entry["exporter"]] += 1
        print("found", {exporter: f"{found[exporter]} of {total}" for exporter, total in all_of.items()})

    def test_integer_targets_are_called_what_they_are(self) -> None:
        """Every loss with floats as its target, the target declared int64: what fails first is worded as a loss."""
        for entry in INDEX:
            if entry["fault"] or entry["loss"].startswith(DISCRETE) or "_long" in entry["loss"]:
                continue
            with self.subTest(entry["file"]):
                model = onnx.load(MODELS / entry["file"])
                target = next(value for value in model.graph.input if value.name == "target")
                target.type.tensor_type.elem_type = TensorProto.INT64
                del model.graph.value_info[:]
                onnx.save(model, self.path)
                errors = [finding for finding in run("check", str(self.path))["findings"] if finding["severity"] == "error"]
                findings = [finding for finding in errors if finding["graph"] == "main"]
                self.assertTrue(findings)
                self.assertIn(findings[0]["rule"], FOR_LOSSES)
                self.assertNotIn("mixed-operand-dtypes", [finding["rule"] for finding in findings])

    def test_statistics_and_distances_are_no_losses(self) -> None:
        node = helper.make_node
        inputs = {"x": [4, 3], "y": [4, 3]}
        two: Constants = {"two": ([], [2.0])}
        one: Constants = {"one": ([], [1.0])}
        cases = {
            "difference": ([node("Sub", ["x", "y"], ["z"])], {}),
            "difference, averaged": ([node("Sub", ["x", "y"], ["d"]), node("ReduceMean", ["d"], ["z"], keepdims=0)], {}),
            "variance": (
                [node("ReduceMean", ["x"], ["m"]), node("Sub", ["x", "m"], ["d"]), node("Pow", ["d", "two"], ["s"]), node("ReduceMean", ["s"], ["z"])],
                two,
            ),
            "distance between inputs": ([node("Sub", ["x", "y"], ["d"]), node("Abs", ["d"], ["z"])], {}),
            "entropy": (
                [
                    node("Softmax", ["x"], ["p"]),
                    node("LogSoftmax", ["x"], ["l"]),
                    node("Mul", ["p", "l"], ["m"]),
                    node("ReduceSum", ["m"], ["s"], keepdims=0),
                    node("Neg", ["s"], ["z"]),
                ],
                {},
            ),
            "gate": (
                [
                    node("Sigmoid", ["x"], ["g"]),
                    node("Sub", ["one", "g"], ["h"]),
                    node("Mul", ["g", "x"], ["a"]),
                    node("Mul", ["h", "y"], ["b"]),
                    node("Add", ["a", "b"], ["z"]),
                ],
                one,
            ),
        }
        for name, (nodes, constants) in cases.items():
            with self.subTest(name):
                self.assertEqual(self.losses_of(graph_model(nodes, inputs, "z", constants)), [])

    def test_a_clamped_cross_entropy_with_weights_is_one(self) -> None:
        node = helper.make_node
        nodes = [
            node("Clip", ["p", "low"], ["c"]),
            node("Log", ["c"], ["lp"]),
            node("Sub", ["one", "p"], ["q"]),
            node("Add", ["q", "low"], ["qc"]),
            node("Log", ["qc"], ["lq"]),
            node("Sub", ["one", "t"], ["u"]),
            node("Mul", ["t", "lp"], ["a"], name="first"),
            node("Mul", ["w", "a"], ["wa"]),
            node("Mul", ["u", "lq"], ["b"]),
            node("Add", ["b", "wa"], ["s"]),
            node("Neg", ["s"], ["z"]),
        ]
        constants = {"one": ([], [1.0]), "low": ([], [1e-7]), "w": ([3], [1.0, 2.0, 3.0])}
        losses = self.losses_of(graph_model(nodes, {"p": [4, 3], "t": [4, 3]}, "z", constants))
        self.assertEqual(losses, [{"kind": "binary cross-entropy", "node": "first", "prediction": "p", "target": "t"}])


if __name__ == "__main__":
    unittest.main()
