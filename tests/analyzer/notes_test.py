"""What notes of findings say of models that PyTorch exported: the library's line under the user's, and the exporter's names of extents."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import onnx
from onnx import TensorProto, helper

TOOL = os.environ["TENSORLINT_BINARY"]
USER = '  File "train.py", line 12, in forward\n    return self.encoder(x)\n'
MACHINERY = '  File "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1775, in _call_impl\n    return forward_call(*args, **kwargs)\n'
LIBRARY = '  File "/usr/lib/python3.11/site-packages/transformers/models/bert/modeling_bert.py", line 360, in forward\n    return hidden + self.dense(hidden)\n'
TORCH = '  File "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    return F.linear(input, self.weight, self.bias)\n'


def finding(trace: str, dims: tuple[str, str] = ("s77", "s77")) -> dict:
    """x [s77, 4] with its first axis doubled, plus y [s77, 4]: these never broadcast."""
    join = helper.make_node("Concat", ["x", "x"], ["long"], name="join", axis=0)
    node = helper.make_node("Add", ["long", "y"], ["sum"], name="add")
    if trace:
        node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value=trace)
    graph = helper.make_graph([join, node], "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, [dim, 4]) for name, dim in zip("xy", dims, strict=True)],
                              [helper.make_tensor_value_info("sum", TensorProto.FLOAT, None)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
        result = subprocess.run([TOOL, "check", "--format", "json", str(path)], capture_output=True, text=True, timeout=60, check=False)
    findings = json.loads(result.stdout)["findings"]
    assert len(findings) == 1, findings
    return findings[0]


class NotesTest(unittest.TestCase):
    def library(self, trace: str) -> tuple[str, list[str]]:
        found = finding(trace)
        return found["file"], [f"{note['file']}:{note['line']}" for note in found["notes"] if "library" in note["message"]]

    def test_the_library_line_is_under_the_users(self) -> None:
        file, library = self.library(USER + MACHINERY + LIBRARY + MACHINERY + TORCH)
        self.assertEqual(file, "train.py")
        self.assertEqual([Path(line).name for line in library], ["modeling_bert.py:360"])

    def test_pytorchs_own_line_where_no_other_library_is_between(self) -> None:
        self.assertEqual([Path(line).name for line in self.library(USER + MACHINERY + TORCH)[1]], ["linear.py:134"])

    def test_no_library_line_where_the_user_wrote_the_operation(self) -> None:
        for trace in (USER, LIBRARY + USER, USER + MACHINERY, LIBRARY, ""):
            with self.subTest(trace):
                if trace:
                    self.assertEqual(self.library(trace)[1], [])
                else:
                    self.assertFalse(any("library" in note["message"] for note in finding(trace)["notes"]))

    def test_an_exporters_name_is_explained_once(self) -> None:
        notes = [note["message"] for note in finding(USER)["notes"]]
        self.assertEqual(notes.count("s77 is axis 0 of `x`"), 1, notes)

    def test_a_name_that_says_something_is_not_explained(self) -> None:
        notes = [note["message"] for note in finding(USER, ("batch", "batch"))["notes"]]
        self.assertFalse(any("is axis" in note for note in notes), notes)


if __name__ == "__main__":
    unittest.main()
