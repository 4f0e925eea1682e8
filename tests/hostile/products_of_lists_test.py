"""Two lists that are gone through together: blocks of a Concat and its operands, extents and the shape that is asked for, inputs of a function and
its visits, carried values and the iterations in which they move, rows of a placement file and nodes."""

import unittest

import hostile_test
import wire
from promise import LARGEST, PromiseTest
from visits_and_probes_test import some_names

TEXT = '<ir_version: 10, opset_import: ["": 21, "l": 1]{more}>\n'
PLACED = ', metadata_props: ["tensorlint.device:u": "cuda:0"]'


def loops(node, inputs, fill):
    """Three loops of 16 iterations in each other, in opset 4. The node reads the numbers of all iterations."""

    def body(level):
        carried = [wire.value(f"i{level}.", wire.INT64, []), wire.value(f"c{level}.", wire.BOOL, []), wire.value(f"w{level}.", wire.INT64, [])]
        if level == 0:
            nodes, result = [*(wire.node("Identity", [f"i{k}."], [""]) for k in range(3)), node], "w0."
        else:
            nodes, result = [wire.node("Loop", ["M.", "C.", f"w{level}."], [f"y{level}."], body=("g", body(level - 1)))], f"y{level}."
        return wire.graph(nodes, carried, [wire.data(1, f"c{level}."), wire.data(1, result)], name=f"B{level}")

    known = [wire.tensor("C.", wire.BOOL, [], b"\1"), wire.integers("M.", [16], True), wire.integers("s.", [0], True)]
    loop = wire.node("Loop", ["M.", "C.", "s."], ["Y."], body=("g", body(2)))
    rest = wire.function("Fill", [], [], [wire.data(4, "A")] * fill, opsets=(("", 4),))
    return wire.model(wire.graph([loop], inputs, [wire.data(1, "Y.")], known), functions=[rest], opsets=(("", 4), ("local", 1)), ir_version=10)


class ProductsOfLists(PromiseTest):
    def test_operands_without_elements_in_each_block(self):
        body = f"=Identity(i) v=Add(f,i) q=Concat<axis=1>({','.join('e' * 25_000)},v)"
        text = f"""{TEXT.format(more='')}g(int64 x)=>(w)<int64 T={{16}},bool C={{1}},int64[1000,1] f={{{','.join('1' * 1000)}}},int64[1000,0] e={{}}>
{{w=Loop(T,C,x)<body=b(i,c,s)=>(c,s){{{body}}}>}}
"""
        self.run_within_promise(text.encode(), "check", "show", "fix --diff", name="m.onnxtxt")

    def test_factors_of_two_shapes(self):
        shape = wire.data(5, wire.data(1, "shape") + wire.data(8, b"\x01" * 10_000) + wire.number(20, 7))
        reshape = wire.data(1, "x.") + wire.data(2, "q.") + wire.data(4, "Reshape") + shape
        self.run_within_promise(loops(reshape, [wire.value("x.", wire.FLOAT, [2] * 62)], 10_900), "check", "show", "fix --unsafe --diff")

    def test_inputs_of_a_function_in_each_visit(self):
        inputs = some_names(17_000, without={"u", "t", "y", "T", "C"})
        inner, again = "p=Loop(I,C,t)<body=q(j,d,L)=>(d,L){}>", "p2=Loop(I2,C,t)<body=q2(j2,d2,L2)=>(d2,L2){}>"
        text = f"""{TEXT.format(more=PLACED)}g(float u,float t)=>(float y)<int64 T={{1000}},bool C={{1}}>{{
y=Loop(T,C,t)<body=b(I,K,a)=>(K,a){{{inner} r=Loop(T,C,t)<body=e(I2,K2,a2)=>(K2,a2){{{again} z=l.F()}}>}}>}}
<domain:"l",opset_import:["":21]>F({','.join(inputs)})=>({inputs[0]}){{}}
"""
        self.run_within_promise(text.encode(), "check", "check --placement runtime", "show", name="m.onnxtxt")

    def test_values_that_move_in_each_iteration(self):
        carried = some_names(4000, without={"u", "t", "y", "T", "C", "k"})
        loop = f"r=Loop(T,C,{','.join('t' * 4000)})<body=e(I2_,K2_,{','.join(carried)})=>(K2_,{','.join('u' * 4000)}){{p2=Loop(I2_,C,t)<body=q2(j2_,d2_,L2_)=>(d2_,L2_){{}}>}}>"
        for i in range(55):
            loop = f"=If(k{i}_)<then_branch=h()=>(){{{loop}}},else_branch=h()=>(){{}}>"
        text = f"""{TEXT.format(more=PLACED)}g(float u,float t{''.join(f',bool k{i}_' for i in range(55))})=>(float y)<int64 T={{1000}},bool C={{1}}>{{
y=Loop(T,C,t)<body=b(I_,K_,a_)=>(K_,a_){{p=Loop(I_,C,t)<body=q(j_,d_,L_)=>(d_,L_){{}}> {loop}}}>}}
"""
        self.run_within_promise(text.encode(), "check", "check --placement runtime", name="m.onnxtxt")

    def test_rows_of_a_placement_file_for_each_node(self):
        rows = self.folder / "rows.toml"
        rows.write_text("place=[" + ",".join(['{device="a",nodes="x"}'] * 2800) + "]\n")
        model = self.folder / "m.onnxtxt"
        model.write_text(TEXT.format(more="") + "g(float x)=>(x){" + "=A()" * 16_300 + "}\n")
        for options, is_more_than_allowed in (["--placement-file", rows], True), ([], False):
            result = hostile_test.run(["check", *options, model])
            self.assert_kept(result, LARGEST)
            self.assertEqual(b"only a part was examined" in result.output, is_more_than_allowed)


if __name__ == "__main__":
    unittest.main()
