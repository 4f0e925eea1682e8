"""Small models, in text and binary, on which fixes and the rules that propose them would work long."""

import itertools
import re
import unittest

import wire
from hostile_test import CLEAN, FINDINGS, VERDICT, run
from promise import PromiseTest, branches_with_loops
from rules_work_test import ALPHABET, names

HEADER = '<ir_version: 8, opset_import: ["" : 18]>\n'
INTEGERS = wire.value("i", wire.INT64, ["N"]), wire.value("j", wire.INT64, ["N"])


def in_text(nodes, result="float[N] y"):
    return (HEADER + f"g (float[N] x, float16[N] h) => ({result}) {{\n{nodes}\n}}\n").encode()


def chain_of_text(calls):
    """Nodes as text: (operator, operands, results)."""
    return "\n".join(f"{','.join(results)}={op}({','.join(operands)})" for op, operands, results in calls)


def short_names():
    """Of two letters and more, so that many nodes fit."""
    return ("".join(letters) for length in (2, 3) for letters in itertools.product(ALPHABET, repeat=length))


def dead_nodes(readers):
    """Nodes without a use that read the same nodes, with one node after them and one beside them."""
    shared, feeders = list("abcdef"), list(itertools.islice(short_names(), readers))
    return [*(("Abs", ["x"], [name]) for name in shared), *(("Max", shared, [name]) for name in feeders), ("Max", feeders, ["l"]),
            ("Max", shared, ["m"]), ("Abs", ["x"], ["y"])]


def quotients(divisions, users):
    """Quotients that one value is computed from, which many nodes read."""
    fresh = short_names()
    current = list(itertools.islice(fresh, divisions))
    nodes = [("Div", ["i", "j"], [name]) for name in current]
    while len(current) > 1:
        pairs = [current[k:k + 2] for k in range(0, len(current), 2)]
        current = [pair[0] if len(pair) == 1 else next(fresh) for pair in pairs]
        nodes += [("Sub", pair, [name]) for pair, name in zip(pairs, current, strict=True) if len(pair) == 2]
    return [*nodes, *(("Sub", [current[0], "j"], [next(fresh)]) for _ in range(users)), ("ReduceMean", ["x"], ["y"])]


def known_codes():
    return sorted(set(re.findall(r"TL-[A-Z]\d+", run(["rules"]).output.decode())))


class FixesWorkTest(PromiseTest):
    def work(self, content, name, *commands, codes):
        """What the commands print, within the promise of SECURITY.md."""
        path = self.folder / name
        path.write_bytes(content)
        results = [run([*command, path]) for command in commands]
        for result in results:
            self.assertIn(result.code, codes, result.errors[:500])
            self.assertLess(result.cpu, max(1, len(content) / (1 << 16)))
        return [result.output.decode() for result in results]

    def test_why_lists_thousands_of_inputs_in_part(self):
        sides = list(itertools.islice(short_names(), 1200))
        axes = b"".join(wire.data(1, b"") for _ in range(8))
        inputs = [wire.data(1, name) + wire.data(2, wire.data(1, wire.number(1, 1) + wire.data(2, axes))) for name in sides]
        path = self.folder / "m.onnx"
        path.write_bytes(wire.model(wire.graph([wire.node("Sum", sides, ["y"])], inputs, [wire.data(1, "y")])))
        result = run(["why", path, "y"])
        self.assertEqual(result.code, CLEAN)
        self.assertLess(result.cpu, 1)
        said = result.output.decode().splitlines()
        self.assertIn("(and 1000 more inputs and initializers)", said)
        self.assertEqual(sum(line == "  it is an input" for line in said), 200)
        self.assertEqual(sum(line.startswith("?") for line in said), 200)
        self.assertEqual(said[-1], "(and 1400 more such extents)")

    def test_one_node_of_many_operands_that_change(self):
        half = "h," * 31_000
        diff, = self.work(in_text(f"y=Max(x,{half}x)"), "m.onnxtxt", ["fix", "--unsafe", "--diff"], codes=[CLEAN])
        self.assertIn("y = Max (x, h_float32_0, h_float32_0,", diff)

    def test_such_nodes_in_branches(self):
        half = "h," * 14_000
        branches = ",".join(f"{name}=b()=>(o){{o=Max(x,{half}x)}}" for name in ("then_branch", "else_branch"))
        self.work(f"{HEADER}g (bool c, float[N] x, float16[N] h) => (float[N] y) {{\ny=If(c)<{branches}>\n}}\n".encode(), "m.onnxtxt", ["fix", "--unsafe", "--diff"], codes=[CLEAN])

    def test_a_line_of_many_nodes_that_change(self):
        for count, blanks in ((5000, ""), (3400, " " * 20_000)):
            wrong = " ".join(f"{name}=Add(x,h)" for name in itertools.islice(short_names(), count))
            self.work(in_text(f"y=Tanh(x) {blanks}{wrong}"), "m.onnxtxt", ["fix", "--unsafe", "--diff"], codes=VERDICT)

    def within_memory(self, content, name, *command):
        path = self.folder / name
        path.write_bytes(content)
        result = run([*command, path])
        self.assert_kept(result, len(content), codes=VERDICT)
        return result

    def test_nodes_that_move_before_a_line_of_many_blanks(self):
        fresh, count = short_names(), 1380
        late, way = list(itertools.islice(fresh, count)), list(itertools.islice(fresh, count))
        for before in (" " * 30_000, "#\n" * 15_000):
            lines = [f"{before}{way[0]}=Max({','.join(late)})", *(f"{name}=Abs({last})" for last, name in itertools.pairwise(way)), *(f"{name}=Abs(x)" for name in late)]
            content = f"{HEADER}g (float[N] x) => (float[N] {way[-1]}) {{\n{chr(10).join(lines)}\n}}\n".encode()
            out = self.folder / "o.onnxtxt"
            self.within_memory(content, "m.onnxtxt", "fix", "-o", out)
            self.assertLess(out.stat().st_size, 3 * len(content))

    def test_comments_in_each_round_of_fixes(self):
        (self.folder / "tensorlint.toml").write_text('ignore="TL-G615"\n')
        codes = [code for code in known_codes() if code != "TL-D107"]
        head = "".join(f"#tensorlint:ignore[{code}]r\n" for code in codes)
        sums = chain_of_text(("Add", [before, "h"], [name]) for before, name in itertools.pairwise(["x", *itertools.islice(short_names(), 18)]))
        comment = "#tensorlint:ignore[TL-V,TL-L,TL-G]r\n"
        content = in_text(f"{head}{comment * ((64_000 - len(head)) // len(comment))}{sums}\ny=Abs(x)")
        self.within_memory(content, "m.onnxtxt", "fix", "--unsafe", "-o", self.folder / "o.onnxtxt")

    def test_dead_nodes_that_share_what_they_read(self):
        both = ["check"], ["fix", "--diff"]
        text = in_text(chain_of_text(dead_nodes(2800)))
        nodes = [wire.node(op, operands, results) for op, operands, results in dead_nodes(2000)]
        binary = wire.model(wire.graph(nodes, [wire.value("x", dims=["N"])], [wire.data(1, "y")]))
        for content, name in ((text, "m.onnxtxt"), (binary, "m.onnx")):
            self.assertIn("TL-G612", self.work(content, name, *both, codes=VERDICT)[0])

    def test_what_only_feeds_dead_nodes_goes_with_them(self):
        """A producer goes with the last of its readers, and stays where a reader does."""
        nodes = [("Tanh", ["x"], ["a"]), ("Tanh", ["x"], ["b"]), ("Add", ["a", "a"], ["c"]), ("Max", ["c", "a", "b"], ["dead"]), ("Add", ["b", "x"], ["y"])]
        path = self.folder / "m.onnxtxt"
        path.write_bytes(in_text(chain_of_text(nodes)))
        self.assertEqual(run(["fix", "-o", path, path]).code, CLEAN)
        self.assertEqual([line for line in path.read_text().splitlines() if "(x" in line or "(b" in line], ["b=Tanh(x)", "y=Add(b,x)"])

    def test_quotients_with_users_in_common(self):
        text = HEADER + f"g (int64[N] i, int64[N] j, float[N] x) => (y) {{\n{chain_of_text(quotients(1000, 2300))}\n}}\n"
        nodes = [wire.node(op, operands, results) for op, operands, results in quotients(700, 2000)]
        binary = wire.model(wire.graph(nodes, [*INTEGERS, wire.value("x", dims=["N"])], [wire.data(1, "y")]))
        for content, name in ((text.encode(), "m.onnxtxt"), (binary, "m.onnx")):
            self.work(content, name, ["check"], ["fix", "--diff"], codes=VERDICT)

    def test_an_index_of_many_quotients_and_uses(self):
        divisions = "\n".join(f"{name}=Div(i,c)\nf{name}=Cast<to=1>({name})" for name in names("d", 1000))
        text = f"{HEADER}g (float[7] e, int64[N] i) => (float y) <int64 c = {{8}}> {{\n{divisions}\nz=Max({','.join(['i'] * 10_000)})\ng=Gather(e,i)\ny=ReduceMean<keepdims=0>(g)\n}}\n"
        self.work(text.encode(), "m.onnxtxt", ["check"], codes=[FINDINGS])

    def test_lists_and_shapes_of_many_operands_before_many_violations(self):
        """A quarter of a megabyte: a look at each violation is not one at all that another node reads."""
        wrong = "\n".join(f"{name}=Reshape(x,m)" for name in names("r", 7000))
        lists = f"g (float[3] x) => (y) <int64[1] c = {{5}}, int64[0] e = {{}}> {{\nm=Concat<axis=0>(c{',e' * 55_000})\n{wrong}\ny=Neg(x)\n}}\n"
        wrong = "\n".join(f"{name}=Add(r,z)" for name in names("v", 12_000))
        shapes = f"g (float[3] x, float[4] z) => (y) <float[9] q> {{\nq=Relu(x)\ny=Add(q,z)\nr=Concat<axis=0>(x{',x' * 45_000})\n{wrong}\n}}\n"
        for text in (lists, shapes):
            self.assertIn("1 error" if text is lists else "2 errors", self.work((HEADER + text).encode(), "m.onnxtxt", ["check"], ["fix", "--unsafe", "--diff"], codes=VERDICT)[0])

    def test_the_diff_of_a_wide_type_of_an_output_that_is_listed_many_times(self):
        """13 s and 2 GiB where each listing has the type."""
        dims, again = ",".join("?" * 15_000), ",y" * 15_000
        heads = {
            "graph": f"g(float[N] x,int64[N] k)=>(float[{dims}] y{again}){{y=Add(x,k)}}",
            "body": f"g(float[N] x,int64[N] k,bool c)=>(z){{z=If(c)<then_branch=t()=>(float[{dims}] y{again}){{y=Add(x,k)}},else_branch=e()=>(z){{z=Abs(x)}}>}}",
        }
        for kind, graph in heads.items():
            with self.subTest(kind):
                self.run_within_promise(f'<ir_version:10,opset_import:["":21]>\n{graph}'.encode(), "fix --unsafe --diff", name="m.onnxtxt")

    def test_what_could_not_be_examined_after_fixes_is_not_clean(self):
        """Each round brings the next sum of a chain to light, and reading bodies within bodies takes most of what all rounds may cost."""
        sums = "".join(f"k{i + 1}=Add(k{i},i)\n" for i in range(20))
        body = "# c\n" * 14_500 + "r=Abs(k0)\n"
        for depth in range(62):
            body = f"o{depth}=If(c)<then_branch=t()=>({f'o{depth - 1}' if depth else 'r'}){{{body}}},else_branch=e()=>(s){{s=Abs(k0)}}>\n"
        text = f'<ir_version:10,opset_import:["":21]>\ng(float[N] k0,int64[N] i,bool c)=>(y,z){{\n{sums}z=Abs(k20)\n{body}y=Abs(o61)\n}}'
        self.assertLess(len(text), 1 << 16)
        (self.folder / "m.onnxtxt").write_text(text)
        fixed = run(["fix", "--unsafe", "-o", self.folder / "fixed.onnxtxt", self.folder / "m.onnxtxt"])
        self.assert_kept(fixed, len(text), codes=(FINDINGS,))
        self.assertRegex(fixed.output.decode(), r"left: error \[TL-D\d+ mixed-operand-dtypes\](?s:.*)1 finding more can be fixed in a second run")
        self.assertNotIn(b"only a part was examined", fixed.output)
        again = run(["fix", "--unsafe", "-o", self.folder / "all.onnxtxt", self.folder / "fixed.onnxtxt"])
        self.assertIn(b"fixed mixed-operand-dtypes", again.output)

    def test_a_fixed_model_that_needs_more_than_its_allowance_is_not_clean(self):
        unsorted = "l=Greater(s,h)s=ReduceSum<keepdims=0>(x)"
        text = f'<ir_version:8,opset_import:["":17]>g(float[N]x,float[M]y)=>(float[P]o)<int64 t={{16}},float h={{1e30}}>{{{unsorted} o=If(l)<{branches_with_loops()}>}}'
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        fixed = run(["fix", "--diff", path])
        self.assert_kept(fixed, len(text), codes=(FINDINGS,))
        self.assertRegex(fixed.output, rb"fixed (?s:.*)only a part was examined")
        self.assertNotIn(b"left: ", fixed.output)
        (self.folder / "tensorlint.toml").write_text('fail-on = "never"\n')
        self.assertEqual(run(["fix", "--diff", path]).code, CLEAN)


if __name__ == "__main__":
    unittest.main()
