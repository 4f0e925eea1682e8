"""Small models on which passes and rules beside the inference would work long, or keep much."""
import itertools
import json
import resource
import subprocess
import unittest

import hostile_test
import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.helper import make_function, make_graph, make_node, make_opsetid, make_tensor_value_info
from promise import PromiseTest

ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def names(prefix: str, count: int) -> list[str]:
    """Short ones, so that many fit."""
    return [prefix + "".join(letters) for letters in itertools.islice(itertools.product(ALPHABET, repeat=3), count)]


def value(name: str, shape: list | None = None, dtype: int = TensorProto.FLOAT) -> ValueInfoProto:
    return make_tensor_value_info(name, dtype, shape)


def untyped(name: str) -> ValueInfoProto:
    return ValueInfoProto(name=name)


def on(device: str, node: NodeProto) -> NodeProto:
    node.metadata_props.add(key="tensorlint.device", value=device)
    return node


def model(nodes: list[NodeProto], inputs: list, outputs: list, *, initializers: tuple = (), functions: tuple = (), opset: int = 18) -> bytes:
    proto = ModelProto(ir_version=10, graph=make_graph(nodes, "g", inputs, outputs, list(initializers)))
    proto.opset_import.extend([make_opsetid("", opset), make_opsetid("f", 1)])
    proto.functions.extend(functions)
    return proto.SerializeToString()


def function(name: str, inputs: list[str], output: str, nodes: list[NodeProto]):
    return make_function("f", name, inputs, [output], nodes, [make_opsetid("", 18), make_opsetid("f", 1)])


def loss(prediction: str, target: str, output: str) -> list[NodeProto]:
    return [make_node("Sub", [prediction, target], ["d" + output]), make_node("Abs", ["d" + output], ["e" + output]),
            make_node("ReduceMean", ["e" + output], [output], keepdims=0)]


class RulesWorkTest(PromiseTest):
    def check(self, content: bytes, *options: str, seconds: float | None = None) -> dict:
        """The report, within the promise of SECURITY.md, or in so many seconds."""
        self.path.write_bytes(content)
        result = hostile_test.run(["check", "--format", "json", "--timings", *options, self.path])
        self.assertIn(result.code, (0, 1), result.errors[:500])
        self.assertLess(result.cpu, seconds or max(1, len(content) / (1 << 16)))
        report = json.loads(result.output)
        followed = 64 << 20 if "runtime" in options else 0  # runs are followed node by node
        self.assertLess(report["inputs"][0]["peak_rss_bytes"], (64 << 20) + followed + 40 * len(content))
        return report

    def test_calls_of_functions_that_are_no_arithmetic(self) -> None:
        """Each reads three calls of the one before it."""
        nodes, last = [], "x"
        for i in range(19):
            nodes += [make_node("F", [last], [f"a{i}{j}"], domain="f") for j in range(3)]
            nodes.append(make_node("Sum", [f"a{i}{j}" for j in range(3)], [f"c{i}"]))
            last = f"c{i}"
        nodes.append(make_node("ReduceMean", [last], ["loss"], keepdims=0))
        body = function("F", ["x"], "y", [make_node("Softmax", ["x"], ["y"])])
        self.check(model(nodes, [value("x", ["N", "C"])], [untyped("loss")], functions=(body,)))

    def test_terms_of_thousands_of_operands(self) -> None:
        terms = names("t", 590)
        nodes = [make_node("Sum", ["x", "y", *["x"] * 8000], ["s"]), make_node("Sub", ["s", "y"], ["d"]),
                 *[make_node("Tanh", ["d"], [term]) for term in terms], make_node("Concat", terms, ["all"], axis=0),
                 *[make_node("ReduceSum", ["all"], [f"loss{i}"], keepdims=0) for i in range(34)]]
        self.check(model(nodes, [value("x", ["N"]), value("y", ["N"])], [untyped(f"loss{i}") for i in range(34)]))

    def test_a_loss_among_thousands_of_operands(self) -> None:
        nodes = [*loss("p", "t", "l"), make_node("Max", ["l"] * 19_000, ["loss"])]
        self.check(model(nodes, [value("p", ["N", 1]), value("t", ["N", 1])], [untyped("loss")]))

    def test_many_losses_with_long_ways_to_the_output(self) -> None:
        losses = names("l", 250)
        nodes = [node for name in losses for node in loss("p", "t", name)]
        nodes.append(make_node("Max", losses, ["g0"]))
        nodes += [make_node("Max", [f"g{i}", *(losses[j % 250] for j in range(60))], [f"g{i + 1}"]) for i in range(200)]
        self.check(model(nodes, [value("p", ["N", 3]), value("t", ["N", 3])], [untyped("g200")]))

    def test_copies_to_many_devices_in_a_loop(self) -> None:
        parts = [f"p{i}" for i in range(15)]
        body: GraphProto = make_graph(
            [make_node("Split", ["s"], parts, num_outputs=15, axis=0), *[on(f"cuda:{i}", make_node("Sum", parts, [f"q{i}"])) for i in range(40)],
             make_node("Identity", ["c"], ["d"]), make_node("Identity", ["s"], ["r"])],
            "body", [value("k", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("s", [15])],
            [value("d", [], TensorProto.BOOL), value("r", [15])])
        trips = numpy_helper.from_array(np.array(1_000_000, np.int64), "trips")
        self.check(model([make_node("Loop", ["trips", "", "x"], ["y"], body=body)], [value("x", [15])], [value("y", [15])], initializers=(trips,)),
                   "--placement", "runtime")

    def test_constants_of_a_body_that_never_ends(self) -> None:
        constants = [numpy_helper.from_array(np.array(i, np.int64), name) for i, name in enumerate(names("i", 100))]
        body = make_graph([make_node("Identity", ["c"], ["d"])], "body", [value("k", [], TensorProto.INT64), value("c", [], TensorProto.BOOL)],
                          [value("d", [], TensorProto.BOOL)], constants)
        trips = numpy_helper.from_array(np.array(1_000_000, np.int64), "trips")
        self.check(model([make_node("Loop", ["trips", ""], [], body=body)], [], [], initializers=(trips,)), "--placement", "runtime")

    def test_name_of_a_file_in_the_notes_of_a_thousand_findings(self) -> None:
        split = make_node("Split", ["x", "sizes"], ["a", "b"], axis=0)
        split.metadata_props.add(key="pkg.torch.onnx.stack_trace", value=f'File "{"q" * 40_000}.py", line 1, in f\n')
        sums = [make_node("Add", ["a", "b"], [name]) for name in names("y", 900)]
        sizes = numpy_helper.from_array(np.array([4, 3], np.int64), "sizes")
        report = self.check(model([split, *sums], [value("x", [7])], [untyped("yaaa")], initializers=(sizes,)))
        [place] = {note["file"] for finding in report["findings"] for note in finding["notes"] if note.get("file")}
        self.assertIn("qqq", place)

    def test_axes_given_thousands_of_times_to_one_output(self) -> None:
        nodes = [make_node("ReduceMean", ["x"], ["y"], axes=[i % 4 for i in range(14_000)], keepdims=0)]
        self.check(model(nodes, [value("x", list("NABC"))], [untyped("y")] * 5500, opset=17))

    def test_inputs_that_many_transposes_share(self) -> None:
        nodes = []
        for i in range(16):
            for j, turned in enumerate(names(f"t{i}", 16)):
                operands = ["w", turned] if j == 15 else ["w", *[turned] * 15]
                nodes += [make_node("Transpose", [f"x{i}"], [turned]), make_node("MatMul" if j == 15 else "Sum", operands, [f"m{turned}"])]
            nodes.append(make_node("Reshape", [f"x{i}", "shape"], [f"y{i}"]))
        nodes += [make_node("Sum", [f"y{i}" for i in range(16)], [name]) for name in ("a", "b")]
        nodes += [node for name in names("l", 450) for node in loss("a", "b", name)]
        shape = numpy_helper.from_array(np.array([2] * 50, np.int64), "shape")
        self.check(model(nodes, [*[value(f"x{i}", ["N"]) for i in range(16)], value("w", ["K", "N"])], [untyped("laaa")], initializers=(shape,)))

    def test_values_of_64_axes_from_16_inputs(self) -> None:
        axes = [f"n{i}" for i in range(64)]
        chain = names("v", 24_000)
        nodes = [make_node("Add", [f"s{i}" if i else "i0", f"i{i + 1}"], [f"s{i + 1}"]) for i in range(15)]
        nodes += [make_node("Neg", [a], [b]) for a, b in itertools.pairwise(["s15", *chain])]
        nodes += loss(chain[-1], "t", "loss")
        self.check(model(nodes, [*[value(f"i{i}", axes) for i in range(16)], value("t", axes)], [untyped("loss")]))

    def test_a_node_that_reads_a_dead_one_thousands_of_times(self) -> None:
        nodes = [make_node("Relu", ["x"], ["p"]), make_node("Sum", ["p"] * 21_600, ["a"]), make_node("Neg", ["p"], ["b"]), make_node("Abs", ["x"], ["y"])]
        self.check(model(nodes, [value("x", ["N"])], [value("y", ["N"])]))

    def test_undefined_names_beside_unused_inputs(self) -> None:
        inputs, read = names("i", 50_000), names("u", 60_000)
        nodes = [make_node("And", [read[2 * i], read[2 * i + 1]], [name]) for i, name in enumerate(names("v", 30_000))]
        self.check(model(nodes, [value(name) for name in inputs], [untyped("vaaa")]), seconds=3)

    def test_inputs_of_a_body_that_many_violations_precede(self) -> None:
        wrong = [make_node("Add", ["f", "i"], [name]) for name in names("v", 1200)]
        carried = names("b", 250)
        def integer(name: str, shape: list | None = None) -> ValueInfoProto:
            return value(name, shape, TensorProto.INT64)

        graph = make_graph([make_node("Identity", ["c"], ["d"])], "b", [integer("k", []), value("c", [], TensorProto.BOOL), *[integer(b) for b in carried]],
                           [value("d", [], TensorProto.BOOL), *[integer(b) for b in carried]])
        nodes = [make_node("Loop", ["trips", "", *["f"] * 250], ["w"], body=graph), make_node("Add", ["s0", "k0"], ["r0"])]
        for depth in range(5):
            nodes.append(make_node("Identity", [f"c{depth}"], [f"d{depth}"]))
            outer = make_graph(nodes, "o", [integer(f"k{depth}", []), value(f"c{depth}", [], TensorProto.BOOL), integer(f"s{depth}", [])],
                               [value(f"d{depth}", [], TensorProto.BOOL), integer(f"r{depth}", [])])
            nodes = [make_node("Loop", ["trips", "", f"s{depth + 1}" if depth < 4 else "zero"], [f"r{depth + 1}" if depth < 4 else "y"], body=outer)]
        numbers = tuple(numpy_helper.from_array(np.array(n, np.int64), name) for n, name in ((10, "trips"), (0, "zero")))
        self.check(model([*wrong, *nodes], [value("f"), value("i", None, TensorProto.INT64)], [untyped("y")], initializers=numbers), seconds=2)  # 0.9 s of 1 s, too little to tell on a slow machine

    def test_findings_in_graphs_of_long_names(self) -> None:
        wrong = [make_node("Add", ["a", "b"], [name]) for name in names("v", 1000)]
        content = model([make_node("F" * 36_000, ["x", "i"], ["y"], domain="f")], [value("x", ["N"]), value("i", ["N"], TensorProto.INT64)], [untyped("y")],
                        functions=(function("F" * 36_000, ["a", "b"], "vaaa", wrong),))
        self.assertEqual(len(self.check(content)["findings"][0]["graph"]), 998)  # "…" takes three bytes

    def test_findings_below_long_chains_of_calls(self) -> None:
        bodies = [function(f"f{i}", ["a", "b"], "o", [make_node(f"f{i + 1}", ["a", "b"], ["o"], domain="f", name="n" * 120)]) for i in range(169)]
        bodies.append(function("f169", ["a", "b"], "vaaa", [make_node("Add", ["a", "b"], [name]) for name in names("v", 1000)]))
        report = self.check(model([make_node("f0", ["x", "i"], ["y"], domain="f")], [value("x", ["N"]), value("i", ["N"], TensorProto.INT64)], [untyped("y")],
                                  functions=tuple(bodies)))
        notes = [note["message"] for note in report["findings"][0]["notes"]]
        self.assertEqual(notes.count("called from here"), 16)
        self.assertIn("through 154 more calls", notes)

    def test_violations_by_the_hundred_thousand(self) -> None:
        operands = [f"y{i}" for i in range(8)]
        nodes = [make_node("Sum", ["x", *operands], [name]) for name in names("v", 24_000)]
        report = self.check(model(nodes, [value("x", [2] * 60), *[value(name, [3 + i] * 60) for i, name in enumerate(operands)]], [untyped("vaaa")]))
        self.assertTrue(report["inputs"][0].get("partial"))

    def test_a_document_many_times_the_model(self) -> None:
        nodes = [make_node("Neg", [a], [b]) for a, b in itertools.pairwise(["x", *names("v", 45_000)])]
        content = model(nodes, [value("x", [f"n{i}" for i in range(60)])], [untyped(nodes[-1].output[0])])
        self.path.write_bytes(content)
        most = (64 << 20) + 40 * len(content)
        result = subprocess.run([hostile_test.BINARY, "show", "--format", "json", self.path], capture_output=True, check=True,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (most, most)))
        self.assertEqual(len(json.loads(result.stdout)["values"]), 45_001)

    def test_operators_without_operands_as_indices_and_labels(self) -> None:
        """What reads the elements of a node asks no operator for what it makes of operands that are not there."""
        table, labels = value("d", [5]), value("s", ["N", 5])
        gather = make_node("Gather", ["d", "i"], ["y"], axis=0)
        for name in ("Max", "Clip", "Abs", "Where", "Mod"):
            for operands in ([], ["q"]):
                with self.subTest(name, operands=operands):
                    wrong = make_node(name, operands, ["i"])
                    self.check(model([wrong, gather], [table, value("q", [3], TensorProto.INT64)], [untyped("y")]))
                    clipped = [make_node(name, operands, ["h"]), make_node("Add", ["q", "h"], ["j"]), make_node("Clip", ["j"], ["i"]), gather]
                    self.check(model(clipped, [table, value("q", [3], TensorProto.INT64)], [untyped("y")]))
                    self.check(model([wrong, make_node("SoftmaxCrossEntropyLoss", ["s", "i"], ["loss"])], [labels, value("q", ["N"], TensorProto.INT64)], [untyped("loss")]))

    def test_differences_of_equal_values_under_wide_sums(self) -> None:
        nodes = [make_node("Sub", ["x", "x"], ["a0"]), *[make_node("Sum", [f"a{i}"] * 16, [f"a{i + 1}"]) for i in range(7)],
                 make_node("Mul", ["x", "a7"], ["m"]), make_node("ReduceMean", ["m"], ["loss"], keepdims=0)]
        self.check(model(nodes, [value("x", ["N", "C"])], [untyped("loss")]))
        nodes = [make_node("Max", ["x" if i == 0 else f"{side}{i}"] * 1500, [f"{side}{i + 1}"]) for side in "ab" for i in range(3)]
        nodes += [make_node("Sub", ["a3", "b3"], ["z"]), make_node("Mul", ["x", "z"], ["m"]), make_node("ReduceMean", ["m"], ["loss"], keepdims=0)]
        self.check(model(nodes, [value("x", ["N", "C"])], [untyped("loss")]))

    def test_weights_of_thousands_of_operands(self) -> None:
        nodes = [make_node("MatMul", ["p", "w"], ["h"]), make_node("ReduceMean", ["h"], ["t"], keepdims=0),
                 make_node("Sum", ["h", *["p"] * 15_000], ["s"])]
        products = names("m", 650)
        nodes += [make_node("Mul", ["t", "p"], [name]) for name in products]
        sums = products
        while len(sums) > 1:  # a tree of them: no way is long
            joined = [f"{sums[i]}{len(sums)}" for i in range(0, len(sums) - 1, 2)]
            nodes += [make_node("Add", sums[2 * i : 2 * i + 2], [name]) for i, name in enumerate(joined)]
            sums = joined + sums[2 * len(joined) :]
        top = sums[0]
        for k in range(34):
            nodes += [make_node("Mul", [top if k == 0 else f"x{k}", "s"], [f"u{k}_{j}"]) for j in range(15)]
            nodes.append(make_node("Neg", [top if k == 0 else f"x{k}"], [f"x{k + 1}"]))
        nodes += [make_node("Sum", [f"u{k}_{j}" for k in range(34) for j in range(15)] + ["x34"], ["y"]),
                  make_node("ReduceMax", ["y"], ["z"], keepdims=0), make_node("Add", ["z", "t"], ["o"])]
        weights = (numpy_helper.from_array(np.ones([4, 4], np.float32), "w"),)
        self.check(model(nodes, [value("p", ["N", 4])], [untyped("o")], initializers=weights, opset=17))

    def test_indices_computed_from_thousands_of_operands(self) -> None:
        nodes = [make_node("Sum", ["x", *["w"] * 16_000], ["s"])]
        nodes += [make_node("ArgMax", ["s"], [f"a{i}"], axis=0, keepdims=0) for i in range(30)]
        nodes += [make_node("Add", ["a0" if i == 0 else f"b{i}", f"a{i + 1}"], [f"b{i + 1}"]) for i in range(29)]
        gathered = names("g", 1500)
        nodes += [make_node("Gather", ["d", "b29"], [name]) for name in gathered]
        weights = (numpy_helper.from_array(np.zeros([4], np.float32), "w"),)
        self.check(model(nodes, [value("x", [4]), value("d", [5])], [untyped(gathered[0])], initializers=weights, opset=17))

    def test_one_call_of_thousands_of_operands_with_open_extents(self) -> None:
        formal = ["z", *names("p", 10_600)]
        body = [make_node("Relu", ["z" if i < 63 else formal[1]], [f"o{i}"]) for i in range(64)]
        called = make_function("f", "F", formal, [f"o{i}" for i in range(64)], body, [make_opsetid("", 18)])
        call = make_node("F", ["q", *["p"] * (len(formal) - 1)], [f"r{i}" for i in range(64)], domain="f")
        shapes = [value("q", [f"a{i}" for i in range(64)]), value("p", [f"b{i}" for i in range(64)])]
        self.check(model([call], shapes, [untyped(f"r{i}") for i in range(64)], functions=(called,)))

    @staticmethod
    def sum_of_products(times: int, ones: int) -> tuple[list[NodeProto], list, tuple]:
        """Nodes whose `p` is [S, ..., 1, ...]: S is the sum of 16 products of 4 names."""
        nodes = [make_node("Reshape", [f"x{i}", "m"], [f"y{i}"]) for i in range(16)]
        nodes += [make_node("Concat", [f"y{i}" for i in range(16)], ["c"], axis=0), make_node("Shape", ["c"], ["s"])]
        nodes.append(make_node("Concat", ["s"] * times + ["o"] * (ones > 0), ["h"], axis=0))
        nodes.append(make_node("Expand", ["one", "h"], ["p"]))
        inputs = [value(f"x{i}", [f"{name}{i}" for name in "abcd"]) for i in range(16)]
        constants: dict[str, np.ndarray] = {"m": np.array([-1], np.int64), "one": np.array(1, np.float32), "o": np.ones(max(ones, 1), np.int64)}
        return nodes, inputs, tuple(numpy_helper.from_array(array, name) for name, array in constants.items())

    def test_sizes_of_an_extent_that_is_a_sum_of_products(self) -> None:
        nodes, inputs, constants = self.sum_of_products(1, 11)
        nodes.append(make_node("Sum", ["u"] * 4 + ["p"] * 4, ["z"]))
        inputs.append(value("u", [7, *[1] * 11]))
        self.check(model(nodes, inputs, [untyped("z")], initializers=constants))

    def test_sizes_of_thousands_of_operands(self) -> None:
        nodes, inputs, constants = self.sum_of_products(64, 0)
        nodes += [make_node("Relu", ["x0"], [f"r{i}"]) for i in range(550)]
        nodes.append(make_node("Concat", ["p"] * 20_000, ["z"], axis=63))
        self.check(model(nodes, inputs, [untyped("z")], initializers=constants))

    def test_operands_of_what_an_if_compares(self) -> None:
        then, other = (make_graph([make_node(name, ["x"], [result])], name, [], [untyped(result)]) for name, result in (("Relu", "o"), ("Neg", "q")))
        nodes = [make_node("Bar", ["x"] * 12_000, ["c"], domain="f"), make_node("If", ["c"], ["v"], then_branch=then, else_branch=other),
                 make_node("Concat", ["u", *["v"] * 12_000], ["z"], axis=0)]
        ones = (numpy_helper.from_array(np.ones([1, 7], np.float32), "u"),)
        self.check(model(nodes, [value("x", ["A", "B"])], [untyped("z")], initializers=ones))

    def test_index_constants_of_many_elements(self) -> None:
        indices = tuple(numpy_helper.from_array(np.zeros([1 << 22], np.int64), f"c{i}") for i in range(3))
        nodes = [make_node("Gather", ["d", f"c{i}"], [f"g{i}"]) for i in range(3)]
        report = self.check(model(nodes, [value("d", [5])], [untyped("g0")], initializers=indices), seconds=1)
        self.assertLess(report["inputs"][0]["peak_rss_bytes"], 64 << 20)

    def test_one_index_of_many_gathers(self) -> None:
        numbers = tuple(numpy_helper.from_array(np.array([3 * i - 4], np.int64), f"c{i}") for i in range(7))
        nodes = [make_node("Concat", [f"f{i}", *(f"c{k}" for k in range(7))], [f"q{i}"], axis=0) for i in range(3)]
        nodes += [make_node("Add", ["q0", "q1"], ["a0"]), make_node("Add", ["a0", "q2"], ["e0"])]
        nodes += [make_node(("Add", "Sub")[i % 2], [f"e{i}", ("a0", "q1", "q2", "q0")[i % 4]], [f"e{i + 1}"]) for i in range(42)]
        gathered = names("g", 1500)
        nodes += [make_node("Gather", ["d", "e42"], [name]) for name in gathered]
        inputs = [value("d", [5]), *[value(f"f{i}", ["N"], TensorProto.INT64) for i in range(3)]]
        self.check(model(nodes, inputs, [untyped(name) for name in gathered], initializers=numbers, opset=17))

    def test_axes_at_the_end_of_their_type(self) -> None:
        """Sums of them overflow. An operator of opset 11 counts from its axis on."""
        folder = self.path.parent
        for number, path in enumerate(sorted((hostile_test.ROOT / "tests" / "models").rglob("*.onnx"))):
            proto = ModelProto.FromString(path.read_bytes())
            for attribute in (attribute for node in proto.graph.node for attribute in node.attribute if attribute.name == "axis"):
                attribute.i = 2**63 - 1
            for opset in proto.opset_import:
                opset.version = 11 if opset.domain == "" else opset.version
            (folder / f"{number}.onnx").write_bytes(proto.SerializeToString())
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, limits[1]))
        try:
            result = hostile_test.run(["check", "--format", "json", "--timings", folder])
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        self.assertEqual(result.code, 1, result.errors[:500])
        reports = json.loads(result.output)["inputs"]
        self.assertGreater(len(reports), 1000)
        self.assertLess(max(report["peak_rss_bytes"] for report in reports), 128 << 20)

    def test_a_table_of_places_that_is_added_to_itself(self) -> None:
        places = np.random.default_rng(1).random((1, 7900, 1, 2), np.float32)
        nodes = [make_node("Add", [f"t{i}"] * 2, [f"t{i + 1}"]) for i in range(15)]
        nodes.append(make_node("GridSample", ["x", "t15"], ["y"]))
        self.check(model(nodes, [value("x", [1, 1, 4, 4])], [value("y", ["A", "B", "C", "D"])], initializers=(numpy_helper.from_array(places, "t0"),)))


if __name__ == "__main__":
    unittest.main()
