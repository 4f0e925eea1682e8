"""Mixture density network for grasp angles and widths.

CORRECT: target [B, D] is broadcast against K components on purpose, the component densities are summed over D in
log space and mixed with logsumexp over K.
"""
import math
import torch
import torch.nn as nn


class MDN(nn.Module):
    def __init__(self, n_in=15, hidden=24, n_comp=4, n_out=2):
        super().__init__()
        self.K, self.D = n_comp, n_out
        self.body = nn.Sequential(nn.Linear(n_in, hidden), nn.Tanh())
        self.pi = nn.Linear(hidden, n_comp)
        self.mu = nn.Linear(hidden, n_comp * n_out)
        self.log_sigma = nn.Linear(hidden, n_comp * n_out)

    def forward(self, x):
        h = self.body(x)
        mu = self.mu(h).view(-1, self.K, self.D)
        log_sigma = self.log_sigma(h).view(-1, self.K, self.D).clamp(-5, 3)
        return torch.log_softmax(self.pi(h), dim=1), mu, log_sigma


def log_normal(y, mu, log_sigma):
    z = (y.unsqueeze(1) - mu) * torch.exp(-log_sigma)
    return (-0.5 * z ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)).sum(dim=-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.mdn = MDN()

    def forward(self, features, grasp):
        log_pi, mu, log_sigma = self.mdn(features)
        log_prob = torch.logsumexp(log_pi + log_normal(grasp, mu, log_sigma), dim=1)
        return -log_prob.mean()


def example():
    g = torch.Generator().manual_seed(1)
    return torch.randn(6, 15, generator=g), torch.randn(6, 2, generator=g)


OPEN = [{0: "batch"}, {0: "batch"}]
