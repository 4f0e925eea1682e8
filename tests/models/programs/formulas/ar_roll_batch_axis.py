"""Autoregressive sensor model: the lagged input is made with roll over dim 0.

x is (batch, time, channel); the shift takes the series of the neighbouring batch element, not the previous
time step.  Fix: dims=1.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))

    def lag(self, x):
        return torch.roll(x, 1, dims=0)

    def forward(self, x):
        p1 = self.lag(x)  # fault: rolled-along-samples
        p2 = torch.roll(x, 2, dims=1)
        pred = self.cell(torch.cat([p1, p2], dim=-1))
        return ((pred - x)[:, 2:] ** 2).mean()


class Fixed(Step):
    def lag(self, x):
        return torch.roll(x, 1, dims=1)


def example():
    torch.manual_seed(27)
    return (torch.randn(4, 12, 3),)
