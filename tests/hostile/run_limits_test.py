"""Runs whose cost no operand shows: what they collect, print, write and repeat stays within their limits."""

import pathlib
import tempfile
import time
import unittest

import wire
from hostile_test import CLEAN, UNREADABLE, run, simple

X = wire.value("x", dims=[64])
BODY_INPUTS = wire.value("i", wire.INT64, []), wire.value("c", wire.BOOL, [])
LITTLE = 64 << 20  # what the program itself takes, and more


def loop(body_nodes, outputs, operands, results, body_inputs=()):
    body = wire.graph([wire.node("Identity", ["c"], ["d"]), *body_nodes], [*BODY_INPUTS, *body_inputs], [wire.value("d", wire.BOOL, []), *outputs], name="b")
    return wire.node("Loop", ["n", "", *operands], results, body=("g", body))


class RunLimitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "m.onnx"

    def run_model(self, content, *options):
        self.model.write_bytes(content)
        return run(["run", self.model, "--seed", "1", *options])

    def test_what_a_loop_collects(self):
        """Scan outputs that are one tensor, any number of times."""
        collects = loop([wire.node("Identity", ["x"], ["s"])], [wire.value("s", dims=[64])], [], ["y"])
        result = self.run_model(simple([collects], [wire.integers("n", [10**9], scalar=True)], inputs=[X]), "--memory-limit", "1000000")
        self.assertEqual(result.code, UNREADABLE)
        self.assertIn("the limit is 1000000 (--memory-limit)", result.errors.decode())
        self.assertLess(result.memory, LITTLE)

    def test_inputs_that_are_planned_one_by_one(self):
        """Each integer input is planned with the others as they are: in all as much as one model of this size may cost."""
        names = [f"i{k}" for k in range(4000)]
        model = simple([wire.node("Abs", names[:1], ["y"])], inputs=[wire.value(name, wire.INT64, []) for name in names])
        result = self.run_model(model)
        self.assertEqual(result.code, CLEAN, result.errors[:500])
        self.assertLess(result.cpu, max(1, len(model) / (1 << 16)))

    def test_ranges_of_a_regular_expression(self):
        characters = "".join(chr(0x4e00 + 2 * i) for i in range(15_000))
        node = wire.node("RegexFullMatch", ["s"], ["y"], pattern=f"([{characters}]{{1000}}){{190}}")
        strings = wire.number(1, 1) + wire.number(2, 8) + wire.data(8, "s") + wire.data(6, "abc")
        result = self.run_model(simple([node], [strings], inputs=[], opsets=(("", 20),)), "--memory-limit", "1000000")
        self.assertIn(result.code, (CLEAN, UNREADABLE))
        self.assertLess(result.memory, LITTLE)
        self.assertLess(result.cpu, 1)

    def test_values_of_a_loop_that_are_shown(self):
        """They are printed as they come: memory does not grow, and what came before the limit is there."""
        shown = loop([wire.node("Identity", ["x"], ["v"]), wire.node("Abs", ["v"], ["shown"])], [wire.value("shown", dims=[4])], ["x"], ["z"],
                     [wire.value("s", dims=[4])])
        model = simple([shown, wire.node("Abs", ["x"], ["y"])], [wire.integers("n", [10**8], scalar=True)], inputs=[wire.value("x", dims=[4])])
        result = self.run_model(model, "--dump", "shown", "--time-limit", "0.5", "--memory-limit", "1000000")
        self.assertEqual(result.code, UNREADABLE)
        self.assertIn("the time limit is over", result.errors.decode())
        self.assertGreater(result.output.count(b"`shown`: float32[4] = ["), 1000)
        self.assertLess(result.memory, LITTLE)

    def test_sequences_that_are_shown(self):
        """Of hundreds of thousands of tensors the first ones."""
        model = simple([wire.node("Expand", ["x", "s"], ["e"]), wire.node("SplitToSequence", ["e"], ["y"])], [wire.integers("s", [300_000])], inputs=[wire.value("x", dims=[1])])
        result = self.run_model(model)
        self.assertEqual(result.code, CLEAN, result.errors)
        self.assertRegex(result.output.decode(), r"^`y`: a sequence of 300000 = \((\[[-.e0-9]+\], ){64}\.\.\.\)\n$")

    def test_outputs_are_written_without_copies_and_to_their_end(self):
        elements = 40_000_000
        model = simple([wire.node("Expand", ["x", "s"], ["y"])], [wire.integers("s", [elements])], inputs=[wire.value("x", dims=[1])])
        folder = self.folder / "o"
        start = time.monotonic()
        result = self.run_model(model, "--outputs", str(folder))
        whole = time.monotonic() - start
        self.assertEqual(result.code, CLEAN, result.errors)
        self.assertGreater((folder / "output_0.pb").stat().st_size, 4 * elements)
        self.assertLess(result.memory, 4 * elements + LITTLE)
        for share in (0.5, 0.65, 0.8, 0.9):
            (folder / "output_0.pb").unlink(missing_ok=True)
            result = self.run_model(model, "--outputs", str(folder), "--time-limit", str(share * whole))
            self.assertLessEqual({path.name for path in folder.iterdir()}, {"output_0.pb"})
            self.assertIn(result.code, (CLEAN, UNREADABLE))

    def test_runs_that_repeat_what_has_no_value(self):
        """Facts of one run serve the next: each NaN is the same one."""
        chain = [wire.node("Log", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(3000)]
        result = self.run_model(simple(chain, inputs=[X], outputs=["v3000"]), "--repeat", "16")
        self.assertEqual(result.code, CLEAN, result.errors)
        self.assertLess(result.cpu, 1.5)


if __name__ == "__main__":
    unittest.main()
