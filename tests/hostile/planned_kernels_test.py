"""Kernels are planned before a run on a device: what a plan searches, compares and keeps; and the names of providers, which findings repeat."""

import itertools
import unittest

import hostile_test
from promise import LARGEST, PromiseTest
from visits_and_probes_test import some_names

RUN = "run --seed 1 --device emulated:0"
# Of what took a third or half of a second: ten times what it takes.
MOMENT = 0.25


class PlannedKernelsTest(PromiseTest):
    def test_chains_that_many_calls_might_replace(self):
        """Each Reshape asks which of the nodes before its shape nobody else reads; they stand in the file last to first."""
        names = some_names(2980, without=set("gXYQ"))
        made, chain = names[:2470], ["Q", *names[2470:]]
        nodes = [f"{name}=Reshape(X,Q)" for name in made] + [f"{name}=Identity({before})" for name, before in itertools.pairwise(chain)]
        nodes += [f"{chain[-1]}=Constant<value_ints=[2,3]>()", f"Y=Sum({','.join(made)})"]
        text = '<ir_version:10,opset_import:["":18]>\ng(float[6] X)=>(float[2,3] Y,int64[2] Q){\n' + "\n".join(nodes) + "\n}\n"
        self.run_within_promise(text.encode(), RUN, name="m.onnxtxt")

    def test_pairs_of_values_that_may_be_a_loss(self):
        lines, first = [], "prediction"
        for i in range(18):
            lines.append(f"m{i} = Mish ({first})")
            first = f"m{i}"
        second = "target"
        for i in range(13):
            lines += [f"a{i} = Identity ({first})", f"b{i} = Identity ({second})"]
            first, second = f"a{i}", f"b{i}"
        lines += [f"d = Sub ({first}, {second})", "e = Abs (d)", "l = ReduceMean <keepdims = 0> (e)"]
        text = '<ir_version: 10, opset_import: ["": 18]>\ng (float[4, 8] prediction, float[4, 8] target) => (float[4, 8] d, float l) {\n' + "\n".join(lines) + "\n}\n"
        self.run_within_promise(text.encode(), RUN, name="m.onnxtxt")

    def test_places_within_a_graph_of_a_long_name(self):
        nodes = "".join(f"{name}=Abs(x)" for name in some_names(3900, without=set("gcxRQY")))
        text = f"""<ir_version:10,opset_import:["":18]>
g(bool c,float[1,4] x)=>(float[1,4] Y){{
Y=If(c)<then_branch={"N" * 20_000}()=>(R){{{nodes}R=Neg(x)}},else_branch=e()=>(Q){{Q=Neg(x)}}>
}}
"""
        self.run_within_promise(text.encode(), f"{RUN} --timings", name="m.onnxtxt")

    def run_at_once(self, text: str) -> None:
        self.assertLessEqual(len(text), LARGEST)
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        self.assert_kept(hostile_test.run([*RUN.split(), path]), len(text), seconds=MOMENT)

    def test_calls_of_one_node_each(self):
        """What a plan keeps of each, and what waits on the device before the host waits for it."""
        names = some_names(5900, without=set("gX"))
        text = f'<ir_version:8,opset_import:["":17]>g(float[1]X)=>({names[-1]}){{{"".join(f"{name}=Neg(X)" for name in names)}}}'
        self.run_within_promise(text.encode(), RUN, name="m.onnxtxt")

    def test_calls_of_many_parts(self):
        parts = ",".join("X" * 64_000)
        text = f'<ir_version:8,opset_import:["":17]>g(float[1]X,int64[3]I)=>(y,z,w){{w=Reshape(X,I)y=Concat<axis=0>({parts})z=Concat<axis=0>({parts})}}'
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        self.assert_kept(hostile_test.run([*RUN.split(), path]), len(text), codes=(2,))

    def test_many_nodes_before_what_many_calls_read(self):
        """A chain of Concats of 36 operands each, which each of the Reshapes might make unused if there were no other."""
        names = some_names(4000, without=set("grXYSs"))
        chain, reshapes = names[:300], names[300:]
        known, before, lines = ["s"], "s", []
        for name in chain:
            others = itertools.islice(itertools.cycle(reversed(known)), 35)
            lines.append(f'{name}=Concat<axis=0>({",".join([before, *others])})')
            before = name
            if len(name) == 1:
                known.append(name)
        lines.append(f"S=Identity({chain[-1]})")
        head = '<ir_version:8,opset_import:["":17]>gr(float[1]X)=>(float Y)<int64[0] s={}>{'
        left = LARGEST - len(head) - sum(map(len, lines)) - len("Y=Reshape(X,S)}")
        for name in reshapes:
            line = f"{name}=Reshape(X,S)"
            left -= len(line)
            if left < 0:
                break
            lines.append(line)
        self.run_at_once(head + "".join(lines) + "Y=Reshape(X,S)}")

    def test_wide_node_that_is_read_many_times(self):
        lines = []
        for i in range(4):
            lines += [f'W{i}=Max(X,{",".join("c" * 8000)})', f'R{i}=Max({",".join([f"W{i}"] * 25)})']
        shape = ",".join("1" * 8)
        text = f'<ir_version:8,opset_import:["":17]>g(float[{shape}]X)=>(R0,R1,R2,R3)<float[{shape}] c={{1.5}}>{{{"".join(lines)}}}'
        self.run_at_once(text)

    def test_operands_that_may_meet_at_each_point_of_a_formula(self):
        """Each two of 48 operands may; and each of 38 nodes has the operands of the one before among its own."""
        nodes, last = ["d=Sub(X,T)", "q=Mul(d,d)"], "q"
        for i in range(38):
            nodes.append(f"m{i}=Max({','.join([last] * 48)})")
            last = f"m{i}"
        same = "\n".join([*nodes, f"L=ReduceMean<keepdims=0>({last})"])
        self.run_at_once(f'<ir_version:8,opset_import:["":18]>\ng(float[2,3]X,float[2,3]T)=>(float L,float[2,3] m0){{\n{same}\n}}\n')
        nodes = ["d=Sub(X,T)", "q=Mul(d,d)", *(f"o{i}=Mul(q,q)" for i in range(48))]
        for i in range(38):
            nodes.append(f"m{i}=Max({','.join(f'o{(i + k) % 48}' for k in range(47))},{f'm{i - 1}' if i else 'q'})")
        distinct = "\n".join([*nodes, "L=ReduceMean<keepdims=0>(m37)"])
        self.run_at_once(f'<ir_version:8,opset_import:["":18]>\ng(float[2,3]X,float[2,3]T)=>(float L,float[2,3] m0){{\n{distinct}\n}}\n')

    def test_provider_of_a_long_name(self):
        nodes = "".join(f"{name}=Abs(x)\n" for name in some_names(3000, without=set("gxY")))
        provider = self.folder / "p.txt"
        provider.write_text("provider " + "n" * 30_000 + "\ndevice npu:0\n")
        text = f'<ir_version:10,opset_import:["":18]>\ng(float x)=>(float Y){{\n{nodes}Y=Neg(x)\n}}\n'
        self.assertLessEqual(len(text) + provider.stat().st_size, LARGEST)
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        self.assert_kept(hostile_test.run(["check", "--placement", "runtime", "--provider", provider, path]), LARGEST, codes=(2,))


if __name__ == "__main__":
    unittest.main()
