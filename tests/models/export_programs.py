"""Exports the programs of `programs/` through both exporters of PyTorch; `programs.json` is the index.

  export_programs.py        needs torch 2.13.0, onnx, onnxscript

`programs/modules`, `programs/formulas`, `programs/plain_steps`, `programs/varied_steps`, `programs/mixed_steps`, `programs/usual_steps`, `programs/everyday_steps`, `programs/common_steps`, `programs/frequent_steps`, `programs/practice_steps`, `programs/spelt_steps`, `programs/typical_steps`,
`programs/familiar_steps` and `programs/ordinary_steps` have a module in each file, `Step`, with `example()` for its inputs. `OPEN` is for their open axes, and `Fixed`
the same without its mistake, if there are such; it is exported by both exporters as it is, and by one of them as it should be. `EVAL` says that it is a step of inference.

Each program is exported by both exporters, one of them with a fixed and the other with an open batch, in turn. A file that
is there is kept: remove it to export it anew. Of the metadata the frames of the programs themselves are kept, since
the line of a finding comes from there, and what PyTorch calls the node.
"""
import ast
import contextlib
import importlib
import importlib.util
import inspect
import io
import json
import logging
import os
import re
import sys
import warnings

import onnx
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "programs")
SOURCES = "tests/models/programs"
#: Folders with a module in each file, and which batch they are.
MODULES = {"modules": "sixth", "formulas": "seventh", "plain_steps": "eighth", "varied_steps": "ninth", "mixed_steps": "tenth", "usual_steps": "eleventh", "everyday_steps": "twelfth", "common_steps": "thirteenth", "frequent_steps": "fourteenth", "practice_steps": "fifteenth", "spelt_steps": "sixteenth", "typical_steps": "seventeenth", "familiar_steps": "eighteenth",
           "ordinary_steps": "nineteenth"}
LARGE, SMALL = 1 << 14, 1 << 12
TRACE = "pkg.torch.onnx.stack_trace"
#: What PyTorch computes there: the exporter leaves small summands out of the node itself.
CALL = "pkg.torch.onnx.fx_node"
sys.path.insert(0, FOLDER)
import program as programs


def files():
    return sorted(name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py") and name != "program.py")


def faults(file):
    """The marked lines of each program: line -> rules."""
    with open(os.path.join(FOLDER, file + ".py")) as source:
        text = source.read()
    lines = text.splitlines()
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            marked = {}
            for number in range(node.lineno, node.end_lineno + 1):
                if "# fault:" in lines[number - 1]:
                    marked[number] = lines[number - 1].split("# fault:")[1].split()
            found[node.name] = marked
    return found


def python_frames(trace, folder=FOLDER, sources=SOURCES):
    """Frames of the files in a folder alone, as a reader has them: relative to the repository, without the lines' text."""
    frames = re.findall(r'File "([^"]*)", line (\d+), in (\w+)', trace)
    kept = [(os.path.basename(file), line, name) for file, line, name in frames if os.path.dirname(file) == folder]
    return "\n".join(f'File "{sources}/{file}", line {line}, in {name}' for file, line, name in kept)


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g)


def shorten(path, folder=FOLDER, sources=SOURCES):
    model = onnx.load(path)
    graphs = [model.graph, *model.functions]
    for graph in graphs:
        for node in nodes_of(graph):
            trace, call = (next((entry.value for entry in node.metadata_props if entry.key == key), "") for key in (TRACE, CALL))
            del node.metadata_props[:]
            if call:
                node.metadata_props.add(key=CALL, value=call)
            if frames := python_frames(trace, folder, sources):
                node.metadata_props.add(key=TRACE, value=frames)
            node.doc_string = ""
    # Weights may be any numbers; repeated ones take no room in the repository.
    for weights in model.graph.initializer:
        if len(weights.raw_data) > LARGE and weights.data_type == onnx.TensorProto.FLOAT:
            weights.raw_data = (weights.raw_data[:SMALL] * (len(weights.raw_data) // SMALL + 1))[: len(weights.raw_data)]
    del model.metadata_props[:]
    for part in (*model.graph.input, *model.graph.output, *model.graph.initializer, *model.graph.value_info):
        del part.metadata_props[:]
    onnx.save(model, path)


def export(step, inputs, path, exporter):
    values = tuple(inputs.values())
    names = list(inputs)
    is_open = exporter.endswith("_open")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if exporter.startswith("dynamo"):
            batch = torch.export.Dim("batch", min=2, max=4096)
            shapes = {name: {0: batch} for name in names} if is_open else None
            torch.onnx.export(step, values, path, dynamo=True, external_data=False, dynamic_shapes=shapes, input_names=names, output_names=["loss"])
        else:
            axes = {name: {0: "batch"} for name in names} if is_open else None
            torch.onnx.export(step, values, path, dynamo=False, input_names=names, output_names=["loss"], dynamic_axes=axes)
    shorten(path)


def export_module(source, kind, folder, path, exporter):
    torch.manual_seed(0)
    step = getattr(source, kind)()
    inputs, opened = source.example(), getattr(source, "OPEN", None)
    torch.manual_seed(0)
    values = tuple(value.clone() for value in inputs)
    parts = list(step.modules())
    is_fixed = any(isinstance(part, (torch.nn.Dropout, torch.nn.modules.batchnorm._BatchNorm)) for part in parts)
    step.train(not is_fixed and not getattr(source, "EVAL", False))
    names = list(inspect.signature(step.forward).parameters)[: len(values)]
    axes = {name: dict(given) for name, given in zip(names, opened or [], strict=False) if given}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if exporter == "dynamo":
            shapes = tuple(dict(given) if given else None for given in opened) if opened else None
            torch.onnx.export(step, values, path, dynamo=True, verbose=False, external_data=False, dynamic_shapes=shapes)
        else:
            torch.onnx.export(step, values, path, dynamo=False, verbose=False, opset_version=18, input_names=names,
                              training=torch.onnx.TrainingMode.PRESERVE, dynamic_axes=axes or None)
    shorten(path, os.path.join(FOLDER, folder), f"{SOURCES}/{folder}")


def modules(folder):
    """Each module of a folder: name, class, exporters, marked lines."""
    place = os.path.join(FOLDER, folder)
    for number, name in enumerate(sorted(file[:-3] for file in os.listdir(place) if file.endswith(".py"))):
        with open(os.path.join(place, name + ".py")) as source:
            lines = source.read().splitlines()
        marked = {at: line.split("# fault:")[1].split() for at, line in enumerate(lines, 1) if "# fault:" in line}
        yield name, "Step", ["dynamo", "torchscript"], marked
        if marked:
            yield name + "_fixed", "Fixed", [["dynamo", "torchscript"][number % 2]], {}


def add_modules(index, folder):
    for program, kind, exporters, marked in modules(folder):
        spec = importlib.util.spec_from_file_location(program, os.path.join(FOLDER, folder, program.removesuffix("_fixed") + ".py"))
        assert spec is not None and spec.loader is not None
        source = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(source)
        if not hasattr(source, kind):
            continue
        for exporter in exporters:
            path = f"{folder}/{program}_{exporter}.onnx"
            entry = {"source": f"{MODULES[folder]}_{folder}", "program": program, "exporter": exporter}
            try:
                if not os.path.exists(os.path.join(FOLDER, path)):
                    export_module(source, kind, folder, os.path.join(FOLDER, path), exporter)
            except Exception as error:
                index["unsupported"].append({**entry, "error": type(error).__name__})
                print("not exported:", path, " ".join(str(error).split())[-300:], flush=True)
                with contextlib.suppress(FileNotFoundError):
                    os.remove(os.path.join(FOLDER, path))
                continue
            index["models"].append({**entry, "file": f"programs/{path}", "faults": marked})


def exporters_of(number, fixed):
    """One export by each exporter: of every other program dynamo has the open batch, of the others torchscript."""
    opened = number % 2
    return [name + ("_open" if is_open and not fixed else "") for name, is_open in (("dynamo", not opened), ("torchscript", opened))]


def in_turn(wanted):
    """The programs of all files: one of each file after another, a correct one after two with a mistake."""
    queues = []
    for file in wanted:
        torch.manual_seed(0)
        programs.PROGRAMS.clear()
        importlib.import_module(file)
        marked = faults(file)
        wrong, correct = [], []
        for number, program in enumerate(programs.PROGRAMS):
            lines = marked[program[0].__name__]
            (wrong if lines else correct).append((file, number, lines, *program))
        order = []
        while wrong or correct:
            order += wrong[:2] + correct[:1]
            wrong, correct = wrong[2:], correct[1:]
        queues.append(order)
    for turn in range(max(len(queue) for queue in queues)):
        yield from (queue[turn] for queue in queues if turn < len(queue))


def save(index, path):
    for part in index.values():
        part.sort(key=lambda entry: (entry["source"], entry["program"], entry["exporter"]))
    with open(path, "w") as stored:
        json.dump(index, stored, indent=1)
        stored.write("\n")


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    index: dict[str, list[dict]] = {"models": [], "unsupported": []}
    for file, number, marked, function, parts, inputs, fixed, fails, lost in in_turn(files()):
        name = function.__name__
        os.makedirs(os.path.join(FOLDER, file), exist_ok=True)
        step = programs.module(function, parts).eval()
        if not fails:
            try:
                step(*inputs.values())
            except Exception as error:
                print(f"{file}.{name} does not run: {error}", flush=True)
        for exporter in exporters_of(number, fixed):
            path = f"{file}/{name}_{exporter}.onnx"
            entry = {"source": file, "program": name, "exporter": exporter}
            try:
                if not os.path.exists(os.path.join(FOLDER, path)):
                    export(step, inputs, os.path.join(FOLDER, path), exporter)
            except Exception as error:
                index["unsupported"].append({**entry, "error": type(error).__name__})
                print("not exported:", path, " ".join(str(error).split())[-300:], flush=True)
                with contextlib.suppress(FileNotFoundError):
                    os.remove(os.path.join(FOLDER, path))
                continue
            is_lost = any(exporter.startswith(other) for other in lost)
            index["models"].append({**entry, "file": f"programs/{path}", "faults": {} if is_lost else marked})
        save(index, os.path.join(HERE, "programs.json"))
    for folder in MODULES:
        add_modules(index, folder)
    save(index, os.path.join(HERE, "programs.json"))
    print(len(index["models"]), "models,", len(index["unsupported"]), "not exported")


if __name__ == "__main__":
    main()
