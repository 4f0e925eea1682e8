"""Hourly bike-rental counts as Poisson regression; the head ends in softplus so that the rate is positive.

MISTAKE (silent): F.poisson_nll_loss takes the log of the rate by default and exponentiates the already positive rate; pass log_input=False.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, n_feat=8):
        super().__init__()
        self.hour = nn.Embedding(24, 4)
        self.net = nn.Sequential(nn.Linear(n_feat + 4, 32), nn.ReLU(), nn.Linear(32, 1))

    def rate(self, hour, weather):
        z = torch.cat([self.hour(hour), weather], dim=1)
        return F.softplus(self.net(z)).squeeze(1) + 1e-6

    def forward(self, hour, weather, count):
        lam = self.rate(hour, weather)
        return F.poisson_nll_loss(lam, count)  # fault: rate-as-log-rate


class Fixed(Step):
    def forward(self, hour, weather, count):
        lam = self.rate(hour, weather)
        return F.poisson_nll_loss(lam, count, log_input=False)


def example():
    torch.manual_seed(19)
    return torch.randint(0, 24, (6,)), torch.randn(6, 8), torch.randint(0, 9, (6,)).float()
