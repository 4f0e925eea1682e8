"""What is to be read, walked through or said once: diagrams that thousands of carried values share, constants of narrow elements in visits of a
body, tables that look like weights, files and names in each round of fixes, failures and shapes at each reader."""

import itertools
import json
import string
import unittest

import numpy as np
import wire
from hostile_test import run
from promise import LARGEST, PromiseTest
from visited_texts_test import loops
from visits_and_probes_test import HEADER, some_names

INT2, UINT8, DOUBLE = 26, 2, 11

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


def text_of(nodes, inputs, outputs, header=HEADER):
    lines = "\n".join(nodes)
    return f"{header}g ({','.join(inputs)}) => ({','.join(outputs)}) {{\n{lines}\n}}".encode()


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
    return text_of(nodes, ["float[N] x", *inputs, *(f"bool C{i}" for i in range(count))], ["k17", "y"], PLACED)


def programs(files):
    """Sums that each have a finding in a program of their own, and 16 rounds of fixes."""
    results = [f"w{i}" for i in range(len(files))]
    nodes = []
    for result, file in zip(results, files):
        trace = wire.data(1, "pkg.torch.onnx.stack_trace") + wire.data(2, f'File "{file}", line 1, in f')
        nodes.append(wire.node("Add", ["x", "i"], [result]) + wire.data(9, trace))
    nodes += [wire.node("Add", [f"k{i}", "small"], [f"k{i + 1}"]) for i in range(17)]
    inputs = [wire.value("x", dims=["N"]), wire.value("i", wire.INT64, ["N"]), wire.value("k0", dims=["N"]), wire.value("small", UINT8, ["N"])]
    return wire.model(wire.graph(nodes, inputs, [wire.data(1, name) for name in ("k17", *results)]))


def masks_of_labels(count):
    """The weights of a loss are the largest of the label and of so many numbers."""
    names = [f"{name}_" for name in some_names(count)]
    numbers = ",".join(f"int64 {name}={{{3 * i + 7}}}" for i, name in enumerate(names))
    return f"""{HEADER}g(float[N,C]p,int64[N]t)=>(float L)<{numbers}>{{
l=SoftmaxCrossEntropyLoss<reduction="none">(p,t)
w=Max(t,{",".join(names)})
wf=Cast<to=1>(w)
m=Mul(l,wf)
L=ReduceMean<keepdims=0>(m)
}}""".encode()


class ToldOnceTest(PromiseTest):
    def test_diagrams_that_a_loop_carries_many_times(self):
        for count, reads_iteration in ((4500, False), (7800, False), (7800, True)):
            self.run_within_promise(carried(count, 11, reads_iteration), "check", "show", name="m.onnxtxt")

    def test_diagrams_in_each_round_of_fixes(self):
        for devices, readers in ((60, 10), (80, 1000)):
            self.run_within_promise(one_of_devices(devices, readers), "fix --diff", name="m.onnxtxt")

    def test_narrow_constants_in_each_visit_of_a_body(self):
        packed = wire.tensor("t", INT2, [1 << 16], bytes([0b11100100]) * (1 << 14))
        for count in (1, 3):
            self.run_within_promise(loops([wire.node("Constant", [], [f"q{i}"], value=("t", packed)) for i in range(count)]), "check", "show", "contract")
        self.run_within_promise(loops([wire.node("ConstantOfShape", ["sh"], ["q"], value=("t", packed))]), "check")

    def test_labels_that_are_held_against_many_numbers(self):
        for count in (600, 3000):
            self.run_within_promise(masks_of_labels(count), "check", name="m.onnxtxt")

    def check_with_weights(self, graph, tensors, size):
        """`tensors` are followed by so many bytes of zeros each, which a file may have without anybody holding them."""
        heads = [tensor + wire.varint(9 << 3 | 2) + wire.varint(size) for tensor in tensors]
        heads = [wire.varint(5 << 3 | 2) + wire.varint(len(head) + size) + head for head in heads]
        before = wire.number(1, 10) + wire.data(8, wire.data(1, "") + wire.number(2, 21)) + wire.varint(7 << 3 | 2)
        rest = len(graph) + sum(map(len, heads))
        with self.path.open("wb") as file:
            file.write(before + wire.varint(rest + len(heads) * size))
            for head in heads:
                file.write(head)
                file.seek(size, 1)
            file.write(graph)
        result = run(["check", self.path])
        self.assert_kept(result, rest)
        self.assertIn(b"1 checked file", result.output)

    def write_sparsely(self, head, size, rest, ascending=False):
        """A graph of so many bytes between two others: of zeros, or of numbers of 8 bytes that ascend."""
        before = wire.number(1, 10) + wire.data(8, wire.data(1, "") + wire.number(2, 21)) + wire.varint(7 << 3 | 2)
        with self.path.open("wb") as file:
            file.write(before + wire.varint(len(head) + size + len(rest)) + head)
            for begin in range(0, size // 8 if ascending else 0, 1 << 16):
                file.write(np.arange(begin, min(size // 8, begin + (1 << 16)), dtype="<i8").tobytes())
            file.seek(0 if ascending else size, 1)
            file.write(rest)

    def test_weights_are_not_read_for_their_range(self):
        names = some_names(300)
        weights = [wire.tensor(name, wire.INT64, [1 << 16]) for name in names]
        self.check_with_weights(wire.graph([wire.node("Max", names, ["y_"])], [], [wire.data(1, "y_")]), weights, 8 << 16)

    def test_tables_that_may_hide_scores_are_not_all_read(self):
        nodes, tables = [], []
        for i in range(20):
            tables.append(wire.tensor(f"W{i}", DOUBLE, [1, 1 << 20]))
            nodes += [wire.node("Add", ["x", f"W{i}"], [f"a{i}"]), wire.node("Softmax", [f"a{i}"], [f"y{i}"], axis=-1)]
        self.check_with_weights(wire.graph(nodes, [wire.value("x", DOUBLE, ["N", 1])], [wire.data(1, "y0")]), tables, 8 << 20)

    def test_weights_in_other_fields_are_let_go(self):
        """As varints, and as places of a sparse tensor: what is counted or compared is not kept."""
        size = 96 << 20
        varints = wire.tensor("W", UINT8, [size]) + wire.varint(5 << 3 | 2) + wire.varint(size)
        head = wire.varint(5 << 3 | 2) + wire.varint(len(varints) + size) + varints
        graph = wire.graph([wire.node("Abs", ["W"], ["y"])], [], [wire.data(1, "y")])
        self.write_sparsely(head, size, graph)
        self.assert_kept(run(["check", self.path]), 1000)
        places, count = size // 2, size // 2 // 8
        values = wire.tensor("W", UINT8, [count], b"\1" * count)
        indices = wire.tensor("I", wire.INT64, [count]) + wire.varint(9 << 3 | 2) + wire.varint(places)
        rest = wire.data(1, values) + wire.varint(2 << 3 | 2) + wire.varint(len(indices) + places) + indices
        dims = wire.number(3, 1 << 40)
        head = wire.varint(15 << 3 | 2) + wire.varint(len(rest) + places + len(dims)) + rest
        self.write_sparsely(head, places, dims + graph, ascending=True)
        result = run(["check", self.path])
        self.assert_kept(result, 1000)
        self.assertNotIn(b"sorted", result.output)

    def test_programs_behind_links_in_each_round_of_fixes(self):
        for i in range(20):
            (self.folder / f"l{i}").symlink_to("d/../" * 810 + (f"l{i + 1}" if i < 19 else "."))
        (self.folder / "d").mkdir()
        (self.folder / "a").mkdir()
        (self.folder / "a/a").symlink_to(".")
        for files in ([f"l0/{i}.py" for i in range(260)], ["a/" * 63 + f"{i}.py" for i in range(300)]):
            self.run_within_promise(programs(files), "fix --diff")

    def test_long_names_of_programs_below_the_source_root(self):
        for files in (["b/" * 31_000 + "q.py"], ["b/" * 63 + f"{i}.py" for i in range(300)]):
            self.run_within_promise(programs(files), f"check --source-root {self.folder}")

    def check_half_a_second(self, content, *command):
        self.assertLessEqual(len(content), LARGEST)
        path = self.folder / "m.onnxtxt"
        path.write_bytes(content)
        result = run([*command, path])
        self.assert_kept(result, len(content), seconds=0.5)
        return result.output

    def test_an_attribute_that_is_given_thousands_of_times(self):
        inputs, nodes = casts(17)
        nodes.append(f"y = TopK <{','.join(['k=1'] * 16_000)}> (x)")
        header = HEADER.replace("21", "25")
        self.check_half_a_second(text_of(nodes, ["float[N] x", *inputs], ["k17", "y"], header), "fix", "--diff")

    def test_operators_that_are_nearly_known(self):
        inputs, nodes = casts(17)
        letters = ["".join(each) for each in itertools.islice(itertools.product(string.ascii_letters, repeat=3), 1500)]
        nodes += [f"{name}_=com.microsoft.QLinear{name}Pool(x)" for name in letters]
        nodes.append(f"y_=Max({','.join(f'{name}_' for name in letters)})")
        header = HEADER.replace(']', ',"com.microsoft":1]')
        self.check_half_a_second(text_of(nodes, ["float[N] x", *inputs], ["k17", "y_"], header), "fix", "--diff")

    def test_failures_are_said_once_in_a_tree(self):
        extents, sums = ["2" * 14] * 60, [f"s{i}" for i in range(250)]
        inputs = [f"float[{','.join(extents)}] x", *(f"float[{','.join([str(10**14 // 3 + i)] * 60)}] z{i}" for i in range(9))]
        nodes = [f"{name}=Sum(x,{','.join(f'z{i}' for i in range(9))})" for name in sums]
        nodes += [f"m{i}=Identity<a=1>({','.join(sums)})" for i in range(9)]
        nodes.append(f"r=Identity({','.join(f'm{i}' for i in range(9))})")
        path = self.folder / "m.onnxtxt"
        path.write_bytes(text_of(nodes, inputs, ["r"]))
        result = run(["why", path, "r", "--depth", "2"])
        self.assert_kept(result, path.stat().st_size)
        self.assertLess(len(result.output), 3 << 20)
        self.assertTrue(result.output.endswith(b"(the tree continues beyond 2 MiB of text)\n"))

    def test_a_failure_is_said_where_a_tree_first_has_it(self):
        path = self.folder / "m.onnxtxt"
        path.write_bytes(text_of(["s=Add(x,z)", "a=Abs(s)", "b=Neg(s)", "r=Add(a,b)"], ["float[2] x", "float[3] z"], ["r"]))
        output = run(["why", path, "r", "--depth", "3"]).output
        self.assertEqual(output.count(b"do not broadcast"), 1)
        self.assertEqual(output.count(b"it fails, see above (see above)"), 1)

    def test_types_that_are_shown_many_times(self):
        names = list(string.ascii_letters[:26])
        inputs = [f"float[{','.join(['2' * 17] * 60)}] {name}" for name in names]
        nodes = [f"{name}_=Max({','.join(names)})" for name in some_names(550)]
        output = self.check_half_a_second(text_of(nodes, inputs, ["a_"]), "show", "--node", "*")
        self.assertLess(len(output), 6 << 20)
        self.assertTrue(output.endswith(b"(...): types past the size that the report may have are left out\n"))

    def test_values_of_which_nothing_is_known(self):
        names = some_names(15_000)
        output = self.check_half_a_second(text_of([], names, [names[0]]), "show", "--format", "json")
        self.assertLess(len(output), 8 << 20)
        document = json.loads(output)
        self.assertIn("left_out", document)
        self.assertEqual(len(document["values"][names[0]]["dtype"]), len(document["values"][names[1]]["dtype"]))
        self.assertGreater(len(document["values"][names[0]]["dtype"]), 20)
        self.assertEqual(document["values"][names[-1]]["dtype"], [])


if __name__ == "__main__":
    unittest.main()
