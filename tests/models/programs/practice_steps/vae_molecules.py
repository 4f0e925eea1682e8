"""VAE over molecule fingerprints with KL warm-up weight.

MISTAKE (silent): the KL term lacks its minus sign (0.5 * sum(1 + logvar - mu^2 - e^logvar) is minus the KL), so
the loss pushes the posterior away from the prior.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class FingerprintVAE(nn.Module):
    def __init__(self, bits=64, hidden=32, latent=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(bits, hidden), nn.BatchNorm1d(hidden), nn.ELU())
        self.stats = nn.Linear(hidden, 2 * latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ELU(), nn.Linear(hidden, bits))

    def forward(self, bits, eps):
        mu, logvar = self.stats(self.enc(bits)).chunk(2, dim=1)
        z = mu + eps * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


class Step(nn.Module):
    beta = 0.5

    def __init__(self):
        super().__init__()
        self.vae = FingerprintVAE()

    def forward(self, bits, eps):
        logits, mu, logvar = self.vae(bits, eps)
        rec = F.binary_cross_entropy_with_logits(logits, bits, reduction="none").sum(dim=1).mean()
        kl = 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()  # fault: one-sided-loss
        return rec + self.beta * kl


class Fixed(Step):
    def forward(self, bits, eps):
        logits, mu, logvar = self.vae(bits, eps)
        rec = F.binary_cross_entropy_with_logits(logits, bits, reduction="none").sum(dim=1).mean()
        kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
        return rec + self.beta * kl


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.rand(5, 64, generator=g) > 0.8).float(), torch.randn(5, 6, generator=g)


OPEN = [{0: "batch"}, {0: "batch"}]
