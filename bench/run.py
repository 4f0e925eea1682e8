#!/usr/bin/env python3
"""Times `tensorlint check` as a whole process on chains of transformer-like blocks.

usage: bench/run.py [--nodes N,N,...] [--runs N] [--json]

The program is $TENSORLINT_BINARY, else build/bin/tensorlint. Times are wall clock, the smallest and the median of the
runs after one that warms the file cache. Memory is the largest resident set; a child starts with that of this process,
so figures at or below the floor that is printed mean "less than that".
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
WIDTH = 8


def block(index, source):
    """Nodes and initializers of one block: a projection, a shape chain with Reshape, Softmax, a residual sum."""
    import numpy
    from onnx import helper, numpy_helper

    name = lambda part: f"block{index}/{part}"
    weight = numpy_helper.from_array(numpy.ones((WIDTH, WIDTH), numpy.float32), name("weight"))
    zero = numpy_helper.from_array(numpy.array(0, numpy.int64), name("zero"))
    axes = numpy_helper.from_array(numpy.array([0], numpy.int64), name("axes"))
    tail = numpy_helper.from_array(numpy.array([2, WIDTH // 2], numpy.int64), name("tail"))
    flat = numpy_helper.from_array(numpy.array([WIDTH], numpy.int64), name("flat"))
    nodes = [
        helper.make_node("MatMul", [source, name("weight")], [name("projected")], name("MatMul")),
        helper.make_node("Shape", [name("projected")], [name("shape")], name("Shape")),
        helper.make_node("Gather", [name("shape"), name("zero")], [name("batch")], name("Gather")),
        helper.make_node("Unsqueeze", [name("batch"), name("axes")], [name("batch1")], name("Unsqueeze")),
        helper.make_node("Concat", [name("batch1"), name("tail")], [name("heads")], name("Concat"), axis=0),
        helper.make_node("Reshape", [name("projected"), name("heads")], [name("split")], name("Reshape")),
        helper.make_node("Softmax", [name("split")], [name("soft")], name("Softmax"), axis=-1),
        helper.make_node("Concat", [name("batch1"), name("flat")], [name("joined")], name("Concat_1"), axis=0),
        helper.make_node("Reshape", [name("soft"), name("joined")], [name("merged")], name("Reshape_1")),
        helper.make_node("Add", [name("merged"), source], [name("out")], name("Add")),
    ]
    return nodes, [weight, zero, axes, tail, flat], name("out")


def write_model(path, count):
    from onnx import TensorProto, helper, save

    nodes, initializers, value = [], [], "x"
    for index in range(max(count // 10, 1)):
        more, weights, value = block(index, value)
        nodes += more
        initializers += weights
    nodes.append(helper.make_node("Identity", [value], ["y"], "Identity"))
    graph = helper.make_graph(
        nodes,
        "bench",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", WIDTH])],
        initializers,
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def measure(binary, path, runs):
    seconds, peak = [], 0
    for run in range(runs + 1):
        start = time.perf_counter()
        child = subprocess.Popen([binary, "check", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        errors = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        elapsed = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"bench/run.py: `check` gave {child.returncode} on a valid model: {errors.decode()[:500]}")
        if run > 0:
            seconds.append(elapsed)
        peak = max(peak, usage.ru_maxrss * 1024)
    return min(seconds), statistics.median(seconds), peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", default="1,100,1000,10000")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", nargs=2, metavar=("FILE", "NODES"), help="only write the model")
    arguments = parser.parse_args()
    if arguments.write:
        write_model(arguments.write[0], int(arguments.write[1]))
        return
    binary = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build" / "bin" / "tensorlint"))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (int(text) for text in arguments.nodes.split(",")):
            path = os.path.join(folder, f"{count}.onnx")
            # A process of its own, so that this one stays small: see the note on memory above.
            subprocess.run([sys.executable, __file__, "--write", path, str(count)], check=True)
            fastest, median, peak = measure(binary, path, arguments.runs)
            rows.append(
                {
                    "nodes": max(count // 10, 1) * 10 + 1,
                    "bytes": os.path.getsize(path),
                    "fastest": fastest,
                    "median": median,
                    "peak_rss_bytes": peak,
                }
            )
    if arguments.json:
        print(json.dumps(rows))
        return
    print(f"{'nodes':>7} {'file KB':>8} {'fastest ms':>11} {'median ms':>10} {'peak MB':>8}")
    for row in rows:
        times = f"{row['fastest'] * 1e3:>11.2f} {row['median'] * 1e3:>10.2f}"
        print(f"{row['nodes']:>7} {row['bytes'] / 1e3:>8.0f} {times} {row['peak_rss_bytes'] / 1e6:>8.1f}")
    print(f"(memory floor: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
