"""Trains a conditional autoregressive affine flow of electricity prices, with z = (y - m) * exp(-s)."""
import math

import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, hours=6, cond=5):
        super().__init__()
        self.w = nn.Parameter(0.1 * torch.randn(2, hours, hours))
        self.b = nn.Parameter(torch.zeros(2, hours))
        self.cond = nn.Linear(cond, 2 * hours)
        self.register_buffer("tri", torch.ones(hours, hours).tril(-1))

    def forward(self, price, weather):
        shifts = torch.einsum("pij,bj->pbi", self.w * self.tri, price) + self.b.unsqueeze(1)
        extra_m, extra_s = self.cond(weather).chunk(2, 1)
        m = shifts[0] + extra_m
        s = torch.tanh(shifts[1] + extra_s)
        z = (price - m) * torch.exp(-s)
        nll = 0.5 * z.pow(2) + s + 0.5 * math.log(2 * math.pi)
        return nll.sum(1).mean(0)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(19, 6), torch.randn(19, 5))
