"""Runs whose cost no operand shows: what they collect, print, write and repeat stays within their limits."""

import os
import pathlib
import struct
import tempfile
import time
import unittest

import wire
from hostile_test import CLEAN, UNREADABLE, run, simple

X = wire.value("x", dims=[64])
BODY_INPUTS = wire.value("i", wire.INT64, []), wire.value("c", wire.BOOL, [])
LITTLE = 64 << 20  # what the program itself takes, and more
MANY = 100_000
UINT8 = 2


def filled(name, dims, dtype=wire.FLOAT):
    """A tensor of zeros that no file holds: the node that makes it, and its operand."""
    value = {} if dtype == wire.FLOAT else {"value": ("t", wire.tensor("v", dtype, [1], bytes(8)))}
    return wire.node("ConstantOfShape", [f"{name}_dims"], [name], **value), wire.integers(f"{name}_dims", dims)


def operator(op, operands, tensors, initializers=(), outputs=("y",), **attributes):
    """A model of one operator on tensors of zeros: name, extents, dtype."""
    made = [filled(*tensor) for tensor in tensors]
    nodes = [node for node, _ in made] + [wire.node(op, operands, list(outputs), **attributes)]
    return simple(nodes, [dims for _, dims in made] + list(initializers), inputs=[], opsets=(("", 20),))


def loop(body_nodes, outputs, operands, results, body_inputs=()):
    body = wire.graph([wire.node("Identity", ["c"], ["d"]), *body_nodes], [*BODY_INPUTS, *body_inputs], [wire.value("d", wire.BOOL, []), *outputs], name="b")
    return wire.node("Loop", ["n", "", *operands], results, body=("g", body))


class RunLimitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "m.onnx"

    def run_model(self, content, *options):
        self.model.write_bytes(content)
        return run(["run", self.model, "--seed", "1", *options])

    def test_what_a_loop_collects(self):
        """Scan outputs that are one tensor, any number of times."""
        collects = loop([wire.node("Identity", ["x"], ["s"])], [wire.value("s", dims=[64])], [], ["y"])
        result = self.run_model(simple([collects], [wire.integers("n", [10**9], scalar=True)], inputs=[X]), "--memory-limit", "1000000")
        self.assertEqual(result.code, UNREADABLE)
        self.assertIn("the limit is 1000000 (--memory-limit)", result.errors.decode())
        self.assertLess(result.memory, LITTLE)

    def test_inputs_that_are_planned_one_by_one(self):
        """Each integer input is planned with the others as they are: in all as much as one model of this size may cost."""
        names = [f"i{k}" for k in range(4000)]
        model = simple([wire.node("Abs", names[:1], ["y"])], inputs=[wire.value(name, wire.INT64, []) for name in names])
        result = self.run_model(model)
        self.assertEqual(result.code, CLEAN, result.errors[:500])
        self.assertLess(result.cpu, max(1, len(model) / (1 << 16)))

    def test_ranges_of_a_regular_expression(self):
        characters = "".join(chr(0x4e00 + 2 * i) for i in range(15_000))
        node = wire.node("RegexFullMatch", ["s"], ["y"], pattern=f"([{characters}]{{1000}}){{190}}")
        strings = wire.number(1, 1) + wire.number(2, 8) + wire.data(8, "s") + wire.data(6, "abc")
        result = self.run_model(simple([node], [strings], inputs=[], opsets=(("", 20),)), "--memory-limit", "1000000")
        self.assertIn(result.code, (CLEAN, UNREADABLE))
        self.assertLess(result.memory, LITTLE)
        self.assertLess(result.cpu, 1)

    def test_what_operators_work_with(self):
        """It counts as tensors do: bytes for each of many elements that tensors take, and that the run takes in all."""
        a, image, sequences = ("a", [MANY]), ("a", [1, 1, MANY]), ("a", [1, MANY, 1])
        i, tuples, one = ("i", [MANY], wire.INT64), ("i", [MANY, 1], wire.INT64), ("w", [1, 1, 1])
        zero, many = wire.integers("k", [0], scalar=True), wire.integers("k", [MANY], scalar=True)
        pads, sizes, few = wire.integers("k", [MANY - 1, MANY - 1]), wire.integers("k", [1, 1, MANY]), wire.integers("k", [1, 1, 2])
        resized, scattered, layer = ["a", "", "", "k"], ["a", "i", "a"], ["a", "w", "w"]
        cases = [
            (8, 24, operator("MatMul", ["a", "a"], [("a", [2 * MANY])])),
            (349, 605, operator("MatMul", ["a", "b"], [("a", [70, MANY]), ("b", [MANY, 17])])),
            (4, 11, operator("Det", ["a"], [("a", [300, 300])])),
            (24, 32, operator("GatherND", ["a", "i"], [a, tuples])),
            (24, 32, operator("ScatterND", scattered, [a, tuples])),
            (24, 48, operator("ScatterND", scattered, [a, tuples], reduction="add")),
            (24, 40, operator("ScatterElements", scattered, [a, i], reduction="add")),
            (8, 16, operator("Resize", resized, [("a", [1, 1, 10])], [sizes], mode="nearest")),
            (12, 44, operator("Resize", resized, [("a", [1, 1, 10])], [sizes], mode="linear")),
            (12, 76, operator("Resize", resized, [("a", [1, 1, 10])], [sizes], mode="cubic")),
            (12, 44, operator("Resize", resized, [image], [few], mode="linear", antialias=1)),
            (8, 32, operator("RNN", layer, [sequences, ("w", [1, 1, 1])], hidden_size=1)),
            (8, 64, operator("GRU", layer, [sequences, ("w", [1, 3, 1])], hidden_size=1)),
            (8, 72, operator("LSTM", layer, [sequences, ("w", [1, 4, 1])], hidden_size=1)),
            (28, 52, operator("Pad", ["a", "k"], [a], [pads], mode="reflect")),
            (36, 100, operator("DFT", ["a"], [sequences])),
            (4, 12, operator("BlackmanWindow", ["k"], [], [many])),
            (52, 68, operator("BatchNormalization", ["a", "s", "s", "s", "s"], [("a", [1, MANY]), ("s", [MANY])], outputs="ymv", training_mode=1)),
            (28, 52, operator("LayerNormalization", ["a", "s", "s"], [("a", [1, MANY]), ("s", [MANY])])),
            (20, 36, operator("SoftmaxCrossEntropyLoss", ["a", "i"], [("a", [MANY, 1]), i])),
            (4, 12, operator("Softmax", ["a"], [a])),
            (8, 16, operator("Conv", ["a", "w"], [image, one])),
            (8, 16, operator("ConvTranspose", ["a", "w"], [image, one])),
            (8, 24, operator("AveragePool", ["a"], [image], kernel_shape=[1])),
            (16, 32, operator("MaxPool", ["a"], [image], outputs="yz", kernel_shape=[1])),
            (8, 16, operator("CumSum", ["a", "k"], [a], [zero])),
            (4, 12, operator("Multinomial", ["a"], [("a", [1, MANY])], sample_size=1)),
        ]
        for number, (tensors, whole, model) in enumerate(cases):
            with self.subTest(number=number):
                refused = self.run_model(model, "--memory-limit", str((tensors + whole) // 2 * MANY))
                self.assertEqual(refused.code, UNREADABLE, refused.output[:200])
                self.assertIn("bytes more are needed", refused.errors.decode())
                fits = self.run_model(model, "--memory-limit", str(whole * MANY * 21 // 20))
                self.assertEqual(fits.code, CLEAN, fits.errors)

    def test_what_operators_do_without(self):
        """Products of one column are not widened to strips, those of a batch are no list, and neither are windows that see nothing but padding."""
        vectors = operator("Einsum", ["a", "a"], [("a", [1_000_000])], equation="i,i->")
        matrices = operator("MatMul", ["a", "a"], [("a", [2_000_000, 1, 1])])
        windows = operator("AveragePool", ["a"], [("a", [1, 1, 1])], kernel_shape=[1 << 23], pads=[1 << 22, 1 << 22])
        for model, limit in ((vectors, 21_000_000), (matrices, 17_000_000), (windows, 100_000)):
            with self.subTest(limit=limit):
                result = self.run_model(model, "--memory-limit", str(limit))
                self.assertEqual(result.code, CLEAN, result.errors)
                self.assertLess(result.memory, limit + LITTLE)

    def test_axes_of_tensors_without_elements(self):
        """However long they are, nothing is walked: the result is there at once, or the run refuses the operand."""
        far, axes = 1 << 40, wire.integers("k", [0, 2])
        empty, list_of_two = ("a", [far, 2, 0]), ("s", [2])
        image, filters = ("a", [1, 0, 1, 1]), ("w", [4, 0, 1024, 1024])
        pads = [1023] * 4
        same = wire.graph([wire.node("Identity", ["i"], ["o"])], [wire.value("i", dims=[0])], [wire.value("o", dims=[0])], name="b")
        cases = [(CLEAN, operator(op, ["a", "k"], [empty], [axes], keepdims=0)) for op in ("ReduceSum", "ReduceMax", "ReduceLogSumExp", "ReduceMean", "ReduceL2")]
        cases += [
            (CLEAN, operator("BatchNormalization", ["a", *"ssss"], [empty, list_of_two], outputs="ymv", training_mode=1)),
            (CLEAN, operator("Einsum", ["a", "b"], [("a", [far, 0]), ("b", [far, 0])], equation="ij,ij->")),
            (CLEAN, operator("Shape", ["a"], [empty])),
            (CLEAN, operator("LayerNormalization", ["a", "s"], [("a", [1000, 0]), ("s", [0])], outputs="ym")),
            (CLEAN, operator("Conv", ["a", "w"], [image, filters], pads=pads)),
            (CLEAN, simple([wire.node("ConvInteger", ["a", "w"], ["y"], pads=pads)], inputs=[wire.value(*each, UINT8, dims) for *each, dims in (image, filters)])),
            (UNREADABLE, operator("Conv", ["a", "w"], [image, ("w", [1, 0, 1 << 24, 1 << 24])], pads=[1 << 23] * 2 + [(1 << 23) - 1] * 2)),
            (UNREADABLE, operator("ConvTranspose", ["a", "w"], [("a", [1, 0, 1]), ("w", [0, 1, 1 << 26])], pads=[1 << 25, (1 << 25) - 1])),
            (UNREADABLE, simple([wire.node("Attention", ["a", "a", "a"], ["y", "", "", "z"], qk_matmul_output_mode=3)], inputs=[wire.value("a", dims=[far, 2, 2, 0])], outputs="yz", opsets=(("", 23),))),
            (UNREADABLE, operator("Scan", ["a"], [("a", [far, 0])], body=("g", same), num_scan_inputs=1)),
        ]
        for number, (code, model) in enumerate(cases):
            with self.subTest(number=number):
                result = self.run_model(model, "--time-limit", "5")
                self.assertEqual(result.code, code, result.errors)
                self.assertLess(result.cpu, 0.5)
                if code == UNREADABLE:
                    self.assertRegex(result.errors.decode(), "has no elements, and axes that are too long for that|bytes more are needed")

    def test_statistics_of_rows_without_elements(self):
        node = wire.node("LayerNormalization", ["a", "s"], list("ymd"))
        model = simple([node], inputs=[wire.value("a", dims=[2, 0]), wire.value("s", dims=[0])], outputs="ymd")
        result = self.run_model(model)
        self.assertEqual(result.code, CLEAN, result.errors)
        self.assertEqual(result.output.decode(), "`y`: float32[2, 0] = []\n`m`: float32[2, 1] = [[nan], [nan]]\n`d`: float32[2, 1] = [[nan], [nan]]\n")

    def test_windows_and_kernels_beyond_the_image(self):
        """What sees nothing but padding or the border costs nothing, along each axis."""
        pixel, axes = ("a", [1] * 27), 25
        grid = ("g", [1] * 26 + [25])
        around = {"kernel_shape": [1 << 20] * 3, "pads": [(1 << 20) - 1] * 6, "strides": [1 << 28] * 3}
        cases = [operator(op, ["a"], [("a", [1] * 5)], **around) for op in ("MaxPool", "AveragePool", "LpPool")]
        cases += [operator("GridSample", ["a", "g"], [pixel, grid], mode=mode, padding_mode=border)
                  for mode in ("linear", "cubic") for border in ("border", "reflection")]
        cases.append(operator("DeformConv", ["a", "a", "o"], [pixel, ("o", [1, axes] + [1] * axes)]))
        cases.append(operator("Conv", ["a", "w"], [("a", [1, 1, 1, 1]), ("w", [4, 1, 1024, 1024])], pads=[512] * 4, dilations=[1, 1]))
        for number, model in enumerate(cases):
            with self.subTest(number=number):
                result = self.run_model(model, "--time-limit", "5", "--memory-limit", "200000000")
                self.assertEqual(result.code, CLEAN, result.errors)
                self.assertLess(result.cpu, 0.5)

    def test_regions_far_outside_of_what_is_resized(self):
        regions = wire.tensor("r", wire.FLOAT, [4], struct.pack("<4f", 0, 0, 1, 3.3e7))
        scales = wire.tensor("k", wire.FLOAT, [2], struct.pack("<2f", 1, 3.1e-8))
        model = operator("Resize", ["a", "r", "k"], [("a", [1, 1])], [regions, scales], mode="linear", antialias=1,
                         coordinate_transformation_mode="tf_crop_and_resize")
        result = self.run_model(model, "--time-limit", "5")
        self.assertEqual(result.code, UNREADABLE, result.output)
        self.assertIn("an axis shrinks by too much for antialiasing", result.errors.decode())

    def test_values_of_bodies_that_are_one_tensor(self):
        """Lists of them count, where a batch is scanned and where a sequence is mapped."""
        body = wire.graph([], [wire.value("i", dims=[])], [wire.data(1, "c")] * 40, [wire.tensor("c", wire.FLOAT, [1], bytes(4))], name="b")
        results = [f"y{i}" for i in range(40)]
        node = wire.node("Scan", ["", "a"], results, body=("g", body), num_scan_inputs=1)
        scan = simple([node], inputs=[wire.value("a", dims=[20_000, 1])], outputs=results, opsets=(("", 8),))
        result = self.run_model(scan, "--memory-limit", "10000000")
        self.assertEqual(result.code, UNREADABLE, result.output[:300])
        self.assertIn("the limit is 10000000", result.errors.decode())
        self.assertLess(result.memory, LITTLE)

    def test_sequences_of_tiny_elements(self):
        """A file of them is bounded as a model is, and what they take counts."""
        sequence = wire.data(4, wire.data(1, wire.data(1, wire.number(1, UINT8))))
        model = simple([wire.node("SequenceLength", ["s"], ["y"])], inputs=[wire.data(1, "s") + wire.data(2, sequence)])
        tiny, small = wire.number(2, UINT8) + wire.data(9, b"a"), wire.number(1, 64) + wire.number(2, UINT8) + wire.data(9, bytes(64))
        values = self.folder / "s.pb"
        for count, element, limit, message in ((400_000, tiny, 1 << 32, "too many tiny elements"), (20_000, small, 1_000_000, "the limit is 1000000")):
            with self.subTest(message):
                values.write_bytes(wire.number(2, 1) + wire.data(3, element) * count)
                result = self.run_model(model, "--inputs", f"s={values}", "--memory-limit", str(limit))
                self.assertEqual(result.code, UNREADABLE, result.output[:300])
                self.assertIn(message, result.errors.decode())
                self.assertLess(result.memory, LITTLE + 40 * values.stat().st_size)
        values.write_bytes(wire.number(2, 1) + wire.data(3, small) * 20_000)
        result = self.run_model(model, "--inputs", f"s={values}")
        self.assertEqual(result.output.decode(), "`y`: int64[] = 20000\n", result.errors)

    def test_sequences_that_share_what_is_within(self):
        """A hundred handles at each level: what looks at all of them counts what is there, and a list that is shared is looked at once."""
        for levels, code in ((2, CLEAN), (5, UNREADABLE)):
            nodes = [wire.node("SequenceConstruct", ["x"] * 100, ["s0"])]
            for k in range(levels - 1):
                body = wire.graph([wire.node("Identity", [f"s{k}"], ["o"])], [wire.value("i", dims=[64])], [wire.data(1, "o")], name="b")
                nodes += [wire.node("SequenceConstruct", ["x"] * 100, [f"t{k}"]), wire.node("SequenceMap", [f"t{k}"], [f"s{k + 1}"], body=("g", body))]
            nodes.append(wire.node("SequenceLength", [f"s{levels - 1}"], ["y"]))
            result = self.run_model(simple(nodes, inputs=[X]), "--check-facts")
            with self.subTest(levels=levels):
                self.assertEqual(result.code, code, result.errors)
                self.assertLess(result.cpu, 1)
        self.assertIn("within each other have more than 1,048,576 values", result.errors.decode())

    def test_many_threads_within_a_small_limit(self):
        """Their stacks have room of their own."""
        model = operator("Conv", ["a", "w"], [("a", [1, 4, 32, 32]), ("w", [64, 4, 3, 3])])
        for _ in range(5):
            result = self.run_model(model, "--threads", "256", "--memory-limit", "8000000")
            self.assertEqual(result.code, CLEAN, result.errors)

    def test_texts_that_a_sequence_has_many_times(self):
        """What is written of them counts."""
        text = wire.number(1, 1) + wire.number(2, 8) + wire.data(8, "s") + wire.data(6, "a" * 1_000_000)
        nodes = [wire.node("SequenceConstruct", ["s"] * 500, ["y"])]
        sequence = wire.data(1, "y") + wire.data(2, wire.data(4, wire.data(1, wire.data(1, wire.number(1, 8)))))
        model = wire.model(wire.graph(nodes, [], [sequence], [text]), opsets=(("", 20),))
        for limit, code in ((50_000_000, UNREADABLE), (4_000_000_000, CLEAN)):
            result = self.run_model(model, "--memory-limit", str(limit), "--outputs", str(self.folder / "o"))
            self.assertEqual(result.code, code, result.errors)
            self.assertLess(result.memory, limit // 2 + LITTLE)

    def test_corners_of_many_axes(self):
        axes = 21
        model = operator("GridSample", ["a", "g"], [("a", [1, 1] + [2] * axes), ("g", [1] * (axes + 1) + [axes])], mode="linear")
        result = self.run_model(model, "--memory-limit", "60000000")
        self.assertEqual(result.code, UNREADABLE, result.output)
        self.assertLess(result.memory, 60_000_000 + LITTLE)

    def test_a_delimiter_that_nearly_fits_everywhere(self):
        doubled = "x0"
        text = wire.number(1, 1) + wire.number(2, 8) + wire.data(8, "x0") + wire.data(6, "a" * 1024)
        nodes = []
        for i in range(11):
            nodes.append(wire.node("StringConcat", [doubled, doubled], [f"x{i + 1}"]))
            doubled = f"x{i + 1}"
        nodes += [wire.node("StringSplit", [doubled], ["parts", "y"], delimiter="a" * 15_000 + "b" + "a" * 15_000)]
        result = self.run_model(simple(nodes, [text], inputs=[], opsets=(("", 20),)))
        self.assertEqual(result.output.decode(), "`y`: int64[1] = [1]\n", result.errors)
        self.assertLess(result.cpu, 0.5)

    def test_external_data_of_an_attribute(self):
        """Not even of the folder that the run is in."""
        values = wire.tensor("v", wire.FLOAT, [2], external={"location": "secret.bin", "length": "8"})
        sparse = wire.data(1, values) + wire.data(2, wire.integers("i", [0, 1])) + wire.number(3, 2)
        attribute = wire.data(1, "sparse_value") + wire.data(22, sparse) + wire.number(20, 11)
        node = wire.node("Constant", [], ["y"]) + wire.data(5, attribute)
        (self.folder / "secret.bin").write_bytes(struct.pack("<2f", 42, 43))
        here = pathlib.Path.cwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder)
        result = self.run_model(simple([node], inputs=[]), "--force")
        self.assertEqual(result.code, UNREADABLE, result.output)
        self.assertIn("the tensor of an attribute is external data", result.errors.decode())

    def test_values_of_a_loop_that_are_shown(self):
        """They are printed as they come: memory does not grow, and what came before the limit is there."""
        shown = loop([wire.node("Identity", ["x"], ["v"]), wire.node("Abs", ["v"], ["shown"])], [wire.value("shown", dims=[4])], ["x"], ["z"],
                     [wire.value("s", dims=[4])])
        model = simple([shown, wire.node("Abs", ["x"], ["y"])], [wire.integers("n", [10**8], scalar=True)], inputs=[wire.value("x", dims=[4])])
        result = self.run_model(model, "--dump", "shown", "--time-limit", "0.5", "--memory-limit", "1000000")
        self.assertEqual(result.code, UNREADABLE)
        self.assertIn("the time limit is over", result.errors.decode())
        self.assertGreater(result.output.count(b"`shown`: float32[4] = ["), 1000)
        self.assertLess(result.memory, LITTLE)

    def test_sequences_that_are_shown(self):
        """Of hundreds of thousands of tensors the first ones."""
        model = simple([wire.node("Expand", ["x", "s"], ["e"]), wire.node("SplitToSequence", ["e"], ["y"])], [wire.integers("s", [300_000])], inputs=[wire.value("x", dims=[1])])
        result = self.run_model(model)
        self.assertEqual(result.code, CLEAN, result.errors)
        self.assertRegex(result.output.decode(), r"^`y`: a sequence of 300000 = \((\[[-.e0-9]+\], ){64}\.\.\.\)\n$")

    def test_outputs_are_written_without_copies_and_to_their_end(self):
        elements = 40_000_000
        model = simple([wire.node("Expand", ["x", "s"], ["y"])], [wire.integers("s", [elements])], inputs=[wire.value("x", dims=[1])])
        folder = self.folder / "o"
        start = time.monotonic()
        result = self.run_model(model, "--outputs", str(folder))
        whole = time.monotonic() - start
        self.assertEqual(result.code, CLEAN, result.errors)
        self.assertGreater((folder / "output_0.pb").stat().st_size, 4 * elements)
        self.assertLess(result.memory, 4 * elements + LITTLE)
        for share in (0.5, 0.65, 0.8, 0.9):
            (folder / "output_0.pb").unlink(missing_ok=True)
            result = self.run_model(model, "--outputs", str(folder), "--time-limit", str(share * whole))
            self.assertLessEqual({path.name for path in folder.iterdir()}, {"output_0.pb"})
            self.assertIn(result.code, (CLEAN, UNREADABLE))

    def test_runs_that_repeat_what_has_no_value(self):
        """Facts of one run serve the next: each NaN is the same one."""
        chain = [wire.node("Log", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(3000)]
        result = self.run_model(simple(chain, inputs=[X], outputs=["v3000"]), "--repeat", "16")
        self.assertEqual(result.code, CLEAN, result.errors)
        self.assertLess(result.cpu, 1.5)


if __name__ == "__main__":
    unittest.main()
