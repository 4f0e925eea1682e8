"""Exports the sample models of this folder; each NAME_bad.onnx has a bug and NAME_ok.onnx is its repaired twin.

  export_samples.py [OUTPUT_FOLDER]       needs torch 2.13.0, onnx, onnxscript, onnxruntime, numpy

Every twin without a bug must pass the checker and run; what happens to the others is printed.  The same versions give
the same bytes.
"""
import logging
import os
import re
import sys
import warnings

import age_step
import classifier_step
import encoder_step
import numpy as np
import onnx
import onnxruntime
import refine_loop
import regression_step
import torch
from onnx import AttributeProto, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))


def graphs_of(graph):
    """`graph` and every graph inside its nodes, outer ones first."""
    pending = [graph]
    while pending:
        current = pending.pop()
        yield current
        for node in current.node:
            pending += [a.g for a in node.attribute if a.type == AttributeProto.GRAPH]


def relative_paths(text):
    """Paths as they read from the project's root, so that a model says nothing about the machine it came from."""
    text = re.sub(rf'File "{re.escape(HERE)}/', 'File "samples/', text)
    return re.sub(r'File "[^"]*/site-packages/', 'File "', text)


def rewrite_paths(model):
    for graph in graphs_of(model.graph):
        named = [graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer]
        for entry in [item for owner in [model, *named] for item in owner.metadata_props]:
            entry.value = relative_paths(entry.value)
    if re.search(rb'File "/', model.SerializeToString()):
        raise RuntimeError("a machine path is left in the metadata")


def export(module, inputs, dynamic_shapes=None):
    torch.manual_seed(7)
    for name, parameter in sorted(module.named_parameters()):
        if parameter.dim() > 1:
            torch.nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            torch.nn.init.uniform_(parameter, -0.1, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(module.eval(), kwargs=inputs, dynamic_shapes=dynamic_shapes, dynamo=True, verbose=False)
    model = program.model_proto
    rewrite_paths(model)
    return model


def drop_casts_to_float(model):
    """What a graph cleanup does that takes every Cast to float32 for a leftover of mixed precision."""
    for graph in graphs_of(model.graph):
        renamed, kept = {}, []
        for node in graph.node:
            if node.op_type == "Cast" and node.attribute[0].i == onnx.TensorProto.FLOAT:
                renamed[node.output[0]] = node.input[0]
            else:
                kept.append(node)
        for node in kept:
            node.input[:] = [renamed.get(name, name) for name in node.input]
        infos = [info for info in graph.value_info if info.name not in renamed]
        replace(graph.node, kept)
        replace(graph.value_info, infos)
    return model


def replace(field, entries):
    copies = [type(entry).FromString(entry.SerializeToString()) for entry in entries]
    del field[:]
    field.extend(copies)


def prune_heads(model, heads, head_width, repaired):
    """Keeps the first `heads` attention heads.  The bug: the shape that splits the heads still has the old count."""
    graph = model.graph
    initializers = {tensor.name: tensor for tensor in graph.initializer}

    def cut(name, axis):
        array = numpy_helper.to_array(initializers[name])
        initializers[name].CopyFrom(numpy_helper.from_array(np.take(array, range(heads * head_width), axis), name))

    def set_extent(name, extent):
        initializers[name].CopyFrom(numpy_helper.from_array(np.array([extent], np.int64), name))

    split_heads, join_heads = set(), set()
    for node in graph.node:
        metadata = {entry.key: entry.value for entry in node.metadata_props}
        scopes = metadata.get("pkg.torch.onnx.name_scopes", "")
        projection = re.search(r"attention\.(query|key|value|out)'", scopes)
        constant = next((name for name in node.input if name in initializers), None)
        if projection and node.op_type == "MatMul":
            cut(constant, 0 if projection[1] == "out" else 1)
        elif projection and node.op_type == "Add" and projection[1] != "out":
            cut(constant, 0)
        elif node.op_type == "Concat" and len(node.input) == 4:
            split_heads.add(node.input[2])
        elif node.op_type == "Concat" and len(node.input) == 3:
            join_heads.add(node.input[2])
    for name in join_heads:
        set_extent(name, heads * head_width)
    if repaired:
        for name in split_heads:
            set_extent(name, heads)
    del graph.value_info[:]  # they tell the old extents
    return model


def samples():
    """Yields (name, repaired, model, inputs)."""
    torch.manual_seed(1)
    inputs = regression_step.example()
    for repaired in (False, True):
        model = export(regression_step.RegressionStep(), inputs, {"features": {0: "batch"}, "votes": {0: "batch"}})
        yield "regression", repaired, model if repaired else drop_casts_to_float(model), inputs

    inputs = classifier_step.example()
    for repaired in (False, True):
        labels = classifier_step.read_labels() - (1 if repaired else 0)
        yield "classifier", repaired, export(classifier_step.ClassifierStep(labels), inputs), inputs

    inputs = age_step.example()
    for repaired in (False, True):
        module = age_step.AgeStep(last_group=age_step.GROUPS - (1 if repaired else 0))
        yield "age_groups", repaired, export(module, inputs, {"face": {0: "batch"}, "age": {0: "batch"}}), inputs

    inputs = encoder_step.tagger_example()
    shapes = {"tokens": {0: "batch", 1: "sequence"}, "tags": {0: "batch", 1: "sequence"}}
    head_width = encoder_step.WIDTH // encoder_step.HEADS
    for repaired in (False, True):
        model = export(encoder_step.TaggerStep(), inputs, shapes)
        yield "encoder", repaired, prune_heads(model, 1, head_width, repaired), inputs

    inputs = encoder_step.score_example()
    shapes = {"tokens": {0: "batch", 1: "sequence"}, "target": {0: "batch"}}
    for repaired, module in ((False, encoder_step.ScoreStep()), (True, encoder_step.RepairedScoreStep())):
        yield "encoder_score", repaired, export(module, inputs, shapes), inputs

    inputs = refine_loop.example()
    for repaired in (False, True):
        model = export(refine_loop.RefineLoop(), inputs, {"guess": {0: "batch"}, "steps": {}})
        yield "refine_loop", repaired, model if repaired else drop_casts_to_float(model), inputs


def run(model, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {name: value.numpy() for name, value in inputs.items()})


def outcome(call, *args, **kwargs):
    try:
        result = call(*args, **kwargs)
    except Exception as error:  # every kind of refusal is an outcome worth printing
        return "fails: " + " ".join(str(error).split())[:160]
    return "passes" if result is None else "gives " + ", ".join(np.array2string(value.ravel()[:4]) for value in result)


def main():
    logging.disable(logging.WARNING)
    folder = sys.argv[1] if len(sys.argv) > 1 else HERE
    failed = False
    for name, repaired, model, inputs in samples():
        path = os.path.join(folder, f"{name}_{'ok' if repaired else 'bad'}.onnx")
        with open(path, "wb") as file:
            file.write(model.SerializeToString(deterministic=True))
        checker = outcome(onnx.checker.check_model, model, full_check=True)
        runtime = outcome(run, model, inputs)
        print(f"{os.path.basename(path)}: {os.path.getsize(path)} bytes\n  checker {checker}\n  onnxruntime {runtime}")
        failed |= repaired and (checker.startswith("fails") or runtime.startswith("fails"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
