"""Auto-regressive MLP on first differences of a price series; the last difference is the target.

MISTAKE (silent): torch.roll wraps around, so the first difference is x[0] - x[-1], the target's own price leaking in;
use x[:, 1:] - x[:, :-1] (here the first entry replaced by 0).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, T=16):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(T - 1, 32), nn.SiLU(), nn.Linear(32, 1))

    def diff(self, x):
        return x - torch.roll(x, shifts=1, dims=1)  # fault: prediction-reads-target

    def forward(self, price):
        d = self.diff(price.log())  # fault: prediction-reads-target
        feats, target = d[:, :-1], d[:, -1]
        pred = self.mlp(feats)[:, 0]
        return torch.nn.functional.huber_loss(pred, target, delta=0.1)


class Fixed(Step):
    def diff(self, x):
        d = x[:, 1:] - x[:, :-1]
        return torch.cat([torch.zeros_like(d[:, :1]), d], dim=1)


def example():
    torch.manual_seed(14)
    return (100 * torch.exp(0.02 * torch.randn(6, 16).cumsum(1)),)
