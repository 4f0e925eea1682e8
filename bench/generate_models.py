"""Writes large models for measuring speed and memory.  Deterministic, and valid.

  generate_models.py FOLDER [NAME...]     needs onnx, numpy
  generate_models.py --list

  decoder_1k .. decoder_1m   decoder stacks with symbolic batch and sequence as exporters write them: layer norms and GELU
                             decomposed, shapes read, cut up, joined and fed to Reshape, a causal mask sliced to length
  nested_2, nested_8, nested_16      If, Loop and Scan inside each other to that depth, 10k nodes
  siblings_1k .. siblings_8k         that many Ifs in one graph; both branches capture outer values
  doubling_10 .. doubling_64         a chain of functions, each calling the one before twice: 2^N calls in N small bodies
  calls_1k, calls_10k                that many calls of fifty functions, of which every second calls another
  fanout_10k, fanout_100k            one value with that many readers
  weights                            512 nodes and 1.5 GB of weights inside the file (a hole where the file system has them)
"""
import os
import sys
from collections.abc import Callable

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

OPSET, IR_VERSION = 20, 10
WIDTH, HEADS, LONGEST = 16, 2, 128  # weights are not what is measured
LOCAL_DOMAIN = "bench"


class Writer:
    """Appends nodes to a graph or function in place: helper.make_node copies too much for a million."""

    def __init__(self, body):
        self.body = body
        self.count = 0
        self.constants = {}

    def node(self, op, inputs, name, domain="", outputs=None, **attributes):
        proto = self.body.node.add(op_type=op, name=name, domain=domain, input=inputs, output=outputs or [name + ":0"])
        for key, value in attributes.items():
            attribute = proto.attribute.add(name=key)
            if isinstance(value, onnx.GraphProto):
                attribute.type = AttributeProto.GRAPH
                attribute.g.CopyFrom(value)
            elif isinstance(value, int):
                attribute.type, attribute.i = AttributeProto.INT, value
            else:
                attribute.type = AttributeProto.INTS
                attribute.ints.extend(value)
        self.count += 1
        return proto.output[0]

    def constant(self, name, array):
        if name not in self.constants:
            tensor = self.body.initializer.add(name=name, dims=array.shape, raw_data=array.tobytes())
            tensor.data_type = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            self.constants[name] = name
        return name

    def floats(self, name, *values):
        return self.constant(name, np.array(values if len(values) > 1 else values[0], np.float32))

    def ints(self, name, *values):
        return self.constant(name, np.array(values, np.int64))

    def weight(self, name, *shape):
        size = int(np.prod(shape))
        return self.constant(name, ((np.arange(size) * 37 % 101 - 50) / 500).astype(np.float32).reshape(shape))


def value(field, name, dtype, shape):
    tensor = field.add(name=name).type.tensor_type
    tensor.elem_type = dtype
    tensor.shape.SetInParent()
    for extent in shape:
        dim = tensor.shape.dim.add()
        if isinstance(extent, str):
            dim.dim_param = extent
        else:
            dim.dim_value = extent


def new_model(name):
    model = onnx.ModelProto(ir_version=IR_VERSION, producer_name="tensorlint-bench")
    model.opset_import.add(domain="", version=OPSET)
    model.graph.name = name
    return model


def decoder(nodes):
    model = new_model("decoder")
    value(model.graph.input, "tokens", TensorProto.INT64, ["batch", "sequence"])
    value(model.graph.output, "hidden", TensorProto.FLOAT, ["batch", "sequence", WIDTH])
    w = Writer(model.graph)
    zero, one = w.constant("zero", np.array(0, np.int64)), w.constant("one", np.array(1, np.int64))
    axis0, last = w.ints("axis0", 0), w.ints("last", -1)
    w.ints("heads", HEADS)
    mask = w.constant("causal", np.triu(np.full((1, 1, LONGEST, LONGEST), -1e9, np.float32), 1))

    def layer_norm(scope, x):
        mean = w.node("ReduceMean", [x, last], scope + "/mean")
        centred = w.node("Sub", [x, mean], scope + "/centred")
        square = w.node("Mul", [centred, centred], scope + "/square")
        variance = w.node("ReduceMean", [square, last], scope + "/variance")
        shifted = w.node("Add", [variance, w.floats("epsilon", 1e-5)], scope + "/shifted")
        deviation = w.node("Sqrt", [shifted], scope + "/deviation")
        normal = w.node("Div", [centred, deviation], scope + "/normal")
        scaled = w.node("Mul", [normal, w.weight(scope + ".weight", WIDTH)], scope + "/scaled")
        return w.node("Add", [scaled, w.weight(scope + ".bias", WIDTH)], scope + "/result")

    def linear(scope, x, columns, rows=WIDTH):
        product = w.node("MatMul", [x, w.weight(scope + ".weight", rows, columns)], scope + "/product")
        return w.node("Add", [product, w.weight(scope + ".bias", columns)], scope + "/sum")

    def extent(scope, x, index):
        shape = w.node("Shape", [x], scope + "/shape")
        return w.node("Gather", [shape, index], scope + "/extent", axis=0)

    def joined(scope, parts):
        rows = [part if part in w.constants else w.node("Unsqueeze", [part, axis0], f"{scope}/part{i}") for i, part in enumerate(parts)]
        return w.node("Concat", rows, scope + "/joined", axis=0)

    def block(scope, x):
        h = layer_norm(scope + "/norm", x)
        batch = extent(scope + "/batch", h, zero)
        length = extent(scope + "/length", h, one)
        width = w.node("Div", [extent(scope + "/width", h, w.constant("two", np.array(2, np.int64))), w.constant("count", np.array(HEADS, np.int64))], scope + "/head_width")
        projected = []
        for name in ("query", "key", "value"):
            shape = joined(f"{scope}/{name}/split", [batch, length, "heads", width])
            part = w.node("Reshape", [linear(f"{scope}/{name}", h, WIDTH), shape], f"{scope}/{name}/view")
            projected.append(w.node("Transpose", [part], f"{scope}/{name}/heads", perm=(0, 2, 3, 1) if name == "key" else (0, 2, 1, 3)))
        scores = w.node("MatMul", projected[:2], scope + "/scores")
        scores = w.node("Mul", [scores, w.floats("scale", 0.35)], scope + "/scaled")
        end = w.node("Unsqueeze", [length, axis0], scope + "/end")
        rows = w.node("Slice", [mask, axis0, end, w.ints("axis2", 2)], scope + "/mask_rows")
        cut = w.node("Slice", [rows, axis0, end, w.ints("axis3", 3)], scope + "/mask")
        scores = w.node("Add", [scores, cut], scope + "/masked")
        weights = w.node("Softmax", [scores], scope + "/weights", axis=-1)
        mixed = w.node("MatMul", [weights, projected[2]], scope + "/mixed")
        mixed = w.node("Transpose", [mixed], scope + "/merged", perm=(0, 2, 1, 3))
        # -1 here: heads and head width meet again through the element count.
        mixed = w.node("Reshape", [mixed, joined(scope + "/merge", [batch, length, "last"])], scope + "/flat")
        x = w.node("Add", [x, linear(scope + "/out", mixed, WIDTH)], scope + "/residual")
        h = linear(scope + "/up", layer_norm(scope + "/norm2", x), 2 * WIDTH)
        erf = w.node("Erf", [w.node("Div", [h, w.floats("root2", 2 ** 0.5)], scope + "/gelu/div")], scope + "/gelu/erf")
        gate = w.node("Add", [erf, w.floats("unit", 1.0)], scope + "/gelu/gate")
        h = w.node("Mul", [w.node("Mul", [h, gate], scope + "/gelu/mul"), w.floats("half", 0.5)], scope + "/gelu/half")
        return w.node("Add", [x, linear(scope + "/down", h, WIDTH, 2 * WIDTH)], scope + "/result")

    x = w.node("Gather", [w.weight("embedding", 32, WIDTH), "tokens"], "embed", axis=0)
    start = w.count
    x = block("/layers.0", x)
    size, layer = w.count - start, 1
    while w.count + size < nodes:
        x = block(f"/layers.{layer}", x)
        layer += 1
    while w.count < nodes - 1:
        x = w.node("Identity", [x], f"/pad.{w.count}")
    w.node("LayerNormalization", [x, w.weight("final.weight", WIDTH)], "/final", outputs=["hidden"])
    return model


def nested(depth, nodes=10_000):
    model = new_model("nested")
    value(model.graph.input, "x", TensorProto.FLOAT, ["batch", 4])
    value(model.graph.input, "steps", TensorProto.FLOAT, ["steps", "batch", 4])
    value(model.graph.input, "flag", TensorProto.BOOL, [])
    value(model.graph.output, "y", TensorProto.FLOAT, ["batch", 4])
    top = Writer(model.graph)
    top.constant("trips", np.array(2, np.int64))
    top.constant("always", np.array(True))
    total = 0

    def level(w, scope, x, captured, remaining):
        nonlocal total
        x = w.node("Add", [x, captured[len(captured) // 2]], scope + "/before")
        x = w.node("Tanh", [x], scope + "/tanh")
        total += 3
        if remaining:
            kind = ("Loop", "If", "Scan")[remaining % 3]
            body = onnx.GraphProto(name=scope + "/" + kind)
            inner = Writer(body)
            total += 2
            if kind == "If":
                other = onnx.GraphProto(name=scope + "/else")
                result = level(inner, scope + "/then", x, captured + [x], remaining - 1)
                value(body.output, result, TensorProto.FLOAT, ["batch", 4])
                value(other.output, Writer(other).node("Neg", [x], scope + "/else/neg"), TensorProto.FLOAT, ["batch", 4])
                x = w.node("If", ["flag"], scope + "/if", then_branch=body, else_branch=other)
            elif kind == "Loop":
                for name, dtype, shape in (("/trip", TensorProto.INT64, []), ("/going", TensorProto.BOOL, []), ("/state", TensorProto.FLOAT, ["batch", 4])):
                    value(body.input, scope + name, dtype, shape)
                result = level(inner, scope + "/body", scope + "/state", captured + [x], remaining - 1)
                value(body.output, inner.node("Identity", [scope + "/going"], scope + "/go_on"), TensorProto.BOOL, [])
                value(body.output, result, TensorProto.FLOAT, ["batch", 4])
                x = w.node("Loop", ["trips", "always", x], scope + "/loop", body=body)
            else:
                value(body.input, scope + "/state", TensorProto.FLOAT, ["batch", 4])
                value(body.input, scope + "/row", TensorProto.FLOAT, ["batch", 4])
                result = level(inner, scope + "/body", scope + "/state", captured + [x, scope + "/row"], remaining - 1)
                value(body.output, result, TensorProto.FLOAT, ["batch", 4])
                value(body.output, inner.node("Abs", [scope + "/row"], scope + "/seen"), TensorProto.FLOAT, ["batch", 4])
                w.node("Scan", [x, "steps"], scope + "/scan", outputs=[scope + "/scan:0", scope + "/scan:1"], body=body, num_scan_inputs=1)
                x = scope + "/scan:0"
        return w.node("Max", [x, captured[-1]], scope + "/after")

    x, tree = "x", 0
    while total < nodes - 1:
        x = level(top, f"/tree.{tree}", x, ["x"], depth)
        tree += 1
    top.node("Identity", [x], "/last", outputs=["y"])
    return model


def siblings(count):
    model = new_model("siblings")
    value(model.graph.input, "x", TensorProto.FLOAT, ["batch", 4])
    value(model.graph.input, "flag", TensorProto.BOOL, [])
    value(model.graph.output, "y", TensorProto.FLOAT, ["batch", 4])
    w = Writer(model.graph)
    x = "x"
    for i in range(count):
        scope = f"/if.{i}"
        x = w.node("Tanh", [w.node("Add", [x, "x"], scope + "/add")], scope + "/tanh")
        branches = {}
        for name, op in (("then_branch", "Mul"), ("else_branch", "Max")):
            body = onnx.GraphProto(name=f"{scope}/{name}")
            value(body.output, Writer(body).node(op, [x, "x"], f"{scope}/{name}/{op}"), TensorProto.FLOAT, ["batch", 4])
            branches[name] = body
        x = w.node("If", ["flag"], scope + "/choice", **branches)
    w.node("Identity", [x], "/last", outputs=["y"])
    return model


def doubling(depth):
    model = new_model("doubling")
    model.opset_import.add(domain=LOCAL_DOMAIN, version=1)
    value(model.graph.input, "x", TensorProto.FLOAT, ["batch", 8])
    value(model.graph.output, "y", TensorProto.FLOAT, ["batch", 8])
    for i in range(depth + 1):
        function = model.functions.add(name=f"Twice{i}", domain=LOCAL_DOMAIN, input=["a"], output=["b"])
        function.opset_import.add(domain="", version=OPSET)
        function.opset_import.add(domain=LOCAL_DOMAIN, version=1)
        w = Writer(function)
        if i == 0:
            w.node("Tanh", ["a"], "tanh", outputs=["b"])
        else:
            once = w.node(f"Twice{i - 1}", ["a"], "once", domain=LOCAL_DOMAIN)
            w.node(f"Twice{i - 1}", [once], "twice", domain=LOCAL_DOMAIN, outputs=["b"])
    Writer(model.graph).node(f"Twice{depth}", ["x"], "call", domain=LOCAL_DOMAIN, outputs=["y"])
    return model


def calls(count):
    model = new_model("calls")
    model.opset_import.add(domain=LOCAL_DOMAIN, version=1)
    value(model.graph.input, "x", TensorProto.FLOAT, ["batch", 8])
    value(model.graph.output, "y", TensorProto.FLOAT, ["batch", 8])
    for i in range(50):
        function = model.functions.add(name=f"Block{i}", domain=LOCAL_DOMAIN, input=["a"], output=["b"])
        function.opset_import.add(domain="", version=OPSET)
        function.opset_import.add(domain=LOCAL_DOMAIN, version=1)
        w = Writer(function)
        t = w.node(f"Block{i - 1}", ["a"], "inner", domain=LOCAL_DOMAIN) if i % 2 else w.node("Neg", ["a"], "neg")
        for k, op in enumerate(("Sigmoid", "Mul", "Tanh", "Add", "Erf", "Mul", "Exp", "Max")):
            t = w.node(op, [t, "a"] if op in ("Mul", "Add", "Max") else [t], f"{op}.{k}")
        w.node("Identity", [t], "last", outputs=["b"])
    w = Writer(model.graph)
    x = "x"
    for i in range(count):
        x = w.node(f"Block{i % 50}", [x], f"/call.{i}", domain=LOCAL_DOMAIN)
    w.node("Identity", [x], "/last", outputs=["y"])
    return model


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def write_weights(path, tensors):
    """Protobuf's Python objects would hold the weights in memory: their messages are written by hand, the data left out."""
    side = 859  # 512 of them make 1.5 GB
    model = new_model("weights")
    value(model.graph.input, "x", TensorProto.FLOAT, ["batch", side])
    value(model.graph.output, "y", TensorProto.FLOAT, ["batch", side])
    w = Writer(model.graph)
    x = "x"
    for i in range(tensors):
        x = w.node("MatMul", [x, f"weight.{i}"], f"/matmul.{i}") if i + 1 < tensors else w.node("MatMul", [x, f"weight.{i}"], "/last", outputs=["y"])
    rest = model.graph.SerializeToString(deterministic=True)
    model.ClearField("graph")
    length = 4 * side * side
    heads = []
    for i in range(tensors):
        head = TensorProto(dims=[side, side], data_type=TensorProto.FLOAT, name=f"weight.{i}").SerializeToString(deterministic=True) + varint(9 << 3 | 2) + varint(length)
        heads.append(varint(5 << 3 | 2) + varint(len(head) + length) + head)
    with open(path, "wb") as file:
        file.write(model.SerializeToString(deterministic=True))
        file.write(varint(7 << 3 | 2) + varint(len(rest) + sum(len(head) + length for head in heads)) + rest)
        for head in heads:
            file.write(head)
            file.seek(length, os.SEEK_CUR)
        file.truncate()


def fanout(readers):
    model = new_model("fanout")
    value(model.graph.input, "x", TensorProto.FLOAT, ["batch", 8])
    value(model.graph.output, "y", TensorProto.FLOAT, ["batch", 8])
    w = Writer(model.graph)
    hub = w.node("Tanh", ["x"], "/hub")
    level = [w.node("Mul", [hub, w.floats("half", 0.5)], f"/reader.{i}") for i in range(readers)]
    while len(level) > 1:
        groups = [level[i:i + 64] for i in range(0, len(level), 64)]
        level = [w.node("Sum", group, f"/sum.{len(level)}.{i}") for i, group in enumerate(groups)]
    w.node("Identity", level, "/last", outputs=["y"])
    return model


MODELS: dict[str, tuple[Callable, int]] = {f"decoder_{name}": (decoder, nodes) for name, nodes in (("1k", 1000), ("10k", 10_000), ("100k", 100_000), ("1m", 1_000_000))}
MODELS.update({f"nested_{depth}": (nested, depth) for depth in (2, 8, 16)})
MODELS.update({f"siblings_{k}k": (siblings, 1000 * k) for k in (1, 2, 4, 8)})
MODELS.update({f"doubling_{depth}": (doubling, depth) for depth in (10, 14, 16, 64)})
MODELS.update({f"calls_{k}k": (calls, 1000 * k) for k in (1, 10)})
MODELS.update({f"fanout_{k}k": (fanout, 1000 * k) for k in (10, 100)})


WEIGHTS = "weights"


def count_nodes(model):
    total, pending = 0, [model.graph, *model.functions]
    while pending:
        nodes = pending.pop().node
        total += len(nodes)
        pending += [a.g for node in nodes for a in node.attribute if a.type == AttributeProto.GRAPH]
    return total


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join([*MODELS, WEIGHTS]))
        return 0
    if len(sys.argv) < 2 or sys.argv[1].startswith("-") or any(name not in MODELS and name != WEIGHTS for name in sys.argv[2:]):
        print(__doc__, file=sys.stderr)
        return 2
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name in sys.argv[2:] or [*MODELS, WEIGHTS]:
        path = os.path.join(folder, name + ".onnx")
        if name == WEIGHTS:
            write_weights(path, 512)
            print(f"{name:14} {512:8} nodes {os.path.getsize(path):11} bytes", flush=True)
            continue
        make, size = MODELS[name]
        model = make(size)
        with open(path, "wb") as file:
            file.write(model.SerializeToString(deterministic=True))
        print(f"{name:14} {count_nodes(model):8} nodes {os.path.getsize(path):11} bytes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
