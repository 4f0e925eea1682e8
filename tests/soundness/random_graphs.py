"""Random valid ONNX models together with what they compute.

A graph grows node by node; each candidate is evaluated at once by ONNX's reference evaluator on the values so far, and one
that fails is left out. So chains such as Shape -> Gather -> Concat -> Reshape come out valid, whatever the extents are.
Dims of inputs are numbers or symbols, which are bound to numbers of this graph's execution.
"""
import random
import warnings

import execution
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

warnings.simplefilter("ignore")
CODES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE, np.dtype(np.float16): TensorProto.FLOAT16,
         np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int8): TensorProto.INT8,
         np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.bool_): TensorProto.BOOL}
TYPE_TEXTS = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
OPSETS = [13, 15, 17, 18, 19, 20, 21, 22, 23]
MAX_ELEMENTS = 4096
FLOAT_UNARY = ["Abs", "Neg", "Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Relu", "Sin", "Cos", "Tan", "Atan", "Asin", "Acos", "Sinh", "Cosh",
               "Asinh", "Acosh", "Atanh", "Floor", "Ceil", "Round", "Sign", "Softplus", "Softsign", "Erf", "Reciprocal", "Elu", "LeakyRelu",
               "HardSigmoid", "ThresholdedRelu", "Selu", "Celu", "HardSwish", "IsNaN", "IsInf", "Identity"]
REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
              "ReduceSumSquare"]


class Invalid(Exception):
    """The candidate cannot be had here."""


class Graph:
    """A graph that grows; `values` are what its values are in the execution at hand, those of outer graphs included."""

    def __init__(self, rng, opset, outer=None):
        self.rng, self.opset, self.outer = rng, opset, outer
        self.values = dict(outer.values) if outer else {}
        self.nodes, self.initializers, self.visits = [], [], []
        self.serial = outer.serial if outer else [0]
        self.depth = outer.depth + 1 if outer else 0

    # ---- parts

    def name(self, prefix="v"):
        self.serial[0] += 1
        return f"{prefix}{self.serial[0]}"

    def constant(self, array):
        """A constant: an initializer or, sometimes, a Constant node."""
        array = np.asarray(array)
        name = self.name("c")
        if self.rng.random() < 0.25:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        else:
            self.initializers.append(numpy_helper.from_array(array, name))
        self.values[name] = array
        return name

    def ints(self, *numbers):
        return self.constant(np.array(numbers, dtype=np.int64))

    def add(self, op, inputs, results=1, **attributes):
        """Adds a node and evaluates it; the name of its (first) result, or a list of names."""
        attributes = {key: value for key, value in attributes.items() if value is not None}
        outputs = [self.name() for _ in range(results)]
        node = helper.make_node(op, inputs, outputs, name=f"n_{outputs[0]}", **attributes)
        computed, visits = self.evaluate(node)
        for output in outputs:
            value = computed[output]
            arrays = value if isinstance(value, list) else [value]
            for array in arrays:
                if isinstance(array, np.ndarray) and array.size > MAX_ELEMENTS:
                    raise Invalid("too large")
                if not isinstance(array, np.ndarray) and array is not None:
                    raise Invalid("no tensor")
        self.check_types(node, computed)
        self.values.update((output, computed[output]) for output in outputs)
        self.nodes.append(node)
        self.visits += visits
        return outputs[0] if results == 1 else outputs

    def evaluate(self, node):
        used = {name for name in node.input if name}
        for attribute in node.attribute:
            if attribute.HasField("g"):
                used |= {name for inner in attribute.g.node for name in inner.input} | {output.name for output in attribute.g.output}
                used |= captured(attribute.g)
        feeds = {name: self.values[name] for name in sorted(used) if name in self.values}
        graph = onnx.GraphProto(name="")
        for name in feeds:
            graph.input.add().name = name
        for name in node.output:
            graph.output.add().name = name
        graph.node.append(node)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        try:
            visits = execution.by_reference(model, feeds)
        except Exception as error:  # whatever the evaluator says: this candidate is left out
            raise Invalid(str(error)) from error
        return dict(visits)[""], [visit for visit in visits if visit[0]]

    def check_types(self, node, computed):
        """The evaluator takes and gives types that the operator does not have; such a node is left out."""
        schema = onnx.defs.get_schema(node.op_type, self.opset)
        if schema.deprecated:
            raise Invalid("deprecated")
        bound = {}
        for formals, names, values in ((schema.inputs, node.input, self.values), (schema.outputs, node.output, computed)):
            for i, name in enumerate(names):
                value = values.get(name)
                formal = formals[min(i, len(formals) - 1)]
                if not isinstance(value, np.ndarray):
                    continue
                text = f"tensor({TYPE_TEXTS.get(value.dtype, value.dtype.name)})"
                if text not in formal.types or formal.is_homogeneous and bound.setdefault(formal.type_str, text) != text:
                    raise Invalid("type")

    def pick(self, wanted):
        names = [name for name, value in self.values.items() if isinstance(value, np.ndarray) and wanted(value)]
        if not names:
            raise Invalid("nothing fits")
        # Recent values are more likely: chains, not stars.
        at = int(len(names) * self.rng.random() ** 0.6)
        return names[min(at, len(names) - 1)]

    def pick_sequence(self):
        names = [name for name, value in self.values.items() if isinstance(value, list)]
        if not names:
            raise Invalid("no sequence")
        return self.rng.choice(names)

    def floats(self, least_rank=0):
        return self.pick(lambda value: value.dtype.kind == "f" and value.ndim >= least_rank)

    def tensor(self, least_rank=0):
        return self.pick(lambda value: value.ndim >= least_rank)

    def integers(self, rank=None):
        return self.pick(lambda value: value.dtype == np.int64 and (rank is None or value.ndim == rank))

    def axis(self, rank):
        return self.rng.randrange(-rank, rank)

    # ---- kinds of candidates

    def unary(self):
        op = self.rng.choice(FLOAT_UNARY)
        if op in ("HardSwish",) and self.opset < 14:
            raise Invalid("opset")
        return self.add(op, [self.floats()])

    def unary_of_integers(self):
        return self.add(self.rng.choice(["Abs", "Neg", "Sign", "Identity"]), [self.integers()])

    def activation_with_attributes(self):
        op, attributes = self.rng.choice([("Elu", {"alpha": 0.5}), ("LeakyRelu", {"alpha": -0.3}), ("HardSigmoid", {"alpha": -0.5, "beta": 0.1}),
                                          ("ThresholdedRelu", {"alpha": -1.0}), ("Selu", {"alpha": 2.0, "gamma": 0.5}), ("Celu", {"alpha": 2.0})])
        return self.add(op, [self.floats()], **attributes)

    def softmax(self):
        name = self.floats(1)
        op = self.rng.choice(["Softmax", "LogSoftmax", "Hardmax"])
        return self.add(op, [name], axis=self.axis(self.values[name].ndim))

    def binary(self):
        first = self.tensor()
        dtype = self.values[first].dtype
        if self.rng.random() < 0.3 and dtype != np.bool_:
            second = self.constant(np.array(self.rng.choice([-3, -1, 1, 2, 5]) if dtype.kind != "u" else 3, dtype=dtype))
        else:
            second = self.pick(lambda value: value.dtype == dtype)
        pair = [first, second] if self.rng.random() < 0.5 else [second, first]
        if dtype == np.bool_:
            return self.add(self.rng.choice(["And", "Or", "Xor", "Equal"]), pair)
        op = self.rng.choice(["Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"]
                             + (["Mean", "Sum", "PRelu"] if dtype.kind == "f" else ["BitwiseAnd", "BitwiseOr"] if self.opset >= 18 else ["Add"]))
        attributes = {}
        if op == "Mod" and (dtype.kind == "f" or self.rng.random() < 0.3):
            attributes["fmod"] = 1
        if op in ("Div", "Mod") and dtype.kind in "iu":
            pair[1] = self.divisor(pair[1])
        if op == "Pow" and dtype.kind in "iu" and (self.values[pair[1]] < 0).any():
            raise Invalid("negative power of integers")
        if op in ("Pow", "PRelu") and dtype.kind in "u" or op == "Pow" and dtype == np.int8:
            raise Invalid("type")
        if op == "PRelu" and np.broadcast_shapes(*(self.values[name].shape for name in pair)) != self.values[pair[0]].shape:
            raise Invalid("slope")
        return self.add(op, pair, **attributes)

    def divisor(self, name):
        """Engines end with a signal on x / 0 and on the least integer / -1, and two engines may differ in what x is."""
        constant = any(tensor.name == name for tensor in self.initializers)
        if constant and not ((self.values[name] == 0) | (self.values[name] == -1)).any():
            return name
        return self.add("Max", [name, self.constant(np.array(1, dtype=self.values[name].dtype))])

    def where(self):
        first = self.tensor()
        dtype = self.values[first].dtype
        return self.add("Where", [self.pick(lambda value: value.dtype == np.bool_), first, self.pick(lambda value: value.dtype == dtype)])

    def cast(self):
        name = self.tensor()
        dtype = self.rng.choice(list(CODES))
        with np.errstate(all="ignore"):
            if dtype.kind in "iu" and self.values[name].dtype.kind == "f":
                limits = np.iinfo(dtype)
                if not (np.isfinite(self.values[name]) & (self.values[name] > limits.min * 0.99) & (self.values[name] < limits.max * 0.99)).all():
                    raise Invalid("undefined conversion")
        return self.add("Cast", [name], to=CODES[dtype])

    def clip(self):
        name = self.pick(lambda value: value.dtype in (np.float32, np.float64, np.int64, np.int32))
        dtype = self.values[name].dtype
        lo = self.constant(np.array(self.rng.choice([-4, 0, 1]), dtype=dtype)) if self.rng.random() < 0.8 else ""
        hi = self.constant(np.array(self.rng.choice([-1, 2, 6]), dtype=dtype)) if self.rng.random() < 0.8 else ""
        return self.add("Clip", [name, lo, hi])

    def not_(self):
        return self.add("Not", [self.pick(lambda value: value.dtype == np.bool_)])

    def reduce(self):
        op = self.rng.choice(REDUCTIONS)
        name = self.pick(lambda value: value.dtype in (np.float32, np.float64, np.int64, np.int32) and value.size > 0)
        rank = self.values[name].ndim
        axes = self.rng.sample(range(rank), self.rng.randint(0, rank))
        axes = [axis - rank if self.rng.random() < 0.4 else axis for axis in axes]
        keep = self.rng.choice([0, 1, None])
        as_input = self.opset >= 18 or op == "ReduceSum"
        if not axes and self.rng.random() < 0.5:
            return self.add(op, [name], keepdims=keep, noop_with_empty_axes=self.rng.choice([0, 1]) if as_input else None)
        if as_input:
            return self.add(op, [name, self.ints(*axes)], keepdims=keep, noop_with_empty_axes=self.rng.choice([0, 1, None]))
        if not axes:
            raise Invalid("empty list of axes as attribute")
        return self.add(op, [name], axes=axes, keepdims=keep)

    def arg(self):
        name = self.pick(lambda value: value.dtype in (np.float32, np.int64, np.int32) and value.ndim > 0 and value.size > 0)
        return self.add(self.rng.choice(["ArgMax", "ArgMin"]), [name], axis=self.axis(self.values[name].ndim), keepdims=self.rng.choice([0, 1]),
                        select_last_index=self.rng.choice([0, 1]))

    def topk(self):
        name = self.pick(lambda value: value.dtype in (np.float32, np.int64) and value.ndim > 0 and value.size > 0)
        axis = self.axis(self.values[name].ndim)
        k = self.rng.randint(0, self.values[name].shape[axis])
        return self.add("TopK", [name, self.ints(k)], results=2, axis=axis, largest=self.rng.choice([0, 1]))

    def cumsum(self):
        name = self.pick(lambda value: value.dtype in (np.float32, np.int64, np.int32) and value.ndim > 0)
        axis = self.constant(np.array(self.axis(self.values[name].ndim), dtype=np.int64))
        return self.add("CumSum", [name, axis], exclusive=self.rng.choice([0, 1]), reverse=self.rng.choice([0, 1]))

    # Shapes as values.

    def shape(self):
        name = self.tensor()
        rank = self.values[name].ndim
        if self.opset >= 15 and self.rng.random() < 0.4:
            return self.add("Shape", [name], start=self.rng.randint(-rank, rank), end=self.rng.choice([None, self.rng.randint(-rank, rank)]))
        return self.add(self.rng.choice(["Shape", "Shape", "Shape", "Size"]), [name])

    def take(self):
        name = self.integers(1)
        size = self.values[name].size
        if size == 0:
            raise Invalid("empty")
        if self.rng.random() < 0.5:
            index = np.array(self.rng.randrange(-size, size), dtype=np.int64)
        else:
            index = np.array([self.rng.randrange(-size, size) for _ in range(self.rng.randint(1, 3))], dtype=np.int64)
        return self.add("Gather", [name, self.constant(index)], axis=0)

    def concat_integers(self):
        parts = []
        for _ in range(self.rng.randint(1, 3)):
            if self.rng.random() < 0.4:
                parts.append(self.ints(*[self.rng.choice([-1, 0, 1, 1, 2, 3]) for _ in range(self.rng.randint(1, 2))]))
            else:
                name = self.pick(lambda value: value.dtype == np.int64 and value.ndim <= 1 and value.size <= 4)
                parts.append(name if self.values[name].ndim == 1 else self.add("Unsqueeze", [name, self.ints(0)]))
        return self.add("Concat", parts, axis=0)

    def arithmetic_on_integers(self):
        name = self.pick(lambda value: value.dtype == np.int64 and value.ndim <= 1 and value.size <= 8)
        if self.rng.random() < 0.5:
            other = self.constant(np.array(self.rng.choice([-2, -1, 1, 2, 3, 4]), dtype=np.int64))
        else:
            other = self.pick(lambda value: value.dtype == np.int64 and value.ndim <= 1 and value.size <= 8)
        op = self.rng.choice(["Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Equal", "Less", "Greater"])
        pair = [name, other] if self.rng.random() < 0.6 else [other, name]
        if op in ("Div", "Mod"):
            pair[1] = self.divisor(pair[1])
        return self.add(op, pair)

    def through_floats(self):
        name = self.pick(lambda value: value.dtype == np.int64 and value.ndim <= 1 and value.size <= 8)
        wide = self.add("Cast", [name], to=TensorProto.FLOAT)
        scaled = self.add(self.rng.choice(["Mul", "Div", "Add"]), [wide, self.constant(np.float32(self.rng.choice([0.5, 2.0, 1.5, 3.0])))])
        rounded = self.add(self.rng.choice(["Floor", "Ceil", "Round", "Sqrt", "Identity"]), [scaled])
        if not np.isfinite(self.values[rounded]).all():
            raise Invalid("undefined conversion")
        return self.add("Cast", [rounded], to=TensorProto.INT64)

    def small_shape(self):
        """A 1-d int64 value that can be the shape of something."""
        return self.pick(lambda value: value.dtype == np.int64 and value.ndim == 1 and 0 < value.size <= 5 and (value >= 0).all()
                         and np.prod(value.astype(np.float64)) <= 512)

    def reshape(self):
        name = self.tensor()
        if self.rng.random() < 0.5:
            target = self.pick(lambda value: value.dtype == np.int64 and value.ndim == 1 and value.size <= 5)
        else:
            rank = self.values[name].ndim
            target = self.ints(*[self.rng.choice([0, -1, 1, 2, 3]) for _ in range(self.rng.randint(0, rank + 1))])
        wanted = self.values[target]
        if (wanted == -1).sum() > 1 or (wanted < -1).any() or (self.values[name].size == 0 and (wanted == -1).any()):
            raise Invalid("shape")
        return self.add("Reshape", [name, target], allowzero=self.rng.choice([None, None, 0, 1]) if self.opset >= 14 else None)

    def reshape_merging(self):
        """[Concat(first dims, -1)]: the way exporters flatten."""
        name = self.tensor(2)
        kept = self.rng.randint(1, self.values[name].ndim - 1)
        shape = self.add("Shape", [name])
        head = self.add("Slice", [shape, self.ints(0), self.ints(kept)])
        return self.add("Reshape", [name, self.add("Concat", [head, self.ints(-1)], axis=0)])

    def expand(self):
        return self.add("Expand", [self.tensor(), self.small_shape()])

    def tile(self):
        name = self.tensor(1)
        rank = self.values[name].ndim
        return self.add("Tile", [name, self.ints(*[self.rng.choice([0, 1, 1, 2, 3]) for _ in range(rank)])])

    def tile_computed(self):
        repeats = self.small_shape()
        rank = self.values[repeats].size
        return self.add("Tile", [self.pick(lambda value: value.ndim == rank), repeats])

    def constant_of_shape(self):
        value = helper.make_tensor("value", self.rng.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32]), [1], [self.rng.choice([0, 1, 2])])
        return self.add("ConstantOfShape", [self.small_shape()], value=self.rng.choice([None, value]))

    def range_(self):
        scalar = self.pick(lambda value: value.dtype == np.int64 and value.ndim == 0 and abs(int(value)) < 50)
        start = self.constant(np.array(self.rng.choice([-2, 0, 0, 1]), dtype=np.int64))
        step = self.constant(np.array(self.rng.choice([1, 1, 2, 3, -1]), dtype=np.int64))
        return self.add("Range", [start, scalar, step])

    def slice_(self):
        name = self.tensor(1)
        rank = self.values[name].ndim
        axes = self.rng.sample(range(rank), self.rng.randint(1, rank))
        starts = [self.rng.choice([-3, -1, 0, 0, 1, 2, 2**31]) for _ in axes]
        ends = [self.rng.choice([-1, 1, 2, 3, 2**63 - 1, -(2**63)]) for _ in axes]
        steps = [self.rng.choice([1, 1, 2, -1, -2]) for _ in axes]
        # Backwards from before the first element: numpy takes nothing, ONNX the first one.
        starts = [max(start, -self.values[name].shape[axis]) if step < 0 else start for axis, start, step in zip(axes, starts, steps)]
        if self.rng.random() < 0.3:
            scalar = self.pick(lambda value: value.dtype == np.int64 and value.ndim == 0)
            axes, steps = axes[:1], [abs(steps[0])]
            computed = self.add("Unsqueeze", [scalar, self.ints(0)])
            names = [self.ints(0), computed] if self.rng.random() < 0.6 else [computed, self.ints(3)]
        else:
            names = [self.ints(*starts), self.ints(*ends)]
        axes = [axis - rank if self.rng.random() < 0.4 else axis for axis in axes]
        try:
            return self.add("Slice", [name, *names, self.ints(*axes), self.ints(*steps)])
        finally:
            # Max and Min of onnxruntime lose the upper half of such integers.
            for given in names:
                if (abs(self.values[given].astype(np.float64)) > 1 << 30).any():
                    del self.values[given]

    def split(self):
        name = self.tensor(1)
        axis = self.axis(self.values[name].ndim)
        extent = self.values[name].shape[axis]
        parts = self.rng.randint(1, 3)
        if self.rng.random() < 0.5:
            first = self.rng.randint(0, extent)
            return self.add("Split", [name, self.ints(first, extent - first)], results=2, axis=axis)[0]
        if self.opset >= 18:
            result = self.add("Split", [name], results=parts, axis=axis, num_outputs=parts)
        elif extent % parts == 0:
            result = self.add("Split", [name], results=parts, axis=axis)
        else:
            raise Invalid("uneven")
        return result

    def pad(self):
        name = self.pick(lambda value: value.dtype in (np.float32, np.int64) and value.ndim > 0 and value.size > 0)
        rank = self.values[name].ndim
        pads = [self.rng.choice([0, 0, 1, 2, -1]) for _ in range(2 * rank)]
        mode = self.rng.choice(["constant", "constant", "edge", "reflect"])
        if mode != "constant" and (min(pads) < 0 or mode == "reflect" and max(pads) >= min(self.values[name].shape)):
            raise Invalid("pads")
        if any(extent + pads[i] + pads[i + rank] < 0 or extent + min(pads[i], 0) + min(pads[i + rank], 0) < 0 for i, extent in enumerate(self.values[name].shape)):
            raise Invalid("pads")
        value = [self.constant(np.array(self.rng.choice([0, 7]), dtype=self.values[name].dtype))] if mode == "constant" else []
        return self.add("Pad", [name, self.ints(*pads), *value], mode=mode)

    def transpose(self):
        name = self.tensor(1)
        rank = self.values[name].ndim
        return self.add("Transpose", [name], perm=self.rng.choice([None, self.rng.sample(range(rank), rank)]))

    def flatten(self):
        name = self.tensor()
        rank = self.values[name].ndim
        return self.add("Flatten", [name], axis=self.rng.randint(-rank, rank))

    def unsqueeze(self):
        name = self.tensor()
        rank = self.values[name].ndim
        if rank > 4:
            raise Invalid("rank")
        count = self.rng.randint(1, 2)
        axes = self.rng.sample(range(rank + count), count)
        return self.add("Unsqueeze", [name, self.ints(*[axis - rank - count if self.rng.random() < 0.3 else axis for axis in axes])])

    def squeeze(self):
        name = self.tensor(1)
        ones = [axis for axis, extent in enumerate(self.values[name].shape) if extent == 1]
        if not ones:
            raise Invalid("nothing to squeeze")
        if self.rng.random() < 0.25:
            return self.add("Squeeze", [name])
        return self.add("Squeeze", [name, self.ints(*self.rng.sample(ones, self.rng.randint(1, len(ones))))])

    def concat(self):
        first = self.tensor(1)
        value = self.values[first]
        axis = self.axis(value.ndim)

        def fits(other):
            return other.dtype == value.dtype and other.ndim == value.ndim and all(
                a == b for i, (a, b) in enumerate(zip(value.shape, other.shape)) if i != axis % value.ndim)

        return self.add("Concat", [first] + [self.pick(fits) for _ in range(self.rng.randint(0, 2))], axis=axis)

    def gather(self):
        name = self.tensor(1)
        axis = self.axis(self.values[name].ndim)
        extent = self.values[name].shape[axis]
        if extent == 0:
            raise Invalid("empty")
        if self.rng.random() < 0.5:
            shape = self.rng.choice([(), (1,), (2,), (2, 2)])
            index = self.constant(np.array([self.rng.randrange(-extent, extent) for _ in range(int(np.prod(shape)))], dtype=np.int64).reshape(shape))
        else:
            index = self.pick(lambda value: value.dtype in (np.int64, np.int32) and (value < extent).all() and (value >= -extent).all() and value.size <= 64)
        return self.add("Gather", [name, index], axis=axis)

    def gather_elements(self):
        name = self.tensor(1)
        value = self.values[name]
        axis = self.axis(value.ndim)
        if value.size == 0:
            raise Invalid("empty")
        index = np.random.RandomState(self.rng.randrange(1 << 30)).randint(0, value.shape[axis], size=[self.rng.randint(1, extent) for extent in value.shape])
        return self.add("GatherElements", [name, self.constant(index.astype(np.int64))], axis=axis)

    def gather_nd(self):
        name = self.tensor(1)
        value = self.values[name]
        if value.size == 0:
            raise Invalid("empty")
        depth = self.rng.randint(1, value.ndim)
        index = [[self.rng.randrange(value.shape[axis]) for axis in range(depth)] for _ in range(self.rng.randint(1, 3))]
        return self.add("GatherND", [name, self.constant(np.array(index, dtype=np.int64))])

    def scatter(self):
        name = self.pick(lambda value: value.dtype == np.float32 and value.ndim > 0 and value.size > 0)
        value = self.values[name]
        index = np.zeros([1] * value.ndim, dtype=np.int64)
        return self.add("ScatterElements", [name, self.constant(index), self.constant(np.full(index.shape, 9, np.float32))], axis=self.axis(value.ndim))

    def nonzero(self):
        return self.add("NonZero", [self.tensor(1)])

    def compress(self):
        name = self.tensor(1)
        axis = self.axis(self.values[name].ndim)
        extent = self.values[name].shape[axis]
        condition = self.constant(np.array([self.rng.random() < 0.5 for _ in range(self.rng.randint(0, extent))], dtype=np.bool_))
        return self.add("Compress", [name, condition], axis=axis)

    def unique(self):
        name = self.pick(lambda value: value.dtype in (np.float32, np.int64) and value.ndim > 0 and value.size > 0)
        axis = self.rng.choice([None, self.axis(self.values[name].ndim)])
        return self.add("Unique", [name], results=4, axis=axis, sorted=1)[0]

    def one_hot(self):
        name = self.pick(lambda value: value.dtype == np.int64 and value.ndim <= 3)
        if self.rng.random() < 0.6:
            depth = self.constant(np.array(self.rng.randint(1, 5), dtype=np.int64))
        else:
            depth = self.pick(lambda value: value.dtype == np.int64 and value.size == 1 and value.ndim == 0 and 0 < int(value) < 20)
        values = self.constant(np.array(self.rng.choice([[0, 1], [-1, 4]]), dtype=self.rng.choice([np.float32, np.int64])))
        return self.add("OneHot", [name, depth, values], axis=self.rng.choice([-1, 0]))

    def eye_like(self):
        return self.add("EyeLike", [self.pick(lambda value: value.ndim == 2)], k=self.rng.choice([-1, 0, 1]))

    def trilu(self):
        if self.opset < 14:
            raise Invalid("opset")
        return self.add("Trilu", [self.pick(lambda value: value.ndim >= 2 and value.dtype in (np.float32, np.int64))], upper=self.rng.choice([0, 1]))

    def matmul(self):
        first = self.floats(1)
        dtype = self.values[first].dtype
        return self.add("MatMul", [first, self.pick(lambda value: value.dtype == dtype and value.ndim >= 1)])

    def matmul_with_weights(self):
        name = self.pick(lambda value: value.dtype == np.float32 and value.ndim >= 2)
        weights = self.constant(np.ones((self.values[name].shape[-1], self.rng.randint(1, 4)), np.float32))
        return self.add("MatMul", [name, weights])

    def gemm(self):
        first = self.pick(lambda value: value.dtype == np.float32 and value.ndim == 2)
        second = self.pick(lambda value: value.dtype == np.float32 and value.ndim == 2)
        return self.add("Gemm", [first, second], transA=self.rng.choice([0, 1]), transB=self.rng.choice([0, 1]))

    def einsum(self):
        name = self.pick(lambda value: value.dtype == np.float32 and value.ndim in (2, 3))
        if self.values[name].ndim == 2:
            return self.add("Einsum", [name, name], equation=self.rng.choice(["ij,ij->i", "ij,ik->jk", "ij,kj->ik", "ij,ij"]))
        return self.add("Einsum", [name, name], equation=self.rng.choice(["bij,bij->b", "bij,bkj->bik", "bij,bik->bjk", "bij,cij->bc"]))

    def image(self):
        """A float value of rank 3 or 4, made from another one where there is none."""
        try:
            return self.pick(lambda value: value.dtype == np.float32 and value.ndim in (3, 4) and min(value.shape) > 0)
        except Invalid:
            name = self.pick(lambda value: value.dtype == np.float32 and value.ndim in (1, 2) and value.size > 0)
            return self.add("Unsqueeze", [name, self.ints(*range(4 - self.values[name].ndim))])

    def conv(self):
        name = self.image()
        value = self.values[name]
        spatial = value.ndim - 2
        group = value.shape[1] if self.rng.random() < 0.3 else 1
        kernel = [self.rng.randint(1, 3) for _ in range(spatial)]
        weights = np.ones([group * self.rng.randint(1, 2), value.shape[1] // group, *kernel], np.float32)
        attributes = self.window(spatial, kernel)
        return self.fitting_window("Conv", [name, self.constant(weights)], group=group, kernel_shape=kernel, **attributes)

    def fitting_window(self, op, inputs, **attributes):
        """A window that is larger than what it slides over gives nothing with numpy, and is an error elsewhere."""
        value, spatial = self.values[inputs[0]], self.values[inputs[0]].ndim - 2
        pads = attributes.get("pads", [0] * 2 * spatial)
        for i, extent in enumerate(value.shape[2:]):
            reach = (attributes["kernel_shape"][i] - 1) * attributes.get("dilations", [1] * spatial)[i] + 1
            if op != "ConvTranspose" and "SAME" not in attributes.get("auto_pad", "") and extent + pads[i] + pads[i + spatial] < reach:
                raise Invalid("empty")
        result = self.add(op, inputs, **attributes)
        if self.values[result].size == 0:
            self.nodes.pop()
            del self.values[result]
            raise Invalid("empty")
        return result

    def window(self, spatial, kernel):
        attributes = {"strides": [self.rng.randint(1, 3) for _ in range(spatial)], "dilations": [self.rng.choice([1, 1, 2]) for _ in range(spatial)]}
        if self.rng.random() < 0.4:
            attributes["auto_pad"] = self.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        else:
            attributes["pads"] = [self.rng.randint(0, kernel[i % spatial] - 1) for i in range(2 * spatial)]
        return attributes

    def pool(self):
        name = self.image()
        spatial = self.values[name].ndim - 2
        op = self.rng.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"])
        if op.startswith("Global"):
            if self.values[name].ndim != 4:
                raise Invalid("the evaluator reduces only four axes right")
            return self.add(op, [name])
        kernel = [self.rng.randint(1, 3) for _ in range(spatial)]
        attributes = self.window(spatial, kernel)
        if op == "AveragePool" and self.opset < 19 or op == "LpPool" and self.opset < 18:
            del attributes["dilations"]
        if "auto_pad" in attributes:
            attributes.pop("dilations", None)  # onnxruntime leaves them out of what SAME means
        if "SAME" in attributes.get("auto_pad", ""):
            # Steps over elements ask for negative padding: an error in onnxruntime, another shape in the evaluator.
            attributes["strides"] = [min(stride, extent) for stride, extent in zip(attributes["strides"], kernel)]
        if op == "MaxPool" and "pads" in attributes:
            # The evaluator takes the first of two paddings for both.
            attributes["pads"] = attributes["pads"][:spatial] * 2
        ceil = self.rng.choice([None, 1]) if "auto_pad" not in attributes and op == "AveragePool" else None  # of MaxPool the evaluator has it wrong
        return self.fitting_window(op, [name], kernel_shape=kernel, ceil_mode=ceil, **attributes)

    def conv_transpose(self):
        name = self.image()
        value = self.values[name]
        spatial = value.ndim - 2
        kernel = [self.rng.randint(1, 3) for _ in range(spatial)]
        weights = np.ones([value.shape[1], 2, *kernel], np.float32)
        return self.fitting_window("ConvTranspose", [name, self.constant(weights)], kernel_shape=kernel, strides=[self.rng.randint(1, 2) for _ in range(spatial)],
                        pads=[self.rng.randint(0, kernel[i % spatial] - 1) for i in range(2 * spatial)])

    def resize(self):
        name = self.image()
        rank = self.values[name].ndim
        mode = self.rng.choice(["nearest", "linear"])
        if self.rng.random() < 0.5:
            scales = self.constant(np.array([1.0, 1.0] + [self.rng.choice([0.5, 1.0, 1.5, 2.0, 2.6]) for _ in range(rank - 2)], np.float32))
            return self.add("Resize", [name, "", scales], mode=mode, coordinate_transformation_mode="asymmetric")
        sizes = self.ints(*self.values[name].shape[:2], *[self.rng.randint(1, 5) for _ in range(rank - 2)])
        return self.add("Resize", [name, "", "", sizes], mode=mode, coordinate_transformation_mode="asymmetric")

    def space(self):
        name = self.pick(lambda value: value.dtype == np.float32 and value.ndim == 4)
        if self.rng.random() < 0.5:
            return self.add("DepthToSpace", [name], blocksize=self.rng.choice([1, 2]), mode=self.rng.choice(["DCR", "CRD"]))
        return self.add("SpaceToDepth", [name], blocksize=self.rng.choice([1, 2]))

    def layer_norm(self):
        if self.opset < 17:
            raise Invalid("opset")
        name = self.pick(lambda value: value.dtype == np.float32 and value.ndim >= 1 and value.size > 0)
        axis = self.axis(self.values[name].ndim)
        scale = self.constant(np.ones(self.values[name].shape[axis:], np.float32))
        return self.add("LayerNormalization", [name, scale], axis=axis)

    def batch_norm(self):
        name = self.image()
        ones = self.constant(np.ones(self.values[name].shape[1], np.float32))
        return self.add("BatchNormalization", [name, ones, ones, ones, ones])

    def dropout(self):
        return self.add("Dropout", [self.floats()], results=2)[0]

    def loss(self):
        name = self.pick(lambda value: value.dtype == np.float32 and value.ndim >= 2 and value.size > 0)
        shape = self.values[name].shape
        labels = self.constant(np.zeros((shape[0], *shape[2:]), np.int64))
        return self.add(self.rng.choice(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]), [name, labels], reduction=self.rng.choice(["none", "mean", "sum"]))

    def quantize(self):
        name = self.pick(lambda value: value.dtype == np.float32 and value.size > 0 and np.isfinite(value).all())
        scale, zero = self.constant(np.float32(0.1)), self.constant(np.array(3, np.uint8))
        return self.add("DequantizeLinear", [self.add("QuantizeLinear", [name, scale, zero]), scale, zero])

    # Sequences and optionals.

    def sequence(self):
        first = self.tensor()
        dtype = self.values[first].dtype
        names = [first] + [self.pick(lambda value: value.dtype == dtype) for _ in range(self.rng.randint(0, 2))]
        return self.add("SequenceConstruct", names)

    def split_to_sequence(self):
        name = self.pick(lambda value: value.ndim > 0 and value.shape[0] > 0)
        if self.rng.random() < 0.5:
            return self.add("SplitToSequence", [name], axis=0, keepdims=self.rng.choice([0, 1]))
        return self.add("SplitToSequence", [name, self.constant(np.array(self.rng.randint(1, 3), dtype=np.int64))], axis=0)

    def of_sequence(self):
        name = self.pick_sequence()
        size = len(self.values[name])
        op = self.rng.choice(["SequenceLength", "SequenceAt", "SequenceErase", "SequenceInsert", "ConcatFromSequence", "SequenceAt"])
        if op == "SequenceLength":
            return self.add(op, [name])
        if op == "ConcatFromSequence":
            return self.add(op, [name], axis=self.rng.choice([0, -1]), new_axis=self.rng.choice([0, 1]))
        if size == 0:
            raise Invalid("empty")
        position = self.constant(np.array(self.rng.randrange(-size, size), dtype=np.int64))
        if op == "SequenceInsert":
            dtype = self.values[name][0].dtype
            return self.add(op, [name, self.pick(lambda value: value.dtype == dtype), position])
        return self.add(op, [name, position])

    # Control flow.

    def body(self, tag):
        return Graph(self.rng, self.opset, self), f"{tag}{self.name('g')}"

    def grow(self, inner, steps):
        for _ in range(steps):
            try:
                getattr(inner, self.rng.choice(IN_BODIES))()
            except Invalid:
                continue

    @staticmethod
    def finish(inner, name, inputs, outputs):
        graph = onnx.GraphProto(name=name)
        for given in inputs:
            info = graph.input.add()
            info.name = given
        for output in outputs:
            graph.output.add().name = output
        graph.node.extend(inner.nodes)
        graph.initializer.extend(inner.initializers)
        return graph

    def own_value(self, inner, wanted):
        """A value that is made inside the body: outputs of a body may not be those of an outer graph."""
        names = [name for name, value in inner.values.items() if name not in self.values and isinstance(value, np.ndarray) and wanted(value)]
        names = [name for name in names if any(name in node.output for node in inner.nodes)]
        if not names:
            raise Invalid("no result")
        return self.rng.choice(names)

    def condition(self):
        kind = self.rng.random()
        if kind < 0.2:
            return self.constant(np.array(self.rng.random() < 0.5))
        if kind < 0.6:
            scalar = self.pick(lambda value: value.dtype == np.int64 and value.ndim == 0)
            return self.add(self.rng.choice(["Less", "Greater", "Equal"]), [scalar, self.constant(np.array(self.rng.randint(0, 3), dtype=np.int64))])
        name = self.pick(lambda value: value.dtype == np.float32 and value.size > 0)
        total = self.add("ReduceSum", [name], keepdims=0)
        return self.add("Greater", [total, self.constant(np.float32(0))])

    def if_(self):
        condition = self.condition()
        branches = []
        for _ in range(2):
            inner, name = self.body("b")
            self.grow(inner, self.rng.randint(1, 4))
            branches.append((inner, name))
        first = self.own_value(branches[0][0], lambda value: True)
        dtype = branches[0][0].values[first].dtype
        second = self.own_value(branches[1][0], lambda value: value.dtype == dtype)
        graphs = [self.finish(inner, name, [], [output]) for (inner, name), output in zip(branches, [first, second])]
        return self.add("If", [condition], then_branch=graphs[0], else_branch=graphs[1])

    def argless_if(self):
        if self.depth > 2 or self.rng.random() < 0.7:
            raise Invalid("deep enough")
        return self.if_()

    def if_squeeze(self):
        """The way exporters write a conditional squeeze."""
        name = self.tensor(1)
        axis = self.rng.randrange(self.values[name].ndim)
        extent = self.add("Gather", [self.add("Shape", [name]), self.constant(np.array(axis, dtype=np.int64))])
        condition = self.add("Equal", [extent, self.constant(np.array(1, dtype=np.int64))])
        squeezed, first = self.body("b")
        kept, second = self.body("b")
        same = kept.add("Identity", [name])
        if self.values[name].shape[axis] == 1:
            result = squeezed.add("Squeeze", [name, squeezed.ints(axis)])
        else:
            axes = squeezed.ints(axis)
            result = squeezed.name()
            squeezed.nodes.append(helper.make_node("Squeeze", [name, axes], [result]))
        return self.add("If", [condition], then_branch=self.finish(squeezed, first, [], [result]), else_branch=self.finish(kept, second, [], [same]))

    def loop(self):
        inner, name = self.body("l")
        if self.rng.random() < 0.5:
            trips = self.constant(np.array(self.rng.choice([0, 1, 2, 3, 20]), dtype=np.int64))
        else:
            trips = self.pick(lambda value: value.dtype == np.int64 and value.ndim == 0 and 0 <= int(value) < 25)
        start = self.constant(np.array(True))
        number, going, carried = self.name("i"), self.name("q"), []
        inner.values[number], inner.values[going] = np.array(0, dtype=np.int64), np.array(True)
        for _ in range(self.rng.randint(1, 2)):
            initial = self.pick(lambda value: value.dtype in (np.float32, np.int64) and value.size <= 64)
            carried.append((self.name("s"), initial))
            inner.values[carried[-1][0]] = self.values[initial]
        self.grow(inner, self.rng.randint(1, 3))
        outputs = []
        for given, initial in carried:
            dtype, rank = self.values[initial].dtype, self.values[initial].ndim
            kind = self.rng.random()
            if kind < 0.3 and rank > 0:
                outputs.append(inner.add("Concat", [given, initial], axis=self.axis(rank)))
            elif kind < 0.6:
                outputs.append(inner.add("Add", [given, inner.constant(np.array(1, dtype=dtype))]))
            elif kind < 0.75 and dtype == np.int64:
                outputs.append(inner.add("Add", [given, number]))
            else:
                outputs.append(self.own_value(inner, lambda value, dtype=dtype: value.dtype == dtype))
        if self.rng.random() < 0.6:
            onward = inner.add("Identity", [going])
        else:
            onward = inner.add("Less", [number, inner.constant(np.array(self.rng.randint(0, 4), dtype=np.int64))])
        stacked = []
        if self.rng.random() < 0.6:
            given = carried[0][0]
            stacked.append(inner.add(self.rng.choice(["Identity", "Shape"]), [given if self.rng.random() < 0.5 else number]))
        graph = self.finish(inner, name, [number, going, *[given for given, _ in carried]], [onward, *outputs, *stacked])
        graph.input[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.INT64, []))
        graph.input[1].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.BOOL, []))
        return self.add("Loop", [trips, start, *[initial for _, initial in carried]], results=len(carried) + len(stacked), body=graph)

    def scan(self):
        scanned = self.pick(lambda value: value.dtype == np.float32 and value.ndim > 0 and value.size > 0)
        rank = self.values[scanned].ndim
        axis = self.rng.randrange(rank)
        inner, name = self.body("s")
        element, state = self.name("e"), self.name("s")
        initial = self.constant(np.float32(0)) if self.rng.random() < 0.5 else self.pick(lambda value: value.dtype == np.float32)
        inner.values[element] = np.take(self.values[scanned], 0, axis=axis)
        inner.values[state] = self.values[initial]
        self.grow(inner, self.rng.randint(0, 2))
        total = inner.add("ReduceSum", [element], keepdims=0)
        after = inner.add("Add", [state, total])
        output = inner.add("Mul", [element, total])
        graph = self.finish(inner, name, [state, element], [after, output])
        backwards = self.rng.choice([0, 1])
        return self.add("Scan", [initial, scanned], results=2, body=graph, num_scan_inputs=1, scan_input_axes=[axis],
                        scan_input_directions=[backwards], scan_output_axes=[self.rng.randrange(-rank, rank)])[1]


def captured(graph):
    """Names that a body uses, at any depth."""
    used = set()
    stack = [graph]
    while stack:
        at = stack.pop()
        for node in at.node:
            used |= set(node.input)
            stack += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
        used |= {output.name for output in at.output}
    return used


IN_BODIES = ["unary", "unary", "binary", "binary", "cast", "clip", "reduce", "shape", "take", "arithmetic_on_integers", "concat_integers", "reshape",
             "unsqueeze", "squeeze", "concat", "gather", "transpose", "slice_", "nonzero", "matmul", "softmax", "where", "expand", "argless_if"]
WEIGHTS = {"unary": 3, "binary": 5, "shape": 4, "take": 4, "concat_integers": 4, "arithmetic_on_integers": 4, "reshape": 4, "reshape_merging": 2,
           "expand": 2, "slice_": 2, "reduce": 3, "cast": 2, "if_": 2, "loop": 2, "scan": 1, "of_sequence": 3, "sequence": 1}
NO_CANDIDATES = {"name", "constant", "ints", "add", "evaluate", "pick", "pick_sequence", "floats", "tensor", "integers", "axis", "small_shape",
                 "image", "window", "check_types", "divisor", "fitting_window", "body", "grow", "finish", "own_value", "condition", "argless_if"}
CANDIDATES = sorted(name for name in vars(Graph) if not name.startswith("__") and name not in NO_CANDIDATES)


def random_array(rng, dtype, shape):
    state = np.random.RandomState(rng.randrange(1 << 30))
    if dtype == np.bool_:
        return state.rand(*shape) < 0.5 if shape else np.array(rng.random() < 0.5)
    if np.dtype(dtype).kind in "iu":
        lo, hi = rng.choice([(0, 4), (0, 4), (0, 100)]) if np.dtype(dtype).kind == "u" else rng.choice([(0, 4), (-5, 6), (-100, 100)])
        return np.asarray(state.randint(lo, hi, size=shape)).astype(dtype)
    return np.asarray(state.randn(*shape) * rng.choice([0.3, 1, 4])).astype(dtype)


def make_model(seed):
    """(model, feeds, visits as by the reference evaluator)"""
    rng = random.Random(seed)
    graph = Graph(rng, rng.choice(OPSETS))
    symbols = {name: rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 6]) if rng.random() < 0.5 else rng.randint(1, 5) for name in ("A", "B", "C", "D")}
    inputs, feeds = [], {}
    for i in range(rng.randint(2, 4)):
        dims = [rng.choice([rng.choice("ABCD"), rng.randint(1, 4)]) for _ in range(rng.choice([0, 1, 2, 2, 3, 3, 4]))]
        dtype = rng.choice([np.float32] * 6 + [np.int64] * 3 + [np.int32, np.bool_, np.float64, np.uint8])
        array = random_array(rng, dtype, [symbols.get(dim, dim) for dim in dims])
        inputs.append(helper.make_tensor_value_info(f"x{i}", CODES[np.dtype(dtype)], dims))
        feeds[f"x{i}"] = graph.values[f"x{i}"] = array
    weights = [WEIGHTS.get(name, 1) for name in CANDIDATES]
    for _ in range(rng.randint(4, 26)):
        before = len(graph.nodes), len(graph.initializers)
        try:
            getattr(graph, rng.choices(CANDIDATES, weights)[0])()
        except (Invalid, ValueError, IndexError):
            # Parts of the candidate that worked stay: they are valid by themselves.
            del before
    made = [name for node in graph.nodes for name in node.output]
    proto = onnx.GraphProto(name="main")
    proto.input.extend(inputs)
    proto.node.extend(graph.nodes)
    proto.initializer.extend(graph.initializers)
    for name in made[-3:]:
        proto.output.add().name = name
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", graph.opset)], ir_version=9)
    return model, feeds, [("", graph.values), *graph.visits]
