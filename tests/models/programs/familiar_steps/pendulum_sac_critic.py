"""Trains the twin critics of soft actor-critic on the pendulum, with a squashed Gaussian next action."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 24), nn.ReLU(), nn.Linear(24, o))


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, obs=3, act=2):
        super().__init__()
        self.q1, self.q2 = mlp(obs + act, 1), mlp(obs + act, 1)
        self.t1, self.t2 = mlp(obs + act, 1), mlp(obs + act, 1)
        self.policy = mlp(obs, 2 * act)
        self.log_alpha = nn.Parameter(torch.tensor(-1.0))

    def sample(self, obs, eps):
        mu, log_std = self.policy(obs).chunk(2, dim=-1)
        log_std = log_std.clamp(-5, 2)
        u = mu + log_std.exp() * eps
        logp = (-0.5 * eps ** 2 - log_std - 0.5 * math.log(2 * math.pi)).sum(-1, keepdim=True)
        logp = logp - (2 * (math.log(2) - u - F.softplus(-2 * u))).sum(-1, keepdim=True)
        return torch.tanh(u), logp

    def forward(self, s, a, r, s2, terminal, eps):
        with torch.no_grad():
            a2, logp2 = self.sample(s2, eps)
            x2 = torch.cat([s2, a2], -1)
            q_next = torch.minimum(self.t1(x2), self.t2(x2)) - self.log_alpha.exp() * logp2
            y = r.view(-1, 1) + 0.98 * (~terminal).float().view(-1, 1) * q_next
        x = torch.cat([s, a], -1)
        return F.mse_loss(self.q1(x), y) + F.mse_loss(self.q2(x), y)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(26, 3), torch.rand(26, 2) * 2 - 1, torch.randn(26), torch.randn(26, 3),
            torch.rand(26) < 0.1, torch.randn(26, 2))
