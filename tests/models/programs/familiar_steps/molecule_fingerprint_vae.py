"""Trains a VAE of binary molecule fingerprints. The standard deviation is exp(logvar), which is the variance; it should be exp(0.5 * logvar)."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, bits=96, latent=10):
        super().__init__()
        self.enc = nn.Linear(bits, 50)
        self.to_mu = nn.Linear(50, latent)
        self.to_logvar = nn.Linear(50, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 50), nn.ReLU(), nn.Linear(50, bits))

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(logvar)  # fault: deviation-of-other-scale
        return mu + eps * std

    def forward(self, x, eps):
        h = F.relu(self.enc(x))
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        logits = self.dec(self.reparameterize(mu, logvar, eps))  # fault: deviation-of-other-scale
        bce = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return (bce + kld) / x.size(0)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return ((torch.rand(18, 96) < 0.3).float(), torch.randn(18, 10))
