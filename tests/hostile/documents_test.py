"""Documents that would be a thousand times their model, and what they say of what was left out."""

import itertools
import json
import pathlib
import tempfile
import unittest

import wire
from hostile_test import run
from wide_nodes_test import summed_masks

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

    def test_a_fix_says_that_not_all_was_examined(self):
        self.path.write_bytes(summed_masks("Add", 9))
        for command in (["check"], ["fix", "--diff"]):
            self.assertIn(b"only a part was examined", run([*command, self.path]).output)


if __name__ == "__main__":
    unittest.main()
