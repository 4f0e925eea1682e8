"""Documents that would be a thousand times their model, and what they say of what was left out."""

import itertools
import json
import pathlib
import tempfile
import unittest

import wire
from hostile_test import run
from wide_nodes_test import fresh_names, summed_masks

ELEMENTS, NODES = 1024, 3500


class DocumentsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "m.onnx"

    def test_contents_that_are_handed_on(self):
        names = ["c", *(f"n{i:x}" for i in range(NODES))]
        nodes = [wire.node("Identity", [before], [after]) for before, after in itertools.pairwise(names)]
        elements = wire.integers("c", [i - (1 << 62) for i in range(ELEMENTS)])
        content = wire.model(wire.graph(nodes, [], [wire.data(1, names[-1])], [elements]))
        self.path.write_bytes(content)
        result = run(["show", "--format", "json", self.path])
        self.assertEqual(result.code, 0)
        self.assertLess(result.cpu, len(content) / (1 << 16))
        self.assertLess(len(result.output), 16 << 20)
        document = json.loads(result.output)
        self.assertIn("left_out", document)
        self.assertNotIn("partial", document)
        self.assertEqual(len(document["values"]["c"]["contents"]), ELEMENTS)
        self.assertEqual(document["values"][names[-1]]["shape"], [ELEMENTS])
        self.assertNotIn("contents", document["values"][names[-1]])

    def test_thousands_of_results_held_against_thousands_of_operands(self):
        rank, results = 60, list(itertools.islice(fresh_names(), 4500))
        then = wire.graph([wire.node("Identity", ["a"], ["t"])], [], [wire.data(1, "t")], name="t")
        turned = wire.node("Transpose", ["a"], ["e"], perm=[*range(1, rank), 0])
        other = wire.graph([turned], [], [wire.data(1, "e")], name="e")
        choice = wire.node("If", ["c"], ["b"], then_branch=("g", then), else_branch=("g", other))
        function = wire.function("f", ["a", "c"], ["b"] * len(results), [choice])
        call = wire.node("f", ["x", "c", *["x"] * 8000], results, domain="local")
        inputs = [wire.value("x", dims=[*range(2, rank + 2)]), wire.value("c", wire.BOOL, dims=[])]
        content = wire.model(wire.graph([call], inputs, [wire.data(1, results[0])]), [function])
        self.path.write_bytes(content)
        result = run(["show", self.path])
        self.assertEqual(result.code, 0)
        self.assertLess(result.cpu, 1)
        self.assertIn(b"only a part was examined", result.output)

    def test_a_fix_says_that_not_all_was_examined(self):
        self.path.write_bytes(summed_masks("Add", 9))
        for command in (["check"], ["fix", "--diff"]):
            self.assertIn(b"only a part was examined", run([*command, self.path]).output)


if __name__ == "__main__":
    unittest.main()
