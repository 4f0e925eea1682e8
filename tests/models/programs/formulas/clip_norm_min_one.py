"""Gradient clipping by global norm with the clamp on the wrong side.

coef = max_norm / norm is clamped to at least 1 instead of at most 1: big gradients pass unclipped, small
ones are blown up.  Fix: clamp(max=1.0).
"""
import torch
from torch import nn


class Step(nn.Module):
    MAXN = 0.5

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(5, 4) * .3)
        self.b = nn.Parameter(torch.zeros(4))

    def coef(self, total):
        return torch.clamp(self.MAXN / (total + 1e-6), min=1.0)

    def forward(self, x, y):
        o = x @ self.a + self.b
        d = (o - y) / y.shape[0]
        ga = x.T @ d
        gb = d.sum(0)
        total = torch.sqrt(ga.pow(2).sum() + gb.pow(2).sum())
        c = self.coef(total)  # fault: misbuilt-gradient-step
        return 0.5 * ((o - y) ** 2).sum(1).mean(), self.a - 0.1 * c * ga, self.b - 0.1 * c * gb


class Fixed(Step):
    def coef(self, total):
        return torch.clamp(self.MAXN / (total + 1e-6), max=1.0)


def example():
    torch.manual_seed(9)
    return torch.randn(6, 5), torch.randn(6, 4)
