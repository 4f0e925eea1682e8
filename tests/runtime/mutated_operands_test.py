"""ONNX's backend tests of single operators, each with an operand of other extents or values, without an operand, or with another attribute:
a run ends with results inside their facts, or is refused. A slice that follows from a seed; for others

    TENSORLINT_BINARY=... mutated_operands_test.py --count 100000 --seed 7
"""

import argparse
import copy
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soundness"))
import backend_test

warnings.simplefilter("ignore")
LIMITS = ["--memory-limit=67108864", "--time-limit=20", "--threads=1"]
INTEGERS = [-100, -1, 0, 1, 2, 3, 5, 100]
ATTRIBUTE_KINDS = dict(onnx.AttributeProto.AttributeType.items())
Case = tuple[onnx.ModelProto, list[np.ndarray]]


def corpus() -> dict[str, list[Case]]:
    """By operator: models of one node, without the shapes that they declare, and tensors for their inputs."""
    found: dict[str, list[Case]] = {}
    for _, model, feeds, _ in backend_test.load_cases(["node"]):
        arrays = [feeds.get(given.name) for given in model.graph.input]
        if len(model.graph.node) != 1 or not all(isinstance(array, np.ndarray | np.generic) for array in arrays):
            continue
        bare = copy.deepcopy(model)
        for value in [*bare.graph.input, *bare.graph.output]:
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
        found.setdefault(bare.graph.node[0].op_type, []).append((bare, [np.asarray(array) for array in arrays]))
    return found


def with_other_extents(draw: random.Random, array: np.ndarray) -> np.ndarray:
    shape = list(array.shape)
    choices = [[*shape, 2], [2, *shape], [1, *shape], []]
    for axis, extent in enumerate(shape):
        choices += [shape[:axis] + [other] + shape[axis + 1:] for other in (extent + 1, max(extent - 1, 0), 0, 1, extent + 7)]
        choices.append(shape[:axis] + shape[axis + 1:])
    new = draw.choice([choice for choice in choices if choice != shape])
    if array.size == 0 or 0 in new:
        return np.full(new, "" if array.dtype.kind in "OU" else 0, array.dtype)
    return np.resize(array, new)


def with_other_values(draw: random.Random, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "i":
        return np.full_like(array, draw.choice(INTEGERS))
    if array.dtype.kind == "f":
        return np.full_like(array, draw.choice([0, -1, np.nan, np.inf]))
    return array


def other_value(draw: random.Random, kind: int, old: object) -> object:
    """Of an attribute; None: it goes."""
    if kind == onnx.AttributeProto.INT:
        return draw.choice([*INTEGERS, None])
    if kind == onnx.AttributeProto.INTS:
        numbers = list(old) if isinstance(old, list) else [1, 1]
        return draw.choice([[*numbers, 1], numbers[:-1] or [0], [draw.choice(INTEGERS) for _ in numbers] or [1], None])
    if kind == onnx.AttributeProto.FLOAT:
        return draw.choice([0.0, -1.0, 0.5, float("nan"), float("inf"), None])
    if kind == onnx.AttributeProto.STRING:
        return draw.choice(["other", "", None])
    return None


def change_attribute(draw: random.Random, model: onnx.ModelProto) -> None:
    node = model.graph.node[0]
    kinds = {attribute.name: int(attribute.type) for attribute in node.attribute}
    opsets = {opset.domain: opset.version for opset in model.opset_import}
    for name, formal in onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain).attributes.items():
        kinds.setdefault(name, ATTRIBUTE_KINDS[str(formal.type).rsplit(".", 1)[-1]])
    names = sorted(name for name, kind in kinds.items() if kind not in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS))
    if not names:
        return
    name = draw.choice(names)
    old = next((helper.get_attribute_value(attribute) for attribute in node.attribute if attribute.name == name), None)
    value = other_value(draw, kinds[name], old)
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)
    if value is not None:
        node.attribute.append(helper.make_attribute(name, value))


def mutant(draw: random.Random, case: Case) -> Case:
    model, arrays = copy.deepcopy(case[0]), list(case[1])
    node = model.graph.node[0]
    for _ in range(draw.choice([1, 1, 1, 2])):
        kind = draw.choice(["extents", "extents", "values", "absent", "attribute", "attribute"])
        if kind == "attribute" or not arrays or not node.input:
            change_attribute(draw, model)
        elif kind == "absent":
            at = draw.randrange(len(node.input))
            if draw.random() < 0.5:
                node.input[at] = ""
            else:
                del node.input[at:]
        else:
            at = draw.randrange(len(arrays))
            arrays[at] = (with_other_extents if kind == "extents" else with_other_values)(draw, arrays[at])
    return model, arrays


def fault_of(case: Case, folder: pathlib.Path) -> str:
    """What is wrong with its run; empty where nothing is."""
    model, arrays = case
    for old in folder.iterdir():
        old.unlink()
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for i, array in enumerate(arrays):
        (folder / f"input_{i}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    program = pathlib.Path(os.environ["TENSORLINT_BINARY"]).with_name("tensorlint-run")
    arguments = [str(program), f"--model={folder / 'model.onnx'}", f"--inputs={folder}", *LIMITS]
    # What a body declares of its values is the model's claim, and a loop without a trip count may be endless.
    has_body = any(attribute.HasField("g") for attribute in model.graph.node[0].attribute)
    if not has_body:
        arguments.append("--check-facts=1")
    done = subprocess.run(arguments, capture_output=True, text=True, errors="replace", timeout=120, check=False)
    words = [word for word in ("internal", "a bug of", "time limit", "no memory", "Sanitizer", "runtime error") if word in done.stderr]
    if done.returncode in (0, 2) and words in ([], ["time limit"] if has_body else []):
        return ""
    return f"exit code {done.returncode}: {(done.stdout + done.stderr)[-600:]}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    by_operator = corpus()
    operators = sorted(by_operator)
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for k in range(arguments.count):
            case = mutant(draw, draw.choice(by_operator[operators[k % len(operators)]]))
            if fault := fault_of(case, pathlib.Path(folder)):
                faults += 1
                shapes = [f"{array.dtype}{list(array.shape)}" for array in case[1]]
                print(f"{k}: {onnx.printer.to_text(case[0].graph.node[0])} of {shapes}: {fault}", flush=True)
    print(f"{len(operators)} operators, {arguments.count} mutants, {faults} faults")
    return 1 if faults or len(operators) < 150 else 0


if __name__ == "__main__":
    sys.exit(main())
