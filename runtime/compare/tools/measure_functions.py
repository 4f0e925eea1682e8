"""Measures how far the functions of an engine on the CPU are from those of `tensorlint run` in float64, over arguments
of all sizes: the statements `function` of contracts/onnxruntime-cpu.txt and torch-cpu.txt, which are twice what this prints.

    python3 measure_functions.py build/bin/tensorlint-run onnxruntime|torch
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# ONNX's name, the contract's, and the arguments that it takes: (least, most).
EVERYWHERE = (-88.0, 88.0)
FUNCTIONS = [
    ("Acos", "acos", (-1, 1)), ("Acosh", "acosh", (1, 1e6)), ("Asin", "asin", (-1, 1)), ("Asinh", "asinh", (-1e6, 1e6)), ("Atan", "atan", (-1e6, 1e6)),
    ("Atanh", "atanh", (-0.9999, 0.9999)), ("Cos", "cos", (-1e4, 1e4)), ("Cosh", "cosh", EVERYWHERE), ("Elu", "elu", EVERYWHERE),
    ("Erf", "erf", (-6, 6)), ("Exp", "exp", EVERYWHERE), ("Gelu", "gelu", (-12, 100)), ("HardSigmoid", "hard_sigmoid", (-4, 4)), ("HardSwish", "hard_swish", (-6, 6)),
    ("Log", "log", (1e-30, 1e30)), ("Mish", "mish", (-80, 80)), ("Selu", "selu", EVERYWHERE), ("Sigmoid", "sigmoid", EVERYWHERE), ("Sin", "sin", (-1e4, 1e4)),
    ("Sinh", "sinh", EVERYWHERE), ("Softplus", "softplus", EVERYWHERE), ("Softsign", "softsign", (-1e6, 1e6)), ("Swish", "swish", EVERYWHERE),
    ("Tan", "tan", (-1e4, 1e4)), ("Tanh", "tanh", (-20, 20)),
]
COUNT = 1 << 20
ROUNDOFF = 2.0**-24


def arguments(least: float, most: float) -> np.ndarray:
    """Half of them spread evenly, half of them over all magnitudes down to 2^-40."""
    draw = np.random.default_rng(1)
    even = draw.uniform(least, most, COUNT // 2)
    sizes = np.exp2(draw.uniform(-40, math.log2(max(abs(least), abs(most))), COUNT // 2)) * draw.choice([-1.0, 1.0], COUNT // 2)
    return np.clip(np.concatenate([even, sizes]), least, most).astype(np.float32)


def model_of(op: str, dtype: int) -> onnx.ModelProto:
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", dtype, [COUNT])], [helper.make_tensor_value_info("y", dtype, [COUNT])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)


def by_onnxruntime(op: str, x: np.ndarray) -> np.ndarray:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = model_of(op, TensorProto.FLOAT).SerializeToString()
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def by_torch(op: str, x: np.ndarray) -> np.ndarray:
    import torch

    # ONNX's HardSigmoid has another slope than PyTorch's.
    names = {"HardSwish": "hardswish", "HardSigmoid": "", "Swish": "silu"}
    name = names.get(op, op.lower())
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    return function(torch.from_numpy(x)).numpy()


def main() -> None:
    compute = {"onnxruntime": by_onnxruntime, "torch": by_torch}[sys.argv[2]]
    for op, name, (least, most) in FUNCTIONS:
        x = arguments(least, most)
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model_of(op, TensorProto.DOUBLE), f"{folder}/m.onnx")
            np.save(f"{folder}/x.npy", x.astype(np.float64))
            subprocess.run([sys.argv[1], f"--model={folder}/m.onnx", f"--inputs=x={folder}/x.npy", f"--outputs={folder}/out"], check=True)
            right = numpy_helper.to_array(onnx.TensorProto.FromString(Path(f"{folder}/out/output_0.pb").read_bytes()))
        if compute is by_torch and op == "HardSigmoid":
            continue
        got = compute(op, x).astype(np.float64)
        ulp = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(right), 1e-300))), -126) - 23)
        error = np.abs(got - right)
        # As many ulps as where the function is not small, and the rest absolutely.
        large = np.abs(right) >= 0.5
        ulps = float(np.max(error[large] / ulp[large])) if large.any() else 0.5
        rest = float(np.max(np.maximum(error - max(ulps, 0.5) * ulp, 0))) / ROUNDOFF
        print(f"function {name} {ulps:.2f} {rest:.3f}   # worst {np.max(error / ulp):.1f} ulps", flush=True)


if __name__ == "__main__":
    main()
