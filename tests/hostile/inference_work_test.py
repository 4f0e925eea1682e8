"""Small models whose operators cost far more to infer than their operands and results are large, once or for each size that `check` and `contract` try."""

import itertools
import string
import struct
import unittest

import wire
from promise import LARGEST, PromiseTest
from rules_work_test import names

OPSETS = (("", 17),)


def floats(name: str, dims: list[int], numbers: list[float]) -> bytes:
    return wire.tensor(name, wire.FLOAT, dims, struct.pack(f"<{len(numbers)}f", *numbers))


def integers(name: str, dims: list[int], numbers: list[int]) -> bytes:
    return wire.tensor(name, wire.INT64, dims, struct.pack(f"<{len(numbers)}q", *numbers))


def twos(first: int, count: int) -> list[int]:
    """64 extents, so many of which are 2."""
    return [1] * first + [2] * count + [1] * (64 - first - count)


class Work:
    """A model that grows by nodes up to 64 KiB."""

    def __init__(self, fixed: list[bytes], inputs: list[bytes], outputs: list[bytes], initializers: list[bytes]) -> None:
        self.fixed, self.inputs, self.outputs, self.initializers = fixed, inputs, outputs, initializers

    def with_open_sizes(self, count: int) -> "Work":
        """Beside it, sums of open extents with constants, for each of which other sizes are tried."""
        return Work(
            [*(wire.node("Add", [f"X{k}", f"W{k}"], [f"Z{k}"]) for k in range(count)), *self.fixed],
            [*(wire.value(f"X{k}", wire.FLOAT, (f"N{k}",)) for k in range(count)), *self.inputs],
            self.outputs,
            [*(floats(f"W{k}", [60 + k], [0.0] * (60 + k)) for k in range(count)), *self.initializers],
        )

    def bytes(self, nodes: list[bytes]) -> bytes:
        fixed = wire.model(wire.graph(self.fixed, self.inputs, self.outputs, self.initializers), opsets=OPSETS)
        left = LARGEST - len(fixed) - 16
        taken = itertools.takewhile(lambda total: total <= left, itertools.accumulate(len(node) + 4 for node in nodes))
        return wire.model(wire.graph(self.fixed + nodes[: len(list(taken))], self.inputs, self.outputs, self.initializers), opsets=OPSETS)


class InferenceWorkTest(PromiseTest):
    def test_operands_with_an_axis_each(self) -> None:
        letters = (string.ascii_letters + string.digits)[:60]
        inputs = [wire.value(letter, wire.FLOAT, [2 if k == at else 1 for k in range(60)]) for at, letter in enumerate(letters)]
        inputs.append(wire.value(".", wire.FLOAT, [1] * 60))
        wide = wire.node("Sum", [*letters, *["."] * 11_000], ["-"])
        work = Work([wide], inputs, [wire.value("-", wire.FLOAT, [2] * 60)], [])
        self.run_within_promise(work.bytes([]), "check", "contract", "place")
        self.run_within_promise(work.with_open_sizes(8).bytes([]), "check", "contract")

    def test_elements_along_64_axes(self) -> None:
        count = 36
        tables = [floats(f"x{k}", twos(10, 3), [float(k + j) for j in range(8)]) for k in range(count)]
        tables += [floats(f"y{k}", twos(13, 3), [float(1000 + k + j) for j in range(8)]) for k in range(count)]
        tables += [wire.tensor("cc", wire.BOOL, [15], b"\1" * 15), integers("sh", [64], twos(0, 4))]
        fixed = [wire.node("Concat", ["U", "cc"], ["c0"], axis=0), wire.node("Reshape", ["c0", "sh"], ["c"])]
        nodes = [wire.node("Where", ["c", f"x{k % count}", f"y{k // count}"], [name]) for k, name in enumerate(names("_", count * count))]
        work = Work(fixed, [wire.value("U", wire.BOOL, [1])], [wire.value("_aaa", wire.FLOAT, ["a"] * 64)], tables)
        self.run_within_promise(work.bytes(nodes), "check", "contract", "place")
        self.run_within_promise(work.with_open_sizes(8).bytes(nodes), "check", "contract")

    def test_boxes_that_are_all_compared(self) -> None:
        boxes, count = 90, 36
        corners = [number for i in range(boxes) for number in (i * 0.01, i * 0.01, 1 + i * 0.01 + i * i * 1e-5, 1 + i * 0.01)]
        constants = [integers("m", [], [1000]), floats("B", [1, boxes, 4], corners), floats("S", [1, 1, boxes], [1 - i * 0.001 for i in range(boxes)])]
        constants += [floats(f"i{k}", [], [0.99999 + k * 1e-7]) for k in range(count)] + [floats(f"t{k}", [], [-1.0 - k]) for k in range(count)]
        nodes = [wire.node("NonMaxSuppression", ["B", "S", "m", f"i{k % count}", f"t{k // count}"], [name]) for k, name in enumerate(names("_", count * count))]
        work = Work([], [], [wire.value("_aaa", wire.INT64, ["n", 3])], constants)
        self.run_within_promise(work.bytes(nodes), "check")
        self.run_within_promise(work.with_open_sizes(8).bytes(nodes), "check", "contract")

    def test_remainders_in_indices_of_many(self) -> None:
        fixed, sums = [], ["X", "Y"]
        for level in range(7):
            fixed += [wire.node("Add", sums, [f"a{level}"]), wire.node("Sub", sums, [f"b{level}"])]
            sums = [f"a{level}", f"b{level}"]
        for part in range(5):
            fixed += [wire.node("Mod", [sums[0], "m"], [f"M{part}_{k}"]) for k in range(8)]
            fixed.append(wire.node("Concat", [f"M{part}_{k}" for k in range(8)], [f"C{part}"], axis=0))
        fixed += [wire.node("Concat", [f"C{part}" for part in range(5)], ["R"], axis=0), wire.node("Concat", ["R"] * 8, ["T"], axis=1)]
        nodes = [wire.node("GatherND", ["D", "T"], [name]) for name in names("_", 4000)]
        inputs = [wire.value("X", wire.INT64, [1, 1]), wire.value("Y", wire.INT64, [1, 1]), wire.value("D", wire.FLOAT, [2] * 8)]
        self.run_within_promise(Work(fixed, inputs, [wire.value("_aaa", wire.FLOAT, [40])], [integers("m", [], [1000])]).bytes(nodes), "check")

    def test_thousands_of_operands_for_each_size(self) -> None:
        letters = [letter for letter in string.ascii_letters if letter != "L"][:40]
        wide = wire.node("Sum", [letters[k % 40] for k in range(15_000)], ["L"])
        work = Work([wide], [wire.value(letter, wire.FLOAT, [f"Q{k}" for k in range(5)]) for letter in letters], [wire.value("L", wire.FLOAT, ["q"] * 5)], [])
        self.run_within_promise(work.with_open_sizes(40).bytes([]), "check", "contract")


if __name__ == "__main__":
    unittest.main()
