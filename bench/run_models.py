"""Times tensorlint-run against onnxruntime and onnx's ReferenceEvaluator on the same models and inputs, in turn.

  run_models.py [--pairs N] [--seed N] [--threads N] [--tool FILE] [--no-reference] [--extents INPUT=N,N...] MODEL...      needs onnx and onnxruntime

MODEL is an ONNX file, or a folder with model.onnx. Its inputs are those of test_data_set_0 beside it where there are any,
else drawn from the seed: dims that are not known are 2 or as --extents says, floats are normal, integers 0 and 1. In each pair tensorlint-run
and the peers run one after the other; ratios are taken pair by pair, and the median of each model is printed. "cpu" is
processor time with one thread each, "wall" elapsed time with --threads (2). What is timed is one run of a loaded model
after two that warm up: the mean of `--repeat=N --timings=total` of tensorlint-run, a session's or evaluator's later runs of
the peers. Short runs are repeated for a hundredth of a second on all sides. "cold" is the processor time of tensorlint-run's first
run to that of onnxruntime's later ones.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIMES = re.compile(r"^run: ([0-9.]+) s, processor ([0-9.]+) s", re.MULTILINE)


def drawn(value, extents, random):
    tensor = value.type.tensor_type
    shape = extents.get(value.name) or [dim.dim_value if dim.HasField("dim_value") else 2 for dim in tensor.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if np.issubdtype(dtype, np.floating):
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)


def inputs_of(model, folder, extents, random):
    constants = {tensor.name for tensor in model.graph.initializer}
    result = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        path = os.path.join(folder, "test_data_set_0", f"input_{len(result)}.pb")
        if os.path.exists(path):
            with open(path, "rb") as file:
                result[value.name] = numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))
        else:
            result[value.name] = drawn(value, extents, random)
    return result


def run_tool(tool, path, folder, threads, repeat):
    """Wall and processor seconds of a run, the mean of those after the second."""
    command = [tool, f"--model={path}", f"--inputs={folder}", f"--outputs={folder}/out", "--timings=total", f"--repeat={repeat}"]
    if threads:
        command.append(f"--threads={threads}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    match = TIMES.search(done.stdout)
    if done.returncode != 0 or match is None:
        raise RuntimeError(f"tensorlint-run: {done.stderr.strip() or done.stdout}")
    return float(match[1]), float(match[2])


def run_warm(tool, path, folder, threads, least=0.01):
    """The same, of as many short runs as take `least` seconds."""
    wall, processor = run_tool(tool, path, folder, threads, 3)
    # By processor time: on a machine that others use a run of microseconds may take milliseconds.
    return (wall, processor) if processor >= least else run_tool(tool, path, folder, threads, int(least / max(processor, 1e-5)) + 3)


def session_of(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def timed(call, least=0.01):
    """Wall and processor seconds of a call."""
    runs, wall, processor = 0, time.perf_counter(), time.process_time()
    while runs == 0 or time.perf_counter() - wall < least:
        call()
        runs += 1
    return (time.perf_counter() - wall) / runs, (time.process_time() - processor) / runs


class Bench:
    def __init__(self, arguments, path):
        self.arguments = arguments
        self.path = os.path.join(path, "model.onnx") if os.path.isdir(path) else path
        model = onnx.load(self.path)
        self.inputs = inputs_of(model, os.path.dirname(self.path), arguments.extents, np.random.default_rng(arguments.seed))
        self.single = session_of(self.path, 1)
        self.several = session_of(self.path, arguments.threads)
        self.reference = None if arguments.no_reference else ReferenceEvaluator(model)

    def pair(self, folder):
        tool, threads = self.arguments.tool, self.arguments.threads
        one = None if self.arguments.without_threads else 1
        _, cold = run_tool(tool, self.path, folder, one, 1)
        _, warm = run_warm(tool, self.path, folder, one)
        _, peer = timed(lambda: self.single.run(None, self.inputs))
        row = {"cold": cold / peer, "cpu": warm / peer, "seconds": warm}
        if self.reference is not None:
            row["reference"] = timed(lambda: self.reference.run(None, self.inputs))[1] / warm
        if one:
            wall, _ = run_warm(tool, self.path, folder, threads)
            row["wall"] = wall / timed(lambda: self.several.run(None, self.inputs))[0]
        return row

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            for i, array in enumerate(self.inputs.values()):
                with open(f"{folder}/input_{i}.pb", "wb") as file:
                    file.write(numpy_helper.from_array(np.asarray(array)).SerializeToString())
            self.single.run(None, self.inputs)
            self.several.run(None, self.inputs)
            if self.reference is not None:
                self.reference.run(None, self.inputs)
            rows = [self.pair(folder) for _ in range(self.arguments.pairs)]
        return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tool", default=os.path.join(ROOT, "build", "bin", "tensorlint-run"))
    parser.add_argument("--no-reference", action="store_true")
    parser.add_argument("--without-threads", action="store_true", help="the tool has no option --threads")
    parser.add_argument("--extents", action="append", default=[], metavar="INPUT=N,N...", help="of an input")
    arguments = parser.parse_args()
    arguments.extents = {name: [int(extent) for extent in extents.split(",")] for name, extents in (each.split("=") for each in arguments.extents)}
    names = ("seconds", "cold", "cpu", "reference", "wall")
    print(f"{'model':<42}" + "".join(f"{name:>11}" for name in names))
    rows = []
    for path in arguments.models:
        try:
            row = Bench(arguments, path).run()
        except Exception as fault:  # one model that a peer cannot run must not end the others
            print(f"{path[-41:]:<42} {str(fault).splitlines()[0][:100]}")
            continue
        rows.append(row)
        print(f"{path[-41:]:<42}" + "".join(f"{row[name]:>11.4g}" if name in row else f"{'':>11}" for name in names), flush=True)
    if rows:
        print(f"{'median':<42}" + "".join(f"{statistics.median([row[name] for row in rows if name in row] or [0]):>11.4g}" for name in names))
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
