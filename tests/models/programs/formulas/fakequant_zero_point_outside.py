"""Quantisation aware training: dequantisation as q*scale - zp instead of (q - zp)*scale.

With zp = 128 all activations move by about -128 instead of -128*scale.  Fix: parentheses.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 8)
        self.fc2 = nn.Linear(8, 2)
        self.scale, self.zp = 0.05, 128.0

    def dequant(self, q):
        return q * self.scale - self.zp

    def forward(self, x, y):
        h = torch.tanh(self.fc1(x))
        q = torch.clamp(torch.round(h / self.scale) + self.zp, 0.0, 255.0)
        h = h + (self.dequant(q) - h).detach()  # fault: zero-point-not-scaled
        return nn.functional.cross_entropy(self.fc2(h), y)


class Fixed(Step):
    def dequant(self, q):
        return (q - self.zp) * self.scale


def example():
    torch.manual_seed(44)
    return torch.randn(6, 8), torch.tensor([0, 1, 1, 0, 1, 0])
