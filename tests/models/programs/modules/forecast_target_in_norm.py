"""RevIN-like forecasting: inputs normalised per window.

The statistics are taken over history *and* horizon (cat([x, y])): the input of the model carries the
future mean, validation looks too good and inference cannot do it.
Fix: statistics of the history only.
"""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self, L=24, H=8):
        super().__init__()
        self.lin = nn.Linear(L, H)

    def stats(self, x, y):
        window = torch.cat([x, y], dim=1)  # wrong: target values enter the input normalisation
        return window.mean(1, keepdim=True), window.std(1, keepdim=True) + 1e-5

    def forward(self, x, y):
        m, s = self.stats(x, y)  # fault: target-in-statistics
        forecast = self.lin(((x - m) / s).transpose(1, 2)).transpose(1, 2) * s + m
        return (forecast - y).abs().mean(), (forecast - y).square().mean().sqrt()


class Fixed(Step):
    def stats(self, x, y):
        return x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5


def example():
    torch.manual_seed(26)
    return torch.randn(4, 24, 3).cumsum(1), torch.randn(4, 8, 3)
