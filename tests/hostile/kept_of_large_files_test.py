"""Files of some MB in which each byte makes a little that is kept: memory stays within what SECURITY.md promises of files of their size."""

import unittest

import hostile_test
import wire
from promise import PromiseTest
from visits_and_probes_test import some_names

MIB = 1 << 20
INT8 = 3


class KeptOfLargeFilesTest(PromiseTest):
    def assert_memory(self, *commands: str, codes: tuple[int, ...] = (0, 1), more: int = 0) -> None:
        size = self.path.stat().st_size
        for command in commands:
            with self.subTest(command):
                result = hostile_test.run([*command.split(), self.path])
                self.assertIn(result.code, codes, result.errors[:500])
                self.assertLess(result.memory, 64 * MIB + 40 * size + more)

    def test_device_configurations_of_a_node(self) -> None:
        values = [wire.value("x", dims=[2])], [wire.value("y", dims=[2])]
        for configurations in (wire.data(10, wire.data(1, "c") + b"\x12\0" * MIB), b"\x52\0" * MIB):
            node = wire.node("Relu", ["x"], ["y"]) + configurations
            self.path.write_bytes(wire.model(wire.graph([node], *values), ir_version=11))
            self.assert_memory("check", "check --placement explicit", "show", "fix --diff", codes=(2,))

    def test_long_names_of_conditions(self) -> None:
        inputs, nodes = [wire.value("x", dims=[2])], []
        for i in range(8):
            condition = f"c{i}" + "n" * 100_000
            inputs.append(wire.value(condition, wire.BOOL, []))
            bodies = [("g", wire.graph([wire.node(op, ["x"], [f"{op}{i}"])], [], [wire.value(f"{op}{i}", dims=[2])])) for op in ("Abs", "Neg")]
            nodes.append(wire.node("If", [condition], [f"y{i}"], then_branch=bodies[0], else_branch=bodies[1]))
        self.path.write_bytes(wire.model(wire.graph(nodes, inputs, [wire.value(f"y{i}", dims=[2]) for i in range(8)])))
        self.assert_memory("check --placement runtime", "place", "check --placement runtime --format json", more=64 * MIB)

    def test_comments_of_a_text_at_a_long_path(self) -> None:
        folder = self.folder
        while len(str(folder)) < 3300:
            folder /= "d" * 200
        folder.mkdir(parents=True)
        self.path = folder / "m.onnxtxt"
        self.path.write_text('<ir_version: 10, opset_import: ["": 21]>\n' + "#tensorlint:\n" * 40_000 + "g (float[2] x) => (float[2] y) { y = Abs (x) }\n")
        self.assert_memory("check", "fix --diff")
        # All findings are kept where a baseline may know them.
        (folder / "tensorlint.toml").write_text('baseline = "b.json"\n')
        (folder / "b.json").write_text('{"schema":1,"findings":[]}')
        self.path.write_text('<ir_version: 10, opset_import: ["": 21]>\n' + "#tensorlint:ignore[cycle]a\n" * 38_000 + "g (float[2] x) => (float[2] y) { y = Abs (x) }\n")
        self.assert_memory("check")

    def test_numbers_behind_a_graph_in_a_diff(self) -> None:
        """What follows a body waits for it as one text."""
        body, numbers = wire.attribute("a", ("g", b"")), wire.data(1, "b") + wire.data(8, b"\1" * MIB) + wire.number(20, 7)
        node = wire.node("A", ["x"], ["y"], domain="local") + wire.data(5, body) + wire.data(5, numbers)
        self.path.write_bytes(wire.model(wire.graph([node, wire.node("Relu", ["x"], ["dead"])], [wire.value("x", dims=[2])], [wire.data(1, "y")])))
        self.assert_memory("fix --diff --unsafe", more=16 * MIB)

    def test_modules_of_many_nodes_in_a_text(self) -> None:
        self.path = self.folder / "m.onnxtxt"
        self.path.write_text('<ir_version:8,opset_import:["":18,"c":1]>g(float x)=>(float y){' + "=A()" * (MIB // 4 - 50) + "y=A(x)}")
        self.assert_memory("show --module x", "show --module x --format json", codes=(2,))
        self.assert_memory("show --node *", "show --node * --format json")

    def test_what_is_found_out_when_all_is_read(self) -> None:
        """Outputs without a name, and names that nothing defines: in many bodies and functions, since faults of one graph are few."""
        x, y = [wire.value("x", dims=[])], [wire.data(1, "y")]
        relu = wire.node("Relu", ["x"], ["y"])
        body = wire.data(12, b"") * 200
        branches = [wire.node("If", ["c"], [f"{i}"], then_branch=("g", body), else_branch=("g", body)) for i in range(3_500)]
        letters = [*map(chr, range(ord("a"), ord("z") + 1)), *map(chr, range(ord("A"), ord("Z") + 1))]
        undefined = [wire.function(f"F{i}", [], letters, []) for i in range(15_000)]
        for content in (
            wire.model(wire.graph([relu, *branches], [*x, wire.value("c", wire.BOOL, [])], y)),
            wire.model(wire.graph([relu], x, y), undefined),
        ):
            self.path.write_bytes(content)
            self.assert_memory("check", "show", codes=(2,))
        self.path = self.folder / "m.onnxtxt"
        head = '<ir_version:10,opset_import:["":21]>g(float x)=>(float y){'
        operands = ",".join(letters)
        for text in (
            head + "a," * MIB + "y=Sum(x)}",
            head + "y=Abs(x)}" + "".join(f"f{i}()=>(){{=S({operands})}}" for i in range(20_000)),
        ):
            self.path.write_text(text)
            self.assert_memory("check", "show", codes=(2,))

    def test_comments_beside_attributes_in_a_text(self) -> None:
        self.path = self.folder / "m.onnxtxt"
        attributes = ",".join(f"{name}{letter}=1" for letter in "abc" for name in some_names(150_000))
        self.path.write_text('<ir_version:10,opset_import:["":21,"c":1]>g(float x)=>(float y){\n' + "#\n" * (2 * MIB + 2) + f"y=c.A<{attributes}>(x)}}")
        self.assert_memory("check", "show", codes=(0, 2))

    def test_operands_of_one_node_as_json(self) -> None:
        node = wire.data(1, "x") * (3 * MIB) + wire.data(2, "y") + wire.data(4, "Sum")
        self.path.write_bytes(wire.model(wire.graph([node], [wire.value("x", dims=[2])], [wire.value("y", dims=[2])])))
        self.assert_memory("show --format json")

    def test_operands_that_a_placed_model_reads_elsewhere(self) -> None:
        for operands in (100, 2000, 1 << 20):
            node = wire.data(1, "x") * operands + wire.data(4, "Sum")
            nodes = [node + wire.data(2, "y" if i == 0 else "") for i in range((1 << 20) // operands)]
            self.path.write_bytes(wire.model(wire.graph(nodes, [wire.value("x", dims=["n", "m"])], [wire.data(1, "y")])))
            # Also what the second model may take.
            self.assert_memory("place", codes=(0, 2), more=(64 + 16) * MIB + 36 * self.path.stat().st_size)

    def test_tags_of_unused_initializers(self) -> None:
        weights = b"".join(wire.data(5, wire.number(2, wire.BOOL) + wire.data(5, b"\0") + wire.data(8, f"{i:x}")) for i in range(300_000))
        graph = wire.graph([wire.node("Relu", ["x"], ["y"])], [wire.value("x", dims=[2])], [wire.value("y", dims=[2])])
        self.path.write_bytes(wire.model(graph + weights))
        self.assert_memory("place --provider cuda", codes=(0, 2), more=(64 + 16) * MIB + 36 * self.path.stat().st_size)

    def test_reports_of_many_recorded_results(self) -> None:
        names = [f"{letter}{i}" for letter in "abcdefgh" for i in range(10_000)]
        nodes = [wire.node("Split", ["x"], names[first : first + 1000], num_outputs=1000) for first in range(0, len(names), 1000)]
        nodes.append(wire.node("Identity", ["x"], ["y"]))
        vector = [wire.value("x", INT8, [1000])], [wire.value("y", INT8, [1000])]
        self.path.write_bytes(wire.model(wire.graph(nodes, *vector), opsets=(("", 21),), ir_version=10))
        recorded = self.folder / "recorded"
        recorded.mkdir()
        values = [wire.tensor(name, INT8, [1], b"\2") for name in names] + [wire.tensor("x", INT8, [1000], b"\1" * 1000)]
        file = recorded / "v.initializers"
        file.write_bytes(wire.number(1, 10) + wire.data(7, b"".join(wire.data(5, value) for value in values)))
        size = self.path.stat().st_size + file.stat().st_size
        for options in ([], ["--chained"], ["--format", "html"], ["--chained", "--format", "json"], ["--chained", "--format", "html"]):
            with self.subTest(options=options):
                report = hostile_test.run(["compare", self.path, "--against", recorded, "-o", self.folder / "report", *options])
                self.assertEqual(report.code, 1, report.errors[:500])
                self.assertLess(report.memory, 64 * MIB + 40 * size)


if __name__ == "__main__":
    unittest.main()
