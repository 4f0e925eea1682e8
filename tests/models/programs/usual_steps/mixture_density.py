"""Mixture density.

CORRECT: mixture likelihood in the log domain, y [N,1] against K components.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class MDN(nn.Module):
    def __init__(self, n_in=8, hidden=30, k=5):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.logits = nn.Linear(hidden, k)
        self.mu = nn.Linear(hidden, k)
        self.log_sigma = nn.Linear(hidden, k)

    def forward(self, x):
        h = self.trunk(x)
        return self.logits(h), self.mu(h), self.log_sigma(h).clamp(-5, 5)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.mdn = MDN()

    def forward(self, x, y):
        logits, mu, log_sigma = self.mdn(x)
        z = (y[:, None] - mu) * torch.exp(-log_sigma)
        log_comp = -0.5 * z.square() - log_sigma - 0.5 * math.log(2 * math.pi)
        log_prob = torch.logsumexp(F.log_softmax(logits, dim=-1) + log_comp, dim=-1)
        return -log_prob.mean()


def example():
    torch.manual_seed(0)
    return torch.randn(33, 8), torch.randn(33)
