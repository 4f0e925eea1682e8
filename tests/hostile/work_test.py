"""Small models whose analysis would cost much more than their reading."""
import json
import pathlib
import struct
import tempfile
import unittest

import hostile_test
import wire

NO_REPEAT = [wire.node("NonZero", ["a"], ["n"]), wire.node("Cast", ["n"], ["b"], to=1)]  # each call has extents of its own


def local(name, source, target, **given):
    return wire.node(name, [source], [target], domain="local", **given)


def refer(name, reference):
    """An attribute that the caller gives."""
    return wire.data(5, wire.data(1, name) + wire.data(21, reference) + wire.number(20, 2))


def doubling(leaf, depth=16, **given):
    """A model that calls the function `leaf` 2^depth times, one call after the other, each call with these attributes."""
    functions = [*leaf, wire.function("g0", ["a"], ["b"], [local("leaf", "a", "b", **given)])]
    functions += [wire.function(f"g{i}", ["a"], ["b"], [local(f"g{i - 1}", "a", "t", **given), local(f"g{i - 1}", "t", "b", **given)]) for i in range(1, depth + 1)]
    return hostile_test.simple([local(f"g{depth}", "x", "y", **given)], functions=functions)


def long_sums(last):
    """Elements of sixteen terms, each multiplied with each: more inferences than are allowed."""
    count = 25
    nodes = [wire.node("Shape", [f"x{i}"], [f"s{i}"]) for i in range(15)]
    nodes += [wire.node("Expand", ["s0", "k"], ["t0"])] + [wire.node("Add", [f"t{i - 1}", f"s{i}"], [f"t{i}"]) for i in range(1, 15)]
    nodes += [wire.node("Add", ["t14", f"i{j}"], [f"c{j}"]) for j in range(count)]
    nodes += [wire.node("Mul", [f"c{a}", f"c{b}"], [f"p{a}_{b}"]) for a in range(count) for b in range(a, count)]
    wrong = [wire.node("Concat", ["x0", "bad"], ["z"], axis=0)]
    numbers = [wire.integers("k", [1024]), *(wire.integers(f"i{j}", [j + 1]) for j in range(count))]
    inputs = [*(wire.value(f"x{i}", dims=[f"n{i}"]) for i in range(15)), wire.value("bad", wire.INT64, [1])]
    return hostile_test.simple([*wrong, *nodes, *last], numbers, inputs=inputs, opsets=(("", 18), ("tensorlint", 1)))


class WorkTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "m.onnx"

    def run_on(self, content, *command):
        """The output, within the promise."""
        self.path.write_bytes(content)
        result = hostile_test.run([*command, self.path])
        self.assertIn(result.code, (0, 1), result.errors[:500])
        self.assertLess(result.cpu, 1 + len(content) / (1 << 20))
        return result.output.decode()

    def check(self, content):
        """What is said of the input."""
        entry = json.loads(self.run_on(content, "check", "--format", "json", "--timings"))["inputs"][0]
        self.assertLess(entry["peak_rss_bytes"], (64 << 20) + 40 * len(content))
        return entry

    def test_unknown_attributes(self):
        unknown = {f"r{i:x}": 2 for i in range(2000)}
        self.check(doubling([wire.function("leaf", ["a"], ["b"], [*NO_REPEAT, wire.node("Relu", ["a"], ["z"], **unknown)])]))

    def test_attributes_of_calls(self):
        """Defaults that a call leaves out, and references to what it gives: as many of one as of the other."""
        names = [f"c{i:x}" for i in range(1500)]
        body = [*NO_REPEAT, wire.node("Z", ["a"], ["z"], domain="elsewhere") + b"".join(refer(f"q{name}", name) for name in names)]
        declared = b"".join(wire.data(6, name) for name in names)
        defaults = b"".join(wire.data(11, wire.attribute(f"d{name}", 1)) for name in names)
        given = wire.node("f", ["a"], ["b"], domain="local", **dict.fromkeys(names, 1))
        for extra in (declared, declared + defaults):
            with self.subTest(size=len(extra)):
                self.check(doubling([wire.function("f", ["a"], ["b"], body) + extra, wire.function("leaf", ["a"], ["b"], [given])]))

    def test_outputs_of_a_function(self):
        """Outputs that no call takes."""
        self.check(doubling([wire.function("leaf", ["a"], ["b"] * 18_000, NO_REPEAT)]))

    def test_devices_in_wide_functions(self):
        """What follows devices enters a function anew for each call that has attributes."""
        names = [f"z{i:x}" for i in range(6000)]
        defaults = b"".join(wire.data(11, wire.attribute(name, 1)) for name in names[:3000])
        relu = wire.node("Relu", ["a"], ["b"])
        for leaf in (wire.function("leaf", ["a", *names], ["a"], []), wire.function("leaf", ["a"], ["b"] * 15_000, [relu]), wire.function("leaf", ["a"], ["b"], [relu]) + defaults):
            model = doubling([leaf], 17, k=1)
            for command in (["check", "--device", "x=cuda:0"], ["check", "--placement", "runtime", "--device", "x=cuda:0"], ["place", "--device", "cuda:0"]):
                with self.subTest(size=len(leaf), command=command):
                    self.run_on(model, *command)

    def test_copies_are_counted_where_another_search_ends_early(self):
        model = long_sums([wire.node("Transfer", ["x0"], ["t"], domain="tensorlint", device="cpu"), wire.node("Relu", ["t"], ["r"]),
                           wire.node("Transfer", ["r"], ["y"], domain="tensorlint", device="cuda:0")])
        entry = json.loads(self.run_on(model, "check", "--placement", "runtime", "--device", "cuda:0", "--format", "json"))["inputs"][0]
        self.assertIn("partial", entry)
        self.assertEqual(entry["cost"]["copies"], 2)

    def test_shardings_of_a_wide_node(self):
        """Each of thousands of specifications names one of thousands of operands."""
        node = b"".join(wire.data(1, "x") for _ in range(10_000)) + wire.data(2, "y") + wire.data(4, "Sum")
        node += wire.data(10, wire.data(1, "c" * 200) + wire.data(2, wire.data(1, "y")) * 6000)
        casts = [wire.node("Add", [f"k{i}", "s"], [f"k{i + 1}"]) for i in range(17)]  # a fix for each round
        graph = wire.graph([*casts, node], [wire.value("x"), wire.value("k0"), wire.value("s", 2)], [wire.value("y"), wire.data(1, "k17")])
        model = wire.number(1, 11) + wire.data(7, graph) + wire.data(8, wire.data(1, "") + wire.number(2, 18)) + wire.data(26, wire.data(1, "c" * 200) + wire.number(2, 4))
        self.assertIn("mixed-operand-dtypes", self.run_on(model, "check"))
        self.run_on(model, "fix", "--diff")

    def test_suppressions_of_unknown_rules(self):
        """A similar name is looked for a few times: names of rules are many, and far from these words."""
        header = '<ir_version: 8, opset_import: ["" : 18]>\ng (float[1] x) => (s) {\n'
        words = ["".join("lossabeipty-"[(i * 7 + k * (i % 11 + 1)) % 12] for k in range(24)) for i in range(1300)]
        text = header + "".join(f"#tensorlint:ignore[{word}] r\n" for word in words) + "s=Relu(x)\n}\n"
        self.path = self.path.with_suffix(".onnxtxt")
        self.assertIn("no rule is called", self.run_on(text.encode(), "check", "--max-findings", "5000"))

    def test_cycles_in_calls(self):
        """Nodes on a cycle are not visited, and stand in each call of their function."""
        names = [f"z{i:x}" for i in range(4000)]
        cycle = [wire.node("Not", [before], [name]) for before, name in zip(names, [*names[1:], names[0]], strict=True)]
        work = self.check(doubling([wire.function("leaf", ["a"], ["b"], [*NO_REPEAT, *cycle])], 17))["work"]
        self.assertLess(work["memory"], work["memory_allowed"] / 4, "the work ends it, before calls without number take the memory")

    def test_copies_in_a_loop_that_carries_thousands_of_values(self):
        states = [f"s{i:x}" for i in range(3000)]
        body = wire.graph([], [wire.data(1, name) for name in ["i.", "c.", *states]], [wire.data(1, name) for name in ["c.", *states[1:], states[0]]], name="b")
        loop = wire.node("Loop", ["trips", "", "x", *["w"] * (len(states) - 1)], [f"r{name}" for name in states], body=("g", body))
        model = hostile_test.simple([loop], [wire.integers("trips", [1_000_000], scalar=True)], inputs=[wire.value("x"), wire.value("w")], outputs=["rs0"])
        self.path.write_bytes(model)
        self.assertLess(hostile_test.run(["check", "--placement", "runtime", "--device", "x=cuda:0", self.path]).cpu, 0.5)

    def test_nodes_that_only_differ_in_what_is_not_compared(self):
        """Attributes of one hash: an inference that is remembered would be compared with all before it."""
        scalers = [wire.node("Scaler", ["x"], [f"s{i}"], domain="ai.onnx.ml") + wire.data(5, wire.data(1, "offset") + wire.data(7, struct.pack("<f", i)) + wire.number(20, 6))
                   for i in range(30_000)]
        kind = wire.data(5, wire.data(1, "type") + wire.data(14, wire.data(1, wire.number(1, 1))) + wire.number(20, 13))
        optionals = [wire.node("Optional", [], [f"o{i}"]) + kind for i in range(30_000)]
        for nodes in (scalers, optionals):
            self.check(hostile_test.simple([*nodes, wire.node("Relu", ["x"], ["y"])], opsets=(("", 18), ("ai.onnx.ml", 3))))

    def test_values_that_a_loop_carries(self):
        """Devices go round, and no state comes twice within as many iterations as are followed."""
        count = 4000
        body = wire.graph([wire.node("Identity", ["c"], ["d"])],
                          [wire.value("i", wire.INT64, []), wire.value("c", wire.BOOL, []), *(wire.data(1, f"s{i}") for i in range(count))],
                          [wire.value("d", wire.BOOL, []), *(wire.data(1, f"s{(i + 1) % count}") for i in range(count))])
        nodes = [wire.node("Transfer", ["x"], ["g"], domain="tensorlint", device="cuda:0"),
                 wire.node("Loop", ["n", "", "g", *["x"] * (count - 1)], [f"r{i}" if i else "y" for i in range(count)], body=("g", body))]
        self.check(hostile_test.simple(nodes, inputs=[wire.value("x"), wire.value("n", wire.INT64, [])], opsets=(("", 18), ("tensorlint", 1))))

    def test_products_of_long_sums(self):
        """Elements of sixteen terms, each multiplied with each: all products are too complex to be kept, so none is new."""
        model = long_sums([wire.node("Relu", ["x0"], ["y"])])
        self.assertEqual(self.check(model)["partial"], "only a part was examined: the model needs more work than its size allows")
        reports = {self.run_on(model, "check", "--format", "json") for _ in range(3)}
        self.assertEqual(len(reports), 1)  # hashes are seeded, and the work is not timed
        found = json.loads(reports.pop())["findings"]
        self.assertEqual([finding["node"] for finding in found if finding["severity"] == "error"], ["#0(Concat)"], "what was found before is reported")
        self.assertIn("more inferences than the budget allows", hostile_test.run(["why", self.path, "p24_24"]).output.decode())
        self.assertIn("m.onnx: only a part was examined", self.run_on(model, "check"))

    def test_split_of_long_chains(self):
        """Each node adds a little to what leaves the chain at its end, and each is another length of path away from it."""
        on_cpu = wire.data(9, wire.data(1, "tensorlint.device") + wire.data(2, "cpu"))
        for reads in (1, 4):
            names = [f"v{i}" for i in range(40_000 // (reads + 1))]
            nodes = [wire.node("Sum", names[max(i - reads, 0):i] or ["x"], [name]) for i, name in enumerate(names)]
            with self.subTest(reads=reads):
                output = self.run_on(hostile_test.simple([*nodes, wire.node("Abs", [names[-1]], ["y"]) + on_cpu]), "place")
                self.assertIn(f"{len(names)} nodes on cuda:0, 1 on cpu", output)

    def test_ordinary_models_are_examined_to_their_end(self):
        model = wire.model(wire.chain(2000))
        entry = self.check(model)
        self.assertNotIn("partial", entry)
        self.assertLess(entry["work"]["steps"], entry["work"]["steps_allowed"] / 50)
        self.assertLess(entry["work"]["memory"], entry["work"]["memory_allowed"] / 50)
        self.assertLess(entry["work"]["heap"], entry["work"]["memory_allowed"] / 20)
        self.assertGreater(entry["work"]["heap"], entry["work"]["memory"], "the program counts what no store does")
        self.assertLess(entry["work"]["heap_steps"], entry["work"]["heap_steps_allowed"] / 20)
        self.assertGreater(entry["work"]["heap_steps"], 2000)

    def test_long_names_of_extents(self):
        """Each name of a kilobyte stands in the shape of each value."""
        dims = [f"{i}{'n' * 1000}" for i in range(16)]
        model = wire.model(wire.graph([wire.node("Relu", ["x"], [f"a{i}"]) for i in range(2500)], [wire.value("x", dims=dims)], [wire.data(1, "a0")]))
        self.assertLess(len(self.run_on(model, "show", "--format", "json")), 16 << 20)


if __name__ == "__main__":
    unittest.main()
