"""Small models in text in which passes and rules would walk the same ways again and again, or ways inside of ways."""

import itertools
import unittest

import numpy as np
import wire
from fixes_work_test import short_names
from hostile_test import FINDINGS, run
from promise import PromiseTest
from rules_work_test import ALPHABET

SEVENTEEN_CASTS = [f"k{i + 1}=Add(k{i},small)" for i in range(17)]


def text(inputs, outputs, nodes, *, opset=18, imports="", functions="", initializers=""):
    return f'<ir_version: 8, opset_import: ["" : {opset}{imports}]>\ng ({inputs}) => ({outputs}) {initializers}{{\n{chr(10).join(nodes)}\n}}\n{functions}'.encode()


def chain(op, first, names):
    return [f"{name}={op}({before})" for before, name in itertools.pairwise([first, *names])]


class WalksTest(PromiseTest):
    def work(self, content, *command, name="m.onnxtxt", codes=(0, 1), value=None):
        path = self.folder / name
        path.write_bytes(content)
        result = run([*command, path, *([value] if value else [])])
        self.assert_kept(result, len(content), codes=codes)
        return result.output

    def test_sums_of_sums(self):
        """Each level doubles what the next one has to look at, unless levels are counted."""
        for operator in ("ReduceSum<axes=[0]>(s{})", "CumSum(s{},zero)"):
            with self.subTest(operator):
                nodes = ["s0=Identity(i)"]
                for k in range(30):
                    term = operator.format(k)
                    nodes += [f"r{k}={term}", f"t{k}={term}", f"s{k + 1}=Add(r{k},t{k})"]
                self.work(text("int64[3]i,float[5]d", "y", [*nodes, "y=Gather(d,s30)"], opset=11, initializers="<int64 zero={0}>"), "check")

    def test_sums_in_a_row(self):
        """No stack holds a recursion as deep as a chain may be long."""
        nodes = [f"s{k + 1}=ReduceSum<axes=[0]>(s{k})" for k in range(20_000)]
        self.work(text("int64[3]i,float[5]d", "y", ["s0=Identity(i)", *nodes, "y=Gather(d,s20000)"], opset=11), "check")

    def test_indices_of_many_inputs(self):
        fresh = (f"{name}_" for name in short_names())
        inputs = list(itertools.islice(fresh, 6000))
        nodes = [f"all=Sum({','.join(inputs[:300])})", "a0=MatMul(x,all)"]
        for k in range(30):
            nodes += [f"m{k}=MatMul(x,all)", f"a{k + 1}=Add(a{k},m{k})"]
        nodes += ["i=Cast<to=7>(a30)", *(f"{name}=Gather(d,i)" for name in itertools.islice(fresh, 1000)), "y=ReduceMean<keepdims=0>(x)"]
        self.work(text("float[4,4]x,float[5]d," + ",".join(inputs), "y", nodes), "check")

    def test_ways_around_codes(self):
        fresh = (f"{name}_" for name in short_names())
        codes, losses = list(itertools.islice(fresh, 1000)), list(itertools.islice(fresh, 440))
        nodes = ["w0=MatMul(w,w)", *chain("Tanh", "w0", [f"w{k}" for k in range(1, 406)]), *(f"{name}=Floor(w405)" for name in codes), f"h=Sum({','.join(codes)})",
                 "p=MatMul(h,w)"]
        for name in losses:
            nodes += [f"{name}p=Tanh(p)", f"{name}=SoftmaxCrossEntropyLoss({name}p,t)"]
        weights = "<float[4,4] w={1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}>"
        self.work(text("int64[4]t", "float loss", [*nodes, f"loss=Max({','.join(losses)})"], initializers=weights), "check")

    def test_calls_of_a_function_with_thousands_of_inputs(self):
        fresh = (f"{name}_" for name in short_names())
        inputs = ",".join(itertools.islice(fresh, 7000))
        body = ["b0=Abs(x0)", *(f"b{i}=Sum(b{i - 1},{','.join(['z'] * 46)})" for i in range(1, 38))]
        function = f'<opset_import: ["" : 18], domain: "f">\nF (x0,{inputs},z) => (b37)\n{{\n{chr(10).join(body)}\n}}\n'
        nodes = ["c=f.F(x)", "k=Cast<to=1>(kb)", "p=Mul(k,c)", *(f"{name}=ReduceMin(p)" for name in itertools.islice(fresh, 1000)), "l=ReduceMean<keepdims=0>(p)"]
        self.work(text("float[N]x,bool[N]kb", "float l", nodes, imports=', "f" : 1', functions=function), "check")

    def test_names_that_metadata_nearly_have(self):
        name, logarithms = "%" * 8000, list(itertools.islice(short_names(), 1700))
        cast = wire.node("Cast", [name], ["c."], to=1)
        cast += wire.data(9, wire.data(1, "pkg.torch.onnx.fx_node") + wire.data(2, "%" * 20_000))
        nodes = [cast, *(wire.node("Log", ["c."], [each]) for each in logarithms), wire.node("Sum", logarithms, ["s."]), wire.node("ReduceMean", ["s."], ["l."], keepdims=0)]
        graph = wire.graph(nodes, [wire.value(name, dims=[4])], [wire.data(1, "l.")])
        self.work(wire.model(graph, opsets=(("", 17),)), "check", name="m.onnx")

    def test_origins_of_many_faults_at_the_end_of_a_chain(self):
        for inputs, *options in (("float[N]x,float[N]z", "--device", "x=cuda:0"), ("int64[N]x,float[N]z",)):
            with self.subTest(inputs):
                fresh = (f"{name}_" for name in short_names())
                way = list(itertools.islice(fresh, 12_000))
                faults = list(itertools.islice(fresh, 12_000))
                self.work(text(inputs, faults[-1], [*chain("Neg", "x", way), *(f"{name}=Add({way[-1]},z)" for name in faults)]), "check", *options)

    def test_misspelt_operators_in_each_round_of_fixes(self):
        operators = ("FusedMatmulActivationTransposeBackwar" + "".join(letters) for letters in itertools.product(ALPHABET[:10], repeat=3))
        results = [f"{name}_" for name in itertools.islice(short_names(), 800)]
        nodes = [*(f"{name}=com.microsoft.{operator}(x)" for name, operator in zip(results, operators, strict=False)), f"s=Max({','.join(results)})"]
        self.work(text("float[N]x,float[N]k0,uint8[N]small", "s,k17", [*SEVENTEEN_CASTS, *nodes], imports=', "com.microsoft" : 1'), "fix", "--diff", codes=(0, FINDINGS))

    def test_hinges_after_sums_of_one_value_in_each_round_of_fixes(self):
        nodes = ["q0=Mul(x,x)", *chain("Identity", "q0", [f"q{k}" for k in range(1, 18)]), "a0=Add(q17,q17)", *(f"a{k}=Add(a{k - 1},a{k - 1})" for k in range(1, 9))]
        hinges = [f"{name}_" for name in itertools.islice(short_names(), 3000)]
        nodes += [*(f"{name}=Relu(a8)" for name in hinges), f"s=Sum({','.join(hinges)})", "l=ReduceMean<keepdims=0>(s)"]
        self.work(text("float[N]x,float[N]k0,float16[N]small", "float l,k17", [*SEVENTEEN_CASTS, *nodes]), "fix", "--unsafe", "--diff", codes=(0, FINDINGS))

    def test_losses_of_the_largest_of_thousands_of_operands(self):
        nodes = [f"u=Max({','.join(['w'] * 8000)})", f"v=Max({','.join(['u'] * 8000)})"]
        losses = [f"{name}_" for name in itertools.islice(short_names(), 470)]
        for name in losses:
            nodes += [f"{name}d=Sub(p,v)", f"{name}a=Abs({name}d)", f"{name}=ReduceMean<keepdims=0>({name}a)"]
        nodes.append(f"l=Max({','.join(losses)})")
        self.work(text("float[N,8]p,float[N,1]w,float[N]k0,uint8[N]small", "float l,k17", [*SEVENTEEN_CASTS, *nodes]), "fix", "--diff", codes=(0, FINDINGS))

    def test_copies_for_many_readers_in_deep_bodies(self):
        fresh = short_names()

        def readers():
            return [wire.node("Det", ["x."], [next(fresh)]) for _ in range(1200)]

        def condition(depth):
            nodes, made, other, result = readers() if depth == 50 else [], next(fresh), next(fresh), next(fresh)
            inner = "x."
            if depth < 50:
                node, inner = condition(depth + 1)
                nodes.append(node)
            nodes.append(wire.node("Neg", [inner], [made]))
            branches = wire.graph(nodes, outputs=[wire.data(1, made)], name="t"), wire.graph([wire.node("Neg", ["x."], [other])], outputs=[wire.data(1, other)], name="e")
            return wire.node("If", ["c."], [result], then_branch=("g", branches[0]), else_branch=("g", branches[1])), result

        node, result = condition(1)
        graph = wire.graph([*readers(), node, wire.node("Neg", [result], ["y."])], [wire.value("x.", dims=[4, 4]), wire.value("c.", wire.BOOL, [])], [wire.data(1, "y.")])
        self.work(wire.model(graph, opsets=(("", 17),)), "place", "--device", "cuda:0", name="m.onnx")

    def test_copies_of_one_name_in_thousands_of_functions(self):
        functions, nodes = [], []
        for name in itertools.islice(short_names(), 8500):
            body = [wire.node("Abs", ["a"], ["x"]), wire.node("Neg", ["x"], ["y"])]
            functions.append(wire.data(1, name) + wire.data(4, "a") + wire.data(5, "y") + b"".join(wire.data(7, node) for node in body) + wire.data(9, wire.number(2, 18)) + wire.data(10, "l"))
            nodes.append(wire.node(name, ["a."], [""], domain="l"))
        graph = wire.graph([*nodes, wire.node("Abs", ["a."], ["z."])], [wire.value("a.", dims=["N"])], [wire.data(1, "z.")])
        (self.folder / "tensorlint.toml").write_text('placement-file="p.toml"\n')
        (self.folder / "p.toml").write_text('place=[{values="x",device="cuda"},{values="y",device="cpu"}]\n')
        self.work(wire.model(graph, functions, opsets=(("", 18), ("l", 1))), "place", name="m.onnx")

    def test_faults_behind_hundreds_of_conditions(self):
        """Each names conditions under which it fails, and not all of them."""
        fresh, count = short_names(), 220
        conditions, results = ([f"{name}{'_' * 30}" for name in itertools.islice(fresh, count)], list(itertools.islice(fresh, count)))
        nodes = [wire.node("Split", ["z."], conditions, axis=0, num_outputs=count)]
        for condition, before, result in zip(conditions, ["x.", *results], results, strict=False):
            branches = (wire.graph([], outputs=[wire.data(1, name)], name="") for name in (before, "w."))
            nodes.append(wire.node("If", [condition], [result], then_branch=("g", next(branches)), else_branch=("g", next(branches))))
        nodes += [wire.node("Add", [results[-1], "w."], [name]) for name in itertools.islice(fresh, 1900)]
        inputs = [wire.value("x.", dims=["N"]), wire.value("w.", dims=["N"]), wire.value("z.", wire.BOOL, ["N"])]
        content = wire.model(wire.graph(nodes, inputs, [wire.data(1, results[-1])]), opsets=(("", 18),))
        for command in (["check"], ["fix", "--diff"]):
            self.work(content, *command, "--device", "x.=cuda", "--device", "w.=cpu", "--device", "z.=cpu", name="m.onnx")

    def test_branches_that_differ_after_one_condition_of_many_values(self):
        operands = list(itertools.islice(short_names(), 8500))
        branches = [wire.graph([wire.node("Abs", [name], ["t"])], outputs=[wire.data(1, "t")], name="") for name in ("x.", "z.")]
        nodes = [wire.node("Max", operands, ["s."]), wire.node("Cast", ["s."], ["c."], to=9)]
        nodes += [wire.node("If", ["c."], [f"r{k}"], then_branch=("g", branches[0]), else_branch=("g", branches[1])) for k in range(190)]
        graph = wire.graph(nodes, [wire.value("x.", dims=[4]), wire.value("z.", dims=[4, 4])], [wire.data(1, "r0")])
        self.work(wire.model(graph, opsets=(("", 17),)), "check", name="m.onnx")

    def test_states_that_a_loop_returns_as_it_got_them(self):
        """Each state is compared with each output of each iteration, and that with each state that is handed on."""
        fresh, count = short_names(), 1050
        states, made, last, stacked = (list(itertools.islice(fresh, count)) for _ in range(4))
        ends = [wire.data(1, name) for name in states]
        body = wire.graph([wire.node("Neg", [states[0]], [name]) for name in made], [wire.data(1, "i."), wire.data(1, "k."), *ends],
                          [wire.data(1, "k."), *ends, *(wire.data(1, name) for name in made)], name="b")
        loop = wire.node("Loop", ["t.", "c.", *["x."] * count], last + stacked, body=("g", body))
        inputs = [wire.value("x.", dims=[4]), wire.value("t.", wire.INT64, []), wire.value("c.", wire.BOOL, [])]
        self.work(wire.model(wire.graph([loop], inputs, [wire.data(1, name) for name in last]), opsets=(("", 17),)), "check", name="m.onnx")

    def test_where_extents_of_a_long_list_began(self):
        way = list(itertools.islice(short_names(), 3000))
        shape = b"".join(wire.data(1, b"") for _ in range(64))
        value = wire.data(1, "x.") + wire.data(2, wire.data(1, wire.number(1, 1) + wire.data(2, shape)))
        zeros = wire.number(1, 900) + wire.number(2, wire.INT64) + wire.data(8, "k.") + wire.data(7, bytes(900))
        nodes = [wire.node("Shape", ["x."], ["s."]), wire.node("Concat", ["k.", "s."], ["c."], axis=0)]
        nodes += [wire.node("Identity", [before], [name]) for before, name in itertools.pairwise(["c.", *way])]
        graph = wire.graph(nodes, [value], [wire.data(1, way[-1])], [zeros])
        output = self.work(wire.model(graph, opsets=(("", 17),)), "why", name="m.onnx", value=way[-1])
        self.assertIn(b"began at `c.`", output)

    def test_unrecorded_nodes_before_many_values(self):
        """Each value that is compared names some of the nodes before it, not all of a long chain."""
        recorded = self.folder / "recorded"
        recorded.mkdir()
        np.save(recorded / "x.npy", np.ones(1, np.float32))
        way, ends = list(itertools.islice(short_names(), 2500)), [f"e{k}" for k in range(300)]
        nodes = [wire.node("Abs", [before], [name], name=name * 8) for before, name in itertools.pairwise(["x.", *way])]
        nodes += [wire.node("Neg", [way[-1]], [name]) for name in ends] + [wire.node("Max", way, ["y."])]
        for name in ends:
            np.save(recorded / f"{name}.npy", -np.ones(1, np.float32))
        (recorded / "x.npy").rename(recorded / "x..npy")
        np.save(recorded / "y..npy", np.ones(1, np.float32))
        outputs = [wire.value(name, dims=[1]) for name in [*ends, "y."]]
        content = wire.model(wire.graph(nodes, [wire.value("x.", dims=[1])], outputs), opsets=(("", 17),))
        output = self.work(content, "compare", "--against", recorded, "--format", "json", name="m.onnx")
        self.assertLess(len(output), 4 * len(content))


if __name__ == "__main__":
    unittest.main()
