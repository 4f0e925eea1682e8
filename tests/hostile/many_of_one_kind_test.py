"""Thousands of equal mistakes, casts, comments, unused nodes and losses: work grows with their number, not with its square."""

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


def long_chain(count):
    """Mistakes whose operand began far above."""
    chain = "".join(f"v{i + 1} = Relu (v{i})\n" for i in range(count))
    mistakes = "".join(f"w{i} = Add (v{count}, c)\n" for i in range(count))
    return f"g (float[2] v0, float[3] c) => (float[2] v{count}) {{\n{chain}{mistakes}}}\n"


def squared_losses(count, prediction):
    return "".join(f"d{i} = Sub ({prediction}, t)\nq{i} = Mul (d{i}, d{i})\nl{i} = ReduceMean <keepdims=0> (q{i})\n" for i in range(count))


def reshapes_before_losses(count):
    """A chain of reshapes of many axes, which each loss is behind."""
    twos = ", ".join(["2"] * 50)
    chain = "".join(f"v{i + 1} = Reshape (v{i}, {'last' if i % 2 == 0 else 'first'})\n" for i in range(10 * count))
    return (f"g (float[3, {twos}] v0, float[1, 3, {2 ** 50}] t) => ({', '.join(f'float l{i}' for i in range(count))})\n"
            f"<int64[51] first = {{3, {twos}}}, int64[51] last = {{{twos}, 3}}, int64[3] flat = {{3, 1, {2 ** 50}}}> {{\n"
            f"{chain}p = Reshape (v{10 * count}, flat)\n{squared_losses(count, 'p')}}}\n")


def detached_losses(count):
    """Losses of a sum of what lets no gradient through, all of it far behind the input, and one part behind a weight."""
    chain = "".join(f"c{i + 1} = Relu (c{i})\n" for i in range(2 * count))
    rounds = "".join(f"r{i} = Round (c{2 * count})\n" for i in range(1, 2 * count))
    return (f"g (float[2, 2] c0, float[2, 2] t) => ({', '.join(f'float l{i}' for i in range(count))})\n"
            f"<float[2, 2] w = {{1, 2, 3, 4}}> {{\n{chain}m = MatMul (c{2 * count}, w)\nr0 = Round (m)\n{rounds}"
            f"p = Sum ({', '.join(f'r{i}' for i in range(2 * count))})\n{squared_losses(count, 'p')}}}\n")


def kept_axes_before_outputs(count):
    """Losses with an axis left, in a graph of many outputs none of which is a number."""
    losses = "".join(f"d{i} = Sub (p, t)\nq{i} = Mul (d{i}, d{i})\nl{i} = ReduceMean <keepdims=0> (q{i}, axes)\n" for i in range(count))
    outputs = ", ".join([f"l{i}" for i in range(count)] + ["p"] * 30 * count)
    return f"g (float[N, 5] p, float[N, 5] t) => ({outputs}) <int64[1] axes = {{0}}> {{\n{losses}}}\n"


class ManyOfOneKindTest(unittest.TestCase):
    def check(self, text, code, seconds=1.5):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.onnxtxt"
            path.write_text(HEADER + text)
            result = run(["check", "-q", path])
        self.assertEqual(result.code, code, result.errors[:500])
        self.assertLess(result.cpu, seconds)
        self.assertLess(result.memory, (64 << 20) + 40 * len(text))

    def test_mistakes_far_from_their_origin(self):
        self.check(long_chain(20_000), FINDINGS)

    def test_losses_behind_reshapes(self):
        self.check(reshapes_before_losses(100), FINDINGS)

    def test_losses_with_an_axis_left_among_outputs(self):
        self.check(kept_axes_before_outputs(3500), FINDINGS)

    def test_losses_behind_what_lets_no_gradient_through(self):
        self.check(detached_losses(300), FINDINGS)

    def test_casts_next_to_mistakes(self):
        self.check(casts(40_000), FINDINGS)

    def test_comments(self):
        self.check(comments(200_000), CLEAN)

    def test_comments_that_name_nearly_all_rules(self):
        for comment in ("#tensorlint:ignore[TL-V,TL-L,TL-G,TL-S,TL-D]r\n", "#tensorlint:ignore[TL-V]r\n", "#tensorlint:x\n"):
            for size in (300_000, 4_000_000):
                with self.subTest(comment, size=size):
                    self.check("g (float[2] x) => (float[2] y) {\n" + comment * (size // len(comment)) + "y = Relu (x)\n}\n", CLEAN, size / (1 << 16))

    def test_unused_nodes(self):
        self.check(unused(80_000), CLEAN)


if __name__ == "__main__":
    unittest.main()
