"""Nodes, names, lists and texts that are wide where rules look at them again and again, and meters that are spent in the middle of a walk."""

import itertools
import string
import struct
import unittest

import wire
from hostile_test import run
from promise import PromiseTest

X = [wire.value("x.", dims=["N", 4, 4])]


def fresh_names():
    return ("".join(letters) for count in (2, 3) for letters in itertools.product(string.ascii_letters, repeat=count))


def model(nodes, inputs=X, output="y.", initializers=(), opset=18, ir_version=8):
    return wire.model(wire.graph(nodes, inputs, [wire.data(1, output)], initializers), opsets=(("", opset),), ir_version=ir_version)


def softmaxes(of, count, names, **attributes):
    results = list(itertools.islice(names, count))
    return [wire.node("Softmax", [of], [name], **attributes) for name in results], results


def summed_masks(operator, depth):
    names, nodes, outputs = fresh_names(), [wire.node("Trilu", ["ones"], ["t."], upper=1)], []
    for _ in range(200):
        element = "t."
        for _ in range(depth):
            nodes.append(wire.node(operator, [element, element], [element := next(names)]))
        nodes.append(wire.node("Add", ["x.", element], [scores := next(names)]))
        nodes.append(wire.node("Softmax", [scores], [result := next(names)]))
        outputs.append(result)
    nodes.append(wire.node("Max", outputs, ["y."]))
    ones = wire.tensor("ones", 1, [12, 12], struct.pack("<144f", *[1.0] * 144))
    return model(nodes, [wire.value("x.", dims=["N", 12, 12])], initializers=[ones])


class WideNodesTest(PromiseTest):
    def work(self, content):
        self.path.write_bytes(content)
        for command in (["check"], ["fix", "--diff"]):
            self.assert_kept(run([*command, self.path]), len(content))

    def test_masks_whose_elements_are_sums_of_sums(self):
        """The meter is spent at the operands of some Add, which are none then."""
        for operator, depth in (("Add", 9), ("Pow", 9), ("Mul", 9)):
            with self.subTest(operator):
                self.work(summed_masks(operator, depth))

    def test_scans_of_thousands_of_sequences_that_others_are_held_against(self):
        one = wire.graph([wire.node("Identity", ["p"], ["q"])], [wire.data(1, "p")], [wire.data(1, "q")], name="b")
        many = wire.graph([wire.node("Identity", ["p"], ["q"])], [wire.value("p", dims=[4])], [wire.data(1, "q")] * 300, name="a")
        turned = [f"z{k}" for k in range(300)]
        nodes = [
            wire.node("Scan", ["w"] + ["x"] * 9999, ["y"], num_scan_inputs=10_000, body=("g", one)),
            wire.node("Scan", ["x"], turned, num_scan_inputs=1, body=("g", many), scan_output_directions=[1] * 300),
            wire.node("Max", turned + ["y"] * 6000, ["o"]),
        ]
        self.work(model(nodes, [wire.value("x", dims=[3, 4]), wire.value("w", dims=[3, 4])], "o"))

    def test_names_of_masks(self):
        mask = "m" * 16_000 + "_mask"
        nodes = [wire.node("Identity", [mask], ["9"]), wire.node("Mul", ["9", "9"], ["0"])]
        nodes += [wire.node("Mul", [str(i), str(i)], [str(i + 1)]) for i in range(5)]
        nodes.append(wire.node("Mul", ["5", "k"], ["M"]))
        nodes += [wire.node("Add", [f"s{i}" if i else "x", "M"], [f"s{i + 1}"]) for i in range(8)]
        nodes += softmaxes("s8", 1400, fresh_names())[0]
        k = wire.tensor("k", 1, [], struct.pack("<f", -1e9))
        self.work(model(nodes, [wire.value("x", dims=["N", 4]), wire.value(mask, dims=["N", 4])], "s8", [k]))

    def test_factors_of_thousands_of_operands(self):
        names = fresh_names()
        parts = list(itertools.islice(names, 5000))
        nodes, ends = [wire.node("Split", ["v."], parts, num_outputs=5000), wire.node("Max", parts, ["w."])], []
        for _ in range(3):
            nodes.append(wire.node("Softmax", ["x."], [soft := next(names)], axis=1))
            for _ in range(15):
                nodes.append(wire.node("Mul", ["w.", soft], [product := next(names)]))
                for _ in range(15):
                    nodes.append(wire.node("ReduceSum", [product, "k."], [end := next(names)]))
                    ends.append(end)
        nodes.append(wire.node("Max", ends, ["y."]))
        self.work(model(nodes, [*X, wire.value("v.", dims=[20_000, 4])], initializers=[wire.integers("k.", [2])]))

    def test_a_number_with_thousands_of_words(self):
        number = wire.number(1, 1) + wire.number(2, 22) + wire.data(8, "k.") + wire.data(5, bytes(36_000))
        nodes, product = [], "attention_mask"
        for i in range(25):
            nodes.append(wire.node("Cast", ["k."], [f"c{i}"], to=1))
            nodes.append(wire.node("Mul", [product, f"c{i}"], [product := str(i)]))
        more, results = softmaxes(product, 800, fresh_names())
        nodes += [*more, wire.node("Max", results, ["y."])]
        self.work(model(nodes, [wire.value("attention_mask", dims=["N", 4])], initializers=[number], opset=21, ir_version=10))

    def test_equations_of_thousands_of_letters(self):
        nodes, results = softmaxes("x.", 500, fresh_names())
        nodes += [wire.node("Max", results, ["v."]), wire.node("Einsum", ["v."], ["y."], equation="a" * 25_000 + "->" + "b" * 25_000)]
        self.work(model(nodes, [wire.value("x.", dims=["N", 4, 5])]))


if __name__ == "__main__":
    unittest.main()
