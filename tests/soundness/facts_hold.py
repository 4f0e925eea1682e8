"""Does a concrete execution lie inside the facts that `tensorlint show --format json --all-symbols` prints?

A value holds when its kind, dtype, rank and dims, known elements, bounds and NaN-freeness are as printed. Symbols are bound
by the first value that has one alone as a dim or element; from then on every expression has to agree with the binding.
Symbols starting with `?` in a body are new in each visit of it, so they are bound per visit.

What was compared is counted by aspect, and only where a fact says something: a dim that is unknown, or bounds that are those
of the dtype, are compared with nothing. The floors of each test are held against these counts.
"""
import collections
import functools
import math
import re

import numpy as np
from onnx import TensorProto, helper

NUMPY_NAMES = {TensorProto.FLOAT: "float32", TensorProto.DOUBLE: "float64", TensorProto.FLOAT16: "float16",
               TensorProto.BOOL: "bool", TensorProto.STRING: "string"}
# Bounds of floats are those of exact arithmetic; an execution may miss them by the rounding of some operations (the
# reference evaluator computes some functions of float64 in float32).
ROUNDING = {"float64": 1e-6, "float32": 1e-5, "float16": 2e-2, "bfloat16": 5e-2}
TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_?][\w?.]*)|(.))")


class Unbound(Exception):
    pass


def dtype_name(array):
    if array.dtype == object or array.dtype.kind in "USOT":
        return "string"
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    return NUMPY_NAMES.get(code) or TensorProto.DataType.Name(code).lower()


@functools.cache
def parse(text):
    """An expression as nested tuples: ("number", 3), ("symbol", "N"), ("+", a, b), ("floor", a, b), ("min", a, b), ..."""
    tokens = [(number, name, other) for number, name, other in TOKEN.findall(text)]
    at = 0

    def peek(other):
        return at < len(tokens) and tokens[at][2] == other

    def take(other):
        nonlocal at
        if not peek(other):
            raise ValueError(f"`{text}`: `{other}` expected at token {at}")
        at += 1

    def summed():
        nonlocal at
        negative = peek("-")
        if negative:
            at += 1
        result = product()
        if negative:
            result = ("*", ("number", -1), result)
        while peek("+") or peek("-"):
            sign = tokens[at][2]
            at += 1
            result = (sign, result, product())
        return result

    def product():
        nonlocal at
        result = factor()
        while peek("*"):
            at += 1
            result = ("*", result, factor())
        return result

    def factor():
        nonlocal at
        number, name, _ = tokens[at]
        if peek("("):
            at += 1
            result = summed()
            take(")")
            return result
        at += 1
        if number:
            return ("number", int(number))
        if not name:
            raise ValueError(f"`{text}`: unexpected token {at - 1}")
        if name not in ("floor", "mod", "min", "max", "broadcast") or not peek("("):
            return ("symbol", name)
        take("(")
        first = product() if name == "floor" else summed()
        take("/" if name == "floor" else ",")
        result = (name, first, summed())
        while name in ("min", "max", "broadcast") and peek(","):
            at += 1
            result = (name, result, summed())
        take(")")
        return result

    result = summed()
    if at != len(tokens):
        raise ValueError(f"`{text}`: text after the expression")
    return result


def value_of(tree, symbols):
    kind = tree[0]
    if kind == "number":
        return tree[1]
    if kind == "symbol":
        if tree[1] not in symbols:
            raise Unbound(tree[1])
        return symbols[tree[1]]
    a, b = value_of(tree[1], symbols), value_of(tree[2], symbols)
    if kind in ("floor", "mod") and b == 0:
        raise Unbound("division by zero")
    return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "floor": lambda: a // b, "mod": lambda: a % b,
            "min": lambda: min(a, b), "max": lambda: max(a, b), "broadcast": lambda: b if a == 1 else a}[kind]()


class Scope:
    """The symbols of one visit of a graph; `?` symbols are its own, named ones are those of the whole model."""

    def __init__(self, outer=None):
        self.named = outer.named if outer else {}
        self.own = dict(outer.own) if outer else {}

    def __contains__(self, name):
        return name in self.own or name in self.named

    def __getitem__(self, name):
        return self.own[name] if name in self.own else self.named[name]

    def bind(self, name, value):
        (self.own if name.startswith("?") else self.named)[name] = value


def narrower(lo, hi, dtype):
    """Whether bounds say more than the dtype does."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return lo is not None and lo > limits.min or hi is not None and hi < limits.max
    if dtype.kind == "b":
        return lo is not None and lo == hi
    return lo is not None or hi is not None


class Judge:
    """Collects what does not hold, and counts what was compared of the values that are not among the given ones."""

    ASPECTS = ("values", "dtypes", "dims", "elements", "bounds", "expressions")

    def __init__(self):
        self.problems = []
        self.compared = collections.Counter()
        self.counting = True

    def count(self, aspect, number=1):
        self.compared[aspect] += number * self.counting

    def summary(self):
        return ", ".join(f"{self.compared[aspect]} {aspect}" for aspect in self.ASPECTS) + f" compared: {len(self.problems)} outside their facts"

    def below(self, floors, scale=1.0):
        """What was compared too little, as texts. `floors`: for each aspect how many per hundred values; "values": how many in all.
        `scale`: what a run of a part, whose models may be unlike the rest, is held to."""
        for aspect, floor in floors.items():
            wanted = scale * floor * (1 if aspect == "values" else self.compared["values"] / 100)
            if self.compared[aspect] < max(wanted, 1):
                yield f"only {self.compared[aspect]} {aspect} compared, at least {wanted:.0f} expected"

    def visit(self, facts, concrete, scope, where, given=()):
        """`facts`: of one graph, by name; `concrete`: what one visit of it computed, in order of computation."""
        shared = [(name, value, facts[name]) for name, value in concrete.items() if name in facts]
        for name, value, fact in shared:
            self.bind(fact, value, scope)
        for name, value, fact in shared:
            self.counting = name not in given
            for problem in self.against(fact, value, scope):
                self.problems.append(f"{where}: `{name}` {problem}")

    def run(self, document, visits, where, given=()):
        """`document`: what `show` prints; `visits`: as from execution.py, in any order; `given`: the inputs, whose facts are declared."""
        bodies = {graph["graph"].rsplit("/", 1)[-1]: graph["values"] for graph in document["graphs"]}
        scope = Scope()
        for graph, concrete in visits:
            if not graph:
                self.visit(document["values"], concrete, scope, where, given)
        for graph, concrete in visits:
            if graph and graph in bodies:
                self.visit(bodies[graph], concrete, Scope(scope), f"{where}, body {graph}")

    def bind(self, fact, value, scope):
        if not isinstance(value, np.ndarray) or "dtype" not in fact:
            return
        pairs = []
        if fact.get("shape") is not None and len(fact["shape"]) == value.ndim:
            pairs += zip(fact["shape"], value.shape)
        if fact.get("contents") is not None and len(fact["contents"]) == value.size and value.dtype.kind in "iub":
            pairs += zip(fact["contents"], (int(x) for x in value.ravel()))
        for text, number in pairs:
            if isinstance(text, str):
                tree = parse(text)
                if tree[0] == "symbol" and tree[1] not in scope:
                    scope.bind(tree[1], number)

    def agrees(self, text, number, scope):
        """None where the fact says nothing, else whether the number is the one that the fact says."""
        if text is None:
            return None
        if isinstance(text, str):
            try:
                result = value_of(parse(text), scope) == number
            except Unbound:
                return None
            self.count("expressions")
            return result
        return text == number

    def disagree(self, aspect, texts, numbers, scope):
        """Whether some number is not as the fact says."""
        answers = [self.agrees(text, number, scope) for text, number in zip(texts, numbers)]
        self.count(aspect, sum(answer is not None for answer in answers))
        return False in answers

    def against(self, fact, value, scope):
        """Texts that say what of the value is not as the fact says."""
        self.count("values")
        kind = fact.get("kind", "tensor")
        if kind == "optional":
            if value is None:
                return
            if isinstance(value, (np.ndarray, list)):
                yield from self.against(fact["element"], value, scope)
            return
        if not fact.get("dtype", [None]):
            yield "has a fact that no value meets"
            return
        if kind == "map" or isinstance(value, dict):
            # Without a type a tensor's fact covers anything: every dtype, no rank.
            if isinstance(value, dict) and kind != "map" and fact.get("shape") is not None:
                yield f"is a map, the fact says {kind}"
            return
        if isinstance(value, list):
            if kind == "tensor" and fact.get("shape") is None:
                return
            if kind != "sequence":
                yield f"is a sequence, the fact says {kind}"
                return
            if self.disagree("dims", [fact["length"]], [len(value)], scope):
                yield f"has {len(value)} elements, the fact says {fact['length']}"
            for element in value:
                for problem in self.against(fact["element"], element, scope):
                    yield f"holds an element that {problem}"
            return
        if value is None:
            return
        if kind not in ("tensor", "sparse tensor"):
            yield f"is a tensor, the fact says {kind}"
            return
        yield from self.tensor(fact, np.asarray(value), scope)

    def tensor(self, fact, array, scope):
        name = dtype_name(array)
        if name not in fact["dtype"]:
            yield f"is {name}, the fact says {' or '.join(fact['dtype'])}"
            return
        self.count("dtypes", len(fact["dtype"]) == 1)
        shape = fact["shape"]
        if shape is not None:
            if len(shape) != array.ndim:
                yield f"has shape {list(array.shape)}, the fact says {shape}"
                return
            if self.disagree("dims", shape, array.shape, scope):
                yield f"has shape {list(array.shape)}, the fact says {shape}{self.bindings(shape, scope)}"
        if name == "string" or array.dtype.kind == "c":
            return
        contents = fact.get("contents")
        if contents is not None:
            if len(contents) != array.size:
                yield f"has {array.size} elements, the fact knows {len(contents)}"
                return
            flat = array.ravel()
            if array.dtype.kind in "iub":
                wrong = self.disagree("elements", contents, map(int, flat), scope)
            else:
                self.count("elements", sum(text is not None for text in contents))
                limit = ROUNDING.get(name, 0.3)
                wrong = any(text is not None and not math.isclose(text, float(x), rel_tol=limit, abs_tol=limit)
                            for text, x in zip(contents, flat))
            if wrong:
                yield f"is {flat.tolist()}, the fact says {contents}{self.bindings(contents, scope)}"
        if array.size:
            yield from self.bounded(fact, array, name)

    def bounded(self, fact, array, name):
        self.count("bounds", narrower(*fact["range"], array.dtype) or fact.get("nan") is False)
        integers = array.dtype.kind in "iub"
        if not integers:
            with np.errstate(all="ignore"):
                array = array.astype(np.float64)
            missing = np.isnan(array)
            if missing.any():
                if fact.get("nan") is False:
                    yield "holds NaN, the fact says that it never does"
                array = array[~missing]
                if not array.size:
                    return
        least, greatest = array.min(), array.max()
        least, greatest = (int(least), int(greatest)) if integers else (float(least), float(greatest))
        lo, hi = fact["range"]
        slack = 0 if integers else ROUNDING.get(name, 0.3)
        if lo is not None and least < lo - slack * max(1.0, abs(lo)) or hi is not None and greatest > hi + slack * max(1.0, abs(hi)):
            yield f"lies in [{least}, {greatest}], the fact says [{lo}, {hi}]"

    @staticmethod
    def bindings(texts, scope):
        names = {part for text in texts if isinstance(text, str) for part in re.findall(r"[A-Za-z_?][\w?.]*", text)}
        known = ", ".join(f"{name} = {scope[name]}" for name in sorted(names) if name in scope)
        return f" where {known}" if known else ""
