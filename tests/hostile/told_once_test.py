"""What is to be read, walked through or said once: diagrams that thousands of carried values share, constants of narrow elements in visits of a
body, tables that look like weights, files and names in each round of fixes, failures and shapes at each reader."""

import itertools
import string
import unittest

from promise import PromiseTest
from visits_and_probes_test import HEADER, some_names

PLACED = '<ir_version: 10, opset_import: ["" : 21, "tensorlint" : 1]>\n'


def carried(count, terms, reads_iteration=False):
    """A loop of values whose device a large diagram decides: sums of products in an order that makes it exponential in `terms`."""
    conditions, names = [f"C{i}" for i in range(2 * terms)], ["".join(each) for each in itertools.islice(itertools.product(string.ascii_letters, repeat=3), count)]
    nodes = ['A_ = tensorlint.Transfer <device = "cuda:0"> (x)', 'B_ = tensorlint.Transfer <device = "cuda:1"> (x)']
    # Choices are ordered by where they first decide something.
    nodes += ["O0 = Identity (C0)", *(f"O{i} = Or (O{i - 1}, C{i})" for i in range(1, 2 * terms)), f"q_ = If (O{2 * terms - 1}) <then_branch = a () => (A_) {{}}, else_branch = a () => (B_) {{}}>"]
    nodes.append(f"F0 = And (C0, C{terms})")
    for i in range(1, terms):
        nodes += [f"P{i} = And (C{i}, C{i + terms})", f"F{i} = Or (F{i - 1}, P{i})"]
    nodes.append(f"h_ = If (F{terms - 1}) <then_branch = a () => (A_) {{}}, else_branch = a () => (B_) {{}}>")
    inner = ["kk = Identity (cc)", *(["ci = Cast <to = 9> (ii)", "ww = If (ci) <then_branch = a () => (A_) {}, else_branch = a () => (B_) {}>"] if reads_iteration else []),
             "gg = Greater (u_, v_)", "e = If (gg) <then_branch = a () => (h_) {}, else_branch = a () => (A_) {}>"]
    body = "\n".join(inner)
    lines = "\n".join(nodes)
    inputs = ", ".join(["float[N] x", "float u_", "float v_", "int64 M_", *(f"bool {name}" for name in conditions)])
    return f"""{PLACED}g ({inputs}) => (r0) <bool T_ = {{1}}> {{
{lines}
r0 = Loop (M_, T_, {','.join(['x'] * count)}) <body = b (int64 ii, bool cc, {','.join(names)}) => (kk, {','.join(['e'] * count)}) {{
{body}
}}>
}}""".encode()


def casts(count):
    """Inputs and nodes of fixes that wait for each other."""
    return ["float[N] k0", "uint8[N] small"], [f"k{i + 1} = Add (k{i}, small)" for i in range(count)]


def one_of_devices(count, readers):
    """A value that one of so many conditions brings to a device of its own, and 16 rounds of fixes."""
    inputs, nodes = casts(17)
    nodes += [f't{i} = tensorlint.Transfer <device = "cuda:{i}"> (x)' for i in range(count)]
    chosen = "t0"
    for i in range(1, count):
        nodes.append(f"p{i} = If (C{i}) <then_branch = a () => (t{i}) {{}}, else_branch = a () => ({chosen}) {{}}>")
        chosen = f"p{i}"
    read = [f"{name}_" for name in some_names(readers)]
    nodes += [f"v = Identity ({chosen})", *(f"{name} = Abs (v)" for name in read), f"y = Max ({', '.join(read)})"]
    lines, inputs = "\n".join(nodes), ", ".join(["float[N] x", *inputs, *(f"bool C{i}" for i in range(count))])
    return f"{PLACED}g ({inputs}) => (k17, y) {{\n{lines}\n}}".encode()


class ToldOnceTest(PromiseTest):
    def test_diagrams_that_a_loop_carries_many_times(self):
        for count, reads_iteration in ((4500, False), (7800, False), (7800, True)):
            self.run_within_promise(carried(count, 11, reads_iteration), "check", "show", name="m.onnxtxt")

    def test_diagrams_in_each_round_of_fixes(self):
        for devices, readers in ((60, 10), (80, 1000)):
            self.run_within_promise(one_of_devices(devices, readers), "fix --diff", name="m.onnxtxt")


if __name__ == "__main__":
    unittest.main()
