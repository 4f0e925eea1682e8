"""Models of one's own: what they compute on random inputs lies inside the facts.

  python models_hold.py [--extent NAME=N]... [--at-most INPUT=N]... MODEL...

Executed by onnxruntime and by the reference evaluator (for bodies). `--extent`: the value of a named extent, or of an axis
(`input:1=576`); 1 where it is not given. `--at-most`: integer inputs are drawn from 0 .. N - 1 (default: 2).
"""
import argparse
import os
import sys

import execution
import numpy as np
import onnx
import program
from facts_hold import Judge
from onnx import helper


def draw_inputs(model, extents, limits, rng):
    feeds, constants = {}, {tensor.name for tensor in model.graph.initializer}
    for given in model.graph.input:
        if given.name in constants:
            continue
        tensor = given.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        shape = [dim.dim_value if dim.dim_value > 0 else extents.get(f"{given.name}:{axis}", extents.get(dim.dim_param, 1))
                 for axis, dim in enumerate(tensor.shape.dim)]
        if np.issubdtype(dtype, np.floating):
            feeds[given.name] = (rng.standard_normal(shape) * 0.1).astype(dtype)
        else:
            feeds[given.name] = rng.integers(0, limits.get(given.name, 2), shape).astype(dtype)
    return feeds


def main():
    pair = lambda text: (text.rsplit("=", 1)[0], int(text.rsplit("=", 1)[1]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--extent", type=pair, action="append", default=[])
    parser.add_argument("--at-most", type=pair, action="append", default=[])
    arguments = parser.parse_args()
    rng, bad = np.random.default_rng(0), 0
    for path in arguments.models:
        model, name = onnx.load(path), os.path.basename(path)
        feeds = draw_inputs(model, dict(arguments.extent), dict(arguments.at_most), rng)
        judge, document, ran = Judge(), program.show([path])[path], []
        for run in (execution.by_runtime, execution.by_reference):
            try:
                judge.run(document, run(model, feeds), name, feeds)
                ran.append(run.__name__)
            except Exception as error:  # what an engine does not have
                print(f"{name}: {run.__name__}: {str(error)[:160]}")
        print(f"{name}: {', '.join(ran) or 'not run'}: {judge.summary()}")
        for problem in judge.problems[:5]:
            print(f"  {problem}")
        short = list(judge.below({"dims": 1})) if ran else []
        print("".join(f"  {problem}\n" for problem in short), end="")
        bad += bool(judge.problems) or bool(short) or not ran
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
