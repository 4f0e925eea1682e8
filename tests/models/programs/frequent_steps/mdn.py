"""Mixture density network for a multi-valued inverse problem.

CORRECT: unusual, and as it is meant.
"""
import math
import torch
import torch.nn as nn


class MDN(nn.Module):
    def __init__(self, d_in, n_hidden, n_gaussians):
        super().__init__()
        self.z_h = nn.Sequential(nn.Linear(d_in, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)

    def forward(self, x):
        h = self.z_h(x)
        return torch.log_softmax(self.z_pi(h), -1), self.z_mu(h), self.z_sigma(h)


def gaussian_log_prob(y, mu, log_sigma):
    zscore = (y - mu) * torch.exp(-log_sigma)
    return -0.5 * zscore ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.mdn = MDN(3, 24, 5)

    def forward(self, x, y):
        log_pi, mu, log_sigma = self.mdn(x)
        log_prob = gaussian_log_prob(y.unsqueeze(1), mu, log_sigma)
        return -torch.logsumexp(log_pi + log_prob, dim=1).mean()


def example():
    g = torch.Generator().manual_seed(40)
    return torch.randn(16, 3, generator=g), torch.randn(16, generator=g)
