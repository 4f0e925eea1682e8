"""Fit a neural model of antenna gain in decibel.

MISTAKE (may): log10 of a ReLU output, which is exactly 0 wherever the unit is off: -inf loss. Use softplus (or clamp).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh())
        self.lin = nn.Linear(40, 1)
        nn.init.constant_(self.lin.bias, 1.0)

    def gain(self, h):
        return torch.relu(self.lin(h))

    def forward(self, angles, gain_db):
        th, ph = angles[:, 0], angles[:, 1]
        x = torch.stack([th.sin(), th.cos(), ph.sin(), ph.cos()], dim=1)
        g = self.gain(self.f(x)).squeeze(1)
        db = 10.0 * torch.log10(g)  # fault: invalid-domain
        return (db - gain_db).abs().mean()


class Fixed(Step):
    def gain(self, h):
        return torch.nn.functional.softplus(self.lin(h)) + 1e-6


def example():
    torch.manual_seed(55)
    return torch.rand(6, 2) * 3.1, torch.randn(6) * 3


OPEN = [{0: "samples"}, {0: "samples"}]
