"""What is asked of an operator's name, a call's attributes, a body's initializers and a table's metadata at each of many visits, and kept of each answer."""

import itertools
import unittest

import wire
from promise import PromiseTest
from visits_and_probes_test import loops, some_names


class AskedAgainTest(PromiseTest):
    def test_a_condition_of_an_operator_with_a_long_name(self):
        """Branches of two extents: each If asks whether the node of the condition reads a shape."""
        then, other = wire.graph([], [], [wire.data(1, "P")], name="t"), wire.graph([], [], [wire.data(1, "Q")], name="e")
        asked = [wire.node("If", ["k"], [name], then_branch=("g", then), else_branch=("g", other)) for name in some_names(61, without=("P", "Q", "k"))]
        inputs = [wire.value("P", wire.FLOAT, [2]), wire.value("Q", wire.FLOAT, [3])]
        self.run_within_promise(loops(asked, inputs=inputs, before=[wire.node("L" * 56_500, ["Z"], ["k"], domain="local")]), "check", "show")

    def test_calls_whose_attributes_are_never_equal(self):
        """All texts of a list agree; the tensor behind them is compared with nothing."""
        texts = wire.data(5, wire.data(1, "a") + wire.data(9, "x") * 3000 + wire.number(20, 8))
        tensor = wire.data(5, wire.data(1, "z") + wire.data(5, wire.tensor("t", wire.INT64, [], bytes(8))) + wire.number(20, 4))
        call = wire.data(1, "s.") + wire.data(2, "q.") + wire.data(4, "f") + wire.data(7, "local") + texts + tensor
        model = loops([call], fill=11_000) + wire.data(25, wire.function("f", ["a"], ["b"], [], opsets=(("", 21),)))
        self.run_within_promise(model, "check", "show", "check --placement runtime")

    def test_initializers_of_bodies_after_branches_of_two_ranks(self):
        """What follows such an If is tried with each of its branches: the body is visited first where nothing is kept."""
        branches = "\n".join(f"r{i} = If (b{i}) <then_branch = t () => (p) {{ p = Identity (x) }}, else_branch = e () => (q) {{ q = Unsqueeze (x, A) }}>" for i in range(8))
        known = f"<int64[{','.join('1' * 29_000)}] w = {{1}}>"
        body = f"b (i0, k0, c0) => (k0, o0) {known} {{ o0 = Add (c0, i0) }}"
        for level in (1, 2):
            nodes = f"z{level} = Loop (T, , c{level}) <body = {body}> o{level} = Add (z{level}, i{level})"
            body = f"b (i{level}, k{level}, c{level}) => (k{level}, o{level}) {{ {nodes} }}"
        inputs = ", ".join(f"bool b{i}" for i in range(8))
        text = f"""<ir_version: 10, opset_import: ["" : 18]>
g (float[2, 3] x, int64 s, {inputs}) => (y, {", ".join(f"r{i}" for i in range(8))}) <int64 T = {{16}}, int64[1] A = {{0}}> {{
{branches}
y = Loop (T, , s) <body = {body}>
}}
"""
        self.run_within_promise(text.encode(), "check", "contract", name="m.onnxtxt")

    def test_copies_of_each_node_for_all_answers(self):
        """256 answers of eight conditions, and thousands of nodes on two devices in turn."""
        names = some_names(5200, without=("x", "y"))
        branches = "".join(f"u{i}_=If(c{i}_)<then_branch=t()=>(p){{p=Neg({f'u{i - 1}_' if i else 'x'})}},else_branch=e()=>(q){{q=Abs({f'u{i - 1}_' if i else 'x'})}}>\n" for i in range(8))
        a, b, nodes = "u7_", "y", ""
        for first, second in zip(names[0:2600:2], names[1:2600:2]):
            nodes += f"{first}=Add({a},{b})\n{second}=Add({b},{a})\n"
            a, b = first, second
        tags = ", ".join(f'"tensorlint.device:{name}": "{letter * 32}:20{i}"' for i, (name, letter) in enumerate((("x", "a"), ("y", "b"))))
        text = f"""<ir_version:10,opset_import:["":18],metadata_props:[{tags}]>
g(float[4]x,float[4]y,{",".join(f"bool c{i}_" for i in range(8))})=>({a},{b}){{
{branches}{nodes}}}
"""
        self.run_within_promise(text.encode(), "check --placement runtime", name="m.onnxtxt")

    def test_metadata_of_a_table_that_many_nodes_add(self):
        """In each of seventeen rounds of fixes."""
        metadata = wire.data(16, wire.data(1, "pkg.onnxscript.optimizer.folded_from") + wire.data(2, "x")) + wire.data(16, b"") * 11_000
        table = wire.data(5, wire.tensor("t", wire.FLOAT, [4, 1, 8], external={"location": "w"}) + metadata)
        chain = ["d", *some_names(1500, without=set("dlsrtLR"))]
        adds = [wire.node("Add", [before, "t"], [after]) for before, after in itertools.pairwise(chain)]
        casts = [wire.node("Add", [f"r{i}.", f"R{i}."], [f"r{i + 1}."]) for i in range(16)]
        loss = wire.node("SoftmaxCrossEntropyLoss", ["s", "l"], ["L"])
        inputs = [wire.value("d", wire.FLOAT, [4, 3, 8]), wire.value("l", wire.INT64, ["N"]), wire.value("s", wire.FLOAT, ["N", 5]), wire.value("r0.", wire.FLOAT, [2])]
        inputs += [wire.value(f"R{i}.", 3, [2]) for i in range(16)]
        graph = wire.graph([loss, *casts, *adds], inputs, [wire.data(1, "L"), wire.data(1, "r16."), wire.data(1, chain[-1])]) + table
        self.run_within_promise(wire.model(graph, opsets=(("", 18),), ir_version=10), "check", "fix --diff")


if __name__ == "__main__":
    unittest.main()
