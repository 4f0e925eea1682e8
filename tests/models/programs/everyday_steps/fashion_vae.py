"""Fashion vae.

MISTAKE (silent): std of a log-variance is exp(0.5 * logvar).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, z=12):
        super().__init__()
        self.enc = nn.Linear(784, 200)
        self.mu = nn.Linear(200, z)
        self.logvar = nn.Linear(200, z)
        self.d1 = nn.Linear(z, 200)
        self.d2 = nn.Linear(200, 784)

    def forward(self, x):
        h = F.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        std = torch.exp(logvar)  # fault: deviation-of-other-scale
        z = mu + std * torch.randn_like(std)  # fault: deviation-of-other-scale
        return self.d2(F.relu(self.d1(z))), mu, logvar


class Step(nn.Module):
    def __init__(self, beta=1.0):
        super().__init__()
        self.vae = VAE()
        self.beta = beta

    def forward(self, x):
        x = x.flatten(1)
        logits, mu, logvar = self.vae(x)
        rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
        kld = (-0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1)).mean()
        return rec + self.beta * kld, rec, kld


def example():
    torch.manual_seed(0)
    return (torch.rand(32, 1, 28, 28),)
