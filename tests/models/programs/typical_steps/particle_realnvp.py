"""RealNVP density model for particle features.

CORRECT: negative log-likelihood = -(log N(z) + sum of log-scales); log-determinants are summed over dims and not averaged.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Coupling(nn.Module):
    def __init__(self, dim=6, hidden=24, flip=False):
        super().__init__()
        self.flip = flip
        self.half = dim // 2
        self.net = nn.Sequential(nn.Linear(self.half, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, x):
        a, b = x[:, : self.half], x[:, self.half :]
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, dim=1)
        s = torch.tanh(s)
        b = b * torch.exp(s) + t
        out = torch.cat([b, a], dim=1) if self.flip else torch.cat([a, b], dim=1)
        return out, s.sum(dim=1)


class Step(nn.Module):
    def __init__(self, dim=6, n_layers=4):
        super().__init__()
        self.dim = dim
        self.layers = nn.ModuleList([Coupling(dim, flip=i % 2 == 1) for i in range(n_layers)])

    def forward(self, x):
        z, log_det = x, 0.0
        for layer in self.layers:
            z, ld = layer(z)
            log_det = log_det + ld
        log_pz = -0.5 * (z ** 2).sum(dim=1) - 0.5 * self.dim * math.log(2 * math.pi)
        return -(log_pz + log_det).mean()


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randn(7, 6, generator=g) * 1.5 + 0.3,)


OPEN = [{0: "batch"}]
