"""QAT of a linear regression layer: per-output-channel symmetric 4-bit weights with a straight-through estimator.

CORRECT: w + (q - w).detach() has the value q and the gradient of w; amax over dim 1 gives one scale for each output row.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, i=10, o=3):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i) * 0.2)
        self.bias = nn.Parameter(torch.zeros(o))

    def quantized(self):
        w = self.weight
        s = w.detach().abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 7
        q = (w / s).round().clamp(-7, 7) * s
        return w + (q - w).detach()

    def forward(self, x, y):
        pred = x @ self.quantized().t() + self.bias
        return (pred - y).pow(2).sum(1).mean()


def example():
    torch.manual_seed(107)
    return torch.randn(5, 10), torch.randn(5, 3)


OPEN = [{0: "batch"}, {0: "batch"}]
