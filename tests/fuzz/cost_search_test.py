"""The search for models that cost too much finds what a planted fault makes dear, and leaves the smallest it knows."""

import base64
import contextlib
import os
import random
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import onnx

os.environ.setdefault("TENSORLINT_BINARY", "tensorlint")
import cost_search

SEARCH = Path(__file__).with_name("cost_search.py")
MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float[N] y) {
  a = Relu (x)
  y = Add (a, x)
}"""
#: Models with more than a hundred times this operator.
MANY_ADDS = 'test "$(grep -ao Add "$last" 2>/dev/null | wc -l)" -gt 100 && '


def search(tool_text, *options, seconds=600):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "models").mkdir()
        (folder / "models" / "m.onnx").write_bytes(onnx.parser.parse_model(MODEL).SerializeToString())
        tool = folder / "tool"
        tool.write_text("#!/bin/sh\nfor last; do :; done\n" + tool_text + "\nexit 0\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        outcome = subprocess.run(
            [sys.executable, SEARCH, str(seconds), folder / "models", "--seed", "3", *options, "--jobs", "1", "--found", folder / "found"],
            env={**os.environ, "TENSORLINT_BINARY": str(tool)},
            capture_output=True,
            text=True,
            check=False,
        )
        found = [path.read_bytes() for path in (folder / "found").glob("*.onnx")]
        return outcome, found


class CostSearch(unittest.TestCase):
    def test_a_crash_on_many_nodes_is_found_and_made_smaller(self):
        outcome, found = search(MANY_ADDS + "exit 3", "--inputs", "80")
        self.assertEqual(outcome.returncode, 1, outcome.stderr)
        self.assertIn("ends with 3", outcome.stdout)
        again = re.findall(r"^again: base64 -d <<<(\S+) >", outcome.stdout, re.MULTILINE)
        self.assertEqual(sorted(base64.b64decode(text) for text in again), sorted(found))
        self.assertIn(min(data.count(b"Add") for data in found), range(101, 200))

    def test_a_tool_that_keeps_the_promise_is_left_alone(self):
        outcome, found = search("", seconds=1)
        self.assertEqual(outcome.returncode, 0, outcome.stdout + outcome.stderr)
        self.assertRegex(outcome.stdout, r"\n[1-9]\d* inputs, 0 break the promise\n")
        self.assertEqual(found, [])

    def test_larger_models_where_they_are_asked_for(self):
        large = 'test "$(wc -c <"$last")" -gt 66000 && exit 3'
        self.assertEqual(search(large, "--inputs", "80")[1], [])
        outcome, found = search(large, "--inputs", "80", "--largest", "200000")
        self.assertIn("ends with 3", outcome.stdout)
        self.assertLessEqual(max(map(len, found)), 200_000)

    def test_a_search_goes_on_after_the_process_that_runs_the_commands_died(self):
        # Every fourth run ends its parent.
        outcome, found = search('echo >>runs; test $(($(wc -l <runs) % 4)) = 0 && kill -9 $PPID', "--inputs", "40")
        self.assertEqual(outcome.returncode, 0, outcome.stdout + outcome.stderr)
        self.assertIn("40 inputs, 0 break the promise", outcome.stdout)
        self.assertIn(outcome.stdout.count("died with -9"), range(10, 15))
        self.assertEqual(found, [])

    def test_a_search_that_cannot_run_commands_says_so(self):
        outcome, _ = search("kill -9 $PPID", "--inputs", "3", seconds=60)
        self.assertEqual(outcome.returncode, 1, outcome.stdout + outcome.stderr)
        self.assertIn("died 21 times", outcome.stderr)
        self.assertIn("0 inputs, 0 break the promise", outcome.stdout)


class Changing(unittest.TestCase):
    def test_extents_of_tensors_and_declared_types(self):
        model = onnx.parser.parse_model(MODEL)
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 5
        model.graph.initializer.append(onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2, 3], [0.0] * 6))
        mutator = cost_search.Mutator([model.SerializeToString()], random.Random(1))
        of_tensors, of_types = set(), set()
        for _ in range(3000):
            changed = mutator.seed()
            mutator.set_extents(changed)
            of_tensors.add(tuple(changed.graph.initializer[0].dims))
            of_types.add(changed.graph.input[0].type.tensor_type.shape.dim[0].dim_value)
        for edge in (0, 2**62):
            self.assertIn((edge, 3), of_tensors)
            self.assertIn((2, 3, edge), of_tensors)
            self.assertIn(edge, of_types)


class Measuring(unittest.TestCase):
    def test_the_time_of_starting_is_not_limited(self):
        # 12 s of its own are more than one command may take.
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(cost_search.Starter(folder)) as starter:
            self.assertNotIn("setrlimit(resource.RLIMIT_CPU", cost_search.STARTER)
            # The limits come just after the start.
            code, _, _ = starter.run(["/bin/sh", "-c", "i=0; while test $i -lt 20000; do i=$((i + 1)); test $(ulimit -t) = 10 && exit 0; done; exit 1"])
            self.assertEqual(code, 0)

    def test_memory_and_time_of_a_process(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(cost_search.Starter(folder)) as starter:
            take = "import sys, time; data = b'x' * 80_000_000\nwhile time.process_time() < 0.3: pass\nsys.exit(5)"
            code, seconds, memory = starter.run([sys.executable, "-S", "-c", f"exec({take!r})"])
            self.assertEqual(code, 5)
            self.assertIn(round(seconds, 1), (0.3, 0.4))
            self.assertIn(memory >> 20, range(76, 110))
            _, _, small = starter.run(["/bin/true"])
            self.assertLess(small, 24 << 20)

    def test_commands_get_the_model_the_model_as_text_and_its_last_value(self):
        data = onnx.parser.parse_model(MODEL).SerializeToString()
        with tempfile.TemporaryDirectory() as folder:
            words, size = cost_search.words_of(data, ("why", "{}", "{value}"), folder)
            self.assertEqual(words, ["why", f"{folder}/m.onnx", "y"])
            self.assertEqual(Path(words[1]).read_bytes(), data)
            self.assertEqual(size, len(data))
            words, size = cost_search.words_of(data, ("fix", "-o", "{folder}/f", "{text}"), folder)
            self.assertEqual(words[:3], ["fix", "-o", f"{folder}/f"])
            self.assertIn("y = Add (a, x)", Path(words[3]).read_text())
            self.assertEqual(size, Path(words[3]).stat().st_size)

    def test_a_model_that_is_too_large_as_text_is_left_out(self):
        model = onnx.parser.parse_model(MODEL)
        model.graph.initializer.append(onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [20000], [0.25] * 20000))
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(cost_search.words_of(model.SerializeToString(), ("check", "{text}"), folder), (None, 0))

    def test_a_model_that_the_printer_refuses_is_left_out(self):
        model = onnx.parser.parse_model(MODEL)
        tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[16], raw_data=bytes(32))
        model.graph.initializer.append(tensor)
        with self.assertRaisesRegex(onnx.shape_inference.InferenceError, "size mismatch"):
            onnx.printer.to_text(model)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(cost_search.words_of(model.SerializeToString(), ("check", "{text}"), folder), (None, 0))

    def test_shares_of_the_promise(self):
        self.assertEqual(cost_search.Cost(0.5, 64 << 20, 128 << 20).share, 0.5)
        self.assertEqual(cost_search.Cost(0.5, 64 << 20, 32 << 20).share, 2)


if __name__ == "__main__":
    unittest.main()
