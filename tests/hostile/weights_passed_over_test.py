"""Files of which nearly all bytes are weights: these are passed over, whatever form they have, and their pages do not stay."""

import unittest
from collections.abc import Iterator

import hostile_test
import wire
from promise import PromiseTest

MIB = 1 << 20
INT32 = 6


#: Kinds of which a model has an error, for the sake of what stands between its weights.
HAVE_ERRORS = {"bodies", "defaults", "functions"}


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
        floats = wire.number(1, size // 4) + wire.number(2, wire.FLOAT) + wire.data(8, "w")
        self.write_with_weights(graph, (5,), floats, 4, size)
        result = hostile_test.run(["place", self.path, "-o", self.folder / "placed.onnx"])
        self.assertEqual(result.code, 0, result.errors[:500])
        self.assertLess(result.memory, 112 * MIB)


    # ---- many of them: a byte that is read maps the 64 KiB around it

    def write_parts(self, parts: list[bytes | int]) -> int:
        """Numbers are so many zeros; bytes that are none of these. Written, so that all of the file is in the system's cache."""
        with open(self.path, "wb") as file:
            file.writelines(bytes(part) for part in parts)
        return sum(len(part) for part in parts if not isinstance(part, int))

    @staticmethod
    def inside(field: int, parts: list[bytes | int]) -> list[bytes | int]:
        size = sum(part if isinstance(part, int) else len(part) for part in parts)
        return [wire.varint(field << 3 | 2) + wire.varint(size), *parts]

    def tensor(self, name: str, dtype: int, count: int, field: int, size: int) -> list[bytes | int]:
        head = wire.number(1, count) + wire.number(2, dtype) + (wire.data(8, name) if name else b"")
        return [head, *self.inside(field, [size])]

    def models(self) -> Iterator[tuple[str, list[bytes | int]]]:
        """Graphs, and functions behind them."""
        count, size = 1200, 128 << 10
        sizes = size // 4
        x, y = wire.data(11, wire.value("x", dims=[4])), wire.data(12, wire.data(1, "y"))
        relu = wire.data(1, wire.node("Relu", ["x"], ["y"]))
        dead = wire.data(1, wire.node("Relu", ["x"], ["dead"]))

        def constant(i: int) -> list[bytes | int]:
            value = [wire.data(1, "value"), *self.inside(5, self.tensor("", wire.FLOAT, sizes, 9, size)), wire.number(20, 4)]
            return [wire.data(2, f"c{i}") + wire.data(4, "Constant"), *self.inside(5, value)]

        def branch(i: int) -> list[bytes | int]:
            body = [wire.data(1, wire.node("Identity", ["w"], ["r"])) + wire.data(2, "t"), *self.inside(5, self.tensor("w", wire.FLOAT, sizes, 9, size)), wire.data(12, wire.data(1, "r"))]
            other = wire.data(5, wire.data(1, "else_branch") + wire.data(6, wire.graph([wire.node("Identity", ["x"], ["r"])], [], [wire.data(1, "r")])) + wire.number(20, 5))
            return [wire.data(1, "k") + wire.data(2, f"b{i}") + wire.data(4, "If"), *self.inside(5, [wire.data(1, "then_branch"), *self.inside(6, body), wire.number(20, 5)]), other]

        for name, kind, of_all in (
            ("constants", constant, 1),
            ("branches", branch, 1),
            ("initializers", lambda i: self.tensor(f"w{i}", wire.FLOAT, sizes, 9, size), 5),
            ("packed integers", lambda i: self.tensor(f"w{i}", wire.INT64, size, 7, size), 5),
            ("packed floats", lambda i: self.tensor(f"w{i}", wire.FLOAT, sizes, 4, size), 5),
            ("packed floats before names", lambda i: [*self.tensor("", wire.FLOAT, sizes, 4, size), wire.data(8, f"w{i}")], 5),
            ("devices of initializers", lambda i: [*self.tensor(f"w{i}", wire.FLOAT, sizes, 9, size), wire.data(16, wire.data(1, "tensorlint.device") + wire.data(2, "cpu"))], 5),
        ):
            parts = [part for i in range(count) for part in self.inside(of_all, kind(i))]
            k = wire.data(11, wire.value("k", wire.BOOL, [])) if kind is branch else b""
            yield name, [*self.inside(7, [dead + relu, *parts, wire.data(2, "g") + x + k + y])]
        # Something small between them.
        for name, between in (
            ("strings", lambda i: wire.data(1, wire.node("Einsum", ["x"], [f"e{i}"], equation="i->i"))),
            ("domains", lambda i: wire.data(1, wire.node("Q", ["x"], [f"q{i}"], domain="local"))),
            ("declared values", lambda i: wire.data(13, wire.value(f"c{i}", dims=[f"N{i}"]))),
            ("external data", lambda i: wire.data(5, wire.tensor(f"e{i}", wire.FLOAT, [2], external={"location": "nowhere.bin"}))),
            ("bodies", lambda i: wire.data(1, wire.node("If", ["k"], [f"b{i}"], then_branch=("g", wire.graph([wire.node("Identity", ["x"], ["r"])], [], [wire.data(1, "r")]))))),
        ):
            parts = [part for i in range(count) for part in (*self.inside(1, constant(i)), between(i))]
            yield name, self.inside(7, [dead + relu, *parts, wire.data(2, "g") + x + wire.data(11, wire.value("k", wire.BOOL, [])) + y])
        defaults = [part for i in range(count) for part in (*self.inside(25, [
            wire.data(1, f"F{i}") + wire.data(5, "b") + wire.data(10, "local") + wire.data(7, wire.node("Constant", [], ["b"], value_int=1)),
            *self.inside(11, [wire.data(1, "t"), *self.inside(5, self.tensor("", wire.FLOAT, sizes, 9, size)), wire.number(20, 4)]),
        ]), wire.data(14, wire.data(1, f"tensorlint.device:v{i}") + wire.data(2, "cpu")))]
        yield "defaults", [wire.data(7, dead + relu + wire.data(2, "g") + x + y), *defaults]
        functions = [part for i in range(count) for part in self.inside(25, [wire.data(1, f"F{i}") + wire.data(10, "local"), *self.inside(7, constant(i))])]
        yield "functions", [wire.data(7, dead + relu + wire.data(2, "g") + x + y), *functions]
        nodes = [part for i in range(count) for part in self.inside(7, constant(i))]
        function = self.inside(25, [wire.data(1, "F") + wire.data(4, "a") + wire.data(5, "b"), *nodes, wire.data(7, wire.node("Neg", ["a"], ["b"])) + wire.data(9, wire.data(1, "") + wire.number(2, 18)) + wire.data(10, "local")])
        yield "a function", [wire.data(7, dead + wire.data(1, wire.node("F", ["x"], ["y"], domain="local")) + wire.data(2, "g") + x + y), *function]
        tables: list[bytes | int] = []
        for i in range(count):
            weights, table = self.inside(5, self.tensor(f"w{i}", wire.FLOAT, sizes - 4200, 9, size - 16800)), self.inside(5, self.tensor(f"t{i}", INT32, 2060, 9, 8240))
            tables += [*weights, *table]
        gathers = b"".join(wire.data(1, wire.node("Gather", ["x", f"t{i}"], [f"g{i}"])) for i in range(count))
        yield "tables", self.inside(7, [dead + relu + gathers, *tables, wire.data(2, "g") + x + y])

    def assert_passed_over(self, others: int, placed: tuple[int, ...] = (0,)) -> None:
        """`placed`: what `place` says, which refuses models with errors."""
        fixed = self.folder / "fixed.onnx"
        for more, command in (
            (0, ["check"]), (0, ["show"]), (0, ["why", self.path, "y"]), (16 * MIB + 36 * others, ["fix", "--diff", "--unsafe"]),
            (16 * MIB + 36 * others, ["fix", "--unsafe", "-o", fixed]), (80 * MIB + 36 * others, ["place"]),
        ):
            with self.subTest(command=command[:2]):
                result = hostile_test.run(command if self.path in command else [*command, self.path])
                self.assertIn(result.code, placed if command[0] == "place" else (0, 1), (command, result.errors[:500]))
                self.assertLess(result.memory, 64 * MIB + 40 * others + more)
        fixed.unlink(missing_ok=True)

    def test_many_weights_of_each_kind(self) -> None:
        head = wire.number(1, 8) + wire.data(8, wire.data(1, "") + wire.number(2, 18)) + wire.data(8, wire.data(1, "local") + wire.number(2, 1))
        for name, parts in self.models():
            others = self.write_parts([head, *parts])
            self.assertGreater(self.path.stat().st_size, 140 * MIB)
            with self.subTest(name):
                self.assert_passed_over(others, (2,) if name in HAVE_ERRORS else (0,))

    def test_training_information(self) -> None:
        head = wire.number(1, 8) + wire.data(8, wire.data(1, "") + wire.number(2, 18))
        main = wire.data(7, wire.graph([wire.node("Relu", ["x"], ["y"]), wire.node("Relu", ["x"], ["dead"])], [wire.value("x", dims=[2])], [wire.data(1, "y")]))
        weights = [part for i in range(1200) for part in self.inside(5, self.tensor(f"w{i}", wire.FLOAT, 32 << 10, 9, 128 << 10))]
        others = self.write_parts([head + main, *self.inside(20, self.inside(1, weights))])
        self.assert_passed_over(others)

    def test_tables_and_programs_are_let_go_of(self) -> None:
        """Each has its own limit, and these are not there at the same time."""
        tables = [part for i in range(30) for part in self.inside(5, self.tensor(f"t{i}", wire.INT64, 1 << 16, 9, 8 << 16))]
        nodes = [wire.node("Gather", ["x", f"t{i}"], [f"g{i}"]) for i in range(30)]
        trace = [wire.data(9, wire.data(1, "pkg.torch.onnx.stack_trace") + wire.data(2, f'File "p{i}.py", line 9999, in f')) for i in range(4)]
        nodes += [wire.node("MatMul", ["x", "z"], [f"m{i}"]) + trace[i] for i in range(4)]
        graph = b"".join(wire.data(1, node) for node in nodes) + wire.data(2, "g") + wire.data(11, wire.value("x", dims=[100])) + wire.data(11, wire.value("z", dims=[5]))
        outputs = b"".join(wire.data(12, wire.data(1, f"g{i}")) for i in range(30))
        self.write_parts([wire.number(1, 8) + wire.data(8, wire.data(1, "") + wire.number(2, 18)), *self.inside(7, [graph + outputs, *tables])])
        for i in range(4):
            (self.folder / f"p{i}.py").write_text(("x = 1  # " + "a" * 90 + "\n") * 41_000)
        result = hostile_test.run(["check", self.path])
        self.assertEqual(result.code, 1)
        self.assertIn(b"x = 1", result.output)
        self.assertLess(result.memory, 32 * MIB)

    def test_packed_integers_of_which_the_first_are_shown(self) -> None:
        size = 8 * MIB
        graph = wire.graph([wire.node("Relu", ["x"], ["y"]), wire.node("Relu", ["x"], ["dead"])], [wire.value("x", dims=[2])], [wire.value("y", dims=[2])])
        self.write_with_weights(graph, (5,), wire.number(1, size) + wire.number(2, wire.INT64) + wire.data(8, "w"), 7, size)
        result = hostile_test.run(["fix", "--diff", "--unsafe", self.path])
        self.assertEqual(result.code, 0, result.errors[:500])
        self.assertIn(b"-  dead = Relu (x)", result.output)
        self.assertLess(result.memory, 64 * MIB)

    def test_tables_that_are_not_read_have_no_known_elements(self) -> None:
        """A dtype's ends are no elements: of external data, and of more than are scanned."""
        x, y = wire.value("x", dims=[4, 4]), wire.data(1, "y")
        (self.folder / "w.bin").write_bytes(bytes(4 * 3000))
        tables = {
            "external": [wire.tensor("t", INT32, [3000], external={"location": "w.bin"})],
            "large": [wire.tensor("t", INT32, [600_000], bytes(4 * 600_000))],
            "scanned": [wire.tensor("t", INT32, [100_000], bytes(4 * 100_000))],
        }
        for name, initializers in tables.items():
            self.path.write_bytes(wire.model(wire.graph([wire.node("Gather", ["x", "t"], ["y"])], [x], [y], initializers)))
            with self.subTest(name):
                result = hostile_test.run(["check", self.path])
                self.assertEqual((result.code, result.output), (0, b"1 checked file, 1 node: no findings\n"))
        # One that is read, of a row of the table that an input chooses.
        outside = wire.tensor("t", INT32, [100_000], bytes(4 * 99_999) + b"\x04\0\0\0")
        self.path.write_bytes(wire.model(wire.graph([wire.node("Gather", ["x", "t"], ["y"])], [x], [y], [outside])))
        result = hostile_test.run(["check", self.path])
        self.assertEqual(result.code, 1)
        self.assertIn(b"index 4", result.output)


if __name__ == "__main__":
    unittest.main()
