"""Files of which nearly all bytes are weights: these are passed over, whatever form they have, and their pages do not stay."""

import unittest

import hostile_test
import wire
from promise import PromiseTest

MIB = 1 << 20


class WeightsPassedOverTest(PromiseTest):
    def write_with_weights(self, graph: bytes, holders: tuple[int, ...], fields: bytes, number: int, size: int) -> None:
        """A model whose graph ends with `size` zeros of field `number` of the messages `holders` in each other; in pieces, since what this
        process holds counts as memory of those that it starts."""
        heads = [wire.varint(number << 3 | 2) + wire.varint(size)]
        whole = len(heads[0]) + size
        for depth, field in enumerate(reversed(holders)):
            more = fields if depth == 0 else b""
            heads.insert(0, wire.varint(field << 3 | 2) + wire.varint(len(more) + whole) + more)
            whole += len(heads[0])
        with open(self.path, "wb") as file:
            file.write(wire.number(1, 8) + wire.data(8, wire.data(1, "") + wire.number(2, 18)))
            file.write(wire.varint(7 << 3 | 2) + wire.varint(len(graph) + whole) + graph + b"".join(heads))
            file.writelines(bytes(min(MIB, size - first)) for first in range(0, size, MIB))

    def test_weights_of_a_model_that_is_fixed_and_placed(self) -> None:
        """The model of the result reads them where they are, and lets go of them."""
        size = 120 * MIB
        graph = wire.graph([wire.node("Relu", ["x"], ["y"]), wire.node("Relu", ["x"], ["dead"])], [wire.value("x", dims=[2])], [wire.value("y", dims=[2])])
        boolean = wire.number(1, size) + wire.number(2, wire.BOOL) + wire.data(8, "w")
        self.write_with_weights(graph, (5,), boolean, 5, size)
        result = hostile_test.run(["fix", "--unsafe", "-o", self.folder / "fixed.onnx", self.path])
        self.assertIn(result.code, (0, 1), result.errors[:500])
        self.assertLess(result.memory, 80 * MIB)
        # The values of a sparse one, in a model that is placed.
        values = wire.number(1, size // 4) + wire.number(2, wire.FLOAT) + wire.data(8, "w")
        self.write_with_weights(graph, (15, 1), values, 9, size)
        result = hostile_test.run(["place", self.path, "-o", self.folder / "placed.onnx"])
        self.assertIn(result.code, (0, 1, 2), result.errors[:500])
        self.assertLess(result.memory, 112 * MIB)


if __name__ == "__main__":
    unittest.main()
