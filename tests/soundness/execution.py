"""Runs models with every value visible: by ONNX's reference evaluator (bodies too), or by onnxruntime (main graph only)."""
import warnings

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

warnings.simplefilter("ignore")


class Recorder(ReferenceEvaluator):
    """A reference evaluator that keeps what each visit of each graph computes, in `visits`: (name of the graph, values)."""

    visits = []  # of the run under way; evaluators of bodies are made by the evaluator of their node

    def run(self, output_names, feed_inputs, *args, **kwargs):
        kwargs["intermediate"] = True
        values = super().run(None, feed_inputs, *args, **kwargs)
        if isinstance(self.proto_, onnx.GraphProto):
            Recorder.visits.append((self.proto_.name, values))
        elif isinstance(self.proto_, onnx.ModelProto):
            Recorder.visits.append(("", values))
        names = self.output_names if output_names is None else output_names
        return [values[name] for name in names]


def by_reference(model, feeds):
    """[(graph, {value name: value})], the main graph as ""; raises what the evaluator raises."""
    Recorder.visits = []
    with np.errstate(all="ignore"):
        Recorder(model).run(None, feeds)
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
