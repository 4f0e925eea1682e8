"""Residual MLP regressor with a hand-written RMSNorm before each block.

MISTAKE (silent): the norm squares the mean where RMSNorm takes the mean of the squares; for centred activations it divides by nearly 0.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, d_in=8, d=16, depth=3):
        super().__init__()
        self.inp = nn.Linear(d_in, d)
        self.gains = nn.ParameterList([nn.Parameter(torch.ones(d)) for _ in range(depth)])
        self.fcs = nn.ModuleList([nn.Linear(d, d) for _ in range(depth)])
        self.out = nn.Linear(d, 1)

    def rms_norm(self, x, g):
        ms = x.mean(-1, keepdim=True).pow(2)  # fault: normalised-otherwise
        return x * torch.rsqrt(ms + 1e-6) * g

    def forward(self, x, y):
        h = self.inp(x)
        for g, fc in zip(self.gains, self.fcs):
            h = h + torch.relu(fc(self.rms_norm(h, g)))  # fault: normalised-otherwise
        return nn.functional.smooth_l1_loss(self.out(h), y)


class Fixed(Step):
    def rms_norm(self, x, g):
        ms = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(ms + 1e-6) * g


def example():
    torch.manual_seed(24)
    return torch.randn(6, 8), torch.randn(6, 1)


OPEN = [{0: "batch"}, {0: "batch"}]
