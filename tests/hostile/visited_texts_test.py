"""Long names, texts and attributes that bodies and calls read at each visit, formulas that reports print for many values, and devices beyond
those that are told apart."""

import itertools
import random
import string
import unittest

import wire
from hostile_test import run
from promise import PromiseTest

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
OPSETS = (("", 21), ("local", 1))


def names(count, letters=2):
    return ["".join(each) for each in itertools.islice(itertools.product(string.ascii_letters, repeat=letters), count)]


def loops(innermost, depth=3, infos=b""):
    """Loops of 16 iterations in each other; the innermost body has more nodes."""

    def body(level):
        inputs = [wire.value(f"i{level}", wire.INT64, []), wire.value(f"c{level}", wire.BOOL, []), wire.value(f"w{level}", wire.INT64, [])]
        last = wire.node("Identity", [f"c{level}"], [f"k{level}"])
        outputs = [wire.data(1, f"k{level}"), wire.data(1, f"x{level}")]
        if level == 0:
            return wire.graph([wire.node("Add", ["w0", "i0"], ["x0"]), *innermost, last], inputs, outputs, name="B0") + infos
        nodes = [wire.node("Add", [f"w{level}", f"i{level}"], [f"u{level}"]), wire.node("Loop", ["M", "C", f"u{level}"], [f"x{level}"], body=("g", body(level - 1))), last]
        return wire.graph(nodes, inputs, outputs, name=f"B{level}")

    constants = [wire.tensor("C", wire.BOOL, [], b"\1"), wire.integers("M", [16], True), wire.integers("s", [0], True)]
    return wire.model(wire.graph([wire.node("Loop", ["M", "C", "s"], ["Y"], body=("g", body(depth)))], [], [wire.data(1, "Y")], constants), opsets=OPSETS)


def mixed_extents(levels, name_length, rest, output, extra_constants=""):
    """Extents that are sums, largest and smallest ones of 24 others, level by level; then `rest`, which begins with `v`."""
    draw, width = random.Random(1), 24
    axes = [f"n{chr(97 + i)}{'x' * name_length}" for i in range(width)]
    constants, nodes, current = ["int64 one = {1}", f"int64[1] reps = {{{1000 // width}}}"], ["v0 = Shape (x)"], "v0"
    for k in range(levels):
        for name in (f"p{k}", f"q{k}"):
            order = draw.sample(range(width), width)
            constants.append(f"int64[{width}] {name} = {{{', '.join(map(str, order))}}}")
        nodes += [f"a{k} = Gather ({current}, p{k})", f"b{k} = Gather ({current}, q{k})", f"c{k} = Add (a{k}, one)",
                  f"m{k} = {'Max' if k % 2 == 0 else 'Min'} (b{k}, c{k})", f"v{k + 1} = Add (m{k}, {current})"]
        current = f"v{k + 1}"
    lines = "\n".join([*nodes, f"v = Identity ({current})", *rest])
    return f"{HEADER}g (float[{', '.join(axes)}] x) => ({output})\n<{', '.join(constants)}{extra_constants}> {{\n{lines}\n}}\n".encode()


class VisitedTextsTest(PromiseTest):
    def work(self, content, *command, name="m.onnx", codes=(0, 1)):
        path = self.folder / name
        path.write_bytes(content)
        result = run([*command, path])
        self.assert_kept(result, len(content), codes=codes)
        return result.output

    def test_a_long_name_of_an_extent(self):
        declared = wire.tensor_type(wire.FLOAT, ["1" * 30_000 + "-a"])
        content = loops([wire.node("Foo", ["x0"], ["z"], domain="local")], infos=wire.data(13, wire.data(1, "z") + wire.data(2, declared)))
        self.work(content, "check")

    def test_constants_of_many_empty_texts_or_extents(self):
        texts = wire.tensor("t", 8, [16_000]) + wire.data(6, b"") * 16_000
        extents = wire.tensor("t", 8, [1] * 16_000) + wire.data(6, b"")
        sparse = wire.data(1, wire.tensor("v", wire.FLOAT, [0], b"")) + wire.data(2, wire.tensor("i", wire.INT64, [0], b"")) + wire.number(3, 1) * 16_000
        for value in (wire.node("Constant", [], ["q"], value=("t", texts)), wire.node("Constant", [], ["q"], value=("t", extents)),
                      wire.data(2, "q") + wire.data(4, "Constant") + wire.data(5, wire.data(1, "sparse_value") + wire.data(22, sparse) + wire.number(20, 11))):
            with self.subTest(value[:40]):
                self.work(loops([value]), "check")

    def test_attributes_that_refer_to_long_ones_of_a_call(self):
        for node, dtype, letter in (("Einsum <equation = @e>", "float", ","), ("RegexFullMatch <pattern = @e>", "string", "a")):
            with self.subTest(node):
                nodes = "\n".join(f"y{i} = {node} (x)" for i in range(200))
                calls = "\n".join(f"y{i} = l.F <e = @e> (x)" for i in range(100))
                imports = 'opset_import: ["" : 21, "l" : 1]'
                text = f"""<ir_version: 10, {imports}>
g ({dtype}[2] x) => (y) {{ y = l.G <e = "{letter * 9000}"> (x) }}
<domain: "l", {imports}> F <e> (x) => (y0) {{
{nodes}
}}
<domain: "l", {imports}> G <e> (x) => (y0) {{
{calls}
}}
"""
                for command in ("check", "show"):
                    self.work(text.encode(), command, name="m.onnxtxt")

    def test_a_device_of_a_long_name_in_a_loop(self):
        copy = wire.node("Transfer", ["v"], ["a"], domain="tensorlint", device="cuda:" + "0" * 30_000)
        inputs = [wire.value("i", wire.INT64, []), wire.value("c", wire.BOOL, []), wire.value("v", wire.FLOAT, [2])]
        body = wire.graph([copy, wire.node("Identity", ["c"], ["k"])], inputs, [wire.data(1, "k"), wire.data(1, "a")], name="b")
        loop = wire.node("Loop", ["T", "C", "x"], ["y"], body=("g", body))
        graph = wire.graph([loop], [wire.value("x", wire.FLOAT, [2])], [wire.data(1, "y")], [wire.integers("T", [100_000], True), wire.tensor("C", wire.BOOL, [], b"\1")])
        self.work(wire.model(graph, opsets=(("", 21), ("tensorlint", 1))), "check", "--placement", "runtime")

    def test_more_devices_than_are_told_apart(self):
        def on(name, device):
            return wire.value(name, wire.FLOAT, [2]) + wire.data(4, wire.data(1, "tensorlint.device") + wire.data(2, device))

        inputs = [on(f"x{i}", f"cuda:{i}") for i in range(100)]
        model = wire.model(wire.graph([wire.node("Add", ["x0", "x99"], ["w"])], inputs, [wire.data(1, "w")]), opsets=OPSETS, ir_version=10)
        self.assertIn(b"too many devices", self.work(model, "check", "--placement", "runtime"))

    def test_a_result_that_a_function_leaves_out_and_a_body_yields_twice(self):
        function = wire.function("F", ["p"], [""], [wire.node("Relu", ["p"], ["q"])])
        then = wire.graph([wire.node("F", ["x"], ["r"], domain="local")], [], [wire.data(1, "r"), wire.data(1, "r")], name="t")
        otherwise = wire.graph([wire.node("Relu", ["x"], ["s"])], [], [wire.data(1, "s"), wire.data(1, "s")], name="e")
        nodes = [wire.node("If", ["c"], ["y", "z"], then_branch=("g", then), else_branch=("g", otherwise)), wire.node("Relu", ["x"], ["w"])]
        graph = wire.graph(nodes, [wire.value("x", wire.FLOAT, [2]), wire.value("c", wire.BOOL, [])], [wire.data(1, "w")])
        self.work(wire.model(graph, [function], opsets=OPSETS), "place", codes=(0, 1, 2))

    def test_products_of_long_names(self):
        first, second = "a" * 12_000, "b" * 12_000
        values = ["s = Shape (x)", "a = Gather (s, za)", "b = Gather (s, zb)", "t0 = Add (a, b)", "t1 = Add (t0, on)", "t2 = Mul (t1, t1)", "t3 = Mul (t2, t2)"]
        chain = [f"{name} = Identity ({before})" for before, name in itertools.pairwise(["t3", *(f"{each}_" for each in names(1000))])]
        constants = ", ".join(f"int64[8] {name} = {{{', '.join([digit] * 8)}}}" for name, digit in (("za", "0"), ("zb", "1"), ("on", "1")))
        lines = "\n".join([*values, *chain])
        text = f"{HEADER}g (float[{first}, {second}] x) => ({names(1000)[-1]}_)\n<{constants}> {{\n{lines}\n}}\n".encode()
        self.work(text, "show", name="m.onnxtxt")
        self.work(text, "show", "--format", "json", name="m.onnxtxt")

    def test_formulas_that_many_values_share(self):
        copies = ["t0 = Tile (v, reps)", *(f"t{i + 1} = Identity (t{i})" for i in range(400))]
        self.work(mixed_extents(8, 1, copies, "t400"), "show", "--format", "json", name="m.onnxtxt")
        shapes = ["t0 = Tile (v, reps)"]
        for leading in range(6):
            before = "t0"
            for i in range(60):
                shapes.append(f"s{leading}_{i} = Unsqueeze ({before}, {'first' if i < leading else 'last'})")
                before = f"s{leading}_{i}"
        content = mixed_extents(8, 1, shapes, before, ", int64[1] first = {0}, int64[1] last = {-1}")
        self.work(content, "show", name="m.onnxtxt")

    def test_operands_that_are_shown_at_each_reader(self):
        values = [f"{letter}_" for letter in string.ascii_letters]
        nodes = ["t0 = Gather (v, eight)", *(f"{value} = Identity (t0)" for value in values), *(f"{name} = Max ({', '.join(values)})" for name in names(400))]
        content = mixed_extents(4, 20, nodes, names(400)[-1], ", int64[8] eight = {0, 1, 2, 3, 4, 5, 6, 7}")
        self.work(content, "show", "--node", "*", name="m.onnxtxt")

    def test_results_with_long_extents(self):
        results = [name for name in [*names(52 * 52), *names(13_000, 3)] if name.lower() not in ("inf", "nan", "seq", "map")]
        content = f'<opset_import:["":18]>\ng(float[{"A" * 2000},9]x)=>(aa){{{",".join(results)}=Split<axis=1,num_outputs={len(results)}>(x)}}'
        self.work(content.encode(), "show", name="m.onnxtxt")

    def test_a_long_name_that_many_fixes_write(self):
        long, sums = "q" * 20_000, names(1000)
        nodes = [wire.node("Cast", [long], ["c"], to=7), *(wire.node("Add", ["x", "c"], [name]) for name in sums)]
        graph = wire.graph(nodes, [wire.value("x", wire.FLOAT, ["N"]), wire.value(long, wire.FLOAT, ["N"])], [wire.data(1, name) for name in sums])
        content = wire.model(graph, opsets=(("", 21),))
        self.work(content, "fix", "--unsafe", "-o", self.folder / "out.onnx")
        self.work(content, "fix", "--unsafe", "--diff")

    def test_a_signature_with_long_sums_in_a_loop(self):
        results = [f"z{i}" for i in range(60)]
        signatures = self.folder / "signatures.toml"
        result = f'"int64[{"+".join("1" * 490)}]"'
        signatures.write_text(f'[[operator]]\ndomain = "local"\nname = "F"\ninputs = ["int64[...]"]\noutputs = [{", ".join([result] * len(results))}]\n')
        content = loops([wire.node("F", ["x0"], results, domain="local")])
        self.work(content, "check", "--signatures", signatures)

    def test_a_configuration_with_thousands_of_axes(self):
        declared = f'"float32[{",".join(["2"] * 15_000)}]"'
        (self.folder / "tensorlint.toml").write_text(f"[inputs]\nx={declared}\nt={declared}\n")
        nodes = "\n".join(f"d{name} = Sub (x, t)\nq{name} = Mul (d{name}, d{name})\nl{name} = ReduceMean <keepdims = 0> (q{name})" for name in names(600))
        outputs = ", ".join(f"float l{name}" for name in names(600))
        content = f"{HEADER}g (float[] x, float[] t) => ({outputs}) {{\n{nodes}\n}}\n".encode()
        self.work(content, "check", name="m.onnxtxt", codes=(0, 1, 2))


if __name__ == "__main__":
    unittest.main()
