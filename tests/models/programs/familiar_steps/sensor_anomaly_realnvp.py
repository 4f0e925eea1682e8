"""Trains a RealNVP flow of sensor readings by maximum likelihood. The log determinant is subtracted from the log likelihood; it should be added for the map from data to latent."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Coupling(nn.Module):
    def __init__(self, d, flip):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d // 2, 24), nn.ReLU(), nn.Linear(24, d))
        self.flip = flip

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, dim=1)
        s = torch.tanh(s)
        b = b * torch.exp(s) + t
        y = torch.cat([b, a] if self.flip else [a, b], dim=1)
        return y, s.sum(dim=1)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, d=6):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(d, i % 2 == 1) for i in range(4)])
        self.d = d

    def forward(self, readings):
        z, log_det = readings, 0.0
        for layer in self.layers:
            z, ld = layer(z)
            log_det = log_det + ld
        log_prior = -0.5 * z.pow(2).sum(1) - 0.5 * self.d * math.log(2 * math.pi)
        log_lik = log_prior - log_det  # fault: scale-without-bound
        return -log_lik.mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(25, 6),)
