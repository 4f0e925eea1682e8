"""Yield nll.

MISTAKE (silent): y is [N], mu is [N,1], difference becomes [N,N].
"""
import math
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, d_in=12, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d_in, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.mu = nn.Linear(hidden, 1)
        self.log_var = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mu(h), self.log_var(h)


class Step(nn.Module):
    """Heteroscedastic regression of crop yield."""

    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x, y):
        mu, log_var = self.net(x)
        log_var = log_var.clamp(-8.0, 8.0)
        sq = (y - mu) ** 2  # fault: silent-broadcast-in-loss
        nll = 0.5 * (log_var + sq / log_var.exp() + math.log(2 * math.pi))
        return nll.mean()


def example():
    torch.manual_seed(0)
    return torch.randn(96, 12), torch.randn(96)
