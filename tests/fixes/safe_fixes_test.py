"""Safe fixes mend what they are for and change no value: on small models of each dtype that a float holds exactly."""
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from safe_fixes import Measure, agree, feeds, fixed_by_tool, outputs

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def model(dtype: int, cast: bool) -> onnx.ModelProto:
    """score * count, with the cast that is missing or without it."""
    nodes = [helper.make_node("Cast", ["count"], ["number"], to=TensorProto.FLOAT)] if cast else []
    nodes.append(helper.make_node("Mul", ["score", "number" if cast else "count"], ["y"], name="scale"))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("score", TensorProto.FLOAT, [3, 4]), helper.make_tensor_value_info("count", dtype, [3, 1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


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
        bad, out = str(self.folder / "bad.onnx"), self.folder / "out.onnx"
        onnx.save(model(TensorProto.INT64, False), bad)
        self.assertEqual(fixed_by_tool(bad, str(out)), (1, {}))
        self.assertEqual(out.read_bytes(), Path(bad).read_bytes())  # written all the same, as it was

    def test_nothing_is_left_and_no_value_changes_on_the_samples(self) -> None:
        measure = Measure()
        for path in sorted(SAMPLES.glob("*.onnx")):
            measure.model(str(path))
        self.assertEqual(measure.wrong, [])
        self.assertGreater(measure.counts["models"], 8)


if __name__ == "__main__":
    unittest.main()
