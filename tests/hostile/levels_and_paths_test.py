"""What lies in levels: sequences of sequences, graphs within graphs and their paths, attributes of calls within calls; results of branches past
those that are asked for; and long names and numbers that are read at each visit or finding."""

import itertools
import json
import string
import unittest

import hostile_test
import wire
from compared_again_test import HEAD, filled, loops
from promise import LARGEST, PromiseTest
from visits_and_probes_test import some_names

FUNCTION = '<domain:"l",opset_import:["":21,"l":1]>'


def empty_graphs(count, depth, name, asked=0):
    """In an attribute of a node, so deep; beside reshapes of sizes that are asked for."""
    many = wire.data(1, "z") + wire.data(11, b"") * count + wire.number(20, 10)
    inner = wire.graph([wire.data(4, "A") + wire.data(7, "q") + wire.data(5, many)], name=name)
    for _ in range(depth):
        inner = wire.graph([wire.node("A", [], [], domain="q", g=("g", inner))], name=name)
    nodes = [wire.node("Reshape", [f"I{i}", f"R{i}"], [f"O{i}"]) for i in range(asked)] + [wire.node("A", [], [], domain="q", g=("g", inner))]
    inputs = [wire.value(f"I{i}", wire.FLOAT, [f"a{i}"]) for i in range(asked)]
    shapes = [wire.integers(f"R{i}", [-1, (8, 16, 32, 4)[i % 4]]) for i in range(asked)]
    graph = wire.graph(nodes, inputs, [wire.data(1, f"O{i}") for i in range(asked)], shapes)
    return wire.model(graph, opsets=(("", 21), ("q", 1)), ir_version=10)


class LevelsAndPaths(PromiseTest):
    def test_results_of_branches_past_those_of_the_if(self):
        values = [letter for letter in string.ascii_letters if letter not in "xkgaTCbo"][:26]
        inputs = ",".join(f"float[{','.join(str(1 + (i + k) % 3) for k in range(64))}]{value}" for i, value in enumerate(values))
        given = ",".join(itertools.islice(itertools.cycle(values), 5000))
        branches = f"y_=If(k)<then_branch=a()=>({given},y0){{}},else_branch=b()=>({given},y1){{}}>"
        text = f"{HEAD}g(int64 x,bool k,{inputs},float[3]y0,float[4]y1)=>(v4_)<int64 T={{16}},bool C={{1}}>{{{loops(branches)}}}\n"
        self.run_within_promise(filled(text), "check", name="m.onnxtxt")

    def test_graphs_that_each_probe_orders(self):
        self.run_within_promise(empty_graphs(20_500, 60, "", asked=25), "check", "contract")

    def test_paths_of_graphs(self):
        self.run_within_promise(empty_graphs(14_000, 60, b"\xff" * 500), "show", "show --format json")

    def test_uses_deep_in_bodies_on_a_cycle(self):
        body = f"b()=>(P){{P=Max({','.join('h' * 28_000)})}}"
        for _ in range(61):
            body = f"b()=>(Q){{Q=If(C)<then_branch={body},else_branch=e()=>(X){{}}>}}"
        early, late = ("".join(each.format(i) for i in range(16)) for each in ("u{0}_=Abs(p{0}_)", "p{0}_=Abs(G)"))
        sums = "".join(f"k{i + 1}_=Add(k{i}_,H)" for i in range(17))
        users = ",".join(f"u{i}_" for i in range(16))
        text = f"{HEAD}g(float X,bool C,float[2]k0_,float16[2]H)=>(G,k17_){{{early}h=Max({users})G=If(C)<then_branch={body},else_branch=e()=>(X){{}}>{late}{sums}}}\n"
        self.run_within_promise(text.encode(), "fix --unsafe --diff", name="m.onnxtxt")

    def test_types_of_sequences_that_loops_carry(self):
        names = some_names(1500, without=set("sxTCjdMaAB"))
        kind = "seq(" * 15 + "float" + ")" * 15
        inner = f"=Loop(T,C,{','.join('s' * 1500)})<body=q(j,d,{','.join(names)})=>(d,{','.join([names[0]] * 1500)}){{=Abs(j)}}>"
        text = f"{HEAD}g(int64 x,{kind} s,float[n,k]A,float[n,p]B)=>(v3_)<int64 T={{16}},bool C={{1}}>{{q_=Concat<axis=0>(A,B){loops(inner, depth=3)}}}\n"
        self.run_within_promise(filled(text), "check", name="m.onnxtxt")

    def test_sequences_among_operands_of_unknown_results(self):
        results = some_names(6000, without=set("xgzlFkDq"))
        kind = "seq(" * 15 + "float" + ")" * 15
        text = f"{HEAD}g({kind} x)=>({results[0]}){{{','.join(results)}=l.F({','.join('x' * 15_000)})}}\n{FUNCTION}F(k)=>({','.join('z' * 6000)}){{q=l.U()z=Compress(q,q)}}\n"
        self.run_within_promise(text.encode(), "show", name="m.onnxtxt")

    def test_attributes_of_calls_within_calls(self):
        names = some_names(5000, without={"a", "l", "zz"})
        calls = "".join(f"{FUNCTION}F{i}()=>(){{=l.G<a={i}>()=l.F{i + 1}()}}\n" for i in range(185))
        text = f"{HEAD}g(float x)=>(x){{=l.F0()}}\n{FUNCTION}G<a>()=>(){{=l.Q<zz:int=@a,{','.join(f'{name}=1' for name in names)}>()}}\n{calls}{FUNCTION}F185()=>(){{}}\n"
        self.run_within_promise(text.encode(), "check", name="m.onnxtxt")

    def test_names_of_unused_inputs_for_each_undefined_operand(self):
        letters = string.ascii_letters + string.digits
        undefined = ["".join(each) for each in itertools.islice(itertools.chain(itertools.product(letters, repeat=2), itertools.product(letters, repeat=3)), 9800)]
        inputs = [wire.data(1, b"\x01" * 3260 + letter) for letter in (b"a", b"b", b"c", b"d")]
        many = wire.node("Q", undefined, ["0"], domain="q")
        self.run_within_promise(wire.model(wire.graph([many], inputs, [wire.data(1, "0")]), opsets=(("", 21), ("q", 1)), ir_version=10), "check")

    def test_a_long_name_in_the_notes_of_all_findings(self):
        names = [b"\x01" * 3250 + letter for letter in (b"a", b"b", b"c")]
        results = itertools.chain.from_iterable(itertools.product(string.ascii_letters, repeat=letters) for letters in (2, 3))
        nodes = [wire.node("Identity", [name], [str(i)]) for i, name in enumerate(names)] + [wire.node("And", ["0", "2"], ["".join(next(results))]) for _ in range(2580)]
        inputs = [wire.value(name, dtype, dims) for name, dtype, dims in zip(names, (wire.FLOAT, wire.INT64, wire.FLOAT), ([3, 5], [3, 5], [4, 5]))]
        (self.folder / "baseline.json").write_text(json.dumps({"schema": 1, "findings": []}))
        model = wire.model(wire.graph(nodes, inputs, [wire.data(1, "0")]), opsets=(("", 21),), ir_version=10)
        self.run_within_promise(model, "check", f"check --baseline {self.folder / 'baseline.json'}")

    def test_numbers_in_texts(self):
        """Halfway between two numbers, which takes long to tell."""
        texts = ",".join(f'"{2 * i + 9007199254740993}{"0" * 4}e{270 + i % 20}"' for i in range(600))
        text = f"{HEAD}g(int64 x)=>(v4_)<int64 T={{16}},bool C={{1}}>{{{loops(f'q_=Constant<value=string[600]t{{{texts}}}>()')}}}\n"
        self.run_within_promise(filled(text), "check", name="m.onnxtxt")

    def test_results_that_each_iteration_of_a_placed_loop_adds(self):
        inner, again = "p=Loop(I,C,t)<body=q(j,d,L)=>(d,L){}>", "p2=Loop(I2,C,t)<body=q2(j2,d2,L2)=>(d2,L2){}>"
        outputs = ",".join("xz"[i % 2] for i in range(28_000))
        loop = f"=If(k)<then_branch=h()=>(){{r=Loop(T,C,t)<body=e(I2,K2,A2)=>(K2,A2,{outputs}){{{again}}}>}},else_branch=h()=>(){{}}>"
        text = f"""<ir_version:10,opset_import:["":21,"l":1],metadata_props:["tensorlint.device:u":"cuda:0"]>
g(float u,float t,bool k,float w,bool m,bool n)=>(float y)<int64 T={{1000}},bool C={{1}}>{{
z=If(m)<then_branch=zz()=>(u){{}},else_branch=zz()=>(w){{}}>
x=If(n)<then_branch=zz()=>(u){{}},else_branch=zz()=>(w){{}}>
y=Loop(T,C,t)<body=b(I,K,A)=>(K,A){{{inner} {loop}}}>}}
"""
        self.run_within_promise(text.encode(), "check", name="m.onnxtxt")


class FilesBesideModels(PromiseTest):
    def held(self, text, *options):
        model = self.folder / "m.onnxtxt"
        left = LARGEST - sum(path.stat().st_size for path in self.folder.iterdir())
        content = filled(text, left) if len(text) < left - 64 else text.encode()
        self.assertLessEqual(len(content), left)
        model.write_bytes(content)
        self.assert_kept(hostile_test.run([*options, model]), LARGEST)

    def signature(self, inputs, outputs):
        path = self.folder / "operators.toml"
        path.write_text(f'[[operator]]\ndomain="l"\nname="F"\ninputs={json.dumps(inputs)}\noutputs={json.dumps(outputs)}\n')
        return "--signatures", path

    def called(self, call, depth):
        return f"{HEAD}g(int64 x)=>(v{depth}_)<int64 T={{16}},bool C={{1}}>{{{loops(call, depth=depth)}}}\n"

    def test_names_of_extents_of_results(self):
        names = [name for name in some_names(9800) if name[0] != "_"][: 150 * 64]
        options = self.signature([], [f"bool[{','.join(names[i * 64 : (i + 1) * 64])}]" for i in range(150)])
        self.held(self.called(f"{','.join(f'r{i}_' for i in range(150))}=l.F()", 2), "check", *options)

    def test_operands_that_do_not_fit(self):
        options = self.signature(["bool[]"] * 1500, ["bool[]"])
        self.held(self.called(f"=l.F({','.join('x' * 1500)})", 4), "check", *options)

    def test_type_variables_of_operands(self):
        names = [name for name in some_names(60_000) if name[0].isupper()][:1500]
        options = self.signature([f"{name}[]" for name in names], ["bool[]"])
        self.held(self.called(f"=l.F({','.join('x' * 1500)})", 4), "check", *options)

    def test_type_variables_of_kernels(self):
        letters = [letter for letter in string.ascii_letters + string.digits if letter != "T"]
        row = f"Max 13+ {' '.join(f'{letter}=bool' for letter in letters[:59])} max=bool\n"
        path = self.folder / "provider.txt"
        path.write_text(f"provider z\ndevice cuda:0\n{row * 80}")
        self.held(f"{HEAD}g(float x)=>(y){{y=Max({','.join('x' * 15_300)})}}\n", "check", "--placement", "runtime", "--provider", path)


if __name__ == "__main__":
    unittest.main()
