"""`record.py --torch`: what PyTorch computes for a program agrees with the model that was exported from it, and a fault is
named. Skipped where there is no torch."""

import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from compare_test import ROOT, TOOL, write_npz

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "onnxscript"))


def export(folder: Path, dtype: str) -> None:
    import torch

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm, self.head = torch.nn.Conv2d(3, 8, 3), torch.nn.LayerNorm(10), torch.nn.Linear(8, 10)
            self.attention = torch.nn.MultiheadAttention(10, 2, batch_first=True)

        def forward(self, image: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            rows = self.norm(self.head(torch.relu(self.conv(image)).mean((2, 3)) * scale))
            mixed, _ = self.attention(rows[None], rows[None], rows[None])
            return torch.nn.functional.gelu(mixed + rows), rows

    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    network = Network().eval().to(kind)
    result = torch.onnx.export(network, (torch.randn(4, 3, 9, 9).to(kind), torch.rand(8).to(kind)), dynamo=True, opset_version=22, input_names=["picture", "factor"], output_names=["mixed", "rows"], verbose=False)
    assert result is not None and result.exported_program is not None
    result.save(folder / "m.onnx")
    torch.export.save(result.exported_program, folder / "m.pt2")


@unittest.skipUnless(HAS_TORCH, "there is no torch")
class RecordTorchTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def record(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, ROOT / "runtime/compare/record.py", self.folder / "m.onnx", "--torch", self.folder / "m.pt2", *arguments]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)

    def compare(self, folder: Path) -> dict:
        result = subprocess.run([TOOL, "compare", self.folder / "m.onnx", "--against", folder, "--contract", "torch-cpu", "--format", "json"], capture_output=True, text=True, timeout=120)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return json.loads(result.stdout)

    def test_what_torch_computes_agrees(self) -> None:
        for dtype in ("float32", "bfloat16"):
            with self.subTest(dtype=dtype):
                export(self.folder, dtype)
                result = self.record("--out", str(self.folder / dtype))
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("and 2 inputs in", result.stdout)
                document = self.compare(self.folder / dtype)
                self.assertEqual([each for each in document["nodes"] if each["verdict"] == "bug"], [])
                self.assertGreater(len(document["nodes"]), 15)
                values = {each["value"] for each in document["nodes"]}
                self.assertGreaterEqual(values, {"mixed", "rows", "relu", "linear", "softmax"})

    def test_faults_and_bad_arguments(self) -> None:
        export(self.folder, "float32")
        np.save(self.folder / "x.npy", np.ones((4, 3, 9, 9), np.float32))
        self.assertEqual(self.record("--out", str(self.folder / "r"), "--inputs", f"picture={self.folder}/x.npy", "--values", "relu,linear").returncode, 0)
        arrays = dict(np.load(self.folder / "r/values-0000.npz"))
        self.assertEqual(set(arrays), {"picture", "factor", "relu", "linear"})
        self.assertTrue((arrays["picture"] == 1).all())
        out = self.folder / "wrong"
        out.mkdir()
        write_npz(out / "values.npz", arrays | {"linear": arrays["linear"] * np.float32(1.25)})
        producer = next(node for node in onnx.load(self.folder / "m.onnx").graph.node if "linear" in node.output)
        first = self.compare(out)["first"]
        self.assertEqual(first["op"], producer.op_type)
        self.assertEqual(first["cause"], "all elements are 1.25 times the reference")
        self.assertIn("the model has no input `x`", self.record("--out", str(self.folder / "s"), "--inputs", f"x={self.folder}/x.npy").stderr)
        self.assertIn("has recorded values already", self.record("--out", str(self.folder / "r")).stderr)


if __name__ == "__main__":
    unittest.main()
