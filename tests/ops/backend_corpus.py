"""Writes ONNX's backend tests for backend_facts_test.cc: models without inner and output types, beside what they compute.

    backend_corpus.py FOLDER

FOLDER/models holds the models one after another, FOLDER/cases a line for each: its name, variant, operator (`-` where it has more than one
node), place and length in bytes, and as JSON what its outputs are. Each model comes in variants: as declared; with small integer inputs as
constants; and besides that with a symbol of its own for each dim of an input.
"""
import json
import math
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soundness"))
import backend_test

VARIANTS = ["declared", "constants", "symbols"]
LARGE = 200_000  # bytes: models with weights cost more than they show


def limits(values):
    """[lowest, highest, has NaN] of numbers; None where there are none, or no real ones."""
    if values.dtype.kind not in "fiub" or values.size == 0:
        return None
    numbers = values.astype(np.float64)
    real = numbers[~np.isnan(numbers)]
    if real.size == 0 or not np.isfinite(real).all():
        return None
    return [float(real.min()), float(real.max()), real.size < numbers.size]


def output_of(declared, value):
    if not isinstance(value, np.ndarray) or declared.type.WhichOneof("value") != "tensor_type":
        return None
    found = {"name": declared.name, "dtype": declared.type.tensor_type.elem_type, "shape": list(value.shape)}
    if value.dtype.kind in "iub" and value.size <= 64:
        found["integers"] = [int(element) for element in value.ravel()]
    if value.dtype in (np.float32, np.float64) and value.size <= 64:
        found["floats"] = [repr(float(element)) for element in value.ravel()]  # as text: NaN and infinities are no JSON
    if (range_of := limits(value)) and all(math.isfinite(bound) for bound in range_of[:2]):
        found["range"] = range_of
    return found


def symbols_of(model, feeds):
    found = {}
    for i, given in enumerate(model.graph.input):
        if given.type.WhichOneof("value") == "tensor_type" and isinstance(feeds.get(given.name), np.ndarray):
            for dim, extent in zip(given.type.tensor_type.shape.dim, feeds[given.name].shape):
                if dim.dim_param:
                    found[dim.dim_param] = extent
    return found


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    cases = []
    with open(folder / "models", "wb") as models:
        for name, model, feeds, recorded in backend_test.load_cases(backend_test.KINDS):
            outputs = [output_of(declared, recorded.get(declared.name)) for declared in model.graph.output]
            outputs = [output for output in outputs if output]
            for variant in VARIANTS if outputs else []:
                written = backend_test.variant_of(model, feeds, variant)
                data = written.SerializeToString() if written is not None else b""
                if not data or len(data) > LARGE:
                    continue
                nodes = written.graph.node
                record = json.dumps({"symbols": symbols_of(written, feeds), "outputs": outputs})
                cases.append(f"{name} {variant} {nodes[0].op_type if len(nodes) == 1 else '-'} {models.tell()} {len(data)} {record}\n")
                models.write(data)
    (folder / "cases").write_text("".join(cases))
    print(f"{len(cases)} models")


if __name__ == "__main__":
    main()
