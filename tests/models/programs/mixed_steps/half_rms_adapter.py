"""Adapter with an RMS norm run in float16, classification in float32.

MISTAKE (may): the epsilon 1e-8 is 0 in float16 (smallest subnormal 6e-8), so nothing guards the rsqrt; the padded zero rows become NaN. Normalise in float32.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, d=16, classes=5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))
        self.down, self.up = nn.Linear(d, 4), nn.Linear(4, d)
        self.cls = nn.Linear(d, classes)

    def rms(self, x):
        h = x.half()
        ms = (h * h).mean(-1, keepdim=True)
        return (h * torch.rsqrt(ms + 1e-8)).float() * self.gain  # fault: invalid-domain

    def forward(self, tokens, label):
        n = self.rms(tokens)  # fault: invalid-domain
        x = tokens + self.up(F.gelu(self.down(n)))
        return F.cross_entropy(self.cls(x.mean(1)), label)


class Fixed(Step):
    def rms(self, x):
        ms = (x * x).mean(-1, keepdim=True)
        return x * torch.rsqrt(ms + 1e-8) * self.gain


def example():
    torch.manual_seed(41)
    return torch.randn(4, 6, 16) * 0.02, torch.randint(0, 5, (4,))
