"""Beta-VAE on small vectors; the KL term lost its minus sign.

0.5*sum(1 + logvar - mu^2 - exp(logvar)) is -KL, it is at most zero; adding it to the loss rewards a posterior
far from the prior.  Fix: -0.5.
"""
import torch
from torch import nn
from torch.nn import functional as F


class Step(nn.Module):
    def __init__(self, zdim=3, beta=2.0):
        super().__init__()
        self.enc = nn.Linear(12, 24)
        self.mu, self.lv = nn.Linear(24, zdim), nn.Linear(24, zdim)
        self.dec = nn.Sequential(nn.Linear(zdim, 24), nn.ELU(), nn.Linear(24, 12))
        self.beta = beta

    def kl(self, mu, logvar):
        return 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()

    def forward(self, x, noise):
        h = F.elu(self.enc(x))
        mu, logvar = self.mu(h), self.lv(h)
        z = mu + noise * torch.exp(0.5 * logvar)
        rec = F.binary_cross_entropy_with_logits(self.dec(z), x, reduction="none").sum(1).mean()
        return rec + self.beta * self.kl(mu, logvar)  # fault: one-sided-loss


class Fixed(Step):
    def kl(self, mu, logvar):
        return -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()


def example():
    torch.manual_seed(10)
    return torch.rand(5, 12), torch.randn(5, 3)
