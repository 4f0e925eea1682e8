"""What `run` and `compare` do beside computing: they show and write outputs, hand on sequences, call functions, and know where nodes were written."""

import itertools
import json
import struct
import unittest

import hostile_test
import wire
from onnx import TensorProto, ValueInfoProto, helper
from promise import LARGEST, PromiseTest, branches_with_loops
from visits_and_probes_test import some_names

RUN = "run --seed 1"
COMPARE = "compare --against emulated:0"
HEAD = '<ir_version:8,opset_import:["":17,"f":1]>'


def model_of(nodes, inputs, outputs, initializers=()) -> bytes:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def named(name: str, dtype=TensorProto.FLOAT):
    return helper.make_value_info(name, helper.make_tensor_type_proto(dtype, []))


def shape_of_rank_64(first: int):
    return helper.make_tensor("s", TensorProto.INT64, [64], [first] + [1] * 63)


class RunsAndReportsTest(PromiseTest):
    def test_one_sequence_that_is_many_outputs(self):
        nodes = [helper.make_node("ConstantOfShape", ["s"], ["v"]), helper.make_node("SequenceConstruct", ["v"] * 64, ["q"])]
        outputs = [ValueInfoProto(name="q")] * 12_000
        self.run_within_promise(model_of(nodes, [], outputs, [shape_of_rank_64(64)]), RUN)

    def test_one_tensor_that_is_many_outputs(self):
        outputs = [ValueInfoProto(name="v")] * 12_000
        self.run_within_promise(model_of([helper.make_node("ConstantOfShape", ["s"], ["v"])], [], outputs, [shape_of_rank_64(1)]), RUN)

    def test_outputs_are_shown_up_to_a_limit_and_counted(self):
        names = some_names(3000, without=set("gx"))
        text = f"{HEAD}g(float[2]x)=>({','.join(names)}){{{''.join(f'{name}=Abs(x)' for name in names)}}}"
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        result = hostile_test.run([*RUN.split(), path])
        self.assert_kept(result, len(text), codes=(0,))
        lines = result.output.decode().splitlines()
        self.assertEqual(len(lines), 1001)
        self.assertRegex(lines[-1], r"^2000 more outputs: --outputs DIR writes all of them$")

    def test_one_value_that_is_many_outputs_is_recorded_once(self):
        text = f"{HEAD}g(float x)=>({','.join('y' * 30_000)}){{y=Abs(x)}}"
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        result = hostile_test.run([*COMPARE.split(), path])
        self.assert_kept(result, len(text), codes=(0,), seconds=0.5)

    def test_many_outputs_are_recorded_in_one_file(self):
        names = some_names(3000, without=set("gx"))
        text = f"{HEAD}g(float x)=>({','.join(names)}){{{''.join(f'{name}=Abs(x)' for name in names)}}}"
        self.run_within_promise(text.encode(), COMPARE, name="m.onnxtxt")

    def test_a_sequence_that_many_nodes_read(self):
        names = some_names(1300, without=set("xqz"))
        nodes = [helper.make_node("SequenceConstruct", ["x"] * 10_000, ["q"])]
        for operator in ("Identity", "SequenceLength"):
            readers = [helper.make_node(operator, ["q"], [name]) for name in names]
            last = helper.make_node("SequenceLength", ["q"], ["z"])
            self.run_within_promise(model_of([*nodes, *readers, last], [named("x")], [named("z", TensorProto.INT64)]), RUN, f"{RUN} --check-facts")

    def test_calls_of_a_function_with_many_attributes(self):
        names = some_names(5600, without=set("gxyFfg"))
        calls = "".join(f"{name}=f.F(x)" for name in names[:2300])
        defaults = ",".join(f"{name}=1" for name in names)
        text = f'{HEAD}g(float x)=>(float y){{y=f.F(x){calls}}}<domain:"f",opset_import:["":17]>F<{defaults}>(x)=>(y){{y=Abs(x)}}'
        self.run_within_promise(text.encode(), RUN, f"{RUN} --device emulated:0", name="m.onnxtxt")

    def test_calls_of_a_function_with_many_results(self):
        names = some_names(2700, without=set("gxyFfg"))
        calls = "".join(f"{name}=f.F(x)" for name in names)
        results = ",".join("y" * 14_000)
        text = f'{HEAD}g(float x)=>(float y){{y=f.F(x){calls}}}<domain:"f",opset_import:["":17]>F(x)=>({results}){{y=Abs(x)}}'
        self.run_within_promise(text.encode(), RUN, f"{RUN} --device emulated:0", name="m.onnxtxt")

    def test_calls_of_a_function_with_many_operands(self):
        names = some_names(4500, without=set("gxyFfg"))
        calls = "".join(f"{name}=f.F(x)" for name in names[:2500])
        text = f'{HEAD}g(float x)=>(float y){{y=f.F(x){calls}}}<domain:"f",opset_import:["":17]>F(x,{",".join(names)})=>(y){{y=Abs(x)}}'
        self.run_within_promise(text.encode(), RUN, f"{RUN} --device emulated:0", name="m.onnxtxt")

    def test_nodes_of_a_model_below_a_long_path(self):
        """The path is not of the file, but each node has it for its place."""
        folder = self.folder
        for _ in range(18):
            folder /= "d" * 200
        folder.mkdir(parents=True)
        names = some_names(5500, without=set("gx"))
        text = f"{HEAD}g(float x)=>({names[-1]}){{{''.join(f'{name}=Abs(x)' for name in names)}}}"
        (folder / "values").mkdir()
        (folder / "values" / f"{names[-1]}.pb").write_bytes(helper.make_tensor(names[-1], TensorProto.FLOAT, [], [1.0]).SerializeToString())
        (folder / "values" / "x.pb").write_bytes(helper.make_tensor("x", TensorProto.FLOAT, [], [1.0]).SerializeToString())
        path = folder / "m.onnxtxt"
        path.write_text(text)
        self.assertLessEqual(len(text), LARGEST)
        result = hostile_test.run(["compare", "--against", folder / "values", path])
        self.assert_kept(result, len(text))
        self.assertLess(result.memory, 52 << 20)

    def test_calls_that_fail_at_a_node_of_a_long_name(self):
        """Each of them says why it is not compared."""
        calls = "".join(f"{name}=f.F(z,i)" for name in some_names(2700, without=set("gziFfy")))
        text = f'{HEAD}g(float[3]z,int64[1]i)=>(float[1]y){{{calls}y=Gather(z,i)}}<domain:"f",opset_import:["":17]>F(z,i)=>(y){{[{"n" * 30_000}]y=Gather(z,i)}}'
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        self.assertLessEqual(len(text), LARGEST)
        (self.folder / "values").mkdir()
        for name, tensor in (("z", helper.make_tensor("z", TensorProto.FLOAT, [3], [1.0] * 3)), ("i", helper.make_tensor("i", TensorProto.INT64, [1], [7]))):
            (self.folder / "values" / f"{name}.pb").write_bytes(tensor.SerializeToString())
        self.assert_kept(hostile_test.run(["compare", "--against", self.folder / "values", path]), len(text), codes=(0, 1, 2))

    def test_many_results_of_a_node_that_all_differ(self):
        """Each is examined further, for which all results of the node are computed again and again."""
        count = 900
        nodes = [wire.node("Sqrt", [f"s{i}" if i else "x"], [f"s{i + 1}"]) for i in range(16)]
        names = [f"r{i}" for i in range(count)]
        nodes += [wire.node("Split", ["s16"], names)]
        model = self.folder / "m.onnx"
        model.write_bytes(wire.model(wire.graph(nodes, [wire.value("x", dims=[count])], [wire.data(1, "s16")]), opsets=(("", 13),)))
        values = [wire.tensor("x", wire.FLOAT, [count], struct.pack("<f", 1) * count), *(wire.tensor(name, wire.FLOAT, [1], struct.pack("<f", 2)) for name in names)]
        (self.folder / "values").mkdir()
        (self.folder / "values/v.initializers").write_bytes(wire.model(wire.graph([], initializers=values)))
        for options in ([], ["--chained"], ["--format", "json"]):
            with self.subTest(options):
                result = hostile_test.run(["compare", model, "--against", self.folder / "values", *options])
                self.assert_kept(result, 1 << 16, codes=(1,))
                self.assertIn(b"conditions were not looked for", result.output)

    def test_loops_that_never_run_are_not_analysed_in_each_stage(self):
        """0.2 s in the check, which says that it spent its allowance; 1.2 s when each stage spent one of its own."""
        losses = "".join(f"{name}=Exp(x)" for name in some_names(1900, without=set("gxytlhosqckvibp")))
        text = f"{HEAD}g(float[N]x,float[M]y)=>(float[P]o)<int64 t={{16}},float h={{1e30}}>{{s=ReduceSum<keepdims=0>(x)l=Greater(s,h)o=If(l)<{branches_with_loops()}>{losses}}}"
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        checked = hostile_test.run(["check", "-q", path])
        self.assertIn(b"only a part was examined", checked.output)
        for command in (COMPARE, RUN):
            result = hostile_test.run([*command.split(), path])
            self.assert_kept(result, len(text), codes=(0,), seconds=0.7)

    def test_stages_that_each_take_most_of_their_allowance(self):
        """Six analyses: the check, and those for inputs, the plan, what is compared, and in two interpreters what no iteration gives."""
        steps, last = "", "c2"
        for i in range(18):
            branches = f"then_branch=t()=>(y){{y=Add({last},i0)}},else_branch=f()=>(d){{d=Sub({last},i1)}}"
            steps += f"l{i}=Less({last},i2)a{i}=If(l{i})<{branches}>"
            last = f"a{i}"
        nested = f"{steps}v2=Identity({last})"
        for depth in (2, 1, 0):
            nested = f"Loop<body=b(i{depth},q{depth},c{depth})=>(k{depth},v{depth}){{{nested}k{depth}=Identity(q{depth})}}>(t,,{f'c{depth - 1}' if depth else 'e'})"
            nested = f"v{depth - 1}={nested}" if depth else f"w={nested}"
        never = "m=Cast<to=7>(l)z=Loop<body=b(i,q)=>(k,r){k=Identity(q)r=Relu(x)}>(m,\"\")"
        branches = f"then_branch=b()=>(u){{{nested}u=Cast<to=1>(w)}},else_branch=b()=>(p){{p=Identity(s)}}"
        text = f"{HEAD}g(float[N]x)=>(float o,int64[K]j)<int64 t={{16}},int64 e={{0}},float h={{1e30}}>{{s=ReduceSum<keepdims=0>(x)l=Greater(s,h){never}j=Shape(z)o=If(l)<{branches}>}}"
        text = f"#{' ' * (LARGEST - len(text) - 2)}\n{text}"
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        checked = hostile_test.run(["check", "-q", "--timings", "--format", "json", path])
        self.assertNotIn(b"only a part was examined", checked.output)
        work = json.loads(checked.output)["inputs"][0]["work"]
        self.assertGreater(work["steps"], 0.3 * work["steps_allowed"])
        for command in (COMPARE, f"{COMPARE} --chained", f"{RUN} --device emulated:0", f"{RUN} --check-facts"):
            with self.subTest(command):
                self.assert_kept(hostile_test.run([*command.split(), path]), len(text), codes=(0,), seconds=0.45)

    def test_a_pattern_is_compiled_once_for_many_calls(self):
        """0.13 s each; a program of 8 MiB took several times as much of memory."""
        calls = "".join(f"{name}=f.F(s)" for name in some_names(20, without=set("gsyFf")))
        text = f'{HEAD.replace("17", "20")}g()=>(bool[1] y)<string[1] s={{"a"}}>{{{calls}y=f.F(s)}}<domain:"f",opset_import:["":20]>F(x)=>(y){{y=RegexFullMatch<pattern="((.{{10}}){{30}})">(x)}}'
        self.run_within_promise(text.encode(), RUN, name="m.onnxtxt")
        for pattern in ("(\\\\PN{900})", "\\\\pL?" * 12_000):
            text = f'{HEAD.replace("17", "20")}g()=>(bool[1] y)<string[1] s={{"a"}}>{{y=RegexFullMatch<pattern="{pattern}">(s)}}'
            self.run_refused(text, b"pattern")

    def run_refused(self, text: str, why: bytes) -> None:
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        result = hostile_test.run([*RUN.split(), path])
        self.assert_kept(result, len(text), codes=(2,))
        self.assertIn(why, result.errors)

    def test_gradients_of_a_loss_in_a_loop_are_kept_up_to_a_limit(self):
        body = "body=b(i,q,c)=>(k,v){k=Identity(q) d=Sub(a,z)e=Mul(d,d)v=ReduceMean<keepdims=0>(e)}"
        text = f"{HEAD}g(float[2]a,float[2]z,float c)=>(float y)<int64 t={{1200}}>{{y=Loop<{body}>(t,,c)}}"
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        result = hostile_test.run([*RUN.split(), "--device", "emulated:0", "--gradient", path])
        self.assert_kept(result, len(text), codes=(0,), seconds=10)  # of the emulator
        lines = result.output.decode().splitlines()
        self.assertEqual(len(lines), 1 + 1000 + 1)
        self.assertEqual(lines[-1], "200 more gradients")

    def test_parts_of_a_large_result_that_kernels_write_one_by_one(self):
        """The emulator follows the elements that a kernel writes, not all of the result for each part."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 800])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [800, 800])
        joined = helper.make_node("Concat", ["x"] * 800, ["y"], axis=0)
        self.run_within_promise(model_of([joined], [x], [y]), f"{RUN} --device emulated:0", f"{COMPARE}")

    def test_results_that_name_nodes_before_them_and_elements_of_64_axes(self):
        """The report is written result by result: 29 MB of JSON, and some 200 MB as one document."""
        names = some_names(5800, without=set("x"))
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [len(names)] + [1] * 63)
        way = ["x", *(f"{i}." for i in range(16))]
        nodes = [helper.make_node("Neg", [a], [b], name="\1" * 50 + b) for a, b in itertools.pairwise(way)]
        outputs = [ValueInfoProto(name=name) for name in names]
        content = model_of([*nodes, helper.make_node("Split", way[-1:], names, axis=0)], [x], outputs)
        self.run_within_promise(content, f"{COMPARE} --format json -o {self.folder}/report.json")

    def test_facts_of_empty_tensors_and_numbers_are_not_kept_for_each_iteration(self):
        for kind, empty, step, start in (("float", "[1,0]", "Concat<axis=0>(a,e)", "float[1,0] e={}"), ("int64", "", "Add(a,i)", "int64 e={7}")):
            text = f"""{HEAD}g()=>({kind} y)<int64 n={{600000}},bool t={{1}},{start}>{{
                y=Loop<body=b(int64 i,bool c,{kind}{empty.replace("1", "K")} a)=>(bool d,{kind} z){{d=Identity(c) z={step}}}>(n,t,e)}}"""
            path = self.folder / "m.onnxtxt"
            path.write_text(text)
            with self.subTest(kind):
                result = hostile_test.run([*RUN.split(), path])
                self.assertEqual(result.code, 0, result.errors)
                self.assertLess(result.memory, 64 << 20)

    def test_one_product_of_many_operands(self):
        text = f'{HEAD}g(float[1]x)=>(float y){{y=Einsum<equation="{",".join("i" * 16_000)}->">({",".join("x" * 16_000)})}}'
        self.run_within_promise(text.encode(), RUN, name="m.onnxtxt")


if __name__ == "__main__":
    unittest.main()
