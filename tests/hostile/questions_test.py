"""Small models on which rules ask again and again for what is known already, or look through long lists with each answer."""

import itertools
import json
import pathlib
import tempfile
import unittest

import wire
from fixes_work_test import short_names
from hostile_test import CLEAN, FINDINGS, run

WEIGHTS = 15  # an axis keeps 16 sources


class Text:
    """A model in text, made node by node."""

    def __init__(self):
        self.names = short_names()
        self.inputs, self.initializers, self.nodes = [], [], []

    def input(self, kind):
        self.inputs.append(f"{kind} {(name := next(self.names))}")
        return name

    def constant(self, kind, values):
        self.initializers.append(f"{kind} {(name := next(self.names))}={{{','.join(map(str, values))}}}")
        return name

    def node(self, op, /, *operands, **attributes):
        given = f"<{','.join(f'{name}={value}' for name, value in attributes.items())}>" if attributes else ""
        self.nodes.append(f"{(name := next(self.names))}={op}{given}({','.join(operands)})")
        return name

    def unsqueezed(self, value, axes):
        return self.node("Unsqueeze", value, self.constant(f"int64[{len(axes)}]", axes))

    def mean(self, value):
        return self.node("ReduceMean", value, keepdims=0)

    def spread(self, values, rank):
        """A value of so many axes, each of which comes from all of these vectors."""
        known = {1: self.node("Sum", *values)}

        def of(axes):
            if axes not in known:
                half = axes // 2
                known[axes] = self.node("Add", self.unsqueezed(of(half), range(half, axes)), self.unsqueezed(of(axes - half), range(half)))
            return known[axes]

        return of(rank)

    def weights(self):
        return [self.constant("float[2]", [0, 1]) for _ in range(WEIGHTS)]

    def many_symbols(self, inputs):
        """Each of its 64 axes may have any extent of any of the inputs."""
        extents = ("".join(letters) for letters in itertools.product("bcdefghijklmnopqrstuvwxyz", repeat=3))
        values = [self.input(f"float[{','.join(itertools.islice(extents, 64))}]") for _ in range(inputs)]
        while len(values) > 1:
            values = [self.node("Add", *values[i:i + 2]) if i + 1 < len(values) else values[i] for i in range(0, len(values), 2)]
        value = values[0]
        for step in (1, 2, 4, 8, 16, 32):
            value = self.node("Add", value, self.node("Transpose", value, perm=str([i ^ step for i in range(64)])))
        return value

    def content(self, *outputs):
        constants = f"<{','.join(self.initializers)}>" if self.initializers else ""
        return (f'<ir_version:10,opset_import:["":21]>\ng({",".join(self.inputs)})=>({",".join("float " + name for name in outputs)})\n{constants}{{\n'
                + "\n".join(self.nodes) + "\n}\n").encode()


def undefined(count, metadata):
    """As many findings at one node, which has metadata."""
    names = list(itertools.islice(short_names(), count))
    node = wire.node("Sum", names, ["o."]) + b"".join(wire.data(9, wire.data(1, key) + wire.data(2, text)) for key, text in metadata.items())
    return wire.model(wire.graph([node], [wire.value("x.", dims=[1])], [wire.data(1, "o.")]), opsets=(("", 21),))


class QuestionsTest(unittest.TestCase):
    def check(self, content, name="m.onnxtxt"):
        """The report, within the promises of SECURITY.md."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name)
            path.write_bytes(content)
            result = run(["check", "--format", "json", "--timings", path])
        self.assertIn(result.code, (CLEAN, FINDINGS), result.errors[:500])
        self.assertLess(result.cpu, max(1, len(content) / (1 << 16)))
        report = json.loads(result.output)
        self.assertLess(report["inputs"][0]["peak_rss_bytes"], (64 << 20) + 40 * len(content))
        return report

    def test_pairs_of_axes_of_pairs_of_operands_of_each_loss(self):
        text = Text()
        x, y = text.input("float[N,4]"), text.input("float[N,4]")
        rows, columns = text.spread(text.weights(), 30), text.unsqueezed(text.spread(text.weights(), 30), range(30, 60))
        rows, columns = (text.node("Transpose", value, perm=str(list(range(rank)))) for value, rank in ((rows, 30), (columns, 60)))
        losses = []
        for _ in range(190):
            difference = text.node("Sub", x, y)
            losses.append(text.mean(text.node("Mul", difference, difference)))
        self.check(text.content(text.mean(text.node("Max", *[columns, rows] * 16, *losses))))

    def test_pairs_of_axes_of_each_sum(self):
        text = Text()
        inputs = [text.input("float[K]") for _ in range(2 * WEIGHTS)]
        batch = text.input("float[B,K]")
        for weight in inputs[:-1]:
            text.node("MatMul", batch, weight)
        rows, columns = text.spread(inputs[:WEIGHTS], 32), text.unsqueezed(text.spread(inputs[WEIGHTS:], 32), range(32, 64))
        condition, value = text.node("Cast", columns, to=9), text.node("Add", columns, rows)
        for _ in range(400):
            value = text.node("Where", condition, rows, value)
        mean = text.mean(value)
        self.check(text.content(*(text.node("Neg", mean) for _ in range(16))))

    def test_batches_among_sources_of_all_axes(self):
        text = Text()
        x = text.input("float[N,4]")
        wide = text.node("Add", text.unsqueezed(x, range(58)), text.unsqueezed(text.spread(text.weights(), 58), [58, 59]))
        largest = [text.node("ReduceMax", x, keepdims=0) for _ in range(1200)]
        while len(largest) > 1:
            largest = [text.node("Add", *largest[i:i + 2]) if i + 1 < len(largest) else largest[i] for i in range(0, len(largest), 2)]
        value, sums = largest[0], []
        for _ in range(36):
            sums += [text.node("Add", value, wide) for _ in range(15)]
            value = text.node("Neg", value)
        self.check(text.content(text.mean(text.node("Sum", value, *sums))))

    def test_turned_axes_of_thousands_of_operands(self):
        text = Text()
        x = text.input("float[2,2,2,2]")
        same = text.node("Sum", *(text.constant("float[1,1,2,2]", [0, 1, 1, 2]) for _ in range(12)))
        wide = text.node("Sum", *[same] * 12_000, text.node("Transpose", x, perm="[0,1,3,2]"))
        self.check(text.content(text.mean(text.node("Max", *(text.node("Add", wide, x) for _ in range(1900))))))

    def test_symbols_of_all_axes_in_a_note(self):
        text = Text()
        value = text.many_symbols(230)
        self.check(text.content(text.node("Conv", value, text.constant("float[1,1,3,3]", [1] * 9))))

    def test_symbols_of_an_extent_in_each_witness(self):
        text = Text()
        value = text.many_symbols(8)
        twice = text.node("Concat", value, value, axis=-1)
        report = self.check(text.content([text.node("Add", value, twice) for _ in range(2000)][-1]))
        self.assertIn(" more: ", report["findings"][0]["witness"]["case"])

    def test_attributes_for_each_evaluation_of_a_formula(self):
        text = Text()
        x, y, z = (text.input("float[N,4]") for _ in range(3))
        unknown = dict.fromkeys(itertools.islice(short_names(), 6000), 1)
        sigmoid = text.node("HardSigmoid", z, **unknown)
        losses = [text.mean(text.node("Add", text.node("Mul", x, y), sigmoid)) for _ in range(370)]
        self.check(text.content(text.node("Max", *losses[:190]), text.node("Max", *losses[190:])))

    def test_attributes_for_each_evaluation_of_an_index(self):
        text = Text()
        x, y, data = text.input("float[4]"), text.input("float[4]"), text.input("float[10,4]")
        unknown = dict.fromkeys(itertools.islice(short_names(), 4000), 1)
        index = text.node("Cast", text.node("Add", text.node("HardSigmoid", x, **unknown), y), to=7)
        self.check(text.content([text.node("Gather", data, text.node("Clip", index)) for _ in range(1100)][-1]))

    def test_operands_of_a_wide_node_for_each_reader_of_a_product(self):
        text = Text()
        one, shape = text.constant("float", [1]), text.constant("int64[2]", [2, 8])
        values = list(itertools.islice(text.names, 5000))
        text.nodes.append(f"{','.join(values)}=Split<num_outputs=5000>({text.input('float[10000,8]')})")
        rows = text.node("Reshape", text.node("Sum", *values), shape)
        product = text.node("MatMul", rows, text.node("Transpose", rows))
        for _ in range(1900):
            text.node("Sub", product, one)
        self.check(text.content(text.node("Relu", product)))

    def test_stack_trace_of_many_findings(self):
        line = ', line 1, in f\n  x\nFile "{}", line 2, in g\n  y\n'
        slow = 'File "a.py"' + line.format("/" * 58_000)
        for trace in (slow, f'File "{"x" * 900_000}.py"' + line.format("u.py"), "\n" * 58_000):
            with self.subTest(trace[:20]):
                self.check(undefined(1000, {"pkg.torch.onnx.stack_trace": trace}), "m.onnx")

    def test_module_of_many_findings(self):
        self.check(undefined(1000, {"pkg.torch.onnx.name_scopes": f"['', '{'m' * 900_000}', 'x']"}), "m.onnx")

    def test_long_names_in_fixes(self):
        """A name in a message is cut; one in an edit is needed whole, and charged."""
        long = "q" * 450_000
        text = Text()
        x = text.input("float[B,S,D]")
        text.inputs.append(f"int64 {long}_length")
        lengths = text.node("Identity", long + "_length")
        self.check(text.content([text.node("Gather", x, lengths, axis=1) for _ in range(1000)][-1]))
        text = Text()
        text.inputs += [f"float[N] {long}", "int64[N] i"]
        self.check(text.content([text.node("Add", long, "i") for _ in range(1000)][-1]))

    def test_long_extents_in_each_violation(self):
        names = list(itertools.islice(short_names(), 3500))
        nodes = [wire.node("Add", ["p.", "q."], [name], name=f"{name}1/") for name in names]
        inputs = [wire.value("p.", dims=[3, "L" * 4060]), wire.value("q.", dims=[4, "M" * 4060])]
        self.check(wire.model(wire.graph(nodes, inputs, [wire.data(1, names[0])]), opsets=(("", 21),)), "m.onnx")


if __name__ == "__main__":
    unittest.main()
