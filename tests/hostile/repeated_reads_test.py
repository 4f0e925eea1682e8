"""Small models in which many nodes ask the same question about one constant, one text or one formula that is costly to read."""

import random
import struct
import unittest

import numpy as np
import wire
from hostile_test import run
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor, make_tensor_value_info
from promise import PromiseTest
from rules_work_test import names

OPSETS = (("", 17),)
FLOAT16, INT2, CAST_TO_FLOAT = 10, 26, {"to": wire.FLOAT}


def scalar(name: str, dtype: int = wire.FLOAT) -> bytes:
    return wire.value(name, dtype, ())


def padded(word: int) -> bytes:
    """A number below 2^14 as a varint of nine bytes."""
    return bytes([word & 127 | 128, word >> 7 | 128, *[128] * 6, 0])


def with_metadata(node: bytes, key: str, text: str) -> bytes:
    return node + wire.data(9, wire.data(1, key) + wire.data(2, text))


def weights_of_labels(first: list[bytes], *, dtype: int = wire.FLOAT, initializers: tuple[bytes, ...] = (), inputs: tuple[bytes, ...] = ()) -> bytes:
    """Twenty picked log-probabilities with a weight that is T, doubled ten times: a thousand leaves."""
    nodes = [*first, wire.node("LogSoftmax", ["X"], ["P"])]
    for level in range(10):
        nodes.append(wire.node("Add", [f"a{level - 1}" if level else "T"] * 2, [f"a{level}"]))
    for k in range(20):
        nodes += [wire.node("GatherElements", ["P", "Y"], [f"g{k}"], axis=1), wire.node("Mul", [f"g{k}", "a9"], [f"m{k}"]), wire.node("ReduceMean", [f"m{k}"], [f"r{k}"], keepdims=0)]
        nodes.append(wire.node("Add", [f"s{k - 1}" if k else "r0", f"r{k}"], [f"s{k}"]))
    nodes.append(wire.node("Neg", ["s19"], ["L"]))
    values = (wire.value("X", dtype, ("N", 5)), wire.value("Y", wire.INT64, ("N", 1)), *inputs)
    return wire.model(wire.graph(nodes, values, [scalar("L", dtype)], initializers), opsets=OPSETS)


def chains_of_scores(levels: int, function: str) -> bytes:
    """The sum of four scores and four inputs through thirty functions, as an input of the next one."""
    chance = random.Random(1)
    inputs = [make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in ("x", "d0", "d1", "d2", "d3")]
    nodes, weights = [], []
    before: list[str] = []
    for level in range(levels):
        scores = []
        for k in range(3 if before else 4):
            scores.append(f"s{level}_{k}")
            weights.append(make_tensor(f"w{level}_{k}", TensorProto.FLOAT, [4, 4], [chance.uniform(-1, 1) for _ in range(16)]))
            nodes.append(make_node("MatMul", ["x", f"w{level}_{k}"], [f"s{level}_{k}"]))
        at = scores[0]
        for k, other in enumerate([*scores[1:], "d0", "d1", "d2", "d3", *before]):
            nodes.append(make_node("Add", [at, other], [f"t{level}_{k}"]))
            at = f"t{level}_{k}"
        for k in range(30):
            nodes.append(make_node(function, [at], [f"f{level}_{k}"]))
            at = f"f{level}_{k}"
        nodes.append(make_node("ReduceMean", [at], [f"mean{level}"], keepdims=1))
        before = [f"mean{level}"]
    nodes += [make_node("Log", [at], ["log"]), make_node("ReduceMean", ["log"], ["loss"], keepdims=0)]
    graph = make_graph(nodes, "g", inputs, [make_tensor_value_info("loss", TensorProto.FLOAT, [])], weights)
    return make_model(graph, opset_imports=[make_opsetid("", 18)], ir_version=8).SerializeToString()


class RepeatedReadsTest(PromiseTest):
    def check(self, content: bytes) -> None:
        self.run_within_promise(content, "check")

    def test_one_number_of_fifty_thousand_extents(self) -> None:
        dims = [1] * 25_000
        table = wire.tensor("T", wire.FLOAT, dims, struct.pack("<f", 1))
        self.check(weights_of_labels([], initializers=(table,)))
        fill = wire.node("ConstantOfShape", ["S"], ["T"], value=("t", wire.tensor("", wire.FLOAT, dims, struct.pack("<f", 1))))
        self.check(weights_of_labels([fill], inputs=(wire.value("S", wire.INT64, ("R",)),)))

    def test_a_table_of_long_numbers(self) -> None:
        table = wire.number(1, 4096) + wire.number(1, 1) + wire.number(2, FLOAT16) + wire.data(5, padded(0x3C00) * 4096) + wire.data(8, "T")
        self.check(weights_of_labels([], dtype=FLOAT16, initializers=(table,)))

    def test_scores_of_scores(self) -> None:
        self.check(chains_of_scores(6, "Asinh"))

    def test_what_an_exporter_wrote_about_an_operand_of_many(self) -> None:
        text = "args" + "%" * 32_000 + "%_to_copy"
        first = [wire.node("Where", ["B", "I", "X"], ["w"]), wire.node("LogSoftmax", ["w"], ["c"]), wire.node("Cast", ["c"], ["c0"], **CAST_TO_FLOAT),
                 with_metadata(wire.node("Cast", ["c0"], ["d"], **CAST_TO_FLOAT), "pkg.torch.onnx.fx_node", text), wire.node("Exp", ["d"], ["e"])]
        nodes = [*first, *(wire.node("Mul", ["e", "e"], [name]) for name in names("_", 1700)), wire.node("ReduceMean", ["X"], ["L"], keepdims=0)]
        infinity = wire.tensor("I", wire.FLOAT, [], struct.pack("<f", -np.inf))
        self.check(wire.model(wire.graph(nodes, [wire.value("X"), wire.value("B", wire.BOOL)], [scalar("L")], [infinity]), opsets=OPSETS))

    def test_a_diagonal_that_many_roots_may_want(self) -> None:
        size = 64
        packed = bytearray(size * size // 4)
        for row in range(size):
            at = row * (size + 1)
            packed[at // 4] |= 1 << at % 4 * 2
        nodes = [wire.node("ReduceSum", ["X"], ["s"]), *(wire.node("Add", ["X", "T"], [name]) for name in names("!", 16)),
                 *(wire.node("Sqrt", ["s"], [name]) for name in names("_", 3300)), wire.node("ReduceMean", ["X"], ["L"])]
        table = wire.tensor("T", INT2, [size, size], bytes(packed))
        self.check(wire.model(wire.graph(nodes, [wire.value("X", wire.FLOAT, (size, size))], [scalar("L")], [table])))

    def test_an_index_that_is_malformed_at_its_end(self) -> None:
        """It has one element more than its dims say, which shows when all the others have been read."""

        def gathers(count: int, nodes: int, sizes: int) -> bytes:
            index = wire.number(1, count) + wire.number(2, wire.INT64) + wire.data(7, b"\1" * (count + 1)) + wire.data(8, "i")
            readers = [wire.node("Gather", ["X", "i"], [name]) for name in names("_", nodes)]
            readers += [wire.node("Gather", ["X", f"k{i}"], [f"Y{i}"]) for i in range(sizes)]
            inputs = [wire.value("X", wire.FLOAT, (2, 4)), *(wire.value(f"k{i}", wire.INT64, ("K",)) for i in range(sizes))]
            return wire.model(wire.graph(readers, inputs, [wire.data(1, names("_", 1)[0])], [index]), opsets=OPSETS)

        content = gathers(260_000, 10_000, 0)
        self.path.write_bytes(content)
        self.assert_kept(run(["check", "--max-findings", "5", self.path]), len(content), seconds=2)
        content = gathers(45_000, 600, 50)
        self.path.write_bytes(content)
        self.assert_kept(run(["run", "--force", "--seed", "0", self.path]), len(content), codes=(0, 1, 2))

    def test_steps_that_are_read_in_many_ways(self) -> None:
        nodes = [wire.node("Slice", ["X", "b", "e", "a"], ["s"], name="n" * 62_000)]
        before = "s"
        for level in range(7):
            nodes.append(wire.node("Max", ["s", *[before] * 60], [f"m{level}"]))
            before = f"m{level}"
        nodes += [wire.node("Concat", ["X", "X"], ["cc"], axis=1), wire.node("Slice", ["X", "z", "e2", "a"], ["s0"]), wire.node("Sub", ["s0", before], ["d0"]),
                  wire.node("ReduceMean", ["d0"], ["L"], keepdims=0)]
        constants = [wire.integers(name, [number]) for name, number in (("b", 1), ("e", 8), ("a", 1), ("z", 0), ("e2", 7))]
        self.check(wire.model(wire.graph(nodes, [wire.value("X", wire.FLOAT, ("N", 8, 4))], [scalar("L")], constants), opsets=OPSETS))


if __name__ == "__main__":
    unittest.main()
