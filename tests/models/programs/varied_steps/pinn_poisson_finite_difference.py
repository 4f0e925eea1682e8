"""Physics-informed net for u'' = -sin(x) on (0, pi): second derivative by central differences, plus the two boundary values.

MISTAKE (silent): the step is 1e-5, so in float32 u(x+h) - 2u(x) + u(x-h) is pure rounding noise divided by 1e-10; a step near 1e-2 is right.
"""
import math
import torch
from torch import nn


class Step(nn.Module):
    h = 1e-5

    def __init__(self):
        super().__init__()
        self.u = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))

    def forward(self, x):
        h = self.h
        lap = (self.u(x + h) - 2 * self.u(x) + self.u(x - h)) / h ** 2  # fault: difference-of-rounded-numbers
        residual = lap + torch.sin(x)
        ends = self.u(torch.tensor([[0.0], [math.pi]]))
        return residual.pow(2).mean() + 10.0 * ends.pow(2).mean()


class Fixed(Step):
    h = 1e-2


def example():
    return (math.pi * torch.rand(8, 1, generator=torch.Generator().manual_seed(0)),)


OPEN = [{0: "points"}]
