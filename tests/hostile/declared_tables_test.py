"""Tables whose dims are not those that they are declared with, have no elements, or multiply to more than a number holds, and what rules count
up to extents that a file chooses."""

import itertools
import unittest

import hostile_test
import onnx
import wire
from onnx import ModelProto, TensorProto, helper, parser
from promise import PromiseTest
from rules_work_test import names

RULES = hostile_test.ROOT / "tests" / "rules"
FIXTURES = ("value/broken-rotation", "value/degree-without-own-edge", "loss/target-in-prediction", "value/ones-for-identity", "loss/candidate-is-itself")
MOST_FIXTURES = 3


def declared(model: ModelProto, number: int, dims: list[int], own: list[int] | None) -> bytes:
    """The initializer is an input as well, of other dims; with `own`, it has no elements."""
    changed = ModelProto.FromString(model.SerializeToString())
    table = changed.graph.initializer[number]
    if own is not None:
        empty = TensorProto(name=table.name, data_type=table.data_type, dims=own, raw_data=b"")
        table.CopyFrom(empty)
    if dims:
        changed.graph.input.append(helper.make_tensor_value_info(table.name, table.data_type, dims))
    return changed.SerializeToString()


class DeclaredTablesTest(PromiseTest):
    def test_tables_of_other_dims_than_declared(self) -> None:
        models = []
        for folder in FIXTURES:
            for path in itertools.islice(sorted((RULES / folder).glob("bad_*.onnxtxt")), MOST_FIXTURES):
                try:
                    models.append(parser.parse_model(path.read_text()))
                except parser.ParseError:
                    continue  # what our reader takes besides
        self.assertGreater(len(models), len(FIXTURES))
        for model in models:
            for number, table in enumerate(model.graph.initializer):
                if table.data_type != onnx.TensorProto.FLOAT or not table.dims:
                    continue
                rest = list(table.dims)[:-1]
                for dims, own in (([*rest, 65536], None), ([*rest, 1 << 40], None), ([], [0, 1 << 32]), ([], [0, 1 << 62]), ([1 << 32, 1 << 32], [0]),
                                  ([5, 3689348814741910328], None)):
                    content = declared(model, number, dims, own)
                    self.path.write_bytes(content)
                    with self.subTest(table=table.name, dims=dims, own=own):
                        self.assert_kept(hostile_test.run(["check", self.path]), len(content), codes=(0, 1, 2))

    def test_sides_of_patches(self) -> None:
        results = names("_", 200)
        nodes = [wire.node("Reshape", ["x", "r"], [result]) for result in results]
        graph = wire.graph(nodes, [wire.value("x", wire.FLOAT, (1, 1, 1 << 31, 1 << 31))], [wire.data(1, results[0])], [wire.integers("r", [1, 4, 1 << 60])])
        self.run_within_promise(wire.model(graph, opsets=(("", 21),)), "check")

    def test_weights_without_elements(self) -> None:
        for extent in (1 << 34, 1 << 62):
            nodes = [wire.node("Slice", ["x", "b", "e", "a"], ["t"]), wire.node("MatMul", ["x", "w"], ["q"]), wire.node("Sub", ["q", "t"], ["d"]),
                     wire.node("Mul", ["d", "d"], ["s"]), wire.node("ReduceMean", ["s"], ["loss"], keepdims=0)]
            tables = [wire.tensor("w", wire.FLOAT, [0, extent], b""), wire.integers("a", [1]), wire.integers("b", [2]), wire.integers("e", [3])]
            graph = wire.graph(nodes, [wire.value("x", wire.FLOAT, ("N", 3))], [wire.data(1, "loss")], tables)
            self.run_within_promise(wire.model(graph, opsets=(("", 21),)), "check")

    def test_a_cast_that_many_losses_share(self) -> None:
        size = 1 << 18
        metadata = wire.data(9, wire.data(1, "namespace") + wire.data(2, "a")) + wire.data(9, b"") * (size // 4)
        nodes = [wire.node("Mul", ["x", "w"], ["p"]), wire.node("Cast", ["t"], ["c"], to=wire.FLOAT) + metadata]
        for loss in names("_", size // 180):
            nodes += [wire.node("Sub", ["p", "c"], [f"d{loss}"]), wire.node("Abs", [f"d{loss}"], [f"e{loss}"]), wire.node("ReduceMean", [f"e{loss}"], [loss], keepdims=0)]
        inputs = [wire.value("x", wire.FLOAT, ("N", 4)), wire.value("t", wire.INT64, ("N", 4))]
        content = wire.model(wire.graph(nodes, inputs, [wire.data(1, "_aaa")], [wire.tensor("w", wire.FLOAT, [4], b"\0\0\x80\x3f" * 4)]), opsets=(("", 21),))
        self.path.write_bytes(content)
        self.assert_kept(hostile_test.run(["check", "--max-findings", "5", self.path]), len(content), seconds=1)

    def test_rows_of_a_table_among_the_weights(self) -> None:
        """Zeros but for the last number, which are holes of the file."""

        def head(field: int, size: int) -> bytes:
            return wire.varint(field << 3 | 2) + wire.varint(size)

        rows, bytes_of_row = 5, 16 << 20
        raw = rows * bytes_of_row
        known = wire.number(1, rows) + wire.number(1, bytes_of_row // 4) + wire.number(2, wire.FLOAT) + wire.data(8, "w")
        nodes = [wire.node("Gather", ["w", "t"], ["e"]), wire.node("ReduceMean", ["e"], ["m"], axes=[1], keepdims=1), wire.node("MatMul", ["m", "v"], ["s"]),
                 wire.node("SoftmaxCrossEntropyLoss", ["s", "t"], ["loss"])]
        constants = [wire.tensor("v", wire.FLOAT, [1, rows], b"\0\0\x80\x3f" * rows)]
        graph = wire.graph(nodes, [wire.value("t", wire.INT64, ("N",))], [wire.data(1, "loss")], constants)
        table = len(known) + len(head(9, raw)) + raw
        model = wire.number(1, 8) + wire.data(8, wire.data(1, "") + wire.number(2, 17)) + head(7, len(graph) + len(head(5, table)) + table)
        with self.path.open("wb") as file:
            file.write(model + graph + head(5, table) + known + head(9, raw))
            file.seek(raw - 4, 1)
            file.write(b"\0\0\x80\x3f")
        result = hostile_test.run(["check", self.path])
        self.assertIn(result.code, (0, 1), result.errors[:500])
        self.assertLess(result.memory, 64 << 20)


if __name__ == "__main__":
    unittest.main()
