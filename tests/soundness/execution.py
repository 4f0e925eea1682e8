"""Runs models with every value visible: by ONNX's reference evaluator (bodies too), or by onnxruntime (main graph only)."""
import multiprocessing
import warnings
from typing import ClassVar

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops.op_loop import Loop as OriginalLoop

warnings.simplefilter("ignore")


class Recorder(ReferenceEvaluator):
    """A reference evaluator that keeps what each visit of each graph computes, in `visits`: (name of the graph, values)."""

    visits: ClassVar[list[tuple[str, dict]]] = []  # of the run under way; evaluators of bodies are made by the evaluator of their node

    def run(self, output_names, feed_inputs, *args, **kwargs):
        kwargs["intermediate"] = True
        values = super().run(None, feed_inputs, *args, **kwargs)
        if isinstance(self.proto_, onnx.GraphProto):
            Recorder.visits.append((self.proto_.name, values))
        elif isinstance(self.proto_, onnx.ModelProto):
            Recorder.visits.append(("", values))
        names = self.output_names if output_names is None else output_names
        return [values[name] for name in names]


class Loop(OriginalLoop):
    """As ONNX says: results per iteration are stacked on a new axis (the evaluator of onnx 1.23 joins them on an old one,
    where they are scalars to a column), and a condition that is left out holds (there it does not)."""

    def _run(self, limit, going, *carried, context=None, body=None, attributes=None, bindings=None):
        del body
        names, results = self.body.input_names, self.body.output_names
        values = dict(context or {})
        carried, stacked, iteration = list(carried), [[] for _ in range(self.K)], 0
        going = True if going is None else bool(going)
        while going and (limit is None or iteration < int(limit)):
            values.update(zip(names, [np.array(iteration, np.int64), np.array(going), *carried]))
            outputs = self._run_body(values, attributes=attributes, bindings=bindings)
            going, carried = bool(outputs[0]), outputs[1:1 + self.N]
            for k, value in enumerate(outputs[len(results) - self.K:]):
                stacked[k].append(value)
            iteration += 1
        if self.K and iteration == 0:
            raise RuntimeError("nothing says what shape an empty stack has")
        return (*carried, *[np.stack(values) for values in stacked])


def by_reference(model, feeds):
    """[(graph, {value name: value})], the main graph as ""; raises what the evaluator raises."""
    Recorder.visits = []
    with np.errstate(all="ignore"):
        Recorder(model, new_ops=[Loop]).run(None, feeds)
    visits = Recorder.visits
    Recorder.visits = []
    return [(graph, {name: value for name, value in values.items() if name}) for graph, values in visits]


def by_runtime(model, feeds):
    """The same by onnxruntime without optimisation, of the main graph alone; raises what onnxruntime raises."""
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    everything = onnx.ModelProto()
    everything.CopyFrom(model)
    wanted = [output.name for output in model.graph.output]
    for node in model.graph.node:
        for name in node.output:
            if name and name not in wanted:
                wanted.append(name)
                everything.graph.output.add().name = name
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(everything.SerializeToString(), options, providers=["CPUExecutionProvider"])
    needed = {given.name for given in session.get_inputs()}
    feeds = {name: value for name, value in feeds.items() if name in needed}
    values = dict(feeds)
    values.update(zip(wanted, session.run(wanted, feeds)))
    return [("", values)]


def _work(connection, cases, first):
    for model, feeds in cases[first:]:
        try:
            connection.send(("done", by_runtime(model, feeds)))
        except Exception as error:  # operators, types and versions that onnxruntime does not have, values it cannot hand over
            connection.send(("failed", str(error)))


def all_by_runtime(cases):
    """For each (model, feeds) what `by_runtime` gives, or None; a model that takes the process down costs only itself."""
    context = multiprocessing.get_context("fork")
    results = []
    while len(results) < len(cases):
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_work, args=(there, cases, len(results)))
        child.start()
        there.close()
        try:
            while len(results) < len(cases):
                kind, value = here.recv()
                results.append(value if kind == "done" else None)
        except EOFError:
            results.append(None)  # ended by a signal: an integer division in onnxruntime, for one
        child.join()
        here.close()
    return results
