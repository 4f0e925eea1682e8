"""Operators that move, select, resize and transform elements agree with ONNX's reference implementation on random
operands: all in one model, whose initializers they are. Operands are ones on which that implementation works."""

import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 21
ROUNDS = 6
Case = tuple[str, list[Any], int, dict[str, Any]]
DTYPES = [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.bool_]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    if np.dtype(dtype).kind in "iub":
        return rng.integers(0, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def whole(values: Any) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def moving(rng: np.random.Generator) -> list[Case]:
    shape = tuple(int(extent) for extent in rng.integers(1, 6, rng.integers(2, 5)))
    rank, axis = len(shape), int(rng.integers(-len(shape), len(shape)))
    data = numbers(rng, shape, DTYPES[rng.integers(len(DTYPES))])
    parts = [int(part) for part in rng.integers(0, 4, 3)]
    split = tuple(sum(parts) if i == axis % rank else extent for i, extent in enumerate(shape))
    batch = int(rng.integers(0, rank))
    tuples = (*shape[:batch], 2)
    pads = whole(rng.integers(0, 2, 2 * rank))
    larger = numbers(rng, tuple(extent + 2 for extent in shape))
    block = int(rng.integers(1, 4))
    return [
        ("Transpose", [data], 1, {"perm": [int(i) for i in rng.permutation(rank)]}),
        ("Concat", [data, data], 1, {"axis": axis}),
        ("Split", [numbers(rng, split), whole(parts)], 3, {"axis": axis}),
        ("Expand", [data, whole([2, *shape])], 1, {}),
        ("Tile", [data, whole(rng.integers(0, 4, rank))], 1, {}),
        ("Slice", [data, whole([4, 0]), whole([-9, 4]), whole([0, -1]), whole([-2, 3])], 1, {}),
        ("Gather", [data, whole(rng.integers(-shape[axis], shape[axis], (2, 3)))], 1, {"axis": axis}),
        ("GatherND", [data, whole(rng.integers(0, shape[batch], (*tuples, 1)))], 1, {"batch_dims": batch}),
        *[("Pad", [larger, pads], 1, {"mode": mode}) for mode in ("constant", "edge", "reflect", "wrap")],
        ("Pad", [larger, whole([1, 2]), np.array(1.5, np.float32), whole([axis])], 1, {}),
        ("DepthToSpace", [numbers(rng, (2, 3 * block**2, 2, 3))], 1, {"blocksize": block, "mode": "CRD"}),
        ("DepthToSpace", [numbers(rng, (2, 3 * block**2, 2, 3))], 1, {"blocksize": block}),
        ("SpaceToDepth", [numbers(rng, (2, 3, 2 * block, block))], 1, {"blocksize": block}),
        ("CenterCropPad", [data, whole(rng.integers(1, 8, rank))], 1, {}),
    ]


def scattering(rng: np.random.Generator) -> list[Case]:
    cases: list[Case] = []
    for reduction in ("none", "add", "mul", "max", "min"):
        # Without a reduction an element that is written twice is anything.
        rows = whole(rng.permutation(5)[:3] if reduction == "none" else rng.integers(-5, 5, 3))
        dtype = [np.float32, np.int64, np.uint8][rng.integers(3)]
        data, updates = numbers(rng, (5, 4), dtype), numbers(rng, (3, 4), dtype)
        spread = np.ascontiguousarray(np.broadcast_to(rows[:, None], (3, 4)))
        cases.append(("ScatterElements", [data, spread, updates], 1, {"axis": 0, "reduction": reduction}))
        cases.append(("ScatterND", [data, rows[:, None], updates], 1, {"reduction": reduction}))
    return cases


def selecting(rng: np.random.Generator) -> list[Case]:
    data, flags = numbers(rng, (4, 5, 3)), {"exclusive": int(rng.integers(2)), "reverse": int(rng.integers(2))}
    axis, upper = int(rng.integers(-3, 3)), {"upper": int(rng.integers(2))}
    extent = data.shape[axis]
    ties = rng.integers(0, 3, (4, 5, 3)).astype(np.float32)
    choice = {"axis": axis, "keepdims": int(rng.integers(2)), "select_last_index": int(rng.integers(2))}
    return [
        ("ArgMax", [ties], 1, choice),
        ("ArgMin", [ties], 1, choice),
        ("TopK", [ties, whole([extent - 1])], 2, {"axis": axis, "largest": int(rng.integers(2))}),
        ("OneHot", [whole(rng.integers(-4, 4, (3, 2))), whole(4), numbers(rng, (2,))], 1, {"axis": axis}),
        ("NonZero", [ties], 1, {}),
        ("Compress", [data, rng.random(extent) < 0.5], 1, {"axis": axis}),
        ("Unique", [whole(rng.integers(0, 5, 12))], 4, {"sorted": int(rng.integers(2))}),
        ("Unique", [ties], 4, {"axis": axis}),
        ("Trilu", [data, whole(int(rng.integers(-6, 6)))], 1, upper),
        ("EyeLike", [data[0]], 1, {"k": int(rng.integers(-4, 5)), "dtype": TensorProto.INT64}),
        ("CumSum", [data, whole(axis)], 1, flags),
        ("ReverseSequence", [data, whole(rng.integers(1, 6, 4))], 1, {"time_axis": 1, "batch_axis": 0}),
    ]


def resizing(rng: np.random.Generator) -> list[Case]:
    image = numbers(rng, (1, 2, int(rng.integers(4, 9)), int(rng.integers(4, 9))))
    roi = np.array([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.2], np.float32)
    cases: list[Case] = []
    for mode in ("nearest", "linear", "cubic"):
        for transformation in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
            attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": transformation}
            if mode == "nearest":
                attributes["nearest_mode"] = rng.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
            scales = np.array([1, 1, *rng.choice([0.5, 0.75, 1.5, 2.5, 3], 2)], np.float32)
            cases.append(("Resize", [image, None, None, whole([1, 2, *rng.integers(1, 13, 2)])], 1, attributes))
            cases.append(("Resize", [image, None, scales], 1, attributes))
    for mode in ("linear", "cubic"):
        crop = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
        cases.append(("Resize", [image, roi, None, whole([1, 2, 4, 5])], 1, crop))
        # Even extents, whose centre is between two elements: the reference takes the wrong ones where a position is a
        # whole number but for its rounding.
        symmetric = {"mode": mode, "coordinate_transformation_mode": "half_pixel_symmetric"}
        scales = np.array([1, 1, *rng.choice([0.6, 0.7, 1.3], 2)], np.float32)
        cases.append(("Resize", [numbers(rng, (1, 2, 6, 8)), None, scales], 1, symmetric))
        shrunk = {"mode": mode, "antialias": 1, "axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller"}
        cases.append(("Resize", [image, None, None, whole(rng.integers(2, 5, 2))], 1, shrunk))
    return cases


def sampling(rng: np.random.Generator) -> list[Case]:
    image, grid = numbers(rng, (2, 2, 4, 5)), (rng.random((2, 3, 4, 2)) * 3 - 1.5).astype(np.float32)
    boxes, scores = rng.random((2, 12, 4)).astype(np.float32), rng.random((2, 3, 12)).astype(np.float32)
    regions = np.sort(rng.random((4, 4)).astype(np.float32) * 8, axis=1)
    corners, length = {"align_corners": int(rng.integers(2))}, int(rng.integers(2, 40))
    aligned = {"output_height": 2, "output_width": 3, "sampling_ratio": int(rng.integers(3)), "spatial_scale": 0.5}
    thresholds = [whole([4]), np.array([0.3], np.float32), np.array([0.2], np.float32)]
    signal = numbers(rng, (2, length, 3, int(rng.integers(1, 3))))
    return [
        *[
            ("GridSample", [image, grid], 1, {"mode": mode, "padding_mode": padding, **corners})
            for mode in ("nearest", "linear", "cubic")
            for padding in ("zeros", "border", "reflection")
            if (mode, padding) != ("cubic", "border")  # the reference clamps the kernel's centre, engines its taps
        ],
        ("AffineGrid", [numbers(rng, (2, 2, 3)), whole([2, 3, 4, 5])], 1, corners),
        ("AffineGrid", [numbers(rng, (2, 3, 4)), whole([2, 3, 2, 3, 4])], 1, corners),
        ("RoiAlign", [numbers(rng, (2, 3, 8, 9)), regions, whole(rng.integers(0, 2, 4))], 1, aligned),
        ("NonMaxSuppression", [boxes, scores, *thresholds], 1, {"center_point_box": int(rng.integers(2))}),
        ("Col2Im", [numbers(rng, (2, 12, 42)), whole([6, 5]), whole([2, 2])], 1, {"pads": [1, 1, 1, 1]}),
        ("DFT", [signal, None, whole(1)], 1, {}),
        ("DFT", [signal[..., :1], whole(int(rng.integers(1, 50))), whole(1)], 1, {"onesided": 1}),
        ("DFT", [numbers(rng, (2, 3, length, 2))], 1, {"inverse": 1}),
        ("STFT", [numbers(rng, (2, 60, 1)), whole(3), numbers(rng, (9,)), whole(9)], 1, {"onesided": 1}),
        ("HannWindow", [whole(length)], 1, {"periodic": int(rng.integers(2))}),
        ("HammingWindow", [whole(length)], 1, {}),
        ("BlackmanWindow", [whole(length)], 1, {"periodic": 0}),
    ]


def model_of(cases: list[Case]) -> onnx.ModelProto:
    nodes, initializers, outputs = [], [], []
    for at, (name, operands, results, attributes) in enumerate(cases):
        inputs = [f"x{at}_{k}" if operand is not None else "" for k, operand in enumerate(operands)]
        initializers += [numpy_helper.from_array(x, i) for x, i in zip(operands, inputs, strict=True) if i]
        named = [f"y{at}_{k}" for k in range(results)]
        nodes.append(helper.make_node(name, inputs, named, name=f"{name}_{at}", **attributes))
        outputs += [helper.make_empty_tensor_value_info(result) for result in named]
    graph = helper.make_graph(nodes, "cases", [], outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def difference(ours: np.ndarray, reference: np.ndarray) -> str | None:
    if ours.shape != reference.shape or ours.dtype != reference.dtype:
        return f"it is {ours.dtype}{ours.shape} instead of {reference.dtype}{reference.shape}"
    # The reference computes in float32, and in float16 where the operands are.
    tolerance = 2e-3 if ours.dtype == np.float16 else 2e-5
    wrong = ~np.isclose(ours.astype(np.float64), reference.astype(np.float64), rtol=1e-4, atol=tolerance)
    return f"{wrong.sum()} of {ours.size} elements differ: {ours[wrong][:4]} {reference[wrong][:4]}" if wrong.any() else None


def main() -> int:
    rng = np.random.default_rng(7)
    cases = [case for _ in range(ROUNDS) for make in (moving, scattering, selecting, resizing, sampling) for case in make(rng)]
    model = model_of(cases)
    expected = ReferenceEvaluator(model).run(None, {})
    program = pathlib.Path(os.environ["TENSORLINT_BINARY"]).parent / "tensorlint-run"
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/model.onnx")
        command = [str(program), f"--model={folder}/model.onnx", f"--outputs={folder}/out"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if result.returncode != 0:
            print(result.stderr)
            return 1
        names = [output.name for output in model.graph.output]
        failures = 0
        for at, (name, reference) in enumerate(zip(names, expected, strict=True)):
            message = onnx.load_tensor(f"{folder}/out/output_{at}.pb")
            wrong = difference(numpy_helper.to_array(message), np.asarray(reference))
            if wrong is not None:
                operator, _, _, attributes = cases[int(name[1:].split("_")[0])]
                print(f"{operator} {attributes}, {name}: {wrong}")
                failures += 1
    print(f"{len(cases)} nodes, {failures} results differ")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
