"""Random graphs in the interpreter: every value lies inside its fact, and outputs agree with onnxruntime's where that runs
the model, or with the reference evaluator's: engines read some corners differently (a slice backwards to INT64_MAX). What onnxruntime refuses may be refused: the reference evaluator takes
more than the specification does.

  random_graphs_run_test.py [--count N] [--seed S]    TENSORLINT_SOUNDNESS=full: 5,000 graphs
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soundness"))
import execution
import random_graphs

warnings.simplefilter("ignore")
COUNT = 5_000 if os.environ.get("TENSORLINT_SOUNDNESS") == "full" else 400


def write(folder, model, feeds, values):
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for i, given in enumerate(model.graph.input):
        (folder / f"input_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(feeds[given.name])).SerializeToString())
    for i, output in enumerate(model.graph.output):
        value = values.get(output.name)
        if isinstance(value, np.ndarray) and value.dtype != object:
            (folder / f"output_{i}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())
    return folder


def run(folder):
    program = os.path.join(os.path.dirname(os.environ["TENSORLINT_BINARY"]), "tensorlint-run")
    expected = [f"--expect={folder}"] if list(folder.glob("output_*.pb")) else []
    # float32 of two engines: sums in another order.
    command = [program, f"--model={folder / 'model.onnx'}", f"--inputs={folder}", "--rtol=2e-3", "--atol=1e-4", "--check-facts=", *expected]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, errors="replace")


def differs_by_rounding(folder):
    """Integers and bools made from floats turn over where engines round differently: both are right."""
    model = onnx.load(folder / "model.onnx")
    cuts = {"Cast", "Floor", "Ceil", "Round", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal", "Sign", "ArgMax", "ArgMin", "TopK",
            "Mod", "NonZero", "Div", "Where", "Pow", "QuantizeLinear", "DynamicQuantizeLinear"}
    return any(node.op_type in cuts for node in model.graph.node)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    made = [random_graphs.make_model(seed) for seed in range(arguments.seed, arguments.seed + arguments.count)]
    by_runtime = execution.all_by_runtime([(model, feeds) for model, feeds, _ in made])
    wrong, agreed, rounding, refused = [], 0, 0, 0
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folders = []
        for seed, ((model, feeds, visits), values) in enumerate(zip(made, by_runtime), arguments.seed):
            expected = dict(values)[""] if values is not None else visits[0][1]
            folders.append(write(pathlib.Path(root) / str(seed), model, feeds, expected))
        for folder, values, (model, feeds, visits), result in zip(folders, by_runtime, made, pool.map(run, folders)):
            if result.returncode == 1 and values is not None:
                result = run(write(folder, model, feeds, visits[0][1]))
            if result.returncode == 0:
                agreed += 1
            elif result.returncode == 1 and differs_by_rounding(folder):
                rounding += 1
            elif result.returncode == 2 and values is None:
                refused += 1
            else:
                wrong.append(f"seed {folder.name}: exit code {result.returncode}: {(result.stdout + result.stderr)[-400:]}")
    print(f"{agreed} of {len(made)} graphs agree, {rounding} differ where rounding may decide, {refused} are refused as by onnxruntime")
    print("\n".join(wrong[:20]))
    return 1 if wrong or rounding > len(made) // 20 or refused > len(made) // 10 else 0


if __name__ == "__main__":
    sys.exit(main())
