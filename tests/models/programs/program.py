"""What a program is made of: a step that takes parts and inputs and returns the loss, and where its mistake stands.

A line that ends in `# fault: RULE...` holds the mistake: one of these rules has to be reported at one of the marked lines.
`no-rule` marks a mistake that no rule covers.
A program without such a line is correct, however odd it looks, and gets no error and no warning.
"""
import torch
from torch import nn

N = 6
PROGRAMS: list[tuple] = []


class Buffer:
    def __init__(self, value):
        self.value = value


class Program(nn.Module):
    def __init__(self, parts):
        super().__init__()
        for name, part in parts.items():
            if isinstance(part, Buffer):
                self.register_buffer(name, part.value)
            else:
                setattr(self, name, part)


def module(function, parts):
    """A module whose `forward` is the function; the exporter keeps the frames of functions of that name alone."""
    function.__code__ = function.__code__.replace(co_name="forward")
    return type(function.__name__, (Program,), {"forward": function})(parts)


def step(fixed=False, fails=False, lost=(), **given):
    """`fixed`: the batch has no other size. `fails`: the step does not run. `lost`: exporters that leave nothing of the fault."""

    def register(function):
        inputs = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
        parts = {name: value for name, value in given.items() if not isinstance(value, torch.Tensor)}
        code = function.__code__
        if list(inputs) != list(code.co_varnames[1 : code.co_argcount]):
            raise ValueError(f"{function.__name__} takes other inputs than the ones given")
        PROGRAMS.append((function, parts, inputs, fixed, fails, lost))
        return function

    return register


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs)


def mlp(inputs, outputs, *last):
    return nn.Sequential(nn.Linear(inputs, 3), nn.ReLU(), nn.Linear(3, outputs), *last)


def randn(*shape):
    return torch.randn(*shape)


def rand(*shape):
    return torch.rand(*shape)


def flags(*shape):
    return (torch.rand(*shape) > 0.5).float()


def labels(high, *shape):
    return torch.randint(0, high, shape)


def simplex(*shape):
    return torch.softmax(torch.randn(*shape), 1)
