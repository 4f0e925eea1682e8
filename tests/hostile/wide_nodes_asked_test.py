"""Nodes of thousands of attributes that are asked for one at each step of a walk, and lists that are searched for each of many questions."""

import itertools
import string
import unittest

import hostile_test
from promise import PromiseTest

WIDE = "__=0,"  # an attribute that nobody asks for


class WideNodesAskedTest(PromiseTest):
    def run_text(self, text: str, *commands: str) -> None:
        self.run_within_promise(text.encode(), *commands, name="m.onnxtxt")

    def test_an_origin_that_leads_back_to_itself(self):
        """Through a Loop and an If of 4,000 attributes each, for each of 900 findings."""
        findings = "".join(f"a{i}=Add(w,x)\n" for i in range(900))
        self.run_text(f"""<ir_version:10,opset_import:["":18],metadata_props:["tensorlint.device:t":"cuda:0"]>
m(float[4] x,float[4] t,bool k,int64 n,bool c0)=>(float[4] y){{
y=Loop<{WIDE * 4000}body=b(int64 i,bool c,float[4] v)=>(bool c2,float[4] w){{
c2=Identity(c) e=ReduceSum<keepdims=0>(v) kk=Cast<to=9>(e)
w=If<{WIDE * 4000}then_branch=g()=>(float[4] p){{p=Identity(v)}},else_branch=h()=>(float[4] q){{q=Identity(t)}}>(kk)
{findings}}}>(n,c0,x)
}}
""", "check", "fix --diff")

    def test_a_wide_if_beside_results_of_a_scan_that_are_read_backwards(self):
        results = ",".join(f"r{i}" for i in range(150))
        self.run_text(f"""<ir_version:10,opset_import:["":18]>m(float[8] x,bool c)=>(float[8] y){{
{results}=Scan<num_scan_inputs=1,scan_input_directions=[1],body=b(float z)=>({",".join(["z"] * 150)}){{}}>(x)
w=If<{WIDE * 6000}then_branch=g()=>(x){{}},else_branch=h()=>(x){{}}>(c)
y=Sum({results}{",w" * 14_000})
}}
""", "check")

    def test_extents_that_are_looked_for_in_long_contents(self):
        """Calls of 300 operands with ten extents each, and of 63 lists of a thousand numbers."""
        shapes = [",".join(extents) for extents in itertools.islice(itertools.permutations(string.ascii_uppercase[:13], 10), 300)]
        names = ["".join(pair) for pair in itertools.islice(itertools.product(string.ascii_lowercase, string.ascii_lowercase), 300)]
        operands = ",".join(names)
        function = (f'<domain:"d",opset_import:["":18]>F(Z,{operands})=>({"K," * 63}L)'
                    f"{{K=Constant<value=int64[1000]{{{','.join(['1'] * 1000)}}}>()L=Shape(Z)}}\n")
        inputs = ",".join(f"float[{shape}]{name}" for shape, name in zip(shapes, names))
        text = f'<ir_version:10,opset_import:["":18,"d":1]>m(float[{",".join(string.ascii_uppercase[:13])}]Z,{inputs})=>(y){{y=Abs(Z)\n'
        for call in itertools.product(string.ascii_lowercase, string.ascii_lowercase):
            results = ",".join(f"{letter}{digit}{''.join(call)}" for letter in string.ascii_uppercase[:7] for digit in range(10))
            line = f"{','.join(results.split(',')[:64])}=d.F(Z,{operands})\n"
            if len(text) + len(line) + len(function) > 64_500:
                break
            text += line
        self.run_text(f"{text}}}\n{function}", "check", "contract")

    def test_names_of_underscores_beside_names_of_pairs(self):
        """Each part of a name is compared with words, for each operand behind each difference."""
        for part in ("_", "nag_"):
            name = part * (256 // len(part))
            text = f'<ir_version:10,opset_import:["":18]>m(float[4] pos,float[4] neg,float[4] {name})=>(float y){{s=Sum({",".join([name] * 100)})\n'
            for result in itertools.product(string.ascii_letters, string.ascii_letters, "_"):
                text += f"{''.join(result)}=Sub(s,s)"
                if len(text) > 64_500:
                    break
            with self.subTest(part):
                self.run_text(f"{text}y=ReduceSum<keepdims=0>(pos)}}\n", "check")

    def test_globs_that_a_name_all_but_matches_everywhere(self):
        """In each of sixteen rounds of fixes."""
        nodes, last = "", "X"
        for i in range(17):
            nodes += f"a{i}=Add({last},I)\n"
            last = f"a{i}"
        text = f"""<ir_version:8,opset_import:["":17]>
g(float[4]X,int64[4]I,float[4]{"a" * 30_000})=>(Y){{
{nodes}Y=Identity({last})}}
"""
        rows = ",".join(['{device="cpu",values="*baaa*"}'] * 950)
        (self.folder / "place.toml").write_text(f"place=[{rows}]\n")
        self.run_text(text, *(f"{command} --placement-file {self.folder / 'place.toml'}" for command in ("check", "fix --diff", "fix --unsafe --diff")))

    def test_edits_that_give_thousands_of_operands_a_long_name(self):
        """To use what was cast is advice in the larger ones, which get another cast instead."""
        for length, operands, made in ((16_000, 15_000, b"c_float"), (4000, 3000, b"c_float"), (4000, 300, b"+++")):
            name = "V" * length
            text = f'<ir_version:8,opset_import:["":17]> g (float[3] {name}, float[3] f)=>(y){{c=Cast<to=7>({name}) y=Concat<axis=0>(f,{",".join(["c"] * operands)})}}'
            with self.subTest(f"{operands} operands"):
                self.run_text(text, "check", "fix --unsafe --diff", "check --format json")
                diff = hostile_test.run(["fix", "--unsafe", "--diff", self.folder / "m.onnxtxt"])
                self.assertIn(made, diff.output)
                self.assertEqual(b"c_float" in diff.output, made == b"c_float")
                self.assertIn(b"which `c` is cast from", hostile_test.run(["check", self.folder / "m.onnxtxt"]).output)


if __name__ == "__main__":
    unittest.main()
