"""Safe fixes mend what they are for and change no value: on small models of each dtype that a float holds exactly."""
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from safe_fixes import Measure, agree, feeds, findings, fixed_by_tool, outputs

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def model(dtype: int, cast: bool) -> onnx.ModelProto:
    """score * count, with the cast that is missing or without it."""
    nodes = [helper.make_node("Cast", ["count"], ["number"], to=TensorProto.FLOAT)] if cast else []
    nodes.append(helper.make_node("Mul", ["score", "number" if cast else "count"], ["y"], name="scale"))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("score", TensorProto.FLOAT, [3, 4]), helper.make_tensor_value_info("count", dtype, [3, 1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def moved(op: str, opset: int, operands: list[tuple[int, list[int]]], attributes: dict, results: int = 1, **kept: Any) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A node with attributes that are operands by now, and its twin that has them as operands, by their place (None: left out)."""
    inputs = [helper.make_tensor_value_info(f"x{i}", dtype, shape) for i, (dtype, shape) in enumerate(operands)]
    names = [value.name for value in inputs]
    outputs = [f"y{i}" for i in range(results)]

    def whole(node: onnx.NodeProto, constants: list[onnx.TensorProto]) -> onnx.ModelProto:
        declared = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph([node], "g", inputs, declared, constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made) if constants else made

    constants = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in attributes.values()]
    order = sorted((place, name) for place, (name, _) in attributes.items())
    given = list(names)
    for place, name in order:
        given += [""] * (place - len(given)) + [name]
    old: dict[str, Any] = {name: np.asarray(value).tolist() for name, value in attributes.values()}
    bad = helper.make_node(op, names, outputs, name="node", **old, **kept)
    if op == "TopK":
        bad = helper.make_node(op, names, outputs, name="node", k=old["k"][0], **kept)
    twin = whole(helper.make_node(op, given, outputs, name="node", **kept), constants)
    model = whole(bad, [])
    for value, typed in zip(model.graph.output, twin.graph.output, strict=True):
        value.type.CopyFrom(typed.type)
    return model, twin


FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
INTS = np.int64
MOVED = {
    "ReduceSum 13": moved("ReduceSum", 13, [(FLOAT, [3, 4])], {1: ("axes", np.array([1], INTS))}, keepdims=0),
    "ReduceMean 18": moved("ReduceMean", 18, [(FLOAT, [3, 4])], {1: ("axes", np.array([-1], INTS))}),
    "Squeeze 13": moved("Squeeze", 13, [(FLOAT, [3, 1])], {1: ("axes", np.array([1], INTS))}),
    "Unsqueeze 17": moved("Unsqueeze", 17, [(FLOAT, [3])], {1: ("axes", np.array([0, 2], INTS))}),
    "Dropout 13": moved("Dropout", 13, [(FLOAT, [3, 4])], {1: ("ratio", np.float32(0.25))}),
    "Slice 10": moved("Slice", 10, [(FLOAT, [3, 4])], {1: ("starts", np.array([1], INTS)), 2: ("ends", np.array([3], INTS)), 3: ("axes", np.array([1], INTS))}),
    "Split 13": moved("Split", 13, [(FLOAT, [3, 4])], {1: ("split", np.array([1, 3], INTS))}, results=2, axis=1),
    "Pad 13": moved("Pad", 13, [(FLOAT, [3, 4])], {1: ("pads", np.array([0, 1, 0, 2], INTS))}),
    "Clip 11": moved("Clip", 11, [(FLOAT, [3, 4])], {1: ("min", np.float32(0)), 2: ("max", np.float32(6))}),
    "Clip 17, half": moved("Clip", 17, [(HALF, [3, 4])], {1: ("min", np.float16(0.25)), 2: ("max", np.float16(0.5))}),
    "Clip 17, maximum": moved("Clip", 17, [(FLOAT, [3, 4])], {2: ("max", np.float32(0.5))}),
    "TopK 11": moved("TopK", 11, [(FLOAT, [3, 4])], {1: ("k", np.array([2], INTS))}, results=2),
    "DFT 20": moved("DFT", 20, [(FLOAT, [1, 8, 1])], {2: ("axis", np.array(1, INTS))}),
}


class SafeFixesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_exact_integers_get_a_cast(self) -> None:
        for dtype in [TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16]:
            with self.subTest(dtype=dtype):
                bad, good, out = (str(self.folder / name) for name in ["bad.onnx", "good.onnx", "out.onnx"])
                onnx.save(model(dtype, False), bad)
                onnx.save(model(dtype, True), good)
                code, rules = fixed_by_tool(bad, out)
                self.assertEqual((code, sum(rules.values())), (0, 1))
                given = feeds(onnx.load(good), np, onnx)
                self.assertTrue(agree(outputs(out, given), outputs(good, given), np))

    def test_integers_that_a_float_rounds_are_left(self) -> None:
        bad, out = self.folder / "bad.onnx", self.folder / "out.onnx"
        onnx.save(model(TensorProto.INT64, False), bad)
        self.assertEqual(fixed_by_tool(str(bad), str(out)), (1, {}))
        self.assertEqual(out.read_bytes(), bad.read_bytes())

    def test_attributes_that_became_operands_are_passed_as_such(self) -> None:
        compared = 0
        for name, (bad, twin) in MOVED.items():
            with self.subTest(name):
                path, other = str(self.folder / "bad.onnx"), str(self.folder / "twin.onnx")
                onnx.save(bad, path)
                onnx.save(twin, other)
                self.assertEqual([finding["rule"] for finding in findings(path)], ["bad-attribute"])
                measure = Measure()
                measure.model(path, other)
                self.assertEqual(measure.wrong, [])
                self.assertEqual(measure.counts["fixed"], 1)
                self.assertEqual(measure.counts["values as the twin: others"], 0)
                compared += measure.counts["values as the twin: same"]
        self.assertGreaterEqual(compared, len(MOVED) - 2)

    def test_what_cannot_be_an_operand_is_advice(self) -> None:
        bad, _ = moved("Clip", 11, [(FLOAT, [3, 4])], {1: ("min", np.float32(0.5))})
        path = str(self.folder / "bad.onnx")
        onnx.save(bad, path)
        self.assertEqual([finding["rule"] for finding in findings(path)], ["bad-attribute"])
        self.assertEqual(fixed_by_tool(path, str(self.folder / "out.onnx"))[1], {})

    def test_nothing_is_left_and_no_value_changes_on_the_samples(self) -> None:
        measure = Measure()
        for path in sorted(SAMPLES.glob("*.onnx")):
            measure.model(str(path))
        self.assertEqual(measure.wrong, [])
        self.assertGreater(measure.counts["models"], 8)


if __name__ == "__main__":
    unittest.main()
