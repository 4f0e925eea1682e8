"""Trains an affine coupling flow on stellar spectra by maximum likelihood. The log determinant is subtracted from the base log-density although z = x * exp(s) + t maps data to latent; it should be added."""
import math

import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, half, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(half, hidden), nn.ReLU(), nn.Linear(hidden, 2 * half))

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        s, t = self.net(a).chunk(2, dim=1)
        s = torch.tanh(s)
        b = b * torch.exp(s) + t
        return torch.cat([b, a], dim=1), s.sum(dim=1)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, dim=10):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(dim // 2, 22) for _ in range(3)])

    def forward(self, spectra):
        z = spectra
        log_det = torch.zeros(spectra.size(0))
        for layer in self.layers:
            z, ld = layer(z)
            log_det = log_det + ld
        log_pz = -0.5 * (z ** 2 + math.log(2 * math.pi)).sum(dim=1)
        log_px = log_pz - log_det  # fault: scale-without-bound
        return -log_px.mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(23, 10),)
