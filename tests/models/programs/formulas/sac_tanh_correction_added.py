"""SAC actor: change of variables for tanh with the wrong sign.

log pi(a) = log N(u) - sum log(1 - tanh(u)^2); here the correction is added.  Fix: minus.
"""
import math

import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(6, 32)
        self.m, self.s = nn.Linear(32, 2), nn.Linear(32, 2)
        self.critic = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
        self.alpha = 0.2

    def squash(self, logp, a):
        return logp + torch.log(1 - a.pow(2) + 1e-6).sum(-1)

    def forward(self, obs, eps):
        h = torch.relu(self.trunk(obs))
        mu, ls = self.m(h), self.s(h).clamp(-5, 2)
        u = mu + ls.exp() * eps
        logp = (-0.5 * eps ** 2 - ls - 0.5 * math.log(2 * math.pi)).sum(-1)
        a = torch.tanh(u)
        logp = self.squash(logp, a)  # fault: density-correction-added
        q = self.critic(torch.cat([obs, a], -1)).squeeze(-1)
        return (self.alpha * logp - q).mean()


class Fixed(Step):
    def squash(self, logp, a):
        return logp - torch.log(1 - a.pow(2) + 1e-6).sum(-1)


def example():
    torch.manual_seed(19)
    return torch.randn(5, 6), torch.randn(5, 2)
