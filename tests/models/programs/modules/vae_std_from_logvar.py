"""Variational autoencoder.

The head gives log-variance (the KL term reads it so), yet the reparametrisation uses
exp(logvar) as the standard deviation: noise with the squared scale.
Fix: std = exp(0.5 * logvar).
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.enc = nn.Linear(64, 32)
        self.to_mu = nn.Linear(32, latent)
        self.to_logvar = nn.Linear(32, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, 64))

    def reparametrise(self, mu, logvar, eps):
        std = torch.exp(logvar)  # wrong: exp(logvar) is the variance, not the std
        return mu + eps * std

    def forward(self, x, eps):
        h = F.relu(self.enc(x))
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        recon = self.dec(self.reparametrise(mu, logvar, eps))  # fault: deviation-of-other-scale
        bce = F.binary_cross_entropy_with_logits(recon, x, reduction="sum") / x.size(0)
        kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1)
        return bce + kl.mean(), kl.mean()


class Fixed(Step):
    def reparametrise(self, mu, logvar, eps):
        return torch.addcmul(mu, eps, torch.exp(0.5 * logvar))


def example():
    torch.manual_seed(9)
    return torch.rand(4, 64), torch.randn(4, 4)
