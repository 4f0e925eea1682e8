"""Random graphs: what they compute lies inside the facts, and nothing is said to fail in every execution that ran.

  random_graphs_test.py [--count N] [--seed S]    TENSORLINT_SOUNDNESS=full: 20,000 graphs
"""
import argparse
import collections
import os
import pathlib
import sys
import tempfile

import execution
import numpy as np
import program
import random_graphs
from facts_hold import Judge

# A graph of a seed: the same models on every machine, so a failure here can be had again.
COUNT = 20_000 if os.environ.get("TENSORLINT_SOUNDNESS") == "full" else 1_500
# As in Judge.below: nine tenths of what was compared in July 2026.
FLOORS = {"dtypes": 95, "dims": 100, "elements": 65, "bounds": 55, "expressions": 20}
VALUES_PER_GRAPH = 22
MANY = 50  # of fewer graphs floors say little


def same_form(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_form, a, b))
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype


def merge(by_reference, by_runtime, counts):
    """onnxruntime's values where it runs the model; of bodies the reference evaluator's where the two agree."""
    if by_runtime is None:
        counts["by the reference evaluator alone"] += 1
        return by_reference, "reference"
    counts["by onnxruntime"] += 1
    main = dict(by_runtime)[""]
    expected = by_reference[0][1]
    if all(same_form(value, main[name]) for name, value in expected.items() if name in main):
        return by_runtime + by_reference[1:], "both"
    counts["by onnxruntime, the reference evaluator differing in form"] += 1
    return by_runtime, "onnxruntime"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", default="", help="folder for the models")
    arguments = parser.parse_args()
    judge, counts, operators, nodes = Judge(), collections.Counter(), set(), 0
    wrong, missing = [], 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(arguments.keep or folder)
        folder.mkdir(parents=True, exist_ok=True)
        seeds = range(arguments.seed, arguments.seed + arguments.count)
        made = [random_graphs.make_model(seed) for seed in seeds]
        by_runtime = execution.all_by_runtime([(model, feeds) for model, feeds, _ in made])
        cases, extents = {}, {}
        for seed, (model, feeds, by_reference), values in zip(seeds, made, by_runtime):
            nodes += len(model.graph.node)
            operators |= {node.op_type for node in model.graph.node}
            path = folder / f"{seed}.onnx"
            path.write_bytes(model.SerializeToString())
            extents[str(path)] = [extent for value in feeds.values() for extent in value.shape] + [2]
            visits, engine = merge(by_reference, values, counts)
            cases[str(path)] = (f"graph {seed} by {engine}", visits, feeds)
        documents = program.show(cases)
        for path, (where, visits, feeds) in cases.items():
            if path not in documents:
                missing += 1
                continue
            judge.run(documents[path], visits, where, feeds)
        for path, messages in program.failures(folder).items():
            # Only where onnxruntime ran it: the reference evaluator takes more than the operators allow. And not where an
            # extent is 1 or 0: [N] and [N + 2] are said not to fit, which is meant for all N from 2 on.
            where, _, _ = cases[path]
            if not where.endswith("reference") and min(extents[path]) > 1:
                wrong += [f"graph {pathlib.Path(path).stem}: {message}" for message in messages]
    short = list(judge.below({**FLOORS, "values": VALUES_PER_GRAPH * len(cases)}, 1 if len(cases) >= MANY else 0.1))
    for problem in (judge.problems + wrong + short)[:60]:
        print(problem)
    print(f"{len(cases)} random graphs of {nodes} nodes and {len(operators)} operators, executed "
          + ", ".join(f"{count} {how}" for how, count in sorted(counts.items())))
    print(f"{judge.summary()}, {len(wrong)} wrong failures, {missing} not read")
    return 1 if judge.problems or wrong or short or missing or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
