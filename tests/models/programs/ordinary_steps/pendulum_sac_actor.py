"""Trains the squashed Gaussian actor of soft actor-critic for a pendulum against two frozen critics."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def critic():
    net = nn.Sequential(nn.Linear(5, 28), nn.ReLU(), nn.Linear(28, 1))
    return net.requires_grad_(False)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, alpha=0.2):
        super().__init__()
        self.alpha = alpha
        self.trunk = nn.Sequential(nn.Linear(3, 28), nn.ReLU())
        self.mu = nn.Linear(28, 2)
        self.log_std = nn.Linear(28, 2)
        self.q1, self.q2 = critic(), critic()

    def forward(self, obs, eps):
        h = self.trunk(obs)
        log_std = self.log_std(h).clamp(-5, 2)
        u = self.mu(h) + log_std.exp() * eps
        action = torch.tanh(u)
        logp = (-0.5 * eps ** 2 - log_std - 0.5 * math.log(2 * math.pi)).sum(1)
        logp = logp - (2 * (math.log(2) - u - F.softplus(-2 * u))).sum(1)
        pair = torch.cat([obs, action], dim=1)
        q = torch.min(self.q1(pair), self.q2(pair)).squeeze(1)
        return (self.alpha * logp - q).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(18, 3), torch.randn(18, 2))
