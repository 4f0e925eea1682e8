"""Mixture density network: p(y|x) = sum_k pi_k N(y; mu_k, sigma_k).

CORRECT: mixture density network, logsumexp of log_softmax weights + Gaussian log densities.
"""
import math
import torch
import torch.nn as nn


class MDN(nn.Module):
    def __init__(self, d_in, d_out, k):
        super().__init__()
        self.k, self.d_out = k, d_out
        self.trunk = nn.Sequential(nn.Linear(d_in, 32), nn.Tanh())
        self.pi = nn.Linear(32, k)
        self.mu = nn.Linear(32, k * d_out)
        self.log_sigma = nn.Linear(32, k * d_out)

    def forward(self, x):
        h = self.trunk(x)
        mu = self.mu(h).view(-1, self.k, self.d_out)
        log_sigma = self.log_sigma(h).view(-1, self.k, self.d_out).clamp(-5, 3)
        return torch.log_softmax(self.pi(h), dim=1), mu, log_sigma


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.mdn = MDN(3, 2, 5)

    def forward(self, x, y):
        log_pi, mu, log_sigma = self.mdn(x)
        z = (y.unsqueeze(1) - mu) * torch.exp(-log_sigma)
        log_n = -0.5 * (z * z + math.log(2 * math.pi)) - log_sigma
        log_joint = log_pi + log_n.sum(dim=-1)
        nll = -torch.logsumexp(log_joint, dim=1)
        resp = torch.softmax(log_joint, dim=1)
        expected = (log_pi.exp().unsqueeze(-1) * mu).sum(1)
        return nll.mean(), resp, (expected - y).abs().mean()


def example():
    g = torch.Generator().manual_seed(18)
    return torch.randn(9, 3, generator=g), torch.randn(9, 2, generator=g)
