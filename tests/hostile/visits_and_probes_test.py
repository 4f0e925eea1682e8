"""What bodies cost in each visit beside their nodes, what loops and placement keep of each iteration, and what is solved again: probes of sizes
and rounds of fixes."""

import itertools
import random
import string
import unittest

import wire
from hostile_test import run
from promise import PromiseTest

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
OPSETS = (("", 21), ("local", 1))


def names():
    """Short ones that text models read as names."""
    first = string.ascii_letters + "_"
    for more in range(3):
        for each in itertools.product(first, *[first + string.digits] * more):
            name = "".join(each)
            if name.lower() not in ("inf", "nan", "seq", "map"):
                yield name


def some_names(count, without=()):
    return list(itertools.islice((name for name in names() if name not in without), count))


def loops(innermost=(), initializers=b"", constants=(), inputs=(), before=(), fill=0):
    """Five loops of 16 iterations in each other. No two visits of the innermost body are alike: it reads the numbers of all iterations."""

    def body(level):
        carried = [wire.value(f"i{level}.", wire.INT64, []), wire.value(f"c{level}.", wire.BOOL, []), wire.value(f"w{level}.", wire.INT64, [])]
        if level == 0:
            nodes, result, more = [wire.node("Max", [f"i{i}." for i in range(5)], ["m."]), *innermost], "w0.", initializers
        else:
            nodes, result, more = [wire.node("Loop", ["M.", "C.", f"w{level}."], [f"x{level}."], body=("g", body(level - 1)))], f"x{level}.", b""
        return wire.graph(nodes, carried, [wire.data(1, f"c{level}."), wire.data(1, result)], name=f"B{level}") + more

    known = [wire.tensor("C.", wire.BOOL, [], b"\1"), wire.integers("M.", [16], True), wire.integers("s.", [0], True), *constants]
    loop = wire.node("Loop", ["M.", "C.", "s."], ["Y."], body=("g", body(4)))
    return wire.model(wire.graph([*before, loop, *[wire.data(4, "A")] * fill], list(inputs), [wire.data(1, "Y.")], known), opsets=OPSETS, ir_version=10)


def open_results(count):
    """Placement follows a loop whose body makes `count` integers that nothing is known of, in each iteration others."""

    def inner(a, b, c):
        return wire.graph([], [wire.data(1, a), wire.data(1, b), wire.data(1, c)], [wire.data(1, b), wire.data(1, c)], name="inner")

    split = wire.node("Split", ["X."], some_names(count), axis=0, num_outputs=count)
    numbered = wire.node("Loop", ["i.", "C.", "s."], ["t."], body=("g", inner("j.", "d.", "v.")))
    body = wire.graph([split, numbered], [wire.value("i.", wire.INT64, []), wire.value("c.", wire.BOOL, []), wire.value("s.", wire.FLOAT, [2])], [wire.data(1, "c."), wire.data(1, "s.")], name="b")
    nodes = [wire.node("Loop", ["o.", "C.", "u."], ["z."], body=("g", inner("J.", "D.", "V."))), wire.node("Loop", ["T.", "C.", "u."], ["q."], body=("g", body))]
    outer = wire.graph(nodes, [wire.value("o.", wire.INT64, []), wire.value("e.", wire.BOOL, []), wire.value("u.", wire.FLOAT, [2])], [wire.data(1, "e."), wire.data(1, "u.")], name="o")
    loop = wire.node("Loop", ["T.", "C.", "x."], ["r."], body=("g", outer))
    constants = [wire.tensor("C.", wire.BOOL, [], b"\1"), wire.integers("T.", [256], True)]
    inputs = [wire.value("x.", wire.FLOAT, [2]), wire.value("X.", wire.INT64, [count] + [1] * 63)]
    return wire.model(wire.graph([loop], inputs, [wire.data(1, "r.")], constants), opsets=OPSETS, ir_version=10) + wire.data(14, wire.data(1, "tensorlint.device:x.") + wire.data(2, "cuda:0"))


def nested_branches(reads, rounds, unsorted):
    """A body 61 deep that reads `reads` values of the main graph, beside sizes that are asked for and `rounds` fixes that wait for each other."""
    values = [letter for letter in string.ascii_letters if letter not in "XYCDOIPQRZngebhk"]
    draw = random.Random(1)
    body = f"b () => (P) {{ P = Max ({','.join(draw.choice(values) for _ in range(reads))}) }}"
    for _ in range(61):
        body = f"b()=>(Q){{{'R=Abs(Z) Z=Abs(X) ' if unsorted else ''}Q=If(C)<then_branch={body},else_branch=e()=>(X){{}}>}}"
    primes = [5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79]
    asked = [f"O{i} = Reshape (I{i}, R{i})" for i in range(len(primes))]
    casts = [f"k{i + 1} = Add (k{i}, h)" for i in range(rounds)]
    inputs = [f"float[{len(values)}] X", *(f"float[a{i}, b{i}] I{i}" for i in range(len(primes))), *(["float[2] k0", "float16[2] h"] if rounds else [])]
    outputs = ["Y", *(f"O{i}" for i in range(len(primes))), *([f"k{rounds}"] if rounds else [])]
    constants = ["bool C = {0}", *(f"int64[1] R{i} = {{{prime}}}" for i, prime in enumerate(primes))]
    lines = "\n".join([f"{', '.join(values)} = Split <axis = 0, num_outputs = {len(values)}> (X)", *casts, *asked])
    return f"{HEADER}g ({', '.join(inputs)}) => ({', '.join(outputs)})\n<{', '.join(constants)}> {{\n{lines}\nY = If (C) <then_branch = {body}, else_branch = e () => (X) {{}}>\n}}\n".encode()


def tree(count):
    """A classifier of so many nodes whose links are all known."""
    draw = random.Random(1)
    ids = list(itertools.islice(itertools.product(range(128), repeat=2), count))
    draw.shuffle(ids)
    of_tree = {}
    for number, node in ids:
        of_tree.setdefault(number, []).append(node)

    def other(number, node):
        return next(each for each in iter(lambda: draw.choice(of_tree[number]), None) if each != node)

    def packed(name, numbers):
        return wire.data(5, wire.data(1, name) + wire.data(8, b"".join(wire.varint(each) for each in numbers)) + wire.number(20, 7))

    weighted = draw.sample(ids, len(ids))
    labels = wire.data(5, wire.data(1, "classlabels_int64s") + wire.data(8, b"\1\2") + wire.number(20, 7))
    modes = wire.data(5, wire.data(1, "nodes_modes") + wire.data(9, b"") * count + wire.number(20, 8))
    lists = {"nodes_treeids": [t for t, _ in ids], "nodes_nodeids": [n for _, n in ids], "nodes_truenodeids": [other(*each) for each in ids], "nodes_falsenodeids": [other(*each) for each in ids],
             "class_treeids": [t for t, _ in weighted], "class_nodeids": [n for _, n in weighted]}
    return b"".join([wire.data(1, "F"), wire.data(2, "L"), wire.data(2, "S"), wire.data(4, "TreeEnsembleClassifier"), wire.data(7, "ai.onnx.ml"), modes, *(packed(*each) for each in lists.items()), labels])


class VisitsAndProbesTest(PromiseTest):
    def test_initializers_of_a_body(self):
        self.run_within_promise(loops(initializers=b"".join(wire.data(5, wire.data(8, name)) for name in some_names(9700))), "check", "show")

    def test_results_of_a_node_on_a_cycle(self):
        self.run_within_promise(loops([wire.node("Split", ["zz."], ["zz.", *some_names(13_500)])]), "check", "show")

    def test_symbols_of_each_iteration(self):
        self.run_within_promise(open_results(12_500), "check")
        self.run_within_promise(open_results(3000), "check", "check --placement runtime")

    def test_thousands_of_values_that_one_condition_chooses(self):
        carried = [name for name in some_names(6100, without=set("uvtwTCIKyxkdjqpbgL")) if name[0] not in "XQ"][:6000]
        first, second = carried[:3000], carried[3000:]
        text = f"""<ir_version:10,opset_import:["":21],metadata_props:["tensorlint.device:u":"cuda:0"]>
g(float[2] u,float[2] v,float t,float w)=>(float[2] y)<int64 T={{1000}},bool C={{1}}>
{{
y=Loop(T,C,{",".join("u" * 3000)})<body=b(I,K,{",".join(first)})=>(K,{",".join(second)}){{
p=Loop(I,C,t)<body=q(j,d,L)=>(d,L){{}}>
k=Greater(t,w)
{",".join(second)}=If(k)<then_branch=x()=>({",".join("u" * 3000)}){{}},else_branch=x()=>({",".join("v" * 3000)}){{}}>
}}>
}}
"""
        self.run_within_promise(text.encode(), "check", name="m.onnxtxt")

    def test_results_that_are_remembered(self):
        casts = [wire.node("Cast", [f"i{i}."], [f"f{i}."], to=wire.FLOAT) for i in range(5)]
        widest = wire.node("Max", [f"f{i}." for i in range(5)] + ["a"] * 2000, ["n."])
        self.run_within_promise(loops([*casts, widest], inputs=[wire.value("a", wire.FLOAT, [])], fill=10_300), "check")

    def test_facts_that_are_rewritten_in_each_visit(self):
        known = some_names(800)
        constants = [wire.number(2, wire.INT64) + wire.data(8, name) + wire.data(7, wire.varint(10 + i)) for i, name in enumerate(known[:400])]
        before = [wire.node("Mod", ["X.", divisor], [name]) for divisor, name in zip(known[:400], known[400:])]
        inputs = [wire.value("X.", wire.INT64, []), wire.value("A.", wire.FLOAT, ["n", "k"]), wire.value("B.", wire.FLOAT, ["n", "p"])]
        self.run_within_promise(loops([wire.node("Concat", ["A.", "B."], ["q."], axis=0), wire.node("Max", known[400:], ["z."])], constants=constants, inputs=inputs, before=before), "check")

    def test_bodies_in_bodies_that_are_solved_again(self):
        self.run_within_promise(nested_branches(28_000, 0, True), "contract", "show --contract", name="m.onnxtxt")
        self.run_within_promise(nested_branches(27_500, 17, False), "fix --unsafe --diff", name="m.onnxtxt")

    def test_a_large_node_that_is_solved_again(self):
        primes = [5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79]
        inputs = [wire.value("F", wire.FLOAT, ["bb", 3]), *(wire.value(f"I{i}", wire.FLOAT, [f"a{i}", f"b{i}"]) for i in range(20)), wire.value("k0", wire.FLOAT, [2]), wire.value("h", 10, [2])]
        nodes = [tree(7600), *(wire.node("Reshape", [f"I{i}", f"R{i}"], [f"O{i}"]) for i in range(20)), *(wire.node("Add", [f"k{i}", "h"], [f"k{i + 1}"]) for i in range(17))]
        graph = wire.graph(nodes, inputs, [wire.data(1, name) for name in ("L", *(f"O{i}" for i in range(20)), "k17")], [wire.integers(f"R{i}", [primes[i]]) for i in range(20)])
        self.run_within_promise(wire.model(graph, opsets=(("", 21), ("ai.onnx.ml", 3)), ir_version=10), "fix --unsafe --diff")

    def test_nodes_that_fail_in_each_visit(self):
        """They are remembered by nobody, and read anew each time."""
        equation = wire.node("Einsum", ["x."], ["q."], equation="," * 8000)
        self.run_within_promise(loops([equation], inputs=[wire.value("x.", wire.FLOAT, [3])], fill=10_500), "check", "fix --unsafe --diff")
        largest = wire.node("Max", ["b."] * 1500, ["q."])
        self.run_within_promise(loops([largest], inputs=[wire.value("b.", wire.BOOL, [])], fill=11_400), "check", "fix --unsafe --diff")
        sequence = wire.data(1, "b.") + wire.data(2, wire.data(4, wire.data(1, wire.tensor_type(wire.FLOAT, [3]))))
        scan = wire.node("Scan", ["b."] * 700, ["q."], body=("g", wire.graph([], name="s")), num_scan_inputs=700)
        self.run_within_promise(loops([scan], inputs=[sequence], fill=11_900), "check", "fix --unsafe --diff")

    def test_long_types_that_thousands_of_values_have(self):
        inputs = [name for name in some_names(11_000, without={"g", "y", "F", "a"})][:10_600]
        element = "seq(" * 15 + f"float[{','.join(['9223372036854775807'] * 64)}]" + ")" * 15
        text = f'<ir_version:10,opset_import:["":21,"l":1]>\ng({element} a)=>(y){{y=l.F({",".join("a" * len(inputs))})}}\n<domain:"l",opset_import:["":21]>\nF({",".join(inputs)})=>(y){{y=Identity({inputs[0]})}}\n'
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        result = run(["show", "--format", "json", path])
        self.assert_kept(result, len(text))
        self.assertLess(len(result.output), 12 << 20)


if __name__ == "__main__":
    unittest.main()
