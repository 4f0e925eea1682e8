"""Thousands of equal casts, comments and unused nodes: work grows with their number, not with its square."""

import pathlib
import tempfile
import unittest

from hostile_test import CLEAN, FINDINGS, run

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


def casts(count):
    """Casts that change a constant, next to mistakes."""
    changed = "".join(f"a{i} = Cast <to=7> (h)\n" for i in range(count))
    mistakes = "".join(f"w{i} = Add (x, c)\n" for i in range(count))
    return f"g (float[2] x, float[3] c) => (y) <float[1] h = {{0.5}}> {{\n{changed}{mistakes}y = Relu (x)\n}}\n"


def comments(count):
    return "g (float[2] x) => (float[2] y) {\n" + "# tensorlint: ignore[TL-V501] x\n" * count + "y = Relu (x)\n}\n"


def unused(count):
    """Nodes that nothing uses in a graph of as many outputs."""
    nodes = "".join(f"u{i} = Relu (x)\no{i} = Neg (x)\n" for i in range(count))
    return f"g (float[2] x) => ({', '.join(f'o{i}' for i in range(count))}) {{\n{nodes}}}\n"


class ManyOfOneKindTest(unittest.TestCase):
    def check(self, text, code):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.onnxtxt"
            path.write_text(HEADER + text)
            result = run(["check", "-q", path])
        self.assertEqual(result.code, code, result.errors[:500])
        self.assertLess(result.cpu, 1.5)

    def test_casts_next_to_mistakes(self):
        self.check(casts(40_000), FINDINGS)

    def test_comments(self):
        self.check(comments(200_000), CLEAN)

    def test_unused_nodes(self):
        self.check(unused(80_000), CLEAN)


if __name__ == "__main__":
    unittest.main()
