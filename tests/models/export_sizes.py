"""Exports the models of `sizes/` through both exporters of PyTorch and records with which sizes they run; `sizes.json` is the index.

  export_sizes.py        needs torch 2.13.0, onnx, onnxscript, onnxruntime

Each model is exported as it is written, with sizes of its example in it, and again with its axes free. Where dynamo refuses an
axis since the size is fixed, the model is exported with fixed sizes and the axes are declared open afterwards, as is done to
files that came without open axes. A file that is there is kept, and what could not be exported is not tried again: remove the
file, or the index, to export anew.

What is true of an export is found by running it: along each open axis, with the sizes of the example for all others. `runs` are
the sizes that onnxruntime runs, `fails` the others, `nodes` those that fail and do not read what another one that fails makes.
"""
import contextlib
import importlib
import io
import json
import logging
import os
import re
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from export_programs import TRACE, nodes_of, python_frames

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "sizes")
SOURCES = "tests/models/sizes"
sys.path.insert(0, FOLDER)
import architecture


def files():
    return sorted(name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py") and name != "architecture.py")


def shorten(model):
    for graph in (model.graph, *model.functions):
        for node in nodes_of(graph):
            trace = next((entry.value for entry in node.metadata_props if entry.key == TRACE), "")
            del node.metadata_props[:]
            if frames := python_frames(trace, FOLDER, SOURCES):
                node.metadata_props.add(key=TRACE, value=frames)
            node.doc_string = ""
        del graph.value_info[:]
    model.graph.doc_string = ""
    del model.metadata_props[:]
    for part in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        del part.metadata_props[:]


def open_axes(model, axes):
    """Declares axes of inputs open, and all axes of results."""
    for value in model.graph.input:
        for axis, symbol in axes.get(value.name, {}).items():
            value.type.tensor_type.shape.dim[axis].dim_param = symbol
    for value in model.graph.output:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{axis}"


def is_open(model, axes):
    """Whether all axes kept their names; an exporter may have fixed one without a word."""
    dims = {value.name: value.type.tensor_type.shape.dim for value in model.graph.input}
    return all(dims[name][axis].dim_param for name, names in axes.items() for axis in names)


def export(net, inputs, axes, path, exporter):
    values = tuple(inputs.values())
    names = list(inputs)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if exporter == "dynamo":
            shapes = {name: axes.get(name, {}) for name in names}
            torch.onnx.export(net, values, path, dynamo=True, external_data=False, dynamic_shapes=shapes, input_names=names)
        elif exporter == "dynamo_opened":
            torch.onnx.export(net, values, path, dynamo=True, external_data=False, input_names=names)
        else:
            torch.onnx.export(net, values, path, dynamo=False, input_names=names, output_names=["y"], dynamic_axes={**axes, "y": {}})
    model = onnx.load(path)
    shorten(model)
    if exporter == "dynamo_opened":
        open_axes(model, axes)
    if not is_open(model, axes):
        raise ValueError("an axis is fixed")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def with_size(inputs, axes, symbol, size):
    """The inputs with another size along the axes of that name; elements repeat, so that indices stay valid."""
    changed = {}
    for name, value in inputs.items():
        array = value.numpy()
        for axis, other in axes.get(name, {}).items():
            if other == symbol:
                array = np.take(array, np.arange(size) % array.shape[axis], axis)
        changed[name] = array
    return changed


def sizes_of(traced):
    return sorted({*range(1, 2 * traced + 3), 3 * traced, 4 * traced, 5 * traced, 8 * traced})


def spans(numbers):
    """1, 2, 3, 7 as [[1, 3], [7, 7]]."""
    found = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def failing_node(session, values):
    """The name of the node that stops a run; None where it runs."""
    try:
        session.run(None, {value.name: values[value.name] for value in session.get_inputs()})
    except Exception as error:
        named = re.search(r"Name:'([^']*)'", str(error))
        return named[1] if named else " ".join(str(error).split())[:200]
    return None


def without(model, name):
    """The model up to the node, which and whose readers are left out; all that nothing reads is a result."""
    rest = onnx.ModelProto()
    rest.CopyFrom(model)
    gone, kept = set(), []
    for node in model.graph.node:
        if node.name == name or gone & set(node.input):
            gone |= {value for value in node.output if value}
        else:
            kept.append(node)
    read = {value for node in kept for value in node.input}
    del rest.graph.node[:], rest.graph.output[:]
    rest.graph.node.extend(kept)
    rest.graph.output.extend(onnx.ValueInfoProto(name=value) for node in kept for value in node.output if value and value not in read)
    return rest


def failing_nodes(model, values):
    """All nodes that fail and read nothing of another one that does."""
    found = []
    while len(found) < 8 and model.graph.output:
        name = failing_node(session_of(model), values)
        if name is None or name not in {node.name for node in model.graph.node}:
            break
        found.append(name)
        model = without(model, name)
    return found


def tried(path, inputs, axes):
    model = onnx.load(path)
    session = session_of(model)
    places = {node.name: place for place, node in enumerate(model.graph.node)}
    found = {}
    for symbol in sorted({symbol for named in axes.values() for symbol in named.values()}):
        traced = next(inputs[name].shape[axis] for name, named in axes.items() for axis, other in named.items() if other == symbol)
        runs, fails, nodes = [], [], set()
        for size in sizes_of(traced):
            values = with_size(inputs, axes, symbol, size)
            first = failing_node(session, values)
            (runs if first is None else fails).append(size)
            if first is not None and (first not in nodes or size == 2 * traced):
                nodes |= {first, *failing_nodes(model, values)}
        found[symbol] = {"traced": traced, "runs": spans(runs), "fails": spans(fails), "nodes": sorted(nodes, key=lambda name: places.get(name, -1))}
    return found


def is_fixed(axis):
    """No other size runs, but those that a division makes the same and those that it makes 1, which broadcasting stretches."""
    traced = axis["traced"]
    first, last = next(span for span in axis["runs"] if span[0] <= traced <= span[1])
    if traced == 2 and first == 1:
        first = 2
    lower = [span for span in axis["runs"] if span[1] < first]
    above = [span for span in axis["runs"] if span[0] > last]
    return not above and last < 2 * traced and (last - first) * 2 <= last and len(lower) <= 1 and all(span[1] - span[0] <= last - first for span in lower)


def save(index, path):
    for part in index.values():
        part.sort(key=lambda entry: (entry["source"], entry["model"], entry["free"], entry["exporter"]))
    with open(path, "w") as stored:
        stored.write("{\n")
        for number, (name, part) in enumerate(index.items()):
            stored.write(f' "{name}": [\n' + ",\n".join("  " + json.dumps(entry) for entry in part) + ("\n ],\n" if number < len(index) - 1 else "\n ]\n"))
        stored.write("}\n")


def refused_before():
    """What could not be exported: the error by source, model, whether free, exporter."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(HERE, "sizes.json")) as stored:
        return {(entry["source"], entry["model"], entry["free"], entry["exporter"]): entry["error"] for entry in json.load(stored)["unsupported"]}
    return {}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    index: dict[str, list[dict]] = {"models": [], "unsupported": []}
    refused = refused_before()
    for file in files():
        architecture.MODELS.clear()
        torch.manual_seed(0)
        importlib.import_module(file)
        os.makedirs(os.path.join(FOLDER, file), exist_ok=True)
        for function, parts, inputs, axes, baked, twin in architecture.MODELS:
            name = function.__name__
            for free in (False, True) if twin else (False,):
                exporters = ["torchscript", "dynamo"]
                while exporters:
                    exporter = exporters.pop(0)
                    path = f"{file}/{name}{'_free' if free else ''}_{exporter}.onnx"
                    full = os.path.join(FOLDER, path)
                    entry = {"source": file, "model": name, "free": free, "exporter": exporter}
                    try:
                        if refused.get(tuple(entry.values())):
                            raise ValueError("was not exported before")
                        if not os.path.exists(full):
                            net = architecture.module(function, parts, free).eval()
                            export(net, inputs, axes, full, exporter)
                        found = tried(full, inputs, axes)
                    except Exception as error:
                        print("not exported:", path, type(error).__name__, " ".join(str(error).split())[:250], flush=True)
                        index["unsupported"].append({**entry, "error": refused.get(tuple(entry.values()), type(error).__name__)})
                        with contextlib.suppress(FileNotFoundError):
                            os.remove(full)
                        if exporter == "dynamo" and not free:
                            exporters.append("dynamo_opened")
                        continue
                    fixed = sorted(symbol for symbol in found if is_fixed(found[symbol]))
                    expected = [] if free else sorted(baked)
                    if fixed != expected:
                        print("DIFFERS:", path, "fixed", fixed, "expected", expected, {symbol: found[symbol] for symbol in set(fixed) ^ set(expected)}, flush=True)
                    index["models"].append({**entry, "file": f"sizes/{path}", "fixed": fixed, "axes": axes, "sizes": found})
            save(index, os.path.join(HERE, "sizes.json"))
    print(len(index["models"]), "models,", len(index["unsupported"]), "not exported")


if __name__ == "__main__":
    main()
