"""How much is known of the values of real models, from `tensorlint show --format json --all-symbols`.

  python coverage.py PROGRAM MODEL... [--unknown N] [--at-least PERCENT]

Counts the tensors, dense and sparse, of the main graph and of the bodies and functions that are entered, without initializers.
Known dims are numbers and expressions of the symbols of the model's inputs, unnamed ones included. `--unknown N` prints the first N values that have a dim which is neither,
with the reason from `tensorlint why`. With `--at-least`, exit code 1 when a value has no rank or fewer dims are known.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys

import onnx

SYMBOL = re.compile(r"[A-Za-z_?][\w?.]*")
FUNCTIONS = {"floor", "mod", "min", "max", "broadcast"}


def symbols_of(dim):
    return {name for name in SYMBOL.findall(dim) if name not in FUNCTIONS} if isinstance(dim, str) else set()


def graphs_of(program, model):
    output = subprocess.run([program, "show", "--format", "json", "--all-symbols", model], capture_output=True, check=True).stdout
    facts = json.loads(output)
    return [("main", facts["values"])] + [(graph["graph"], graph["values"]) for graph in facts["graphs"] if graph.get("entered", True)]


def initializers_of(graph):
    """Names in a graph and its bodies, walked with a list of its own."""
    names, waiting = set(), [graph]
    while waiting:
        graph = waiting.pop()
        names |= {tensor.name for tensor in graph.initializer}
        waiting += [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return names


def reason(program, model, value):
    output = subprocess.run([program, "why", model, value], capture_output=True, text=True).stdout
    return " | ".join(line.strip() for line in output.splitlines()[:3])


def measure(program, model, shown):
    graphs = graphs_of(program, model)
    loaded = onnx.load(model, load_external_data=False)
    initializers = initializers_of(loaded.graph)
    free = set()
    for graph_input in loaded.graph.input:
        for dim in graphs[0][1].get(graph_input.name, {}).get("shape") or []:
            free |= symbols_of(dim)
    count = collections.Counter()
    for graph, values in graphs:
        for name, value in values.items():
            if name in initializers:
                continue
            count["values"] += 1
            if value.get("kind") in ("sequence", "optional", "map"):
                count["other kinds"] += 1
                continue
            shape = value.get("shape")
            if shape is None:
                count["no rank"] += 1
            unknown = [dim for dim in shape or [] if dim is None or not symbols_of(dim) <= free]
            count["dims"] += len(shape or [])
            count["unknown dims"] += len(unknown)
            if (shape is None or unknown) and shown > 0:
                shown -= 1
                print(f"  {graph}: {name} {shape}: {reason(program, model, name)}")
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--unknown", type=int, default=0)
    parser.add_argument("--at-least", type=float, default=0.0)
    arguments = parser.parse_args()
    good = True
    print("| model | values | without rank | dims | known | % |\n|---|---|---|---|---|---|")
    for model in arguments.models:
        count = measure(arguments.program, model, arguments.unknown)
        known = count["dims"] - count["unknown dims"]
        percent = 100 * known / count["dims"] if count["dims"] else 100.0
        good = good and count["no rank"] == 0 and percent >= arguments.at_least
        print(f"| {os.path.basename(model)} | {count['values']} | {count['no rank']} | {count['dims']} | {known} | {percent:.1f} |")
    return 0 if good or not arguments.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
