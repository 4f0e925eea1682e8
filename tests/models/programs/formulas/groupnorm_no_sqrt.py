"""Group normalisation by hand: divides by the variance, not by its root.

Fix: rsqrt(var + eps).
"""
import torch
from torch import nn


class GN(nn.Module):
    def __init__(self, g, c):
        super().__init__()
        self.g = g
        self.gamma = nn.Parameter(torch.ones(c))
        self.beta = nn.Parameter(torch.zeros(c))

    def scale(self, v):
        return 1.0 / (v + 1e-5)

    def forward(self, x):
        b, c, h, w = x.shape
        t = x.reshape(b, self.g, -1)
        mu = t.mean(2, keepdim=True)
        v = ((t - mu) ** 2).mean(2, keepdim=True)
        t = ((t - mu) * self.scale(v)).reshape(b, c, h, w)  # fault: normalised-otherwise
        return t * self.gamma[:, None, None] + self.beta[:, None, None]


class GN2(GN):
    def scale(self, v):
        return torch.rsqrt(v + 1e-5)


class Step(nn.Module):
    norm = GN

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 8, 3)
        self.gn = self.norm(4, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x, y):
        return ((self.out(torch.relu(self.gn(self.conv(x)))) - y) ** 2).mean()


class Fixed(Step):
    norm = GN2


def example():
    torch.manual_seed(37)
    return 3 * torch.randn(2, 2, 7, 7), torch.randn(2, 1, 5, 5)
