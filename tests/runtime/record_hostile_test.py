"""`record.py` with models of a stranger: what it prints is safe to show, no file outside of the model's folder is read, and
what is drawn keeps to --memory."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import tracemalloc
import types
import unittest
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from compare_test import ROOT, record
from onnx import TensorProto, helper
from record import delimited

EVIL = "\x1b[31;1mEVIL\x1b]0;pwned\x07\u202e\x9b\u200b\x7f"
SHOWN = r"\u001b[31;1mEVIL\u001b]0;pwned\u0007\u202e\u009b\u200b\u007f"
FLOATS = np.arange(4, dtype=np.float32)
FOREIGN = np.full(4, 777, np.float32)


def value(name: str, dtype: int = TensorProto.FLOAT, shape: Sequence[int | str] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, [4] if shape is None else shape)


def model_of(nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto], **more: object) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=opsets, ir_version=10, **more)


class RecordHostileTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.folder / "model/m.onnx"
        self.elsewhere = self.folder / "elsewhere"
        for place in (self.model.parent, self.elsewhere):
            place.mkdir()
        self.runs = 0

    def record(self, model: onnx.ModelProto | bytes, *arguments: str, environment: dict[str, str] | None = None) -> tuple[int, str, dict[str, np.ndarray]]:
        """Exit code, what it printed, and the values; from a folder that is not the model's."""
        self.model.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        self.runs += 1
        out = self.folder / f"r{self.runs}"
        command = [sys.executable, str(ROOT / "runtime/compare/record.py"), str(self.model), "--out", str(out), *arguments]
        result = subprocess.run(command, capture_output=True, timeout=300, cwd=self.elsewhere, env={**os.environ, **(environment or {})})
        said = (result.stdout + result.stderr).decode()
        self.assertNotIn("Traceback", said)
        self.assertEqual([character for character in said.replace("\n", "") if not character.isprintable()], [], said)
        values: dict[str, np.ndarray] = {}
        for shard in out.glob("*.npz"):
            values.update(np.load(shard))
        return result.returncode, said, values

    # What is printed

    def test_what_is_shown_is_what_the_program_itself_shows(self) -> None:
        for text, shown in (("a b", "a b"), ("naïve 日本", "naïve 日本"), ("a\nb\tc\r", r"a\nb\tc\r"), (EVIL, SHOWN), ("\U000e0041", r"\U000e0041"),
                            ("\udcff\ud800", r"\xff\ud800"), ("\u2066\u2028\ufeff\xad\u061c", r"\u2066\u2028\ufeff\u00ad\u061c"), ("a`\\", "a`\\")):
            self.assertEqual(record.escaped(text), shown)
            self.assertEqual(record.escaped(shown), shown)
        for name in ("a" * 201, "é" * 150, "\x1b" * 10_000, "ab" + "日" * 1_000_000):
            shown = record.escaped(name)
            self.assertLessEqual(len(shown.encode()), 200)
            self.assertIn("…", shown)
            self.assertEqual(record.escaped(shown), shown)
        self.assertEqual(record.escaped("a" * 200), "a" * 200)

    def test_names_of_the_model_are_escaped_wherever_they_are_said(self) -> None:
        relu = helper.make_node("Relu", ["x"], ["y"], name=EVIL)
        sequence = model_of([helper.make_node("SequenceLength", [EVIL], ["y"])], [helper.make_tensor_sequence_value_info(EVIL, TensorProto.FLOAT, [1])],
                            [value("y", TensorProto.INT64, [])])
        named = model_of([helper.make_node("Relu", [EVIL], [EVIL + "y"])], [value(EVIL)], [value(EVIL + "y")])
        wide = self.folder / "wide.npy"
        np.save(wide, np.zeros(7))
        for model, arguments in ((sequence, []),
                                 (model_of([relu], [value("x", TensorProto.COMPLEX64)], [value("y", TensorProto.COMPLEX64)]), []),
                                 (model_of([helper.make_node("No" + EVIL, ["x"], ["y"])], [value("x")], [value("y")]), []),
                                 (named, ["--inputs", "z=none"]),
                                 (named, ["--inputs", f"{EVIL}={wide}"]),
                                 (named, ["--inputs", f"{EVIL}={EVIL}"]),
                                 (named, ["--memory", "1"]),
                                 (named, ["--values", EVIL + "z"]),
                                 (named, [EVIL])):
            code, said, _ = self.record(model, *arguments)
            self.assertNotEqual(code, 0)
            self.assertIn(SHOWN, said)

    def test_onnxruntime_does_not_log_names(self) -> None:
        """A run that fails is logged as an error and is an exception, both with the node's name."""
        gather = helper.make_node("Gather", ["x", "i"], ["y"], name=EVIL)
        code, said, _ = self.record(model_of([gather], [value("x"), value("i", TensorProto.INT64, [1])], [value("y", shape=[1])]), "--most", "1000")
        self.assertEqual(code, 1)
        self.assertIn(SHOWN, said)
        self.assertTrue(said.startswith("record.py: onnxruntime does not run the model"), said)
        self.assertEqual(said.count("\n"), 1)

    def test_names_are_cut_and_counted(self) -> None:
        inputs = [f"{i}" + "n" * 100_000 for i in range(100)]
        code, said, _ = self.record(model_of([helper.make_node("Sum", inputs, ["y"])], [value(name) for name in inputs], [value("y")]), "--inputs", "z=none")
        self.assertEqual(code, 1)
        self.assertRegex(said, "…n+` and 80 more")
        self.assertLess(len(said.encode()), 5500)

    def test_a_terminal_without_the_character(self) -> None:
        code, said, _ = self.record(model_of([helper.make_node("Relu", ["日"], ["y"])], [value("日")], [value("y")]), "--inputs", "z=none",
                                    environment={"PYTHONIOENCODING": "ascii"})
        self.assertEqual(code, 1)
        self.assertIn(r"`\u65e5`", said)

    def test_an_output_that_changes_is_escaped(self) -> None:
        self.model.write_bytes(model_of([helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Relu", ["h"], [EVIL])], [value("x")], [value(EVIL)]).SerializeToString())
        run = record.Runner.run
        record.Runner.run = lambda *arguments: {name: array + len(arguments[1]) for name, array in run(*arguments).items()}
        self.addCleanup(setattr, record.Runner, "run", run)
        said = io.StringIO()
        arguments = {"model": str(self.model), "out": str(self.folder / "r"), "inputs": [], "seed": 0, "most": 2, "values": "", "providers": "CPUExecutionProvider",
                     "level": "disable_all", "threads": 1, "shard": 1 << 30, "memory": 1 << 30}
        with contextlib.redirect_stdout(said):
            record.record(argparse.Namespace(**arguments))
        self.assertIn(f"output `{SHOWN}` changes when", said.getvalue())
        self.assertNotIn("\x1b", said.getvalue())

    # External data

    def external(self, location: bytes, name: str = "w", dims: tuple[int, ...] = (4,)) -> bytes:
        """Spelt so that the length of `location` takes two bytes: readers take it, and a search for the usual one does not find it."""
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
        return tensor.SerializeToString() + delimited(13, b"\x0a\x88\x00location" + delimited(2, location))

    def models_with(self, location: bytes) -> dict[str, bytes]:
        """y = x + w, where w is external data in all places that a model has."""
        tensor = self.external(location)
        add = helper.make_node("Add", ["x", "w"], ["y"])

        def constant(kind: int, name: str = "value") -> bytes:
            attribute = delimited(1, name.encode()) + delimited({4: 5, 9: 10, 11: 22}[kind], self.sparse(location) if kind == 11 else tensor) + bytes([0xA0, 0x01, kind])
            return helper.make_node("Constant", [], ["w"]).SerializeToString() + delimited(5, attribute)

        def graph(*parts: tuple[int, bytes]) -> bytes:
            return b"".join(delimited(field, part) for field, part in parts)

        def whole(start: list[tuple[int, bytes]], nodes: list[onnx.NodeProto], more: bytes = b"") -> bytes:
            rest = model_of(nodes, [value("x")], [value("y")])
            return delimited(7, graph(*start)) + rest.SerializeToString() + more

        body = graph((1, constant(4)), (1, helper.make_node("Identity", ["w"], ["b"]).SerializeToString()), (12, value("b").SerializeToString())) + delimited(2, b"body")
        attributes = b"".join(delimited(5, delimited(1, name) + delimited(6, body) + b"\xa0\x01\x05") for name in (b"then_branch", b"else_branch"))
        branch = helper.make_node("If", ["c"], ["w"]).SerializeToString() + attributes
        truth = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True])).SerializeToString()
        function = delimited(1, b"F") + delimited(5, b"w") + delimited(7, constant(4)) + delimited(9, helper.make_opsetid("", 21).SerializeToString()) + delimited(10, b"own")
        return {
            "initializer": whole([(5, tensor)], [add]),
            "sparse initializer": whole([(15, self.sparse(location))], [add]),
            "attribute": whole([(1, constant(4))], [add]),
            "sparse attribute": whole([(1, constant(11, "sparse_value"))], [add]),
            "body": whole([(1, truth), (1, branch)], [add]),
            "function": whole([], [helper.make_node("F", [], ["w"], domain="own"), add], delimited(25, function)),
        }

    def sparse(self, location: bytes) -> bytes:
        indices = helper.make_tensor("i", TensorProto.INT64, [4], [0, 1, 2, 3])
        return delimited(1, self.external(location)) + delimited(2, indices.SerializeToString()) + b"\x18\x04"

    def test_external_data_is_read_from_the_folder_of_the_model(self) -> None:
        (self.model.parent / "w.bin").write_bytes(FLOATS.tobytes())
        (self.elsewhere / "w.bin").write_bytes(FOREIGN.tobytes())
        read = []
        for place, model in self.models_with(b"w.bin").items():
            with self.subTest(place=place):
                code, said, values = self.record(model)
                self.assertEqual([path.name for path in self.model.parent.glob("*.onnx")], ["m.onnx"])
                if code == 0:
                    np.testing.assert_allclose(values["y"] - values["x"], FLOATS, atol=1e-6)
                    read.append(place)
                else:
                    self.assertIn("record.py: onnxruntime does not ", said)  # not of all sparse tensors
        self.assertLessEqual({"initializer", "attribute", "body"}, set(read))

    def test_external_data_elsewhere_is_refused_before_it_is_opened(self) -> None:
        (self.elsewhere / "w.bin").write_bytes(FOREIGN.tobytes())
        (self.model.parent / "link.bin").symlink_to(self.elsewhere / "w.bin")
        (self.model.parent / "folder").symlink_to(self.elsewhere)
        os.mkfifo(self.model.parent / "fifo")
        out = "leads out of the model's folder"
        locations = {b"../elsewhere/w.bin": out, os.fsencode(self.elsewhere / "w.bin"): out, b"link.bin": out, b"folder/w.bin": out,
                     b"*/_ORT_MEM_ADDR_/*": out, b"a\0b": out, b"fifo": "is not a regular file", f"../{EVIL}".encode(): f"`../{SHOWN}` {out}", b"../\xff": rf"`../\xff` {out}"}
        for location, why in locations.items():
            for place, model in self.models_with(location).items() if location == b"../elsewhere/w.bin" else [("initializer", self.models_with(location)["initializer"])]:
                with self.subTest(place=place, location=location):
                    code, said, _ = self.record(model)
                    self.assertEqual(code, 1)
                    self.assertIn("external data", said)
                    self.assertIn(why, said)

    def test_every_way_to_external_data_is_known(self) -> None:
        """Against the descriptors of ONNX itself: no message between a model and a tensor is missing."""
        kinds = {"ModelProto": "model", "TrainingInfoProto": "training", "GraphProto": "graph", "FunctionProto": "function", "NodeProto": "node",
                 "AttributeProto": "attribute", "SparseTensorProto": "sparse", "TensorProto": "tensor"}
        for message, kind in kinds.items():
            descriptor = getattr(onnx, message, None) or getattr(onnx.onnx_ml_pb2, message)
            ways = {field.number: kinds[field.message_type.name] for field in descriptor.DESCRIPTOR.fields if field.message_type is not None and field.message_type.name in kinds}
            if kind == "tensor":
                ways[descriptor.DESCRIPTOR.fields_by_name["external_data"].number] = "entry"
            self.assertEqual(record.WAYS_TO_EXTERNAL_DATA[kind], ways)

    def test_keys_of_which_others_drop_bits_are_refused(self) -> None:
        model = self.models_with(b"w.bin")["initializer"]
        self.assertEqual(record.external_locations(model), {b"w.bin"})
        code, said, _ = self.record(b"\xba\x80\x80\x80\x10" + delimited(7, self.external(b"../w"))[1:] + model)
        self.assertEqual(code, 1)
        self.assertIn("is not an ONNX model", said)

    def test_depth_is_no_matter(self) -> None:
        body = delimited(5, self.external(b"w.bin"))
        for _ in range(2000):
            body = delimited(1, delimited(5, delimited(6, body)))
        self.assertEqual(record.external_locations(delimited(7, body)), {b"w.bin"})

    # Drawn inputs

    def test_inputs_above_the_limit_are_not_drawn(self) -> None:
        def model(*shapes: Sequence[int | str]) -> onnx.ModelProto:
            inputs = [value(f"x{i}", shape=shape) for i, shape in enumerate(shapes)]
            return model_of([helper.make_node("Relu", ["x0"], ["y"])], inputs, [value("y", shape=shapes[0])])

        for shape, size in (([200, 1000, 1000], 800_000_000), ([1 << 31, 1 << 31, 1 << 31], 4 << 93), ([3000], 12000)):
            code, said, values = self.record(model(shape), "--memory", str(min(size - 1, 1 << 29)))
            self.assertEqual((code, values), (1, {}))
            self.assertIn(f"the input `x0`, declared as float32[{', '.join(map(str, shape))}], has {size} bytes, and --memory is", said)
        code, said, _ = self.record(model([3000], [2000], [1]), "--memory", "20000")
        self.assertEqual(code, 1)
        self.assertIn("the input `x2`, declared as float32[1], has 4 bytes, 20004 with the inputs drawn before it, and --memory is 20000", said)
        self.assertEqual(self.record(model([3000], [2000]), "--memory", "20000")[0], 0)
        code, said, _ = self.record(model(["n"] * 64))
        self.assertEqual(code, 1)
        self.assertIn("and --memory is 1073741824", said)

    def test_drawing_takes_little_beside_the_input(self) -> None:
        for kind, size in (("tensor(float)", 4), ("tensor(bool)", 1), ("tensor(bfloat16)", 2), ("tensor(uint8)", 1)):
            with self.subTest(kind=kind):
                session = types.SimpleNamespace(get_inputs=lambda kind=kind: [types.SimpleNamespace(name="x", type=kind, shape=[8, 1 << 20])])
                tracemalloc.start()
                record.load_inputs(argparse.Namespace(inputs=[], seed=0, most=2, memory=1 << 30), session, {})
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                self.assertLess(peak, (size << 23) + (4 << 20))

    def test_pieces_are_what_one_call_draws(self) -> None:
        count = 3 * record.PIECE + 17
        for kind, draw in (("tensor(float)", lambda generator: generator.standard_normal(count).astype(np.float32)), ("tensor(double)", lambda generator: generator.standard_normal(count)),
                           ("tensor(float16)", lambda generator: generator.standard_normal(count).astype(np.float16)), ("tensor(int64)", lambda generator: generator.integers(0, 300, count)),
                           ("tensor(int8)", lambda generator: generator.integers(0, 300, count).astype(np.int8)), ("tensor(bool)", lambda generator: generator.integers(0, 2, count).astype(np.bool_)),
                           ("tensor(bfloat16)", lambda generator: (generator.standard_normal(count).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))):
            session = types.SimpleNamespace(get_inputs=lambda kind=kind: [types.SimpleNamespace(name=name, type=kind, shape=[count]) for name in "ab"])
            inputs = record.load_inputs(argparse.Namespace(inputs=[], seed=7, most=300, memory=1 << 30), session, {})
            generator = np.random.default_rng(7)
            for name in "ab":
                self.assertTrue(record.same(inputs[name], draw(generator)), kind)

    # Names of values

    def test_a_name_that_a_file_cannot_have_is_left_out(self) -> None:
        long = "n" * 70_000
        model = model_of([helper.make_node("Exp", ["x"], ["a\0b"]), helper.make_node("Exp", ["a\0b"], [long]), helper.make_node("Mul", ["x", long], ["y"])], [value("x")], [value("y")])
        code, said, values = self.record(model)
        self.assertEqual((code, set(values)), (0, {"x", "y"}))
        self.assertIn("recorded 1 values and 1 inputs", said)
        self.assertIn(r"not recorded: `a\u0000b`, `nnn", said)
        self.assertLess(len(said), 800)


    # What is opened

    def test_only_regular_files_are_opened(self) -> None:
        relu = model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x")], [value("y")])
        inputs = self.folder / "inputs"
        inputs.mkdir()
        os.mkfifo(inputs / "input_0.npy")
        for given in (f"x={inputs / 'input_0.npy'}", str(inputs), "x=/dev/zero"):
            code, said, _ = self.record(relu, "--inputs", given)
            self.assertNotEqual(code, 0)
            self.assertIn("it is not a regular file", said)
        for path in (inputs / "input_0.npy", Path("/dev/zero")):
            command = [sys.executable, str(ROOT / "runtime/compare/record.py"), str(path), "--out", str(self.folder / "r")]
            result = subprocess.run(command, capture_output=True, text=True, timeout=60)
            self.assertIn("it is not a regular file", result.stderr)

    def test_damaged_values_are_said_in_a_line(self) -> None:
        relu = model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x")], [value("y")])

        def npy(header: str) -> bytes:
            return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()

        shapes = ("(4,)", f"({2**70},)", "(-1,)", "-" * 9000 + "1", "+".join(["1j"] * 3000), "\x1b[31m")
        contents = [npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}") for shape in shapes]
        for suffix, content in [("npy", each) for each in (*contents, b"PK", b"")] + [("pb", b"\xff" * 64), ("pb", b"\x08" + b"\xff" * 60)]:
            path = self.folder / f"bad.{suffix}"
            path.write_bytes(content)
            code, said, _ = self.record(relu, "--inputs", f"x={path}")
            self.assertNotEqual(code, 0)
            self.assertEqual(len(said.splitlines()), 1, said)

    def test_numbered_files_of_a_large_folder(self) -> None:
        for i in (10, 2, 0, 1):
            (self.folder / f"input_{i}.pb").touch()
        (self.folder / "input_0.npy").touch()
        (self.folder / "input_01.pb").touch()
        for i in range(2000):
            (self.folder / f"other_{i}").touch()
        found = [path.name for path in record.numbered_inputs(self.folder, 10)]
        self.assertEqual(found, ["input_0.npy", "input_1.pb", "input_2.pb"])

    def test_a_copy_of_the_model_is_gone_when_time_is_up(self) -> None:
        inner = "import os, signal, sys; sys.path.insert(0, sys.argv[1]); import pathlib, record\nwith record.removed_file(pathlib.Path(sys.argv[2])) as file:\n  os.kill(os.getpid(), signal.SIGALRM)"
        for _ in range(3):
            result = subprocess.run([sys.executable, "-c", inner, str(ROOT / "runtime/compare"), str(self.elsewhere)], timeout=60)
            self.assertEqual(result.returncode, -signal.SIGALRM)
        end = time.monotonic() + 20
        while list(self.elsewhere.iterdir()) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(list(self.elsewhere.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
