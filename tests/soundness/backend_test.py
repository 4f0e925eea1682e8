"""ONNX's backend tests: `check` finds no error in them, and recorded outputs and executions lie inside the facts.

Each model is analysed in variants: as declared; with small integer inputs as constants; besides that with a symbol of its
own for each dim of an input; and with one symbol for all dims of the same extent. Types of outputs and inner values are
taken out first, so that nothing is believed that was not inferred.
"""
import argparse
import pathlib
import sys
import tempfile
import warnings

import execution
import numpy as np
import onnx
import program
from facts_hold import Judge
from onnx import numpy_helper

warnings.simplefilter("ignore")
KINDS = ["node", "simple", "pytorch-converted", "pytorch-operator"]
VARIANTS = ["declared", "constants", "symbols", "equal-symbols"]
# As in Judge.below: nine tenths of what was compared in July 2026.
FLOORS = {"values": 53_000, "dtypes": 95, "dims": 180, "elements": 110, "bounds": 40, "expressions": 80}
MODELS = 2024  # of onnx 1.23


def read_value(path, type_proto):
    data = path.read_bytes()
    kind = type_proto.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def as_value(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, (np.generic, int, float)) else value


def load_cases(kinds=KINDS):
    """[(name, model, {input: value}, {output: value})]"""
    from onnx.backend.test.loader import load_model_tests
    cases = []
    for kind in kinds:
        for test in load_model_tests(kind=kind):
            if test.model is not None:
                model, (inputs, outputs) = test.model, test.data_sets[0]
                inputs, outputs = [as_value(x) for x in inputs], [as_value(x) for x in outputs]
            elif test.model_dir:
                folder = pathlib.Path(test.model_dir)
                model = onnx.load(folder / "model.onnx")
                data = folder / "test_data_set_0"
                inputs = [read_value(data / f"input_{i}.pb", model.graph.input[i].type) for i in range(len(list(data.glob("input_*.pb"))))]
                outputs = [read_value(data / f"output_{i}.pb", model.graph.output[i].type) for i in range(len(list(data.glob("output_*.pb"))))]
            else:
                continue
            initializers = {tensor.name for tensor in model.graph.initializer}
            names = [given.name for given in model.graph.input]
            if len(names) != len(inputs):
                names = [name for name in names if name not in initializers]
            cases.append((f"{kind}-{test.name}", model, dict(zip(names, inputs)), dict(zip((x.name for x in model.graph.output), outputs))))
    return cases


def without_types(model):
    bare = onnx.ModelProto()
    bare.CopyFrom(model)

    def strip(graph):
        del graph.value_info[:]
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    strip(attribute.g)
                for inner in attribute.graphs:
                    strip(inner)

    strip(bare.graph)
    names = [output.name for output in bare.graph.output]
    del bare.graph.output[:]
    for name in names:
        bare.graph.output.add().name = name
    return bare


def variant_of(model, feeds, variant):
    """The model as the variant has it; None where that changes nothing."""
    result = without_types(model)
    if variant == "declared":
        return result
    small = [name for name, value in feeds.items()
             if isinstance(value, np.ndarray) and value.dtype in (np.int64, np.int32, np.bool_) and value.size <= 64]
    kept = [given for given in result.graph.input if given.name not in small]
    changed = len(kept) < len(result.graph.input)
    for name in small:
        if name not in {tensor.name for tensor in result.graph.initializer}:
            result.graph.initializer.append(numpy_helper.from_array(feeds[name], name))
    result.ir_version = max(result.ir_version, 4)
    if variant != "constants":
        for i, given in enumerate(kept):
            if given.type.WhichOneof("value") != "tensor_type":
                continue
            for axis, dim in enumerate(given.type.tensor_type.shape.dim):
                if dim.HasField("dim_value"):
                    extent = dim.dim_value
                    dim.dim_param = f"d{i}_{axis}" if variant == "symbols" else f"n{extent}"
                    changed = True
    if not changed:
        return None
    kept = [type(given).FromString(given.SerializeToString()) for given in kept]
    del result.graph.input[:]
    result.graph.input.extend(kept)
    return result


def looks_like(value, recorded):
    if isinstance(value, list) and isinstance(recorded, list):
        return len(value) == len(recorded) and all(map(looks_like, value, recorded))
    if isinstance(value, np.ndarray) and isinstance(recorded, np.ndarray):
        return value.shape == recorded.shape
    return type(value) is type(recorded)


def execute(model, feeds, outputs):
    """What the first engine that runs the model as recorded computes; None when none does."""
    for engine in (execution.by_runtime, execution.by_reference):
        try:
            visits = engine(model, feeds)
        except Exception:  # engines lack operators, opsets and types, each in a way of its own
            continue
        # An engine that fails the test says nothing about what is right.
        if all(looks_like(dict(visits)[""][name], recorded) for name, recorded in outputs.items()):
            return visits
    return None


def false_errors(cases, folder):
    """What `check` says is an error in the models as they are, though engines run all of them."""
    for name, model, _, _ in cases:
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    report = program.check(folder)
    for entry in report["inputs"]:
        if entry["status"] != "checked":
            yield f"{entry['path']}: {entry.get('error')}"
    for finding in report["findings"]:
        name = pathlib.Path(finding["path"]).stem
        if finding["severity"] == "error":
            yield f"{name}: {finding['rule']} at {finding['node']}: {finding['message']}"
    if len(report["inputs"]) != len(cases):
        yield f"{len(report['inputs'])} of {len(cases)} models checked"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    arguments = parser.parse_args()
    cases = [case for case in load_cases(arguments.kinds) if arguments.only in case[0]]
    judge, executed, models, unread = Judge(), 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        unchanged = pathlib.Path(folder) / "unchanged"
        unchanged.mkdir()
        wrong = list(false_errors(cases, unchanged))
        files = []
        for i, (name, model, feeds, outputs) in enumerate(cases):
            for variant in VARIANTS:
                written = variant_of(model, feeds, variant)
                if written is not None:
                    path = pathlib.Path(folder) / f"{i}-{variant}.onnx"
                    path.write_bytes(written.SerializeToString())
                    files.append((str(path), i, variant))
        documents = program.show([path for path, _, _ in files])
        runs = {}
        for path, i, variant in files:
            name, model, feeds, outputs = cases[i]
            if path not in documents:
                unread.append(f"{name} {variant}")
                continue
            if i not in runs:
                runs[i] = execute(model, feeds, outputs)
                executed += runs[i] is not None
            models += 1
            judge.run(documents[path], [("", {**feeds, **outputs})], f"{name} ({variant}, recorded)", feeds)
            if runs[i] is not None:
                judge.run(documents[path], runs[i], f"{name} ({variant}, executed)", feeds)
    whole = not arguments.only and arguments.kinds == KINDS
    wrong += judge.below(FLOORS if whole else {**FLOORS, "values": 1}, 1 if whole else 0.1)
    if whole and len(cases) < MODELS:
        wrong.append(f"only {len(cases)} models, at least {MODELS} expected")
    for problem in (judge.problems + wrong)[:60]:
        print(problem)
    print(f"{len(cases)} backend tests in {models} variants, {executed} executed besides their recorded outputs: {judge.summary()}, "
          f"{len(wrong)} other faults, {len(unread)} not read")
    return 1 if judge.problems or wrong or unread or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
