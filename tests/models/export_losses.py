"""Exports every loss of PyTorch through its exporters, for the recogniser of losses; `losses.json` is the index.

  export_losses.py [OUTPUT_FOLDER]        needs torch 2.13.0, onnx, onnxscript, onnxruntime, numpy

Every model is Linear(4, 3), an activation where the loss wants one, and the loss.  Inputs are `features` [batch, 4] and
`target`; the output is called `loss`.  Exporters:

  dynamo       torch.onnx.export(dynamo=True), with the exporter's metadata (not for "sum": it is the bulk of the bytes)
  plain        the same without any metadata
  functions    dynamo without optimizer and version conversion: opset 18, and the exporter's library functions stay
               functions (torch 2.13 offers no option for that, so the conversion is patched out)
  torchscript  torch.onnx.export(dynamo=False)

The index tells for every file where prediction and target first meet on a path of values to the loss (shapes do not
count), the inputs (`target_input` is a place in `targets`) and the value that PyTorch gives for them.  `fault` says why
an exported model is not valid ONNX, as happens; `unsupported` lists what an exporter refuses.  The same versions give
the same bytes.
"""
import contextlib
import io
import json
import logging
import os
import re
import sys
import warnings
from unittest import mock

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
REDUCTIONS = ("none", "sum", "mean")
EXPORTERS = ("dynamo", "plain", "functions", "torchscript")
SHAPE_READERS = {"Shape", "Size", "ConstantOfShape"}

FEATURES = torch.linspace(-1, 1, 20).reshape(5, 4)
REAL = torch.tensor([[0.5, -1.0, 2.0], [0.0, 0.25, -0.75], [3.0, -2.0, 0.125], [1.0, 0.5, -0.5], [-1.5, 2.5, 0.0]])
UNIT = torch.tensor([[0.0, 1.0, 0.5], [1.0, 0.0, 0.25], [0.75, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.5, 0.125]])
SIMPLEX = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.125, 0.375, 0.5], [0.25, 0.5, 0.25], [0.0, 0.75, 0.25]])
INDEX = torch.tensor([2, 0, 1, 1, 0])


class Step(nn.Module):
    def __init__(self, activation, loss):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.activation = activation
        self.loss = loss

    def forward(self, features, target):
        prediction = self.layer(features)
        if self.activation == "sigmoid":
            prediction = prediction.sigmoid()
        elif self.activation == "log_softmax":
            prediction = prediction.log_softmax(1)
        return self.loss(prediction, target)


def losses():
    """Yields (name, reduction, activation, loss, target)."""
    pos_weight = torch.tensor([1.0, 2.0, 0.5])
    for r in REDUCTIONS:
        yield "mse", r, None, nn.MSELoss(reduction=r), REAL
        yield "l1", r, None, nn.L1Loss(reduction=r), REAL
        yield "smooth_l1", r, None, nn.SmoothL1Loss(reduction=r), REAL
        yield "smooth_l1_beta", r, None, nn.SmoothL1Loss(reduction=r, beta=0.5), REAL
        yield "huber", r, None, nn.HuberLoss(reduction=r), REAL
        yield "huber_delta", r, None, nn.HuberLoss(reduction=r, delta=0.5), REAL
        yield "bce", r, "sigmoid", nn.BCELoss(reduction=r), UNIT
        yield "bce_logits", r, None, nn.BCEWithLogitsLoss(reduction=r), UNIT
        yield "bce_logits_pos", r, None, nn.BCEWithLogitsLoss(reduction=r, pos_weight=pos_weight), UNIT
        yield "cross_entropy", r, None, nn.CrossEntropyLoss(reduction=r), INDEX
        yield "cross_entropy_prob", r, None, nn.CrossEntropyLoss(reduction=r), SIMPLEX
        yield "nll", r, "log_softmax", nn.NLLLoss(reduction=r), INDEX
    for r in (*REDUCTIONS, "batchmean"):
        yield "kl_div", r, "log_softmax", nn.KLDivLoss(reduction=r), SIMPLEX
        yield "kl_div_log", r, "log_softmax", nn.KLDivLoss(reduction=r, log_target=True), REAL.log_softmax(1)

    # Variants, and losses as people write them by hand: only the mean.
    weight = torch.tensor([1.0, 2.0, 0.5])
    one_hot = F.one_hot(INDEX, 3).to(torch.float32)
    yield "cross_entropy_weight", "mean", None, nn.CrossEntropyLoss(weight=weight), INDEX
    yield "cross_entropy_ignore", "mean", None, nn.CrossEntropyLoss(ignore_index=0), INDEX
    yield "nll_weight", "mean", "log_softmax", nn.NLLLoss(weight=weight), INDEX
    yield "bce_weight", "mean", "sigmoid", nn.BCELoss(weight=weight), UNIT
    yield "mse_functional", "mean", None, lambda p, t: F.mse_loss(p, t), REAL
    yield "mse_long", "mean", None, lambda p, t: F.mse_loss(p, t), INDEX.reshape(5, 1).expand(5, 3).contiguous()
    yield "smooth_l1_long", "mean", None, lambda p, t: F.smooth_l1_loss(p, t), INDEX.reshape(5, 1).expand(5, 3).contiguous()
    yield "hand_mse_pow", "mean", None, lambda p, t: ((p - t) ** 2).mean(), REAL
    yield "hand_mse_swapped", "mean", None, lambda p, t: ((t - p) ** 2).mean(), REAL
    yield "hand_mse_square", "mean", None, lambda p, t: torch.square(p - t).mean(), REAL
    yield "hand_mse_mul", "mean", None, lambda p, t: ((p - t) * (p - t)).mean(), REAL
    yield "hand_mse_rows", "mean", None, lambda p, t: ((p - t) ** 2).sum(dim=1).mean(), REAL
    yield "hand_rmse", "mean", None, lambda p, t: ((p - t) ** 2).mean().sqrt(), REAL
    yield "hand_l1", "mean", None, lambda p, t: (p - t).abs().mean(), REAL
    yield "hand_log_cosh", "mean", None, lambda p, t: torch.log(torch.cosh(p - t)).mean(), REAL
    yield "hand_bce", "mean", "sigmoid", lambda p, t: -(t * p.log() + (1 - t) * (1 - p).log()).mean(), UNIT
    yield "hand_ce_one_hot", "mean", None, lambda p, t: -(t * p.log_softmax(1)).sum(1).mean(), one_hot
    yield "hand_ce_gather", "mean", None, lambda p, t: -p.log_softmax(1).gather(1, t.unsqueeze(1)).mean(), INDEX
    yield "hand_kl", "mean", "log_softmax", lambda p, t: (t.exp() * (t - p)).sum(1).mean(), REAL.log_softmax(1)


def relative_paths(text):
    text = text.replace(f'File "{HERE}/', 'File "tests/models/')
    text = re.sub(r'File "[^"]*/site-packages/', 'File "', text)
    if 'File "/' in text:
        raise RuntimeError("a machine path is left in the metadata: " + text)
    return text


def owners(model):
    yield model
    for body in [model.graph, *model.functions]:
        yield body
        yield from body.node
        yield from body.value_info
    yield from model.graph.input
    yield from model.graph.output
    yield from model.graph.initializer


def export(module, target, exporter):
    batch = {0: "batch"}
    names = {"input_names": ["features", "target"], "output_names": ["loss"]}
    # The version converter inlines every function, at any opset; without it they stay.
    keep = mock.patch("torch.onnx._internal.exporter._core.onnxscript_apis.convert_version", lambda model, version: model)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if exporter == "torchscript":
            file = io.BytesIO()
            torch.onnx.export(module, (FEATURES, target), file, dynamo=False, dynamic_axes={"features": batch, "target": batch}, **names)
            model = onnx.load_from_string(file.getvalue())
        else:
            arguments = dict(dynamo=True, verbose=False, dynamic_shapes={"features": batch, "target": batch}, **names)
            if exporter == "functions":
                with keep:
                    program = torch.onnx.export(module, (FEATURES, target), optimize=False, **arguments)
            else:
                program = torch.onnx.export(module, (FEATURES, target), **arguments)
            model = program.model_proto
    for owner in owners(model):
        if exporter == "dynamo":
            for entry in owner.metadata_props:
                entry.value = relative_paths(entry.value)
        else:
            del owner.metadata_props[:]
            owner.ClearField("doc_string")
    used = {node.domain for body in [model.graph, *model.functions] for node in body.node}
    for function in [f for f in model.functions if f.domain not in used]:
        model.functions.remove(function)
    return model


def meeting_point(model, activation):
    """(index of the node where prediction and target meet, name of the prediction, name of the target)."""
    graph = model.graph
    # The TorchScript exporter fuses LogSoftmax into the loss: then the logits are the prediction.
    wanted = [{"sigmoid": "sigmoid", "log_softmax": "logsoftmax", None: "gemm"}[activation], "gemm"]
    produced = {}
    for node in reversed(graph.node):
        produced[node.op_type.lower().replace("_", "").removeprefix("aten")] = node.output[0]
    prediction = next(produced[op] for op in wanted if op in produced)
    reach = {prediction: {"prediction"}, "target": {"target"}}
    meets = []
    for index, node in enumerate(graph.node):
        if node.output[0] in reach or node.op_type in SHAPE_READERS:
            continue
        sources = [reach.get(name, set()) for name in node.input]
        reach[node.output[0]] = set().union(*sources)
        if len(reach[node.output[0]]) == 2 and all(len(source) < 2 for source in sources):
            meets.append(index)
    needed = {graph.output[0].name}
    for index in reversed(range(len(graph.node))):
        node = graph.node[index]
        if needed.intersection(node.output) and node.op_type not in SHAPE_READERS:
            # Expand and Reshape read their second input as a shape.
            needed.update(node.input[:1] if node.op_type in ("Expand", "Reshape") else node.input)
    for index in meets:
        if graph.node[index].output[0] in needed:
            return index, prediction, "target"
    raise RuntimeError("prediction and target do not meet")


def run(model, target):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"features": FEATURES.numpy(), "target": target.numpy()})[0]


def numbers(tensor):
    return [float(np.format_float_positional(np.float32(x), unique=True)) for x in tensor.detach().numpy().ravel()]


def main():
    logging.disable(logging.WARNING)
    folder = sys.argv[1] if len(sys.argv) > 1 else HERE
    os.makedirs(os.path.join(folder, "losses"), exist_ok=True)
    models, unsupported, wrong, targets = [], [], [], []

    def share(target):
        entry = {"shape": list(target.shape), "dtype": str(target.dtype).removeprefix("torch."), "values": numbers(target)}
        if entry not in targets:
            targets.append(entry)
        return targets.index(entry)

    for name, reduction, activation, loss, target in losses():
        torch.manual_seed(3)
        module = Step(activation, loss).eval()
        expected = module(FEATURES, target)
        for exporter in EXPORTERS:
            if exporter == "dynamo" and reduction == "sum":
                continue
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    model = export(module, target, exporter)
            except Exception as error:
                unsupported.append({"loss": name, "reduction": reduction, "exporter": exporter, "error": str(error).splitlines()[0][:120]})
                continue
            path = f"losses/{name}_{reduction}_{exporter}.onnx"
            with open(os.path.join(folder, path), "wb") as file:
                file.write(model.SerializeToString(deterministic=True))
            index, prediction, target_name = meeting_point(model, activation)
            try:
                got, fault = run(model, target), None
            except Exception as error:  # the checker's, the runtime's: both mean that the exporter wrote no valid model
                got, fault = None, re.search(r"[^]]*$", str(error).strip())[0].strip()[:120]
            if fault is None and not np.allclose(got, expected.detach().numpy(), rtol=1e-5, atol=1e-6):
                wrong.append(f"{path}: {got} instead of {expected}")
            node = model.graph.node[index]
            models.append({"file": path, "loss": name, "reduction": reduction, "exporter": exporter, "meet": node.name,
                           "meet_index": index, "meet_op": node.op_type, "prediction": prediction, "target": target_name,
                           "fault": fault, "target_input": share(target), "expected": numbers(expected)})
    entries = ",\n".join("  " + json.dumps(entry) for entry in models)
    refused = ",\n".join("  " + json.dumps(entry) for entry in unsupported)
    with open(os.path.join(folder, "losses.json"), "w") as file:
        wanted = ",\n".join("  " + json.dumps(entry) for entry in targets)
        file.write(f'{{"torch": "{torch.__version__.split("+")[0]}",\n "features": {json.dumps(numbers(FEATURES))},\n "targets": [\n{wanted}\n ],\n'
                   f' "models": [\n{entries}\n ],\n "unsupported": [\n{refused}\n ]}}\n')
    print(f"{len(models)} models, {sum(m['fault'] is not None for m in models)} not valid, {len(unsupported)} refused, {len(wrong)} wrong")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
