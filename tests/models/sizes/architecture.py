"""What a model here is made of: a forward that takes parts and inputs, the axes that are declared open, and those that tracing fixed.

Each function is exported twice: with `self.free` false, when the axes in `baked` hold the size of the example somewhere, and
true, when every axis is free (within bounds and divisors, which are not mistakes).
"""
import torch
from torch import nn

MODELS: list[tuple] = []


class Buffer:
    def __init__(self, value):
        self.value = value


class Parts(nn.Module):
    def __init__(self, parts, free):
        super().__init__()
        self.free = free
        for name, part in parts.items():
            if isinstance(part, Buffer):
                self.register_buffer(name, part.value)
            else:
                setattr(self, name, part)


def module(function, parts, free):
    """A module whose `forward` is the function; the exporter keeps the frames of functions of that name alone."""
    function.__code__ = function.__code__.replace(co_name="forward")
    return type(function.__name__, (Parts,), {"forward": function})(parts, free)


def model(opened, baked, twin=True, **given):
    """`opened`: names of axes by input, one word an axis, `.` where it is fixed. `baked`: those that only the example's size fits."""

    def register(function):
        inputs = {name: value for name, value in given.items() if isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter)}
        parts = {name: value for name, value in given.items() if name not in inputs}
        code = function.__code__
        if list(inputs) != list(code.co_varnames[1 : code.co_argcount]) or not set(opened) <= set(inputs):
            raise ValueError(f"{function.__name__} takes other inputs than the ones given")
        axes = {name: {axis: symbol for axis, symbol in enumerate(opened[name].split()) if symbol != "."} for name in opened}
        symbols = {symbol for names in axes.values() for symbol in names.values()}
        if not set(baked.split()) <= symbols:
            raise ValueError(f"{function.__name__}: {baked}")
        MODELS.append((function, parts, inputs, axes, baked.split(), twin))
        return function

    return register


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs)


def randn(*shape):
    return torch.randn(*shape)


def ids(high, *shape):
    return torch.randint(0, high, shape)
