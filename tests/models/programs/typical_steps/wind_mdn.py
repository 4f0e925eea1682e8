"""Mixture density network for wind speed.

CORRECT: log_softmax of mixture weights and logsumexp over components (dim=1); y[:, None] broadcasts against [N, K] on purpose.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MDN(nn.Module):
    def __init__(self, n_in=8, hidden=32, k=4):
        super().__init__()
        self.fc = nn.Linear(n_in, hidden)
        self.pi = nn.Linear(hidden, k)
        self.mu = nn.Linear(hidden, k)
        self.log_sigma = nn.Linear(hidden, k)

    def forward(self, x):
        h = torch.tanh(self.fc(x))
        return self.pi(h), self.mu(h), self.log_sigma(h).clamp(-4.0, 3.0)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.mdn = MDN()

    def forward(self, x, y):
        pi, mu, log_sigma = self.mdn(x)
        z = (y[:, None] - mu) / log_sigma.exp()
        log_normal = -0.5 * z ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)
        log_mix = F.log_softmax(pi, dim=1) + log_normal
        return -torch.logsumexp(log_mix, dim=1).mean()


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randn(7, 8, generator=g), torch.rand(7, generator=g) * 5)


OPEN = [{0: "batch"}, {0: "batch"}]
