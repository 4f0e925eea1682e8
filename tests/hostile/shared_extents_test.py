"""Extents that stand in one another: each is short, and all that its parts are made of is thousands of products."""

import itertools
import random
import string
import unittest

import onnx
from onnx import TensorProto, helper
from promise import LARGEST, PromiseTest


class Extents:
    """Nodes that compute extents of `x` in levels; each level adds, multiplies and compares those of the level before."""

    def __init__(self, levels: int) -> None:
        self.chance = random.Random(5)
        self.names = ("".join(letters) for letters in itertools.product(string.ascii_letters, repeat=2))
        self.nodes = [helper.make_node("Shape", ["x"], ["s"])]
        self.constants = [helper.make_tensor(f"{i}", TensorProto.INT64, [1], [i]) for i in range(8)]
        sides = [self.add("Gather", "s", f"{i}") for i in range(8)]
        self.atoms: list[str] = []
        while len(self.atoms) < 30:
            a, b, c = self.chance.sample(sides, 3)
            self.atoms.append(self.add("Max", self.add("Mul", a, b), c))
        for _ in range(levels):
            self.products = self.products_of(self.atoms)
            self.atoms = [self.add("Max", a, b) for a, b in self.pairs(self.products)]

    def add(self, op: str, *operands: str) -> str:
        self.nodes.append(helper.make_node(op, operands, [next(self.names)]))
        return self.nodes[-1].output[0]

    def pairs(self, values: list[str]) -> list[tuple[str, str]]:
        mixed = self.chance.sample(values, len(values))
        return list(zip(mixed[::2], mixed[1::2]))

    def products_of(self, atoms: list[str]) -> list[str]:
        """Of four sums each, so of sixteen terms in up to eight atoms."""
        sums = [self.add("Add", a, b) for a, b in self.pairs(atoms)]
        few = self.chance.sample(list(itertools.combinations(sums, 2)), 30)
        products = [({a, b}, self.add("Mul", a, b)) for a, b in few]
        apart = [(x, y) for (of_x, x), (of_y, y) in itertools.combinations(products, 2) if not of_x & of_y]
        return [self.add("Mul", x, y) for x, y in self.chance.sample(apart, 60)]

    def tensor(self) -> list[onnx.NodeProto]:
        """The nodes of `t`, which has one long extent along 64 axes."""
        return [
            helper.make_node("Concat", [self.products[0]] * 64, ["shape"], axis=0),
            helper.make_node("ConstantOfShape", ["shape"], ["t"]),
        ]

    def content(self, *last: onnx.NodeProto) -> bytes:
        """The model, with as many of the last nodes as there is room for."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, list("ABCDEFGH"))
        inputs = [x, helper.make_tensor_value_info("i", TensorProto.INT64, [])]
        left = LARGEST - 200 - len(self.model(self.nodes, inputs))
        taken = []
        for node in last:
            left -= node.ByteSize() + 3
            if left < 0:
                break
            taken.append(node)
        return self.model(self.nodes + taken, inputs)

    def model(self, nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto]) -> bytes:
        output = helper.make_empty_tensor_value_info(nodes[-1].output[0])
        graph = helper.make_graph(nodes, "g", inputs, [output], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10).SerializeToString()


class SharedExtentsTest(PromiseTest):
    def test_factors_of_products_that_are_placed(self):
        extents = Extents(13)
        products = [helper.make_node("MatMul", ["t", "t"], [f"{i}w"]) for i in range(3000)]
        self.run_within_promise(extents.content(*extents.tensor(), *products), "place", "check", "contract")

    def test_extents_that_a_contract_is_looked_for(self):
        extents = Extents(13)
        parts = [helper.make_node("Gather", ["t", "i"], [f"{i}w"]) for i in range(3000)]
        self.run_within_promise(extents.content(*extents.tensor(), *parts), "contract", "show --contract")

    def test_names_of_extents_in_types_of_64_axes(self):
        extents = Extents(12)
        extents.constants.append(helper.make_tensor("v", TensorProto.INT64, [64], range(1, 65)))
        last = []
        for i, (a, b) in enumerate(itertools.combinations(extents.atoms, 2)):
            last += [helper.make_node("Add", [a, b], [f"{i}p"]), helper.make_node("Add", [f"{i}p", "v"], [f"{i}q"])]
            last.append(helper.make_node("ConstantOfShape", [f"{i}q"], [f"{i}r"]))
        self.run_within_promise(extents.content(*last), "show", "check", "place")

    def test_shapes_of_many_operands_that_differ(self):
        for op, levels, attributes in (("Concat", 8, {"axis": 0}), ("Max", 12, {})):
            extents = Extents(levels)
            extents.constants.append(helper.make_tensor("v", TensorProto.INT64, [64], range(1, 65)))
            tensors = []
            for i, (a, b) in enumerate(extents.pairs(extents.atoms)[:2]):
                tensors += [helper.make_node("Add", [a, b], [f"{i}p"]), helper.make_node("Add", [f"{i}p", "v"], [f"{i}q"])]
                tensors.append(helper.make_node("ConstantOfShape", [f"{i}q"], [f"{i}r"]))
            with self.subTest(op):
                self.run_within_promise(extents.content(*tensors, helper.make_node(op, ["0r", "1r"] * 2000, ["y"], **attributes)), "check", "show")


if __name__ == "__main__":
    unittest.main()
