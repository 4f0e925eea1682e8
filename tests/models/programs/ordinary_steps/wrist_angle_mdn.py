"""Trains a mixture density network that predicts wrist angles from muscle signals."""
import math

import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, k=5, d=2):
        super().__init__()
        self.k, self.d = k, d
        self.body = nn.Sequential(nn.Linear(8, 34), nn.Tanh())
        self.pi = nn.Linear(34, k)
        self.mu = nn.Linear(34, k * d)
        self.rho = nn.Linear(34, k * d)

    def forward(self, emg, angle):
        h = self.body(emg)
        log_pi = self.pi(h).log_softmax(-1)
        mu = self.mu(h).reshape(-1, self.k, self.d)
        neg_log_sigma = self.rho(h).reshape(-1, self.k, self.d)
        resid = (angle.unsqueeze(1) - mu) * neg_log_sigma.exp()
        comp = (neg_log_sigma - 0.5 * resid.square()).sum(-1) - 0.5 * self.d * math.log(2 * math.pi)
        return torch.logsumexp(log_pi + comp, dim=-1).mean().neg()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(27, 8), torch.randn(27, 2))
